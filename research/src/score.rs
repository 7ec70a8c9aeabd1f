//! Scores a run: how much worse it is than what is possible.
//!
//! ```text
//! regret =  rate:      share of the possible rate that was not reached
//!         + delay:     0.5 x (p95 of network and sender together - 60 ms) / 100 ms, at most 0.5
//!         + loss:      20 x loss beyond the path's own, at most 1
//!         + fairness:  1.5 x (1/3 - lowest over highest share)
//!         + response:  0.3 x seconds beyond the goal after a rise, at most 1
//! ```
//!
//! No term is negative: nothing is won by taking more than the share. Beside TCP there is no term
//! of delay, because TCP makes the queue. The first 3 s of each flow do not count.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use weir::units::{TimeDelta, Timestamp};
use weir_controllers::LabController;
use weir_metrics::{QualityMeter, mean, percentile};
use weir_net::Seed;
use weir_scenario::oracle::{Possible, mean_loss, on_wire};
use weir_scenario::variation;
use weir_scenario::{Flow, Scenario, Traffic};
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::waits::{self, Sender};

/// Time after the start of a flow that does not count.
const START: TimeDelta = TimeDelta::from_secs(3);
/// A share below this part of the one before is a fall.
const FALL: f64 = 0.7;
/// Time after a fall in which delays do not count: nobody can know of a fall before feedback.
const AFTER_FALL: TimeDelta = TimeDelta::from_secs(2);
/// Delay of network and sender together that costs nothing, and the excess that costs all, ms.
const DELAY_FREE: f64 = 60.0;
const DELAY_SPAN: f64 = 100.0;
/// Weights of the terms.
const DELAY_WEIGHT: f64 = 0.5;
const LOSS_WEIGHT: f64 = 20.0;
const FAIRNESS_WEIGHT: f64 = 1.5;
const RESPONSE_WEIGHT: f64 = 0.3;
/// Smallest fair ratio of two shares [RFC8868 §3].
const FAIR: f64 = 1.0 / 3.0;
/// A share above this multiple of the one before is a rise.
const RISE: f64 = 1.2;
/// Time that a rise must last to count.
const RISE_LASTS: TimeDelta = TimeDelta::from_secs(5);
/// Part of the new share that must arrive, over this time.
const REACHED: f64 = 0.9;
const REACHED_OVER: usize = 10;

/// The score of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Scenario id.
    pub scenario: String,
    /// Family: the name of the scenario's folder.
    pub family: String,
    /// Name of the controller.
    pub controller: String,
    /// Seed of the run.
    pub seed: u64,
    /// Rate that the flows under the controller received together, Mbit/s.
    pub rate_mbps: f64,
    /// The rate of the oracle, Mbit/s.
    pub possible_mbps: f64,
    /// Their fair share of the path, Mbit/s.
    pub available_mbps: f64,
    /// Largest p95 of the delay in the network's queue over these flows, ms.
    pub network_ms: f64,
    /// Largest p95 of the delay in the sender's queue over these flows, ms.
    pub sender_ms: f64,
    /// Largest p95 over these flows of the time until what waits in the sender has left, ms. Unlike
    /// the two delays before it all of the run counts, except outages of a link that are longer
    /// than 1 s. No term of the regret.
    pub waits_ms: f64,
    /// Loss beyond the path's own.
    pub loss_ratio: f64,
    /// Lowest over highest received share of all flows that compete; `None` for one flow alone.
    pub fairness: Option<f64>,
    /// Mean time beyond the goal after rises of the share, s; `None` without rises.
    pub response_s: Option<f64>,
    /// Mean good time of these flows, of those with `quality`. It is no term of the regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_ratio: Option<f64>,
    /// The regret. 0 is as good as the oracle.
    pub regret: f64,
    /// Its terms: rate, delay, loss, fairness, response.
    pub terms: [f64; 5],
}

