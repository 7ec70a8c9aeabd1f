//! The encoders that follow the target bitrate.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use gst::glib;
use gst::prelude::*;
use weir::controller::Target;
use weir::units::{Bitrate, DataSize, TimeDelta};

use crate::pump::lock;

/// Raw frames are dropped before the encoder while the pacer holds more than this. The encoder
/// would make them from a picture that is late already.
pub(super) const MAX_QUEUE_FOR_FRAMES: TimeDelta = TimeDelta::from_millis(250);

/// A queue of this length is usual: the last frame is still leaving.
const USUAL_QUEUE: TimeDelta = TimeDelta::from_millis(50);
/// What waits beyond that leaves within this time, because the encoder makes that much less.
const DRAIN_TIME: TimeDelta = TimeDelta::from_millis(500);
/// The encoder gets at least this share of the target.
const MIN_SHARE: f64 = 0.5;

/// The rate of the encoders while the pacer holds `queued` and packets were sent again at the rate
/// `repair` [LIBWEBRTC §FecControllerDefault]. The target is for both. The queue becomes shorter
/// before frames have to be dropped.
pub(super) fn rate_beside(target: &Target, queued: DataSize, repair: Bitrate) -> Bitrate {
    let excess = queued.saturating_sub(target.pacing_rate * USUAL_QUEUE);
    let rate = target.source_bitrate.saturating_sub(repair).saturating_sub(excess / DRAIN_TIME);
    rate.max(target.source_bitrate * MIN_SHARE)
}

/// The times of the frames that an encoder gets: evenly spaced, also where frames were dropped.
///
/// Encoders spend the bits of dropped frames on the next one. With half of the frames dropped, each
/// of the others would be twice as large, the pacer's queue would be as long as before, and frames
/// would be dropped for ever. libwebrtc spaces the times of its frames evenly, too.
#[derive(Clone, Debug, Default)]
struct FrameTimes {
    /// Time of the last raw frame.
    last_raw: Option<gst::ClockTime>,
    /// Time that the encoder saw last.
    last_even: Option<gst::ClockTime>,
    /// For each frame in the encoder, the time that it saw and the real one.
    inside: VecDeque<(gst::ClockTime, gst::ClockTime)>,
}

/// Frames that an encoder may hold. One that drops frames itself does not give them back.
const MAX_INSIDE: usize = 64;

impl FrameTimes {
    /// The time that the encoder sees for the raw frame of this time; `None` if it is dropped.
    fn enter(&mut self, time: gst::ClockTime, is_dropped: bool) -> Option<gst::ClockTime> {
        let interval = self.last_raw.replace(time).and_then(|last| time.checked_sub(last));
        if is_dropped {
            return None;
        }
        // The time starts anew after a flush.
        let even = match (interval, self.last_even) {
            (Some(interval), Some(last)) => last + interval,
            _ => time,
        };
        self.last_even = Some(even);
        self.inside.push_back((even, time));
        if self.inside.len() > MAX_INSIDE {
            self.inside.pop_front();
        }
        Some(even)
    }

    /// The real time of an encoded frame.
    fn leave(&mut self, even: gst::ClockTime) -> gst::ClockTime {
        while let Some((entered, real)) = self.inside.pop_front_if(|(entered, _)| *entered <= even)
        {
            if entered == even {
                return real;
            }
        }
        even
    }
}

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

    /// Sets the bitrate. Returns whether the encoder took it: `svtav1enc` of GStreamer 1.26 refuses
    /// any change once it has a picture.
    fn set(&self, encoder: &gst::Element, target: Bitrate) -> bool {
        let units = (target.as_bps_f64() * self.share) as u64 / self.unit_bps;
        let units = i32::try_from(units.max(1)).unwrap_or(i32::MAX).unsigned_abs();
        let taken = match encoder.property_type(self.property) {
            Some(glib::Type::I32) => {
                encoder.set_property(self.property, units.cast_signed());
                encoder.property::<i32>(self.property).unsigned_abs()
            }
            Some(glib::Type::U32) => {
                encoder.set_property(self.property, units);
                encoder.property(self.property)
            }
            _ => return false,
        };
        // The encoders of libvpx keep whole kbit/s.
        u64::from(units.abs_diff(taken)) * self.unit_bps < 1_000
    }

    /// Says on the bus that the encoder does not follow.
    fn warn(&self, encoder: &gst::Element) {
        let text = format!(
            "{} refuses a new {} while it plays; pictures are left out instead",
            self.factory, self.property
        );
        gst::element_warning!(encoder, gst::LibraryError::Settings, ("{}", text));
    }
}

/// An encoder with its part of the target.
struct Encoder {
    element: gst::Element,
    priority: f64,
    probes: Vec<(gst::Pad, gst::PadProbeId)>,
}

impl Drop for Encoder {
    fn drop(&mut self) {
        for (pad, probe) in self.probes.drain(..) {
            pad.remove_probe(probe);
        }
    }
}

