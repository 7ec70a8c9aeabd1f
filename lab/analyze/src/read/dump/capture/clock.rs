//! Steps of the clock of a capture, as when NTP sets it.
//!
//! A path that stands still delays packets, and these come all at once when it moves again. If the
//! clock of the capture steps, packets go on as before at another time: the RTP time of all streams
//! falls behind by the same, and stays behind. The media clocks of both ends never do that
//! together, so two ends are a proof. Packets of one stream that come before earlier ones are
//! another.
//!
//! The time after a step is taken as right, and that of the packets before it is corrected.

use std::collections::BTreeSet;

use super::flows::{CapturedRtp, Flows};
use super::hosts::{Host, hosts};
use super::kinds;

/// A smaller step in s is one that a jitter buffer may bridge.
const LEAST_S: f64 = 0.3;
/// Packets of a stream before a step that tell where its RTP time stood, and the fewest.
const BEFORE: usize = 16;
const LEAST_BEFORE: usize = 8;
/// Time after a step in s in which packets tell where it stands then: what waited has come by the
/// begin of it.
const AFTER_S: (f64, f64) = (0.5, 1.5);
const LEAST_AFTER: usize = 4;
/// Two streams see one step if theirs differ by less, in s and as a share: packets are up to 0.1 s
/// apart, and jitter.
const SAME_S: f64 = 0.1;
const SAME: f64 = 0.01;
/// Packets of the file around a step among which those of the other streams are looked for.
const AROUND: usize = 4_096;

/// A step of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Packets of the file before it.
    pub index: usize,
    /// Time of the last packet before it, in ns, not yet corrected.
    pub until: i64,
    /// By how much it was set forward, in ns.
    pub by: i64,
}

/// A step that one stream shows.
#[derive(Clone, Copy, Debug)]
struct StreamStep {
    stream: u32,
    /// The packets of the stream around it.
    from: usize,
    to: usize,
    by_s: f64,
    /// Whether a packet came before an earlier one.
    is_back: bool,
}

/// How far the RTP time of a stream is from that of the capture.
#[derive(Clone, Debug, Default)]
struct StreamClock {
    hz: f64,
    last: Option<(usize, CapturedRtp)>,
    /// RTP time so far, in s.
    media_s: f64,
    recent: Vec<f64>,
    possible: Option<PossibleStep>,
}

/// A step that may be one.
#[derive(Clone, Debug)]
struct PossibleStep {
    step: StreamStep,
    at_s: f64,
    before_s: f64,
    after: Vec<f64>,
}

impl StreamClock {
    /// Takes a packet, and returns a step that lies behind it.
    fn add(&mut self, index: usize, packet: &CapturedRtp) -> Option<StreamStep> {
        let now_s = packet.time as f64 / 1e9;
        let Some((before_index, before)) = self.last.replace((index, *packet)) else {
            self.recent.push(now_s);
            return None;
        };
        let units = packet.timestamp.wrapping_sub(before.timestamp) as i32;
        self.media_s += f64::from(units) / self.hz;
        let offset_s = now_s - self.media_s;
        if let Some(possible) = &mut self.possible {
            let passed_s = now_s - possible.at_s;
            if (AFTER_S.0..AFTER_S.1).contains(&passed_s) {
                possible.after.push(offset_s);
            }
            return if passed_s >= AFTER_S.1 { self.settle() } else { None };
        }
        let is_known = self.recent.len() >= LEAST_BEFORE;
        let may_step = self.recent.last().is_none_or(|it| (offset_s - it).abs() >= LEAST_S / 2.0);
        let before_s = if may_step && is_known { median(&self.recent) } else { offset_s };
        let by_s = offset_s - before_s;
        if by_s.abs() >= LEAST_S {
            let is_back = packet.time < before.time - (LEAST_S * 1e9) as i64;
            let stream = packet.stream;
            let step = StreamStep { stream, from: before_index, to: index, by_s, is_back };
            self.possible = Some(PossibleStep { step, at_s: now_s, before_s, after: Vec::new() });
            return None;
        }
        if self.recent.len() == BEFORE {
            self.recent.remove(0);
        }
        self.recent.push(offset_s);
        None
    }

