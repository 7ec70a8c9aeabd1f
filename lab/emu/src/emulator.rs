//! Moves packets between the hosts as the network model says, at the wall clock.
//!
//! One thread does it: it reads what the hosts send, gives it to the model with the time, asks the
//! model what has arrived, and sleeps until the model's next event.
//!
//! ```text
//!   TUN of a host -> read -> Network: the links of the path -> write -> TUN of another host
//! ```

use std::io::{self, PipeReader, Read, Write};
use std::mem;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_net::Seed;

use crate::error::Error;
use crate::handle::{Command, Handle, Status};
use crate::lateness::Lateness;
use crate::load::CpuTime;
use crate::namespaces::{Host, Namespaces, Tun};
use crate::network::NetworkRecord;
use crate::offload::{Batch, LARGEST_FRAME, split};
use crate::plan::Plan;
use crate::real_time::RealTime;
use crate::record::{Effort, Emulation};
use crate::sys;

/// Above normal programs, below the kernel's own interrupt threads, which are at 50.
pub(crate) const REAL_TIME_PRIORITY: i32 = 10;
/// Frames read from one host before the others have their turn.
const READ_BATCH: usize = 32;
/// Time between two updates of the status. The thread wakes as often, for the samples.
const STATUS_INTERVAL: Duration = Duration::from_millis(50);
/// On a processor of its own the thread polls for this long before an event rather than to sleep: a
/// sleep ends late, in the median by 0.03 ms and at the 99th percentile by 0.1 ms.
const AWAKE: Duration = Duration::from_micros(150);

/// Hosts with an emulated network between them. Dropping it kills what runs on the hosts.
///
/// Packets flow from the first moment on. Until [`Emulator::start`] a capacity schedule stands at
/// its first value and nothing is recorded, so that programs can be brought up.
#[derive(Debug)]
pub struct Emulator {
    handle: Handle,
    thread: Option<JoinHandle<io::Result<Worker>>>,
    start: Option<Start>,
    /// After the thread, which is joined first.
    namespaces: Namespaces,
}

/// The start of the run, and what had been counted until then.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Instant,
    cpu: Option<CpuTime>,
    unread_packets: u64,
}

impl Emulator {
    /// Makes the hosts and connects them.
    ///
    /// # Panics
    /// If the plan has no host, more than 254, or one at a node or terminal that is not there.
    pub fn new(plan: &Plan, seed: Seed) -> Result<Self, Error> {
        Self::with_processor(plan, seed, None)
    }

    /// The same, with a processor that serves only the emulator's thread. From now on the calling
    /// thread, and what it starts, stays off that processor. Where the calling thread may use only
    /// one processor, this is the same as [`Emulator::new`].
    ///
    /// # Panics
    /// As [`Emulator::new`].
    pub fn on_own_processor(plan: &Plan, seed: Seed) -> Result<Self, Error> {
        let processor =
            sys::thread::leave_a_processor().map_err(Error::system("choose processors"))?;
        Self::with_processor(plan, seed, processor)
    }

    fn with_processor(plan: &Plan, seed: Seed, processor: Option<usize>) -> Result<Self, Error> {
        assert!(plan.is_sound(), "a host has no node, or is no terminal of the access network");
        let namespaces = Namespaces::new(&plan.second_interfaces())?;
        let tuns = namespaces.tuns.iter().map(Tun::try_clone);
        let tuns =
            tuns.collect::<io::Result<Arc<[Tun]>>>().map_err(Error::system("copy a descriptor"))?;
        let (woken, wake) = io::pipe().map_err(Error::system("make a pipe"))?;
        let (commands, received) = channel();
        let handle = Handle::new(commands, wake, plan.hops.len());
        let addresses: Vec<_> = namespaces.hosts.iter().map(Host::address).collect();
        let now = Instant::now();
        let worker = Worker {
            batches: tuns.iter().map(|_| Batch::default()).collect(),
            tuns,
            scratch: Vec::new(),
            network: RealTime::new(plan, &addresses, seed, now),
            zero: now,
            commands: received,
            woken: Arc::new(woken),
            lateness: Lateness::default(),
            real_time: false,
            processor,
            effort: Effort::default(),
            time_before: Duration::ZERO,
            malformed_frames: 0,
            refused_packets: 0,
            status: handle.shared_status(),
            shown: None,
        };
        let thread = thread::Builder::new()
            .name("weir-emulator".into())
            .spawn(move || worker.run())
            .map_err(Error::system("start a thread"))?;
        Ok(Self { handle, thread: Some(thread), start: None, namespaces })
    }

