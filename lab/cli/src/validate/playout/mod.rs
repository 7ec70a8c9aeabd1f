//! `weir research validate playout`: the models of a browser's receiver against the browser.
//!
//! ```text
//! record of a call -> packets as they came -> jitter buffer, NetEq -> beside getStats of the call
//! ```
//!
//! The models get the packets of the call itself. So what differs is theirs, and not the sender's
//! or the network's.

mod packets;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::file::{CallFile, Capture, Interval};
use weir_record::subject::Subject;
use weir_record::{Reader, Scenarios};
use weir_sim::trace::Heard;
use weir_sim::{play_speech, play_video};

use self::packets::{Stream, Streams};
use crate::args::research::Validate;
use crate::output;

/// A browser reports so often.
const INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// What comes before, while estimates settle, does not count.
const SETTLE: TimeDelta = TimeDelta::from_secs(5);
/// Largest error: a share of the browser's value, or this much.
const SHARE: f64 = 0.1;
const LEAST_MS: f64 = 2.0;
const LEAST_PERCENT: f64 = 0.2;

const HEAD: &str = "\
| call | sender | seed | video, buffer (ms) | speech, target (ms) | speech, made up (%) |
|---|---|---:|---:|---:|---:|";

/// A value of the browser, and the model's.
struct Check {
    browser: f64,
    model: f64,
    /// A smaller difference does not count.
    least: f64,
}

impl Check {
    fn is_within(&self) -> bool {
        (self.model - self.browser).abs() <= (SHARE * self.browser).max(self.least)
    }

    fn cell(&self) -> String {
        let miss = if self.is_within() { "" } else { " (miss)" };
        format!("{:.1} / {:.1}{miss}", self.browser, self.model)
    }
}

/// The values of a call: the buffer of video, the target of speech, and what is made up of it.
struct Call {
    name: String,
    values: [Option<Check>; 3],
}

impl Call {
    fn checks(&self) -> impl Iterator<Item = &Check> {
        self.values.iter().flatten()
    }

    fn row(&self) -> String {
        let mut row = format!("| {} |", self.name);
        for value in &self.values {
            let cell = value.as_ref().map_or("-".into(), Check::cell);
            row.push_str(&format!(" {cell} |"));
        }
        row
    }
}

/// Plays the calls and prints the table. Returns whether all values are within the limits.
pub fn validate(args: &Validate) -> Result<bool> {
    let mut calls = Vec::new();
    let scenarios = Scenarios::default();
    for folder in &args.records {
        for record in weir_record::find(folder)? {
            calls.extend(of_record(&record, &scenarios)?);
        }
    }
    anyhow::ensure!(
        !calls.is_empty(),
        "no record of a call with its captures is given; make some with \
         `weir call 'audio/*' --quality --capture --out calls`"
    );
    output::line(HEAD)?;
    for call in &calls {
        output::line(&call.row())?;
    }
    let all = calls.iter().flat_map(Call::checks).count();
    let within = calls.iter().flat_map(Call::checks).filter(|check| check.is_within()).count();
    output::line(&format!(
        "\nA cell is the browser's value / the model's. {within} of {all} values differ by at most \
         {} %, {LEAST_MS} ms or {LEAST_PERCENT} points.",
        SHARE * 100.0
    ))?;
    Ok(within == all)
}

/// The values of a record; `None` of one without captures.
fn of_record(folder: &Path, scenarios: &Scenarios) -> Result<Option<Call>> {
    let reader = Reader::open(folder, scenarios)?;
    let Some(file) = &reader.call else { return Ok(None) };
    let Some(captured) = file.captures().first() else { return Ok(None) };
    let streams = captures(folder)?;
    let mut values = [None, None, None];
    if let Some(video) = sent(captured, "video", &streams) {
        let again = sent(captured, "retransmission", &streams);
        values[0] = buffer(&reader, file, video, again);
    }
    if let Some(speech) = sent(captured, "audio", &streams) {
        [values[1], values[2]] = heard(&reader, speech)?;
    }
    let info = &reader.info;
    let name = format!("{} | {} | {}", info.scenario, info.subject, info.seed);
    let call = Call { name, values };
    Ok((call.checks().count() > 0).then_some(call))
}

