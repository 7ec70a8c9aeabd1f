//! A run from set-up to tear-down: hosts, an emulated network, a server, browsers, and their calls.
//!
//! ```text
//!   browser - host = TUN = network model = TUN = host - browser           media, ICE, DTLS
//!        \ 127.0.0.1                        127.0.0.1 /
//!         +------------------ server -----------------+                   page, signalling, stats
//! ```

pub(crate) mod handovers;
pub(crate) mod link;
mod loads;
pub(crate) mod places;
pub(crate) mod server;
pub(crate) mod signalling;
pub(crate) mod state;
pub(crate) mod token_listener;
pub(crate) mod usage;

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{Emulation, Emulator, Handle, SAMPLE_INTERVAL, User};
use weir_record::calls::derive::Interval;
use weir_record::unfinished::{self, UnfinishedFolder};
use weir_scenario::call::IceRestart;

use crate::error::CallError;
use crate::measure::capture::{self, CapturePlan, Recording};
use crate::measure::outcome::{CallOutcome, PlayerOutcome};
use crate::measure::quality::frame_messages;
use crate::measure::sound;
use crate::measure::witness;
use crate::message::Peer;
use crate::peers::bearers::Bearers;
use crate::peers::bridge::Bridge;
use crate::peers::browser::Devices;
use crate::peers::camera;
use crate::peers::pipeline;
use crate::peers::players::{self, Opened, Playing};
use crate::plan::{Call, CallConfig, Player};
use crate::run::handovers::Handovers;
use crate::run::loads::Loads;
use crate::run::server::Session;
use crate::run::signalling::{Event, EventKind};
use crate::run::state::{CallState, Route, since, since_1970};
use crate::run::usage::{Usage, UsageMeter};

/// Prefix of the temporary folders of runs. Not `weir-call-`: an earlier version held no lock on
/// those.
const FOLDERS: &str = "weir-run-";
/// Time limit from the start of a call, or of its browsers, until media can flow. It takes 3 s on
/// an idle machine.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// The same time limit if people open their pages themselves.
const PEOPLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for the last report of both pages.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the lab checks whether it was interrupted and whether the browsers still run.
const TICK: Duration = Duration::from_millis(100);
/// A program whose connection has closed ends within this time, or goes on.
const END_WITHIN: Duration = Duration::from_millis(500);
/// How often it samples their memory, which takes the kernel some milliseconds for each.
const MEMORY_INTERVAL: Duration = Duration::from_secs(10);

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The browsers have been started. Contains the name and address of each page that a person
    /// must open.
    SettingUp(&'a [(String, String)]),
    /// Media flows.
    Running {
        /// Scenario time.
        time: Timestamp,
        /// Handle to change and observe the network.
        network: &'a Handle,
        /// The newest interval of each peer that has reported twice; empty for applications.
        stats: &'a [LiveStats],
        /// If it is set to true, the calls end now. The outcome covers the time until then.
        end: &'a Cell<bool>,
    },
    /// The calls are over and are being taken down.
    Ending,
}

/// What a peer measured between its last two reports.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveStats {
    /// Index of the call.
    pub call: usize,
    /// The peer that reported.
    pub peer: Peer,
    /// The values. The times are those of the arrival of the reports, not yet aligned.
    pub interval: Interval,
}

/// A folder for the files of the run's programs. Folders left by killed runs are removed.
pub(crate) fn run_folder() -> io::Result<UnfinishedFolder> {
    let place = std::env::temp_dir();
    unfinished::clean(&place, FOLDERS);
    // The process id is only for people who look at the folder.
    UnfinishedFolder::private(&place, &format!("{FOLDERS}{}-", std::process::id()))
}

