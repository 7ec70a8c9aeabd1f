//! Which frames of a stream with dependency descriptors a subscriber gets.
//!
//! A decode target is a picture size and a frame rate. Frames that a target does not have are left
//! out. Another target can begin at a frame that says so (`Switch`), if everything that this frame
//! depends on was forwarded [AV1-RTP §A.4.4]. That holds for each key frame, and for most changes
//! without one; it is right for every structure, since the descriptors say what depends on what.
//!
//! [AV1-RTP §A.4.4]: https://aomediacodec.github.io/av1-rtp-spec/

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir::feedback::SeqUnwrapper;
use weir_wire::Error;
use weir_wire::dependency::{Descriptor, Indication, Structure, Template};
use weir_wire::rtp::{ExtensionId, View, replace_element};

use crate::track::Frame;

/// Frames whose fate is remembered. The usual structures refer back a dozen frames.
const WINDOW: usize = 128;
/// No frame comes as late as this many others.
const FAR: i64 = 512;
/// Changes of the target that are remembered, for frames that come late.
const CHANGES: usize = 8;
/// After a change, the descriptors of this many frames say which targets are left: two pictures of
/// three layers, one of which may be lost.
const ANNOUNCED: i64 = 6;

/// Reads what the dependency descriptors of a stream say of its packets, for the server's own use
/// and for [`Uplink::on_packet`](crate::Uplink::on_packet). One for each RTP stream of a publisher.
#[derive(Clone, Debug)]
pub struct DependencyReader {
    id: ExtensionId,
    structure: Option<Box<Structure>>,
}

impl DependencyReader {
    /// Reads the extension with this id.
    pub const fn new(id: ExtensionId) -> Self {
        Self { id, structure: None }
    }

    /// What the descriptor says of the frame. Its stream is the spatial layer: of a stream of
    /// simulcast, use [`Frame::with_stream`].
    ///
    /// # Errors
    /// If the bytes are not RTP, if there is no descriptor or a damaged one, and before the first
    /// key frame: [`Error::UnknownTemplate`].
    pub fn read(&mut self, packet: &[u8]) -> Result<Frame, Error> {
        let data = View::parse_header(packet)?.element(self.id).ok_or(Error::Truncated)?;
        let mut descriptor = Descriptor::parse(data, self.structure.as_deref())?;
        let has_structure = descriptor.structure.is_some();
        if has_structure {
            self.structure = descriptor.structure.take();
        }
        let structure = self.structure.as_deref().ok_or(Error::UnknownTemplate)?;
        let template = descriptor.frame(structure)?;
        let all = structure.best_target(template.spatial, u8::MAX);
        let indication = all.map(|all| template.indications.get(all));
        Ok(Frame::new(template.spatial)
            .with_temporal(template.temporal)
            .with_starts_key_frame(has_structure && descriptor.starts_frame)
            .with_is_switching_point(indication == Some(Indication::Switch)))
    }

    /// The structure that came last.
    pub fn structure(&self) -> Option<&Structure> {
        self.structure.as_deref()
    }
}

/// What is done with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// It is forwarded.
    pub keep: bool,
    /// It is the last packet of a picture, as this subscriber gets it: it needs RTP's marker.
    pub ends_picture: bool,
    /// Its descriptor must say which decode targets are left: see [`TargetSelector::announce`].
    pub announces: bool,
}

impl Selection {
    /// A packet that is forwarded or left out, and nothing else.
    pub const fn new(keep: bool) -> Self {
        Self { keep, ends_picture: false, announces: false }
    }
}

/// A frame for which was decided.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: i64,
    keep: bool,
}

/// A decode target, and the frame from which on it is forwarded.
#[derive(Clone, Copy, Debug)]
struct Part {
    since: i64,
    target: usize,
    /// Its highest layers.
    layers: (u8, u8),
    /// It is the best target: nothing is left out.
    is_all: bool,
}

