//! What a page records of a track: blocks of samples, and when each passed.

use serde::Deserialize;
use weir::units::{TimeDelta, Timestamp};

use super::resample::{RATE, Resampler};

/// Largest message of a page: a second of stereo rates and what it says of the blocks.
pub(crate) const SOUND_BYTES_MAX: usize = 256 * 1024;
const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Bytes before the description: its length.
const LENGTH: usize = 4;
const SAMPLE_BYTES: usize = 2;
/// Rates of a sound card in samples a second.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=192_000;
/// Samples that are kept, a quarter of an hour. What comes later is not measured.
const KEPT_SAMPLES_MAX: usize = 48_000 * 900;
/// A block that is later than the samples before it by more than this follows a gap. Blocks have
/// 10 ms.
const GAP: TimeDelta = TimeDelta::from_millis(5);
const SCALE: f32 = 1.0 / 32_768.0;

/// Where a page records sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tap {
    /// Its own microphone, before the encoder.
    Microphone,
    /// What its receiver hands over to be played.
    Speaker,
}

/// A block of samples.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Block {
    /// When the page got it, in ms since 1970.
    pub at_ms: f64,
    /// Its timestamp in µs of a clock of its own.
    pub timestamp_us: f64,
    /// Samples in it.
    pub samples: usize,
}

/// Some blocks, as a page sends them.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundChunk {
    rate: u32,
    blocks: Vec<Block>,
    samples: Vec<i16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    rate: u32,
    blocks: Vec<Block>,
}

impl SoundChunk {
    /// Reads a message: length of the description as 4 bytes, the description as JSON, the samples.
    ///
    /// # Errors
    /// One line, if the bytes are something else.
    pub(crate) fn read(message: &[u8]) -> Result<Self, String> {
        let (length, rest) = message.split_at_checked(LENGTH).ok_or("it has no length")?;
        let length = u32::from_be_bytes(length.try_into().expect("it has four bytes")) as usize;
        if length > DESCRIPTION_BYTES_MAX {
            return Err(format!("its description has {length} B"));
        }
        let (text, bytes) = rest.split_at_checked(length).ok_or("its description is cut off")?;
        let Description { rate, blocks } =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let count = blocks.iter().fold(0, |sum: usize, it| sum.saturating_add(it.samples));
        if !RATES.contains(&rate) || Some(bytes.len()) != count.checked_mul(SAMPLE_BYTES) {
            return Err(format!("it has {} B for {count} samples of {rate} Hz", bytes.len()));
        }
        let mut samples = Vec::with_capacity(count);
        for pair in bytes.chunks_exact(SAMPLE_BYTES) {
            samples.push(i16::from_le_bytes([pair[0], pair[1]]));
        }
        Ok(Self { rate, blocks, samples })
    }
}

/// What one peer recorded of a track.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    rate: u32,
    blocks: Vec<Block>,
    samples: Vec<i16>,
}

/// A recording on the scenario's clock, with 16,000 samples a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// When the first sample was spoken or heard.
    pub start: Timestamp,
    /// Samples from -1 to 1. Silence where nothing was recorded.
    pub samples: Vec<f32>,
    /// The times between two stretches that were recorded.
    pub gaps: Vec<std::ops::Range<Timestamp>>,
}

/// Blocks that follow each other without a gap.
struct Stretch {
    /// Time of the first sample.
    start: Timestamp,
    samples: std::ops::Range<usize>,
}

impl Recording {
    /// Adds what a page sent next.
    ///
    /// # Errors
    /// One line, if the rate changes.
    pub(crate) fn push(&mut self, chunk: SoundChunk) -> Result<(), String> {
        if self.blocks.is_empty() {
            self.rate = chunk.rate;
        }
        if chunk.rate != self.rate {
            return Err(format!("the rate changes from {} to {} Hz", self.rate, chunk.rate));
        }
        if self.samples.len() + chunk.samples.len() <= KEPT_SAMPLES_MAX {
            self.blocks.extend(chunk.blocks);
            self.samples.extend(chunk.samples);
        }
        Ok(())
    }

