//! Processor load of the machine. A high load disturbs real programs, not only the emulator.

use std::fs;

/// Processor time of the whole machine since it started, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    busy: u64,
    /// Time of processes with a lowered priority. Not part of the busy time.
    nice: u64,
    /// The part of the busy time that the host gave to other virtual machines while this one needed
    /// it.
    stolen: u64,
    total: u64,
}

/// Shares of the processor time of all cores over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShares {
    /// Share that was neither idle nor used by processes with a lowered priority.
    pub busy: f64,
    /// Share of processes with a lowered priority (nice above 0). They yield to the run, so they do
    /// not slow it down. Chromium lowers the priority of some of its own threads.
    pub nice: f64,
    /// Share that the host of this virtual machine took; 0 on a physical machine.
    pub stolen: f64,
}

impl CpuTime {
    /// Current values; `None` if /proc/stat cannot be read.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line: `cpu` and the ticks in user, nice, system, idle, iowait, irq, softirq
    /// and steal. The guest time that follows is part of the user time.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.lines().next()?.split_whitespace();
        fields.next().filter(|name| *name == "cpu")?;
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        let total = ticks.iter().sum();
        let (nice, stolen) = (*ticks.get(1)?, ticks.get(7).copied().unwrap_or(0));
        Some(Self { busy: total - idle - nice, nice, stolen, total })
    }

    /// Shares of the time since `start`.
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
    fn waiting_for_a_disk_is_idle_stolen_time_busy_and_nice_time_neither() {
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
