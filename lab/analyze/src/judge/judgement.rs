//! The judgement on a call: what each finding means for it, and what comes of all together.
//!
//! The verdict, the ticket, the JSON, the page and a fleet's row are told from it alone, so that
//! none of them contradicts another.

use std::fmt;

use crate::found::{Evidence, Found, Meaning, RuleName, Source, Subject};
use crate::judge::call::Call;
use crate::judge::rules::LOSS;
use crate::measure::good_time::GoodTime;
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream};
use crate::read::dump::StreamDirection;

/// A call of which less is known, in s, cannot be judged.
const LEAST_S: f64 = 5.0;
/// Received video that was good for less of its time was not good.
const GOOD: f64 = 0.9;
/// Round trips in ms that people who talk notice.
const NOTICED_RTT_MS: f64 = 200.0;
/// A sound below this level is digital silence.
const SILENCE: f64 = 1e-5;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A connection failed, or was never there.
    NoConnection,
    /// Something made it worse, or people saw or heard that it was.
    Limited,
    /// Something was off, as people may have wanted it: a microphone, a camera.
    SwitchedOff,
    /// It has neither video nor audio.
    NoMedia,
    /// Too little of it is known.
    TooShort,
    /// Only means over the whole call are known, and these show no limit.
    MeansOnly,
    /// Received video was not good, and no rule says why.
    NotGood,
    /// Nothing limited it.
    Good,
}

impl Outcome {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoConnection => "no_connection",
            Self::Limited => "limited",
            Self::SwitchedOff => "switched_off",
            Self::NoMedia => "no_media",
            Self::TooShort => "too_short",
            Self::MeansOnly => "means_only",
            Self::NotGood => "not_good",
            Self::Good => "good",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The judgement on a call.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    /// What was found, the largest effect on the call first.
    pub found: Vec<Found>,
    pub good_time: GoodTime,
    pub outcome: Outcome,
}

impl Judgement {
    /// Judges a call by what was found of it.
    pub fn of(call: &Call<'_>, mut found: Vec<Found>, good_time: GoodTime) -> Self {
        let mut streams: Vec<&SampledStream> = Vec::new();
        streams.extend(call.streams());
        settle(&mut found, &streams);
        if !found.iter().any(|it| it.meaning != Meaning::Remark) {
            found.extend(spread_loss(call));
        }
        found.sort_by(|a, b| b.effect().total_cmp(&a.effect()));
        let outcome = outcome(call, &found, &good_time);
        Self { found, good_time, outcome }
    }

    /// Whether people had a worse call than they could have had.
    pub fn is_bad(&self) -> bool {
        matches!(self.outcome, Outcome::NoConnection | Outcome::Limited | Outcome::NotGood)
    }
}

/// Says what each finding means beside the others, and beside the streams.
pub(crate) fn settle(found: &mut [Found], streams: &[&SampledStream]) {
    let failed = found.iter().any(|it| it.meaning == Meaning::NoCall);
    for it in found {
        let explains_failure = match &it.evidence {
            Evidence::ServerError(_) => true,
            Evidence::Refused(refusal) => refusal.is_of_candidate(),
            _ => false,
        };
        if failed && explains_failure {
            it.meaning = Meaning::Cause;
        } else if is_made_up_for(it, streams) {
            it.meaning = Meaning::Remark;
        }
    }
}

/// Whether another stream of the same kind and direction has for half of the time what this one
/// lacks.
fn is_made_up_for(found: &Found, streams: &[&SampledStream]) -> bool {
    let has: fn(&Sample) -> bool = match found.rule() {
        // Of the layers of simulcast, some are left out.
        RuleName::Source if matches!(found.evidence, Evidence::Source(Source::Deactivated)) => {
            has_packets
        }
        RuleName::NotSent | RuleName::NothingReceived => has_packets,
        RuleName::SilentSource | RuleName::SilentSound => has_sound,
        RuleName::NotEncoded | RuleName::NotDecoded => has_frames,
        _ => return false,
    };
    let Some(own) = found.subject.stream() else { return false };
    for stream in streams {
        let is_same = stream.direction == own.direction && stream.id.is_audio == own.is_audio;
        if !is_same || stream.id == *own {
            continue;
        }
        let mut seconds = 0.0;
        for sample in &stream.samples {
            let is_within = found.from_s < sample.end_s && sample.start_s < found.to_s;
            if is_within && has(sample) {
                seconds += sample.end_s - sample.start_s;
            }
        }
        if 2.0 * seconds >= found.seconds() {
            return true;
        }
    }
    false
}

fn has_packets(sample: &Sample) -> bool {
    sample.packets > 0
}

fn has_frames(sample: &Sample) -> bool {
    sample.frame_rate.is_some_and(|rate| rate > 0.0)
}

fn has_sound(sample: &Sample) -> bool {
    sample.packets > 0 && sample.sound.is_some_and(|level| level > SILENCE)
}

/// A loss of a whole direction that no part of it shows, by the stream that lost most.
fn spread_loss(call: &Call<'_>) -> Option<Found> {
    if is_too_short(call) || has_means_only(call) {
        return None;
    }
    for direction in [StreamDirection::Sent, StreamDirection::Received] {
        if call.loss(direction).is_none_or(|loss| loss < LOSS) {
            continue;
        }
        let own = call.streams().filter(|it| it.direction == direction);
        let worst = own.max_by(|a, b| lost(&a.samples).total_cmp(&lost(&b.samples)))?;
        let (first, last) = worst.samples.first().zip(worst.samples.last())?;
        let evidence = Evidence::Loss { lost: losses::of(&worst.samples), rtt_ms: None };
        let subject = Subject::Stream(worst.id.clone());
        return Some(Found::new(subject, (first.start_s, last.end_s), evidence));
    }
    None
}

/// Packets that were lost.
fn lost(samples: &[Sample]) -> f64 {
    samples.iter().map(|it| it.loss.unwrap_or(0.0) * it.expected).sum()
}

fn outcome(call: &Call<'_>, found: &[Found], good_time: &GoodTime) -> Outcome {
    let mut means: Vec<Meaning> = Vec::new();
    means.extend(found.iter().map(|it| it.meaning));
    if means.contains(&Meaning::NoCall) {
        Outcome::NoConnection
    } else if means.contains(&Meaning::Cause) || means.contains(&Meaning::Effect) {
        Outcome::Limited
    } else if means.contains(&Meaning::Choice) {
        Outcome::SwitchedOff
    } else if call.dump.connections.is_empty() {
        Outcome::NoMedia
    } else if is_too_short(call) {
        Outcome::TooShort
    } else if has_means_only(call) {
        Outcome::MeansOnly
    } else if good_time.ratios().is_some_and(|[good, ..]| good < GOOD) {
        Outcome::NotGood
    } else {
        Outcome::Good
    }
}

fn is_too_short(call: &Call<'_>) -> bool {
    call.media_s() < LEAST_S
}

fn has_means_only(call: &Call<'_>) -> bool {
    call.streams().all(|stream| stream.samples.len() <= 1)
}

/// The smallest round-trip time in ms, if people who talk notice it.
pub(crate) fn noticed_rtt_ms(call: &Call<'_>) -> Option<f64> {
    call.base_rtt_ms().filter(|ms| *ms >= NOTICED_RTT_MS)
}
