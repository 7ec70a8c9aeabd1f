//! One continuous stream out of the parts of several: sequence numbers, timestamps, VP8's picture
//! ids, and the numbers of dependency descriptors.
//!
//! ```text
//! source A:  10 11 12 13 14            source B:  900 901 902
//! forwarded:  1  2  3  4  5                         6   7   8
//! ```
//!
//! A packet that is left out takes no number. A packet that is missing gets one reserved, because
//! it may still come, and because the receiver must notice that it is lost. If it comes and is then
//! left out after all, a packet without payload takes its number: no number stays open.

mod order;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_wire::dependency::{self, Descriptor};
use weir_wire::rtp::{ExtensionId, View};

use self::order::{Order, Place};
use crate::vp8::{PICTURE_ID_MASK, PayloadDescriptor};

/// A missing packet may come for this time: two round trips to a publisher a second away.
pub(crate) const WINDOW: TimeDelta = TimeDelta::from_secs(2);
/// The clock rate of video [RFC3551 §5].
const VIDEO_CLOCK_RATE: u32 = 90_000;
/// So many pictures in a row may be shown before one that came before them: H.264 allows 16.
const MAX_SHOWN_BEFORE: u8 = 16;
/// Pictures left out that are remembered: more than begin within the window.
const LEFT_OUT: usize = 512;
const PADDING_FLAG: u8 = 1 << 5;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is sent, with these changed numbers.
    Forward {
        /// Its new sequence number.
        sequence_number: u16,
    },
    /// It is sent without its payload, because its number was reserved.
    Fill {
        /// Its new sequence number.
        sequence_number: u16,
    },
    /// It is not sent: it was left out, came twice, or came too late. Or its number is far from
    /// the others, and the next packet decides whether they begin anew.
    Drop,
    /// It is not sent, and the source has ended: too much is missing, its numbers began anew, or
    /// the packet is too old to begin with. Audio goes on with the next packet, or with this one if
    /// it is passed again. Video needs a key frame.
    Lost,
    /// The bytes are not RTP.
    Malformed,
}

/// The differences between what comes and what goes.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    timestamp: u32,
    picture_id: u16,
    base_index: u8,
    frame_number: u16,
    template: u8,
}

/// The numbers in a packet besides those of RTP.
#[derive(Clone, Debug, Default)]
struct Numbers {
    picture: PayloadDescriptor,
    /// Frame number of the dependency descriptor, and where its data is.
    frame: Option<(u16, Range<usize>)>,
    /// First id and number of the templates that it brings.
    templates: Option<(u8, u8)>,
}

impl Numbers {
    fn read(view: &View<'_>, is_vp8: bool, dependency: Option<ExtensionId>) -> Self {
        let mut found = Self::default();
        if is_vp8 {
            found.picture = PayloadDescriptor::parse(view.payload()).unwrap_or_default();
        }
        let Some(id) = dependency else { return found };
        let (Some(range), Some(data)) = (view.element_range(id), view.element(id)) else {
            return found;
        };
        if let [_, high, low, ..] = *data {
            found.frame = Some((u16::from_be_bytes([high, low]), range));
        }
        // Only a structure says how many templates there are, and it can be read by itself.
        if dependency::has_structure(data)
            && let Ok(descriptor) = Descriptor::parse(data, None)
            && let Some(structure) = descriptor.structure
        {
            found.templates = Some((structure.first_id, structure.templates.len() as u8));
        }
        found
    }
}

/// The stream that is forwarded now.
#[derive(Clone, Debug)]
struct Source {
    id: u8,
    order: Order,
    offsets: Offsets,
    /// The picture that was last forwarded.
    kept: Option<u16>,
    /// The newest picture, and how many there were.
    newest: Option<u16>,
    pictures: u64,
    /// The pictures that were left out last, each of which counts once, and how many came before.
    left_out: VecDeque<(u16, u64)>,
    /// The last picture that is shown before another one, and how many such came in a row.
    shown_before: (u32, u8),
}

