package streamallocator

import (
	"cmp"
	"slices"
	"time"

	"github.com/livekit/protocol/livekit"

	"github.com/livekit/livekit-server/pkg/sfu"
	"github.com/livekit/livekit-server/pkg/sfu/buffer"
	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/bwe/weirbwe"
	"github.com/livekit/livekit-server/pkg/sfu/ccutils"

	weirsfu "weir-go/sfu"
)

const (
	// Time between two choices, and between two packets of a probe.
	chooseInterval, probeInterval = 100 * time.Millisecond, 5 * time.Millisecond
	// A probe that could not send what it should is given up.
	probePatience = time.Second
	// LiveKit counts layers without what is below RTP. Their packets are near this size.
	packetSize = 1_000
	// Frames per second of a camera with all temporal layers, which LiveKit does not tell.
	fullFrameRate = 30
)

// choosing does with LiveKit's tracks what Weir's chooser says. In shadow it only says it. All but run is called
// on the allocator's queue.
type choosing struct {
	*weirbwe.Choosing
	allocator *StreamAllocator
	tracks    map[livekit.TrackID]*chosenTrack
	lastID    uint32
}

// chosenTrack is what is known of a track since it came.
type chosenTrack struct {
	id     uint32
	points []point // what can be chosen, in the order in which the chooser knows it
	// What was committed last. Without, or after a change of the track, it is done again.
	applied   buffer.VideoLayer
	isApplied bool
	chosen    int // the place of our choice; negative for a pause
}

// point is a layer that may be chosen.
type point struct {
	layer   buffer.VideoLayer
	bitrate int64 // headers included; zero if it cannot be had now
	height  uint16
}

// newChoosing returns nil unless WEIR_ALLOCATOR made the estimator a chooser.
func newChoosing(s *StreamAllocator, estimator bwe.BWE) *choosing {
	chooser, isOne := estimator.(*weirbwe.Choosing)
	if !isOne || !s.enabled {
		return nil
	}
	return &choosing{Choosing: chooser, allocator: s, tracks: map[livekit.TrackID]*chosenTrack{}}
}

// isInCharge says whether LiveKit's own decisions must not be made.
func (c *choosing) isInCharge() bool { return c != nil && c.IsInCharge() }

// run asks for a choice ten times a second, or when the target falls, and sends probes, until the allocator stops.
func (c *choosing) run() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	next := time.Now()
	var probe *runningProbe
	for now := range ticker.C {
		if c.allocator.isStopped.Load() {
			return
		}
		if !now.Before(next) || c.HasFallen() {
			next = now.Add(chooseInterval)
			c.allocator.eventsQueue.Enqueue(func(Event) { c.choose() }, Event{})
		}
		if started, isNew := c.StartProbe(); isNew {
			probe = &runningProbe{
				cluster: ccutils.ProbeClusterId(started.ID), rate: started.Rate, began: now,
				wanted: weirbwe.InProbe{Bytes: started.Size, Packets: started.Packets},
			}
			probe.mark(c.videoTracks())
		}
		if probe != nil && probe.send(now, c.videoTracks(), c.MediaInProbe()) {
			probe = nil
		}
	}
}

// videoTracks are those of the subscriber, in no order.
func (c *choosing) videoTracks() []*Track {
	c.allocator.videoTracksMu.RLock()
	defer c.allocator.videoTracksMu.RUnlock()
	tracks := make([]*Track, 0, len(c.allocator.videoTracks))
	for _, track := range c.allocator.videoTracks {
		tracks = append(tracks, track)
	}
	return tracks
}

