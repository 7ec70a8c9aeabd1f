//! The answer for a customer's ticket: what was noticed, where it comes from, what to try. Three
//! sentences without terms of the field.

use crate::found::{Evidence, Found, Interface, Meaning, Part, Refusal, RuleName, Source};
use crate::judge::call::Call;
use crate::judge::judgement::{self, Judgement, Outcome};
use crate::judge::rules::LOSS;
use crate::measure::connectivity;
use crate::read::dump::StreamDirection;
use crate::read::time_of_day::{clock, date_and_clock};
use crate::tell::advice::advice;
use crate::tell::noticed::{disturbs_others, is_mute, noticed, perhaps_noticed};
use crate::tell::says::{mbps, percent};

/// The ticket of a call.
pub(crate) fn ticket(call: &Call<'_>, judgement: &Judgement) -> String {
    let facts = Facts {
        duration_s: call.network().duration_s,
        zero_ms: call.dump.zero_ms,
        noticed_rtt_ms: judgement::noticed_rtt_ms(call),
        interfaces: interfaces(call),
        hidden: connectivity::hidden(&call.dump.events),
    };
    of_judgement(judgement, &facts)
}

/// What a ticket says besides what was found.
#[derive(Default)]
struct Facts {
    duration_s: f64,
    zero_ms: Option<f64>,
    /// Round trips that people who talk notice.
    noticed_rtt_ms: Option<f64>,
    interfaces: Vec<Used>,
    /// When the page was behind another one, in s.
    hidden: Vec<(f64, f64)>,
}

/// The interface of a connection from a time in s on.
struct Used {
    connection: String,
    from_s: f64,
    interface: Interface,
}

fn interfaces(call: &Call<'_>) -> Vec<Used> {
    let mut all = Vec::new();
    for connection in &call.dump.connections {
        for (from_s, interface) in connectivity::interfaces(connection) {
            all.push(Used { connection: connection.name.clone(), from_s, interface });
        }
    }
    all
}

impl Facts {
    /// The interface of the device when something was found. Most devices have one.
    fn interface(&self, found: &Found) -> Option<Interface> {
        let mut at = None;
        for used in &self.interfaces {
            let is_other = found.subject.connection().is_some_and(|it| it != used.connection);
            if !is_other && (at.is_none() || used.from_s <= found.from_s) {
                at = Some(used.interface);
            }
        }
        if at.is_some() {
            return at;
        }
        let last = self.interfaces.last()?;
        Some(last.interface)
    }

    /// Whether what the page drew itself was missing while nobody could see the page.
    fn was_hidden(&self, found: &Found) -> bool {
        let is_drawn = matches!(
            found.evidence,
            Evidence::Source(Source::Little { .. } | Source::Easy { .. } | Source::Few { .. })
        );
        let mut seconds = 0.0;
        for (from, to) in &self.hidden {
            seconds += (to.min(found.to_s) - from.max(found.from_s)).max(0.0);
        }
        is_drawn && 2.0 * seconds > found.seconds()
    }

    /// `In the call of 2026-11-23 04:32:47 UTC (17 s)`
    fn begin(&self) -> String {
        let length = length(self.duration_s);
        match self.zero_ms.and_then(date_and_clock) {
            Some(begin) => format!("In the call of {begin}{length}"),
            None => format!("In this call{length}"),
        }
    }
}

fn of_judgement(judgement: &Judgement, facts: &Facts) -> String {
    let begin = facts.begin();
    match judgement.outcome {
        Outcome::NoConnection | Outcome::Limited | Outcome::SwitchedOff => {
            harm(&judgement.found, facts)
        }
        Outcome::NoMedia => format!(
            "{begin}, there was neither picture nor sound to judge. {ASK}{}",
            remarks(&judgement.found, facts)
        ),
        Outcome::TooShort => format!(
            "{begin}, too little is known to say what disturbed it. Please send us a longer \
             recording of a call, and tell us what was bad."
        ),
        Outcome::NotGood => {
            let good = &judgement.good_time;
            let bad = 100.0 * (1.0 - good.good_s / good.watched_s().max(f64::MIN_POSITIVE));
            format!(
                "{begin}, the other side's picture stood still or came late for {bad:.0} % of the \
                 time. Nothing in the network explains it. Please restart the browser; if it comes \
                 back, tell us."
            )
        }
        Outcome::MeansOnly | Outcome::Good => format!(
            "{begin}, nothing was found that disturbed it. {ASK}{}",
            remarks(&judgement.found, facts)
        ),
    }
}