impl Source {
    /// Whether a picture whose time is before the newest one is shown before it, as those between
    /// two references are. After too many in a row the source's clock went back.
    fn is_shown_before(&mut self, timestamp: u32) -> bool {
        let (last, count) = self.shown_before;
        if count == 0 || last != timestamp {
            self.shown_before = (timestamp, count + 1);
        }
        self.shown_before.1 <= MAX_SHOWN_BEFORE
    }

    /// A packet of a picture is newer than all before it. Numbers come again: another picture may
    /// have that of one that was left out half a cycle ago or earlier.
    fn note_picture(&mut self, picture: &PayloadDescriptor) {
        let Some(id) = picture.picture_id else { return };
        if self.newest == Some(id) {
            return;
        }
        self.newest = Some(id);
        self.pictures += 1;
        let half = if picture.is_long { 1 << 14 } else { 1 << 6 };
        while let Some(&(_, before)) = self.left_out.front()
            && before + half <= self.pictures
        {
            self.left_out.pop_front();
        }
    }

    /// Closes ranks behind a picture, unless a part of it was forwarded.
    fn leave_out(&mut self, picture_id: u16) {
        let is_known = matches!(self.left_out.back(), Some(&(last, _)) if last == picture_id);
        if self.kept == Some(picture_id) || is_known {
            return;
        }
        if self.left_out.len() == LEFT_OUT {
            self.left_out.pop_front();
        }
        self.left_out.push_back((picture_id, self.pictures));
        self.offsets.picture_id = self.offsets.picture_id.wrapping_sub(1);
    }
}

/// The newest that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    sequence_number: u16,
    timestamp: u32,
    picture_id: u16,
    base_index: u8,
    frame_number: u16,
    /// First id and number of the newest templates.
    templates: (u8, u8),
    at: Timestamp,
}

/// Rewrites the numbers of one outgoing stream.
///
/// ```
/// use weir::Timestamp;
/// use weir_sfu::{Rewriter, Verdict};
/// use weir_wire::rtp::{PayloadType, RtpHeader};
///
/// let packet = |number| {
///     let mut bytes = vec![0; 100];
///     RtpHeader::new(1, PayloadType::new(96).unwrap(), number, 0).emit(&mut bytes);
///     bytes
/// };
/// let mut rewriter = Rewriter::new(90_000, false);
/// let now = Timestamp::ZERO;
/// // The first source, and then the key frame of another one.
/// let first = rewriter.rewrite(now, &mut packet(10), 0, true);
/// let second = rewriter.rewrite(now, &mut packet(900), 1, true);
/// assert_eq!(first, Verdict::Forward { sequence_number: 10 });
/// assert_eq!(second, Verdict::Forward { sequence_number: 11 });
/// ```
#[derive(Clone, Debug)]
pub struct Rewriter {
    clock_rate: u32,
    is_vp8: bool,
    dependency: Option<ExtensionId>,
    window: TimeDelta,
    source: Option<Source>,
    /// What was last forwarded of each source that has ended.
    ended: Vec<(u8, Order)>,
    sent: Option<Sent>,
}

impl Rewriter {
    /// A stream whose timestamps count at this rate, in Hz. `is_vp8`: the payloads have VP8's
    /// descriptors, whose numbers are rewritten too.
    pub const fn new(clock_rate: u32, is_vp8: bool) -> Self {
        Self {
            clock_rate,
            is_vp8,
            dependency: None,
            window: WINDOW,
            source: None,
            ended: Vec::new(),
            sent: None,
        }
    }

    /// The same with another time for which a missing packet may still come. The default is 2 s.
    /// Its number stays reserved so long, for at most 4,096 packets (164 kB).
    #[must_use]
    pub const fn with_window(mut self, window: TimeDelta) -> Self {
        self.window = window;
        self
    }

    /// The same for packets with dependency descriptors under this id. A stream's frame numbers and
    /// templates then go on after another source, too.
    #[must_use]
    pub const fn with_dependency(mut self, dependency: Option<ExtensionId>) -> Self {
        self.dependency = dependency;
        self
    }

