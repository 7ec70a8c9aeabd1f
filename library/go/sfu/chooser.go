// Package sfu decides for a forwarding server, for one subscriber: which layer of each track is forwarded, and when to
// probe whether a better one fits. It is the Rust crate weir-sfu as WebAssembly, run by wazero, without cgo. Sending
// stays with the server:
//
//	chooser, err := sfu.New(weir.Sluice, weir.Settings{MinBitrate: 50_000, MaxBitrate: 10_000_000})
//	chooser.SetTrack(1, sfu.Track{ShownWidth: 1280, ShownHeight: 720, Layers: layers})
//	// For each packet that leaves: OnSent. For each feedback: OnFeedback. Then, and every 100 ms:
//	err = chooser.Choose(now, repair)
//	level, isForwarded := chooser.Level(1)
//	probe, isWanted := chooser.Probe()
package sfu

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	weir "weir-go"
)

// Errors of a Chooser.
var (
	ErrInternal   = errors.New("weir/sfu: a defect of the library") // the Chooser can only be closed
	ErrOutOfRange = errors.New("weir/sfu: a number is outside its range")
	ErrClosed     = errors.New("weir/sfu: the chooser is closed")
)

// Layer is one operating point of a track. A track lists them from the cheapest to the dearest.
type Layer struct {
	Stream, Temporal uint8  // simulcast stream and highest temporal layer, from 0
	Width, Height    uint16 // in pixels
	FrameRate        float64
	Bitrate          int64 // of the whole point, in bit/s; zero if the publisher does not send it
}

// Track is a track as the subscriber sees it.
type Track struct {
	IsScreen                bool
	Layers                  []Layer
	Priority                float64 // against other tracks of the same size; zero means 1
	ShownWidth, ShownHeight uint16  // a track of no size is not forwarded
	MustFlow                bool    // never paused: the cheapest layer is forwarded even if it does not fit
}

// isLike says whether nothing but bitrates differs.
func (t Track) isLike(other Track) bool {
	if t.IsScreen != other.IsScreen || t.Priority != other.Priority || t.MustFlow != other.MustFlow ||
		t.ShownWidth != other.ShownWidth || t.ShownHeight != other.ShownHeight || len(t.Layers) != len(other.Layers) {
		return false
	}
	for place, layer := range t.Layers {
		layer.Bitrate = other.Layers[place].Bitrate
		if layer != other.Layers[place] {
			return false
		}
	}
	return true
}

// Chooser decides for one subscriber. Its methods may be called by several goroutines. After an internal error it
// keeps its last decisions.
type Chooser struct {
	lock     sync.Mutex
	instance *instance // nil after Close
	origin   time.Time
	arrivals time.Time // origin of the receiver's clock
	tracks   map[uint32]Track
	broken   error
}

// New makes a chooser over a controller. Of the settings, the bitrates count.
func New(algorithm weir.Algorithm, settings weir.Settings) (*Chooser, error) {
	place := slices.Index(weir.Algorithms(), algorithm)
	if place < 0 {
		return nil, weir.ErrUnknownAlgorithm
	}
	instance, err := newInstance()
	if err != nil {
		return nil, err
	}
	c := &Chooser{instance: instance, tracks: map[uint32]Track{}}
	lowest, first, highest := limits(settings.MinBitrate, settings.StartBitrate, settings.MaxBitrate)
	if err := c.call(start, uint64(place), uint64(lowest), uint64(first), uint64(highest)); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// limits puts the defaults of New in place of zeros.
func limits(lowest, first, highest int64) (int64, int64, int64) {
	if lowest == 0 {
		lowest = 150_000
	}
	if first == 0 {
		first = max(300_000, lowest)
		if highest > 0 {
			first = min(first, highest)
		}
	}
	if highest == 0 {
		highest = max(2_500_000, first)
	}
	return lowest, first, highest
}

// Close frees the chooser.
func (c *Chooser) Close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.instance == nil {
		return ErrClosed
	}
	err := c.instance.close()
	c.instance = nil
	return err
}

