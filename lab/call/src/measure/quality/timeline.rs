//! Joins the sightings of a camera's frames at both ends.
//!
//! A tag's number repeats with the loop of the camera's file, so several captured frames have it.
//! On screen, the RTP timestamps of two pictures say how long after the one the other was captured.
//! On a track, the right frame is the one that is on screen soon. Otherwise it is not older than
//! the frame before, and its delay is next to that frame's. A delay that falls by more than half a
//! loop at once is that of the youngest frame with the number.

use std::collections::BTreeMap;

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::quality::TagCount;

use super::sighting::{Place, TimedSighting};

/// A frame of the camera that the receiver saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number among the frames that the camera delivered, from 0.
    pub index: usize,
    /// Number in its tag.
    pub number: u16,
    /// When the camera delivered it.
    pub captured: Timestamp,
    /// When it was decoded, on the received track.
    pub received: Option<Timestamp>,
    /// When it was shown first.
    pub shown: Option<Timestamp>,
    /// How often it was shown again.
    pub repeats: u32,
    /// Width of the received picture in pixels.
    pub width: u32,
    /// Height of the received picture in pixels.
    pub height: u32,
}

impl Frame {
    /// From the camera to the screen.
    pub fn shown_delay(&self) -> Option<TimeDelta> {
        Some(self.shown? - self.captured)
    }

    /// From the camera to the received track.
    pub fn received_delay(&self) -> Option<TimeDelta> {
        Some(self.received? - self.captured)
    }
}

/// The frames of one camera that one peer received, by the order of their capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The frames.
    pub frames: Vec<Frame>,
    /// Times of all pictures on screen, with or without a tag.
    pub pictures: Vec<Timestamp>,
    /// At the camera. All that were read match.
    pub camera: TagCount,
    /// On the received track.
    pub track: TagCount,
    /// On screen.
    pub screen: TagCount,
    /// Pictures on screen that the browser counted and the page did not see.
    pub missed: u64,
    /// When each frame was captured, and how late the sender's page saw it.
    pub camera_late: Vec<(Timestamp, TimeDelta)>,
}

impl Timeline {
    /// `sent` are the sightings of the sender and `received` those of the receiver, in order.
    /// `period` is the length of the camera's loop.
    pub fn of(sent: &[TimedSighting], received: &[TimedSighting], period: TimeDelta) -> Self {
        let camera_late = camera_late(sent);
        let (camera, count) = Camera::of(sent, &camera_late, period);
        let mut frames = BTreeMap::new();
        let mut timeline = Self { camera: count, camera_late, ..Self::default() };
        let mut matcher = Matcher::new(&camera);
        let mut presented = None;
        for sighting in received.iter().filter(|it| it.place == Place::Screen) {
            timeline.pictures.push(sighting.time);
            if let (Some(before), Some(now)) = (presented, sighting.frame.presented) {
                timeline.missed += now.saturating_sub(before).saturating_sub(1);
            }
            presented = sighting.frame.presented.or(presented);
            if let Some(index) = matcher.find(sighting, &mut timeline.screen) {
                let frame = frames.entry(index).or_insert_with(|| camera.frame(index, sighting));
                match frame.shown {
                    None => frame.shown = Some(sighting.time),
                    Some(_) => frame.repeats += 1,
                }
            }
        }
        let mut matcher = Matcher::new(&camera);
        for sighting in received.iter().filter(|it| it.place == Place::Track) {
            matcher.shown_soon = camera.shown_soon(sighting, &frames);
            if let Some(index) = matcher.find(sighting, &mut timeline.track) {
                let frame = frames.entry(index).or_insert_with(|| camera.frame(index, sighting));
                frame.received.get_or_insert(sighting.time);
            }
        }
        timeline.frames = frames.into_values().collect();
        timeline
    }
}

/// When each frame of the camera was captured, and how late the sender's page saw it.
///
/// A frame's timestamp is on a clock of its own and exact. A page sees the frame a little later.
/// The frame that was seen soonest gives the offset between the two clocks.
pub(super) fn camera_late(sent: &[TimedSighting]) -> Vec<(Timestamp, TimeDelta)> {
    let mut seen = Vec::new();
    let mut offset = TimeDelta::MAX;
    for sighting in sent.iter().filter(|it| it.place == Place::Camera) {
        let (Some(_), Some(us)) = (sighting.frame.tag, sighting.frame.timestamp_us) else {
            continue;
        };
        let own = Timestamp::from_micros(us as i64);
        offset = offset.min(sighting.time - own);
        seen.push((own, sighting.time));
    }
    let mut late = Vec::new();
    for (own, time) in seen {
        late.push((own + offset, time - (own + offset)));
    }
    late
}

