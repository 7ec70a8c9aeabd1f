package weirbwe

import (
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/ccutils"
	"github.com/livekit/protocol/logger"

	weir "weir-go"
	"weir-go/history"
	"weir-go/sfu"
)

// Choosing stands between LiveKit's packets and a chooser of layers: Weir's controller, prober and allocator. In
// shadow LiveKit's estimator works as before; in charge there is none, and the stream allocator asks here.
type Choosing struct {
	bwe.BWE // LiveKit's in shadow, one that says nothing in charge
	mode    mode
	log     logger.Logger

	lock    sync.Mutex
	chooser *sfu.Chooser
	failed  once
	history history.History
	number  int64
	wire    uint16
	// Retransmissions of the last window.
	repairs   []sentBytes
	repairSum int
	probe     weir.Probe // that runs
	probed    InProbe
	// Bytes so far, with and without padding.
	sent, padding int64

	file       *os.File // nil without a log
	subscriber int64
	nextLine   time.Time
}

// silent is the estimator of a server whose layers are chosen here.
type silent struct{ bwe.NullBWE }

func (*silent) Type() bwe.BWEType { return bwe.BWETypeSendSide }

// choose returns a Choosing around LiveKit's estimator; without one if none can be made.
func choose(own bwe.BWE, wanted mode, algorithm weir.Algorithm, log logger.Logger) bwe.BWE {
	chooser, err := sfu.New(algorithm, weir.Settings{
		MinBitrate: minBitrate, StartBitrate: chooserStart, MaxBitrate: maxBitrate,
	})
	if err != nil {
		log.Errorw("no allocator of Weir", err, "WEIR_CONTROLLER", algorithm)
		return own
	}
	c := &Choosing{BWE: own, mode: wanted, log: log, chooser: chooser, subscriber: subscribers.Add(1)}
	if wanted == charge {
		c.BWE = &silent{}
	}
	if name := os.Getenv("WEIR_ALLOCATOR_LOG"); name != "" {
		c.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			log.Errorw("no log of Weir's allocator", err)
		}
	}
	// LiveKit never says that an estimator has ended.
	runtime.AddCleanup(c, closeChooser, chooser)
	return c
}

func closeChooser(chooser *sfu.Chooser) { _ = chooser.Close() }

// IsInCharge says whether the stream allocator must do what is chosen here.
func (c *Choosing) IsInCharge() bool { return c.mode == charge }

// RecordPacketSendAndGetSequenceNumber numbers a packet.
func (c *Choosing) RecordPacketSendAndGetSequenceNumber(
	atMicro int64, size int, isRTX bool, cluster ccutils.ProbeClusterId, isProbe bool,
) uint16 {
	c.lock.Lock()
	defer c.lock.Unlock()
	number, at := c.wire, time.UnixMicro(atMicro)
	c.wire++
	// In shadow the clusters are LiveKit's, which our prober did not ask for.
	id := uint64(cluster)
	if c.mode == shadow {
		number, id = c.BWE.RecordPacketSendAndGetSequenceNumber(atMicro, size, isRTX, cluster, isProbe), 0
	}
	size += overhead
	c.history.Add(history.Key{Number: number}, history.Packet{Number: c.number, Size: size, Time: at, Probe: id})
	c.failed.note(c.log, c.chooser.OnSent(at, weir.SentPacket{
		SequenceNumber: c.number, Size: size, ProbeID: id, IsPadding: isProbe,
	}))
	c.number++
	c.sent += int64(size)
	if isProbe {
		c.padding += int64(size)
	}
	if isRTX && !isProbe {
		c.repairs = append(c.repairs, sentBytes{at, size})
		c.repairSum += size
	}
	if id != 0 && id == c.probe.ID && !isProbe {
		c.probed.Bytes += size
		c.probed.Packets++
	}
	return number
}

// HandleTWCCFeedback gives feedback to the chooser, and in shadow to LiveKit's estimator.
func (c *Choosing) HandleTWCCFeedback(report *rtcp.TransportLayerCC) {
	c.lock.Lock()
	feedback, isNews := c.history.Join(report)
	if isNews {
		c.failed.note(c.log, c.chooser.OnFeedback(now(), feedback))
	}
	c.lock.Unlock()
	c.BWE.HandleTWCCFeedback(report)
}

