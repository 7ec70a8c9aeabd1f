// Package weircc plugs Weir's controllers into pion, as a cc.BandwidthEstimator with a pacer of its
// own, probes and padding.
//
//	registry := &interceptor.Registry{}
//	options := weircc.Options{Algorithm: weir.GCC}
//	err := weircc.Register(registry, options, func(id string, e *weircc.Estimator) {
//		e.OnTargetBitrateChange(func(target int) { encoder.SetBitrate(withoutHeaders(target)) })
//	})
//	...
//	err = webrtc.ConfigureTWCCHeaderExtensionSender(mediaEngine, registry)
//
// It reads transport-wide feedback, that of RFC 8888, and limits (REMB). Receiver reports are not used.
// Padding needs a negotiated retransmission stream (RTX); without one, probes consist of queued media
// alone. pion does not mark IP headers with ECN. Feedback that names the retransmission stream as its
// media stream, as it does when the last packet was padding, comes with Buffers alone.
package weircc

import (
	"errors"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/rtcp"

	weir "weir-go"
	"weir-go/history"
)

const (
	transportCCURI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	// IPv4, UDP, and the authentication tag of SRTP.
	defaultOverhead = 38
)

// Options configure an Estimator.
type Options struct {
	Algorithm weir.Algorithm // default weir.GCC
	Settings  weir.Settings
	// Overhead is what other layers add to each RTP packet, in bytes: default 38, for IPv4, UDP
	// and SRTP.
	Overhead int
	// NoPadding: probes consist of queued media alone.
	NoPadding bool
	// Buffers bring the feedback that names a retransmission stream.
	Buffers *Buffers
}

// Estimator is a pacer with one of Weir's controllers. It implements cc.BandwidthEstimator.
type Estimator struct {
	options    Options
	controller *weir.Controller
	wake       chan struct{}
	done       chan struct{}
	finished   chan struct{}

	lock     sync.Mutex
	closed   bool
	target   weir.Target
	onChange func(int)
	pacer    pacer
	streams  streams
	number   int64 // of the next packet
	history  history.History
	counts   counts
}

type counts struct {
	sent, padding, probes, feedback int
}

var _ cc.BandwidthEstimator = (*Estimator)(nil)

// New makes an Estimator. Close it after use.
func New(options Options) (*Estimator, error) {
	if options.Algorithm == "" {
		options.Algorithm = weir.GCC
	}
	if options.Overhead == 0 {
		options.Overhead = defaultOverhead
	}
	controller, err := weir.New(options.Algorithm, options.Settings)
	if err != nil {
		return nil, err
	}
	target, err := controller.Target()
	if err != nil {
		return nil, err
	}
	e := &Estimator{
		options:    options,
		controller: controller,
		wake:       make(chan struct{}, 1),
		done:       make(chan struct{}),
		finished:   make(chan struct{}),
		target:     target,
		streams:    streams{padding: !options.NoPadding},
	}
	e.pacer.setTarget(time.Now(), &target, false)
	go e.run()
	return e, nil
}

// Register adds an Estimator for each peer connection to a registry. Call it before the functions that
// configure pion's own interceptors, which then see packets before they are queued.
// `made` is called with each Estimator, and may be nil.
func Register(
	registry *interceptor.Registry, options Options, made func(id string, estimator *Estimator),
) error {
	control, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) { return New(options) })
	if err != nil {
		return err
	}
	control.OnNewPeerConnection(func(id string, estimator cc.BandwidthEstimator) {
		if own, isOwn := estimator.(*Estimator); isOwn && made != nil {
			made(id, own)
		}
	})
	registry.Add(control)
	return nil
}

// AddStream returns a writer that queues the packets of a stream. A stream without feedback is left
// alone.
func (e *Estimator) AddStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	s := newStream(info, writer)
	if s == nil {
		return writer
	}
	e.lock.Lock()
	e.streams.all = append(e.streams.all, s)
	e.lock.Unlock()
	e.options.Buffers.join(s.rtx, s.ssrc)
	return interceptor.RTPWriterFunc(s.writeTo(e))
}

