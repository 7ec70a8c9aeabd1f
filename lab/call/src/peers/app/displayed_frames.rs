//! What the pages of an application showed, with `--quality`.
//!
//! ```text
//!   camera with stream 0 -> p1's page -> application -> p2's page -> screen
//!                              |                           |
//!                              +-- displayed_frames.mjs ---+----> two files of each participant
//! ```
//!
//! The lab does not know how an application carries its media, so the tag of each frame says whose
//! camera it is: a participant's stream is its index.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use weir::units::Timestamp;
use weir_record::lines::{self, Line};

use crate::error::CallError;
use crate::measure::quality::picture::{PICTURE_BYTES_MAX, PictureStore};
use crate::measure::quality::scoring::{self, Pictures};
use crate::measure::quality::{
    FrameSighting, Place, ReceivedFrames, ReceivedPicture, TimedSighting, Timeline, Watched,
    camera_file,
};
use crate::peers::camera;

/// Maximum length of a line of a driver, which has the frames of half a second.
const LINE_BYTES_MAX: usize = 16_000_000;
/// Most participants whose streams a tag can tell apart.
pub const WATCHED_MAX: usize = 16;
const READ_BY_ALL: u32 = 0o644;

/// The files that the driver needs for it, by name.
const SCRIPTS: [(&str, &str); 3] = [
    ("displayed_frames.mjs", include_str!("displayed_frames.mjs")),
    ("sight.js", include_str!("sight.js")),
    ("frames.js", include_str!("../../../page/frames.js")),
];

/// Writes the driver's scripts beside it.
pub(super) fn write_scripts(folder: &Path) -> io::Result<()> {
    for (name, text) in SCRIPTS {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// The cameras of all participants, and what their pages tell.
pub(super) struct Watch {
    cameras: Vec<PathBuf>,
    folder: PathBuf,
    fps: u32,
}

impl Watch {
    /// Makes a camera's file with a stream of its own for each participant, from `camera`, in
    /// `folder`. What the pages tell is kept in `dumps`.
    pub(super) fn prepare(
        camera: &Path,
        fps: u32,
        participants: usize,
        folder: &Path,
        dumps: &Path,
    ) -> Result<Self, CallError> {
        let mut cameras = Vec::new();
        for stream in 0..participants {
            let path = folder.join(format!("camera-{stream}.y4m"));
            own_camera(camera, &path, stream as u8)
                .map_err(CallError::system("make a participant's camera"))?;
            cameras.push(path);
        }
        Ok(Self { cameras, folder: dumps.into(), fps })
    }

    /// The file of this participant's camera.
    pub(super) fn camera(&self, index: usize) -> &Path {
        &self.cameras[index]
    }

    fn frames_file(&self, index: usize) -> PathBuf {
        self.folder.join(format!("p{}.frames", index + 1))
    }

    fn pictures_file(&self, index: usize) -> PathBuf {
        self.folder.join(format!("p{}.pictures", index + 1))
    }

    /// What the driver of a participant must know.
    pub(super) fn settings(&self, index: usize) -> Value {
        json!({
            "camera": self.cameras[index],
            "fps": self.fps,
            "frames": self.frames_file(index),
            "pictures": self.pictures_file(index),
        })
    }

    /// Who saw whom, and how. `zero` is the start of the scenario since 1970, and `at` are the
    /// seconds at which pictures are kept.
    ///
    /// # Errors
    /// If a file cannot be read, or if a picture cannot be scored.
    pub(super) fn received(
        &self,
        zero: Duration,
        span: &Range<Timestamp>,
        at: &[u32],
    ) -> Result<Vec<ReceivedFrames>, String> {
        let mut pages = Vec::new();
        for index in 0..self.cameras.len() {
            let file = open(&self.frames_file(index)).map_err(|error| error.to_string())?;
            pages.push(Page::read(file, zero).map_err(|error| error.to_string())?);
        }
        let mut received = Vec::new();
        for (to, page) in pages.iter().enumerate() {
            let file = open(&self.pictures_file(to)).map_err(|error| error.to_string())?;
            let mut stores = pictures(file).map_err(|error| error.to_string())?;
            for (from, sender) in pages.iter().enumerate() {
                let Some(seen) = page.seen.get(&(from as u8)).filter(|_| from != to) else {
                    continue;
                };
                let timeline = Timeline::of(&sender.camera, seen, camera::tagged_loop());
                let scored = match stores.remove(&(from as u8)) {
                    Some(store) => scoring::score(&store, &self.cameras[from], zero, at)?,
                    None => Pictures::default(),
                };
                let [from, to_name] = [from, to].map(|index| format!("p{}", index + 1));
                let watched = Watched { call: to + 1, from, to: to_name };
                received.push(watched.received(timeline, scored, span.clone()));
            }
        }
        Ok(received)
    }
}

/// A copy of a camera's file whose tags have this stream.
fn own_camera(camera: &Path, path: &Path, stream: u8) -> io::Result<()> {
    fs::copy(camera, path)?;
    let file = File::options().read(true).write(true).open(path)?;
    camera_file::draw(&file, stream)?;
    file.set_permissions(Permissions::from_mode(READ_BY_ALL))
}

/// A file of a driver. One that ended before its page was watched has written none.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    match File::open(path) {
        Ok(file) => Ok(Box::new(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(io::empty())),
        Err(error) => Err(error),
    }
}

/// Frames of one video of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    place: Place,
    /// Name of the video in its page. One element has one name, whatever it shows.
    video: String,
    frames: Vec<FrameSighting>,
}

