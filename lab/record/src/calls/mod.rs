//! Metrics of the calls of a real run: whether they came about, how long their set-up took, and
//! what each participant sent, received and used.
//!
//! They come from `call.json` alone, cover the whole run and have no sections, but those of each
//! participant of an application. Every value is a mean over participants; a server, failed calls,
//! and participants without any other call are left out. A run with an [`Exclusion`] is left out of
//! means over the flows of several runs. A run with a failed call still counts in the metrics here,
//! because they leave out the failed call themselves.

mod calls_made;
mod captured;
mod compared;
pub mod delays;
pub mod derive;
mod entry;
pub mod file;
mod finding;
mod kind;
mod older;
mod page;
mod participants;
pub mod quality;
pub mod sound;
pub mod stats;
pub mod streams;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir::units::Timestamp;
use weir_metrics::declared::{Shape, first_key};
use weir_metrics::{CALLS_PREFIX, CallMetrics, CallSuccess, OneWayDelay, mean};
use weir_scenario::Recovery;

use delays::Delays;
use file::{CallFile, Interval, Participant, Peer, Setup};
use quality::Quality;
use streams::StreamError;

pub use calls_made::{CallsMade, Exclusion};
pub use compared::StreamDirection;
pub use entry::interval_entry;
pub use participants::ParticipantResult;
use participants::standing_s;

const BITS_PER_MEGABIT: f64 = 1e6;
const BYTES_PER_MEGABYTE: f64 = 1e6;
/// Name of a forwarding server or mixer among the participants.
const SERVER: &str = "server";

/// The runs that a mean is taken over: those without an exclusion. If there are none, disturbed
/// runs count; runs with a failed call never do.
pub fn counting<R>(runs: Vec<R>, exclusion: impl Fn(&R) -> Option<Exclusion>) -> Vec<R> {
    let (sound, excluded): (Vec<R>, Vec<R>) =
        runs.into_iter().partition(|run| exclusion(run).is_none());
    if !sound.is_empty() {
        return sound;
    }
    excluded.into_iter().filter(|run| exclusion(run) == Some(Exclusion::Disturbed)).collect()
}

/// Results of the calls of a real run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// How many calls were made, how many succeeded, and whether the machine disturbed the run.
    #[serde(flatten)]
    pub count: CallsMade,
    /// Number of participants, a server left out.
    #[serde(default)]
    pub participants: usize,
    /// How many of the calls succeeded.
    #[serde(flatten)]
    pub success: CallSuccess,
    /// Over all participants.
    #[serde(flatten)]
    pub all: CallMetrics,
    /// Over participants on A's side: their names begin with `a`.
    #[serde(default)]
    pub a: CallMetrics,
    /// Over participants on B's side: their names begin with `b`.
    #[serde(default)]
    pub b: CallMetrics,
    /// Difference between getStats and the captures, for each stream.
    #[serde(default)]
    pub streams: Vec<StreamError>,
    /// Each participant and stream of an application under test, over the whole time and each
    /// section.
    #[serde(rename = "each", default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ParticipantResult>,
}

impl Calls {
    /// Measures the calls of a run. `sections` are the names and times of the scenario's sections.
    /// `recoveries` are what its expectations ask of participants.
    pub fn of(
        file: &CallFile,
        sections: &[(String, Range<Timestamp>)],
        recoveries: &[&Recovery],
    ) -> Self {
        let count = file.calls_made();
        Self {
            count,
            participants: file.participants.iter().filter(|one| one.name != SERVER).count(),
            success: CallSuccess {
                success_ratio: (count.made > 0).then(|| count.succeeded as f64 / count.made as f64),
            },
            all: over_participants(file, |_| true),
            a: over_participants(file, |name| name.starts_with('a')),
            b: over_participants(file, |name| name.starts_with('b')),
            streams: streams::errors(file),
            results: ParticipantResult::all(file, sections, recoveries),
        }
    }

