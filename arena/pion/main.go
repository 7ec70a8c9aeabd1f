// Driver of the arena for pion: sends the video of one call, under pion's own estimator or one of Weir, or receives it.
//
// The lab talks to it in lines of JSON (docs/guide/arena.md). Pion has no encoder, so the pictures come from
// ../encoder.py, which encodes at the rate that the estimator allows.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"golang.org/x/sys/unix"

	"weir-go/weircc"
)

const (
	// Largest payload of pion's packets.
	payload = 1_200
	// IPv4, UDP, RTP with two header extensions, the descriptor of VP8, and the authentication tag of SRTP.
	headers = 20 + 8 + 24 + 3 + 10
)

// settings of the call, as the first line says them. Bitrates are in bit/s. A receiver has no bitrates and no camera.
type settings struct {
	Role         string  `json:"role"`
	StatsMs      int     `json:"statsInterval"`
	MinBitrate   int     `json:"minBitrate"`
	StartBitrate int     `json:"startBitrate"`
	MaxBitrate   int     `json:"maxBitrate"`
	Camera       *string `json:"camera"`
	Width        int     `json:"width"`
	Height       int     `json:"height"`
	FrameRate    int     `json:"frameRate"`
}

// message is one of the call's protocol, from the lab.
type message struct {
	Type      string                  `json:"type"`
	SDP       string                  `json:"sdp"`
	Candidate webrtc.ICECandidateInit `json:"candidate"`
}

// peer is what both ends of a call have.
type peer struct {
	lines      *lines
	settings   settings
	connection *webrtc.PeerConnection
	setup      *setup
	described  bool
	early      []webrtc.ICECandidateInit
}

// setup has the times of the steps until media can flow, in ms since the driver began.
type setup struct {
	lock  sync.Mutex
	times map[string]float64
}

// end is one end of the call.
type end interface {
	open(estimator string) error
	receive(message message) error
}

// sender is the end that sends the video.
type sender struct {
	peer
	track     *webrtc.TrackLocalStaticRTP
	encoder   *encoder
	estimator estimator
	lock      sync.Mutex
	target    int
	media     int // what the encoder was told of it
}

// lines writes to the lab, from any goroutine.
type lines struct {
	lock sync.Mutex
	call int
}

func (l *lines) write(content map[string]any) {
	content["call"] = l.call
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n'))
}

func (l *lines) tell(kind string, members map[string]any) {
	content := map[string]any{"type": kind}
	for name, member := range members {
		content[name] = member
	}
	l.write(map[string]any{"message": content})
}

func (l *lines) fail(cause any) { l.tell("failed", map[string]any{"cause": fmt.Sprint(cause)}) }

var started = time.Now()

func sinceStart() float64 { return float64(time.Since(started).Microseconds()) / 1000 }

