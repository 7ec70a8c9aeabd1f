//! Runs a receiver-side estimator: packets in, REMB bytes out.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::receiver::{AbsSendTimes, ReceivedPacket, ReceiverEstimator};
use weir::units::{DataSize, Timestamp};
use weir_wire::remb::Remb;
use weir_wire::rtp::{ExtensionId, View};

/// Feeds a receiver-side estimator, and sends its limit whenever the estimator requests it.
pub struct RembReporter {
    estimator: Box<dyn ReceiverEstimator + Send>,
    send_times: AbsSendTimes,
    extension_id: ExtensionId,
    ssrc: u32,
    /// SSRCs of the media sources that the estimate covers.
    media_ssrcs: Vec<u32>,
    /// Whether the list grows by the media sources that are received.
    learns: bool,
    /// The last packet. Its memory is reused.
    packet: Vec<u8>,
}

impl RembReporter {
    /// A reporter whose own SSRC is `ssrc`. `extension_id` is the id of the absolute send time;
    /// packets without it are not counted. `media_ssrcs` are the media sources that the estimate
    /// covers. If it is empty, the estimate covers the first 255 sources that are received.
    ///
    /// # Panics
    /// If there are more than 255 media sources, the maximum of the format.
    pub fn new(
        estimator: Box<dyn ReceiverEstimator + Send>,
        ssrc: u32,
        extension_id: ExtensionId,
        media_ssrcs: &[u32],
    ) -> Self {
        assert!(media_ssrcs.len() <= Remb::MAX_SSRCS, "{} SSRCs", media_ssrcs.len());
        let learns = media_ssrcs.is_empty();
        let (send_times, media_ssrcs) = (AbsSendTimes::default(), media_ssrcs.to_vec());
        let packet = Vec::new();
        Self { estimator, send_times, extension_id, ssrc, media_ssrcs, learns, packet }
    }

    /// A packet of this size arrived. [`SentPacket::size`](weir::SentPacket::size) says which
    /// headers count. Returns the limit as REMB if it is due.
    pub fn on_packet(&mut self, now: Timestamp, view: &View<'_>, size: DataSize) -> Option<&[u8]> {
        let time = view.abs_send_time(self.extension_id)?;
        let ssrc = view.ssrc();
        let has_room = self.learns && self.media_ssrcs.len() < Remb::MAX_SSRCS;
        if has_room && !self.media_ssrcs.contains(&ssrc) {
            self.media_ssrcs.push(ssrc);
        }
        let send_time = self.send_times.unwrap(time.ticks());
        let packet = ReceivedPacket::new(send_time, view.timestamp(), size);
        self.estimator.on_packet(now, &packet);
        self.limit()
    }

    /// When [`RembReporter::on_timeout`] is due, or `None`.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.estimator.next_timeout()
    }

    /// Calls the estimator's timeout handler if it is due. A call before
    /// [`RembReporter::next_timeout`] does nothing. Returns the limit as REMB if it is due.
    pub fn on_timeout(&mut self, now: Timestamp) -> Option<&[u8]> {
        if self.next_timeout().is_none_or(|due| due > now) {
            return None;
        }
        self.estimator.on_timeout(now);
        self.limit()
    }

    fn limit(&mut self) -> Option<&[u8]> {
        let limit = self.estimator.take_limit()?;
        let remb = Remb::new(self.ssrc, limit.as_bps(), &self.media_ssrcs);
        let remb = remb.expect("the sources were counted");
        self.packet.clear();
        self.packet.resize(remb.size(), 0);
        remb.emit(&mut self.packet);
        Some(&self.packet)
    }
}

impl fmt::Debug for RembReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RembReporter {{ ssrc: {:#x}, media_ssrcs: {:x?} }}", self.ssrc, self.media_ssrcs)
    }
}
