//! The files of a record with `--quality`: `frames.csv` has a row for each frame that a peer
//! received, `pictures.csv` one for each picture that was compared, and two PNG files show the
//! worst of these, as it was received and as it was sent. A further one shows the last picture at
//! each second that was asked for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use weir::units::Timestamp;
use weir_record::calls::quality::worst_file;

use super::{ReceivedFrames, ScoredPicture};

const FRAMES: &str = "frames.csv";
const PICTURES: &str = "pictures.csv";
const PICTURES_HEADER: &str =
    "call,from,to,time_s,tag,width,height,psnr_db,ssim,vmaf_v0.6.1,vmaf_v0.6.1neg";
const HEADER: &str = "call,from,to,frame,tag,captured_ms,received_ms,shown_ms,repeats,width,height";

/// Writes the files into the folder of a record. An empty cell of a frame means that it was not
/// seen there, and one of a picture that this program was built without that score.
///
/// # Errors
/// If the file cannot be written.
pub fn write(folder: &Path, received: &[ReceivedFrames]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create_new(folder.join(FRAMES))?);
    table(received, &mut out)?;
    out.flush()?;
    let mut out = BufWriter::new(File::create_new(folder.join(PICTURES))?);
    scores(received, &mut out)?;
    out.flush()?;
    for ReceivedFrames { call, from, to, pictures, .. } in received {
        for (second, picture) in &pictures.at {
            let path = folder.join(format!("at-{second}-{call}-{from}-{to}.png"));
            write_png(&path, picture.luma.size(), png::ColorType::Rgb, &picture.rgb())?;
        }
        let Some([received, sent]) = &pictures.worst else { continue };
        for (picture, what) in [(received, "received"), (sent, "sent")] {
            let path = folder.join(worst_file(*call, from, to, what));
            write_png(&path, picture.size(), png::ColorType::Grayscale, picture.pixels())?;
        }
    }
    Ok(())
}

fn write_png(
    path: &Path,
    (width, height): (usize, usize),
    colour: png::ColorType,
    pixels: &[u8],
) -> io::Result<()> {
    let out = BufWriter::new(File::create_new(path)?);
    let mut encoder = png::Encoder::new(out, width as u32, height as u32);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(pixels).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}

fn scores(received: &[ReceivedFrames], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{PICTURES_HEADER}")?;
    for ReceivedFrames { call, from, to, pictures, .. } in received {
        for &ScoredPicture { time, number, width, height, scores } in &pictures.scored {
            let time = time.as_secs_f64();
            let [ssim, vmaf, neg] = [scores.ssim, scores.vmaf, scores.vmaf_neg].map(score);
            writeln!(
                out,
                "{call},{from},{to},{time:.3},{number},{width},{height},{:.4},{ssim},{vmaf},{neg}",
                scores.psnr_db
            )?;
        }
    }
    Ok(())
}

fn score(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.4}")).unwrap_or_default()
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
    use weir_record::calls::quality::Quality;

    use super::*;
    use crate::measure::quality::{Frame, Pictures, Timeline};

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
        let received =
            ReceivedFrames { call: 1, from, to, timeline, pictures: Pictures::default(), quality };
        let mut out = Vec::new();
        table(&[received], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("{HEADER}\n1,a,b,61,1,-20.0,16.4,,0,640,360\n"));
    }
}
