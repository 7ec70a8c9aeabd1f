package history

import (
	"math/rand/v2"
	"testing"

	"github.com/pion/rtcp"

	weir "weir-go"
)

// feedbackBytes is one packet of each format, on the packets of sentBy.
func feedbackBytes(t testing.TB) [][]byte {
	t.Helper()
	transport := twcc(0, 0, 1, true, false, true, true)
	// Two small deltas and one of two bytes behind a run of four, and their padding.
	transport.Header = rtcp.Header{Padding: true, Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 6}
	block := rtcp.CCFeedbackReportBlock{BeginSequence: 0, MetricBlocks: []rtcp.CCFeedbackMetricBlock{
		{Received: true, ArrivalTimeOffset: 5}, {}, {Received: true, ArrivalTimeOffset: offsetUnknown},
	}}
	report := &rtcp.CCFeedbackReport{ReportTimestamp: 77, ReportBlocks: []rtcp.CCFeedbackReportBlock{block}}
	var all [][]byte
	for _, packet := range []rtcp.Packet{transport, report} {
		bytes, err := packet.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes)
	}
	return all
}

// join passes bytes of a stranger on, as an application that reads RTCP does. What comes out must be usable.
func join(t *testing.T, h *History, controller *weir.Controller, bytes []byte) {
	t.Helper()
	packets, err := rtcp.Unmarshal(bytes)
	if err != nil {
		return
	}
	for _, packet := range packets {
		feedback, isNews := h.Join(packet)
		if !isNews {
			continue
		}
		for index := 1; index < len(feedback.Packets); index++ {
			if feedback.Packets[index].SequenceNumber <= feedback.Packets[index-1].SequenceNumber {
				t.Fatalf("not in order: %+v", feedback.Packets)
			}
		}
		if err := controller.OnFeedback(feedback.Packets[0].SendTime, feedback); err != nil {
			t.Fatal(err)
		}
	}
}

func hostileTarget(t *testing.T) (*History, *weir.Controller) {
	t.Helper()
	controller, err := weir.New(weir.GCC, weir.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controller.Close() })
	return sentBy(300), controller
}

func TestNoTruncationAndNoDamageOfFeedbackBreaksTheHistory(t *testing.T) {
	h, controller := hostileTarget(t)
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // equal in each run
	for _, whole := range feedbackBytes(t) {
		for length := range whole {
			join(t, h, controller, whole[:length])
		}
		for range 20_000 {
			damaged := append([]byte(nil), whole...)
			for range 1 + chance.IntN(4) {
				damaged[chance.IntN(len(damaged))] = byte(chance.Uint32())
			}
			join(t, h, controller, damaged)
		}
	}
}

func TestCountsThatNoPacketHasAreTakenAsTheyAre(t *testing.T) {
	h, controller := hostileTarget(t)
	// Each chunk names 8,191 packets, and all of them many times more than the packet counts.
	packet := &rtcp.TransportLayerCC{PacketStatusCount: 65_535, FbPktCount: 255, ReferenceTime: 1<<24 - 1}
	for range 700 {
		packet.PacketChunks = append(packet.PacketChunks, &rtcp.RunLengthChunk{
			PacketStatusSymbol: rtcp.TypeTCCPacketReceivedLargeDelta, RunLength: 8_191,
		})
	}
	feedback, isNews := h.Join(packet)
	if isNews {
		t.Fatalf("packets that arrived at no time are no news: %+v", feedback)
	}
	many := make([]rtcp.CCFeedbackMetricBlock, 65_535)
	for index := range many {
		many[index] = rtcp.CCFeedbackMetricBlock{Received: true, ECN: 3, ArrivalTimeOffset: 0x1FFF}
	}
	report := &rtcp.CCFeedbackReport{ReportTimestamp: 1<<32 - 1}
	for range 3 {
		report.ReportBlocks = append(report.ReportBlocks, rtcp.CCFeedbackReportBlock{MetricBlocks: many})
	}
	feedback, _ = h.Join(report)
	if len(feedback.Packets) != 300 {
		t.Fatalf("%d packets", len(feedback.Packets))
	}
	if err := controller.OnFeedback(feedback.Packets[0].SendTime, feedback); err != nil {
		t.Fatal(err)
	}
}

func FuzzJoin(f *testing.F) {
	for _, bytes := range feedbackBytes(f) {
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		h, controller := hostileTarget(t)
		join(t, h, controller, bytes)
	})
}
