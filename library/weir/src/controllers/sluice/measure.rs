//! What the packets of a report say (S-1 to S-6).

use super::clock::ReceiverClock;
use super::in_order::InOrder;
use super::parameters::Switch;
use super::rate_meter::RateMeter;
use super::sharing::{Pair, Passed, Sharing};
use super::{REPORT_INTERVAL_MAX, RTT_MAX, SIZE_GAIN, Sluice, TIME_GAIN, elapsed};
use crate::controller::EcnMode;
use crate::controllers::longer_path::{LongerPath, Ways};
use crate::feedback::{ArrivalTimes, Ecn, FeedbackReport, LossCounts, PacketReport};
use crate::units::{DataSize, TimeDelta, Timestamp};

/// What holds for all packets of a report.
#[derive(Clone, Copy, Debug)]
struct Report {
    now: Timestamp,
    /// A queue stood before it.
    stands: bool,
    /// Delay that is not surely the wait in a queue, and the part of it that is noise.
    least_wait: TimeDelta,
    noise: TimeDelta,
}

/// Counts over the packets of a report.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    losses: LossCounts,
    /// Packets that were lost while the path was away (S-19).
    cut: u64,
    /// When the newest packet that arrived was sent.
    newest: Option<Timestamp>,
    /// When the last one arrived, its delay, and how far that is above the base.
    arrived: Timestamp,
    delay: TimeDelta,
    above: TimeDelta,
}

impl Report {
    /// How long a packet this far above the base surely waited in the queue.
    #[inline]
    fn waited(&self, above: TimeDelta) -> TimeDelta {
        if self.stands { above - self.least_wait } else { TimeDelta::ZERO }
    }

    /// A packet that arrived, with the base delay then.
    #[inline]
    fn passed(&self, packet: &PacketReport, arrived: Timestamp, base: TimeDelta) -> Passed {
        let sent = packet.send_time;
        Passed { sent, arrived, waited: self.waited(arrived - sent - base) }
    }
}

impl Counts {
    fn on_arrived(&mut self, sent: Timestamp, arrived: Timestamp, above: TimeDelta) {
        self.newest = Some(self.newest.map_or(sent, |newest| newest.max(sent)));
        (self.arrived, self.delay, self.above) = (arrived, arrived - sent, above);
    }
}

impl Sluice {
    /// Takes the packets of a report into the measurements. Returns whether any arrived.
    pub(super) fn measure(&mut self, now: Timestamp, report: &FeedbackReport) -> bool {
        let about = self.begin(now, report);
        let counts = self.on_packets(&report.packets, &about);
        self.end(now, report, counts)
    }

    fn begin(&mut self, now: Timestamp, report: &FeedbackReport) -> Report {
        self.coverage.begin_report();
        if report.new_clock {
            self.clock = ReceiverClock::default();
            self.queue.on_new_clock();
            self.sharing = Sharing::default();
            self.delivered = RateMeter::of_arrivals();
            self.longer_path = LongerPath::default();
        }
        self.is_round_trip = report.arrival_times == ArrivalTimes::RoundTrip;
        self.delivered.arrive_at_once(report.arrival_times == ArrivalTimes::Acknowledged);
        if self.is_round_trip {
            self.radio.doubt();
        }
        if self.has_clock() {
            self.clock.begin_report(now, report, self.queue.noise(), &self.p);
        }
        self.queue.begin_report();
        let newest = self.radio.newest().unwrap_or(self.level);
        let packets = (report.packets.len(), report.arrival_times);
        self.sharing.begin_report(packets, self.level, newest);
        let noise = self.queue.noise() * self.p.chance;
        Report {
            now,
            stands: self.queue.standing() > Some(self.p.q_stands),
            least_wait: self.packet_time() + noise,
            noise,
        }
    }

