//! How the path carried each packet, and what follows about its capacity.
//!
//! A packet that reached the bottleneck before its predecessor left it waited behind it. So the
//! time between the two arrivals is what the bottleneck took for the second one. Such *trains*
//! measure the capacity without any knowledge of its queue, and short ones happen in every call:
//! the packets of a frame leave faster than most paths carry them.

use weir::units::{TimeDelta, Timestamp};

use super::passage::{CapacityMeasurement, Passage, WAITED};
use super::play::{Event, play};
use super::{PacketLog, rivals};
use crate::read::dump::StreamDirection;

/// Time over which trains are added up to one measurement.
const WINDOW: TimeDelta = TimeDelta::from_millis(1_000);
/// A window needs trains of this length altogether, and of this many packets.
const LEAST_BUSY: TimeDelta = TimeDelta::from_millis(100);
const LEAST_PACKETS: u32 = 10;
/// Longest time over which trains are added up if they are rare.
const LONGEST: TimeDelta = TimeDelta::from_secs(3);
/// How long a packet must have waited in the modelled queue: the step of an event log's times.
const MODELLED_WAIT: TimeDelta = TimeDelta::from_millis(1);
/// How often the queue is modelled, each time with the rate that the last one found.
const MODELLED: usize = 3;
/// Two windows whose rates differ by less have the same capacity.
const SAME: f64 = 0.15;
/// If a packet waits longer, a queue has grown before it.
const LONG_WAIT: TimeDelta = TimeDelta::from_millis(50);
/// Packets without a queue of which a share of losses can be told.
const LEAST_FREE: u64 = 100;

/// The sent packets whose fate the far end reported, in the order in which they left.
pub(crate) fn up(log: &PacketLog) -> Vec<Passage> {
    let mut fates: Vec<Option<Option<Timestamp>>> = vec![None; log.sent.len()];
    play(log, &mut |_, event| {
        let Event::Report { report, indices } = event else { return };
        if report.arrival_times != weir::feedback::ArrivalTimes::Measured {
            return;
        }
        for packet in &report.packets {
            if let Some(index) = indices.get(packet.sequence_number) {
                fates[index] = Some(packet.arrival_time);
            }
        }
    });
    let passages = log.sent.iter().zip(fates).filter_map(|(sent, fate)| {
        Some(Passage { sent: sent.time, arrival: fate?, size: sent.size })
    });
    passages.collect()
}

/// The received packets that say when they were sent, in the order in which they left. Lost ones
/// are unknown here.
pub(crate) fn down(log: &PacketLog) -> Vec<Passage> {
    let passages = log.received.iter().filter_map(|it| {
        let sent = Timestamp::from_nanos(it.send_time.get()?);
        Some(Passage { sent, arrival: Some(it.time), size: it.size })
    });
    let mut all: Vec<Passage> = passages.collect();
    all.sort_by_key(|it| it.sent);
    all
}

/// What the packets of one direction met.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path {
    pub capacity: Vec<CapacityMeasurement>,
    /// Share of the packets that were lost without a queue.
    pub loss: f64,
    /// How long packets waited when the queue overflowed, or at most.
    pub queue: TimeDelta,
    pub overflowed: bool,
    /// Mean rate of the arrivals of the largest window, in bit/s.
    pub largest_bps: f64,
    /// Mean rate of all arrivals, in bit/s.
    pub mean_bps: f64,
}

/// What the packets of one direction met. `way` says which clock the times of sending have.
pub(crate) fn path(passages: &[Passage], direction: StreamDirection) -> Option<Path> {
    let delays = passages.iter().map(|it| Some(it.arrival? - it.sent));
    let base = delays.clone().flatten().min()?;
    // The log's time of a packet from the far end is that of its arrival.
    let offset = if direction == StreamDirection::Received { base } else { TimeDelta::ZERO };
    let waits: Vec<Option<TimeDelta>> = delays.map(|delay| Some(delay? - base)).collect();
    let mut path = Path { capacity: trains(passages, base, offset), ..Path::default() };
    losses(&waits, &mut path);
    path.largest_bps = largest_rate(passages);
    path.mean_bps = mean_rate(passages);
    Some(path)
}

/// Trains of one window.
#[derive(Clone, Copy, Default)]
struct Window {
    start: Timestamp,
    end: Timestamp,
    bytes: u64,
    packets: u32,
    busy: TimeDelta,
}

