//! The rules of radio links, S-28, S-29, S-31, S-32 and S-23.

use std::collections::VecDeque;

use weir::Controller;
use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::feed::{Feed, ONE_WAY, kbps, ms, near};

/// The way back takes this long at least, however short the intervals become.
const SHORTEST_BACK: TimeDelta = TimeDelta::from_millis(200);

/// A flow of 1.3 Mbit/s through a link whose capacity changes. Reports come six intervals late.
struct Link {
    feed: Feed,
    at: Timestamp,
    free_at: Timestamp,
    sent: VecDeque<FeedbackReport>,
    /// Every second report comes this much later.
    late: TimeDelta,
}

impl Link {
    fn new() -> Self {
        let mut feed = Feed::new(1_200);
        feed.packets = 6;
        // The reports of this link count intervals, so the way back varies: one that was shorter
        // before makes no step of a clock of that (S-37).
        feed.rtt = ms(100);
        feed.run(400, 0);
        let at = feed.now;
        let mut link = Self { feed, at, free_at: at, sent: VecDeque::new(), late: ms(0) };
        // The queue grows slowly: a step may be a longer path (S-19).
        link.run(7, wired, 0.3);
        link
    }

    /// Sends for this many reports. Others take this part of the capacity.
    fn run(&mut self, reports: u32, capacity: fn(Timestamp) -> Bitrate, others: f64) {
        for index in 0..reports {
            let packets = (0..7).map(|_| self.packet(capacity, others)).collect();
            self.sent.push_back(FeedbackReport::new(packets));
            if self.sent.len() > 6 {
                let report = self.sent.pop_front().expect("a report");
                let late = if index % 2 == 0 { self.late } else { ms(0) };
                let arrived = report.packets.last().and_then(|packet| packet.arrival_time);
                let comes = (self.at + late).max(arrived.expect("it arrived") + SHORTEST_BACK);
                self.feed.sluice.on_feedback(comes, &report);
            }
        }
    }

    fn packet(&mut self, capacity: fn(Timestamp) -> Bitrate, others: f64) -> PacketReport {
        let number = self.feed.number;
        // The queue stays near 80 ms.
        let slower = ms(i64::from(self.free_at - self.at > ms(80)));
        let gap = ms(if number % 3 == 0 { 17 } else { 2 });
        // The sender follows the capacity, as far as it may.
        let share = (kbps(1_300) / capacity(self.at)).clamp(0.65, 1.9);
        let gap = gap * share + slower;
        let size = DataSize::from_bytes(if number % 2 == 0 { 1_000 } else { 1_275 });
        self.at += gap;
        self.free_at = self.free_at.max(self.at) + size / capacity(self.free_at) + gap * others;
        self.feed.sluice.on_packet_sent(self.at, &SentPacket::new(number, size));
        self.feed.number += 1;
        PacketReport::new(number, size, self.at).with_arrival_time(Some(self.free_at + ONE_WAY))
    }

    fn belief(&self) -> f64 {
        self.feed.signal("radio_ratio")
    }

    fn level(&self) -> f64 {
        self.feed.signal("level_kbps")
    }
}

/// 0.9 and 1.7 Mbit/s in turn, for 150 ms each.
fn radio(at: Timestamp) -> Bitrate {
    kbps(if at.as_nanos() / 150_000_000 % 2 == 0 { 900 } else { 1_700 })
}

fn wired(_: Timestamp) -> Bitrate {
    kbps(1_300)
}

/// A link that is believed to be a radio link.
fn believed() -> Link {
    let mut link = Link::new();
    link.run(280, radio, 0.0);
    assert!(link.belief() > 0.3, "{:?}", link.feed.sluice.metrics());
    link
}

// S-28
#[test]
fn a_varying_capacity_that_nobody_else_uses_is_a_radio_links() {
    let mut link = Link::new();
    link.run(60, radio, 0.0);
    assert_eq!(link.belief(), 0.0, "it takes 4 s");
    link.run(220, radio, 0.0);
    assert!(link.belief() > 0.3, "{}", link.belief());
    let mut link = Link::new();
    link.run(200, wired, 0.0);
    assert_eq!(link.belief(), 0.0);
    let mut link = Link::new();
    link.run(200, radio, 0.35);
    assert_eq!(link.belief(), 0.0, "others use it");
}

// S-29
#[test]
fn the_level_of_a_radio_link_follows_the_rate_of_the_last_moments() {
    let mut link = believed();
    // Six of the reports are on packets of the time before.
    link.run(12, |_| kbps(700), 0.0);
    near(link.level(), 700.0, 150.0);
}

// S-29
#[test]
fn without_a_queue_the_level_of_a_radio_link_grows_by_up_to_1_6_a_second() {
    let mut link = believed();
    link.run(14, |_| kbps(50_000), 0.0);
    let (before, from) = (link.level(), link.at);
    link.run(4, |_| kbps(50_000), 0.0);
    let growth = (link.level() / before).ln() / (link.at - from).as_secs_f64();
    assert!(link.belief() > 0.3, "{}", link.belief());
    // The belief is below 1.
    assert!((0.6..1.6).contains(&growth), "{growth}");
}

// S-31
#[test]
fn what_is_in_flight_on_a_radio_link_has_a_limit() {
    let link = believed();
    let window = link.feed.sluice.target().window.expect("a window");
    // Reports come 294 ms after the last packet in them, and a packet takes 25 ms to arrive.
    let time_s = window.congestion_window.as_bits() as f64 / link.level() / 1e3;
    assert!((0.2..0.5).contains(&time_s), "{time_s}");
    assert!(window.available < window.congestion_window);
    let mut link = Link::new();
    link.run(200, wired, 0.0);
    assert_eq!(link.feed.sluice.target().window, None);
}

/// Seconds for which the level may be in flight, without the part of `T_WINDOW`.
fn covered_s(link: &Link) -> f64 {
    let window = link.feed.sluice.target().window.expect("a window").congestion_window;
    let time_s = (window.as_bits() as f64 - 8.0 * 2_400.0) / link.level() / 1e3;
    time_s - 0.025 / link.belief()
}

// S-31
#[test]
fn the_window_covers_feedback_that_comes_late_at_times() {
    let steady = covered_s(&believed());
    let mut link = Link::new();
    link.late = ms(30);
    link.run(280, radio, 0.0);
    // Round-trip time and interval of a late report are both longer by 30 ms. The mean is 15 ms
    // later, and some 45 ms more are covered three times.
    let more_s = covered_s(&link) - steady;
    assert!((0.1..0.3).contains(&more_s), "{more_s}");
}

// S-32
#[test]
fn what_waits_in_the_sender_of_a_radio_link_lowers_the_target() {
    let mut link = believed();
    let before = link.feed.target();
    let (frame, waits) = (DataSize::from_bytes(4_000), DataSize::from_bytes(1_250));
    link.feed.sluice.on_media_queued(link.at, frame, frame + waits);
    near(before - link.feed.target(), 100.0 * link.belief(), 1.0);
}
