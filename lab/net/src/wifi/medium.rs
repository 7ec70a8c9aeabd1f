//! The channel: which nodes sense which frame, which frames overlap at a receiver, and since when
//! the channel is idle.
//!
//! A node senses a frame that reaches it with at least the carrier-sense threshold. It may send
//! during frames that it does not sense. Propagation takes no time.

use weir::units::{TimeDelta, Timestamp};

use super::link::to_mw;

/// Smallest power at which a node senses a frame and defers to it [IEEE80211 §20.3.21.5.2].
const CARRIER_SENSE_DBM: f64 = -82.0;
/// How much stronger than another frame a frame must be for a node to receive it instead.
const CAPTURE_MARGIN_DB: f64 = 10.0;
/// How long a preamble must be free of others to be detected: the time that a receiver needs to
/// distinguish a preamble from noise [IEEE80211 §18.4.4, `aCCATime`].
const PREAMBLE_DETECTION: TimeDelta = TimeDelta::from_micros(4);

/// A frame on the air. A node sends one at a time, so the sender identifies the frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) from: usize,
    /// The receiver; `None` if it is outside this cell.
    pub(super) to: Option<usize>,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) kind: Kind,
    overlaps: Vec<Overlap>,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Answer { is_block: bool },
}

/// Another frame on the air at the same time, as received by this frame's receiver.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    from: Timestamp,
    until: Timestamp,
    power_mw: f64,
}

impl Frame {
    /// Whether no other frame overlaps it.
    pub(super) fn is_alone(&self) -> bool {
        self.overlaps.is_empty()
    }

    /// Sum of the powers of all frames that overlap this part of the frame at any time, in
    /// milliwatts.
    pub(super) fn interference_mw(&self, from: Timestamp, until: Timestamp) -> f64 {
        let overlaps = self.overlaps.iter();
        let hits = overlaps.filter(|overlap| overlap.from < until && overlap.until > from);
        hits.map(|overlap| overlap.power_mw).sum()
    }
}

/// State of the channel at one node.
#[derive(Clone, Debug)]
struct Radio {
    /// Number of frames that it senses, its own included.
    sensed: u32,
    receiving: Option<Reception>,
    /// The time from which AIFS is counted, once nothing is sensed.
    idle_from: Timestamp,
}

/// A frame that a node has detected and follows.
#[derive(Clone, Copy, Debug)]
struct Reception {
    from: usize,
    since: Timestamp,
    power_dbm: f64,
    garbled: bool,
}

/// State of the channel at all nodes.
#[derive(Debug)]
pub(super) struct Medium {
    /// Power with which each node is received by each other node; the outer index is the sender.
    power_dbm: Vec<Vec<f64>>,
    /// The same powers in milliwatts.
    power_mw: Vec<Vec<f64>>,
    radios: Vec<Radio>,
    on_air: Vec<Frame>,
    /// Difference between EIFS and DIFS.
    eifs_excess: TimeDelta,
    /// Emptied lists of overlaps, kept for reuse.
    spare: Vec<Vec<Overlap>>,
    /// Whether every node senses every other one.
    is_shared: bool,
    /// When the only frame on the air began, if all nodes sense it and none has sent since. Their
    /// radios do not know of it yet: most frames end alone.
    lone: Option<Timestamp>,
}

impl Medium {
    /// An idle channel. `power_dbm[from][to]` is the power with which `to` receives `from`.
    pub(super) fn new(mut power_dbm: Vec<Vec<f64>>, eifs_excess: TimeDelta) -> Self {
        let nodes = power_dbm.len();
        for (node, from) in power_dbm.iter_mut().enumerate() {
            // A node that sends receives nothing else.
            from[node] = f64::INFINITY;
        }
        let mut power_mw = power_dbm.clone();
        for power in power_mw.iter_mut().flatten() {
            *power = to_mw(*power);
        }
        let mut is_shared = true;
        for power in power_dbm.iter().flatten() {
            is_shared &= *power >= CARRIER_SENSE_DBM;
        }
        let radio = Radio { sensed: 0, receiving: None, idle_from: Timestamp::ZERO };
        Self {
            power_mw,
            power_dbm,
            radios: vec![radio; nodes],
            on_air: Vec::new(),
            eifs_excess,
            spare: Vec::new(),
            is_shared,
            lone: None,
        }
    }

    /// Power of a frame at its receiver; infinite for an access point outside the cell.
    pub(super) fn power_of(&self, frame: &Frame) -> f64 {
        frame.to.map_or(f64::INFINITY, |to| self.power_dbm[frame.from][to])
    }

    /// Whether a frame's receiver can sense it at all.
    pub(super) fn is_sensed(&self, frame: &Frame) -> bool {
        frame.to.is_none_or(|to| self.senses(to, frame.from))
    }

    /// Power with which one node is received by another.
    pub(super) fn power_dbm(&self, from: usize, to: usize) -> f64 {
        self.power_dbm[from][to]
    }

    /// Whether a node senses the frames of another one.
    pub(super) fn senses(&self, node: usize, from: usize) -> bool {
        self.power_dbm[from][node] >= CARRIER_SENSE_DBM
    }

    pub(super) fn is_sending(&self, node: usize) -> bool {
        self.on_air.iter().any(|frame| frame.from == node)
    }

    pub(super) fn is_idle(&self, node: usize) -> bool {
        self.lone.is_none() && self.radios[node].sensed == 0
    }

