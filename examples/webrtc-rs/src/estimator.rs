//! A controller of Weir behind the trait by which webrtc-rs takes any bandwidth estimator.
//!
//! The trait tells an estimator of a packet only when the receiver has reported on it, and asks for
//! one number. So the controller does not learn at once what is sent, and nobody uses its pacing
//! rate, its congestion window and its probes. webrtc-rs paces at the target bitrate.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rtc::interceptor::{BandwidthEstimator, PacketReport};
use rtc::rtcp::transport_feedbacks::cc_feedback_report::Ecn as TheirEcn;
use tokio::sync::watch;
use weir::Algorithm;
use weir::controller::{Controller, RateLimits};
use weir::feedback::{Ecn, FeedbackReport, PacketReport as Packet, SentPacket};
use weir::units::{Bitrate, DataSize, Timestamp};

/// IP and UDP headers and the tag of SRTP, which webrtc-rs leaves out of a packet's size.
const OVERHEAD_BYTES: usize = 20 + 8 + 10;

pub struct Estimator {
    // webrtc-rs wants to share the estimator between threads, and never does.
    controller: Mutex<Box<dyn Controller + Send>>,
    /// Zero of the controller's time.
    start: Instant,
    /// Where the application reads the target bitrate.
    target: watch::Sender<Bitrate>,
}

impl Estimator {
    /// A controller of this name, and where to read its target bitrate.
    pub fn new(algorithm: Algorithm, limits: RateLimits) -> (Self, watch::Receiver<Bitrate>) {
        let controller = algorithm.build(limits);
        let (target, reader) = watch::channel(controller.target().bitrate);
        (Self { controller: Mutex::new(controller), start: Instant::now(), target }, reader)
    }

    fn time(&self, instant: Instant) -> Timestamp {
        Timestamp::from_nanos(instant.saturating_duration_since(self.start).as_nanos() as i64)
    }

    fn packet(&self, report: &PacketReport) -> Packet {
        let size = DataSize::from_bytes((report.size + OVERHEAD_BYTES) as u64);
        // By the receiver's clock, whose zero does not matter.
        let arrival = report.arrival.filter(|_| report.arrived);
        let arrival = arrival.map(|time| Timestamp::from_nanos(time.as_nanos() as i64));
        let ecn = match report.ecn {
            TheirEcn::Ect0 => Ecn::Ect0,
            TheirEcn::Ect1 => Ecn::Ect1,
            TheirEcn::Ce => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        Packet::new(report.id as i64, size, self.time(report.departure))
            .with_arrival_time(arrival)
            .with_ecn(ecn)
    }

    fn controller(&mut self) -> &mut dyn Controller {
        &mut **self.controller.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&mut self) {
        let target = self.controller().target().bitrate;
        self.target.send_replace(target);
    }
}

impl BandwidthEstimator for Estimator {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        if reports.is_empty() {
            return;
        }
        let now = self.time(now);
        let packets: Vec<Packet> = reports.iter().map(|report| self.packet(report)).collect();
        for packet in &packets {
            let sent = SentPacket::new(packet.sequence_number, packet.size);
            self.controller().on_packet_sent(now, &sent);
        }
        let report = FeedbackReport::new(packets);
        self.controller().on_feedback(now, &report);
        self.publish();
    }

    fn target_bitrate(&self) -> f64 {
        self.target.borrow().as_bps_f64()
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.time(now);
        if self.controller().next_timeout().is_some_and(|due| due <= now) {
            self.controller().on_timeout(now);
            self.publish();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
        let due = controller.next_timeout()?.as_nanos().max(0);
        Some(self.start + std::time::Duration::from_nanos(due as u64))
    }
}
