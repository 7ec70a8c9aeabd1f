package weir

import (
	"bytes"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Sizes of structs of weir.h, where pointers have 32 bits.
const (
	settingsSize = 48
	sentSize     = 48
	reportSize   = 48
	feedbackSize = 28
	targetSize   = 96
	metricsSize  = 752
	signalSize   = 40
	nameSize     = 32
	maxPackets   = 65_536
)

const (
	noTime  = math.MinInt64
	noValue = math.MaxUint64
	never   = math.MaxInt64
)

// Controller is a congestion controller. Its methods may be called by several goroutines. `now` is
// the time of the event; if it lies before that of an earlier call, the earlier time counts.
//
// Each controller has memory of its own, about half a megabyte.
type Controller struct {
	lock     sync.Mutex
	instance *instance // nil after Close
	// The library's functions. They stay here after Close, when nothing calls them.
	functions functions
	handle    uint64
	// Times count from here. The sender's clock begins with the first call.
	origin, arrivalOrigin time.Time
	// The clock of an application may begin at the zero time.
	hasOrigin, hasArrivalOrigin bool
	broken                      bool
	// Frees the library's memory if the controller is dropped without Close.
	cleanup runtime.Cleanup
}

// New makes a controller.
func New(algorithm Algorithm, settings Settings) (*Controller, error) {
	instance, err := newInstance()
	if err != nil {
		return nil, err
	}
	c := &Controller{instance: instance, functions: instance.functions}
	if err := c.start(algorithm, settings); err != nil {
		instance.close()
		return nil, err
	}
	c.cleanup = runtime.AddCleanup(c, closeInstance, instance)
	return c, nil
}

func (c *Controller) start(algorithm Algorithm, settings Settings) error {
	i := c.instance
	at := uint64(i.scratch)
	if err := i.call(c.functions.settingsInit, at, settingsSize); err != nil {
		return err
	}
	view := i.bytes(i.scratch, packetsAt)
	for offset, bitrate := range map[int]int64{
		8: settings.MinBitrate, 16: settings.StartBitrate, 24: settings.MaxBitrate,
	} {
		if bitrate < 0 {
			return ErrLimits
		}
		if bitrate > 0 {
			order.PutUint64(view[offset:], uint64(bitrate))
		}
	}
	if settings.Priority != 0 {
		order.PutUint64(view[32:], math.Float64bits(settings.Priority))
	}
	order.PutUint32(view[40:], uint32(settings.ECN))
	view[44], view[45] = bit(settings.TolerateRandomLoss), bit(settings.CompeteWithTCP)
	view[46] = bit(!settings.NoProbeWhenLimited)
	const nameAt, handleAt = 64, 128
	if len(algorithm) >= nameSize || bytes.IndexByte([]byte(algorithm), 0) >= 0 {
		return ErrUnknownAlgorithm
	}
	copy(view[nameAt:], string(algorithm)+"\x00")
	if err := i.call(c.functions.controllerNew, at+nameAt, at, at+handleAt); err != nil {
		return err
	}
	c.handle = uint64(order.Uint32(i.bytes(i.scratch+handleAt, 4)))
	return nil
}

func closeInstance(i *instance) { i.close() }

// Close frees the controller. Later calls return ErrClosed. A controller that is dropped without it
// is freed by the garbage collector.
func (c *Controller) Close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.instance == nil {
		return ErrClosed
	}
	c.cleanup.Stop()
	c.instance.close()
	c.instance = nil
	return nil
}

// usable says whether calls are possible. The caller holds the lock.
func (c *Controller) usable() error {
	if c.instance == nil {
		return ErrClosed
	}
	if c.broken {
		return ErrInternal
	}
	return nil
}

// noted remembers that the library failed, because its memory may then be in any state.
func (c *Controller) noted(err error) error {
	if err != nil {
		if _, isStatus := err.(Status); !isStatus || err == ErrInternal { //nolint:errorlint // own
			c.broken = true
		}
	}
	return err
}

// nanoseconds of a time on the sender's clock.
func (c *Controller) nanoseconds(t time.Time) int64 {
	if !c.hasOrigin {
		c.origin, c.hasOrigin = t, true
	}
	return t.Sub(c.origin).Nanoseconds()
}

// OnMediaQueued: the source put `added` bytes into the send queue, which now has `queued` bytes.
func (c *Controller) OnMediaQueued(now time.Time, added, queued int) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if added < 0 || queued < 0 {
		return ErrInvalidArgument
	}
	at := uint64(c.nanoseconds(now))
	function := c.functions.onMediaQueued
	return c.noted(c.instance.call(function, c.handle, at, uint64(added), uint64(queued)))
}