impl Window {
    fn rate(&self) -> Option<f64> {
        let is_enough = self.busy >= LEAST_BUSY && self.packets >= LEAST_PACKETS;
        is_enough.then(|| self.bytes as f64 * 8.0 / self.busy.as_secs_f64())
    }

    fn add(&mut self, other: &Self) {
        self.end = other.end;
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.busy += other.busy;
    }
}

/// Measures twice. Jitter makes packets wait that no queue holds, so the second time they must have
/// waited for longer than the jitter that the first time found.
fn trains(passages: &[Passage], base: TimeDelta, offset: TimeDelta) -> Vec<CapacityMeasurement> {
    let once = windows(passages, base, offset, WAITED);
    let jitter = jitter(passages, base, offset, &once);
    let mut found = long_enough(&windows(passages, base, offset, WAITED + jitter));
    // A queue is all that delays the packets of this path.
    if jitter < WAITED {
        for _ in 0..MODELLED {
            found = by_queue(passages, offset, &found);
        }
    }
    let mut measured = merged(&found);
    rivals::find(passages, base, offset, &mut measured);
    measured
}

/// The windows measured again, by the packets that waited in a queue that is served at the rates
/// that the windows have. An arrival that the log says too late makes the next packet seem to have
/// waited, and to be carried faster; the modelled queue does not know it. A window in which too
/// few packets waited stays as it is.
fn by_queue(passages: &[Passage], offset: TimeDelta, known: &[Window]) -> Vec<Window> {
    let mut found: Vec<Window> = known.to_vec();
    for window in &mut found {
        *window = Window { bytes: 0, packets: 0, busy: TimeDelta::ZERO, ..*window };
    }
    let Some(base) = path_without_queue(passages, offset, known) else { return found };
    let mut idle_from: Option<Timestamp> = None;
    let mut last: Option<Timestamp> = None;
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        let Some((at, own)) = transmission(passage, offset, known) else {
            (idle_from, last) = (None, Some(arrival));
            continue;
        };
        let earliest = passage.sent + base;
        if let (Some(idle_from), Some(last)) = (idle_from, last)
            && earliest + MODELLED_WAIT <= idle_from
        {
            found[at].bytes += u64::from(passage.size);
            found[at].packets += 1;
            found[at].busy += arrival - last;
        }
        idle_from = Some(idle_from.map_or(earliest, |it| it.max(earliest)) + own);
        last = Some(arrival);
    }
    for (window, before) in found.iter_mut().zip(known) {
        if window.rate().is_none() {
            *window = *before;
        }
    }
    found
}

/// The window of a packet, and how long its transmission takes at the window's rate.
fn transmission(
    passage: &Passage,
    offset: TimeDelta,
    windows: &[Window],
) -> Option<(usize, TimeDelta)> {
    let start = window_of(passage, offset);
    let at = windows.partition_point(|window| window.end <= start);
    let window = windows.get(at).filter(|window| window.start <= start)?;
    let own = f64::from(passage.size) * 8.0 / window.rate()?;
    Some((at, TimeDelta::from_secs_f64(own)))
}

/// What the fastest packet took, apart from its transmission.
fn path_without_queue(
    passages: &[Passage],
    offset: TimeDelta,
    windows: &[Window],
) -> Option<TimeDelta> {
    let mut least: Option<TimeDelta> = None;
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        let Some((_, own)) = transmission(passage, offset, windows) else { continue };
        let took = arrival - passage.sent - own;
        least = Some(least.map_or(took, |least| least.min(took)));
    }
    least
}

/// Start of the window of a time of sending.
fn window_of(passage: &Passage, offset: TimeDelta) -> Timestamp {
    let index = (passage.sent + offset).as_nanos().div_euclid(WINDOW.as_nanos());
    Timestamp::from_nanos(index * WINDOW.as_nanos())
}

/// One window for each second in which something was sent.
fn windows(
    passages: &[Passage],
    base: TimeDelta,
    offset: TimeDelta,
    waited: TimeDelta,
) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut last: Option<Timestamp> = None;
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        let start = window_of(passage, offset);
        if windows.last().is_none_or(|window| window.start != start) {
            windows.push(Window { start, end: start + WINDOW, ..Window::default() });
        }
        if let Some(before) = last
            && passage.sent + base + waited <= before
            && before <= arrival
            && let Some(window) = windows.last_mut()
        {
            window.bytes += u64::from(passage.size);
            window.packets += 1;
            window.busy += arrival - before;
        }
        last = Some(last.map_or(arrival, |before| before.max(arrival)));
    }
    windows
}