/// What the sender's page saw of its camera.
struct Camera {
    /// Time and number of each frame.
    captured: Vec<(Timestamp, u16)>,
    /// Indices of the frames with a number.
    by_number: BTreeMap<u16, Vec<usize>>,
    period: TimeDelta,
}

impl Camera {
    /// `late` are the frames of `sent` that have a tag and a timestamp.
    fn of(
        sent: &[TimedSighting],
        late: &[(Timestamp, TimeDelta)],
        period: TimeDelta,
    ) -> (Self, TagCount) {
        let mut count = TagCount::default();
        let mut times = late.iter();
        let mut by_number: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        let mut captured = Vec::new();
        for sighting in sent.iter().filter(|it| it.place == Place::Camera) {
            count.seen += 1;
            let (Some(tag), Some(_)) = (sighting.frame.tag, sighting.frame.timestamp_us) else {
                continue;
            };
            let Some((time, _)) = times.next() else { break };
            by_number.entry(tag.number).or_default().push(captured.len());
            captured.push((*time, tag.number));
        }
        count.read = captured.len();
        count.matched = captured.len();
        (Self { captured, by_number, period }, count)
    }

    /// The captured frame with this number whose time is nearest to `expected`, not after `seen`,
    /// and not before the frame `last`. If that is half a loop off, the delay has changed at once
    /// since `last`: then the youngest such frame, if it is younger than the loop.
    fn nearest(
        &self,
        number: u16,
        expected: Timestamp,
        seen: Timestamp,
        last: Option<usize>,
    ) -> Option<usize> {
        let mut best: Option<(TimeDelta, usize)> = None;
        let mut youngest = None;
        for &index in self.by_number.get(&number)? {
            let (time, _) = self.captured[index];
            if time > seen {
                break;
            }
            if last.is_some_and(|last| index < last) {
                continue;
            }
            let apart = distance(time, expected);
            if best.is_none_or(|(least, _)| apart < least) {
                best = Some((apart, index));
            }
            youngest = Some((seen - time, index));
        }
        match (best?, youngest?) {
            ((apart, index), _) if apart < self.period / 2 => Some(index),
            (_, (age, index)) if last.is_some() && age < self.period => Some(index),
            // The frame is of a loop whose capture the sender's page missed.
            _ => None,
        }
    }

    /// The captured frame with this number whose time is `time`, but for a few frames, because the
    /// clock of RTP and the camera's are not the same.
    fn captured_at(&self, number: u16, time: Timestamp) -> Option<usize> {
        let mut all = self.by_number.get(&number)?.iter().copied();
        all.find(|&index| distance(self.captured[index].0, time) < self.period / 8)
    }

    /// The captured frame of a picture on a track which is on screen a moment later.
    fn shown_soon(
        &self,
        sighting: &TimedSighting,
        frames: &BTreeMap<usize, Frame>,
    ) -> Option<usize> {
        let number = sighting.frame.tag?.number;
        let mut all = self.by_number.get(&number)?.iter().copied();
        all.find(|index| {
            let shown = frames.get(index).and_then(|frame| frame.shown);
            shown.is_some_and(|shown| distance(shown, sighting.time) < self.period / 8)
        })
    }

    fn frame(&self, index: usize, sighting: &TimedSighting) -> Frame {
        let (captured, number) = self.captured[index];
        let (width, height) = (sighting.frame.width, sighting.frame.height);
        Frame { index, number, captured, received: None, shown: None, repeats: 0, width, height }
    }
}

fn distance(one: Timestamp, other: Timestamp) -> TimeDelta {
    if one > other { one - other } else { other - one }
}

/// Time between two RTP timestamps of video, which may have passed their largest number.
fn rtp_between(before: u32, after: u32) -> TimeDelta {
    const UNITS_PER_MS: i64 = 90;
    let units = i64::from(after.wrapping_sub(before).cast_signed());
    TimeDelta::from_micros(units * 1000 / UNITS_PER_MS)
}

