package weircc

import (
	"testing"

	"github.com/pion/transport/v5/packetio"
)

func TestFeedbackThatNamesTheRetransmissionStreamIsReadFromTheMediaStream(t *testing.T) {
	const retransmission, media = 7, 8
	buffers := &Buffers{}
	buffers.join(retransmission, media)
	// The feedback comes before anybody reads.
	for _, stream := range []struct {
		ssrc uint32
		text string
	}{{retransmission, "first"}, {media, "second"}, {9, "not of this stream"}, {retransmission, "third"}} {
		if _, err := buffers.Make(packetio.RTCPBufferPacket, stream.ssrc).Write([]byte(stream.text)); err != nil {
			t.Fatal(err)
		}
	}
	// pion closes the streams in any order.
	if err := buffers.Make(packetio.RTCPBufferPacket, retransmission).Close(); err != nil {
		t.Fatal(err)
	}
	reader, packet := buffers.Make(packetio.RTCPBufferPacket, media), make([]byte, 100)
	for _, text := range []string{"first", "second", "third"} {
		if size, err := reader.Read(packet); err != nil || string(packet[:size]) != text {
			t.Fatalf("%q, %v", packet[:size], err)
		}
	}
	buffers.leave(retransmission, media)
	if len(buffers.media)+len(buffers.rtcp) != 0 {
		t.Errorf("%v, %v are left", buffers.media, buffers.rtcp)
	}
}