/// What nine of ten packets that waited behind no other took longer than the fastest, apart from
/// their own transmission.
fn jitter(
    passages: &[Passage],
    base: TimeDelta,
    offset: TimeDelta,
    windows: &[Window],
) -> TimeDelta {
    let mut rates: Vec<f64> = windows.iter().filter_map(Window::rate).collect();
    rates.sort_by(f64::total_cmp);
    let Some(usual) = rates.get(rates.len() / 2).copied() else { return TimeDelta::ZERO };
    let mut found: Vec<TimeDelta> = Vec::new();
    let mut last: Option<Timestamp> = None;
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        if last.is_none_or(|before| passage.sent + base >= before) {
            let start = window_of(passage, offset);
            let at = windows.partition_point(|window| window.start < start);
            let rate = windows.get(at).and_then(Window::rate).unwrap_or(usual);
            let own = TimeDelta::from_secs_f64(f64::from(passage.size) * 8.0 / rate);
            found.push(arrival - passage.sent - base - own);
        }
        last = Some(last.map_or(arrival, |before| before.max(arrival)));
    }
    found.sort_unstable();
    found.get(found.len() * 9 / 10).copied().unwrap_or_default().max(TimeDelta::ZERO)
}

/// Windows without enough trains wait for those of the next few.
fn long_enough(windows: &[Window]) -> Vec<Window> {
    let mut found = Vec::new();
    let mut open: Option<Window> = None;
    for window in windows {
        let mut whole = match open.take().filter(|it| window.end - it.start <= LONGEST) {
            Some(mut open) => {
                open.add(window);
                open
            }
            None => *window,
        };
        if whole.rate().is_some() {
            whole.end = window.end;
            found.push(whole);
        } else {
            open = Some(whole);
        }
    }
    found
}

/// Adjacent windows with nearly the same rate are one measurement.
fn merged(windows: &[Window]) -> Vec<CapacityMeasurement> {
    let mut found: Vec<(Window, CapacityMeasurement)> = Vec::new();
    for window in windows {
        let Some(rate) = window.rate() else { continue };
        match found.last_mut() {
            Some((whole, last)) if (rate / last.bps - 1.0).abs() < SAME => {
                whole.add(window);
                last.to = window.end;
                last.bps = whole.bytes as f64 * 8.0 / whole.busy.as_secs_f64();
                last.range_bps = (last.range_bps.0.min(rate), last.range_bps.1.max(rate));
            }
            _ => {
                let (from, to) = (window.start, window.end);
                let measured = CapacityMeasurement {
                    from,
                    to,
                    bps: rate,
                    range_bps: (rate, rate),
                    rivals_bps: None,
                };
                found.push((*window, measured));
            }
        }
    }
    found.into_iter().map(|(_, measured)| measured).collect()
}

/// Losses while packets waited long belong to the queue; the others to the path. The neighbours
/// that arrived say how long a lost packet would have waited.
fn losses(waits: &[Option<TimeDelta>], path: &mut Path) {
    let (mut lost, mut free) = (0_u64, 0_u64);
    let mut overflows: Vec<TimeDelta> = Vec::new();
    let mut following = vec![TimeDelta::ZERO; waits.len()];
    let mut after = TimeDelta::ZERO;
    for (at, wait) in waits.iter().enumerate().rev() {
        after = wait.unwrap_or(after);
        following[at] = after;
    }
    let mut before = TimeDelta::ZERO;
    for (wait, after) in waits.iter().zip(following) {
        let Some(own) = wait else {
            let longest = before.max(after);
            if longest < LONG_WAIT {
                (lost, free) = (lost + 1, free + 1);
            } else {
                overflows.push(longest);
            }
            continue;
        };
        before = *own;
        free += u64::from(*own < LONG_WAIT);
    }
    if free >= LEAST_FREE {
        path.loss = lost as f64 / free as f64;
    }
    overflows.sort_unstable();
    path.overflowed = !overflows.is_empty();
    path.queue = match overflows.get(overflows.len() / 2) {
        Some(median) => *median,
        None => waits.iter().flatten().max().copied().unwrap_or_default(),
    };
}

fn mean_rate(passages: &[Passage]) -> f64 {
    let mut arrived = passages.to_vec();
    arrived.retain(|it| it.arrival.is_some());
    let bytes: u64 = arrived.iter().map(|it| u64::from(it.size)).sum();
    let (first, last) =
        (arrived.iter().map(|it| it.sent).min(), arrived.iter().map(|it| it.sent).max());
    match (first, last) {
        (Some(first), Some(last)) if last > first => {
            bytes as f64 * 8.0 / (last - first).as_secs_f64()
        }
        _ => 0.0,
    }
}

