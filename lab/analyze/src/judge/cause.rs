//! The causes of a bad call, put together of the rules, so that many calls can be counted.

use std::fmt;

use crate::found::{Evidence, Found, Meaning, RuleName};
use crate::judge::judgement::{Judgement, Outcome};

/// What made a part of a call bad. Effects (freezes, concealment) are no causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The connection failed, was never there, or was interrupted.
    Connection,
    /// The path from this browser was full.
    UplinkCapacity,
    /// The path to this browser was full.
    DownlinkCapacity,
    /// The path from this browser lost packets, and nothing waited.
    UplinkLoss,
    /// The path to this browser lost packets, and nothing waited.
    DownlinkLoss,
    /// A radio cell paused: others had the air, or the signal faded.
    AirTime,
    /// Round trips are long even if nothing waits.
    Delay,
    /// The congestion controller held the rate down: any of its rules.
    Controller,
    /// The encoder kept a picture that was too large.
    Encoder,
    /// The sender's processor was too slow.
    Processor,
    /// The application gave little to send.
    Application,
    /// Who sends what this end receives, or a server between, chose a smaller picture.
    FarEnd,
    /// The video froze or audio was concealed, and no rule says why.
    Unexplained,
}

impl Cause {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 13] = [
        Self::Connection,
        Self::UplinkCapacity,
        Self::DownlinkCapacity,
        Self::UplinkLoss,
        Self::DownlinkLoss,
        Self::AirTime,
        Self::Delay,
        Self::Controller,
        Self::Encoder,
        Self::Processor,
        Self::Application,
        Self::FarEnd,
        Self::Unexplained,
    ];

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::UplinkCapacity => "uplink_capacity",
            Self::DownlinkCapacity => "downlink_capacity",
            Self::UplinkLoss => "uplink_loss",
            Self::DownlinkLoss => "downlink_loss",
            Self::AirTime => "air_time",
            Self::Delay => "delay",
            Self::Controller => "controller",
            Self::Encoder => "encoder",
            Self::Processor => "processor",
            Self::Application => "application",
            Self::FarEnd => "far_end",
            Self::Unexplained => "unexplained",
        }
    }

    /// How much a second of it matters to those in the call, as in the order of findings.
    fn weight(self) -> f64 {
        match self {
            Self::Connection => 10.0,
            Self::UplinkCapacity | Self::DownlinkCapacity | Self::AirTime => 4.0,
            Self::Encoder | Self::Processor => 4.0,
            Self::UplinkLoss | Self::DownlinkLoss | Self::Delay => 3.0,
            Self::Controller | Self::Application | Self::FarEnd => 2.0,
            Self::Unexplained => 1.0,
        }
    }

    /// The cause that a finding names; `None` of effects, of what does no harm, and of what people
    /// may have wanted, such as a microphone that is muted.
    pub(crate) fn of(found: &Found) -> Option<Self> {
        if !matches!(found.meaning, Meaning::NoCall | Meaning::Cause) {
            return None;
        }
        let is_sent = found.subject.is_sent();
        match found.rule() {
            RuleName::ConnectionFailed
            | RuleName::NeverConnected
            | RuleName::NoTurnServer
            | RuleName::ServerError
            | RuleName::Interruption
            | RuleName::Stall => Some(Self::Connection),
            RuleName::Capacity if is_sent => Some(Self::UplinkCapacity),
            RuleName::Capacity => Some(Self::DownlinkCapacity),
            RuleName::Bandwidth => Some(Self::UplinkCapacity),
            RuleName::Loss if is_sent => Some(Self::UplinkLoss),
            RuleName::Loss => Some(Self::DownlinkLoss),
            RuleName::AirTime => Some(Self::AirTime),
            RuleName::Delay => Some(Self::Delay),
            RuleName::Underestimate
            | RuleName::LossRule
            | RuleName::Recovery
            | RuleName::StartUp => Some(Self::Controller),
            RuleName::PictureSize | RuleName::NotEncoded => Some(Self::Encoder),
            RuleName::Processor | RuleName::Decoder => Some(Self::Processor),
            RuleName::Source | RuleName::Hole | RuleName::Refused => Some(Self::Application),
            RuleName::OneWay => match found.evidence {
                Evidence::OneWay { nothing_sent: true, .. } => Some(Self::Application),
                _ => Some(Self::FarEnd),
            },
            RuleName::SmallPicture | RuleName::FarLoss | RuleName::FewFrames => Some(Self::FarEnd),
            RuleName::Restart
            | RuleName::Path
            | RuleName::PathChange
            | RuleName::LateBegin
            | RuleName::NotSent
            | RuleName::SilentSource
            | RuleName::NothingReceived
            | RuleName::StreamEnds
            | RuleName::SilentSound
            | RuleName::NotDecoded
            | RuleName::Late
            | RuleName::Freeze
            | RuleName::Concealment => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The causes of a call, with their seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Causes {
    /// The cause with the most seconds, weighted by what they do to the call.
    pub main: Option<Cause>,
    /// Seconds in which any held.
    pub bad_s: f64,
    /// Seconds of each, in the order of [`Cause::ALL`].
    pub seconds: [f64; Cause::ALL.len()],
}

impl Causes {
    /// Those of a call of this length.
    pub fn of(judgement: &Judgement, duration_s: f64) -> Self {
        let mut all = Vec::new();
        let mut seconds = [0.0; Cause::ALL.len()];
        for (cause, seconds) in Cause::ALL.into_iter().zip(&mut seconds) {
            let mut own = Vec::new();
            for found in judgement.found.iter().filter(|it| Cause::of(it) == Some(cause)) {
                // A connection that is gone is bad until the call ends.
                let is_end = found.meaning == Meaning::NoCall;
                let to_s = if is_end { duration_s.max(found.to_s) } else { found.to_s };
                own.push((found.from_s, to_s.min(duration_s)));
            }
            all.extend(own.iter().copied());
            *seconds = union_s(own);
        }
        let mut causes = Self { main: main(judgement, &seconds), bad_s: union_s(all), seconds };
        if causes.main.is_none() && judgement.is_bad() {
            causes.main = Some(Cause::Unexplained);
            causes.bad_s = unexplained_s(judgement, duration_s);
            causes.seconds[Cause::ALL.len() - 1] = causes.bad_s;
        }
        causes
    }
}

/// The cause with the largest effect. Of what has no length, such as a camera that was refused, the
/// first one.
fn main(judgement: &Judgement, seconds: &[f64; Cause::ALL.len()]) -> Option<Cause> {
    if judgement.outcome == Outcome::NoConnection {
        return Some(Cause::Connection);
    }
    let mut main = None;
    let mut largest = 0.0;
    for (cause, seconds) in Cause::ALL.into_iter().zip(seconds) {
        if seconds * cause.weight() > largest {
            (main, largest) = (Some(cause), seconds * cause.weight());
        }
    }
    main.or_else(|| judgement.found.iter().find_map(Cause::of))
}

/// Seconds in which people saw or heard harm.
fn unexplained_s(judgement: &Judgement, duration_s: f64) -> f64 {
    let mut suffered = Vec::new();
    for found in judgement.found.iter().filter(|it| it.meaning == Meaning::Effect) {
        suffered.push((found.from_s, found.to_s.min(duration_s)));
    }
    if suffered.is_empty() {
        let good = &judgement.good_time;
        return (good.no_picture_s + good.late_s).min(duration_s);
    }
    union_s(suffered)
}

/// Seconds that at least one of the spans covers.
pub(crate) fn union_s(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered_s, mut until_s) = (0.0, f64::NEG_INFINITY);
    for (from_s, to_s) in spans {
        covered_s += (to_s - from_s.max(until_s)).max(0.0);
        until_s = until_s.max(to_s);
    }
    covered_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_two_findings_share_count_once() {
        assert_eq!(union_s(vec![(5.0, 8.0), (0.0, 2.0), (7.0, 9.0), (7.5, 8.5)]), 6.0);
        assert_eq!(union_s(Vec::new()), 0.0);
    }

    #[test]
    fn every_cause_has_its_own_column() {
        let names: std::collections::BTreeSet<&str> = Cause::ALL.map(Cause::name).into();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
