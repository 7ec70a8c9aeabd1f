//! Findings that say the same, or the opposite, of the same seconds become one.

use crate::found::{Evidence, Found, Part, RuleName};
use crate::judge::call::Call;
use crate::judge::rules::{FILLS, LONG_RTT_MS, LOSS, LOWERED};
use crate::measure::samples::SampledStream;

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
    found: Vec<Found>,
) -> Vec<Found> {
    let found = without_contradictions(connections, random_loss, found);
    one_for_each_connection(found)
}

/// What a finding of one rule means beside those of others.
fn without_contradictions(
    connections: &Connections,
    loses_without_queue: Option<f64>,
    found: Vec<Found>,
) -> Vec<Found> {
    let mut kept = Vec::new();
    for finding in &found {
        if !found.iter().any(|other| explains(connections, other, finding)) {
            kept.push(finding.clone());
            continue;
        }
        // Single packets say that packets are lost beside the queue as well.
        let is_sent_loss = finding.rule() == RuleName::Loss && finding.subject.is_sent();
        if let Some(lost) = loses_without_queue.filter(|_| is_sent_loss) {
            kept.push(Found { evidence: Evidence::RandomLoss { lost }, ..finding.clone() });
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
fn explains(connections: &Connections, other: &Found, finding: &Found) -> bool {
    use RuleName::{
        AirTime, Bandwidth, Capacity, Decoder, Delay, FarLoss, FewFrames, Freeze, Hole,
        Interruption, Late, Loss, LossRule, NotDecoded, NotEncoded, NotSent, NothingReceived,
        OneWay, PictureSize, Processor, Recovery, SmallPicture, Source, Stall, StartUp, StreamEnds,
        Underestimate,
    };
    if shared(other, finding) <= SAME {
        return false;
    }
    if !is_same_path(other, finding) && !have_one_server(connections, other, finding) {
        return false;
    }
    let is_one_stream = other.subject == finding.subject;
    // What is lost on one way does nothing to the frames of the other.
    let is_one_way = other.subject.is_sent() == finding.subject.is_sent();
    match (other.rule(), finding.rule()) {
        (Capacity, Loss | LossRule) => true,
        // A round trip does not say which way its packets wait; the sender's estimate does.
        (Capacity, Capacity) => {
            finding.subject.is_sent() && !other.subject.is_sent() && is_far_from_full(finding)
        }
        // If the round trip is long even without a queue, both findings are true.
        (Capacity, Delay) => !is_long(connections, finding) || overflows(other),
        // A device that is too slow answers late, as a cell without air does.
        (Processor, AirTime) => true,
        // Pauses make round trips long, and controllers cautious.
        (AirTime, Delay) => !is_long(connections, finding),
        (Capacity | AirTime | Underestimate, Recovery | StartUp) => is_one_stream,
        // What holds the estimate down says more than the browser does.
        (
            Capacity | AirTime | Underestimate | Loss | LossRule | Recovery | StartUp | Delay
            | Processor | PictureSize,
            Bandwidth,
        ) => true,
        // A buffer is long because packets wait on their way, or are sent again.
        (Capacity | AirTime | Loss | Delay, Late) => true,
        (StreamEnds | OneWay, NothingReceived) => is_one_stream,
        (Interruption | Stall, NothingReceived | Late | FewFrames) => true,
        (NotDecoded, Decoder | Late) | (Decoder, Late) => is_one_stream,
        // Frames that lack packets cannot be decoded.
        (Capacity | Loss | FarLoss | AirTime, NotDecoded) => is_one_way,
        (Freeze, NotDecoded) => is_one_stream,
        (SmallPicture | Capacity, FewFrames) => true,
        // Of a time without reports, only means are known.
        (
            Hole,
            FewFrames | NothingReceived | NotDecoded | NotEncoded | NotSent | Decoder | Late
            | Source,
        ) => true,
        _ => false,
    }
}

/// Share of the finding's time that the other finding covers.
fn shared(other: &Found, finding: &Found) -> f64 {
    let from = other.from_s.max(finding.from_s);
    let to = other.to_s.min(finding.to_s);
    (to - from).max(0.0) / (finding.to_s - finding.from_s).max(f64::MIN_POSITIVE)
}

/// Whether a sent stream uses little of its estimate, nothing lowers this, and nothing is lost: so
/// no queue of its own way stands there for seconds.
fn is_far_from_full(capacity: &Found) -> bool {
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
fn is_same_path(a: &Found, b: &Found) -> bool {
    let [ssrc, other_ssrc] = [a, b].map(|it| it.subject.stream().map(|stream| stream.ssrc));
    a.subject.connection() == b.subject.connection() || ssrc.is_some() && ssrc == other_ssrc
}

/// Whether the connections of two findings lead to the same server, as those of one who publishes
/// and subscribes do: by their round trips, since addresses are not read.
fn have_one_server(connections: &Connections, a: &Found, b: &Found) -> bool {
    let [a, b] = [a, b].map(|it| base_rtt_ms(connections, it));
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() < SAME_RTT_MS)
}

/// Smallest round-trip time of the connection of a finding.
fn base_rtt_ms(connections: &Connections, finding: &Found) -> Option<f64> {
    let name = finding.subject.connection()?;
    let mut all = connections.iter().filter_map(|streams| streams.first());
    all.find(|stream| stream.id.connection == name)?.base_rtt_ms
}

fn is_long(connections: &Connections, finding: &Found) -> bool {
    base_rtt_ms(connections, finding).is_some_and(|ms| ms >= LONG_RTT_MS)
}

/// Whether far more was sent than the estimate. Then the queue was never empty, and the smallest
/// round-trip time says nothing about the path.
pub(crate) fn overflows(capacity: &Found) -> bool {
    matches!(&capacity.evidence, Evidence::Capacity(path) if path.overflows)
}

/// Streams of one connection and direction that share a cause share a finding: that of the stream
/// which carries most, because the others say less.
fn one_for_each_connection(found: Vec<Found>) -> Vec<Found> {
    let mut kept: Vec<Found> = Vec::new();
    for finding in found {
        let twin = kept.iter_mut().find(|other| is_twin(other, &finding));
        let Some(other) = twin else {
            kept.push(finding);
            continue;
        };
        let also = other.also + 1;
        let is_same_direction = finding.subject.is_sent() == other.subject.is_sent();
        if is_same_direction && carried(&finding) > carried(other) {
            *other = finding;
        }
        other.also = also;
    }
    kept
}

fn carried(finding: &Found) -> f64 {
    finding.samples.iter().map(|it| it.rate_kbps).sum()
}

fn is_twin(a: &Found, b: &Found) -> bool {
    matches!(a.part(), Part::Network | Part::Controller)
        && a.rule() == b.rule()
        // A round trip is one of both directions.
        && (a.rule() == RuleName::Delay || a.subject.is_sent() == b.subject.is_sent())
        && shared(a, b) >= SAME
        && shared(b, a) >= SAME
        && is_same_path(a, b)
}
