//! GStreamer elements of Weir: congestion control for RTP pipelines.
//!
//! The plugin is an adapter. Its controllers and its pacer are those of the crate `weir`, the same
//! objects that the simulator tests. `docs/reference/gstreamer.md` describes the elements for
//! users.
//!
//! # Modules
//!
//! - `sender`: the sender without a pipeline: packets, events and RTCP in; packets, events and a
//!   target out.
//! - `streams`: what was negotiated: header extensions, retransmission streams, the stream that
//!   carries padding.
//! - `pump`: pads, task and lock of the paced elements.
//! - `cc/`: the element `weircc`: properties and signals, the RTP session, encoders, coupled
//!   elements.
//! - `shaper`, `feedback`, `twcc_parse`: the elements `weirshaper`, `weirfeedback` and
//!   `weirtwccparse`.

mod cc;
mod class;
mod feedback;
mod key_frames;
mod pump;
mod retransmissions;
mod sender;
mod shaper;
mod streams;
mod twcc_parse;

use gst::glib;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    cc::register(plugin)?;
    shaper::register(plugin)?;
    feedback::register(plugin)?;
    twcc_parse::register(plugin)
}

pub use definition::plugin_register_static;

/// What GStreamer looks for in the library.
#[allow(missing_docs)]
mod definition {
    use super::plugin_init;

    gst::plugin_define!(
        weir,
        "Congestion control for RTP pipelines",
        plugin_init,
        env!("CARGO_PKG_VERSION"),
        // GStreamer's word for this licence. Its list has none for a choice of two.
        "MIT/X11",
        "weir",
        "weir",
        "https://crates.io/crates/weir-rtc",
        "2026-11-22"
    );
}
