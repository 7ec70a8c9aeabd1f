//! `frames.csv`: one row for each frame that a peer received.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use weir::units::Timestamp;

use super::ReceivedFrames;

const FILE: &str = "frames.csv";
const HEADER: &str = "call,from,to,frame,tag,captured_ms,received_ms,shown_ms,repeats,width,height";

/// Writes the frames into the folder of a record. An empty cell means that the frame was not seen
/// there.
///
/// # Errors
/// If the file cannot be written.
pub fn write(folder: &Path, received: &[ReceivedFrames]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create_new(folder.join(FILE))?);
    table(received, &mut out)?;
    out.flush()
}

fn table(received: &[ReceivedFrames], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for ReceivedFrames { call, from, to, timeline, .. } in received {
        for frame in &timeline.frames {
            let [received, shown] = [frame.received, frame.shown].map(cell);
            writeln!(
                out,
                "{call},{from},{to},{},{},{},{received},{shown},{},{},{}",
                frame.index,
                frame.number,
                cell(Some(frame.captured)),
                frame.repeats,
                frame.width,
                frame.height
            )?;
        }
    }
    Ok(())
}

/// In ms, with the tenth that browsers give.
fn cell(time: Option<Timestamp>) -> String {
    time.map(|time| format!("{:.1}", time.as_millis_f64())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use weir_lab::calls::quality::Quality;

    use super::*;
    use crate::quality::{Frame, Timeline};

    #[test]
    fn a_frame_is_a_row_and_a_place_where_it_was_not_seen_an_empty_cell() {
        let frame = Frame {
            index: 61,
            number: 1,
            captured: Timestamp::from_millis(-20),
            received: Some(Timestamp::from_micros(16_440)),
            shown: None,
            repeats: 0,
            width: 640,
            height: 360,
        };
        let timeline = Timeline { frames: vec![frame], ..Timeline::default() };
        let quality = Quality::default();
        let (from, to) = ("a".into(), "b".into());
        let received = ReceivedFrames { call: 1, from, to, timeline, quality };
        let mut out = Vec::new();
        table(&[received], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("{HEADER}\n1,a,b,61,1,-20.0,16.4,,0,640,360\n"));
    }
}
