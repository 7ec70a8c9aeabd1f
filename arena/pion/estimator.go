package main

import (
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/webrtc/v4"

	weir "weir-go"
	"weir-go/weircc"
)

// estimator is what both kinds have.
type estimator interface {
	GetTargetBitrate() int
	OnTargetBitrateChange(f func(bitrate int))
}

// newAPI is pion with the estimator of this name: `gcc` is pion's own, others are controllers of Weir. The estimator
// comes with the first connection.
func newAPI(name string, settings settings) (*webrtc.API, <-chan estimator, error) {
	media, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		return nil, nil, err
	}
	made := make(chan estimator, 1)
	engine := webrtc.SettingEngine{}
	engine.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	var err error
	if name == "gcc" {
		err = addGCC(registry, settings, made)
	} else {
		buffers := &weircc.Buffers{}
		engine.BufferFactory = buffers.Make
		// The function below offers the header extension alone, for which not all receivers send feedback.
		media.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, webrtc.RTPCodecTypeVideo)
		err = addWeir(registry, name, settings, buffers, made)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := webrtc.ConfigureTWCCHeaderExtensionSender(media, registry); err != nil {
		return nil, nil, err
	}
	if err := webrtc.ConfigureNack(media, registry); err != nil {
		return nil, nil, err
	}
	if err := webrtc.ConfigureRTCPReports(registry); err != nil {
		return nil, nil, err
	}
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(engine))
	return api, made, nil
}

func addGCC(registry *interceptor.Registry, settings settings, made chan<- estimator) error {
	factory, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		return gcc.NewSendSideBWE(
			gcc.SendSideBWEInitialBitrate(settings.StartBitrate),
			gcc.SendSideBWEMinBitrate(settings.MinBitrate),
			gcc.SendSideBWEMaxBitrate(settings.MaxBitrate),
		)
	})
	if err != nil {
		return err
	}
	factory.OnNewPeerConnection(func(_ string, own cc.BandwidthEstimator) { made <- own })
	registry.Add(factory)
	return nil
}

func addWeir(
	registry *interceptor.Registry, name string, settings settings, buffers *weircc.Buffers, made chan<- estimator,
) error {
	options := weircc.Options{Algorithm: weir.Algorithm(name), Buffers: buffers, Settings: weir.Settings{
		MinBitrate:   int64(settings.MinBitrate),
		StartBitrate: int64(settings.StartBitrate),
		MaxBitrate:   int64(settings.MaxBitrate),
	}}
	return weircc.Register(registry, options, func(_ string, own *weircc.Estimator) { made <- own })
}