/// Finds the captured frames of one place.
struct Matcher<'a> {
    camera: &'a Camera,
    /// Delay of the last frame that was found.
    delay: Option<TimeDelta>,
    /// That frame. Frames arrive in the order of their capture.
    newest: Option<usize>,
    /// Its RTP timestamp, if it is known.
    rtp: Option<u32>,
    /// What is known of the next frame from another place.
    shown_soon: Option<usize>,
}

impl<'a> Matcher<'a> {
    fn new(camera: &'a Camera) -> Self {
        Self { camera, delay: None, newest: None, rtp: None, shown_soon: None }
    }

    fn find(&mut self, sighting: &TimedSighting, count: &mut TagCount) -> Option<usize> {
        count.seen += 1;
        let tag = sighting.frame.tag?;
        count.read += 1;
        // The first frame is taken to be younger than half a loop.
        let expected = sighting.time - self.delay.unwrap_or(TimeDelta::ZERO);
        let index = self
            .shown_soon
            .or_else(|| self.by_rtp(tag.number, sighting.frame.rtp))
            .or_else(|| self.camera.nearest(tag.number, expected, sighting.time, self.newest))?;
        self.rtp = sighting.frame.rtp;
        count.matched += 1;
        self.newest = Some(index);
        self.delay = Some(sighting.time - self.camera.captured[index].0);
        Some(index)
    }
}

