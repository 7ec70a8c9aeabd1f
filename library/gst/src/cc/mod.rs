//! `weircc`: sends the RTP packets of a pipeline at the rate that a congestion controller allows.
//!
//! ```text
//! payloader -> sink -> PacedSender (send history, pacer, controller) -> src -> rtpsession
//!                         ^                  |
//!       RTCP of the receiver                 +-> target bitrate -> encoders
//! ```
//!
//! [`imp`] has the element, [`control`] what happens to feedback and target, [`properties`] the
//! properties and signals. Everything that works without a pipeline is in [`crate::sender`].

mod control;
mod encoders;
mod group;
mod imp;
mod properties;
mod session;
mod structures;

use gst::glib;

glib::wrapper! {
    /// The element `weircc`.
    pub struct WeirCc(ObjectSubclass<imp::WeirCc>) @extends gst::Element, gst::Object;
}

/// Adds the element to the plugin.
pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    crate::class::register::<WeirCc>(plugin, "weircc")
}
