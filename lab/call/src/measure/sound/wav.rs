//! WAV files: the speech that Chromium's microphone plays, and what was said and heard.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::recording::Track;
use super::resample::RATE;

/// Ten seconds of a public-domain recording of LibriVox (NOTICE.md).
const SPEECH: &[u8] = include_bytes!("../../../content/sense-and-sensibility.wav");
/// File mode: readable by all, because the browsers may run as another user.
const READ_BY_ALL: u32 = 0o644;
const LOUDEST: f32 = 32_767.0;
const SAMPLE_BYTES: u32 = 2;
const HEADER_BYTES: u32 = 36;

/// Writes the file that microphones play, in a loop.
///
/// # Errors
/// One line, if it cannot be written.
pub(crate) fn speech_in(folder: &Path) -> Result<PathBuf, String> {
    let path = folder.join("microphone.wav");
    let written = fs::write(&path, SPEECH)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(READ_BY_ALL)));
    match written {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("the microphone plays the browser's own tones: {error}")),
    }
}

/// Writes a track as a WAV file of one channel.
pub(super) fn write(path: &Path, track: &Track) -> io::Result<()> {
    let rate = RATE as u32;
    let bytes = u32::try_from(track.samples.len()).map_err(io::Error::other)? * SAMPLE_BYTES;
    let mut out = BufWriter::new(File::create_new(path)?);
    out.write_all(b"RIFF")?;
    out.write_all(&(HEADER_BYTES + bytes).to_le_bytes())?;
    out.write_all(b"WAVEfmt ")?;
    // Length of the format, PCM, one channel.
    out.write_all(&16_u32.to_le_bytes())?;
    out.write_all(&1_u16.to_le_bytes())?;
    out.write_all(&1_u16.to_le_bytes())?;
    out.write_all(&rate.to_le_bytes())?;
    out.write_all(&(rate * SAMPLE_BYTES).to_le_bytes())?;
    out.write_all(&2_u16.to_le_bytes())?;
    out.write_all(&16_u16.to_le_bytes())?;
    out.write_all(b"data")?;
    out.write_all(&bytes.to_le_bytes())?;
    for sample in &track.samples {
        let value = (sample.clamp(-1.0, 1.0) * LOUDEST).round() as i16;
        out.write_all(&value.to_le_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_header_of_the_recorded_speech_and_its_own_samples() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.wav");
        let track = Track { samples: vec![0.0, 1.0, -1.0], ..Track::default() };
        write(&path, &track).unwrap();
        let bytes = fs::read(path).unwrap();
        // All but the two lengths.
        assert_eq!(bytes[8..40], SPEECH[8..40]);
        assert_eq!(bytes[4..8], 42_u32.to_le_bytes());
        assert_eq!(bytes[40..], [6, 0, 0, 0, 0, 0, 0xff, 0x7f, 0x01, 0x80]);
    }
}
