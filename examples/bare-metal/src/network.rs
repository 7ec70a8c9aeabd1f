//! The network of lund/rmcat-ns3: one queue, whose capacity changes every 20 s.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Capacity in kbit/s, 20 s each.
const STEPS: [u64; 10] = [2_000, 1_500, 1_000, 500, 1_000, 1_500, 2_000, 1_500, 1_000, 500];
const STEP_SECONDS: i64 = 20;
/// Room of the queue: this long at the highest capacity, 75,000 bytes.
const QUEUE: DataSize = DataSize::from_bytes(75_000);
/// Propagation delay in each direction.
const DELAY: TimeDelta = TimeDelta::from_millis(1);
/// Bytes of IP and UDP headers.
const OVERHEAD: u64 = 28;

fn capacity(now: Timestamp) -> Bitrate {
    let step = now.as_millis() / 1_000 / STEP_SECONDS;
    Bitrate::from_kbps(STEPS[step as usize % STEPS.len()])
}

/// Datagrams on their way, with the times at which they arrive.
#[derive(Default)]
struct Flight(VecDeque<(Timestamp, Vec<u8>)>);

impl Flight {
    fn take(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        self.0.pop_front_if(|(due, _)| *due <= now).map(|(_, datagram)| datagram)
    }
    fn next_event(&self) -> Option<Timestamp> {
        self.0.front().map(|(due, _)| *due)
    }
}

/// Both directions. The way back has no bottleneck.
#[derive(Default)]
pub struct Network {
    up: Flight,
    down: Flight,
    /// When the last bit of the queue has left.
    busy_until: Timestamp,
}

impl Network {
    /// A datagram of the sender. It is lost if the queue is full.
    pub fn send_up(&mut self, now: Timestamp, datagram: Vec<u8>) {
        let rate = capacity(now);
        let start = self.busy_until.max(now);
        let size = DataSize::from_bytes(datagram.len() as u64 + OVERHEAD);
        if rate * (start - now) + size > QUEUE {
            return;
        }
        self.busy_until = start + size / rate;
        self.up.0.push_back((self.busy_until + DELAY, datagram));
    }

    /// A datagram of the receiver.
    pub fn send_down(&mut self, now: Timestamp, datagram: Vec<u8>) {
        self.down.0.push_back((now + DELAY, datagram));
    }

    /// The next datagram that has reached the receiver.
    pub fn take_up(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        self.up.take(now)
    }

    /// The next datagram that has reached the sender.
    pub fn take_down(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        self.down.take(now)
    }

    /// When the next datagram arrives.
    pub fn next_event(&self) -> Option<Timestamp> {
        [self.up.next_event(), self.down.next_event()].into_iter().flatten().min()
    }
}
