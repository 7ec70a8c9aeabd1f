//! What a sender could reach on a scenario that knows its schedule, but each change only as late as
//! feedback could report it.
//!
//! ```text
//! capacities, other traffic, limits -> share of each flow -+-> fluid queue -> possible rate, delay
//!                     round-trip time, feedback interval --+
//! ```
//!
//! On a wired path the share of a flow is max-min fair among all that compete. The sender learns of
//! a new share one round-trip time and half a feedback interval later. Until then it sends at the
//! old one: after a rise it leaves capacity unused, after a fall it builds a queue, which it then
//! drains. In a cell there is no schedule. There a flow of constant rate takes the place of the
//! controller, and what arrives is what the cell can carry.
//!
//! The result is reachable with this knowledge. It is not proven that nothing better is.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::LossModel;
use weir_sim::trace::ROW_INTERVAL;

use crate::variation::constant_rates;
use crate::{Flow, Media, QuicSource, Scenario, Source, Traffic};

/// Step of the fluid model.
const TICK: TimeDelta = TimeDelta::from_millis(10);
/// Rate of audio [RFC8867 §5], bit/s.
const AUDIO: f64 = 20_000.0;

/// What a flow could reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Possible {
    /// Length of a step.
    pub step: TimeDelta,
    /// Its fair share of the path in each step, bit/s.
    pub share: Vec<f64>,
    /// The rate that the oracle delivers in each step, bit/s.
    pub rate: Vec<f64>,
    /// Delay of the oracle's own queue in each step, s.
    pub delay: Vec<f64>,
    /// When the oracle learns of a change: this long after it.
    pub lag: TimeDelta,
}

impl Possible {
    /// Bits that the oracle delivers between two times.
    pub fn bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        let (from, to) = (self.index(from), self.index(to));
        self.rate[from.min(to)..to].iter().sum::<f64>() * self.step.as_secs_f64()
    }

    /// Bits of the share between two times.
    pub fn shared_bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        let (from, to) = (self.index(from), self.index(to));
        self.share[from.min(to)..to].iter().sum::<f64>() * self.step.as_secs_f64()
    }

    /// The share at a time, bit/s.
    pub fn share_at(&self, time: Timestamp) -> f64 {
        self.share.get(self.index(time)).or(self.share.last()).copied().unwrap_or(0.0)
    }

    fn index(&self, time: Timestamp) -> usize {
        let step = (time - Timestamp::ZERO).as_nanos() / self.step.as_nanos();
        (step.max(0) as usize).min(self.rate.len())
    }
}

/// What each media flow of a scenario could reach; `None` for other flows. `seed` is that of the
/// run: a cell's chance depends on it.
pub fn possible(scenario: &Scenario, seed: u64) -> Vec<Option<Possible>> {
    match scenario.access {
        Some(_) => in_cell(scenario, seed),
        None => (0..scenario.flows.len()).map(|flow| on_wire(scenario, flow, 0.0)).collect(),
    }
}

/// Like [`possible`] on a wired path, for an oracle that keeps a queue of `hold` seconds standing.
/// `None` if the flow is not media.
pub fn on_wire(scenario: &Scenario, flow: usize, hold: f64) -> Option<Possible> {
    let own = &scenario.flows[flow];
    let media = own.traffic.media()?;
    let steps = (scenario.duration.as_nanos() / TICK.as_nanos()) as usize;
    let times = (0..steps).map(|step| Timestamp::ZERO + TICK * step as i64);
    let share: Vec<f64> = times.clone().map(|time| share(scenario, flow, time)).collect();
    let lag = lag(scenario, own);
    let lag_steps = (lag.as_nanos() / TICK.as_nanos()).max(1) as usize;
    let start = media.settings.limits.start().as_bps_f64();
    let tick_s = TICK.as_secs_f64();
    let (mut sent, mut queues, mut active) = (vec![0.0; steps], vec![0.0; steps + 1], 0_usize);
    let (mut rate, mut delay) = (Vec::with_capacity(steps), Vec::with_capacity(steps));
    for ((step, &now), time) in share.iter().enumerate().zip(times) {
        active = if is_active(own, time) { active + 1 } else { 0 };
        // Before its first feedback the sender knows nothing of the path.
        let (known, seen) = match active > lag_steps {
            true => (share[step - lag_steps], step - lag_steps),
            false => (start, step),
        };
        // The queue as the sender believes it to be: what it was when the feedback left, and what
        // came and went since if the capacity has not changed again.
        let mut believed = queues[seen];
        for sent in &sent[seen..step] {
            believed = (believed + (sent - known) * tick_s).max(0.0);
        }
        let wanted = known + (hold * known - believed) / tick_s;
        if active > 0 {
            sent[step] = wanted.clamp(0.0, demand(media, time).max(known));
        }
        let queued = queues[step];
        let served = now.min(sent[step] + queued / tick_s);
        let queued = (queued + (sent[step] - served) * tick_s).max(0.0);
        queues[step + 1] = queued;
        rate.push(served);
        delay.push(if now > 0.0 { queued / now } else { 0.0 });
    }
    Some(Possible { step: TICK, share, rate, delay, lag })
}

