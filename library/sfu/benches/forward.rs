//! Cost of a server per packet and per decision.
//!
//! `forward`: one packet of 1,200 bytes to one subscriber, from `forward` to the socket, with its
//! part of the feedback; the goal is 2 us. `allocate`: a decision for 50 tracks of three layers, of
//! which one changed its bitrate; the goal is 50 us. `server`: one second of 1,000 subscribers who
//! watch ten tracks each, with feedback every 50 ms; the goal is one second, so that one core keeps
//! up.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::controller::Controller;
use weir::feedback::Ecn;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig};
use weir_sfu::{
    Allocator, Frame, Layer, OutgoingStream, Subscriber, SubscriberConfig, TrackConfig, TrackId,
};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};
use weir_wire::twcc::Builder;

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
                TrackConfig::camera(layers()).with_shown(320, 180),
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
                    let (mut now, mut sent) = (Timestamp::ZERO, 0);
                    for (index, packet) in packets.iter().enumerate() {
                        // The layer that is chosen first, so that each packet is forwarded.
                        let frame = Frame::new(0).with_starts_key_frame(index == 0);
                        black_box(subscriber.forward(now, TrackId(0), packet, frame).unwrap());
                        if subscriber.next_timeout() <= now {
                            subscriber.on_timeout(now);
                        }
                        while let Some(packet) = subscriber.next_packet(now) {
                            sent += 1;
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
                    assert!(sent > PACKETS / 10 * 9, "{sent} packets were forwarded");
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

const SUBSCRIBERS: usize = 1_000;
const TRACKS: u32 = 10;
/// Between two looks at all subscribers, and two packets of each track: 240 kbit/s.
const STEP: TimeDelta = TimeDelta::from_millis(10);
const PER_PACKET: u32 = 4;
/// Between two feedback packets, and how long a packet is under way.
const PER_FEEDBACK: u32 = 5;
const WAY_US: i64 = 20_000;
const STEPS: u32 = 100;

/// A subscriber, and its receiver as far as the server hears of it.
struct Watching {
    server: Subscriber<Box<dyn Controller + Send>>,
    feedback: Builder,
    arrivals: Vec<(i64, i64)>,
}

impl Watching {
    fn new() -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(50), kbps(5_000), kbps(10_000)).unwrap();
        let controller = Algorithm::Sluice.build(limits);
        let config = SubscriberConfig::twcc(9, ID);
        let mut server = Subscriber::new(Timestamp::ZERO, controller, limits, config);
        for track in 0..TRACKS {
            let stream = OutgoingStream::new(1_000 + track, PayloadType::new(96).unwrap());
            let shown = TrackConfig::camera(layers()).with_shown(320, 180);
            server.add_track(Timestamp::ZERO, TrackId(track), shown, stream);
        }
        server.on_timeout(Timestamp::ZERO);
        Self { server, feedback: Builder::new(1, 2), arrivals: Vec::new() }
    }

    /// Sends what is due, and hears of it now and then.
    fn work(&mut self, now: Timestamp, step: u32) {
        if self.server.next_timeout() <= now {
            self.server.on_timeout(now);
        }
        while let Some(packet) = self.server.next_packet(now) {
            let number = i64::from(packet.sent.transport_sequence_number());
            self.arrivals.push((number, now.as_micros() + WAY_US));
            self.server.recycle(packet.content);
        }
        while let Some(decision) = self.server.next_decision() {
            black_box(decision);
        }
        if step.is_multiple_of(PER_FEEDBACK) && !self.arrivals.is_empty() {
            let server = &mut self.server;
            self.feedback.build(&self.arrivals, 1_200, |bytes| {
                black_box(server.on_rtcp(now, bytes));
            });
            self.arrivals.clear();
        }
    }
}

/// One second of a server.
fn serve(all: &mut [Watching], packets: &[Vec<u8>]) {
    for step in 0..STEPS {
        let now = Timestamp::ZERO + STEP * i64::from(step);
        for track in 0..TRACKS {
            // The tracks take turns, so that not all packets come at once.
            if step % PER_PACKET != track % PER_PACKET {
                continue;
            }
            let number = step / PER_PACKET;
            for stream in 0..3 {
                let frame = Frame::new(stream).with_starts_key_frame(number.is_multiple_of(10));
                for watching in &mut *all {
                    let packet = &packets[number as usize];
                    let sent = watching.server.forward(now, TrackId(track), packet, frame);
                    black_box(sent.unwrap());
                }
            }
        }
        for watching in &mut *all {
            watching.work(now, step);
        }
    }
}

fn server(criterion: &mut Criterion) {
    let packets: Vec<Vec<u8>> = (0..100).map(packet).collect();
    let mut group = criterion.benchmark_group("server");
    group.sample_size(10);
    group.bench_function("one_second_of_1000_subscribers_of_10_tracks", |bencher| {
        bencher.iter_batched_ref(
            || (0..SUBSCRIBERS).map(|_| Watching::new()).collect::<Vec<_>>(),
            |all| serve(all, &packets),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    forward(&mut criterion);
    allocate(&mut criterion);
    server(&mut criterion);
    criterion.final_summary();
}