    /// The possible step, if the stream stayed where it was then.
    fn settle(&mut self) -> Option<StreamStep> {
        let PossibleStep { step, before_s, after, .. } = self.possible.take()?;
        self.recent.clear();
        self.recent.extend(after.iter().rev().take(BEFORE));
        let by_s = median(&after) - before_s;
        let stays = after.len() >= LEAST_AFTER && by_s.abs() >= LEAST_S;
        stays.then_some(StreamStep { by_s, ..step })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn is_same(a_s: f64, b_s: f64) -> bool {
    (a_s - b_s).abs() <= SAME_S + SAME * a_s.abs()
}

/// The steps of the clock, by their place in the file.
pub(super) fn steps(flows: &Flows) -> Vec<Step> {
    let mut clocks = stream_clocks(flows);
    let mut of_streams: Vec<StreamStep> = Vec::new();
    for (index, packet) in flows.packets().enumerate() {
        if let Some(clock) = &mut clocks[packet.stream as usize] {
            of_streams.extend(clock.add(index, packet));
        }
    }
    for clock in clocks.iter_mut().flatten() {
        of_streams.extend(clock.settle());
    }
    of_streams.sort_by_key(|it| it.to);
    let mut steps: Vec<Step> = Vec::new();
    let mut rest = &of_streams[..];
    while let Some(first) = rest.first() {
        let mut group: Vec<StreamStep> = Vec::new();
        let mut count = 0;
        for it in rest.iter().take_while(|it| it.from <= first.to) {
            count += 1;
            if is_same(first.by_s, it.by_s) {
                group.push(*it);
            }
        }
        rest = &rest[count.max(1)..];
        steps.extend(agreed(flows, &group));
    }
    steps
}

/// One for each stream whose clock is known.
fn stream_clocks(flows: &Flows) -> Vec<Option<StreamClock>> {
    let mut clocks = Vec::new();
    for stream in &flows.streams {
        let hz = if stream.is_rtp() { kinds::of(stream, &[]).clock_hz } else { None };
        clocks.push(hz.map(|hz| StreamClock { hz: hz.into(), ..StreamClock::default() }));
    }
    clocks
}

/// The step that several streams show, if it is one of the clock.
fn agreed(flows: &Flows, group: &[StreamStep]) -> Option<Step> {
    let mut ends: BTreeSet<Host> = BTreeSet::new();
    let mut by_s = Vec::new();
    let (mut from, mut to) = (0, usize::MAX);
    for it in group {
        let stream = &flows.streams[it.stream as usize];
        ends.insert(hosts(flows.paths[stream.path as usize].ends).0);
        by_s.push(it.by_s);
        (from, to) = (from.max(it.from), to.min(it.to));
    }
    let is_proved = ends.len() >= 2 || group.iter().any(|it| it.is_back);
    let by_s = median(&by_s);
    if !is_proved || contradicts(flows, group, by_s) {
        return None;
    }
    let until = flows.packets().nth(from.min(to))?.time;
    Some(Step { index: to, until, by: (by_s * 1e9) as i64 })
}

/// Whether a stream goes on over the same place of the file without the step.
fn contradicts(flows: &Flows, group: &[StreamStep], by_s: f64) -> bool {
    let Some(first) = group.first() else { return true };
    let begin = first.to.saturating_sub(AROUND);
    let mut clocks = stream_clocks(flows);
    for (index, packet) in flows.packets().enumerate().skip(begin).take(2 * AROUND) {
        let Some(clock) = &mut clocks[packet.stream as usize] else { continue };
        let Some((before, at)) = clock.last.replace((index, *packet)) else { continue };
        let is_over = before < first.to && index >= first.to;
        if !is_over || group.iter().any(|it| it.stream == packet.stream) {
            continue;
        }
        let units = packet.timestamp.wrapping_sub(at.timestamp) as i32;
        let moved_s = f64::from(units) / clock.hz;
        let passed_s = (packet.time - at.time) as f64 / 1e9;
        if (passed_s - moved_s).abs() < by_s.abs() / 2.0 && moved_s < by_s.abs() / 2.0 {
            return true;
        }
    }
    false
}

/// Corrects the times of packets, and of their streams, before the steps.
pub(super) fn correct(flows: &mut Flows, steps: &[Step]) {
    if steps.is_empty() {
        return;
    }
    for stream in &mut flows.streams {
        (stream.first, stream.last) = (i64::MAX, i64::MIN);
    }
    let mut spans: Vec<(i64, i64)> = vec![(i64::MAX, i64::MIN); flows.streams.len()];
    for (index, packet) in flows.packets_mut().enumerate() {
        packet.time += missing(steps, index);
        let span = &mut spans[packet.stream as usize];
        *span = (span.0.min(packet.time), span.1.max(packet.time));
    }
    for (stream, (first, last)) in flows.streams.iter_mut().zip(spans) {
        (stream.first, stream.last) = (first, last.max(first));
    }
}

/// What is missing in the time of what came behind so many packets of the file, in ns.
pub(super) fn missing(steps: &[Step], index: usize) -> i64 {
    steps.iter().filter(|step| index < step.index).map(|step| step.by).sum()
}

/// The same of what is known by its time alone.
pub(super) fn missing_at(steps: &[Step], time: i64) -> i64 {
    steps.iter().filter(|step| time <= step.until).map(|step| step.by).sum()
}
