//! What each metric of the report means.

use std::collections::BTreeSet;

use super::events::MERGED;
use super::format::Definition;
use super::series::{MAX_GAP, WINDOW};
use crate::scenario::Scenario;

/// What plots and tables of every report show.
const ALWAYS: &[(&str, &str)] = &[
    (
        "Utilization",
        "Received bits over the bits that the bottleneck could carry, both over the same time. The \
         \"link utilization\" of lund is another metric: target_utilization.",
    ),
    (
        "Received rate, throughput",
        "IP bytes that left the network for the receiver, over the time. Simulated: of the flow, \
         headers included. Real call: of its direction, RTCP, STUN and DTLS included.",
    ),
    (
        "Target bitrate",
        "What the controller asks of the media source, headers included. Real call: the browser's \
         estimate of what the path carries, from getStats.",
    ),
    ("Capacity", "What the bottleneck carries in the flow's direction."),
    (
        "Queuing delay",
        "Time that packets waited in the bottleneck's queue, the mean of those that arrived in \
         each 50 ms; in a real call, the bottleneck is the emulator's. Percentiles are over these values.",
    ),
    (
        "Round-trip time (RTT)",
        "Simulated: feedback response time, from sending a packet until the feedback on it \
         arrives, the wait for that feedback included; the shortest of each 50 ms. Real call: as \
         getStats has it, from RTCP or STUN, without such a wait.",
    ),
    ("Loss", "Packets that the network lost or dropped, over packets sent."),
    (
        "Responsiveness",
        "Time from a change of the capacity until the target differs by 250 kbit/s from what it \
         was at the change, in steps of 50 ms; mean over the changes that were answered (lund, \
         section 5.2).",
    ),
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

/// Metrics that stand in a report by their path, where a published value or finding names them.
const PATHS: &[(&str, &str)] = &[
    (
        "target_utilization",
        "Mean over 50-ms rows of target bitrate over capacity: the \"link utilization\" of lund, \
         section 5.2. It exceeds what arrives where the target exceeds the capacity. Rows of an outage, \
         with a capacity of 0, are left out.",
    ),
    ("rate_mbps.mean", "Mean received rate, Mbit/s."),
    ("rate_mbps.std", "Standard deviation of the received rate of whole seconds, Mbit/s."),
    ("loss_ratio.mean", "Packets lost over packets sent, 0 to 1, over the whole time."),
    ("loss_ratio.max", "Packets lost over packets sent, 0 to 1: the largest of any second."),
    ("responsiveness_up_s", "Responsiveness over the changes upward, in s."),
    ("responsiveness_down_s", "Responsiveness over the changes downward, in s."),
    (
        "convergence_s",
        "Time from the start, a change of the capacity or another flow's coming or going until the \
         received rate of a second first comes within 10 % of its mean over the second half of the \
         time to the next; mean over these, outages left out, in s.",
    ),
    ("target_rate_mbps", "Mean target bitrate, Mbit/s."),
    ("media_rate_mbps", "Mean received rate of media that was sent for the first time, Mbit/s."),
    ("rtt_above_min_ms", "Round-trip time above its least value of the whole run, ms."),
    ("late_rate_mbps", "Mean target bitrate over the last half of the time, Mbit/s."),
    (
        "media_utilization",
        "Received bits of media that was sent for the first time, over what the bottleneck could carry.",
    ),
    ("rtx_share", "Retransmissions over all received bytes of the video."),
    ("fec_share", "Parity packets over all received bytes of the video."),
    (
        "residual_loss_ratio",
        "Media packets that the receiver did without, repair included, over all media packets whose \
         fate was known.",
    ),
    ("frame_rate", "Frames shown a second."),
    ("frame_delay_ms", "Time of frames from capture to screen, ms, a mean each 50 ms."),
    (
        "freeze_count",
        "Times between two shown frames that were at least three times the mean of the last 30, and \
         at least 150 ms above it.",
    ),
    ("freeze_duration_s", "How long the freezes lasted together, s."),
    (
        "calls",
        "Of a real run alone, over its whole time: means over the participants, or with a or b over those \
         of that side; the forwarding server and calls that failed are left out. success_ratio: calls that \
         came about and lasted, over those that were to be made. signalling_ms, ice_ms and dtls_ms are the \
         steps of the set-up, setup_ms the three together; first_frame_ms runs from the beginning of the \
         connection until the first frame of the other peer is shown. one_way_delay_ms: of the packets of \
         the video that a participant receives, by the captures. Rates: media as IP packets, by getStats. \
         cpu_cores: processor time of the browser over wall time; memory_mb: its largest proportional set.",
    ),
];

/// The definitions that a report over runs of these scenarios needs.
pub(super) fn of<'a>(
    scenarios: impl Iterator<Item = &'a Scenario>,
    has_sim_real: bool,
    has_calls: bool,
) -> Vec<Definition> {
    let named: BTreeSet<&str> = scenarios
        .flat_map(|scenario| {
            let paper = scenario.paper.iter().map(|value| value.metric.as_str());
            paper.chain(scenario.findings.iter().map(|finding| finding.metric.as_str()))
        })
        .collect();
    let define = |&(term, text): &(&str, &str)| Definition { term: term.into(), text: text.into() };
    let mut definitions: Vec<Definition> = ALWAYS.iter().map(define).collect();
    if has_sim_real {
        definitions.push(define(&SIM_REAL));
    }
    if has_calls {
        definitions.extend(CALLS.iter().map(define));
    }
    // `frame_delay_ms` is the definition of `frame_delay_ms.p95`, too.
    let is_named = |&&(path, _): &&(&str, &str)| {
        let below = |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        named.iter().any(|name| *name == path || below(name))
    };
    definitions.extend(PATHS.iter().filter(is_named).map(define));
    definitions.push(curves());
    definitions.push(rate_changes());
    definitions
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