/// Makes the calls of one run. `cancel` ends it early with [`CallError::Cancelled`].
///
/// In every case, no process, folder or namespace is left behind. If this process is killed, its
/// temporary folder remains until the next run.
///
/// # Errors
/// If this machine lacks something. A call that fails is a result, not an error.
pub fn run_call(
    config: &CallConfig,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<CallOutcome, CallError> {
    // Locals are dropped in reverse order: the programs end before their folder is removed.
    let folder = run_folder().map_err(CallError::system("make a temporary folder"))?;
    let user = User::ordinary();
    user.let_in(folder.path()).map_err(CallError::system("open a temporary folder"))?;
    let mut emulator = Emulator::new(&config.network, config.seed)?;
    // Run on a host, so that it ends with the lab.
    let ffmpeg = emulator.host(0).command_as(user, "ffmpeg");
    let camera =
        camera::file(&config.picture, config.quality, ffmpeg).and_then(|file| match user {
            User::Nobody => camera::lend(&file, folder.path()),
            User::Own | User::Renamed => Ok(file),
        });
    let plan = CapturePlan { folder: folder.path().into(), comment: String::new() };
    let recording = Recording::start(emulator.hosts(), config.capture.as_ref().unwrap_or(&plan))?;
    let microphone = config.quality.then(|| sound::wav::speech_in(folder.path())).transpose();
    let microphone_file = microphone.as_ref().ok().and_then(Option::as_deref);
    let devices = Devices { camera: camera.as_deref().ok(), microphone: microphone_file };
    let Opened { session, playing, relay, bridges, urls, warnings } =
        players::open(config, &emulator, folder.path(), devices)?;
    let _bearers = bearers(config, &emulator)?;
    let loads = Loads::open(config, &emulator)?;
    let handovers = Handovers::new(&config.handovers, emulator.hosts());
    let states = config.calls.iter().enumerate().map(|(index, call)| {
        let bridge = bridges.get(index).map(|bridge| bridge.addresses);
        CallState::new(call.number, route(call, config, &emulator, bridge))
    });
    let states = states.collect();
    let mut run = Run {
        config,
        session,
        bridges,
        meters: playing.iter().map(|player| player.pid().map(UsageMeter::of)).collect(),
        players: playing,
        states,
        loads,
        cancel,
        looked: Instant::now(),
        restarts: 0,
        handovers,
        patience: if config.serve.is_some() { PEOPLE_TIMEOUT } else { SETUP_TIMEOUT },
    };
    progress(Progress::SettingUp(&urls));
    run.set_up()?;
    let start = if run.is_over() { None } else { Some(emulator.start()) };
    let zero = start.map(since_1970);
    let ended = match start {
        Some(start) => run.play(start, &emulator.handle(), progress)?,
        None => None,
    };
    // From here on, a run that was ended early is one of a shorter scenario.
    let config = &CallConfig { duration: ended.unwrap_or(config.duration), ..config.clone() };
    progress(Progress::Ending);
    let usages: Vec<Option<Usage>> =
        run.meters.iter_mut().map(|watch| watch.as_mut()?.end()).collect();
    run.end()?;
    let untold = if config.quality { run.read_frames(folder.path()) } else { Vec::new() };
    let (loads, failed_loads) =
        if start.is_some() { run.loads.finish() } else { Default::default() };
    let recorded = recording.stop()?;
    let mut emulation = cut(emulator.stop()?, config.duration);
    for one in &config.handovers {
        emulation.join_hosts(one.second, one.first);
    }
    let failed_handovers = std::mem::take(&mut run.handovers.failures);
    let window = witness::link_window(config, &emulation);
    let captures = zero.map(|zero| capture::read(&recorded, zero, &window)).transpose()?;
    let unscored = match (start, camera.as_deref()) {
        (Some(start), Ok(camera)) if config.quality => {
            score_pictures(&mut run.states, camera, start, &config.pictures_at)
        }
        _ => Vec::new(),
    };
    let participants = run.players.into_iter().zip(usages);
    let participants =
        participants.map(|(player, usage)| PlayerOutcome { version: player.version, usage });
    let calls = run.states.into_iter().map(|state| state.into_result(start)).collect();
    folder.close().map_err(CallError::system("remove the browsers' folder"))?;
    let devices = camera.err().into_iter().chain(microphone.err());
    let notes = warnings
        .into_iter()
        .chain(devices)
        .chain(unscored)
        .chain(untold)
        .chain(failed_loads)
        .chain(failed_handovers)
        .collect();
    let relay = relay.map(|relay| relay.version);
    Ok(CallOutcome {
        calls,
        participants: participants.collect(),
        emulation,
        loads,
        captures: captures.unwrap_or_default(),
        missed_packets: recorded.iter().map(|capture| capture.missed_packets).sum(),
        relay,
        kernel: kernel_version(),
        notes,
        ended,
    })
}

/// Compares the pictures that were received with those that were sent. Returns what could not be
/// compared, one line each.
fn score_pictures(
    states: &mut [CallState],
    camera: &Path,
    start: Instant,
    at: &[u32],
) -> Vec<String> {
    let mut failures = Vec::new();
    for state in states {
        if let Err(cause) = state.score_pictures(camera, start, at) {
            failures.push(format!("pictures are not scored: {cause}"));
        }
    }
    failures
}

/// The bearers that the call's IMS announces, for the terminals of the cell.
fn bearers(config: &CallConfig, emulator: &Emulator) -> Result<Option<Bearers>, CallError> {
    let Some(ims) = &config.ims else { return Ok(None) };
    let terminals = config.network.hosts.iter().enumerate().filter_map(|(index, host)| {
        // Node 0 is the base station.
        let terminal = host.attachment.as_ref()?.terminal.checked_sub(1)?;
        Some((emulator.host(index).address(), terminal))
    });
    let bearers = Bearers::listen(&ims.bearers, emulator.handle(), terminals.collect());
    bearers.map(Some).map_err(CallError::system("listen for bearers"))
}

fn route(
    call: &Call,
    config: &CallConfig,
    emulator: &Emulator,
    bridge: Option<[SocketAddr; 2]>,
) -> Route {
    let address = |host: usize| emulator.host(host).address();
    let ends = call.ends.map(|end| &config.participants[end]);
    let server = config.ice.as_ref().map(|ice| ice.host);
    Route {
        ends: ends.map(|end| addresses(end.host, config, emulator)),
        reports: ends.map(|end| end.player.tells_its_path()),
        relay: config.relay.map(|relay| relay.host).or(server).map(address),
        relay_only: config.relay.is_some(),
        bridge,
    }
}

/// The addresses of a host: its own, those of its NAT, and those of its second interfaces.
fn addresses(host: usize, config: &CallConfig, emulator: &Emulator) -> Vec<Ipv4Addr> {
    let mut all = vec![emulator.host(host).address()];
    all.extend(weir_emu::outside_addresses(&config.network.nats, host));
    let seconds = config.handovers.iter().filter(|one| one.first == host);
    all.extend(seconds.map(|one| emulator.host(one.second).address()));
    all
}

/// Removes samples after the end.
pub(crate) fn cut(mut emulation: Emulation, duration: TimeDelta) -> Emulation {
    let end = Timestamp::ZERO + duration;
    for hop in &mut emulation.hops {
        for direction in [&mut hop.up, &mut hop.down] {
            direction.samples.retain(|sample| sample.time <= end);
        }
    }
    if let Some(access) = &mut emulation.access {
        access.cut(end);
    }
    for flow in &mut emulation.flows {
        flow.samples.retain(|sample| sample.time <= end);
    }
    emulation
}

pub(crate) fn kernel_version() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// A run in progress.
struct Run<'a> {
    config: &'a CallConfig,
    session: Session,
    /// One bridge per call if the peers are people.
    bridges: Vec<Bridge>,
    players: Vec<Playing>,
    meters: Vec<Option<UsageMeter>>,
    states: Vec<CallState>,
    loads: Loads,
    cancel: &'a AtomicBool,
    /// When the memory was last sampled.
    looked: Instant,
    /// How many of the planned restarts of ICE have been asked for.
    restarts: usize,
    handovers: Handovers,
    /// Time limit for the set-up of a call.
    patience: Duration,
}

