//! A simulation whose curves are shown while it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_controllers::LabController;
use weir_net::Seed;
use weir_record::Record;
use weir_record::memory::Files;
use weir_record::run::RunInfo;
use weir_report::Report;
use weir_scenario::Scenario;
use weir_sim::Trace;

use super::current::{self, Shared};
use super::job::Job;

/// Least time between two versions of the curves.
const CURVES_INTERVAL: Duration = Duration::from_millis(300);
/// The curves take at most one of this many parts of the time.
const CURVES_SHARE: u32 = 4;

/// What to simulate, and where the results go.
pub struct Task {
    pub shared: Shared,
    pub number: u64,
    pub scenario: Scenario,
    pub controllers: Vec<LabController>,
    pub seed: u64,
    /// Folder of the job's records.
    pub out: PathBuf,
    /// Folder of all records.
    pub place: PathBuf,
    pub stop: Arc<AtomicBool>,
}

impl Task {
    /// Simulates each controller, one after the other.
    pub fn run(self) {
        let failure = self.simulate().err().map(|error| format!("{error:#}"));
        let names = current::names_in(&self.place, &self.out);
        self.update(|job| {
            job.records = names;
            job.end(failure);
        });
    }

    fn simulate(&self) -> anyhow::Result<()> {
        let controllers = self.scenario.controllers_to_run(&self.controllers);
        let count = controllers.len();
        let mut finished: Vec<Files> = Vec::new();
        self.update(|job| job.finished = [0, count]);
        for controller in controllers {
            let trace = self.trace(controller, &finished)?;
            let record = self.record(controller, trace);
            record.write(&self.out)?;
            finished.push(Files::of(&record)?);
            self.show(&finished)?;
            self.update(|job| job.finished = [finished.len(), count]);
        }
        Ok(())
    }

    /// Simulates one controller, and shows what there is from time to time.
    fn trace(&self, controller: &LabController, finished: &[Files]) -> anyhow::Result<Trace> {
        let config = self.scenario.sim_config(controller);
        let mut whole = Trace::default();
        let (mut shown, mut pause) = (Instant::now(), CURVES_INTERVAL);
        let take = |part: &mut Trace| {
            whole.append(part);
            if shown.elapsed() >= pause {
                let begin = Instant::now();
                let files = Files::of(&self.record(controller, whole.clone()))?;
                self.show(&[finished, &[files]].concat())?;
                pause = CURVES_INTERVAL.max(begin.elapsed() * CURVES_SHARE);
                shown = Instant::now();
            }
            Ok::<(), anyhow::Error>(())
        };
        let seed = Seed::new(self.seed);
        let is_whole = weir_sim::run_in_parts(&config, seed, &self.stop, take)?;
        anyhow::ensure!(is_whole, "stopped");
        Ok(whole)
    }

    fn record(&self, controller: &LabController, trace: Trace) -> Record {
        let info = RunInfo::simulated(&self.scenario, controller, self.seed);
        Record { info, scenario: self.scenario.clone(), trace, call: None }
    }

    fn show(&self, files: &[Files]) -> anyhow::Result<()> {
        let report = Report::of_files(files, "weir serve", &self.stop)?;
        anyhow::ensure!(!self.stop.load(Ordering::Relaxed), "stopped");
        self.update(|job| {
            job.curves = report.map(|report| report.json().into());
            job.curves_version += 1;
        });
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut Job)) {
        current::update(&self.shared, self.number, change);
    }
}
