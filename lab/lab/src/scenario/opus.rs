//! The `[call.audio]` table: how the browsers of a call encode speech.

use super::error::ScenarioError;
use super::reader::Item;

type Result<T> = std::result::Result<T, ScenarioError>;

const OPUS: &[&str] = &["fec", "red", "dtx", "frame"];
/// Frames that browsers make, in ms.
const FRAMES: [i64; 4] = [10, 20, 40, 60];

/// Options of Opus. The default is that of browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opus {
    /// Forward error correction: a packet may carry a coarse copy of the one before.
    pub fec: bool,
    /// Redundant packets (RED): a packet carries the ones before as they were.
    pub red: bool,
    /// Discontinuous transmission: silence is hardly sent.
    pub dtx: bool,
    /// Speech in a packet, in ms.
    pub frame_ms: u32,
}

impl Default for Opus {
    fn default() -> Self {
        Self { fec: true, red: false, dtx: false, frame_ms: 20 }
    }
}

pub(super) fn opus(item: &Item) -> Result<Opus> {
    let table = item.table(OPUS)?;
    let default = Opus::default();
    let mut frame_ms = default.frame_ms;
    if let Some(item) = table.get("frame") {
        let ms = item.time()?.as_millis();
        if !FRAMES.contains(&ms) {
            return Err(item.error("browsers make frames of 10ms, 20ms, 40ms or 60ms"));
        }
        frame_ms = ms as u32;
    }
    Ok(Opus {
        fec: table.get("fec").map_or(Ok(default.fec), |item| item.boolean())?,
        red: table.get("red").map_or(Ok(default.red), |item| item.boolean())?,
        dtx: table.get("dtx").map_or(Ok(default.dtx), |item| item.boolean())?,
        frame_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(audio: &str) -> std::result::Result<Opus, String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"8s\"\n\
             [network.up]\ndelay = \"1ms\"\n{audio}\n[[flow]]\n"
        );
        parse("x", &text, None).map(|it| it.call.audio).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_in_a_browser() {
        assert_eq!(read("").unwrap(), Opus::default());
        let asked = read("[call.audio]\nfec = false\nred = true\nframe = \"60ms\"").unwrap();
        assert_eq!(asked, Opus { fec: false, red: true, dtx: false, frame_ms: 60 });
    }

    #[test]
    fn a_frame_that_no_browser_makes_is_refused() {
        let error = read("[call.audio]\nframe = \"30ms\"").unwrap_err();
        assert!(error.contains("10ms, 20ms, 40ms or 60ms"), "{error}");
    }
}
