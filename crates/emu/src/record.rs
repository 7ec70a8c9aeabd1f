//! What an emulated run leaves behind.

use std::fmt;
use std::time::Duration;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Counters;
use weir_net::path::AccessLog;

use crate::handle::Change;
use crate::lateness::Lateness;
use crate::load::CpuShares;

/// Time from one [`Sample`] to the next.
pub const SAMPLE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// Above this release lateness, at the 99th percentile, a run is disturbed: it is the same size as the
/// differences of delay that delay-based controllers react to within one frame.
pub(crate) const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// Above this share of busy processor time a run is disturbed: encoders and browsers then wait for the
/// processor, and adapt to it rather than to the network.
const BUSY_LIMIT: f64 = 0.95;
/// Above this share of stolen processor time the host alone may have made 1 % of the packets late.
const STOLEN_LIMIT: f64 = 0.01;

/// What passed somewhere over some time. Sizes are of whole IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficTotals {
    /// Packets that came.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered: DataSize,
    /// Packets that a loss model took.
    pub lost_packets: u64,
    /// Packets that a queue dropped, full or for its management's sake.
    pub dropped_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Bytes that arrived.
    pub delivered: DataSize,
    /// How long the packets that arrived had waited in queues, all together.
    pub waited: TimeDelta,
}

impl TrafficTotals {
    /// Of a link.
    pub(crate) fn of(counters: &Counters) -> Self {
        Self {
            offered_packets: counters.offered_packets,
            offered: counters.offered,
            lost_packets: counters.lost_packets,
            dropped_packets: counters.dropped_packets + counters.managed_packets,
            delivered_packets: counters.delivered_packets,
            delivered: counters.delivered,
            waited: counters.waited,
        }
    }

    /// What came to it since an earlier moment.
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

    /// Mean time that the packets which arrived had waited; `None` without packets.
    pub fn mean_wait(&self) -> Option<TimeDelta> {
        (self.delivered_packets > 0).then(|| self.waited / self.delivered_packets.cast_signed())
    }
}

/// One direction of a hop at one moment, and what it did in the interval before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The end of the interval, since the start of the run.
    pub time: Timestamp,
    /// `None` if unlimited.
    pub capacity: Option<Bitrate>,
    /// What waits in the queue now.
    pub queued: DataSize,
    /// How long that takes at the nominal rate of the capacity, also in an outage.
    pub queuing_delay: TimeDelta,
    /// What passed in the interval.
    pub traffic: TrafficTotals,
}

/// One direction of a hop over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionRecord {
    /// One each [`SAMPLE_INTERVAL`], the first at the end of the first interval.
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

/// What one host sent to another in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// The end of the interval, since the start of the run.
    pub time: Timestamp,
    /// What waits now in the queues of the route, whoever sent it: those of the links, and the one at which
    /// it enters the access network.
    pub queued: DataSize,
    /// What passed in the interval: offered at the first link of the path, delivered at its end.
    pub traffic: TrafficTotals,
}

/// What one host sent to another over the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The index of the sending host.
    pub from: usize,
    /// The index of the receiving host.
    pub to: usize,
    /// One each [`SAMPLE_INTERVAL`], from the first interval of the run on.
    pub samples: Vec<FlowSample>,
    /// Totals since the start of the run.
    pub total: TrafficTotals,
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

/// An emulated run, from its start to its stop.
#[derive(Clone, Debug, Default)]
pub struct Emulation {
    /// What the access network noted; `None` without one.
    pub access: Option<AccessLog>,
    /// In the order of the plan.
    pub hops: Vec<HopRecord>,
    /// The pairs of hosts of which the first has sent something to the second.
    pub flows: Vec<FlowRecord>,
    /// What was changed by hand, and when since the start of the run.
    pub changes: Vec<(Timestamp, Change)>,
    /// What was changed of the access network by hand, in words.
    pub access_changes: Vec<(Timestamp, String)>,
    /// How late packets were released.
    pub lateness: Lateness,
    /// What it needed for that.
    pub effort: Effort,
    /// Whether the emulator ran before all other programs (SCHED_FIFO).
    pub real_time: bool,
    /// What became of the machine's processor time; `None` where the system does not tell.
    pub cpu: Option<CpuShares>,
    /// Packets that were not from one host to another that it reaches, in IPv4; the emulator drops
    /// them.
    pub foreign_packets: u64,
    /// Packets that the receiving host did not take.
    pub refused_packets: u64,
    /// Packets that a host sent faster than the emulator read them: its interface dropped them.
    pub unread_packets: u64,
}

/// Why a run may say more about this machine than about the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// Packets were released too late; this is the 99th percentile.
    Lateness(Duration),
    /// Packets were late, and the host of this virtual machine took this share of the processors:
    /// that alone can explain it, and making the run again later may help.
    Stolen(f64),
    /// The processors were busy for this share of the time, lowered priorities apart.
    Cpu(f64),
    /// So many packets were dropped before the emulator read them: a loss that no model knows.
    Unread(u64),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lateness(p99) => write!(
                f,
                "1 % of the packets came {:.1} ms late or later (limit {} ms)",
                p99.as_secs_f64() * 1e3,
                LATENESS_LIMIT.as_millis()
            ),
            Self::Stolen(share) => write!(
                f,
                "the host took {:.1} % of the processors (limit {:.0} % of a late run)",
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
    /// What one host sent to another; `None` if that was nothing.
    pub fn flow(&self, from: usize, to: usize) -> Option<&FlowRecord> {
        self.flows.iter().find(|flow| flow.from == from && flow.to == to)
    }

    /// Everything that was changed by hand, in words, by time.
    pub fn changes_in_words(&self) -> Vec<(Timestamp, String)> {
        let of_hops = self.changes.iter().map(|(time, change)| (*time, change.to_string()));
        let mut all: Vec<_> = of_hops.chain(self.access_changes.iter().cloned()).collect();
        all.sort_by_key(|change| change.0);
        all
    }

    /// What bends the result; empty for a run that can be trusted.
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
        late.iter().for_each(|us| lateness.record(Duration::from_micros(*us)));
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
                "1 % of the packets came 3.0 ms late or later (limit 1 ms)",
                "the processors were busy for 97 % of the time (limit 95 %)",
                "7 packets were dropped before the emulator read them",
            ]
        );
    }

    #[test]
    fn the_host_of_the_machine_is_named_where_it_took_time_and_packets_were_late() {
        assert_eq!(run(&[100; 100], 0.5, 0.2).disturbances(), []);
        assert_eq!(run(&[3_000; 100], 0.5, 0.01).disturbances().len(), 1);
        assert_eq!(
            texts(&run(&[3_000; 100], 0.5, 0.123).disturbances()),
            [
                "1 % of the packets came 3.0 ms late or later (limit 1 ms)",
                "the host took 12.3 % of the processors (limit 1 % of a late run)",
            ]
        );
    }

    #[test]
    fn one_late_packet_in_a_hundred_does_not_bend_a_run() {
        let mut late = [100; 100];
        late[7] = 18_000;
        assert_eq!(run(&late, 0.5, 0.0).disturbances(), []);
    }
}
