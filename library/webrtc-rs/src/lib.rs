#![doc = include_str!("../README.md")]

mod padding;
mod state;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rtc_interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc_shared::error::Error;
use sansio::Protocol;
use weir::controller::Controller;
use weir::media_sender::TargetChange;
use weir::units::{Bitrate, DataSize, TimeDelta};
use weir::{RateLimits, Timestamp};

use state::State;

/// The interceptor. Its place is [`Slot::Pacer`](rtc_interceptor::Slot::Pacer).
pub struct Congestion {
    state: Arc<Mutex<State>>,
    /// Packets on their way to the application.
    inbound: VecDeque<TaggedPacket>,
    /// Packets on their way to the network.
    outbound: VecDeque<TaggedPacket>,
}

/// Where the application reads the target and sets the limits, once the interceptor is in a chain.
#[derive(Clone)]
pub struct Control(Arc<Mutex<State>>);

impl Congestion {
    /// An interceptor whose time starts at `now`, and its control.
    pub fn new(now: Instant, controller: Box<dyn Controller + Send>) -> (Self, Control) {
        let state = Arc::new(Mutex::new(State::new(now, controller)));
        let control = Control(Arc::clone(&state));
        (Self { state, inbound: VecDeque::new(), outbound: VecDeque::new() }, control)
    }
}

impl Control {
    /// The target in bit/s, headers included.
    pub fn target(&self) -> Bitrate {
        lock(&self.0).media.target().bitrate
    }

    /// What the encoder's packets may take of the target: what was sent again in the last second,
    /// and what waits, is taken off.
    pub fn media_bitrate(&self) -> Bitrate {
        lock(&self.0).media.media_bitrate()
    }

    /// Whether a picture that is taken now should be encoded. It would be late if too much waits.
    pub fn wants_frame(&self) -> bool {
        lock(&self.0).media.wants_frame()
    }

    /// The change of the target since the last call, if any, and its reason.
    pub fn take_change(&self) -> Option<TargetChange> {
        lock(&self.0).media.take_change()
    }

    /// Bytes that wait for the pacer.
    pub fn queued(&self) -> DataSize {
        lock(&self.0).media.queued()
    }

    /// Whether a stream is under the controller: its peer has agreed to feedback and RTX.
    pub fn is_attached(&self) -> bool {
        lock(&self.0).is_attached()
    }

    /// Discards what waits for the pacer, as when a newer picture replaces it. Ask for a key frame
    /// then.
    pub fn clear_queue(&self, now: Instant) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.clear_queue(now);
    }

    /// The application changed the range of the target.
    pub fn set_limits(&self, now: Instant, limits: RateLimits) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.set_limits(now, limits);
    }

    /// The most that the source could use now; `None` for an unknown amount.
    pub fn set_desired_bitrate(&self, now: Instant, desired: Option<Bitrate>) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.set_desired_bitrate(now, desired);
    }

    /// Packets take another route from now on, as after an ICE restart. The controller starts anew,
    /// and feedback on packets of the old route is ignored.
    pub fn on_route_change(&self, now: Instant) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.on_route_change(now);
    }

    /// The receiver set a limit of its own, or lifted it with `None`. A REMB is heard without this
    /// call.
    pub fn on_receiver_limit(&self, now: Instant, limit: Option<Bitrate>) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.on_receiver_limit(now, limit);
    }

    /// The round-trip time of the path was measured.
    pub fn on_round_trip_time(&self, now: Instant, rtt: TimeDelta) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.on_round_trip_time(now, rtt);
    }

    /// This flow's new share of the rate of several coupled flows.
    pub fn on_shared_rate(&self, now: Instant, share: Bitrate) {
        let mut state = lock(&self.0);
        let now = state.time(now);
        state.media.on_shared_rate(now, share);
    }
}

/// A thread that panicked has left the state whole: each call of it is one step.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Congestion {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, message: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtcp(packets) = &message.message.packet {
            let mut state = lock(&self.state);
            for packet in packets {
                // What cannot be written again is no feedback.
                if let Ok(bytes) = packet.marshal() {
                    state.on_rtcp(message.now, &bytes);
                }
            }
            state.release(message.now, &mut self.outbound);
        }
        self.inbound.push_back(message);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.inbound.pop_front()
    }

    fn handle_write(&mut self, message: TaggedPacket) -> Result<(), Error> {
        let now = message.now;
        let mut state = lock(&self.state);
        if let Some(other) = state.take(message) {
            self.outbound.push_back(other);
        }
        state.release(now, &mut self.outbound);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.outbound.pop_front()
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        lock(&self.state).release(now, &mut self.outbound);
        Ok(())
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        lock(&self.state).next_timeout()
    }
}

impl Interceptor for Congestion {
    fn bind_local_stream(&mut self, info: &StreamInfo) {
        lock(&self.state).attach(info);
    }

    fn unbind_local_stream(&mut self, info: &StreamInfo) {
        lock(&self.state).detach(info);
    }

    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}

/// The time of the controller: nanoseconds since its start.
fn since(origin: Instant, now: Instant) -> Timestamp {
    Timestamp::from_instant(origin, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::testing::Counted;

    #[test]
    fn every_call_for_the_controller_arrives() {
        let start = Instant::now();
        let (_, control) = Congestion::new(start, Box::<Counted>::default());
        let mut plain = Counted::default();
        let (kbps, rtt) = (Bitrate::from_kbps, TimeDelta::from_millis(70));
        let limits = RateLimits::new(kbps(100), kbps(200), kbps(900)).unwrap();
        let (instant, now) = (start + std::time::Duration::from_secs(1), Timestamp::from_secs(1));
        for call in 0..6 {
            match call {
                0 => {
                    control.on_route_change(instant);
                    plain.on_route_change(now);
                }
                1 => {
                    control.on_receiver_limit(instant, Some(kbps(800)));
                    plain.on_receiver_limit(now, Some(kbps(800)));
                }
                2 => {
                    control.on_round_trip_time(instant, rtt);
                    plain.on_round_trip_time(now, rtt);
                }
                3 => {
                    control.on_shared_rate(instant, kbps(400));
                    plain.on_shared_rate(now, kbps(400));
                }
                4 => {
                    control.set_limits(instant, limits);
                    plain.set_limits(now, limits);
                }
                _ => {
                    control.set_desired_bitrate(instant, Some(kbps(700)));
                    plain.set_desired_bitrate(now, Some(kbps(700)));
                }
            }
            assert_eq!(
                lock(&control.0).media.controller().metrics(),
                plain.metrics(),
                "call {call}"
            );
        }
    }
}
