//! What a person hears of a call: how long speech takes from one peer's mouth to the other's ear,
//! and what the receiver made up.
//!
//! ```text
//!   file with speech -> microphone -> encoder -> network -> buffer -> speaker
//!                           |                                 |          |
//!                       recording                         getStats   recording
//!                           +-------- correlation of each second --------+
//! ```
//!
//! Both pages record their tracks. [`Recording`] puts the samples on one clock, `delay` finds
//! what was heard in what was said, and `rows` makes the columns of simulated speech from it.

mod delay;
mod fft;
mod lip_sync;
pub(crate) mod recording;
mod resample;
pub(crate) mod rows;
pub(crate) mod wav;

use std::io;
use std::ops::Range;
use std::path::Path;

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::delays::Delays;
use weir_record::calls::derive::TimedReport;
use weir_record::calls::sound::{Speech, sound_file};
use weir_record::calls::stats::InboundRtp;

use crate::measure::outcome::CallOutcome;
use crate::measure::quality::ReceivedFrames;
use crate::message::Peer;
use crate::plan::{Call, CallConfig, Player};

pub use delay::SpeechSecond;
pub use recording::{Recording, SoundChunk, Sounds, Tap, Track};

/// A change of the delay by this much from one second to the next is a jump.
const JUMP_MS: f64 = 5.0;
/// Records have hundredths of a millisecond.
const DECIMALS: f64 = 100.0;

/// The speech of one peer at the ear of the other.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardSpeech {
    /// Recording of the speaker's microphone.
    pub spoken: Track,
    /// Recording of what was received.
    pub heard: Track,
    /// The delay of each second.
    pub seconds: Vec<SpeechSecond>,
    /// What follows from that.
    pub speech: Speech,
}

/// The speech of all calls; none if the run did not ask for it. `seen` are their pictures.
pub fn heard_speech(
    config: &CallConfig,
    outcome: &CallOutcome,
    seen: &[ReceivedFrames],
) -> Vec<HeardSpeech> {
    let mut heard = Vec::new();
    if !config.quality {
        return heard;
    }
    let length = outcome.ended.unwrap_or(config.duration);
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        for peer in Peer::ALL.into_iter().filter(|peer| call.audio[peer.index()]) {
            let [from, to] = [peer, peer.other()].map(|peer| {
                let participant = call.ends[peer.index()];
                config.participants[participant].name.clone()
            });
            let span = call.span(length);
            let listener = &result.peers[peer.other().index()];
            let spoken = &result.peers[peer.index()].sounds.spoken;
            let track = &listener.sounds.heard;
            let seconds = delay::each_second(spoken, track, span.clone());
            let speech = Speech {
                call: call.number,
                from,
                to,
                ..summary(spoken, &seconds, &listener.reports, &span)
            };
            let (spoken, track) = (spoken.clone(), track.clone());
            heard.push(HeardSpeech { spoken, heard: track, seconds, speech });
        }
    }
    lip_sync::fill(&mut heard, seen);
    heard
}

/// The peers of a call whose microphone has speech. That of a pipeline ticks. Of its sound, as of
/// Firefox's, only what the listener's buffer did is known.
fn speakers(config: &CallConfig, call: &Call) -> Vec<Peer> {
    let mut speakers = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| call.audio[peer.index()]) {
        if matches!(config.participants[call.ends[peer.index()]].player, Player::Browser(_)) {
            speakers.push(peer);
        }
    }
    speakers
}

