//! Flows of one sender over one bottleneck, each with its own controller, with and without
//! coupling.

#![expect(clippy::incompatible_msrv, reason = "tests run with the compiler of the lab")]

use std::collections::VecDeque;

use weir::controller::RateLimits;
use weir::coupled::{FlowGroup, FlowId};
use weir::pacer::{Pacer, Release};
use weir::{
    Algorithm, Bitrate, Controller, DataSize, FeedbackReport, PacketReport, SentPacket, TimeDelta,
    Timestamp,
};

const STEP: TimeDelta = TimeDelta::from_millis(1);
const FRAME_STEPS: i64 = 33;
const FEEDBACK_STEPS: i64 = 50;
const ONE_WAY_DELAY: TimeDelta = TimeDelta::from_millis(50);
const QUEUE_LIMIT: TimeDelta = TimeDelta::from_millis(300);
const PACKET_BYTES: u64 = 1_200;
const CAPACITY: Bitrate = Bitrate::from_kbps(3_500);

struct Flow {
    controller: Box<dyn Controller + Send>,
    pacer: Pacer<()>,
    member: Option<FlowId>,
    next_number: i64,
    on_the_way: VecDeque<PacketReport>,
    reports: VecDeque<(Timestamp, FeedbackReport)>,
    delivered: DataSize,
}

/// Three flows, simulated in steps of 1 ms.
struct Sender {
    now: Timestamp,
    flows: Vec<Flow>,
    group: FlowGroup,
    busy_until: Timestamp,
}

impl Sender {
    fn new(algorithm: Algorithm, max_kbps: u64, priorities: Option<[f64; 3]>) -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(max_kbps)).unwrap();
        let mut group = FlowGroup::default();
        let flow = |index: usize| {
            let controller = algorithm.build(limits);
            Flow {
                pacer: Pacer::new(&controller.target()),
                controller,
                member: priorities.map(|priorities| group.join(priorities[index], limits)),
                next_number: 0,
                on_the_way: VecDeque::new(),
                reports: VecDeque::new(),
                delivered: DataSize::ZERO,
            }
        };
        let flows = (0..3).map(flow).collect();
        Self { now: Timestamp::from_secs(1), flows, group, busy_until: Timestamp::ZERO }
    }

    /// Runs for `secs` and returns the delivered bitrate of each flow in kbit/s.
    fn run(&mut self, secs: u64) -> [u64; 3] {
        self.flows.iter_mut().for_each(|flow| flow.delivered = DataSize::ZERO);
        for step in 0..secs as i64 * 1_000 {
            self.now += STEP;
            (0..3).for_each(|index| self.step(index, step + 11 * index as i64));
        }
        [0, 1, 2].map(|index| self.flows[index].delivered.as_bits() / secs / 1_000)
    }

    fn step(&mut self, index: usize, step: i64) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        if flow.controller.next_timeout().is_some_and(|due| due <= now) {
            flow.controller.on_timeout(now);
        }
        while let Some((_, report)) = flow.reports.pop_front_if(|(due, _)| *due <= now) {
            flow.controller.on_feedback(now, &report);
        }
        self.exchange(index);
        let flow = &mut self.flows[index];
        if step % FRAME_STEPS == 0 {
            let mut left = (flow.controller.target().bitrate * (STEP * FRAME_STEPS)).as_bytes();
            while left > 0 {
                let size = DataSize::from_bytes(left.min(PACKET_BYTES));
                left -= size.as_bytes();
                flow.pacer.enqueue(size, ());
                flow.controller.on_media_queued(now, size, flow.pacer.queued());
            }
        }
        self.send(index);
        if step % FEEDBACK_STEPS == 0 {
            self.flows[index].report(now);
        }
    }

    /// Reports the flow's own rate change to the group, and the resulting shares to all flows.
    fn exchange(&mut self, index: usize) {
        let flow = &self.flows[index];
        let Some(member) = flow.member else { return };
        self.group.update(member, flow.controller.target().bitrate);
        for flow in &mut self.flows {
            let Some(member) = flow.member else { continue };
            if let Some(share) = self.group.new_share(member) {
                flow.controller.on_shared_rate(self.now, share);
                self.group.on_share_applied(member, flow.controller.target().bitrate);
            }
        }
    }

    fn send(&mut self, index: usize) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        flow.pacer.set_target(now, &flow.controller.target());
        while let Some(Release { size, media, probe, .. }) = flow.pacer.dequeue(now) {
            let sequence_number = flow.next_number;
            flow.next_number += 1;
            let queued = flow.pacer.queued();
            let padding = media.is_none();
            let packet = SentPacket::new(sequence_number, size)
                .with_queued(queued)
                .with_probe(probe)
                .with_padding(padding);
            flow.controller.on_packet_sent(now, &packet);
            flow.pacer.set_target(now, &flow.controller.target());
            let fits = self.busy_until.max(now) - now <= QUEUE_LIMIT;
            if fits {
                self.busy_until = self.busy_until.max(now) + size / CAPACITY;
                flow.delivered += size;
            }
            flow.on_the_way.push_back(
                PacketReport::new(sequence_number, size, now)
                    .with_arrival_time(fits.then_some(self.busy_until + ONE_WAY_DELAY))
                    .with_probe(probe),
            );
        }
    }
}

impl Flow {
    fn report(&mut self, now: Timestamp) {
        let arrived = |packet: &PacketReport| packet.arrival_time.is_some_and(|at| at <= now);
        let Some(last) = self.on_the_way.iter().rposition(arrived) else { return };
        let packets = self.on_the_way.drain(..=last).collect();
        let report = FeedbackReport::new(packets);
        self.reports.push_back((now + ONE_WAY_DELAY, report));
    }
}

// [RFC8867 §6.1]: a flow of twice the priority gets about twice the rate.
#[test]
fn coupled_flows_share_two_to_one_to_one_and_use_the_path() {
    for algorithm in Algorithm::all() {
        let mut sender = Sender::new(algorithm, 3_000, Some([2.0, 1.0, 1.0]));
        sender.run(30);
        let [first, second, third] = sender.run(60);
        println!("{algorithm}: {first} {second} {third} kbit/s");
        let sum = (first + second + third) as f64;
        assert!(sum >= 0.7 * CAPACITY.as_kbps_f64(), "{algorithm}: {sum}");
        for other in [second, third] {
            let ratio = first as f64 / other as f64;
            assert!((1.7..2.3).contains(&ratio), "{algorithm}: {ratio}");
        }
    }
}

// [RFC8699 §5.3.1]: a share at the flow's maximum is used as the flow's rate like any other.
#[test]
fn a_flow_whose_share_is_its_maximum_keeps_to_it() {
    for algorithm in Algorithm::all() {
        let mut sender = Sender::new(algorithm, 1_500, Some([8.0, 1.0, 1.0]));
        sender.run(30);
        let [first, second, third] = sender.run(120);
        println!("{algorithm}: {first} {second} {third} kbit/s");
        assert!(
            first >= 1_350 && second.max(third) <= 1_100,
            "{algorithm}: {first} {second} {third}"
        );
    }
}

// [RFC8699 §1]: without the exchange of rates, priorities have no effect.
#[test]
fn flows_that_are_not_coupled_do_not_know_of_priorities() {
    let mut sender = Sender::new(Algorithm::ScreamV2, 3_000, None);
    sender.run(30);
    let [first, second, _] = sender.run(60);
    assert!((first as f64 / second as f64) < 1.7);
}
