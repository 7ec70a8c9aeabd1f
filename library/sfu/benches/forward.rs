//! Cost of a server per packet and per decision.
//!
//! `forward`: one packet of 1,200 bytes to one subscriber, from `forward` to the socket, with its
//! part of the feedback. `allocate`: a decision for 50 tracks of three layers, of which one changed
//! its bitrate.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::feedback::Ecn;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig};
use weir_sfu::{
    Allocator, Frame, Layer, OutgoingStream, Subscriber, SubscriberConfig, TrackConfig, TrackId,
};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};

const ID: ExtensionId = ExtensionId::new(1).unwrap();
const PACKETS: u16 = 1_000;
/// 1,228 bytes at 2 Mbit/s.
const SPACING: TimeDelta = TimeDelta::from_micros(4_912);

fn layers() -> Vec<Layer> {
    let kbps = Bitrate::from_kbps;
    vec![
        Layer::new(0, 320, 180, kbps(150)),
        Layer::new(1, 640, 360, kbps(500)),
        Layer::new(2, 1280, 720, kbps(1_500)),
    ]
}

fn packet(number: u16) -> Vec<u8> {
    let header = RtpHeader::new(7, PayloadType::new(96).unwrap(), number, u32::from(number) * 450)
        .with_transport_sequence_number(Some((ID, 0)));
    let mut bytes = vec![0; 1_200];
    header.emit(&mut bytes);
    bytes
}

/// Packets as the publisher sends them, and the feedback as the subscriber sends it.
fn forward(criterion: &mut Criterion) {
    let packets: Vec<Vec<u8>> = (0..PACKETS).map(packet).collect();
    let ids = ExtensionIds::NONE.with_transport_sequence_number(Some(ID));
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(50), kbps(5_000), kbps(10_000)).unwrap();
    let mut group = criterion.benchmark_group("forward");
    group.throughput(Throughput::Elements(u64::from(PACKETS)));
    for with_feedback in [false, true] {
        let name = if with_feedback { "with_feedback" } else { "alone" };
        let ends = || {
            let config = SubscriberConfig::twcc(9, ID);
            let controller = Algorithm::Sluice.build(limits);
            let mut subscriber = Subscriber::new(Timestamp::ZERO, controller, limits, config);
            let stream = OutgoingStream::new(1_000, PayloadType::new(96).unwrap());
            subscriber.add_track(
                Timestamp::ZERO,
                TrackId(0),
                TrackConfig::camera(layers()),
                stream,
            );
            subscriber.on_timeout(Timestamp::ZERO);
            let receiver = ReceiverConfig::new(1, ids, Feedback::Twcc);
            (subscriber, Receiver::new(Timestamp::ZERO, receiver, Box::new(|| 0.5)))
        };
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                ends,
                |(subscriber, receiver)| {
                    let mut now = Timestamp::ZERO;
                    for (index, packet) in packets.iter().enumerate() {
                        let frame = Frame::new(2).with_starts_key_frame(index == 0);
                        black_box(subscriber.forward(now, TrackId(0), packet, frame).unwrap());
                        if subscriber.next_timeout() <= now {
                            subscriber.on_timeout(now);
                        }
                        while let Some(packet) = subscriber.next_packet(now) {
                            if with_feedback {
                                receiver.on_rtp(now, &packet.content, Ecn::NotEct).unwrap();
                            }
                            subscriber.recycle(packet.content);
                        }
                        if with_feedback {
                            receiver.on_timeout(now);
                            while let Some(rtcp) = receiver.next_rtcp() {
                                subscriber.on_rtcp(now, rtcp);
                            }
                        }
                        now += SPACING;
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn allocate(criterion: &mut Criterion) {
    let mut allocator = Allocator::default();
    for number in 0..50 {
        let track = TrackConfig::camera(layers());
        let track =
            if number == 0 { track.with_shown(1280, 720) } else { track.with_shown(320, 180) };
        allocator.set_track(TrackId(number), track);
    }
    let mut now = Timestamp::ZERO;
    let mut step = 0;
    criterion.bench_function("allocate/50_tracks", |bencher| {
        bencher.iter(|| {
            step += 1;
            now += TimeDelta::from_millis(100);
            let rate = Bitrate::from_kbps(150 + step % 7);
            allocator.set_bitrates(TrackId(step as u32 % 50), &[rate]);
            // The budget moves by a half, so tracks go up and down.
            let budget = Bitrate::from_kbps(if step % 100 < 50 { 8_000 } else { 12_000 });
            allocator.allocate(now, budget);
            while let Some(decision) = allocator.next_decision() {
                black_box(decision);
            }
            black_box(allocator.next_need(now));
        });
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    forward(&mut criterion);
    allocate(&mut criterion);
    criterion.final_summary();
}
