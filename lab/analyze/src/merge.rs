//! Findings that say the same, or the opposite, of the same seconds become one.

use weir_lab::calls::file;

use crate::call::Call;
use crate::connectivity::{FAILED, INTERRUPTED, NEVER};
use crate::finding::Finding;
use crate::headroom::UNDERESTIMATE;
use crate::rules::{FILLS, LONG_RTT_MS, LOSS, LOWERED, Part, TOO_MUCH};
use crate::samples::SampledStream;

/// A finding that shares this part of its time with another one is about the same seconds.
const SAME: f64 = 0.5;
/// Connections whose smallest round-trip times differ by less lead to the same server.
const SAME_RTT_MS: f64 = 5.0;

/// The streams of each connection.
type Connections = [Vec<SampledStream>];

/// Merges and drops. The order stays. `random_loss` is that of [`random_loss`].
pub(crate) fn merged(
    connections: &Connections,
    random_loss: Option<f64>,
    found: Vec<Finding>,
) -> Vec<Finding> {
    let found = without_contradictions(connections, random_loss, found);
    one_for_each_connection(connections, found)
}

/// What a finding of one rule means beside those of others.
fn without_contradictions(
    connections: &Connections,
    loses_without_queue: Option<f64>,
    found: Vec<Finding>,
) -> Vec<Finding> {
    let mut kept = Vec::new();
    for finding in &found {
        let fuller = found.iter().find(|other| explains(connections, &other.0, &finding.0));
        match (fuller, finding.0.rule.as_str()) {
            (None, _) => kept.push(finding.clone()),
            // Single packets say that packets are lost beside the queue as well.
            (Some(_), "loss")
                if loses_without_queue.is_some() && finding.0.stream.contains(" sent ") =>
            {
                let mut both = finding.clone();
                let ratio = loses_without_queue.unwrap_or_default() * 100.0;
                both.0.says = format!(
                    "random packet loss: {ratio:.1} % of the packets that met no queue were lost"
                );
                kept.push(both);
            }
            (Some(_), _) => {}
        }
    }
    kept
}

/// Share of packets that were lost while none waited, if single packets say that it is much.
pub(crate) fn random_loss(call: &Call<'_>) -> Option<f64> {
    if call.dump.connections.iter().all(|it| it.packets.is_none()) {
        return None;
    }
    Some(call.network().up.loss).filter(|loss| *loss >= LOSS)
}

/// Whether `other` says why the finding holds, or says the opposite with better evidence.
fn explains(connections: &Connections, other: &file::Finding, finding: &file::Finding) -> bool {
    if shared(other, finding) <= SAME {
        return false;
    }
    if !is_same_path(connections, other, finding) && !have_one_server(connections, other, finding) {
        return false;
    }
    match (other.rule.as_str(), finding.rule.as_str()) {
        ("capacity", "loss" | "loss rule") => true,
        // A round trip does not say which way its packets wait; the sender's estimate does.
        ("capacity", "capacity") => {
            is_sent(finding) && !is_sent(other) && is_far_from_full(finding)
        }
        // If the round trip is long even without a queue, both findings are true.
        ("capacity", "delay") => !is_long(connections, finding) || overflows(other),
        // A device that is too slow answers late, as a cell without air does.
        ("processor", "air time") => true,
        // Pauses make round trips long, and controllers cautious.
        ("air time", "delay") => !is_long(connections, finding),
        ("capacity" | "air time" | UNDERESTIMATE, "recovery" | "start-up") => {
            other.stream == finding.stream
        }
        _ => false,
    }
}

/// Share of the finding's time that the other finding covers.
fn shared(other: &file::Finding, finding: &file::Finding) -> f64 {
    let from = other.from_s.max(finding.from_s);
    let to = other.to_s.min(finding.to_s);
    (to - from).max(0.0) / (finding.to_s - finding.from_s).max(f64::MIN_POSITIVE)
}