/// Chooses the frames of one stream for one subscriber, by their dependency descriptors.
/// [`Subscriber`](crate::Subscriber) has one for each track that needs it.
#[derive(Clone, Debug)]
pub struct TargetSelector {
    id: ExtensionId,
    structure: Option<Box<Structure>>,
    /// The frame with which the structure came. Frames before it are not looked at.
    since: i64,
    /// Highest layers that are wanted, and the target that they are.
    wanted: Option<(u8, u8)>,
    wanted_target: Option<usize>,
    numbers: SeqUnwrapper,
    /// The newest frame, and its RTP timestamp.
    newest: Option<i64>,
    newest_timestamp: u32,
    /// What was forwarded last, the newest at the end.
    changes: VecDeque<Part>,
    seen: Vec<Option<Seen>>,
    /// Timestamp of the last picture that was marked as complete.
    ended: Option<u32>,
    /// Targets that the publisher still sends.
    sent: u32,
}

impl TargetSelector {
    /// A stream whose descriptors have this id. Nothing is wanted of it.
    pub fn new(id: ExtensionId) -> Self {
        Self {
            id,
            structure: None,
            since: i64::MIN,
            wanted: None,
            wanted_target: None,
            numbers: SeqUnwrapper::default(),
            newest: None,
            newest_timestamp: 0,
            changes: VecDeque::new(),
            seen: alloc::vec![None; WINDOW],
            ended: None,
            sent: u32::MAX,
        }
    }

    /// At most this spatial and temporal layer is wanted, from the next frame on that allows it.
    pub fn want(&mut self, layers: Option<(u8, u8)>) {
        if self.wanted != layers {
            self.wanted = layers;
            self.find_wanted();
        }
    }

    fn find_wanted(&mut self) {
        self.wanted_target = match (self.structure.as_deref(), self.wanted) {
            (Some(structure), Some((spatial, temporal))) => {
                structure.best_target(spatial, temporal)
            }
            _ => None,
        };
    }

    /// Nothing more is forwarded before the next key frame.
    pub fn pause(&mut self) {
        self.changes.clear();
        self.seen.fill(None);
    }

    /// Forgets the stream. Another one has numbers and structures of its own.
    pub fn reset(&mut self) {
        let wanted = self.wanted;
        *self = Self { wanted, ..Self::new(self.id) };
    }

    /// Spatial and temporal layer of what is forwarded.
    pub fn active(&self) -> Option<(u8, u8)> {
        self.changes.back().map(|part| part.layers)
    }

    /// Decides about a packet. `None`: nothing can be forwarded of the stream yet, or the packet
    /// says nothing that can be read.
    pub fn decide(&mut self, packet: &[u8]) -> Option<Selection> {
        let view = View::parse_header(packet).ok()?;
        let data = view.element(self.id)?;
        let mut descriptor = Descriptor::parse(data, self.structure.as_deref()).ok()?;
        let number = self.numbers.peek(u32::from(descriptor.frame_number));
        let is_newer = self.newest.is_none_or(|newest| number > newest);
        let is_newest = self.newest.is_none_or(|newest| number >= newest);
        if !is_newest && self.begins_anew(&descriptor, number, view.timestamp()) {
            self.reset();
            return self.decide(packet);
        }
        let mut brings_structure = false;
        if is_newest && let Some(structure) = descriptor.structure.take() {
            brings_structure = true;
            self.structure = Some(structure);
            self.since = number;
            self.sent = u32::MAX;
            self.find_wanted();
        }
        if number < self.since {
            return self.changes.back().map(|_| Selection::default());
        }
        let frame = descriptor.frame(self.structure.as_deref()?).ok()?;
        if is_newer {
            self.newest = Some(number);
            self.newest_timestamp = view.timestamp();
            self.numbers.set_last(number);
            self.sent = descriptor.active_targets.unwrap_or(self.sent);
        }
        // A receiver cannot begin without the structure.
        let may_change = if self.changes.is_empty() { brings_structure } else { is_newer };
        if may_change {
            self.change(number, &frame, view.timestamp());
        }
        let part = self.part_at(number)?;
        let keep = match self.seen(number) {
            Some(seen) => seen.keep,
            None => frame.indications.get(part.target) != Indication::NotPresent,
        };
        self.seen[place(number)] = Some(Seen { number, keep });
        // A structure by itself says that everything is sent.
        let is_first = number == self.since;
        let is_news = number < part.since + ANNOUNCED && part.since > self.since;
        // A late frame of a part that is over has nothing to say of the new one.
        let is_over = self.changes.back().is_some_and(|last| last.since > part.since);
        let ends_picture = keep && descriptor.ends_frame && frame.spatial == part.layers.0;
        if ends_picture {
            self.ended = Some(view.timestamp());
        }
        Some(Selection {
            keep,
            ends_picture,
            announces: keep && !is_over && (is_news || is_first && !part.is_all),
        })
    }

