package weirbwe

import (
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/ccutils"
	"github.com/livekit/protocol/logger"
)

const (
	// Share of a target that is left for RTP's payload: LiveKit counts layers without lower headers.
	mediaShare = 0.95
	// More is sent than the target for this long before layers are taken away, and less for this long before
	// it counts as over.
	congestedAfter, clearAfter = 200 * time.Millisecond, time.Second
	// While it lasts, the allocator hears of a lower target as often as this.
	againAfter = 500 * time.Millisecond
	// What a probe proved holds for this time, in which the controller catches up with what is sent.
	proofTime = 30 * time.Second
	// After a probe that queued, or a test of the controller, what was sent before may go on for this time.
	dipTime = 3 * time.Second
	// The same as the prober of the crate weir-sfu: a target that fell by less did not fall.
	fallen = 0.98
)

// inCharge is LiveKit's estimator, made of ours. LiveKit's allocator acts on two things: congestion, with a
// capacity, and probes. So the target becomes congestion where more is sent, and a probe's arrival a proof.
type inCharge struct {
	bwe.NullBWE
	log   logger.Logger
	lines *lines

	lock      sync.Mutex
	estimate  *estimate
	listener  bwe.BWEListener
	wire      uint16
	state     bwe.CongestionState
	capacity  int64     // what the allocator was told last; zero before
	toldAt    time.Time // when that was
	overSince time.Time // more than the target is sent; zero if not
	lastOver  time.Time
	proof     held // a rate that arrived without a queue
	dip       held // a rate that holds although the target is lower
	probe     *train
	regulator *ccutils.ProbeRegulator
	rtt       time.Duration
}

// held is a rate that counts until a time.
type held struct {
	rate  int64
	until time.Time
}

func (h held) at(now time.Time) int64 {
	if now.After(h.until) {
		return 0
	}
	return h.rate
}

func newInCharge(estimate *estimate, lines *lines, log logger.Logger) *inCharge {
	c := &inCharge{estimate: estimate, lines: lines, log: log, rtt: 100 * time.Millisecond}
	c.Reset()
	return c
}

// Type is that of LiveKit's send-side estimator, in whose place this one is.
func (c *inCharge) Type() bwe.BWEType { return bwe.BWETypeSendSide }

// SetBWEListener says who hears of congestion.
func (c *inCharge) SetBWEListener(listener bwe.BWEListener) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.listener = listener
}

// Reset begins again, except for what is known of the path.
func (c *inCharge) Reset() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.state, c.overSince, c.probe = bwe.CongestionStateNone, time.Time{}, nil
	c.regulator = ccutils.NewProbeRegulator(ccutils.ProbeRegulatorParams{
		Config: ccutils.DefaultProbeRegulatorConfig, Logger: c.log,
	})
}

// RecordPacketSendAndGetSequenceNumber numbers a packet.
func (c *inCharge) RecordPacketSendAndGetSequenceNumber(
	atMicro int64, size int, _ bool, cluster ccutils.ProbeClusterId, isProbe bool,
) uint16 {
	c.lock.Lock()
	defer c.lock.Unlock()
	number := c.wire
	c.wire++
	c.estimate.onSent(time.UnixMicro(atMicro), number, size, uint64(cluster), isProbe)
	if c.probe != nil && cluster == c.probe.id {
		c.probe.sent++
	}
	return number
}

// HandleTWCCFeedback hears of feedback, and tells the allocator what follows.
func (c *inCharge) HandleTWCCFeedback(report *rtcp.TransportLayerCC) { c.onFeedback(now(), report) }

func (c *inCharge) onFeedback(at time.Time, report *rtcp.TransportLayerCC) {
	c.lock.Lock()
	before := c.estimate.target
	feedback, isNews := c.estimate.onFeedback(at, report)
	if !isNews {
		c.lock.Unlock()
		return
	}
	if c.probe != nil {
		c.probe.add(feedback)
	}
	c.followTarget(at, before)
	from, isTold := c.judge(at)
	to, capacity, listener := c.state, c.capacity, c.listener
	c.lines.write(at, charge, c.state, c.capacity, c.estimate)
	c.lock.Unlock()
	if isTold && listener != nil {
		listener.OnCongestionStateChange(from, to, capacity)
	}
}

