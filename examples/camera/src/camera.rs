//! The sender of a camera around `weir_rtcp::Sender`. It has no socket and no clock, so that a real
//! and a simulated network can drive it.

use weir::{Algorithm, Bitrate, DataSize, RateLimits, Timestamp};
use weir_over_udp::{EXTENSIONS, SENDER, random};
use weir_rtcp::{EnqueueError, RtcpEvent, Sender, SenderConfig};

use crate::marks::{Marked, Part, within};

/// Bytes of IP and UDP headers of each packet.
const OVERHEAD: u64 = 20 + 8;

/// What the camera has done since it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Pictures that came from the camera.
    pub pictures: u64,
    /// Pictures that the encoder left out to keep to its bitrate.
    pub left_out: u64,
    /// Pictures that were never made because the encoder was busy.
    pub late: u64,
    /// Packets sent, padding included.
    pub packets: u64,
    /// Bytes sent, headers included.
    pub sent: DataSize,
    /// RTCP datagrams received.
    pub feedback: u64,
}

/// Sends what the media source makes.
pub struct Camera {
    sender: Sender<Marked<Box<dyn weir::Controller + Send>>>,
    totals: Totals,
}

impl Camera {
    /// A camera that starts at `now`.
    pub fn new(now: Timestamp, limits: RateLimits, algorithm: Algorithm) -> Self {
        let config = SenderConfig::new(SENDER, EXTENSIONS);
        let controller = Marked(algorithm.build(limits));
        Self { sender: Sender::new(now, controller, config, random()), totals: Totals::default() }
    }

    /// When [`Camera::on_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        within(Part::Pacer, || self.sender.next_timeout())
    }

    /// The packets of a picture have been made. `late` pictures before it were not.
    ///
    /// # Errors
    /// If they lack the header extensions.
    pub fn on_picture(
        &mut self,
        now: Timestamp,
        packets: Vec<Vec<u8>>,
        late: u64,
    ) -> Result<(), EnqueueError> {
        self.totals.pictures += 1;
        self.totals.left_out += u64::from(packets.is_empty());
        self.totals.late += late;
        within(Part::Pacer, || self.sender.enqueue(now, packets))
    }

    /// Passes the RTCP and RTP packets that may leave to `send`.
    pub fn on_timeout(&mut self, now: Timestamp, mut send: impl FnMut(Vec<u8>)) {
        within(Part::Feedback, || self.sender.on_timeout(now));
        while let Some(rtcp) = self.sender.next_rtcp() {
            send(rtcp.to_vec());
        }
        while let Some(packet) = within(Part::Pacer, || self.sender.next_packet(now)) {
            self.totals.packets += 1;
            self.totals.sent += packet.size;
            send(packet.content);
        }
    }

    /// An RTCP datagram arrived. Returns whether the receiver asks for a key frame.
    pub fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) -> bool {
        self.totals.feedback += 1;
        let events = within(Part::Feedback, || self.sender.on_rtcp(now, bytes));
        events.iter().any(|event| matches!(event, RtcpEvent::KeyFrame(_)))
    }

    /// The controller's target bitrate.
    pub fn target(&self) -> Bitrate {
        self.sender.target().bitrate
    }

    /// The bitrate for the encoder.
    pub fn source_bitrate(&self) -> Bitrate {
        self.sender.target().source_bitrate
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
