package weircc_test

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/rtp"
	"github.com/pion/transport/v5/vnet"
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

// ends says on which networks the two ends are.
type ends struct{ from, to webrtc.SettingEngine }

// loopback puts both on the loopback interface.
func loopback() ends {
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetInterfaceFilter(func(name string) bool { return name == "lo" })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return ends{settings, settings}
}

// narrow puts both behind a virtual router, with 20 ms of delay and a bottleneck towards the receiver.
func narrow(t *testing.T, bitrate int) (ends, *vnet.TBFQueue) {
	t.Helper()
	router, err := vnet.NewRouter(&vnet.RouterConfig{
		CIDR: "10.0.0.0/24", MinDelay: 20 * time.Millisecond, LoggerFactory: logging.NewDefaultLoggerFactory(),
	})
	must(t, err)
	from, err := vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{"10.0.0.1"}})
	must(t, err)
	to, err := vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{"10.0.0.2"}})
	must(t, err)
	bottleneck := vnet.NewTBFQueue(bitrate, 3_000, 40_000)
	queue, err := vnet.NewQueue(to, bottleneck)
	must(t, err)
	must(t, router.AddNet(from))
	must(t, router.AddNet(queue))
	must(t, router.Start())
	t.Cleanup(func() { _ = router.Stop() })
	both := ends{}
	both.from.SetNet(from)
	both.to.SetNet(to)
	return both, bottleneck
}

func peer(
	t *testing.T, settings webrtc.SettingEngine, media *webrtc.MediaEngine, registry *interceptor.Registry,
) *webrtc.PeerConnection {
	t.Helper()
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings))
	connection, err := api.NewPeerConnection(webrtc.Configuration{})
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func sender(
	t *testing.T, settings webrtc.SettingEngine, options weircc.Options, format feedback,
) (*webrtc.PeerConnection, *weircc.Estimator) {
	t.Helper()
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	must(t, media.RegisterDefaultCodecs())
	made := make(chan *weircc.Estimator, 1)
	options.Buffers = &weircc.Buffers{}
	settings.BufferFactory = options.Buffers.Make
	must(t, weircc.Register(registry, options, func(_ string, e *weircc.Estimator) { made <- e }))
	if format == twcc {
		transportWide := webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}
		media.RegisterFeedback(transportWide, webrtc.RTPCodecTypeVideo)
		must(t, webrtc.ConfigureTWCCHeaderExtensionSender(media, registry))
	} else {
		media.RegisterFeedback(webrtc.RTCPFeedback{Type: "ack", Parameter: "ccfb"}, webrtc.RTPCodecTypeVideo)
	}
	must(t, webrtc.ConfigureNack(media, registry))
	connection := peer(t, settings, media, registry)
	return connection, <-made
}

func receiver(t *testing.T, settings webrtc.SettingEngine, format feedback) *webrtc.PeerConnection {
	t.Helper()
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	must(t, media.RegisterDefaultCodecs())
	if format == twcc {
		must(t, webrtc.ConfigureTWCCSender(media, registry))
	} else {
		must(t, webrtc.ConfigureCongestionControlFeedback(media, registry))
	}
	must(t, webrtc.ConfigureNack(media, registry))
	return peer(t, settings, media, registry)
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

// call sends video until `wait` returns, and returns the targets that the application was told.
func call(
	t *testing.T, ends ends, options weircc.Options, format feedback, wait func(*weircc.Estimator),
) ([]int, *weircc.Estimator) {
	t.Helper()
	from, estimator := sender(t, ends.from, options, format)
	to := receiver(t, ends.to, format)
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
	wait(estimator)
	close(stop)
	group.Wait()
	lock.Lock()
	defer lock.Unlock()
	return targets, estimator
}

var settings = weir.Settings{MinBitrate: 150_000, StartBitrate: 300_000, MaxBitrate: 4_000_000}

func TestEachControllerRunsInACallBetweenTwoPions(t *testing.T) {
	if testing.Short() {
		t.Skip("a call in real time: scripts/test/test-go.sh --calls")
	}
	for _, algorithm := range weir.Algorithms() {
		for _, format := range []feedback{twcc, ccfb} {
			name := string(algorithm) + map[feedback]string{twcc: ", TWCC", ccfb: ", CCFB"}[format]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				options := weircc.Options{Algorithm: algorithm, Settings: settings}
				targets, estimator := call(t, loopback(), options, format,
					func(*weircc.Estimator) { time.Sleep(8 * time.Second) })
				stats := estimator.GetStats()
				t.Logf("%d targets, the last %d bit/s: %v", len(targets), estimator.GetTargetBitrate(), stats)
				if stats["received"].(int) == 0 || stats["reason"] == "start" {
					t.Errorf("no feedback reached the controller")
				}
				if len(targets) < 3 || estimator.GetTargetBitrate() < 420_000 {
					t.Errorf("the target stayed at %d bit/s after %v", estimator.GetTargetBitrate(), targets)
				}
			})
		}
	}
}

func TestTheTargetFollowsTheCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("a call in real time: scripts/test/test-go.sh --calls")
	}
	for _, algorithm := range weir.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			ends, bottleneck := narrow(t, 1_000_000)
			var before, after int
			options := weircc.Options{Algorithm: algorithm, Settings: settings}
			_, estimator := call(t, ends, options, twcc, func(e *weircc.Estimator) {
				time.Sleep(12 * time.Second)
				before = e.GetTargetBitrate()
				bottleneck.SetRate(400_000)
				time.Sleep(6 * time.Second)
				after = e.GetTargetBitrate()
			})
			t.Logf("%d bit/s of 1 Mbit/s, then %d of 400 kbit/s: %v", before, after, estimator.GetStats())
			if before < 450_000 || before > 2_000_000 || after > 600_000 || after > before*4/5 {
				t.Errorf("%d bit/s of 1 Mbit/s, then %d of 400 kbit/s", before, after)
			}
		})
	}
}
