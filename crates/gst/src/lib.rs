//! GStreamer elements of Weir: congestion control for RTP pipelines.
//!
//! The plugin is an adapter. Its controllers and its pacer are those of the crate `weir`, the same
//! objects that the simulator tests. `docs/reference/gstreamer.md` describes the elements for
//! users.

mod cc;
mod twcc_parse;

use gst::glib;

fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    cc::register(plugin)?;
    twcc_parse::register(plugin)
}

gst::plugin_define!(
    weir,
    "Congestion control for RTP pipelines",
    plugin_init,
    env!("CARGO_PKG_VERSION"),
    // The value that GStreamer defines for "MIT OR Apache-2.0".
    "MIT/X11",
    "weir",
    "weir",
    "https://crates.io/crates/weir-rtc",
    "2026-11-22"
);
