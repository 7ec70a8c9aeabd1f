//! What came of a run: its calls, what took part in them, and the loads beside them.

use weir::units::Timestamp;
use weir_emu::{Emulation, LoadReport};

use crate::capture::HostCapture;
use crate::derive::{self, Interval, TimedReport};
use crate::message::SetupTimes;
use crate::stats::CandidatePair;
use crate::usage::Usage;

/// A run.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// Every call, by number, those that failed among them.
    pub calls: Vec<CallResult>,
    /// What each participant's program was and used, in the order of the configuration.
    pub participants: Vec<PlayerOutcome>,
    /// What the network did. Time zero is when all calls that begin then could send media, or had
    /// failed; there are no samples beyond the duration, but the totals include the last moments, in
    /// which the calls end. Empty if no call came about.
    pub emulation: Emulation,
    /// What each load told that ran to its end.
    pub loads: Vec<LoadOutcome>,
    /// What each host sent and received, in the order of the hosts. Empty if no call came about.
    pub captures: Vec<HostCapture>,
    /// Packets that a capture missed because this machine was too busy.
    pub missed_packets: u64,
    /// The relay, as it calls itself.
    pub relay: Option<String>,
    /// The version of the kernel.
    pub kernel: String,
    /// What was not as it should be, one line each.
    pub notes: Vec<String>,
}

/// A call and what came of it.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// Its number in the scenario.
    pub number: usize,
    /// Peer a, peer b.
    pub peers: [PeerOutcome; 2],
    /// Why it did not come about or did not last, in one line.
    pub failure: Option<String>,
}

/// What one peer of a call saw.
#[derive(Clone, Debug)]
pub struct PeerOutcome {
    /// The steps of its set-up; `None` if it was not connected.
    pub setup: Option<SetupTimes>,
    /// When it showed the first frame of the other, in ms since its page was opened; `None` at a
    /// peer that only sends.
    pub first_frame_ms: Option<f64>,
    /// The path of its media, which is the emulated one.
    pub pair: Option<CandidatePair>,
    /// Its reports in scenario time.
    pub reports: Vec<TimedReport>,
}

impl PeerOutcome {
    /// The values of each interval that ends within the scenario's time. The first begins a little
    /// before it: with the report that a page makes once it is connected.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = derive::intervals(&self.reports);
        intervals.retain(|interval| interval.end > Timestamp::ZERO);
        intervals
    }
}

/// The program of a participant.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayerOutcome {
    /// Name and version, as it calls itself.
    pub version: String,
    /// Processor time and memory over the scenario's time; `None` if that never began.
    pub usage: Option<Usage>,
}

/// What iperf3's two ends told of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// The index of the flow in the scenario.
    pub flow: usize,
    /// What was sent and received since it began.
    pub report: LoadReport,
}