/// Round-trip time without queues, and half a feedback interval: the mean wait for feedback.
fn lag(scenario: &Scenario, flow: &Flow) -> TimeDelta {
    let hops = &scenario.hops[flow.hops.clone()];
    let each = hops.iter().map(|hop| hop.up.delay.at(flow.start) + hop.down.delay.at(flow.start));
    let path = each.fold(flow.access_delay * 2, |sum, delay| sum + delay);
    path + scenario.feedback_interval / 2
}

fn is_active(flow: &Flow, at: Timestamp) -> bool {
    (flow.start..flow.stop).contains(&at) && !flow.pauses.iter().any(|pause| pause.contains(&at))
}

/// The most that a media flow produces at a time, bit/s.
fn demand(media: &Media, at: Timestamp) -> f64 {
    let limits = media.settings.limits;
    let limit = media.source_limit.as_ref().map_or(limits.max(), |limit| limit.rate(at));
    let most = limits.max().min(limit);
    match media.source {
        Source::Filler { cap: Some(cap), .. } | Source::Encoder { cap: Some(cap), .. } => {
            most.min(cap).as_bps_f64()
        }
        _ => most.as_bps_f64(),
    }
}

/// A flow's max-min fair share of its path at a time, bit/s: the least over its bottlenecks.
fn share(scenario: &Scenario, flow: usize, at: Timestamp) -> f64 {
    let own = &scenario.flows[flow];
    let Some(media) = own.traffic.media().filter(|_| is_active(own, at)) else { return 0.0 };
    let mut least = demand(media, at);
    for hop in own.hops.clone() {
        let link = scenario.hops[hop].link(own.direction);
        // What is lost before the queue does not arrive, whatever the capacity.
        least *= 1.0 - mean_loss(&link.loss);
        let Some(capacity) = link.rate(at) else { continue };
        let (mut left, mut wants) = (capacity.as_bps_f64(), Vec::new());
        for other in scenario.flows.iter().filter(|other| other.hops.contains(&hop)) {
            if other.direction != own.direction || !is_active(other, at) {
                continue;
            }
            match &other.traffic {
                Traffic::Media(media) => {
                    wants.push((demand(media, at), media.settings.priority));
                }
                Traffic::Quic(quic) => match other.traffic.media() {
                    Some(media) => wants.push((demand(media, at), media.settings.priority)),
                    None if quic.source == QuicSource::Bulk => wants.push((f64::INFINITY, 1.0)),
                    None => wants.push((demand(&quic.media, at), 1.0)),
                },
                Traffic::Tcp(tcp) if tcp.short.is_none() => wants.push((f64::INFINITY, 1.0)),
                Traffic::Udp(udp) => left -= udp.rate.rate(at).as_bps_f64(),
                Traffic::Audio => left -= AUDIO,
                Traffic::Tcp(_) | Traffic::Link => {}
            }
        }
        least = least.min(fair(left.max(0.0), &wants, media.settings.priority));
    }
    least
}

/// The largest share that a flow of this weight gets where each flow, with its demand and weight,
/// gets no more than its demand, and no flow can get more without another of less getting less.
pub fn fair(capacity: f64, wants: &[(f64, f64)], weight: f64) -> f64 {
    let mut sorted = wants.to_vec();
    sorted.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (mut left, mut weights) = (capacity, sorted.iter().map(|want| want.1).sum::<f64>());
    for (demand, own) in sorted {
        if demand / own * weights > left {
            return left / weights * weight;
        }
        left -= demand;
        weights -= own;
    }
    f64::INFINITY
}

/// Mean ratio of a link's own loss.
pub fn mean_loss(loss: &LossModel) -> f64 {
    match loss {
        LossModel::None => 0.0,
        LossModel::Random(probability) => *probability,
        LossModel::GilbertElliott(model) => model.mean_loss(),
    }
}

/// Measures a cell with flows of constant rate in place of the media flows.
fn in_cell(scenario: &Scenario, seed: u64) -> Vec<Option<Possible>> {
    let mut offered = Vec::new();
    for flow in &scenario.flows {
        let most = flow.traffic.media().map(|media| demand(media, flow.start) as u64);
        offered.push(most.map(Bitrate::from_bps));
    }
    let rates = constant_rates(scenario, seed, &offered);
    scenario.flows.iter().zip(rates).map(|(flow, rate)| reached(scenario, flow, rate)).collect()
}

fn row_of(time: Timestamp) -> usize {
    ((time - Timestamp::ZERO).as_nanos() / ROW_INTERVAL.as_nanos()) as usize
}

