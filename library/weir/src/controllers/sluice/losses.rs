//! Which losses are congestion, and which belong to the path.
//!
//! A path that loses packets at random loses as many while its queue is empty. A queue that drops,
//! at its end or by active management, drops while it stands. So losses are counted with and
//! without a standing queue, and the difference counts. A queue too short to stand drops while the
//! delay is at its longest, so losses are counted apart by that as well (S-6).
//!
//! A path that reorders makes packets look lost until they arrive. What comes late after all is
//! taken off the ratios.

use super::Parameters;
use crate::feedback::LossCounts;
use crate::units::TimeDelta;

/// Number of packets over which the ratios are taken.
const WINDOW: f64 = 200.0;
/// Packets that must have been seen before a ratio counts.
const ENOUGH: f64 = 40.0;
/// Number of packets, and time, in which the smallest ratio of late is forgotten: the longer of
/// both. A fast flow sends as many packets while it grows through the capacity.
const LEAST_WINDOW: f64 = 2_000.0;
const LEAST_TIME: TimeDelta = TimeDelta::from_secs(10);

/// Lost and all packets, with a memory that fades.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    lost: f64,
    all: f64,
}

impl Count {
    /// Adds a report of which `keep` of the older packets remains.
    fn add(&mut self, lost: f64, all: f64, keep: f64) {
        self.lost = self.lost * keep + lost;
        self.all = self.all * keep + all;
    }

    /// Zero while too few packets are known.
    fn ratio(self) -> f64 {
        if self.all < ENOUGH { 0.0 } else { (self.lost / self.all).clamp(0.0, 1.0) }
    }

    /// The ratio over `ENOUGH` packets if none of those still to come gets lost.
    fn at_least(self) -> f64 {
        (self.lost / self.all.max(ENOUGH)).clamp(0.0, 1.0)
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
    /// Since the last response.
    since: Count,
    /// The smallest ratio of late without a standing queue, once enough packets were seen.
    least: Option<f64>,
    /// Packets called lost, and those of them that arrived after all.
    called: f64,
    recovered: f64,
}

impl Losses {
    /// Counts the packets of a report, this long after the last one. A queue stood, or not; the
    /// longest delay of the report was in the upper half of those of late, or not.
    pub(super) fn on_report(
        &mut self,
        passed: TimeDelta,
        counts: LossCounts,
        stands: bool,
        at_top: bool,
    ) {
        let (lost, all) = (counts.lost as f64, (counts.lost + counts.received) as f64);
        let keep = WINDOW / (WINDOW + all);
        self.called = self.called * keep + lost;
        self.recovered = self.recovered * keep + counts.recovered as f64;
        let part = if stands { &mut self.standing } else { &mut self.idle };
        part.add(lost, all, keep);
        let part = if at_top { &mut self.high } else { &mut self.low };
        part.add(lost, all, keep);
        self.all.add(lost, all, keep);
        self.since.add(lost, all, keep);
        if !stands {
            self.keep_least(passed, all);
        }
    }

    /// Keeps the smallest ratio without a standing queue after a report of this many packets.
    fn keep_least(&mut self, passed: TimeDelta, packets: f64) {
        if self.idle.all < ENOUGH {
            return;
        }
        let ratio = self.idle.ratio();
        let least = self.least.unwrap_or(ratio);
        let share = (packets / LEAST_WINDOW).min(passed / LEAST_TIME).clamp(0.0, 1.0);
        let risen = least + (ratio - least) * share;
        self.least = Some(ratio.min(risen));
    }

    /// Whether the losses say that a queue drops: the ratio with a long delay is above that with a
    /// short one by `LOSS_CHANCE` of it and `LOSS_EXCESS`, or the ratio of all, as well as that
    /// since the last response, is above `LOSS_MAX` and `LOSS_BASE` times what the path surely
    /// loses. `LOSS_MAX` bounds that, too: a policer may drop from the first packet on.
    pub(super) fn is_congestion(&self, p: &Parameters) -> bool {
        let real = self.real();
        let exceeds = |with: Count, without: Count| {
            with.ratio() * real > without.ratio() * real * (1.0 + p.chance) + p.loss_excess
        };
        exceeds(self.standing, self.idle)
            || (self.low.all >= ENOUGH && exceeds(self.high, self.low))
            || self.all.ratio().min(self.since.at_least()) * real > self.most_of_path(p)
    }

    /// Whether a standing queue has dropped so much since the last response that the packets which
    /// are missing to a ratio cannot change it (S-16).
    pub(super) fn is_heavy(&self, p: &Parameters) -> bool {
        self.standing.at_least() * self.real() > self.most_of_path(p)
    }

    /// The largest loss ratio that a path may have by itself.
    fn most_of_path(&self, p: &Parameters) -> f64 {
        let base = (self.least.unwrap_or(0.0) * self.real()).min(p.loss_max);
        p.loss_max.max(p.loss_base * base)
    }

    /// The part of the packets called lost that did not arrive after all.
    pub(super) fn real(&self) -> f64 {
        if self.recovered > 0.0 { (1.0 - self.recovered / self.called).max(0.0) } else { 1.0 }
    }

    /// The response to congestion has been made. Only later losses ask for another.
    pub(super) fn on_response(&mut self) {
        self.standing = Count::default();
        self.high = Count::default();
        self.since = Count::default();
        self.all = Count { lost: self.idle.ratio() * self.all.all, ..self.all };
    }