    /// Whether a key frame is newer than all before it although its number is not: an encoder that
    /// restarts counts its frames anew.
    fn begins_anew(&self, descriptor: &Descriptor, number: i64, timestamp: u32) -> bool {
        let is_later = timestamp.wrapping_sub(self.newest_timestamp).cast_signed() > 0;
        let is_far = self.newest.is_some_and(|newest| newest - number > FAR);
        descriptor.structure.is_some() && descriptor.starts_frame && (is_later || is_far)
    }

    /// Begins the target that is wanted, if the newest frame allows it.
    fn change(&mut self, number: i64, frame: &Template, timestamp: u32) {
        let (Some(structure), Some(target)) = (self.structure.as_deref(), self.wanted_target)
        else {
            return;
        };
        // After a new structure the same target has to begin again.
        let is_same = self
            .changes
            .back()
            .is_some_and(|part| part.target == target && part.since >= self.since);
        if is_same || frame.indications.get(target) != Indication::Switch {
            return;
        }
        let layers = structure.layers(target);
        // What is complete cannot grow any more.
        let grows = self.changes.back().is_some_and(|part| part.layers.0 < layers.0);
        if grows && self.ended == Some(timestamp) {
            return;
        }
        for &back in frame.references.differences() {
            if !self.seen(number - i64::from(back)).is_some_and(|seen| seen.keep) {
                return;
            }
        }
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        let is_all = structure.best_target(u8::MAX, u8::MAX) == Some(target);
        self.changes.push_back(Part { since: number, target, layers, is_all });
    }

    /// What was forwarded when a frame came.
    fn part_at(&self, number: i64) -> Option<Part> {
        self.changes.iter().rev().find(|part| part.since <= number).copied()
    }

    fn seen(&self, number: i64) -> Option<Seen> {
        self.seen[place(number)].filter(|seen| seen.number == number)
    }

    /// Says in the descriptor of a forwarded packet which decode targets are left. Its numbers may
    /// be shifted already.
    pub fn announce(&self, packet: &mut Vec<u8>) {
        let (Some(structure), Some(part)) = (self.structure.as_deref(), self.changes.back()) else {
            return;
        };
        let Ok(view) = View::parse_header(packet) else { return };
        let Some(data) = view.element(self.id) else { return };
        let Ok(mut descriptor) = Descriptor::parse(data, Some(structure)) else { return };
        let most = part.layers;
        let mut active = 0;
        for other in 0..structure.targets {
            let layers = structure.layers(other);
            if layers.0 <= most.0 && layers.1 <= most.1 {
                active |= 1 << other;
            }
        }
        descriptor.active_targets = Some(active & self.sent);
        replace_element(packet, self.id, &descriptor.emit(structure));
    }
}

fn place(number: i64) -> usize {
    number.rem_euclid(WINDOW as i64) as usize
}