// followTarget notices that the target fell: for a test of the controller's own, or because of the path, which
// ends what was proved.
func (c *inCharge) followTarget(at time.Time, before int64) {
	if float64(c.estimate.target) >= fallen*float64(before) {
		return
	}
	switch c.estimate.metrics.Reason {
	case "base test":
		if c.dip.at(at) == 0 {
			c.dip = held{max(before, c.proof.at(at)), at.Add(dipTime)}
		}
	case "over-use", "queuing delay", "loss", "ECN", "competing", "feedback lost":
		if c.probe == nil {
			c.proof, c.dip = held{}, held{}
		}
	}
}

// budget is what may be sent.
func (c *inCharge) budget(at time.Time) int64 {
	return max(c.estimate.target, c.proof.at(at), c.dip.at(at))
}

// judge compares what is sent with the budget. It returns the state before, and whether the allocator must be told.
func (c *inCharge) judge(at time.Time) (bwe.CongestionState, bool) {
	from, budget := c.state, c.budget(at)
	if c.estimate.sentRate(at) <= budget {
		c.overSince = time.Time{}
		if from != bwe.CongestionStateNone && at.Sub(c.lastOver) > clearAfter {
			c.state = bwe.CongestionStateNone
			return from, true
		}
		return from, false
	}
	c.lastOver = at
	if c.overSince.IsZero() {
		c.overSince = at
	}
	if at.Sub(c.overSince) < congestedAfter {
		return from, false
	}
	capacity := int64(mediaShare * float64(budget))
	isLower := at.Sub(c.toldAt) > againAfter && capacity < c.capacity
	if from == bwe.CongestionStateCongested && !isLower {
		return from, false
	}
	c.state, c.capacity, c.toldAt = bwe.CongestionStateCongested, capacity, at
	return from, true
}

// UpdateRTT hears of a round-trip time, in seconds.
func (c *inCharge) UpdateRTT(rtt float64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if rtt > 0 {
		c.rtt = time.Duration(rtt * float64(time.Second))
		c.estimate.onRoundTripTime(now(), c.rtt)
	}
}

// CongestionState is what the allocator was told last.
func (c *inCharge) CongestionState() bwe.CongestionState {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.state
}

// CanProbe says whether the path is free and LiveKit's own times between probes have passed.
func (c *inCharge) CanProbe() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.state == bwe.CongestionStateNone && c.probe == nil && c.regulator.CanProbe()
}

// ProbeDuration is LiveKit's own.
func (c *inCharge) ProbeDuration() time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.regulator.ProbeDuration()
}

// ProbeClusterStarting begins to watch the packets of a probe.
func (c *inCharge) ProbeClusterStarting(info ccutils.ProbeClusterInfo) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.probe = &train{id: info.Id, created: info.CreatedAt, target: c.estimate.target}
}

// ProbeClusterDone hears that all of a probe has left.
func (c *inCharge) ProbeClusterDone(info ccutils.ProbeClusterInfo) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.probe != nil && c.probe.id == info.Id {
		c.probe.ended = now()
	}
}

// ProbeClusterFinalize judges the probe when feedback on all of it has come, or is missing.
func (c *inCharge) ProbeClusterFinalize() (ccutils.ProbeSignal, int64, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	at := now()
	if c.probe == nil || !c.probe.isKnown(at, c.rtt) {
		return ccutils.ProbeSignalInconclusive, 0, false
	}
	probe := c.probe
	c.probe = nil
	signal, rate := probe.judge()
	c.regulator.ProbeSignal(signal, probe.created)
	switch signal {
	case ccutils.ProbeSignalCongesting:
		// What arrived is what the path carries, whatever the controller makes of the probe's queue.
		c.dip = held{min(rate, probe.target), at.Add(dipTime)}
		return signal, c.capacity, true
	case ccutils.ProbeSignalInconclusive:
		return signal, 0, true
	}
	c.proof = held{rate, at.Add(proofTime)}
	c.capacity = max(c.capacity, int64(mediaShare*float64(rate)))
	return signal, c.capacity, true
}
