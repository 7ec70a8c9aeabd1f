//! The same controllers for moq's own stack: `moq-noq`, a fork of noq (feature `moq`).
//!
//! It names the number space of each packet, so no packet of the handshake is taken for another.
//! Its metrics have no estimate for the application: ask [`control`].

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use moq_noq_proto::RttEstimator;
use moq_noq_proto::congestion::{self, Controller, ControllerMetrics, PacketId};
use weir::DataSize;
use weir_quic::{Control, PacketName, Sent, Space};

use crate::RealTime;
use crate::flow::Flow;

impl congestion::ControllerFactory for RealTime {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(self.flow(now, mtu))
    }
}

/// The control of a controller that moq's stack hands out. `None` if it is not one of this crate.
pub fn control(controller: Box<dyn Controller>) -> Option<Control> {
    let any: Box<dyn Any> = controller.into_any();
    let flow = any.downcast::<Flow>().ok()?;
    Some(flow.control())
}

fn space(packet: PacketId) -> Space {
    match packet.space {
        congestion::Space::Initial => Space::Initial,
        congestion::Space::Handshake => Space::Handshake,
        congestion::Space::Data => Space::Data,
    }
}

impl Controller for Flow {
    fn on_packet_space_sent(&mut self, now: Instant, bytes: u16, packet: PacketId) {
        let size = DataSize::from_bytes(bytes.into());
        self.sent(now, Sent::new(space(packet), packet.number, size));
    }

    fn on_packet_space_acked(
        &mut self,
        _now: Instant,
        sent: Instant,
        _bytes: u64,
        packet: PacketId,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acked(Some(space(packet)), packet.number, sent, rtt.get());
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

    fn on_congestion_event_space(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost: PacketId,
    ) {
        self.congested(is_ecn);
    }

    fn on_packet_space_lost(&mut self, _lost_bytes: u16, packet: PacketId, now: Instant) {
        self.lost(now, PacketName::Numbered(space(packet), packet.number));
    }

    fn on_spurious_congestion_event(&mut self) {
        self.losses_were_none();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.bytes();
        metrics.pacing_rate = Some(self.pacing());
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
