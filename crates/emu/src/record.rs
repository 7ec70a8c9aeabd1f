//! What an emulated run leaves behind.

use std::fmt;
use std::time::Duration;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Counters;

use crate::lateness::Lateness;

/// Time from one [`Sample`] to the next.
pub const SAMPLE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// Above this release lateness, at the 99th percentile, a run is bent: it is the same size as the
/// differences of delay that delay-based controllers react to within one frame.
const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// Above this share of busy processor time a run is bent: encoders and browsers then wait for the
/// processor, and adapt to it rather than to the network.
const BUSY_LIMIT: f64 = 0.95;

/// One direction of the link at one moment, and what it did in the interval before.
///
/// Sizes are of whole IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The end of the interval, since the start of the run.
    pub time: Timestamp,
    /// `None` if unlimited.
    pub capacity: Option<Bitrate>,
    /// What waits in the queue now.
    pub queued: DataSize,
    /// How long that will take.
    pub queuing_delay: TimeDelta,
    /// Packets that came in the interval.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered: DataSize,
    /// Packets that the loss model took in the interval.
    pub lost_packets: u64,
    /// Packets that the queue dropped in the interval, full or for its management's sake.
    pub dropped_packets: u64,
    /// Packets that arrived in the interval.
    pub delivered_packets: u64,
    /// Bytes that arrived in the interval.
    pub delivered: DataSize,
    /// Mean time that the packets which arrived in the interval had waited; `None` without packets.
    pub waited: Option<TimeDelta>,
}

/// One direction of the link over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionRecord {
    /// One each [`SAMPLE_INTERVAL`], the first at the end of the first interval.
    pub samples: Vec<Sample>,
    /// Totals since the start of the run.
    pub counters: Counters,
}

/// An emulated run, from its start to its stop.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// From host A to host B.
    pub up: DirectionRecord,
    /// From host B to host A.
    pub down: DirectionRecord,
    /// How late packets were released.
    pub lateness: Lateness,
    /// Whether the emulator ran before all other programs (SCHED_FIFO).
    pub real_time: bool,
    /// Share of the machine's processor time that was busy; `None` where the system does not tell.
    pub cpu_busy: Option<f64>,
    /// Packets that were not from one host to the other in IPv4; the emulator drops them.
    pub foreign_packets: u64,
    /// Packets that the receiving host did not take.
    pub refused_packets: u64,
}

/// Why a run may say more about this machine than about the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bent {
    /// Packets were released too late; this is the 99th percentile.
    Lateness(Duration),
    /// The processors were busy for this share of the time.
    Cpu(f64),
}

impl fmt::Display for Bent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lateness(p99) => write!(
                f,
                "1 % of the packets came {:.1} ms late or later (limit {} ms)",
                p99.as_secs_f64() * 1e3,
                LATENESS_LIMIT.as_millis()
            ),
            Self::Cpu(share) => write!(
                f,
                "the processors were busy for {:.0} % of the time (limit {:.0} %)",
                share * 100.0,
                BUSY_LIMIT * 100.0
            ),
        }
    }
}

impl Emulation {
    /// What bends the result; empty for a run that can be trusted.
    pub fn bent(&self) -> Vec<Bent> {
        let late = self.lateness.quantile(0.99).filter(|p99| *p99 > LATENESS_LIMIT);
        let busy = self.cpu_busy.filter(|share| *share > BUSY_LIMIT);
        late.map(Bent::Lateness).into_iter().chain(busy.map(Bent::Cpu)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(late: &[u64], cpu_busy: Option<f64>) -> Emulation {
        let mut lateness = Lateness::default();
        late.iter().for_each(|us| lateness.record(Duration::from_micros(*us)));
        Emulation {
            up: DirectionRecord::default(),
            down: DirectionRecord::default(),
            lateness,
            real_time: true,
            cpu_busy,
            foreign_packets: 0,
            refused_packets: 0,
        }
    }

    #[test]
    fn a_run_is_bent_by_late_packets_or_by_busy_processors() {
        assert_eq!(run(&[100; 100], Some(0.95)).bent(), []);
        assert_eq!(run(&[], None).bent(), []);
        let bent = run(&[3_000; 100], Some(0.97)).bent();
        let text: Vec<String> = bent.iter().map(Bent::to_string).collect();
        assert_eq!(
            text,
            [
                "1 % of the packets came 3.0 ms late or later (limit 1 ms)",
                "the processors were busy for 97 % of the time (limit 95 %)",
            ]
        );
    }

    #[test]
    fn one_late_packet_in_a_hundred_does_not_bend_a_run() {
        let mut late = [100; 100];
        late[7] = 18_000;
        assert_eq!(run(&late, None).bent(), []);
    }
}
