//! What happens in each vector.

use weir::controller::{EcnMode, Settings};
use weir::{Bitrate, RateLimits};
use weir_rtcp::Feedback;

/// What the path does with packets, beside queuing them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    None,
    /// Each packet is lost with this probability, in per cent.
    Random(u64),
    /// From time to time a row of packets is lost.
    Bursts,
}

/// What the source makes of its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// As much as the target allows.
    Full,
    /// At most this rate in kbit/s before this time in ms.
    Limited(u64, i64),
    /// Nothing between these times in ms.
    Pause(i64, i64),
}

/// An event that the host passes on.
#[derive(Clone, Copy)]
pub enum Action {
    RoundTripTime(i64),
    ReceiverLimit(Option<u64>),
    /// Lowest, start and highest bitrate, in kbit/s.
    Limits(u64, u64, u64),
    Desired(Option<u64>),
    NewRoute,
}

#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub seed: u64,
    pub end_ms: i64,
    /// Times in ms, and the capacity from then on in kbit/s.
    pub capacity: Vec<(i64, u64)>,
    /// One-way delay in ms, the same in both directions.
    pub delay_ms: i64,
    /// Size of the queue in bytes.
    pub queue_bytes: u64,
    /// Rate in kbit/s of a policer in front of the queue, and the bytes that its bucket holds.
    pub policer: Option<(u64, u64)>,
    pub loss: Loss,
    /// Packets with a number that is a multiple of this arrive 30 ms late.
    pub late_each: Option<u64>,
    /// Up to this much more delay, different for each packet. Packets keep their order.
    pub jitter_ms: i64,
    /// Share of feedback packets that are lost, in per cent.
    pub feedback_loss: u64,
    pub feedback_ms: i64,
    pub ecn: EcnMode,
    pub source: Source,
    /// Lowest, start and highest bitrate, in kbit/s.
    pub limits: (u64, u64, u64),
    pub actions: Vec<(i64, Action)>,
}

impl Scenario {
    const fn new(name: &'static str, seed: u64, about: &'static str) -> Self {
        Self {
            name,
            about,
            seed,
            end_ms: 8_000,
            capacity: Vec::new(),
            delay_ms: 25,
            queue_bytes: 30_000,
            policer: None,
            loss: Loss::None,
            late_each: None,
            jitter_ms: 0,
            feedback_loss: 0,
            feedback_ms: 100,
            ecn: EcnMode::Off,
            source: Source::Full,
            limits: (100, 300, 1_000),
            actions: Vec::new(),
        }
    }

    pub fn uses_ecn(&self) -> bool {
        self.ecn != EcnMode::Off
    }

    pub fn settings(&self) -> Settings {
        Settings::new(rate_limits(self.limits)).with_ecn(self.ecn)
    }

    /// The capacity at this time in bit/s.
    pub fn capacity_bps(&self, ms: i64) -> u64 {
        let step = self.capacity.iter().rfind(|step| step.0 <= ms);
        step.map_or(800, |step| step.1) * 1_000
    }
}

pub fn rate_limits((min, start, max): (u64, u64, u64)) -> RateLimits {
    let kbps = Bitrate::from_kbps;
    RateLimits::new(kbps(min), kbps(start), kbps(max)).expect("min <= start <= max")
}

pub fn feedback_name(feedback: Feedback) -> &'static str {
    match feedback {
        Feedback::Twcc => "twcc",
        Feedback::Ccfb => "ccfb",
        _ => unreachable!("vectors have two formats"),
    }
}

/// A capacity that changes each 500 ms.
fn walk() -> Vec<(i64, u64)> {
    [700, 640, 520, 560, 410, 330, 450, 380, 600, 720, 650, 480, 300, 340, 520, 610]
        .into_iter()
        .enumerate()
        .map(|(index, kbps)| (500 * index as i64, kbps))
        .collect()
}

