//! A sender, a receiver, and the path between them, in whole microseconds of virtual time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use weir::controller::EcnMode;
use weir::feedback::{Ecn, RtpNumber};
use weir::{Algorithm, Bitrate, DataSize, MediaSender, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, messages};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};

use super::record::{Record, Recorder, SharedRecord, hex};
use super::scenarios::{Action, Loss, Scenario, Source, feedback_name, rate_limits};

const SSRC: u32 = 1;
/// RTP number of the first packet, so that they wrap in each file. Transport-wide ones begin at 0.
const FIRST_RTP: u64 = 65_400;
const TWCC_ID: ExtensionId = ExtensionId::new(1).unwrap();
/// The receiver's clock is this far ahead.
const CLOCK_OFFSET: i64 = 100_000_000;
const FRAME: i64 = 40_000;
const PACKET: u64 = 1_200;
/// How late an overtaken packet is.
const LATE: i64 = 30_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}

/// The direction from sender to receiver: a queue in front of a link.
#[derive(Default)]
struct Link {
    free_at: i64,
    last_arrival: i64,
    /// Packets left in the present row of losses.
    row: u64,
    /// Bits in the policer's bucket, in millionths, and when they were counted.
    tokens: u64,
    counted_at: i64,
}

/// Run of one vector.
struct Run<'a> {
    scenario: &'a Scenario,
    random: Random,
    now: i64,
    sender: MediaSender<(), Recorder>,
    record: SharedRecord,
    receiver: Receiver,
    link: Link,
    codepoint: Ecn,
    /// Packets by time of arrival and number.
    to_receiver: BTreeMap<(i64, u64), Ecn>,
    to_sender: VecDeque<(i64, Vec<u8>)>,
    next_frame: i64,
    next_action: usize,
    sent: u64,
}

/// What the bucket of the policer holds, in millionths of a bit.
fn bucket(scenario: &Scenario) -> u64 {
    scenario.policer.map_or(0, |(_, bytes)| bytes * 8_000_000)
}

fn at(us: i64) -> Timestamp {
    Timestamp::from_micros(us)
}

/// The first whole microsecond at or after this time.
fn up(time: Timestamp) -> i64 {
    time.as_nanos().div_euclid(1_000) + i64::from(time.as_nanos().rem_euclid(1_000) > 0)
}

fn header(algorithm: Algorithm, scenario: &Scenario, feedback: Feedback) -> String {
    let Scenario { name, about, seed, limits: (min, start, max), .. } = scenario;
    let [min, start, max] = [min, start, max].map(|kbps| kbps * 1_000);
    let ecn = match algorithm.ecn_mode(scenario.ecn) {
        EcnMode::Off => "off",
        EcnMode::Classic => "classic",
        EcnMode::L4s => "l4s",
    };
    let feedback = feedback_name(feedback);
    let settings = scenario.settings();
    let (limited, tcp) = (settings.probe_when_limited, settings.compete_with_tcp);
    let (random, priority) = (settings.tolerate_random_loss, settings.priority);
    format!(
        "{{\"format\":2,\"controller\":\"{algorithm}\",\"case\":\"{name}\",\
         \"feedback\":\"{feedback}\",\"seed\":{seed},\"about\":\"{about}\",\
         \"settings\":{{\"min_bps\":{min},\"start_bps\":{start},\"max_bps\":{max},\
         \"ecn\":\"{ecn}\",\"priority\":{priority},\"probe_when_limited\":{limited},\
         \"compete_with_tcp\":{tcp},\"tolerate_random_loss\":{random}}},\
         \"ssrc\":{SSRC},\"first_rtp\":{FIRST_RTP},\
         \"tolerance\":{{\"bitrate_ratio\":0.01,\"bitrate_bps\":1000}}}}"
    )
}

