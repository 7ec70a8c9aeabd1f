//! Findings about what people saw and heard: freezes, and audio that was made up.

use weir_record::calls::stats::{InboundRtp, Kind};

use crate::found::played_audio::PlayedAudio;
use crate::found::{Evidence, Found, StreamId, Subject, Times};
use crate::judge::rules::GAP_S;
use crate::read::dump::{Connection, Dump, Stream, StreamDirection};

/// Concealment of this share of the samples can be heard, for a while or throughout.
const AUDIBLE: f64 = 0.02;
const AUDIBLE_THROUGHOUT: f64 = 0.01;
/// Less than this, in s, cannot be heard: a receiver hides a single packet of 20 to 60 ms.
const HIDDEN_S: f64 = 0.08;

/// What a stream of video lost for those who watched it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Freezes {
    pub count: u64,
    pub seconds: f64,
    /// Streams that froze.
    pub streams: u64,
}

/// Freezes and audible gaps of all streams.
pub(crate) fn findings(dump: &Dump) -> Vec<Found> {
    let mut found = Vec::new();
    for connection in &dump.connections {
        for stream in &connection.streams {
            match (stream.direction, stream.kind) {
                (StreamDirection::Received, Kind::Video) => {
                    add_freezes(connection, stream, &mut found)
                }
                (StreamDirection::Received, Kind::Audio) => {
                    add_gaps(connection, stream, &mut found)
                }
                (StreamDirection::Sent, _) => {}
            }
        }
    }
    found
}

/// The freezes of all received videos, within the time of the dump.
pub(crate) fn freezes(dump: &Dump) -> Freezes {
    let mut all = Freezes::default();
    for stream in dump.connections.iter().flat_map(|it| &it.streams) {
        if (stream.direction, stream.kind) != (StreamDirection::Received, Kind::Video) {
            continue;
        }
        let mut count = 0;
        for (_, _, before, after) in pairs(stream) {
            count += growth(before.freeze_count, after.freeze_count);
            all.seconds += frozen_s(before, after);
        }
        all.count += count;
        all.streams += u64::from(count > 0);
    }
    all
}

/// Counters of what was heard of an audio stream. `None` for other streams and without counters.
pub(crate) fn heard(stream: &Stream) -> Option<PlayedAudio> {
    if (stream.direction, stream.kind) != (StreamDirection::Received, Kind::Audio) {
        return None;
    }
    let mut all = PlayedAudio::default();
    for (_, _, before, after) in pairs(stream) {
        all.add(&between(before, after));
    }
    (all.samples > 0 || all.received > 0).then_some(all)
}

type Pair<'a> = (f64, f64, &'a InboundRtp, &'a InboundRtp);

/// Times in s and counters of each two neighbouring reports.
fn pairs(stream: &Stream) -> Vec<Pair<'_>> {
    let mut found = Vec::new();
    for pair in stream.reports.windows(2) {
        let [before, after] = [&pair[0].timed, &pair[1].timed];
        let counters = before.report.inbound.as_deref().zip(after.report.inbound.as_deref());
        if let Some((old, new)) = counters {
            found.push((before.time.as_secs_f64(), after.time.as_secs_f64(), old, new));
        }
    }
    found
}

fn growth(before: Option<u64>, after: Option<u64>) -> u64 {
    match (before, after) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        // The counter appears with its first event.
        (None, Some(after)) => after,
        _ => 0,
    }
}

fn frozen_s(before: &InboundRtp, after: &InboundRtp) -> f64 {
    let [before, after] = [before, after].map(|it| it.total_freezes_duration.unwrap_or(0.0));
    (after - before).max(0.0)
}

