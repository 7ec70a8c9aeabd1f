//! An application under test: its server and its pages, each on a host of its own, and a browser
//! for each participant that a script of the user drives.
//!
//! ```text
//!   p1 - host = scenario's network = far node - host - server of the application
//!   p2 - host = network of its own ====+
//!   p3 - host = network of its own ====+
//!
//!   each participant: browser <- 127.0.0.1 -> driver (node, playwright-core) -> lines -> dump
//! ```
//!
//! What the pages report becomes one rtcstats dump for each participant, which `weir-analyze`
//! reads.

mod border;
mod displayed_frames;
mod driver;

use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir::units::Timestamp;
use weir_emu::{Child, Emulation, Emulator, Host, HostPlan, OwnNetwork, Plan, User};
use weir_net::Seed;
use weir_net::path::AccessPlan;
use weir_scenario::call::BrowserKind;
use weir_scenario::{ParticipantNetwork, Scenario};

use self::border::Border;
pub use self::displayed_frames::WATCHED_MAX;
use self::displayed_frames::Watch;
use self::driver::{DEBUGGER_PORT, Said, drive};
use crate::error::CallError;
use crate::measure::capture::{CapturePlan, Recording};
use crate::measure::quality::ReceivedFrames;
use crate::peers::browser::{Browser, ChromiumOptions, Devices, Program};
use crate::peers::camera;
use crate::plan::{ChromiumMode, PlannedHandover, nats, network, second_interfaces};
use crate::run::handovers::Handovers;
use crate::run::state::{since, since_1970};
use crate::run::usage::{Usage, UsageMeter};
use crate::run::{Progress, cut, kernel_version, run_folder};

const TICK: Duration = Duration::from_millis(50);
/// How long the drivers may take to end. They wait 5 s for their pages.
const END_PATIENCE: Duration = Duration::from_secs(8);
/// The part of a URL that stands for the server's address.
const SERVER: &str = "{server}";

/// What to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppPlan {
    /// Address of the page. `{server}` stands for the address of the server's host.
    pub url: String,
    /// The script that makes a participant join, as an absolute path.
    pub join: Option<PathBuf>,
    /// Number of participants.
    pub participants: usize,
    /// Their browsers, from `p1` on and then from the beginning again. Not empty.
    pub browsers: Vec<BrowserKind>,
    /// Time limit from the start of the browsers until all participants have joined.
    pub join_timeout: Duration,
    /// The shell command that starts the server; `None` if it runs elsewhere.
    pub serve: Option<String>,
    /// Whether what the participants see of each other is measured.
    pub quality: bool,
    /// With `quality`: the seconds at which the last received pictures are kept.
    pub pictures_at: Vec<u32>,
    /// Where the dumps and the drivers' temporary files are written.
    pub dumps: PathBuf,
    /// Where the captures of all hosts are kept; `None` for none.
    pub capture: Option<CapturePlan>,
}

impl AppPlan {
    /// Whether the server runs on an emulated host. Such a host has no name, so no certificate fits
    /// it.
    fn is_here(&self) -> bool {
        self.serve.is_some()
    }

    /// The browser of the participant with this index.
    fn browser(&self, index: usize) -> BrowserKind {
        self.browsers[index % self.browsers.len()]
    }
}

/// A participant of an application.
#[derive(Clone, Debug)]
pub struct AppParticipant {
    /// `p1`, `p2` and so on.
    pub name: String,
    /// Its browser's version.
    pub version: String,
    /// Its dump.
    pub dump: PathBuf,
    /// Why it failed, in one line; `None` if it joined and stayed.
    pub failure: Option<String>,
    /// When its script had ended, since the start of the browsers; `None` if it did not.
    pub joined: Option<Duration>,
    /// Processor time and memory; `None` if the scenario did not begin.
    pub usage: Option<Usage>,
}

/// The result of a run.
#[derive(Debug)]
pub struct AppOutcome {
    /// The participants, in order.
    pub participants: Vec<AppParticipant>,
    /// The emulator's log.
    pub emulation: Emulation,
    /// The emulated network.
    pub network: Plan,
    /// Time zero of the scenario, since 1970.
    pub zero: Duration,
    /// The machine's kernel.
    pub kernel: String,
    /// Packets that the captures were too late for.
    pub missed_packets: u64,
    /// What each participant saw of each other one, if the plan asked for it.
    pub frames: Vec<ReceivedFrames>,
    /// Reasons not to trust values.
    pub notes: Vec<String>,
}

