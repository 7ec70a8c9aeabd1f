//! How busy the machine was: a busy machine bends what real programs do, not only the emulator.

use std::fs;

/// Processor time of the whole machine since it started, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    busy: u64,
    /// Of processes that yield to the run; not part of the busy time.
    nice: u64,
    /// Of the busy time, what the host gave to other machines while this one wanted it.
    stolen: u64,
    total: u64,
}

/// Shares of the processor time of all cores over some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShares {
    /// That was neither idle nor of processes with a lowered priority.
    pub busy: f64,
    /// Of processes with a lowered priority (nice above 0): they yield, so a machine that is full of
    /// them is not short of time for the run. Chromium lowers some of its own threads.
    pub nice: f64,
    /// Of which the host of this virtual machine took; 0 on a machine of its own.
    pub stolen: f64,
}

impl CpuTime {
    /// Now; `None` where /proc/stat cannot be read.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// First line: `cpu` and the ticks in user, nice, system, idle, iowait, irq, softirq and steal;
    /// guest time, after these, is part of user time.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.lines().next()?.split_whitespace();
        fields.next().filter(|name| *name == "cpu")?;
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        let total = ticks.iter().sum();
        let (nice, stolen) = (*ticks.get(1)?, ticks.get(7).copied().unwrap_or(0));
        Some(Self { busy: total - idle - nice, nice, stolen, total })
    }

    /// What became of the time since `start`.
    pub(crate) fn shares_since(self, start: Self) -> CpuShares {
        let total = self.total.saturating_sub(start.total).max(1) as f64;
        let share = |end: u64, start: u64| end.saturating_sub(start) as f64 / total;
        CpuShares {
            busy: share(self.busy, start.busy),
            nice: share(self.nice, start.nice),
            stolen: share(self.stolen, start.stolen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_disk_is_idle_and_stolen_time_is_busy_and_nice_time_is_neither() {
        let start = CpuTime::parse("cpu  100 0 0 100 0 0 0 0 50 0\ncpu0 1 1 1").unwrap();
        let end = CpuTime::parse("cpu  110 25 5 135 20 0 0 5 99 0\n").unwrap();
        let shares = CpuShares { busy: 0.2, nice: 0.25, stolen: 0.05 };
        assert_eq!(end.shares_since(start), shares);
        assert_eq!(end.shares_since(end), CpuShares { busy: 0.0, nice: 0.0, stolen: 0.0 });
    }

    #[test]
    fn what_is_not_a_stat_file_gives_nothing() {
        assert_eq!(CpuTime::parse(""), None);
        assert_eq!(CpuTime::parse("cpu 1 2 3"), None);
        assert_eq!(CpuTime::parse("intr 1 2 3 4 5"), None);
    }
}
