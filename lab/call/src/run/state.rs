//! State of the calls while they run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::derive::{self, Interval, TimedReport};
use weir_record::calls::stats::{Candidate, CandidatePair, StatsReport};

use crate::measure::outcome::{CallResult, PeerOutcome};
use crate::measure::quality::picture::PictureStore;
use crate::measure::quality::scoring::{self, Pictures};
use crate::measure::quality::sighting::{FrameSighting, Place, TimedSighting};
use crate::measure::sound::recording::{Recording, Sounds, Tap};
use crate::message::{Peer, STATS_INTERVAL, SetupTimes, TargetChange, printable};
use crate::peers::ims::SipMessage;
use crate::run::signalling::EventKind;

/// The allowed path of a call's media.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The addresses of peer a and peer b: their own, and those of their NATs.
    pub(crate) ends: [Vec<Ipv4Addr>; 2],
    /// Whether peer a and peer b report the path of their media. A forwarding server does not.
    pub(crate) reports: [bool; 2],
    /// The relay that both peers may use.
    pub(crate) relay: Option<Ipv4Addr>,
    /// Whether they must use it.
    pub(crate) relay_only: bool,
    /// The bridge's addresses as peer a and peer b see them. With a bridge, the peers' own
    /// addresses do not matter.
    pub(crate) bridge: Option<[SocketAddr; 2]>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct CallState {
    number: usize,
    route: Route,
    peers: [PeerLog; 2],
    /// Time by which the call must be connected; `None` before it begins.
    deadline: Option<Instant>,
    /// Whether the call is ending, so its peers may leave.
    ending: bool,
    failure: Option<String>,
}

/// Everything that one peer has reported so far.
#[derive(Debug, Default)]
struct PeerLog {
    joined: bool,
    left: bool,
    setup: Option<SetupTimes>,
    first_frame_ms: Option<f64>,
    pair: Option<CandidatePair>,
    reports: Vec<(Instant, StatsReport)>,
    targets: Vec<TargetChange>,
    frames: Vec<(Place, FrameSighting)>,
    pictures: PictureStore,
    scored: Pictures,
    microphone: Recording,
    speaker: Recording,
    signalling: Vec<SipMessage>,
}

impl PeerLog {
    /// What counts from the scenario's start is empty if it was never reached.
    fn into_outcome(self, start: Option<Instant>) -> PeerOutcome {
        let mut outcome = PeerOutcome {
            setup: self.setup,
            first_frame_ms: self.first_frame_ms,
            pair: self.pair,
            reports: Vec::new(),
            targets: Vec::new(),
            frames: Vec::new(),
            pictures: self.scored,
            sounds: Sounds::default(),
            signalling: self.signalling,
        };
        if let Some(start) = start {
            outcome.reports = align(self.reports, start);
            outcome.targets = on_scenario_time(self.targets, start);
            outcome.frames = timed_frames(self.frames, start);
            let zero_ms = since_1970(start).as_secs_f64() * 1e3;
            outcome.sounds.spoken = self.microphone.placed(Tap::Microphone, zero_ms);
            outcome.sounds.heard = self.speaker.placed(Tap::Speaker, zero_ms);
        }
        outcome
    }
}

impl CallState {
    pub(crate) fn new(number: usize, route: Route) -> Self {
        let peers = Default::default();
        Self { number, route, peers, deadline: None, ending: false, failure: None }
    }

    /// Begins the call. It must be connected within `patience`.
    pub(crate) fn begin(&mut self, patience: Duration) {
        self.deadline = Some(Instant::now() + patience);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.deadline.is_some()
    }

    /// Ends the call: its peers report a last time and leave.
    pub(crate) fn end(&mut self) {
        self.ending = true;
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether the set-up has ended: media can flow, or the call has failed.
    pub(crate) fn setup_has_ended(&self) -> bool {
        self.failure.is_some() || self.is_connected()
    }

    /// Whether the call is over: it failed, or both peers have left.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.peers.iter().all(|log| log.left)
    }

    fn is_connected(&self) -> bool {
        self.peers.iter().all(|log| log.setup.is_some())
    }

