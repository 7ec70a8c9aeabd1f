//! How a browser plays the packets of a speech stream: NetEq [LIBWEBRTC §DecisionLogic].
//!
//! ```text
//! packet -> Arrivals -> Target -> decision every 10 ms -> play | conceal | faster | slower
//!    +----> buffer -------------------^
//! ```
//!
//! No sound is carried. A moment of the speech stands for it. What departs from libwebrtc is
//! NETEQ-D1 to NETEQ-D6 (docs/reference/quality.md).

mod arrivals;
pub(crate) mod recording;
pub(crate) mod replay;
mod target;

use std::collections::BTreeMap;

use weir::units::{TimeDelta, Timestamp};

use crate::config::Speech;
use crate::trace::Heard;
use arrivals::Arrivals;
use target::Target;

/// What is played at once.
const BLOCK: TimeDelta = TimeDelta::from_millis(10);
/// NETEQ-D1: playing faster takes out, and playing slower puts in, one pitch period, for which this
/// stands. libwebrtc searches for one of 2.5 to 15 ms, and may find none.
const PITCH_PERIOD: TimeDelta = TimeDelta::from_millis(10);
/// Decoded speech that playing faster needs.
const FASTER_NEEDS: TimeDelta = TimeDelta::from_millis(30);
/// Least time between two changes of the speed.
const STRETCH_INTERVAL: TimeDelta = TimeDelta::from_millis(60);
/// What the delay may exceed target and largest arrival delay by.
const GRANULARITY: TimeDelta = TimeDelta::from_millis(20);
/// Beyond so many times that limit, the speed changes without a pause.
const FAST_FACTOR: i64 = 4;
/// A packet is not waited for while more than the target and half a window lies in the buffer.
const WINDOW_HALF: TimeDelta = TimeDelta::from_millis(50);
/// NETEQ-D2: after so much concealment it is so quiet that half of the target may be waited for.
/// libwebrtc computes how quiet it is from the speech.
const QUIET: TimeDelta = TimeDelta::from_millis(60);

/// The receiver of a speech stream.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    /// What is in a packet.
    speech: Speech,
    /// Where the speech of the newest packet begins.
    newest: Option<Timestamp>,
    /// The next block, once a packet has come.
    next_block: Option<Timestamp>,
    arrivals: Arrivals,
    target: Target,
    /// Length of what came and is not decoded, by where its speech begins.
    packets: BTreeMap<Timestamp, TimeDelta>,
    /// The moment of the speech that is played next, and up to which it is decoded.
    position: Timestamp,
    decoded: Timestamp,
    /// Made up since speech was last played.
    concealed: TimeDelta,
    next_stretch: Timestamp,
    noted: Heard,
    delays: TimeDelta,
    blocks: i64,
}

/// What is done for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Play,
    Conceal,
    Faster,
    Slower,
    /// Goes on with a later packet, since the one that is missing is lost.
    Skip,
}

impl Player {
    /// A receiver of such packets.
    pub(crate) fn new(speech: Speech) -> Self {
        Self {
            speech,
            newest: None,
            next_block: None,
            arrivals: Arrivals::default(),
            target: Target::default(),
            packets: BTreeMap::new(),
            position: Timestamp::ZERO,
            decoded: Timestamp::ZERO,
            concealed: TimeDelta::ZERO,
            next_stretch: Timestamp::ZERO,
            noted: Heard::default(),
            delays: TimeDelta::ZERO,
            blocks: 0,
        }
    }

    /// A packet came with the speech up to `end`.
    pub(crate) fn on_packet(&mut self, now: Timestamp, end: Timestamp) {
        let start = end - self.speech.length;
        // NETEQ-D5: playing begins with the first packet, and a pause is made up as a loss is.
        if self.next_block.is_none() {
            self.next_block = Some(now);
            (self.position, self.decoded) = (start, start);
        }
        // [LIBWEBRTC §AudioDecoderOpus]: a copy is a packet of its own, which came late. One that
        // is there already is no arrival [LIBWEBRTC §PacketArrivalHistory].
        let Speech { length, copied, red, .. } = self.speech;
        let oldest = if red { start - length } else { start };
        // NETEQ-D6: also before the first report of a loss.
        let coarse = oldest - copied;
        if self.is_missing(oldest - length) && recording::has_copy(coarse, copied) {
            self.insert(now, coarse, copied);
        }
        if red && self.is_missing(start - length) {
            self.insert(now, start - length, length);
        }
        self.newest = self.newest.max(Some(start));
        self.insert(now, start, length);
    }

    /// Whether the packet with the speech from `start` on was sent and did not come.
    fn is_missing(&self, start: Timestamp) -> bool {
        let Speech { length, dtx, .. } = self.speech;
        let is_sent = !(dtx && recording::is_silent(start, length));
        is_sent && self.newest.is_some_and(|newest| newest < start)
    }