/// Conditions of the path.
fn paths() -> Vec<Scenario> {
    let new = Scenario::new;
    let fall = vec![(0, 800), (3_000, 300), (6_000, 800)];
    vec![
        new("clean", 1, "a steady path of 800 kbit/s"),
        Scenario {
            capacity: fall,
            end_ms: 9_000,
            ..new("fall-and-return", 2, "the capacity falls from 800 to 300 kbit/s for 3 s")
        },
        Scenario {
            capacity: vec![(0, 800), (3_000, 0), (4_500, 800)],
            ..new("outage", 3, "nothing passes for 1.5 s")
        },
        Scenario {
            loss: Loss::Random(5),
            ..new("random-loss", 4, "5 % of the packets are lost at random")
        },
        Scenario { loss: Loss::Bursts, ..new("burst-loss", 5, "rows of packets are lost") },
        Scenario { late_each: Some(11), ..new("reordering", 6, "each 11th packet is overtaken") },
        Scenario {
            feedback_loss: 30,
            ..new("lost-feedback", 7, "30 % of the feedback packets are lost")
        },
        Scenario {
            feedback_ms: 250,
            end_ms: 9_000,
            ..new("slow-feedback", 8, "feedback each 250 ms instead of 100 ms")
        },
        Scenario {
            delay_ms: 150,
            end_ms: 9_000,
            actions: (1..9).map(|s| (1_000 * s, Action::RoundTripTime(300))).collect(),
            ..new("rtt-300", 9, "300 ms of round-trip time, which receiver reports give too")
        },
        Scenario { jitter_ms: 25, ..new("jitter", 10, "up to 25 ms of jitter") },
        Scenario { capacity: walk(), ..new("walk", 11, "a capacity that changes each 500 ms") },
        Scenario {
            queue_bytes: 4_000,
            ..new("short-queue", 12, "a queue of three packets: losses without delay")
        },
        Scenario {
            queue_bytes: 120_000,
            capacity: vec![(0, 400)],
            ..new("long-queue", 13, "a queue of 2.4 s in front of 400 kbit/s")
        },
        Scenario { ecn: EcnMode::Classic, ..new("ecn", 14, "marks of RFC 3168 above 20 ms") },
        Scenario { ecn: EcnMode::L4s, ..new("l4s", 15, "marks of L4S above 5 ms") },
    ]
}

/// What the application and the receiver do.
fn hosts() -> Vec<Scenario> {
    let new = Scenario::new;
    vec![
        Scenario {
            source: Source::Limited(150, 5_000),
            ..new("application-limited", 16, "the source sends 150 kbit/s for 5 s, then all")
        },
        Scenario {
            source: Source::Pause(3_000, 5_000),
            ..new("pause", 17, "the source is silent for 2 s")
        },
        Scenario {
            actions: vec![
                (3_000, Action::ReceiverLimit(Some(250))),
                (5_500, Action::ReceiverLimit(None)),
            ],
            ..new("receiver-limit", 18, "the receiver sets a limit of 250 kbit/s and lifts it")
        },
        Scenario {
            actions: vec![
                (3_000, Action::Limits(100, 200, 350)),
                (5_000, Action::Limits(450, 600, 1_200)),
            ],
            ..new("limits-changed", 19, "the application lowers the maximum, then raises both")
        },
        Scenario {
            actions: vec![(4_000, Action::NewRoute)],
            capacity: vec![(0, 800), (4_000, 400)],
            ..new("new-route", 20, "another route with half the capacity from 4 s on")
        },
        Scenario {
            limits: (300, 400, 1_000),
            capacity: vec![(0, 200)],
            ..new("minimum", 21, "the path carries less than the minimum")
        },
        Scenario {
            limits: (100, 300, 500),
            capacity: vec![(0, 2_000)],
            ..new("maximum", 22, "the path carries more than the maximum")
        },
    ]
}

pub fn all() -> Vec<Scenario> {
    let mut all = paths();
    all.extend(hosts());
    all.push(Scenario {
        capacity: vec![(0, 4_000)],
        policer: Some((800, 12_000)),
        end_ms: 20_000,
        // More than 256 feedback packets, so that their count wraps.
        feedback_ms: 50,
        ..Scenario::new("policer", 24, "800 kbit/s pass, what is more is dropped without a queue")
    });
    all.push(Scenario {
        actions: vec![
            (0, Action::Desired(Some(200))),
            (4_000, Action::Desired(Some(900))),
            (6_500, Action::Desired(None)),
        ],
        source: Source::Limited(200, 4_000),
        ..Scenario::new("desired", 23, "the application says how much it could use")
    });
    all
}