    fn end(&mut self, now: Timestamp, report: &FeedbackReport, counts: Counts) -> bool {
        self.queue.end_report(now, &self.p);
        let stands = self.queue.standing() > Some(self.reference() / 2);
        let received = counts.losses.received + counts.losses.recovered;
        let lost = counts.losses.lost.saturating_sub(counts.cut);
        let losses = LossCounts { lost, ..counts.losses };
        let passed = self.last_report.map_or(TimeDelta::ZERO, |last| elapsed(last, now));
        self.losses.on_report(passed, losses, stands, self.queue.is_at_top());
        // Marks count only if the sender uses ECN.
        let marked = match self.settings.ecn {
            EcnMode::Off => 0,
            EcnMode::Classic | EcnMode::L4s => {
                report.received().filter(|packet| packet.ecn == Ecn::Ce).count() as u64
            }
        };
        self.marks.on_report(marked, received);
        if let Some(newest) = counts.newest {
            let rtt = (now - newest).clamp(TimeDelta::ZERO, RTT_MAX);
            self.rtt = Some(self.rtt.map_or(rtt, |old| old + (rtt - old) * TIME_GAIN));
            let usual = self.report_interval();
            let interval = self.last_report.map_or(usual, |last| elapsed(last, now));
            let interval = interval.min(REPORT_INTERVAL_MAX);
            self.flight.on_report(report, rtt - counts.above, interval, usual);
            self.look_for_longer_path(now, &counts);
        }
        received > 0
    }

    /// S-19: the path may have become longer both ways.
    fn look_for_longer_path(&mut self, now: Timestamp, counts: &Counts) {
        if !self.has_clock() || !self.p.has(Switch::LongerPath) {
            return;
        }
        let ways = Ways { there: counts.delay, back: now - counts.arrived };
        let (rtt, level) = (self.rtt(), self.level);
        let before = self.longer_path.on_report(now, ways, rtt, level);
        // The reference both ways is a queue that stands, too, of two flows.
        if let Some(before) = before
            && self.queue.standing() > Some(self.reference())
        {
            self.on_longer_path(before);
        }
    }

    fn on_packets(&mut self, packets: &[PacketReport], about: &Report) -> Counts {
        let (mut counts, mut rest) = (Counts::default(), packets);
        while let [first, others @ ..] = rest {
            let Some(stretch) = self.stretch(rest) else {
                self.on_packet(first, about, &mut counts);
                rest = others;
                continue;
            };
            rest = &rest[stretch.packets.len()..];
            if !self.on_stretch(&stretch, about, &mut counts) {
                for packet in stretch.packets {
                    self.on_packet(packet, about, &mut counts);
                }
            }
        }
        counts
    }

    /// Whether the arrival times are of a receiver's clock, and S-37 is on.
    fn has_clock(&self) -> bool {
        !self.is_round_trip && self.p.has(Switch::ReceiverClock)
    }