/// What the first participant sends of this kind.
fn sent<'a>(captured: &Capture, role: &str, streams: &'a Streams) -> Option<&'a Stream> {
    let stream = captured.streams.iter().find(|it| it.role == role && it.from == "a")?;
    streams.get(stream.ssrc)
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// The streams in the captures of a record.
fn captures(folder: &Path) -> Result<Streams> {
    let mut captures: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| unreadable(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "pcapng") {
            captures.push(path);
        }
    }
    captures.sort();
    let mut streams = Streams::default();
    for path in captures {
        let file = File::open(&path).with_context(|| unreadable(&path))?;
        streams.add(BufReader::new(file)).with_context(|| unreadable(&path))?;
    }
    Ok(streams)
}

/// How long frames wait from their first packet to the decoder, in ms.
fn buffer(
    reader: &Reader,
    call: &CallFile,
    media: &Stream,
    again: Option<&Stream>,
) -> Option<Check> {
    let reports: Vec<(f64, Option<f64>)> = (intervals(call, "b")?.iter())
        .filter_map(|it| Some((it.time_s, it.received.as_ref()?.jitter_buffer_ms)))
        .skip_while(|(_, waited)| waited.is_none())
        .collect();
    let packets = packets::video(media, again);
    let begin = packets.first()?.came;
    // The first packet came in the interval before the first report.
    let begin_s = reports.first()?.0 - INTERVAL.as_secs_f64() / 2.0;
    // A browser's receiver knows round trips in calls with a browser and not with a pipeline, as
    // the calls show. How is encrypted; extended reports [RFC3611 §4.5] would do it. It does not
    // tell them, and those of the sender are like them.
    let mut round_trips: Vec<(Timestamp, TimeDelta)> = Vec::new();
    let is_answered = matches!(reader.info.subject, Subject::Browser { .. });
    for report in intervals(call, "a")?.iter().filter(|_| is_answered) {
        if let Some(rtt_ms) = report.sent.as_ref().and_then(|sent| sent.rtt_ms) {
            let since = TimeDelta::from_secs_f64((report.time_s - begin_s).max(0.0));
            round_trips.push((begin + since, TimeDelta::from_secs_f64(rtt_ms / 1e3)));
        }
    }
    let waits = play_video(&packets, &round_trips, INTERVAL);
    let model = mean(settled(&waits).iter().flatten().map(|wait| wait.as_millis_f64()))?;
    let browser = mean(settled(&reports).iter().filter_map(|(_, waited)| *waited))?;
    Some(Check { browser, model, least: LEAST_MS })
}

fn intervals<'a>(call: &'a CallFile, participant: &str) -> Option<&'a [Interval]> {
    let peer = call.peers.iter().find(|peer| peer.participant == participant)?;
    Some(&peer.intervals)
}

/// Without the begin.
fn settled<T>(values: &[T]) -> &[T] {
    let begin = (SETTLE.as_millis() / INTERVAL.as_millis()) as usize;
    values.get(begin..).unwrap_or_default()
}

/// What NetEq aims at, and how much it makes up.
fn heard(reader: &Reader, stream: &Stream) -> Result<[Option<Check>; 2]> {
    let Some(flow) = reader.scenario.calls().first().and_then(|call| call.audio_up) else {
        return Ok([None, None]);
    };
    let speech = reader.scenario.call.audio.speech();
    let played = play_speech(speech, &packets::speech(stream), INTERVAL);
    let mut begin = None;
    let mut reported: Vec<Heard> = Vec::new();
    reader.rows(|row| {
        let Some(heard) = row.heard.filter(|_| row.flow == flow) else { return };
        if heard.played > TimeDelta::ZERO {
            begin.get_or_insert(row.time);
        }
        if begin.is_some_and(|begin| row.time >= begin + SETTLE) {
            reported.push(heard);
        }
    })?;
    let played = settled(&played);
    let target = target_ms(&reported).zip(target_ms(played));
    let concealed = concealed_percent(&reported).zip(concealed_percent(played));
    Ok([
        target.map(|(browser, model)| Check { browser, model, least: LEAST_MS }),
        concealed.map(|(browser, model)| Check { browser, model, least: LEAST_PERCENT }),
    ])
}

fn target_ms(heard: &[Heard]) -> Option<f64> {
    mean(heard.iter().filter_map(|it| Some(it.target?.as_millis_f64())))
}

fn concealed_percent(heard: &[Heard]) -> Option<f64> {
    let (mut played, mut concealed) = (TimeDelta::ZERO, TimeDelta::ZERO);
    for it in heard {
        played += it.played;
        concealed += it.concealed;
    }
    let share = concealed.as_secs_f64() / played.as_secs_f64();
    share.is_finite().then_some(share * 100.0)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    weir_metrics::mean(values.collect())
}
