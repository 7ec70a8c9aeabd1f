//! Audio or video, and the clock of a stream: by its payload type [RFC3551 §6], by a session
//! description in the file, or by what its timestamps do.

use weir_record::calls::stats::Kind;

use super::flows::Stream;
use super::sessions::Mapping;

/// Static payload types [RFC3551 §6].
const STATIC: [(u8, &str, u32, Kind); 22] = [
    (0, "PCMU", 8_000, Kind::Audio),
    (3, "GSM", 8_000, Kind::Audio),
    (4, "G723", 8_000, Kind::Audio),
    (5, "DVI4", 8_000, Kind::Audio),
    (6, "DVI4", 16_000, Kind::Audio),
    (7, "LPC", 8_000, Kind::Audio),
    (8, "PCMA", 8_000, Kind::Audio),
    (9, "G722", 8_000, Kind::Audio),
    (10, "L16", 44_100, Kind::Audio),
    (11, "L16", 44_100, Kind::Audio),
    (12, "QCELP", 8_000, Kind::Audio),
    (13, "CN", 8_000, Kind::Audio),
    (14, "MPA", 90_000, Kind::Audio),
    (15, "G728", 8_000, Kind::Audio),
    (16, "DVI4", 11_025, Kind::Audio),
    (17, "DVI4", 22_050, Kind::Audio),
    (18, "G729", 8_000, Kind::Audio),
    (26, "JPEG", 90_000, Kind::Video),
    (31, "H261", 90_000, Kind::Video),
    (32, "MPV", 90_000, Kind::Video),
    (33, "MP2T", 90_000, Kind::Video),
    (34, "H263", 90_000, Kind::Video),
];
/// Comfort noise goes along with another codec.
const COMFORT_NOISE: [u8; 2] = [13, 19];
/// Clocks in use, without that of video.
const AUDIO_CLOCKS: [u32; 8] = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
const VIDEO_CLOCK: u32 = 90_000;
/// How far a measured clock may be from the true one, as a share: captures are short.
const CLOCK_ERROR: f64 = 0.08;
/// Errors that differ by less are equal: then the first measurement counts.
const CLOCK_NOISE: f64 = 0.005;
/// A share of the packets that only the packets of frames have in common with those before.
const FRAMES: f64 = 0.1;

/// What a stream is, as far as it shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KindFound {
    pub kind: Option<Kind>,
    pub clock_hz: Option<u32>,
    pub codec: Option<String>,
    /// The payload types, the most frequent one first.
    pub payload_types: Vec<u8>,
}

/// What a stream is. `described` are the mappings of its session description.
pub(super) fn of(stream: &Stream, described: &[Mapping]) -> KindFound {
    let mut by_count = stream.payload_types.clone();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let payload_types: Vec<u8> = by_count.iter().map(|(kind, _)| *kind).collect();
    let main = payload_types.iter().find(|kind| !COMFORT_NOISE.contains(kind)).copied();
    let found = KindFound { payload_types, ..KindFound::default() };
    if let Some(mapping) = described.iter().find(|it| Some(it.payload_type) == main) {
        return KindFound {
            kind: Some(mapping.kind),
            clock_hz: Some(mapping.clock_hz),
            codec: Some(mapping.codec.clone()),
            ..found
        };
    }
    if let Some((_, name, clock, kind)) = STATIC.iter().find(|(it, ..)| Some(*it) == main) {
        return KindFound {
            kind: Some(*kind),
            clock_hz: Some(*clock),
            codec: Some((*name).into()),
            ..found
        };
    }
    let Some((clock_hz, kind)) = nearest_clock(stream.measured_hz()) else {
        let kind = (stream.same_time() > FRAMES).then_some(Kind::Video);
        return KindFound { kind, ..found };
    };
    KindFound { kind: Some(kind), clock_hz: Some(clock_hz), ..found }
}

/// The clock that is nearest to one of those that were measured, and what has it.
fn nearest_clock(measured_hz: impl Iterator<Item = f64>) -> Option<(u32, Kind)> {
    let mut nearest: Option<(f64, u32, Kind)> = None;
    for measured_hz in measured_hz {
        let audio = AUDIO_CLOCKS.iter().map(|clock| (*clock, Kind::Audio));
        for (clock, kind) in audio.chain([(VIDEO_CLOCK, Kind::Video)]) {
            let error = (measured_hz / f64::from(clock) - 1.0).abs();
            let is_nearer = nearest.is_none_or(|(least, ..)| error + CLOCK_NOISE < least);
            if error <= CLOCK_ERROR && is_nearer {
                nearest = Some((error, clock, kind));
            }
        }
    }
    nearest.map(|(_, clock, kind)| (clock, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_clock_is_the_nearest_in_use_or_none() {
        let nearest = |measured: &[f64]| nearest_clock(measured.iter().copied());
        assert_eq!(nearest(&[88_500.0]), Some((90_000, Kind::Video)));
        assert_eq!(nearest(&[47_200.0]), Some((48_000, Kind::Audio)));
        assert_eq!(nearest(&[8_300.0]), Some((8_000, Kind::Audio)));
        assert_eq!(nearest(&[65_000.0]), None);
        // Packets that waited for 3 of 30 s and came all at once; the second one is over all.
        assert_eq!(nearest(&[100_000.0, 90_000.0]), Some((90_000, Kind::Video)));
        assert_eq!(nearest(&[47_300.0, 44_100.0]), Some((44_100, Kind::Audio)));
        // A sender whose timestamps stand still while it is silent.
        assert_eq!(nearest(&[8_010.0, 3_000.0]), Some((8_000, Kind::Audio)));
    }
}
