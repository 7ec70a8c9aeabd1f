//! The pipelines that send the video of calls, from a camera or as a mixer: their programs and
//! settings.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir::controller::EcnMode;
use weir_emu::Host;
use weir_record::subject::StackRole;

use super::process::{Gstreamer, PipelineProcess, Pipes, Script};
use crate::error::CallError;
use crate::message::STATS_INTERVAL;
use crate::peers::stack::Stack;
use crate::plan::{CallConfig, ControlledSender, Player};

/// The elements that the programs need.
pub(crate) const ELEMENTS: [&str; 13] = [
    "videoscale",
    "vp8enc",
    "rtpvp8pay",
    "audiotestsrc",
    "opusenc",
    "rtpopuspay",
    "webrtcbin",
    "nicesink",
    "dtlssrtpenc",
    "vp8dec",
    "compositor",
    "intervideosrc",
    "weircc",
];

const SENDER: (&str, &str) = ("sender.py", include_str!("sender.py"));
const MIXER: (&str, &str) = ("mixer.py", include_str!("mixer.py"));
/// The modules of both programs.
const CAMERA: (&str, &str) = ("camera.py", include_str!("camera.py"));
const LINES: (&str, &str) = ("lines.py", include_str!("lines.py"));
const REPORTS: (&str, &str) = ("reports.py", include_str!("reports.py"));
const SCALING: (&str, &str) = ("scaling.py", include_str!("scaling.py"));

const TAGS: (&str, &str) = ("tags.py", include_str!("tags.py"));
const VP8: (&str, &str) = ("vp8.py", include_str!("vp8.py"));

const CAMERA_SENDER: Script =
    Script { files: &[SENDER, CAMERA, LINES, REPORTS, SCALING, TAGS, VP8] };
const MIXER_SENDER: Script =
    Script { files: &[MIXER, SENDER, CAMERA, LINES, REPORTS, SCALING, TAGS, VP8] };

/// The configuration of the process, its first line of input.
#[derive(Debug, Serialize)]
struct Settings<'a> {
    calls: Vec<SenderCall<'a>>,
}

/// The configuration of a stack's driver, its first line of input.
#[derive(Debug, Serialize)]
struct StackSettings<'a> {
    calls: Vec<StackCall<'a>>,
}

/// A call of a stack's driver.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum StackCall<'a> {
    Sends(SenderCall<'a>),
    Receives { call: usize, settings: ReceiverSettings },
}

/// Settings of a stack that receives.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceiverSettings {
    /// Always `receiver`. A sender has no such member.
    role: &'static str,
    width: u32,
    height: u32,
    frame_rate: u32,
    /// Interval of reports in ms.
    stats_interval: u64,
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
    /// Whether the offer asks for the feedback of RFC 8888.
    ccfb: bool,
    /// The property `ecn` of `weircc`.
    ecn: &'static str,
    /// The ECN bits of the sender's socket.
    ecn_bits: u8,
    /// The camera's file; `None` for a test picture.
    camera: Option<&'a Path>,
    /// Whether it sends sound as well. A mixer does not.
    audio: bool,
    /// The calls whose videos a mixer sends instead of the camera's.
    others: Vec<usize>,
    width: u32,
    height: u32,
    frame_rate: u32,
    /// Whether it tells which frames of the camera went in, and when.
    quality: bool,
    /// Interval of reports in ms.
    stats_interval: u64,
}

/// The variable of a stack's environment with the name of a file, in which its encoder tells of the
/// camera's frames, one message in each line.
const FRAMES: &str = "WEIR_FRAMES";

/// That file of the stack with this log.
pub(crate) fn frames_file(log: &Path) -> PathBuf {
    log.with_extension("frames")
}

/// Starts the stack of a participant. `log` is the name of a new file.
pub(crate) fn start_stack(
    stack: &Stack,
    host: &Host,
    log: PathBuf,
    config: &CallConfig,
    participant: usize,
    camera: Option<&Path>,
) -> Result<(PipelineProcess, Pipes), CallError> {
    let mut calls = Vec::new();
    for (call, peer) in config.seats(participant) {
        calls.push(match &config.calls[call].pipeline {
            Some(sender) if sender.peer == peer => {
                StackCall::Sends(SenderCall { call, settings: settings(sender, config, camera) })
            }
            _ => StackCall::Receives { call, settings: receiver(config) },
        });
    }
    let output = File::create(&log).map_err(CallError::system("make the stack's log"))?;
    let mut command = stack.command(host);
    if config.quality {
        command.env(FRAMES, frames_file(&log));
    }
    command.stderr(output);
    PipelineProcess::start(command, log, &StackSettings { calls })
}

