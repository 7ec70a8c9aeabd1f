package weircc

import (
	"bytes"
	"slices"
	"time"

	weir "weir-go"
	"weir-go/history"
)

// Longest sleep of the pacer.
const idle = time.Second

// How late the pacer may wake up without sending less than the rate; the same for probes; and for how
// long other packets count as padding.
const (
	maxCatchUp      = 30 * time.Millisecond
	maxProbeCatchUp = 5 * time.Millisecond
	maxPaddingDebt  = 500 * time.Millisecond
)

// kind of a packet, or none.
type kind int

const (
	none kind = iota
	media
	padding
	probing
)

// debt is the budget of a rate.
type debt struct {
	rate int64
	// When everything sent so far would have left at exactly this rate.
	ends time.Time
}

// setRate changes the rate. What was sent ahead of the old one is paid off at the new one.
func (d *debt) setRate(now time.Time, rate int64) {
	if rate == d.rate {
		return
	}
	if ahead := d.ends.Sub(now); ahead > 0 {
		d.ends = now
		if rate > 0 {
			d.ends = now.Add(time.Duration(float64(ahead) * float64(d.rate) / float64(rate)))
		}
	}
	d.rate = rate
}

func (d *debt) charge(now time.Time, size int) {
	if d.rate > 0 {
		d.ends = later(d.ends, now).Add(duration(size, d.rate))
	}
}

// pacer has the queue of packets, and decides when they leave. It is the library's pacer once more:
// the host of a controller paces, and across the border of the WebAssembly each packet would cost.
type pacer struct {
	queue     []packet
	urgent    int // packets at the front: retransmissions and audio
	queued    int // bytes
	target    weir.Target
	paced     debt
	padded    debt
	isResting bool // after a whole burst, until the debt is paid
	probe     weir.Probe
	probeDue  time.Time
	hasBegun  bool // the probe
	lastProbe uint64
	awaited   kind // what the pacer waits to send
}

func (p *pacer) setTarget(now time.Time, target *weir.Target, canPad bool) {
	before, rate := p.next(canPad), p.padded.rate
	p.target = *target
	p.paced.setRate(now, target.PacingRate)
	p.padded.setRate(now, target.PaddingRate)
	if target.Probe.ID == 0 {
		p.probe = weir.Probe{}
	} else if target.Probe.ID > p.lastProbe {
		p.probe, p.lastProbe = target.Probe, target.Probe.ID
		p.probeDue, p.hasBegun, p.awaited = now, false, none
	}
	if before != p.next(canPad) || rate != p.padded.rate {
		p.awaited = none
	}
}

func (p *pacer) push(one packet) {
	p.queue = append(p.queue, one)
	p.queued += one.size
}

// pushUrgent puts a retransmission before the media, because its media is already late. A second one of
// the same packet is not needed while the first waits: false.
func (p *pacer) pushUrgent(one packet) bool {
	for index := range p.urgent {
		waits := &p.queue[index]
		if waits.header.SSRC == one.header.SSRC && bytes.Equal(waits.payload, one.payload) {
			return false
		}
	}
	p.insert(one)
	return true
}

// insert puts a packet before the video that waits.
func (p *pacer) insert(one packet) {
	p.queue = slices.Insert(p.queue, p.urgent, one)
	p.urgent++
	p.queued += one.size
}

// discard drops the packets of a stream.
func (p *pacer) discard(s *stream) {
	kept := make([]packet, 0, len(p.queue))
	urgent := 0
	for index := range p.queue {
		one := &p.queue[index]
		if one.stream == s {
			p.queued -= one.size
			continue
		}
		if index < p.urgent {
			urgent++
		}
		kept = append(kept, *one)
	}
	p.queue, p.urgent, p.awaited = kept, urgent, none
}

func (p *pacer) pop() packet {
	one := p.queue[0]
	p.queue[0] = packet{}
	p.queue = p.queue[1:]
	p.urgent = max(p.urgent-1, 0)
	p.queued -= one.size
	return one
}

func (p *pacer) clear() { p.queue, p.urgent, p.queued, p.awaited = nil, 0, 0, none }

// next is the kind of the next packet.
func (p *pacer) next(canPad bool) kind {
	hasMedia := len(p.queue) > 0
	switch {
	case p.target.Available != weir.NoLimit && p.target.Available <= 0:
		return none
	// A probe waits for media, and goes on with padding.
	case p.probe.ID != 0 && (hasMedia || (p.hasBegun && canPad)):
		return probing
	case hasMedia:
		return media
	case canPad && p.padded.rate > 0:
		return padding
	}
	return none
}

