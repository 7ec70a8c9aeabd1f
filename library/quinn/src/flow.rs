//! A controller as quinn calls it.

use std::any::Any;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use weir::{DataSize, TimeDelta};
use weir_quic::{AckEnd, Congestion, Control, PacketName, Sent};

/// The most packets in one call: a batch of a network card's segmentation.
const MAX_BATCH: u64 = 64;

/// A controller of one path. A clone is the same one: quinn clones it to show its state, and when
/// a path continues from another address.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    control: Control,
    /// quinn's smoothed round-trip time.
    srtt: Option<TimeDelta>,
    /// The number of the last packet that left.
    last_number: Option<u64>,
    /// The largest packet.
    mtu: u64,
}

impl Flow {
    pub(crate) fn new(now: Instant, mtu: u16, congestion: Congestion) -> Self {
        let control = Control::new(now, congestion);
        Self { control, srtt: None, last_number: None, mtu: u64::from(mtu).max(2) }
    }

    pub(crate) fn control(&self) -> Control {
        self.control.clone()
    }
}

impl Controller for Flow {
    /// quinn tells the sum of a batch and its last number. Numbers may be skipped, and the spaces
    /// of the handshake count on their own, so the number of packets is a guess. An ACK tells the
    /// size of each one.
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let before = self.last_number.replace(last_packet_number);
        let counted = before.and_then(|before| last_packet_number.checked_sub(before));
        let least = bytes.div_ceil(self.mtu).clamp(1, MAX_BATCH);
        let most = bytes.div_ceil(self.mtu / 2).clamp(least, MAX_BATCH);
        let packets = counted.unwrap_or(1).clamp(least, most);
        let mut shared = self.control.host();
        let now = shared.time(now);
        let mut left = bytes;
        for after in (0..packets).rev() {
            // All but the last one of a batch have one size.
            let size = if after == 0 { left } else { left.min(bytes.div_ceil(packets)) };
            left -= size;
            let sent = Sent::unnumbered(DataSize::from_bytes(size));
            shared.congestion.on_packet_sent(now, sent);
        }
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.srtt = Some(rtt.get().into());
        let mut shared = self.control.host();
        let sent = shared.exact_time(sent);
        let size = DataSize::from_bytes(bytes);
        shared.congestion.on_sized_packet_acked(PacketName::SentAt(sent), size);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        _in_flight: u64,
        app_limited: bool,
        _largest: Option<u64>,
    ) {
        let mut shared = self.control.host();
        let now = shared.time(now);
        let mut ack = AckEnd::default().with_app_limited(app_limited);
        ack.smoothed_rtt = self.srtt;
        shared.congestion.on_ack_end(now, ack);
    }

    /// Lost bytes, or none for a mark. How many packets were marked is not told.
    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        _is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut shared = self.control.host();
        let (now, sent) = (shared.time(now), shared.exact_time(sent));
        match lost_bytes {
            0 => shared.congestion.on_marks(1),
            lost => shared.congestion.on_bytes_lost(now, sent, DataSize::from_bytes(lost)),
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu).max(2);
        self.control.host().congestion.on_mtu(DataSize::from_bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.control.host().congestion.window().as_bytes()
    }

    /// quinn does not pace by this rate. Those who read it take it for an estimate of what the
    /// path carries, so it is the encoder's.
    fn metrics(&self) -> ControllerMetrics {
        let shared = self.control.host();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = shared.congestion.window().as_bytes();
        metrics.pacing_rate = Some(shared.congestion.media_bitrate().as_bps());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
