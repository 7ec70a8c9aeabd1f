//! The pipeline that sends the video of calls: its program and settings.

use std::path::Path;

use serde::Serialize;
use weir_emu::Host;

use super::process::{Gstreamer, PipelineProcess, Pipes, Script};
use crate::error::CallError;
use crate::message::{Peer, STATS_INTERVAL};
use crate::plan::{CallConfig, ControlledSender};

/// The elements that the program needs.
pub(crate) const ELEMENTS: [&str; 6] =
    ["vp8enc", "rtpvp8pay", "webrtcbin", "nicesink", "dtlssrtpenc", "weircc"];

const SENDER: Script = Script {
    files: &[
        ("sender.py", include_str!("sender.py")),
        ("camera.py", include_str!("camera.py")),
        ("lines.py", include_str!("lines.py")),
        ("reports.py", include_str!("reports.py")),
    ],
};

/// The configuration of the process, its first line of input.
#[derive(Debug, Serialize)]
struct Settings<'a> {
    calls: Vec<SenderCall<'a>>,
}

#[derive(Debug, Serialize)]
struct SenderCall<'a> {
    /// The index of the call.
    call: usize,
    settings: SenderSettings<'a>,
}

/// Settings of one sender. Bitrates are in bit/s.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SenderSettings<'a> {
    algorithm: &'a str,
    min_bitrate: u64,
    start_bitrate: u64,
    max_bitrate: u64,
    /// The camera's file; `None` for a test picture.
    camera: Option<&'a Path>,
    width: u32,
    height: u32,
    frame_rate: u32,
    /// Interval of reports in ms.
    stats_interval: u64,
}

/// Starts the pipeline that sends in these calls, on `host`. `folder` is the name of a new folder.
pub(crate) fn start(
    gstreamer: &Gstreamer,
    host: &Host,
    folder: &Path,
    config: &CallConfig,
    seats: &[(usize, Peer)],
    camera: Option<&Path>,
) -> Result<(PipelineProcess, Pipes), CallError> {
    let sender = |call: usize| config.calls[call].pipeline.as_ref();
    let calls = seats.iter().filter_map(|&(call, _)| {
        let settings = settings(sender(call)?, config, camera);
        Some(SenderCall { call, settings })
    });
    gstreamer.start(host, folder, &SENDER, &Settings { calls: calls.collect() })
}

fn settings<'a>(
    sender: &'a ControlledSender,
    config: &CallConfig,
    camera: Option<&'a Path>,
) -> SenderSettings<'a> {
    SenderSettings {
        algorithm: &sender.controller,
        min_bitrate: sender.min.as_bps(),
        start_bitrate: sender.start.as_bps(),
        max_bitrate: sender.max.as_bps(),
        camera,
        width: config.picture.width,
        height: config.picture.height,
        frame_rate: config.picture.fps,
        stats_interval: u64::try_from(STATS_INTERVAL.as_millis()).unwrap_or(u64::MAX),
    }
}