/// Sees each raw frame before its encoder: sets the bitrate, and drops the frame if it must.
struct RawFrameProbe<F> {
    encoder: glib::WeakRef<gst::Element>,
    adaptor: &'static Adaptor,
    /// How much the encoder gets, or `None` to drop the frame.
    bitrate: F,
    times: Arc<Mutex<FrameTimes>>,
    /// The bitrate that was set.
    last: Mutex<Option<Bitrate>>,
    /// Whether the application knows already that the bitrate cannot be set.
    has_warned: AtomicBool,
}

impl<F: Fn(&gst::Element) -> Option<Bitrate>> RawFrameProbe<F> {
    fn on_frame(&self, info: &mut gst::PadProbeInfo<'_>) -> gst::PadProbeReturn {
        let Some(encoder) = self.encoder.upgrade() else { return gst::PadProbeReturn::Remove };
        let bitrate = (self.bitrate)(&encoder);
        if let Some(buffer) = info.buffer_mut()
            && let Some(time) = buffer.pts()
            && let Some(even) = lock(&self.times).enter(time, bitrate.is_none())
            && even != time
        {
            buffer.make_mut().set_pts(even);
        }
        let Some(bitrate) = bitrate else { return gst::PadProbeReturn::Handled };
        let is_new = lock(&self.last).replace(bitrate) != Some(bitrate);
        if is_new && !self.adaptor.set(&encoder, bitrate) && !self.has_warned.swap(true, Relaxed) {
            self.adaptor.warn(&encoder);
        }
        gst::PadProbeReturn::Ok
    }
}

/// Gives an encoded frame its real times back.
fn after_frame(times: &Mutex<FrameTimes>, info: &mut gst::PadProbeInfo<'_>) -> gst::PadProbeReturn {
    if let Some(buffer) = info.buffer_mut()
        && let Some(even) = buffer.pts()
    {
        let real = lock(times).leave(even);
        if real != even {
            let buffer = buffer.make_mut();
            buffer.set_pts(real);
            buffer.set_dts(real);
        }
    }
    gst::PadProbeReturn::Ok
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
        let src = element.static_pad("src").ok_or(EncoderError::Unknown)?;
        let times = Arc::new(Mutex::new(FrameTimes::default()));
        let raw = RawFrameProbe {
            encoder: element.downgrade(),
            adaptor,
            bitrate,
            times: Arc::clone(&times),
            last: Mutex::new(None),
            has_warned: AtomicBool::new(false),
        };
        let kind = gst::PadProbeType::BUFFER;
        let before = sink.add_probe(kind, move |_, info| raw.on_frame(info));
        let before = before.map(|probe| (sink, probe));
        let after = src.add_probe(kind, move |_, info| after_frame(&times, info));
        let after = after.map(|probe| (src, probe));
        let probes = before.into_iter().chain(after).collect();
        self.0.push(Encoder { element: element.clone(), priority, probes });
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

    /// An encoder's part of the sender's target, by its priority [RFC8699 §5.3.1]: here the
    /// sum of the rates is the target of the one controller. `None` if the encoder was removed.
    pub(super) fn part(&self, element: &gst::Element, target: Bitrate) -> Option<Bitrate> {
        let priorities: f64 = self.0.iter().map(|encoder| encoder.priority).sum();
        let encoder = self.0.iter().find(|encoder| encoder.element == *element)?;
        Some(target * (encoder.priority / priorities))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoders_get_less_while_more_than_a_frame_waits() {
        let rate = Bitrate::from_kbps(800);
        let target = Target::new(rate, rate);
        let beside = |milliseconds| {
            let queued = rate * TimeDelta::from_millis(milliseconds);
            rate_beside(&target, queued, Bitrate::ZERO).as_bps()
        };
        assert_eq!(beside(0), 800_000);
        assert_eq!(beside(50), 800_000);
        // 200 ms at 800 kbit/s are 20 kB; to send them within 500 ms takes 320 kbit/s.
        assert_eq!(beside(250), 480_000);
        assert_eq!(beside(10_000), 400_000);
    }

    #[test]
    fn the_encoders_get_what_retransmissions_leave_and_at_least_half() {
        let rate = Bitrate::from_kbps(800);
        let target = Target::new(rate, rate);
        let beside = |kbps| rate_beside(&target, DataSize::ZERO, Bitrate::from_kbps(kbps)).as_bps();
        assert_eq!(beside(300), 500_000);
        assert_eq!(beside(700), 400_000);
    }

    #[test]
    fn the_encoder_sees_even_times_and_the_frames_keep_theirs() {
        let mut times = FrameTimes::default();
        let ms = gst::ClockTime::from_mseconds;
        assert_eq!(times.enter(ms(0), false), Some(ms(0)));
        assert_eq!(times.enter(ms(40), false), Some(ms(40)));
        assert_eq!(times.enter(ms(80), true), None);
        assert_eq!(times.enter(ms(120), true), None);
        assert_eq!(times.enter(ms(160), false), Some(ms(80)));
        assert_eq!(times.enter(ms(200), false), Some(ms(120)));
        assert_eq!(times.leave(ms(0)), ms(0));
        // The encoder dropped the second frame itself.
        assert_eq!(times.leave(ms(80)), ms(160));
        assert_eq!(times.leave(ms(120)), ms(200));
        // The time starts anew after a flush.
        assert_eq!(times.enter(ms(0), false), Some(ms(0)));
    }
}