fn largest_rate(passages: &[Passage]) -> f64 {
    let mut windows: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        let window = arrival.as_nanos().div_euclid(WINDOW.as_nanos());
        *windows.entry(window).or_default() += u64::from(passage.size);
    }
    let largest = windows.values().max().copied().unwrap_or_default();
    largest as f64 * 8.0 / WINDOW.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of ten packets of 1000 bytes every 100 ms, sent within 10 ms, over this capacity and
    /// 20 ms.
    fn frames(kbps: fn(i64) -> i64) -> Vec<Passage> {
        let mut free = 0;
        let packets = (0..600).map(|index| {
            let sent = index / 10 * 100_000 + index % 10 * 1_000;
            let begin = free.max(sent);
            free = begin + 8_000_000 / kbps(sent);
            Passage {
                sent: Timestamp::from_micros(sent),
                arrival: Some(Timestamp::from_micros(free + 20_000)),
                size: 1_000,
            }
        });
        packets.collect()
    }

    #[test]
    fn trains_measure_the_capacity_of_a_path_that_is_not_full() {
        // 800 kbit/s are sent over 2 Mbit/s.
        let path = path(&frames(|_| 2_000), StreamDirection::Sent).unwrap();
        let [measured] = path.capacity[..] else { panic!("{path:?}") };
        assert!((1.95e6..2.05e6).contains(&measured.bps), "{measured:?}");
        assert_eq!((path.loss, path.overflowed), (0.0, false));
    }

    #[test]
    fn a_change_of_the_capacity_is_seen() {
        let kbps = |sent| if sent < 3_000_000 { 2_000 } else { 1_000 };
        let path = path(&frames(kbps), StreamDirection::Sent).unwrap();
        let [before, after] = path.capacity[..] else { panic!("{path:?}") };
        assert!((1.95e6..2.05e6).contains(&before.bps) && (0.97e6..1.03e6).contains(&after.bps));
        assert_eq!(after.from, Timestamp::from_secs(3));
    }

    #[test]
    fn losses_with_a_queue_and_without_one_are_told_apart() {
        let mut free = frames(|_| 20_000);
        (0..free.len()).step_by(20).for_each(|at| free[at].arrival = None);
        let path_of = |passages: &[Passage]| path(passages, StreamDirection::Sent).unwrap();
        let free = path_of(&free);
        assert_eq!((free.loss, free.overflowed), (0.05, false));
        let mut full = frames(|_| 700);
        (300..full.len()).step_by(20).for_each(|at| full[at].arrival = None);
        let full = path_of(&full);
        assert!(full.loss == 0.0 && full.overflowed && full.queue > LONG_WAIT, "{full:?}");
    }

    /// Frames of five packets of 1200 bytes every 33 ms over 2 Mbit/s and 20 ms. From the fifth
    /// second on, either another packet stands before every second one, or the path has half of its
    /// capacity.
    fn shared_frames(shared: bool) -> Vec<Passage> {
        let mut free = 0;
        let mut found = Vec::new();
        for index in 0..900 {
            let sent = index / 5 * 66_000 + index % 5 * 1_000;
            let mut took = 4_800;
            if sent >= 5_000_000 {
                took *= if shared { 1 + 2 * (index % 2) } else { 2 };
            }
            free = free.max(sent) + took;
            let arrival = Some(Timestamp::from_micros(free + 20_000));
            found.push(Passage { sent: Timestamp::from_micros(sent), arrival, size: 1_200 });
        }
        found
    }

    #[test]
    fn others_between_the_packets_leave_some_as_fast_as_before() {
        let path = path(&shared_frames(true), StreamDirection::Sent).unwrap();
        let [before, after] = path.capacity[..] else { panic!("{path:?}") };
        assert_eq!(before.rivals_bps, None);
        let rivals = after.rivals_bps.unwrap();
        assert!((rivals + after.bps - 2e6).abs() < 0.05e6, "{after:?}");
    }

    #[test]
    fn a_capacity_that_falls_slows_each_packet() {
        let path = path(&shared_frames(false), StreamDirection::Sent).unwrap();
        assert!(path.capacity.len() > 1, "{path:?}");
        assert!(path.capacity.iter().all(|it| it.rivals_bps.is_none()), "{path:?}");
    }
}
