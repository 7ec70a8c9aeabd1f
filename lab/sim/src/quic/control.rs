//! What controls a connection: a controller for media behind `weir-quic`, or a window as QUIC
//! stacks have it [RFC9002 §7].

use weir::controller::Target;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space, WindowRule};

use super::bbr::Bbr3;
use super::packet::{Ack, Content, MTU};
use super::recovery::{AckFacts, Lost, News};
use super::rtt::Rtt;
use super::{Quic, QuicCongestion, QuicStack};
use crate::config::Media;
use crate::flow::{Change, Outbox};
use crate::tcp::congestion::{
    AckEvent, CongestionControl, LEAST_WINDOW, Reno, Repair, Rfc9438, Window,
};

/// Windows that a stack paces in a round-trip time [RFC9002 §7.7].
pub(super) const PACED_WINDOWS: f64 = 1.25;

/// `kLossReductionFactor` [RFC9002 §7.3.2].
const LOSS_REDUCTION: f64 = 0.5;

/// The control of a connection.
#[derive(Debug)]
pub(super) enum Control {
    Media {
        congestion: Box<Congestion>,
        /// Whether the host paces by the window, and not by the rate, and names packets by the
        /// time at which they left.
        by_window: bool,
    },
    Rival(Rival),
    Bbr(Box<Bbr3>),
}

impl Control {
    /// After a handshake of `rtt` that ended now.
    pub(super) fn new(
        config: &Quic<Media>,
        now: Timestamp,
        rtt: TimeDelta,
        chance: Stream,
    ) -> Self {
        let rival: Box<dyn CongestionControl> = match config.congestion {
            QuicCongestion::Media => {
                let media = &config.media;
                let mut settings = media.settings;
                settings.ecn = media.controller.ecn_mode(settings.ecn);
                let rule = match config.stack {
                    QuicStack::Noq => WindowRule::Brake,
                    QuicStack::Quinn => WindowRule::Pacer { gain: PACED_WINDOWS },
                };
                let host = Config::default().with_mtu(DataSize::from_bytes(MTU)).with_window(rule);
                let controller = media.controller.build(settings);
                let congestion = Box::new(Congestion::new(controller, host));
                let by_window = config.stack == QuicStack::Quinn;
                return Self::Media { congestion, by_window };
            }
            QuicCongestion::Cubic => Box::new(Rfc9438::of_quic()),
            QuicCongestion::NewReno => Box::new(NewReno),
            QuicCongestion::Bbr3 => return Self::Bbr(Box::new(Bbr3::new(now, rtt, chance))),
        };
        Self::Rival(Rival { control: rival, window: Window::INITIAL, recovery_start: None })
    }

    /// What may be in flight, in bytes of QUIC packets.
    pub(super) fn window(&self) -> u64 {
        match self {
            Self::Media { congestion, .. } => congestion.window().as_bytes(),
            Self::Rival(rival) => (rival.window.congestion * MTU as f64) as u64,
            Self::Bbr(bbr) => bbr.window(),
        }
    }

    /// The rate at which QUIC packets leave.
    pub(super) fn pacing_rate(&self, rtt: &Rtt) -> Bitrate {
        match self {
            Self::Media { congestion, by_window: false } => congestion.pacing_rate(),
            Self::Media { .. } | Self::Rival(_) => self.window_rate(rtt) * PACED_WINDOWS,
            Self::Bbr(bbr) => bbr.pacing_rate(),
        }
    }

    /// A window in a round-trip time.
    fn window_rate(&self, rtt: &Rtt) -> Bitrate {
        let least = TimeDelta::from_micros(1);
        DataSize::from_bytes(self.window()) / rtt.smoothed().max(least)
    }

    /// What the application reads as the rate for its media. Of a window, that in a round-trip
    /// time, as applications take it.
    pub(super) fn estimate(&self, rtt: &Rtt) -> Bitrate {
        match self {
            Self::Media { congestion, .. } => congestion.media_bitrate(),
            Self::Rival(_) => self.window_rate(rtt),
            Self::Bbr(bbr) => bbr.estimate().unwrap_or_else(|| self.window_rate(rtt)),
        }
    }

    /// The target of a controller for media.
    pub(super) fn target(&self) -> Option<&Target> {
        match self {
            Self::Media { congestion, .. } => Some(congestion.target()),
            Self::Rival(_) | Self::Bbr(_) => None,
        }
    }

    /// Bytes of padding that a controller asks for.
    pub(super) fn take_padding(&mut self, now: Timestamp) -> u64 {
        match self {
            Self::Media { congestion, .. } => congestion.take_padding(now).as_bytes(),
            Self::Rival(_) | Self::Bbr(_) => 0,
        }
    }

    /// A packet leaves, with which so much is in flight.
    pub(super) fn on_sent(
        &mut self,
        now: Timestamp,
        number: u64,
        content: &Content,
        in_flight: u64,
    ) {
        let size = content.size();
        match self {
            Self::Media { congestion, by_window } => {
                let is_padding = matches!(content, Content::Padding(_));
                let size = DataSize::from_bytes(size);
                let sent = match by_window {
                    true => Sent::unnumbered(size),
                    false => Sent::new(Space::Data, number, size),
                };
                congestion.on_packet_sent(now, sent.with_padding(is_padding));
            }
            Self::Rival(_) => {}
            Self::Bbr(bbr) => bbr.on_sent(now, number, size, in_flight),
        }
    }

