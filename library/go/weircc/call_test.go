package weircc_test

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	weir "weir-go"
	"weir-go/weircc"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// feedback is what the two ends negotiate.
type feedback int

const (
	twcc feedback = iota
	ccfb
)

// peer makes a peer connection on the loopback interface.
func peer(t *testing.T, media *webrtc.MediaEngine, registry *interceptor.Registry) *webrtc.PeerConnection {
	t.Helper()
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetInterfaceFilter(func(name string) bool { return name == "lo" })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings))
	connection, err := api.NewPeerConnection(webrtc.Configuration{})
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func sender(t *testing.T, options weircc.Options, format feedback) (*webrtc.PeerConnection, *weircc.Estimator) {
	t.Helper()
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	must(t, media.RegisterDefaultCodecs())
	made := make(chan *weircc.Estimator, 1)
	must(t, weircc.Register(registry, options, func(_ string, e *weircc.Estimator) { made <- e }))
	if format == twcc {
		must(t, webrtc.ConfigureTWCCHeaderExtensionSender(media, registry))
	} else {
		media.RegisterFeedback(webrtc.RTCPFeedback{Type: "ack", Parameter: "ccfb"}, webrtc.RTPCodecTypeVideo)
	}
	must(t, webrtc.ConfigureNack(media, registry))
	connection := peer(t, media, registry)
	return connection, <-made
}

func receiver(t *testing.T, format feedback) *webrtc.PeerConnection {
	t.Helper()
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	must(t, media.RegisterDefaultCodecs())
	if format == twcc {
		must(t, webrtc.ConfigureTWCCSender(media, registry))
	} else {
		must(t, webrtc.ConfigureCongestionControlFeedback(media, registry))
	}
	must(t, webrtc.ConfigureNack(media, registry))
	return peer(t, media, registry)
}

func connect(t *testing.T, from, to *webrtc.PeerConnection) {
	t.Helper()
	offer, err := from.CreateOffer(nil)
	must(t, err)
	gathered := webrtc.GatheringCompletePromise(from)
	must(t, from.SetLocalDescription(offer))
	<-gathered
	must(t, to.SetRemoteDescription(*from.LocalDescription()))
	answer, err := to.CreateAnswer(nil)
	must(t, err)
	gathered = webrtc.GatheringCompletePromise(to)
	must(t, to.SetLocalDescription(answer))
	<-gathered
	must(t, from.SetRemoteDescription(*to.LocalDescription()))
}

// source writes frames at the target of the estimator until it is stopped.
func source(track *webrtc.TrackLocalStaticRTP, estimator *weircc.Estimator, stop <-chan struct{}) {
	const interval = 25 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var number uint16
	for frame := uint32(0); ; frame++ {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		bytes := int(estimator.Target().SourceBitrate) / 8 * int(interval) / int(time.Second)
		for ; bytes > 0; bytes -= 1_100 {
			number++
			header := rtp.Header{
				Version: 2, SequenceNumber: number, Timestamp: frame * 2_250, Marker: bytes <= 1_100,
			}
			payload := make([]byte, min(bytes, 1_100))
			err := track.WriteRTP(&rtp.Packet{Header: header, Payload: append([]byte{0x10}, payload...)})
			if errors.Is(err, io.ErrClosedPipe) {
				return
			}
		}
	}
}

// call sends video for this long and returns the targets that the application was told.
func call(t *testing.T, options weircc.Options, format feedback, length time.Duration) ([]int, *weircc.Estimator) {
	t.Helper()
	from, estimator := sender(t, options, format)
	to := receiver(t, format)
	track, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "video", "weir")
	must(t, err)
	rtpSender, err := from.AddTrack(track)
	must(t, err)
	go func() { // feedback is read only if somebody reads RTCP
		buffer := make([]byte, 1_500)
		for {
			if _, _, err := rtpSender.Read(buffer); err != nil {
				return
			}
		}
	}()
	to.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			if _, _, err := remote.ReadRTP(); err != nil {
				return
			}
		}
	})
	var (
		lock    sync.Mutex
		targets []int
	)
	estimator.OnTargetBitrateChange(func(bitrate int) {
		lock.Lock()
		defer lock.Unlock()
		targets = append(targets, bitrate)
	})
	connected := make(chan struct{})
	var once sync.Once
	from.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			once.Do(func() { close(connected) })
		}
	})
	connect(t, from, to)
	select {
	case <-connected:
	case <-time.After(10 * time.Second):
		t.Fatal("no connection within 10 s")
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { source(track, estimator, stop) })
	time.Sleep(length)
	close(stop)
	group.Wait()
	lock.Lock()
	defer lock.Unlock()
	return targets, estimator
}

var settings = weir.Settings{MinBitrate: 150_000, StartBitrate: 300_000, MaxBitrate: 4_000_000}

func TestEachControllerRunsInACallBetweenTwoPions(t *testing.T) {
	for _, algorithm := range weir.Algorithms() {
		for _, format := range []feedback{twcc, ccfb} {
			name := string(algorithm) + map[feedback]string{twcc: ", TWCC", ccfb: ", CCFB"}[format]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				options := weircc.Options{Algorithm: algorithm, Settings: settings}
				targets, estimator := call(t, options, format, 8*time.Second)
				stats := estimator.GetStats()
				t.Logf("%d targets, the last %d bit/s: %v", len(targets), estimator.GetTargetBitrate(), stats)
				if stats["reported"].(int) == 0 || stats["reason"] == "start" {
					t.Errorf("no feedback reached the controller")
				}
				if len(targets) < 3 || estimator.GetTargetBitrate() < 900_000 {
					t.Errorf("the target stayed at %d bit/s after %v", estimator.GetTargetBitrate(), targets)
				}
			})
		}
	}
}
