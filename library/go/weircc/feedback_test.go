package weircc

import (
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	weir "weir-go"
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
		name := key{0, uint16(number)} //nolint:gosec // small
		e.remember(record{key: name, number: int64(number), size: 1_000, time: time.Now()})
	}
	return e
}

// twcc says which of the packets from `base` on arrived, one each millisecond.
func twcc(base uint16, count uint8, reference uint32, arrived ...bool) *rtcp.TransportLayerCC {
	packet := &rtcp.TransportLayerCC{
		BaseSequenceNumber: base, PacketStatusCount: uint16(len(arrived)), ReferenceTime: reference, FbPktCount: count,
	}
	for _, has := range arrived {
		symbol := rtcp.TypeTCCPacketNotReceived
		if has {
			symbol = rtcp.TypeTCCPacketReceivedSmallDelta
			packet.RecvDeltas = append(packet.RecvDeltas, &rtcp.RecvDelta{Type: symbol, Delta: 1_000})
		}
		packet.PacketChunks = append(packet.PacketChunks, &rtcp.RunLengthChunk{PacketStatusSymbol: symbol, RunLength: 1})
	}
	return packet
}

func TestALatePacketIsRecovered(t *testing.T) {
	e := sentBy(t, 3)
	feedback, _ := e.join(twcc(0, 0, 1, true, false, true))
	if len(feedback.Packets) != 3 || feedback.Packets[1].Arrived || feedback.Packets[1].IsRecovered {
		t.Fatalf("%+v", feedback)
	}
	if feedback, isNews := e.join(twcc(0, 1, 1, true, false, true)); isNews {
		t.Fatalf("news about known packets: %+v", feedback)
	}
	feedback, _ = e.join(twcc(1, 2, 2, true))
	if len(feedback.Packets) != 1 || !feedback.Packets[0].Arrived || !feedback.Packets[0].IsRecovered {
		t.Fatalf("%+v", feedback)
	}
}

func TestPacketsWithoutFeedbackAreNotLost(t *testing.T) {
	e := sentBy(t, 4)
	e.join(twcc(0, 255, 1, true))
	// The feedback on packets 1 and 2, with number 0, is lost.
	feedback, _ := e.join(twcc(3, 1, 1, true))
	if len(feedback.Packets) != 1 || feedback.Packets[0].SequenceNumber != 3 || feedback.MissingFeedback != 1 {
		t.Fatalf("%+v", feedback)
	}
}

func TestTheReferenceTimeWraps(t *testing.T) {
	e := sentBy(t, 2)
	before, _ := e.join(twcc(0, 0, 1<<24-1, true))
	after, _ := e.join(twcc(1, 1, 0, true))
	gap := after.Packets[0].ArrivalTime.Sub(before.Packets[0].ArrivalTime)
	if gap != 64*time.Millisecond || after.IsNewClock {
		t.Fatalf("%v, %+v", gap, after)
	}
}

func TestFeedbackOfRFC8888HasECN(t *testing.T) {
	e := sentBy(t, 0)
	for number := range uint16(3) {
		e.remember(record{key: key{7, number}, number: int64(number), size: 1_000, time: time.Now()})
	}
	feedback, _ := e.join(&rtcp.CCFeedbackReport{
		ReportTimestamp: 2 << 16,
		ReportBlocks: []rtcp.CCFeedbackReportBlock{{MediaSSRC: 7, MetricBlocks: []rtcp.CCFeedbackMetricBlock{
			{Received: true, ECN: rtcp.ECNCE, ArrivalTimeOffset: 1_024}, {}, {Received: true, ArrivalTimeOffset: 0x1FFF},
		}}},
	})
	if len(feedback.Packets) != 2 || feedback.Packets[0].ECN != weir.CE {
		t.Fatalf("%+v", feedback)
	}
	if at := feedback.Packets[0].ArrivalTime; !at.Equal(time.Unix(1, 0)) {
		t.Fatalf("arrived at %v", at)
	}
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