/// Whether a sent stream uses little of its estimate, nothing lowers this, and nothing is lost: so
/// no queue of its own way stands there for seconds.
fn is_far_from_full(capacity: &file::Finding) -> bool {
    let mut before: Option<f64> = None;
    for sample in &capacity.samples {
        let Some(estimate) = sample.estimate_kbps else { return false };
        let is_lowered = before.is_some_and(|before| estimate < LOWERED * before);
        let is_lost = sample.loss_ratio.is_some_and(|ratio| ratio >= LOSS);
        if is_lowered || is_lost || sample.rate_kbps >= FILLS * estimate {
            return false;
        }
        before = Some(estimate);
    }
    before.is_some()
}

/// Streams of one connection, or the two ends of one stream in one dump.
fn is_same_path(connections: &Connections, a: &file::Finding, b: &file::Finding) -> bool {
    let [ssrc, other_ssrc] =
        [a, b].map(|it| it.stream.split(' ').rev().find_map(|word| word.parse::<u32>().ok()));
    connection_of(connections, a) == connection_of(connections, b)
        || ssrc.is_some() && ssrc == other_ssrc
}

/// Whether the connections of two findings lead to the same server, as those of one who publishes
/// and subscribes do: by their round trips, since addresses are not read.
fn have_one_server(connections: &Connections, a: &file::Finding, b: &file::Finding) -> bool {
    let [a, b] = [a, b].map(|it| {
        let streams = &connections[connection_of(connections, it)?];
        streams.first()?.base_rtt_ms
    });
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() < SAME_RTT_MS)
}

/// Index of the connection that the stream of a finding belongs to.
fn connection_of(connections: &Connections, finding: &file::Finding) -> Option<usize> {
    let mut all = connections.iter();
    all.position(|streams| streams.iter().any(|stream| stream.name == finding.stream))
}

fn is_long(connections: &Connections, finding: &file::Finding) -> bool {
    let mut own = connections.iter().flatten().filter(|stream| stream.name == finding.stream);
    own.any(|stream| stream.base_rtt_ms.is_some_and(|ms| ms >= LONG_RTT_MS))
}

/// Whether far more was sent than the estimate. Then the queue was never empty, and the smallest
/// round-trip time says nothing about the path.
pub(crate) fn overflows(capacity: &file::Finding) -> bool {
    let mut far_more = 0;
    for sample in &capacity.samples {
        let is_more = sample.estimate_kbps.is_some_and(|it| sample.rate_kbps > TOO_MUCH * it);
        far_more += usize::from(is_more);
    }
    2 * far_more > capacity.samples.len()
}

/// Streams of one connection and direction that share a cause share a finding: that of the stream
/// which carries most, because the others say less.
fn one_for_each_connection(connections: &Connections, found: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<(Finding, usize)> = Vec::new();
    for finding in found {
        let twin = kept.iter_mut().find(|(other, _)| is_twin(connections, &other.0, &finding.0));
        match twin {
            Some((other, more)) => {
                *more += 1;
                let is_same_way = is_sent(&finding.0) == is_sent(&other.0);
                if is_same_way && carried(&finding.0) > carried(&other.0) {
                    *other = finding;
                }
            }
            None => kept.push((finding, 0)),
        }
    }
    let mut all = Vec::new();
    for (mut finding, more) in kept {
        match more {
            0 => {}
            1 => finding.0.says += "; one more stream of this connection says the same",
            _ => {
                finding.0.says += &format!("; {more} more streams of this connection say the same")
            }
        }
        all.push(finding);
    }
    all
}

fn carried(finding: &file::Finding) -> f64 {
    finding.samples.iter().map(|it| it.rate_kbps).sum()
}

fn is_sent(finding: &file::Finding) -> bool {
    finding.stream.contains(" sent ")
}

fn is_twin(connections: &Connections, a: &file::Finding, b: &file::Finding) -> bool {
    let is_path = [Part::Network, Part::Controller].iter().any(|part| part.to_string() == a.part);
    is_path
        && ![FAILED, NEVER, INTERRUPTED].contains(&a.rule.as_str())
        && a.rule == b.rule
        // A round trip is one of both directions.
        && (a.rule == "delay" || is_sent(a) == is_sent(b))
        && shared(a, b) >= SAME
        && shared(b, a) >= SAME
        && is_same_path(connections, a, b)
}
