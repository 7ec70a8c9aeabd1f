//! Rows of an audio flow: what the browser's reports and the recordings say of each 50 ms, in the
//! columns of simulated speech.

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::InboundRtp;
use weir_scenario::{Flow, Scenario};
use weir_sim::trace::{Heard, ROW_INTERVAL, Row};

use super::{HeardSpeech, SpeechSecond};
use crate::measure::outcome::CallOutcome;

/// The rate at which Chromium counts samples of Opus.
const SAMPLES_PER_SECOND: f64 = 48_000.0;

/// The rows of all audio flows. The network counts their packets with those of the video, so they
/// have only what was heard, and there are none if the run did not ask for that.
pub(crate) fn all(
    scenario: &Scenario,
    outcome: &CallOutcome,
    heard: &[HeardSpeech],
    end: Timestamp,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut heard = heard.iter();
    for (planned, result) in scenario.calls().iter().zip(&outcome.calls) {
        for (flow, far) in [(planned.audio_up, 1), (planned.audio_down, 0)] {
            let Some(index) = flow else { continue };
            let Some(speech) = heard.next() else { continue };
            let reports = &result.peers[far].reports;
            rows.extend(of(&scenario.flows[index], index, reports, &speech.seconds, end));
        }
    }
    rows
}

/// Rows while the flow is active. What changed between two reports is spread evenly over the rows
/// between them, and a second's delay stands in all its rows.
fn of(
    flow: &Flow,
    index: usize,
    reports: &[TimedReport],
    seconds: &[SpeechSecond],
    end: Timestamp,
) -> Vec<Row> {
    let mut received = Vec::new();
    for timed in reports {
        received.extend(timed.report.audio_inbound.as_deref().map(|it| (timed.time, it)));
    }
    let mut rows = Vec::new();
    let mut time = Timestamp::ZERO + ROW_INTERVAL;
    let mut counted = None;
    while time <= flow.stop.min(end) {
        if time > flow.start {
            let after = received.partition_point(|(at, _)| *at < time);
            let pair = after.checked_sub(1).and_then(|first| received.get(first..=after));
            let mut heard = pair.map(|pair| between(pair[0], pair[1])).unwrap_or_default();
            // A number cannot be spread.
            if counted.replace(after) == Some(after) {
                heard.concealments = 0;
            }
            let second = seconds.iter().find(|second| time <= second.end);
            heard.delay = second.and_then(|second| second.delay).map(whole_micros);
            rows.push(Row::new(time, index).with_heard(Some(heard)));
        }
        time += ROW_INTERVAL;
    }
    rows
}

/// What was heard in 50 ms between two reports, with the number of concealments of the whole time.
fn between(
    (start, before): (Timestamp, &InboundRtp),
    (end, after): (Timestamp, &InboundRtp),
) -> Heard {
    let share = ROW_INTERVAL.as_secs_f64() / (end - start).as_secs_f64().max(f64::MIN_POSITIVE);
    let target = per_sample(before, after, |it| it.jitter_buffer_target_delay);
    Heard::default()
        .with_played(share_of(share, grown(before, after, |it| it.total_samples_received)))
        .with_concealed(share_of(share, grown(before, after, |it| it.concealed_samples)))
        .with_concealments(grown(before, after, |it| it.concealment_events).unwrap_or(0))
        .with_stretched(share_of(
            share,
            grown(before, after, |it| it.inserted_samples_for_deceleration),
        ))
        .with_shortened(share_of(
            share,
            grown(before, after, |it| it.removed_samples_for_acceleration),
        ))
        .with_target(target.map(|ms| whole_micros(TimeDelta::from_millis_f64(ms))))
}

/// The share of so many samples that falls into a row.
fn share_of(share: f64, samples: Option<u64>) -> TimeDelta {
    whole_micros(TimeDelta::from_secs_f64(lasting(samples.unwrap_or(0)).as_secs_f64() * share))
}

/// Growth of a counter; `None` if the browser does not have it.
pub(super) fn grown(
    before: &InboundRtp,
    after: &InboundRtp,
    count: fn(&InboundRtp) -> Option<u64>,
) -> Option<u64> {
    Some(count(after)?.saturating_sub(count(before)?))
}

/// How long so many samples last.
pub(super) fn lasting(samples: u64) -> TimeDelta {
    TimeDelta::from_secs_f64(samples as f64 / SAMPLES_PER_SECOND)
}

/// Mean time in ms that a sample waited in the buffer.
pub(super) fn buffered(before: &InboundRtp, after: &InboundRtp) -> Option<f64> {
    per_sample(before, after, |it| it.jitter_buffer_delay)
}

/// Growth of a sum of seconds for each sample that left the buffer, in ms.
fn per_sample(
    before: &InboundRtp,
    after: &InboundRtp,
    seconds: fn(&InboundRtp) -> Option<f64>,
) -> Option<f64> {
    let samples = grown(before, after, |it| it.jitter_buffer_emitted_count)?;
    let grown = seconds(after)? - seconds(before)?;
    if samples > 0 { Some(1e3 * grown / samples as f64) } else { None }
}

fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

#[cfg(test)]
mod tests {
    use weir_metrics::Metrics;
    use weir_record::calls::stats::StatsReport;
    use weir_scenario::parse;

    use super::*;

    fn report(ms: i64, seconds: f64, concealed: u64, events: u64) -> TimedReport {
        let samples = (seconds * SAMPLES_PER_SECOND) as u64;
        let audio = InboundRtp {
            total_samples_received: Some(samples),
            concealed_samples: Some(concealed),
            concealment_events: Some(events),
            jitter_buffer_target_delay: Some(0.04 * samples as f64),
            jitter_buffer_delay: Some(0.06 * samples as f64),
            jitter_buffer_emitted_count: Some(samples),
            inserted_samples_for_deceleration: Some(samples / 100),
            ..InboundRtp::default()
        };
        let report = StatsReport { audio_inbound: Some(Box::new(audio)), ..StatsReport::default() };
        TimedReport { time: Timestamp::from_millis(ms), report }
    }

    #[test]
    fn a_hand_made_call_has_the_metrics_worked_out_by_hand() {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"2s\"\n\
                    [network.up]\ndelay = \"1ms\"\n[[flow]]\n[[flow]]\nkind = \"audio\"\n";
        let scenario = parse("x", text, None).unwrap();
        let reports = [report(-250, 0.0, 0, 0), report(250, 0.5, 0, 0), report(750, 1.0, 4_800, 3)];
        let seconds = [SpeechSecond {
            end: Timestamp::from_secs(1),
            delay: Some(TimeDelta::from_millis(90)),
        }];
        let end = Timestamp::from_millis(750);
        let rows = of(&scenario.flows[1], 1, &reports, &seconds, end);
        assert_eq!(rows.len(), 15);
        let speech = Metrics::of(&rows, &[]).speech;
        // 100 ms of the 750 ms were made up, and a hundredth was added.
        assert!((speech.concealed_ratio.unwrap() - 0.1333).abs() < 1e-3);
        assert_eq!((speech.concealments, speech.slowed_ratio), (Some(3), Some(0.01)));
        assert_eq!(speech.mouth_to_ear_ms.unwrap().p50, 90.0);
        assert_eq!(speech.speech_target_ms, Some(40.0));
        let [_, before, after] = &reports;
        let [before, after] = [before, after].map(|it| it.report.audio_inbound.as_deref().unwrap());
        assert!((buffered(before, after).unwrap() - 60.0).abs() < 1e-9);
    }
}