#[cfg(test)]
impl Score {
    /// A score of which only the regret counts.
    pub(crate) fn of_regret(scenario: &str, controller: &str, seed: u64, regret: f64) -> Self {
        let family = scenario.rsplit('/').nth(1).expect("a scenario in a folder");
        Self {
            scenario: scenario.into(),
            family: family.into(),
            controller: controller.into(),
            seed,
            rate_mbps: 1.0,
            possible_mbps: 1.0,
            available_mbps: 1.0,
            network_ms: 0.0,
            sender_ms: 0.0,
            waits_ms: 0.0,
            loss_ratio: 0.0,
            good_ratio: None,
            fairness: None,
            response_s: None,
            regret,
            terms: [regret, 0.0, 0.0, 0.0, 0.0],
        }
    }
}

/// What a flow did, from its rows.
#[derive(Default)]
struct Meter {
    /// Bits received in each row of the run.
    received: Vec<f64>,
    sent_packets: u64,
    lost_packets: u64,
    network_ms: Vec<f64>,
    sender_ms: Vec<f64>,
    /// The sender at the end of each row of the run.
    sender: Vec<Sender>,
    seen: QualityMeter,
}

impl Meter {
    fn push(&mut self, row: &Row, flow: &Flow, falls: &[Timestamp]) {
        let index = index(row.time).saturating_sub(1);
        if let Some(bits) = self.received.get_mut(index) {
            *bits = row.received.as_bits() as f64;
            let queued = row.send_queue.unwrap_or_default().as_bytes() as f64;
            self.sender[index] = Sender { queued, sent: row.sent.as_bytes() as f64 };
        }
        if row.time <= flow.start + START {
            return;
        }
        self.seen.push(row.time, &row.video.unwrap_or_default(), row.seen.as_ref());
        self.sent_packets += row.sent_packets;
        self.lost_packets += row.lost_packets;
        if is_after_fall(row.time, falls) {
            return;
        }
        self.network_ms.extend(row.queuing_delay.map(TimeDelta::as_millis_f64));
        let wait = row.send_queue.zip(row.pacing_rate.filter(|rate| rate.as_bps() > 0));
        self.sender_ms.extend(wait.map(|(queue, rate)| (queue / rate).as_millis_f64()));
    }

    fn bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        let to = index(to).min(self.received.len());
        self.received[index(from).min(to)..to].iter().sum()
    }
}

fn index(time: Timestamp) -> usize {
    ((time - Timestamp::ZERO).as_nanos().max(0) / ROW_INTERVAL.as_nanos()) as usize
}

/// Simulates a run and scores it. `None` if no flow is under the controller, or if `stop` was set.
pub fn score(
    scenario: &Scenario,
    controller: &LabController,
    seed: u64,
    possible: &[Option<Possible>],
    stop: &AtomicBool,
) -> Option<Score> {
    let rows = index(Timestamp::ZERO + scenario.duration);
    let mut meters = Vec::new();
    for _ in &scenario.flows {
        let sender = vec![Sender::default(); rows];
        meters.push(Meter { received: vec![0.0; rows], sender, ..Meter::default() });
    }
    let falls: Vec<Vec<Timestamp>> =
        possible.iter().map(|of| of.as_ref().map_or_else(Vec::new, falls)).collect();
    let config = scenario.sim_config(controller);
    let Ok(is_whole) = weir_sim::run_in_parts(&config, Seed::new(seed), stop, |part| {
        for row in &part.rows {
            meters[row.flow].push(row, &scenario.flows[row.flow], &falls[row.flow]);
        }
        Ok::<(), Infallible>(())
    });
    if !is_whole {
        return None;
    }
    let good = meters.iter_mut().map(|meter| meter.seen.finish().good_ratio).collect();
    let run = Run { scenario, possible, meters: &meters, good };
    run.score(controller.name(), seed)
}