    /// The source from which packets are forwarded; `None` at the start and after a pause.
    pub fn source(&self) -> Option<u8> {
        self.source.as_ref().map(|source| source.id)
    }

    /// Ends the source. The next packet that is kept begins a new one.
    pub fn pause(&mut self) {
        if let Some(source) = self.source.take() {
            self.ended.retain(|(id, _)| *id != source.id);
            self.ended.push((source.id, source.order));
        }
    }

    /// The publisher's numbers begin anew, as is known for instance by its signalling.
    pub fn restart(&mut self) {
        self.source = None;
        self.ended.clear();
    }

    /// The timestamp that a packet of the forwarded source has after it was rewritten, for sender
    /// reports and for lip sync. `None` without a source.
    pub fn timestamp(&self, timestamp: u32) -> Option<u32> {
        Some(timestamp.wrapping_add(self.source.as_ref()?.offsets.timestamp))
    }

    /// The newest timestamp that was sent, and when its first packet was.
    pub fn newest_timestamp(&self) -> Option<(u32, Timestamp)> {
        self.sent.map(|sent| (sent.timestamp, sent.at))
    }

    /// Whether a packet's number, or that of its frame, is far from the others of the forwarded
    /// source, so that the first packet of a key frame may begin it anew at once. An encoder that
    /// restarts may count its frames anew while the packets go on.
    pub fn is_jump(&self, packet: &[u8], source: u8) -> bool {
        let Some(current) = self.source.as_ref().filter(|current| current.id == source) else {
            return false;
        };
        let Ok(view) = View::parse(packet) else { return false };
        let known = current.order.known(view.sequence_number(), view.timestamp(), self.ticks());
        match known {
            None => true,
            Some(Place::Newer(_)) => self.is_earlier_frame(&view, current.offsets),
            Some(_) => false,
        }
    }

    /// Whether the frame of the newest packet counts as one before those that were sent.
    fn is_earlier_frame(&self, view: &View<'_>, offsets: Offsets) -> bool {
        let Some(sent) = self.sent else { return false };
        let numbers = Numbers::read(view, self.is_vp8, self.dependency);
        let Some((number, _)) = numbers.frame else { return false };
        let ahead = number.wrapping_add(offsets.frame_number).wrapping_sub(sent.frame_number);
        ahead.cast_signed() < 0
    }

    /// The window in RTP time.
    fn ticks(&self) -> u32 {
        let ticks = i128::from(self.window.as_micros()) * i128::from(self.clock_rate) / 1_000_000;
        ticks.clamp(0, i128::from(i32::MAX)) as u32
    }

    /// Changes the numbers of a packet of a source. If the source is another one than before, the
    /// packet must be the first of a key frame. `keep`: it is forwarded; otherwise it is left out,
    /// and those after it close ranks.
    pub fn rewrite(
        &mut self,
        now: Timestamp,
        packet: &mut Vec<u8>,
        source: u8,
        keep: bool,
    ) -> Verdict {
        let Ok(view) = View::parse(packet) else { return Verdict::Malformed };
        let start = view.header_size();
        let (number, timestamp) = (view.sequence_number(), view.timestamp());
        let numbers = Numbers::read(&view, self.is_vp8, self.dependency);
        if self.source() != Some(source) {
            if !keep {
                return Verdict::Drop;
            }
            self.pause();
            if self.is_before_end(now, source, number, timestamp) {
                return Verdict::Lost;
            }
            self.begin(now, source, number, timestamp, &numbers);
        }
        let ticks = self.ticks();
        let Some(current) = &mut self.source else { return Verdict::Drop };
        let number = match current.order.place(number, timestamp, ticks) {
            Place::Newer(number) => {
                return self.on_newer(now, packet, start, number, timestamp, &numbers, keep);
            }
            Place::Late(number) => number,
            Place::Jump => return Verdict::Drop,
            Place::Anew => {
                self.restart();
                return Verdict::Lost;
            }
        };
        let Some(hole) = current.order.take(number) else { return Verdict::Drop };
        let (sequence_number, offsets) = (hole.sequence_number, hole.offsets);
        write_numbers(packet, sequence_number, timestamp.wrapping_add(offsets.timestamp));
        // A part of a picture whose other parts were left out would take the next one's number.
        let is_left_out = numbers.picture.picture_id.is_some_and(|id| self.has_left_out(id));
        if keep && !is_left_out {
            rewrite_more(packet, start, &numbers, offsets);
            return Verdict::Forward { sequence_number };
        }
        fill(packet, start);
        Verdict::Fill { sequence_number }
    }

