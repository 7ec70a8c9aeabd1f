//! What people noticed of a call, in their words.

use crate::found::{Evidence, Found, RuleName};
use crate::read::dump::StreamDirection;

/// What people noticed, if a finding is of that kind.
pub(super) fn noticed(found: &Found) -> Option<String> {
    let is_audio = found.subject.stream().is_some_and(|stream| stream.is_audio);
    let sent = if is_audio { "your sound" } else { "your picture" };
    let received =
        if is_audio { "the sound of the other side" } else { "the other side's picture" };
    let text = match &found.evidence {
        Evidence::ConnectionFailed(_) => "the connection broke off".into(),
        Evidence::NeverConnected(_) => "no connection came about".into(),
        Evidence::Interruption => format!("everything stopped for {}", seconds(found.seconds())),
        Evidence::Refused(refusal) if refusal.is_of_device() => {
            "camera or microphone could not be used".into()
        }
        Evidence::Freeze { worst, all } => {
            let all = all.unwrap_or(*worst);
            let count = match all.count {
                1 => "once".into(),
                2 => "twice".into(),
                more => format!("{more} times"),
            };
            format!("the picture stood still {count} ({} in all)", seconds(all.seconds))
        }
        Evidence::Concealment(_) => "the sound had gaps".into(),
        Evidence::Late { .. } => format!("{received} came late"),
        Evidence::NotDecoded { .. } => "the other side's picture stayed black".into(),
        Evidence::Stall { .. } | Evidence::StoodStill { .. } => {
            format!("nothing arrived for {:.0} s", found.seconds().max(1.0))
        }
        Evidence::StreamEnds { .. } | Evidence::NothingReceived { .. } => {
            format!("{received} was missing")
        }
        Evidence::OneWay { nothing_sent: true, .. } => "the other side could not hear you".into(),
        Evidence::OneWay { nothing_sent: false, .. } => "you could not hear the other side".into(),
        Evidence::SilentSound => "the other side could not be heard".into(),
        Evidence::NotSent | Evidence::SilentSource => format!("{sent} did not reach anybody"),
        Evidence::NotEncoded { .. } => "the others did not see you".into(),
        _ => return None,
    };
    Some(text)
}

/// What people may have noticed of something that need not harm a call.
pub(super) fn perhaps_noticed(found: &Found) -> &'static str {
    let is_of_path = matches!(found.rule(), RuleName::Loss | RuleName::Capacity);
    let Some(stream) = found.subject.stream() else { return "the call was not at its best" };
    let is_sent = stream.direction == StreamDirection::Sent;
    match (is_of_path, is_sent, stream.is_audio) {
        (true, true, true) => "the others heard you badly",
        (true, true, false) => "the others saw you badly",
        (true, false, true) => "you may have heard the others badly",
        (true, false, false) => "you may have seen the others badly",
        (false, true, false) if matches!(found.evidence, Evidence::Processor { .. }) => {
            "the others may have seen you in jerks"
        }
        _ => "the call was not at its best",
    }
}

/// Whether the other side notices it: what was sent came late or not at all.
pub(super) fn disturbs_others(found: &Found) -> bool {
    let is_of_path = matches!(found.rule(), RuleName::Loss | RuleName::Capacity);
    is_of_path && found.subject.is_sent()
}

/// Whether a microphone or camera was off, as people may want it.
pub(super) fn is_mute(found: &Found) -> bool {
    matches!(
        found.evidence,
        Evidence::NotSent
            | Evidence::SilentSource
            | Evidence::SilentSound
            | Evidence::NothingReceived { is_to_end: false }
    )
}

/// `5 s`, or that it was less than one.
fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => "less than a second".into(),
        long => format!("{long:.0} s"),
    }
}
