//! The encoders that follow the target bitrate.

use std::sync::{Mutex, PoisonError};

use gst::glib;
use gst::prelude::*;
use weir::controller::Target;
use weir::units::{Bitrate, DataSize, TimeDelta};

/// Raw frames are dropped before the encoder while the pacer holds more than this. The encoder
/// would make them from a picture that is late already.
pub(super) const MAX_QUEUE_FOR_FRAMES: TimeDelta = TimeDelta::from_millis(250);

/// A queue of this length is usual: the last frame is still leaving.
const USUAL_QUEUE: TimeDelta = TimeDelta::from_millis(50);
/// What waits beyond that leaves within this time, because the encoder makes that much less.
const DRAIN_TIME: TimeDelta = TimeDelta::from_millis(500);
/// The encoder gets at least this share of the target.
const MIN_SHARE: f64 = 0.1;

/// The rate of the encoders while the pacer holds `queued`: less than the target, so that the queue
/// becomes shorter before frames have to be dropped.
pub(super) fn rate_beside_queue(target: &Target, queued: DataSize) -> Bitrate {
    let excess = queued.saturating_sub(target.pacing_rate * USUAL_QUEUE);
    let rate = target.source_bitrate.saturating_sub(excess / DRAIN_TIME);
    rate.max(target.source_bitrate * MIN_SHARE)
}

/// The times of an encoder's frames.
#[derive(Clone, Copy, Debug, Default)]
struct FrameTimes {
    last_raw: Option<gst::ClockTime>,
    last_encoded: Option<gst::ClockTime>,
}

impl FrameTimes {
    /// The share of its bitrate that the encoder gets for the frame of this time. Encoders spend
    /// the bits of dropped frames on the next one, which would then be as large as all of them.
    fn share(&mut self, time: gst::ClockTime, is_dropped: bool) -> f64 {
        let interval = self.last_raw.replace(time).and_then(|last| time.checked_sub(last));
        if is_dropped {
            return 0.0;
        }
        let gap = self.last_encoded.replace(time).and_then(|last| time.checked_sub(last));
        match (interval, gap) {
            (Some(interval), Some(gap)) if interval < gap => {
                interval.nseconds() as f64 / gap.nseconds() as f64
            }
            _ => 1.0,
        }
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
        let state = Mutex::new((FrameTimes::default(), None));
        let before_frame = move |_: &gst::Pad, info: &mut gst::PadProbeInfo<'_>| {
            let Some(encoder) = encoder.upgrade() else { return gst::PadProbeReturn::Remove };
            let bitrate = bitrate(&encoder);
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (times, last) = &mut *state;
            let time = info.buffer().and_then(|buffer| buffer.pts());
            let share = time.map_or(1.0, |time| times.share(time, bitrate.is_none()));
            let Some(bitrate) = bitrate else { return gst::PadProbeReturn::Handled };
            let bitrate = bitrate * share;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoders_get_less_while_more_than_a_frame_waits() {
        let rate = Bitrate::from_kbps(800);
        let target = Target::new(rate, rate);
        let beside = |milliseconds| {
            rate_beside_queue(&target, rate * TimeDelta::from_millis(milliseconds)).as_bps()
        };
        assert_eq!(beside(0), 800_000);
        assert_eq!(beside(50), 800_000);
        // 200 ms at 800 kbit/s are 20 kB; to send them within 500 ms takes 320 kbit/s.
        assert_eq!(beside(250), 480_000);
        assert_eq!(beside(10_000), 80_000);
    }

    #[test]
    fn the_bits_of_dropped_frames_are_not_spent_on_the_next_one() {
        let mut times = FrameTimes::default();
        let ms = gst::ClockTime::from_mseconds;
        assert_eq!(times.share(ms(0), false), 1.0);
        assert_eq!(times.share(ms(40), false), 1.0);
        times.share(ms(80), true);
        times.share(ms(120), true);
        times.share(ms(160), true);
        assert_eq!(times.share(ms(200), false), 0.25);
        assert_eq!(times.share(ms(240), false), 1.0);
        // The time starts anew after a flush.
        assert_eq!(times.share(ms(0), false), 1.0);
    }
}
