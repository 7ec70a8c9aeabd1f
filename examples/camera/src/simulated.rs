//! Sends over a simulated network in virtual time.
//!
//! The encoder is real, and its work takes no time. So a slow machine, such as an emulated
//! processor, gives the same packets as a fast one.

use std::error::Error;

use weir::feedback::Ecn;
use weir::{Bitrate, TimeDelta, Timestamp};
use weir_net::{Bottleneck, Capacity, Header, LinkConfig, Outcome, QueueLimit, Schedule, Seed};
use weir_over_udp::{EXTENSIONS, RECEIVER, random};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, is_rtcp};

use crate::camera::{Camera, packet_size};
use crate::progress::Progress;
use crate::source::{FRAME_INTERVAL, Source};

/// Capacity in kbit/s, queue, delay and feedback of the scenario lund/camera. Each step takes 20 s.
const STEPS: [u64; 10] = [2_000, 1_500, 1_000, 500, 1_000, 1_500, 2_000, 1_500, 1_000, 500];
const STEP: TimeDelta = TimeDelta::from_secs(20);
const QUEUE_BYTES: u64 = 75_000;
const DELAY: TimeDelta = TimeDelta::from_millis(1);
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// The network and the receiver.
struct Path {
    up: Bottleneck<Vec<u8>>,
    down: Bottleneck<Vec<u8>>,
    receiver: Receiver,
}

impl Path {
    fn new() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let step = |(index, &kbps): (usize, &u64)| {
            (Timestamp::ZERO + STEP * index as i64, Bitrate::from_kbps(kbps))
        };
        let capacity = Schedule::new(STEPS.iter().enumerate().map(step).collect())?;
        let up = LinkConfig::unlimited(DELAY)
            .with_capacity(Capacity::Schedule(capacity))
            .with_queue(QueueLimit::Bytes(weir::DataSize::from_bytes(QUEUE_BYTES)));
        let config = ReceiverConfig::new(RECEIVER, EXTENSIONS, Feedback::Twcc)
            .with_interval(FEEDBACK_INTERVAL);
        Ok(Self {
            up: Bottleneck::new(&up, Seed::new(1), "up"),
            down: Bottleneck::new(&LinkConfig::unlimited(DELAY), Seed::new(1), "down"),
            receiver: Receiver::new(Timestamp::ZERO, config, random()),
        })
    }

    /// When something happens next.
    fn next_event(&self) -> Timestamp {
        let links = [self.up.next_event(), self.down.next_event()];
        links.into_iter().flatten().fold(self.receiver.next_timeout(), Timestamp::min)
    }

    fn send(&mut self, now: Timestamp, datagram: Vec<u8>) {
        self.up.enqueue(now, Header::new(packet_size(&datagram)), datagram);
    }

    /// Lets time pass, and returns the RTCP that reaches the camera.
    fn advance(&mut self, now: Timestamp) -> Vec<Vec<u8>> {
        while let Some(outcome) = self.up.poll(now) {
            let Outcome::Delivered(delivery) = outcome else { continue };
            if is_rtcp(&delivery.payload) {
                self.receiver.on_rtcp(now, &delivery.payload);
            } else {
                // The camera sends nothing but RTP and RTCP.
                let _ = self.receiver.on_rtp(now, &delivery.payload, Ecn::NotEct);
            }
        }
        self.receiver.on_timeout(now);
        while let Some(rtcp) = self.receiver.next_rtcp() {
            self.down.enqueue(now, Header::new(packet_size(rtcp)), rtcp.to_vec());
        }
        let mut arrived = Vec::new();
        while let Some(outcome) = self.down.poll(now) {
            if let Outcome::Delivered(delivery) = outcome {
                arrived.push(delivery.payload);
            }
        }
        arrived
    }
}

/// Runs the camera until `end`.
///
/// # Errors
/// If the encoder fails.
pub fn run(
    mut camera: Camera,
    mut source: Source,
    end: Timestamp,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut path = Path::new()?;
    let mut progress = Progress::default();
    let (mut now, mut next_picture) = (Timestamp::ZERO, Timestamp::ZERO);
    while now < end {
        for rtcp in path.advance(now) {
            if camera.on_rtcp(now, &rtcp) {
                source.force_key_frame();
            }
        }
        if next_picture <= now {
            next_picture += FRAME_INTERVAL;
            let packets = source.take_picture(now, camera.source_bitrate())?;
            camera.on_picture(now, packets, 0)?;
        }
        camera.on_timeout(now, |datagram| path.send(now, datagram));
        progress.on_time(now, &camera);
        let due = path.next_event().min(next_picture);
        now = camera.next_timeout().map_or(due, |timeout| timeout.min(due)).max(now);
    }
    progress.finish(end, &camera);
    Ok(())
}
