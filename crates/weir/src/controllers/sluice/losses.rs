//! Which losses are congestion, and which belong to the path.
//!
//! A path that loses packets at random loses as many while its queue is empty. A queue that drops,
//! at its end or by active management, drops while it stands. So losses are counted apart for
//! both, and the difference counts.

/// Number of packets over which the ratios are taken.
const WINDOW: f64 = 200.0;
/// Packets that must have been seen before a ratio counts.
const ENOUGH: f64 = 40.0;
/// Share of the inherent loss that may be chance, added to the threshold.
const CHANCE: f64 = 0.5;

/// Lost and all packets, with a memory that fades.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    lost: f64,
    all: f64,
}

impl Count {
    fn add(&mut self, lost: f64, all: f64) {
        let keep = WINDOW / (WINDOW + all);
        self.lost = self.lost * keep + lost;
        self.all = self.all * keep + all;
    }

    /// Zero while too few packets are known.
    fn ratio(self) -> f64 {
        if self.all < ENOUGH { 0.0 } else { (self.lost / self.all).clamp(0.0, 1.0) }
    }
}

/// Loss ratios with and without a standing queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    idle: Count,
    standing: Count,
    /// The same by the longest delay of the report: in its lower and in its upper half.
    low: Count,
    high: Count,
    all: Count,
}

impl Losses {
    /// Counts the packets of a report. `stands`: whether a queue stood.
    pub(super) fn on_report(&mut self, lost: u64, received: u64, stands: bool, at_top: bool) {
        let (lost, all) = (lost as f64, (lost + received) as f64);
        let part = if stands { &mut self.standing } else { &mut self.idle };
        part.add(lost, all);
        let part = if at_top { &mut self.high } else { &mut self.low };
        part.add(lost, all);
        self.all.add(lost, all);
    }

    /// Whether the losses say that a queue drops.
    pub(super) fn is_congestion(&self, excess: f64, most: f64) -> bool {
        let differ = |with: Count, without: Count| {
            without.all >= ENOUGH && with.ratio() > without.ratio() * (1.0 + CHANCE) + excess
        };
        let standing = self.standing.ratio() > self.idle.ratio() * (1.0 + CHANCE) + excess;
        standing || differ(self.high, self.low) || self.all.ratio() > most
    }

    /// The response to congestion has been made. Only later losses ask for another.
    pub(super) fn on_response(&mut self) {
        self.standing = Count::default();
        self.high = Count::default();
        self.all = Count { lost: self.idle.ratio() * self.all.all, ..self.all };
    }

    /// Loss ratio of all packets.
    pub(super) fn ratio(&self) -> f64 {
        if self.all.all > 0.0 { (self.all.lost / self.all.all).clamp(0.0, 1.0) } else { 0.0 }
    }
}
