package weircc

import "time"

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

// mediaBitrate is what a target leaves for new media: at least half of it. After a cut of the target, what was sent
// again in the last second still belongs to the old, higher rate.
func (r *repair) mediaBitrate(now time.Time, target int64) int64 {
	sum := 0
	newest := r.part(now)
	for back := max(newest-r.newest, 0); back < repairParts; back++ {
		sum += r.parts[(newest-back)%repairParts]
	}
	rate := int64(sum) * 8 * int64(time.Second) / int64(repairParts*repairPart)
	return max(target-rate, target/2)
}
