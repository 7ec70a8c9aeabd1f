//! A bottleneck of any rate on a path that may become longer, with reports of any format at any
//! interval, and a receiver with any clock.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use super::driver::{Driver, Format, Op, Violation, ensure, mix};
use super::script::Rng;
use super::{Failure, limits};
use crate::controller::{RateLimits, Settings};
use crate::factory::ControllerFactory;
use crate::feedback::{FeedbackReport, PacketReport};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Time that the queue holds.
const QUEUE: TimeDelta = TimeDelta::from_millis(300);
/// Longest time between two looks at the sender.
const STEP: TimeDelta = TimeDelta::from_millis(5);
/// Time that a packet takes at the bottleneck at least, and the sizes of packets. Packets of a fast
/// link are larger than real ones: what is tested is time.
const PACKET_TIME: TimeDelta = TimeDelta::from_micros(250);
const PACKET: (u64, u64) = (100, 1_200);

/// The receiver's clock beside the sender's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clock {
    /// It runs as fast as the sender's.
    Steady,
    /// It gains so many millionths of the time, or loses them if negative.
    Drift(f64),
    /// In the middle of the run it steps ahead, or back if negative.
    Step(TimeDelta),
    /// In the middle of the run it begins at zero: the receiver restarts.
    Restart,
}

impl Clock {
    /// What it shows `passed` after the beginning of a run that takes `length`.
    fn at(self, time: Timestamp, start: Timestamp, length: TimeDelta) -> Timestamp {
        let passed = time - start;
        let is_late = passed >= length / 2;
        match self {
            Self::Drift(ppm) => time + TimeDelta::from_secs_f64(passed.as_secs_f64() * ppm * 1e-6),
            Self::Step(by) if is_late => time + by,
            Self::Restart if is_late => Timestamp::ZERO + (passed - length / 2),
            _ => time,
        }
    }
}

/// A path, its feedback, and the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// Rate of the bottleneck. Its queue holds 300 ms.
    pub capacity: Bitrate,
    /// Round-trip time without the queue.
    pub round_trip: TimeDelta,
    /// Time between two reports.
    pub interval: TimeDelta,
    /// Whether half of the reports get lost.
    pub loses_reports: bool,
    /// The receiver's clock.
    pub clock: Clock,
    /// How much longer each way becomes in a second, in seconds. If negative, it becomes shorter,
    /// and ends with half of the round trip.
    pub path_trend: f64,
    /// What reports tell.
    pub format: Format,
}

/// What became of a run over a [`Link`], in its last quarter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// What arrived, as a share of the capacity.
    pub used: f64,
    /// What was asked of the source, as a share of the capacity.
    pub wanted: f64,
    /// Mean wait in the queue.
    pub queue: TimeDelta,
}

impl Link {
    /// A link whose reports all arrive, and a clock as the sender's.
    pub const fn new(capacity: Bitrate, round_trip: TimeDelta, interval: TimeDelta) -> Self {
        Self {
            capacity,
            round_trip,
            interval,
            loses_reports: false,
            clock: Clock::Steady,
            path_trend: 0.0,
            format: Format::Measured,
        }
    }

    with! {
        with_loses_reports: loses_reports: bool,
        with_clock: clock: Clock,
        with_path_trend: path_trend: f64,
        with_format: format: Format,
    }

    /// Limits for a flow over it: from a hundredth to twice its capacity, and a third at the start.
    pub fn limits(&self) -> RateLimits {
        let bps = self.capacity.as_bps();
        let [min, start, max] =
            [bps / 100, bps / 3, bps * 2].map(|bps| Bitrate::from_bps(bps.max(1)));
        RateLimits::new(min, start, max).unwrap_or_else(|_| limits(1, 1, 1))
    }

    /// Length of a run that has enough reports and round trips to learn from.
    pub fn length(&self) -> TimeDelta {
        (self.interval + self.round_trip) * 40 + TimeDelta::from_secs(30)
    }