    /// Marks the call as failed. Only the first cause is kept.
    pub(crate) fn fail(&mut self, cause: String) {
        self.failure.get_or_insert(cause);
    }

    /// Marks the call as failed if it is not connected in time.
    pub(crate) fn check_deadline(&mut self, patience: Duration) {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !late || self.setup_has_ended() {
            return;
        }
        let absent = Peer::ALL.into_iter().find(|peer| !self.peers[peer.index()].joined);
        let missing = match absent {
            Some(peer) => format!("{peer} has not joined"),
            None => "the peers are not connected".into(),
        };
        self.fail(format!("{missing} after {} s", patience.as_secs()));
    }

    /// The values between the last two reports of a peer; `None` before its second report.
    pub(crate) fn newest_interval(&self, peer: Peer, start: Instant) -> Option<Interval> {
        let reports = &self.peers[peer.index()].reports;
        let newest = reports.last_chunk::<2>()?;
        let timed = newest.each_ref().map(|(at, report)| TimedReport {
            time: Timestamp::ZERO + since(start, *at),
            report: report.clone(),
        });
        derive::intervals(&timed).pop()
    }

    pub(crate) fn on_event(&mut self, at: Instant, peer: Peer, kind: EventKind) {
        let log = &mut self.peers[peer.index()];
        match kind {
            EventKind::Joined => log.joined = true,
            // Handled by the bridge.
            EventKind::Described(_) => {}
            EventKind::Connected(setup) => log.setup = Some(setup),
            EventKind::Playing(first_frame_ms) => log.first_frame_ms = Some(first_frame_ms),
            EventKind::Stats(report) => {
                if let Some(pair) = &report.pair {
                    if let Err(path) = check_path(peer, pair, &self.route) {
                        return self
                            .fail(format!("{peer} uses {path}, which is not the emulated path"));
                    }
                    self.peers[peer.index()].pair = Some((**pair).clone());
                }
                let reports = &mut self.peers[peer.index()].reports;
                reports.push((at, *report));
                if reports.len() > reports_max(at.saturating_duration_since(reports[0].0)) {
                    self.fail(format!("{peer} sends more reports than it was asked for"));
                }
            }
            EventKind::Target(change) => log.targets.push(*change),
            EventKind::Frames(place, frames) => {
                log.frames.extend(frames.into_iter().map(|frame| (place, frame)));
            }
            EventKind::Picture(picture) => {
                if let Err(error) = log.pictures.push(&picture) {
                    self.fail(format!("cannot keep the pictures of {peer}: {error}"));
                }
            }
            EventKind::Sound(tap, chunk) => {
                let recording = match tap {
                    Tap::Microphone => &mut log.microphone,
                    Tap::Speaker => &mut log.speaker,
                };
                if let Err(error) = recording.push(*chunk) {
                    self.fail(format!("cannot keep the sound of {peer}: {error}"));
                }
            }
            EventKind::Signalled(message) => log.signalling.push(*message),
            EventKind::Failed(_) | EventKind::Left if self.ending => log.left = true,
            EventKind::Failed(cause) => self.fail(cause),
            EventKind::Left => {
                log.left = true;
                self.fail(format!("{peer} left before the end of the call"));
            }
        }
    }

    /// Compares the pictures that each peer received with the camera's file. `start` is that of the
    /// scenario. Those at the seconds `at` are kept.
    ///
    /// # Errors
    /// One line, if a file cannot be read.
    pub(crate) fn score_pictures(
        &mut self,
        camera: &Path,
        start: Instant,
        at: &[u32],
    ) -> Result<(), String> {
        let zero = since_1970(start);
        for log in &mut self.peers {
            log.scored = scoring::score(&log.pictures, camera, zero, at)?;
        }
        Ok(())
    }

    pub(crate) fn into_result(mut self, start: Option<Instant>) -> CallResult {
        for peer in Peer::ALL {
            let silent =
                self.route.reports[peer.index()] && self.peers[peer.index()].pair.is_none();
            if self.failure.is_none() && silent {
                self.fail(format!("{peer} never reported the path of its media"));
            }
        }
        let peers = self.peers.map(|log| log.into_outcome(start));
        CallResult { number: self.number, peers, failure: self.failure }
    }
}

