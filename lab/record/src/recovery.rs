//! How long a measure takes to come back to a share of what it was in an earlier section.

use std::collections::VecDeque;
use std::ops::Range;

use weir::units::Timestamp;
use weir_metrics::{FlowMeter, Metrics, ROWS_PER_SECOND};
use weir_scenario::{Expectation, Recovery, Scenario};
use weir_sim::trace::Row;

/// What successive seconds of a measure say of its comeback.
#[derive(Clone, Debug)]
pub(crate) struct Comeback<'a> {
    recovery: &'a Recovery,
    /// The value from before; `None` if it was not measured.
    before: Option<f64>,
    state: State,
}

/// Where a measure is on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Each second so far had the value; `false` without a second.
    NeverGone(bool),
    /// It has not come back.
    Gone,
    /// It came back after this time in seconds.
    Back(f64),
}

impl<'a> Comeback<'a> {
    pub(crate) fn new(recovery: &'a Recovery, before: Option<f64>) -> Self {
        Self { recovery, before, state: State::NeverGone(false) }
    }

    /// The value of a second that ends at this time in seconds since the start of the section. A
    /// second without a value is one without the measure: nothing was received.
    pub(crate) fn push(&mut self, value: Option<f64>, end_s: f64) {
        let Some(before) = self.before else { return };
        let is_back = value.is_some_and(|value| self.recovery.is_back(value, before));
        self.state = match (self.state, is_back) {
            (State::NeverGone(_), true) => State::NeverGone(true),
            (State::Gone, true) => State::Back(end_s),
            (State::Back(after), _) => State::Back(after),
            (_, false) => State::Gone,
        };
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Back(_))
    }

    /// Seconds until it came back; `None` if it did not, or if a value is missing.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self.state {
            State::NeverGone(true) => Some(0.0),
            State::NeverGone(false) | State::Gone => None,
            State::Back(after) => Some(after),
        }
    }
}

/// Measures the comeback of one flow for one expectation, row by row. It keeps the rows of one
/// second.
#[derive(Debug)]
pub(crate) struct RecoveryMeter<'a> {
    /// Index of the expectation in the scenario.
    pub(crate) expectation: usize,
    /// Index of the flow.
    pub(crate) flow: usize,
    recovery: &'a Recovery,
    earlier: Range<Timestamp>,
    later: Range<Timestamp>,
    /// `None` once the earlier section is over.
    before: Option<FlowMeter>,
    comeback: Comeback<'a>,
    second: VecDeque<Row>,
}

impl<'a> RecoveryMeter<'a> {
    /// A meter for each expectation of a comeback and each flow that it may be of.
    pub(crate) fn all(scenario: &'a Scenario, flows: usize) -> Vec<Self> {
        let spans = scenario.section_spans();
        let mut meters = Vec::new();
        for (expectation, Expectation { recovery, .. }) in scenario.expectations.iter().enumerate()
        {
            let Some(recovery) = recovery else { continue };
            let names = [recovery.of.as_str(), recovery.section.as_str()];
            let [Some(earlier), Some(later)] = names.map(|name| span_of(&spans, name)) else {
                continue;
            };
            for flow in 0..flows {
                let before = FlowMeter::new(&[], Vec::new(), &std::sync::Arc::default());
                meters.push(Self {
                    expectation,
                    flow,
                    recovery,
                    earlier: earlier.clone(),
                    later: later.clone(),
                    before: Some(before),
                    comeback: Comeback::new(recovery, None),
                    second: VecDeque::new(),
                });
            }
        }
        meters
    }