    fn packet(&self) -> DataSize {
        let usual = (self.capacity * TimeDelta::from_millis(10)).as_bytes();
        let large = (self.capacity * PACKET_TIME).as_bytes();
        DataSize::from_bytes(usual.clamp(PACKET.0, PACKET.1).max(large))
    }
}

/// A run over a link.
struct Run<'a> {
    link: &'a Link,
    start: Timestamp,
    length: TimeDelta,
    free_at: Timestamp,
    /// Bytes that may be sent. A step of a slow link is less than one.
    credit: f64,
    /// Packets on the way or lost, with their arrival by the sender's clock.
    on_the_way: VecDeque<(PacketReport, Timestamp)>,
    /// Reports on their way back.
    reports: VecDeque<(Timestamp, Vec<PacketReport>)>,
    next_report: Timestamp,
    report_number: u64,
}

impl Driver {
    /// Sends at the controller's rate over this link.
    ///
    /// # Errors
    ///
    /// The violation of the contract.
    pub fn try_run_link(&mut self, link: &Link, length: TimeDelta) -> Result<Usage, Violation> {
        self.try_apply(&Op::Format(link.format))?;
        let start = self.now;
        let mut run = Run {
            link,
            start,
            length,
            free_at: start,
            credit: 0.0,
            on_the_way: VecDeque::new(),
            reports: VecDeque::new(),
            next_report: start + link.interval,
            report_number: 0,
        };
        let step = (link.interval / 4).clamp(TimeDelta::from_millis(1), STEP);
        let (mut arrived, mut wanted, mut waits, mut looks) = (DataSize::ZERO, 0.0, 0.0, 0.0);
        let late = start + length * 0.75;
        while self.now < start + length {
            self.advance(self.now + step)?;
            let size = run.send(self, step);
            run.report(self);
            self.check()?;
            if self.now > late {
                arrived += size;
                wanted += self.controller.target().bitrate / link.capacity;
                waits += (run.free_at - self.now).max(TimeDelta::ZERO).as_secs_f64();
                looks += 1.0;
            }
        }
        Ok(Usage {
            used: arrived / (self.now - late) / link.capacity,
            wanted: wanted / looks,
            queue: TimeDelta::from_secs_f64(waits / looks),
        })
    }
}

impl Run<'_> {
    /// How long a packet or a report that leaves now is on its way.
    fn way(&self, now: Timestamp) -> TimeDelta {
        let passed = if self.link.path_trend < 0.0 { now - self.end() } else { now - self.start };
        self.link.round_trip / 2 + passed * self.link.path_trend
    }

    fn end(&self) -> Timestamp {
        self.start + self.length
    }

    /// Sends what the target allows. Returns what the queue took.
    fn send(&mut self, driver: &mut Driver, step: TimeDelta) -> DataSize {
        let packet = self.link.packet();
        let rate = driver.controller.target().bitrate;
        let packet_bytes = packet.as_bytes() as f64;
        let most = (rate * STEP * 8.0).max(packet * 8.0).as_bytes() as f64;
        let added = rate.as_bps() as f64 / 8.0 * step.as_secs_f64();
        self.credit = (self.credit + added).min(most);
        let queued = |credit: f64| packet * libm::floor(credit / packet_bytes);
        driver.controller.on_media_queued(driver.now, rate * step, queued(self.credit));
        let mut taken = DataSize::ZERO;
        while self.credit >= packet_bytes && driver.may_send() {
            self.credit -= packet_bytes;
            let sent = driver.send_one(packet, queued(self.credit));
            let is_dropped = self.free_at - driver.now > QUEUE;
            if !is_dropped {
                self.free_at = self.free_at.max(driver.now) + packet / self.link.capacity;
                taken += packet;
            }
            let arrival = self.free_at + self.way(driver.now);
            let shown = self.link.clock.at(arrival, self.start, self.length);
            let report = PacketReport::new(sent, packet, driver.now)
                .with_arrival_time((!is_dropped).then_some(shown));
            self.on_the_way.push_back((report, arrival));
        }
        taken
    }

    /// Makes the reports that are due, and brings those that have come back to the controller.
    fn report(&mut self, driver: &mut Driver) {
        while self.next_report <= driver.now {
            let due = self.next_report;
            self.next_report += self.link.interval;
            let is_in = |packet: &(PacketReport, Timestamp)| {
                packet.0.arrival_time.is_some() && packet.1 <= due
            };
            let Some(last) = self.on_the_way.iter().rposition(is_in) else { continue };
            let packets = self.on_the_way.drain(..=last).map(|packet| packet.0).collect();
            self.report_number += 1;
            if !self.link.loses_reports || mix(7, self.report_number).is_multiple_of(2) {
                self.reports.push_back((due + self.way(due), packets));
            }
        }
        while self.reports.front().is_some_and(|report| report.0 <= driver.now) {
            let (_, packets) = self.reports.pop_front().expect("there is one");
            driver.report(FeedbackReport::new(packets), self.link.round_trip);
        }
    }
}

