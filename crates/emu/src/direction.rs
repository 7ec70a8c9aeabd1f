//! One direction of the emulated link: the model, its clock, and its samples.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weir::feedback::Ecn;
use weir::units::Timestamp;
use weir_net::{Bottleneck, Capacity, Counters, Fate, LinkConfig, Schedule, Seed};

use crate::ip;

use crate::record::{DirectionRecord, SAMPLE_INTERVAL, Sample};

/// A model with the moment of its time zero.
#[derive(Debug)]
struct Clocked {
    link: Bottleneck<Vec<u8>>,
    zero: Instant,
}

impl Clocked {
    fn at(&self, now: Instant) -> Timestamp {
        let nanos = now.saturating_duration_since(self.zero).as_nanos();
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    fn instant(&self, time: Timestamp) -> Instant {
        self.zero + Duration::from_nanos(time.as_nanos().max(0).cast_unsigned())
    }

    fn next_event(&self) -> Option<Instant> {
        self.link.next_event().map(|time| self.instant(time))
    }

    fn poll(&mut self, now: Instant) -> Option<(Instant, Vec<u8>)> {
        loop {
            match self.link.poll(self.at(now))? {
                Fate::Delivered(mut delivery) => {
                    if delivery.ecn == Ecn::Ce {
                        ip::mark(&mut delivery.payload);
                    }
                    return Some((self.instant(delivery.due), delivery.payload));
                }
                // The model has counted it.
                Fate::Dropped(_) => {}
            }
        }
    }
}

/// One direction of the emulated link.
#[derive(Debug)]
pub(crate) struct Direction {
    config: LinkConfig,
    seed: Seed,
    name: &'static str,
    sender: Ipv4Addr,
    receiver: Ipv4Addr,
    /// Takes packets until the start; what is on it then still arrives.
    before: Clocked,
    /// Takes packets from the start on, with time zero at the start.
    run: Option<Clocked>,
    samples: Vec<Sample>,
    counted: Counters,
    foreign_packets: u64,
}

impl Direction {
    pub(crate) fn new(
        config: &LinkConfig,
        seed: Seed,
        name: &'static str,
        sender: Ipv4Addr,
        receiver: Ipv4Addr,
    ) -> Self {
        let standing = LinkConfig { capacity: first_value(&config.capacity), ..config.clone() };
        let link = Bottleneck::new(&standing, seed, name);
        Self {
            config: config.clone(),
            seed,
            name,
            sender,
            receiver,
            before: Clocked { link, zero: Instant::now() },
            run: None,
            samples: Vec::new(),
            counted: Counters::default(),
            foreign_packets: 0,
        }
    }

    /// Time zero of the scenario: the model starts anew, so that its chances do not depend on what
    /// was sent before.
    pub(crate) fn start(&mut self, zero: Instant) {
        let link = Bottleneck::new(&self.config, self.seed, self.name);
        self.run = Some(Clocked { link, zero });
    }

    /// A packet that the sending host sent.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: &[u8]) {
        let header = ip::header(packet, self.sender, self.receiver);
        let Some(header) = header else {
            self.foreign_packets += 1;
            return;
        };
        self.sample_until(now);
        let to = self.run.as_mut().unwrap_or(&mut self.before);
        to.link.enqueue(to.at(now), header, packet.to_vec());
    }

    /// A packet that has arrived by now, and when it did. Call until `None`.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Instant, Vec<u8>)> {
        self.sample_until(now);
        self.before.poll(now).or_else(|| self.run.as_mut()?.poll(now))
    }

    /// When to call [`Direction::poll`] next.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let run = self.run.as_ref();
        let sample = run.map(|run| run.instant(sample_time(self.samples.len())));
        let arrival = run.and_then(Clocked::next_event);
        [self.before.next_event(), arrival, sample].into_iter().flatten().min()
    }

    /// Takes the samples that are due, before the model moves past their time.
    fn sample_until(&mut self, now: Instant) {
        while let Some(run) = &mut self.run {
            let time = sample_time(self.samples.len());
            if time > run.at(now) {
                return;
            }
            let counters = run.link.counters();
            let arrived = counters.delivered_packets - self.counted.delivered_packets;
            let waited = counters.waited - self.counted.waited;
            let dropped = |of: &Counters| of.dropped_packets + of.managed_packets;
            self.samples.push(Sample {
                time,
                capacity: run.link.capacity(time),
                queued: run.link.queued(time),
                queuing_delay: run.link.queuing_delay(time),
                offered_packets: counters.offered_packets - self.counted.offered_packets,
                offered: counters.offered.saturating_sub(self.counted.offered),
                lost_packets: counters.lost_packets - self.counted.lost_packets,
                dropped_packets: dropped(&counters) - dropped(&self.counted),
                delivered_packets: arrived,
                delivered: counters.delivered.saturating_sub(self.counted.delivered),
                waited: (arrived > 0).then(|| waited / arrived.cast_signed()),
            });
            self.counted = counters;
        }
    }

    pub(crate) fn foreign_packets(&self) -> u64 {
        self.foreign_packets
    }

    pub(crate) fn into_record(self) -> DirectionRecord {
        let counters = self.run.map(|run| run.link.counters()).unwrap_or_default();
        DirectionRecord { samples: self.samples, counters }
    }
}