impl Matcher<'_> {
    /// The frame that was captured as long after the last one as the RTP timestamps say.
    fn by_rtp(&self, number: u16, rtp: Option<u32>) -> Option<usize> {
        let after = rtp_between(self.rtp?, rtp?);
        let (before, _) = self.camera.captured[self.newest?];
        self.camera.captured_at(number, before + after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::quality::sighting::FrameSighting;
    use crate::measure::quality::tag::Tag;

    const LOOP: u16 = 60;
    const INTERVAL: TimeDelta = TimeDelta::from_millis(33);

    fn sighting(place: Place, time: Timestamp, number: u16) -> TimedSighting {
        let tag = Some(Tag { number: number % LOOP, stream: 0 });
        let (timestamp_us, presented) = (Some(0.0), None);
        let at_ms = 0.0;
        let (width, height, rtp) = (640, 360, None);
        let frame = FrameSighting { at_ms, timestamp_us, presented, rtp, width, height, tag };
        TimedSighting { place, time, frame }
    }

    fn at(number: u16) -> Timestamp {
        Timestamp::from_secs(1) + INTERVAL * i64::from(number)
    }

    /// A page sees each frame 1 to 3 ms after its capture. The camera's clock is 400 ms behind.
    fn sent(frames: u16) -> Vec<TimedSighting> {
        let mut sent = Vec::new();
        for number in 0..frames {
            let late = TimeDelta::from_millis(1 + i64::from(number) % 3);
            let mut seen = sighting(Place::Camera, at(number) + late, number);
            let own = at(number) - TimeDelta::from_millis(400);
            seen.frame.timestamp_us = Some((own - Timestamp::ZERO).as_micros() as f64);
            sent.push(seen);
        }
        sent
    }

    fn timeline(received: &[TimedSighting]) -> Timeline {
        Timeline::of(&sent(600), received, INTERVAL * i64::from(LOOP))
    }

    #[test]
    fn delays_are_exact_although_the_senders_page_sees_its_frames_late() {
        let delay = TimeDelta::from_millis(120);
        let mut received = Vec::new();
        for number in 0..100 {
            received.push(sighting(Place::Track, at(number) + delay, number));
            let shown = at(number) + delay + TimeDelta::from_millis(16);
            received.push(sighting(Place::Screen, shown, number));
        }
        let timeline = timeline(&received);
        assert_eq!(timeline.frames.len(), 100);
        for frame in &timeline.frames {
            // The frame that the sender's page saw soonest was 1 ms old.
            assert_eq!(frame.received_delay(), Some(TimeDelta::from_millis(119)));
            assert_eq!(frame.shown_delay(), Some(TimeDelta::from_millis(135)));
        }
        assert_eq!(timeline.screen, TagCount { seen: 100, read: 100, matched: 100 });
    }

    #[test]
    fn the_page_that_sees_its_camera_soonest_says_how_late_it_sees_the_rest() {
        let late = camera_late(&sent(6));
        let ms: Vec<i64> = late.iter().map(|(_, late)| late.as_millis()).collect();
        assert_eq!(ms, [0, 1, 2, 0, 1, 2]);
        assert_eq!(late[4].0, at(4) + TimeDelta::from_millis(1));
    }

    #[test]
    fn a_delay_that_grows_slowly_may_exceed_the_loop() {
        let mut received = Vec::new();
        for number in 0..400 {
            let delay = TimeDelta::from_millis(50 + 10 * i64::from(number));
            received.push(sighting(Place::Screen, at(number) + delay, number));
        }
        let frames = timeline(&received).frames;
        assert_eq!(frames.len(), 400);
        assert_eq!(frames[399].shown_delay(), Some(TimeDelta::from_millis(49 + 3_990)));
    }

    #[test]
    fn after_a_jump_the_delay_is_not_a_loop_too_long() {
        // The loop has 1.98 s. After 1.5 s of waiting, the sender skips to the newest frame.
        let mut received = Vec::new();
        for number in 0..60 {
            let delay = TimeDelta::from_millis(10 + 25 * i64::from(number));
            received.push(sighting(Place::Track, at(number) + delay, number));
        }
        for number in 110..200 {
            let delay = TimeDelta::from_millis(40);
            received.push(sighting(Place::Track, at(number) + delay, number));
        }
        let frames = timeline(&received).frames;
        assert_eq!(frames[59].received_delay(), Some(TimeDelta::from_millis(9 + 25 * 59)));
        assert_eq!(frames[60].index, 110);
        assert_eq!(frames[60].received_delay(), Some(TimeDelta::from_millis(39)));
        assert_eq!(frames[149].received_delay(), Some(TimeDelta::from_millis(39)));
    }

    #[test]
    fn rtp_timestamps_tell_a_jump_of_any_length_and_a_track_of_a_screen() {
        // The loop has 1.98 s. The delay grows to 1.9 s, and falls to 0.1 s by less than a loop,
        // which is nearer to 2.08 s than to 0.1.
        let mut received = Vec::new();
        let mut see = Vec::new();
        for number in 0..72 {
            see.push((number, TimeDelta::from_millis(40 + 26 * i64::from(number))));
        }
        for number in 132..200 {
            see.push((number, TimeDelta::from_millis(100)));
        }
        for &(number, delay) in &see {
            received.push(sighting(Place::Track, at(number) + delay, number));
            let mut shown = sighting(Place::Screen, at(number) + delay + INTERVAL, number);
            // The clock passes its largest number.
            let units = (INTERVAL.as_millis() * 90 * i64::from(number)) as u32;
            shown.frame.rtp = Some(units.wrapping_sub(100_000));
            received.push(shown);
        }
        let frames = timeline(&received).frames;
        assert_eq!(frames.len(), see.len());
        for (frame, (number, delay)) in frames.iter().zip(see) {
            assert_eq!(frame.index, usize::from(number));
            let early = TimeDelta::from_millis(1);
            assert_eq!(frame.received_delay(), Some(delay - early));
            assert_eq!(frame.shown_delay(), Some(delay + INTERVAL - early));
        }
    }

    #[test]
    fn pictures_shown_again_and_pictures_without_tag_are_counted() {
        let delay = TimeDelta::from_millis(20);
        let mut received = Vec::new();
        for (picture, number) in [0, 1, 1, 3].into_iter().enumerate() {
            let time = at(picture as u16) + delay;
            let mut seen = sighting(Place::Screen, time, number);
            // The page missed two pictures before the last one.
            seen.frame.presented = Some(picture as u64 + if picture == 3 { 2 } else { 0 });
            received.push(seen);
        }
        let mut blank = sighting(Place::Screen, at(4) + delay, 4);
        blank.frame.tag = None;
        received.push(blank);
        let timeline = timeline(&received);
        let repeats: Vec<u32> = timeline.frames.iter().map(|frame| frame.repeats).collect();
        assert_eq!(repeats, [0, 1, 0]);
        assert_eq!((timeline.missed, timeline.pictures.len()), (2, 5));
        assert_eq!(timeline.screen, TagCount { seen: 5, read: 4, matched: 4 });
    }

    #[test]
    fn a_frame_that_the_sender_never_saw_is_not_taken_for_one_of_another_loop() {
        let received = [sighting(Place::Screen, at(90), 30)];
        let mut sent = sent(600);
        sent.retain(|seen| seen.time < at(31) || seen.time > at(95));
        let timeline = Timeline::of(&sent, &received, INTERVAL * i64::from(LOOP));
        assert!(timeline.frames.is_empty());
        assert_eq!(timeline.screen, TagCount { seen: 1, read: 1, matched: 0 });
    }
}
