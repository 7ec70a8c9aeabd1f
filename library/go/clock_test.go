package weir_test

import (
	"testing"
	"time"

	weir "weir-go"
)

// A clock that is set by years, and times that a Duration cannot hold: each call returns, without an error.
func TestAnyTimesAreTaken(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	times := []time.Time{
		start, start.Add(time.Second), start.AddDate(1, 0, 0), start.Add(-5 * time.Hour), {},
		start.AddDate(2_000, 0, 0), start.Add(2 * time.Second), start.AddDate(-4_000, 0, 0),
	}
	for _, algorithm := range []weir.Algorithm{weir.GCC, weir.NADA, weir.SCReAM, weir.SCReAMv2, weir.Sluice} {
		controller, err := weir.New(algorithm, weir.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		for number, now := range times {
			sent := weir.SentPacket{SequenceNumber: int64(number), Size: 1_200}
			row := weir.PacketReport{SequenceNumber: int64(number), Size: 1_200, SendTime: now, Arrived: true, ArrivalTime: now}
			for _, err := range []error{
				controller.OnPacketSent(now, sent),
				controller.OnFeedback(now, weir.Feedback{Packets: []weir.PacketReport{row}}),
				controller.OnRoundTripTime(now, time.Duration(1<<62)),
				controller.OnTimeout(now),
			} {
				if err != nil {
					t.Errorf("%s at %v: %v", algorithm, now, err)
				}
			}
			_, _ = controller.NextTimeout()
		}
		_ = controller.Close()
	}
}