    /// An ACK frame, before its losses are found. As noq and quinn, this host does not pass the
    /// ACK delay on.
    pub(super) fn on_ack(&mut self, now: Timestamp, ack: &Ack, news: &News, facts: AckFacts) {
        match self {
            Self::Media { congestion, by_window } => {
                if *by_window {
                    acked_by_time(congestion, news);
                } else {
                    acked_by_number(congestion, ack, news);
                }
                let mut end = AckEnd::default()
                    .with_app_limited(facts.app_limited)
                    .with_smoothed_rtt(facts.rtt.smoothed());
                if let Some(count) = ack.ce_count {
                    end = end.with_ce_count(Space::Data, count);
                }
                congestion.on_ack_end(now, end);
            }
            Self::Rival(rival) => rival.on_ack(now, news, facts),
            Self::Bbr(bbr) => bbr.on_ack(now, &news.acked, facts),
        }
    }

    pub(super) fn on_lost(&mut self, now: Timestamp, lost: &Lost) {
        match self {
            Self::Media { congestion, by_window: true } => {
                let Some(newest) = lost.packets.iter().map(|packet| packet.sent).max() else {
                    return;
                };
                let bytes = lost.packets.iter().map(|packet| packet.content.size()).sum();
                congestion.on_bytes_lost(now, newest, DataSize::from_bytes(bytes));
            }
            Self::Media { congestion, by_window: false } => {
                for packet in &lost.packets {
                    let name = PacketName::Numbered(Space::Data, packet.number);
                    congestion.on_packet_lost(now, name);
                }
            }
            Self::Rival(rival) => rival.on_lost(now, lost),
            Self::Bbr(bbr) => bbr.on_lost(lost),
        }
    }

    /// Notes a change of the target since it was `from`.
    pub(super) fn note_change(&self, from: Option<Bitrate>, out: &mut Outbox) {
        let (Self::Media { congestion, .. }, Some(from)) = (self, from) else { return };
        let to = congestion.target().bitrate;
        if to == from {
            return;
        }
        let metrics = congestion.metrics();
        let signals = metrics.signals.iter();
        let signals = signals.map(|&(name, value)| (name.into(), value)).collect();
        let (reason, state) = (metrics.reason.as_str(), metrics.state);
        out.changes.push(Change { from, to, reason, state, signals });
    }
}

/// noq tells numbers, and which losses were none.
fn acked_by_number(congestion: &mut Congestion, ack: &Ack, news: &News) {
    for &(number, time) in &ack.times {
        congestion.on_receive_time(PacketName::Numbered(Space::Data, number), time);
    }
    let acked = news.acked.iter().map(|packet| packet.number);
    for number in acked.chain(news.late.iter().copied()) {
        congestion.on_packet_acked(PacketName::Numbered(Space::Data, number));
    }
}

/// quinn tells when packets were sent, and how large they were. Losses come as a sum, and are not
/// taken back.
fn acked_by_time(congestion: &mut Congestion, news: &News) {
    for packet in &news.acked {
        let size = DataSize::from_bytes(packet.content.size());
        congestion.on_sized_packet_acked(PacketName::SentAt(packet.sent), size);
    }
}

/// NewReno: Reno whose windows have any number of bytes [RFC9002 §7.3.2].
#[derive(Debug)]
struct NewReno;

impl CongestionControl for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        Reno.on_ack(window, ack);
    }

    fn on_congestion(&mut self, _: Timestamp, window: &Window) -> f64 {
        (window.congestion * LOSS_REDUCTION).max(LEAST_WINDOW)
    }
}

/// A window under a rule that TCP has, too. Windows are in packets of the largest size.
#[derive(Debug)]
pub(super) struct Rival {
    control: Box<dyn CongestionControl>,
    window: Window,
    /// What was sent until then belongs to the congestion event before [RFC9002 §7.3.2].
    recovery_start: Option<Timestamp>,
}

impl Rival {
    /// Whether a packet was sent after the last congestion event.
    fn is_new(&self, sent: Timestamp) -> bool {
        self.recovery_start.is_none_or(|start| sent > start)
    }

    fn on_ack(&mut self, now: Timestamp, news: &News, facts: AckFacts) {
        let delivered = news.acked.iter().filter(|packet| self.is_new(packet.sent)).count() as u64;
        if delivered == 0 {
            return;
        }
        let in_flight = facts.in_flight / MTU;
        let event = AckEvent {
            now,
            delivered,
            lost: 0,
            marked: 0,
            total_delivered: 0,
            rtt: None,
            smoothed_rtt: facts.rtt.smoothed(),
            prior_in_flight: in_flight + delivered,
            in_flight,
            acknowledged: 0,
            next: u64::MAX,
            repair: Repair::None,
            // A window that the application did not fill does not grow [RFC9002 §7.8].
            is_window_limited: !facts.app_limited,
            has_advanced: true,
            sample: None,
            departure_wait: TimeDelta::ZERO,
        };
        self.control.on_ack(&mut self.window, &event);
    }

    /// One reduction for the losses of a round trip [RFC9002 §7.3.2].
    fn on_lost(&mut self, now: Timestamp, lost: &Lost) {
        let Some(newest) = lost.packets.iter().map(|packet| packet.sent).max() else { return };
        if self.is_new(newest) {
            self.window.threshold = self.control.on_congestion(now, &self.window);
            self.window.congestion = self.window.threshold;
            self.recovery_start = Some(now);
        }
        if lost.is_persistent {
            // [RFC9002 §7.6.2]
            self.control.on_timeout();
            self.window.congestion = LEAST_WINDOW;
            self.recovery_start = None;
        }
    }
}
