//! The smallest QUIC stack that has what counts here: pacing, a window, ACKs for every second
//! packet, losses by numbers [RFC9002 §6.1.1] and by time, and repeats of lost data.
//!
//! [RFC9002 §6.1.1]: https://www.rfc-editor.org/rfc/rfc9002#section-6.1.1

use std::collections::BTreeMap;

use weir::controller::Settings;
use weir::{Algorithm, Bitrate, DataSize, TimeDelta, Timestamp};
use weir_quic::testing::{End, Frame, Groups, Host};
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space};

const MTU: u64 = 1_200;
const FRAMING: u64 = 38;
const MAX_ACK_DELAY: TimeDelta = TimeDelta::from_millis(25);
/// The host's bucket.
const BURST: TimeDelta = TimeDelta::from_millis(10);

/// What the receiver and its ACKs are like.
#[derive(Clone, Copy)]
pub struct Receiver {
    /// Packets for one ACK.
    pub ack_every: u64,
    /// Whether ACKs have receive times, by a clock that is this much ahead.
    pub clock: Option<TimeDelta>,
    /// Whether the host passes the ACK delay on.
    pub tells_delay: bool,
}

impl Receiver {
    pub const USUAL: Self = Self { ack_every: 2, clock: None, tells_delay: true };
}

pub enum Datagram {
    Data { number: u64, group: u64, bytes: u64 },
    Ack { numbers: Vec<(u64, Timestamp)>, held: TimeDelta, marks: u64 },
}

struct Flight {
    sent: Timestamp,
    group: u64,
    bytes: u64,
}

pub struct Model {
    pub congestion: Congestion,
    receiver: Receiver,
    /// Data by group: newer groups leave first.
    waiting: BTreeMap<u64, u64>,
    flight: BTreeMap<u64, Flight>,
    in_flight: u64,
    next_number: u64,
    largest_acked: Option<u64>,
    srtt: TimeDelta,
    /// Bytes that may leave, and since when they are counted.
    credit: (f64, Timestamp),
    app_limited: bool,
    /// When the pacer, or a probe after silence, is due.
    timer: Option<Timestamp>,
    last_news: Timestamp,
    last_sent: Timestamp,
    probes: u32,
    groups: Groups,
    whole: Vec<Frame>,
    unacked: Vec<(u64, Timestamp)>,
    marks: u64,
}

impl Model {
    pub fn new(algorithm: Algorithm, settings: impl Into<Settings>, receiver: Receiver) -> Self {
        let congestion = Congestion::new(algorithm.build(settings), Config::default());
        Self {
            congestion,
            receiver,
            waiting: BTreeMap::new(),
            flight: BTreeMap::new(),
            in_flight: 0,
            next_number: 0,
            largest_acked: None,
            srtt: TimeDelta::from_millis(333),
            credit: (0.0, Timestamp::ZERO),
            app_limited: true,
            timer: None,
            last_news: Timestamp::ZERO,
            last_sent: Timestamp::ZERO,
            probes: 0,
            groups: Groups::default(),
            whole: Vec::new(),
            unacked: Vec::new(),
            marks: 0,
        }
    }

    fn on_ack(
        &mut self,
        now: Timestamp,
        numbers: &[(u64, Timestamp)],
        held: TimeDelta,
        marks: u64,
    ) {
        for &(number, arrived) in numbers {
            if let Some(ahead) = self.receiver.clock {
                let name = PacketName::Numbered(Space::Data, number);
                self.congestion.on_receive_time(name, arrived + ahead);
            }
            self.congestion.on_ack_range(Space::Data, number..=number);
            self.largest_acked = self.largest_acked.max(Some(number));
            let Some(flight) = self.flight.remove(&number) else { continue };
            self.in_flight -= flight.bytes;
            let sample = now - flight.sent - held;
            self.srtt = self.srtt + (sample - self.srtt) / 8;
        }
        (self.last_news, self.probes) = (now, 0);
        let mut ack = AckEnd::default()
            .with_app_limited(self.app_limited)
            .with_smoothed_rtt(self.srtt)
            .with_ce_count(Space::Data, marks);
        if self.receiver.tells_delay {
            ack = ack.with_delay(held);
        }
        self.congestion.on_ack_end(now, ack);
        self.find_losses(now);
    }

    fn find_losses(&mut self, now: Timestamp) {
        let Some(largest) = self.largest_acked else { return };
        let patience = self.srtt * 1.125;
        while let Some((&number, flight)) = self.flight.first_key_value() {
            let is_late = number < largest && flight.sent + patience < now;
            if number + 3 > largest && !is_late {
                return;
            }
            self.congestion.on_packet_lost(now, PacketName::Numbered(Space::Data, number));
            self.send_again(number);
        }
    }

    fn send_again(&mut self, number: u64) {
        let Some(flight) = self.flight.remove(&number) else { return };
        self.in_flight -= flight.bytes;
        *self.waiting.entry(flight.group).or_default() += flight.bytes - FRAMING;
    }

