//! The `[call.audio]` table: how the browsers of a call encode speech.

use std::ops::RangeInclusive;

use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_net::Schedule;
use weir_sim::{Speech, Udp};

use super::error::ScenarioError;
use super::reader::Item;

type Result<T> = std::result::Result<T, ScenarioError>;

const OPUS: &[&str] = &["fec", "red", "dtx", "frame", "bitrate"];
/// Frames that browsers make, in ms.
const FRAMES: [i64; 4] = [10, 20, 40, 60];

/// Rate of the speech in simulated packets of no given rate. With packets of 20 ms and headers they
/// have 20 kbit/s [RFC8867 §5].
const SPEECH_RATE: Bitrate = Bitrate::from_kbps(4);
/// Headers of IP, UDP and RTP.
const HEADER_BYTES: u64 = 40;
/// Rates that Opus takes [RFC6716 §2.1.1].
const RATES: RangeInclusive<Bitrate> = Bitrate::from_kbps(6)..=Bitrate::from_kbps(510);
/// Rate at which browsers encode speech of no given rate.
const BROWSER_RATE: Bitrate = Bitrate::from_kbps(32);
// Measured with libopus and the lab's speech (`scripts/results/speech-packets.py rates`).
/// Rate from which on packets have copies; that of packets of 10 ms, of which each has flags of its
/// own.
const COPYING_RATE: Bitrate = Bitrate::from_kbps(18);
const COPYING_RATE_10_MS: Bitrate = Bitrate::from_kbps(24);
/// Rate from which on frames are hybrid. Those have 20 ms at most [RFC6716 §3.1], and only the last
/// one of a packet is copied in the next packet.
const HYBRID_RATE: Bitrate = Bitrate::from_kbps(40);
const HYBRID_FRAME: TimeDelta = TimeDelta::from_millis(20);
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
    /// Rate of the speech without headers. `None` is that of a browser in calls, and that of
    /// RFC 8867 in simulation.
    pub bitrate: Option<Bitrate>,
}

impl Default for Opus {
    fn default() -> Self {
        Self { fec: true, red: false, dtx: false, frame_ms: 20, bitrate: None }
    }
}

impl Opus {
    /// The packets of a simulated microphone. `is_played` says whether its receiver plays them.
    pub(super) fn packets(self, is_played: bool) -> Udp {
        let ms = u64::from(self.frame_ms);
        let speech = (self.bitrate.unwrap_or(SPEECH_RATE) * self.length()).as_bytes();
        let copy = if self.red { speech + RED_HEADER_BYTES } else { 0 };
        let size = DataSize::from_bytes(HEADER_BYTES + speech + copy);
        let rate = Bitrate::from_bps(size.as_bytes() * 8 * 1000 / ms);
        let rate = Schedule::constant(rate).expect("the rate is not zero");
        Udp::new(rate, size).with_speech(is_played.then_some(self.speech()))
    }

    /// What is in a packet.
    pub fn speech(self) -> Speech {
        let copied = if self.fec { self.copied() } else { TimeDelta::ZERO };
        Speech { length: self.length(), copied, red: self.red, dtx: self.dtx }
    }

    fn length(self) -> TimeDelta {
        TimeDelta::from_millis(self.frame_ms.into())
    }

    /// How much of the end of the packet before a packet has a copy of, with FEC.
    fn copied(self) -> TimeDelta {
        let rate = self.bitrate.unwrap_or(BROWSER_RATE);
        let copying_rate = if self.frame_ms == 10 { COPYING_RATE_10_MS } else { COPYING_RATE };
        if rate < copying_rate {
            TimeDelta::ZERO
        } else if rate < HYBRID_RATE {
            self.length()
        } else {
            self.length().min(HYBRID_FRAME)
        }
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
    let mut bitrate = None;
    if let Some(item) = table.get("bitrate") {
        let rate = item.rate()?;
        if !RATES.contains(&rate) {
            return Err(item.error("Opus takes 6kbps to 510kbps"));
        }
        bitrate = Some(rate);
    }
    Ok(Opus {
        fec: table.or("fec", default.fec, Item::boolean)?,
        red: table.or("red", default.red, Item::boolean)?,
        dtx: table.or("dtx", default.dtx, Item::boolean)?,
        frame_ms,
        bitrate,
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
        assert_eq!(asked, Opus { fec: false, red: true, dtx: false, frame_ms: 60, bitrate: None });
        let rate = read("[call.audio]\nbitrate = \"24kbps\"").unwrap().bitrate;
        assert_eq!(rate, Some(Bitrate::from_kbps(24)));
    }

    fn packets(audio: &str) -> Udp {
        read(audio).unwrap().packets(true)
    }

    fn of_kbps(kbps: u64) -> Schedule {
        Schedule::constant(Bitrate::from_kbps(kbps)).unwrap()
    }

    // [RFC8867 §5]
    #[test]
    fn a_microphone_sends_20_kbps_less_in_long_packets_more_with_copies() {
        let usual = packets("");
        assert_eq!((usual.packet.as_bytes(), usual.rate), (50, of_kbps(20)));
        let long = packets("[call.audio]\nframe = \"60ms\"");
        assert_eq!(
            (long.packet.as_bytes(), long.speech.unwrap().length),
            (70, TimeDelta::from_millis(60))
        );
        let copies = packets("[call.audio]\nred = true\nfec = false");
        assert_eq!((copies.packet.as_bytes(), copies.rate), (65, of_kbps(26)));
        let given = packets("[call.audio]\nbitrate = \"64kbps\"");
        assert_eq!((given.packet.as_bytes(), given.rate), (200, of_kbps(80)));
        let has = |text: &str| packets(text).speech.map(|it| (it.copied.as_millis(), it.red));
        assert_eq!(has("[call.audio]\nred = true\nfec = false"), Some((0, true)));
        assert_eq!(has("[call.audio]\nred = true"), Some((20, true)));
        assert_eq!(has("[call.audio]\nfec = false"), Some((0, false)));
    }

    /// How much of the packet before a packet of this rate and length has a copy of, in ms.
    fn copied_ms(kbps: u64, frame_ms: u32) -> i64 {
        let bitrate = Some(Bitrate::from_kbps(kbps));
        Opus { bitrate, frame_ms, ..Opus::default() }.speech().copied.as_millis()
    }

    // [RFC6716 §3.1]
    #[test]
    fn low_rates_have_no_copies_and_high_ones_of_20_ms_at_most() {
        for length in [10, 20, 40, 60] {
            assert_eq!([6, 12, 16].map(|kbps| copied_ms(kbps, length)), [0; 3]);
            assert_eq!([24, 32].map(|kbps| copied_ms(kbps, length)), [i64::from(length); 2]);
            assert_eq!(
                [48, 64].map(|kbps| copied_ms(kbps, length)),
                [i64::from(length).min(20); 2]
            );
        }
    }

    #[test]
    fn packets_of_10_ms_need_a_higher_rate_for_copies() {
        assert_eq!([copied_ms(20, 10), copied_ms(20, 20)], [0, 20]);
    }

    #[test]
    fn a_rate_that_opus_does_not_take_is_refused() {
        for rate in ["5kbps", "600kbps"] {
            let error = read(&format!("[call.audio]\nbitrate = \"{rate}\"")).unwrap_err();
            assert!(error.contains("6kbps to 510kbps"), "{error}");
        }
    }

    #[test]
    fn a_frame_that_no_browser_makes_is_refused() {
        let error = read("[call.audio]\nframe = \"30ms\"").unwrap_err();
        assert!(error.contains("10ms, 20ms, 40ms or 60ms"), "{error}");
    }
}