/// What a flow reached in the rows of a cell.
fn reached(scenario: &Scenario, flow: &Flow, rate: Vec<f64>) -> Option<Possible> {
    flow.traffic.media()?;
    // Rows of a cell vary by chance. Only their mean is a share.
    let share = rate.get(row_of(flow.start)..row_of(flow.stop).min(rate.len()))?;
    let mean = share.iter().sum::<f64>() / share.len().max(1) as f64;
    let (share, delay) = (vec![mean; rate.len()], vec![0.0; rate.len()]);
    Some(Possible { step: ROW_INTERVAL, share, rate, delay, lag: lag(scenario, flow) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// 50 ms each way and a feedback interval of 50 ms: a lag of 125 ms, 12 whole steps.
    fn scenario(up: &str, flows: &str) -> Scenario {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
             [network.up]\n{up}\ndelay = \"50ms\"\n[network.down]\ndelay = \"50ms\"\n\
             [media]\nmin_bitrate = \"100kbps\"\nstart_bitrate = \"300kbps\"\n\
             max_bitrate = \"5Mbps\"\n{flows}"
        );
        parse("x.toml", &text, None).unwrap()
    }

    fn at(s: f64) -> Timestamp {
        Timestamp::ZERO + TimeDelta::from_secs_f64(s)
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6 * expected.abs().max(1.0), "{value}, {expected}");
    }

    #[test]
    fn a_constant_link_is_filled_once_it_is_known() {
        let of = on_wire(&scenario("capacity = \"1Mbps\"", "[[flow]]"), 0, 0.0).unwrap();
        assert_eq!(of.lag, TimeDelta::from_millis(125));
        // 12 steps of 10 ms at 300 kbit/s, then 1 Mbit/s.
        near(of.bits(at(0.0), at(1.0)), 0.12 * 3e5 + 0.88 * 1e6);
        near(of.bits(at(3.0), at(60.0)), 57e6);
        near(of.delay.iter().copied().fold(0.0, f64::max), 0.0);
    }

    #[test]
    fn a_rise_is_used_late_and_a_fall_fills_the_queue() {
        let up = "capacity = [[\"0s\", \"1Mbps\"], [\"20s\", \"2Mbps\"], [\"40s\", \"500kbps\"]]";
        let of = on_wire(&scenario(up, "[[flow]]"), 0, 0.0).unwrap();
        // 120 ms at the old rate of 1 Mbit/s, then 2 Mbit/s.
        near(of.bits(at(20.0), at(21.0)), 0.12 * 1e6 + 0.88 * 2e6);
        // 120 ms at 2 Mbit/s into 500 kbit/s leave 180 kbit in the queue: 360 ms. They leave at
        // 500 kbit/s while the sender is silent, so nothing of the capacity is lost.
        near(of.bits(at(40.0), at(42.0)), 1e6);
        near(of.delay.iter().copied().fold(0.0, f64::max), 0.36);
        near(of.delay[4_100], 0.0);
    }

    #[test]
    fn a_queue_that_is_held_delivers_through_a_rise() {
        let up = "capacity = [[\"0s\", \"1Mbps\"], [\"20s\", \"2Mbps\"]]";
        let of = on_wire(&scenario(up, "[[flow]]"), 0, 0.04).unwrap();
        near(of.delay[1_900], 0.04);
        // The 40 kbit of the queue leave as well during the 120 ms.
        near(of.bits(at(20.0), at(20.12)), 0.12 * 1e6 + 0.04 * 1e6);
    }

    #[test]
    fn flows_share_fairly_and_the_limits_of_one_are_the_others_gain() {
        let two = scenario(
            "capacity = \"3Mbps\"\nloss = \"10%\"",
            "[[flow]]\n[[flow]]\nmax_bitrate = \"500kbps\"\n[[flow]]\nkind = \"tcp\"\n\
             start = \"30s\"\n[[flow]]\nkind = \"udp\"\nrate = \"500kbps\"\nstart = \"40s\"",
        );
        let first = on_wire(&two, 0, 0.0).unwrap();
        // 10 % of at most 5 Mbit/s and 500 kbit/s are lost before the queue; the link has room for
        // the rest.
        near(first.share_at(at(10.0)), 2.5e6);
        near(first.share_at(at(35.0)), 1.25e6);
        near(first.share_at(at(50.0)), 1e6);
        near(on_wire(&two, 1, 0.0).unwrap().share_at(at(10.0)), 0.45e6);
        assert_eq!(on_wire(&two, 2, 0.0), None);
    }

    #[test]
    fn weights_divide_the_link() {
        near(fair(3e6, &[(9e6, 1.0), (9e6, 2.0)], 2.0), 2e6);
        near(fair(3e6, &[(0.5e6, 1.0), (9e6, 2.0)], 2.0), 2.5e6);
        assert_eq!(fair(3e6, &[(1e6, 1.0)], 1.0), f64::INFINITY);
    }

    #[test]
    fn a_cell_is_measured() {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"5s\"\n\
             [network]\nkind = \"wifi\"\n[network.station.sta]\nrate = 7\n\
             [media]\nmax_bitrate = \"2Mbps\"\n[[flow]]\nstation = \"sta\"\n";
        let cell = parse("x.toml", text, None).unwrap();
        let of = possible(&cell, 1).remove(0).unwrap();
        // One station at 65 Mbit/s carries far more than the flow asks for.
        let mbps = of.bits(at(1.0), at(5.0)) / 4e6;
        assert!((1.95..2.05).contains(&mbps), "{mbps}");
    }
}