    /// The next row of the flow.
    pub(crate) fn push(&mut self, row: &Row) {
        if is_within(row.time, &self.earlier)
            && let Some(before) = &mut self.before
        {
            before.push(row);
        }
        if !is_within(row.time, &self.later) || self.comeback.is_over() {
            return;
        }
        let metric = &self.recovery.metric;
        if let Some(before) = self.before.take() {
            self.comeback = Comeback::new(self.recovery, before.finish().whole.at(metric));
        }
        self.second.push_back(*row);
        if self.second.len() > ROWS_PER_SECOND {
            self.second.pop_front();
        }
        if self.second.len() == ROWS_PER_SECOND {
            let value = Metrics::of(self.second.make_contiguous(), &[]).at(metric);
            self.comeback.push(value, (row.time - self.later.start).as_secs_f64());
        }
    }

    /// Seconds until it came back; `None` if it did not, or if a value is missing.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.comeback.seconds()
    }
}

/// The time of the section of this name.
fn span_of<'a>(
    spans: &'a [(String, Range<Timestamp>)],
    name: &str,
) -> Option<&'a Range<Timestamp>> {
    spans.iter().find(|span| span.0 == name).map(|span| &span.1)
}

/// A row belongs to the section in which it ends.
fn is_within(time: Timestamp, span: &Range<Timestamp>) -> bool {
    span.start < time && time <= span.end
}

#[cfg(test)]
mod tests {
    use weir::units::Bitrate;
    use weir_sim::trace::ROW_INTERVAL;

    use super::*;

    /// A scenario with sections from 0 s to 5 s and from 10 s to 20 s, whose rate must come back.
    fn scenario(share: f64) -> Scenario {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"20s\"\n[network]\n\
             [[flow]]\n[[section]]\nname = \"before\"\nfrom = \"0s\"\nto = \"5s\"\n\
             [[section]]\nname = \"after\"\nfrom = \"10s\"\nto = \"20s\"\n[[expect]]\n\
             metric = \"rate_mbps.mean\"\nsection = \"after\"\nback_to = {share}\n\
             of = \"before\"\nbelow = 5\n"
        );
        weir_scenario::parse("x", &text, None).unwrap()
    }

    /// The time to come back of a flow with these rates in kbit/s, a value for each second.
    fn seconds(share: f64, rates: &[u64]) -> Option<f64> {
        let scenario = scenario(share);
        let mut meter = RecoveryMeter::all(&scenario, 1).remove(0);
        let mut time = Timestamp::ZERO;
        for rate in rates {
            for _ in 0..ROWS_PER_SECOND {
                time += ROW_INTERVAL;
                let received = Bitrate::from_kbps(*rate) * ROW_INTERVAL;
                meter.push(&Row::new(time, 0).with_received(received));
            }
        }
        meter.seconds()
    }

    #[test]
    fn a_measure_is_back_at_the_end_of_its_first_second_at_the_share() {
        let mut rates = [1_000; 20];
        rates[5..13].fill(200);
        // Three seconds at 200 kbit/s, and a second at 1000.
        assert_eq!(seconds(1.0, &rates), Some(4.0));
        // Of 0.6 Mbit/s a second has enough after half of it.
        assert_eq!(seconds(0.6, &rates), Some(3.5));
        assert_eq!(seconds(0.2, &rates), Some(0.0));
        rates[10..].fill(200);
        assert_eq!(seconds(0.9, &rates), None);
    }

    #[test]
    fn a_measure_that_falls_within_the_section_comes_back_after_the_fall() {
        let mut rates = [1_000; 20];
        rates[12..15].fill(0);
        assert_eq!(seconds(0.9, &rates), Some(5.9));
        assert_eq!(seconds(0.9, &[1_000; 20]), Some(0.0));
    }

    #[test]
    fn without_a_value_from_before_or_a_second_after_nothing_is_known() {
        assert_eq!(seconds(0.9, &[1_000; 10]), None);
        assert_eq!(seconds(0.9, &[]), None);
        let scenario = scenario(0.9);
        let recovery = scenario.expectations[0].recovery.as_ref().unwrap();
        let mut comeback = Comeback::new(recovery, None);
        comeback.push(Some(1.0), 1.0);
        assert_eq!(comeback.seconds(), None);
    }
}
