//! Definitions of the report's metrics and terms. The text of a metric comes from the table that
//! declares it.

use weir_metrics::Declared;
use weir_record::calls::Calls;
use weir_scenario::Scenario;

use super::events::MERGED;
use super::format::Definition;
use super::series::{MAX_GAP, WINDOW};

/// Terms in the plots and tables of every report.
const ALWAYS: &[(&str, &str)] = &[
    (
        "Target bitrate",
        "The bitrate that the controller asks of the media source, headers included. In a real \
         call, it is the browser's estimate of what the path carries, from getStats.",
    ),
    ("Capacity", "The rate that the bottleneck carries in the flow's direction."),
    (
        "Flows that are not drawn",
        "Audio, UDP loads and short TCP transfers have no curves. They are in the records, and \
         they count in the link's utilization. The rate of a UDP load is subtracted from the \
         capacity by which a media flow is measured.",
    ),
    (
        "Expectations and verdicts",
        "An expectation holds if the mean over the seeds is on the right side of its limit. A \
         known miss is an expectation of which the scenario says that it is not met, and why. A \
         requirement of RFC 8836 is met if all expectations that refer to it hold. Real calls are \
         judged like simulated runs, under the browser's name. Runs that were disturbed, or in \
         which a call failed, are not judged. Known misses apply only to algorithms, not to \
         browsers.",
    ),
    (
        "Fairness",
        "Compares the media flows of one direction while all of them are active. Each throughput \
         is divided by the flow's priority. Jain's index is 1 if all flows have the same, and 1/n \
         if one of n flows has everything. A ratio is the lowest throughput divided by the \
         highest, in the least fair window of 1, 5 or 20 s. RFC 8868 calls a ratio of at least \
         0.333 fair.",
    ),
    (
        "Box plots",
        "Show the distribution of the means of the seeds, as in lund, section 5.2. The quartiles \
         are the medians of the lower and the upper half; with an odd number of values, the \
         median belongs to both halves. The whiskers end at the lowest and the highest value that \
         is not an outlier. The thesis does not define outliers. Here, an outlier is more than \
         1.5 interquartile ranges outside the box. A single run has no box. If nothing in a \
         scenario is random, all seeds give the same run, and the box is a line.",
    ),
];

const SIM_REAL: (&str, &str) = (
    "Time to 90 %",
    "Time from a change of the capacity until the received rate over a whole second first reaches \
     90 % of the new capacity. It is therefore at least 1 s, even if the capacity fell below the \
     rate. The value is not reached if the next change or the end of the run comes first.",
);

const CALLS: &[(&str, &str)] = &[
    (
        "getStats beside the packet capture",
        "Compares the RTP payload of a stream that the browser reports as sent or received with \
         the payload of the same stream at its host's interface, over the same intervals. \
         Retransmissions are a stream of their own, which getStats lists separately at the \
         receiver, but not at the sender. The table has the error over the whole call and the \
         mean difference over the intervals.",
    ),
    (
        "One-way delay in captures",
        "Time between the kernel's time stamps of a packet at the interfaces of the two hosts. \
         Both use the same clock. Packets are matched by SSRC and sequence number.",
    ),
    (
        "Loss in captures",
        "Packets that left the sender's interface and did not arrive at the receiver's. Over an \
         interval, it is the increase of lost packets divided by the increase of lost and received \
         packets (aalto, Equation 1).",
    ),
    (
        "Browser, capture and emulator compared",
        "The browser, the packet capture and the emulator count separately. Two counts agree if \
         they differ by no more than what one of them cannot see: packets near the edges of the \
         compared time, losses of packets that are not media, and the release lateness of the \
         emulator.",
    ),
    (
        "Disturbed runs",
        "A run is disturbed if packets left the emulator late or if the processors were busy all \
         the time. Its results depend more on the machine than on the call. Disturbed runs are \
         listed, but they do not count in any value, curve or ratio. If all runs were disturbed, \
         they are shown and marked.",
    ),
    (
        "Set-up",
        "The whole set-up lasts from the moment when both pages are ready until DTLS is done and \
         media can flow. Some browsers report that ICE is done only together with DTLS. The step \
         of DTLS is then 0.",
    ),
    (
        "Receiver's bytes",
        "Payload according to the receiver's getStats, as the mean over its intervals: video that \
         was sent for the first time, retransmissions, and forward error correction (FEC). They \
         are also given as shares of the capacity. The sum of the shares is what bari calls U, \
         but without headers. FEC inside the video's own stream is visible only in getStats, \
         because the capture sees it encrypted.",
    ),
];

const MEANS_OF_CALLS: (&str, &str) = (
    "Metrics of calls",
    "Only real runs have them. They cover the whole run. Each is a mean over all participants, or \
     over the participants of one side if its name has a or b. A server and failed calls are left \
     out.",
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
        "A curve is the mean over the seeds. Missing values of a run are interpolated linearly if \
         the gap is at most {} s. Each point is the mean since the point before. For the \
         capacity, it is the last value. For received rate and loss, it covers at least {} ms. If \
         no run has a value, the curve has a gap. \"Possible\" is the rate of an oracle that \
         knows the schedule of a wired network, but learns of each change one round-trip time and \
         half a feedback interval late.",
        MAX_GAP.as_secs_f64(),
        WINDOW.as_millis()
    );
    Definition { term: "Curves".into(), text }
}

fn rate_changes() -> Definition {
    let text = format!(
        "Changes of the target bitrate in the run of the first seed. Changes in the same \
         direction and for the same reason are merged if they follow each other within {} s. If \
         there are more changes than a report can hold, the run is divided into equal spans of \
         time, and the largest change of each span is shown.",
        MERGED.as_secs_f64()
    );
    Definition { term: "Rate changes".into(), text }
}
