//! Why an expectation of a run is missed, in words: the part that decides, and what was measured.
//!
//! A run knows the network, so these rules need fewer guesses than those for calls that were made
//! elsewhere. They read the rows of the expectation's own time.

use std::fmt;
use std::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_scenario::{Condition, Expectation, ExpectedFlow};
use weir_sim::trace::{Row, Trace};

use crate::folder::Record;

/// A sender whose encoder makes less than this share of its target does not need more.
const FILLS: f64 = 0.7;
/// A sender of more than this multiple of its target does not follow it.
const OVERSHOOT: f64 = 1.1;
/// Above this share of its time, a target above the link explains a queue.
const OFTEN: f64 = 0.2;
/// A sender that is silent for this share of the time is not limited by its target.
const SILENT: f64 = 0.5;
/// Share of lost packets that a controller may answer, as in the rules for dumps.
const LOSS: f64 = 0.02;
/// A queue that a controller may answer, in ms.
const QUEUE_MS: f64 = 50.0;

/// The part of a call that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Congestion control: the target itself is wrong.
    Controller,
    /// The encoder makes less than the target.
    Encoder,
    /// The sender: nothing tells its target, it is silent, or it sends more than its target.
    Sender,
}

/// Why an expectation is missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The part that decides.
    pub part: Part,
    /// What was measured, in words.
    pub says: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Controller => "controller",
            Part::Encoder => "encoder",
            Part::Sender => "sender",
        };
        write!(f, "{part}: {}", self.says)
    }
}

/// Why the run of this record misses the expectation. `flow` is the flow that decides; the first
/// one that the expectation is about if it is `None`. `None` if the record has no rows of it.
pub fn cause(record: &Record, expectation: &Expectation, flow: Option<&str>) -> Option<Cause> {
    let spans = record.scenario.section_spans();
    let own = spans.into_iter().find(|(name, _)| expectation.section.as_ref() == Some(name));
    let whole = Timestamp::ZERO..Timestamp::ZERO + record.scenario.duration;
    let measured = Measured::of(
        &record.trace,
        flow_of(record, expectation, flow)?,
        &own.map_or(whole, |(_, span)| span),
    )?;
    let metric = expectation.metric.split('.').next().unwrap_or_default();
    Some(match (metric, expectation.condition) {
        ("utilization" | "rate_mbps", Condition::Above(_)) => measured.too_little(),
        ("queuing_delay_ms" | "rtt_ms" | "loss_ratio", Condition::Below(_)) => measured.too_much(),
        _ => Cause { part: Part::Sender, says: measured.rates() },
    })
}

/// The index of the flow.
fn flow_of(record: &Record, expectation: &Expectation, decides: Option<&str>) -> Option<usize> {
    let name = match (decides, &expectation.flow) {
        (Some(name), _) => name,
        (None, ExpectedFlow::Named(name)) => name,
        (None, flow) if flow.is_of_real_run() => return None,
        (None, _) => {
            return record.scenario.flows.iter().position(|one| one.traffic.media().is_some());
        }
    };
    record.trace.flows.iter().position(|own| own == name)
}

/// What the rows of a flow say about a time. Rates are means in kbit/s.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    seconds: f64,
    /// Seconds in which nothing was sent.
    silent_s: f64,
    sent: f64,
    /// `None` if the link is unlimited, or a radio cell.
    capacity: Option<f64>,
    /// `None` if nothing tells it.
    target: Option<Target>,
    /// Lost packets over sent ones.
    loss: f64,
    /// 95th percentile over the rows.
    queue_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Target {
    mean: f64,
    first: f64,
    last: f64,
    least: f64,
    most: f64,
    /// Seconds in which it is above the capacity.
    above_s: f64,
}