/// What is asked of someone in whose call nothing was found.
const ASK: &str = "If something was bad all the same, please tell us what, and at what time.";

const HIDDEN: &str = "The call was behind another tab, where the app drew no picture.";
const IN_FRONT: &str = "Please keep the call in front, or in a window of its own.";

/// What did no harm that is known, and may yet explain what someone noticed.
fn remarks(found: &[Found], facts: &Facts) -> String {
    let mut sentences = String::new();
    if let Some(rtt_ms) = facts.noticed_rtt_ms {
        sentences += &format!(
            " The way to the other side and back took {rtt_ms:.0} ms: people who talk notice that."
        );
    }
    let change = found.iter().find(|it| it.rule() == RuleName::PathChange);
    if let Some(change) = change {
        let when = match at(change.from_s, facts.zero_ms) {
            Some(clock) => format!("At {clock}"),
            None => format!("After {:.0} s", change.from_s),
        };
        sentences += &format!(" {when}, the device changed from one way or network to another.");
    }
    let error = found.iter().find(|it| it.rule() == RuleName::ServerError);
    if error.is_some() {
        sentences += " A server that helps to connect calls could not be used.";
    }
    let missing = found.iter().find_map(|it| match it.evidence {
        Evidence::LateBegin { missing_s, .. } => Some(missing_s),
        Evidence::Hole { seconds, was_asleep: false } => Some(seconds),
        _ => None,
    });
    if let Some(missing_s) = missing {
        sentences += &format!(" {missing_s:.0} s of the call are not in the file.");
    }
    sentences
}

/// What was noticed, where it comes from, and what to try.
fn harm(found: &[Found], facts: &Facts) -> String {
    let mut told: Vec<&Found> = Vec::new();
    told.extend(found.iter().filter(|it| it.meaning != Meaning::Remark));
    let cause = told.iter().find(|it| is_cause(it));
    // A mute is often wanted, and what else was noticed is not.
    let effect = told.iter().find(|it| noticed(it).is_some() && !is_mute(it));
    let effect = effect.or_else(|| told.iter().find(|it| disturbs_others(it)));
    let effect = effect.or_else(|| told.iter().find(|it| noticed(it).is_some() && cause.is_none()));
    let Some(shown) = effect.or(cause).or(told.first()).copied() else { return facts.begin() };
    let what = match noticed(shown) {
        Some(what) => what,
        None => perhaps_noticed(shown).into(),
    };
    let zero_ms = facts.zero_ms;
    let when = match (at(shown.from_s, zero_ms), at(shown.to_s, zero_ms)) {
        _ if shown.rule() == RuleName::NeverConnected => String::new(),
        (Some(from), Some(to)) if from != to => format!(" between {from} and {to}"),
        (Some(from), _) => format!(" at {from}"),
        _ if shown.from_s == shown.to_s => format!(" after {:.0} s", shown.from_s),
        _ => format!(" from {:.0} to {:.0} s", shown.from_s, shown.to_s),
    };
    let worst = if is_worst_of_several(shown) { ", the worst" } else { "" };
    let of_cause = why(&told, shown);
    let interface = facts.interface(of_cause);
    let begin = facts.begin();
    let (reason, advice) = match facts.was_hidden(of_cause) {
        true => (HIDDEN.into(), IN_FRONT.into()),
        false => (reason(of_cause, interface), advice(of_cause, interface)),
    };
    format!("{begin}, {what}{worst}{when}. {reason} {advice}")
}

/// What explains something that was noticed. What someone switched off explains itself.
fn why<'a>(told: &[&'a Found], shown: &'a Found) -> &'a Found {
    if shown.meaning == Meaning::Choice {
        return shown;
    }
    let near = told.iter().find(|it| explains(it, shown));
    let near = near.or_else(|| told.iter().find(|it| may_explain(it, shown)));
    near.copied().unwrap_or(shown)
}