impl Run<'_> {
    /// Waits until every call that begins at zero can send or has failed.
    fn set_up(&mut self) -> Result<(), CallError> {
        self.begin_calls(Timestamp::ZERO);
        // The deadlines of the calls end this wait.
        self.wait(None, Self::calls_are_set_up, &mut |_| {})
    }

    /// Whether each call that has begun can send or has failed.
    fn calls_are_set_up(&self) -> bool {
        self.states.iter().filter(|state| state.has_begun()).all(CallState::setup_has_ended)
    }

    fn is_over(&self) -> bool {
        self.states.iter().all(CallState::is_over)
    }

    /// Starts and ends the calls at their times, until the scenario ends or no call is left.
    /// Returns the time at which `progress` ended the run, if it did.
    fn play(
        &mut self,
        start: Instant,
        network: &Handle,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<TimeDelta>, CallError> {
        self.meters.iter_mut().flatten().for_each(UsageMeter::start);
        let nanos = u64::try_from(self.config.duration.as_nanos()).unwrap_or(0);
        let end = start + Duration::from_nanos(nanos);
        let ended = Cell::new(false);
        let tick = &mut |run: &mut Self| {
            let now = Timestamp::ZERO + since(start, Instant::now());
            let stats = run.live_stats(start);
            progress(Progress::Running { time: now, network, stats: &stats, end: &ended });
            run.begin_calls(now);
            run.loads.begin(now);
            run.handovers.tick(now);
            run.restart_ice(now);
            run.end_calls(now);
            run.sample_memory();
        };
        self.wait(Some(end), |run| ended.get() || run.is_over(), tick)?;
        // Whole samples of the emulator.
        let samples = since(start, Instant::now()).as_nanos() / SAMPLE_INTERVAL.as_nanos();
        Ok(ended.get().then(|| SAMPLE_INTERVAL * samples))
    }

    fn live_stats(&self, start: Instant) -> Vec<LiveStats> {
        let mut stats = Vec::new();
        for (call, state) in self.states.iter().enumerate() {
            for peer in Peer::ALL {
                if let Some(interval) = state.newest_interval(peer, start) {
                    stats.push(LiveStats { call, peer, interval });
                }
            }
        }
        stats
    }

    fn begin_calls(&mut self, now: Timestamp) {
        for (index, call) in self.config.calls.iter().enumerate() {
            if call.start <= now && !self.states[index].has_begun() {
                self.states[index].begin(self.patience);
                self.session.release(index);
            }
        }
    }

    /// Asks all calls for the restarts of ICE whose time has come.
    fn restart_ice(&mut self, now: Timestamp) {
        let IceRestart::At(times) = &self.config.ice_restart else { return };
        while times.get(self.restarts).is_some_and(|time| *time <= now) {
            self.restarts += 1;
            for call in 0..self.states.len() {
                self.session.restart(call);
            }
        }
    }

    fn end_calls(&mut self, now: Timestamp) {
        for (index, call) in self.config.calls.iter().enumerate() {
            if call.stop <= now && !self.states[index].is_ending() {
                self.states[index].end();
                self.session.stop(index);
            }
        }
    }

    fn sample_memory(&mut self) {
        if self.looked.elapsed() >= MEMORY_INTERVAL {
            self.meters.iter_mut().flatten().for_each(UsageMeter::sample_memory);
            self.looked = Instant::now();
        }
    }

    /// Lets the pages report a last time. A page that does not is killed soon.
    fn end(&mut self) -> Result<(), CallError> {
        for (index, state) in self.states.iter_mut().enumerate() {
            if !state.is_ending() {
                state.end();
                self.session.stop(index);
            }
        }
        self.wait(Some(Instant::now() + STOP_TIMEOUT), Self::is_over, &mut |_| {})
    }

    /// Reads what stacks have told of the camera's frames, at the encoder and at the decoder.
    /// Returns what could not be read, one line each.
    fn read_frames(&mut self, folder: &Path) -> Vec<String> {
        let mut failures = Vec::new();
        for (call, state) in self.config.calls.iter().zip(&mut self.states) {
            for peer in Peer::ALL {
                let participant = &self.config.participants[call.ends[peer.index()]];
                if participant.player != Player::Stack {
                    continue;
                }
                let file = pipeline::frames_file(&folder.join(&participant.name));
                let told = match frame_messages::read(&file) {
                    Ok(told) => told,
                    Err(cause) => {
                        let name = &participant.name;
                        failures.push(format!("{name}: what it tells of its frames: {cause}"));
                        continue;
                    }
                };
                for (place, frames) in told {
                    state.on_event(Instant::now(), peer, EventKind::Frames(place, frames));
                }
            }
        }
        failures
    }

    /// Handles events until `done` or until the deadline.
    fn wait(
        &mut self,
        deadline: Option<Instant>,
        done: impl Fn(&Self) -> bool,
        tick: &mut dyn FnMut(&mut Self),
    ) -> Result<(), CallError> {
        while !done(self) {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(CallError::Cancelled);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            tick(self);
            // The session keeps the sending end, so the only possible error is a timeout.
            if let Ok(event) = self.session.events().recv_timeout(left.unwrap_or(TICK).min(TICK)) {
                let Event { at, call, peer, kind } = event;
                if let EventKind::Described(user) = &kind {
                    self.bridges[call].introduce(peer, user.clone());
                }
                if matches!(kind, EventKind::Left) {
                    self.await_end(call, peer);
                }
                self.states[call].on_event(at, peer, kind);
            }
            self.check_browsers();
            let patience = self.patience;
            for state in &mut self.states {
                state.check_deadline(patience);
            }
        }
        Ok(())
    }

    /// A peer has left. If that is too early, its program may be about to end: the reason that it
    /// gives then says more.
    fn await_end(&mut self, call: usize, peer: Peer) {
        let player = &mut self.players[self.config.calls[call].ends[peer.index()]];
        let until = Instant::now() + END_WITHIN;
        while player.pid().is_some()
            && !self.states[call].is_ending()
            && player.has_ended().is_none()
            && Instant::now() < until
        {
            thread::sleep(TICK);
        }
        self.check_browsers();
    }

    /// If a browser has ended, marks all its calls as failed.
    fn check_browsers(&mut self) {
        for (index, player) in self.players.iter_mut().enumerate() {
            let Some(words) = player.has_ended() else { continue };
            let name = &self.config.participants[index].name;
            let said = if words.is_empty() { words } else { format!(" (it said: {words})") };
            for (call, state) in self.config.calls.iter().zip(&mut self.states) {
                if call.ends.contains(&index) && !state.is_ending() {
                    state.fail(format!("the program of {name} ended{said}"));
                }
            }
        }
    }
}