/// What the oracle reaches on a wired scenario with a standing queue of `hold` seconds: its rate
/// relative to the share of all flows under the controller, and the largest p95 of its delay in ms,
/// both over the time that a score counts. `None` in a cell, or if no flow is under the controller.
pub fn oracle_with_queue(scenario: &Scenario, hold: f64) -> Option<(f64, f64)> {
    if scenario.access.is_some() {
        return None;
    }
    let (mut bits, mut shared, mut worst) = (0.0, 0.0, 0.0_f64);
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.traffic.media().is_none_or(|media| media.controller.is_some()) {
            continue;
        }
        let of = on_wire(scenario, index, hold)?;
        let (from, to) = counted(scenario, flow);
        bits += of.bits(from, to);
        shared += of.shared_bits(from, to);
        let falls = falls(&of);
        let mut delays = Vec::new();
        for (step, delay) in of.delay.iter().enumerate() {
            let time = Timestamp::ZERO + of.step * step as i64;
            if from < time && time <= to && !is_after_fall(time, &falls) {
                delays.push(delay * 1e3);
            }
        }
        delays.sort_by(f64::total_cmp);
        worst = worst.max(percentile(&delays, 0.95).unwrap_or(0.0));
    }
    if shared > 0.0 { Some((bits / shared, worst)) } else { None }
}

/// The time of a flow that a score counts.
fn counted(scenario: &Scenario, flow: &Flow) -> (Timestamp, Timestamp) {
    (flow.start + START, flow.stop.min(Timestamp::ZERO + scenario.duration))
}

fn is_after_fall(time: Timestamp, falls: &[Timestamp]) -> bool {
    falls.iter().any(|fall| *fall < time && time <= *fall + AFTER_FALL)
}

/// The family of a scenario: the name of its folder.
pub fn family(id: &str) -> &str {
    let parts: Vec<&str> = id.split('/').collect();
    let file = parts.iter().position(|part| part.ends_with(".toml")).unwrap_or(1);
    file.checked_sub(1).and_then(|folder| parts.get(folder)).copied().unwrap_or("")
}

struct Run<'a> {
    scenario: &'a Scenario,
    possible: &'a [Option<Possible>],
    meters: &'a [Meter],
    /// Good time of each flow.
    good: Vec<Option<f64>>,
}