    /// Whether a packet is older than what was forwarded of its source before that ended. The other
    /// packets of its frame may have left under other numbers, so nothing can begin with it.
    fn is_before_end(&self, now: Timestamp, id: u8, number: u16, timestamp: u32) -> bool {
        let ended = self.ended.iter().find(|(ended, _)| *ended == id);
        let recent = ended.filter(|(_, order)| order.is_recent(now, self.window));
        recent.is_some_and(|(_, order)| {
            matches!(order.known(number, timestamp, self.ticks()), Some(Place::Late(_)))
        })
    }

    /// Continues the numbers at the first packet of another source.
    fn begin(&mut self, now: Timestamp, id: u8, number: u16, timestamp: u32, numbers: &Numbers) {
        let mut offsets = Offsets::default();
        if let Some(sent) = self.sent {
            let elapsed_us = (now - sent.at).as_micros().max(0);
            let ticks = i128::from(elapsed_us) * i128::from(self.clock_rate) / 1_000_000;
            // Another frame than the last one, so another time [RFC3550 §5.1].
            let next = sent.timestamp.wrapping_add((ticks as u32).max(1));
            offsets.timestamp = next.wrapping_sub(timestamp);
            let picture = &numbers.picture;
            let picture_id = picture.picture_id.unwrap_or(0);
            offsets.picture_id = sent.picture_id.wrapping_add(1).wrapping_sub(picture_id);
            let base_index = picture.base_index.unwrap_or(0);
            offsets.base_index = sent.base_index.wrapping_add(1).wrapping_sub(base_index);
            let frame_number = numbers.frame.as_ref().map_or(0, |(number, _)| *number);
            offsets.frame_number = sent.frame_number.wrapping_add(1).wrapping_sub(frame_number);
            // Other templates than those before, so other ids.
            let first = numbers.templates.map_or(0, |(first, _)| first);
            offsets.template = sent.templates.0.wrapping_add(sent.templates.1).wrapping_sub(first);
        }
        let order = Order::new(number, timestamp);
        self.source = Some(Source {
            id,
            order,
            offsets,
            kept: None,
            newest: None,
            pictures: 0,
            left_out: VecDeque::new(),
            shown_before: (0, 0),
        });
    }

    /// The packet is newer than all before it.
    #[expect(clippy::too_many_arguments, reason = "the fields of one packet")]
    fn on_newer(
        &mut self,
        now: Timestamp,
        packet: &mut [u8],
        start: usize,
        number: i64,
        timestamp: u32,
        numbers: &Numbers,
        keep: bool,
    ) -> Verdict {
        let ticks = self.ticks();
        let Some(source) = &mut self.source else { return Verdict::Drop };
        let mut last =
            self.sent.map_or_else(|| (number as u16).wrapping_sub(1), |sent| sent.sequence_number);
        for missing in source.order.highest + 1..number {
            last = last.wrapping_add(1);
            source.order.reserve(now, missing, last, source.offsets);
        }
        source.order.advance(now, number, timestamp, self.window, ticks);
        source.note_picture(&numbers.picture);
        if let Some(sent) = &mut self.sent {
            sent.sequence_number = last;
        }
        let may_reorder = self.clock_rate == VIDEO_CLOCK_RATE && !self.is_vp8;
        let mut out = timestamp.wrapping_add(source.offsets.timestamp);
        let back = self.sent.map_or(0, |sent| sent.timestamp.wrapping_sub(out));
        if back == 0 || back.cast_signed() < 0 {
            source.shown_before.1 = 0;
        } else if !(may_reorder && back <= ticks && source.is_shown_before(timestamp)) {
            // A source whose clock goes back goes on where it was.
            out = out.wrapping_add(back);
            source.offsets.timestamp = out.wrapping_sub(timestamp);
            source.shown_before.1 = 0;
        }
        if !keep {
            if let Some(picture_id) = numbers.picture.picture_id {
                source.leave_out(picture_id);
            }
            // What is missing before this packet may still come, with times and pictures up to it.
            // Another source must begin after them.
            if self.sent.is_some() {
                let offsets = source.offsets;
                self.note_sent(now, last, out, numbers, offsets);
            }
            return Verdict::Drop;
        }
        let sequence_number = last.wrapping_add(1);
        let offsets = source.offsets;
        source.kept = numbers.picture.picture_id;
        write_numbers(packet, sequence_number, out);
        rewrite_more(packet, start, numbers, offsets);
        self.note_sent(now, sequence_number, out, numbers, offsets);
        Verdict::Forward { sequence_number }
    }

