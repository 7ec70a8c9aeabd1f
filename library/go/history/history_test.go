package history

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	weir "weir-go"
)

// sentBy makes a history of this many packets.
func sentBy(packets int) *History {
	var h History
	for number := range packets {
		name := Key{0, uint16(number)} //nolint:gosec // small
		h.Add(name, Packet{Number: int64(number), Size: 1_000, Time: time.Now()})
	}
	return &h
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
	h := sentBy(3)
	feedback, _ := h.Join(twcc(0, 0, 1, true, false, true))
	if len(feedback.Packets) != 3 || feedback.Packets[1].Arrived || feedback.Packets[1].IsRecovered {
		t.Fatalf("%+v", feedback)
	}
	if feedback, isNews := h.Join(twcc(0, 1, 1, true, false, true)); isNews {
		t.Fatalf("news about known packets: %+v", feedback)
	}
	feedback, _ = h.Join(twcc(1, 2, 2, true))
	if len(feedback.Packets) != 1 || !feedback.Packets[0].Arrived || !feedback.Packets[0].IsRecovered {
		t.Fatalf("%+v", feedback)
	}
}

func TestPacketsWithoutFeedbackAreNotLost(t *testing.T) {
	h := sentBy(4)
	h.Join(twcc(0, 255, 1, true))
	// The feedback on packets 1 and 2, with number 0, is lost.
	feedback, _ := h.Join(twcc(3, 1, 1, true))
	if len(feedback.Packets) != 1 || feedback.Packets[0].SequenceNumber != 3 || feedback.MissingFeedback != 1 {
		t.Fatalf("%+v", feedback)
	}
}

func TestTheReferenceTimeWraps(t *testing.T) {
	h := sentBy(2)
	before, _ := h.Join(twcc(0, 0, 1<<24-1, true))
	after, _ := h.Join(twcc(1, 1, 0, true))
	gap := after.Packets[0].ArrivalTime.Sub(before.Packets[0].ArrivalTime)
	if gap != 64*time.Millisecond || after.IsNewClock {
		t.Fatalf("%v, %+v", gap, after)
	}
}

func TestFeedbackOfRFC8888HasECN(t *testing.T) {
	h := sentBy(0)
	for number := range uint16(3) {
		h.Add(Key{7, number}, Packet{Number: int64(number), Size: 1_000, Time: time.Now()})
	}
	feedback, _ := h.Join(&rtcp.CCFeedbackReport{
		ReportTimestamp: 2 << 16,
		ReportBlocks: []rtcp.CCFeedbackReportBlock{{MediaSSRC: 7, MetricBlocks: []rtcp.CCFeedbackMetricBlock{
			{Received: true, ECN: rtcp.ECNCE, ArrivalTimeOffset: 1_024}, {},
			{Received: true, ECN: rtcp.ECNCE, ArrivalTimeOffset: 0x1FFF},
		}}},
	})
	if len(feedback.Packets) != 3 || feedback.Packets[2].ECN != weir.CE || feedback.Packets[0].ECN != weir.CE {
		t.Fatalf("%+v", feedback)
	}
	for index, seconds := range map[int]int64{0: 1, 2: 2} {
		if at := feedback.Packets[index].ArrivalTime; !at.Equal(time.Unix(seconds, 0)) {
			t.Fatalf("packet %d arrived at %v", index, at)
		}
	}
}

func TestFeedbackInASecondFormatWithoutNewsChangesNothing(t *testing.T) {
	h := sentBy(4)
	h.Join(twcc(0, 0, 1, true))
	other := &rtcp.CCFeedbackReport{ReportTimestamp: 2 << 16, ReportBlocks: []rtcp.CCFeedbackReportBlock{
		{MediaSSRC: 7, MetricBlocks: []rtcp.CCFeedbackMetricBlock{{Received: true}}},
	}}
	if feedback, isNews := h.Join(other); isNews {
		t.Fatalf("news of packets that have no such name: %+v", feedback)
	}
	// Feedback 1 is lost, and 2 has no news: the controller hears of it with 3.
	if _, isNews := h.Join(twcc(0, 2, 1, true)); isNews {
		t.Fatal("news of a known packet")
	}
	feedback, _ := h.Join(twcc(1, 3, 1, true))
	if feedback.IsNewClock || feedback.MissingFeedback != 1 {
		t.Fatalf("%+v", feedback)
	}
}

func TestBlocksThatOverlapHaveARowForEachPacket(t *testing.T) {
	h := sentBy(0)
	for number := range uint16(2) {
		h.Add(Key{7, number}, Packet{Number: int64(number), Size: 1_000, Time: time.Now()})
	}
	feedback, _ := h.Join(&rtcp.CCFeedbackReport{ReportTimestamp: 2 << 16, ReportBlocks: []rtcp.CCFeedbackReportBlock{
		{MediaSSRC: 7, MetricBlocks: []rtcp.CCFeedbackMetricBlock{{Received: true}, {}}},
		{MediaSSRC: 7, BeginSequence: 1, MetricBlocks: []rtcp.CCFeedbackMetricBlock{{Received: true}}},
	}})
	if len(feedback.Packets) != 2 || !feedback.Packets[1].Arrived || feedback.Packets[1].IsRecovered {
		t.Fatalf("%+v", feedback)
	}
}
