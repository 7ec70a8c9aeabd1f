//! The whole sender of a camera: pictures, encoder, packetizer, and `weir_rtcp::Sender`.
//!
//! It has no socket and no clock, so that a real and a simulated network can drive it.

use std::error::Error;

use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};
use weir_over_udp::{EXTENSIONS, SENDER, random};
use weir_rtcp::{Ignored, Sender, SenderConfig};
use weir_wire::key_frame;

use crate::encoder::Encoder;
use crate::marks::{Marked, Part, within};
use crate::packetizer::Packetizer;
use crate::picture::Pictures;

/// Frames per second.
const FRAME_RATE: i64 = 30;
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / FRAME_RATE);
/// RTP units per second (RFC 6184, section 8.2.1).
const CLOCK_RATE: i64 = 90_000;
/// Bytes of IP and UDP headers of each packet.
const OVERHEAD: u64 = 20 + 8;

/// A picture size that the camera offers.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    width: usize,
    height: usize,
}

impl Resolution {
    /// Finds a resolution by its name, such as `720p`.
    pub fn find(name: &str) -> Option<Self> {
        let sizes = [("480p", 848, 480), ("720p", 1280, 720), ("1080p", 1920, 1080)];
        let found = sizes.iter().find(|size| size.0 == name);
        found.map(|&(_, width, height)| Self { width, height })
    }
}

/// What the camera has done since it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Pictures that came from the camera.
    pub pictures: u64,
    /// Pictures that the encoder left out to keep to its bitrate.
    pub left_out: u64,
    /// Pictures that were never made because the program was busy.
    pub late: u64,
    /// Packets sent, padding included.
    pub packets: u64,
    /// Bytes sent, headers included.
    pub sent: DataSize,
    /// RTCP datagrams received.
    pub feedback: u64,
}

/// A camera that sends what it sees.
pub struct Camera {
    pictures: Pictures,
    encoder: Encoder,
    packetizer: Packetizer,
    sender: Sender<Marked<Box<dyn weir::Controller + Send>>>,
    next_picture: Timestamp,
    totals: Totals,
}

impl Camera {
    /// A camera that starts at `now`.
    ///
    /// # Errors
    /// If the encoder cannot start.
    pub fn new(
        now: Timestamp,
        resolution: Resolution,
        algorithm: Algorithm,
    ) -> Result<Self, Box<dyn Error>> {
        // The limits of the scenarios lund/*.
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500))?;
        let config = SenderConfig::new(SENDER, EXTENSIONS);
        let controller = Marked(algorithm.build(limits));
        Ok(Self {
            pictures: Pictures::new(resolution.width, resolution.height),
            encoder: Encoder::new(FRAME_RATE as f32, limits.start(), limits.max())?,
            packetizer: Packetizer::default(),
            sender: Sender::new(now, controller, config, random()),
            next_picture: now,
            totals: Totals::default(),
        })
    }

    /// When [`Camera::on_timeout`] is due.
    pub fn next_timeout(&self) -> Timestamp {
        let sender = within(Part::Pacer, || self.sender.next_timeout());
        sender.map_or(self.next_picture, |due| due.min(self.next_picture))
    }

    /// Makes the picture that is due, and passes the RTCP and RTP packets that may leave to `send`.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn on_timeout(
        &mut self,
        now: Timestamp,
        mut send: impl FnMut(Vec<u8>),
    ) -> Result<(), Box<dyn Error>> {
        if self.next_picture <= now {
            self.take_picture(now)?;
        }
        within(Part::Feedback, || self.sender.on_timeout(now, |rtcp| send(rtcp.to_vec())));
        while let Some(packet) = within(Part::Pacer, || self.sender.next_packet(now)) {
            self.totals.packets += 1;
            self.totals.sent += packet.size;
            send(packet.content);
        }
        Ok(())
    }

    fn take_picture(&mut self, now: Timestamp) -> Result<(), Box<dyn Error>> {
        self.totals.pictures += 1;
        self.next_picture += FRAME_INTERVAL;
        // A camera does not make up for pictures that it missed.
        while self.next_picture <= now {
            self.next_picture += FRAME_INTERVAL;
            self.totals.late += 1;
        }
        let bitrate = self.sender.target().source_bitrate;
        let picture = within(Part::Picture, || self.pictures.next());
        let frame = within(Part::Encoder, || self.encoder.encode(now, picture, bitrate))?;
        let timestamp = (now.as_micros() * CLOCK_RATE / 1_000_000) as u32;
        let layers = (0..frame.num_layers()).filter_map(|index| frame.layer(index));
        let units = layers.flat_map(|layer| {
            (0..layer.nal_count())
                .filter_map(move |index| layer.nal_unit(index).map(<[u8]>::to_vec))
        });
        let units: Vec<Vec<u8>> = units.collect();
        let packets = within(Part::Packetizer, || {
            self.packetizer.packets(timestamp, units.iter().map(Vec::as_slice))
        });
        if packets.is_empty() {
            self.totals.left_out += 1;
        }
        within(Part::Pacer, || self.sender.enqueue(now, packets))?;
        Ok(())
    }

    /// An RTCP datagram arrived.
    pub fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        self.totals.feedback += 1;
        let mut needs_key_frame = false;
        within(Part::Feedback, || {
            self.sender.on_rtcp(now, bytes, |ignored| {
                let Ignored::Other(packet) = ignored else { return };
                needs_key_frame |= key_frame::PictureLoss::new(packet).is_ok();
            });
        });
        if needs_key_frame {
            self.encoder.force_key_frame();
        }
    }

    /// The controller's target bitrate.
    pub fn target(&self) -> Bitrate {
        self.sender.target().bitrate
    }

    /// Bytes that wait in the pacer.
    pub fn queued(&self) -> DataSize {
        self.sender.media().queued()
    }

    /// What the camera has done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

/// The size of the IP packet that carries this many bytes over UDP.
pub fn packet_size(bytes: &[u8]) -> DataSize {
    DataSize::from_bytes(bytes.len() as u64 + OVERHEAD)
}
