package weir

import (
	"errors"
	"sync"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t testing.TB, algorithm Algorithm, settings Settings) *Controller {
	t.Helper()
	controller, err := New(algorithm, settings)
	must(t, err)
	t.Cleanup(func() { _ = controller.Close() })
	return controller
}

// path is a sender that sends as much as the target allows, over a path of this capacity in bit/s
// and 20 ms in each direction.
type path struct {
	controller *Controller
	now        time.Time
	number     int64
	freeAt     time.Time
	capacity   int64
	limits     [2]int64
}

const packetSize = 1_200

// run sends for a while and checks the contract after each event.
func (p *path) run(t testing.TB, length time.Duration) {
	t.Helper()
	type flight struct {
		report PacketReport
		known  time.Time
	}
	var flights []flight
	nextSend, nextFeedback := p.now, p.now.Add(50*time.Millisecond)
	for end := p.now.Add(length); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		if due, has := p.controller.NextTimeout(); has && !due.After(p.now) {
			must(t, p.controller.OnTimeout(p.now))
			if again, has := p.controller.NextTimeout(); has && !again.After(p.now) {
				t.Fatalf("after OnTimeout the next timeout is %v earlier than now", p.now.Sub(again))
			}
		}
		target := p.check(t)
		for ; !nextSend.After(p.now); p.number++ {
			if target = p.check(t); target.Available != NoLimit && target.Available <= 0 {
				nextSend = p.now.Add(time.Millisecond)
				break
			}
			must(t, p.controller.OnPacketSent(p.now, SentPacket{SequenceNumber: p.number, Size: packetSize}))
			report := PacketReport{SequenceNumber: p.number, Size: packetSize, SendTime: p.now}
			if p.freeAt.Before(p.now) {
				p.freeAt = p.now
			}
			if p.freeAt.Sub(p.now) < 300*time.Millisecond {
				p.freeAt = p.freeAt.Add(time.Duration(packetSize * 8e9 / p.capacity))
				report.ArrivalTime, report.Arrived = p.freeAt.Add(20*time.Millisecond), true
			}
			flights = append(flights, flight{report, p.freeAt.Add(40 * time.Millisecond)})
			nextSend = nextSend.Add(time.Duration(packetSize * 8e9 / max(target.Bitrate, 1)))
		}
		if !nextFeedback.After(p.now) {
			nextFeedback = nextFeedback.Add(50 * time.Millisecond)
			var feedback Feedback
			for len(flights) > 0 && !flights[0].known.After(p.now) {
				feedback.Packets = append(feedback.Packets, flights[0].report)
				flights = flights[1:]
			}
			if len(feedback.Packets) > 0 {
				must(t, p.controller.OnFeedback(p.now, feedback))
			}
		}
		p.check(t)
	}
}

func (p *path) check(t testing.TB) Target {
	t.Helper()
	target, err := p.controller.Target()
	must(t, err)
	if target.Bitrate < p.limits[0] || target.Bitrate > p.limits[1] {
		t.Fatalf("target %d is outside of %v", target.Bitrate, p.limits)
	}
	if target.SourceBitrate > target.Bitrate || target.PacingRate <= 0 || target.BurstTime < 0 {
		t.Fatalf("odd target %+v", target)
	}
	return target
}

func TestEachControllerFollowsTheCapacityWithinItsLimits(t *testing.T) {
	for _, algorithm := range Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			settings := Settings{MinBitrate: 100_000, StartBitrate: 300_000, MaxBitrate: 2_000_000}
			p := &path{
				controller: start(t, algorithm, settings),
				now:        time.Now(), capacity: 1_000_000, limits: [2]int64{100_000, 2_000_000},
			}
			p.run(t, 20*time.Second)
			before := p.check(t).Bitrate
			if before < 500_000 {
				t.Errorf("only %d bit/s of 1 Mbit/s", before)
			}
			p.capacity = 400_000
			p.run(t, 10*time.Second)
			if after := p.check(t).Bitrate; after > 600_000 {
				t.Errorf("still %d bit/s with 400 kbit/s", after)
			}
			metrics, err := p.controller.Metrics()
			must(t, err)
			if metrics.State == "" || metrics.Reason == "" || metrics.Reason == "start" {
				t.Errorf("metrics %+v", metrics)
			}
		})
	}
}