/// The text of one vector.
pub fn run(algorithm: Algorithm, scenario: &Scenario, feedback: Feedback) -> String {
    let record = Rc::new(RefCell::new(Record::default()));
    record.borrow_mut().line(&header(algorithm, scenario, feedback));
    let inner = algorithm.build(scenario.settings());
    let sender = MediaSender::new(Recorder::new(inner, Rc::clone(&record)));
    let ids = ExtensionIds::NONE.with_transport_sequence_number(Some(TWCC_ID));
    let config = ReceiverConfig::new(2, ids, feedback)
        .with_interval(TimeDelta::from_millis(scenario.feedback_ms));
    let mut run = Run {
        scenario,
        random: Random(scenario.seed),
        now: 0,
        sender,
        record: Rc::clone(&record),
        receiver: Receiver::new(at(CLOCK_OFFSET), config, Box::new(|| 0.5)),
        link: Link { tokens: bucket(scenario), ..Link::default() },
        codepoint: algorithm.ecn_mode(scenario.ecn).codepoint(),
        to_receiver: BTreeMap::new(),
        to_sender: VecDeque::new(),
        next_frame: 0,
        next_action: 0,
        sent: 0,
    };
    while run.now < scenario.end_ms * 1_000 {
        run.step();
    }
    drop(run);
    Rc::into_inner(record).expect("the run is over").into_inner().into_text()
}