    /// The host with this index in the plan.
    ///
    /// # Panics
    /// If the plan has no such host.
    pub fn host(&self, index: usize) -> &Host {
        &self.namespaces.hosts[index]
    }

    /// All hosts, in the order of the plan.
    pub fn hosts(&self) -> &[Host] {
        &self.namespaces.hosts
    }

    /// To change and to watch the network from elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts the run: now is time zero of the scenario and of the record. Returns that moment; a
    /// second call changes nothing.
    pub fn start(&mut self) -> Instant {
        if let Some(start) = self.start {
            return start.at;
        }
        let cpu = CpuTime::now();
        // That it cannot be told will come again at the end, as an error.
        let unread_packets = self.unread_packets().unwrap_or(0);
        let at = Instant::now();
        self.start = Some(Start { at, cpu, unread_packets });
        self.handle.send(Command::Start(at));
        at
    }

    /// Ends the run, and the hosts with all programs on them.
    pub fn stop(mut self) -> Result<Emulation, Error> {
        let cpu_at_end = CpuTime::now();
        let unread_packets = self.unread_packets()?;
        let ended = self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let worker = ended.map_err(Error::system("move packets"))?;
        let cpu_at_start = self.start.and_then(|start| start.cpu);
        let cpu = cpu_at_end.zip(cpu_at_start).map(|(end, start)| end.shares_since(start));
        let unread_before = self.start.map_or(0, |start| start.unread_packets);
        let (network, nats) = worker.network.into_record();
        let NetworkRecord { access, hops, flows, changes, access_changes, foreign_packets } =
            network;
        Ok(Emulation {
            access,
            hops,
            flows,
            changes,
            access_changes,
            nats,
            lateness: worker.lateness,
            effort: worker.effort,
            real_time: worker.real_time,
            cpu,
            foreign_packets: foreign_packets + worker.malformed_frames,
            refused_packets: worker.refused_packets,
            unread_packets: unread_packets - unread_before,
        })
    }

    fn unread_packets(&self) -> Result<u64, Error> {
        self.hosts().iter().map(Host::unread_packets).sum()
    }

    fn join(&mut self) -> thread::Result<io::Result<Worker>> {
        self.handle.send(Command::Stop);
        self.thread.take().expect("joined once: by stop, or by drop").join()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // No caller is left to get an error.
            let _ = self.join();
        }
    }
}

/// The state of the thread; it returns itself, as the record of the run.
#[derive(Debug)]
struct Worker {
    tuns: Arc<[Tun]>,
    /// By host: what is to be written next.
    batches: Vec<Batch>,
    scratch: Vec<u8>,
    network: RealTime,
    /// Start of the run.
    zero: Instant,
    commands: Receiver<Command>,
    /// A byte in here follows each command.
    woken: Arc<PipeReader>,
    lateness: Lateness,
    real_time: bool,
    /// The number of the processor that is the thread's own.
    processor: Option<usize>,
    effort: Effort,
    /// Processor time of the thread before the run.
    time_before: Duration,
    malformed_frames: u64,
    refused_packets: u64,
    status: Arc<Mutex<Status>>,
    /// When the status was last shown.
    shown: Option<Instant>,
}

