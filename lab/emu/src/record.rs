//! The record of an emulated run.

use std::fmt;
use std::time::Duration;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Counters;
use weir_net::path::{AccessLog, Carried};

use crate::handle::Change;
use crate::lateness::Lateness;
use crate::load::CpuShares;
use crate::nat::NatRecord;

/// Time from one [`Sample`] to the next.
pub const SAMPLE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// A run is disturbed if the 99th percentile of the release lateness exceeds this. Delay-based
/// controllers react to delay differences of this size within a frame.
pub(crate) const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// A run is disturbed if the share of busy processor time exceeds this. Encoders and browsers then
/// wait for the processor and adapt to it rather than to the network.
const BUSY_LIMIT: f64 = 0.95;
/// Above this share of stolen processor time, the virtual machine's host alone may have made 1 % of
/// the packets late.
const STOLEN_LIMIT: f64 = 0.01;

/// Packet counts over a time. Sizes are of whole IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficTotals {
    /// Packets offered.
    pub offered_packets: u64,
    /// Bytes offered.
    pub offered: DataSize,
    /// Packets dropped by a loss model.
    pub lost_packets: u64,
    /// Packets dropped by a queue, because it was full or by its active queue management.
    pub dropped_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Bytes that arrived.
    pub delivered: DataSize,
    /// Total queuing time of the packets that arrived.
    pub waited: TimeDelta,
}

impl TrafficTotals {
    /// Counts of a link.
    pub(crate) fn of(counters: &Counters) -> Self {
        Self {
            offered_packets: counters.offered_packets,
            offered: counters.offered,
            lost_packets: counters.lost_packets,
            dropped_packets: counters.dropped_packets
                + counters.managed_packets
                + counters.policed_packets,
            delivered_packets: counters.delivered_packets,
            delivered: counters.delivered,
            waited: counters.waited,
        }
    }

    /// Difference from earlier counts.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            offered_packets: self.offered_packets - earlier.offered_packets,
            offered: self.offered.saturating_sub(earlier.offered),
            lost_packets: self.lost_packets - earlier.lost_packets,
            dropped_packets: self.dropped_packets - earlier.dropped_packets,
            delivered_packets: self.delivered_packets - earlier.delivered_packets,
            delivered: self.delivered.saturating_sub(earlier.delivered),
            waited: self.waited - earlier.waited,
        }
    }

    /// Both counts together.
    fn with(&self, other: &Self) -> Self {
        Self {
            offered_packets: self.offered_packets + other.offered_packets,
            offered: self.offered + other.offered,
            lost_packets: self.lost_packets + other.lost_packets,
            dropped_packets: self.dropped_packets + other.dropped_packets,
            delivered_packets: self.delivered_packets + other.delivered_packets,
            delivered: self.delivered + other.delivered,
            waited: self.waited + other.waited,
        }
    }

    /// Mean queuing time of the packets that arrived; `None` without packets.
    pub fn mean_wait(&self) -> Option<TimeDelta> {
        (self.delivered_packets > 0).then(|| self.waited / self.delivered_packets.cast_signed())
    }
}

/// State of one direction of a hop at one time, and its traffic in the interval before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The end of the interval, since the start of the run.
    pub time: Timestamp,
    /// Capacity; `None` if unlimited.
    pub capacity: Option<Bitrate>,
    /// Mean capacity over the interval; `None` if unlimited.
    pub mean_capacity: Option<Bitrate>,
    /// Bytes in the queue.
    pub queued: DataSize,
    /// Time to send these bytes at the nominal capacity, also in an outage.
    pub queuing_delay: TimeDelta,
    /// Traffic in the interval.
    pub traffic: TrafficTotals,
}

/// One direction of a hop over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionRecord {
    /// One sample per [`SAMPLE_INTERVAL`], the first at the end of the first interval.
    pub samples: Vec<Sample>,
    /// Totals since the start of the run.
    pub counters: Counters,
}

/// One hop over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopRecord {
    /// Towards the higher nodes.
    pub up: DirectionRecord,
    /// Towards the lower nodes.
    pub down: DirectionRecord,
}

/// Traffic from one host to another in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// The end of the interval, since the start of the run.
    pub time: Timestamp,
    /// Bytes in the queues of the route, from all senders: the queues of the links, and the queue
    /// at the entry to the access network.
    pub queued: DataSize,
    /// What the narrowest link of the route could carry in the interval, and what it carried of the
    /// pair's packets; `None` if all links are unlimited.
    pub carried: Option<Carried>,
    /// Traffic in the interval: offered to the first link of the path, delivered at its end.
    pub traffic: TrafficTotals,
}

