//! What peers saw of each other, by the tags in the pictures.

use std::io::Read as _;

use base64::prelude::*;
use weir_record::calls::delays::Delays;
use weir_record::calls::file::{CallFile, Kind};
use weir_record::calls::quality::{Quality, QualityInterval, worst_file};

use super::call_format::{QualityRow, ScreenPlot, WorstPicture};
use super::{Column, Run, rounded, rounded_if};

/// Larger images stay out of the page. A grey picture of 1080p has about 1 MB.
const IMAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Browsers give tenths of a millisecond.
const DECIMALS: i32 = 1;

/// One row for each camera and screen of each counted run.
pub(super) fn rows(column: &Column<'_>) -> Vec<QualityRow> {
    let mut rows = Vec::new();
    for run in column.counted {
        let Some(file) = &run.record.call else { continue };
        for quality in file.quality() {
            rows.push(row(run, file, quality));
        }
    }
    rows
}

fn row(run: &Run, file: &CallFile, quality: &Quality) -> QualityRow {
    let shown = quality.shown_delay_ms;
    let picture = quality.picture.clone().unwrap_or_default();
    let vmaf = picture.vmaf;
    let good = quality.good_time();
    QualityRow {
        seed: run.seed(),
        controller: run.record.info.subject.to_string(),
        stream: stream(file, quality),
        received_p50_ms: delay(quality.received_delay_ms, |it| it.p50),
        shown_p50_ms: delay(shown, |it| it.p50),
        shown_p95_ms: delay(shown, |it| it.p95),
        shown_p99_ms: delay(shown, |it| it.p99),
        frame_rate: round(quality.frame_rate),
        stalls: quality.stalls,
        stalled_s: rounded(quality.stalled_s, 2),
        stalled_percent: percent(quality.stalled_ratio),
        vmaf: round(vmaf.map(|vmaf| vmaf.mean)),
        vmaf_p5: round(vmaf.map(|vmaf| vmaf.p5)),
        psnr_db: round(picture.psnr_db.map(|psnr| psnr.mean)),
        good_percent: percent(good.map(|time| time.good)),
        late_percent: percent(good.map(|time| time.late)),
        bad_picture_percent: percent(good.map(|time| time.bad_picture)),
        repeats: quality.repeats,
        skips: quality.skips,
        tags_read_percent: (quality.screen.seen > 0)
            .then(|| rounded(100.0 * quality.screen.read as f64 / quality.screen.seen as f64, 2)),
        sound_behind_ms: sound_behind(file, quality),
        camera_late_p95_ms: delay(quality.camera_late_ms, |it| it.p95),
        busy_percent: percent(file.emulation.cpu_busy_ratio),
    }
}

/// `None` if the speech of this person at this screen was not measured.
fn sound_behind(file: &CallFile, quality: &Quality) -> Option<f64> {
    let Quality { call, from, to, .. } = quality;
    let mut speech = file.speech().iter();
    let own = speech.find(|it| (it.call, &it.from, &it.to) == (*call, from, to))?;
    delay(own.behind_picture_ms, |it| it.p50)
}

/// Of the first counted run that has pictures.
pub(super) fn plots(column: &Column<'_>) -> Vec<ScreenPlot> {
    let mut plots = Vec::new();
    let Some((run, file)) = column.counted.iter().find_map(measured) else { return plots };
    for quality in file.quality() {
        let scores = quality.picture.as_ref().map_or(&[][..], |picture| &picture.scores);
        plots.push(ScreenPlot {
            controller: column.controller.into(),
            stream: stream(file, quality),
            time_s: quality.intervals.iter().map(|it| rounded(it.time_s, 3)).collect(),
            received_ms: over_time(quality, |it| it.received_delay_ms),
            shown_ms: over_time(quality, |it| it.shown_delay_ms),
            picture_s: scores.iter().map(|it| rounded(it.time_s, 3)).collect(),
            vmaf: scores.iter().map(|it| round(it.vmaf)).collect(),
            psnr_db: scores.iter().map(|it| rounded(it.psnr_db, DECIMALS)).collect(),
            worst: worst(run, quality),
        });
    }
    plots
}

fn measured(run: &Run) -> Option<(&Run, &CallFile)> {
    let file = run.record.call.as_ref()?;
    (!file.quality().is_empty()).then_some((run, file))
}

/// `None` if the record has no such images, which are for people to look at.
fn worst(run: &Run, quality: &Quality) -> Option<WorstPicture> {
    let time_s = rounded(quality.picture.as_ref()?.worst_s?, 3);
    let Quality { call, from, to, .. } = quality;
    let [received, sent] =
        ["received", "sent"].map(|what| image(run, &worst_file(*call, from, to, what)));
    Some(WorstPicture { time_s, received: received?, sent: sent? })
}

/// The address of an image with its data.
fn image(run: &Run, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let file = run.record.open_file(name).ok()??;
    let length = file.take(IMAGE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= IMAGE_BYTES_MAX)
        .then(|| format!("data:image/png;base64,{}", BASE64_STANDARD.encode(bytes)))
}

fn over_time(quality: &Quality, value: fn(&QualityInterval) -> Option<f64>) -> Vec<Option<f64>> {
    quality.intervals.iter().map(|interval| round(value(interval))).collect()
}

fn stream(file: &CallFile, quality: &Quality) -> String {
    let Quality { call, from, to, .. } = quality;
    // The participants of an application are in one call.
    match (file.calls.len(), &file.kind) {
        (0 | 1, _) | (_, Kind::Application(_)) => format!("{from} to {to}"),
        _ => format!("call {call}, {from} to {to}"),
    }
}

fn delay(delays: Option<Delays>, value: fn(Delays) -> f64) -> Option<f64> {
    round(delays.map(value))
}

fn round(value: Option<f64>) -> Option<f64> {
    rounded_if(value, DECIMALS)
}

fn percent(ratio: Option<f64>) -> Option<f64> {
    Some(rounded(100.0 * ratio?, DECIMALS))
}