/// Returns an error that describes the path, unless media takes the allowed path: both ends on the
/// emulated path, where a NAT or the relay may stand for either, or both behind the relay.
fn check_path(peer: Peer, pair: &CandidatePair, route: &Route) -> Result<(), String> {
    let [near, far] = [&route.ends[peer.index()], &route.ends[peer.other().index()]];
    let on_path = match (route.bridge, route.relay) {
        (Some(bridge), _) => {
            let socket = bridge[peer.index()];
            // If the bridge listens at all addresses of this machine, only the port is checked.
            let is_there = socket.ip().is_unspecified() || pair.remote.address == Some(socket.ip());
            is_there && pair.remote.port == socket.port()
        }
        (None, Some(relay)) if route.relay_only => {
            is_at(&pair.local, &[relay], &["relay"])
                && is_at(&pair.remote, &[relay], &["relay", "prflx"])
        }
        (None, relay) => {
            pair.local.address.is_some()
                && is_on_a_way(&pair.local, near, relay)
                && is_on_a_way(&pair.remote, far, relay)
        }
    };
    if on_path {
        return Ok(());
    }
    Err(format!("{} to {}", describe(&pair.local), describe(&pair.remote)))
}

/// Whether a candidate is at one end's own addresses, or at the relay.
fn is_on_a_way(candidate: &Candidate, own: &[Ipv4Addr], relay: Option<Ipv4Addr>) -> bool {
    is_at(candidate, own, &["host", "srflx", "prflx"])
        || relay.is_some_and(|relay| is_at(candidate, &[relay], &["relay", "prflx"]))
}

/// Whether a candidate has one of these addresses and one of these types.
fn is_at(candidate: &Candidate, addresses: &[Ipv4Addr], types: &[&str]) -> bool {
    // If a connectivity check overtakes the signalling, the remote end is known only from its
    // packets, and the browser may hide its address. Then only the local address is checked,
    // because no other path leads to it.
    let is_hidden = candidate.address.is_none() && candidate.candidate_type == "prflx";
    let is_there = addresses.iter().any(|own| candidate.address == Some(IpAddr::V4(*own)));
    (is_hidden || is_there)
        && candidate.protocol == "udp"
        && types.contains(&candidate.candidate_type.as_str())
}

fn describe(candidate: &Candidate) -> String {
    let address = candidate.address.map_or("a hidden address".to_owned(), |ip| ip.to_string());
    format!(
        "{address} ({} {})",
        printable(&candidate.candidate_type),
        printable(&candidate.protocol)
    )
}

/// Maximum number of reports accepted in this time: twice as many as a page sends, plus a few that
/// a busy machine may have delayed. The lab keeps all of them, so their number must be limited.
fn reports_max(since_the_first: Duration) -> usize {
    const SPARE: usize = 16;
    2 * (since_the_first.as_millis() / STATS_INTERVAL.as_millis()) as usize + SPARE
}

/// Converts the times of reports from the browser's clock to scenario time.
///
/// The clock offset is taken from the report with the shortest delay to the lab. The result is late
/// only by the minimum delay of the loopback device, even if the browser's clock differs from the
/// lab's.
fn align(reports: Vec<(Instant, StatsReport)>, start: Instant) -> Vec<TimedReport> {
    let mut timed = Vec::new();
    let mut offset = TimeDelta::MAX;
    for (arrival, report) in reports {
        if let Some(ms) = report.timestamp_ms() {
            let time = Timestamp::from_millis_f64(ms);
            offset = offset.min(Timestamp::ZERO + since(start, arrival) - time);
            timed.push(TimedReport { time, report });
        }
    }
    for report in &mut timed {
        report.time += offset;
    }
    timed
}