// choose says what is known of all tracks, and does what is chosen.
func (c *choosing) choose() {
	tracks := c.videoTracks()
	slices.SortFunc(tracks, byID)
	known := make(map[livekit.TrackID]bool, len(tracks))
	for _, track := range tracks {
		known[track.ID()] = true
		c.describe(track)
	}
	for id, chosen := range c.tracks {
		if !known[id] {
			c.RemoveTrack(chosen.id)
			delete(c.tracks, id)
		}
	}
	c.Choose()
	update := NewStreamStateUpdate()
	var shown []weirbwe.Shown
	for _, track := range tracks {
		chosen := c.tracks[track.ID()]
		place, isForwarded := c.Level(chosen.id)
		if !isForwarded || place >= len(chosen.points) {
			place = -1
		}
		chosen.chosen = place
		if c.IsInCharge() {
			chosen.apply(track, update)
		}
		row := weirbwe.Shown{Track: chosen.id, Theirs: track.BandwidthRequested()}
		if place >= 0 {
			row.Ours, row.Height = chosen.points[place].bitrate, chosen.points[place].height
		}
		shown = append(shown, row)
	}
	c.allocator.maybeSendUpdate(update)
	c.Log(shown)
}

func byID(one, other *Track) int { return cmp.Compare(one.ID(), other.ID()) }

// forget makes the next choice commit a track again: something changed in it.
func (c *choosing) forget(track *Track) {
	if chosen := c.tracks[track.ID()]; chosen != nil {
		chosen.isApplied = false
	}
}

// describe tells the chooser what a track has now.
func (c *choosing) describe(track *Track) {
	chosen := c.tracks[track.ID()]
	if chosen == nil {
		c.lastID++
		chosen = &chosenTrack{id: c.lastID}
		c.tracks[track.ID()] = chosen
	}
	best := track.DownTrack().MaxLayer()
	sizes := sizesOf(track.DownTrack())
	told := weirsfu.Track{
		IsScreen: track.source == livekit.TrackSource_SCREEN_SHARE,
		// LiveKit's priorities are 1 to 255; the highest counts twice.
		Priority: 1 + float64(track.Priority()-cPriorityMin)/float64(cPriorityMax-cPriorityMin),
		MustFlow: !c.allocator.allowPause || !track.IsManaged(),
	}
	if best.IsValid() {
		told.ShownWidth, told.ShownHeight = sizes[best.Spatial][0], sizes[best.Spatial][1]
	}
	if told.IsScreen {
		told.Priority = 2 // as the chooser's own screens
	}
	chosen.points = pointsOf(track, best, sizes, c.IsInCharge())
	for _, one := range chosen.points {
		told.Layers = append(told.Layers, weirsfu.Layer{
			Stream: uint8(one.layer.Spatial), Temporal: uint8(one.layer.Temporal),
			Width: sizes[one.layer.Spatial][0], Height: one.height, Bitrate: one.bitrate,
			FrameRate: fullFrameRate / float64(int32(1)<<(buffer.DefaultMaxLayerTemporal-one.layer.Temporal)),
		})
	}
	c.SetTrack(chosen.id, told)
}

// pointsOf are the layers up to the best that is subscribed, with what they take. In charge LiveKit's forwarder says
// whether it would forward one; in shadow it must not be disturbed.
func pointsOf(track *Track, best buffer.VideoLayer, sizes [3][2]uint16, isInCharge bool) []point {
	_, bitrates := track.DownTrack().Receiver().GetLayeredBitrate()
	if isInCharge {
		track.ProvisionalAllocatePrepare()
	}
	var points []point
	for spatial := int32(0); spatial <= min(best.Spatial, buffer.DefaultMaxLayerSpatial); spatial++ {
		for temporal := int32(0); temporal <= min(best.Temporal, buffer.DefaultMaxLayerTemporal); temporal++ {
			one := point{layer: buffer.VideoLayer{Spatial: spatial, Temporal: temporal}, height: sizes[spatial][1]}
			isPossible := true
			if isInCharge {
				isPossible, _ = track.ProvisionalAllocate(cChannelCapacityInfinity, one.layer, true, false)
			}
			if isPossible {
				one.bitrate = bitrates[spatial][temporal] * (packetSize + weirbwe.Overhead) / packetSize
			}
			// A stream without temporal layers has the same bitrate in all: the first would hide that it is whole.
			if temporal > 0 && len(points) > 0 && points[len(points)-1].bitrate == one.bitrate {
				points[len(points)-1].bitrate = 0
			}
			points = append(points, one)
		}
	}
	return points
}