/// The hosts of an application: the participants, and last its server, or the border to it, which
/// is at the far node. Each participant has a network in front of it: the first one the scenario's,
/// each other one that of its table `[participant.NAME]`, or a copy of the scenario's.
///
/// # Errors
/// One line, if a NAT has no participant, or a hand-over none.
pub fn app_network(
    scenario: &Scenario,
    participants: usize,
    has_border: bool,
) -> Result<(Plan, Vec<PlannedHandover>), String> {
    let network = network(scenario);
    let far = network.hops.len();
    let attachment = scenario.link_attachment();
    let mut hosts = vec![HostPlan { attachment, ..HostPlan::at(0) }];
    let mut own = Vec::new();
    for number in 2..=participants {
        let (attachment, access, hops) = match scenario.participants.get(&format!("p{number}")) {
            Some(ParticipantNetwork { access, hops }) => {
                let access = access.as_ref().map(|access| AccessPlan::new(access.config.clone()));
                (access.as_ref().map(|plan| plan.config.default_attachment()), access, hops)
            }
            None => (attachment, network.access.clone(), &scenario.hops),
        };
        let host = HostPlan { attachment, own: Some(own.len()), ..HostPlan::at(far) };
        hosts.push(host);
        own.push(OwnNetwork { access, hops: hops.clone() });
    }
    hosts.push(HostPlan { is_border: has_border, ..HostPlan::at(far) });
    let names: Vec<String> = (1..=participants).map(|number| format!("p{number}")).collect();
    let named: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(0..).collect();
    let nats = nats(scenario, &named)?;
    let mut plan = Plan { hosts, own, nats, local_traffic: true, ..network };
    let handovers = second_interfaces(scenario, &named, &mut plan)?;
    Ok((plan, handovers))
}

/// Runs an application in a scenario's network, for the scenario's length from the moment at which
/// all participants have joined.
///
/// # Errors
/// If this machine lacks something. A participant that fails is a result, not an error.
pub fn run_app(
    scenario: &Scenario,
    plan: &AppPlan,
    seed: Seed,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<AppOutcome, CallError> {
    // Locals are dropped in reverse order: the programs end before their folder is removed.
    let folder = run_folder().map_err(CallError::system("make a temporary folder"))?;
    let user = User::ordinary();
    user.let_in(folder.path()).map_err(CallError::system("open a temporary folder"))?;
    let (network, planned) =
        app_network(scenario, plan.participants, !plan.is_here()).map_err(CallError::Plan)?;
    let mut emulator = Emulator::new(&network, seed)?;
    let recording = plan.capture.as_ref().map(|it| Recording::start(emulator.hosts(), it));
    let recording = recording.transpose()?;
    let ffmpeg = emulator.host(0).command_as(user, "ffmpeg");
    let camera =
        camera::file(&scenario.call.video, plan.quality, ffmpeg).and_then(|file| match user {
            User::Nobody => camera::lend(&file, folder.path()),
            User::Own | User::Renamed => Ok(file),
        });
    let watch = match camera.as_deref() {
        Ok(camera) if plan.quality => {
            let fps = scenario.call.video.fps;
            let folder = folder.path();
            Some(Watch::prepare(camera, fps, plan.participants, folder, &plan.dumps)?)
        }
        _ => None,
    };
    let mut server = Server::start(plan, emulator.host(plan.participants), folder.path())?;
    let cameras = Cameras { camera: camera.as_deref().ok(), watch: watch.as_ref() };
    let mut run = Run::open(plan, &emulator, folder.path(), cameras, &server)?;
    progress(Progress::SettingUp(&[]));
    run.wait(
        Instant::now() + plan.join_timeout,
        cancel,
        &mut server,
        Run::all_joined_or_failed,
        &mut || {},
    )?;
    run.fail_those_who_did_not_join(plan.join_timeout);
    let mut handovers = Handovers::new(&planned, emulator.hosts());
    let start = emulator.start();
    let zero = since_1970(start);
    run.meters.iter_mut().for_each(UsageMeter::start);
    let handle = emulator.handle();
    let length = Duration::from_nanos(u64::try_from(scenario.duration.as_nanos()).unwrap_or(0));
    run.wait(start + length, cancel, &mut server, Run::is_over, &mut || {
        let time = Timestamp::ZERO + since(start, Instant::now());
        handovers.tick(time);
        progress(Progress::Running { time, network: &handle, stats: &[], end: &Cell::new(false) });
    })?;
    progress(Progress::Ending);
    let (participants, mut notes) = run.end()?;
    drop(server);
    let recorded = recording.map(Recording::stop).transpose()?.unwrap_or_default();
    let mut emulation = cut(emulator.stop()?, scenario.duration);
    for one in &planned {
        emulation.join_hosts(one.second, one.first);
    }
    let span = Timestamp::ZERO..Timestamp::ZERO + scenario.duration;
    let seen = watch.map(|watch| watch.received(zero, &span, &plan.pictures_at)).transpose();
    folder.close().map_err(CallError::system("remove the browsers' folder"))?;
    notes.extend(camera.err());
    notes.extend(handovers.failures);
    let frames = seen.unwrap_or_else(|cause| {
        notes.push(format!("what was seen is not measured: {cause}"));
        None
    });
    Ok(AppOutcome {
        participants,
        emulation,
        network,
        zero,
        kernel: kernel_version(),
        missed_packets: recorded.iter().map(|capture| capture.missed_packets).sum(),
        frames: frames.unwrap_or_default(),
        notes,
    })
}

/// The application's server.
enum Server {
    /// On a host of its own.
    Here(Child),
    /// At this address, behind the border.
    Elsewhere { address: Ipv4Addr, _border: Border },
}

impl Server {
    /// Starts the server and waits until it listens, or opens the way to it.
    fn start(plan: &AppPlan, host: &Host, folder: &Path) -> Result<Self, CallError> {
        let Some(serve) = &plan.serve else {
            let address = border::server_address(&plan.url)?;
            return Ok(Self::Elsewhere { address, _border: Border::open(host, folder)? });
        };
        let mut command = host.command("sh");
        command.arg("-c").arg(serve).env("WEIR_ADDRESS", host.address().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = Child::spawn(&mut command)?;
        let port = plan.url.split(SERVER).nth(1).and_then(|rest| {
            let digits: String =
                rest.strip_prefix(':')?.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        server.wait_until_it_listens(host, port)?;
        Ok(Self::Here(server))
    }

    /// How it ended, if it has.
    fn ended(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Here(server) => server.inner().try_wait().ok().flatten(),
            Self::Elsewhere { .. } => None,
        }
    }

    /// What Chromium needs to find it by its name.
    fn resolver_rules(&self, url: &str) -> Option<String> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere { address, .. } => Some(border::resolver_rules(url, *address)),
        }
    }
}

/// The files that the cameras play.
#[derive(Clone, Copy)]
struct Cameras<'a> {
    /// One for all; `None` if it could not be made.
    camera: Option<&'a Path>,
    /// One for each, with `--quality`.
    watch: Option<&'a Watch>,
}

