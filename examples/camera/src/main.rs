//! A camera that sends real H.264 at the rate that a congestion controller allows.

use std::error::Error;
use std::process::ExitCode;

use weir::{Algorithm, Bitrate, RateLimits, Timestamp};

use crate::camera::Camera;
use crate::source::{Resolution, Source};

mod camera;
mod encoder;
mod live;
mod marks;
mod packetizer;
mod picture;
mod progress;
mod simulated;
mod source;

const USAGE: &str = "\
A generated camera with a real encoder and a congestion controller.

  camera live ADDRESS:PORT RESOLUTION CONTROLLER SECONDS [tags]
  camera simulated RESOLUTION CONTROLLER SECONDS [tags]

RESOLUTION is 480p, 720p or 1080p. `live` sends over UDP to the receiver of examples/udp. \
`simulated` sends
over the network of the scenario lund/camera in virtual time. With `tags` each picture has its
number in a row of blocks along its top edge, as the cameras of `weir call --quality`.

Examples:
  camera live 10.45.0.2:5004 480p nada 40
  camera simulated 720p nada 10";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_tagged = words.pop_if(|word| *word == "tags").is_some();
    let result = match words[..] {
        ["live", address, resolution, controller, seconds] => {
            start(resolution, controller, seconds, is_tagged)
                .and_then(|(camera, source, end)| live::run(address, camera, source, end))
        }
        ["simulated", resolution, controller, seconds] => {
            start(resolution, controller, seconds, is_tagged)
                .and_then(|(camera, source, end)| simulated::run(camera, source, end))
        }
        _ => Err("unknown arguments; see camera --help".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("camera: {error}");
            ExitCode::from(2)
        }
    }
}

/// The camera, its media source, and the end of the run.
fn start(
    resolution: &str,
    controller: &str,
    seconds: &str,
    is_tagged: bool,
) -> Result<(Camera, Source, Timestamp), Box<dyn Error + Send + Sync>> {
    let resolution = Resolution::find(resolution)
        .ok_or_else(|| format!("no resolution '{resolution}': use 480p, 720p or 1080p"))?;
    let algorithm: Algorithm = controller.parse()?;
    let seconds: i64 = seconds
        .parse()
        .ok()
        .filter(|seconds| (1..=86_400).contains(seconds))
        .ok_or_else(|| format!("'{seconds}' is no number of seconds from 1 to 86400"))?;
    // The limits of the scenarios lund/*.
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500))?;
    let camera = Camera::new(Timestamp::ZERO, limits, algorithm);
    Ok((camera, Source::new(resolution, is_tagged, limits)?, Timestamp::from_secs(seconds)))
}