impl Run<'_> {
    fn score(&self, controller: &str, seed: u64) -> Option<Score> {
        let mut own: Vec<usize> = (0..self.meters.len()).collect();
        own.retain(|&flow| {
            self.scenario.flows[flow]
                .traffic
                .media()
                .is_some_and(|media| media.controller.is_none())
        });
        let first = *own.first()?;
        let (mut received, mut possible, mut available, mut seconds) = (0.0, 0.0, 0.0, 0.0_f64);
        for &flow in &own {
            let (from, to) = counted(self.scenario, &self.scenario.flows[flow]);
            received += self.meters[flow].bits(from, to);
            possible += self.possible[flow].as_ref().map_or(0.0, |of| of.bits(from, to));
            available += self.possible[flow].as_ref().map_or(0.0, |of| of.shared_bits(from, to));
            seconds = seconds.max((to - from).as_secs_f64());
        }
        let network_ms = self.largest_p95(&own, |meter| &meter.network_ms);
        let sender_ms = self.largest_p95(&own, |meter| &meter.sender_ms);
        let waits_ms = own.iter().map(|&flow| self.waits_ms(flow)).fold(0.0, f64::max);
        let loss_ratio = own.iter().map(|&flow| self.loss(flow)).fold(0.0, f64::max);
        let beside_tcp = self.scenario.flows.iter().any(|flow| {
            let of = &self.scenario.flows[first];
            flow.direction == of.direction && matches!(flow.traffic, Traffic::Tcp(_))
        });
        let excess = (network_ms + sender_ms - DELAY_FREE) / DELAY_SPAN;
        let fairness = self.fairness(first);
        let response_s = self.response(&own);
        let terms = [
            if possible > 0.0 { (1.0 - received / possible).max(0.0) } else { 0.0 },
            if beside_tcp { 0.0 } else { DELAY_WEIGHT * excess.clamp(0.0, 1.0) },
            (LOSS_WEIGHT * loss_ratio).min(1.0),
            FAIRNESS_WEIGHT * fairness.map_or(0.0, |ratio| (FAIR - ratio).max(0.0)),
            (RESPONSE_WEIGHT * response_s.unwrap_or(0.0)).min(1.0),
        ];
        Some(Score {
            scenario: self.scenario.id.clone(),
            family: family(&self.scenario.id).into(),
            controller: controller.into(),
            seed,
            rate_mbps: received / seconds.max(1.0) / 1e6,
            possible_mbps: possible / seconds.max(1.0) / 1e6,
            available_mbps: available / seconds.max(1.0) / 1e6,
            network_ms,
            sender_ms,
            waits_ms,
            loss_ratio,
            fairness,
            response_s,
            good_ratio: mean(own.iter().filter_map(|&flow| self.good[flow]).collect()),
            regret: terms.iter().sum(),
            terms,
        })
    }

    fn largest_p95(&self, flows: &[usize], values: fn(&Meter) -> &Vec<f64>) -> f64 {
        let mut largest = 0.0_f64;
        for &flow in flows {
            let mut sorted = values(&self.meters[flow]).clone();
            sorted.sort_by(f64::total_cmp);
            largest = largest.max(percentile(&sorted, 0.95).unwrap_or(0.0));
        }
        largest
    }

    /// The p95 of the waits of a flow outside of long outages of its links.
    fn waits_ms(&self, flow: usize) -> f64 {
        let of = &self.scenario.flows[flow];
        let [from, to] = [of.start, of.stop].map(index);
        let rows = &self.meters[flow].sender;
        let to = to.min(rows.len());
        let from = from.min(to);
        let mut outages = Vec::new();
        for hop in &self.scenario.hops[of.hops.clone()] {
            let capacity = &hop.link(of.direction).capacity;
            let bits = variation::bits(capacity, self.scenario.duration).unwrap_or_default();
            outages.extend(variation::outages(bits.get(from..to).unwrap_or_default()));
        }
        waits::p95_outside(&waits::waits_ms(&rows[from..to]), &outages).unwrap_or(0.0)
    }

    /// Loss of a flow beyond the loss that its links have of their own.
    fn loss(&self, flow: usize) -> f64 {
        let meter = &self.meters[flow];
        if meter.sent_packets == 0 {
            return 0.0;
        }
        let of = &self.scenario.flows[flow];
        let hops = &self.scenario.hops[of.hops.clone()];
        let links = hops.iter().map(|hop| hop.link(of.direction));
        let arrives: f64 = links.map(|link| 1.0 - mean_loss(&link.loss)).product();
        (meter.lost_packets as f64 / meter.sent_packets as f64 - (1.0 - arrives)).max(0.0)
    }

    /// Lowest over highest received share of the flows that compete with a flow, while all are
    /// active. A media flow's share is relative to what it could reach; a TCP flow's is relative to
    /// the highest share of a media flow, since it could reach as much.
    fn fairness(&self, first: usize) -> Option<f64> {
        let of = &self.scenario.flows[first];
        let mut flows = Vec::new();
        let (mut from, mut to) = (Timestamp::ZERO, Timestamp::ZERO + self.scenario.duration);
        for (index, flow) in self.scenario.flows.iter().enumerate().take(self.meters.len()) {
            let lasts = match &flow.traffic {
                Traffic::Media(_) => true,
                Traffic::Tcp(tcp) => tcp.short.is_none(),
                _ => false,
            };
            if lasts && flow.direction == of.direction {
                flows.push(index);
                (from, to) = (from.max(flow.start + START), to.min(flow.stop));
            }
        }
        if flows.len() < 2 {
            return None;
        }
        let mut shares = Vec::new();
        for &index in &flows {
            shares.push(self.possible[index].as_ref().map_or(0.0, |of| of.shared_bits(from, to)));
        }
        let most = shares.iter().copied().fold(0.0, f64::max);
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for (&index, &share) in flows.iter().zip(&shares) {
            let ratio = self.meters[index].bits(from, to) / if share > 0.0 { share } else { most };
            (low, high) = (low.min(ratio), high.max(ratio));
        }
        if most > 0.0 && high > 0.0 { Some(low / high) } else { None }
    }

    /// Mean seconds beyond the goal until the flows reached a share that had risen.
    fn response(&self, own: &[usize]) -> Option<f64> {
        let mut late = Vec::new();
        for &flow in own {
            let Some(possible) = &self.possible[flow] else { continue };
            for Rise { at, until, ratio, share } in rises(possible) {
                let goal = goal_s(possible.lag, ratio);
                let window = REACHED_OVER as f64 * ROW_INTERVAL.as_secs_f64();
                let (first, last) = (index(at), index(until).min(self.meters[flow].received.len()));
                let rows = &self.meters[flow].received[first.min(last)..last];
                let reached = rows
                    .windows(REACHED_OVER)
                    .position(|rows| rows.iter().sum::<f64>() / window >= REACHED * share)
                    .map(|row| (row + REACHED_OVER) as f64 * ROW_INTERVAL.as_secs_f64());
                let took = reached.unwrap_or((until - at).as_secs_f64());
                late.push((took - goal).max(0.0));
            }
        }
        if !late.is_empty() { Some(late.iter().sum::<f64>() / late.len() as f64) } else { None }
    }
}

