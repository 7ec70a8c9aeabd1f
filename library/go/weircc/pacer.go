package weircc

import (
	"time"

	weir "weir-go"
)

// Longest sleep of the pacer.
const idle = time.Second

// pacer is a queue, and the time at which its next packet may leave.
type pacer struct {
	queue  []packet
	queued int // bytes
	target weir.Target
	// When everything sent so far would have left at exactly the pacing rate, and at exactly the
	// padding rate.
	ends, paddingEnds time.Time
	// After a whole burst: wait until `ends`.
	isWaiting bool
	probe     weir.Probe // what is left of it
	lastProbe uint64
}

func (p *pacer) setTarget(target *weir.Target) {
	p.target = *target
	if target.Probe.ID == 0 {
		p.probe = weir.Probe{}
	} else if target.Probe.ID > p.lastProbe {
		p.probe, p.lastProbe = target.Probe, target.Probe.ID
	}
}

func (p *pacer) push(one packet) {
	p.queue = append(p.queue, one)
	p.queued += one.size
}

func (p *pacer) pop() packet {
	one := p.queue[0]
	p.queue[0] = packet{}
	p.queue = p.queue[1:]
	p.queued -= one.size
	return one
}

func (p *pacer) clear() { p.queue, p.queued = nil, 0 }

// decision is what the pacer wants now.
type decision int

const (
	wait decision = iota
	sendMedia
	sendPadding
)

// next decides what to send now. If it is nothing, the time says when to ask again.
func (p *pacer) next(now time.Time, canPad bool) (decision, time.Time) {
	isProbing := p.probe.ID != 0
	hasMedia := len(p.queue) > 0
	isFull := p.target.Available != weir.NoLimit && p.target.Available <= 0 && !isProbing
	if !hasMedia && canPad && p.target.PaddingRate > 0 && !isProbing && !isFull {
		if p.paddingEnds.After(now) {
			return wait, p.paddingEnds
		}
		return sendPadding, now
	}
	isPadding := isProbing && canPad && !hasMedia
	if (!hasMedia && !isPadding) || isFull {
		return wait, now.Add(idle)
	}
	due := p.ends.Add(-p.target.BurstTime)
	switch {
	case isProbing || p.isWaiting:
		due = p.ends
	case p.target.BurstWhole && due.After(now):
		p.isWaiting = true
		due = p.ends
	}
	if due.After(now) {
		return wait, due
	}
	p.isWaiting = false
	if isPadding {
		return sendPadding, now
	}
	return sendMedia, now
}

// sent counts a packet, and returns the probe to which it belongs.
func (p *pacer) sent(now time.Time, size int) uint64 {
	id, rate := p.probe.ID, p.target.PacingRate
	if id != 0 {
		rate = p.probe.Rate
		p.probe.Size -= size
		p.probe.Packets--
		if p.probe.Size <= 0 && p.probe.Packets <= 0 {
			p.probe = weir.Probe{}
		}
	}
	p.ends = later(p.ends, now).Add(duration(size, rate))
	if p.target.PaddingRate > 0 {
		p.paddingEnds = later(p.paddingEnds, now).Add(duration(size, p.target.PaddingRate))
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
	before := e.target.Bitrate
	if !e.closed {
		if timeout, hasTimeout := e.controller.NextTimeout(); hasTimeout && !timeout.After(now) {
			_ = e.controller.OnTimeout(now) // it fails only if the controller is broken
			e.obey()
		}
		next, isPacket, due = e.take(now)
		if timeout, hasTimeout := e.controller.NextTimeout(); hasTimeout && timeout.Before(due) {
			due = timeout
		}
	} else {
		due = now.Add(idle)
	}
	after, tell := e.target.Bitrate, e.onChange
	e.lock.Unlock()
	if after != before && tell != nil {
		tell(int(after))
	}
	return next, isPacket, due
}

// take takes the next packet out of the pacer, numbers it and tells the controller.
func (e *Estimator) take(now time.Time) (packet, bool, time.Time) {
	source := e.streams.paddingStream()
	decision, due := e.pacer.next(now, source != nil)
	var next packet
	switch decision {
	case wait:
		return packet{}, false, due
	case sendMedia:
		next = e.pacer.pop()
	case sendPadding:
		var err error
		if next, err = source.padding(e.options.Overhead); err != nil {
			return packet{}, false, now.Add(idle)
		}
	}
	name, err := next.stream.number(&next, e.number)
	if err != nil {
		return packet{}, false, now
	}
	probe := e.pacer.sent(now, next.size)
	e.remember(record{name, e.number, next.size, now, probe})
	e.count(probe, next.isPadding)
	// It fails only if the controller is broken; then the last target stays.
	_ = e.controller.OnPacketSent(now, e.description(&next, probe))
	e.number++
	e.obey()
	return next, true, now
}