    /// Whether more is lost without a standing queue than by chance and by the path (S-36).
    pub(super) fn exceeds_base(&self, p: &Parameters) -> bool {
        let base = self.least.unwrap_or(0.0);
        (self.idle.ratio() - base * p.loss_base) * self.real() > p.loss_excess
    }

    /// A policer has dropped these packets. What counts from now on is what it drops of less.
    pub(super) fn on_policed(&mut self) {
        *self = Self { least: Some(0.0), ..Self::default() };
    }

    /// Loss ratio of all packets.
    pub(super) fn ratio(&self) -> f64 {
        let Count { lost, all } = self.all;
        if all > 0.0 { (lost / all).clamp(0.0, 1.0) * self.real() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::DEFAULT;
    const INTERVAL: TimeDelta = TimeDelta::from_millis(50);

    /// Counts a hundred reports of ten packets, half of them at a standing queue, with this many
    /// losses per hundred packets without and with it.
    fn losses(idle: u64, standing: u64) -> Losses {
        let mut losses = Losses::default();
        for report in 0..100 {
            let stands = report % 2 == 0;
            let share = if stands { standing } else { idle };
            // Spread evenly: the n-th packet of a hundred is lost if a whole loss is due.
            let due = |reports: u64| reports * 10 * share / 100;
            let lost = due(report / 2 + 1) - due(report / 2);
            losses.on_report(
                INTERVAL,
                LossCounts { lost, received: 10 - lost, recovered: 0 },
                stands,
                stands,
            );
        }
        losses
    }

    // S-6
    #[test]
    fn losses_that_do_not_depend_on_the_queue_are_no_congestion() {
        assert!(!losses(0, 0).is_congestion(&P));
        assert!(!losses(5, 5).is_congestion(&P));
        assert!(!losses(10, 10).is_congestion(&P));
        assert!(!losses(25, 25).is_congestion(&P));
        assert!(losses(45, 45).is_congestion(&P), "above twice a fifth");
    }

    // S-6: a policer loses only while too much is sent.
    #[test]
    fn a_fifth_is_congestion_where_less_was_lost_before() {
        let mut losses = losses(1, 1);
        let mut is_congestion = false;
        for _ in 0..60 {
            let counts = LossCounts { lost: 3, received: 7, recovered: 0 };
            losses.on_report(INTERVAL, counts, false, false);
            is_congestion |= losses.is_congestion(&P);
        }
        assert!(is_congestion);
    }

    // S-6: a flow that grows to 300 Mbit/s through 200 loses a third, 0.4 s after it lost nothing.
    #[test]
    fn what_a_fast_flow_loses_all_at_once_is_not_usual_of_its_path() {
        let mut losses = Losses::default();
        let counts = |lost| LossCounts { lost, received: 1_500 - lost, recovered: 0 };
        losses.on_report(INTERVAL, counts(0), false, false);
        for _ in 0..10 {
            losses.on_report(INTERVAL, counts(500), false, false);
            assert!(losses.exceeds_base(&P) && losses.is_congestion(&P));
        }
    }

    // S-6
    #[test]
    fn losses_at_a_standing_queue_are_congestion() {
        assert!(losses(0, 3).is_congestion(&P));
        assert!(losses(5, 12).is_congestion(&P));
        assert!(!losses(0, 1).is_congestion(&P));
    }

    // S-6
    #[test]
    fn losses_at_the_longest_delays_are_congestion_even_if_no_queue_stands() {
        let mut losses = Losses::default();
        for report in 0..100 {
            let at_top = report % 4 == 0;
            let counts = LossCounts { lost: u64::from(at_top), received: 10, recovered: 0 };
            losses.on_report(INTERVAL, counts, false, at_top);
        }
        assert!(losses.is_congestion(&P));
    }

    // S-6
    #[test]
    fn packets_that_come_late_are_not_lost() {
        let of = |recovered| {
            let mut losses = Losses::default();
            for report in 0..100 {
                let stands = report % 2 == 0;
                let lost = if stands { 5 } else { 2 };
                let back = if stands { recovered } else { 0 };
                let counts = LossCounts { lost, received: 10 - lost, recovered: back };
                losses.on_report(INTERVAL, counts, stands, stands);
            }
            losses
        };
        assert!(of(0).is_congestion(&P));
        assert!(of(5).is_congestion(&P), "2 of 7 are lost");
        assert!(!of(7).is_congestion(&P));
        assert!(of(7).ratio() < 0.02, "{}", of(7).ratio());
    }

    // S-7
    #[test]
    fn a_response_is_made_once() {
        let mut losses = losses(0, 5);
        losses.on_response();
        assert!(!losses.is_congestion(&P));
    }

    // S-7: after an outage little is sent, so what was lost in it stays in the ratio for long.
    #[test]
    fn what_an_outage_took_is_answered_once() {
        let mut losses = losses(0, 0);
        losses.on_report(
            INTERVAL,
            LossCounts { lost: 130, received: 10, recovered: 0 },
            false,
            false,
        );
        assert!(losses.is_congestion(&P));
        losses.on_response();
        for _ in 0..20 {
            losses.on_report(
                INTERVAL,
                LossCounts { lost: 0, received: 4, recovered: 0 },
                false,
                false,
            );
            assert!(!losses.is_congestion(&P));
        }
        assert!(losses.ratio() > 0.2, "{}", losses.ratio());
        losses.on_report(
            INTERVAL,
            LossCounts { lost: 30, received: 10, recovered: 0 },
            false,
            false,
        );
        assert!(losses.is_congestion(&P), "these are new");
    }
}