impl<'a> Cameras<'a> {
    fn of(self, index: usize) -> Option<&'a Path> {
        self.watch.map(|watch| watch.camera(index)).or(self.camera)
    }
}

/// A participant while it runs.
struct Playing {
    name: String,
    version: String,
    browser: Browser,
    driver: Child,
    dump: PathBuf,
    writer: Option<JoinHandle<io::Result<()>>>,
    joined: Option<Instant>,
    failure: Option<String>,
    /// Whether all that its driver said was heard.
    is_heard: bool,
}

/// A run in progress.
struct Run {
    began: Instant,
    warnings: Vec<String>,
    playing: Vec<Playing>,
    meters: Vec<UsageMeter>,
    said: Receiver<(usize, Said)>,
}

impl Run {
    /// Starts browsers and drivers.
    fn open(
        plan: &AppPlan,
        emulator: &Emulator,
        folder: &Path,
        cameras: Cameras<'_>,
        server: &Server,
    ) -> Result<Self, CallError> {
        let programs = programs(plan, emulator, folder)?;
        let url = plan.url.replace(SERVER, &emulator.host(plan.participants).address().to_string());
        let (says, said) = channel();
        let mut run = Self {
            began: Instant::now(),
            warnings: programs.iter().filter_map(Program::warning).cloned().collect(),
            playing: Vec::new(),
            meters: Vec::new(),
            said,
        };
        for index in 0..plan.participants {
            let host = emulator.host(index);
            let name = format!("p{}", index + 1);
            let program = programs
                .iter()
                .find(|program| program.kind() == plan.browser(index))
                .expect("every browser of the plan was found");
            let mut extra = vec![format!("--remote-debugging-port={DEBUGGER_PORT}")];
            if program.kind() == BrowserKind::Chromium {
                let secure = "--unsafely-treat-insecure-origin-as-secure=";
                extra.push(format!("{secure}{}", origin(&url)));
                extra.extend(server.resolver_rules(&url));
                extra.extend(plan.is_here().then(|| "--ignore-certificate-errors".into()));
            }
            let options =
                ChromiumOptions { mode: ChromiumMode::Default, key_hash: None, extra: &extra };
            let profile = folder.join(&name);
            let quality = cameras.watch.map(|watch| watch.settings(index));
            let devices = Devices { camera: cameras.of(index), microphone: None };
            let browser = program.open(host, "about:blank", &profile, devices, options)?;
            run.meters.push(UsageMeter::of(browser.pid()));
            let dump = plan.dumps.join(format!("{name}.rtcstats"));
            let (driver, writer) = drive(plan, &url, host, index, (&dump, quality), says.clone())?;
            let writer = Some(writer);
            run.playing.push(Playing {
                name,
                version: program.version.clone(),
                browser,
                driver,
                dump,
                writer,
                joined: None,
                failure: None,
                is_heard: false,
            });
        }
        Ok(run)
    }

