//! Losses without a queue: those of a policer, and those of a path (S-36).

use std::collections::VecDeque;

use weir::Controller;
use weir::controller::RateLimits;
use weir::controllers::sluice::Sluice;
use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::feed::kbps;

const PACKET: DataSize = DataSize::from_bytes(1_200);
const ONE_WAY: TimeDelta = TimeDelta::from_millis(25);
const WINDOW: TimeDelta = TimeDelta::from_millis(50);

/// What a path loses of the packets that it never delays.
enum Lossy {
    /// A token bucket of this rate and size.
    Policer { rate: Bitrate, burst: DataSize, tokens: f64, at: Timestamp },
    /// Each packet with this chance.
    Random { chance: f64, seed: u64 },
    /// The first `length` of each `every` packets.
    Bursts { every: i64, length: i64 },
}

impl Lossy {
    fn policer(rate_kbps: u64, burst: u64) -> Self {
        let burst = DataSize::from_bytes(burst);
        Self::Policer { rate: kbps(rate_kbps), burst, tokens: 0.0, at: Timestamp::ZERO }
    }

    fn loses(&mut self, number: i64, now: Timestamp) -> bool {
        match self {
            Self::Policer { rate, burst, tokens, at } => {
                let earned = (*rate * (now - *at)).as_bytes() as f64;
                *at = now;
                *tokens = (*tokens + earned).min(burst.as_bytes() as f64);
                let passes = *tokens >= PACKET.as_bytes() as f64;
                *tokens -= if passes { PACKET.as_bytes() as f64 } else { 0.0 };
                !passes
            }
            Self::Random { chance, seed } => {
                // The generator of Knuth's MMIX.
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((*seed >> 33) as f64) / ((1_u64 << 31) as f64) < *chance
            }
            Self::Bursts { every, length } => number % *every < *length,
        }
    }
}

/// A sender of the target over such a path, with a report each 50 ms.
struct Path {
    sluice: Sluice,
    lossy: Lossy,
    now: Timestamp,
    number: i64,
    next: Timestamp,
    on_the_way: VecDeque<PacketReport>,
    sent: u64,
    lost: u64,
}

impl Path {
    fn new(lossy: Lossy) -> Self {
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(6_000)).unwrap();
        let now = Timestamp::from_secs(100);
        let sluice = Sluice::new(limits);
        Self {
            sluice,
            lossy,
            now,
            number: 0,
            next: now,
            on_the_way: VecDeque::new(),
            sent: 0,
            lost: 0,
        }
    }

    fn window(&mut self) {
        self.now += WINDOW;
        while self.next < self.now {
            self.sluice.on_packet_sent(self.next, &SentPacket::new(self.number, PACKET));
            let is_lost = self.lossy.loses(self.number, self.next);
            let arrival = (!is_lost).then_some(self.next + ONE_WAY);
            let packet = PacketReport::new(self.number, PACKET, self.next);
            self.on_the_way.push_back(packet.with_arrival_time(arrival));
            (self.sent, self.lost) = (self.sent + 1, self.lost + u64::from(is_lost));
            self.number += 1;
            self.next += PACKET / self.sluice.target().bitrate;
        }
        // What was sent before the round trip of 50 ms began.
        let reported = self.now - ONE_WAY * 2;
        let count = self.on_the_way.iter().take_while(|packet| packet.send_time < reported).count();
        let packets: Vec<_> = self.on_the_way.drain(..count).collect();
        if packets.iter().any(|packet| packet.arrival_time.is_some()) {
            self.sluice.on_feedback(self.now, &FeedbackReport::new(packets));
        }
    }

    /// Runs this long. Returns the rate that arrived in kbit/s and the share of lost packets.
    fn run(&mut self, seconds: i64) -> (f64, f64) {
        (self.sent, self.lost) = (0, 0);
        (0..seconds * 20).for_each(|_| self.window());
        let arrived = PACKET.as_bytes() * 8 * (self.sent - self.lost);
        (arrived as f64 / seconds as f64 / 1e3, self.lost as f64 / self.sent as f64)
    }
}

// S-36
#[test]
fn at_a_policer_few_packets_are_lost_and_its_rate_is_used() {
    for (rate, burst) in [(2_000, 30_000), (2_000, 6_000), (500, 30_000), (2_000, 120_000)] {
        let mut path = Path::new(Lossy::policer(rate, burst));
        path.run(20);
        let (arrived, lost) = path.run(60);
        assert!(arrived > 0.9 * rate as f64, "{rate} kbit/s, {burst} bytes: {arrived}");
        assert!(lost < 0.05, "{rate} kbit/s, {burst} bytes: {lost}");
    }
}

// S-36
#[test]
fn a_policer_that_lets_more_through_is_followed() {
    let mut path = Path::new(Lossy::policer(1_000, 15_000));
    path.run(30);
    let Lossy::Policer { rate, .. } = &mut path.lossy else { unreachable!("a policer") };
    *rate = kbps(2_000);
    path.run(20);
    let (arrived, _) = path.run(20);
    assert!(arrived > 1_800.0, "{arrived}");
}

// S-36
#[test]
fn losses_of_the_path_are_not_those_of_a_policer() {
    let unseen = [
        Lossy::Random { chance: 0.05, seed: 1 },
        Lossy::Random { chance: 0.1, seed: 2 },
        Lossy::Bursts { every: 400, length: 20 },
    ];
    for (index, lossy) in unseen.into_iter().enumerate() {
        let mut path = Path::new(lossy);
        path.run(15);
        path.run(60);
        assert!(path.sluice.target().bitrate > kbps(5_500), "path {index}");
        let (arrived, _) = path.run(60);
        assert!(arrived > 0.87 * 6_000.0, "path {index}: {arrived}");
    }
}
