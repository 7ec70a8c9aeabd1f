//! What stands between the server's tracks and one subscriber's path: ours, or a rival.

use weir::media_sender::PacedPacket;
use weir::units::{Bitrate, DataSize, Timestamp};
use weir_sfu::{Decision, Frame, OutgoingStream, Subscriber, TrackConfig, TrackId};

use super::witness::Witness;

/// The part of a server that serves one subscriber. The methods are those of
/// [`weir_sfu::Subscriber`].
pub(super) trait Forwarder: Send {
    fn add_track(
        &mut self,
        now: Timestamp,
        id: TrackId,
        track: TrackConfig,
        stream: OutgoingStream,
    );
    fn set_track(&mut self, now: Timestamp, id: TrackId, track: TrackConfig);
    fn remove_track(&mut self, now: Timestamp, id: TrackId);
    fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]);
    /// Returns whether the packet was queued.
    fn forward(&mut self, now: Timestamp, id: TrackId, packet: &[u8], frame: Frame) -> bool;
    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]);
    fn next_timeout(&self) -> Timestamp;
    fn on_timeout(&mut self, now: Timestamp);
    fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Vec<u8>>>;
    fn recycle(&mut self, packet: Vec<u8>);
    fn next_decision(&mut self) -> Option<Decision>;
    fn next_missing(&mut self) -> Option<(TrackId, u8, u16)>;
    fn target(&self) -> Bitrate;
    fn queued(&self) -> DataSize;
    fn controller(&self) -> &Witness;
}

impl Forwarder for Subscriber<Witness> {
    fn add_track(
        &mut self,
        now: Timestamp,
        id: TrackId,
        track: TrackConfig,
        stream: OutgoingStream,
    ) {
        self.add_track(now, id, track, stream);
    }

    fn set_track(&mut self, now: Timestamp, id: TrackId, track: TrackConfig) {
        self.set_track(now, id, track);
    }

    fn remove_track(&mut self, now: Timestamp, id: TrackId) {
        self.remove_track(now, id);
    }

    fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]) {
        self.set_bitrates(id, bitrates);
    }

    fn forward(&mut self, now: Timestamp, id: TrackId, packet: &[u8], frame: Frame) -> bool {
        self.forward(now, id, packet, frame).expect("the server's own packet of its own track")
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        self.on_rtcp(now, bytes);
    }

    fn next_timeout(&self) -> Timestamp {
        self.next_timeout()
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.on_timeout(now);
    }

    fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Vec<u8>>> {
        self.next_packet(now)
    }

    fn recycle(&mut self, packet: Vec<u8>) {
        self.recycle(packet);
    }

    fn next_decision(&mut self) -> Option<Decision> {
        self.next_decision()
    }

    fn next_missing(&mut self) -> Option<(TrackId, u8, u16)> {
        self.next_missing()
    }

    fn target(&self) -> Bitrate {
        self.target()
    }

    fn queued(&self) -> DataSize {
        self.queued()
    }

    fn controller(&self) -> &Witness {
        self.controller()
    }
}
