//! The trace: our GCC over a bottleneck whose capacity changes, packet by packet.

use std::collections::VecDeque;
use std::fmt::Write;

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{ArrivalRecorder, Outgoing, SendHistory, TwccHeader};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{
    Bottleneck, Capacity, Header, LinkConfig, LossModel, Outcome, QueueLimit, Schedule, Seed,
};
use weir_wire::twcc;

const DURATION: TimeDelta = TimeDelta::from_secs(100);
const PACKET: DataSize = DataSize::from_bytes(1_200);
const ONE_WAY_DELAY: TimeDelta = TimeDelta::from_millis(50);
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const QUEUE: TimeDelta = TimeDelta::from_millis(300);
const LOSS: f64 = 0.01;
const MAX_FEEDBACK: usize = 1_200;
/// When the capacity changes, and what to: the steps of RFC 8867, section 5.1.
const CAPACITY_KBPS: [(i64, u64); 4] = [(0, 1_000), (40, 2_500), (60, 600), (80, 1_000)];

/// What the sender of the trace saw.
pub enum Event {
    /// A packet left.
    Sent { at: Timestamp, size: DataSize, number: u64 },
    /// A TWCC packet arrived.
    Feedback { at: Timestamp, bytes: Vec<u8> },
}

pub type Events = Vec<Event>;

/// Simulates the flow.
pub fn make() -> Events {
    let kbps = Bitrate::from_kbps;
    let steps = CAPACITY_KBPS.map(|(at, rate)| (Timestamp::from_secs(at), kbps(rate)));
    let capacity = Schedule::new(steps.to_vec()).expect("steps that rise");
    let config = LinkConfig::unlimited(ONE_WAY_DELAY)
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Time(QUEUE))
        .with_loss(LossModel::Random(LOSS));
    let mut link: Bottleneck<i64> = Bottleneck::new(&config, Seed::new(1), "up");
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(5_000)).expect("in order");
    let mut controller = Algorithm::Gcc.build(limits);
    let mut history = SendHistory::default();
    let (mut recorder, mut builder) = (ArrivalRecorder::default(), twcc::Builder::new(1, 1));
    let mut on_the_way_back: VecDeque<(Timestamp, Vec<u8>)> = VecDeque::new();
    let (mut next_packet, mut next_report) = (Timestamp::ZERO, Timestamp::ZERO + FEEDBACK_INTERVAL);
    let mut events = Vec::new();
    loop {
        let next_feedback = on_the_way_back.front().map_or(Timestamp::MAX, |feedback| feedback.0);
        let next_arrival = link.next_event().unwrap_or(Timestamp::MAX);
        let now = next_packet.min(next_report).min(next_feedback).min(next_arrival);
        if now > Timestamp::ZERO + DURATION {
            return events;
        }
        if now == next_arrival {
            while let Some(outcome) = link.poll(now) {
                if let Outcome::Delivered(delivery) = outcome {
                    recorder.on_packet(now, delivery.payload as u16);
                }
            }
        } else if now == next_report {
            builder.build(recorder.take_batch(now), MAX_FEEDBACK, |bytes| {
                on_the_way_back.push_back((now + ONE_WAY_DELAY, bytes.to_vec()));
            });
            next_report = now + FEEDBACK_INTERVAL;
        } else if now == next_feedback {
            let (at, bytes) = on_the_way_back.pop_front().expect("it gave the time");
            let view = twcc::View::parse(&bytes).expect("the builder wrote it");
            let header = TwccHeader {
                reference_time: view.reference_time().units(),
                feedback_count: view.feedback_packet_count(),
            };
            if let Some(report) = history.on_twcc(header, view.arrivals()) {
                controller.on_feedback(now, report);
            }
            events.push(Event::Feedback { at, bytes });
        } else {
            let packet = history.on_packet_sent(now, Outgoing::media(PACKET));
            controller.on_packet_sent(now, &packet);
            link.enqueue(now, Header::new(PACKET), packet.sequence_number);
            let number = packet.sequence_number as u64;
            events.push(Event::Sent { at: now, size: PACKET, number });
            next_packet = now + PACKET / controller.target().bitrate;
        }
        if controller.next_timeout().is_some_and(|due| due <= now) {
            controller.on_timeout(now);
        }
    }
}

/// Writes a line an event: `sent NANOSECONDS BYTES`, packets numbered from 0, or
/// `feedback NANOSECONDS HEX`.
pub fn write(path: &str, events: &Events) {
    let mut text = String::new();
    for event in events {
        match event {
            Event::Sent { at, size, .. } => {
                writeln!(text, "sent {} {}", at.as_nanos(), size.as_bytes())
            }
            Event::Feedback { at, bytes } => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(text, "feedback {} {hex}", at.as_nanos())
            }
        }
        .expect("a string takes all");
    }
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Reads what [`write`] wrote.
pub fn read(path: &str) -> Events {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut number = 0;
    let event = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, nanos, value] = words[..] else { panic!("{path}: {line}") };
        let at = Timestamp::from_nanos(nanos.parse().expect("a time"));
        if kind == "sent" {
            number += 1;
            let size = DataSize::from_bytes(value.parse().expect("a size"));
            return Event::Sent { at, size, number: number - 1 };
        }
        let byte = |at| u8::from_str_radix(&value[at..at + 2], 16).expect("hex");
        Event::Feedback { at, bytes: (0..value.len()).step_by(2).map(byte).collect() }
    };
    text.lines().map(event).collect()
}
