//! What the classes of all elements are made of.

use gst::glib;
use gst::prelude::*;
use gst::subclass::ElementMetadata;

/// Caps of RTP packets.
pub(crate) const RTP: &str = "application/x-rtp";
/// Caps of RTCP packets.
pub(crate) const RTCP: &str = "application/x-rtcp";

/// The description of an element: its name in words, what kind of element it is, what it does.
pub(crate) fn metadata(name: &str, kind: &str, text: &str) -> ElementMetadata {
    ElementMetadata::new(name, kind, text, "Weir")
}

/// A pad of this name that takes or gives packets of these caps.
pub(crate) fn template(
    name: &str,
    direction: gst::PadDirection,
    presence: gst::PadPresence,
    caps: &str,
) -> gst::PadTemplate {
    let caps = gst::Caps::new_empty_simple(caps);
    gst::PadTemplate::new(name, direction, presence, &caps).expect("a valid template")
}

/// A pad of this name that the element always has.
pub(crate) fn always(name: &str, direction: gst::PadDirection, caps: &str) -> gst::PadTemplate {
    template(name, direction, gst::PadPresence::Always, caps)
}

/// The two pads of an element that passes packets of these caps on.
pub(crate) fn sink_and_src(caps: &str) -> Vec<gst::PadTemplate> {
    vec![always("sink", gst::PadDirection::Sink, caps), always("src", gst::PadDirection::Src, caps)]
}

/// The pad of this name among those that the class of an element has.
pub(crate) fn template_of(class: &glib::Class<gst::Element>, name: &str) -> gst::PadTemplate {
    class.pad_template(name).expect("the name of a template of this class")
}

/// What a pad returns to the element before it after a panic.
pub(crate) fn flow_after_panic() -> Result<gst::FlowSuccess, gst::FlowError> {
    Err(gst::FlowError::Error)
}

/// Adds the pads to their new element.
pub(crate) fn add_pads<'a>(
    element: &impl IsA<gst::Element>,
    pads: impl IntoIterator<Item = &'a gst::Pad>,
) {
    for pad in pads {
        element.add_pad(pad).expect("a new element has no pads");
    }
}

/// Adds an element to the plugin.
pub(crate) fn register<T: IsA<gst::Element>>(
    plugin: &gst::Plugin,
    name: &str,
) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), name, gst::Rank::NONE, T::static_type())
}