    /// Puts the recording on the scenario's clock, which was zero at `zero_ms` since 1970.
    ///
    /// The page gets a block as late as it is busy, so the smallest lateness of a stretch dates all
    /// its samples. A microphone's block ends when the page gets it; a speaker's begins then.
    pub fn placed(&self, tap: Tap, zero_ms: f64) -> Track {
        let stretches = self.stretches(tap, zero_ms);
        let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
            return Track::default();
        };
        let start = first.start;
        let end = last.start + self.lasts(last.samples.len());
        let count = ((end - start).as_secs_f64() * RATE).max(0.0) as usize;
        let mut samples = vec![0.0; count];
        let resampler = Resampler::of(self.rate);
        let mut gaps = Vec::new();
        let mut before = start;
        for stretch in &stretches {
            if stretch.start - before > GAP {
                gaps.push(before..stretch.start);
            }
            before = stretch.start + self.lasts(stretch.samples.len());
            let mut heard = Vec::with_capacity(stretch.samples.len());
            for &sample in &self.samples[stretch.samples.clone()] {
                heard.push(f32::from(sample) * SCALE);
            }
            let offset = (stretch.start - start).as_secs_f64() * RATE;
            resampler.add(&heard, offset, &mut samples);
        }
        Track { start, samples, gaps }
    }

    fn lasts(&self, samples: usize) -> TimeDelta {
        TimeDelta::from_millis_f64(1e3 * samples as f64 / f64::from(self.rate))
    }

    fn stretches(&self, tap: Tap, zero_ms: f64) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut at = 0;
        let mut expected_us = f64::NEG_INFINITY;
        for block in &self.blocks {
            let own = at..at + block.samples;
            at = own.end;
            let mut time = Timestamp::ZERO + TimeDelta::from_millis_f64(block.at_ms - zero_ms);
            if tap == Tap::Microphone {
                time -= self.lasts(block.samples);
            }
            let late_us = block.timestamp_us - expected_us;
            match stretches.last_mut() {
                Some(last) if late_us.abs() <= GAP.as_millis_f64() * 1e3 => {
                    let before = self.lasts(own.start - last.samples.start);
                    last.start = last.start.min(time - before);
                    last.samples.end = own.end;
                }
                _ => stretches.push(Stretch { start: time, samples: own.clone() }),
            }
            expected_us = block.timestamp_us + 1e3 * self.lasts(block.samples).as_millis_f64();
        }
        stretches
    }
}

/// What a peer recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sounds {
    /// Of its own microphone.
    pub spoken: Track,
    /// Of what it received.
    pub heard: Track,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, bytes: &[u8]) -> Vec<u8> {
        let mut message = (text.len() as u32).to_be_bytes().to_vec();
        message.extend(text.as_bytes());
        message.extend(bytes);
        message
    }

    #[test]
    fn every_truncation_of_a_message_is_refused() {
        let whole = message(r#"{"rate":48000,"blocks":[[1500.0,7.0,2]]}"#, &[1, 0, 255, 255]);
        assert_eq!(SoundChunk::read(&whole).unwrap().samples, [1, -1]);
        for length in 0..whole.len() {
            assert!(SoundChunk::read(&whole[..length]).is_err(), "{length}");
        }
        let endless = r#"{"rate":48000,"blocks":[[0,0,18446744073709551615],[0,0,9]]}"#;
        assert!(SoundChunk::read(&message(endless, &[0; 16])).is_err());
        assert!(SoundChunk::read(&[0xff; 40]).is_err());
    }

    /// Blocks of 10 ms that come this late in ms, of a stretch that begins at a second.
    fn recording(late: &[f64]) -> Recording {
        let mut recording = Recording::default();
        for (number, late) in late.iter().enumerate() {
            let start = 1_000.0 + 10.0 * number as f64;
            let block =
                Block { at_ms: start + late, timestamp_us: 1e3 * start + 5.0, samples: 160 };
            let samples = vec![1_000; 160];
            recording.push(SoundChunk { rate: 16_000, blocks: vec![block], samples }).unwrap();
        }
        recording
    }

    #[test]
    fn the_least_late_block_dates_all_and_a_microphones_ends_as_it_comes() {
        let recording = recording(&[30.0, 14.0, 10.0, 25.0]);
        let spoken = recording.placed(Tap::Microphone, 900.0);
        assert_eq!((spoken.start, spoken.samples.len()), (Timestamp::from_millis(100), 640));
        let heard = recording.placed(Tap::Speaker, 900.0);
        assert_eq!(heard.start, Timestamp::from_millis(110));
        assert!(heard.gaps.is_empty());
    }

    #[test]
    fn a_block_that_is_missing_is_a_gap_of_silence() {
        let mut recording = recording(&[10.0; 6]);
        recording.blocks.remove(2);
        recording.samples.drain(..160);
        let track = recording.placed(Tap::Microphone, 0.0);
        let ms = Timestamp::from_millis;
        assert_eq!(track.gaps, [ms(1_020)..ms(1_030)]);
        assert_eq!(track.samples.len(), 960);
        assert!(track.samples[400].abs() < 0.01 && track.samples[700] > 0.02);
    }

    #[test]
    fn another_rate_is_refused_and_no_sound_is_no_track() {
        let mut recording = recording(&[0.0]);
        let chunk = SoundChunk { rate: 48_000, blocks: vec![], samples: vec![] };
        assert!(recording.push(chunk).unwrap_err().contains("16000 to 48000"));
        assert_eq!(Recording::default().placed(Tap::Speaker, 0.0), Track::default());
    }
}
