//! Congestion window: lowers the source bitrate while too many bytes are in flight for the target.
//!
//! Implements [LIBWEBRTC §CongestionWindowPushbackController] as Chromium configures it: the source
//! should drop frames, and the target stays.

use alloc::collections::VecDeque;

use crate::feedback::{FeedbackReport, SentPacket};
use crate::fifo::Fifo;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §CongestionWindowPushbackController].
/// The window is the data that the target bitrate sends in the minimum of the last round-trip times
/// plus this.
const QUEUE_TIME: TimeDelta = TimeDelta::from_millis(350);
const RTT_WINDOW: usize = 32;
const MIN_WINDOW: DataSize = DataSize::from_bytes(3_000);
/// Push-back does not go below this rate.
const MIN_RATE: Bitrate = Bitrate::from_kbps(30);
/// Share of the target that the source may use: a factor applies at each event. `OVERFULL` and
/// `FULL` have the fill level above which their factor applies; `GROWTH` applies otherwise. Below
/// the fill level `EMPTY` the share returns to one.
const OVERFULL: (f64, f64) = (1.5, 0.9);
const FULL: (f64, f64) = (1.0, 0.95);
const GROWTH: f64 = 1.05;
const EMPTY: f64 = 0.1;
/// Interval of timed events [LIBWEBRTC §GoogCcNetworkController].
const EVENT_INTERVAL: TimeDelta = TimeDelta::from_millis(25);
/// Every integer rate up to this one is exact as a floating-point number.
const LARGEST_EXACT: Bitrate = Bitrate::from_bps(1 << f64::MANTISSA_DIGITS);
/// A packet without feedback no longer counts as in flight after this time.
const FORGOTTEN: TimeDelta = TimeDelta::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct InFlight {
    sequence_number: i64,
    send_time: Timestamp,
    size: DataSize,
}

/// Bytes in flight, and the window that limits them.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    packets: Fifo<InFlight>,
    bytes: DataSize,
    /// The longest round-trip time of each of the last reports.
    rtts: VecDeque<TimeDelta>,
    /// The minimum of `rtts`.
    least_rtt: Option<TimeDelta>,
    window: Option<DataSize>,
    /// Target and round-trip time for which the window has converged, so that resizing has no
    /// effect.
    settled_for: Option<(Bitrate, TimeDelta)>,
    ratio: f64,
    next_event: Timestamp,
}

impl CongestionWindow {
    pub(super) fn new() -> Self {
        Self {
            packets: Fifo::default(),
            bytes: DataSize::ZERO,
            rtts: VecDeque::new(),
            least_rtt: None,
            window: None,
            settled_for: None,
            ratio: 1.0,
            next_event: Timestamp::ZERO,
        }
    }

