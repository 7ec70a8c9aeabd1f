//! The receiver's half: delay-based control, and the decision when to send its rate
//! [BARI §signalling].

use super::delay_based::{DelayBased, UPDATE_INTERVAL};
use super::frames::Arrival;
use crate::receiver::{ReceivedPacket, ReceiverEstimator};
use weir::feedback::Unwrapper;
use weir::units::{Bitrate, TimeDelta, Timestamp};

/// A rate below this share of the last one sent is sent at once. Any other is sent once a second.
const AT_ONCE: f64 = 0.97;
/// After this time without a packet nothing is sent [LW2013 §remote_bitrate_estimator].
const SILENCE: TimeDelta = TimeDelta::from_secs(2);

/// The receiver's half of `gcc-2013`.
#[derive(Clone, Debug)]
pub struct Receiver {
    delay_based: DelayBased,
    pub(super) frame: Unwrapper<32>,
    last_arrival: Timestamp,
    next_update: Option<Timestamp>,
    /// The rate to send now.
    due: Option<Bitrate>,
    last_sent: Option<Bitrate>,
}

impl Receiver {
    /// A receiver that has seen no packet.
    pub fn new() -> Self {
        Self {
            delay_based: DelayBased::new(),
            frame: Unwrapper::default(),
            last_arrival: Timestamp::ZERO,
            next_update: None,
            due: None,
            last_sent: None,
        }
    }

    fn send(&mut self) {
        self.due = self.delay_based.rate();
        self.last_sent = self.due.or(self.last_sent);
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiverEstimator for Receiver {
    fn on_packet(&mut self, now: Timestamp, packet: &ReceivedPacket) {
        self.last_arrival = now;
        self.next_update.get_or_insert(now + UPDATE_INTERVAL);
        let ReceivedPacket { send_time, rtp_timestamp, size } = *packet;
        // Keep the newest frame as reference: a retransmission of an old frame must not pull it
        // back.
        let frame = self.frame.peek(rtp_timestamp);
        let arrival = Arrival { arrival: now, departure: send_time, frame, size };
        if self.frame.last().is_none_or(|last| frame > last) {
            self.frame.set_last(frame);
        }
        self.delay_based.on_packet(now, &arrival);
        let rate = self.delay_based.rate();
        if rate.zip(self.last_sent).is_some_and(|(rate, last)| rate < last * AT_ONCE) {
            self.send();
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.next_update.is_none_or(|due| due > now) {
            return;
        }
        if now - self.last_arrival > SILENCE {
            self.next_update = None;
            return;
        }
        self.next_update = Some(now + UPDATE_INTERVAL);
        self.delay_based.update(now);
        self.send();
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.next_update
    }

    fn take_limit(&mut self) -> Option<Bitrate> {
        self.due.take()
    }
}
