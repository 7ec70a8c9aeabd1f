package streamallocator

import (
	"testing"
	"time"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/bwe/weirbwe"
)

func TestWithoutTheFlagNothingIsChosen(t *testing.T) {
	if newChoosing(&StreamAllocator{enabled: true}, &quiet{}) != nil {
		t.Fatal("LiveKit's own estimator is no chooser")
	}
	var none *choosing
	if none.isInCharge() {
		t.Fatal("nothing is in charge")
	}
}

type quiet struct{ bwe.NullBWE }

func (*quiet) Type() bwe.BWEType { return bwe.BWETypeSendSide }

func TestAProbeEndsWithItsSizeOrItsPatience(t *testing.T) {
	began := time.Unix(1_000, 0)
	probe := &runningProbe{rate: 1_000_000, wanted: weirbwe.InProbe{Bytes: 10_000, Packets: 6}, began: began}
	if probe.send(began.Add(40*time.Millisecond), nil, weirbwe.InProbe{Bytes: 5_000, Packets: 9}) {
		t.Fatal("half of it has left")
	}
	if !probe.send(began.Add(80*time.Millisecond), nil, weirbwe.InProbe{Bytes: 10_000, Packets: 6}) {
		t.Fatal("media alone was enough")
	}
	if probe.send(began.Add(80*time.Millisecond), nil, weirbwe.InProbe{Bytes: 10_000, Packets: 4}) {
		t.Fatal("so few packets show nothing")
	}
	if !probe.send(began.Add(probePatience), nil, weirbwe.InProbe{Bytes: 5_000, Packets: 9}) {
		t.Fatal("it waits for ever")
	}
}

func TestATrackWithoutBitratesIsNotPausedForLackOfThem(t *testing.T) {
	track := chosenTrack{points: []point{{}, {}}}
	if track.hasBitrates() {
		t.Fatal("none is known")
	}
	track.points[1].bitrate = 1
	if !track.hasBitrates() {
		t.Fatal("one is known")
	}
}