func TestLimitsAreObeyed(t *testing.T) {
	now := time.Now()
	for _, algorithm := range Algorithms() {
		controller := start(t, algorithm, Settings{MaxBitrate: 900_000})
		bitrate := func() int64 {
			target, err := controller.Target()
			must(t, err)
			return target.Bitrate
		}
		if bitrate() != 300_000 {
			t.Errorf("%s starts with %d", algorithm, bitrate())
		}
		must(t, controller.OnReceiverLimit(now, 200_000))
		if bitrate() > 200_000 {
			t.Errorf("%s ignores the receiver's limit", algorithm)
		}
		must(t, controller.OnReceiverLimit(now, NoLimit))
		must(t, controller.SetLimits(now, 400_000, 450_000, 500_000))
		if b := bitrate(); b < 400_000 || b > 500_000 {
			t.Errorf("%s: %d is outside of the new limits", algorithm, b)
		}
		must(t, controller.SetDesiredBitrate(now, 450_000))
		must(t, controller.OnRoundTripTime(now, 80*time.Millisecond))
		must(t, controller.OnMediaQueued(now, 1_200, 1_200))
		must(t, controller.OnRouteChange(now))
		if bitrate() != 450_000 {
			t.Errorf("%s: a new route starts with %d", algorithm, bitrate())
		}
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	if _, err := New("turtle", Settings{}); !errors.Is(err, ErrUnknownAlgorithm) {
		t.Error(err)
	}
	if _, err := New(GCC, Settings{MinBitrate: 500_000}); !errors.Is(err, ErrLimits) {
		t.Error(err)
	}
	controller := start(t, GCC, Settings{})
	now := time.Now()
	if err := controller.SetLimits(now, 3, 2, 1); !errors.Is(err, ErrLimits) {
		t.Error(err)
	}
	if err := controller.OnPacketSent(now, SentPacket{Size: -1}); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
	// Errors leave the controller as it is.
	if _, err := controller.Target(); err != nil {
		t.Error(err)
	}
	must(t, controller.Close())
	if err := controller.OnTimeout(now); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := controller.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// A report may be larger than the scratch memory.
func TestLargeReports(t *testing.T) {
	controller := start(t, NADA, Settings{})
	now := time.Now()
	var feedback Feedback
	for number := range int64(5_000) {
		at := now.Add(time.Duration(number) * time.Millisecond)
		must(t, controller.OnPacketSent(at, SentPacket{SequenceNumber: number, Size: 1_000}))
		report := PacketReport{SequenceNumber: number, Size: 1_000, SendTime: at, ArrivalTime: at}
		feedback.Packets = append(feedback.Packets, report)
	}
	for range 3 {
		must(t, controller.OnFeedback(now.Add(6*time.Second), feedback))
	}
	if _, err := controller.Target(); err != nil {
		t.Error(err)
	}
}

func TestGoroutinesMayShareAController(t *testing.T) {
	controller := start(t, Sluice, Settings{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				_ = controller.OnTimeout(time.Now())
				_, _ = controller.Target()
				_, _ = controller.Metrics()
				_, _ = controller.NextTimeout()
			}
		})
	}
	group.Wait()
}

// One report of 50 packets, each 100 ms, as a receiver of 5 Mbit/s sends them. ns/feedback is of the report alone, and
// ns/op also of the packets sent before it. The benchmark's own timer is not stopped meanwhile: each stop reads the
// statistics of all memory, and what follows then finds cold caches.
func BenchmarkFeedback50(b *testing.B) {
	for _, algorithm := range Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			controller := start(b, algorithm, Settings{StartBitrate: 2_000_000, MaxBitrate: 10_000_000})
			now, number := time.Now(), int64(0)
			feedback := Feedback{Packets: make([]PacketReport, 50)}
			spent := time.Duration(0)
			for b.Loop() {
				for index := range feedback.Packets {
					at := now.Add(time.Duration(index) * 2 * time.Millisecond)
					_ = controller.OnPacketSent(at, SentPacket{SequenceNumber: number, Size: 1_200})
					feedback.Packets[index] = PacketReport{
						SequenceNumber: number, Size: 1_200, SendTime: at,
						ArrivalTime: at.Add(20 * time.Millisecond), Arrived: true,
					}
					number++
				}
				now = now.Add(100 * time.Millisecond)
				at := now.Add(50 * time.Millisecond)
				begun := time.Now()
				err := controller.OnFeedback(at, feedback)
				spent += time.Since(begun)
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/feedback")
		})
	}
}

func BenchmarkPacketSent(b *testing.B) {
	controller := start(b, GCC, Settings{})
	now, number := time.Now(), int64(0)
	for b.Loop() {
		now = now.Add(time.Millisecond)
		number++
		if err := controller.OnPacketSent(now, SentPacket{SequenceNumber: number, Size: 1_200}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		controller, err := New(GCC, Settings{})
		if err != nil {
			b.Fatal(err)
		}
		_ = controller.Close()
	}
}
