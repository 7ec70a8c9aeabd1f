package sfu_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	weir "weir-go"
	"weir-go/sfu"
)

var began = time.Unix(1_800_000_000, 0)

// camera has three layers of simulcast and is shown large.
func camera(bitrates ...int64) sfu.Track {
	track := sfu.Track{ShownWidth: 1280, ShownHeight: 720}
	for stream, bps := range bitrates {
		track.Layers = append(track.Layers, sfu.Layer{
			Stream: uint8(stream), Temporal: 2, Width: 320 << stream, Height: 180 << stream, FrameRate: 30, Bitrate: bps,
		})
	}
	return track
}

func chooser(t *testing.T) *sfu.Chooser {
	t.Helper()
	c, err := sfu.New(weir.Sluice, weir.Settings{MinBitrate: 50_000, StartBitrate: 300_000, MaxBitrate: 10_000_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ok fails the test at an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call sends what is chosen, and probes, over a way of 20 ms that carries 3 Mbit/s.
func call(t *testing.T, c *sfu.Chooser, seconds int) []string {
	t.Helper()
	const size, link = 1000, 3_000_000
	var texts []string
	var packets []weir.PacketReport
	var number int64
	free, media, padding, probed := began, 0.0, 0.0, uint64(0)
	left := 0
	for step := range seconds * 200 {
		now := began.Add(time.Duration(step) * 5 * time.Millisecond)
		level, isForwarded := c.Level(1)
		if isForwarded {
			media += []float64{150e3, 500e3, 1500e3}[level] / 8 * 0.005
		}
		probe, isWanted := c.Probe()
		if isWanted && probe.ID != probed {
			probed, left, padding = probe.ID, probe.Size, 0
		}
		if isWanted && left > 0 {
			padding += float64(probe.Rate) / 8 * 0.005
		}
		for media >= size || padding >= size && left > 0 {
			isPadding := media < size
			if isPadding {
				padding -= size
			} else {
				media -= size
			}
			id := uint64(0)
			if isWanted && left > 0 {
				id, left = probe.ID, left-size
			}
			ok(t, c.OnSent(now, weir.SentPacket{SequenceNumber: number, Size: size, ProbeID: id, IsPadding: isPadding}))
			if free.Before(now) {
				free = now
			}
			free = free.Add(size * 8 * time.Second / link)
			packets = append(packets, weir.PacketReport{
				SequenceNumber: number, Size: size, SendTime: now, ArrivalTime: free.Add(20 * time.Millisecond), ProbeID: id,
			})
			number++
		}
		if step%10 == 0 && len(packets) > 0 {
			ok(t, c.OnFeedback(now.Add(40*time.Millisecond), weir.Feedback{Packets: packets}))
			packets = nil
		}
		if step%20 == 0 {
			ok(t, c.Choose(now, 0))
			texts = append(texts, c.Decisions()...)
		}
	}
	return texts
}

func TestProbesLeadToTheBestLayerAndSayWhy(t *testing.T) {
	c := chooser(t)
	ok(t, c.SetTrack(1, camera(150_000, 500_000, 1_500_000)))
	texts := strings.Join(call(t, c, 15), "\n")
	if level, isForwarded := c.Level(1); !isForwarded || level != 2 {
		t.Fatalf("level %d, %v:\n%s", level, isForwarded, texts)
	}
	if !strings.Contains(texts, "Probe") || !strings.Contains(texts, "because") {
		t.Fatal(texts)
	}
}

func TestLimitsAndRoutesReachTheController(t *testing.T) {
	c := chooser(t)
	ok(t, c.SetTrack(1, camera(150_000, 500_000, 1_500_000)))
	call(t, c, 15)
	now := began.Add(16 * time.Second)
	ok(t, c.OnReceiverLimit(now, 700_000))
	if c.Target() > 700_000 {
		t.Fatal(c.Target())
	}
	ok(t, c.OnReceiverLimit(now, weir.NoLimit))
	if c.Target() <= 700_000 {
		t.Fatal(c.Target())
	}
	ok(t, c.SetLimits(now, 50_000, 250_000, 400_000))
	if c.Target() > 400_000 {
		t.Fatal(c.Target())
	}
	ok(t, c.OnRouteChange(now))
	if c.Target() != 250_000 {
		t.Fatal(c.Target())
	}
	if err := c.SetLimits(now, 3, 2, 1); !errors.Is(err, sfu.ErrOutOfRange) {
		t.Fatal(err)
	}
}

func TestALayerThatEndsIsLeftAndAHiddenTrackIsPaused(t *testing.T) {
	c := chooser(t)
	ok(t, c.SetTrack(1, camera(50_000, 100_000, 0)))
	ok(t, c.Choose(began, 0))
	if level, _ := c.Level(1); level != 1 {
		t.Fatalf("%d of %v", level, c.Decisions())
	}
	ok(t, c.SetTrack(1, camera(50_000, 0, 0)))
	ok(t, c.Choose(began.Add(100*time.Millisecond), 0))
	if level, isForwarded := c.Level(1); level != 0 || !isForwarded {
		t.Fatalf("%d", level)
	}
	hidden := camera(50_000, 0, 0)
	hidden.ShownWidth, hidden.ShownHeight = 0, 0
	ok(t, c.SetTrack(1, hidden))
	ok(t, c.Choose(began.Add(200*time.Millisecond), 0))
	if _, isForwarded := c.Level(1); isForwarded {
		t.Fatal(c.Decisions())
	}
}

func TestSoundTakesItsPartAndAStillTrackMayNotPause(t *testing.T) {
	c := chooser(t)
	ok(t, c.SetAudio(9, 290_000))
	still := camera(150_000)
	still.MustFlow = true
	ok(t, c.SetTrack(1, still))
	ok(t, c.SetTrack(2, camera(150_000)))
	ok(t, c.Choose(began, 0))
	if _, isForwarded := c.Level(1); !isForwarded {
		t.Fatal("the track that must flow is paused")
	}
	if _, isForwarded := c.Level(2); isForwarded {
		t.Fatal("the other one does not fit")
	}
	ok(t, c.RemoveTrack(9))
	ok(t, c.RemoveTrack(1))
	ok(t, c.Choose(began.Add(time.Second), 0))
	if _, isForwarded := c.Level(2); !isForwarded {
		t.Fatal(c.Decisions())
	}
}

func TestWhatIsOutOfRangeIsAnErrorAndTheChooserGoesOn(t *testing.T) {
	if _, err := sfu.New("tuesday", weir.Settings{}); !errors.Is(err, weir.ErrUnknownAlgorithm) {
		t.Fatal(err)
	}
	if _, err := sfu.New(weir.GCC, weir.Settings{MinBitrate: 5, MaxBitrate: 4, StartBitrate: 5}); err == nil {
		t.Fatal("limits")
	}
	c := chooser(t)
	if err := c.OnSent(began, weir.SentPacket{Size: -1}); !errors.Is(err, sfu.ErrOutOfRange) {
		t.Fatal(err)
	}
	if err := c.OnRoundTripTime(began, 0); !errors.Is(err, sfu.ErrOutOfRange) {
		t.Fatal(err)
	}
	ok(t, c.OnRoundTripTime(began, time.Millisecond))
	if c.Target() != 300_000 || c.HasFallen() {
		t.Fatal(c.Target())
	}
	ok(t, c.Close())
	if err := c.Choose(began, 0); !errors.Is(err, sfu.ErrClosed) || c.Target() != 0 {
		t.Fatal(err)
	}
}