    /// The value at a dotted path such as `calls.a.setup_ms`; `None` if it was not measured, or if
    /// the path names nothing.
    pub fn at(&self, path: &str) -> Option<f64> {
        let path = path.strip_prefix(CALLS_PREFIX)?;
        match first_key(path) {
            ("a", rest) => self.a.at(rest),
            ("b", rest) => self.b.at(rest),
            _ => self.success.at(path).or_else(|| self.all.at(path)),
        }
    }

    /// Whether a dotted path is one of these metrics.
    pub fn names(path: &str) -> bool {
        path.starts_with(CALLS_PREFIX)
    }
}

/// Means over the participants whose names satisfy `is_wanted`.
fn over_participants(file: &CallFile, is_wanted: impl Fn(&str) -> bool) -> CallMetrics {
    let mut people = Vec::new();
    for program in &file.participants {
        if program.name == SERVER || !is_wanted(&program.name) {
            continue;
        }
        let mut ends = Vec::new();
        for peer in &file.peers {
            if peer.participant == program.name && file.lasted(peer.call) {
                ends.push(peer);
            }
        }
        if !ends.is_empty() {
            people.push(One { program, ends });
        }
    }
    let mut delays = Vec::new();
    for capture in file.captures().iter().filter(|capture| file.lasted(capture.call)) {
        for stream in capture.streams.iter().filter(|stream| stream.role == "video") {
            let receiver = file.receiver(capture.call, stream);
            if people.iter().any(|one| Some(one.program.name.as_str()) == receiver) {
                delays.extend(&stream.delay_ms);
            }
        }
    }
    let mut seen = Vec::new();
    for quality in file.quality().iter().filter(|quality| file.lasted(quality.call)) {
        if people.iter().any(|one| one.program.name == quality.to) {
            seen.push(quality);
        }
    }
    CallMetrics {
        signalling_ms: mean_over(&people, One::signalling_ms),
        ice_ms: mean_over(&people, One::ice_ms),
        dtls_ms: mean_over(&people, One::dtls_ms),
        setup_ms: mean_over(&people, One::setup_ms),
        first_frame_ms: mean_over(&people, One::first_frame_ms),
        one_way_delay_ms: mean_delays(&delays),
        screen_delay_ms: screen_delay(&seen),
        screen_stall_ratio: mean_quality(&seen, stalled),
        longest_stall_s: longest(seen.iter().map(|it| it.longest_stall_s)),
        vmaf: mean_quality(&seen, vmaf),
        psnr_db: mean_quality(&seen, psnr_db),
        good_ratio: mean_quality(&seen, good),
        rtt_ms: mean_over(&people, One::rtt_ms),
        frame_rate: mean_over(&people, One::frame_rate),
        frozen_s: mean_over(&people, One::frozen_s),
        longest_freeze_s: longest(people.iter().map(One::longest_freeze_s)),
        send_rate_mbps: mean_over(&people, One::send_rate_mbps),
        receive_rate_mbps: mean_over(&people, One::receive_rate_mbps),
        cpu_cores: mean_over(&people, One::cpu_cores),
        memory_mb: mean_over(&people, One::memory_mb),
    }
}

/// A participant with its ends of calls that did not fail.
struct One<'a> {
    program: &'a Participant,
    ends: Vec<&'a Peer>,
}

