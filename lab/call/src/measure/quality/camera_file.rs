//! The file of a camera, a video of the format YUV4MPEG2 without compression: draws the tags into
//! it, and reads its pictures.

use std::fs::File;
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use weir_vmaf::Luma;

use super::tag::{self, Tag};

/// Longest first line of a file. ffmpeg writes about 60 bytes.
const HEADER_MAX: usize = 256;
const MAGIC: &str = "YUV4MPEG2 ";
/// The line before each frame.
const FRAME: &[u8] = b"FRAME\n";
/// Chroma without colour.
const GREY: u8 = 128;

/// Tags each frame with its number in the file and the number of the stream. Returns the number of
/// frames.
///
/// # Errors
/// If the file is not a video with chroma of half width and height, or cannot be changed.
pub(crate) fn draw(file: &File, stream: u8) -> io::Result<usize> {
    let header = Header::read(file)?;
    let Header { width, height, .. } = header;
    let (half, chroma_rows) = (width / 2, tag::side(width) / 2);
    let chroma = vec![GREY; half * chroma_rows];
    let frames = header.frames(file)?;
    for number in 0..frames {
        let luma = header.luma_at(number);
        let mut line = [0; FRAME.len()];
        file.read_exact_at(&mut line, luma - FRAME.len() as u64)?;
        if line != FRAME {
            return Err(refused("its frames have parameters"));
        }
        let u = luma + (width * height) as u64;
        let v = u + (half * (height / 2)) as u64;
        let tag = Tag { number: number as u16, stream };
        file.write_all_at(&tag.rows(width), luma)?;
        file.write_all_at(&chroma, u)?;
        file.write_all_at(&chroma, v)?;
    }
    Ok(frames)
}

/// A camera's file, to look at what was sent.
pub(super) struct CameraFile {
    file: File,
    header: Header,
    frames: usize,
}

impl CameraFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let header = Header::read(&file)?;
        let frames = header.frames(&file)?;
        Ok(Self { file, header, frames })
    }

    /// Number of frames, at least 1.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// Width and height.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.header.width, self.header.height)
    }

    pub(super) fn luma(&self, frame: usize) -> io::Result<Luma> {
        let (width, height) = self.size();
        let mut pixels = vec![0; width * height];
        self.file.read_exact_at(&mut pixels, self.header.luma_at(frame))?;
        Luma::new(width, height, pixels).ok_or_else(|| refused("it has no size"))
    }
}

struct Header {
    width: usize,
    height: usize,
    /// Length of the first line.
    bytes: usize,
}

impl Header {
    fn read(file: &File) -> io::Result<Self> {
        let mut start = vec![0; HEADER_MAX];
        let read = file.read_at(&mut start, 0)?;
        let line = start[..read].split(|&byte| byte == b'\n').next().unwrap_or_default();
        if line.len() == read {
            return Err(refused("it has no first line"));
        }
        let text = str::from_utf8(line).ok().and_then(|text| text.strip_prefix(MAGIC));
        let text = text.ok_or_else(|| refused("it is not YUV4MPEG2"))?;
        let (mut width, mut height, mut is_420) = (0, 0, true);
        for word in text.split(' ') {
            match word.split_at_checked(1) {
                Some(("W", number)) => width = number.parse().unwrap_or(0),
                Some(("H", number)) => height = number.parse().unwrap_or(0),
                // Several positions of the chroma have the same layout.
                Some(("C", layout)) => is_420 = layout.starts_with("420") && layout != "420p10",
                _ => {}
            }
        }
        let has_room = tag::side(width) > 0 && tag::side(width) <= height;
        if !is_420 || !has_room || width % 2 != 0 || height % 2 != 0 {
            return Err(refused("its size or its chroma has no room for tags"));
        }
        Ok(Self { width, height, bytes: line.len() + 1 })
    }

    fn frame_bytes(&self) -> u64 {
        (FRAME.len() + self.width * self.height * 3 / 2) as u64
    }

    /// Where the luma of a frame begins.
    fn luma_at(&self, frame: usize) -> u64 {
        (self.bytes + FRAME.len()) as u64 + frame as u64 * self.frame_bytes()
    }

    /// Number of whole frames.
    fn frames(&self, file: &File) -> io::Result<usize> {
        let bytes = file.metadata()?.len().saturating_sub(self.bytes as u64);
        match (bytes / self.frame_bytes(), bytes % self.frame_bytes()) {
            (0, _) => Err(refused("it has no frame")),
            (frames, 0) => Ok(frames as usize),
            _ => Err(refused("its last frame is cut off, or its frames have parameters")),
        }
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the camera's video cannot be tagged: {why}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const WIDTH: usize = 80;
    const HEIGHT: usize = 6;
    const FRAME_BYTES: usize = FRAME.len() + WIDTH * HEIGHT * 3 / 2;

    fn file(header: &str, frames: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(header.as_bytes()).unwrap();
        for _ in 0..frames {
            file.write_all(FRAME).unwrap();
            file.write_all(&[77; WIDTH * HEIGHT * 3 / 2]).unwrap();
        }
        file
    }

    #[test]
    fn each_frame_of_a_file_gets_its_number_and_keeps_the_rest_of_its_picture() {
        let header = "YUV4MPEG2 W80 H6 F30:1 Ip A1:1 C420jpeg XYSCSS=420JPEG\n";
        let file = file(header, 3);
        assert_eq!(draw(&file, 0).unwrap(), 3);
        for number in 0..3 {
            let mut frame = vec![0; FRAME_BYTES];
            file.read_exact_at(&mut frame, (header.len() + number * FRAME_BYTES) as u64).unwrap();
            let luma = &frame[FRAME.len()..];
            let blocks = tag::measure(luma, WIDTH, WIDTH).unwrap();
            assert_eq!(Tag::read(&blocks).unwrap().number, number as u16);
            assert!(luma[2 * WIDTH..WIDTH * HEIGHT].iter().all(|&luma| luma == 77));
            let u = &luma[WIDTH * HEIGHT..];
            assert_eq!((u[0], u[WIDTH / 2]), (GREY, 77));
        }
    }

    #[test]
    fn a_file_that_has_no_room_or_another_layout_is_refused() {
        for header in [
            "YUV4MPEG2 W80 H6 C444\n",
            "YUV4MPEG2 W38 H6 C420\n",
            "YUV4MPEG2 W80\n",
            "RIFF\n",
            "YUV4MPEG2 W80 H6",
        ] {
            assert!(draw(&file(header, 0), 0).is_err(), "{header}");
        }
        let other = file("YUV4MPEG2 W80 H6 C420\nFRAME Ip\n", 0);
        assert!(draw(&other, 0).is_err());
    }
}
