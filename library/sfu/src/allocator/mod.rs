//! Which layer of each track a subscriber gets.
//!
//! | when | what |
//! |---|---|
//! | a track is added, changed or removed, a layer appears or ends | the best choice, at once |
//! | the choice exceeds the budget by a sixth, or for half a second | down, what is missed least |
//! | it does so in the first seconds after a choice went up | down, if it is by a sixth |
//! | there is room with a margin for a second | up, what is worth most per bit |
//! | there is room with a margin for what is paused, for 0.2 s | its cheapest layers |
//! | there is room for more frames of the stream that is chosen | these, at once |

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir::units::{Bitrate, TimeDelta, Timestamp};

use crate::decision::{Change, Decision, Reason};
use crate::hysteresis::{CLEAR, Falls};
use crate::plan::{self, Level, Options, is_above};
use crate::track::{Kind, TrackConfig, TrackId};
use crate::utility::utility;

/// Room that must be left above a choice before it is made.
const MARGIN: f64 = 1.1;
/// There must be room for this time before a choice goes up.
const ROOM_TIME: TimeDelta = TimeDelta::from_secs(1);
/// The same for a picture that is paused: none at all is worse than one more switch.
const RESUME_ROOM_TIME: TimeDelta = TimeDelta::from_millis(200);
/// A choice may exceed the budget for this time: bitrates vary, and so do targets.
const OVER_TIME: TimeDelta = TimeDelta::from_millis(500);
/// A choice that exceeds the budget by more than this factor goes down at once.
const FAR_OVER: f64 = 1.15;
/// The key frame of a layer that was just chosen fills a queue by itself, which lowers the budget.
/// For this time only a choice that exceeds it by more than this factor goes down.
const KEY_FRAME_TIME: TimeDelta = TimeDelta::from_secs(1);
const KEY_FRAME_OVER: f64 = 1.5;
/// It counts in the layer's bitrate for five windows of a second. For this time only a choice that
/// exceeds the budget by [`FAR_OVER`] goes down.
const MEASURED_TIME: TimeDelta = TimeDelta::from_secs(6);
/// A path with room for this many times what all took at a fall is another one: what fell returns
/// at once.
const OTHER_PATH: f64 = 1.5;
/// Decisions that the host has not taken. The oldest go first.
const MAX_DECISIONS: usize = 256;

/// Chooses a layer for each track of one subscriber, so that the pictures together are worth most.
///
/// It knows nothing of packets: [`Subscriber`](crate::Subscriber) carries out what it chooses.
///
/// ```
/// use weir::{Bitrate, Timestamp};
/// use weir_sfu::{Allocator, Layer, TrackConfig, TrackId};
///
/// let kbps = Bitrate::from_kbps;
/// let layers = vec![Layer::new(0, 320, 180, kbps(150)), Layer::new(1, 1280, 720, kbps(1_500))];
/// let mut allocator = Allocator::default();
/// allocator.set_track(TrackId(1), TrackConfig::camera(layers));
/// allocator.allocate(Timestamp::ZERO, kbps(400));
/// assert_eq!(allocator.level(TrackId(1)), Some(0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    tracks: Vec<Track>,
    /// What can be chosen, track by track.
    options: Vec<Options>,
    /// What is chosen, track by track.
    levels: Vec<Level>,
    /// Tracks or layers changed since the last choice.
    changed: Option<Reason>,
    over_since: Option<Timestamp>,
    room_since: Option<Timestamp>,
    /// The same for pictures that are paused.
    resume_since: Option<Timestamp>,
    /// When a choice last went up.
    rose_at: Option<Timestamp>,
    budget: Bitrate,
    /// What may be relied on for more than is chosen.
    room: Bitrate,
    decisions: VecDeque<Decision>,
}

#[derive(Clone, Debug)]
struct Track {
    id: TrackId,
    config: TrackConfig,
    falls: Falls,
    /// What all tracks took together when it last fell.
    fell_from: Bitrate,
    refused: Option<(usize, Reason)>,
    /// Streams that cannot be forwarded now, one bit each.
    silent: u8,
    /// What it had when it was hidden. To show it again is no return after a fall.
    held: Level,
}

impl Allocator {
    /// Adds a track, or replaces what is known of it.
    pub fn set_track(&mut self, id: TrackId, config: TrackConfig) {
        self.changed = Some(Reason::Configured);
        let found = self.index(id);
        let silent = found.map_or(0, |index| self.tracks[index].silent);
        let options = options_of(&config, silent);
        if let Some(index) = found {
            self.levels[index] = self.levels[index].filter(|&layer| options.is_sent(layer));
            self.options[index] = options;
            self.tracks[index].config = config;
            return;
        }
        self.tracks.push(Track {
            id,
            config,
            falls: Falls::default(),
            fell_from: Bitrate::ZERO,
            refused: None,
            silent,
            held: None,
        });
        self.options.push(options);
        self.levels.push(None);
    }

