//! A frame that a page has seen, as it tells the lab.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use weir::units::{TimeDelta, Timestamp};

use super::tag::{BLOCKS, Blocks, Tag};

/// Where a page sees frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the track of its own camera, before the encoder.
    Camera,
    /// On the received track, after the decoder.
    Track,
    /// On its screen.
    Screen,
}

/// A frame that passed a place.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FrameSighting {
    /// When, in ms since 1970.
    pub at_ms: f64,
    /// Timestamp of the frame, in µs of a clock of its own.
    #[serde(default)]
    pub timestamp_us: Option<f64>,
    /// On screen: how many frames the browser has shown so far. The page may miss some.
    #[serde(default)]
    pub presented: Option<u64>,
    /// On screen: the RTP timestamp of a received frame, in units of 1/90,000 s, with any start.
    #[serde(default)]
    pub rtp: Option<u32>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The tag; `None` if it cannot be read.
    #[serde(rename = "blocks", deserialize_with = "tag_of_blocks")]
    pub tag: Option<Tag>,
}

/// A sighting in scenario time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedSighting {
    /// Where.
    pub place: Place,
    /// When.
    pub time: Timestamp,
    /// What.
    pub frame: FrameSighting,
}

impl TimedSighting {
    /// `zero` is the start of the scenario, since 1970.
    pub(crate) fn of(place: Place, frame: FrameSighting, zero: Duration) -> Self {
        let since = TimeDelta::from_millis_f64(frame.at_ms - zero.as_secs_f64() * 1e3);
        Self { place, time: Timestamp::ZERO + since, frame }
    }
}

/// Reads a tag from the mean luma of its blocks, two hexadecimal digits each. No digits mean that
/// the page could not measure them.
fn tag_of_blocks<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Tag>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    let blocks = blocks(&text).ok_or_else(|| {
        de::Error::custom(format!("the blocks of a tag are not {BLOCKS} hexadecimal numbers"))
    })?;
    Ok(Tag::read(&blocks))
}

fn blocks(text: &str) -> Option<Blocks> {
    if text.len() != 2 * BLOCKS {
        return None;
    }
    let mut blocks = [0; BLOCKS];
    for (index, block) in blocks.iter_mut().enumerate() {
        let digits = text.get(2 * index..2 * index + 2)?;
        *block = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(blocks: &str) -> Result<FrameSighting, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"atMs":1500.25,"timestampUs":7,"width":640,"height":360,"blocks":"{blocks}"}}"#
        ))
    }

    #[test]
    fn blocks_are_read_as_the_tag_that_they_show() {
        let tag = Tag { number: 77, stream: 0 };
        let text: String = tag.blocks().iter().map(|luma| format!("{luma:02x}")).collect();
        let seen = sighting(&text).unwrap();
        assert_eq!(seen.tag, Some(tag));
        let timed = TimedSighting::of(Place::Track, seen, Duration::from_secs(1));
        assert_eq!(timed.time, Timestamp::from_micros(500_250));
    }

    #[test]
    fn a_picture_without_tag_is_seen_and_other_text_is_an_error() {
        assert_eq!(sighting(&"7f".repeat(BLOCKS)).unwrap().tag, None);
        assert_eq!(sighting("").unwrap().tag, None);
        for wrong in ["7f".repeat(BLOCKS + 1), "zz".repeat(BLOCKS), "ä".repeat(BLOCKS)] {
            assert!(sighting(&wrong).is_err(), "{wrong}");
        }
    }
}