    fn all_joined_or_failed(&self) -> bool {
        self.playing.iter().all(|one| one.joined.is_some() || one.failure.is_some())
    }

    /// Whether every participant has failed.
    fn is_over(&self) -> bool {
        self.playing.iter().all(|one| one.failure.is_some())
    }

    fn fail_those_who_did_not_join(&mut self, limit: Duration) {
        let limit = limit.as_secs();
        for one in self.playing.iter_mut().filter(|one| one.joined.is_none()) {
            one.failure.get_or_insert_with(|| format!("it did not join within {limit} s"));
        }
    }

    /// Takes what the drivers say until `done` or the deadline.
    fn wait(
        &mut self,
        deadline: Instant,
        cancel: &AtomicBool,
        server: &mut Server,
        done: fn(&Self) -> bool,
        tick: &mut dyn FnMut(),
    ) -> Result<(), CallError> {
        while !done(self) && Instant::now() < deadline {
            if cancel.load(Ordering::Relaxed) {
                return Err(CallError::Cancelled);
            }
            tick();
            if let Ok((index, said)) = self.said.recv_timeout(TICK) {
                self.hear(index, said);
            }
            for one in &mut self.playing {
                if one.failure.is_none()
                    && let Some(how) = one.browser.how_it_ended()
                {
                    one.failure = Some(format!("its browser ended ({how})"));
                }
            }
            if let Some(status) = server.ended() {
                for one in self.playing.iter_mut().filter(|one| one.failure.is_none()) {
                    one.failure = Some(format!("the application's server ended ({status})"));
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, index: usize, said: Said) {
        let one = &mut self.playing[index];
        match said {
            Said::Joined => one.joined = Some(Instant::now()),
            Said::Failed(why) => drop(one.failure.get_or_insert(why)),
            Said::Ended => {
                one.is_heard = true;
                one.failure.get_or_insert_with(|| "its driver ended".into());
            }
        }
    }

    /// Ends all programs. The results, and what the record must say about the browsers.
    fn end(mut self) -> Result<(Vec<AppParticipant>, Vec<String>), CallError> {
        let usage: Vec<Option<Usage>> = self.meters.iter_mut().map(UsageMeter::end).collect();
        self.hear_the_rest();
        let mut participants = Vec::new();
        for (mut one, usage) in self.playing.drain(..).zip(usage) {
            drop(one.driver);
            drop(one.browser);
            if let Some(writer) = one.writer.take() {
                let written = writer.join().expect("the writer does not panic");
                written.map_err(CallError::system("write a dump"))?;
            }
            participants.push(AppParticipant {
                name: one.name,
                version: one.version,
                dump: one.dump,
                failure: one.failure,
                joined: one.joined.map(|at| at - self.began),
                usage,
            });
        }
        Ok((participants, self.warnings))
    }

    /// Lets all drivers pass on what the pages have reported. A busy machine takes seconds for it.
    fn hear_the_rest(&mut self) {
        for one in &mut self.playing {
            // A driver ends when its input does.
            drop(one.driver.inner().stdin.take());
        }
        let deadline = Instant::now() + END_PATIENCE;
        while self.playing.iter().any(|one| !one.is_heard) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok((index, Said::Ended)) => self.playing[index].is_heard = true,
                Ok((index, said)) => self.hear(index, said),
                Err(_) => return,
            }
        }
    }
}

/// The browsers that the participants use, each once.
fn programs(plan: &AppPlan, emulator: &Emulator, folder: &Path) -> Result<Vec<Program>, CallError> {
    let mut kinds: Vec<BrowserKind> = Vec::new();
    for kind in (0..plan.participants).map(|index| plan.browser(index)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().map(|kind| Program::find(kind, emulator.host(0), folder)).collect()
}

/// The origin of a URL.
fn origin(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url[after..].find('/').map_or(url.len(), |at| after + at);
    &url[..end]
}

/// Whether a URL can be opened on an emulated host: its server must be there too.
pub fn is_inside(url: &str) -> bool {
    let host = border::server_name(url);
    host == SERVER || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_an_emulated_host_has_an_address_and_no_name() {
        assert!(is_inside("http://{server}:9000/room"));
        assert!(is_inside("http://10.45.0.3:9000/"));
        assert!(!is_inside("https://meet.example.org/room"));
        assert_eq!(origin("http://{server}:9000/room?x=/"), "http://{server}:9000");
        assert_eq!(origin("http://10.0.0.1"), "http://10.0.0.1");
    }
}
