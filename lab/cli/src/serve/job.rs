//! A run that pages watch, and what is known of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::repeat::Repeat;

/// Entries of a log that are kept: two hours of statuses.
const LOG_MAX: usize = 36_000;
/// Entries that one answer has at most.
const ANSWER_MAX: usize = 3_000;
/// Lines of output that are kept.
const SAID_MAX: usize = 200;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A simulation.
    Run,
    /// A call of real browsers or pipelines.
    Call,
    /// A command in the emulated network.
    Link,
}

impl Kind {
    /// Its subcommand.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Call => "call",
            Self::Link => "link",
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It runs, or is being set up.
    Running,
    /// Its records are written.
    Done,
    /// It ended without its records.
    Failed,
}

/// The newest entries of a growing list, numbered from its beginning.
#[derive(Debug, Default)]
pub struct Log {
    first: usize,
    entries: VecDeque<Value>,
}

impl Log {
    /// Adds an entry, and forgets the oldest one if there are too many.
    pub fn push(&mut self, entry: Value) {
        self.entries.push_back(entry);
        if self.entries.len() > LOG_MAX {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Value> {
        self.entries.back()
    }

    /// Entries from number `from` on, as many as one answer may have, and the number of the next
    /// one.
    fn since(&self, from: usize) -> (Vec<&Value>, usize) {
        let skipped = from.saturating_sub(self.first).min(self.entries.len());
        let entries: Vec<&Value> = self.entries.iter().skip(skipped).take(ANSWER_MAX).collect();
        let next = self.first + skipped + entries.len();
        (entries, next)
    }
}

/// A run.
#[derive(Debug)]
pub struct Job {
    /// Counts the jobs of this server, from 1.
    pub number: u64,
    pub kind: Kind,
    /// Id of the scenario.
    pub scenario: String,
    /// The controllers, or the name of the command.
    pub what: String,
    pub state: JobState,
    /// Why it failed, in one line.
    pub failure: Option<String>,
    /// Statuses of the network, as `--live` sends them.
    pub statuses: Log,
    /// Intervals of getStats, as `--live` sends them.
    pub stats: Log,
    /// The newest interval of each call and peer.
    pub newest_stats: BTreeMap<(u64, String), Value>,
    /// The last confirmed change of each property, such as `capacity` or `loss up`.
    pub changes: BTreeMap<String, String>,
    /// Output, changes and refusals.
    pub said: VecDeque<String>,
    /// The report's data, of what is simulated so far.
    pub curves: Option<Arc<str>>,
    /// Counts the versions of the curves.
    pub curves_version: u64,
    /// Simulated runs that are finished, and how many there will be.
    pub finished: [usize; 2],
    /// Names of the records, which `/report` takes.
    pub records: Vec<String>,
    /// The commands that repeat it.
    pub repeat: Option<Repeat>,
}

impl Job {
    /// A job that begins.
    pub fn new(number: u64, kind: Kind, scenario: &str, what: &str) -> Self {
        Self {
            number,
            kind,
            scenario: scenario.into(),
            what: what.into(),
            state: JobState::Running,
            failure: None,
            statuses: Log::default(),
            stats: Log::default(),
            newest_stats: BTreeMap::new(),
            changes: BTreeMap::new(),
            said: VecDeque::new(),
            curves: None,
            curves_version: 0,
            finished: [0, 0],
            records: Vec::new(),
            repeat: None,
        }
    }

    /// Keeps a line of output.
    pub fn say(&mut self, line: &str) {
        self.said.push_back(line.into());
        if self.said.len() > SAID_MAX {
            self.said.pop_front();
        }
    }

    /// Ends the job.
    pub fn end(&mut self, failure: Option<String>) {
        self.state = if failure.is_some() { JobState::Failed } else { JobState::Done };
        self.failure = failure;
    }

    /// Takes a JSON line of `--live`. Lines that are not understood are ignored.
    pub fn take(&mut self, line: &str) {
        let Ok(Value::Object(message)) = serde_json::from_str::<Value>(line) else { return };
        for (kind, value) in message {
            match kind.as_str() {
                "status" => self.statuses.push(value),
                "stats" => {
                    let peer = value["peer"].as_str().unwrap_or_default().to_owned();
                    let call = value["call"].as_u64().unwrap_or(0);
                    let mut newest = value.clone();
                    let entry = self.newest_stats.entry((call, peer)).or_default();
                    // Not every interval has a receiver report: the last round-trip time stays.
                    if newest["rtt_ms"].is_null()
                        && let (Some(fields), Some(last)) =
                            (newest.as_object_mut(), entry.get("rtt_ms"))
                    {
                        fields.insert("rtt_ms".into(), last.clone());
                    }
                    *entry = newest;
                    self.stats.push(value);
                }
                "changed" => {
                    let line = value["line"].as_str().unwrap_or_default();
                    if let Some((property, set)) = line.rsplit_once(' ') {
                        self.changes.insert(property.into(), set.into());
                    }
                    if let Some(repeat) = &mut self.repeat {
                        repeat.change(line);
                    }
                    self.say(value["text"].as_str().unwrap_or_default());
                }
                "refused" => self.say(value.as_str().unwrap_or_default()),
                _ => {}
            }
        }
    }

    /// What a page is told that has the entries before these numbers.
    pub fn news(&self, statuses: usize, stats: usize) -> Value {
        let (new_statuses, next_status) = self.statuses.since(statuses);
        let (new_stats, next_stats) = self.stats.since(stats);
        json!({
            "number": self.number,
            "kind": self.kind.name(),
            "scenario": self.scenario,
            "what": self.what,
            "state": match self.state {
                JobState::Running => "running",
                JobState::Done => "done",
                JobState::Failed => "failed",
            },
            "failure": self.failure,
            "statuses": new_statuses,
            "next_status": next_status,
            "stats": new_stats,
            "next_stats": next_stats,
            "changes": self.changes,
            "said": self.said,
            "curves_version": self.curves_version,
            "finished": self.finished,
            "records": self.records,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job::new(1, Kind::Call, "demo/first-call", "")
    }

    #[test]
    fn a_page_gets_only_the_entries_that_it_lacks() {
        let mut job = job();
        for time in 0..5 {
            job.take(&json!({ "status": { "time_s": time } }).to_string());
        }
        let news = job.news(3, 0);
        let times: Vec<_> =
            news["statuses"].as_array().unwrap().iter().map(|it| &it["time_s"]).collect();
        assert_eq!(times, [3, 4]);
        assert_eq!(news["next_status"], 5);
        assert_eq!(job.news(99, 0)["statuses"], json!([]));
    }

    #[test]
    fn the_oldest_entries_are_forgotten_and_numbers_stay() {
        let mut log = Log::default();
        for number in 0..LOG_MAX + 10 {
            log.push(number.into());
        }
        assert_eq!(log.since(0).0[0], &json!(10));
        assert_eq!(log.since(LOG_MAX + 9), (vec![&json!(LOG_MAX + 9)], LOG_MAX + 10));
    }

    #[test]
    fn a_change_moves_its_slider_and_a_refusal_is_said() {
        let mut job = job();
        job.take(r#"{"changed":{"line":"loss up 5%","text":"loss 5 % up"}}"#);
        job.take(r#"{"refused":"no"}"#);
        job.take("not JSON");
        assert_eq!(job.news(0, 0)["changes"], json!({ "loss up": "5%" }));
        assert_eq!(job.news(0, 0)["said"], json!(["loss 5 % up", "no"]));
    }
}
