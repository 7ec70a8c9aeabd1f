//! Hand-overs: a participant's first interface goes away, and a second one comes.

use weir::units::Timestamp;
use weir_emu::{Error, Host};

use crate::plan::PlannedHandover;

/// What is still to be done, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    steps: Vec<Step>,
    /// What failed, one line each.
    pub(crate) failures: Vec<String>,
}

#[derive(Debug)]
struct Step {
    at: Timestamp,
    host: Host,
    change: fn(&Host) -> Result<(), Error>,
}

impl Handovers {
    pub(crate) fn new(planned: &[PlannedHandover], hosts: &[Host]) -> Self {
        let mut steps = Vec::new();
        for one in planned {
            let (first, second) = (hosts[one.first].clone(), hosts[one.second].clone());
            steps.push(Step { at: one.at, host: first, change: Host::take_down });
            steps.push(Step { at: one.at + one.gap, host: second, change: Host::bring_up });
        }
        // The last one is taken first.
        steps.sort_by_key(|step| std::cmp::Reverse(step.at));
        Self { steps, failures: Vec::new() }
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        while let Some(step) = self.steps.pop_if(|step| step.at <= now) {
            if let Err(error) = (step.change)(&step.host) {
                self.failures.push(format!("a hand-over failed: {error}"));
            }
        }
    }
}
