//! Feedback of a simulated receiver: `weir-rtcp` at work, in the formats that the scenario plans.

#[cfg(test)]
mod tests;

use weir::feedback::Ecn;
use weir::units::{TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_rtcp::{Feedback, Random, Reporter, ReporterConfig, SenderReports};
use weir_wire::report::SenderInfo;
use weir_wire::rtp::View;

use crate::media::Ssrcs;
use crate::rtp_format::EXTENSION_ID;

/// The formats of a flow's feedback, each from a given time on; TWCC before the first.
pub(crate) type Plan = [(Timestamp, Feedback)];

/// The format at a time, and when it changes next.
fn in_force(plan: &Plan, now: Timestamp) -> (Feedback, Option<Timestamp>) {
    let next = plan.partition_point(|&(from, _)| from <= now);
    let format = next.checked_sub(1).map_or(Feedback::Twcc, |index| plan[index].1);
    (format, plan.get(next).map(|&(from, _)| from))
}

/// A stream of chance as `weir-rtcp` takes it.
fn random(mut chance: Stream) -> Random {
    Box::new(move || chance.uniform())
}

/// The sender reports of a flow; `None` if its feedback never comes to receiver reports, which are all
/// that answers them here. `chance` spreads the reports.
pub(crate) fn sender_reports(
    now: Timestamp,
    plan: &Plan,
    ssrc: u32,
    chance: Stream,
) -> Option<SenderReports> {
    let is_needed = plan.iter().any(|&(_, format)| format == Feedback::ReceiverReports);
    is_needed.then(|| SenderReports::new(now, ssrc, random(chance)))
}

/// A reporter that changes its format when the plan says so.
#[derive(Debug)]
pub(crate) struct PlannedReporter {
    reporter: Reporter,
    plan: Vec<(Timestamp, Feedback)>,
    /// When the format changes next.
    next_change: Option<Timestamp>,
    ssrcs: Ssrcs,
}

impl PlannedReporter {
    /// A reporter that starts now, for the flow with these SSRCs. It sends TWCC and CCFB once an
    /// interval; `chance` spreads its receiver reports.
    pub(crate) fn new(
        now: Timestamp,
        plan: &Plan,
        interval: TimeDelta,
        ssrcs: Ssrcs,
        chance: Stream,
    ) -> Self {
        let (format, next_change) = in_force(plan, now);
        let mut config = ReporterConfig::new(ssrcs.media);
        config.transport_sequence_number = Some(EXTENSION_ID);
        config.interval = interval;
        let reporter = Reporter::new(now, format, config, random(chance));
        Self { reporter, plan: plan.to_vec(), next_change, ssrcs }
    }

    /// When [`PlannedReporter::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Timestamp {
        let next = self.reporter.next_timeout();
        self.next_change.map_or(next, |change| change.min(next))
    }

    /// A packet arrived.
    pub(crate) fn on_packet(&mut self, now: Timestamp, view: &View<'_>, ecn: Ecn) {
        self.reporter.on_packet(now, view, ecn);
    }

    /// A sender report arrived. There is one for all streams of the flow, which share a clock.
    pub(crate) fn on_sender_report(&mut self, now: Timestamp, info: SenderInfo) {
        let Ssrcs { media, rtx, fec } = self.ssrcs;
        for ssrc in [media, rtx, fec] {
            self.reporter.on_sender_report(now, ssrc, info);
        }
    }

    /// Sends the feedback that is due, and changes the format when that is.
    pub(crate) fn on_deadline(&mut self, now: Timestamp, send: impl FnMut(&[u8])) {
        if self.next_change.is_none_or(|change| change > now) {
            return self.reporter.on_timeout(now, send);
        }
        let (format, next_change) = in_force(&self.plan, now);
        self.next_change = next_change;
        self.reporter.set_feedback(now, format, send);
    }
}
