//! Definitions of the report's metrics and terms. The text of a metric comes from the table that
//! declares it.

use super::events::MERGED;
use super::format::Definition;
use super::series::{MAX_GAP, WINDOW};
use crate::calls::Calls;
use crate::metrics::Declared;
use crate::scenario::Scenario;

/// Terms in the plots and tables of every report.
const ALWAYS: &[(&str, &str)] = &[
    (
        "Target bitrate",
        "What the controller asks of the media source, headers included. Real call: the browser's \
         estimate of what the path carries, from getStats.",
    ),
    ("Capacity", "What the bottleneck carries in the flow's direction."),
    (
        "Flows that are not drawn",
        "Audio, UDP loads and short TCP transfers are in the records and in the link's utilization, but \
         have no curves. A UDP load is taken off the capacity that a media flow is measured by.",
    ),
    (
        "Expectations and verdicts",
        "An expectation holds if the mean over the seeds is on the right side of its limit. A known \
         miss is one that the scenario says is not met, and why. A requirement of RFC 8836 is met if \
         every expectation that speaks of it holds. Real calls are judged like simulated runs, under the \
         browser's name; a disturbed run, or one of which a call failed, is not judged. Known misses are \
         those of algorithms.",
    ),
    (
        "Fairness",
        "Over the media flows of one direction, while all of them are active, throughput per priority. \
         Jain's index is 1 if all are equal and 1/n if one of n has all. A ratio is the lowest over the \
         highest throughput in the least fair window of 1, 5 or 20 s; RFC 8868 calls 0.333 and more fair.",
    ),
    (
        "Box plots",
        "Over the means of each seed, as lund, section 5.2: quartiles are the medians of the lower \
         and upper half (the median belongs to both where the count is odd); whiskers end at the \
         lowest and highest values that are no outliers. The thesis does not say what an outlier \
         is: here a value more than 1.5 interquartile ranges outside the box. One run has no box. Where \
         nothing in a scenario is random, all seeds give the same run, and a box is a line.",
    ),
];

const SIM_REAL: (&str, &str) = (
    "Time to 90 %",
    "Time from a change of the capacity until the received rate of a whole second first reaches 90 \
     % of the new capacity, so 1 s at the least, also where the capacity fell below the rate; not \
     reached if the next change or the end comes first.",
);

const CALLS: &[(&str, &str)] = &[
    (
        "getStats beside the packet capture",
        "The RTP payload that the browser says it sent or received of a stream, and that of the same \
         stream at the interface of its host, over the same intervals. What is sent again has a stream of \
         its own, which getStats tells apart at the receiver and not at the sender. The error is that of \
         the whole call, and the mean of what the intervals are apart.",
    ),
    (
        "One-way delay in captures",
        "Time between the stamps that the kernel gave a packet at the interfaces of both hosts, by one \
         clock; packets are matched by SSRC and sequence number.",
    ),
    (
        "Loss in captures",
        "Packets that left the sender's interface and never came to the receiver's. Over an interval: \
         growth of the lost over growth of received and lost (aalto, Equation 1).",
    ),
    (
        "Three witnesses",
        "Browser, capture and emulator count on their own. Two agree if they differ by no more than \
         one of them cannot see: packets near the edges of the time that is compared, losses of packets \
         that are not media, and the emulator's lateness.",
    ),
    (
        "Disturbed runs",
        "Where packets left the emulator late or the processors were busy all the time, a run says more \
         about the machine than about the call. Such runs are left out of every value, curve and ratio, and \
         listed; where there are no others they are shown, and marked.",
    ),
    (
        "Set-up",
        "Together: from the moment when both pages are ready until DTLS is done and media can flow. A \
         browser may report that ICE is done only together with DTLS; the step of DTLS is 0 then.",
    ),
    (
        "Receiver's bytes",
        "Payload by getStats of the receiver, mean over its intervals: video that was sent for the first \
         time, what was sent again, and forward error correction, also as shares of the capacity, whose \
         sum bari calls U (without headers here). FEC inside the video's own stream shows in getStats \
         alone: a capture sees it encrypted.",
    ),
];

const MEANS_OF_CALLS: (&str, &str) = (
    "Metrics of calls",
    "Of a real run alone, over its whole time: means over the participants, or with a or b over the \
     participants of that side. The forwarding server and calls that failed are left out.",
);

/// The definitions that a report over runs of these scenarios needs.
pub(super) fn of<'a>(
    scenarios: impl Iterator<Item = &'a Scenario>,
    has_sim_real: bool,
    has_calls: bool,
) -> Vec<Definition> {
    let named: Vec<&str> = scenarios
        .flat_map(|scenario| {
            let paper = scenario.paper.iter().map(|value| value.metric.as_str());
            paper.chain(scenario.findings.iter().map(|finding| finding.metric.as_str()))
        })
        .collect();
    let named: Vec<&Declared> = named.into_iter().filter_map(Declared::of).collect();
    let define = |&(term, text): &(&str, &str)| Definition { term: term.into(), text: text.into() };
    let mut definitions: Vec<Definition> =
        Declared::all().filter_map(|metric| metric_definition(metric, &named)).collect();
    definitions.extend(ALWAYS.iter().map(define));
    if has_sim_real {
        definitions.push(define(&SIM_REAL));
    }
    if has_calls {
        definitions.extend(CALLS.iter().map(define));
    }
    if named.iter().any(|metric| Calls::names(metric.path)) {
        definitions.push(define(&MEANS_OF_CALLS));
    }
    definitions.push(curves());
    definitions.push(rate_changes());
    definitions
}

/// The definition of a metric that every report shows under its title, or that a published value or
/// finding names by its path. `None` for other metrics.
fn metric_definition(metric: &Declared, named: &[&Declared]) -> Option<Definition> {
    let is_named = named.contains(&metric);
    let term = if metric.title.is_empty() { metric.path } else { metric.title };
    if metric.title.is_empty() && !is_named {
        return None;
    }
    let mut text = metric.meaning.trim().to_string();
    if !metric.in_call.is_empty() {
        text += &format!(" Real call: {}", metric.in_call);
    }
    // A metric with a title has its unit in plots and tables.
    if metric.title.is_empty() && !["", "ratio"].contains(&metric.unit) {
        text += &format!(" In {}.", metric.unit);
    }
    if !metric.title.is_empty() && is_named {
        text += &format!(" Published values name it {}.", metric.path);
    }
    Some(Definition { term: term.into(), text })
}

fn curves() -> Definition {
    let text = format!(
        "Mean over the seeds of each run's curve, interpolated linearly where a value is missing \
         for {} s or less. A point is the mean since the point before, capacity the last value, \
         received rate and loss over {} ms at least. Where runs have no value there is a gap.",
        MAX_GAP.as_secs_f64(),
        WINDOW.as_millis()
    );
    Definition { term: "Curves".into(), text }
}

fn rate_changes() -> Definition {
    let text = format!(
        "Changes of the target in the run of the first seed. Those that follow each other within \
         {} s for the same reason and in the same direction are one; of more than a report has \
         room for, the largest of each of as many equal spans of time are shown.",
        MERGED.as_secs_f64()
    );
    Definition { term: "Rate changes".into(), text }
}