/// Traffic from one host to another over the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The index of the sending host.
    pub from: usize,
    /// The index of the receiving host.
    pub to: usize,
    /// One sample per [`SAMPLE_INTERVAL`], from the first interval of the run on.
    pub samples: Vec<FlowSample>,
    /// Totals since the start of the run.
    pub total: TrafficTotals,
}

impl FlowRecord {
    /// Adds the traffic of another pair of hosts.
    fn join(&mut self, other: Self) {
        for (index, sample) in other.samples.into_iter().enumerate() {
            match self.samples.get_mut(index) {
                Some(own) => {
                    own.queued += sample.queued;
                    own.carried = joined(own.carried, sample.carried);
                    own.traffic = own.traffic.with(&sample.traffic);
                }
                None => self.samples.push(sample),
            }
        }
        self.total = self.total.with(&other.total);
    }
}

/// What the routes of two pairs carried that count as one. Each has links of its own.
fn joined(own: Option<Carried>, other: Option<Carried>) -> Option<Carried> {
    match (own, other) {
        (Some(own), Some(other)) => {
            Some(Carried::new(own.mean_capacity.min(other.mean_capacity), own.bits + other.bits))
        }
        (own, other) => own.or(other),
    }
}

/// What the emulator's thread needed for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// System calls that took packets from the hosts, or found that there were none.
    pub reads: u64,
    /// System calls that gave packets to the hosts.
    pub writes: u64,
    /// System calls that waited for the next event or the next packet.
    pub waits: u64,
    /// Processor time of the thread.
    pub processor_time: Duration,
    /// Whether it had a processor of its own.
    pub own_processor: bool,
}

/// Record of an emulated run, from its start to its stop.
#[derive(Clone, Debug, Default)]
pub struct Emulation {
    /// Log of the access network; `None` without one.
    pub access: Option<AccessLog>,
    /// The hops, in the order of the plan.
    pub hops: Vec<HopRecord>,
    /// The pairs of hosts between which packets were sent.
    pub flows: Vec<FlowRecord>,
    /// Manual changes of hops, with their times since the start of the run.
    pub changes: Vec<(Timestamp, Change)>,
    /// Manual changes of the access network, as text.
    pub access_changes: Vec<(Timestamp, String)>,
    /// What the NATs did, in the order of the plan.
    pub nats: Vec<NatRecord>,
    /// Release lateness of packets.
    pub lateness: Lateness,
    /// Work of the emulator's thread.
    pub effort: Effort,
    /// Whether the emulator ran with real-time priority (SCHED_FIFO).
    pub real_time: bool,
    /// Use of the machine's processor time; `None` if unknown.
    pub cpu: Option<CpuShares>,
    /// Packets that the emulator dropped because they were not IPv4 packets from one host to
    /// another that it can reach.
    pub foreign_packets: u64,
    /// Packets that the receiving host refused.
    pub refused_packets: u64,
    /// Packets that a host's interface dropped because the emulator did not read them in time.
    pub unread_packets: u64,
}

/// Reason why a run is disturbed: its results may depend more on this machine than on the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// Packets were released too late. The value is the 99th percentile of the lateness.
    Lateness(Duration),
    /// Packets were late, and the host of this virtual machine took this share of the processor
    /// time. That alone can explain the lateness, so repeating the run later may help.
    Stolen(f64),
    /// The processors were busy for this share of the time, without processes of lowered priority.
    Cpu(f64),
    /// This many packets were dropped before the emulator read them. This loss is not part of any
    /// model.
    Unread(u64),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lateness(p99) => write!(
                f,
                "the p99 of the release lateness was {:.1} ms (limit {} ms)",
                p99.as_secs_f64() * 1e3,
                LATENESS_LIMIT.as_millis()
            ),
            Self::Stolen(share) => write!(
                f,
                "the host of this virtual machine took {:.1} % of the processor time (limit for a \
                 late run: {:.0} %)",
                share * 100.0,
                STOLEN_LIMIT * 100.0
            ),
            Self::Cpu(share) => write!(
                f,
                "the processors were busy for {:.0} % of the time (limit {:.0} %)",
                share * 100.0,
                BUSY_LIMIT * 100.0
            ),
            Self::Unread(packets) => {
                write!(f, "{packets} packets were dropped before the emulator read them")
            }
        }
    }
}

impl Emulation {
    /// Traffic from one host to another; `None` if there was none.
    pub fn flow(&self, from: usize, to: usize) -> Option<&FlowRecord> {
        self.flows.iter().find(|flow| flow.from == from && flow.to == to)
    }

