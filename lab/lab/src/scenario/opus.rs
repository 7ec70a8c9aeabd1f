//! The `[call.audio]` table: how the browsers of a call encode speech.

use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_net::Schedule;
use weir_sim::{Speech, Udp};

use super::error::ScenarioError;
use super::reader::Item;

type Result<T> = std::result::Result<T, ScenarioError>;

const OPUS: &[&str] = &["fec", "red", "dtx", "frame"];
/// Frames that browsers make, in ms.
const FRAMES: [i64; 4] = [10, 20, 40, 60];

/// Bytes of speech in a packet of 20 ms, and headers of IP, UDP and RTP: 20 kbit/s [RFC8867 §5].
const SPEECH_BYTES: u64 = 10;
const SPEECH_MS: u64 = 20;
const HEADER_BYTES: u64 = 40;
/// A header for the copy and one for the packet's own speech [RFC2198 §3].
const RED_HEADER_BYTES: u64 = 5;

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

impl Opus {
    /// The packets of a simulated microphone. `is_played` says whether its receiver plays them.
    pub(super) fn packets(self, is_played: bool) -> Udp {
        let ms = u64::from(self.frame_ms);
        let speech = SPEECH_BYTES * ms / SPEECH_MS;
        let copy = if self.red { speech + RED_HEADER_BYTES } else { 0 };
        let size = DataSize::from_bytes(HEADER_BYTES + speech + copy);
        let length = TimeDelta::from_millis(ms as i64);
        let rate = Bitrate::from_bps(size.as_bytes() * 8 * 1000 / ms);
        let rate = Schedule::constant(rate).expect("the rate is not zero");
        let speech = Speech { length, fec: self.fec, red: self.red, dtx: self.dtx };
        Udp::new(rate, size).with_speech(is_played.then_some(speech))
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

    fn packets(audio: &str) -> Udp {
        read(audio).unwrap().packets(true)
    }

    fn of_kbps(kbps: u64) -> Schedule {
        Schedule::constant(Bitrate::from_kbps(kbps)).unwrap()
    }

    // [RFC8867 §5]
    #[test]
    fn a_simulated_microphone_sends_20_kbps_and_less_in_long_packets_and_more_with_copies() {
        let usual = packets("");
        assert_eq!((usual.packet.as_bytes(), usual.rate), (50, of_kbps(20)));
        let long = packets("[call.audio]\nframe = \"60ms\"");
        assert_eq!(
            (long.packet.as_bytes(), long.speech.unwrap().length),
            (70, TimeDelta::from_millis(60))
        );
        let copies = packets("[call.audio]\nred = true\nfec = false");
        assert_eq!((copies.packet.as_bytes(), copies.rate), (65, of_kbps(26)));
        let has = |text: &str| packets(text).speech.map(|speech| (speech.fec, speech.red)).unwrap();
        assert_eq!(has("[call.audio]\nred = true\nfec = false"), (false, true));
        assert_eq!(has("[call.audio]\nred = true"), (true, true));
        assert_eq!(has("[call.audio]\nfec = false"), (false, false));
    }

    #[test]
    fn a_frame_that_no_browser_makes_is_refused() {
        let error = read("[call.audio]\nframe = \"30ms\"").unwrap_err();
        assert!(error.contains("10ms, 20ms, 40ms or 60ms"), "{error}");
    }
}