// WriteRTCP reads feedback and limits (REMB).
func (e *Estimator) WriteRTCP(packets []rtcp.Packet, _ interceptor.Attributes) error {
	now := time.Now()
	var err error
	changed := e.change(func() {
		if e.closed {
			return
		}
		for _, packet := range packets {
			var failed error
			if limit, isLimit := packet.(*rtcp.ReceiverEstimatedMaximumBitrate); isLimit {
				failed = e.controller.OnReceiverLimit(now, int64(limit.Bitrate))
			} else if feedback, isNews := e.history.Join(packet); isNews {
				e.counts.feedback++
				failed = e.controller.OnFeedback(now, feedback)
			}
			err = errors.Join(err, failed)
		}
	})
	changed()
	return err
}

// change runs a change of the state under the lock and reads the new target. It returns a function
// that tells the application, for which the lock must be free.
func (e *Estimator) change(change func()) func() {
	e.lock.Lock()
	defer e.lock.Unlock()
	before := e.target.Bitrate
	change()
	e.obey(time.Now())
	after, tell := int(e.target.Bitrate), e.onChange
	select {
	case e.wake <- struct{}{}:
	default:
	}
	if int64(after) == before || tell == nil {
		return func() {}
	}
	return func() { tell(after) }
}

// obey reads the controller's target.
func (e *Estimator) obey(now time.Time) {
	if target, err := e.controller.Target(); err == nil {
		e.target = target
		e.pacer.setTarget(now, &target, e.streams.paddingStream() != nil)
	}
}

// GetTargetBitrate returns the target in bit/s.
func (e *Estimator) GetTargetBitrate() int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return int(e.target.Bitrate)
}

// OnTargetBitrateChange sets the function that is told of each new target. The target includes the headers of all
// layers. An encoder must get less, or the difference waits in the pacer: about 6 % at 1 Mbit/s and 30 frames a second.
func (e *Estimator) OnTargetBitrateChange(f func(bitrate int)) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.onChange = f
}

// SetLimits changes the range of the target, in bit/s.
func (e *Estimator) SetLimits(lowest, start, highest int64) (err error) {
	e.change(func() { err = e.controller.SetLimits(time.Now(), lowest, start, highest) })()
	return err
}

// SetDesiredBitrate says the most that the source could use now, in bit/s, or weir.NoLimit.
func (e *Estimator) SetDesiredBitrate(bitrate int64) (err error) {
	e.change(func() { err = e.controller.SetDesiredBitrate(time.Now(), bitrate) })()
	return err
}

// OnRouteChange says that packets take another route from now on.
func (e *Estimator) OnRouteChange() (err error) {
	e.change(func() {
		e.history.Clear()
		err = e.controller.OnRouteChange(time.Now())
	})()
	return err
}

// Target returns all that the controller asks for.
func (e *Estimator) Target() weir.Target {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.target
}

// Metrics returns the controller's internals.
func (e *Estimator) Metrics() (weir.Metrics, error) { return e.controller.Metrics() }

// GetStats returns numbers for logs.
func (e *Estimator) GetStats() map[string]any {
	metrics, _ := e.controller.Metrics()
	e.lock.Lock()
	defer e.lock.Unlock()
	received, lost := e.history.Counts()
	return map[string]any{
		"algorithm":      string(e.options.Algorithm),
		"state":          metrics.State,
		"reason":         metrics.Reason,
		"lossRatio":      metrics.LossRatio,
		"rtt":            metrics.RTT,
		"queuingDelay":   metrics.QueuingDelay,
		"ackedBitrate":   metrics.AckedBitrate,
		"targetBitrate":  e.target.Bitrate,
		"pacingRate":     e.target.PacingRate,
		"queuedBytes":    e.pacer.queued,
		"packetsSent":    e.counts.sent,
		"paddingPackets": e.counts.padding,
		"probePackets":   e.counts.probes,
		"feedback":       e.counts.feedback,
		"received":       received,
		"lost":           lost,
	}
}

// Close ends the pacer. What is queued is discarded.
func (e *Estimator) Close() error {
	e.lock.Lock()
	if e.closed {
		e.lock.Unlock()
		return nil
	}
	e.closed = true
	e.pacer.clear()
	for _, s := range e.streams.all {
		e.options.Buffers.leave(s.rtx, s.ssrc)
	}
	e.lock.Unlock()
	close(e.done)
	<-e.finished
	return e.controller.Close()
}
