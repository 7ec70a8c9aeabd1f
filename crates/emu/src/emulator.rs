//! Moves packets between the two hosts as the network model says, at the wall clock.
//!
//! One thread does it: it reads what the hosts send, gives it to the model with the time, asks the
//! model what has arrived, and sleeps until the model's next event.
//!
//! ```text
//!   TUN A -> read -> Bottleneck "up"   -> write -> TUN B
//!   TUN A <- write <- Bottleneck "down" <- read <- TUN B
//! ```

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_net::{LinkConfig, Seed};

use crate::direction::Direction;
use crate::error::Error;
use crate::lateness::Lateness;
use crate::load::CpuTime;
use crate::namespaces::{Host, Namespaces};
use crate::record::Emulation;
use crate::sys;

/// Above normal programs, below the kernel's own interrupt threads, which are at 50.
const REAL_TIME_PRIORITY: i32 = 10;
/// Packets read from one host before what is due goes out: bounds the lateness that a burst makes.
const READ_BATCH: usize = 32;
/// No IPv4 packet is larger.
const LARGEST_PACKET: usize = 65_535;

/// Two hosts with an emulated link between them. Dropping it kills what runs on the hosts.
///
/// Packets flow from the first moment on. Until [`Emulator::start`] a capacity schedule stands at
/// its first value and nothing is recorded, so that programs can be brought up.
#[derive(Debug)]
pub struct Emulator {
    control: Arc<Control>,
    wake: PipeWriter,
    thread: Option<JoinHandle<io::Result<Mover>>>,
    cpu_at_start: Option<CpuTime>,
    /// After the thread, which is joined first.
    namespaces: Namespaces,
}

/// What the owner tells the thread. A byte in the wake pipe follows each change.
#[derive(Debug, Default)]
struct Control {
    start: OnceLock<Instant>,
    stop: AtomicBool,
}

impl Emulator {
    /// Makes the hosts and connects them: `up` carries from host A to host B.
    pub fn new(up: &LinkConfig, down: &LinkConfig, seed: Seed) -> Result<Self, Error> {
        let namespaces = Namespaces::new()?;
        let (a, b) = (namespaces.a.address(), namespaces.b.address());
        let tuns = [&namespaces.tun_a, &namespaces.tun_b].map(File::try_clone);
        let [tun_a, tun_b] = tuns.map(|tun| tun.map_err(Error::system("copy a descriptor")));
        let (woken, wake) = io::pipe().map_err(Error::system("make a pipe"))?;
        let control = Arc::new(Control::default());
        let mover = Mover {
            tuns: [tun_a?, tun_b?],
            directions: [
                Direction::new(up, seed, "up", a, b),
                Direction::new(down, seed, "down", b, a),
            ],
            control: Arc::clone(&control),
            woken,
            lateness: Lateness::default(),
            real_time: false,
            refused_packets: 0,
        };
        let thread = thread::Builder::new()
            .name("weir-emulator".into())
            .spawn(move || mover.run())
            .map_err(Error::system("start a thread"))?;
        Ok(Self { control, wake, thread: Some(thread), cpu_at_start: None, namespaces })
    }

    /// Host A, where `up` begins.
    pub fn a(&self) -> &Host {
        &self.namespaces.a
    }

    /// Host B, where `down` begins.
    pub fn b(&self) -> &Host {
        &self.namespaces.b
    }

    /// Starts the run: now is time zero of the scenario and of the record. Returns that moment; a
    /// second call changes nothing.
    pub fn start(&mut self) -> Instant {
        self.cpu_at_start = self.cpu_at_start.or_else(CpuTime::now);
        let start = *self.control.start.get_or_init(Instant::now);
        self.wake_thread();
        start
    }

    /// Ends the run, and the hosts with all programs on them.
    pub fn stop(mut self) -> Result<Emulation, Error> {
        let cpu_at_end = CpuTime::now();
        let ended = self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mover = ended.map_err(Error::system("move packets"))?;
        let cpu_busy =
            cpu_at_end.zip(self.cpu_at_start).map(|(end, start)| end.busy_share_since(start));
        let [up, down] = mover.directions;
        Ok(Emulation {
            foreign_packets: up.foreign_packets() + down.foreign_packets(),
            up: up.into_record(),
            down: down.into_record(),
            lateness: mover.lateness,
            real_time: mover.real_time,
            cpu_busy,
            refused_packets: mover.refused_packets,
        })
    }

    fn join(&mut self) -> thread::Result<io::Result<Mover>> {
        self.control.stop.store(true, Ordering::Release);
        self.wake_thread();
        self.thread.take().expect("joined once: by stop, or by drop").join()
    }

    fn wake_thread(&self) {
        // The pipe holds more bytes than there are calls; it fails only if the thread has failed,
        // which `stop` reports.
        let _ = (&self.wake).write(&[0]);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Nobody is left to hear of an error.
            let _ = self.join();
        }
    }
}

/// The state of the thread; it returns itself, as the record of the run.
#[derive(Debug)]
struct Mover {
    tuns: [File; 2],
    /// What is read from TUN `i` goes into direction `i` and comes out at TUN `1 - i`.
    directions: [Direction; 2],
    control: Arc<Control>,
    woken: PipeReader,
    lateness: Lateness,
    real_time: bool,
    refused_packets: u64,
}

impl Mover {
    fn run(mut self) -> io::Result<Self> {
        sys::set_exact_timers()?;
        self.real_time = sys::set_real_time(REAL_TIME_PRIORITY).is_ok();
        let mut buffer = vec![0; LARGEST_PACKET];
        let mut started = false;
        while !self.control.stop.load(Ordering::Acquire) {
            if let (Some(start), false) = (self.control.start.get(), started) {
                started = true;
                self.lateness = Lateness::default();
                self.directions.iter_mut().for_each(|direction| direction.start(*start));
            }
            let more = self.read_all(&mut buffer)?;
            self.release();
            let deadline = self.directions.iter().filter_map(Direction::next_event).min();
            let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = if more { Some(Duration::ZERO) } else { timeout };
            self.wait(timeout)?;
        }
        Ok(self)
    }

    /// Reads what the hosts have sent; true if one of them may have sent more.
    fn read_all(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut more = false;
        for (tun, direction) in self.tuns.iter_mut().zip(&mut self.directions) {
            let mut left = READ_BATCH;
            while left > 0 {
                match tun.read(buffer) {
                    Ok(length) => direction.enqueue(Instant::now(), &buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                left -= 1;
            }
            more |= left == 0;
        }
        Ok(more)
    }

    /// Hands over what has arrived.
    fn release(&mut self) {
        let [tun_a, tun_b] = &mut self.tuns;
        for (direction, tun) in self.directions.iter_mut().zip([tun_b, tun_a]) {
            while let Some((due, packet)) = direction.poll(Instant::now()) {
                // An interface that a program switched off takes no packets, as a real one.
                if tun.write(&packet).is_err() {
                    self.refused_packets += 1;
                }
                self.lateness.record(Instant::now().saturating_duration_since(due));
            }
        }
    }

    /// Sleeps up to the deadline. To spin for the last 100 us would bring the median lateness from 90
    /// to 35 us, but not the 99th percentile, which other programs decide; and it would take
    /// processor time from the programs that are measured.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let [tun_a, tun_b] = &self.tuns;
        let woken =
            sys::wait_readable([tun_a.as_fd(), tun_b.as_fd(), self.woken.as_fd()], timeout)?;
        if woken[2] {
            self.woken.read_exact(&mut [0])?;
        }
        Ok(())
    }
}