fn summary(
    spoken: &Track,
    seconds: &[SpeechSecond],
    reports: &[TimedReport],
    span: &Range<Timestamp>,
) -> Speech {
    let gaps = gaps_within(spoken, span);
    let missing = gaps.iter().fold(TimeDelta::ZERO, |sum, gap| sum + (gap.end - gap.start));
    let mut delays: Vec<f64> = Vec::new();
    let (mut jumps, mut largest) = (0, 0.0_f64);
    let mut before = None;
    for second in seconds {
        let Some(ms) = second.delay.map(TimeDelta::as_millis_f64) else { continue };
        let change = before.map_or(0.0, |before: f64| (ms - before).abs());
        jumps += usize::from(change >= JUMP_MS);
        largest = largest.max(change);
        before = Some(ms);
        delays.push(ms);
    }
    let received = received_within(reports, span);
    let totals = received.first().zip(received.last());
    Speech {
        gaps: gaps.len(),
        gaps_ms: rounded(missing.as_millis_f64()),
        mouth_to_ear_ms: Delays::of(delays, DECIMALS),
        jumps,
        largest_jump_ms: rounded(largest),
        buffer_ms: totals.and_then(|(first, last)| rows::buffered(first, last)).map(rounded),
        most_concealed_ms: most_concealed(&received).map(rounded),
        fec_packets: totals.and_then(|(a, b)| rows::grown(a, b, |it| it.fec_packets_received)),
        fec_discarded: totals.and_then(|(a, b)| rows::grown(a, b, |it| it.fec_packets_discarded)),
        ..Speech::default()
    }
}

fn rounded(value: f64) -> f64 {
    (value * DECIMALS).round() / DECIMALS
}

/// Gaps in a recording that begin in this time.
fn gaps_within<'a>(track: &'a Track, span: &Range<Timestamp>) -> Vec<&'a Range<Timestamp>> {
    track.gaps.iter().filter(|gap| span.contains(&gap.start)).collect()
}

fn received_within<'a>(reports: &'a [TimedReport], span: &Range<Timestamp>) -> Vec<&'a InboundRtp> {
    let mut received = Vec::new();
    for timed in reports.iter().filter(|timed| span.contains(&timed.time)) {
        received.extend(timed.report.audio_inbound.as_deref());
    }
    received
}

fn most_concealed(received: &[&InboundRtp]) -> Option<f64> {
    let pairs = received.windows(2);
    let times = pairs.filter_map(|pair| {
        let samples = rows::grown(pair[0], pair[1], |it| it.concealed_samples)?;
        Some(rows::lasting(samples).as_millis_f64())
    });
    times.reduce(f64::max)
}

/// Why a recording of a speaker shows that the machine disturbed the run, one line each.
pub fn disturbances(config: &CallConfig, outcome: &CallOutcome) -> Vec<String> {
    let mut causes = Vec::new();
    if !config.quality {
        return causes;
    }
    let length = outcome.ended.unwrap_or(config.duration);
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        let span = call.span(length);
        for peer in speakers(config, call) {
            let gaps = gaps_within(&result.peers[peer.index()].sounds.spoken, &span).len();
            if gaps > 0 {
                causes.push(format!(
                    "sound is missing at {gaps} places in what {peer} of call {} said",
                    call.number
                ));
            }
        }
    }
    causes
}

/// Writes both recordings of each speech into the folder of a record, on the same clock.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path, heard: &[HeardSpeech]) -> io::Result<()> {
    for HeardSpeech { spoken, heard, speech, .. } in heard {
        if spoken.samples.is_empty() {
            continue;
        }
        let Speech { call, from, to, .. } = speech;
        for (track, what) in [(spoken, "spoken"), (heard, "heard")] {
            let name = sound_file(*call, from, to, what);
            wav::write(&folder.join(name), &track.since_zero())?;
        }
    }
    Ok(())
}

impl Track {
    /// What was recorded from the scenario's time zero on.
    fn since_zero(&self) -> Self {
        let before = (Timestamp::ZERO - self.start).as_secs_f64() * resample::RATE;
        let mut samples = Vec::new();
        if before < 0.0 && !self.samples.is_empty() {
            samples.resize((-before).round() as usize, 0.0);
        }
        let first = (before.max(0.0).round() as usize).min(self.samples.len());
        samples.extend_from_slice(&self.samples[first..]);
        Self { start: Timestamp::ZERO, samples, gaps: self.gaps.clone() }
    }
}
