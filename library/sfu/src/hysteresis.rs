//! When a track may return to a layer that it had to leave.

use alloc::vec::Vec;

use weir::units::{TimeDelta, Timestamp};

use crate::plan::{Level, is_above};
use crate::track::Layer;

/// The first return to a layer is free. Each further one comes this time after the last, so that a
/// layer at the edge of what fits costs fewer than two switches a minute.
pub(crate) const RETURN_INTERVAL: TimeDelta = TimeDelta::from_secs(75);
/// The same for a layer of which clearly more than it needs is known to fit ([`CLEAR`]): then it is
/// not at the edge of what fits.
const CLEAR_INTERVAL: TimeDelta = TimeDelta::from_secs(15);
/// Clearly more is this many times what is needed.
pub(crate) const CLEAR: f64 = 1.5;
/// The same for a return from a pause: no picture at all is worse than one more switch.
const RESUME_INTERVAL: TimeDelta = TimeDelta::from_secs(15);
/// The same for more frames of the stream that is forwarded. No key frame is needed, and one step
/// up or down is hardly seen.
const FRAMES_INTERVAL: TimeDelta = TimeDelta::from_secs(10);
/// More frames, which need no proof, also wait this time after a fall: what a controller hears
/// first after an outage is of the time before it.
const SETTLES: TimeDelta = TimeDelta::from_secs(1);
/// After this time without a fall from a layer, its first return is free again.
const FORGET: TimeDelta = TimeDelta::from_secs(300);

/// The falls and returns of one track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Falls {
    layers: Vec<Fall>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fall {
    /// When the track last left the layer for lack of room.
    fell: Option<Timestamp>,
    /// When it last came back after that.
    returned: Option<Timestamp>,
}

impl Falls {
    /// The track goes down for lack of room.
    pub fn on_fall(&mut self, now: Timestamp, from: Level, to: Level) {
        let Some(from) = from else { return };
        if self.layers.len() <= from {
            self.layers.resize(from + 1, Fall::default());
        }
        for fall in &mut self.layers[to.map_or(0, |to| to + 1)..=from] {
            if fall.fell.is_none_or(|fell| now - fell > FORGET) {
                fall.returned = None;
            }
            fall.fell = Some(now);
        }
    }

    /// The track goes up.
    pub fn on_rise(&mut self, now: Timestamp, from: Level, to: Level) {
        let Some(to) = to else { return };
        let first = from.map_or(0, |from| from + 1);
        for fall in self.layers.iter_mut().take(to + 1).skip(first) {
            if fall.fell.is_some() {
                fall.returned = Some(now);
            }
        }
    }