/// Converts the times of a controller's changes from the system's monotonic clock to scenario time.
fn on_scenario_time(changes: Vec<TargetChange>, start: Instant) -> Vec<(Timestamp, TargetChange)> {
    // `Instant` is on the same clock, but does not tell its value. One moment is read from both.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let since_start = since(start, Instant::now());
    let now = TimeDelta::from_secs(now.tv_sec) + TimeDelta::from_nanos(now.tv_nsec);
    let zero = now - since_start;
    let timed = changes.into_iter().map(|change| {
        let time = i64::try_from(change.time_ns).unwrap_or(i64::MAX);
        (Timestamp::ZERO + (TimeDelta::from_nanos(time) - zero), change)
    });
    timed.collect()
}

/// Converts the times of frames from the time since 1970 to scenario time.
fn timed_frames(frames: Vec<(Place, FrameSighting)>, start: Instant) -> Vec<TimedSighting> {
    let zero = since_1970(start);
    let mut timed = Vec::new();
    for (place, frame) in frames {
        timed.push(TimedSighting::of(place, frame, zero));
    }
    timed.sort_by_key(|seen: &TimedSighting| seen.time);
    timed
}

/// Converts an instant to the clock of packet timestamps.
pub(crate) fn since_1970(moment: Instant) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(moment.elapsed())
}

