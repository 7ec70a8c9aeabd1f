//! A QUIC flow of the simulator: handshake, sending end, receiving end.

use std::ops::Range;

use weir::controller::EcnMode;
use weir::feedback::Ecn;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::seed::Stream;
use weir_quic::testing::Frame;

use super::packet::QuicPacket;
use super::receiver::Receiver;
use super::sender::Sender;
use super::{Quic, QuicCongestion, QuicSource};
use crate::config::{FlowConfig, Media};
use crate::flow::{Body, End, Ends, Outbox, Packet, SenderState};
use crate::trace::{Transfer, Video};

/// The probe timeout before there is a round-trip time: three times the initial one
/// [RFC9002 §6.2.2].
const FIRST_TIMEOUT: TimeDelta = TimeDelta::from_millis(999);

/// The sending end.
#[derive(Debug)]
enum Stage {
    /// The number of asks, the time of the last one, and of the next one.
    Opening {
        asks: u32,
        asked: Timestamp,
        due: Timestamp,
    },
    Open(Box<Sender>),
}

/// Both ends of a flow's connection.
#[derive(Debug)]
pub(crate) struct QuicEnds {
    config: Quic<Media>,
    ecn: Ecn,
    pauses: Vec<Range<Timestamp>>,
    chance: Stream,
    stage: Stage,
    receiver: Receiver,
    /// Whether frames come from elsewhere, and none from its own source.
    is_fed: bool,
}

impl QuicEnds {
    pub(crate) fn new(flow: &FlowConfig, config: &Quic<Media>, seed: Seed) -> Self {
        let media = &config.media;
        let mode = match config.congestion {
            QuicCongestion::Media => media.controller.ecn_mode(media.settings.ecn),
            _ => EcnMode::Off,
        };
        let ecn = mode.codepoint();
        let is_bulk = config.source == QuicSource::Bulk;
        Self {
            ecn,
            pauses: flow.pauses.clone(),
            chance: seed.stream(&format!("{}/probes", flow.name)),
            stage: Stage::Opening { asks: 0, asked: flow.start, due: flow.start },
            receiver: Receiver::new(config.ack, mode != EcnMode::Off, is_bulk, &flow.pauses),
            config: config.clone(),
            is_fed: false,
        }
    }

    /// The same, whose frames are those of [`QuicEnds::write`].
    pub(super) fn fed_from_outside(self) -> Self {
        Self { is_fed: true, ..self }
    }

    /// The application writes a frame.
    pub(super) fn write(&mut self, now: Timestamp, frame: &Frame, out: &mut Outbox) {
        if let Stage::Open(sender) = &mut self.stage {
            sender.write(now, frame, out);
            self.mark_sent(out);
        }
    }

    /// What the application reads as the rate for its media; `None` before the connection is open.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        match &self.stage {
            Stage::Open(sender) => Some(sender.estimate()),
            Stage::Opening { .. } => None,
        }
    }

    /// Frames that are whole since the last call or row.
    pub(super) fn take_whole(&mut self, whole: &mut Vec<Frame>) {
        self.receiver.take_whole(whole);
    }

    /// Packets of the sender carry the flow's codepoint. ACKs carry none.
    fn mark_sent(&self, out: &mut Outbox) {
        for packet in &mut out.packets {
            packet.ecn = self.ecn;
        }
    }
}

impl Outbox {
    /// Sends a QUIC packet.
    pub(super) fn quic(&mut self, packet: QuicPacket) {
        let size = packet.size();
        self.packets.push(Packet { size, ecn: Ecn::NotEct, body: Body::Quic(Box::new(packet)) });
    }
}

impl Ends for QuicEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        match (end, &self.stage) {
            (End::Receiver, _) => self.receiver.next_deadline(),
            (End::Sender, Stage::Opening { due, .. }) => Some(*due),
            (End::Sender, Stage::Open(sender)) => sender.next_deadline(),
        }
    }

    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox) {
        if end == End::Receiver {
            if self.receiver.next_deadline().is_some_and(|due| due <= now)
                && let Some(ack) = self.receiver.ack(now)
            {
                out.quic(ack);
            }
            return;
        }
        match &mut self.stage {
            Stage::Opening { asks, asked, due } if *due <= now => {
                (*asked, *due) = (now, now + FIRST_TIMEOUT * (1_i64 << (*asks).min(6)));
                *asks += 1;
                out.quic(QuicPacket::Hello);
            }
            Stage::Opening { .. } => {}
            Stage::Open(sender) => {
                let is_paused = self.pauses.iter().any(|pause| pause.contains(&now));
                sender.on_deadline(now, is_paused, out);
                self.mark_sent(out);
            }
        }
    }

    fn on_packet(&mut self, now: Timestamp, _: End, packet: &Packet, out: &mut Outbox) {
        let Body::Quic(quic) = &packet.body else {
            unreachable!("no {:?} goes to a QUIC flow", packet.body);
        };
        match (quic.as_ref(), &mut self.stage) {
            (QuicPacket::Hello, _) => out.quic(QuicPacket::Welcome),
            (QuicPacket::Welcome, Stage::Opening { asked, .. }) => {
                let rtt = now - *asked;
                let mut sender = Sender::new(&self.config, now, rtt, self.chance.clone());
                if self.is_fed {
                    sender.drop_source();
                }
                self.stage = Stage::Open(Box::new(sender));
            }
            (QuicPacket::Data { number, content }, _) => {
                let is_marked = packet.ecn == Ecn::Ce;
                let ack = self.receiver.on_data(now, *number, content, is_marked);
                if let Some(ack) = ack {
                    out.quic(ack);
                }
            }
            (QuicPacket::Ack(ack), Stage::Open(sender)) => {
                sender.on_ack(now, ack, out);
                self.mark_sent(out);
            }
            (QuicPacket::Welcome | QuicPacket::Ack(_), _) => {}
        }
    }

    fn take_video(&mut self, _now: Timestamp, is_last: bool) -> Option<Video> {
        if is_last && let Stage::Open(sender) = &self.stage {
            self.receiver.finish(sender.last_frame());
        }
        self.receiver.take_video()
    }

    fn take_transfer(&mut self) -> Option<Transfer> {
        let sent_again = match &mut self.stage {
            Stage::Open(sender) => sender.take_sent_again(),
            Stage::Opening { .. } => 0,
        };
        Some(self.receiver.take_transfer(sent_again))
    }

    fn state(&self) -> SenderState {
        match &self.stage {
            Stage::Open(sender) => sender.state(),
            Stage::Opening { .. } => SenderState::default(),
        }
    }
}
