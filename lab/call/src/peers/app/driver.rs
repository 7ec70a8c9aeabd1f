//! The driver of a participant: a program for Node beside its browser, which says in lines what
//! happens.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use weir_emu::{Child, Host};
use weir_record::lines::{self, Line};

use super::{AppPlan, displayed_frames};
use crate::error::CallError;
use crate::message::{STATS_INTERVAL, printable};

const DRIVER: &str = include_str!("driver.mjs");
/// Port on which a browser is driven, on the loopback device of each participant's host.
pub(super) const DEBUGGER_PORT: u16 = 9222;
/// Maximum length of a line. A report of a large call has some 100 kB.
const LINE_BYTES_MAX: usize = 16_000_000;
/// First two lines of an rtcstats dump.
const HEADING: &[u8] = b"RTCStatsDump\n{\"fileFormat\":3}\n";

/// What a driver says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Joined,
    Failed(String),
    /// Its output has ended.
    Ended,
}

/// Starts the driver of a participant, and the thread that writes its dump.
pub(super) fn drive(
    plan: &AppPlan,
    url: &str,
    host: &Host,
    index: usize,
    (dump, quality): (&Path, Option<Value>),
    says: Sender<(usize, Said)>,
) -> Result<(Child, JoinHandle<io::Result<()>>), CallError> {
    let script = plan.dumps.join("driver.mjs");
    fs::write(&script, DRIVER)
        .and_then(|()| displayed_frames::write_scripts(&plan.dumps))
        .map_err(CallError::system("write the driver"))?;
    // As the user, whose script it runs and whose packages it needs.
    let mut command = host.command("node");
    // Playwright leaves temporary folders.
    command.env("TMPDIR", &plan.dumps);
    // What the script prints is for the user.
    command.arg(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut driver = Child::spawn(&mut command)?;
    let here = std::env::current_dir().unwrap_or_default();
    let settings = json!({
        "url": url,
        "join": plan.join,
        "number": index + 1,
        "participants": plan.participants,
        "port": DEBUGGER_PORT,
        "browser": plan.browser(index).name(),
        "ignoreCertificates": plan.is_here(),
        "temporary": plan.dumps,
        "quality": quality,
        "interval": STATS_INTERVAL.as_millis() as u64,
        "folder": format!("{}/", here.display()),
        "playwright": std::env::var("WEIR_PLAYWRIGHT").ok().map(|folder| format!("{folder}/")),
    });
    let child = driver.inner();
    let mut input = child.stdin.as_ref().expect("its input is a pipe");
    writeln!(input, "{settings}").map_err(CallError::system("tell the driver what to do"))?;
    let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let file = File::create(dump).map_err(CallError::system("make a dump"))?;
    let writer = std::thread::spawn(move || {
        let written = copy(output, BufWriter::new(file), |said| drop(says.send((index, said))));
        drop(says.send((index, Said::Ended)));
        written
    });
    Ok((driver, writer))
}

/// Copies the driver's lines to the dump, and tells what they mean.
fn copy(mut from: impl BufRead, mut to: impl Write, tell: impl Fn(Said)) -> io::Result<()> {
    to.write_all(HEADING)?;
    let mut line = Vec::new();
    loop {
        match lines::read(&mut from, &mut line, LINE_BYTES_MAX)? {
            Line::End => return to.flush(),
            Line::TooLong => {
                let length = LINE_BYTES_MAX / 1_000_000;
                tell(Said::Failed(format!("its driver wrote a line of more than {length} MB")));
            }
            // A line that the end cut short is left out.
            Line::Whole if !line.ends_with(b"\n") => {}
            Line::Whole => {
                to.write_all(&line)?;
                if let Some(said) = said(&line) {
                    tell(said);
                }
            }
        }
    }
}

fn said(line: &[u8]) -> Option<Said> {
    // Reports are long and say nothing here.
    if line.starts_with(b"[\"getStats\"") {
        return None;
    }
    let event: Value = serde_json::from_slice(line).ok()?;
    match event.get(0)?.as_str()? {
        "joined" => Some(Said::Joined),
        "failed" => Some(Said::Failed(printable(event.get(2)?.as_str()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_dump_has_whole_lines_and_the_drivers_words_are_heard() {
        let lines = b"[\"joined\",null,1,5]\n[\"getStats\",\"x\",{},6]\n\
            [\"failed\",null,\"no\\nroom\",7]\n[\"getSt";
        let mut dump = Vec::new();
        let heard = std::cell::RefCell::new(Vec::new());
        copy(&lines[..], &mut dump, |said| heard.borrow_mut().push(said)).unwrap();
        assert!(dump.starts_with(HEADING) && dump.ends_with(b",7]\n"));
        let [Said::Joined, Said::Failed(why)] = &heard.borrow()[..] else { panic!("{heard:?}") };
        assert!(why.starts_with("no") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn a_line_of_a_driver_has_a_bound() {
        let long = io::repeat(b'x').take(4 * LINE_BYTES_MAX as u64);
        let lines = BufReader::new(long.chain(&b"\n[\"joined\",null,1,5]\n"[..]));
        let (mut dump, heard) = (Vec::new(), std::cell::RefCell::new(Vec::new()));
        copy(lines, &mut dump, |said| heard.borrow_mut().push(said)).unwrap();
        let [Said::Failed(why), Said::Joined] = &heard.borrow()[..] else { panic!("{heard:?}") };
        assert_eq!(why, "its driver wrote a line of more than 16 MB");
        assert!(dump.len() < LINE_BYTES_MAX, "{}", dump.len());
    }
}