/// A rise of a flow's share.
struct Rise {
    at: Timestamp,
    /// The next change.
    until: Timestamp,
    /// New over old share.
    ratio: f64,
    share: f64,
}

/// Longest time that a rise may take: 1.5 s, six times the oracle's lag, or what steps of 9.5 %
/// each 100 ms need, if that is longer.
fn goal_s(lag: TimeDelta, ratio: f64) -> f64 {
    (6.0 * lag.as_secs_f64()).max(1.5).max(0.4 + libm::log(ratio) / libm::log(1.095) * 0.1)
}

/// Spans in which the share is constant: start and value.
fn levels(possible: &Possible) -> Vec<(Timestamp, f64)> {
    let mut levels: Vec<(Timestamp, f64)> = Vec::new();
    for (step, &share) in possible.share.iter().enumerate() {
        if levels.last().is_none_or(|last| last.1 != share) {
            levels.push((Timestamp::ZERO + possible.step * step as i64, share));
        }
    }
    levels.push((Timestamp::ZERO + possible.step * possible.share.len() as i64, f64::NAN));
    levels
}

fn rises(possible: &Possible) -> Vec<Rise> {
    let levels = levels(possible);
    let mut found = Vec::new();
    for three in levels.windows(3) {
        let ((_, before), (at, share), (until, _)) = (three[0], three[1], three[2]);
        if before > 0.0 && share >= before * RISE && until - at >= RISE_LASTS {
            found.push(Rise { at, until, ratio: share / before, share });
        }
    }
    found
}

fn falls(possible: &Possible) -> Vec<Timestamp> {
    let levels = levels(possible);
    let falls = levels.windows(2).filter(|pair| pair[1].1 < pair[0].1 * FALL);
    falls.map(|pair| pair[1].0).collect()
}

#[cfg(test)]
mod tests {
    use weir_controllers::LabAlgorithm;

    use super::*;
    use weir_scenario::oracle::possible;
    use weir_scenario::parse;

    fn run(text: &str, controller: LabAlgorithm) -> Score {
        let scenario = parse("runs/steps/7.toml", text, None).unwrap();
        let possible = possible(&scenario, 1);
        score(&scenario, &controller.into(), 1, &possible, &AtomicBool::new(false)).unwrap()
    }

    const TEXT: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"40s\"\n\
        [network.up]\ncapacity = [[\"0s\", \"1Mbps\"], [\"20s\", \"2Mbps\"]]\ndelay = \"25ms\"\n\
        [network.down]\ndelay = \"25ms\"\n[media]\nmax_bitrate = \"3Mbps\"\n[[flow]]\n";