impl Measured {
    fn of(trace: &Trace, flow: usize, span: &Range<Timestamp>) -> Option<Self> {
        let mut rows: Vec<&Row> = trace.rows.iter().filter(|row| row.flow == flow).collect();
        rows.retain(|row| span.start < row.time && row.time <= span.end);
        if rows.is_empty() {
            return None;
        }
        let seconds = (span.end - span.start).as_secs_f64();
        let row_s = seconds / rows.len() as f64;
        let silent = rows.iter().filter(|row| row.sent_packets == 0).count();
        let sent_bits: f64 = rows.iter().map(|row| row.sent.as_bits() as f64).sum();
        let sent = rows.iter().map(|row| row.sent_packets).sum::<u64>() as f64;
        let lost = rows.iter().map(|row| row.lost_packets).sum::<u64>() as f64;
        let queues = rows.iter().filter_map(|row| row.queuing_delay);
        let mut queues: Vec<f64> = queues.map(TimeDelta::as_millis_f64).collect();
        queues.sort_by(f64::total_cmp);
        let capacities: Vec<f64> = rows
            .iter()
            .filter_map(|row| row.capacity_over_it())
            .map(|it| it.as_kbps_f64())
            .collect();
        Some(Self {
            seconds,
            silent_s: silent as f64 * row_s,
            sent: sent_bits / seconds / 1e3,
            capacity: mean(&capacities),
            target: Target::of(&rows, row_s),
            loss: if sent > 0.0 { lost / sent } else { 0.0 },
            queue_ms: queues.get(queues.len() * 95 / 100).copied().unwrap_or(0.0),
        })
    }

    /// The link was not used.
    fn too_little(&self) -> Cause {
        if self.silent_s >= SILENT * self.seconds {
            let told = match self.target {
                Some(target) => format!(" under a target of {:.0} kbit/s", target.mean),
                None => String::new(),
            };
            let says =
                format!("nothing was sent for {:.1} of {:.1} s{told}", self.silent_s, self.seconds);
            return Cause { part: Part::Sender, says };
        }
        let around = self.around();
        let Some(target) = self.target else {
            let says = format!("{}{around}; nothing tells its target", self.rates());
            return Cause { part: Part::Sender, says };
        };
        if self.sent < FILLS * target.mean {
            return Cause { part: Part::Encoder, says: format!("{}{around}", self.rates()) };
        }
        let of_link = self.capacity.map_or(String::new(), |capacity| format!(" of {capacity:.0}"));
        let says = format!(
            "its target was {:.0}{of_link} kbit/s and {}{around}",
            target.mean,
            target.course()
        );
        Cause { part: Part::Controller, says }
    }

    /// Packets waited, or were lost.
    fn too_much(&self) -> Cause {
        let Some(target) = self.target else {
            let says = format!("{}; nothing tells its target", self.rates());
            return Cause { part: Part::Sender, says };
        };
        if let Some(capacity) = self.capacity
            && (target.mean > capacity || target.above_s >= OFTEN * self.seconds)
        {
            let says = format!(
                "its target was above the link for {:.1} of {:.1} s: {:.0} of {capacity:.0} kbit/s \
                 on average, and {}",
                target.above_s,
                self.seconds,
                target.mean,
                target.course()
            );
            return Cause { part: Part::Controller, says };
        }
        if self.sent > OVERSHOOT * target.mean {
            // Packets alone do not tell which of the two.
            let says = format!("{}: its encoder makes more, or it sends much again", self.rates());
            return Cause { part: Part::Sender, says };
        }
        let says = format!("{}: too much for the queue to empty", self.rates());
        Cause { part: Part::Controller, says }
    }

    fn rates(&self) -> String {
        let target = match self.target {
            Some(target) => format!(" under a target of {:.0}", target.mean),
            None => String::new(),
        };
        // A radio cell has none of its own.
        let link = match self.capacity {
            Some(capacity) => format!("where the link carries {capacity:.0}"),
            None => "where nothing tells the capacity".into(),
        };
        format!("{:.0} kbit/s were sent{target}, {link}", self.sent)
    }

    /// What the controller may have answered.
    fn around(&self) -> String {
        let lost = format!("{:.1} % of the packets were lost", 100.0 * self.loss);
        let waited = format!("packets waited up to {:.0} ms in the queue", self.queue_ms);
        match (self.loss >= LOSS, self.queue_ms >= QUEUE_MS) {
            (false, false) => ", with neither queue nor loss".into(),
            (true, false) => format!(", while {lost}"),
            (false, true) => format!(", while {waited}"),
            (true, true) => format!(", while {lost} and {waited}"),
        }
    }
}

impl Target {
    fn of(rows: &[&Row], row_s: f64) -> Option<Self> {
        let told: Vec<f64> =
            rows.iter().filter_map(|row| row.target).map(|it| it.as_kbps_f64()).collect();
        let above = rows.iter().filter(|row| {
            row.target.zip(row.capacity).is_some_and(|(target, capacity)| target > capacity)
        });
        let above_s = above.count() as f64 * row_s;
        Some(Self {
            mean: mean(&told)?,
            first: *told.first()?,
            last: *told.last()?,
            least: told.iter().copied().min_by(f64::total_cmp)?,
            most: told.iter().copied().max_by(f64::total_cmp)?,
            above_s,
        })
    }

