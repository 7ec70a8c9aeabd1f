//! Records the packets that a host sends and receives in a file.

use std::fs::File;
use std::io::BufWriter;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use weir_capture::{LONGEST_HEADERS, Packet};
use weir_emu::{Host, Tap};

use super::pcapng::{self, Writer};
use crate::error::CallError;

/// How often the file is flushed. If the machine loses power, up to this much is lost.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Where captures are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// An empty folder.
    pub folder: PathBuf,
    /// Comment in each file that names the run.
    pub comment: String,
}

/// The recorders of all hosts.
#[derive(Debug)]
pub struct Recording {
    recorders: Vec<Recorder>,
}

impl Recording {
    /// Records each host into its own file; the first is `host-1.pcapng`.
    ///
    /// # Errors
    /// The same as [`Recorder::start`].
    pub fn start(hosts: &[Host], plan: &CapturePlan) -> Result<Self, CallError> {
        let mut recorders = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            let name = format!("host-{}", index + 1);
            let comment = format!("{}, {name} ({})", plan.comment, host.address());
            let file = plan.folder.join(format!("{name}.pcapng"));
            recorders.push(Recorder::start(host, &file, &comment)?);
        }
        Ok(Self { recorders })
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// The same as [`Recorder::stop`].
    pub fn stop(self) -> Result<Vec<Recorded>, CallError> {
        self.recorders.into_iter().map(Recorder::stop).collect()
    }
}

/// A running capture. Dropping it ends the capture; the file remains and is complete.
#[derive(Debug)]
pub struct Recorder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Recorded, CallError>>>,
}

/// A capture that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The host's address.
    pub address: Ipv4Addr,
    /// The file.
    pub path: PathBuf,
    /// Packets in it.
    pub packets: u64,
    /// Packets that the kernel dropped because the recorder was too slow.
    pub missed_packets: u64,
}

impl Recorder {
    /// Starts recording the packets of a host. The comment is written to the file.
    ///
    /// # Errors
    /// If the kernel refuses, or the file cannot be written.
    pub fn start(host: &Host, path: &Path, comment: &str) -> Result<Self, CallError> {
        let tap = host.tap()?;
        let file = File::create(path).map_err(writing())?;
        let writer = Writer::new(BufWriter::new(file), host.interface(), comment);
        let writer = writer.map_err(writing())?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, path, address) = (Arc::clone(&stop), path.to_path_buf(), host.address());
        let thread = thread::Builder::new()
            .name("weir-capture".into())
            .spawn(move || {
                let (packets, missed_packets) = record(tap, writer, &stopped)?;
                Ok(Recorded { address, path, packets, missed_packets })
            })
            .map_err(CallError::system("start a thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Errors that occurred during the capture.
    pub fn stop(mut self) -> Result<Recorded, CallError> {
        self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn join(&mut self) -> thread::Result<Result<Recorded, CallError>> {
        self.stop.store(true, Ordering::Release);
        self.thread.take().expect("joined once: by stop, or by drop").join()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // An error cannot be reported here.
            let _ = self.join();
        }
    }
}

/// Records until stopped. Returns the numbers of written and of missed packets.
fn record(
    mut tap: Tap,
    mut writer: Writer<BufWriter<File>>,
    stop: &AtomicBool,
) -> Result<(u64, u64), CallError> {
    let mut buffer = [0; LONGEST_HEADERS];
    let (mut packets, mut last, mut flushed) = (0, Duration::ZERO, Duration::ZERO);
    let mut end = None;
    loop {
        if end.is_none() && stop.load(Ordering::Acquire) {
            end = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        }
        let Some(seen) = tap.receive(&mut buffer)? else {
            writer.flush().map_err(writing())?;
            if stop.load(Ordering::Acquire) {
                break;
            }
            continue;
        };
        if end.is_some_and(|end| seen.time > end) {
            break;
        }
        last = seen.time;
        let bytes = &buffer[..seen.length.min(buffer.len())];
        // Packets other than IPv4 are skipped; the emulator drops them, too.
        let Some((packet, kept)) = Packet::parse(bytes, seen.length) else { continue };
        if packet.source.is_ipv6() {
            continue;
        }
        let length = u32::try_from(seen.length).unwrap_or(u32::MAX);
        let data = &bytes[..kept];
        let packet = pcapng::Packet { time: seen.time, is_sent: seen.is_sent, length, data };
        writer.packet(&packet).map_err(writing())?;
        packets += 1;
        if last >= flushed + FLUSH_INTERVAL {
            writer.flush().map_err(writing())?;
            flushed = last;
        }
    }
    let missed_packets = tap.dropped_packets()?;
    writer.finish(last, packets, missed_packets).map_err(writing())?;
    Ok((packets, missed_packets))
}

fn writing() -> impl FnOnce(std::io::Error) -> CallError {
    CallError::system("write a capture")
}
