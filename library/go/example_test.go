package weir_test

import (
	"fmt"
	"time"

	weir "weir-go"
)

// A packet leaves, and feedback says that it arrived.
func Example() {
	controller, err := weir.New(weir.NADA, weir.Settings{MaxBitrate: 2_500_000})
	if err != nil {
		panic(err)
	}
	defer controller.Close() //nolint:errcheck // it is open
	sent := time.Now()
	_ = controller.OnPacketSent(sent, weir.SentPacket{SequenceNumber: 0, Size: 1_200})
	_ = controller.OnFeedback(sent.Add(80*time.Millisecond), weir.Feedback{Packets: []weir.PacketReport{{
		SequenceNumber: 0, Size: 1_200, SendTime: sent, ArrivalTime: sent.Add(30 * time.Millisecond),
	}}})
	target, err := controller.Target()
	fmt.Println(target.Bitrate >= 300_000, err)
	// Output: true <nil>
}
