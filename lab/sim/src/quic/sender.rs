//! The sending end of a connection after its handshake.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_quic::testing::{Frame, Source, SourceConfig};

use super::control::Control;
use super::pacer::Pacer;
use super::packet::{Ack, Content, HEADERS, MAX_DATA, MTU, QuicPacket};
use super::recovery::{AckFacts, Recovery};
use super::streams::Streams;
use super::{Quic, QuicCongestion, QuicSource};
use crate::config::Media;
use crate::flow::{Outbox, SenderState};

/// Probes that leave when a probe timeout has passed [RFC9002 §6.2.4].
const PROBES: u32 = 2;
/// How often the application asks for padding.
const PADDING_INTERVAL: TimeDelta = TimeDelta::from_millis(10);

/// The sending end.
#[derive(Debug)]
pub(super) struct Sender {
    control: Control,
    recovery: Recovery,
    streams: Streams,
    /// Makes frames; a bulk source has none.
    source: Option<Source>,
    pacer: Pacer,
    next_number: u64,
    /// Probes to send, whatever window and pacer say.
    probes: u32,
    /// Bytes of padding to send, and when to ask for more.
    padding: u64,
    /// When the source had a frame last.
    last_frame: Timestamp,
    padding_at: Timestamp,
    /// When the pacer lets the next packet go, if that is what it waits for.
    departure: Option<Timestamp>,
    app_limited: bool,
    /// Packets with data that was sent before, in the current row.
    sent_again: u64,
}

impl Sender {
    /// The handshake took `rtt` and ended now.
    pub(super) fn new(
        config: &Quic<Media>,
        now: Timestamp,
        rtt: TimeDelta,
        chance: Stream,
    ) -> Self {
        let has_rate = matches!(config.congestion, QuicCongestion::Media | QuicCongestion::Bbr3);
        let mut recovery = Recovery::new(config.ack.delay);
        recovery.on_handshake(now, rtt);
        let frames = Streams::new(config.delivery);
        let (source, streams) = match config.source {
            QuicSource::Bulk => (None, Streams::bulk()),
            QuicSource::Fixed(rate) => (Some(SourceConfig::Fixed(rate)), frames),
            QuicSource::Adaptive { start, max, headroom } => {
                (Some(SourceConfig::Adaptive { start, max, headroom }), frames)
            }
        };
        Self {
            control: Control::new(config, now, rtt, chance),
            recovery,
            streams,
            source: source.map(Source::new),
            pacer: Pacer::new(config.stack, has_rate, now),
            next_number: 0,
            probes: 0,
            padding: 0,
            last_frame: now,
            padding_at: now,
            departure: Some(now),
            app_limited: true,
            sent_again: 0,
        }
    }

    /// Frames come from elsewhere.
    pub(super) fn drop_source(&mut self) {
        self.source = None;
    }

    /// The application writes a frame.
    pub(super) fn write(&mut self, now: Timestamp, frame: &Frame, out: &mut Outbox) {
        self.last_frame = frame.captured;
        self.streams.write(frame);
        self.send(now, out);
    }

    /// When the source had a frame last.
    pub(super) fn last_frame(&self) -> Timestamp {
        self.last_frame
    }

    pub(super) fn estimate(&self) -> Bitrate {
        self.control.estimate(self.recovery.rtt())
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let frame = self.source.as_ref().map(Source::next_time);
        let padding = self.control.target().map(|_| self.padding_at);
        let timers = [self.recovery.next_deadline(), self.departure, frame, padding];
        timers.into_iter().flatten().min()
    }

    /// The time of [`Sender::next_deadline`] has come. In a pause no frames are made.
    pub(super) fn on_deadline(&mut self, now: Timestamp, is_paused: bool, out: &mut Outbox) {
        let before = self.control.target().map(|target| target.bitrate);
        if self.recovery.next_deadline().is_some_and(|due| due <= now) {
            self.on_timer(now);
        }
        let estimate = self.estimate();
        if let Some(source) = &mut self.source {
            while let Some(frame) = source.next_frame(now, Some(estimate)) {
                if !is_paused {
                    self.last_frame = frame.captured;
                    self.streams.write(&frame);
                }
            }
        }
        if self.padding_at <= now {
            self.padding_at = now + PADDING_INTERVAL;
            self.padding = self.control.take_padding(now);
        }
        self.send(now, out);
        self.control.note_change(before, out);
    }

