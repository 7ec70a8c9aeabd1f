//! A controller's probe: a burst at its own rate, filled by what waits and by padding.

use weir::controller::{Probe, ProbeId};
use weir::{DataSize, TimeDelta, Timestamp};

/// A probe that nobody fills ends this long after the time that its size takes.
const PATIENCE: TimeDelta = TimeDelta::from_millis(200);

/// The probe that runs.
#[derive(Clone, Copy, Debug)]
struct Run {
    probe: Probe,
    bytes: DataSize,
    packets: u32,
    until: Timestamp,
}

/// Starts and ends probes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probes {
    last: Option<ProbeId>,
    run: Option<Run>,
}

impl Probes {
    /// Starts the controller's probe if it is a new one, and ends one that was not filled.
    pub(crate) fn update(&mut self, now: Timestamp, wanted: Option<Probe>) {
        if let Some(probe) = wanted.filter(|probe| self.last < Some(probe.id)) {
            let until = now + probe.size / probe.rate + PATIENCE;
            self.last = Some(probe.id);
            self.run = Some(Run { probe, bytes: probe.size, packets: probe.packets, until });
        }
        if self.run.is_some_and(|run| run.until < now) {
            self.run = None;
        }
    }

    /// A packet leaves: the probe that it belongs to.
    pub(crate) fn on_packet(&mut self, size: DataSize) -> Option<ProbeId> {
        let run = self.run.as_mut()?;
        run.bytes = run.bytes.saturating_sub(size);
        run.packets = run.packets.saturating_sub(1);
        let id = run.probe.id;
        if run.bytes == DataSize::ZERO && run.packets == 0 {
            self.run = None;
        }
        Some(id)
    }

    /// The probe that runs, and the bytes that it still wants.
    pub(crate) fn running(&self) -> Option<(Probe, DataSize)> {
        self.run.map(|run| (run.probe, run.bytes))
    }
}
