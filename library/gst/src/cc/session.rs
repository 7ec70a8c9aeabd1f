//! Finds the RTP session to which the element sends, and its retransmission streams.
//!
//! In a `webrtcbin`, the element is in a bin that `rtpbin` made for the signal
//! `request-aux-sender`. The session is the `rtpsession` downstream.

use gst::glib;
use gst::prelude::*;
use weir_rtcp::rtcp_from_fci;

/// The longest row of elements between this element and its session.
const MAX_STEPS: usize = 32;

/// The `rtpsession` to which a source pad's packets go, if they reach one.
pub(super) fn downstream_session(src: &gst::Pad) -> Option<gst::Element> {
    let mut pad = src.clone();
    for _ in 0..MAX_STEPS {
        let peer = inner_sink(pad.peer()?)?;
        let element = peer.parent_element()?;
        if is_kind(&element, "rtpsession") {
            return Some(element);
        }
        pad = element.src_pads().into_iter().next()?;
    }
    None
}

/// Follows a pad through the walls of bins to the sink pad of an element.
fn inner_sink(mut pad: gst::Pad) -> Option<gst::Pad> {
    for _ in 0..MAX_STEPS {
        if let Some(ghost) = pad.downcast_ref::<gst::GhostPad>() {
            pad = ghost.target()?; // Into a bin.
        } else if let Some(proxy) = pad.downcast_ref::<gst::ProxyPad>() {
            pad = proxy.internal()?.upcast::<gst::Pad>().peer()?; // Out of a bin.
        } else {
            return Some(pad);
        }
    }
    None
}

/// The first `rtpsession` in a bin such as `webrtcbin`.
pub(super) fn first_session(bin: &gst::Element) -> Option<gst::Element> {
    elements(bin, "rtpsession").into_iter().next()
}

fn is_kind(element: &gst::Element, name: &str) -> bool {
    element.factory().is_some_and(|factory| factory.name() == name)
}

/// All elements of a kind in a bin.
fn elements(bin: &gst::Element, kind: &str) -> Vec<gst::Element> {
    let Some(bin) = bin.downcast_ref::<gst::Bin>() else { return Vec::new() };
    let mut found = Vec::new();
    for element in bin.iterate_recurse().into_iter().flatten() {
        if is_kind(&element, kind) {
            found.push(element);
        }
    }
    found
}

/// RTCP as an RTP session delivers it.
pub(super) enum Rtcp {
    /// A whole datagram.
    Datagram(gst::Buffer),
    /// The fields of one feedback packet.
    Feedback {
        /// Packet type and format.
        packet_type: u8,
        format: u8,
        sender_ssrc: u32,
        media_ssrc: u32,
        /// Feedback control information.
        fci: Option<gst::Buffer>,
    },
}

impl Rtcp {
    /// Reads the arguments of `on-feedback-rtcp`, after the emitter.
    pub(super) fn from_values(values: &[glib::Value]) -> Option<Self> {
        let packet_type = u8::try_from(number(values, 1)?).ok()?;
        let format = u8::try_from(number(values, 2)?).ok()?;
        let (sender_ssrc, media_ssrc) = (number(values, 3)?, number(values, 4)?);
        let fci = values.get(5)?.get::<Option<gst::Buffer>>().ok()?;
        Some(Self::Feedback { packet_type, format, sender_ssrc, media_ssrc, fci })
    }

    /// The datagram; `None` if the fields do not make one.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Datagram(buffer) => content(buffer),
            Self::Feedback { packet_type, format, sender_ssrc, media_ssrc, fci } => {
                let fci = fci.as_ref().map_or(Some(Vec::new()), content)?;
                rtcp_from_fci(*packet_type, *format, *sender_ssrc, *media_ssrc, &fci)
            }
        }
    }
}

fn number(values: &[glib::Value], index: usize) -> Option<u32> {
    values.get(index)?.get().ok()
}

fn content(buffer: &gst::Buffer) -> Option<Vec<u8>> {
    let mut bytes = vec![0; buffer.size()];
    buffer.copy_to_slice(0, &mut bytes).ok()?;
    Some(bytes)
}

/// Reads the event `RTPTWCCPackets`: the transport-wide numbers with their arrival times in ns,
/// `None` for a lost packet.
pub(super) fn twcc_packets(event: &gst::event::CustomUpstream) -> Option<Vec<(u16, Option<u64>)>> {
    let structure = event.structure().filter(|it| it.name() == "RTPTWCCPackets")?;
    let packets = structure.get::<glib::ValueArray>("packets").ok()?;
    Some(packets.iter().filter_map(twcc_packet).collect())
}

fn twcc_packet(value: &glib::Value) -> Option<(u16, Option<u64>)> {
    let packet = value.get::<gst::Structure>().ok()?;
    let number = u16::try_from(packet.get::<u32>("seqnum").ok()?).ok()?;
    let is_lost = packet.get::<bool>("lost").unwrap_or(true);
    let arrival = packet.get::<u64>("remote-ts").ok();
    Some((number, arrival.filter(|&arrival| !is_lost && arrival != u64::MAX)))
}

/// A connection to the RTCP that a session receives. It ends when this is dropped.
pub(super) struct Connection {
    session: gst::Element,
    handler: Option<glib::SignalHandlerId>,
}

/// The object inside of `rtpsession` that has the signals. It may be used on any thread, but its
/// type does not say so. Therefore a [`Connection`] keeps the element.
fn internal(session: &gst::Element) -> Option<glib::Object> {
    session.property::<Option<glib::Object>>("internal-session")
}

impl Connection {
    /// Connects to a session; `None` if it has no object for RTCP.
    pub(super) fn new(
        session: &gst::Element,
        receive: impl Fn(Rtcp) + Send + Sync + 'static,
    ) -> Option<Self> {
        let internal = internal(session)?;
        let whole = glib::subclass::SignalId::lookup("on-receiving-rtcp", internal.type_());
        let handler = if whole.is_some() {
            internal.connect("on-receiving-rtcp", false, move |values| {
                receive(Rtcp::Datagram(values.get(1)?.get::<gst::Buffer>().ok()?));
                None
            })
        } else {
            internal.connect("on-feedback-rtcp", false, move |values| {
                receive(Rtcp::from_values(values)?);
                None
            })
        };
        Some(Self { session: session.clone(), handler: Some(handler) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(internal), Some(handler)) = (internal(&self.session), self.handler.take()) {
            internal.disconnect(handler);
        }
    }
}

/// The payload types of media and of their retransmissions, from all `rtprtxsend` of the `rtpbin`
/// around an element.
pub(super) fn rtx_payload_types(element: &gst::Element) -> Vec<(u8, u8)> {
    let Some(bin) = rtp_bin_around(element) else { return Vec::new() };
    let mut found = Vec::new();
    for sender in elements(&bin, "rtprtxsend") {
        let map = sender.property::<Option<gst::Structure>>("payload-type-map");
        for (media, rtx) in map.iter().flat_map(|map| map.iter()) {
            let rtx = rtx.get::<u32>().ok().and_then(|rtx| u8::try_from(rtx).ok());
            if let (Ok(media), Some(rtx)) = (media.parse(), rtx) {
                found.push((media, rtx));
            }
        }
    }
    found
}

/// The `rtpbin` that contains an element.
fn rtp_bin_around(element: &gst::Element) -> Option<gst::Element> {
    let mut parent = element.parent();
    while let Some(object) = parent {
        let above = object.parent();
        if let Ok(bin) = object.downcast::<gst::Element>()
            && is_kind(&bin, "rtpbin")
        {
            return Some(bin);
        }
        parent = above;
    }
    None
}