    pub(super) fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        let SentPacket { sequence_number, size, .. } = *packet;
        self.packets.push(InFlight { sequence_number, send_time: now, size });
        self.bytes += size;
        self.remove_while(|oldest| oldest.send_time + FORGOTTEN < now);
    }

    /// Removes all packets up to the newest one in a report: they have left the path.
    pub(super) fn on_report(&mut self, report: &FeedbackReport) {
        let Some(newest) = report.packets.last().map(|packet| packet.sequence_number) else {
            return;
        };
        self.remove_while(|oldest| oldest.sequence_number <= newest);
    }

    /// Runs the timed events up to now. During that time nothing else happened. After a silence of
    /// `FORGOTTEN` more events have no effect, so they are skipped. The last time means "never":
    /// no event comes then, and none after it.
    pub(super) fn on_time(&mut self, now: Timestamp, target: Bitrate) {
        self.next_event = self.next_event.max(now - FORGOTTEN);
        while self.next_event <= now && self.next_event < Timestamp::MAX {
            self.next_event += EVENT_INTERVAL;
            self.resize(target);
            self.update();
        }
    }

    /// Takes the longest round-trip time of a report, and the target after the report.
    pub(super) fn on_rtt(&mut self, rtt: TimeDelta, target: Bitrate) {
        let gone = if self.rtts.len() == RTT_WINDOW { self.rtts.pop_front() } else { None };
        self.rtts.push_back(rtt);
        self.least_rtt = match self.least_rtt {
            Some(least) if gone != Some(least) => Some(least.min(rtt)),
            _ => self.rtts.iter().copied().min(),
        };
        self.resize(target);
    }

    fn resize(&mut self, target: Bitrate) {
        let Some(least) = self.least_rtt else { return };
        if self.settled_for == Some((target, least)) {
            return;
        }
        let window = target * (least + QUEUE_TIME);
        let smoothed = self
            .window
            .map_or(window, |last| DataSize::from_bytes((window + last).as_bytes().div_ceil(2)));
        let next = Some(smoothed.max(MIN_WINDOW));
        // If the window did not change now, the same inputs will not change it later.
        self.settled_for = (next == self.window).then_some((target, least));
        self.window = next;
    }

    /// Adapts the ratio to the bytes in flight; runs at each event.
    pub(super) fn update(&mut self) {
        let Some(window) = self.window else { return };
        // Fast path without the division: up to a full window, a ratio of one stays one.
        if self.ratio == 1.0 && self.bytes <= window {
            return;
        }
        let fill = self.bytes.as_bytes() as f64 / window.as_bytes() as f64;
        self.ratio = if fill > OVERFULL.0 {
            self.ratio * OVERFULL.1
        } else if fill > FULL.0 {
            self.ratio * FULL.1
        } else if fill < EMPTY {
            1.0
        } else {
            (self.ratio * GROWTH).min(1.0)
        };
    }

    /// The part of a target that the source may use.
    pub(super) fn push_back(&self, target: Bitrate) -> Bitrate {
        // Fast path for the usual case. Only above `LARGEST_EXACT` would a product with one be
        // rounded.
        if self.ratio == 1.0 && target <= LARGEST_EXACT {
            return target;
        }
        (target * self.ratio).max(target.min(MIN_RATE))
    }

    fn remove_while(&mut self, is_gone: impl Fn(&InFlight) -> bool) {
        let (mut gone, mut size) = (0, DataSize::ZERO);
        for packet in self.packets.iter().take_while(|packet| is_gone(packet)) {
            size += packet.size;
            gone += 1;
        }
        self.bytes = self.bytes.saturating_sub(size);
        self.packets.remove_first(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::{Ecn, PacketReport};

    /// A window of 1 Mbit/s times 50 + 350 ms: 50,000 B.
    fn window() -> CongestionWindow {
        let mut window = CongestionWindow::new();
        window.on_rtt(TimeDelta::from_millis(50), Bitrate::from_kbps(1_000));
        window
    }

    fn send(window: &mut CongestionWindow, number: i64, ms: i64, bytes: u64) {
        let packet = SentPacket {
            sequence_number: number,
            size: DataSize::from_bytes(bytes),
            queued: DataSize::ZERO,
            probe: None,
            padding: false,
        };
        window.on_packet_sent(Timestamp::from_millis(ms), &packet);
    }

    fn kbps_left(window: &CongestionWindow) -> f64 {
        window.push_back(Bitrate::from_kbps(1_000)).as_kbps_f64()
    }

    // [LIBWEBRTC §CongestionWindowPushbackController], the whole table.
    #[test]
    fn the_share_left_follows_how_full_the_window_is() {
        let table = [(80_000, 450.0), (60_000, 475.0), (40_000, 525.0), (4_000, 1_000.0)];
        for (bytes, expect) in table {
            let mut window = window();
            window.ratio = 0.5;
            send(&mut window, 0, 0, bytes);
            window.update();
            assert_eq!(kbps_left(&window), expect, "{bytes} B");
        }
    }

    // [LIBWEBRTC §CongestionWindowPushbackController]
    #[test]
    fn the_window_is_averaged_with_the_last_and_takes_the_least_round_trip() {
        let mut window = window();
        assert_eq!(window.window, Some(DataSize::from_bytes(50_000)));
        window.on_rtt(TimeDelta::from_secs(9), Bitrate::from_kbps(2_000));
        assert_eq!(window.window, Some(DataSize::from_bytes(75_000)));
        (0..32).for_each(|_| window.on_rtt(TimeDelta::ZERO, Bitrate::from_bps(1)));
        assert_eq!(window.window, Some(MIN_WINDOW));
    }

    // [LIBWEBRTC §GoogCcNetworkController]
    #[test]
    fn time_alone_adapts_the_window_and_the_share_40_times_a_second() {
        let mut window = window();
        send(&mut window, 0, 0, 60_000);
        window.on_time(Timestamp::from_millis(74), Bitrate::from_kbps(1_000));
        let expect = 1_000.0 * FULL.1.powi(3);
        assert!((kbps_left(&window) - expect).abs() < 0.001, "at 0, 25 and 50 ms");
        window.on_time(Timestamp::from_millis(75), Bitrate::from_kbps(3_000));
        assert_eq!(window.window, Some(DataSize::from_bytes(100_000)));
        assert!((kbps_left(&window) - expect * GROWTH).abs() < 0.001);
        window.on_time(Timestamp::from_secs(1_000_000), Bitrate::from_kbps(3_000));
        assert_eq!(kbps_left(&window), 1_000.0);
    }

    // [LIBWEBRTC §CongestionWindowPushbackController]
    #[test]
    fn nothing_is_pushed_back_below_30_kbps() {
        let mut window = window();
        window.ratio = 0.001;
        assert_eq!(kbps_left(&window), 30.0);
        assert_eq!(window.push_back(Bitrate::from_kbps(20)), Bitrate::from_kbps(20));
    }

    #[test]
    fn a_report_or_age_takes_packets_and_all_older_ones_out_of_flight() {
        let mut window = window();
        (0..10).for_each(|number| send(&mut window, number, number, 1_000));
        let packet = PacketReport {
            sequence_number: 6,
            size: DataSize::from_bytes(1_000),
            send_time: Timestamp::ZERO,
            arrival_time: None,
            ecn: Ecn::NotEct,
            recovered: false,
            probe: None,
        };
        let packets = alloc::vec::Vec::from([packet]);
        window.on_report(&FeedbackReport { packets, ..FeedbackReport::default() });
        assert_eq!(window.bytes, DataSize::from_bytes(3_000));
        send(&mut window, 10, 10_020, 1_000);
        assert_eq!(window.bytes, DataSize::from_bytes(1_000));
    }
}
