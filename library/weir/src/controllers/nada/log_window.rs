//! Counts lost, marked and delayed packets among those sent in the last `LOGWIN` [NADA §5.1.2].
//!
//! The window ends at the newest packet that feedback has reported. It is measured in send time,
//! because a lost packet has no arrival time. Counters are updated as packets enter and leave, so
//! the cost per packet does not depend on the size of the window.

use alloc::collections::VecDeque;

use crate::units::{TimeDelta, Timestamp};

/// Maximum number of packets in the window: 1 Gbit/s of 960 bytes each for 500 ms.
const MAX_PACKETS: usize = 1 << 16;

/// What feedback reported about one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) lost: bool,
    pub(super) marked: bool,
    /// `d_fwd - d_base` was at least `QEPS` when the packet arrived.
    pub(super) delayed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence_number: i64,
    send_time: Timestamp,
    reported: Reported,
}

/// The packets of the window, and the counts of each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct LogWindow {
    /// Sorted by sequence number.
    entries: VecDeque<Entry>,
    lost: usize,
    marked: usize,
    delayed: usize,
}

impl LogWindow {
    /// Adds the report on a packet. A second report on the same packet replaces the first.
    pub(super) fn on_packet(
        &mut self,
        sequence_number: i64,
        send_time: Timestamp,
        reported: Reported,
        length: TimeDelta,
    ) {
        let entry = Entry { sequence_number, send_time, reported };
        match self.entries.back() {
            Some(newest) if sequence_number <= newest.sequence_number => {
                match self.entries.binary_search_by_key(&sequence_number, |e| e.sequence_number) {
                    Ok(at) => {
                        let old = core::mem::replace(&mut self.entries[at].reported, reported);
                        self.uncount(old);
                        self.count(reported);
                    }
                    // The packet is older than the window.
                    Err(0) => {}
                    Err(at) => {
                        self.entries.insert(at, entry);
                        self.count(reported);
                    }
                }
            }
            _ => {
                self.entries.push_back(entry);
                self.count(reported);
            }
        }
        let newest = self.entries.back().map_or(send_time, |newest| newest.send_time);
        while let Some(oldest) = self.entries.front().copied()
            && (oldest.send_time <= newest - length || self.entries.len() > MAX_PACKETS)
        {
            self.entries.pop_front();
            self.uncount(oldest.reported);
        }
    }

    /// NADA-D18: what was seen of the delay was no queue.
    pub(super) fn forget_delays(&mut self) {
        for entry in &mut self.entries {
            entry.reported.delayed = false;
        }
        self.delayed = 0;
    }

    fn count(&mut self, reported: Reported) {
        self.lost += usize::from(reported.lost);
        self.marked += usize::from(reported.marked);
        self.delayed += usize::from(reported.delayed);
    }

    fn uncount(&mut self, reported: Reported) {
        self.lost -= usize::from(reported.lost);
        self.marked -= usize::from(reported.marked);
        self.delayed -= usize::from(reported.delayed);
    }

    /// `p_inst` for losses, 0.0..=1.0.
    pub(super) fn loss_ratio(&self) -> f64 {
        self.share(self.lost)
    }

    /// `p_inst` for ECN marks, 0.0..=1.0.
    pub(super) fn marking_ratio(&self) -> f64 {
        self.share(self.marked)
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.entries.len().max(1) as f64
    }

    /// Whether any packet in the window is lost.
    pub(super) fn has_loss(&self) -> bool {
        self.lost > 0
    }

    /// Whether any packet in the window was marked.
    pub(super) fn has_mark(&self) -> bool {
        self.marked > 0
    }

    /// Whether any packet in the window arrived while the queuing delay was at least `QEPS`.
    pub(super) fn has_delay(&self) -> bool {
        self.delayed > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: TimeDelta = TimeDelta::from_millis(500);
    const FINE: Reported = Reported { lost: false, marked: false, delayed: false };
    const LOST: Reported = Reported { lost: true, ..FINE };

    /// Packet `number` was sent at `number` times 10 ms.
    fn feed(window: &mut LogWindow, number: i64, reported: Reported) {
        window.on_packet(number, Timestamp::from_millis(10 * number), reported, LENGTH);
    }

    // [NADA §5.1.2]
    #[test]
    fn ratios_count_the_packets_of_the_last_500_ms() {
        let mut window = LogWindow::default();
        feed(&mut window, 0, LOST);
        feed(&mut window, 1, Reported { marked: true, delayed: true, ..FINE });
        for number in 2..50 {
            feed(&mut window, number, FINE);
        }
        assert_eq!(window.loss_ratio(), 1.0 / 50.0);
        assert_eq!(window.marking_ratio(), 1.0 / 50.0);
        feed(&mut window, 50, FINE);
        assert_eq!(window.loss_ratio(), 0.0);
        assert!(!window.has_loss() && window.marking_ratio() > 0.0 && window.has_delay());
        feed(&mut window, 51, FINE);
        assert!(window.marking_ratio() == 0.0 && !window.has_delay());
    }

    // NADA-D5
    #[test]
    fn a_packet_that_turns_up_is_no_longer_lost() {
        let mut window = LogWindow::default();
        feed(&mut window, 0, FINE);
        feed(&mut window, 1, LOST);
        feed(&mut window, 2, FINE);
        assert_eq!(window.loss_ratio(), 1.0 / 3.0);
        feed(&mut window, 1, FINE);
        assert!(!window.has_loss());
        feed(&mut window, 3, LOST);
        feed(&mut window, 3, FINE);
        assert!(!window.has_loss(), "the newest packet too");
    }

    #[test]
    fn a_report_that_comes_late_finds_its_place_or_is_too_old() {
        let mut window = LogWindow::default();
        for number in [100, 102] {
            feed(&mut window, number, FINE);
        }
        feed(&mut window, 101, LOST);
        feed(&mut window, 3, LOST);
        assert_eq!(window.loss_ratio(), 1.0 / 3.0);
    }

    #[test]
    fn an_empty_window_has_ratios_of_zero() {
        assert_eq!(LogWindow::default().loss_ratio(), 0.0);
    }

    #[test]
    fn memory_is_bounded_when_time_stands_still() {
        let mut window = LogWindow::default();
        for number in 0..100_000 {
            window.on_packet(number, Timestamp::ZERO, LOST, LENGTH);
        }
        assert_eq!((window.entries.len(), window.lost), (MAX_PACKETS, MAX_PACKETS));
    }
}
