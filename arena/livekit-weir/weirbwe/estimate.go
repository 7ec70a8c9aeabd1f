// Package weirbwe puts one of Weir's controllers into LiveKit's server, for the bandwidth of each subscriber.
//
// WEIR_BWE says what it does: `off` (the default) nothing, `shadow` listens beside LiveKit's own estimate, and
// `charge` replaces it. Both work with LiveKit's `use_send_side_bwe: true`. WEIR_CONTROLLER names the
// controller, `sluice` by default. WEIR_BWE_LOG names a file that gets lines of JSON.
//
// WEIR_ALLOCATOR, with the same three values, does so for Weir's controller, prober and allocator together:
// which layer of each track a subscriber gets, and when it is probed. WEIR_ALLOCATOR_LOG is its log.
package weirbwe

import (
	"runtime"
	"time"

	"github.com/pion/rtcp"

	"github.com/livekit/protocol/logger"

	weir "weir-go"
	"weir-go/history"
)

const (
	// IPv4, UDP and the authentication tag of SRTP, in bytes a packet.
	overhead = 38
	// LiveKit sends its best layers at the start. The controller starts below them, so that it soon hears of
	// the path, and above what a first feedback could not correct.
	minBitrate, startBitrate, maxBitrate = 50_000, 1_000_000, 20_000_000
	// Window of the rate that is sent. A key frame is no rate.
	window = time.Second
)

// estimate is a controller under the packets and feedback of one subscriber. It has no lock.
type estimate struct {
	controller *weir.Controller
	log        logger.Logger
	failed     once
	history    history.History
	number     int64
	target     int64
	metrics    weir.Metrics
	recent     []sentBytes // media of the last window
	recentSum  int
}

type sentBytes struct {
	at   time.Time
	size int
}

func newEstimate(algorithm weir.Algorithm, log logger.Logger) (*estimate, error) {
	controller, err := weir.New(algorithm, weir.Settings{
		MinBitrate: minBitrate, StartBitrate: startBitrate, MaxBitrate: maxBitrate,
	})
	if err != nil {
		return nil, err
	}
	e := &estimate{controller: controller, log: log, target: startBitrate}
	// LiveKit never says that an estimator has ended.
	runtime.AddCleanup(e, closeController, controller)
	return e, nil
}

// onSent hears of a packet that leaves under this transport-wide number. An error of the controller
// leaves the last target, and the first one is logged.
func (e *estimate) onSent(now time.Time, wire uint16, size int, probe uint64, isPadding bool) {
	size += overhead
	packet := history.Packet{Number: e.number, Size: size, Time: now, Probe: probe}
	e.history.Add(history.Key{Number: wire}, packet)
	e.timeout(now)
	if !isPadding {
		e.failed.note(e.log, e.controller.OnMediaQueued(now, size, size))
		e.recent = append(e.recent, sentBytes{now, size})
		e.recentSum += size
		e.forget(now)
	}
	// The controller did not ask for LiveKit's probes, so they have no number of its own.
	sent := weir.SentPacket{SequenceNumber: e.number, Size: size, IsPadding: isPadding}
	e.failed.note(e.log, e.controller.OnPacketSent(now, sent))
	e.number++
}

// onFeedback hears of feedback, and returns its news.
func (e *estimate) onFeedback(now time.Time, report *rtcp.TransportLayerCC) (weir.Feedback, bool) {
	feedback, isNews := e.history.Join(report)
	if !isNews {
		return feedback, false
	}
	asked := feedback
	asked.Packets = make([]weir.PacketReport, len(feedback.Packets))
	for index, packet := range feedback.Packets {
		packet.ProbeID = 0
		asked.Packets[index] = packet
	}
	e.failed.note(e.log, e.controller.OnFeedback(now, asked))
	e.timeout(now)
	e.read()
	return feedback, true
}

func (e *estimate) onRoundTripTime(now time.Time, rtt time.Duration) {
	e.failed.note(e.log, e.controller.OnRoundTripTime(now, rtt))
}

// timeout serves the controller's clock: LiveKit gives an estimator none, but packets come often enough.
func (e *estimate) timeout(now time.Time) {
	if due, hasTimeout := e.controller.NextTimeout(); hasTimeout && !due.After(now) {
		e.failed.note(e.log, e.controller.OnTimeout(now))
		e.read()
	}
}

func (e *estimate) read() {
	if target, err := e.controller.Target(); err == nil {
		e.target = target.Bitrate
	}
	if metrics, err := e.controller.Metrics(); err == nil {
		e.metrics = metrics
	}
}

// sentRate is the rate of media over the last window, in bit/s.
func (e *estimate) sentRate(now time.Time) int64 {
	e.forget(now)
	return int64(float64(e.recentSum) * 8 / window.Seconds())
}

func (e *estimate) forget(now time.Time) {
	old := 0
	for old < len(e.recent) && now.Sub(e.recent[old].at) > window {
		e.recentSum -= e.recent[old].size
		old++
	}
	e.recent = e.recent[old:]
}

func closeController(controller *weir.Controller) { _ = controller.Close() }