impl Run<'_> {
    /// Does everything that is due, and goes on to the next event.
    fn step(&mut self) {
        self.act();
        self.receive();
        self.read_feedback();
        if self.next_frame <= self.now {
            self.next_frame += FRAME;
            self.make_frame();
        }
        self.sender.on_timeout(at(self.now));
        self.send();
        self.now = self.next_event().max(self.now + 1);
    }

    fn next_event(&self) -> i64 {
        let mut next = self.next_frame.min(up(self.receiver.next_timeout()) - CLOCK_OFFSET);
        next = next.min(self.to_sender.front().map_or(i64::MAX, |(time, _)| *time));
        next = next.min(self.to_receiver.first_key_value().map_or(i64::MAX, |(key, _)| key.0));
        let action = self.scenario.actions.get(self.next_action);
        next = next.min(action.map_or(i64::MAX, |(ms, _)| ms * 1_000));
        next.min(self.sender.next_timeout().map_or(i64::MAX, up))
    }

    fn act(&mut self) {
        let now = at(self.now);
        let kbps = Bitrate::from_kbps;
        while let Some((ms, action)) = self.scenario.actions.get(self.next_action)
            && ms * 1_000 <= self.now
        {
            self.next_action += 1;
            match *action {
                Action::RoundTripTime(ms) => {
                    self.sender.on_round_trip_time(now, TimeDelta::from_millis(ms));
                }
                Action::ReceiverLimit(limit) => {
                    self.sender.on_receiver_limit(now, limit.map(kbps));
                }
                Action::Limits(min, start, max) => {
                    self.sender.set_limits(now, rate_limits((min, start, max)));
                }
                Action::Desired(desired) => {
                    self.sender.set_desired_bitrate(now, desired.map(kbps));
                }
                Action::NewRoute => self.sender.on_route_change(now),
            }
        }
    }

    fn receive(&mut self) {
        while let Some(packet) = self.to_receiver.first_entry()
            && packet.key().0 <= self.now
        {
            let ((time, number), ecn) = packet.remove_entry();
            let bytes = rtp(number);
            self.receiver.on_rtp(at(time + CLOCK_OFFSET), &bytes, ecn).expect("it is RTP");
        }
        self.receiver.on_timeout(at(self.now + CLOCK_OFFSET));
        while let Some(bytes) = self.receiver.next_rtcp() {
            let bytes = bytes.to_vec();
            // Receiver reports would add nothing but the round-trip time, which is an action.
            let is_feedback = bytes[1] == 205;
            let is_lost = self.random.below(100) < self.scenario.feedback_loss;
            if is_feedback && !is_lost {
                self.to_sender.push_back((self.now + self.scenario.delay_ms * 1_000, bytes));
            }
        }
    }

    fn read_feedback(&mut self) {
        while let Some((time, _)) = self.to_sender.front()
            && *time <= self.now
        {
            let (_, bytes) = self.to_sender.pop_front().expect("there is one");
            self.record.borrow_mut().datagram = Some(bytes.clone());
            let now = at(self.now);
            for message in messages(&bytes) {
                let message = message.expect("the receiver wrote it");
                self.sender.on_feedback(now, |history| message.join(now, history));
            }
            let mut record = self.record.borrow_mut();
            if record.datagram.take().is_some() {
                record.line(&format!("[\"no-news\",{},\"{}\"]", self.now, hex(&bytes)));
            }
        }
    }

    /// Bytes of the next frame: the target, more or less a fifth.
    fn frame_bytes(&mut self) -> u64 {
        let target = self.sender.target().source_bitrate.as_bps();
        let rate = match self.scenario.source {
            Source::Limited(kbps, until) if self.now < until * 1_000 => target.min(kbps * 1_000),
            Source::Pause(from, to) if (from * 1_000..to * 1_000).contains(&self.now) => 0,
            _ => target,
        };
        rate * FRAME as u64 / 8_000_000 * (80 + self.random.below(41)) / 100
    }

    fn make_frame(&mut self) {
        let bytes = self.frame_bytes();
        if bytes == 0 {
            return;
        }
        let packets = bytes.div_ceil(PACKET);
        let size = DataSize::from_bytes(bytes / packets);
        self.sender.enqueue(at(self.now), (0..packets).map(|_| (size, ())));
    }

    fn send(&mut self) {
        loop {
            let sequence_number = (FIRST_RTP + self.sent) as u16;
            let rtp = RtpNumber { ssrc: SSRC, sequence_number };
            let packet = self.sender.next_packet_with(at(self.now), |_| ((), Some(rtp)));
            let Some(packet) = packet else { return };
            assert_eq!(packet.sent.sequence_number, self.sent as i64);
            self.pass(packet.size.as_bytes());
            self.sent += 1;
        }
    }

    /// Passes packet number `sent` through the link.
    fn pass(&mut self, size: u64) {
        let scenario = self.scenario;
        let capacity = scenario.capacity_bps(self.now / 1_000);
        let waits = (self.link.free_at - self.now).max(0);
        let queued = waits as u64 * capacity / 8_000_000;
        if capacity == 0
            || queued + size > scenario.queue_bytes
            || self.is_lost()
            || self.is_policed(size)
        {
            return;
        }
        let took = (size * 8_000_000).div_ceil(capacity) as i64;
        self.link.free_at = self.now + waits + took;
        let mut arrival = self.link.free_at + scenario.delay_ms * 1_000;
        if scenario.jitter_ms > 0 {
            arrival += self.random.below(scenario.jitter_ms as u64 * 1_000) as i64;
            arrival = arrival.max(self.link.last_arrival);
            self.link.last_arrival = arrival;
        }
        if scenario.late_each.is_some_and(|each| self.sent.is_multiple_of(each)) {
            arrival += LATE;
        }
        let threshold = match self.codepoint {
            Ecn::Ect0 => 20_000,
            Ecn::Ect1 => 5_000,
            Ecn::NotEct | Ecn::Ce => i64::MAX,
        };
        let ecn = if waits > threshold { Ecn::Ce } else { self.codepoint };
        self.to_receiver.insert((arrival, self.sent), ecn);
    }

    /// Whether the policer drops a packet of this size.
    fn is_policed(&mut self, size: u64) -> bool {
        let Some((kbps, _)) = self.scenario.policer else { return false };
        let since = (self.now - self.link.counted_at) as u64;
        let tokens = self.link.tokens + since * kbps * 1_000;
        self.link.tokens = tokens.min(bucket(self.scenario));
        self.link.counted_at = self.now;
        let Some(left) = self.link.tokens.checked_sub(size * 8_000_000) else { return true };
        self.link.tokens = left;
        false
    }

    fn is_lost(&mut self) -> bool {
        match self.scenario.loss {
            Loss::None => false,
            Loss::Random(percent) => self.random.below(100) < percent,
            Loss::Bursts => {
                if self.link.row == 0 && self.random.below(120) == 0 {
                    self.link.row = 4 + self.random.below(8);
                }
                self.link.row = self.link.row.saturating_sub(1);
                self.link.row > 0
            }
        }
    }
}

/// The RTP packet with this number.
fn rtp(number: u64) -> Vec<u8> {
    let rtp_number = (FIRST_RTP + number) as u16;
    let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), rtp_number, 0)
        .with_transport_sequence_number(Some((TWCC_ID, number as u16)));
    let mut bytes = vec![0; header.size()];
    header.emit(&mut bytes);
    bytes
}