// value calls a function, and returns its result. The caller holds the lock.
func (c *Chooser) value(which function, arguments ...uint64) (uint64, error) {
	if c.instance == nil {
		return 0, ErrClosed
	}
	if c.broken != nil {
		return 0, c.broken
	}
	result, err := c.instance.call(which, arguments...)
	if err != nil {
		c.broken = err
	}
	return result, err
}

// call calls a function whose result is a status.
func (c *Chooser) call(which function, arguments ...uint64) error {
	result, err := c.value(which, arguments...)
	if err == nil && int32(uint32(result)) < 0 { //nolint:gosec // an i32
		return ErrOutOfRange
	}
	return err
}

func (c *Chooser) at(now time.Time) uint64 {
	if c.origin.IsZero() {
		c.origin = now
	}
	return uint64(now.Sub(c.origin).Nanoseconds()) //nolint:gosec // an i64
}

// OnSent hears of a packet that leaves: media, repair or padding. Its Queued does not count.
func (c *Chooser) OnSent(now time.Time, packet weir.SentPacket) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if packet.Size < 0 || packet.Size > math.MaxUint16 || packet.ProbeID > math.MaxUint32 {
		return ErrOutOfRange
	}
	return c.call(onSent, c.at(now), uint64(packet.SequenceNumber), uint64(packet.Size), packet.ProbeID,
		bit(packet.IsPadding))
}

// OnFeedback hears of feedback on packets, in order of their numbers.
func (c *Chooser) OnFeedback(now time.Time, feedback weir.Feedback) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, packet := range feedback.Packets {
		if packet.Size < 0 || packet.Size > math.MaxUint16 || packet.ProbeID > math.MaxUint32 {
			return ErrOutOfRange
		}
	}
	isNewClock := feedback.IsNewClock
	for _, packet := range feedback.Packets {
		arrival := int64(math.MinInt64)
		if packet.Arrived || !packet.ArrivalTime.IsZero() {
			if c.arrivals.IsZero() || isNewClock {
				c.arrivals, isNewClock = packet.ArrivalTime, false
			}
			arrival = packet.ArrivalTime.Sub(c.arrivals).Nanoseconds()
		}
		err := c.call(report, uint64(packet.SequenceNumber), uint64(packet.Size), c.at(packet.SendTime), uint64(arrival),
			packet.ProbeID, bit(packet.IsRecovered))
		if err != nil {
			return err
		}
	}
	return c.call(onFeedback, c.at(now), uint64(max(feedback.MissingFeedback, 0)), bit(feedback.IsNewClock))
}

// OnRoundTripTime hears of a round-trip time of the path.
func (c *Chooser) OnRoundTripTime(now time.Time, rtt time.Duration) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.call(onRoundTripTime, c.at(now), uint64(rtt))
}

// OnReceiverLimit hears of a limit in bit/s that the receiver set (REMB), or that it was lifted: weir.NoLimit.
func (c *Chooser) OnReceiverLimit(now time.Time, bps int64) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.call(onReceiverLimit, c.at(now), uint64(bps))
}

// SetLimits changes the range of the target, in bit/s. What is known of the path stays known. Zeros are the defaults of
// New, and the start counts from the next new route.
func (c *Chooser) SetLimits(now time.Time, lowest, first, highest int64) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if lowest < 0 || first < 0 || highest < 0 {
		return weir.ErrLimits
	}
	lowest, first, highest = limits(lowest, first, highest)
	return c.call(setLimits, c.at(now), uint64(lowest), uint64(first), uint64(highest))
}

// OnRouteChange: packets take another route from now on. The controller starts anew. Pass on no feedback on packets of
// the old route.
func (c *Chooser) OnRouteChange(now time.Time) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.call(onRouteChange, c.at(now))
}