/// The freezes of a stream: when it was frozen longest, and how often it froze in total.
fn add_freezes(connection: &Connection, stream: &Stream, found: &mut Vec<Found>) {
    // Begin and end, freezes, seconds.
    let mut spans: Vec<(f64, f64, u64, f64)> = Vec::new();
    for (start_s, end_s, before, after) in pairs(stream) {
        let count = growth(before.freeze_count, after.freeze_count);
        if count == 0 {
            continue;
        }
        // A freeze is counted when it ends: it may have begun before the report.
        let seconds = frozen_s(before, after);
        let from_s = start_s.min(end_s - seconds).max(0.0);
        match spans.last_mut() {
            Some(last) if from_s - last.1 < GAP_S => {
                (last.1, last.2, last.3) = (end_s, last.2 + count, last.3 + seconds);
            }
            _ => spans.push((from_s, end_s, count, seconds)),
        }
    }
    let Some(worst) = spans.iter().max_by(|a, b| a.3.total_cmp(&b.3).then(b.0.total_cmp(&a.0)))
    else {
        return;
    };
    let worst_times = Times { count: worst.2, seconds: worst.3 };
    // One finding for a stream: others would push what caused them down the list.
    let all = (spans.len() > 1).then(|| Times {
        count: spans.iter().map(|span| span.2).sum(),
        seconds: spans.iter().map(|span| span.3).sum(),
    });
    let subject = Subject::Stream(StreamId::of(connection, stream));
    let evidence = Evidence::Freeze { worst: worst_times, all };
    found.push(Found::new(subject, (worst.0, worst.1), evidence));
}

/// The times in which gaps of a sound could be heard. Where they are spread thinly, the whole time
/// from the first of them to the last.
fn add_gaps(connection: &Connection, stream: &Stream, found: &mut Vec<Found>) {
    let mut spans: Vec<Gaps> = Vec::new();
    let mut whole: Option<Gaps> = None;
    let mut all = PlayedAudio::default();
    for (start_s, end_s, before, after) in pairs(stream) {
        let own = Gaps { from_s: start_s, to_s: end_s, heard: between(before, after) };
        all.add(&own.heard);
        if own.heard.concealed > 0 {
            match &mut whole {
                Some(whole) => whole.to_s = end_s,
                None => whole = Some(own),
            }
        }
        if own.heard.concealed_ratio().is_none_or(|ratio| ratio < AUDIBLE) {
            continue;
        }
        match spans.last_mut() {
            Some(last) if start_s - last.to_s < GAP_S => {
                last.to_s = end_s;
                last.heard.add(&own.heard);
            }
            _ => spans.push(own),
        }
    }
    spans.retain(Gaps::can_be_heard);
    if let Some(whole) = whole.filter(|_| spans.is_empty()) {
        let whole = Gaps { heard: all, ..whole };
        let is_audible = all.concealed_ratio().is_some_and(|ratio| ratio >= AUDIBLE_THROUGHOUT);
        if is_audible && whole.can_be_heard() {
            spans.push(whole);
        }
    }
    for Gaps { from_s, to_s, heard } in spans {
        let subject = Subject::Stream(StreamId::of(connection, stream));
        found.push(Found::new(subject, (from_s, to_s), Evidence::Concealment(heard)));
    }
}

/// A time in which a sound had gaps.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    from_s: f64,
    to_s: f64,
    heard: PlayedAudio,
}

impl Gaps {
    fn can_be_heard(&self) -> bool {
        let ratio = self.heard.concealed_ratio().unwrap_or_default();
        ratio * (self.to_s - self.from_s) >= HIDDEN_S
    }
}

fn between(before: &InboundRtp, after: &InboundRtp) -> PlayedAudio {
    let concealed = growth(before.concealed_samples, after.concealed_samples);
    let silent = growth(before.silent_concealed_samples, after.silent_concealed_samples);
    let [start, end] = [before, after].map(|it| it.jitter_buffer_delay.unwrap_or(0.0));
    PlayedAudio {
        samples: growth(before.total_samples_received, after.total_samples_received),
        // When a sender pauses, the receiver plays silence and counts it as concealed, although
        // nothing was lost.
        concealed: concealed.saturating_sub(silent),
        gaps: growth(before.concealment_events, after.concealment_events),
        received: after.packets_received.saturating_sub(before.packets_received),
        missing: after.packets_lost.saturating_sub(before.packets_lost),
        buffer_s: (end - start).max(0.0),
        emitted: growth(before.jitter_buffer_emitted_count, after.jitter_buffer_emitted_count),
    }
}