impl Worker {
    fn run(mut self) -> io::Result<Self> {
        sys::set_exact_timers()?;
        self.real_time = sys::set_real_time(REAL_TIME_PRIORITY).is_ok();
        if let Some(processor) = self.processor {
            sys::thread::stay_on(processor)?;
        }
        let mut buffer = vec![0; LARGEST_FRAME];
        let (tuns, woken) = (Arc::clone(&self.tuns), Arc::clone(&self.woken));
        let fds = tuns.iter().map(|tun| tun.file.as_fd()).chain([woken.as_fd()]);
        let mut poll = sys::Poll::new(fds);
        poll.wait(Duration::ZERO)?;
        loop {
            if poll.is_readable(self.tuns.len()) {
                (&*woken).read_exact(&mut [0])?;
                match self.commands.recv() {
                    Ok(Command::Start(zero)) => self.start(zero),
                    Ok(Command::Set(change)) => {
                        let now = Instant::now();
                        self.release(now);
                        self.network.set(now, change);
                    }
                    Ok(Command::SetAccess(change)) => {
                        let now = Instant::now();
                        self.release(now);
                        self.network.set_access(now, &change);
                    }
                    // Without an owner there is no run.
                    Ok(Command::Stop) | Err(_) => {
                        self.release(Instant::now());
                        self.effort.processor_time =
                            sys::thread::processor_time().saturating_sub(self.time_before);
                        return Ok(self);
                    }
                }
            }
            for host in 0..self.tuns.len() {
                if poll.is_readable(host) {
                    self.read(host, &mut buffer)?;
                }
            }
            let now = Instant::now();
            self.release(now);
            self.show(now);
            let until = self.network.next_event().saturating_duration_since(Instant::now());
            // Without a processor of its own the thread would take the time that it polls from the
            // programs that are measured.
            let awake = if self.processor.is_some() { AWAKE } else { Duration::ZERO };
            self.effort.waits += 1;
            poll.wait(until.saturating_sub(awake))?;
        }
    }

    fn start(&mut self, zero: Instant) {
        self.network.start(zero);
        self.zero = zero;
        self.lateness = Lateness::default();
        let own_processor = self.processor.is_some();
        self.effort = Effort { own_processor, ..Effort::default() };
        self.time_before = sys::thread::processor_time();
        // What is shown is of the time before.
        self.shown = None;
    }

    /// Reads some of what a host has sent. More of it makes the next wait a short one.
    fn read(&mut self, host: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            self.effort.reads += 1;
            match (&self.tuns[host].file).read(buffer) {
                Ok(length) => {
                    let now = Instant::now();
                    self.release(now);
                    let network = &mut self.network;
                    let enqueue = |packet: &mut [u8]| network.enqueue(now, host, packet);
                    if split(&mut buffer[..length], &mut self.scratch, enqueue).is_err() {
                        self.malformed_frames += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Publishes the status of the network, unless somebody is reading the last one: this thread
    /// must not wait.
    fn show(&mut self, now: Instant) {
        if self.shown.is_some_and(|shown| now < shown + STATUS_INTERVAL) {
            return;
        }
        if let Ok(mut status) = self.status.try_lock() {
            *status = self.network.status();
            self.shown = Some(now);
        }
    }

    /// Hands over what has arrived.
    fn release(&mut self, now: Instant) {
        let mut is_released = false;
        while let Some((due, host, packet)) = self.network.poll(now) {
            is_released = true;
            let grow = self.tuns[host].takes_super_packets;
            if !self.batches[host].push(due, &packet, grow) {
                self.write(host);
                self.batches[host].push(due, &packet, grow);
            }
        }
        if is_released {
            for host in 0..self.tuns.len() {
                self.write(host);
            }
        }
    }

    /// Writes the batch of a host, if there is one.
    fn write(&mut self, host: usize) {
        let mut batch = mem::take(&mut self.batches[host]);
        if let Some(frame) = batch.frame() {
            self.effort.writes += 1;
            // An interface that a program switched off takes no packets, as a real one.
            let is_refused = (&self.tuns[host].file).write(frame).is_err();
            let now = Instant::now();
            for due in batch.take_due() {
                self.refused_packets += u64::from(is_refused);
                let late = now.saturating_duration_since(due);
                self.lateness.record_at(due.saturating_duration_since(self.zero), late);
            }
        }
        // Its allocations serve the next one.
        self.batches[host] = batch;
    }
}
