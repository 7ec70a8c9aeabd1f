package weirbwe

import (
	"time"

	"github.com/livekit/livekit-server/pkg/sfu/ccutils"

	weir "weir-go"
)

const (
	// A probe of fewer packets shows nothing.
	minPackets = 6
	// A probe whose last packet waited longer than its first by this found a full path.
	maxQueued = 20 * time.Millisecond
	// Share of the packets that may be lost.
	maxLost = 0.02
)

// train is the packets of one of LiveKit's probes, media among them.
type train struct {
	id      ccutils.ProbeClusterId
	created time.Time
	ended   time.Time // when the last packet left; zero before
	target  int64     // of the controller, when it began

	sent, known, lost         int
	bytes                     int // after the first packet
	firstSent, lastSent       time.Time
	firstArrived, lastArrived time.Time
}

// add hears of feedback on packets, of which some may belong to the probe.
func (t *train) add(feedback weir.Feedback) {
	for _, packet := range feedback.Packets {
		if packet.ProbeID != uint64(t.id) || packet.IsRecovered {
			continue
		}
		t.known++
		switch {
		case !packet.Arrived:
			t.lost++
		case t.firstArrived.IsZero():
			t.firstSent, t.lastSent = packet.SendTime, packet.SendTime
			t.firstArrived, t.lastArrived = packet.ArrivalTime, packet.ArrivalTime
		default:
			t.bytes += packet.Size
			t.lastSent = packet.SendTime
			if packet.ArrivalTime.After(t.lastArrived) {
				t.lastArrived = packet.ArrivalTime
			}
		}
	}
}

// isKnown says whether feedback on all has come, or is missing for too long.
func (t *train) isKnown(now time.Time, rtt time.Duration) bool {
	if t.ended.IsZero() {
		return false
	}
	return t.known >= t.sent || now.Sub(t.ended) > max(4*rtt, 500*time.Millisecond)
}

// judge says what the probe showed, and the rate at which it arrived, in bit/s.
func (t *train) judge() (ccutils.ProbeSignal, int64) {
	sending, arriving := t.lastSent.Sub(t.firstSent), t.lastArrived.Sub(t.firstArrived)
	if t.known-t.lost < minPackets || sending <= 0 {
		if t.lost > minPackets {
			return ccutils.ProbeSignalCongesting, 0
		}
		return ccutils.ProbeSignalInconclusive, 0
	}
	rate := int64(float64(t.bytes) * 8 / max(sending, arriving).Seconds())
	if arriving-sending > maxQueued || float64(t.lost) > maxLost*float64(t.known) {
		return ccutils.ProbeSignalCongesting, rate
	}
	return ccutils.ProbeSignalNotCongesting, rate
}