// due is the time at which a packet of this kind may leave.
func (p *pacer) due(next kind) time.Time {
	switch next {
	case probing:
		return p.probeDue
	case padding:
		return later(p.padded.ends, p.paced.ends)
	case media, none:
	}
	if p.target.BurstWhole && p.isResting {
		return p.paced.ends
	}
	return p.paced.ends.Add(-p.target.BurstTime)
}

// charge counts a packet that leaves now, and returns the probe to which it belongs.
func (p *pacer) charge(now time.Time, next kind, size int) uint64 {
	due := now
	if p.awaited == next {
		// The pacer woke up late, which must not cost rate.
		most := maxCatchUp
		if next == probing {
			most = maxProbeCatchUp
		}
		if at := later(p.due(next), now.Add(-most)); at.Before(now) {
			due = at
		}
	}
	p.paced.charge(due, size)
	isWhole := p.target.BurstWhole && p.paced.ends.Sub(now) >= p.target.BurstTime
	p.isResting = isWhole && len(p.queue) > 0
	if next == padding {
		p.padded.charge(due, size)
	} else {
		p.padded.charge(now, size)
	}
	if most := now.Add(maxPaddingDebt); p.padded.ends.After(most) {
		p.padded.ends = most
	}
	if next != probing {
		return 0
	}
	id := p.probe.ID
	p.hasBegun, p.probeDue = true, due.Add(duration(size, p.probe.Rate))
	p.probe.Size -= size
	p.probe.Packets--
	if p.probe.Size <= 0 && p.probe.Packets <= 0 {
		p.probe = weir.Probe{}
	}
	return id
}

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}

// duration of this many bytes at this rate.
func duration(size int, rate int64) time.Duration {
	return time.Duration(float64(size) * 8e9 / float64(max(rate, 1)))
}

// run sends packets until the Estimator is closed.
func (e *Estimator) run() {
	defer close(e.finished)
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		next, isPacket, due := e.step()
		if isPacket {
			// An error is the transport's: pion reports it elsewhere, and the packet counts as lost.
			_, _ = next.stream.writer.Write(&next.header, next.payload, next.attributes)
			continue
		}
		timer.Reset(max(time.Until(due), 0))
		select {
		case <-e.done:
			return
		case <-e.wake:
		case <-timer.C:
		}
	}
}

// step handles the controller's timeout, and takes a packet if one may leave. Otherwise it says when
// the next step is due.
func (e *Estimator) step() (next packet, isPacket bool, due time.Time) {
	now := time.Now()
	e.lock.Lock()
	defer e.lock.Unlock()
	if !e.closed {
		if timeout, hasTimeout := e.controller.NextTimeout(); hasTimeout && !timeout.After(now) {
			e.note(e.controller.OnTimeout(now))
			e.obey(now)
		}
		next, isPacket, due = e.take(now)
		if timeout, hasTimeout := e.controller.NextTimeout(); hasTimeout && timeout.Before(due) {
			due = timeout
		}
	} else {
		due = now.Add(idle)
	}
	return next, isPacket, due
}

// take takes the next packet out of the pacer, numbers it and tells the controller.
func (e *Estimator) take(now time.Time) (packet, bool, time.Time) {
	source := e.streams.paddingStream()
	kind := e.pacer.next(source != nil)
	if kind == none {
		e.pacer.awaited = none
		return packet{}, false, now.Add(idle)
	}
	if due := e.pacer.due(kind); due.After(now) {
		e.pacer.awaited = kind
		return packet{}, false, due
	}
	next, err := e.packet(kind, source)
	if err != nil {
		return packet{}, false, now.Add(idle)
	}
	name, err := next.stream.number(&next, e.number)
	if err != nil {
		return packet{}, false, now
	}
	probe := e.pacer.charge(now, kind, next.size)
	e.history.Add(name, history.Packet{Number: e.number, Size: next.size, Time: now, Probe: probe})
	e.count(probe, next.isPadding)
	e.note(e.controller.OnPacketSent(now, e.description(&next, probe)))
	e.number++
	e.pacer.awaited = e.pacer.next(source != nil)
	e.obey(now)
	return next, true, now
}

// packet is the next media packet, or padding of a stream. A probe begins with padding if there can be
// any: the rate at which a probe arrives leaves out its first packet, which would be a large one of media.
func (e *Estimator) packet(next kind, source *stream) (packet, error) {
	leads := next == probing && !e.pacer.hasBegun && source != nil
	if len(e.pacer.queue) > 0 && !leads {
		return e.pacer.pop(), nil
	}
	return source.padding(e.options.Overhead)
}
