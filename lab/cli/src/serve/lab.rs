//! What the page can ask for: the catalogue, one run at a time, and the records.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use weir::units::Timestamp;
use weir_call::CallConfig;
use weir_controllers::LabAlgorithm;
use weir_record::shell::CommandLine;
use weir_record::{Reader, Scenarios};
use weir_report::Report;
use weir_scenario::{Scenario, catalogue};

use super::current::{LinkCommand, Shared, lock, name_below};
use super::job::{Job, JobState, Kind};
use super::real::{self, Process};
use super::repeat::{EDITED, Repeat};
use super::scratch::Scratch;
use super::{metrics, simulation};

/// Largest scenario text that a page may send.
const TEXT_MAX: usize = 1_000_000;
/// Most records that one report of the page may have.
const COMPARED_MAX: usize = 2_000;

/// Bars of the picture of a network.
const BARS: i64 = 30;

/// The capacity from caller to callee over time, or nothing if no link limits it all the time.
fn capacity_kbps(scenario: &Scenario) -> Option<Vec<f64>> {
    let mut bars = Vec::new();
    for index in 0..BARS {
        let at = Timestamp::ZERO + scenario.duration * (2 * index + 1) / (2 * BARS);
        let rates = scenario.hops.iter().filter_map(|hop| hop.up.capacity.nominal_rate(at));
        bars.push(rates.min()?.as_kbps_f64());
    }
    Some(bars)
}

/// Which run a page starts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    kind: String,
    /// Id in the catalogue, unless `text` is given.
    #[serde(default)]
    scenario: String,
    /// An edited scenario.
    text: Option<String>,
    /// Controllers, separated by commas. Empty for the browsers' own congestion control.
    #[serde(default)]
    controllers: String,
    /// Name of a link's command.
    #[serde(default)]
    command: String,
    #[serde(default = "first_seed")]
    seed: u64,
}

fn first_seed() -> u64 {
    1
}

/// How the current run is stopped.
#[derive(Debug)]
enum Stopper {
    Simulation(Arc<AtomicBool>),
    Process(Process),
}

/// How to end the current run, and the threads that take part in it.
#[derive(Debug, Default)]
struct Running {
    stopper: Option<Stopper>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// The state of the server.
#[derive(Debug)]
pub struct Lab {
    out: PathBuf,
    scratch: Scratch,
    commands: Vec<LinkCommand>,
    about: OnceLock<Value>,
    current: Shared,
    running: Mutex<Running>,
}

impl Lab {
    /// A lab that writes records below `out`, an absolute path.
    pub fn new(out: PathBuf, commands: &[(String, String)]) -> anyhow::Result<Self> {
        let mut known = vec![
            LinkCommand {
                name: "ping".into(),
                peer: None,
                words: ["ping", "-i", "0.5", "10.45.0.2"].map(String::from).into(),
            },
            LinkCommand {
                name: "tcp".into(),
                peer: Some("iperf3 -s -1".into()),
                words: ["iperf3", "-C", "cubic", "-c", "10.45.0.2", "-t", "3600"]
                    .map(String::from)
                    .into(),
            },
        ];
        for (name, command) in commands {
            ensure!(known.iter().all(|it| it.name != *name), "there is already a command '{name}'");
            let words = ["sh", "-c", command].map(String::from).into();
            known.push(LinkCommand { name: name.clone(), peer: None, words });
        }
        let scratch = Scratch::new(&std::env::temp_dir());
        let (about, current, running) = Default::default();
        Ok(Self { out, scratch, commands: known, about, current, running })
    }

    /// Version, controllers, scenarios and commands.
    pub fn about(&self) -> &Value {
        self.about.get_or_init(|| {
            let scenarios = catalogue::ids().filter_map(|id| {
                let found = catalogued(id).ok()?;
                Some(json!({
                    "id": id,
                    "title": found.title,
                    "source": found.source,
                    "duration_s": found.duration.as_secs_f64(),
                    "callable": CallConfig::of(&found, 1).is_ok(),
                }))
            });
            let controllers: Vec<&str> = LabAlgorithm::all().map(LabAlgorithm::name).collect();
            let commands: Vec<&str> = self.commands.iter().map(|it| it.name.as_str()).collect();
            json!({
                "version": env!("CARGO_PKG_VERSION"),
                "controllers": controllers,
                "scenarios": scenarios.collect::<Vec<_>>(),
                "commands": commands,
                "out": self.out,
            })
        })
    }

    /// The text of a scenario of the catalogue.
    pub fn text(&self, id: &str) -> anyhow::Result<String> {
        Ok(catalogued(id)?.text)
    }

