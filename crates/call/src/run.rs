//! One call from set-up to tear-down: two hosts, an emulated link, a server, two browsers.
//!
//! ```text
//!   browser a - host A = TUN = link model = TUN = host B - browser b      media, ICE, DTLS
//!        \ 127.0.0.1 of A                127.0.0.1 of B /
//!         +------------------ server ------------------+                  page, signalling, stats
//! ```

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{Emulation, Emulator, Plan};
use weir_net::{LinkConfig, Seed};

use crate::browser::{Browser, Program};
use crate::camera;
use crate::derive::{self, Interval, TimedReport};
use crate::error::CallError;
use crate::message::{Peer, SetupTimes, VideoConfig};
use crate::server::{Event, EventKind, PageConfig, Session};
use crate::stats::{Candidate, CandidatePair, StatsReport};

/// Time between two `getStats` reports of a page.
pub const STATS_INTERVAL: Duration = Duration::from_millis(500);
/// From the start of the browsers until media can flow: 3 s on a free machine.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// For the last report of both pages.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the lab looks whether it was interrupted and whether the browsers live.
const TICK: Duration = Duration::from_millis(100);

/// What to call, over what.
#[derive(Clone, Debug)]
pub struct CallConfig {
    /// From peer a to peer b.
    pub up: LinkConfig,
    /// From peer b to peer a.
    pub down: LinkConfig,
    /// From the moment when media can flow.
    pub duration: TimeDelta,
    /// The camera and the limit of the encoder.
    pub video: VideoConfig,
    /// Whether peer b sends video too.
    pub two_way: bool,
    /// Of the link's chance.
    pub seed: Seed,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The browsers have been started.
    SettingUp,
    /// Media flows; the scenario is at this time.
    Running(Timestamp),
    /// The call is over and is being taken down.
    Ending,
}

/// A call that ran for its whole duration.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// Peer a, peer b.
    pub peers: [PeerOutcome; 2],
    /// What the link did. Time zero is when both peers could send media; there are no samples
    /// beyond the duration, but the totals include the last moments in which the call ends.
    pub emulation: Emulation,
    /// The browser and its version.
    pub browser: String,
    /// The version of the kernel.
    pub kernel: String,
    /// What was not as it should be, one line each.
    pub notes: Vec<String>,
}

/// What one peer saw.
#[derive(Clone, Debug)]
pub struct PeerOutcome {
    /// The steps of its set-up.
    pub setup: SetupTimes,
    /// When it showed the first frame of the other, in ms since its page was opened; `None` at a
    /// peer that only sends.
    pub first_frame_ms: Option<f64>,
    /// The path of its media: both ends are on the emulated link.
    pub pair: CandidatePair,
    /// Its reports in scenario time.
    pub reports: Vec<TimedReport>,
}

impl PeerOutcome {
    /// The values of each interval that lies within the scenario's time.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = derive::intervals(&self.reports);
        intervals.retain(|interval| interval.start >= Timestamp::ZERO);
        intervals
    }
}

