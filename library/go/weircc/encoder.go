package weircc

import (
	"time"

	weir "weir-go"
)

// The library's part of an encoder once more: the longest queue in which a picture is not late; a usual queue, when the last
// frame is still leaving; and the time within which what waits beyond it should leave.
const (
	maxQueueForFrames = 250 * time.Millisecond
	usualQueue        = 50 * time.Millisecond
	drainTime         = 500 * time.Millisecond
)

// The window of the rate of retransmissions, in parts.
const (
	repairParts = 10
	repairPart  = 100 * time.Millisecond
)

// repair counts the bytes of retransmissions in the last second. It is the library's count once more, as the pacer is.
type repair struct {
	parts  [repairParts]int
	newest int64 // the part of time that is the newest one here
	start  time.Time
}

// part of a time since the start, on the monotonic clock: the wall clock may be set back.
func (r *repair) part(now time.Time) int64 {
	if r.start.IsZero() {
		r.start = now
	}
	return repairParts + max(int64(now.Sub(r.start)/repairPart), 0)
}

func (r *repair) add(now time.Time, size int) {
	newest := r.part(now)
	for passed := range min(max(newest-r.newest, 0), repairParts) {
		r.parts[(newest-passed)%repairParts] = 0
	}
	r.newest = max(r.newest, newest)
	r.parts[r.newest%repairParts] += size
}

// rate of the retransmissions of the last second, in bit/s.
func (r *repair) rate(now time.Time) int64 {
	sum := 0
	newest := r.part(now)
	for back := max(newest-r.newest, 0); back < repairParts; back++ {
		sum += r.parts[(newest-back)%repairParts]
	}
	return int64(sum) * 8 * int64(time.Second) / int64(repairParts*repairPart)
}

// mediaBitrate is what a target leaves for new media, beside retransmissions and what waits: at least half of it. After a
// cut of the target, both still belong to the old, higher rate.
func mediaBitrate(target *weir.Target, queued int, repair int64) int64 {
	excess := max(int64(queued)*8-target.PacingRate*int64(usualQueue)/int64(time.Second), 0)
	left := target.SourceBitrate - repair - excess*int64(time.Second)/int64(drainTime)
	return max(left, target.SourceBitrate/2)
}

// wantsFrame: a picture that is taken now would not be late.
func wantsFrame(target *weir.Target, queued int) bool {
	return target.PacingRate <= 0 || duration(queued, target.PacingRate) <= maxQueueForFrames
}