/// Draws links over their whole ranges, by the logarithm: 10 kbit/s to 1 Gbit/s, round trips of
/// 0.5 ms to 1.5 s, reports of any format each 5 ms to 2 s. A quarter of the paths whose reports
/// have arrival times become longer by up to a millisecond a second, and a quarter shorter.
fn draw(rng: &mut Rng) -> Link {
    let mut between = |least: f64, most: f64| {
        let share = rng.below(1 << 20) as f64 / f64::from(1 << 20);
        least * libm::exp(share * libm::log(most / least))
    };
    let capacity = Bitrate::from_bps_f64(between(10e3, 1e9));
    let round_trip = TimeDelta::from_secs_f64(between(0.5e-3, 1.5));
    let interval = TimeDelta::from_secs_f64(between(5e-3, 2.0));
    let by = TimeDelta::from_secs_f64(between(10e-3, 400_000.0));
    let ppm = between(1.0, 1_000.0);
    let trend = between(1e-5, 1e-3);
    let clock = match rng.below(6) {
        0 => Clock::Steady,
        1 => Clock::Drift(ppm),
        2 => Clock::Drift(-ppm),
        3 => Clock::Step(by),
        4 => Clock::Step(-by),
        _ => Clock::Restart,
    };
    let format = match rng.below(4) {
        0 => Format::RoundTrip,
        1 => Format::Ccfb(TimeDelta::ZERO),
        _ => Format::Measured,
    };
    // Round-trip times alone do not tell such a path from a queue.
    let path_trend = match rng.below(4) {
        0 if format != Format::RoundTrip => trend,
        1 if format != Format::RoundTrip => -trend,
        _ => 0.0,
    };
    Link::new(capacity, round_trip, interval)
        .with_loses_reports(rng.below(4) == 0)
        .with_clock(clock)
        .with_path_trend(path_trend)
        .with_format(format)
}

/// The links that [`check_links`] tries.
pub fn drawn_links(links: u32, seed: u64) -> impl Iterator<Item = Link> {
    let mut rng = Rng::new(seed);
    (0..links).map(move |_| draw(&mut rng))
}

/// Checks that controllers of this kind use links of any rate, round trip and interval of reports,
/// whatever the receiver's clock does: at least `least` of the capacity in the last quarter of the
/// run. Equal seeds give equal links.
///
/// # Errors
///
/// The first link of which less is used, or on which the contract is broken.
pub fn check_links(
    factory: &ControllerFactory,
    links: u32,
    seed: u64,
    least: f64,
) -> Result<(), Failure> {
    for link in drawn_links(links, seed) {
        let settings = Settings::new(link.limits());
        let failure = |violation| Failure {
            rule: "a link of any rate, with any clock and any feedback, is used",
            violation,
            settings,
            script: Vec::new(),
        };
        check_link(factory, settings, &link, least).map_err(failure)?;
    }
    Ok(())
}

fn check_link(
    factory: &ControllerFactory,
    settings: Settings,
    link: &Link,
    least: f64,
) -> Result<(), Violation> {
    let mut driver = Driver::new(factory, settings);
    let usage = driver.try_run_link(link, link.length())?;
    let is_used = usage.used >= least;
    ensure!(is_used, "{usage:?} of {link:?}");
    Ok(())
}