    #[test]
    fn a_slow_controller_regrets_the_rate_and_the_response() {
        let (slow, fast) = (run(TEXT, LabAlgorithm::Gcc2013), run(TEXT, LabAlgorithm::Sluice));
        assert_eq!((slow.family.as_str(), slow.seed), ("steps", 1));
        // From 3 s on: 17 s of 1 Mbit/s, and 20 s of 2 Mbit/s less 70 ms of half of it.
        assert!((slow.possible_mbps - (17.0 + 40.0 - 0.07) / 37.0).abs() < 1e-9, "{slow:?}");
        assert!(slow.terms[0] > 0.3 && slow.response_s > Some(5.0), "{slow:?}");
        assert!(fast.terms[0] < 0.1 && fast.response_s < Some(1.0), "{fast:?}");
        assert!((slow.regret - slow.terms.iter().sum::<f64>()).abs() < 1e-12);
        assert_eq!(fast.fairness, None);
    }

    #[test]
    fn a_run_whose_flow_has_quality_has_its_good_time_beside_the_regret() {
        assert_eq!(run(TEXT, LabAlgorithm::Sluice).good_ratio, None);
        let seen = TEXT.replace(
            "[media]\n",
            "[call.video]\nwidth = 640\nheight = 360\ncontent = \"film\"\n[media]\n\
             source = { kind = \"encoder\", fps = 30 }\nrepair = { nack = true }\n\
             quality = true\n",
        );
        let score = run(&seen, LabAlgorithm::Sluice);
        assert!(score.good_ratio > Some(0.5), "{score:?}");
        assert!((score.regret - score.terms.iter().sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn a_flow_that_takes_all_is_unfair_but_not_better() {
        let beside = format!("{TEXT}[[flow]]\ncontroller = \"gcc-2013\"\n");
        let alone = run(&beside, LabAlgorithm::Scream);
        assert!(alone.fairness < Some(0.3) && alone.terms[3] > 0.0, "{alone:?}");
        assert!(alone.terms[0] < 0.05, "{alone:?}");
    }

    #[test]
    fn an_oracle_with_a_queue_trades_delay_for_rate() {
        let scenario = parse("x.toml", TEXT, None).unwrap();
        let [(none, least), (held, more)] =
            [0.0, 0.04].map(|hold| oracle_with_queue(&scenario, hold).unwrap());
        // 17 s at 1 Mbit/s, 20 s at 2 Mbit/s, 70 ms of the rise unused.
        assert!((none - (57.0 - 0.07) / 57.0).abs() < 1e-9 && least == 0.0, "{none} {least}");
        assert!((held - (57.0 - 0.07 + 0.04) / 57.0).abs() < 1e-9, "{held}");
        assert!((more - 40.0).abs() < 1e-6, "{more}");
    }

    #[test]
    fn loss_of_the_path_itself_is_nobody_s_fault() {
        let lossy =
            TEXT.replace("delay = \"25ms\"\n[network.down]", "loss = \"5%\"\n[network.down]");
        let score = run(&lossy, LabAlgorithm::GccDraft);
        assert!(score.loss_ratio < 0.01, "{score:?}");
    }

    #[test]
    fn a_rise_has_the_goal_of_the_issue() {
        let ms = TimeDelta::from_millis;
        assert_eq!(goal_s(ms(100), 1.5), 1.5);
        assert_eq!(goal_s(ms(400), 1.5), 6.0 * 0.4);
        assert!((goal_s(ms(100), 7.5) - 2.620_3).abs() < 1e-3);
    }

    #[test]
    fn a_family_is_a_folder() {
        assert_eq!(family("gen/validate/steps/201.toml"), "steps");
        assert_eq!(family("rfc8867/5.1/owd100"), "rfc8867");
        assert_eq!(family("mine.toml"), "");
    }
}
