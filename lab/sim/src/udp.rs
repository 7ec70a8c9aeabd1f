//! Packets at a given rate without congestion control, for background traffic and audio.

use std::ops::Range;

use weir::feedback::Ecn;
use weir::units::Timestamp;

use crate::audio::{Player, recording};
use crate::config::{FlowConfig, Speech, Udp};
use crate::flow::{Body, End, Ends, Outbox, Packet, SenderState};
use crate::trace::Heard;

/// Both ends of the flow. The receiving end sends nothing.
#[derive(Debug)]
pub(crate) struct UdpEnds {
    config: Udp,
    pauses: Vec<Range<Timestamp>>,
    next: Timestamp,
    /// Plays the packets, if they are speech.
    player: Option<Player>,
}

impl UdpEnds {
    pub(crate) fn new(flow: &FlowConfig, config: &Udp) -> Self {
        let player = config.speech.map(Player::new);
        let (config, pauses) = (config.clone(), flow.pauses.clone());
        let mut ends = Self { config, pauses, next: flow.start, player };
        ends.skip_pauses();
        ends
    }

    /// Whether the next packet has silence that is not sent.
    fn is_pause_of_speech(&self) -> bool {
        let speech = self.config.speech.filter(|speech| speech.dtx);
        speech
            .is_some_and(|Speech { length, .. }| recording::is_left_out(self.next - length, length))
    }

    fn skip_pauses(&mut self) {
        if let Some(pause) = self.pauses.iter().find(|pause| pause.contains(&self.next)) {
            self.next = pause.end;
        }
    }
}

impl Ends for UdpEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        match end {
            End::Sender => Some(self.next),
            End::Receiver => self.player.as_ref().and_then(Player::next_deadline),
        }
    }

    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox) {
        if let (End::Receiver, Some(player)) = (end, &mut self.player) {
            return player.on_deadline(now);
        }
        let Udp { rate, packet, speech } = &self.config;
        let body = if speech.is_some() { Body::Audio(self.next) } else { Body::Udp };
        if !self.is_pause_of_speech() {
            out.packets.push(Packet { size: *packet, ecn: Ecn::NotEct, body });
        }
        // Counts from the due time of this packet, so that the rate is exact. That of speech may
        // have no whole number of bits a second.
        self.next = match speech {
            Some(speech) => self.next + speech.length,
            None => rate.finish(self.next, *packet).unwrap_or(Timestamp::MAX),
        };
        self.skip_pauses();
    }

    fn on_packet(&mut self, now: Timestamp, _: End, packet: &Packet, _: &mut Outbox) {
        if let (Body::Audio(end), Some(player)) = (&packet.body, &mut self.player) {
            player.on_packet(now, *end);
        }
    }

    fn take_heard(&mut self) -> Option<Heard> {
        self.player.as_mut().map(Player::take_heard)
    }

    fn state(&self) -> SenderState {
        SenderState::default()
    }
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, DataSize, TimeDelta};

    use weir_net::Schedule;

    use super::*;
    use crate::{Direction, FlowKind};

    /// Times at which packets leave before `until_ms`, in ms.
    fn departures(config: &Udp, pauses: &[Range<Timestamp>], until_ms: i64) -> Vec<i64> {
        let flow = FlowConfig {
            name: "udp-1".into(),
            direction: Direction::Up,
            attachment: None,
            hops: 0..1,
            access_delay: TimeDelta::ZERO,
            start: Timestamp::ZERO,
            stop: Timestamp::MAX,
            pauses: pauses.to_vec(),
            call: None,
            quality: false,
            traffic: FlowKind::Udp(config.clone()),
        };
        let mut ends = UdpEnds::new(&flow, config);
        let mut times = Vec::new();
        let mut out = Outbox::default();
        while ends.next.as_millis() < until_ms {
            times.push(ends.next.as_millis());
            ends.on_deadline(ends.next, End::Sender, &mut out);
        }
        assert_eq!(out.packets.len(), times.len());
        times
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_moment_and_not_in_a_pause() {
        let step = |ms, kbps| (Timestamp::from_millis(ms), Bitrate::from_kbps(kbps));
        let rate = Schedule::new(vec![step(0, 1_000), step(24, 500)]).unwrap();
        let config = Udp::new(rate, DataSize::from_bytes(1_500));
        assert_eq!(departures(&config, &[], 80), [0, 12, 24, 48, 72]);
        let pause = Timestamp::from_millis(20)..Timestamp::from_millis(60);
        assert_eq!(departures(&config, &[pause], 90), [0, 12, 60, 84]);
    }

    #[test]
    fn with_dtx_the_packets_of_a_pause_are_not_sent() {
        let rate = Schedule::constant(Bitrate::from_kbps(20)).unwrap();
        let speech = Speech { dtx: true, ..Speech::plain(TimeDelta::from_millis(20)) };
        let config = Udp::new(rate, DataSize::from_bytes(50)).with_speech(Some(speech));
        let flow = FlowConfig::new("audio-1", TimeDelta::MAX, FlowKind::Udp(config.clone()));
        let mut ends = UdpEnds::new(&flow, &config);
        let mut out = Outbox::default();
        while ends.next < Timestamp::from_secs(10) {
            ends.on_deadline(ends.next, End::Sender, &mut out);
        }
        // One pause: seven of 500 packets.
        assert_eq!(out.packets.len(), 493);
    }

    // [RFC8867 §4.3]: audio of 20 kbit/s.
    #[test]
    fn a_low_rate_of_small_packets_is_exact() {
        let rate = Schedule::constant(Bitrate::from_kbps(20)).unwrap();
        let config = Udp::new(rate, DataSize::from_bytes(50));
        assert_eq!(departures(&config, &[], 100), [0, 20, 40, 60, 80]);
    }
}
