//! Which feedback drives a controller.

use weir::controller::Controller;
use weir::feedback::{FeedbackReport, LossCounts};
use weir::media_sender::MediaSender;
use weir::units::{TimeDelta, Timestamp};
use weir_wire::report::ReportBlock;

use crate::message::{FeedbackKind, Message};

/// After this time without the kind that counted, a less precise one counts: the two ends have
/// agreed on another format. It is the time after which a participant that sends no reports has
/// left: five report intervals [RFC3550 §6.3.5].
const SILENCE: TimeDelta = TimeDelta::from_secs(5);

/// Decides which feedback drives a controller, and passes it on.
///
/// A receiver may send several kinds at once, each by its own clock. If all of them counted, the
/// controller would have to measure its base delay again at each change. The most precise kind so
/// far counts, until it has been silent for 5 s. Receiver reports that do not count still give
/// round-trip times.
///
/// [`Sender`](crate::Sender) has one. A host with its own [`MediaSender`] passes each message to
/// [`on_message`](Self::on_message).
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedbackInput {
    only: Option<FeedbackKind>,
    /// The kind that counts, and when it last arrived.
    newest: Option<(FeedbackKind, Timestamp)>,
}

impl FeedbackInput {
    /// Only this kind counts; with `None` the most precise kind that arrives.
    pub const fn new(only: Option<FeedbackKind>) -> Self {
        Self { only, newest: None }
    }

    /// The kind that counts; `None` before the first feedback.
    pub fn kind(&self) -> Option<FeedbackKind> {
        self.newest.map(|(kind, _)| kind)
    }

    /// Whether feedback of this kind, which arrived now, counts.
    pub fn accepts(&mut self, now: Timestamp, kind: FeedbackKind) -> bool {
        let is_accepted = match (self.only, self.newest) {
            (Some(only), _) => kind == only,
            (None, Some((newest, at))) => kind >= newest || now - at > SILENCE,
            (None, None) => true,
        };
        if is_accepted {
            self.newest = Some((kind, now));
        }
        is_accepted
    }

    /// Passes a message to the sender: feedback that counts, a round-trip time, or the receiver's
    /// limit. `round_trip_time` computes the round-trip time of a report block: see
    /// [`SenderReports::round_trip_time`](crate::SenderReports::round_trip_time).
    ///
    /// Returns how many packets the feedback reported; `None` if it did not count or had no news.
    pub fn on_message<M, C: Controller>(
        &mut self,
        now: Timestamp,
        message: &Message<'_>,
        sender: &mut MediaSender<M, C>,
        round_trip_time: impl Fn(&ReportBlock) -> Option<TimeDelta>,
    ) -> Option<LossCounts> {
        let Some(kind) = message.kind() else {
            sender.on_receiver_limit(now, message.limit());
            return None;
        };
        let rtt = match message {
            Message::Report(view) => {
                view.blocks().filter_map(|block| round_trip_time(&block)).min()
            }
            _ => None,
        };
        if self.accepts(now, kind) {
            let counts = sender
                .on_feedback_with(
                    now,
                    |sent| message.join_with(now, sent, round_trip_time),
                    |_| rtt,
                )
                .map(FeedbackReport::loss_counts);
            if counts.is_some() {
                return counts;
            }
        }
        if let Some(rtt) = rtt {
            sender.on_round_trip_time(now, rtt);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::FeedbackKind::{Ccfb, ReceiverReports, Twcc};
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_most_precise_kind_counts() {
        let mut input = FeedbackInput::new(None);
        assert!(input.accepts(at(0), ReceiverReports));
        assert!(input.accepts(at(50), Twcc));
        assert!(!input.accepts(at(60), ReceiverReports));
        assert!(input.accepts(at(70), Ccfb));
        assert!(!input.accepts(at(80), Twcc));
        assert_eq!(input.kind(), Some(Ccfb));
    }

    #[test]
    fn after_five_seconds_of_silence_a_less_precise_kind_counts() {
        let mut input = FeedbackInput::new(None);
        assert!(input.accepts(at(0), Ccfb));
        assert!(!input.accepts(at(5_000), Twcc));
        assert!(input.accepts(at(5_001), Twcc));
        assert_eq!(input.kind(), Some(Twcc));
    }

    #[test]
    fn a_configured_kind_is_the_only_one() {
        let mut input = FeedbackInput::new(Some(Twcc));
        assert!(!input.accepts(at(0), Ccfb));
        assert!(!input.accepts(at(60_000), ReceiverReports));
        assert!(input.accepts(at(60_001), Twcc));
    }
}