/// When the sample with this index is taken.
fn sample_time(index: usize) -> Timestamp {
    Timestamp::ZERO + SAMPLE_INTERVAL * (index as i64 + 1)
}

/// A schedule stopped at its first value. A trace has no value that could stand: it runs.
fn first_value(capacity: &Capacity) -> Capacity {
    match capacity {
        Capacity::Schedule(schedule) => {
            let first = Schedule::constant(schedule.rate(Timestamp::ZERO));
            Capacity::Schedule(first.expect("a schedule's rates are above zero"))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, DataSize, TimeDelta};

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// 1000 kbit/s until 100 ms, then 100 kbit/s; 10 ms delay.
    fn direction() -> Direction {
        let step = |ms, kbps| (Timestamp::from_millis(ms), Bitrate::from_kbps(kbps));
        let schedule = Schedule::new(vec![step(0, 1_000), step(100, 100)]).unwrap();
        let capacity = Capacity::Schedule(schedule);
        let config = LinkConfig { capacity, ..LinkConfig::unlimited(TimeDelta::from_millis(10)) };
        Direction::new(&config, Seed::new(1), "up", A, B)
    }

    /// An IPv4 packet of 125 bytes: 1 ms at 1000 kbit/s.
    fn packet(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0; 125];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&from.octets());
        packet[16..20].copy_from_slice(&to.octets());
        packet
    }

    /// When the only packet on its way arrives.
    fn arrival(direction: &mut Direction) -> Instant {
        let far = direction.before.zero + Duration::from_secs(60);
        let (due, _) = direction.poll(far).unwrap();
        assert!(direction.poll(far).is_none());
        due
    }

    #[test]
    fn the_capacity_stands_at_its_first_value_until_the_start() {
        let mut direction = direction();
        let late = direction.before.zero + ms(5_000);
        direction.enqueue(late, &packet(A, B));
        assert_eq!(arrival(&mut direction), late + ms(11));
    }

    #[test]
    fn the_schedule_counts_from_the_start() {
        let mut direction = direction();
        let start = direction.before.zero + ms(5_000);
        direction.start(start);
        direction.enqueue(start + ms(200), &packet(A, B));
        assert_eq!(arrival(&mut direction), start + ms(220));
    }

    #[test]
    fn what_was_sent_before_the_start_arrives_after_it_uncounted() {
        let mut direction = direction();
        let start = direction.before.zero + ms(50);
        direction.enqueue(start - ms(5), &packet(A, B));
        direction.start(start);
        assert_eq!(arrival(&mut direction), start + ms(6));
        assert_eq!(direction.into_record().counters, Counters::default());
    }

    #[test]
    fn only_packets_from_the_sender_to_the_receiver_pass() {
        let mut direction = direction();
        let now = direction.before.zero;
        let mut ipv6 = packet(A, B);
        ipv6[0] = 0x60;
        for foreign in [packet(B, A), packet(A, A), ipv6, packet(A, B)[..19].to_vec(), vec![]] {
            direction.enqueue(now, &foreign);
        }
        assert_eq!(direction.foreign_packets(), 5);
        assert!(direction.poll(now + ms(1_000)).is_none());
    }

    #[test]
    fn a_sample_holds_what_happened_since_the_one_before() {
        let mut direction = direction();
        let start = direction.before.zero;
        direction.start(start);
        // Each takes 1 ms; the last ones still wait, or are on their way, at 50 ms.
        for _ in 0..60 {
            direction.enqueue(start, &packet(A, B));
        }
        for now in 0..=120 {
            while direction.poll(start + ms(now)).is_some() {}
        }
        let samples = direction.into_record().samples;
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].time, Timestamp::from_millis(50));
        assert_eq!((samples[0].offered_packets, samples[1].offered_packets), (60, 0));
        // One sent by 39 ms has arrived by 49 ms; the one of 50 ms is handed over after the sample.
        assert_eq!((samples[0].delivered_packets, samples[1].delivered_packets), (39, 21));
        assert_eq!(samples[1].delivered, DataSize::from_bytes(21 * 125));
        assert_eq!(samples[0].queued, DataSize::from_bytes(9 * 125));
        assert_eq!(samples[0].queuing_delay, TimeDelta::from_millis(9));
        assert_eq!(samples[0].capacity, Some(Bitrate::from_kbps(1_000)));
        assert_eq!(samples[1].capacity, Some(Bitrate::from_kbps(100)));
    }
}