    /// When a probe leaves, because nothing was heard [RFC9002 §6.2].
    ///
    /// [RFC9002 §6.2]: https://www.rfc-editor.org/rfc/rfc9002#section-6.2
    fn probe_time(&self) -> Option<Timestamp> {
        if self.flight.is_empty() {
            return None;
        }
        let wait = (self.srtt * 2 + MAX_ACK_DELAY) * (1_i64 << self.probes.min(6));
        Some(self.last_sent.max(self.last_news) + wait)
    }

    /// Sends a packet of the newest group.
    fn send_data(&mut self, now: Timestamp, sent: &mut Vec<(End, Datagram)>) -> bool {
        let Some(mut entry) = self.waiting.last_entry() else { return false };
        let group = *entry.key();
        let bytes = (*entry.get()).min(MTU - FRAMING);
        *entry.get_mut() -= bytes;
        if *entry.get() == 0 {
            entry.remove();
        }
        let (number, size) = (self.next_number, bytes + FRAMING);
        self.next_number += 1;
        self.flight.insert(number, Flight { sent: now, group, bytes: size });
        self.in_flight += size;
        self.last_sent = now;
        self.credit.0 -= size as f64;
        let packet = Sent::new(Space::Data, number, DataSize::from_bytes(size));
        self.congestion.on_packet_sent(now, packet);
        sent.push((End::Publisher, Datagram::Data { number, group, bytes }));
        true
    }

    fn send_ack(&mut self, now: Timestamp, sent: &mut Vec<(End, Datagram)>) {
        let Some(&(_, newest)) = self.unacked.last() else { return };
        let numbers = std::mem::take(&mut self.unacked);
        let (held, marks) = (now - newest, self.marks);
        sent.push((End::Subscriber, Datagram::Ack { numbers, held, marks }));
    }

    fn ack_time(&self) -> Option<Timestamp> {
        self.unacked.first().map(|&(_, arrived)| arrived + MAX_ACK_DELAY)
    }
}

impl Host for Model {
    type Datagram = Datagram;

    fn size(datagram: &Datagram) -> usize {
        match datagram {
            Datagram::Data { bytes, .. } => (bytes + FRAMING) as usize,
            Datagram::Ack { .. } => 40,
        }
    }

    fn on_datagram(&mut self, now: Timestamp, _at: End, datagram: Datagram, is_marked: bool) {
        match datagram {
            Datagram::Data { number, group, bytes } => {
                self.marks += u64::from(is_marked);
                self.unacked.push((number, now));
                self.groups.on_read(group, bytes, &mut self.whole);
            }
            Datagram::Ack { numbers, held, marks } => self.on_ack(now, &numbers, held, marks),
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.congestion.next_timeout().is_some_and(|due| due <= now) {
            self.congestion.on_timeout(now);
        }
        if self.probe_time().is_some_and(|due| due <= now) {
            self.probes += 1;
            self.last_news = now;
            let Some((&number, _)) = self.flight.first_key_value() else { return };
            // A probe is exempt from the window and the pacer.
            self.credit.0 = self.credit.0.max(MTU as f64);
            self.send_again(number);
        }
    }

    fn next_timeout(&mut self) -> Option<Timestamp> {
        let timers = [self.timer, self.ack_time(), self.probe_time()];
        timers.into_iter().flatten().chain(self.congestion.next_timeout()).min()
    }

    fn transmit(&mut self, now: Timestamp, sent: &mut Vec<(End, Datagram)>) {
        let is_due = self.ack_time().is_some_and(|due| due <= now);
        if is_due || self.unacked.len() as u64 >= self.receiver.ack_every {
            self.send_ack(now, sent);
        }
        let rate = self.congestion.pacing_rate();
        let burst = (rate * BURST).as_bytes().max(MTU) as f64;
        let earned = (rate * (now - self.credit.1)).as_bytes() as f64;
        if earned >= 1.0 {
            self.credit = ((self.credit.0 + earned).min(burst), now);
        }
        (self.timer, self.app_limited) = (None, false);
        loop {
            if self.waiting.is_empty() {
                self.app_limited = true;
                return;
            }
            if self.in_flight + MTU > self.congestion.window().as_bytes() && self.probes == 0 {
                return;
            }
            if self.credit.0 < MTU as f64 {
                let missing = DataSize::from_bytes((MTU as f64 - self.credit.0) as u64 + 1);
                self.timer = Some(now + missing / rate);
                return;
            }
            if !self.send_data(now, sent) {
                return;
            }
        }
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn send(&mut self, _now: Timestamp, frame: Frame) {
        *self.waiting.entry(frame.group).or_default() += frame.size.as_bytes();
        self.groups.on_sent(frame);
        // A group that ended a second ago is reset.
        if let Some(old) = frame.group.checked_sub(2) {
            self.waiting.remove(&old);
            self.groups.forget(old);
        }
    }

    fn estimate(&self) -> Option<Bitrate> {
        Some(self.congestion.media_bitrate())
    }

    fn take_whole(&mut self, whole: &mut Vec<Frame>) {
        whole.append(&mut self.whole);
    }
}
