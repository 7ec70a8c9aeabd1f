//! What the encoder of a stack tells of the camera's frames, in a file.
//!
//! A driver without an encoder of its own has a process for it, whose output is frames. So that
//! process tells the lab in a file. A line is a message `frames`, as a pipeline or a page sends it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::sighting::{FrameSighting, Place};
use crate::message::{PeerMessage, printable};

/// Most bytes that are read: an hour of a camera with 60 frames a second has half of it.
const BYTES_MAX: u64 = 100_000_000;

/// Reads the file. Without one, nothing was told.
///
/// # Errors
/// One line, if the file cannot be read, or a line of it is none of these messages.
pub(crate) fn read(path: &Path) -> Result<Vec<(Place, Vec<FrameSighting>)>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let mut told = Vec::new();
    for (index, line) in BufReader::new(file.take(BYTES_MAX)).lines().enumerate() {
        let line = line.map_err(|error| error.to_string())?;
        match serde_json::from_str(&line) {
            Ok(PeerMessage::Frames { place, frames }) => told.push((place, frames)),
            Ok(_) => return Err(format!("line {} is no message of frames", index + 1)),
            Err(error) => {
                let cause = printable(&error.to_string());
                return Err(format!("line {}: {cause}", index + 1));
            }
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tag::Tag;
    use super::*;

    fn of(text: &str) -> Result<Vec<(Place, Vec<FrameSighting>)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.frames");
        fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn frames_are_those_that_the_lines_tell() {
        let rows = Tag { number: 77, stream: 1 }.rows(640);
        let blocks = crate::measure::quality::tag::measure(&rows, 640, 640).unwrap();
        let blocks: String = blocks.iter().map(|luma| format!("{luma:02x}")).collect();
        let frame = format!(
            r#"{{"atMs":1000.5,"timestampUs":40.0,"width":640,"height":360,"blocks":"{blocks}"}}"#
        );
        let line = format!(r#"{{"type":"frames","place":"camera","frames":[{frame}]}}"#);
        let told = of(&format!("{line}\n{line}\n")).unwrap();
        assert_eq!(told.len(), 2);
        let (place, frames) = &told[0];
        assert_eq!((*place, frames.len()), (Place::Camera, 1));
        assert_eq!(frames[0].tag, Some(Tag { number: 77, stream: 1 }));
        assert_eq!(of("").unwrap(), []);
    }

    #[test]
    fn a_line_of_another_kind_is_an_error_with_its_number() {
        assert_eq!(of("{\"type\":\"ready\"}").unwrap_err(), "line 1 is no message of frames");
        assert!(of("{\"type\":\"frames\",\"place\":\"cam").unwrap_err().starts_with("line 1: "));
        assert!(read(Path::new("/nowhere/a.frames")).unwrap().is_empty());
    }
}
