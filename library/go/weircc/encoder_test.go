package weircc

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"

	weir "weir-go"
)

func TestTheEncoderGetsWhatRetransmissionsLeave(t *testing.T) {
	const whole = 800_000
	target := weir.Target{Bitrate: whole, SourceBitrate: whole, PacingRate: whole}
	start := time.Unix(1_000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var r repair
	expect := func(ms int, bitrate int64) {
		t.Helper()
		if left := mediaBitrate(&target, 0, r.rate(at(ms))); left != bitrate {
			t.Errorf("%d bit/s after %d ms, not %d", left, ms, bitrate)
		}
	}
	expect(0, whole)
	r.add(at(0), 12_500) // 100 kbit/s
	r.add(at(500), 6_250)
	expect(999, 650_000)
	expect(1_000, 750_000)
	expect(1_500, whole)
	// Old parts are used again.
	r.add(at(3_000), 12_500)
	expect(3_001, 700_000)
	r.add(at(3_050), 125_000)
	expect(3_051, whole/2)
	expect(60_000, whole)
}

func TestTheEncoderMakesLessWhileMoreThanAFrameWaitsAndNothingThatWouldBeLate(t *testing.T) {
	const whole = 800_000
	target := weir.Target{Bitrate: whole, SourceBitrate: whole, PacingRate: whole}
	for _, one := range []struct {
		ms, left int
		wants    bool
	}{
		{0, whole, true},
		{50, whole, true},
		// What waits for 100 ms more leaves within half a second.
		{150, 640_000, true},
		{250, 480_000, true},
		{260, 464_000, false},
		{10_000, whole / 2, false},
	} {
		queued := one.ms * whole / 8_000
		left, wants := mediaBitrate(&target, queued, 0), wantsFrame(&target, queued)
		if left != int64(one.left) || wants != one.wants {
			t.Errorf("%d ms wait: %d bit/s, %v", one.ms, left, wants)
		}
	}
}

// under makes a stream with feedback and retransmissions under an Estimator.
func under(e *Estimator, info interceptor.StreamInfo, writer interceptor.RTPWriterFunc) interceptor.RTPWriter {
	info.RTPHeaderExtensions = []interceptor.RTPHeaderExtension{{URI: transportCCURI, ID: 1}}
	return e.AddStream(&info, writer)
}

func TestWhatIsSentAgainIsTakenOffTheTarget(t *testing.T) {
	e := sentBy(t, 0)
	info := interceptor.StreamInfo{SSRC: 7, SSRCRetransmission: 8, PayloadTypeRetransmission: 97, MimeType: "video/VP8"}
	video := under(e, info, func(*rtp.Header, []byte, interceptor.Attributes) (int, error) { return 0, nil })
	if e.GetTargetBitrate() != int(e.Target().Bitrate) {
		t.Fatal("nothing was sent again yet")
	}
	sent := 0
	for number := range 5 {
		size, err := video.Write(&rtp.Header{Version: 2, SSRC: 8}, append(make([]byte, 1_000), byte(number)), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent += size + defaultOverhead
	}
	// What waits is taken off, too.
	for e.GetStats()["queuedBytes"] != 0 {
		time.Sleep(time.Millisecond)
	}
	if left := int(e.Target().Bitrate) - 8*sent; e.GetTargetBitrate() != left {
		t.Fatalf("%d bit/s, not %d", e.GetTargetBitrate(), left)
	}
}

func TestAudioLeavesBeforeTheVideoThatWaits(t *testing.T) {
	e := sentBy(t, 0)
	const packets = 40
	left := make(chan uint32, 2*packets)
	write := func(header *rtp.Header, _ []byte, _ interceptor.Attributes) (int, error) {
		left <- header.SSRC
		return 0, nil
	}
	video := under(e, interceptor.StreamInfo{SSRC: 7, MimeType: "video/VP8"}, write)
	audio := under(e, interceptor.StreamInfo{SSRC: 9, MimeType: "audio/opus"}, write)
	for range packets {
		if _, err := video.Write(&rtp.Header{Version: 2, SSRC: 7}, make([]byte, 1_000), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := audio.Write(&rtp.Header{Version: 2, SSRC: 9}, make([]byte, 100), nil); err != nil {
		t.Fatal(err)
	}
	order := make([]uint32, 0, packets+1)
	for range packets + 1 {
		order = append(order, <-left)
	}
	if place := slices.Index(order, 9); place < 0 || place > packets/2 {
		t.Fatalf("audio left as number %d", place)
	}
}