    /// Whether a text is a scenario; else its first error, with the line.
    pub fn check(&self, text: &str) -> Value {
        match edited(text) {
            Ok(scenario) => json!({
                "title": scenario.title,
                "duration_s": scenario.duration.as_secs_f64(),
                "network": scenario.network_in_words(),
                "capacity_kbps": capacity_kbps(&scenario),
            }),
            Err(Failed::Scenario(error)) => {
                json!({ "line": error.line(), "error": error.to_string() })
            }
            Err(Failed::Long) => json!({ "line": 1, "error": Failed::Long.to_string() }),
        }
    }

    /// Starts a run and returns its number. There is one at a time: more would disturb each other.
    pub fn start(&self, start: &Start) -> anyhow::Result<u64> {
        let scenario = match &start.text {
            Some(text) => edited(text)?,
            None => catalogued(&start.scenario)?,
        };
        let mut running = self.running();
        // The threads of the run wait for this lock, so they find the job.
        let mut current = lock(&self.current);
        ensure!(
            !current.as_ref().is_some_and(|job| job.state == JobState::Running),
            "a run goes on: stop it first"
        );
        let number = current.as_ref().map_or(0, |job| job.number) + 1;
        let out = free_folder(&self.out)?;
        let (kind, what) = (kind(&start.kind)?, self.what(start)?);
        let (mut words, inside) = self.words(start, kind, &scenario)?;
        let repeat = Repeat::new(start.text.as_deref(), &words, inside);
        match kind {
            Kind::Run => {
                let controllers = crate::select::named(&start.controllers, &[])?;
                let stop = Arc::new(AtomicBool::new(false));
                running.stopper = Some(Stopper::Simulation(stop.clone()));
                let task = simulation::Task {
                    shared: self.current.clone(),
                    number,
                    scenario: scenario.clone(),
                    controllers,
                    seed: start.seed,
                    out,
                    place: self.out.clone(),
                    stop,
                };
                running.threads = vec![std::thread::spawn(move || task.run())];
            }
            Kind::Call | Kind::Link => {
                let folder = self.scratch.folder()?;
                if start.text.is_some() {
                    std::fs::write(folder.join(EDITED), &scenario.text)?;
                }
                if kind == Kind::Call {
                    words.extend(["--attempts".into(), "1".into()]);
                }
                let task = real::Task { shared: self.current.clone(), number, out };
                let (process, threads) = task.start(words, inside, &folder, &self.out)?;
                running.stopper = Some(Stopper::Process(process));
                running.threads = threads;
            }
        }
        let job = Job::new(number, kind, &scenario.id, &what);
        *current = Some(Job { repeat: Some(repeat), ..job });
        Ok(number)
    }

