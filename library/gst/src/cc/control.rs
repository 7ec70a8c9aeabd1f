//! Feedback in, target bitrate out: to the application, the encoders, and the coupled elements.

use std::sync::Arc;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::controller::RateLimits;
use weir::units::{Bitrate, Timestamp};
use weir_wire::report::compact_ntp_from_micros;

use super::encoders::{MAX_QUEUE_FOR_FRAMES, rate_beside};
use super::group::Member;
use super::imp::{CAT, WeirCc};
use super::session::{self, Connection, Rtcp};
use super::structures;
use crate::pump::{Paced, Running, lock};
use crate::sender::Update;

/// From 1900, where NTP time begins, to 1970, in microseconds.
const NTP_EPOCH_US: i64 = 2_208_988_800 * 1_000_000;

/// Feedback.
impl WeirCc {
    /// Looks for the session downstream, unless there is one already.
    pub(super) fn find_session(&self) {
        if lock(&self.session).is_none()
            && !lock(&self.settings).local
            && let Some(session) = session::downstream_session(self.pump.src())
        {
            self.connect(&session);
            self.find_retransmissions();
        }
    }

    /// Reads which payload types retransmissions have.
    pub(super) fn find_retransmissions(&self) {
        let types = session::rtx_payload_types(self.obj().upcast_ref());
        let _ = self.pump.update(|running| running.sender.streams().set_rtx_payload_types(types));
    }

    /// The handler of the action signal `attach`.
    pub(super) fn attach(&self, webrtcbin: &gst::Element) -> bool {
        session::first_session(webrtcbin).is_some_and(|session| self.connect(&session))
    }

    fn connect(&self, session: &gst::Element) -> bool {
        let element = self.obj().downgrade();
        let connected = Connection::new(session, move |rtcp| {
            if let Some(element) = element.upgrade() {
                element.imp().on_rtcp(&rtcp);
            }
        });
        let Some(connected) = connected else { return false };
        gst::info!(CAT, imp = self, "feedback from {}", session.name());
        let old = lock(&self.session).replace(connected);
        drop(old);
        true
    }

    /// RTCP arrived, from the session, the pad or the action signal.
    pub(super) fn on_rtcp(&self, rtcp: &Rtcp) {
        let Some(bytes) = rtcp.to_bytes() else { return };
        let compact_ntp = compact_ntp_from_micros(glib::real_time() + NTP_EPOCH_US);
        self.update(|running| running.sender.on_rtcp(running.now(), compact_ntp, &bytes));
    }

    /// The session parsed feedback.
    pub(super) fn on_twcc_event(&self, packets: &[(u16, Option<u64>)]) {
        self.update(|running| running.sender.on_twcc_event(running.now(), packets));
    }

    /// Changes the sender, if it is running, and tells of the result.
    fn update(&self, change: impl FnOnce(&mut Running)) {
        if let Some(((), update)) = self.pump.update(change) {
            self.publish(update);
        }
    }
}

/// Target.
impl WeirCc {
    /// Tells the application, the encoders and the coupled elements what has changed.
    pub(super) fn tell_all(&self, update: Update) {
        let target = update.change.as_ref().map(|change| change.to);
        self.tell(update);
        let Some(target) = target else { return };
        let member = lock(&self.member).clone();
        for (element, share) in member.iter().flat_map(|member| member.update(target)) {
            element.imp().on_shared_rate(share);
        }
    }

    fn tell(&self, update: Update) {
        if update.wants_key_frame {
            self.pump.request_key_frame();
        }
        if let Some(packet) = update.wants_retransmission {
            self.pump.request_retransmission(packet);
        }
        if let Some(change) = update.change {
            let now = Timestamp::from_nanos(gst::get_timestamp().nseconds() as i64);
            let structure = structures::target_change(now, &change);
            let element = self.obj();
            element.notify("target-bitrate");
            element.emit_by_name::<()>("target-changed", &[&structure]);
        }
    }

    fn on_shared_rate(&self, share: Bitrate) {
        let updated = self.pump.update(|running| {
            running.sender.on_shared_rate(running.now(), share);
            running.sender.target().bitrate
        });
        let Some((target, update)) = updated else { return };
        let member = lock(&self.member).clone();
        if let Some(member) = member {
            member.on_share_applied(target);
        }
        self.tell(update);
    }

    pub(super) fn join_group(&self, limits: RateLimits) -> Option<Arc<Member>> {
        let settings = lock(&self.settings).clone();
        let member = Member::join(&settings.group?, settings.priority, limits, &self.obj());
        Some(Arc::new(member))
    }

    pub(super) fn set_encoder(&self, encoder: Option<gst::Element>) {
        lock(&self.encoders).clear();
        if let Some(encoder) = encoder {
            self.add_encoder(&encoder, 1.0);
        }
    }

    /// The handler of the action signal `add-encoder`. A wrong encoder is an error on the bus.
    pub(super) fn add_encoder(&self, encoder: &gst::Element, priority: f64) -> bool {
        let element = self.obj().downgrade();
        let added = lock(&self.encoders).add(encoder, priority, move |encoder| {
            element.upgrade()?.imp().encoder_bitrate(encoder)
        });
        if let Err(error) = &added {
            let text = format!("{}: {error}", encoder.name());
            gst::element_imp_error!(self, gst::LibraryError::Settings, ("{}", text));
        }
        added.is_ok()
    }

    pub(super) fn remove_encoder(&self, encoder: &gst::Element) {
        lock(&self.encoders).remove(encoder);
    }

    /// What an encoder gets for its next frame; `None` to drop the frame.
    fn encoder_bitrate(&self, encoder: &gst::Element) -> Option<Bitrate> {
        let state = self.pump.read(|running| {
            let sender = &running.sender;
            let repair = sender.repair_rate(running.now());
            let rate = rate_beside(sender.target(), sender.queued(), repair);
            (sender.queue_time() > MAX_QUEUE_FOR_FRAMES, rate)
        });
        let (is_late, target) = match state {
            Some(state) => state,
            None => (false, Bitrate::from_bps(lock(&self.settings).start_bitrate)),
        };
        if is_late { None } else { lock(&self.encoders).part(encoder, target) }
    }

    pub(super) fn target_bps(&self) -> u64 {
        let target = self.pump.read(|running| running.sender.target().bitrate.as_bps());
        target.unwrap_or_else(|| lock(&self.settings).start_bitrate)
    }

    pub(super) fn stats(&self) -> gst::Structure {
        let stats = self.pump.read(|running| structures::stats(running.now(), &running.sender));
        stats.unwrap_or_else(|| gst::Structure::new_empty("weir-stats"))
    }
}
