//! What a sender's congestion control logged about itself: states, probes, and whether the
//! application gives it enough to send.

use weir::units::{Bitrate, TimeDelta, Timestamp};

use super::PacketLog;

/// A change of the estimate follows its reason within this time.
const FOLLOWS: TimeDelta = TimeDelta::from_millis(600);

/// What the detector of delay says [GCC §5.4].
///
/// [GCC §5.4]: https://datatracker.ietf.org/doc/html/draft-ietf-rmcat-gcc-02#section-5.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detector {
    Normal,
    Underuse,
    Overuse,
}

impl Detector {
    /// By its number in an event log.
    pub fn numbered(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Normal),
            2 => Some(Self::Underuse),
            3 => Some(Self::Overuse),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Underuse => "underuse",
            Self::Overuse => "overuse",
        }
    }
}

/// An event of the congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Control {
    /// The detector's state.
    Detector(Detector),
    /// A probe of this rate began.
    Probe(Bitrate),
    /// A probe reached this rate.
    Probed(Bitrate),
    /// A probe had no result.
    ProbeFailed,
    /// Whether the application gives less than may be sent.
    ApplicationLimited(bool),
}

/// What the congestion control did within a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Controlled {
    /// How often the detector began to say overuse.
    pub overuses: usize,
    /// The largest rate that a probe reached.
    pub probed: Option<Bitrate>,
    /// Whether the application gave less than might be sent, at the end.
    pub is_application_limited: bool,
}

impl PacketLog {
    /// What the congestion control did after the first time, and until the second one; `None` if
    /// the log does not say.
    pub(crate) fn controlled(&self, from: Timestamp, to: Timestamp) -> Option<Controlled> {
        if self.control.is_empty() {
            return None;
        }
        let [first, end] =
            [from, to].map(|time| self.control.partition_point(|(at, _)| *at <= time));
        let limited = self.control[..end].iter().rev().find_map(|(_, control)| match control {
            Control::ApplicationLimited(is_limited) => Some(*is_limited),
            _ => None,
        });
        let mut controlled = Controlled {
            is_application_limited: limited.unwrap_or(false),
            ..Controlled::default()
        };
        let mut last = self.detector(first);
        for (_, control) in &self.control[first..end.max(first)] {
            match *control {
                Control::Detector(detector) => {
                    let begins = detector == Detector::Overuse && last != Some(Detector::Overuse);
                    controlled.overuses += usize::from(begins);
                    last = Some(detector);
                }
                Control::Probed(rate) => controlled.probed = controlled.probed.max(Some(rate)),
                Control::Probe(_) | Control::ProbeFailed | Control::ApplicationLimited(_) => {}
            }
        }
        Some(controlled)
    }

    /// Why the estimate changed up to this time, and the detector's state, in words; `None` if the
    /// log does not say.
    pub(crate) fn why(&self, time: Timestamp) -> Option<(String, &'static str)> {
        if self.control.is_empty() {
            return None;
        }
        let end = self.control.partition_point(|(at, _)| *at <= time);
        let recent = self.control[..end].iter().rev().take_while(|(at, _)| time - *at <= FOLLOWS);
        let reason = recent.into_iter().find_map(|(_, control)| match *control {
            Control::Detector(Detector::Overuse) => Some("the delay detector said overuse".into()),
            Control::Probed(rate) => {
                Some(format!("a probe reached {:.0} kbit/s", rate.as_kbps_f64()))
            }
            Control::ProbeFailed => Some("a probe had no result".into()),
            Control::Detector(_) | Control::Probe(_) | Control::ApplicationLimited(_) => None,
        });
        let reason =
            reason.unwrap_or_else(|| "neither overuse nor a probe before it in the log".into());
        Some((reason, self.detector(end).map_or("unknown", Detector::name)))
    }

    /// The detector's state before the event with this index.
    fn detector(&self, end: usize) -> Option<Detector> {
        self.control[..end].iter().rev().find_map(|(_, control)| match control {
            Control::Detector(detector) => Some(*detector),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overuse_counts_once_until_it_ends() {
        use Control::{ApplicationLimited, Detector as State, Probed};
        let at = Timestamp::from_millis;
        let control = vec![
            (at(10), ApplicationLimited(true)),
            (at(20), State(Detector::Overuse)),
            (at(30), State(Detector::Overuse)),
            (at(40), State(Detector::Normal)),
            (at(50), State(Detector::Overuse)),
            (at(2_000), Probed(Bitrate::from_kbps(700))),
        ];
        let log = PacketLog { control, ..PacketLog::default() };
        let all = log.controlled(at(0), at(5_000)).unwrap();
        assert_eq!((all.overuses, all.is_application_limited), (2, true));
        assert_eq!(all.probed, Some(Bitrate::from_kbps(700)));
        // It went on from before.
        assert_eq!(log.controlled(at(25), at(35)).unwrap().overuses, 0);
        assert_eq!(log.why(at(60)).unwrap(), ("the delay detector said overuse".into(), "overuse"));
        assert_eq!(log.why(at(2_100)).unwrap().0, "a probe reached 700 kbit/s");
        assert!(log.why(at(9_000)).unwrap().0.contains("neither"));
        assert_eq!(PacketLog::default().controlled(at(0), at(1)), None);
    }
}
