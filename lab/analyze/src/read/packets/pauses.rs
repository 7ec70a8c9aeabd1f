//! Times in which a path that had packets to carry delivered none: the pauses of a radio cell.
//!
//! In a Wi-Fi or cellular cell, all share the air, and signals fade. Meanwhile packets wait, and
//! then they arrive at the full rate of the link: the wait grows by the whole pause, and is soon
//! over. A link of its own that is too slow also makes packets wait, but it delivers
//! all the time, and what waits goes on waiting. Traffic of others in the same queue delays the
//! packets behind it, too, and these keep their wait.

use weir::units::{TimeDelta, Timestamp};

use super::passage::Passage;
use crate::read::dump::StreamDirection;

/// Shortest pause: nearly twice the time between two frames. Of our ten known networks, none of
/// wires has a single one, TCP in the same queue and jitter included.
pub(crate) const PAUSE: TimeDelta = TimeDelta::from_millis(60);
/// How soon after a pause the wait must be over.
const SOON: TimeDelta = TimeDelta::from_millis(250);
/// Share of the pause by which the wait must fall in this time.
const FALLS: f64 = 0.6;

/// A time without a delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pause {
    /// When the packet that waited left or arrived, in the log's time.
    pub at: Timestamp,
    pub length: TimeDelta,
}

/// The pauses of a path. `way` says which of a packet's times is of the log's clock.
pub(crate) fn pauses(passages: &[Passage], direction: StreamDirection) -> Vec<Pause> {
    let largest = passages.iter().map(|it| it.size).max().unwrap_or_default();
    let mut arrived: Vec<(Timestamp, Timestamp)> = Vec::new();
    for passage in passages {
        // On a slow link a large packet takes longer than a small one, which is no wait.
        if passage.size >= largest / 2 {
            arrived.extend(passage.arrival.map(|arrival| (arrival, passage.sent)));
        }
    }
    arrived.sort_unstable();
    let Some(base) = arrived.iter().map(|(arrival, sent)| *arrival - *sent).min() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for index in 1..arrived.len() {
        let (arrival, sent) = arrived[index];
        let could_arrive = sent + base;
        let length = arrival - could_arrive.max(arrived[index - 1].0);
        if length < PAUSE {
            continue;
        }
        if falls_soon(&arrived[index..], base, arrival - could_arrive, length) {
            let at = if direction == StreamDirection::Sent { sent } else { arrival };
            found.push(Pause { at, length });
        }
    }
    found
}

/// Whether the wait falls by the larger part of the pause within a short time.
fn falls_soon(
    following: &[(Timestamp, Timestamp)],
    base: TimeDelta,
    wait: TimeDelta,
    length: TimeDelta,
) -> bool {
    let Some((first, _)) = following.first().copied() else { return false };
    let fall = TimeDelta::from_secs_f64(length.as_secs_f64() * FALLS);
    for (arrival, sent) in following {
        if *arrival > first + SOON {
            return false;
        }
        if *arrival - *sent - base <= wait - fall {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of five packets every 33 ms over 4 Mbit/s, which others take for `taken` ms each
    /// second. Times in us.
    fn shared(taken: i64) -> Vec<Passage> {
        let mut free = 0;
        let mut passages = Vec::new();
        for index in 0..900 {
            let sent = index / 5 * 33_000 + index % 5 * 200;
            let mut begin = free.max(sent);
            let in_second = begin % 1_000_000;
            if in_second < taken * 1_000 {
                begin += taken * 1_000 - in_second;
            }
            free = begin + 2_400;
            passages.push(Passage {
                sent: Timestamp::from_micros(sent),
                arrival: Some(Timestamp::from_micros(free + 10_000)),
                size: 1_200,
            });
        }
        passages
    }

    #[test]
    fn a_time_without_a_delivery_is_a_pause_if_what_waited_comes_fast() {
        let found = pauses(&shared(120), StreamDirection::Sent);
        assert_eq!(found.len(), 5, "{found:?}");
        for pause in &found {
            assert!((90..125).contains(&pause.length.as_millis()), "{pause:?}");
        }
        assert_eq!(pauses(&shared(20), StreamDirection::Sent), []);
    }

    #[test]
    fn a_link_that_is_too_slow_has_no_pauses() {
        let mut passages = shared(0);
        let mut free = TimeDelta::ZERO;
        for passage in &mut passages {
            // 150 kbit/s: a packet takes 64 ms.
            let sent = passage.sent - Timestamp::ZERO;
            free = free.max(sent) + TimeDelta::from_millis(64);
            passage.arrival = Some(Timestamp::ZERO + free);
        }
        assert_eq!(pauses(&passages, StreamDirection::Sent), []);
    }

    #[test]
    fn a_burst_of_others_in_the_same_queue_is_no_pause() {
        // From 2 s on, the packets behind it keep the wait.
        let mut passages = shared(0);
        for passage in &mut passages {
            if passage.sent >= Timestamp::from_secs(2) {
                passage.arrival = passage.arrival.map(|it| it + TimeDelta::from_millis(100));
            }
        }
        assert_eq!(pauses(&passages, StreamDirection::Sent), []);
    }
}