/// Starts the pipeline of a participant. `folder` is the name of a new folder.
pub(crate) fn start(
    gstreamer: &Gstreamer,
    host: &Host,
    folder: &Path,
    config: &CallConfig,
    participant: usize,
    camera: Option<&Path>,
) -> Result<(PipelineProcess, Pipes), CallError> {
    let seats = config.seats(participant);
    let is_mixer = config.participants[participant].player == Player::Mixer;
    let mut calls = Vec::new();
    for &(call, _) in &seats {
        let Some(sender) = &config.calls[call].pipeline else { continue };
        let others = seats.iter().map(|seat| seat.0);
        let others = others.filter(|other| is_mixer && *other != call).collect();
        let audio = !is_mixer && config.calls[call].audio[sender.peer.index()];
        let settings = SenderSettings { audio, others, ..settings(sender, config, camera) };
        calls.push(SenderCall { call, settings });
    }
    let script = if is_mixer { &MIXER_SENDER } else { &CAMERA_SENDER };
    gstreamer.start(host, folder, script, &Settings { calls })
}

fn receiver(config: &CallConfig) -> ReceiverSettings {
    ReceiverSettings {
        role: StackRole::Receiver.name(),
        width: config.picture.width,
        height: config.picture.height,
        frame_rate: config.picture.fps,
        stats_interval: stats_interval(),
    }
}

fn stats_interval() -> u64 {
    u64::try_from(STATS_INTERVAL.as_millis()).unwrap_or(u64::MAX)
}

fn settings<'a>(
    sender: &'a ControlledSender,
    config: &CallConfig,
    camera: Option<&'a Path>,
) -> SenderSettings<'a> {
    // The codepoints of RFC 3168 section 5 and RFC 9331 section 4.1.
    let (ecn, ecn_bits) = match sender.ecn {
        EcnMode::Off => ("off", 0b00),
        EcnMode::Classic => ("classic", 0b10),
        EcnMode::L4s => ("l4s", 0b01),
    };
    SenderSettings {
        algorithm: &sender.controller,
        min_bitrate: sender.min.as_bps(),
        start_bitrate: sender.start.as_bps(),
        max_bitrate: sender.max.as_bps(),
        ccfb: sender.ccfb,
        ecn,
        ecn_bits,
        camera,
        audio: false,
        others: Vec::new(),
        width: config.picture.width,
        height: config.picture.height,
        frame_rate: config.picture.fps,
        quality: config.quality,
        stats_interval: stats_interval(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::measure::quality::tag::{self, Tag};

    /// What `tags.py` measures in a picture that begins with these rows.
    fn measured(rows: &[u8], width: usize) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rows).unwrap();
        let program = "import sys; from tags import blocks_of; \
                       print(blocks_of(open(sys.argv[1], 'rb').read(), int(sys.argv[2])))";
        let mut python = Command::new("python3");
        python.args(["-B", "-c", program]).arg(file.path()).arg(width.to_string());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/pipeline");
        let output = python.env("PYTHONPATH", folder).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    #[test]
    fn a_pipeline_measures_the_blocks_of_a_tag_as_the_lab_does() {
        // The second width is no multiple of the blocks.
        for width in [640, 366] {
            let mut rows = Tag { number: 77, stream: 3 }.rows(width);
            for (index, luma) in rows.iter_mut().enumerate() {
                *luma += (index % 7) as u8;
            }
            let Some(measured) = measured(&rows, width) else {
                println!("skipped: no python3");
                return;
            };
            let blocks = tag::measure(&rows, width, width).unwrap();
            let expected: String = blocks.iter().map(|luma| format!("{luma:02x}")).collect();
            assert_eq!(measured, expected, "{width}");
        }
    }

    #[test]
    fn programs_of_the_arena_find_the_modules_of_a_pipeline() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for program in ["encoder.py", "weircc/driver.py", "gstreamer/driver.py"] {
            let Ok(text) = std::fs::read_to_string(format!("{root}/arena/{program}")) else {
                println!("skipped: no {program} beside this crate");
                return;
            };
            let line = text.lines().find(|line| line.contains("\"lab\" / ")).unwrap();
            let folders: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            let module = format!("{root}/{}/vp8.py", folders.join("/"));
            assert!(std::fs::exists(&module).unwrap(), "{program}: {module}");
        }
    }
}
