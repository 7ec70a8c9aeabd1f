package weirbwe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/protocol/logger"

	"weir-go/sfu"
)

// choosing makes one in this mode, with a camera of two layers, of which one takes less than any start.
func choosing(t *testing.T, value, name string, mine bwe.BWE) *Choosing {
	t.Helper()
	t.Setenv("WEIR_ALLOCATOR", value)
	t.Setenv("WEIR_ALLOCATOR_LOG", name)
	c, isOne := Wrap(mine, logger.GetLogger()).(*Choosing)
	if !isOne {
		t.Fatal("no allocator")
	}
	c.SetTrack(1, sfu.Track{ShownWidth: 1280, ShownHeight: 720, Layers: []sfu.Layer{
		{Width: 320, Height: 180, FrameRate: 30, Bitrate: 100_000},
		{Stream: 1, Width: 1280, Height: 720, FrameRate: 30, Bitrate: 9_000_000},
	}})
	return c
}

func TestWithoutTheFlagLiveKitsOwnAllocatorStays(t *testing.T) {
	mine := &own{}
	for _, value := range []string{"", "off", "on"} {
		t.Setenv("WEIR_ALLOCATOR", value)
		if Wrap(mine, logger.GetLogger()) != bwe.BWE(mine) {
			t.Fatalf("WEIR_ALLOCATOR=%q", value)
		}
	}
	t.Setenv("WEIR_ALLOCATOR", "charge")
	t.Setenv("WEIR_CONTROLLER", "none of ours")
	if Wrap(mine, logger.GetLogger()) != bwe.BWE(mine) {
		t.Fatal("an unknown controller")
	}
}

func TestAnAllocatorInShadowLeavesNumbersAndFeedbackToLiveKit(t *testing.T) {
	mine := &own{}
	c := choosing(t, "shadow", "", mine)
	first := c.RecordPacketSendAndGetSequenceNumber(now().UnixMicro(), 1_000, false, 3, true)
	c.HandleTWCCFeedback(report(first, 0, []int64{1_000}))
	if mine.reports != 1 || first != 40_001 || c.IsInCharge() {
		t.Fatalf("%d %+v", first, mine)
	}
	if _, isNew := c.StartProbe(); isNew {
		t.Fatal("a shadow probes")
	}
}

func TestAnAllocatorInChargeChoosesWhatFitsAndSaysWhy(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	mine := &own{}
	c := choosing(t, "charge", name, mine)
	for index := range 5 {
		number := c.RecordPacketSendAndGetSequenceNumber(now().UnixMicro(), 1_000, false, 0, false)
		if int(number) != index {
			t.Fatalf("%d", number)
		}
	}
	c.HandleTWCCFeedback(report(0, 0, []int64{1_000, 2_000, -1, 4_000, 5_000}))
	c.Choose()
	if place, isForwarded := c.Level(1); place != 0 || !isForwarded {
		t.Fatalf("%d %v", place, isForwarded)
	}
	if !c.IsInCharge() || c.CanProbe() || mine.number != 0 || mine.reports != 0 {
		t.Fatalf("LiveKit's own still works: %+v", mine)
	}
	c.Log([]Shown{{Track: 1, Ours: 100_000, Height: 180}})
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var line choice
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	if line.Mode != charge || line.Received != 4 || line.Lost != 1 || len(line.Tracks) != 1 {
		t.Fatalf("%+v", line)
	}
	if !strings.Contains(strings.Join(line.Decisions, "\n"), "because") {
		t.Fatalf("%+v", line.Decisions)
	}
	c.RemoveTrack(1)
	c.Choose()
	if _, isForwarded := c.Level(1); isForwarded {
		t.Fatal("the track has left")
	}
}
