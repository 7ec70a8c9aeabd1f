// Package weircc plugs Weir's controllers into pion, as a cc.BandwidthEstimator with a pacer of its
// own, probes and padding.
//
//	registry := &interceptor.Registry{}
//	options := weircc.Options{Algorithm: weir.GCC}
//	err := weircc.Register(registry, options, func(id string, e *weircc.Estimator) {
//		e.OnTargetBitrateChange(func(bitrate int) { encoder.SetBitrate(withoutHeaders(bitrate)) })
//	})
//	...
//	transportWide := webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}
//	mediaEngine.RegisterFeedback(transportWide, webrtc.RTPCodecTypeVideo)
//	err = webrtc.ConfigureTWCCHeaderExtensionSender(mediaEngine, registry)
//
// Send media only while the connection is connected: before that pion drops what it is given, and the controller would
// wait for feedback on it. Read RTCP from each RTPSender, with simulcast from each of its encodings (ReadSimulcast).
//
// Not all receivers send feedback for the header extension alone, which is all that pion's function offers.
//
// It reads transport-wide feedback, that of RFC 8888, and limits (REMB). Receiver reports are not used.
// Padding needs a negotiated retransmission stream (RTX); without one, probes consist of queued media
// alone. pion does not mark IP headers with ECN. Feedback that names the retransmission stream as its
// media stream, as it does when the last packet was padding, comes with Buffers alone.
package weircc

import (
	"math"
	"slices"
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
	// The application is told of a change of the media's bitrate by this part of it.
	worthTelling = 50
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
	wake       chan struct{} // something may leave
	news       chan struct{} // the target may have changed
	done       chan struct{}
	finished   chan struct{} // the pacer

	lock     sync.Mutex
	closed   bool
	target   weir.Target
	media    int64 // the newest bitrate of the media that is worth telling
	wants    bool  // whether a picture that is taken now should be encoded
	onChange func(int)
	pacer    pacer
	streams  streams
	repair   repair
	number   int64 // of the next packet
	history  history.History
	counts   counts
}

type counts struct {
	sent, padding, probes, feedback, errors int
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
		news:       make(chan struct{}, 1),
		done:       make(chan struct{}),
		finished:   make(chan struct{}),
		target:     target,
		media:      target.Bitrate,
		streams:    streams{padding: !options.NoPadding},
	}
	e.pacer.setTarget(time.Now(), &target, false)
	go e.run()
	go e.tell(target.Bitrate)
	return e, nil
}

// Register adds an Estimator for each peer connection to a registry. Call it before the functions that
// configure pion's own interceptors, which then see packets before they are queued.
// `made` is called with each Estimator, and may be nil.
func Register(
	registry *interceptor.Registry, options Options, made func(id string, estimator *Estimator),
) error {
	own := &factory{made: made}
	inner, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		estimator, err := New(options)
		own.newest = estimator
		return estimator, err
	})
	if err != nil {
		return err
	}
	own.inner = inner
	registry.Add(own)
	return nil
}

// factory is pion's, whose interceptors also tell of streams that end.
type factory struct {
	inner *cc.InterceptorFactory
	made  func(id string, estimator *Estimator)

	lock   sync.Mutex
	newest *Estimator
}

func (f *factory) NewInterceptor(id string) (interceptor.Interceptor, error) {
	f.lock.Lock()
	made, err := f.inner.NewInterceptor(id)
	estimator := f.newest
	f.lock.Unlock()
	if err != nil {
		return nil, err
	}
	if f.made != nil {
		f.made(id, estimator)
	}
	return &ending{made, estimator}, nil
}

// ending is pion's interceptor, which does not tell its estimator of streams that end.
type ending struct {
	interceptor.Interceptor
	estimator *Estimator
}

func (e *ending) UnbindLocalStream(info *interceptor.StreamInfo) {
	e.estimator.removeStream(info.SSRC)
	e.Interceptor.UnbindLocalStream(info)
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

// removeStream discards what waits of a stream that has ended, so that no padding names it any more.
func (e *Estimator) removeStream(ssrc uint32) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for index, s := range e.streams.all {
		if s.ssrc == ssrc {
			e.options.Buffers.leave(s.rtx, s.ssrc)
			e.pacer.discard(s)
			e.streams.all = slices.Delete(e.streams.all, index, index+1)
			return
		}
	}
}