// UpdateRTT hears of a round-trip time, in seconds.
func (c *Choosing) UpdateRTT(rtt float64) {
	c.BWE.UpdateRTT(rtt)
	if rtt > 0 {
		c.failed.note(c.log, c.chooser.OnRoundTripTime(now(), time.Duration(rtt*float64(time.Second))))
	}
}

// SetTrack says what is known of a track now.
func (c *Choosing) SetTrack(id uint32, track sfu.Track) {
	c.failed.note(c.log, c.chooser.SetTrack(id, track))
}

// RemoveTrack hears that a track has left.
func (c *Choosing) RemoveTrack(id uint32) { c.failed.note(c.log, c.chooser.RemoveTrack(id)) }

// HasFallen says whether Choose cannot wait for its time.
func (c *Choosing) HasFallen() bool { return c.chooser.HasFallen() }

// Choose chooses layers.
func (c *Choosing) Choose() {
	at := now()
	c.lock.Lock()
	defer c.lock.Unlock()
	old := 0
	for old < len(c.repairs) && at.Sub(c.repairs[old].at) > window {
		c.repairSum -= c.repairs[old].size
		old++
	}
	c.repairs = c.repairs[old:]
	repair := int64(float64(c.repairSum) * 8 / window.Seconds())
	// LiveKit's allocator does not know of sound.
	c.failed.note(c.log, c.chooser.Choose(at, repair+soundBitrate))
}

// Level is the layer of a track, by its place; false if it is paused.
func (c *Choosing) Level(id uint32) (int, bool) { return c.chooser.Level(id) }

// StartProbe returns a probe that has not run yet.
func (c *Choosing) StartProbe() (weir.Probe, bool) {
	probe, isWanted := c.chooser.Probe()
	c.lock.Lock()
	defer c.lock.Unlock()
	if !isWanted || probe.ID == c.probe.ID || c.mode != charge {
		return probe, false
	}
	c.probe, c.probed = probe, InProbe{}
	return probe, true
}

// InProbe is what has left in a probe.
type InProbe struct{ Bytes, Packets int }

// MediaInProbe is the media that left in the probe that runs.
func (c *Choosing) MediaInProbe() InProbe {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.probed
}

// Shown is a track in the log. Rates are in bit/s.
type Shown struct {
	Track  uint32 `json:"track"`
	Ours   int64  `json:"ours"`   // what we chose takes
	Theirs int64  `json:"theirs"` // what LiveKit's allocation takes
	Height uint16 `json:"height"` // of our layer
}

type choice struct {
	Time       float64  `json:"time"` // seconds since 1970
	Subscriber int64    `json:"subscriber"`
	Mode       mode     `json:"mode"`
	Target     int64    `json:"target"`
	Why        string   `json:"why"`      // what the controller's own target follows from
	Received   int      `json:"received"` // packets so far, by feedback
	Lost       int      `json:"lost"`
	Sent       int64    `json:"sent"`    // bytes so far
	Padding    int64    `json:"padding"` // of these
	Decisions  []string `json:"decisions,omitempty"`
	Tracks     []Shown  `json:"tracks"`
}

// Log writes a line if something was decided, or a second has passed.
func (c *Choosing) Log(tracks []Shown) {
	decisions, at := c.chooser.Decisions(), now()
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.file == nil || len(decisions) == 0 && at.Before(c.nextLine) {
		return
	}
	c.nextLine = at.Add(time.Second)
	received, lost := c.history.Counts()
	text, err := json.Marshal(choice{
		Time: float64(at.UnixMicro()) / 1e6, Subscriber: c.subscriber, Mode: c.mode, Target: c.chooser.Target(), Why: c.chooser.Why(),
		Received: received, Lost: lost, Sent: c.sent, Padding: c.padding, Decisions: decisions, Tracks: tracks,
	})
	if err == nil {
		_, _ = c.file.Write(append(text, '\n'))
	}
}

// Overhead is what a packet has that LiveKit does not count, in bytes.
const Overhead = overhead

// chooserStart is the library's default. Nothing is known of the path, and what is chosen is all that is sent.
const chooserStart = 300_000

// soundBitrate is what is kept free for sound, headers included.
const soundBitrate = 40_000

// once logs the first error, and only that: each packet would make the next one.
type once struct{ done sync.Once }

func (o *once) note(log logger.Logger, err error) {
	if err != nil {
		o.done.Do(func() { log.Errorw("Weir's controller failed; its last decisions stay", err) })
	}
}