    /// Speech of this length came that begins at `start`.
    fn insert(&mut self, now: Timestamp, start: Timestamp, length: TimeDelta) {
        if let Some(delay) = self.arrivals.on_packet(now, start) {
            self.target.on_arrival(now, delay);
        }
        // NETEQ-D3: a packet that is too late is thrown away, also one that was reordered.
        if start >= self.decoded {
            self.packets.insert(start, length);
        }
    }

    /// When the next block is played.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.next_block
    }

    /// Plays a block.
    pub(crate) fn on_deadline(&mut self, now: Timestamp) {
        match self.decide(now) {
            Decision::Play | Decision::Conceal if self.ready() >= BLOCK => self.play(now),
            Decision::Play => {
                self.decode();
                self.play(now);
            }
            Decision::Skip => {
                if let Some((start, _)) = self.packets.first_key_value() {
                    (self.position, self.decoded) = (*start, *start);
                }
                self.decode();
                self.play(now);
            }
            Decision::Faster => self.play_faster(now),
            Decision::Slower => {
                self.decode();
                self.noted.stretched += PITCH_PERIOD;
                self.next_stretch = now + STRETCH_INTERVAL;
                // The block repeats a period: the position stays.
                self.position -= PITCH_PERIOD;
                self.play(now);
            }
            Decision::Conceal => {
                if self.concealed == TimeDelta::ZERO {
                    self.noted.concealments += 1;
                }
                self.concealed += BLOCK;
                self.noted.concealed += BLOCK;
            }
        }
        self.noted.played += BLOCK;
        self.next_block = Some(now + BLOCK);
    }

    /// Decoded and not played.
    fn ready(&self) -> TimeDelta {
        self.decoded - self.position
    }

    fn decode(&mut self) {
        if let Some(length) = self.packets.remove(&self.decoded) {
            self.decoded += length;
        }
    }

    fn play(&mut self, now: Timestamp) {
        self.delays += now - self.position;
        self.blocks += 1;
        self.position += BLOCK;
        self.concealed = TimeDelta::ZERO;
    }

    fn play_faster(&mut self, now: Timestamp) {
        while self.ready() < FASTER_NEEDS && self.packets.contains_key(&self.decoded) {
            self.decode();
        }
        if self.ready() >= FASTER_NEEDS {
            self.position += PITCH_PERIOD;
            self.noted.shortened += PITCH_PERIOD;
            self.next_stretch = now + STRETCH_INTERVAL;
        }
        self.play(now);
    }

    fn decide(&self, now: Timestamp) -> Decision {
        let Some((&next, _)) = self.packets.first_key_value() else { return Decision::Conceal };
        if self.concealed >= QUIET && self.waiting(now) < self.target.delay() / 2 {
            return Decision::Conceal;
        }
        if next > self.decoded {
            return self.decide_without(now, next);
        }
        if self.concealed > TimeDelta::ZERO {
            return Decision::Play;
        }
        let delay = self.arrivals.delay(now, self.position);
        let low = self.target.delay();
        let high = low + self.arrivals.largest() + GRANULARITY;
        let may_stretch = now >= self.next_stretch;
        if delay >= high * FAST_FACTOR || (may_stretch && delay >= high) {
            Decision::Faster
        } else if may_stretch && delay < low {
            Decision::Slower
        } else {
            Decision::Play
        }
    }

    /// The packet that should be next is missing, and there is a later one.
    fn decide_without(&self, now: Timestamp, next: Timestamp) -> Decision {
        let is_full = self.waiting(now) > self.target.delay() + WINDOW_HALF;
        if next - self.decoded > self.concealed && !is_full {
            Decision::Conceal
        } else if self.ready() >= BLOCK {
            Decision::Play
        } else {
            Decision::Skip
        }
    }

    /// Speech in the buffer, and how long the newest of it has waited.
    fn waiting(&self, now: Timestamp) -> TimeDelta {
        match (self.packets.first_key_value(), self.packets.last_key_value()) {
            (Some((first, _)), Some((last, _))) => (*last - *first) + self.arrivals.since_last(now),
            _ => TimeDelta::ZERO,
        }
    }

    /// Returns what was heard since the last call.
    pub(crate) fn take_heard(&mut self) -> Heard {
        let (delays, blocks) = (std::mem::take(&mut self.delays), std::mem::take(&mut self.blocks));
        let mut heard = std::mem::take(&mut self.noted);
        heard.delay = (blocks > 0).then(|| delays / blocks);
        heard.target = self.next_block.map(|_| self.target.delay());
        heard
    }
}

#[cfg(test)]
mod tests;