/// What the pages of one participant saw.
#[derive(Default)]
struct Page {
    /// Of its own camera, opened last.
    camera: Vec<TimedSighting>,
    /// Of the cameras of others, by their streams.
    seen: BTreeMap<u8, Vec<TimedSighting>>,
}

impl Page {
    /// Lines that are no reports are left out: the end of the run may cut one. So is a line that is
    /// too long.
    fn read(mut file: impl BufRead, zero: Duration) -> io::Result<Self> {
        let mut videos: Vec<(Place, String, Vec<TimedSighting>)> = Vec::new();
        let mut line = Vec::new();
        loop {
            match lines::read(&mut file, &mut line, LINE_BYTES_MAX)? {
                Line::End => break,
                Line::TooLong => continue,
                Line::Whole => {}
            }
            let Ok(told) = serde_json::from_slice::<Told>(&line) else { continue };
            let known = videos.iter().position(|(_, video, _)| *video == told.video);
            let index = known.unwrap_or(videos.len());
            if known.is_none() {
                videos.push((told.place, told.video, Vec::new()));
            }
            for frame in told.frames {
                videos[index].2.push(TimedSighting::of(told.place, frame, zero));
            }
        }
        let mut page = Self::default();
        let mut most: BTreeMap<(u8, bool), usize> = BTreeMap::new();
        for (place, _, mut sightings) in videos {
            sightings.sort_by_key(|seen: &TimedSighting| seen.time);
            if place == Place::Camera {
                page.camera = sightings;
                continue;
            }
            for (stream, sightings) in by_stream(&sightings) {
                let best = most.entry((stream, place == Place::Screen)).or_default();
                // Of several places that show one camera, the one with the most pictures counts.
                if sightings.len() > *best {
                    *best = sightings.len();
                    let seen = page.seen.entry(stream).or_default();
                    seen.retain(|other| other.place != place);
                    seen.extend(sightings);
                }
            }
        }
        for seen in page.seen.values_mut() {
            seen.sort_by_key(|seen| seen.time);
        }
        Ok(page)
    }
}

/// The frames of one video by their streams: an element may show one camera after another. A frame
/// whose tag cannot be read is taken to be of the stream of the one before.
fn by_stream(sightings: &[TimedSighting]) -> BTreeMap<u8, Vec<TimedSighting>> {
    let mut streams: BTreeMap<u8, Vec<TimedSighting>> = BTreeMap::new();
    let mut last = None;
    for sighting in sightings {
        last = sighting.frame.tag.map(|tag| tag.stream).or(last);
        if let Some(stream) = last {
            streams.entry(stream).or_default().push(*sighting);
        }
    }
    streams
}

