package weircc

import (
	"testing"
	"time"
)

func TestTheEncoderGetsWhatRetransmissionsLeave(t *testing.T) {
	const target = 800_000
	start := time.Unix(1_000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var r repair
	expect := func(ms int, bitrate int64) {
		t.Helper()
		if left := r.mediaBitrate(at(ms), target); left != bitrate {
			t.Errorf("%d bit/s after %d ms, not %d", left, ms, bitrate)
		}
	}
	expect(0, target)
	r.add(at(0), 12_500) // 100 kbit/s
	r.add(at(500), 6_250)
	expect(999, 650_000)
	expect(1_000, 750_000)
	expect(1_500, target)
	// Old parts are used again.
	r.add(at(3_000), 12_500)
	expect(3_001, 700_000)
	r.add(at(3_050), 125_000)
	expect(3_051, target/2)
	expect(60_000, target)
}