    /// How it moved.
    fn course(&self) -> String {
        let Self { first, last, least, most, .. } = self;
        match (first, last) {
            _ if *most < 1.1 * least => format!("stayed at {last:.0}"),
            _ if *last > 1.1 * first => format!("rose from {first:.0} to {last:.0}"),
            _ if *last < 0.9 * first => format!("fell from {first:.0} to {last:.0}"),
            _ => format!("moved between {least:.0} and {most:.0}"),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    if !values.is_empty() { Some(values.iter().sum::<f64>() / values.len() as f64) } else { None }
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, DataSize};

    use super::*;

    /// Ten seconds of a link of 1 Mbit/s.
    fn rows(target_kbps: Option<u64>, sent_kbps: u64, lost: u64, queue_ms: i64) -> Measured {
        rows_over(Some(Bitrate::from_kbps(1_000)), target_kbps, sent_kbps, lost, queue_ms)
    }

    fn rows_over(
        capacity: Option<Bitrate>,
        target_kbps: Option<u64>,
        sent_kbps: u64,
        lost: u64,
        queue_ms: i64,
    ) -> Measured {
        let mut trace = Trace::new(vec!["media-1".into()]);
        for index in 1..=200 {
            let packets = u64::from(sent_kbps > 0) * 10;
            trace.rows.push(
                Row::new(Timestamp::from_millis(50 * index), 0)
                    .with_capacity(capacity)
                    .with_target(target_kbps.map(Bitrate::from_kbps))
                    .with_sent(DataSize::from_bytes(sent_kbps * 50 / 8))
                    .with_sent_packets(packets)
                    .with_lost_packets(lost)
                    .with_queuing_delay(Some(TimeDelta::from_millis(queue_ms))),
            );
        }
        let span = Timestamp::ZERO..Timestamp::from_secs(10);
        Measured::of(&trace, 0, &span).unwrap()
    }

    #[test]
    fn a_target_far_below_the_link_is_the_controllers_doing() {
        let cause = rows(Some(300), 290, 1, 0).too_little().to_string();
        assert_eq!(
            cause,
            "controller: its target was 300 of 1000 kbit/s and stayed at 300, while 10.0 % of the \
             packets were lost"
        );
        let cause = rows(Some(300), 290, 0, 5).too_little().to_string();
        assert!(cause.ends_with("with neither queue nor loss"), "{cause}");
    }

    #[test]
    fn a_sender_that_does_not_follow_its_target_is_named() {
        let cause = rows(Some(900), 400, 0, 0).too_little();
        assert_eq!(cause.part, Part::Encoder, "{cause}");
        let cause = rows(Some(800), 1_100, 3, 300).too_much().to_string();
        assert_eq!(
            cause,
            "sender: 1100 kbit/s were sent under a target of 800, where the link carries 1000: its \
             encoder makes more, or it sends much again"
        );
    }

    #[test]
    fn a_target_above_the_link_explains_a_queue() {
        let cause = rows(Some(1_200), 1_100, 3, 300).too_much().to_string();
        assert_eq!(
            cause,
            "controller: its target was above the link for 10.0 of 10.0 s: 1200 of 1000 kbit/s on \
             average, and stayed at 1200"
        );
    }

    #[test]
    fn a_sender_without_a_target_and_one_that_is_silent_are_told_apart() {
        let untold = rows(None, 400, 0, 0).too_little().to_string();
        assert!(untold.ends_with("; nothing tells its target"), "{untold}");
        let silent = rows(Some(900), 0, 0, 0).too_little().to_string();
        assert_eq!(
            silent,
            "sender: nothing was sent for 10.0 of 10.0 s under a target of 900 kbit/s"
        );
    }

    #[test]
    fn a_radio_cell_has_no_capacity_to_compare_with() {
        let little = rows_over(None, Some(300), 290, 0, 0).too_little().to_string();
        assert_eq!(
            little,
            "controller: its target was 300 kbit/s and stayed at 300, with neither queue nor loss"
        );
        let much = rows_over(None, Some(734), 707, 0, 250).too_much().to_string();
        assert_eq!(
            much,
            "controller: 707 kbit/s were sent under a target of 734, where nothing tells the \
             capacity: too much for the queue to empty"
        );
    }

    #[test]
    fn a_time_without_rows_has_no_cause() {
        let trace = Trace::new(vec!["media-1".into()]);
        assert_eq!(Measured::of(&trace, 0, &(Timestamp::ZERO..Timestamp::from_secs(1))), None);
    }
}