impl One<'_> {
    fn signalling_ms(&self) -> Option<f64> {
        self.mean_of_steps(|setup| Some(setup.described? - setup.start))
    }

    fn ice_ms(&self) -> Option<f64> {
        self.mean_of_steps(|setup| Some(setup.path_found()? - setup.described?))
    }

    fn dtls_ms(&self) -> Option<f64> {
        self.mean_of_steps(|setup| Some(setup.connected - setup.path_found()?))
    }

    fn setup_ms(&self) -> Option<f64> {
        self.mean_of_steps(|setup| Some(setup.connected - setup.start))
    }

    fn first_frame_ms(&self) -> Option<f64> {
        self.mean(|end| Some(end.first_frame_ms? - end.setup_ms?.start))
    }

    fn rtt_ms(&self) -> Option<f64> {
        self.mean(|end| over_time(end, Interval::rtt_ms))
    }

    fn frame_rate(&self) -> Option<f64> {
        self.mean(|end| over_time(end, Interval::frame_rate))
    }

    fn frozen_s(&self) -> Option<f64> {
        self.mean(frozen)
    }

    fn longest_freeze_s(&self) -> Option<f64> {
        let reports = self.ends.iter().flat_map(|end| &end.intervals);
        let standing = self.ends.iter().map(|end| standing_s(end, &(0.0..f64::INFINITY)));
        longest(reports.map(Interval::frozen_s).chain(standing))
    }

    fn send_rate_mbps(&self) -> Option<f64> {
        self.rate_mbps(Interval::send_bps)
    }

    fn receive_rate_mbps(&self) -> Option<f64> {
        self.rate_mbps(Interval::receive_bps)
    }

    fn cpu_cores(&self) -> Option<f64> {
        self.program.cpu_cores
    }

    fn memory_mb(&self) -> Option<f64> {
        Some(self.program.memory_bytes? as f64 / BYTES_PER_MEGABYTE)
    }

    /// Mean over its ends of a step of the set-up.
    fn mean_of_steps(&self, step: fn(&Setup) -> Option<f64>) -> Option<f64> {
        let setups = self.ends.iter().filter_map(|end| end.setup_ms.as_ref());
        mean(setups.filter_map(step).collect())
    }

    fn mean(&self, value: fn(&Peer) -> Option<f64>) -> Option<f64> {
        mean(self.ends.iter().copied().filter_map(value).collect())
    }

    /// Mean rate of all connections together.
    fn rate_mbps(&self, bps: fn(&Interval) -> Option<f64>) -> Option<f64> {
        let mut total = None;
        for end in &self.ends {
            if let Some(rate) = over_time(end, bps) {
                total = Some(total.unwrap_or(0.0) + rate);
            }
        }
        Some(total? / BITS_PER_MEGABIT)
    }
}

fn mean_over<'a>(people: &[One<'a>], value: fn(&One<'a>) -> Option<f64>) -> Option<f64> {
    mean(people.iter().filter_map(value).collect())
}

