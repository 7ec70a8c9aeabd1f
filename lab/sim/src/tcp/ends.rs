//! A TCP flow of the simulator: successive connections, each with a handshake and a transfer.

use std::collections::VecDeque;
use std::ops::Range;

use weir::controller::EcnMode;
use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::seed::Stream;

use super::receive_window::INITIAL_WINDOW;
use super::receiver::Receiver;
use super::segment::{Data, Segment, TcpPacket};
use super::sender::{Limits, Sender};
use super::timers::Timers;
use super::{ShortTransfers, Tcp};
use crate::config::FlowConfig;
use crate::flow::{Body, End, Ends, Outbox, Packet, SenderState};
use crate::trace::Transfer;

/// Time after which an unanswered SYN is sent again [RFC6298 §2.1]. It is constant for the first
/// SYNs and then doubles each time (Linux: `tcp_syn_linear_timeouts`).
const SYN_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// Maximum number of these doublings.
const SYN_DOUBLINGS: u32 = 6;

/// SenderState of the sending end.
#[derive(Debug)]
enum Stage {
    /// Between two transfers, or in a pause.
    Idle { until: Timestamp },
    /// Handshake: number of SYNs sent, time of the last one, and time of the next one.
    Opening { sent: u32, since: Timestamp, deadline: Timestamp },
    /// Transferring.
    Open(Box<Sender>),
}

/// Both ends of a flow's connections.
#[derive(Debug)]
pub(crate) struct TcpEnds {
    config: Tcp,
    /// Times in which the application uses no connection.
    pauses: VecDeque<Range<Timestamp>>,
    chance: Stream,
    /// Limit on data in the queue of the sending host, if that is a terminal of an access network.
    small_queue: Option<u64>,
    /// Timers of the sending host and of the receiving host.
    timers: [Timers; 2],
    /// Number of the connection at the sending end.
    connection: u64,
    stage: Stage,
    /// Number of the connection at the receiving end.
    accepted: u64,
    receiver: Receiver,
    /// Results for the current row.
    transfer: Transfer,
}

impl TcpEnds {
    pub(crate) fn new(flow: &FlowConfig, config: &Tcp, seed: Seed) -> Self {
        let mut chance = seed.stream(&format!("{}/transfers", flow.name));
        let first = match config.short {
            Some(short) if short.starts_idle => flow.start + short.idle_time(&mut chance),
            _ => flow.start,
        };
        let mut ticks = seed.stream(&format!("{}/ticks", flow.name));
        let timers = [Timers::new(&mut ticks), Timers::new(&mut ticks)];
        Self {
            pauses: flow.pauses.iter().cloned().collect(),
            small_queue: flow.sends_from_terminal().then_some(config.small_queue.as_bytes()),
            connection: 0,
            stage: Stage::Idle { until: first },
            accepted: 0,
            receiver: receiver(config, timers[1]),
            timers,
            config: config.clone(),
            chance,
            transfer: Transfer::default(),
        }
    }

    /// Time at which a timer fires that is due at `at`, in view of stalls.
    fn after_stall(&self, at: Timestamp) -> Timestamp {
        let stalls = &self.config.timer_stalls;
        let next = stalls.partition_point(|stall| stall.end <= at);
        stalls.get(next).filter(|stall| stall.start <= at).map_or(at, |stall| stall.end)
    }

    fn pause_start(&self) -> Option<Timestamp> {
        self.pauses.front().map(|pause| pause.start)
    }

    fn open(&mut self, now: Timestamp) {
        self.connection += 1;
        self.stage = Stage::Opening { sent: 0, since: now, deadline: now };
    }

    fn send_syn(&mut self, now: Timestamp, out: &mut Outbox) {
        let Stage::Opening { sent, since, deadline } = &mut self.stage else { return };
        if *deadline <= now {
            let doublings = sent.saturating_sub(SYN_LINEAR_TIMEOUTS - 1).min(SYN_DOUBLINGS);
            let timeout = SYN_TIMEOUT * (1 << doublings);
            (*since, *deadline) = (now, self.timers[0].expiry(now, timeout));
            *sent += 1;
            emit(self.connection, Segment::Syn, Ecn::NotEct, out);
        }
    }

    fn on_connected(&mut self, now: Timestamp, out: &mut Outbox) {
        let Stage::Opening { sent, since, .. } = self.stage else { return };
        // With more than one SYN it is unknown which one was answered (Karn's rule) [RFC6298 §3].
        let rtt = if sent == 1 { Some(now - since) } else { None };
        let length = self.config.short.map(|short| short.size(&mut self.chance).as_bytes());
        let limits = Limits {
            length,
            send_buffer: self.config.send_buffer.as_bytes(),
            small_queue: self.small_queue,
        };
        let control = self.config.congestion.build(self.chance.clone());
        let mut sender = Sender::new(control, limits, self.timers[0]);
        sender.on_connected(rtt, INITIAL_WINDOW.min(self.config.receive_window.as_bytes()));
        self.stage = Stage::Open(Box::new(sender));
        let end = Data { part: 0..0, sent_at: now, echo: Timestamp::ZERO, cwr: false };
        emit(self.connection, Segment::Data(end), Ecn::NotEct, out);
    }

