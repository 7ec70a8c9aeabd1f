//! The encoders that follow the target bitrate.

use std::sync::{Mutex, PoisonError};

use gst::glib;
use gst::prelude::*;
use weir::units::{Bitrate, TimeDelta};

/// Raw frames are dropped before the encoder while the pacer holds more than this. The encoder
/// would make them from a picture that is late already.
pub(super) const MAX_QUEUE_FOR_FRAMES: TimeDelta = TimeDelta::from_millis(250);

/// How an encoder takes its bitrate.
struct Adaptor {
    /// Name of the element's factory.
    factory: &'static str,
    property: &'static str,
    /// Bit/s of one unit of the property.
    unit_bps: u64,
    /// Share of the target that the encoder gets. The rest is for headers, and for frames that are
    /// larger than the encoder was asked for.
    share: f64,
}

/// How well each encoder obeys is in `docs/reference/gstreamer.md`.
const ADAPTORS: [Adaptor; 8] = [
    adaptor("vp8enc", "target-bitrate", 1),
    adaptor("vp9enc", "target-bitrate", 1),
    adaptor("x264enc", "bitrate", 1_000),
    adaptor("x265enc", "bitrate", 1_000),
    adaptor("openh264enc", "bitrate", 1),
    adaptor("av1enc", "target-bitrate", 1_000),
    adaptor("svtav1enc", "target-bitrate", 1_000),
    adaptor("rav1enc", "bitrate", 1),
];

const fn adaptor(factory: &'static str, property: &'static str, unit_bps: u64) -> Adaptor {
    Adaptor { factory, property, unit_bps, share: 0.95 }
}

impl Adaptor {
    fn of(encoder: &gst::Element) -> Option<&'static Self> {
        let factory = encoder.factory()?;
        ADAPTORS.iter().find(|adaptor| adaptor.factory == factory.name())
    }

    fn set(&self, encoder: &gst::Element, target: Bitrate) {
        let units = (target.as_bps_f64() * self.share) as u64 / self.unit_bps;
        let units = u32::try_from(units.max(1)).unwrap_or(u32::MAX);
        match encoder.property_type(self.property) {
            Some(glib::Type::I32) => {
                encoder.set_property(self.property, i32::try_from(units).unwrap_or(i32::MAX));
            }
            Some(glib::Type::U32) => encoder.set_property(self.property, units),
            _ => {}
        }
    }
}

/// An encoder with its part of the target.
struct Encoder {
    element: gst::Element,
    priority: f64,
    probe: Option<(gst::Pad, gst::PadProbeId)>,
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if let Some((pad, probe)) = self.probe.take() {
            pad.remove_probe(probe);
        }
    }
}

/// The encoders of one sender. They share its target by priority.
#[derive(Default)]
pub(super) struct Encoders(Vec<Encoder>);

/// Why an encoder cannot be used.
#[derive(Debug)]
pub(super) enum EncoderError {
    /// No adaptor for this element.
    Unknown,
    /// The priority is not a positive number.
    Priority,
}

impl std::fmt::Display for EncoderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => {
                f.write_str(
                    "this encoder is unknown; follow notify::target-bitrate, or use one of",
                )?;
                ADAPTORS.iter().try_for_each(|adaptor| write!(f, " {}", adaptor.factory))
            }
            Self::Priority => f.write_str("the priority of an encoder must be above 0"),
        }
    }
}

impl Encoders {
    /// Adds an encoder, or changes its priority. Before each raw frame, `bitrate` says how much the
    /// encoder gets, or `None` to drop the frame.
    ///
    /// The bitrate is set on the encoder's own thread, just before the frame. From another thread,
    /// an encoder that is at work would make that thread wait.
    pub(super) fn add(
        &mut self,
        element: &gst::Element,
        priority: f64,
        bitrate: impl Fn(&gst::Element) -> Option<Bitrate> + Send + Sync + 'static,
    ) -> Result<(), EncoderError> {
        if !(priority > 0.0 && priority.is_finite()) {
            return Err(EncoderError::Priority);
        }
        let adaptor = Adaptor::of(element).ok_or(EncoderError::Unknown)?;
        let sink = element.static_pad("sink").ok_or(EncoderError::Unknown)?;
        self.remove(element);
        let encoder = element.downgrade();
        let last = Mutex::new(None);
        let before_frame = move |_: &gst::Pad, _: &mut gst::PadProbeInfo<'_>| {
            let Some(encoder) = encoder.upgrade() else { return gst::PadProbeReturn::Remove };
            let Some(bitrate) = bitrate(&encoder) else { return gst::PadProbeReturn::Handled };
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.replace(bitrate) != Some(bitrate) {
                adaptor.set(&encoder, bitrate);
            }
            gst::PadProbeReturn::Ok
        };
        let probe = sink.add_probe(gst::PadProbeType::BUFFER, before_frame);
        let probe = probe.map(|probe| (sink, probe));
        self.0.push(Encoder { element: element.clone(), priority, probe });
        Ok(())
    }

    pub(super) fn remove(&mut self, element: &gst::Element) {
        self.0.retain(|encoder| encoder.element != *element);
    }

    /// The first encoder.
    pub(super) fn first(&self) -> Option<&gst::Element> {
        self.0.first().map(|encoder| &encoder.element)
    }

    /// Removes all encoders.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// An encoder's part of the sender's target; `None` if it was removed.
    pub(super) fn part(&self, element: &gst::Element, target: Bitrate) -> Option<Bitrate> {
        let priorities: f64 = self.0.iter().map(|encoder| encoder.priority).sum();
        let encoder = self.0.iter().find(|encoder| encoder.element == *element)?;
        Some(target * (encoder.priority / priorities))
    }
}
