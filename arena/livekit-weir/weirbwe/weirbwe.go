package weirbwe

import (
	"os"
	"sync"
	"time"

	"github.com/pion/rtcp"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/ccutils"
	"github.com/livekit/protocol/logger"
	"github.com/livekit/protocol/utils/mono"

	weir "weir-go"
)

type mode string

const (
	off    mode = "off"
	shadow mode = "shadow"
	charge mode = "charge"
)

// Wrap returns what estimates a subscriber's bandwidth: `own`, LiveKit's, unless WEIR_BWE says more. If a
// controller cannot be made, it says so and stays with LiveKit's. WEIR_ALLOCATOR in shadow or in charge brings its
// own estimate, and WEIR_BWE does not count.
func Wrap(own bwe.BWE, log logger.Logger) bwe.BWE {
	wanted, algorithm := mode(os.Getenv("WEIR_BWE")), weir.Algorithm(os.Getenv("WEIR_CONTROLLER"))
	if algorithm == "" {
		algorithm = weir.Sluice
	}
	if allocator := mode(os.Getenv("WEIR_ALLOCATOR")); allocator == shadow || allocator == charge {
		return choose(own, allocator, algorithm, log)
	} else if allocator != off && allocator != "" {
		log.Warnw("WEIR_ALLOCATOR is not off, shadow or charge: off", nil, "WEIR_ALLOCATOR", allocator)
	}
	if wanted != shadow && wanted != charge {
		if wanted != off && wanted != "" {
			log.Warnw("WEIR_BWE is not off, shadow or charge: off", nil, "WEIR_BWE", wanted)
		}
		return own
	}
	estimate, err := newEstimate(algorithm, log)
	if err != nil {
		log.Errorw("no controller of Weir", err, "WEIR_CONTROLLER", algorithm)
		return own
	}
	lines := openLog(os.Getenv("WEIR_BWE_LOG"), log)
	if wanted == shadow {
		return &beside{BWE: own, estimate: estimate, lines: lines}
	}
	return newInCharge(estimate, lines, log)
}

// now is LiveKit's clock, in the form that it has for packets.
func now() time.Time { return time.UnixMicro(mono.UnixMicro()) }

// beside is LiveKit's own estimator, with one of ours that hears the same and decides nothing.
type beside struct {
	bwe.BWE // LiveKit's
	lines   *lines

	lock     sync.Mutex
	estimate *estimate
	listener bwe.BWEListener
	capacity int64 // as LiveKit's allocator was told last; zero before
}

// SetBWEListener stands between LiveKit's estimator and its allocator, to hear what is said.
func (b *beside) SetBWEListener(listener bwe.BWEListener) {
	b.lock.Lock()
	b.listener = listener
	b.lock.Unlock()
	b.BWE.SetBWEListener(b)
}

// OnCongestionStateChange passes on what LiveKit's estimator says.
func (b *beside) OnCongestionStateChange(from, to bwe.CongestionState, capacity int64) {
	b.lock.Lock()
	b.capacity = capacity
	listener := b.listener
	b.lock.Unlock()
	listener.OnCongestionStateChange(from, to, capacity)
}

// RecordPacketSendAndGetSequenceNumber numbers a packet. Both estimators hear of packets in one order.
func (b *beside) RecordPacketSendAndGetSequenceNumber(
	atMicro int64, size int, isRTX bool, cluster ccutils.ProbeClusterId, isProbe bool,
) uint16 {
	b.lock.Lock()
	defer b.lock.Unlock()
	number := b.BWE.RecordPacketSendAndGetSequenceNumber(atMicro, size, isRTX, cluster, isProbe)
	b.estimate.onSent(time.UnixMicro(atMicro), number, size, uint64(cluster), isProbe)
	return number
}

// HandleTWCCFeedback gives feedback to both.
func (b *beside) HandleTWCCFeedback(report *rtcp.TransportLayerCC) {
	at := now()
	b.lock.Lock()
	b.estimate.onFeedback(at, report)
	b.lock.Unlock()
	b.BWE.HandleTWCCFeedback(report)
	state := b.BWE.CongestionState()
	b.lock.Lock()
	b.lines.write(at, shadow, state, b.capacity, b.estimate)
	b.lock.Unlock()
}

// UpdateRTT passes on a round-trip time, in seconds.
func (b *beside) UpdateRTT(rtt float64) {
	b.BWE.UpdateRTT(rtt)
	b.lock.Lock()
	b.estimate.onRoundTripTime(now(), time.Duration(rtt*float64(time.Second)))
	b.lock.Unlock()
}

// ProbeClusterFinalize hears what LiveKit's probe has shown.
func (b *beside) ProbeClusterFinalize() (ccutils.ProbeSignal, int64, bool) {
	signal, capacity, isFinal := b.BWE.ProbeClusterFinalize()
	if isFinal && signal != ccutils.ProbeSignalCongesting {
		b.lock.Lock()
		b.capacity = max(b.capacity, capacity)
		b.lock.Unlock()
	}
	return signal, capacity, isFinal
}