// OnPacketSent: a packet left the pacer.
func (c *Controller) OnPacketSent(now time.Time, packet SentPacket) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if packet.Size < 0 || packet.Queued < 0 {
		return ErrInvalidArgument
	}
	i := c.instance
	view := i.bytes(i.scratch, sentSize)
	order.PutUint64(view, sentSize)
	order.PutUint64(view[8:], uint64(packet.SequenceNumber))
	order.PutUint64(view[16:], uint64(packet.Size))
	order.PutUint64(view[24:], uint64(packet.Queued))
	order.PutUint64(view[32:], packet.ProbeID)
	order.PutUint64(view[40:], uint64(bit(packet.IsPadding)))
	at := uint64(c.nanoseconds(now))
	return c.noted(i.call(c.functions.onPacketSent, c.handle, at, uint64(i.scratch)))
}

// OnFeedback: a feedback packet arrived.
func (c *Controller) OnFeedback(now time.Time, feedback Feedback) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if len(feedback.Packets) > maxPackets || feedback.MissingFeedback < 0 {
		return ErrInvalidArgument
	}
	i := c.instance
	if err := i.roomFor(len(feedback.Packets)); err != nil {
		return c.noted(err)
	}
	at := uint64(c.nanoseconds(now))
	if err := c.writePackets(feedback.Packets, feedback.IsNewClock); err != nil {
		return err
	}
	view := i.bytes(i.scratch, feedbackSize)
	order.PutUint32(view, feedbackSize)
	order.PutUint32(view[4:], i.packets)
	order.PutUint32(view[8:], uint32(len(feedback.Packets)))     //nolint:gosec // checked
	order.PutUint32(view[12:], uint32(feedback.MissingFeedback)) //nolint:gosec // checked
	order.PutUint32(view[16:], uint32(bit(feedback.RoundTripTimes)))
	order.PutUint64(view[20:], uint64(bit(feedback.IsNewClock)))
	return c.noted(i.call(c.functions.onFeedback, c.handle, at, uint64(i.scratch)))
}

// setArrivalOrigin chooses an origin for the receiver's clock. It is that of the sender's clock, unless
// the two are so far apart that a time.Duration is too short.
func (c *Controller) setArrivalOrigin(first time.Time) {
	const far = 10 * 365 * 24 * time.Hour
	c.arrivalOrigin, c.hasArrivalOrigin = c.origin, true
	if first.Sub(c.origin).Abs() > far {
		c.arrivalOrigin = first
	}
}

func (c *Controller) writePackets(packets []PacketReport, isNewClock bool) error {
	i := c.instance
	view := i.bytes(i.packets, uint32(len(packets))*reportSize) //nolint:gosec // checked
	for index := range packets {
		packet := &packets[index]
		if packet.Size < 0 {
			return ErrInvalidArgument
		}
		arrival := int64(noTime)
		if packet.Arrived || !packet.ArrivalTime.IsZero() {
			if !c.hasArrivalOrigin || isNewClock {
				c.setArrivalOrigin(packet.ArrivalTime)
				isNewClock = false
			}
			arrival = packet.ArrivalTime.Sub(c.arrivalOrigin).Nanoseconds()
		}
		row := view[index*reportSize:][:reportSize]
		order.PutUint64(row, uint64(packet.SequenceNumber))
		order.PutUint64(row[8:], uint64(packet.Size))
		order.PutUint64(row[16:], uint64(c.nanoseconds(packet.SendTime)))
		order.PutUint64(row[24:], uint64(arrival))
		order.PutUint64(row[32:], packet.ProbeID)
		order.PutUint64(row[40:], uint64(packet.ECN)|uint64(bit(packet.IsRecovered))<<8)
	}
	return nil
}

// OnRoundTripTime: a receiver report gave this round-trip time of the path.
func (c *Controller) OnRoundTripTime(now time.Time, rtt time.Duration) error {
	return c.event(now, c.functions.onRoundTripTime, uint64(rtt))
}

// OnReceiverLimit: the receiver set a limit in bit/s (REMB), or lifted it with NoLimit.
func (c *Controller) OnReceiverLimit(now time.Time, bitrate int64) error {
	return c.event(now, c.functions.onReceiverLimit, optional(bitrate))
}

// SetLimits changes the range of the target. What is known of the path stays known. The start counts
// from the next new route; 0 stands for 300,000, or what is nearest to it in the range.
func (c *Controller) SetLimits(now time.Time, lowest, start, highest int64) error {
	if lowest < 0 || start < 0 || highest < 0 {
		return ErrLimits
	}
	return c.event(now, c.functions.setLimits, uint64(lowest), uint64(start), uint64(highest))
}

// SetDesiredBitrate says the most that the source could use now, or NoLimit if that is unknown.
func (c *Controller) SetDesiredBitrate(now time.Time, bitrate int64) error {
	return c.event(now, c.functions.setDesiredBitrate, optional(bitrate))
}

