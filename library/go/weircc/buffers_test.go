package weircc

import (
	"testing"

	"github.com/pion/rtcp"
	"github.com/pion/transport/v5/packetio"
)

// feedbackOn is transport-wide feedback with this count, as bytes.
func feedbackOn(t *testing.T, media uint32, count uint8) []byte {
	t.Helper()
	packet := rtcp.TransportLayerCC{
		Header:     rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 5},
		MediaSSRC:  media,
		FbPktCount: count, PacketStatusCount: 1,
		PacketChunks: []rtcp.PacketStatusChunk{&rtcp.RunLengthChunk{RunLength: 1}},
	}
	bytes, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestFeedbackThatNamesTheRetransmissionStreamIsReadFromTheMediaStream(t *testing.T) {
	const retransmission, media, other = 7, 8, 9
	buffers := &Buffers{}
	buffers.join(retransmission, media)
	write := func(ssrc uint32, packet []byte) {
		t.Helper()
		if _, err := buffers.Make(packetio.RTCPBufferPacket, ssrc).Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	report, err := (&rtcp.ReceiverReport{}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	// The feedback comes before anybody reads.
	write(retransmission, feedbackOn(t, retransmission, 1))
	write(media, feedbackOn(t, media, 2))
	write(other, feedbackOn(t, other, 3))
	write(retransmission, report)
	write(retransmission, feedbackOn(t, retransmission, 4))
	reader, packet := buffers.Make(packetio.RTCPBufferPacket, media), make([]byte, 100)
	for _, count := range []uint8{1, 2, 4} {
		size, err := reader.Read(packet)
		var read rtcp.TransportLayerCC
		if err != nil || read.Unmarshal(packet[:size]) != nil || read.FbPktCount != count {
			t.Fatalf("%v, %v in place of feedback %d", packet[:size], err, count)
		}
	}
}

func TestFeedbackOnAStreamThatHasEndedHarmsNoOther(t *testing.T) {
	const retransmission, media = 7, 8
	buffers := &Buffers{}
	buffers.join(retransmission, media)
	again := buffers.Make(packetio.RTCPBufferPacket, retransmission)
	own := buffers.Make(packetio.RTCPBufferPacket, media)
	buffers.leave(retransmission, media)
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	// pion keeps the first of these, and asks for the second.
	if _, err := again.Write(feedbackOn(t, retransmission, 1)); err != nil {
		t.Error(err)
	}
	if _, err := buffers.Make(packetio.RTCPBufferPacket, media).Write(feedbackOn(t, media, 2)); err != nil {
		t.Error(err)
	}
	if len(buffers.media)+len(buffers.rtcp) != 0 {
		t.Errorf("%v, %v are left", buffers.media, buffers.rtcp)
	}
}