/// Whether it counts over the whole call, but has the time of its worst part.
fn is_worst_of_several(found: &Found) -> bool {
    matches!(
        &found.evidence,
        Evidence::Freeze { worst, all: Some(all) } if (1..all.count).contains(&worst.count)
    )
}

/// Whether it is a cause in the same direction, and at the same time, as what was noticed.
fn explains(found: &Found, effect: &Found) -> bool {
    let is_then = found.from_s < effect.to_s && effect.from_s < found.to_s;
    is_cause(found) && is_then && is_sent(found) == is_sent(effect)
}

/// Whether it is a cause that may reach what was noticed, although the time or the direction is
/// another. What this end gives to send does not disturb what it receives.
fn may_explain(found: &Found, effect: &Found) -> bool {
    let is_of_sender = matches!(found.part(), Part::Application | Part::Controller | Part::Encoder);
    let is_received = is_sent(effect) == Some(false);
    is_cause(found) && !(is_received && is_of_sender && is_sent(found) == Some(true))
}

/// Whether it is of what was sent; `None` if it has no direction.
fn is_sent(found: &Found) -> Option<bool> {
    match &found.evidence {
        Evidence::Capacity(path) => Some(path.is_sent),
        _ => found.subject.stream().map(|stream| stream.direction == StreamDirection::Sent),
    }
}

/// The time of day of a moment in s since the first report.
fn at(seconds: f64, zero_ms: Option<f64>) -> Option<String> {
    clock(zero_ms? + seconds * 1e3)
}

/// Whether it explains what people notice.
fn is_cause(found: &Found) -> bool {
    matches!(found.meaning, Meaning::NoCall | Meaning::Cause)
}

/// ` (45 s)`, ` (12 min)`. Empty if only an instant is known, as of a call that never began.
fn length(seconds: f64) -> String {
    match seconds {
        instant if instant < 0.5 => String::new(),
        short if short < 120.0 => format!(" ({short:.0} s)"),
        long => format!(" ({:.0} min)", long / 60.0),
    }
}

/// Where it comes from, of a device on this interface.
fn reason(found: &Found, interface: Option<Interface>) -> String {
    let of_sent = found.subject.is_sent();
    match &found.evidence {
        Evidence::Capacity(path) => {
            let direction = if path.is_sent { "sending" } else { "receiving" };
            let whose = if path.is_sent { "you sent" } else { "was sent to you" };
            // With losses, what left the sender is not what the path carried.
            match (path.carried, path.lost.filter(|lost| *lost >= LOSS), path.rate_bps) {
                (Some((bps, _)), ..) | (None, None, Some(bps)) => {
                    format!(
                        "The internet connection was full: for {direction} it had {}.",
                        mbps(bps)
                    )
                }
                (None, Some(lost), _) => format!(
                    "The internet connection was full: {} of what {whose} got lost.",
                    percent(Some(lost))
                ),
                (None, None, None) => format!("The internet connection was full for {direction}."),
            }
        }
        Evidence::Bandwidth { .. } => {
            "The browser found too little room for your video on the internet connection.".into()
        }
        Evidence::Loss { lost: Some(lost), .. } | Evidence::RandomLoss { lost } => {
            let whose = if of_sent { "you sent" } else { "was sent to you" };
            format!("On the way {} of what {whose} got lost.", percent(Some(*lost)))
        }
        Evidence::Pauses { .. } | Evidence::Spikes { .. } => radio(interface).into(),
        Evidence::ConnectionFailed(_) | Evidence::Interruption => {
            "The device lost its way to the other side.".into()
        }
        Evidence::NeverConnected(_) | Evidence::NoTurnServer { .. } => {
            "A firewall, a VPN or the network lets no calls through.".into()
        }
        Evidence::PathChange(_) => "The device changed from one network to another.".into(),
        Evidence::Refused(refusal) => refused(refusal).into(),
        Evidence::NotSent => "It was switched off at this end.".into(),
        Evidence::SilentSource => "The microphone gave no sound: it is off, or a wrong one.".into(),
        Evidence::Hole { was_asleep: true, .. } => "The device was asleep.".into(),
        Evidence::Source(Source::Few { .. }) => "The camera gave too few pictures.".into(),
        Evidence::Source(Source::Deactivated) => "The app switched this video off.".into(),
        Evidence::Source(Source::Little { .. } | Source::Easy { .. }) => {
            "The app had little video to send: the camera may be off or covered.".into()
        }
        Evidence::Stall { .. } | Evidence::StoodStill { .. } => {
            "The network between both sides stood still.".into()
        }
        Evidence::Delay { rtt_ms: Some(rtt_ms), .. } => {
            format!("The way to the other side and back took {rtt_ms:.0} ms.")
        }
        Evidence::Concealment(played) if played.lacks_packets() => {
            let lost = percent(played.lost());
            format!("On the way {lost} of the other side's sound got lost.")
        }
        Evidence::FarLoss { .. } => {
            "What the other side sent was damaged before it came here.".into()
        }
        Evidence::NotEncoded { .. } => {
            "The camera gave pictures, but the browser made no video of them.".into()
        }
        Evidence::OneWay { nothing_sent: true, .. } => "No sound was sent from here.".into(),
        Evidence::OneWay { nothing_sent: false, .. } => {
            "The other side sends no sound, or something on the way stops it.".into()
        }
        _ => match found.part() {
            Part::Connection => "The connection itself was disturbed.",
            Part::Network => "The network between both sides was slow.",
            Part::Controller => "The app used less than the network had.",
            Part::Encoder | Part::Processor => "This device was too busy.",
            Part::Application => "The app did not give what it should.",
            Part::FarEnd => "It comes from the other side or its network.",
            Part::Video | Part::Audio => "Nothing in the network explains it.",
        }
        .into(),
    }
}