    fn note_sent(
        &mut self,
        now: Timestamp,
        sequence_number: u16,
        timestamp: u32,
        numbers: &Numbers,
        offsets: Offsets,
    ) {
        let before = self.sent;
        let mut sent = Sent {
            sequence_number,
            timestamp,
            picture_id: before.map_or(0, |sent| sent.picture_id),
            base_index: before.map_or(0, |sent| sent.base_index),
            frame_number: before.map_or(0, |sent| sent.frame_number),
            templates: before.map_or((0, 0), |sent| sent.templates),
            at: now,
        };
        if let Some((number, _)) = &numbers.frame {
            sent.frame_number = number.wrapping_add(offsets.frame_number);
        }
        if let Some((first, count)) = numbers.templates {
            sent.templates = (first.wrapping_add(offsets.template), count);
        }
        let picture = &numbers.picture;
        if let Some(id) = picture.picture_id {
            sent.picture_id = id.wrapping_add(offsets.picture_id) & PICTURE_ID_MASK;
        }
        if let Some(index) = picture.base_index {
            sent.base_index = index.wrapping_add(offsets.base_index);
        }
        // Packets of one frame may leave at different times; the frame's time is that of its first.
        // A picture that is shown before the newest does not move the time back.
        if let Some(before) = before
            && timestamp.wrapping_sub(before.timestamp).cast_signed() <= 0
        {
            (sent.timestamp, sent.at) = (before.timestamp, before.at);
        }
        self.sent = Some(sent);
    }

    fn has_left_out(&self, picture_id: u16) -> bool {
        let Some(source) = &self.source else { return false };
        for &(left_out, _) in &source.left_out {
            if left_out == picture_id {
                return true;
            }
        }
        false
    }

    /// The source's number of a packet that is missing here under this number: ask the publisher
    /// for it. `None` if it was sent, or can no longer come.
    pub fn missing(&self, sequence_number: u16) -> Option<u16> {
        self.source.as_ref()?.order.missing(sequence_number)
    }
}

fn write_numbers(packet: &mut [u8], sequence_number: u16, timestamp: u32) {
    packet[2..4].copy_from_slice(&sequence_number.to_be_bytes());
    packet[4..8].copy_from_slice(&timestamp.to_be_bytes());
}

fn rewrite_more(packet: &mut [u8], start: usize, numbers: &Numbers, offsets: Offsets) {
    if let Some((_, range)) = &numbers.frame
        && let Some(data) = packet.get_mut(range.clone())
    {
        dependency::shift(data, offsets.frame_number, offsets.template);
    }
    let picture = &numbers.picture;
    let picture_id = picture.picture_id.unwrap_or(0).wrapping_add(offsets.picture_id);
    let base_index = picture.base_index.unwrap_or(0).wrapping_add(offsets.base_index);
    picture.rewrite(&mut packet[start..], picture_id, base_index);
}

/// Replaces the payload by one byte of padding [RFC3550 §5.1].
fn fill(packet: &mut Vec<u8>, start: usize) {
    packet.truncate(start);
    packet.push(1);
    packet[0] |= PADDING_FLAG;
}
