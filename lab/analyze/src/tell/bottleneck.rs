//! What the path carried while it was full, for the verdict and the findings of capacity.

use crate::found::{Evidence, Found, RuleName};
use crate::judge::merge::overflows;
use crate::judge::network::{DirectionEstimate, NetworkEstimate, TestedCapacity};
use crate::read::dump::StreamDirection;
use crate::tell::says::{mbps, percent, taken};

/// A capacity below this share of what was seen otherwise fell.
const FELL: f64 = 0.75;

/// Says in the findings of capacity that the verdict speaks of what the path carried, since their
/// own rates are what a sender gave or what one stream received.
pub(crate) fn name_capacity(network: &NetworkEstimate, found: &mut [Found]) {
    for (direction, estimate) in
        [(StreamDirection::Sent, &network.up), (StreamDirection::Received, &network.down)]
    {
        let Some(index) = longest(found, RuleName::Capacity, direction) else { continue };
        let finding = &mut found[index];
        let known = bottleneck(estimate, finding).filter(|_| !overflows(finding));
        if let (Some(known), Evidence::Capacity(path)) = (known, &mut finding.evidence) {
            path.carried = Some((known.bps, known.rivals_bps));
        }
    }
}

/// The finding of a rule that lasted longest in a direction.
pub(crate) fn longest(
    found: &[Found],
    rule: RuleName,
    direction: StreamDirection,
) -> Option<usize> {
    let mut longest: Option<usize> = None;
    for (index, it) in found.iter().enumerate() {
        let is_of_direction =
            it.subject.stream().is_some_and(|stream| stream.direction == direction);
        let is_longer = longest.is_none_or(|other| it.seconds() >= found[other].seconds());
        if it.rule() == rule && is_of_direction && is_longer {
            longest = Some(index);
        }
    }
    longest
}

/// Says so if a finding is the longest of several times apart, of its connection and direction.
pub(crate) fn of_several(found: &[Found], longest: &Found) -> String {
    let mut times: Vec<&Found> = Vec::new();
    for one in found {
        let is_alike = one.rule() == longest.rule()
            && one.subject.connection() == longest.subject.connection()
            && one.subject.is_sent() == longest.subject.is_sent();
        if is_alike {
            times.push(one);
        }
    }
    times.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let (mut count, mut until_s) = (0, f64::MIN);
    for found in times {
        count += usize::from(found.from_s >= until_s);
        until_s = until_s.max(found.to_s);
    }
    if count > 1 { format!(", the longest of {count} times") } else { String::new() }
}

/// What the path carried while a finding of capacity held.
struct Bottleneck {
    /// Whether the capacity had been larger.
    fell: bool,
    bps: f64,
    /// What others took beside it; `None` if nothing shows others for most of the time.
    rivals_bps: Option<f64>,
    from_s: f64,
    to_s: f64,
}

/// `None` if the path's capacity was not tested in the time of the finding.
fn bottleneck(estimate: &DirectionEstimate, finding: &Found) -> Option<Bottleneck> {
    let mut within: Vec<&TestedCapacity> = estimate.tested.iter().collect();
    within.retain(|it| it.from_s < finding.to_s && finding.from_s < it.to_s);
    let largest =
        estimate.tested.iter().map(|it| it.bps).fold(estimate.largest_bps.unwrap_or(0.0), f64::max);
    let mut low = within.clone();
    low.retain(|it| it.bps < FELL * largest);
    let fell = low.first().is_some_and(|it| it.from_s > 1.0);
    let spans = if fell { low } else { within };
    let (first, last) = spans.first().zip(spans.last())?;
    let (mut length_s, mut bits) = (0.0, 0.0);
    let (mut shared_s, mut taken) = (0.0, 0.0);
    for tested in &spans {
        let length = tested.to_s.min(finding.to_s) - tested.from_s.max(finding.from_s);
        (length_s, bits) = (length_s + length, bits + tested.bps * length);
        if let Some(bps) = tested.rivals_bps {
            (shared_s, taken) = (shared_s + length, taken + bps * length);
        }
    }
    Some(Bottleneck {
        fell,
        bps: bits / length_s.max(f64::MIN_POSITIVE),
        rivals_bps: (2.0 * shared_s > length_s).then(|| taken / shared_s),
        from_s: first.from_s.max(finding.from_s),
        to_s: last.to_s.min(finding.to_s),
    })
}

/// `fell to 0.4 Mbit/s from 5 to 15 s`, that others shared it, or that it was full.
pub(crate) fn capacity(estimate: &DirectionEstimate, found: &Found) -> String {
    // Far more was sent than the path can carry, so what left says nothing about its capacity.
    if let Evidence::Capacity(path) = &found.evidence
        && path.overflows
    {
        let lost =
            path.lost.map(|lost| format!(" and lost {} of the packets", percent(Some(lost))));
        return format!("was full {}{}", found.span(), lost.unwrap_or_default());
    }
    let Some(Bottleneck { fell, bps, rivals_bps, from_s, to_s }) = bottleneck(estimate, found)
    else {
        let kbps = found.middle(|it| Some(it.rate_kbps)).unwrap_or_default();
        return format!("was full at {} {}", mbps(kbps * 1e3), found.span());
    };
    if let Some(rivals) = rivals_bps {
        return format!("was shared from {from_s:.0} to {to_s:.0} s: {}", taken(rivals, bps));
    }
    let verb = if fell { "fell to" } else { "was full at" };
    format!("{verb} {} from {from_s:.0} to {to_s:.0} s", mbps(bps))
}