// SetTrack adds a track under a number of the host's, or says what is known of it now. Call it as often as you like:
// where only bitrates differ, the choice that was made stays until it no longer fits.
func (c *Chooser) SetTrack(id uint32, track Track) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if track.Priority == 0 {
		track.Priority = 1
	}
	track.Layers = slices.Clone(track.Layers)
	if before, isKnown := c.tracks[id]; isKnown && track.isLike(before) {
		for _, layer := range track.Layers {
			if err := c.call(bitrate, uint64(layer.Bitrate)); err != nil {
				return err
			}
		}
		return c.call(setBitrates, uint64(id))
	}
	for _, one := range track.Layers {
		err := c.call(layer, uint64(one.Stream), uint64(one.Temporal), uint64(one.Width), uint64(one.Height),
			math.Float64bits(one.FrameRate), uint64(one.Bitrate))
		if err != nil {
			return err
		}
	}
	c.tracks[id] = track
	return c.call(setTrack, uint64(id), bit(track.IsScreen), math.Float64bits(track.Priority),
		uint64(track.ShownWidth), uint64(track.ShownHeight), bit(!track.MustFlow))
}

// SetAudio adds a track of sound of this bitrate. It is always forwarded; the others share what it leaves.
func (c *Chooser) SetAudio(id uint32, bps int64) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.tracks, id)
	return c.call(setAudio, uint64(id), uint64(bps))
}

// RemoveTrack removes a track.
func (c *Chooser) RemoveTrack(id uint32) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.tracks, id)
	return c.call(removeTrack, uint64(id))
}

// Choose chooses layers. `repair` is what retransmissions take now, in bit/s.
func (c *Chooser) Choose(now time.Time, repair int64) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.call(choose, c.at(now), uint64(max(repair, 0)))
}

// HasFallen says whether the target fell so far that Choose cannot wait.
func (c *Chooser) HasFallen() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	result, err := c.value(hasFallen)
	return err == nil && uint32(result) == 1 //nolint:gosec // an i32
}

// Level returns the place of a track's layer in its list; false if it is paused or unknown.
func (c *Chooser) Level(id uint32) (int, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	result, err := c.value(level, uint64(id))
	place := int(int32(uint32(result))) //nolint:gosec // an i32
	return place, err == nil && place >= 0
}

// Probe returns the probe that should run now: padding and media together, at its rate, with its ID in SentPacket.
func (c *Chooser) Probe() (weir.Probe, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	var values [4]uint64
	for place, which := range []function{probeID, probeRate, probeSize, probePackets} {
		value, err := c.value(which)
		if err != nil {
			return weir.Probe{}, false
		}
		values[place] = value
	}
	id := uint64(uint32(values[0])) //nolint:gosec // an i32
	//nolint:gosec // they fit
	probe := weir.Probe{ID: id, Rate: int64(values[1]), Size: int(values[2]), Packets: int(values[3])}
	return probe, id != 0
}

// Target returns the controller's target, or what was proved, in bit/s.
func (c *Chooser) Target() int64 {
	c.lock.Lock()
	defer c.lock.Unlock()
	value, _ := c.value(target)
	return int64(value) //nolint:gosec // it fits
}

// Why says what the controller's target follows from, for a log.
func (c *Chooser) Why() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.text(whyTarget)
}

// Decisions takes what was decided since the last call, each with its reason, for a log.
func (c *Chooser) Decisions() []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	var texts []string
	for text := c.text(nextDecision); text != ""; text = c.text(nextDecision) {
		texts = append(texts, text)
	}
	return texts
}

// text calls a function that makes a text and returns its length. It is empty without one. The caller holds the lock.
func (c *Chooser) text(which function) string {
	length, err := c.value(which)
	if err != nil || int32(uint32(length)) <= 0 { //nolint:gosec // an i32
		return ""
	}
	place, err := c.value(textOf)
	if err != nil {
		return ""
	}
	text, _ := c.instance.module.Memory().Read(uint32(place), uint32(length)) //nolint:gosec // they fit
	return string(text)
}

func bit(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}