/// Makes one call. `cancel` ends it early, with [`CallError::Cancelled`].
///
/// Whatever the result, no process, folder or namespace is left behind.
///
/// # Errors
/// Where something is missing, a browser fails, or media takes another path than the emulated one.
pub fn run_call(
    config: &CallConfig,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<CallOutcome, CallError> {
    let program = Program::find()?;
    let camera = camera::file(&config.video);
    // Locals are dropped in reverse: the browsers end before their folder is removed.
    let folder = tempfile::Builder::new()
        .prefix(&format!("weir-call-{}-", std::process::id()))
        .tempdir()
        .map_err(CallError::system("make a temporary folder"))?;
    let mut emulator = Emulator::new(&Plan::two_hosts(&config.up, &config.down), config.seed)?;
    let hosts = [emulator.host(0).clone(), emulator.host(1).clone()];
    let listeners = hosts
        .iter()
        .map(|host| host.bind_tcp((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<Vec<_>, _>>()?;
    let page =
        PageConfig { video: config.video, two_way: config.two_way, stats_interval: STATS_INTERVAL };
    let session = Session::start(listeners, page).map_err(CallError::system("start the server"))?;
    let open = |peer: Peer| {
        let url = session.url(peer.index(), peer);
        let profile = folder.path().join(peer.name());
        program.open(&hosts[peer.index()], &url, &profile, camera.as_deref().ok())
    };
    let browsers = [open(Peer::A)?, open(Peer::B)?];
    let addresses = [hosts[0].address(), hosts[1].address()];
    let mut call = Call::new(session, browsers, addresses, cancel);

    progress(Progress::SettingUp);
    call.set_up()?;
    let start = emulator.start();
    call.run(start, config.duration, progress)?;
    progress(Progress::Ending);
    call.end()?;
    let mut emulation = emulator.stop()?;
    let hop = &mut emulation.hops[0];
    for direction in [&mut hop.up, &mut hop.down] {
        direction.samples.retain(|sample| sample.time <= Timestamp::ZERO + config.duration);
    }
    let peers = call.into_outcomes(start)?;
    folder.close().map_err(CallError::system("remove the browsers' folder"))?;
    Ok(CallOutcome {
        peers,
        emulation,
        browser: program.version,
        kernel: kernel_version(),
        notes: camera.err().into_iter().collect(),
    })
}

fn kernel_version() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// A call while it runs.
struct Call<'a> {
    session: Session,
    browsers: [Browser; 2],
    logs: [PeerLog; 2],
    addresses: [Ipv4Addr; 2],
    cancel: &'a AtomicBool,
    /// Peers may leave now.
    ending: bool,
}

/// What one peer has told so far.
#[derive(Default)]
struct PeerLog {
    joined: bool,
    left: bool,
    setup: Option<SetupTimes>,
    first_frame_ms: Option<f64>,
    pair: Option<CandidatePair>,
    reports: Vec<(Instant, StatsReport)>,
}

impl<'a> Call<'a> {
    fn new(
        session: Session,
        browsers: [Browser; 2],
        addresses: [Ipv4Addr; 2],
        cancel: &'a AtomicBool,
    ) -> Self {
        let logs = [PeerLog::default(), PeerLog::default()];
        Self { session, browsers, logs, addresses, cancel, ending: false }
    }

    /// Waits until media can flow both ways.
    fn set_up(&mut self) -> Result<(), CallError> {
        let deadline = Instant::now() + SETUP_TIMEOUT;
        let is_connected = |call: &Self| call.logs.iter().all(|log| log.setup.is_some());
        if self.wait(deadline, is_connected, &mut || {})? {
            return Ok(());
        }
        let absent = Peer::ALL.into_iter().find(|peer| !self.logs[peer.index()].joined);
        let (missing, browser) = match absent {
            Some(peer) => {
                (format!("{peer} has not joined"), self.browsers[peer.index()].last_words())
            }
            None => ("the peers are not connected".to_owned(), String::new()),
        };
        Err(CallError::TimedOut { missing, seconds: SETUP_TIMEOUT.as_secs(), browser })
    }

    fn run(
        &mut self,
        start: Instant,
        duration: TimeDelta,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), CallError> {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(0);
        let mut tick =
            || progress(Progress::Running(Timestamp::ZERO + since(start, Instant::now())));
        self.wait(start + Duration::from_nanos(nanos), |_| false, &mut tick)?;
        Ok(())
    }

    /// Lets the pages report a last time; whoever does not is killed soon.
    fn end(&mut self) -> Result<(), CallError> {
        self.ending = true;
        self.session.stop();
        let deadline = Instant::now() + STOP_TIMEOUT;
        self.wait(deadline, |call| call.logs.iter().all(|log| log.left), &mut || {})?;
        Ok(())
    }

    /// Takes events until `done`, or until the deadline; tells which of the two.
    fn wait(
        &mut self,
        deadline: Instant,
        done: impl Fn(&Self) -> bool,
        tick: &mut dyn FnMut(),
    ) -> Result<bool, CallError> {
        loop {
            if done(self) {
                return Ok(true);
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(CallError::Cancelled);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            tick();
            // The session holds the sending end, so the only error is that nothing came.
            if let Ok(event) = self.session.events().recv_timeout(left.min(TICK)) {
                self.on_event(event)?;
            }
            self.check_browsers()?;
        }
    }

    fn on_event(&mut self, Event { at, peer, kind }: Event) -> Result<(), CallError> {
        let log = &mut self.logs[peer.index()];
        match kind {
            EventKind::Joined => log.joined = true,
            EventKind::Connected(setup) => log.setup = Some(setup),
            EventKind::Playing(first_frame_ms) => log.first_frame_ms = Some(first_frame_ms),
            EventKind::Stats(report) => {
                if let Some(pair) = &report.pair {
                    let far_end = self.addresses[peer.other().index()];
                    check_path(peer, pair, self.addresses[peer.index()], far_end)?;
                    log.pair = Some(pair.clone());
                }
                log.reports.push((at, *report));
            }
            EventKind::Failed(cause) if !self.ending => return Err(CallError::Peer(cause)),
            EventKind::Left if !self.ending => return Err(self.left(peer)),
            EventKind::Failed(_) | EventKind::Left => log.left = true,
        }
        Ok(())
    }

    fn check_browsers(&mut self) -> Result<(), CallError> {
        for peer in Peer::ALL {
            if !self.ending && self.browsers[peer.index()].has_ended() {
                return Err(self.left(peer));
            }
        }
        Ok(())
    }

    fn left(&self, peer: Peer) -> CallError {
        CallError::Left { peer, browser: self.browsers[peer.index()].last_words() }
    }

    fn into_outcomes(self, start: Instant) -> Result<[PeerOutcome; 2], CallError> {
        let [a, b] = self.logs;
        Ok([a.into_outcome(Peer::A, start)?, b.into_outcome(Peer::B, start)?])
    }
}

impl PeerLog {
    fn into_outcome(self, peer: Peer, start: Instant) -> Result<PeerOutcome, CallError> {
        let silent = || CallError::Peer(format!("{peer} never reported the path of its media"));
        Ok(PeerOutcome {
            setup: self.setup.expect("a call runs only when both peers are connected"),
            first_frame_ms: self.first_frame_ms,
            pair: self.pair.ok_or_else(silent)?,
            reports: align(self.reports, start),
        })
    }
}

/// An error unless both ends of the media are the addresses on the emulated path.
fn check_path(
    peer: Peer,
    pair: &CandidatePair,
    near_end: Ipv4Addr,
    far_end: Ipv4Addr,
) -> Result<(), CallError> {
    let is = |candidate: &Candidate, address: Ipv4Addr| {
        candidate.address == Some(IpAddr::V4(address)) && candidate.protocol == "udp"
    };
    if is(&pair.local, near_end) && is(&pair.remote, far_end) {
        return Ok(());
    }
    let path = format!("{} to {}", describe(&pair.local), describe(&pair.remote));
    Err(CallError::OffPath { peer, path })
}

fn describe(candidate: &Candidate) -> String {
    let address = candidate.address.map_or("a hidden address".to_owned(), |ip| ip.to_string());
    format!("{address} ({})", crate::message::printable(&candidate.protocol))
}

/// Moves reports from the clock of the browser to scenario time.
///
/// The offset of the two clocks is the one of the report that reached the lab soonest after it was
/// made, so it is late by what the loopback device takes at best, and right for browsers whose
/// clock is not the lab's.
fn align(reports: Vec<(Instant, StatsReport)>, start: Instant) -> Vec<TimedReport> {
    let stamped: Vec<_> = reports
        .into_iter()
        .filter_map(|(at, report)| {
            Some((Timestamp::from_millis_f64(report.timestamp_ms()?), since(start, at), report))
        })
        .collect();
    let Some(offset) =
        stamped.iter().map(|(made, arrived, _)| Timestamp::ZERO + *arrived - *made).min()
    else {
        return Vec::new();
    };
    let timed = |(made, _, report)| TimedReport { time: made + offset, report };
    stamped.into_iter().map(timed).collect()
}

/// Time from `start` to `at`; negative where `at` is earlier.
fn since(start: Instant, at: Instant) -> TimeDelta {
    let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(start) {
        Some(after) => TimeDelta::from_nanos(nanos(after)),
        None => -TimeDelta::from_nanos(nanos(start.duration_since(at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::OutboundRtp;

    const A: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);

    fn candidate(address: Option<Ipv4Addr>, protocol: &str) -> Candidate {
        Candidate {
            address: address.map(IpAddr::V4),
            port: 1,
            protocol: protocol.into(),
            candidate_type: "host".into(),
        }
    }

    fn pair(local: Candidate, remote: Candidate) -> CandidatePair {
        CandidatePair {
            timestamp: 0.0,
            packets_sent: 0,
            bytes_sent: 0,
            packets_received: 0,
            bytes_received: 0,
            current_round_trip_time: None,
            responses_received: None,
            available_outgoing_bitrate: None,
            local,
            remote,
        }
    }

    #[test]
    fn only_udp_between_the_two_hosts_is_on_the_path() {
        let check = |local, remote| check_path(Peer::A, &pair(local, remote), A, B);
        assert!(check(candidate(Some(A), "udp"), candidate(Some(B), "udp")).is_ok());
        for (local, remote) in [
            (candidate(Some(B), "udp"), candidate(Some(A), "udp")),
            (candidate(Some(A), "udp"), candidate(Some(Ipv4Addr::LOCALHOST), "udp")),
            (candidate(Some(A), "udp"), candidate(None, "udp")),
            (candidate(Some(A), "tcp"), candidate(Some(B), "tcp")),
        ] {
            assert!(matches!(check(local, remote), Err(CallError::OffPath { .. })));
        }
    }

    fn report(ms: f64) -> StatsReport {
        let outbound = OutboundRtp { timestamp: ms, ..OutboundRtp::default() };
        StatsReport { outbound: Some(outbound), ..StatsReport::default() }
    }

    #[test]
    fn reports_keep_their_distance_and_the_soonest_one_sets_the_clock() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        // Made 500 ms apart; the second came without delay at 700 ms, the others later.
        let reports = [(at(230), 9_000.0), (at(700), 9_500.0), (at(1290), 10_000.0)];
        let aligned = align(reports.map(|(at, ms)| (at, report(ms))).into(), start);
        let times: Vec<_> = aligned.iter().map(|timed| timed.time.as_millis()).collect();
        assert_eq!(times, [200, 700, 1200]);
    }

    #[test]
    fn a_report_before_the_start_has_a_negative_time() {
        let start = Instant::now() + Duration::from_secs(9);
        let aligned = align(vec![(start - Duration::from_secs(1), report(5.0))], start);
        assert_eq!(aligned[0].time, Timestamp::from_secs(-1));
        assert!(align(vec![], start).is_empty());
    }
}
