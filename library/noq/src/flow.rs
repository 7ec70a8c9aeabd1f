//! A controller as noq calls it.

use std::any::Any;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use weir::{DataSize, TimeDelta, Timestamp};
use weir_quic::{AckEnd, Congestion, Control, PacketName, Sent, Space};

/// A controller of one path. A clone is the same one: noq clones it to show its state, and when
/// a path continues from another address.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    control: Control,
    /// noq's smoothed round-trip time.
    srtt: Option<TimeDelta>,
    /// When noq last declared a loss.
    last_loss: Option<Timestamp>,
}

impl Flow {
    pub(crate) fn new(now: Instant, congestion: Congestion) -> Self {
        Self { control: Control::new(now, congestion), srtt: None, last_loss: None }
    }

    pub(crate) fn control(&self) -> Control {
        self.control.clone()
    }

    pub(crate) fn sent(&self, now: Instant, packet: Sent) {
        let mut shared = self.control.host();
        let now = shared.time(now);
        shared.congestion.on_packet_sent(now, packet);
    }

    /// A packet is acknowledged; `space` if the stack tells it, or else its send time names it.
    pub(crate) fn acked(
        &mut self,
        space: Option<Space>,
        number: u64,
        sent: Instant,
        srtt: Duration,
    ) {
        self.srtt = Some(srtt.into());
        let mut shared = self.control.host();
        let name = match space {
            Some(space) => PacketName::Numbered(space, number),
            None => PacketName::Number(number, Some(shared.exact_time(sent))),
        };
        shared.congestion.on_packet_acked(name);
    }

    pub(crate) fn acks_end(&mut self, now: Instant, app_limited: bool) {
        let mut shared = self.control.host();
        let now = shared.time(now);
        let mut ack = AckEnd::default().with_app_limited(app_limited);
        ack.smoothed_rtt = self.srtt;
        shared.congestion.on_ack_end(now, ack);
    }

    pub(crate) fn lost(&mut self, now: Instant, name: PacketName) {
        let mut shared = self.control.host();
        let now = shared.time(now);
        self.last_loss = Some(now);
        shared.congestion.on_packet_lost(now, name);
    }

    /// Losses come one by one, see [`Flow::lost`]; what is left of an event is a mark. How many
    /// packets were marked is not told.
    pub(crate) fn congested(&mut self, is_ecn: bool) {
        if is_ecn {
            self.control.host().congestion.on_marks(1);
        }
    }

    /// All losses that the stack remembers were none. It forgets those that were sent two probe
    /// timeouts before its last loss, and a probe timeout is longer than a round trip.
    pub(crate) fn losses_were_none(&mut self) {
        if let (Some(last_loss), Some(srtt)) = (self.last_loss, self.srtt) {
            self.control.host().congestion.on_losses_taken_back(last_loss - srtt * 2);
        }
    }

    pub(crate) fn mtu(&mut self, mtu: u16) {
        self.control.host().congestion.on_mtu(DataSize::from_bytes(mtu.into()));
    }

    /// The window, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.control.host().congestion.window().as_bytes()
    }

    /// The pacing rate, in bytes a second.
    #[cfg(feature = "moq")]
    pub(crate) fn pacing(&self) -> u64 {
        self.control.host().congestion.pacing_rate().as_bps() / 8
    }
}

impl Controller for Flow {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.sent(now, Sent::numbered(pn, DataSize::from_bytes(bytes.into())));
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acked(None, pn, sent, rtt.get());
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        _in_flight: u64,
        app_limited: bool,
        _largest: Option<u64>,
    ) {
        self.acks_end(now, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        self.congested(is_ecn);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        self.lost(now, PacketName::Number(pn, None));
    }

    fn on_spurious_congestion_event(&mut self) {
        self.losses_were_none();
    }

    /// noq has these by a patch, see `arena/noq-receive-ts`.
    #[cfg(noq_receive_timestamps)]
    fn on_receive_timestamp(&mut self, pn: u64, timestamp: std::time::Duration) {
        let arrival = Timestamp::ZERO + TimeDelta::from(timestamp);
        self.control.host().congestion.on_receive_time(PacketName::Number(pn, None), arrival);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let shared = self.control.host();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = shared.congestion.window().as_bytes();
        metrics.pacing_rate = Some(shared.congestion.pacing_rate().as_bps() / 8);
        metrics.bandwidth_estimate = Some(shared.congestion.media_bitrate().as_bps());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.bytes()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
