//! The result of a run: its calls, their participants, and the load traffic.

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{Emulation, LoadReport};
use weir_record::calls::derive::{self, Interval, TimedReport};
use weir_record::calls::stats::{CandidatePair, OutboundRtp, StatsReport};

use crate::measure::capture::HostCapture;
use crate::measure::quality::scoring::Pictures;
use crate::measure::quality::sighting::TimedSighting;
use crate::measure::sound::recording::Sounds;
use crate::message::{SetupTimes, TargetChange};
use crate::peers::ims::SipMessage;
use crate::run::usage::Usage;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// All calls by number, including failed ones.
    pub calls: Vec<CallResult>,
    /// Program and resource usage of each participant, in the order of the configuration.
    pub participants: Vec<PlayerOutcome>,
    /// The emulator's log. Time zero is when all calls that begin then could send media or had
    /// failed. There are no samples after the duration, but the totals include the end of the
    /// calls. Empty if no call was set up.
    pub emulation: Emulation,
    /// The report of each load that was completed.
    pub loads: Vec<LoadOutcome>,
    /// Packets sent and received by each host, in the order of the hosts. Empty if no call was set
    /// up.
    pub captures: Vec<HostCapture>,
    /// Packets missing in the captures because this machine was too busy.
    pub missed_packets: u64,
    /// Version of the relay, as the program reports it.
    pub relay: Option<String>,
    /// The version of the kernel.
    pub kernel: String,
    /// Problems during the run, one line each.
    pub notes: Vec<String>,
    /// When the user ended the run, if that was before the scenario's end.
    pub ended: Option<TimeDelta>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// Its number in the scenario.
    pub number: usize,
    /// Peer a, peer b.
    pub peers: [PeerOutcome; 2],
    /// Why the call could not be set up or ended early, in one line.
    pub failure: Option<String>,
}

/// The observations of one peer of a call.
#[derive(Clone, Debug)]
pub struct PeerOutcome {
    /// Times of its set-up; `None` if it was not connected.
    pub setup: Option<SetupTimes>,
    /// When it displayed the first frame of the other peer, in ms since its page was opened; `None`
    /// at a peer that only sends.
    pub first_frame_ms: Option<f64>,
    /// The path of its media, checked to be the emulated path.
    pub pair: Option<CandidatePair>,
    /// Its reports in scenario time.
    pub reports: Vec<TimedReport>,
    /// The changes of its controller's target with their scenario time, in order. Browsers do not
    /// tell theirs.
    pub targets: Vec<(Timestamp, TargetChange)>,
    /// The frames that passed its page, in order for each place. None unless the run asked for
    /// them.
    pub frames: Vec<TimedSighting>,
    /// Scores of some pictures that it received.
    pub pictures: Pictures,
    /// What it said and heard. Empty unless the run asked for it.
    pub sounds: Sounds,
    /// Its messages of SIP, in order, if the signalling went through an IMS.
    pub signalling: Vec<SipMessage>,
}

impl PeerOutcome {
    /// Values of each interval that ends within the scenario's time. The first interval begins
    /// shortly before that, with the page's first report after it is connected.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = derive::intervals(&self.reports);
        intervals.retain(|interval| interval.end > Timestamp::ZERO);
        intervals
    }

    /// The last report of its sent video.
    pub(crate) fn last_sent(&self) -> Option<&OutboundRtp> {
        self.last(|report| report.outbound.as_deref())
    }

    /// A part of the last report that contains it.
    pub(crate) fn last<T>(&self, part: fn(&StatsReport) -> Option<&T>) -> Option<&T> {
        self.reports.iter().rev().find_map(|timed| part(&timed.report))
    }
}

/// The program of a participant.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayerOutcome {
    /// Name and version, as the program reports them.
    pub version: String,
    /// Processor time and memory during the scenario; `None` if it did not begin.
    pub usage: Option<Usage>,
}

/// Reports of the two ends of iperf3 about a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// The index of the flow in the scenario.
    pub flow: usize,
    /// Bytes sent and received since it began.
    pub report: LoadReport,
}