    /// Counts the traffic of one host as that of another, whose second interface it is.
    pub fn join_hosts(&mut self, second: usize, first: usize) {
        let mut flows: Vec<FlowRecord> = Vec::new();
        for mut flow in std::mem::take(&mut self.flows) {
            for end in [&mut flow.from, &mut flow.to] {
                if *end == second {
                    *end = first;
                }
            }
            match flows.iter_mut().find(|it| it.from == flow.from && it.to == flow.to) {
                Some(known) => known.join(flow),
                None => flows.push(flow),
            }
        }
        self.flows = flows;
    }

    /// All manual changes as text, sorted by time.
    pub fn changes_in_words(&self) -> Vec<(Timestamp, String)> {
        let of_hops = self.changes.iter().map(|(time, change)| (*time, change.to_string()));
        let mut all: Vec<_> = of_hops.chain(self.access_changes.iter().cloned()).collect();
        all.sort_by_key(|change| change.0);
        all
    }

    /// Reasons why the run is disturbed; empty for a run that can be trusted.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        let late = self.lateness.quantile(0.99).filter(|p99| *p99 > LATENESS_LIMIT);
        let stolen = self.cpu.map(|cpu| cpu.stolen).filter(|share| *share > STOLEN_LIMIT);
        let stolen = stolen.filter(|_| late.is_some());
        let busy = self.cpu.map(|cpu| cpu.busy).filter(|share| *share > BUSY_LIMIT);
        let unread = (self.unread_packets > 0).then_some(Disturbance::Unread(self.unread_packets));
        let reasons = [
            late.map(Disturbance::Lateness),
            stolen.map(Disturbance::Stolen),
            busy.map(Disturbance::Cpu),
            unread,
        ];
        reasons.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(late: &[u64], busy: f64, stolen: f64) -> Emulation {
        let mut lateness = Lateness::default();
        for us in late {
            lateness.record(Duration::from_micros(*us));
        }
        Emulation {
            lateness,
            cpu: Some(CpuShares { busy, nice: 0.0, stolen }),
            ..Emulation::default()
        }
    }

    fn texts(disturbances: &[Disturbance]) -> Vec<String> {
        disturbances.iter().map(Disturbance::to_string).collect()
    }

    #[test]
    fn a_run_is_disturbed_by_late_packets_busy_processors_or_unread_packets() {
        assert_eq!(run(&[100; 100], 0.95, 0.0).disturbances(), []);
        assert_eq!(Emulation::default().disturbances(), []);
        let late_and_busy = run(&[3_000; 100], 0.97, 0.0);
        let disturbances = Emulation { unread_packets: 7, ..late_and_busy }.disturbances();
        assert_eq!(
            texts(&disturbances),
            [
                "the p99 of the release lateness was 3.0 ms (limit 1 ms)",
                "the processors were busy for 97 % of the time (limit 95 %)",
                "7 packets were dropped before the emulator read them",
            ]
        );
    }

    #[test]
    fn the_machines_host_is_named_where_it_took_time_and_packets_were_late() {
        assert_eq!(run(&[100; 100], 0.5, 0.2).disturbances(), []);
        assert_eq!(run(&[3_000; 100], 0.5, 0.01).disturbances().len(), 1);
        assert_eq!(
            texts(&run(&[3_000; 100], 0.5, 0.123).disturbances()),
            [
                "the p99 of the release lateness was 3.0 ms (limit 1 ms)",
                "the host of this virtual machine took 12.3 % of the processor time (limit for a \
                 late run: 1 %)",
            ]
        );
    }

    fn traffic(offered_packets: u64) -> TrafficTotals {
        TrafficTotals { offered_packets, ..Default::default() }
    }

    /// What one host sent to another, in packets of each interval.
    fn flow(from: usize, to: usize, packets: &[u64]) -> FlowRecord {
        let mut samples = Vec::new();
        for (index, count) in (1..).zip(packets) {
            let time = Timestamp::ZERO + SAMPLE_INTERVAL * index;
            samples.push(FlowSample {
                time,
                queued: DataSize::ZERO,
                carried: None,
                traffic: traffic(*count),
            });
        }
        FlowRecord { from, to, samples, total: traffic(packets.iter().sum()) }
    }

    #[test]
    fn the_traffic_of_a_second_interface_is_that_of_its_host() {
        let flows = vec![flow(0, 1, &[3, 0]), flow(2, 1, &[0, 4, 5]), flow(1, 2, &[7])];
        let mut run = Emulation { flows, ..Emulation::default() };
        run.join_hosts(2, 0);
        assert_eq!(run.flows, [flow(0, 1, &[3, 4, 5]), flow(1, 0, &[7])]);
    }

    #[test]
    fn one_late_packet_in_a_hundred_does_not_bend_a_run() {
        let mut late = [100; 100];
        late[7] = 18_000;
        assert_eq!(run(&late, 0.5, 0.0).disturbances(), []);
    }
}