// apply commits our choice of a track where it is not what was committed last.
func (t *chosenTrack) apply(track *Track, update *StreamStateUpdate) {
	wanted := buffer.InvalidLayer
	if t.chosen >= 0 {
		wanted = t.points[t.chosen].layer
	}
	if t.isApplied && wanted == t.applied {
		return
	}
	var allocation sfu.VideoAllocation
	switch {
	case t.chosen >= 0:
		track.ProvisionalAllocatePrepare()
		if isPossible, _ := track.ProvisionalAllocate(cChannelCapacityInfinity, wanted, true, false); !isPossible {
			return
		}
		allocation = track.ProvisionalAllocateCommit()
	case t.hasBitrates():
		allocation = track.Pause()
	default:
		// Nothing is known of it yet, or it is muted: LiveKit's own rule for a start, with the lowest layer.
		allocation = track.AllocateOptimal(cFlagAllowOvershootWhileDeficient, true)
	}
	t.applied, t.isApplied = wanted, true
	updateStreamStateChange(track, allocation, update)
}

func (t *chosenTrack) hasBitrates() bool {
	for _, one := range t.points {
		if one.bitrate > 0 {
			return true
		}
	}
	return false
}

// sizesOf are width and height of each spatial layer. Those of a usual camera stand where the publisher says nothing.
func sizesOf(downTrack *sfu.DownTrack) [3][2]uint16 {
	sizes := [3][2]uint16{{320, 180}, {640, 360}, {1280, 720}}
	info := downTrack.Receiver().TrackInfo()
	for _, layer := range buffer.GetVideoLayersForMimeType(downTrack.Mime(), info) {
		spatial := buffer.GetSpatialLayerForVideoQuality(downTrack.Mime(), layer.Quality, info)
		if spatial >= 0 && int(spatial) < len(sizes) && layer.Width > 0 && layer.Height > 0 {
			sizes[spatial] = [2]uint16{uint16(layer.Width), uint16(layer.Height)}
		}
	}
	return sizes
}

// runningProbe is a probe while it is sent: recent packets beside the media, so that both together have its rate.
type runningProbe struct {
	cluster ccutils.ProbeClusterId
	rate    int64
	wanted  weirbwe.InProbe
	padded  weirbwe.InProbe
	began   time.Time
}

func (p *runningProbe) mark(tracks []*Track) {
	for _, track := range tracks {
		track.DownTrack().SetProbeClusterId(p.cluster)
	}
}

// send sends what is due, and says whether the probe is over.
func (p *runningProbe) send(now time.Time, tracks []*Track, media weirbwe.InProbe) bool {
	elapsed := now.Sub(p.began)
	due := int(float64(p.rate)/8*elapsed.Seconds()) - media.Bytes - p.padded.Bytes
	for _, track := range tracks {
		if due <= 0 {
			break
		}
		// Recent packets once more, as LiveKit's own prober sends: what it writes as padding has a payload, too, which
		// receivers take for a retransmission of packet 0, and then they may decode nothing more.
		sent := track.DownTrack().WriteProbePackets(due, false)
		packets := (sent + packetSize - 1) / packetSize
		sent += packets * weirbwe.Overhead
		p.padded.Bytes += sent
		p.padded.Packets += packets
		due -= sent
	}
	// A frame may have all of its bytes and packets. It leaves at once, which shows nothing of a rate.
	length := time.Duration(float64(p.wanted.Bytes) * 8e9 / float64(p.rate))
	isShort := elapsed < length || media.Bytes+p.padded.Bytes < p.wanted.Bytes ||
		media.Packets+p.padded.Packets < p.wanted.Packets
	if isShort && elapsed < probePatience {
		return false
	}
	for _, track := range tracks {
		track.DownTrack().SwapProbeClusterId(p.cluster, ccutils.ProbeClusterIdInvalid)
	}
	return true
}