    /// Packets are lost by time, or nothing was heard for a probe timeout.
    fn on_timer(&mut self, now: Timestamp) {
        if self.recovery.take_probe(now) {
            self.probes = PROBES;
            if !self.streams.has_data()
                && let Some(Content::Stream(chunk)) = self.recovery.oldest().map(|it| &it.content)
            {
                self.streams.send_again(&chunk.clone());
            }
            return;
        }
        self.find_lost(now);
    }

    fn find_lost(&mut self, now: Timestamp) {
        let lost = self.recovery.find_lost(now);
        for packet in &lost.packets {
            if let Content::Stream(chunk) = &packet.content {
                self.streams.send_again(chunk);
            }
        }
        self.control.on_lost(now, &lost);
    }

    pub(super) fn on_ack(&mut self, now: Timestamp, ack: &Ack, out: &mut Outbox) {
        let before = self.control.target().map(|target| target.bitrate);
        let news = self.recovery.on_ack(now, ack);
        out.rtt = news.acked.last().map(|newest| now - newest.sent);
        let rtt = *self.recovery.rtt();
        let in_flight = self.recovery.in_flight();
        let facts = AckFacts { app_limited: self.app_limited, rtt, in_flight };
        self.control.on_ack(now, ack, &news, facts);
        self.find_lost(now);
        self.send(now, out);
        self.control.note_change(before, out);
    }

    /// Sends what window and pacer allow.
    fn send(&mut self, now: Timestamp, out: &mut Outbox) {
        (self.departure, self.app_limited) = (None, false);
        while self.probes > 0 {
            self.probes -= 1;
            let probe = self.next_content().unwrap_or(Content::Ping);
            self.send_packet(now, probe, out);
        }
        loop {
            if !self.streams.has_data() {
                self.app_limited = true;
                if self.padding == 0 {
                    return;
                }
            }
            if self.recovery.in_flight() + MTU > self.control.window() {
                return;
            }
            let rate = self.control.pacing_rate(self.recovery.rtt());
            self.departure = self.pacer.next_departure(now, rate);
            if self.departure.is_some() {
                return;
            }
            let Some(content) = self.next_content() else { return };
            self.send_packet(now, content, out);
        }
    }

    /// Data, or else padding that was asked for.
    fn next_content(&mut self) -> Option<Content> {
        if let Some(chunk) = self.streams.next_chunk() {
            self.sent_again += u64::from(chunk.is_again);
            return Some(Content::Stream(chunk));
        }
        let bytes = self.padding.min(MAX_DATA);
        self.padding -= bytes;
        (bytes > 0).then_some(Content::Padding(bytes))
    }

    fn send_packet(&mut self, now: Timestamp, content: Content, out: &mut Outbox) {
        let number = self.next_number;
        self.next_number += 1;
        self.pacer.on_sent(content.size());
        self.recovery.on_sent(now, number, content.clone());
        self.control.on_sent(now, number, &content, self.recovery.in_flight());
        out.quic(QuicPacket::Data { number, content });
    }

    pub(super) fn take_sent_again(&mut self) -> u64 {
        std::mem::take(&mut self.sent_again)
    }

    pub(super) fn state(&self) -> SenderState {
        let rtt = self.recovery.rtt();
        let target = self.control.target().map(|target| target.bitrate);
        let window = self.control.window() * (MTU + HEADERS) / MTU;
        SenderState {
            target: Some(target.unwrap_or_else(|| self.estimate())),
            pacing_rate: Some(self.control.pacing_rate(rtt)),
            congestion_window: Some(DataSize::from_bytes(window)),
            send_queue: None,
        }
    }
}
