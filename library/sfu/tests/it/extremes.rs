//! Times, rates and sizes of the whole range, as a broken host passes them. The tests run with
//! overflow checks, so an overflow is a panic here.

use proptest::prelude::*;
use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta};
use weir::{Algorithm, RateLimits, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig};
use weir_sfu::{
    Frame, Layer, OutgoingStream, Structure, Subscriber, SubscriberConfig, TrackConfig, TrackId,
    Uplink,
};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};

const ID: ExtensionId = ExtensionId::new(1).unwrap();
const TRACK: TrackId = TrackId(1);
/// Most packets taken at one time.
const TAKEN: usize = 64;

/// What a host does at a time.
#[derive(Clone, Debug)]
enum Step {
    Forward { number: u16, frame: Frame },
    Feedback { arrived: Timestamp },
    Timeout,
    RoundTrip(TimeDelta),
    Bitrates([u64; 2]),
    Track { bps: [u64; 2], priority: f64, shown: (u16, u16), frame_rate: f64 },
    NewRoute,
}

fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0_i64..40_000).prop_map(|ms| ms * 1_000_000),
        2 => (0_i64..60_000_000_000).prop_map(|back| i64::MAX - back),
        1 => (0_i64..60_000_000_000).prop_map(|on| i64::MIN + on),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, i64::MAX / 2, -1, 0, 1]),
        1 => any::<i64>(),
    ]
}

fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 10_000_u64..5_000_000,
        1 => prop::sample::select(vec![0, 1, 1 << 53, u64::MAX]),
        1 => any::<u64>(),
    ]
}

fn any_number() -> impl Strategy<Value = f64> {
    let odd = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0, 1e-300];
    prop_oneof![2 => 0.5_f64..60.0, 1 => prop::sample::select(odd)]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    (any::<u8>(), any::<u8>(), any::<bool>(), any::<bool>()).prop_map(
        |(stream, temporal, key, switch)| {
            Frame::new(stream % 3)
                .with_temporal(temporal % 2)
                .with_starts_key_frame(key)
                .with_is_switching_point(switch)
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let pair = || (any_rate(), any_rate()).prop_map(|(one, other)| [one, other]);
    let shown = (any::<u16>(), any::<u16>());
    prop_oneof![
        5 => (any::<u16>(), any_frame())
            .prop_map(|(number, frame)| Step::Forward { number, frame }),
        3 => any_i64().prop_map(|ns| Step::Feedback { arrived: Timestamp::from_nanos(ns) }),
        4 => Just(Step::Timeout),
        1 => any_i64().prop_map(|ns| Step::RoundTrip(TimeDelta::from_nanos(ns))),
        1 => pair().prop_map(Step::Bitrates),
        1 => (pair(), any_number(), shown, any_number()).prop_map(|(bps, priority, shown, rate)| {
            Step::Track { bps, priority, shown, frame_rate: rate }
        }),
        1 => Just(Step::NewRoute),
    ]
}

fn track(bps: [u64; 2], priority: f64, shown: (u16, u16), frame_rate: f64) -> TrackConfig {
    let [low, high] = bps.map(Bitrate::from_bps);
    let layers = vec![Layer::new(0, 320, 180, low), Layer::new(1, u16::MAX, u16::MAX, high)];
    let layers = layers.into_iter().map(|layer| layer.with_frame_rate(frame_rate)).collect();
    TrackConfig::camera(layers).with_priority(priority).with_shown(shown.0, shown.1)
}

fn packet(number: u16) -> Vec<u8> {
    let header = RtpHeader::new(5, PayloadType::new(96).unwrap(), number, u32::from(number))
        .with_transport_sequence_number(Some((ID, 0)));
    let mut bytes = vec![0; header.size() + 1_000];
    header.emit(&mut bytes);
    bytes
}

/// A subscriber, the receiver at its other end, and the publisher's track.
struct Host {
    subscriber: Subscriber<Box<dyn weir::Controller + Send>>,
    receiver: Receiver,
    uplink: Uplink,
    track: TrackConfig,
}

impl Host {
    fn new(now: Timestamp, algorithm: Algorithm, limits: RateLimits) -> Self {
        let config = SubscriberConfig::twcc(9, ID);
        let mut subscriber = Subscriber::new(now, algorithm.build(limits), limits, config);
        let track = track([150_000, 1_500_000], 1.0, (640, 360), 30.0);
        let stream = OutgoingStream::new(7, PayloadType::new(96).unwrap());
        subscriber.add_track(now, TRACK, track.clone(), stream);
        let extensions = ExtensionIds::NONE.with_transport_sequence_number(Some(ID));
        let config = ReceiverConfig::new(8, extensions, Feedback::Twcc);
        let receiver = Receiver::new(now, config, Box::new(|| 0.5));
        Self { subscriber, receiver, uplink: Uplink::new(Structure::Simulcast), track }
    }

    fn apply(&mut self, now: Timestamp, step: &Step) {
        let subscriber = &mut self.subscriber;
        match step {
            Step::Forward { number, frame } => {
                let size = DataSize::from_bytes(u64::MAX / 2);
                self.uplink.on_packet(now, frame.stream, frame.temporal, size);
                let _ = subscriber.forward(now, TRACK, &packet(*number), *frame);
            }
            Step::Feedback { arrived } => {
                self.receiver.on_timeout(*arrived);
                while let Some(rtcp) = self.receiver.next_rtcp() {
                    subscriber.on_rtcp(now, rtcp);
                }
            }
            Step::Timeout => subscriber.on_timeout(now),
            Step::RoundTrip(rtt) => subscriber.on_round_trip_time(now, *rtt),
            Step::Bitrates(bps) => subscriber.set_bitrates(TRACK, &bps.map(Bitrate::from_bps)),
            Step::Track { bps, priority, shown, frame_rate } => {
                self.track = track(*bps, *priority, *shown, *frame_rate);
                subscriber.set_track(now, TRACK, self.track.clone());
            }
            Step::NewRoute => subscriber.on_route_change(now),
        }
        self.follow_up(now);
    }

    /// What a host does after each event.
    fn follow_up(&mut self, now: Timestamp) {
        for _ in 0..TAKEN {
            let Some(packet) = self.subscriber.next_packet(now) else { break };
            self.receiver.on_rtp(now, &packet.content, Ecn::NotEct).unwrap();
        }
        while let Some(decision) = self.subscriber.next_decision() {
            let _ = decision.to_string();
        }
        let _ = self.subscriber.next_timeout();
        let bitrates = self.uplink.bitrates(now, &self.track);
        self.subscriber.set_bitrates(TRACK, &bitrates);
        self.uplink.set_watched(now, 1, self.subscriber.level(TRACK).map(|level| level as u8));
        while self.uplink.next_demand(now).is_some() {}
        self.uplink.on_key_frame_request(now, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_subscriber_takes_times_and_rates_of_the_whole_range(
        algorithm in prop::sample::select(Algorithm::all().collect::<Vec<_>>()),
        steps in prop::collection::vec((any_i64(), any_step()), 1..60),
        max in any_rate(),
    ) {
        let kbps = Bitrate::from_kbps;
        let max = Bitrate::from_bps(max).max(kbps(500));
        let limits = RateLimits::new(kbps(150), kbps(500), max).unwrap();
        let mut host = Host::new(Timestamp::from_nanos(steps[0].0), algorithm, limits);
        for (ns, step) in &steps {
            host.apply(Timestamp::from_nanos(*ns), step);
            let target = host.subscriber.target();
            prop_assert_eq!(limits.clamp(target), target);
        }
    }
}