/// Which radio let nothing through.
fn radio(interface: Option<Interface>) -> &'static str {
    match interface {
        Some(Interface::Wifi) => "The Wi-Fi let nothing through for moments.",
        Some(Interface::Cellular | Interface::Wimax) => {
            "The mobile network let nothing through for moments."
        }
        Some(Interface::Ethernet) => {
            "A radio on the way, beyond this device's cable, let nothing through for moments."
        }
        Some(Interface::Vpn | Interface::Bluetooth) | None => {
            "The radio (Wi-Fi or mobile) let nothing through for moments."
        }
    }
}

/// Why a device could not be used, by the exceptions of getUserMedia (W3C, Media Capture).
fn refused(refusal: &Refusal) -> &'static str {
    match refusal.error.split(':').next().unwrap_or_default() {
        "NotAllowedError" => "The browser or the system does not allow it.",
        "NotReadableError" => "Another program uses it.",
        "NotFoundError" | "OverconstrainedError" => "The device has none that fits.",
        _ => "The browser refused what the app asked for.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::played_audio::PlayedAudio;
    use crate::found::{FullPath, ServerError, StreamId, Subject, Times};
    use crate::measure::good_time::GoodTime;

    fn of(span: (f64, f64), evidence: Evidence) -> Found {
        Found::new(Subject::Connection("6-1".into()), span, evidence)
    }

    fn ticket(found: &[Found], duration_s: f64, zero_ms: Option<f64>) -> String {
        let is_good = found.iter().all(|it| it.meaning == Meaning::Remark);
        let outcome = if is_good { Outcome::Good } else { Outcome::Limited };
        let good_time = GoodTime::default();
        let judgement = Judgement { found: found.to_vec(), good_time, outcome };
        let facts = Facts { duration_s, zero_ms, ..Facts::default() };
        of_judgement(&judgement, &facts)
    }

    fn video(direction: StreamDirection) -> Subject {
        let connection = "6-1".into();
        Subject::Stream(StreamId { connection, direction, is_audio: false, ssrc: 1, rid: None })
    }

    #[test]
    fn a_ticket_says_what_was_noticed_why_and_what_to_try() {
        let full = FullPath {
            is_sent: false,
            rate_bps: None,
            lost: None,
            queue_ms: None,
            estimate_bps: None,
            carried: Some((4e5, None)),
            overflows: false,
        };
        let all = Some(Times { count: 2, seconds: 5.1 });
        let frozen = Evidence::Freeze { worst: Times::default(), all };
        let found = [of((5.0, 13.0), Evidence::Capacity(full)), of((6.0, 11.0), frozen)];
        assert_eq!(
            ticket(&found, 17.0, Some(1_795_408_367_346.0)),
            "In the call of 2026-11-23 04:32:47 UTC (17 s), the picture stood still twice (5 s in \
             all) between 04:32:53 and 04:32:58. The internet connection was full: for \
             receiving it had 0.4 Mbit/s. Please pause downloads and films, and come closer to \
             the router if this is Wi-Fi."
        );
    }

    #[test]
    fn what_this_end_gave_to_send_does_not_explain_what_it_received() {
        let source = Source::Little { rate_bps: None, estimate_bps: None };
        let all = Some(Times { count: 1, seconds: 0.4 });
        let frozen = Evidence::Freeze { worst: Times::default(), all };
        let found = [
            Found::new(video(StreamDirection::Sent), (6.0, 12.0), Evidence::Source(source)),
            Found::new(video(StreamDirection::Received), (11.0, 12.0), frozen),
        ];
        let text = ticket(&found, 16.0, None);
        assert!(text.contains("stood still once"), "{text}");
        assert!(text.contains("Nothing in the network explains it."), "{text}");
        assert!(!text.contains("camera"), "{text}");
    }

    #[test]
    fn a_rate_that_gets_lost_is_not_what_the_path_had() {
        let full = FullPath {
            is_sent: true,
            rate_bps: Some(6e6),
            lost: Some(0.75),
            queue_ms: None,
            estimate_bps: None,
            carried: None,
            overflows: true,
        };
        let text = ticket(&[of((0.0, 16.0), Evidence::Capacity(full))], 16.0, None);
        assert!(text.contains("full: 75.0 % of what you sent got lost."), "{text}");
        let all = Some(Times { count: 1, seconds: 0.2 });
        let short = Evidence::Freeze { worst: Times::default(), all };
        let text = ticket(&[of((11.0, 12.0), short)], 16.0, None);
        assert!(text.contains("stood still once (less than a second in all)"), "{text}");
        let worst = Times { count: 1, seconds: 0.4 };
        let frozen = Evidence::Freeze { worst, all: Some(Times { count: 8, seconds: 3.2 }) };
        let text = ticket(&[of((29.0, 30.0), frozen)], 59.0, None);
        assert!(text.contains("8 times (3 s in all), the worst from 29 to 30 s."), "{text}");
    }

    #[test]
    fn a_camera_that_another_program_uses_is_named_so() {
        for (error, reason) in [
            ("NotReadableError: Could not start video source", "Another program uses it."),
            ("NotAllowedError: Permission denied", "does not allow it."),
            ("NotFoundError: Requested device not found", "has none that fits."),
        ] {
            let refusal = Refusal { method: "getUserMedia".into(), error: error.into() };
            let text = ticket(&[of((0.0, 0.0), Evidence::Refused(refusal))], 60.0, None);
            assert!(text.contains(reason) && text.contains("could not be used"), "{text}");
        }
    }

    #[test]
    fn a_page_that_draws_its_picture_in_front_only_is_asked_to_stay_there() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dumps/hidden-canvas.rtcstats.gz");
        let text = crate::answer(&crate::read(file.as_ref()).unwrap()).ticket;
        assert!(text.contains("behind another tab") && text.contains("in front"), "{text}");
        assert!(!text.contains("camera"), "{text}");
    }

    #[test]
    fn a_ticket_blames_nobody_beyond_the_evidence() {
        let played = PlayedAudio { received: 2_950, missing: 45, ..PlayedAudio::default() };
        for (evidence, what, reason, advice) in [
            (
                Evidence::Concealment(played),
                "the sound had gaps",
                "On the way 1.5 % of the other side's sound got lost.",
                "if this is Wi-Fi, or try another network",
            ),
            (
                Evidence::SilentSound,
                "the other side could not be heard",
                "It comes from the other side or its network.",
                "ask the other side whether it is muted",
            ),
            (
                Evidence::Delay { rtt_ms: Some(412.3), base_ms: None },
                "the call was not at its best",
                "The way to the other side and back took 412 ms.",
                "if this is Wi-Fi, or try another network",
            ),
            (
                Evidence::Source(Source::Little { rate_bps: None, estimate_bps: None }),
                "the call was not at its best",
                "The app had little video to send: the camera may be off or covered.",
                "Please look whether the camera is on",
            ),
            (
                Evidence::NotEncoded { source_rate: Some(30.0) },
                "the others did not see you",
                "The camera gave pictures, but the browser made no video of them.",
                "Please restart the browser",
            ),
            (
                Evidence::OneWay { nothing_sent: true, is_begin: false },
                "the other side could not hear you",
                "No sound was sent from here.",
                "Please switch it on in the call",
            ),
            (
                Evidence::OneWay { nothing_sent: false, is_begin: false },
                "you could not hear the other side",
                "The other side sends no sound, or something on the way stops it.",
                "ask the other side whether it is muted",
            ),
        ] {
            let text = ticket(&[of((0.0, 20.0), evidence)], 20.0, None);
            assert!(text.starts_with(&format!("In this call (20 s), {what}")), "{text}");
            assert!(text.contains(reason) && text.contains(advice), "{text}");
        }
    }

    #[test]
    fn what_did_no_harm_is_said_behind_that_nothing_did() {
        let server = ServerError { url: String::new(), code: None, text: String::new() };
        let text = ticket(&[of((0.0, 0.0), Evidence::ServerError(server))], 20.0, None);
        assert!(text.starts_with("In this call (20 s), nothing was found that"), "{text}");
        assert!(
            text.ends_with("A server that helps to connect calls could not be used."),
            "{text}"
        );
    }

    #[test]
    fn a_call_of_sound_alone_was_not_seen() {
        let lossy = Evidence::Loss { lost: Some(0.1), rtt_ms: None };
        for (direction, is_audio, what) in [
            (StreamDirection::Sent, true, "the others heard you badly"),
            (StreamDirection::Sent, false, "the others saw you badly"),
            (StreamDirection::Received, true, "you may have heard the others badly"),
        ] {
            let mut subject = video(direction);
            if let Subject::Stream(stream) = &mut subject {
                stream.is_audio = is_audio;
            }
            let text = ticket(&[Found::new(subject, (0.0, 20.0), lossy.clone())], 20.0, None);
            assert!(text.contains(what), "{text}");
        }
    }

    #[test]
    fn advice_is_for_the_interface_of_the_time() {
        let used = |connection: &str, from_s, interface| Used {
            connection: connection.into(),
            from_s,
            interface,
        };
        let interfaces = vec![
            used("5-1", 0.0, Interface::Vpn),
            used("6-1", 1.0, Interface::Wifi),
            used("6-1", 30.0, Interface::Ethernet),
        ];
        let facts = Facts { duration_s: 60.0, interfaces, ..Facts::default() };
        let at = |from_s| of((from_s, from_s + 5.0), Evidence::Interruption);
        assert_eq!(facts.interface(&at(0.0)), Some(Interface::Wifi));
        assert_eq!(facts.interface(&at(10.0)), Some(Interface::Wifi));
        assert_eq!(facts.interface(&at(40.0)), Some(Interface::Ethernet));
        let lossy = Evidence::Loss { lost: Some(0.1), rtt_ms: None };
        let text = harm(&[of((40.0, 50.0), lossy)], &facts);
        assert!(text.contains("try another network") && !text.contains("cable"), "{text}");
    }

    #[test]
    fn a_mute_does_not_explain_a_picture_that_stood_still() {
        let frozen = Evidence::Freeze { worst: Times { count: 1, seconds: 2.0 }, all: None };
        let found = [of((0.0, 50.0), Evidence::NotSent), of((20.0, 22.0), frozen)];
        let text = ticket(&found, 50.0, None);
        assert!(text.contains("stood still once") && !text.contains("switched off"), "{text}");
        let text = ticket(&found[..1], 50.0, None);
        assert!(text.contains("did not reach anybody") && text.contains("switched off"), "{text}");
    }

    #[test]
    fn a_call_without_findings_asks_what_was_bad() {
        let text = ticket(&[], 600.0, None);
        assert!(text.starts_with("In this call (10 min), nothing was found"), "{text}");
        let text = ticket(&[], 0.0, None);
        assert!(text.starts_with("In this call, nothing was found"), "{text}");
    }
}
