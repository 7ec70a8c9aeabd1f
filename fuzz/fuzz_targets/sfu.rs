//! A subscriber accepts any bytes as media and as RTCP, and its target bitrate stays within its
//! limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_sfu::{
    DependencyReader, Frame, Layer, OutgoingStream, Structure, Subscriber, SubscriberConfig,
    TrackConfig, TrackId,
};
use weir_wire::rtp::{ExtensionId, PayloadType};

const ID: ExtensionId = ExtensionId::new(1).unwrap();
/// The extension of dependency descriptors.
const DEPENDENCY: ExtensionId = ExtensionId::new(2).unwrap();

// The first byte selects the size of the pieces. Each piece is media or RTCP, by its first byte.
fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(500), kbps(5_000)).expect("they are in order");
    let mut now = Timestamp::ZERO;
    let config = SubscriberConfig::twcc(9, ID);
    let mut subscriber = Subscriber::new(now, Algorithm::Sluice.build(limits), limits, config);
    let layers = vec![Layer::new(0, 320, 180, kbps(150)), Layer::new(1, 640, 360, kbps(500))];
    let video = PayloadType::new(96).expect("below 128");
    let stream = OutgoingStream::new(1_000, video).with_is_vp8(true).with_rtx(Some((1_001, video)));
    subscriber.add_track(now, TrackId(0), TrackConfig::camera(layers.clone()), stream);
    let svc = TrackConfig::camera(layers).with_structure(Structure::Svc);
    let stream = OutgoingStream::new(2_000, video).with_dependency(Some(DEPENDENCY));
    subscriber.add_track(now, TrackId(1), svc, stream);
    let mut reader = DependencyReader::new(DEPENDENCY);
    for piece in rest.chunks(usize::from(choice).max(8)) {
        let (first, piece) = (piece[0], &piece[1..]);
        if first & 1 == 0 {
            let frame = Frame::new(first >> 1 & 3)
                .with_temporal(first >> 3 & 3)
                .with_starts_key_frame(first & 1 << 5 != 0)
                .with_is_switching_point(first & 1 << 6 != 0);
            let _ = subscriber.forward(now, TrackId(0), piece, frame);
            let frame = reader.read(piece).unwrap_or(frame);
            let _ = subscriber.forward(now, TrackId(1), piece, frame);
        } else {
            subscriber.on_rtcp(now, piece);
        }
        subscriber.on_timeout(now);
        while subscriber.next_packet(now).is_some() {}
        while subscriber.next_decision().is_some() {}
        while subscriber.next_missing().is_some() {}
        now += TimeDelta::from_millis(20);
        let target = subscriber.target();
        assert_eq!(limits.clamp(target), target);
    }
});