    /// Removes a track.
    pub fn remove_track(&mut self, id: TrackId) {
        if let Some(index) = self.index(id) {
            self.tracks.remove(index);
            self.options.remove(index);
            self.levels.remove(index);
            self.changed = Some(Reason::Configured);
        }
    }

    /// The bitrates of a track's layers were measured again. Zero: the layer is not sent. Bitrates
    /// beyond the track's layers are ignored.
    pub fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]) {
        let Some(index) = self.index(id) else { return };
        let Track { config, silent, .. } = &mut self.tracks[index];
        let mut is_new = false;
        for (layer, &bitrate) in config.layers.iter_mut().zip(bitrates) {
            if (layer.bitrate > Bitrate::ZERO) != (bitrate > Bitrate::ZERO) {
                self.changed = Some(Reason::LayerChanged);
            }
            is_new |= layer.bitrate != bitrate;
            layer.bitrate = bitrate;
        }
        if is_new {
            self.options[index] = options_of(config, *silent);
        }
    }

    /// Streams of a track that its publisher does not send now, whatever their bitrates were: one
    /// bit each. None of their layers is chosen.
    pub fn set_silent(&mut self, id: TrackId, streams: u8) {
        let Some(index) = self.index(id) else { return };
        let track = &mut self.tracks[index];
        if track.silent != streams {
            track.silent = streams;
            self.options[index] = options_of(&track.config, streams);
            self.changed = Some(Reason::LayerChanged);
        }
    }

    /// Chooses under a budget: what all tracks except audio may take. Call it when the budget has
    /// changed, and every 100 ms or so.
    pub fn allocate(&mut self, now: Timestamp, budget: Bitrate) {
        self.allocate_within(now, budget, budget);
    }

    /// The same where only a part of the budget is known to arrive, as
    /// [`Probing::room`](crate::Probing::room) says: what is chosen stays while it is under the
    /// budget, and more is chosen only if it is under `room`.
    pub fn allocate_within(&mut self, now: Timestamp, budget: Bitrate, room: Bitrate) {
        self.budget = budget;
        self.room = room.min(budget);
        if let Some(reason) = self.changed.take() {
            self.choose_anew(now, reason);
        } else if self.must_fall(now) {
            let levels = plan::choose(&self.options, budget, &self.levels);
            self.adopt(now, levels, Reason::OverBudget);
        } else if self.over_since.is_none() {
            self.add_frames(now);
            self.resume(now);
            self.rise(now);
        }
        self.explain_refusals(now);
    }

    /// Chooses without regard to what was before, if that is worth more than to keep what fits.
    fn choose_anew(&mut self, now: Timestamp, reason: Reason) {
        let mut held = Vec::with_capacity(self.levels.len());
        for (options, &level) in self.options.iter().zip(&self.levels) {
            held.push(level.filter(|&layer| options.is_sent(layer)));
        }
        let kept = plan::choose(&self.options, self.budget, &held);
        // The margin is for what is new.
        let caps = self.caps(now, self.room);
        let anew = plan::choose(&self.options, self.room * (1.0 / MARGIN), &caps);
        let is_better = plan::worth(&self.options, &anew) > plan::worth(&self.options, &kept);
        self.adopt(now, if is_better { anew } else { kept }, reason);
        self.room_since = None;
    }

    fn must_fall(&mut self, now: Timestamp) -> bool {
        let total = self.total();
        if total <= self.budget {
            self.over_since = None;
            return false;
        }
        (self.room_since, self.resume_since) = (None, None);
        if self.rose_at.is_some_and(|at| now - at < KEY_FRAME_TIME) {
            return total > self.budget * KEY_FRAME_OVER;
        }
        let since = *self.over_since.get_or_insert(now);
        let is_new = self.rose_at.is_some_and(|at| now - at < MEASURED_TIME);
        total > self.budget * FAR_OVER || !is_new && now - since >= OVER_TIME
    }

    /// More frames of the streams that are chosen. They need no margin and no time: they cost
    /// little, need no key frame, and can be left out again at any frame.
    fn add_frames(&mut self, now: Timestamp) {
        let mut caps = self.caps(now, self.room);
        for (index, track) in self.tracks.iter().enumerate() {
            let mut cap = self.levels[index];
            while let (Some(from), Some(highest)) = (cap, caps[index])
                && from < highest
                && track.config.layers[from].stream == track.config.layers[from + 1].stream
            {
                cap = Some(from + 1);
            }
            caps[index] = cap;
        }
        let mut levels = self.levels.clone();
        plan::raise(&self.options, &mut levels, self.room, &caps);
        if levels != self.levels {
            self.adopt(now, levels, Reason::Fits);
        }
    }

    /// Begins pictures that are paused, in their cheapest layers.
    fn resume(&mut self, now: Timestamp) {
        let mut caps = self.caps(now, self.room);
        for (index, cap) in caps.iter_mut().enumerate() {
            let level = self.levels[index];
            *cap = if level.is_some() { level } else { self.options[index].cheapest().min(*cap) };
        }
        let mut levels = self.levels.clone();
        plan::raise(&self.options, &mut levels, self.room * (1.0 / MARGIN), &caps);
        if levels == self.levels {
            self.resume_since = None;
            return;
        }
        let since = *self.resume_since.get_or_insert(now);
        if now - since >= RESUME_ROOM_TIME {
            self.adopt(now, levels, Reason::Fits);
            self.resume_since = None;
        }
    }

    fn rise(&mut self, now: Timestamp) {
        let mut levels = self.levels.clone();
        let caps = self.caps(now, self.room);
        plan::raise(&self.options, &mut levels, self.room * (1.0 / MARGIN), &caps);
        if levels == self.levels {
            self.room_since = None;
            return;
        }
        let since = *self.room_since.get_or_insert(now);
        if now - since >= ROOM_TIME {
            self.adopt(now, levels, Reason::Fits);
            self.room_since = None;
        }
    }

    /// The highest level of a track that this room clearly has place for, if all take `total`.
    fn clear_level(&self, index: usize, total: Bitrate, room: Bitrate) -> Level {
        let options = &self.options[index];
        let others = total.saturating_sub(options.cost(self.levels[index]));
        let room = room * (1.0 / CLEAR);
        (0..options.layers.len()).rev().find(|&layer| others + options.cost(Some(layer)) <= room)
    }

    /// The highest level that each track may go to now, if this much is known to fit.
    fn caps(&self, now: Timestamp, room: Bitrate) -> Vec<Level> {
        let total = self.total();
        let mut caps = Vec::with_capacity(self.tracks.len());
        for (index, track) in self.tracks.iter().enumerate() {
            let layers = &track.config.layers[..self.options[index].layers.len()];
            let current = self.levels[index].max(track.held).min(layers.len().checked_sub(1));
            if self.room > track.fell_from * OTHER_PATH {
                caps.push(layers.len().checked_sub(1));
                continue;
            }
            let clear = self.clear_level(index, total, room);
            caps.push(track.falls.cap(now, current, layers, clear));
        }
        caps
    }

    fn adopt(&mut self, now: Timestamp, levels: Vec<Level>, reason: Reason) {
        let total = self.total();
        let before = core::mem::replace(&mut self.levels, levels);
        for (index, from) in before.into_iter().enumerate() {
            let to = self.levels[index];
            if from == to {
                continue;
            }
            let track = &mut self.tracks[index];
            let reason = match to {
                None if track.config.shown_pixels() <= 0.0 => Reason::Hidden,
                None if reason == Reason::OverBudget => Reason::NoRoom,
                _ => reason,
            };
            if is_above(to, from) {
                track.falls.on_rise(now, from, to);
                self.rose_at = Some(now);
            } else if matches!(reason, Reason::OverBudget | Reason::NoRoom) {
                track.falls.on_fall(now, from, to);
                track.fell_from = total;
            }
            track.refused = None;
            track.held = if reason == Reason::Hidden { from } else { None };
            self.note(now, index, Change::Choose { from, to }, reason);
        }
        self.over_since = None;
    }

    /// Says for each track why it has no better layer, when the answer changes.
    fn explain_refusals(&mut self, now: Timestamp) {
        let total = self.total();
        for index in 0..self.tracks.len() {
            let level = self.levels[index];
            let track = &self.tracks[index];
            let layers = &track.config.layers[..self.options[index].layers.len()];
            let highest = layers.len().checked_sub(1);
            let step = self.options[index].best_step(level, Bitrate::MAX, highest);
            let refused = step.map(|step| {
                let need = (total + step.more) * MARGIN;
                let clear = self.clear_level(index, total, self.room);
                let is_free = self.room > track.fell_from * OTHER_PATH
                    || track.falls.cap(now, level, layers, clear) >= Some(step.layer);
                let reason = match (need <= self.room, is_free) {
                    _ if need > self.budget => Reason::BudgetTooSmall,
                    (false, _) => Reason::CapacityUnknown,
                    (true, false) => Reason::Flapping,
                    (true, true) => Reason::TooEarly,
                };
                (step.layer, reason)
            });
            if refused == track.refused {
                continue;
            }
            self.tracks[index].refused = refused;
            if let Some((layer, reason)) = refused {
                self.note(now, index, Change::Refuse { layer }, reason);
            }
        }
    }

    fn note(&mut self, now: Timestamp, index: usize, change: Change, reason: Reason) {
        let needed = match change {
            Change::Refuse { layer } => {
                let options = &self.options[index];
                let more =
                    options.cost(Some(layer)).saturating_sub(options.cost(self.levels[index]));
                (self.total() + more) * MARGIN
            }
            _ => self.total(),
        };
        let track = Some(self.tracks[index].id);
        let decision = Decision { at: now, track, change, reason, budget: self.budget, needed };
        if self.decisions.len() == MAX_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }

    /// The next decision, in the order in which they were made. The last 256 are kept.
    pub fn next_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The layer that is chosen for a track: its place in the track's list; `None` is a pause.
    pub fn level(&self, id: TrackId) -> Option<usize> {
        self.index(id).and_then(|index| self.levels[index])
    }

    /// What is known of a track.
    pub fn track(&self, id: TrackId) -> Option<&TrackConfig> {
        self.index(id).map(|index| &self.tracks[index].config)
    }

    /// What all chosen layers take together, by their measured bitrates. Audio is not counted.
    pub fn total(&self) -> Bitrate {
        plan::total(&self.options, &self.levels)
    }

    /// What audio takes, which the host subtracts from the budget.
    pub fn audio(&self) -> Bitrate {
        let mut sum = Bitrate::ZERO;
        for track in &self.tracks {
            if track.config.kind == Kind::Audio {
                sum =
                    sum + track.config.layers.first().map_or(Bitrate::ZERO, |layer| layer.bitrate);
            }
        }
        sum
    }

    /// The budget that the next step up needs, with its margin; `None` if everything is forwarded
    /// in its best layer. This is what is worth probing for.
    pub fn next_need(&self, now: Timestamp) -> Option<Bitrate> {
        let total = self.total();
        if let Some((_, more)) = self.best_more(&self.caps(now, self.room)) {
            return Some((total + more) * MARGIN);
        }
        // What waits because it fell twice may return once it clearly fits.
        if let Some((_, more)) = self.best_more(&self.caps(now, Bitrate::MAX)) {
            return Some((total + more) * CLEAR);
        }
        // Or on another path.
        let mut highest = Vec::with_capacity(self.options.len());
        for options in &self.options {
            highest.push(options.layers.len().checked_sub(1));
        }
        let (index, more) = self.best_more(&highest)?;
        let fell_from = self.tracks[index].fell_from;
        Some(((total + more) * MARGIN).max(fell_from * OTHER_PATH))
    }

    /// The budget that the best layers of all tracks need, with its margin.
    pub fn most_need(&self) -> Bitrate {
        let mut sum = Bitrate::ZERO;
        for options in &self.options {
            let mut most = Bitrate::ZERO;
            for &(worth, cost) in &options.layers {
                most = if worth > 0.0 { most.max(cost) } else { most };
            }
            sum = sum + most;
        }
        sum * MARGIN
    }

    /// The track of the step up that is worth most, and what it costs more.
    fn best_more(&self, caps: &[Level]) -> Option<(usize, Bitrate)> {
        let mut best: Option<(usize, plan::Step)> = None;
        for (index, &cap) in caps.iter().enumerate() {
            let step = self.options[index].best_step(self.levels[index], Bitrate::MAX, cap);
            if let Some(step) = step
                && best.is_none_or(|(_, best)| step.slope > best.slope)
            {
                best = Some((index, step));
            }
        }
        let (index, step) = best?;
        Some((index, step.more))
    }

    fn index(&self, id: TrackId) -> Option<usize> {
        self.tracks.iter().position(|track| track.id == id)
    }
}

/// What can be chosen for a track. Audio is not chosen: it is always forwarded.
fn options_of(config: &TrackConfig, silent: u8) -> Options {
    if config.kind == Kind::Audio {
        return Options::default();
    }
    let mut layers = Vec::with_capacity(config.layers.len());
    for layer in &config.layers {
        let is_silent = silent.checked_shr(layer.stream.into()).unwrap_or(0) & 1 != 0;
        let cost = if is_silent { Bitrate::ZERO } else { layer.bitrate };
        layers.push((utility(config, layer), cost));
    }
    let is_shown = config.shown_pixels() > 0.0;
    Options { layers, may_pause: config.may_pause || !is_shown }
}