func main() {
	name := "gcc"
	for _, argument := range os.Args[1:] {
		if argument == "--version" {
			fmt.Println(version())
			return
		}
		name = argument
	}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 64*1024), 4*1024*1024)
	if !input.Scan() {
		return
	}
	var first struct {
		Calls []struct {
			Call     int      `json:"call"`
			Settings settings `json:"settings"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(input.Bytes(), &first); err != nil || len(first.Calls) != 1 {
		fmt.Fprintln(os.Stderr, "the first line has not one call:", err)
		os.Exit(2)
	}
	one := first.Calls[0]
	own := peer{
		lines: &lines{call: one.Call}, settings: one.Settings, setup: &setup{times: map[string]float64{}},
	}
	own.note("joined")
	var call end = &sender{peer: own}
	if one.Settings.Role == "receiver" {
		call = &receiver{peer: own}
	}
	if err := call.open(name); err != nil {
		own.lines.fail(err)
	}
	for input.Scan() {
		var line struct {
			Message message `json:"message"`
		}
		if err := json.Unmarshal(input.Bytes(), &line); err != nil {
			own.lines.fail(err)
			continue
		}
		if err := call.receive(line.Message); err != nil {
			own.lines.fail(err)
		}
	}
}

// version of pion, as it was built.
func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/pion/webrtc/v4" {
			return "pion/webrtc " + module.Version
		}
	}
	return "pion/webrtc"
}

// open makes the connection and its track.
func (s *sender) open(name string) error {
	api, estimator, err := newAPI(name, s.settings)
	if err != nil {
		return err
	}
	if s.connection, err = api.NewPeerConnection(webrtc.Configuration{}); err != nil {
		return err
	}
	s.estimator = <-estimator
	s.media = s.estimator.GetTargetBitrate()
	s.target = s.media
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}
	if s.track, err = webrtc.NewTrackLocalStaticRTP(capability, "video", "arena"); err != nil {
		return err
	}
	rtpSender, err := s.connection.AddTrack(s.track)
	if err != nil {
		return err
	}
	go s.readFeedback(rtpSender)
	s.watch(func() { go s.send() })
	if s.encoder, err = startEncoder(s.settings); err != nil {
		return err
	}
	// From here on targets come at any time.
	s.estimator.OnTargetBitrateChange(s.onTarget)
	s.note("camera")
	return nil
}

// readFeedback asks the encoder for a key frame when the receiver does. RTCP is handled only while it is read.
func (s *sender) readFeedback(rtpSender *webrtc.RTPSender) {
	for {
		packets, _, err := rtpSender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				s.encoder.say("key")
			}
		}
	}
}

func (s *sender) receive(message message) error {
	switch message.Type {
	case "config":
		s.lines.tell("ready", nil)
	case "start":
		s.note("start")
		offer, err := s.connection.CreateOffer(nil)
		if err != nil {
			return err
		}
		s.lines.tell("offer", map[string]any{"sdp": offer.SDP})
		return s.connection.SetLocalDescription(offer)
	case "answer":
		return s.describe(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: message.SDP})
	case "candidate":
		return s.add(message.Candidate)
	case "stop", "refused":
		s.close()
	}
	return nil
}

// note keeps the time of a step of the set-up.
func (p *peer) note(step string) {
	p.setup.lock.Lock()
	defer p.setup.lock.Unlock()
	p.setup.times[step] = sinceStart()
}

// tellConnected tells the lab how long the set-up took.
func (p *peer) tellConnected() {
	p.note("ice")
	p.note("connected")
	p.setup.lock.Lock()
	defer p.setup.lock.Unlock()
	p.lines.tell("connected", map[string]any{"setup": p.setup.times})
}

// watch tells the lab of candidates and of the connection, and then calls `connected`. A connection that was away for a while
// is the same one.
func (p *peer) watch(connected func()) {
	var once sync.Once
	p.connection.OnICECandidate(func(candidate *webrtc.ICECandidate) {
		if candidate != nil {
			p.lines.tell("candidate", map[string]any{"candidate": candidate.ToJSON()})
		}
	})
	p.connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			once.Do(func() {
				p.tellConnected()
				connected()
			})
		case webrtc.PeerConnectionStateFailed:
			p.lines.fail("no connection to the other peer")
		}
	})
}

// describe sets the other peer's description, and adds the candidates that came before it.
func (p *peer) describe(description webrtc.SessionDescription) error {
	if err := p.connection.SetRemoteDescription(description); err != nil {
		return err
	}
	p.note("described")
	p.described = true
	for _, candidate := range p.early {
		if err := p.connection.AddICECandidate(candidate); err != nil {
			return err
		}
	}
	return nil
}

func (p *peer) add(candidate webrtc.ICECandidateInit) error {
	if !p.described {
		p.early = append(p.early, candidate)
		return nil
	}
	return p.connection.AddICECandidate(candidate)
}

func (p *peer) close() {
	_ = p.connection.Close()
	p.lines.write(map[string]any{"left": map[string]any{}})
}

// send passes the encoder's frames on.
func (s *sender) send() {
	s.encoder.say(fmt.Sprint("rate ", s.encoderRate(s.estimator.GetTargetBitrate())))
	s.encoder.say("start")
	samples := uint32(clock / s.settings.FrameRate) //nolint:gosec // a few thousand
	payloader := &codecs.VP8Payloader{EnablePictureID: true}
	packetizer := rtp.NewPacketizer(payload, 0, 0, payloader, rtp.NewRandomSequencer(), clock)
	for {
		frame, err := s.encoder.next()
		if err != nil {
			return // The encoder has ended, and says why on standard error.
		}
		if len(frame) == 0 {
			packetizer.SkipSamples(samples)
		}
		for _, packet := range packetizer.Packetize(frame, samples) {
			if err := s.track.WriteRTP(packet); err != nil {
				return // The call has ended.
			}
		}
	}
}

func (s *sender) onTarget(bitrate int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	// A controller of Weir leaves the encoder a part of its target.
	target := bitrate
	if ours, isOurs := s.estimator.(*weircc.Estimator); isOurs {
		target = int(ours.Target().Bitrate)
		s.encoder.wants(ours.WantsFrame())
	}
	if target != s.target {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		s.lines.write(map[string]any{"target": map[string]any{
			"timeNs": now.Nano(), "fromBps": s.target, "targetBps": target,
			"reason": "told by the stack", "state": "unknown", "signals": map[string]float64{},
		}})
		s.target = target
	}
	if bitrate != s.media {
		s.media = bitrate
		s.encoder.say(fmt.Sprint("rate ", s.encoderRate(bitrate)))
	}
}

// encoderRate is the encoder's part of a target that includes headers. An encoder that had all of it would fill the
// sender's queue.
func (s *sender) encoderRate(bitrate int) int {
	frame := bitrate / 8 / s.settings.FrameRate
	packets := (frame + payload - 1) / payload
	return max(bitrate-8*packets*headers*s.settings.FrameRate, bitrate/2)
}
