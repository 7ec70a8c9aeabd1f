//! VP8 at several bitrates, as make-video.sh writes it.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, ensure};
use bytes::Bytes;
use rtc::media::io::ivf_reader::IVFReader;
use weir::units::Bitrate;

pub const FRAMES_PER_SECOND: usize = 25;
/// Of the target bitrate for the video.
const SHARE: f64 = 0.85;

/// The same moving picture at each bitrate, frame by frame.
pub struct Video {
    /// By rising bitrate.
    versions: Vec<(Bitrate, Vec<Bytes>)>,
    version: usize,
    next: usize,
}

impl Video {
    /// Reads all files of a folder that are called by their bitrate, KBPS.ivf.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut versions = Vec::new();
        let entries = folder.read_dir().with_context(|| folder.display().to_string())?;
        for file in entries.map(|entry| entry.map(|entry| entry.path())) {
            let file = file?;
            let kbps = file.file_stem().and_then(|name| name.to_str()?.parse().ok());
            if let Some(kbps) = kbps {
                versions.push((Bitrate::from_kbps(kbps), frames(&file)?));
            }
        }
        ensure!(!versions.is_empty(), "{} has no video: run make-video.sh", folder.display());
        versions.sort_by_key(|(bitrate, _)| *bitrate);
        Ok(Self { versions, version: 0, next: 0 })
    }

    /// The next frame. Each second is of the best version that the target bitrate allows. If the
    /// target falls below the bitrate of the present one, the next second begins at once.
    pub fn next_frame(&mut self, target: Bitrate) -> Bytes {
        if target < self.versions[self.version].0 {
            self.next = self.next.next_multiple_of(FRAMES_PER_SECOND);
        }
        if self.next.is_multiple_of(FRAMES_PER_SECOND) {
            // What waits in the pacer since the target fell needs some room to leave.
            let fits = |(bitrate, _): &(Bitrate, _)| *bitrate <= target * SHARE;
            self.version = self.versions.iter().rposition(fits).unwrap_or(0);
        }
        let frames = &self.versions[self.version].1;
        let frame = frames[self.next % frames.len()].clone();
        self.next += 1;
        frame
    }
}

fn frames(file: &Path) -> anyhow::Result<Vec<Bytes>> {
    let (mut reader, _) = IVFReader::new(BufReader::new(File::open(file)?))?;
    // The reader has no end but an error.
    let frames = std::iter::from_fn(|| Some(reader.parse_next_frame().ok()?.0.freeze()));
    let frames: Vec<Bytes> = frames.collect();
    let whole_seconds = !frames.is_empty() && frames.len().is_multiple_of(FRAMES_PER_SECOND);
    ensure!(whole_seconds, "{} has {} frames", file.display(), frames.len());
    Ok(frames)
}