    /// The time from which a node counts AIFS. Meaningful while the channel is idle there.
    pub(super) fn idle_from(&self, node: usize) -> Timestamp {
        self.radios[node].idle_from
    }

    /// Delays a node's AIFS count to this time at the earliest.
    pub(super) fn hold(&mut self, node: usize, until: Timestamp) {
        let radio = &mut self.radios[node];
        radio.idle_from = radio.idle_from.max(until);
    }

    /// When the next frame ends, and which node sends it.
    pub(super) fn next_end(&self) -> Option<(Timestamp, usize)> {
        self.on_air.iter().map(|frame| (frame.end, frame.from)).min()
    }

    /// Starts a frame. Fills `newly_busy` with the nodes, except the sender, whose channel was idle
    /// before.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        until: Timestamp,
        (from, to): (usize, Option<usize>),
        kind: Kind,
        newly_busy: &mut Vec<usize>,
    ) {
        let is_lone = self.is_shared && self.on_air.is_empty();
        if let Some(since) = self.lone.take() {
            self.notice(self.on_air[0].from, since, None);
        }
        let mut overlaps = self.spare.pop().unwrap_or_default();
        for other in &mut self.on_air {
            let end = until.min(other.end);
            if let Some(receiver) = other.to {
                let power_mw = self.power_mw[from][receiver];
                other.overlaps.push(Overlap { from: now, until: end, power_mw });
            }
            if let Some(receiver) = to {
                let power_mw = self.power_mw[other.from][receiver];
                overlaps.push(Overlap { from: now, until: end, power_mw });
            }
        }
        self.on_air.push(Frame { from, to, start: now, end: until, kind, overlaps });
        newly_busy.clear();
        if is_lone {
            self.lone = Some(now);
            for node in 0..self.radios.len() {
                if node != from {
                    newly_busy.push(node);
                }
            }
            return;
        }
        self.notice(from, now, Some(newly_busy));
    }

    /// The radios that sense a frame notice that it has begun.
    fn notice(&mut self, from: usize, since: Timestamp, mut newly_busy: Option<&mut Vec<usize>>) {
        let powers = &self.power_dbm[from];
        for (node, (radio, &power_dbm)) in self.radios.iter_mut().zip(powers).enumerate() {
            if power_dbm < CARRIER_SENSE_DBM {
                continue;
            }
            radio.sensed += 1;
            if node == from {
                radio.receiving = None;
                continue;
            }
            if radio.sensed == 1
                && let Some(newly_busy) = &mut newly_busy
            {
                newly_busy.push(node);
            }
            radio.notice(since, from, power_dbm);
        }
    }

    /// Removes this sender's frame, which has ended. The caller must then call [`Medium::end`].
    pub(super) fn take(&mut self, from: usize) -> Frame {
        let index = self.on_air.iter().position(|frame| frame.from == from);
        self.on_air.swap_remove(index.expect("the sender has a frame on the air"))
    }

    /// Ends a frame. `decoded` says whether its receiver decoded it. Fills `newly_idle` with the
    /// nodes, the sender included, whose channel is idle now.
    pub(super) fn end(&mut self, frame: Frame, decoded: bool, newly_idle: &mut Vec<usize>) {
        newly_idle.clear();
        let Frame { from, to, end: now, mut overlaps, .. } = frame;
        if self.lone.take().is_some() {
            for (node, radio) in self.radios.iter_mut().enumerate() {
                let is_garbled = to == Some(node) && !decoded;
                radio.idle_from = match node == from {
                    true => radio.idle_from.max(now),
                    // EIFS, as below.
                    false if is_garbled => now + self.eifs_excess,
                    false => now,
                };
                newly_idle.push(node);
            }
            self.spare.push(overlaps);
            return;
        }
        let powers = &self.power_dbm[from];
        for (node, (radio, &power_dbm)) in self.radios.iter_mut().zip(powers).enumerate() {
            if power_dbm < CARRIER_SENSE_DBM {
                continue;
            }
            radio.sensed -= 1;
            radio.idle_from = radio.idle_from.max(now);
            if let Some(reception) = radio.receiving.take_if(|it| it.from == from) {
                let garbled = if to == Some(node) { !decoded } else { reception.garbled };
                // EIFS follows a frame that could not be decoded. A frame received correctly ends
                // the EIFS [IEEE80211 §9.3.2.3.7].
                radio.idle_from = if garbled { now + self.eifs_excess } else { now };
            }
            if radio.sensed == 0 {
                newly_idle.push(node);
            }
        }
        overlaps.clear();
        self.spare.push(overlaps);
    }
}

impl Radio {
    /// A frame of another node begins. A node that is sending cannot follow it.
    fn notice(&mut self, now: Timestamp, from: usize, power_dbm: f64) {
        let fresh = Reception { from, since: now, power_dbm, garbled: false };
        if self.sensed == 1 {
            self.receiving = Some(fresh);
            return;
        }
        let Some(current) = &mut self.receiving else { return };
        if power_dbm - current.power_dbm >= CAPTURE_MARGIN_DB {
            *current = fresh;
        } else if current.power_dbm - power_dbm < CAPTURE_MARGIN_DB {
            current.garbled = true;
            if now - current.since < PREAMBLE_DETECTION {
                // Neither preamble can be detected. The node senses energy but no frame, so no EIFS
                // follows.
                self.receiving = None;
            }
        }
    }
}
