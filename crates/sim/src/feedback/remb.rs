//! The receiver's half of a controller that has one: packets in, REMB bytes out.

use weir::ControllerFactory;
use weir::receiver::{AbsSendTimes, ReceivedPacket, ReceiverEstimator};
use weir::units::{DataSize, Timestamp};
use weir_wire::remb::Remb;
use weir_wire::rtp::{ExtensionId, View};

/// Estimates at the receiver and sends the limit back whenever the estimator wants it.
pub(crate) struct Limiter {
    estimator: Box<dyn ReceiverEstimator + Send>,
    send_times: AbsSendTimes,
    extension_id: ExtensionId,
    ssrc: u32,
}

impl Limiter {
    /// `None` if the controller is whole at the sender. The extension is that of the absolute send
    /// time.
    pub(crate) fn new(
        controller: &ControllerFactory,
        (ssrc, extension_id): (u32, ExtensionId),
    ) -> Option<Self> {
        let estimator = controller.build_receiver()?;
        Some(Self { estimator, send_times: AbsSendTimes::default(), extension_id, ssrc })
    }

    /// When [`Limiter::on_deadline`] is due, if ever.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.estimator.next_timeout()
    }

    /// A packet arrived.
    pub(crate) fn on_packet(
        &mut self,
        now: Timestamp,
        view: &View<'_>,
        size: DataSize,
        send: impl FnMut(&[u8]),
    ) {
        let time = view
            .abs_send_time(self.extension_id)
            .expect("the sender of an algorithm with a receiver's half stamps every packet");
        let send_time = self.send_times.unwrap(time.ticks());
        let packet = ReceivedPacket { send_time, rtp_timestamp: view.timestamp(), size };
        self.estimator.on_packet(now, &packet);
        self.send(send);
    }

    /// The time given by `next_deadline` has come.
    pub(crate) fn on_deadline(&mut self, now: Timestamp, send: impl FnMut(&[u8])) {
        if self.next_deadline().is_some_and(|due| due <= now) {
            self.estimator.on_timeout(now);
            self.send(send);
        }
    }

    fn send(&mut self, mut send: impl FnMut(&[u8])) {
        let Some(limit) = self.estimator.take_limit() else { return };
        let ssrcs = [self.ssrc];
        let remb = Remb::new(self.ssrc, limit.as_bps(), &ssrcs).expect("one SSRC is not too many");
        let mut bytes = vec![0; remb.size()];
        remb.emit(&mut bytes);
        send(&bytes);
    }
}
