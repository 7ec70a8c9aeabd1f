package weircc

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	weir "weir-go"
	"weir-go/history"
)

// sentBy makes an Estimator that remembers this many packets.
func sentBy(t *testing.T, packets int) *Estimator {
	t.Helper()
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	for number := range packets {
		name := history.Key{Number: uint16(number)} //nolint:gosec // small
		e.history.Add(name, history.Packet{Number: int64(number), Size: 1_000, Time: time.Now()})
	}
	return e
}

func TestAReceiversLimitCounts(t *testing.T) {
	e := sentBy(t, 0)
	limit := &rtcp.ReceiverEstimatedMaximumBitrate{Bitrate: 200_000}
	if err := e.WriteRTCP([]rtcp.Packet{limit}, nil); err != nil || e.GetTargetBitrate() != 200_000 {
		t.Fatalf("%v, %d", err, e.GetTargetBitrate())
	}
}

func TestAStreamWithoutFeedbackIsNotQueued(t *testing.T) {
	e := sentBy(t, 0)
	var at time.Time
	writer := interceptor.RTPWriterFunc(func(*rtp.Header, []byte, interceptor.Attributes) (int, error) {
		at = time.Now()
		return 0, nil
	})
	audio := e.AddStream(&interceptor.StreamInfo{}, writer)
	if _, err := audio.Write(&rtp.Header{}, nil, nil); err != nil || at.IsZero() {
		t.Fatalf("it did not leave at once: %v", err)
	}
}

func TestRetransmissionsGoFirstAndOnce(t *testing.T) {
	var p pacer
	media := func(number uint16) packet { return packet{header: rtp.Header{SequenceNumber: number}, size: 1} }
	again := func(payload byte) packet {
		return packet{header: rtp.Header{SSRC: 9, SequenceNumber: 100 + uint16(payload)}, payload: []byte{payload}, size: 1}
	}
	p.push(media(1))
	p.pushUrgent(again(1))
	p.pushUrgent(again(2))
	if p.pushUrgent(again(1)) || p.queued != 3 {
		t.Fatal("a retransmission waits twice")
	}
	for _, want := range []uint16{101, 102, 1} {
		if have := p.pop().header.SequenceNumber; have != want {
			t.Fatalf("%d before %d", have, want)
		}
	}
}

func TestASmallPacketLeadsEachProbeIfThereCanBePadding(t *testing.T) {
	for _, canPad := range []bool{true, false} {
		e := sentBy(t, 0)
		// Its own goroutine would send from the same pacer.
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		source := (*stream)(nil)
		if canPad {
			source = &stream{rtx: 9, hasSent: true}
		}
		e.pacer.probe = weir.Probe{ID: 1, Rate: 1_000_000, Size: 10_000, Packets: 5}
		e.pacer.probeDue = time.Now()
		e.pacer.push(packet{size: 1_000})
		var order []bool
		for range 2 {
			kind := e.pacer.next(canPad)
			if kind != probing {
				break
			}
			next, err := e.packet(kind, source)
			if err != nil {
				t.Fatal(err)
			}
			e.pacer.charge(time.Now(), kind, next.size)
			order = append(order, next.isPadding)
		}
		if want := []bool{true, false}; canPad && !slices.Equal(order, want) {
			t.Fatalf("padding: %v", order)
		}
		if want := []bool{false}; !canPad && !slices.Equal(order, want) {
			t.Fatalf("padding without a stream for it: %v", order)
		}
	}
}

// A burst of packets leaves at the pacing rate, although the pacer wakes up late.
func TestThePacerKeepsItsRate(t *testing.T) {
	now := time.Unix(1_000, 0)
	var p pacer
	p.setTarget(now, &weir.Target{PacingRate: 8_000_000, Available: weir.NoLimit}, false)
	for range 1_000 {
		p.push(packet{size: 1_000})
	}
	start := now
	for len(p.queue) > 0 {
		kind := p.next(false)
		if due := p.due(kind); due.After(now) {
			p.awaited = kind
			now = due.Add(3 * time.Millisecond) // it wakes up late
			continue
		}
		p.charge(now, kind, p.pop().size)
		p.awaited = p.next(false)
	}
	if took := now.Sub(start); took < 995*time.Millisecond || took > 1_010*time.Millisecond {
		t.Fatalf("8 Mbit in %v at 8 Mbit/s", took)
	}
}

func discard(*rtp.Header, []byte, interceptor.Attributes) (int, error) { return 0, nil }

// video is a stream of video with feedback and retransmissions.
func video(ssrc uint32) *interceptor.StreamInfo {
	return &interceptor.StreamInfo{
		SSRC: ssrc, SSRCRetransmission: ssrc + 1, PayloadTypeRetransmission: 97, MimeType: "video/VP8",
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: transportCCURI, ID: 3}},
	}
}

func TestAStreamThatEndsGetsNoPadding(t *testing.T) {
	e := sentBy(t, 0)
	// Its own goroutine would send from the same pacer.
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e.options.Buffers = &Buffers{}
	for _, ssrc := range []uint32{10, 20} {
		e.AddStream(video(ssrc), interceptor.RTPWriterFunc(discard))
	}
	for _, s := range e.streams.all {
		s.hasSent = true
		e.pacer.push(packet{stream: s, size: 100})
	}
	e.removeStream(10)
	if left := e.streams.paddingStream(); left == nil || left.rtx != 21 {
		t.Errorf("padding is for %+v", left)
	}
	if len(e.pacer.queue) != 1 || e.pacer.queued != 100 || len(e.options.Buffers.rtcp) != 1 {
		t.Errorf("%d packets, %d bytes, buffers of %v", len(e.pacer.queue), e.pacer.queued, e.options.Buffers.rtcp)
	}
}

func TestACodecWithoutRetransmissionsGetsNoPadding(t *testing.T) {
	info := video(10)
	info.PayloadTypeRetransmission = 0
	if s := newStream(info, interceptor.RTPWriterFunc(discard)); s == nil || s.rtx != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestAudioGoesBeforeTheVideoThatWaits(t *testing.T) {
	var p pacer
	p.push(packet{header: rtp.Header{SequenceNumber: 1}, size: 1})
	p.insert(packet{header: rtp.Header{SequenceNumber: 2}, size: 1})
	p.insert(packet{header: rtp.Header{SequenceNumber: 3}, size: 1})
	for _, want := range []uint16{2, 3, 1} {
		if have := p.pop().header.SequenceNumber; have != want {
			t.Fatalf("%d before %d", have, want)
		}
	}
}

// An application may close the connection, and so the Estimator, as it learns of a target.
func TestTheEstimatorMayBeClosedByWhoIsToldOfATarget(t *testing.T) {
	e := sentBy(t, 0)
	closed := make(chan error, 1)
	e.OnTargetBitrateChange(func(int) { closed <- e.Close() })
	limit := &rtcp.ReceiverEstimatedMaximumBitrate{Bitrate: 200_000}
	if err := e.WriteRTCP([]rtcp.Packet{limit}, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for itself")
	}
}

func TestALimitBeyondAllIntegersIsTheLargestOne(t *testing.T) {
	const most = 0x3FFFF
	for bitrate, want := range map[float32]int64{
		0: 0, 1_000_000: 1_000_000, most * (1 << 44): most << 44, most * (1 << 63): math.MaxInt64, -1: 0,
	} {
		if limit := limitOf(&rtcp.ReceiverEstimatedMaximumBitrate{Bitrate: bitrate}); limit != want {
			t.Errorf("%v bit/s are %d", bitrate, limit)
		}
	}
}