// OnRouteChange: packets take another route from now on. Do not pass on feedback on packets of the
// old route.
func (c *Controller) OnRouteChange(now time.Time) error {
	return c.event(now, c.functions.onRouteChange)
}

// OnSharedRate: the coupled flows of this sender gave this flow a new share of their rate.
func (c *Controller) OnSharedRate(now time.Time, share int64) error {
	if share < 0 {
		return ErrInvalidArgument
	}
	return c.event(now, c.functions.onSharedRate, uint64(share))
}

// OnTimeout handles the timeout if it is due. A call before NextTimeout does nothing.
func (c *Controller) OnTimeout(now time.Time) error {
	return c.event(now, c.functions.onTimeout)
}

// event calls a function that takes the handle, the time and up to three numbers.
func (c *Controller) event(now time.Time, function api.Function, numbers ...uint64) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	arguments := [5]uint64{c.handle, uint64(c.nanoseconds(now))}
	count := 2 + copy(arguments[2:], numbers)
	return c.noted(c.instance.call(function, arguments[:count]...))
}

// NextTimeout returns the time at which OnTimeout is due; false if there is none.
func (c *Controller) NextTimeout() (time.Time, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.usable() != nil {
		return time.Time{}, false
	}
	i := c.instance
	if c.noted(i.call(c.functions.nextTimeout, c.handle, uint64(i.scratch))) != nil {
		return time.Time{}, false
	}
	due := int64(order.Uint64(i.bytes(i.scratch, 8)))
	if due == never || !c.hasOrigin {
		return time.Time{}, false
	}
	return c.origin.Add(time.Duration(due)), true
}

// Target returns what the sender should do now.
func (c *Controller) Target() (Target, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return Target{}, err
	}
	i := c.instance
	order.PutUint32(i.bytes(i.scratch, 4), targetSize)
	if err := c.noted(i.call(c.functions.target, c.handle, uint64(i.scratch))); err != nil {
		return Target{}, err
	}
	view := i.bytes(i.scratch, targetSize)
	target := Target{
		Bitrate:       saturated(view[8:]),
		SourceBitrate: saturated(view[16:]),
		PacingRate:    saturated(view[24:]),
		BurstTime:     time.Duration(order.Uint64(view[32:])),
		Window:        limit(view[40:]),
		Available:     limit(view[48:]),
		PaddingRate:   saturated(view[56:]),
		BurstWhole:    order.Uint32(view[92:]) == 1,
	}
	if id := order.Uint64(view[64:]); id != 0 {
		size, packets := int(saturated(view[80:])), int(order.Uint32(view[88:]))
		target.Probe = Probe{ID: id, Rate: saturated(view[72:]), Size: size, Packets: packets}
	}
	return target, nil
}

// Metrics returns the internals, for traces and reports.
func (c *Controller) Metrics() (Metrics, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.usable(); err != nil {
		return Metrics{}, err
	}
	i := c.instance
	order.PutUint32(i.bytes(i.scratch, 4), metricsSize)
	if err := c.noted(i.call(c.functions.metrics, c.handle, uint64(i.scratch))); err != nil {
		return Metrics{}, err
	}
	view := i.bytes(i.scratch, metricsSize)
	metrics := Metrics{
		RTT:          known(view[8:]),
		QueuingDelay: known(view[16:]),
		LossRatio:    math.Float64frombits(order.Uint64(view[32:])),
		Reason:       text(view[48:]),
		State:        text(view[80:]),
	}
	metrics.AckedBitrate = max(limit(view[24:]), 0)
	for index := range int(order.Uint32(view[44:])) {
		row := view[112+index*signalSize:]
		value := math.Float64frombits(order.Uint64(row[nameSize:]))
		metrics.Signals = append(metrics.Signals, Signal{text(row), value})
	}
	return metrics, nil
}

// text is a copy of a text of the library.
func text(view []byte) string {
	name, _, _ := bytes.Cut(view[:nameSize], []byte{0})
	return string(name)
}

func bit(value bool) byte {
	if value {
		return 1
	}
	return 0
}

// optional is a number for the library, where a negative one does not exist.
func optional(value int64) uint64 {
	if value < 0 {
		return noValue
	}
	return uint64(value)
}

func limit(view []byte) int64 {
	if order.Uint64(view) == noValue {
		return NoLimit
	}
	return saturated(view)
}

func saturated(view []byte) int64 {
	return int64(min(order.Uint64(view), math.MaxInt64)) //nolint:gosec // it fits
}

func known(view []byte) time.Duration {
	value := int64(order.Uint64(view)) //nolint:gosec // an i64
	if value == noTime {
		return 0
	}
	return time.Duration(value)
}
