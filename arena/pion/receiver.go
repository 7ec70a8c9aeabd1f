package main

import (
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media/samplebuilder"
)

const (
	// Packets that may be missing before a picture counts as lost.
	maxLate = 500
	clock   = 90_000
	// A receiver asks for a key frame again after this time.
	keyInterval = time.Second
)

// receiver is the end that receives the video. Pion has no decoder, so it counts the pictures that are complete.
type receiver struct {
	peer
	lock     sync.Mutex
	counted  counted
	pictures pictures
}

// counted is what it received so far.
type counted struct {
	ssrc                            uint32
	packets, bytes, headers, frames uint64
	// The highest sequence number, and how many packets there are from the first one up to it.
	highest  uint16
	expected uint64
}

func (c *counted) add(packet *rtp.Packet) {
	if c.packets == 0 {
		c.highest, c.expected = packet.SequenceNumber, 1
	} else if ahead := int16(packet.SequenceNumber - c.highest); ahead > 0 {
		c.highest, c.expected = packet.SequenceNumber, c.expected+uint64(ahead)
	}
	c.ssrc = packet.SSRC
	c.packets++
	c.bytes += uint64(len(packet.Payload))
	c.headers += uint64(packet.Header.MarshalSize())
}

// newReceivingAPI is pion with what it offers a receiver: transport-wide feedback, NACK and reports.
func newReceivingAPI() (*webrtc.API, error) {
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	for _, configure := range []func(*webrtc.MediaEngine, *interceptor.Registry) error{
		webrtc.ConfigureNack, webrtc.ConfigureTWCCSender,
	} {
		if err := configure(media, registry); err != nil {
			return nil, err
		}
	}
	if err := webrtc.ConfigureRTCPReports(registry); err != nil {
		return nil, err
	}
	engine := webrtc.SettingEngine{}
	engine.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(engine),
	), nil
}

func (r *receiver) open(string) error {
	api, err := newReceivingAPI()
	if err != nil {
		return err
	}
	if r.connection, err = api.NewPeerConnection(webrtc.Configuration{}); err != nil {
		return err
	}
	r.connection.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { r.read(track) })
	r.watch(func() { go r.report() })
	return nil
}

func (r *receiver) receive(message message) error {
	switch message.Type {
	case "config":
		r.lines.tell("ready", nil)
	case "start":
		r.note("start")
	case "offer":
		if err := r.describe(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: message.SDP}); err != nil {
			return err
		}
		answer, err := r.connection.CreateAnswer(nil)
		if err != nil {
			return err
		}
		r.lines.tell("answer", map[string]any{"sdp": answer.SDP})
		return r.connection.SetLocalDescription(answer)
	case "candidate":
		return r.add(message.Candidate)
	case "stop", "refused":
		r.tellStats()
		r.close()
	}
	return nil
}

// read counts the packets and the complete pictures of the track. While a picture is missing it asks for a key frame.
func (r *receiver) read(track *webrtc.TrackRemote) {
	builder := samplebuilder.New(maxLate, &codecs.VP8Packet{}, clock)
	var asked time.Time
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return // The call has ended.
		}
		builder.Push(packet)
		r.lock.Lock()
		r.counted.add(packet)
		isMissing := false
		for sample := builder.Pop(); sample != nil; sample = builder.Pop() {
			r.counted.frames++
			isMissing = isMissing || sample.PrevDroppedPackets > 0
			if r.counted.frames == 1 {
				r.lines.tell("playing", map[string]any{"firstFrame": sinceStart()})
			}
			r.pictures.add(time.Now())
		}
		r.lock.Unlock()
		if isMissing && time.Since(asked) > keyInterval {
			asked = time.Now()
			request := &rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}
			_ = r.connection.WriteRTCP([]rtcp.Packet{request})
		}
	}
}

func (r *receiver) report() {
	for range time.Tick(time.Duration(r.settings.StatsMs) * time.Millisecond) {
		r.tellStats()
	}
}

func (r *receiver) tellStats() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.lines.tell("stats", map[string]any{"report": map[string]any{"inbound": map[string]any{
		"timestamp": sinceStart(), "ssrc": r.counted.ssrc, "packetsReceived": r.counted.packets,
		"packetsLost":   int64(r.counted.expected) - int64(r.counted.packets),
		"bytesReceived": r.counted.bytes, "headerBytesReceived": r.counted.headers,
		"framesReceived": r.counted.frames, "freezeCount": r.pictures.freezes,
		"totalFreezesDuration": r.pictures.frozen.Seconds(),
	}}})
}

// pictures finds freezes by the rule of the W3C's statistics (webrtc-stats, freezeCount): a gap between two pictures that
// is longer than three mean gaps, and than the mean gap and 150 ms.
type pictures struct {
	gaps    []time.Duration
	last    time.Time
	freezes uint64
	frozen  time.Duration
}

const (
	gapsOfMean = 30
	leastExtra = 150 * time.Millisecond
)

func (p *pictures) add(now time.Time) {
	if !p.last.IsZero() {
		gap := now.Sub(p.last)
		if len(p.gaps) == gapsOfMean {
			var sum time.Duration
			for _, one := range p.gaps {
				sum += one
			}
			mean := sum / gapsOfMean
			if gap > max(3*mean, mean+leastExtra) {
				p.freezes++
				p.frozen += gap
			}
			p.gaps = p.gaps[1:]
		}
		p.gaps = append(p.gaps, gap)
	}
	p.last = now
}