fn mean_delays(delays: &[&Delays]) -> Option<OneWayDelay> {
    let (mut means, mut medians, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    for delay in delays {
        means.push(delay.mean);
        medians.push(delay.p50);
        tails.push(delay.p95);
    }
    Some(OneWayDelay { mean: mean(means)?, p50: mean(medians)?, p95: mean(tails)? })
}

fn screen_delay(seen: &[&Quality]) -> Option<OneWayDelay> {
    let delays: Vec<&Delays> = seen.iter().filter_map(|it| it.shown_delay_ms.as_ref()).collect();
    mean_delays(&delays)
}

fn mean_quality(seen: &[&Quality], value: fn(&Quality) -> Option<f64>) -> Option<f64> {
    mean(seen.iter().copied().filter_map(value).collect())
}

fn stalled(quality: &Quality) -> Option<f64> {
    quality.stalled_ratio
}

fn vmaf(quality: &Quality) -> Option<f64> {
    Some(quality.picture.as_ref()?.vmaf?.mean)
}

fn psnr_db(quality: &Quality) -> Option<f64> {
    Some(quality.picture.as_ref()?.psnr_db?.mean)
}

fn good(quality: &Quality) -> Option<f64> {
    Some(quality.good_time()?.good)
}

/// `None` if no report tells of freezes.
fn frozen(end: &Peer) -> Option<f64> {
    let mut total = None;
    for time in end.intervals.iter().filter_map(Interval::frozen_s) {
        total = Some(total.unwrap_or(0.0) + time);
    }
    total
}

/// The largest of those values that were measured.
fn longest(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(f64::max)
}

fn over_time(end: &Peer, value: fn(&Interval) -> Option<f64>) -> Option<f64> {
    mean(end.intervals.iter().filter_map(value).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn peer(call: usize, participant: &str, start: f64) -> Value {
        json!({
            "call": call,
            "participant": participant,
            "setup_ms": {
                "joined": 100.0, "start": start, "described": start + 50.0, "ice": start + 40.0,
                "connected": start + 80.0,
            },
            "first_frame_ms": start + 200.0,
            "intervals": [
                { "time_s": 0.5, "send_bps": 1_000_000, "rtt_ms": 20.0 },
                { "time_s": 1.0, "send_bps": 2_000_000, "receive_bps": 3_000_000, "rtt_ms": null },
            ],
        })
    }

    fn stream(to: &str, mean: f64) -> Value {
        let delay = json!({ "mean": mean, "p50": mean, "p95": 2.0 * mean, "max": 9.0 * mean });
        json!({ "from": "x", "to": to, "role": "video", "delay_ms": delay })
    }

    fn file(value: Value) -> CallFile {
        serde_json::from_value(value).unwrap()
    }

    fn calls() -> Calls {
        Calls::of(
            &file(json!({
                "disturbed": true,
                "participants": [
                    { "name": "a", "cpu_cores": 0.5, "memory_bytes": 300_000_000 },
                    { "name": "b1", "cpu_cores": 0.3, "memory_bytes": 200_000_000 },
                    { "name": "b2", "cpu_cores": 0.1, "memory_bytes": 100_000_000 },
                    { "name": "b3", "cpu_cores": 9.0, "memory_bytes": 900_000_000 },
                ],
                "calls": [
                    { "call": 1, "failure": null },
                    { "call": 2, "failure": null },
                    { "call": 3, "failure": "the page ended" },
                ],
                "peers": [
                    peer(1, "a", 400.0), peer(1, "b1", 500.0),
                    peer(2, "a", 600.0), peer(2, "b2", 500.0),
                    peer(3, "a", 4_000.0), peer(3, "b3", 5_000.0),
                ],
                "captures": [
                    { "call": 1, "streams": [stream("b", 10.0), stream("a", 4.0)] },
                    { "call": 2, "streams": [stream("b", 30.0)] },
                    { "call": 3, "streams": [stream("a", 900.0)] },
                ],
            })),
            &[],
            &[],
        )
    }

    #[test]
    fn a_mean_is_of_sound_runs_else_disturbed_ones_never_without_a_call() {
        let of = |runs: &[(u8, Option<Exclusion>)]| -> Vec<u8> {
            counting(runs.to_vec(), |run| run.1).into_iter().map(|run| run.0).collect()
        };
        let (disturbed, failed) = ((1, Some(Exclusion::Disturbed)), (2, Some(Exclusion::Failed)));
        assert_eq!(of(&[disturbed, (3, None), failed, (4, None)]), [3, 4]);
        assert_eq!(of(&[disturbed, failed]), [1]);
        assert!(of(&[failed]).is_empty());
    }

    #[test]
    fn a_hand_made_run_has_the_metrics_worked_out_by_hand() {
        let calls = calls();
        assert_eq!(calls.count, CallsMade { made: 3, succeeded: 2, disturbed: true });
        assert_eq!(calls.participants, 4);
        assert_eq!(calls.success.success_ratio, Some(2.0 / 3.0));
        assert_eq!(calls.count.exclusion(), Some(Exclusion::Disturbed));
        assert_eq!(
            CallsMade { disturbed: false, ..calls.count }.exclusion(),
            Some(Exclusion::Failed)
        );
        assert_eq!(CallsMade { disturbed: false, succeeded: 3, ..calls.count }.exclusion(), None);
        let all = &calls.all;
        // The path was found before the description arrived, so this step took no time.
        assert_eq!(
            (all.signalling_ms, all.ice_ms, all.dtls_ms),
            (Some(50.0), Some(0.0), Some(30.0))
        );
        assert_eq!((all.setup_ms, all.first_frame_ms), (Some(80.0), Some(200.0)));
        assert_eq!(all.rtt_ms, Some(20.0));
        assert_eq!(calls.b.cpu_cores, Some(0.2));
        assert_eq!(calls.a.memory_mb, Some(300.0));
    }

    #[test]
    fn one_with_several_connections_sends_the_sum_of_them() {
        let calls = calls();
        assert_eq!((calls.a.send_rate_mbps, calls.b.send_rate_mbps), (Some(3.0), Some(1.5)));
        assert_eq!(
            (calls.a.receive_rate_mbps, calls.all.receive_rate_mbps),
            (Some(6.0), Some(4.0))
        );
    }

    #[test]
    fn a_call_that_failed_leaves_its_mark_on_the_success_ratio_alone() {
        let calls = calls();
        let delay = |it: &CallMetrics| it.one_way_delay_ms.map(|delay| (delay.mean, delay.p95));
        assert_eq!(delay(&calls.a), Some((4.0, 8.0)));
        assert_eq!(delay(&calls.b), Some((20.0, 40.0)));
        assert_eq!(calls.b.memory_mb, Some(150.0));
    }

    #[test]
    fn a_record_says_itself_why_its_values_do_not_count() {
        let exclusion = |disturbed: bool, failure: Value| {
            let calls = json!([{ "call": 1, "failure": null }, { "call": 2, "failure": failure }]);
            file(json!({ "disturbed": disturbed, "calls": calls })).calls_made().exclusion()
        };
        assert_eq!(exclusion(false, Value::Null), None);
        assert_eq!(exclusion(false, json!("no camera")), Some(Exclusion::Failed));
        assert_eq!(exclusion(true, json!("no camera")), Some(Exclusion::Disturbed));
    }

    #[test]
    fn files_of_real_runs_of_schema_1_lose_nothing_and_get_their_kind() {
        let files = [
            ("call", include_str!("../../tests/call_files/call.json")),
            ("link", include_str!("../../tests/call_files/link.json")),
        ];
        for (kind, text) in files {
            let text = text.replace("\"bent\"", "\"disturbed\"");
            let file: CallFile = serde_json::from_str(&text).unwrap();
            let mut wanted: Value = serde_json::from_str(&text).unwrap();
            wanted["kind"] = kind.into();
            let written = serde_json::to_value(&file).unwrap();
            assert!(written == wanted, "{written} {wanted}");
            assert!(serde_json::from_value::<CallFile>(written).unwrap() == file);
        }
    }

    #[test]
    fn a_file_without_a_kind_has_that_of_its_other_members() {
        let kind = |members: Value| {
            let mut members = members;
            members["bent"] = json!(true);
            let file = file(members);
            assert!(file.emulation.disturbed);
            serde_json::to_value(file.kind).unwrap()["kind"].clone()
        };
        assert_eq!(kind(json!({})), "call");
        assert_eq!(kind(json!({ "command": ["ping"], "peer": null })), "link");
        assert_eq!(kind(json!({ "verdict": "Nothing is wrong.", "findings": [] })), "dump");
        assert_eq!(kind(json!({ "attempts": 1, "connections": [] })), "application");
    }

    #[test]
    fn a_file_that_does_not_fit_is_an_error() {
        let interval = |rate: Value| {
            json!({ "disturbed": false, "peers": [
                { "call": 1, "participant": "a",
                  "intervals": [{ "time_s": 0.5, "send_bps": rate }] },
            ] })
        };
        assert!(serde_json::from_value::<CallFile>(interval(json!(1))).is_ok());
        for wrong in [
            json!({}),
            json!([]),
            json!({ "disturbed": "no" }),
            json!({ "disturbed": false, "calls": [{}] }),
            json!({ "disturbed": false, "calls": { "call": 1 } }),
            interval(json!("fast")),
        ] {
            assert!(serde_json::from_value::<CallFile>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_leads_to_what_was_measured() {
        assert_eq!(calls().at("calls.b.one_way_delay_ms.mean"), Some(20.0));
        assert_eq!(Calls::of(&CallFile::default(), &[], &[]).at("calls.success_ratio"), None);
    }
}