    /// The stretch with which these packets begin, if there is one.
    fn stretch<'a>(&self, packets: &'a [PacketReport]) -> Option<InOrder<'a>> {
        let is_usual = self.has_clock() && !self.policer.is_trying() && !self.cuts.has_lost();
        let next = self.coverage.next().filter(|_| is_usual)?;
        InOrder::at_begin_of(packets, next)
    }

    fn on_packet(&mut self, packet: &PacketReport, about: &Report, counts: &mut Counts) {
        let now = about.now;
        let covered = self.coverage.on_packet(packet);
        if !packet.recovered {
            self.sent.add_covered(packet.send_time, packet.size, covered);
            self.policer.on_packet(packet.send_time, packet.arrival_time.is_none());
        }
        let Some(arrival) = packet.arrival_time else {
            self.cuts.on_lost();
            counts.losses.lost += 1;
            return;
        };
        match packet.recovered {
            true => counts.losses.recovered += 1,
            false => counts.losses.received += 1,
        }
        let arrival = match self.has_clock() {
            true => self.clock.arrival(now, packet.send_time, arrival, &self.queue),
            false => arrival,
        };
        if let Some(lost) = self.cuts.on_arrived(packet.send_time, &self.p) {
            // S-19: the queue of the path before is gone, and so are these losses.
            counts.cut += lost;
            self.queue.on_new_clock();
            self.crowding = Default::default();
        }
        let above = self.queue.on_packet(now, arrival, arrival - packet.send_time, &self.p);
        self.cuts.waited(above);
        counts.on_arrived(packet.send_time, arrival, above);
        if !packet.recovered {
            self.policer.on_arrived(packet.send_time, above);
        }
        let passed =
            Passed { sent: packet.send_time, arrived: arrival, waited: about.waited(above) };
        self.on_passed(passed, packet.size, about);
        self.delivered.add_covered(arrival, packet.size, covered);
        self.packet_bytes += SIZE_GAIN * (packet.size.as_bytes() as f64 - self.packet_bytes);
    }

    /// Takes a stretch at once. Returns false, without an effect, if it must be taken packet by
    /// packet.
    fn on_stretch(&mut self, stretch: &InOrder, about: &Report, counts: &mut Counts) -> bool {
        let Some(ahead) = self.clock.ahead_in(stretch, about.now, &self.queue) else {
            return false;
        };
        let arrived = stretch.shown.map(|shown| shown - ahead);
        let Some(base) = self.queue.base_in(arrived) else { return false };
        let count = stretch.packets.len();
        let [shortest, longest] = stretch.extremes.map(|delay| delay - ahead);
        self.clock.on_delay(shortest);
        self.queue.on_delays(arrived[0], shortest, longest);
        let above = arrived[1] - stretch.sent[1] - base;
        self.cuts.on_stretch(stretch.sent[1], above);
        counts.losses.received += count as u64;
        counts.on_arrived(stretch.sent[1], arrived[1], above);
        self.policer.on_stretch(stretch, ahead + base);
        if !self.sent.add_between(stretch.sent, stretch.size) {
            for packet in stretch.packets {
                self.sent.add(packet.send_time, packet.size);
            }
        }
        if !self.delivered.add_between(arrived, stretch.size) {
            for (packet, shown) in stretch.arrivals() {
                self.delivered.add(shown - ahead, packet.size);
            }
        }
        self.packet_bytes = self.coverage.on_next(stretch.packets, self.packet_bytes);
        self.share_in(stretch, ahead, base, about);
        true
    }

    /// What the gaps of a stretch say.
    fn share_in(&mut self, stretch: &InOrder, ahead: TimeDelta, base: TimeDelta, about: &Report) {
        let mut arrivals = stretch.arrivals();
        let Some((first, shown)) = arrivals.next() else { return };
        self.on_passed(about.passed(first, shown - ahead, base), first.size, about);
        let time = stretch.shown[1] - stretch.shown[0];
        if !about.stands {
            let (sent, arrived) = (stretch.sent[1], stretch.shown[1] - ahead);
            self.sharing.skip_to(Passed { sent, arrived, waited: TimeDelta::ZERO });
        } else if self.radio.has_room(time, &self.p) {
            let busy = self.sharing.on_stretch(stretch, ahead, base + about.least_wait);
            self.radio.on_all_busy(busy);
        } else {
            for (packet, shown) in arrivals {
                self.on_passed(about.passed(packet, shown - ahead, base), packet.size, about);
            }
        }
    }

    fn on_passed(&mut self, passed: Passed, size: DataSize, about: &Report) {
        match self.sharing.on_packet(passed, size, &self.p) {
            Pair::Busy(gap) => self.radio.on_busy(gap, size, about.noise, &self.p),
            Pair::Overtaken => self.radio.doubt(),
            Pair::Idle => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Controller, RateLimits, Settings};
    use crate::feedback::SentPacket;
    use crate::units::Bitrate;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Takes a report packet by packet.
    fn feed_one_by_one(sluice: &mut Sluice, now: Timestamp, report: &FeedbackReport) {
        let about = sluice.begin(now, report);
        let mut counts = Counts::default();
        for packet in &report.packets {
            sluice.on_packet(packet, &about, &mut counts);
        }
        if sluice.end(now, report, counts) {
            sluice.act(now);
        }
    }

    /// What a report of the test shows.
    #[derive(Clone, Copy, Debug)]
    struct Shown {
        packets: u16,
        gap_us: i64,
        /// Time of the link for a packet: a queue builds if it is longer than the gap.
        service_us: i64,
        jitter_us: i64,
        lost_each: u16,
        overtaken_each: u16,
        clock_ms: i64,
    }

    fn shown() -> impl Strategy<Value = Shown> {
        let each = || prop_oneof![Just(u16::MAX), 2_u16..200];
        let clock = prop_oneof![8 => Just(0), 1 => -400_i64..400];
        let times = (1_i64..9_000, 1_i64..9_000, 0_i64..2_000);
        (1_u16..150, times, each(), each(), clock).prop_map(
            |(packets, (gap_us, service_us, jitter_us), lost_each, overtaken_each, clock_ms)| {
                Shown {
                    packets,
                    gap_us,
                    service_us,
                    jitter_us,
                    lost_each,
                    overtaken_each,
                    clock_ms,
                }
            },
        )
    }

    /// The packets of a link that stands between a sender and a receiver.
    #[derive(Default)]
    struct Link {
        number: i64,
        sent_us: i64,
        free_us: i64,
        clock_ms: i64,
    }

    impl Link {
        /// A report, and when it comes.
        fn report(&mut self, shown: Shown) -> (Timestamp, FeedbackReport) {
            self.clock_ms += shown.clock_ms;
            self.free_us = self.free_us.min(self.sent_us + 400_000);
            let mut packets: Vec<PacketReport> = Vec::new();
            for index in 0..shown.packets {
                self.sent_us += shown.gap_us;
                self.free_us = self.free_us.max(self.sent_us) + shown.service_us;
                let jitter = self.number * 7_919 % (shown.jitter_us + 1);
                let late = if index % shown.overtaken_each == 1 { 3_000 } else { 0 };
                let arrival = self.free_us + 20_000 + jitter + late + self.clock_ms * 1_000;
                let is_lost = index % shown.lost_each == 1;
                let size = DataSize::from_bytes(if self.number % 5 == 0 { 300 } else { 1_200 });
                let packet =
                    PacketReport::new(self.number, size, Timestamp::from_micros(self.sent_us))
                        .with_arrival_time((!is_lost).then_some(Timestamp::from_micros(arrival)))
                        .with_ecn(if self.number % 11 == 0 { Ecn::Ce } else { Ecn::Ect1 });
                packets.push(packet);
                self.number += 1;
            }
            let now = Timestamp::from_micros(self.free_us.max(self.sent_us) + 45_000);
            (now, FeedbackReport::new(packets))
        }
    }

    proptest! {
        #[test]
        fn stretches_change_no_bit_of_the_state(
            reports in proptest::collection::vec(shown(), 1..80),
            ecn in prop_oneof![Just(EcnMode::Off), Just(EcnMode::L4s)],
        ) {
            let kbps = Bitrate::from_kbps;
            let limits = RateLimits::new(kbps(50), kbps(2_000), kbps(900_000)).unwrap();
            let mut one = Sluice::new(Settings { ecn, ..Settings::from(limits) });
            let mut other = one.clone();
            let mut link = Link { sent_us: 1_000_000, ..Link::default() };
            for shown in reports {
                let (now, report) = link.report(shown);
                for packet in &report.packets {
                    let sent = SentPacket::new(packet.sequence_number, packet.size);
                    one.on_packet_sent(packet.send_time, &sent);
                    other.on_packet_sent(packet.send_time, &sent);
                }
                one.on_feedback(now, &report);
                feed_one_by_one(&mut other, now, &report);
                prop_assert_eq!(format!("{:?}", one), format!("{:?}", other));
            }
        }
    }
}
