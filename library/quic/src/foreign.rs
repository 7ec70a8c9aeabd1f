//! The part of the delay that is not the flow's own: waits of ACKs on the way back, above all.
//!
//! A time from an ACK contains both ways. But a queue that the flow itself keeps at the bottleneck
//! drains while the flow pauses, as a source of frames does many times a second: after a pause, a
//! packet waits that much less. If the delay does not fall over the pauses, then the own queue was
//! empty before their ends, and what is left of the delay there is another's.

use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Shorter pauses are not told from jitter.
const MIN_PAUSE: TimeDelta = TimeDelta::from_millis(3);
/// The link may be this much slower than the controller takes it for.
const SLOWER: f64 = 1.5;
/// Pauses of this length are forgotten by 63 %.
const MEMORY: TimeDelta = TimeDelta::from_millis(500);
/// Falls that an own queue would have had, before they count as evidence.
const EVIDENCE_MS: f64 = 20.0;
/// An own queue has this part of its falls at least; jitter takes some.
const OWN_FALLS: f64 = 0.5;
/// The lowest delay after so many pauses is another's.
const PAUSES: usize = 8;

/// Finds the part of the delay that is another's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreign {
    /// Send time and delay of the last packet whose delay is exact.
    last: Option<(Timestamp, TimeDelta)>,
    /// Bytes sent from that packet on.
    since: DataSize,
    /// Falls seen over pauses, and those of an own queue, in ms.
    fell: f64,
    expected: f64,
    /// Delays after the last pauses.
    after: [TimeDelta; PAUSES],
    pauses: usize,
    part: TimeDelta,
}

impl Foreign {
    /// A packet was sent whose delay is a guess, or is not known.
    pub(crate) fn skip(&mut self, size: DataSize) {
        self.since += size;
    }

    /// This packet's delay above the lowest one is exact. Packets come in the order of sending;
    /// `rate` is what the controller takes for the capacity.
    pub(crate) fn on_packet(
        &mut self,
        sent: Timestamp,
        size: DataSize,
        delay: TimeDelta,
        rate: Bitrate,
    ) {
        let since = core::mem::replace(&mut self.since, size);
        if let Some((before, last)) = self.last.replace((sent, delay)) {
            let gap = sent - before;
            // What was sent before takes its time.
            let pause = gap - since / rate * SLOWER;
            if pause > MIN_PAUSE {
                self.on_pause(gap, pause.min(last), last - delay, delay);
            }
        }
        self.part = self.part.min(delay);
    }

    fn on_pause(&mut self, gap: TimeDelta, own: TimeDelta, fell: TimeDelta, delay: TimeDelta) {
        let keeps = 1.0 / (1.0 + gap.as_millis_f64() / MEMORY.as_millis_f64());
        let own = own.as_millis_f64();
        self.fell = self.fell * keeps + fell.as_millis_f64().clamp(-own, own);
        self.expected = self.expected * keeps + own;
        self.after[self.pauses % PAUSES] = delay;
        self.pauses += 1;
        let stands = self.fell.abs() < self.expected * OWN_FALLS;
        let is_foreign = self.expected > EVIDENCE_MS && stands;
        if self.pauses >= PAUSES && is_foreign {
            let least = self.after.iter().min().copied().unwrap_or(TimeDelta::ZERO);
            self.part = self.part.max(least);
        }
    }

    /// The part of a delay that is another's.
    pub(crate) fn part(&self) -> TimeDelta {
        self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    /// Frames of three packets, 33 ms apart, over a link that takes 2 ms for a packet. Returns
    /// the part after a second; `wait` is what the packet at this time waits, of the own queue and
    /// of all.
    fn part_after(wait: impl Fn(i64) -> i64) -> TimeDelta {
        let mut foreign = Foreign::default();
        for frame in 0..60 {
            for packet in 0..3 {
                let ms = frame * 33 + packet * 2;
                let sent = Timestamp::ZERO + MS(ms);
                let size = DataSize::from_bytes(1_250);
                foreign.on_packet(sent, size, MS(wait(ms)), Bitrate::from_kbps(5_000));
            }
        }
        foreign.part()
    }

    #[test]
    fn a_delay_that_no_pause_lowers_is_anothers() {
        assert_eq!(part_after(|_| 200), MS(200));
        // It grows as slowly as a download's window.
        assert!(part_after(|ms| 100 + ms / 50) > MS(120));
    }

    #[test]
    fn a_queue_that_drains_in_pauses_is_the_flows_own() {
        // Two packets each 33 ms leave, and three come: a frame of 6 ms, then 27 ms of draining.
        assert_eq!(part_after(|ms| 50 + (ms % 33).min(4) * 6 - (ms % 33) / 2), TimeDelta::ZERO);
    }

    #[test]
    fn a_delay_that_goes_is_forgotten_at_once() {
        assert_eq!(part_after(|ms| if ms < 1_500 { 200 } else { 0 }), TimeDelta::ZERO);
    }

    #[test]
    fn a_queue_that_grows_over_pauses_is_not_anothers() {
        assert_eq!(part_after(|ms| ms), TimeDelta::ZERO);
    }
}