    /// The words of the command line that makes this run, and a link's command.
    fn words(
        &self,
        start: &Start,
        kind: Kind,
        scenario: &Scenario,
    ) -> anyhow::Result<(Vec<String>, &[String])> {
        let mut words = vec![kind.name().to_owned(), scenario.id.clone()];
        words.extend(["--seed".into(), start.seed.to_string()]);
        if kind != Kind::Link {
            if !start.controllers.is_empty() {
                words.extend(["--controller".into(), start.controllers.clone()]);
            }
            return Ok((words, &[]));
        }
        let command = self.command(&start.command)?;
        if let Some(peer) = &command.peer {
            words.extend(["--peer".into(), peer.clone()]);
        }
        Ok((words, &command.words))
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The controllers or the command in words, if they are known.
    fn what(&self, start: &Start) -> anyhow::Result<String> {
        if start.kind == Kind::Link.name() {
            return Ok(self.command(&start.command)?.name.clone());
        }
        for name in start.controllers.split(',') {
            let is_browser = ["", "chromium", "chromium-scream-v2", "firefox"].contains(&name);
            let is_known = ["all", "peers"].contains(&name)
                || (is_browser && start.kind == Kind::Call.name())
                || LabAlgorithm::named().any(|it| it.name() == name);
            ensure!(is_known, "there is no controller '{name}'");
        }
        Ok(start.controllers.clone())
    }

    fn command(&self, name: &str) -> anyhow::Result<&LinkCommand> {
        let found = self.commands.iter().find(|command| command.name == name);
        found.with_context(|| format!("there is no command '{name}': name it with --command"))
    }

    /// Sends a line of `--interactive` to the running call or link.
    pub fn change(&self, line: &str) -> anyhow::Result<()> {
        match &mut self.running().stopper {
            Some(Stopper::Process(process)) => process.send(line),
            _ => bail!("no call or link runs"),
        }
    }

    /// Ends the run. The record of a call or link is kept, that of an unfinished simulation is not.
    pub fn stop(&self) -> anyhow::Result<()> {
        match &mut self.running().stopper {
            Some(Stopper::Simulation(stop)) => stop.store(true, Ordering::Relaxed),
            Some(Stopper::Process(process)) => process.end(),
            None => bail!("nothing runs"),
        }
        Ok(())
    }

    /// What a page is told that knows the job `number` up to these entries.
    pub fn news(&self, number: u64, statuses: usize, stats: usize) -> Value {
        match &*lock(&self.current) {
            Some(job) if job.number == number => job.news(statuses, stats),
            Some(job) => job.news(0, 0),
            None => json!({ "number": 0 }),
        }
    }

    /// The report's data, of what is simulated so far; `null` before.
    pub fn curves(&self) -> Arc<str> {
        let current = lock(&self.current);
        let curves = current.as_ref().and_then(|job| job.curves.clone());
        curves.unwrap_or_else(|| "null".into())
    }

    /// The shell's commands that repeat the current run with the changes made so far.
    pub fn repeated(&self) -> anyhow::Result<String> {
        let current = lock(&self.current);
        let repeat = current.as_ref().and_then(|job| job.repeat.as_ref());
        Ok(repeat.context("nothing ran yet")?.shell())
    }

    /// The running call or link in Prometheus's text format.
    pub fn metrics(&self) -> String {
        metrics::text(lock(&self.current).as_ref())
    }

    /// The records below the folder, the newest first.
    pub fn records(&self) -> anyhow::Result<Value> {
        let scenarios = Scenarios::default();
        let mut found = Vec::new();
        for folder in weir_record::find(&self.out)? {
            let changed = std::fs::metadata(&folder).and_then(|it| it.modified()).ok();
            // A record that cannot be read is not offered.
            let Ok(reader) = Reader::open(&folder, &scenarios) else { continue };
            let entry = json!({
                "name": name_below(&self.out, &folder),
                "scenario": reader.info.scenario,
                "controller": reader.info.subject.to_string(),
                "engine": reader.info.engine.as_str(),
                "seed": reader.info.seed.to_string(),
            });
            found.push((changed, entry));
        }
        found.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The page with the report of these records.
    pub fn report(&self, names: &[String]) -> anyhow::Result<String> {
        ensure!(names.len() <= COMPARED_MAX, "a report has at most {COMPARED_MAX} records");
        // Only records below the folder are read, even if a name contains a path.
        let mut folders = weir_record::find(&self.out)?;
        folders.retain(|folder| names.contains(&name_below(&self.out, folder)));
        ensure!(!folders.is_empty(), "there are no such records");
        let mut command = CommandLine::new("weir report");
        for folder in &folders {
            command = command.name(&folder.display().to_string());
        }
        let report = Report::of(&folders, &command.to_string(), &AtomicBool::new(false))?;
        Ok(report.context("the report was stopped")?.to_html()?)
    }

    /// Ends the run, waits for it, and removes the temporary folder: an answer that is still being
    /// made may outlive the program's end.
    pub fn close(&self) {
        let (stopper, threads) = {
            let mut running = self.running();
            (running.stopper.take(), std::mem::take(&mut running.threads))
        };
        match stopper {
            Some(Stopper::Simulation(stop)) => stop.store(true, Ordering::Relaxed),
            Some(Stopper::Process(mut process)) => process.quit(),
            None => {}
        }
        for thread in threads {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        self.scratch.remove();
    }
}

/// Why an edited scenario is refused.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Scenario(#[from] weir_scenario::ScenarioError),
    #[error("the text is longer than {TEXT_MAX} bytes")]
    Long,
}

/// An edited scenario. It cannot name trace files: the page must not read files.
fn edited(text: &str) -> Result<Scenario, Failed> {
    if text.len() > TEXT_MAX {
        return Err(Failed::Long);
    }
    Ok(weir_scenario::parse(EDITED, text, None)?)
}

/// A scenario by its id alone. A path would read a file of this machine.
fn catalogued(id: &str) -> anyhow::Result<Scenario> {
    ensure!(catalogue::ids().any(|known| known == id), "there is no scenario '{id}'");
    let found = catalogue::find(id)?;
    found.into_iter().next().context("the catalogue selects at least one scenario")
}

fn kind(name: &str) -> anyhow::Result<Kind> {
    let known = [Kind::Run, Kind::Call, Kind::Link].into_iter().find(|kind| kind.name() == name);
    known.with_context(|| format!("there is no kind of run '{name}'"))
}

/// The first folder `serve-N` that does not exist yet.
fn free_folder(out: &Path) -> anyhow::Result<PathBuf> {
    let folder = (1..).map(|number: u32| out.join(format!("serve-{number}")));
    folder.into_iter().find(|folder| !folder.exists()).context("there is always a free number")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn lab() -> (TempDir, Lab) {
        let out = tempfile::tempdir().unwrap();
        let lab = Lab::new(out.path().canonicalize().unwrap(), &[]).unwrap();
        (out, lab)
    }

    fn refused(lab: &Lab, start: Value) -> String {
        lab.start(&serde_json::from_value(start).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn paths_and_unknown_commands_are_refused() {
        let (_out, lab) = lab();
        for id in ["/etc/passwd", "../x.toml", "x.toml", "--help", "", "demo/*"] {
            assert!(lab.text(id).unwrap_err().to_string().contains("no scenario"), "{id}");
            let start = json!({ "kind": "call", "scenario": id });
            assert!(refused(&lab, start).contains("no scenario"), "{id}");
        }
        let scenario = "demo/first-call";
        let start = json!({ "kind": "link", "scenario": scenario, "command": "sh -c true" });
        assert!(refused(&lab, start).contains("no command"));
        let start = json!({ "kind": "call", "scenario": scenario, "controllers": "--app=x" });
        assert!(refused(&lab, start).contains("no controller"));
        let start = json!({ "kind": "bench", "scenario": scenario });
        assert!(refused(&lab, start).contains("no kind of run"));
        let again = [("ping".to_owned(), "true".to_owned())];
        let error = Lab::new(std::env::temp_dir(), &again).unwrap_err().to_string();
        assert!(error.contains("already a command 'ping'"), "{error}");
        for name in ["../../etc", "/etc", "", "."] {
            assert!(
                lab.report(&[name.into()]).unwrap_err().to_string().contains("no such"),
                "{name}"
            );
        }
    }

    #[test]
    fn an_edited_scenario_has_its_error_at_the_line_and_reads_no_file() {
        let (_out, lab) = lab();
        let text = lab.text("demo/first-call").unwrap();
        assert!(lab.check(&text)["error"].is_null());
        let line = text.lines().position(|line| line.starts_with("duration")).unwrap() + 1;
        let wrong = lab.check(&text.replacen("duration", "duratoin", 1));
        assert!(wrong["error"].as_str().unwrap().contains("duratoin"), "{wrong}");
        assert_eq!(wrong["line"], line);
        let traced = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"5s\"\n\
                      [network.up]\ncapacity = { trace = \"/etc/passwd\" }\n[[flow]]\n";
        assert!(lab.check(traced)["error"].is_string(), "{}", lab.check(traced));
    }

    #[test]
    fn the_picture_of_a_network_has_its_lowest_capacity_over_time_or_none() {
        let (_out, lab) = lab();
        let checked = lab.check(&lab.text("demo/first-call").unwrap());
        let drawn: Vec<f64> = serde_json::from_value(checked["capacity_kbps"].clone()).unwrap();
        assert_eq!((drawn.len(), drawn[0], drawn[15], drawn[29]), (30, 2000.0, 500.0, 2000.0));
        let free = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"5s\"\n\
                    [network.up]\ndelay = \"5ms\"\n[[flow]]\n";
        let checked = lab.check(free);
        assert!(checked["error"].is_null() && checked["capacity_kbps"].is_null(), "{checked}");
    }

    #[test]
    fn a_simulation_shows_its_curves_and_leaves_a_record_that_can_be_reported() {
        let (_out, lab) = lab();
        let start =
            json!({ "kind": "run", "scenario": "demo/first-call", "controllers": "gcc,nada" });
        let start = serde_json::from_value(start).unwrap();
        let number = lab.start(&start).unwrap();
        for thread in std::mem::take(&mut lab.running().threads) {
            thread.join().unwrap();
        }
        let news = lab.news(number, 0, 0);
        assert_eq!((&news["state"], &news["finished"]), (&json!("done"), &json!([2, 2])));
        let curves: Value = serde_json::from_str(&lab.curves()).unwrap();
        assert_eq!(curves["scenarios"][0]["groups"].as_array().unwrap().len(), 4);
        assert_eq!(lab.records().unwrap().as_array().unwrap().len(), 2);
        assert_eq!(news["records"].as_array().unwrap().len(), 2);
        assert_eq!(lab.start(&start).unwrap(), number + 1);
        lab.close();
    }
}