// WriteRTCP reads feedback and limits (REMB). It returns no error: that would end the application's loop that reads RTCP.
func (e *Estimator) WriteRTCP(packets []rtcp.Packet, _ interceptor.Attributes) error {
	now := time.Now()
	e.change(func() {
		if e.closed {
			return
		}
		for _, packet := range packets {
			if limit, isLimit := packet.(*rtcp.ReceiverEstimatedMaximumBitrate); isLimit {
				e.note(e.controller.OnReceiverLimit(now, limitOf(limit)))
			} else if feedback, isNews := e.history.Join(packet); isNews {
				e.counts.feedback++
				e.note(e.controller.OnFeedback(now, feedback))
			}
		}
	})
	return nil
}

// limitOf is the bitrate of REMB, whose exponent has six bits: 2^81 bit/s are no integer of 64 bits.
func limitOf(limit *rtcp.ReceiverEstimatedMaximumBitrate) int64 {
	if limit.Bitrate >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(max(limit.Bitrate, 0))
}

// note counts an error of the controller, whose last target stays.
func (e *Estimator) note(err error) {
	if err != nil {
		e.counts.errors++
	}
}

// change runs a change of the state under the lock and reads the new target.
func (e *Estimator) change(change func()) {
	e.lock.Lock()
	defer e.lock.Unlock()
	change()
	e.obey(time.Now())
	signal(e.wake)
}

// signal wakes whoever waits for this, now or later.
func signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// obey reads the controller's target.
func (e *Estimator) obey(now time.Time) {
	target, err := e.controller.Target()
	if err != nil {
		return
	}
	media, wants := mediaBitrate(&target, e.pacer.queued, e.repair.rate(now)), wantsFrame(&target, e.pacer.queued)
	moved := max(media-e.media, e.media-media)
	if target.Bitrate != e.target.Bitrate || moved*worthTelling > e.media || wants != e.wants {
		e.media, e.wants = media, wants
		signal(e.news)
	}
	e.target = target
	e.pacer.setTarget(now, &target, e.streams.paddingStream() != nil)
}

// tell passes each new target on, after the one that was told last, until the Estimator is closed. The application's
// function may take its time, and may call the Estimator.
func (e *Estimator) tell(told int64) {
	toldWants := true
	for {
		select {
		case <-e.done:
			return
		case <-e.news:
		}
		e.lock.Lock()
		media, wants, tell, closed := e.media, e.wants, e.onChange, e.closed
		e.lock.Unlock()
		if closed {
			return
		}
		if (media != told || wants != toldWants) && tell != nil {
			told, toldWants = media, wants
			tell(int(media))
		}
	}
}

// GetTargetBitrate returns what new media may take, in bit/s: the target, which is for all packets (Target), less what was
// sent again in the last second, less what waits in the pacer for more than 50 ms, and at least half of it. An encoder that
// had all of the target would make a link that loses packets lose more, and its pictures would wait.
func (e *Estimator) GetTargetBitrate() int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return int(mediaBitrate(&e.target, e.pacer.queued, e.repair.rate(time.Now())))
}

// WantsFrame says whether a picture that is taken now should be encoded. It would be late if more than 250 ms wait in the
// pacer: leave it out before the encoder, which may not be able to make as little as it should.
func (e *Estimator) WantsFrame() bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	return wantsFrame(&e.target, e.pacer.queued)
}

// OnTargetBitrateChange sets the function that is told of each new GetTargetBitrate and WantsFrame, by a goroutine of its own. If the
// function takes long, it is told of the newest one next. The bitrate includes the headers of all
// layers. An encoder must get less, or the difference waits in the pacer: about 6 % at 1 Mbit/s and 30 frames a second.
func (e *Estimator) OnTargetBitrateChange(f func(bitrate int)) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.onChange = f
	signal(e.news)
}

// SetLimits changes the range of the target, in bit/s.
func (e *Estimator) SetLimits(lowest, start, highest int64) (err error) {
	e.change(func() { err = e.controller.SetLimits(time.Now(), lowest, start, highest) })
	return err
}

// SetDesiredBitrate says the most that the source could use now, in bit/s, or weir.NoLimit.
func (e *Estimator) SetDesiredBitrate(bitrate int64) (err error) {
	e.change(func() { err = e.controller.SetDesiredBitrate(time.Now(), bitrate) })
	return err
}

// OnRouteChange says that packets take another route from now on.
func (e *Estimator) OnRouteChange() (err error) {
	e.change(func() {
		e.history.Clear()
		err = e.controller.OnRouteChange(time.Now())
	})
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
		"mediaBitrate":   e.media,
		"wantsFrame":     e.wants,
		"pacingRate":     e.target.PacingRate,
		"queuedBytes":    e.pacer.queued,
		"packetsSent":    e.counts.sent,
		"paddingPackets": e.counts.padding,
		"probePackets":   e.counts.probes,
		"feedback":       e.counts.feedback,
		"received":       received,
		"lost":           lost,
		"errors":         e.counts.errors,
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
