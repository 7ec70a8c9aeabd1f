//! Whole pictures of a received track. A page sends one every half second; they wait in a file
//! until the call is over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_vmaf::Luma;

use super::sighting::FrameSighting;

/// Largest message of a page: luma of a 4K picture and what it says of the frame.
pub(crate) const PICTURE_BYTES_MAX: usize = 4096 * 2304 + SIGHTING_BYTES_MAX;
const SIGHTING_BYTES_MAX: usize = 1024;
/// Bytes before the sighting: its length.
const LENGTH: usize = 4;

/// A picture as a page sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedPicture {
    /// Its frame.
    pub frame: FrameSighting,
    /// Its luma.
    pub luma: Luma,
}

impl ReceivedPicture {
    /// Reads a message: length of the sighting as 4 bytes, the sighting as JSON, the luma.
    ///
    /// # Errors
    /// One line, if the bytes are something else.
    pub(crate) fn read(message: &[u8]) -> Result<Self, String> {
        let (length, rest) = message.split_at_checked(LENGTH).ok_or("it has no length")?;
        let length = u32::from_be_bytes(length.try_into().expect("it has four bytes")) as usize;
        if length > SIGHTING_BYTES_MAX {
            return Err(format!("its description has {length} B"));
        }
        let (text, luma) = rest.split_at_checked(length).ok_or("its description is cut off")?;
        let frame: FrameSighting =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let (width, height) = (frame.width as usize, frame.height as usize);
        let luma = Luma::new(width, height, luma.to_vec())
            .ok_or_else(|| format!("it has {} B, not {width} x {height}", luma.len()))?;
        Ok(Self { frame, luma })
    }
}

/// Pictures of one peer, in the order of their arrival. The file has no name, so nothing is left.
#[derive(Debug, Default)]
pub(crate) struct PictureStore {
    file: Option<File>,
    end: u64,
    kept: Vec<(FrameSighting, u64)>,
}

impl PictureStore {
    pub(crate) fn push(&mut self, picture: &ReceivedPicture) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let pixels = picture.luma.pixels();
        file.write_all_at(pixels, self.end)?;
        self.kept.push((picture.frame, self.end));
        self.end += pixels.len() as u64;
        Ok(())
    }

    /// The frames of which it has pictures.
    pub(crate) fn frames(&self) -> impl Iterator<Item = FrameSighting> {
        self.kept.iter().map(|&(frame, _)| frame)
    }

    /// The picture of the frame with this index.
    pub(crate) fn luma(&self, index: usize) -> io::Result<Luma> {
        let (Some(file), Some(&(frame, start))) = (&self.file, self.kept.get(index)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (width, height) = (frame.width as usize, frame.height as usize);
        let mut pixels = vec![0; width * height];
        file.read_exact_at(&mut pixels, start)?;
        Luma::new(width, height, pixels).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, pixels: &[u8]) -> Vec<u8> {
        let mut message = (text.len() as u32).to_be_bytes().to_vec();
        message.extend(text.as_bytes());
        message.extend(pixels);
        message
    }

    const TEXT: &str = r#"{"atMs":1500.0,"timestampUs":7,"width":3,"height":2,"blocks":""}"#;

    #[test]
    fn a_picture_is_kept_as_it_was_sent() {
        let pixels = [1, 2, 3, 4, 5, 6];
        let picture = ReceivedPicture::read(&message(TEXT, &pixels)).unwrap();
        let mut store = PictureStore::default();
        for _ in 0..2 {
            store.push(&picture).unwrap();
        }
        assert_eq!(store.frames().count(), 2);
        assert_eq!(store.luma(1).unwrap(), picture.luma);
        assert!(store.luma(2).is_err());
    }

    #[test]
    fn every_truncation_of_a_message_is_refused() {
        let whole = message(TEXT, &[9; 6]);
        for length in 0..whole.len() {
            assert!(ReceivedPicture::read(&whole[..length]).is_err(), "{length}");
        }
        assert!(ReceivedPicture::read(&message(TEXT, &[9; 7])).is_err());
        assert!(ReceivedPicture::read(&[0xff; 40]).is_err());
        let endless = TEXT.replace("\"width\":3", "\"width\":4294967295");
        assert!(ReceivedPicture::read(&message(&endless, &[9; 6])).is_err());
    }
}
