//! Pictures that were encoded before.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};

use super::RIDS;

const FILE_HEADER: usize = 32;
const FRAME_HEADER: usize = 12;
/// The first bit of a frame of VP8 is 0 in key frames [RFC6386 §9.1].
const NO_KEY_FRAME: u8 = 1;

/// One layer, frame by frame.
pub type Frames = Vec<Arc<[u8]>>;

/// The layers, from the smallest.
pub struct Video {
    pub layers: Vec<Frames>,
}

impl Video {
    /// Reads the files `l.ivf`, `m.ivf` and `h.ivf` of a folder: VP8, with equally many frames.
    ///
    /// # Errors
    /// If a file is missing, is no IVF file, or does not begin with a key frame.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut layers = Vec::new();
        for name in RIDS {
            let path = folder.join(name).with_extension("ivf");
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            layers.push(parse(&bytes).with_context(|| path.display().to_string())?);
        }
        Ok(Self { layers })
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Frames> {
    ensure!(bytes.starts_with(b"DKIF"), "no IVF file");
    let mut rest = bytes.get(FILE_HEADER..).context("no frames")?;
    let mut frames = Frames::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let from = FRAME_HEADER - length_size();
        let frame = tail.get(from..from.saturating_add(length)).context("a frame is cut off")?;
        frames.push(frame.into());
        rest = &tail[from + length..];
    }
    ensure!(frames.first().is_some_and(|frame| is_key_frame(frame)), "no key frame at the start");
    Ok(frames)
}

/// The length is a part of a frame's header.
const fn length_size() -> usize {
    size_of::<u32>()
}

/// Whether decoding can begin at this frame.
pub fn is_key_frame(frame: &[u8]) -> bool {
    frame.first().is_some_and(|byte| byte & NO_KEY_FRAME == 0)
}

/// A file of frames with these contents.
#[cfg(test)]
pub fn file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"DKIF".to_vec();
    bytes.resize(FILE_HEADER, 0);
    for frame in frames {
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; FRAME_HEADER - length_size()]);
        bytes.extend_from_slice(frame);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_and_a_file_without_a_key_frame_or_an_end_is_refused() {
        let whole = file(&[vec![0x10, 2, 0], vec![0x11, 2]]);
        let frames = parse(&whole).unwrap();
        assert_eq!(frames.iter().map(|frame| frame.len()).collect::<Vec<_>>(), [3, 2]);
        assert!(is_key_frame(&frames[0]) && !is_key_frame(&frames[1]));
        assert!(parse(&whole[..whole.len() - 1]).is_err());
        assert!(parse(&file(&[vec![0x11]])).is_err());
        assert!(parse(b"RIFF").is_err());
    }
}
