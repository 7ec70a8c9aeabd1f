//! Processor time and memory of a browser, including all its child processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Linux reports processor time in hundredths of a second, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// A browser's resource usage during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time divided by wall time: 1 is one fully used core.
    pub cpu_cores: f64,
    /// Maximum memory observed. Memory shared by several processes counts once.
    pub memory_bytes: u64,
}

/// Measures the process tree of one program.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    root: u32,
    start: Option<(Instant, u64)>,
    memory_bytes: u64,
}

impl UsageMeter {
    pub(crate) fn of(root: u32) -> Self {
        Self { root, start: None, memory_bytes: 0 }
    }

    /// Starts counting processor time.
    pub(crate) fn start(&mut self) {
        self.start = Some((Instant::now(), ticks(self.root, &processes())));
    }

    /// Samples the current memory.
    pub(crate) fn sample_memory(&mut self) {
        let tree = tree_of(self.root, &processes());
        let memory = tree.iter().map(|pid| proportional_bytes(*pid)).sum();
        self.memory_bytes = self.memory_bytes.max(memory);
    }

    /// Usage since the start; `None` before a start.
    pub(crate) fn end(&mut self) -> Option<Usage> {
        let (at, before) = self.start?;
        self.sample_memory();
        let used = ticks(self.root, &processes()).saturating_sub(before);
        let cpu_cores = used as f64 / TICKS_PER_SECOND / at.elapsed().as_secs_f64();
        Some(Usage { cpu_cores, memory_bytes: self.memory_bytes })
    }
}

/// Fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// Processor time of the process and of its children that have ended.
    ticks: u64,
}

fn processes() -> BTreeMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    });
    processes.collect()
}

/// Parses `PID (name) state parent ...`. The name may contain blanks and parentheses. Fields 14 to
/// 17 are the processor time in user and kernel mode, of the process and of its children that have
/// ended.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(Process { parent: number(1)?.try_into().ok()?, ticks })
}

/// A process and all its descendants.
fn tree_of(root: u32, processes: &BTreeMap<u32, Process>) -> Vec<u32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        let children = processes.iter().filter(|(_, process)| process.parent == parent);
        tree.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    tree
}

fn ticks(root: u32, processes: &BTreeMap<u32, Process>) -> u64 {
    let tree = tree_of(root, processes);
    tree.iter().filter_map(|pid| processes.get(pid)).map(|process| process.ticks).sum()
}

/// Memory of a process, with its share of memory that it shares with others.
fn proportional_bytes(pid: u32) -> u64 {
    let path = Path::new("/proc").join(pid.to_string()).join("smaps_rollup");
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (web (content) x) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 9";

    #[test]
    fn a_process_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(parse(STAT), Some(Process { parent: 7, ticks: 127 }));
        assert_eq!(parse("42 (x) S 7 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_tree_has_all_descendants_and_no_other_process() {
        let process = |parent, ticks| Process { parent, ticks };
        let processes = BTreeMap::from([
            (5, process(9, 1)),
            (7, process(1, 10)),
            (8, process(1, 100)),
            (9, process(7, 1000)),
        ]);
        assert_eq!(tree_of(7, &processes), [7, 9, 5]);
        assert_eq!(ticks(7, &processes), 1011);
        assert_eq!(ticks(3, &processes), 0);
    }

    #[test]
    fn the_memory_of_the_own_process_is_measured() {
        assert!(proportional_bytes(std::process::id()) > 0);
        assert_eq!(proportional_bytes(0), 0);
    }
}
