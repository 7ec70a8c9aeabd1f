//! Whole pictures of a received track. A page sends one every half second; they wait in a file
//! until the call is over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_vmaf::Luma;

use super::sighting::FrameSighting;

/// Largest message of a page: a 4K picture and what it says of the frame.
pub(crate) const PICTURE_BYTES_MAX: usize = 4096 * 2304 * 3 / 2 + SIGHTING_BYTES_MAX;
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
    /// Its two planes of chroma, of half width and height; empty if the page could not tell them.
    pub chroma: Vec<u8>,
}

/// Bytes of both planes of chroma of a picture.
fn chroma_bytes(width: usize, height: usize) -> usize {
    2 * width.div_ceil(2) * height.div_ceil(2)
}

/// A value of a plane of chroma, from its middle. A picture without chroma is grey.
fn chroma_at(plane: &[u8], place: usize) -> f64 {
    plane.get(place).map_or(0.0, |&value| f64::from(value) - 128.0)
}

impl ReceivedPicture {
    /// Reads a message: length of the sighting as 4 bytes, the sighting as JSON, the luma, and the
    /// chroma, if there is any.
    ///
    /// # Errors
    /// One line, if the bytes are something else.
    pub(crate) fn read(message: &[u8]) -> Result<Self, String> {
        let (length, rest) = message.split_at_checked(LENGTH).ok_or("it has no length")?;
        let length = u32::from_be_bytes(length.try_into().expect("it has four bytes")) as usize;
        if length > SIGHTING_BYTES_MAX {
            return Err(format!("its description has {length} B"));
        }
        let (text, pixels) = rest.split_at_checked(length).ok_or("its description is cut off")?;
        let frame: FrameSighting =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let (width, height) = (frame.width as usize, frame.height as usize);
        let (luma, chroma) = width
            .checked_mul(height)
            .and_then(|count| pixels.split_at_checked(count))
            .filter(|(_, rest)| rest.is_empty() || rest.len() == chroma_bytes(width, height))
            .ok_or_else(|| format!("it has {} B, not {width} x {height}", pixels.len()))?;
        let luma = Luma::new(width, height, luma.to_vec()).ok_or("it is empty")?;
        Ok(Self { frame, luma, chroma: chroma.to_vec() })
    }

    /// Red, green and blue of each pixel, row by row. Grey without chroma.
    pub(super) fn rgb(&self) -> Vec<u8> {
        let (width, height) = self.luma.size();
        let half = width.div_ceil(2);
        let (u, v) = self.chroma.split_at(self.chroma.len() / 2);
        let mut rgb = Vec::with_capacity(3 * width * height);
        for (at, &luma) in self.luma.pixels().iter().enumerate() {
            let place = at / width / 2 * half + at % width / 2;
            let [u, v] = [chroma_at(u, place), chroma_at(v, place)];
            // Limited range, as video of less than HD has it (ITU-R BT.601).
            let y = 255.0 / 219.0 * (f64::from(luma) - 16.0);
            for value in [y + 1.596 * v, y - 0.392 * u - 0.813 * v, y + 2.017 * u] {
                rgb.push(value.round().clamp(0.0, 255.0) as u8);
            }
        }
        rgb
    }
}

/// Pictures of one peer, in the order of their arrival. The file has no name, so nothing is left.
#[derive(Debug, Default)]
pub(crate) struct PictureStore {
    file: Option<File>,
    end: u64,
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    frame: FrameSighting,
    start: u64,
    chroma: usize,
}

impl PictureStore {
    pub(crate) fn push(&mut self, picture: &ReceivedPicture) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let luma = picture.luma.pixels();
        let (start, middle) = (self.end, self.end + luma.len() as u64);
        file.write_all_at(luma, start)?;
        file.write_all_at(&picture.chroma, middle)?;
        self.kept.push(Kept { frame: picture.frame, start, chroma: picture.chroma.len() });
        self.end = middle + picture.chroma.len() as u64;
        Ok(())
    }

    /// The frames of which it has pictures.
    pub(crate) fn frames(&self) -> impl Iterator<Item = FrameSighting> {
        self.kept.iter().map(|kept| kept.frame)
    }

    /// The picture of the frame with this index.
    pub(crate) fn picture(&self, index: usize) -> io::Result<ReceivedPicture> {
        let (Some(file), Some(kept)) = (&self.file, self.kept.get(index)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let &Kept { frame, start, chroma } = kept;
        let (width, height) = (frame.width as usize, frame.height as usize);
        let mut luma = vec![0; width * height];
        file.read_exact_at(&mut luma, start)?;
        let mut rest = vec![0; chroma];
        file.read_exact_at(&mut rest, start + luma.len() as u64)?;
        let luma = Luma::new(width, height, luma).ok_or(io::ErrorKind::InvalidData)?;
        Ok(ReceivedPicture { frame, luma, chroma: rest })
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
        let pixels = [1, 2, 3, 4, 5, 6, 128, 228, 128, 28];
        let mut store = PictureStore::default();
        // With chroma and without it.
        for length in [10, 6] {
            let picture = ReceivedPicture::read(&message(TEXT, &pixels[..length])).unwrap();
            store.push(&picture).unwrap();
            assert_eq!(store.picture(store.frames().count() - 1).unwrap(), picture);
        }
        assert_eq!(store.picture(0).unwrap().chroma, pixels[6..]);
        assert_eq!(store.picture(1).unwrap().luma.pixels(), &pixels[..6]);
        assert!(store.picture(2).is_err());
    }

    #[test]
    fn colours_are_those_of_limited_range() {
        let frame = ReceivedPicture::read(&message(TEXT, &[16; 6])).unwrap().frame;
        let luma = Luma::new(3, 2, vec![235, 16, 16, 235, 81, 126]).unwrap();
        let grey = ReceivedPicture { frame, luma, chroma: Vec::new() };
        assert_eq!(grey.rgb()[..6], [255, 255, 255, 0, 0, 0]);
        // The chroma of red in the right column.
        let red = ReceivedPicture { chroma: vec![128, 90, 128, 240], ..grey };
        let rgb = red.rgb();
        assert_eq!(rgb[..6], [255, 255, 255, 0, 0, 0]);
        assert!(rgb[15] > 250 && rgb[16] < 60 && rgb[17] < 60, "{:?}", &rgb[15..]);
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