/// Time from `start` to `at`; negative if `at` is earlier.
pub(crate) fn since(start: Instant, at: Instant) -> TimeDelta {
    let (later, earlier) = (at.max(start), at.min(start));
    let nanos = i64::try_from(later.duration_since(earlier).as_nanos()).unwrap_or(i64::MAX);
    TimeDelta::from_nanos(if at < start { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::calls::stats::OutboundRtp;

    const A: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);
    const RELAY: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);

    fn direct() -> Route {
        let ends = [vec![A], vec![B]];
        Route { ends, reports: [true; 2], relay: None, relay_only: false, bridge: None }
    }

    fn candidate(address: Option<Ipv4Addr>, protocol: &str) -> Candidate {
        Candidate {
            address: address.map(IpAddr::V4),
            port: 1,
            protocol: protocol.into(),
            candidate_type: "host".into(),
            ..Candidate::default()
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
        let route = direct();
        let check = |local, remote| check_path(Peer::A, &pair(local, remote), &route);
        assert!(check(candidate(Some(A), "udp"), candidate(Some(B), "udp")).is_ok());
        for (local, remote) in [
            (candidate(Some(B), "udp"), candidate(Some(A), "udp")),
            (candidate(Some(A), "udp"), candidate(Some(Ipv4Addr::LOCALHOST), "udp")),
            (candidate(Some(A), "udp"), candidate(None, "udp")),
            (candidate(Some(A), "tcp"), candidate(Some(B), "tcp")),
        ] {
            assert!(check(local, remote).is_err());
        }
        let hidden = Candidate { candidate_type: "prflx".into(), ..candidate(None, "udp") };
        assert!(check(candidate(Some(A), "udp"), hidden.clone()).is_ok());
        assert!(check(candidate(Some(B), "udp"), hidden.clone()).is_err());
        assert!(check(hidden, candidate(Some(B), "udp")).is_err());
    }

    #[test]
    fn with_a_relay_only_its_own_addresses_are_on_the_path() {
        let route = Route { relay: Some(RELAY), relay_only: true, ..direct() };
        let check = |local, remote| check_path(Peer::B, &pair(local, remote), &route);
        let relayed = Candidate { candidate_type: "relay".into(), ..candidate(Some(RELAY), "udp") };
        assert!(check(relayed.clone(), relayed.clone()).is_ok());
        let direct = check(candidate(Some(B), "udp"), candidate(Some(A), "udp"));
        assert_eq!(direct.unwrap_err(), "10.45.0.2 (host udp) to 10.45.0.1 (host udp)");
        assert!(check(relayed, candidate(Some(A), "udp")).is_err());
    }

    fn of(kind: &str, address: Ipv4Addr) -> Candidate {
        Candidate { candidate_type: kind.into(), ..candidate(Some(address), "udp") }
    }

    #[test]
    fn behind_nats_the_outside_addresses_and_the_relay_are_on_the_path_too() {
        let outside = Ipv4Addr::new(10, 45, 1, 1);
        let route = Route { ends: [vec![A, outside], vec![B]], relay: Some(RELAY), ..direct() };
        let check = |local, remote| check_path(Peer::A, &pair(local, remote), &route);
        let far = of("host", B);
        assert!(check(of("srflx", outside), far.clone()).is_ok());
        assert!(check(of("prflx", outside), of("relay", RELAY)).is_ok());
        assert!(check(of("relay", RELAY), far.clone()).is_ok());
        assert!(check(of("relay", outside), far.clone()).is_err());
        assert!(check(of("srflx", Ipv4Addr::new(10, 45, 1, 2)), far).is_err());
    }

    #[test]
    fn with_a_bridge_any_address_is_the_own_and_the_bridge_is_the_far_one() {
        let sockets = [7, 8].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let route = Route { bridge: Some(sockets), ..direct() };
        let far = |port| Candidate { port, ..candidate(Some(Ipv4Addr::new(192, 0, 2, 1)), "udp") };
        let check = |remote| check_path(Peer::B, &pair(candidate(None, "udp"), remote), &route);
        assert!(check(far(8)).is_ok());
        assert!(check(far(7)).is_err() && check(candidate(Some(A), "udp")).is_err());
    }

    fn call() -> CallState {
        let mut call = CallState::new(1, direct());
        call.begin(Duration::from_secs(3600));
        call
    }

    #[test]
    fn a_call_that_loses_a_peer_has_failed_with_the_first_cause() {
        let mut call = call();
        call.on_event(Instant::now(), Peer::A, EventKind::Failed("peer a: no camera".into()));
        call.on_event(Instant::now(), Peer::A, EventKind::Left);
        assert!(call.setup_has_ended() && call.is_over());
        assert_eq!(call.into_result(None).failure.as_deref(), Some("peer a: no camera"));
    }

    #[test]
    fn peers_may_leave_when_the_call_ends() {
        let mut call = call();
        call.end();
        call.on_event(Instant::now(), Peer::A, EventKind::Left);
        assert!(!call.is_over());
        call.on_event(Instant::now(), Peer::B, EventKind::Left);
        assert!(call.is_over() && call.failure.is_none());
        let silent = call.into_result(None).failure;
        assert_eq!(silent.as_deref(), Some("peer a never reported the path of its media"));
    }

    #[test]
    fn a_call_that_is_not_connected_in_time_names_who_is_missing() {
        let mut call = CallState::new(1, direct());
        call.begin(Duration::ZERO);
        call.on_event(Instant::now(), Peer::A, EventKind::Joined);
        call.check_deadline(Duration::ZERO);
        let cause = call.into_result(None).failure;
        assert_eq!(cause.as_deref(), Some("peer b has not joined after 0 s"));
    }

    #[test]
    fn media_on_another_path_fails_the_call() {
        let mut call = call();
        let pair = pair(candidate(Some(A), "udp"), candidate(Some(Ipv4Addr::LOCALHOST), "udp"));
        let report = StatsReport { pair: Some(Box::new(pair)), ..StatsReport::default() };
        call.on_event(Instant::now(), Peer::A, EventKind::Stats(Box::new(report)));
        assert!(call.into_result(None).failure.unwrap().contains("not the emulated path"));
    }

    fn report(ms: f64) -> StatsReport {
        let outbound = OutboundRtp { timestamp: ms, ..OutboundRtp::default() };
        StatsReport { outbound: Some(Box::new(outbound)), ..StatsReport::default() }
    }

    #[test]
    fn reports_keep_their_distance_and_the_soonest_one_sets_the_clock() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        // Made 500 ms apart. The second arrived without delay at 700 ms, the others were delayed.
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

    #[test]
    fn a_peer_that_floods_the_lab_with_reports_fails_its_call() {
        let mut call = CallState::new(1, direct());
        let now = Instant::now();
        for _ in 0..16 {
            call.on_event(now, Peer::A, EventKind::Stats(Box::new(report(1.0))));
        }
        assert_eq!(call.failure, None);
        call.on_event(now, Peer::A, EventKind::Stats(Box::new(report(1.0))));
        assert!(call.failure.unwrap().contains("more reports than it was asked for"));
    }
}