/// The pictures of each stream. What is cut off at the end is left out.
fn pictures(mut file: impl Read) -> io::Result<BTreeMap<u8, PictureStore>> {
    let mut stores: BTreeMap<u8, PictureStore> = BTreeMap::new();
    let mut length = [0; 4];
    while file.read_exact(&mut length).is_ok() {
        let length = u32::from_be_bytes(length) as usize;
        let mut message = vec![0; length.min(PICTURE_BYTES_MAX)];
        if file.read_exact(&mut message).is_err() {
            break;
        }
        let Ok(picture) = ReceivedPicture::read(&message) else { continue };
        if let Some(tag) = picture.frame.tag {
            stores.entry(tag.stream).or_default().push(&picture)?;
        }
    }
    Ok(stores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::quality::tag::Tag;

    fn frame(at_ms: u32, tag: Option<Tag>) -> String {
        let blocks = tag.map_or(String::new(), |tag| {
            tag.blocks().iter().map(|luma| format!("{luma:02x}")).collect()
        });
        let size = r#""width":640,"height":360"#;
        format!(r#"{{"atMs":{at_ms},"timestampUs":{at_ms}000,{size},"blocks":"{blocks}"}}"#)
    }

    fn line(place: &str, video: &str, frames: &[String]) -> String {
        format!(r#"{{"place":"{place}","video":"{video}","frames":[{}]}}"#, frames.join(","))
    }

    fn tag(stream: u8, number: u16) -> Option<Tag> {
        Some(Tag { number, stream })
    }

    #[test]
    fn frames_go_to_the_camera_of_their_tag_and_the_larger_screen_counts() {
        let lines = [
            line("camera", "x-1", &[frame(900, tag(0, 1))]),
            line("camera", "x-2", &[frame(1000, tag(0, 4)), frame(1033, tag(0, 5))]),
            // The element shows p2's camera, a damaged frame, and then p3's.
            line("screen", "x-3", &[frame(1100, tag(1, 7)), frame(1133, None)]),
            line("screen", "x-3", &[frame(1166, tag(2, 9))]),
            line("screen", "x-4", &[frame(1101, tag(1, 7))]),
            line("track", "x-5", &[frame(1090, tag(1, 7))]),
            r#"{"place":"screen","vid"#.into(),
        ];
        let page = Page::read(lines.join("\n").as_bytes(), Duration::from_secs(1)).unwrap();
        assert_eq!(page.camera.len(), 2);
        assert_eq!(page.camera[0].time, Timestamp::ZERO);
        let times = |stream: u8, place: Place| -> Vec<i64> {
            let seen = page.seen[&stream].iter().filter(|seen| seen.place == place);
            seen.map(|seen| (seen.time - Timestamp::ZERO).as_millis()).collect()
        };
        assert_eq!(times(1, Place::Screen), [100, 133]);
        assert_eq!(times(1, Place::Track), [90]);
        assert_eq!(times(2, Place::Screen), [166]);
    }

    #[test]
    fn a_picture_belongs_to_its_stream_and_a_cut_one_is_left_out() {
        let text = frame(1000, tag(3, 2)).replace("640", "2").replace("360", "1");
        let mut message = (text.len() as u32).to_be_bytes().to_vec();
        message.extend(text.as_bytes());
        message.extend([9, 9]);
        let mut file = (message.len() as u32).to_be_bytes().to_vec();
        file.extend(&message);
        file.extend((message.len() as u32).to_be_bytes());
        file.extend(&message[1..]);
        let stores = pictures(&file[..]).unwrap();
        assert_eq!(stores.keys().copied().collect::<Vec<u8>>(), [3]);
        assert_eq!(stores[&3].frames().count(), 1);
    }
}
