//! The calls that noq makes to a controller, without noq: a packet each ms, and 50 ms later an ACK
//! for every second one.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use noq_proto::congestion::{Controller, ControllerFactory};
use noq_proto::{RttEstimator, TransportConfig};
use weir::{Bitrate, TimeDelta};
use weir_quic::testing::{NetworkConfig, SourceConfig, run};

use crate::pair::Pair;

const BYTES: u16 = 1_200;
const PACKET_TIME: Duration = Duration::from_millis(1);
/// Packets in flight.
const FLIGHT: usize = 50;

/// noq makes estimators of round-trip times itself. This controller keeps the one that it sees.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Option<RttEstimator>>>);

impl Controller for Seen {
    fn on_ack(&mut self, _: Instant, _: Instant, _: u64, _: u64, _: bool, rtt: &RttEstimator) {
        *self.0.lock().unwrap() = Some(*rtt);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        100_000
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        100_000
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Seen {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

/// An estimator of a connection with a round-trip time of 50 ms.
fn estimator() -> RttEstimator {
    let seen = Seen::default();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(seen.clone()));
    let (rate, ms) = (Bitrate::from_kbps(1_000), TimeDelta::from_millis);
    let network = NetworkConfig::constant(rate * 10.0, ms(50), ms(500));
    let mut pair = Pair::new(transport, 1);
    run(&mut pair, network, SourceConfig::Fixed(rate), ms(1_000), ms(0));
    let seen = seen.0.lock().unwrap();
    seen.expect("packets were acknowledged")
}

/// What was sent, for one controller.
pub struct Calls {
    began: Instant,
    rtt: RttEstimator,
    sent: u64,
}

impl Calls {
    pub fn new(began: Instant) -> Self {
        Self { began, rtt: estimator(), sent: 0 }
    }

    fn time(&self, number: u64) -> Instant {
        self.began + PACKET_TIME * u32::try_from(number).expect("a test is short")
    }

    /// Sends the next packet, and tells the ACK that is due. One in 100 packets is lost. Returns
    /// what noq's pacer reads.
    pub fn packet(&mut self, controller: &mut dyn Controller) -> (u64, Option<u64>) {
        let (number, now) = (self.sent, self.time(self.sent));
        self.sent += 1;
        controller.on_packet_sent(now, BYTES, number);
        controller.on_sent(now, BYTES.into(), number);
        if let Some(newest) = number.checked_sub(FLIGHT as u64).filter(|newest| newest % 2 == 1) {
            self.acknowledge(controller, now, newest);
        }
        (controller.window(), controller.metrics().pacing_rate)
    }

    fn acknowledge(&self, controller: &mut dyn Controller, now: Instant, newest: u64) {
        for number in newest - 1..=newest {
            if number % 100 != 37 {
                let (sent, bytes) = (self.time(number), BYTES.into());
                controller.on_ack(now, sent, bytes, number, false, &self.rtt);
            }
        }
        controller.on_end_acks(now, u64::from(BYTES) * FLIGHT as u64, false, Some(newest));
        if newest % 100 == 41 {
            let lost = newest - 4;
            controller.on_packet_lost(BYTES, lost, now);
            let (sent, bytes) = (self.time(lost), BYTES.into());
            controller.on_congestion_event(now, sent, false, false, bytes, lost);
        }
    }
}