    /// Sends the segments that may leave. Becomes idle when a short transfer is complete.
    fn send_data(&mut self, now: Timestamp, out: &mut Outbox) {
        let Stage::Open(sender) = &mut self.stage else { return };
        while let Some(outgoing) = sender.next_segment(now) {
            let ecn = match self.config.ecn {
                EcnMode::L4s => Ecn::Ect1,
                // A retransmission is not ECN-capable [RFC3168 §6.1.5].
                EcnMode::Classic if !outgoing.is_retransmission => Ecn::Ect0,
                _ => Ecn::NotEct,
            };
            self.transfer.retransmitted_packets += u64::from(outgoing.is_retransmission);
            emit(self.connection, Segment::Data(outgoing.data), ecn, out);
        }
        if let Some(short) = self.config.short.filter(|_| sender.is_done()) {
            let until = now + short.idle_time(&mut self.chance);
            self.stage = Stage::Idle { until };
        }
    }

    /// A segment arrived at the sending end.
    fn on_segment(&mut self, now: Timestamp, segment: &Segment, out: &mut Outbox) {
        match (segment, &mut self.stage) {
            (Segment::SynAck, Stage::Opening { .. }) => self.on_connected(now, out),
            (Segment::Ack(ack), Stage::Open(sender)) => {
                sender.on_ack(now, ack);
                out.rtt = sender.last_rtt();
            }
            _ => return,
        }
        self.send_data(now, out);
    }

    /// A segment arrived at the receiving end. `marked` is true if it carries a CE mark.
    fn take(&mut self, now: Timestamp, packet: &TcpPacket, marked: bool, out: &mut Outbox) {
        match &packet.segment {
            Segment::Syn => {
                if packet.connection > self.accepted {
                    self.accepted = packet.connection;
                    self.receiver = receiver(&self.config, self.timers[1]);
                }
                emit(self.accepted, Segment::SynAck, Ecn::NotEct, out);
            }
            Segment::Data(data) if packet.connection == self.accepted => {
                let before = self.receiver.received();
                let ack = self.receiver.on_data(now, data, marked);
                self.transfer.goodput += DataSize::from_bytes(self.receiver.received() - before);
                if let Some(ack) = ack {
                    emit(self.accepted, Segment::Ack(ack), Ecn::NotEct, out);
                }
            }
            _ => {}
        }
    }
}

fn receiver(config: &Tcp, timers: Timers) -> Receiver {
    let receiver = Receiver::new(config.receive_window.as_bytes(), timers);
    match config.ecn {
        EcnMode::L4s => receiver.with_counted_marks(),
        _ => receiver,
    }
}

fn emit(connection: u64, segment: Segment, ecn: Ecn, out: &mut Outbox) {
    let size = segment.size();
    let body = Body::Tcp(Box::new(TcpPacket { connection, segment }));
    out.packets.push(Packet { size, ecn, body });
}

impl ShortTransfers {
    fn size(&self, chance: &mut Stream) -> DataSize {
        let (min, max) = (self.min_size.as_bytes(), self.max_size.as_bytes());
        let spread = (max - min) as f64 * chance.uniform();
        DataSize::from_bytes(min + libm::round(spread) as u64)
    }

    /// Draws from an exponential distribution by inversion.
    fn idle_time(&self, chance: &mut Stream) -> TimeDelta {
        self.mean_idle * -libm::log(1.0 - chance.uniform())
    }
}

impl Ends for TcpEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        let at = match end {
            End::Sender => {
                let own = match &self.stage {
                    Stage::Idle { until } => Some(*until),
                    Stage::Opening { deadline, .. } => Some(*deadline),
                    Stage::Open(sender) => sender.next_deadline(),
                };
                own.into_iter().chain(self.pause_start()).min()
            }
            End::Receiver => self.receiver.next_deadline(),
        };
        at.map(|at| self.after_stall(at))
    }

    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox) {
        if end == End::Receiver {
            let ack = self.receiver.on_deadline(now);
            return emit(self.accepted, Segment::Ack(ack), Ecn::NotEct, out);
        }
        if let Some(pause) = self.pauses.pop_front_if(|pause| pause.start <= now) {
            self.stage = Stage::Idle { until: pause.end };
            return;
        }
        if matches!(self.stage, Stage::Idle { until } if until <= now) {
            self.open(now);
        }
        match &mut self.stage {
            Stage::Idle { .. } => {}
            Stage::Opening { .. } => self.send_syn(now, out),
            Stage::Open(sender) => {
                sender.on_deadline(now);
                self.send_data(now, out);
            }
        }
    }

    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox) {
        let Body::Tcp(tcp) = &packet.body else {
            unreachable!("no {:?} goes to a TCP flow", packet.body);
        };
        match end {
            End::Sender if tcp.connection == self.connection => {
                self.on_segment(now, &tcp.segment, out)
            }
            // Belongs to an earlier connection.
            End::Sender => {}
            End::Receiver => self.take(now, tcp, packet.ecn == Ecn::Ce, out),
        }
    }

    fn on_left_host(&mut self, now: Timestamp, packet: &Packet, out: &mut Outbox) {
        if let Body::Tcp(tcp) = &packet.body
            && tcp.connection == self.connection
            && let (Segment::Data(data), Stage::Open(sender)) = (&tcp.segment, &mut self.stage)
        {
            sender.on_left_host(&data.part);
            self.send_data(now, out);
        }
    }

    fn take_transfer(&mut self) -> Option<Transfer> {
        Some(std::mem::take(&mut self.transfer))
    }

    fn state(&self) -> SenderState {
        let Stage::Open(sender) = &self.stage else { return SenderState::default() };
        SenderState {
            target: None,
            pacing_rate: sender.pacing_rate(),
            congestion_window: Some(sender.congestion_window()),
            send_queue: None,
        }
    }
}
