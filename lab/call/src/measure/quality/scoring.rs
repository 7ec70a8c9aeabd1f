//! Compares the received pictures with those of the camera's file.

use std::path::Path;

use weir::units::Timestamp;
use weir_vmaf::{Luma, Scores};

use super::camera_file::CameraFile;
use super::picture::{PictureStore, ReceivedPicture};
use super::sighting::{Place, TimedSighting};
use super::tag;

/// Rows below the tag that are not scored, either: a codec blurs the tag into them.
const BLURRED_ROWS: usize = 4;

/// A received picture and its scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredPicture {
    /// When it was on the received track.
    pub time: Timestamp,
    /// Number in its tag.
    pub number: u16,
    /// Width of the received picture in pixels.
    pub width: u32,
    /// Height of the received picture in pixels.
    pub height: u32,
    /// The scores, in the camera's size.
    pub scores: Scores,
}

impl ScoredPicture {
    /// VMAF; PSNR where there is none.
    pub(super) fn rank(&self) -> f64 {
        self.scores.vmaf.unwrap_or(self.scores.psnr_db)
    }
}

/// The scored pictures of a peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// In order.
    pub scored: Vec<ScoredPicture>,
    /// The worst of them: what was received and what was sent.
    pub worst: Option<[Luma; 2]>,
    /// What was the last picture at the times that the plan names, in seconds.
    pub at: Vec<(u32, ReceivedPicture)>,
}

/// Scores the pictures whose tag can be read, from the start of the scenario on, which is `zero`
/// since 1970. Keeps those that were the last ones at the seconds `at`.
///
/// # Errors
/// One line, if a file cannot be read.
pub(crate) fn score(
    store: &PictureStore,
    camera: &Path,
    zero: std::time::Duration,
    at: &[u32],
) -> Result<Pictures, String> {
    let camera =
        CameraFile::open(camera).map_err(|error| format!("{}: {error}", camera.display()))?;
    let mut pictures = Pictures { at: last_at(store, zero, at)?, ..Pictures::default() };
    for (index, frame) in store.frames().enumerate() {
        let Some(number) = frame.tag.map(|tag| tag.number) else { continue };
        let time = TimedSighting::of(Place::Track, frame, zero).time;
        // The set-up is not part of what is measured, and its pictures must not be the worst.
        if time < Timestamp::ZERO {
            continue;
        }
        let received = store.picture(index).map_err(|error| error.to_string())?.luma;
        let Some(compared) = Compared::of(&camera, number, &received)
            .map_err(|error| format!("the camera's video: {error}"))?
        else {
            continue;
        };
        let scores = compared.scores().map_err(|error| error.to_string())?;
        let scored =
            ScoredPicture { time, number, width: frame.width, height: frame.height, scores };
        if pictures.scored.iter().all(|other| scored.rank() < other.rank()) {
            let Compared { received, sent: [_, sent, _] } = compared;
            pictures.worst = Some([received, sent]);
        }
        pictures.scored.push(scored);
    }
    Ok(pictures)
}

/// The last picture that was received by each of these seconds; none before the first picture.
fn last_at(
    store: &PictureStore,
    zero: std::time::Duration,
    seconds: &[u32],
) -> Result<Vec<(u32, ReceivedPicture)>, String> {
    let times: Vec<Timestamp> =
        store.frames().map(|frame| TimedSighting::of(Place::Track, frame, zero).time).collect();
    let mut last = Vec::new();
    for &second in seconds {
        let end = Timestamp::from_secs(i64::from(second));
        let Some(index) = times.iter().rposition(|&time| time <= end) else { continue };
        last.push((second, store.picture(index).map_err(|error| error.to_string())?));
    }
    Ok(last)
}

/// A received picture, and the sent one between its neighbours. The tag is cut off.
struct Compared {
    received: Luma,
    sent: [Luma; 3],
}

impl Compared {
    /// `None` if the camera's file has no such picture.
    fn of(camera: &CameraFile, number: u16, received: &Luma) -> std::io::Result<Option<Self>> {
        let (number, frames) = (usize::from(number), camera.frames());
        if number >= frames {
            return Ok(None);
        }
        let (width, height) = camera.size();
        let rows = tag::side(width) + BLURRED_ROWS;
        // The file is played in a loop.
        let mut sent = Vec::new();
        for number in [(number + frames - 1) % frames, number, (number + 1) % frames] {
            sent.extend(camera.luma(number)?.below(rows));
        }
        let received = received.scaled(width, height).below(rows);
        let (Some(received), Ok(sent)) = (received, <[Luma; 3]>::try_from(sent)) else {
            return Ok(None);
        };
        Ok(Some(Self { received, sent }))
    }

    fn scores(&self) -> Result<Scores, weir_vmaf::ScoreError> {
        weir_vmaf::score(self.sent.each_ref(), &self.received)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::picture::ReceivedPicture;
    use super::super::sighting::FrameSighting;
    use super::super::tag::Tag;
    use super::*;

    const WIDTH: usize = 80;
    const HEIGHT: usize = 40;

    /// A file of three grey frames, each 50 lighter than the one before.
    fn camera() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 C420").unwrap();
        for frame in 0..3 {
            file.write_all(b"FRAME\n").unwrap();
            file.write_all(&[50 * (frame + 1); WIDTH * HEIGHT * 3 / 2]).unwrap();
        }
        file
    }

    fn picture(number: Option<u16>, side: usize, luma: u8) -> ReceivedPicture {
        let (width, height) = (2 * side, side);
        let frame = FrameSighting {
            at_ms: 1_250.0,
            timestamp_us: None,
            presented: None,
            rtp: None,
            width: width as u32,
            height: height as u32,
            tag: number.map(|number| Tag { number, stream: 0 }),
        };
        ReceivedPicture {
            frame,
            luma: Luma::new(width, height, vec![luma; width * height]).unwrap(),
            chroma: Vec::new(),
        }
    }

    #[test]
    fn a_picture_is_compared_with_the_frame_of_its_tag_in_the_camera_s_size() {
        let camera = camera();
        let mut store = PictureStore::default();
        for picture in [
            picture(Some(2), HEIGHT, 150),
            // Half the size, and 10 too dark.
            picture(Some(1), HEIGHT / 2, 90),
            picture(None, HEIGHT, 0),
            // Of the set-up.
            ReceivedPicture {
                frame: FrameSighting { at_ms: 999.0, ..picture(Some(0), HEIGHT, 0).frame },
                ..picture(Some(0), HEIGHT, 0)
            },
            picture(Some(3), HEIGHT, 0),
        ] {
            store.push(&picture).unwrap();
        }
        let zero = std::time::Duration::from_secs(1);
        let pictures = score(&store, camera.path(), zero, &[0, 3]).unwrap();
        let [same, darker] = pictures.scored[..] else { panic!("{:?}", pictures.scored) };
        assert_eq!((same.number, same.time), (2, Timestamp::from_millis(250)));
        assert_eq!(same.scores.psnr_db, 60.0);
        assert!((darker.scores.psnr_db - 28.130_803_6).abs() < 1e-6);
        // At 0 s there is only the picture of the set-up, and at 3 s the last one that came.
        let [(0, first), (3, last)] = &pictures.at[..] else { panic!("{:?}", pictures.at) };
        assert_eq!((first.frame.at_ms, last.frame.tag.unwrap().number), (999.0, 3));
        let [received, sent] = pictures.worst.unwrap();
        assert_eq!((received.pixels()[0], sent.pixels()[0]), (90, 100));
        assert_eq!(received.size(), (WIDTH, HEIGHT - 2 - BLURRED_ROWS));
    }
}