    /// The highest level of these layers that the track may go to now. Levels up to `clear` fit
    /// clearly.
    pub fn cap(&self, now: Timestamp, current: Level, layers: &[Layer], clear: Level) -> Level {
        let first = current.map_or(0, |layer| layer + 1);
        let mut cap = current;
        for layer in first..layers.len() {
            let fall = self.layers.get(layer).copied().unwrap_or_default();
            let is_forgotten = fall.fell.is_none_or(|fell| now - fell > FORGET);
            let interval = match cap {
                None => RESUME_INTERVAL,
                Some(below) if layers[below].stream == layers[layer].stream => FRAMES_INTERVAL,
                Some(_) if clear >= Some(layer) => CLEAR_INTERVAL,
                Some(_) => RETURN_INTERVAL,
            };
            if !is_forgotten && fall.returned.is_some_and(|at| now - at < interval) {
                break;
            }
            if interval == FRAMES_INTERVAL && fall.fell.is_some_and(|at| now - at < SETTLES) {
                break;
            }
            cap = Some(layer);
        }
        if is_above(current, cap) { current } else { cap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::units::Bitrate;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    /// Layers of these streams.
    fn layers(streams: &[u8]) -> Vec<Layer> {
        let mut layers = Vec::new();
        for &stream in streams {
            layers.push(Layer::new(stream, 320, 180, Bitrate::from_kbps(150)));
        }
        layers
    }

    #[test]
    fn the_first_return_is_free_and_the_second_waits() {
        let mut falls = Falls::default();
        let (low, high) = (Some(0), Some(2));
        falls.on_rise(at(0), None, high);
        falls.on_fall(at(10), high, low);
        let layers = layers(&[0, 1, 2]);
        assert_eq!(falls.cap(at(11), low, &layers, None), high);
        falls.on_rise(at(12), low, high);
        falls.on_fall(at(20), high, low);
        assert_eq!(falls.cap(at(86), low, &layers, None), low);
        assert_eq!(falls.cap(at(87), low, &layers, None), high);
    }

    #[test]
    fn a_layer_below_those_that_were_left_stays_free() {
        let mut falls = Falls::default();
        falls.on_fall(at(10), Some(2), Some(1));
        falls.on_rise(at(12), Some(1), Some(2));
        falls.on_fall(at(14), Some(2), Some(0));
        assert_eq!(falls.cap(at(15), Some(0), &layers(&[0, 1, 2]), None), Some(1));
    }

    // Found in simulation: the link had been back for 20 s, and the picture stayed small.
    #[test]
    fn a_layer_that_clearly_fits_returns_sooner() {
        let mut falls = Falls::default();
        let (low, high) = (Some(0), Some(1));
        falls.on_fall(at(10), high, low);
        falls.on_rise(at(12), low, high);
        falls.on_fall(at(14), high, low);
        let layers = layers(&[0, 1]);
        assert_eq!(falls.cap(at(26), low, &layers, high), low);
        assert_eq!(falls.cap(at(27), low, &layers, low), low);
        assert_eq!(falls.cap(at(27), low, &layers, high), high);
    }

    // Found in simulation: a picture stayed black for 75 s.
    #[test]
    fn a_picture_that_was_paused_twice_returns_sooner() {
        let mut falls = Falls::default();
        let (low, high) = (Some(0), Some(1));
        falls.on_fall(at(10), high, None);
        falls.on_rise(at(12), None, high);
        falls.on_fall(at(14), high, None);
        let layers = layers(&[0, 1]);
        assert_eq!(falls.cap(at(26), None, &layers, None), None);
        assert_eq!(falls.cap(at(27), None, &layers, None), low);
        assert_eq!(falls.cap(at(87), None, &layers, None), high);
    }

    #[test]
    fn more_frames_of_the_same_stream_return_sooner() {
        let mut falls = Falls::default();
        let (low, high) = (Some(0), Some(2));
        falls.on_fall(at(10), high, low);
        falls.on_rise(at(12), low, high);
        falls.on_fall(at(14), high, low);
        let layers = layers(&[0, 0, 1]);
        assert_eq!(falls.cap(at(21), low, &layers, None), low);
        assert_eq!(falls.cap(at(22), low, &layers, None), Some(1));
        assert_eq!(falls.cap(at(87), low, &layers, None), high);
    }

    // Found in a call through LiveKit with an outage: up for a moment, and then down for 10 s.
    #[test]
    fn more_frames_wait_a_second_after_a_fall() {
        let mut falls = Falls::default();
        falls.on_fall(at(10), Some(1), Some(0));
        let layers = layers(&[0, 0, 1]);
        assert_eq!(falls.cap(at(10), Some(0), &layers, None), Some(0));
        assert_eq!(falls.cap(at(11), Some(0), &layers, None), Some(2));
    }

    #[test]
    fn old_falls_are_forgotten() {
        let mut falls = Falls::default();
        falls.on_fall(at(10), Some(1), None);
        falls.on_rise(at(12), None, Some(1));
        falls.on_fall(at(400), Some(1), None);
        assert_eq!(falls.cap(at(401), None, &layers(&[0, 1]), None), Some(1));
    }
}
