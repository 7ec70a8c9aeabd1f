//! The channel: who senses which frame, what overlaps it at its receiver, and since when it is idle.
//!
//! A node senses a frame that reaches it with the power of the carrier-sense threshold; whom it does
//! not sense, it talks over. Propagation takes no time.

use weir::units::{TimeDelta, Timestamp};

use super::link::to_mw;

/// Power from which a node senses a frame, and defers to it [IEEE80211 §20.3.21.5.2].
const CARRIER_SENSE_DBM: f64 = -82.0;
/// How much stronger than another one a frame must be for a node to follow it and not the other.
const CAPTURE_MARGIN_DB: f64 = 10.0;
/// How long a preamble must be alone for its frame to be noticed as one: the time in which a receiver
/// tells a preamble from noise [IEEE80211 §18.4.4, `aCCATime`].
const PREAMBLE_DETECTION: TimeDelta = TimeDelta::from_micros(4);

/// A frame on the air. A node sends one at a time, so its sender tells it from others.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) from: usize,
    /// `None` if it is for somebody who is not of this cell.
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

/// Another frame at the same time, as this one's receiver has it.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    from: Timestamp,
    until: Timestamp,
    power_mw: f64,
}

impl Frame {
    /// Power of what overlaps this part of the frame at any time, all together, in milliwatts.
    pub(super) fn interference_mw(&self, from: Timestamp, until: Timestamp) -> f64 {
        let hits = |overlap: &&Overlap| overlap.from < until && overlap.until > from;
        self.overlaps.iter().filter(hits).map(|overlap| overlap.power_mw).sum()
    }
}

/// What a node has of the channel.
#[derive(Clone, Debug)]
struct Radio {
    /// Frames that it senses, its own included.
    sensed: u32,
    receiving: Option<Reception>,
    /// From when AIFS is counted, once nothing is sensed.
    idle_from: Timestamp,
}

/// A frame that a node has noticed as one.
#[derive(Clone, Copy, Debug)]
struct Reception {
    from: usize,
    since: Timestamp,
    power_dbm: f64,
    garbled: bool,
}

/// The channel as all nodes have it.
#[derive(Debug)]
pub(super) struct Medium {
    /// Power of each node at each node, by sender.
    power_dbm: Vec<Vec<f64>>,
    /// The same in milliwatts.
    power_mw: Vec<Vec<f64>>,
    radios: Vec<Radio>,
    on_air: Vec<Frame>,
    /// By how much EIFS is longer than DIFS.
    eifs_excess: TimeDelta,
    /// Emptied lists of overlaps, to be used again.
    spare: Vec<Vec<Overlap>>,
}

impl Medium {
    /// Of nodes that receive each other at these powers, by sender.
    pub(super) fn new(mut power_dbm: Vec<Vec<f64>>, eifs_excess: TimeDelta) -> Self {
        let nodes = power_dbm.len();
        for (node, from) in power_dbm.iter_mut().enumerate() {
            // A node that sends receives nothing else.
            from[node] = f64::INFINITY;
        }
        let in_mw = |from: &Vec<f64>| from.iter().map(|&dbm| to_mw(dbm)).collect();
        let radio = Radio { sensed: 0, receiving: None, idle_from: Timestamp::ZERO };
        Self {
            power_mw: power_dbm.iter().map(in_mw).collect(),
            power_dbm,
            radios: vec![radio; nodes],
            on_air: Vec::new(),
            eifs_excess,
            spare: Vec::new(),
        }
    }

    /// Power of a frame at its receiver; an access point elsewhere is near.
    pub(super) fn power_of(&self, frame: &Frame) -> f64 {
        frame.to.map_or(f64::INFINITY, |to| self.power_dbm[frame.from][to])
    }

    /// Whether a frame's receiver can sense it at all.
    pub(super) fn is_sensed(&self, frame: &Frame) -> bool {
        frame.to.is_none_or(|to| self.senses(to, frame.from))
    }

    /// Power of a node at another one.
    pub(super) fn power_dbm(&self, from: usize, to: usize) -> f64 {
        self.power_dbm[from][to]
    }

    /// Whether a node notices when another one sends.
    pub(super) fn senses(&self, node: usize, from: usize) -> bool {
        self.power_dbm[from][node] >= CARRIER_SENSE_DBM
    }

    pub(super) fn is_sending(&self, node: usize) -> bool {
        self.on_air.iter().any(|frame| frame.from == node)
    }

    pub(super) fn is_idle(&self, node: usize) -> bool {
        self.radios[node].sensed == 0
    }

    /// From when AIFS is counted at a node for which the channel is idle.
    pub(super) fn idle_from(&self, node: usize) -> Timestamp {
        self.radios[node].idle_from
    }

    /// AIFS is not counted before this time at a node.
    pub(super) fn hold(&mut self, node: usize, until: Timestamp) {
        let radio = &mut self.radios[node];
        radio.idle_from = radio.idle_from.max(until);
    }

    /// When the next frame ends, and whose it is.
    pub(super) fn next_end(&self) -> Option<(Timestamp, usize)> {
        self.on_air.iter().map(|frame| (frame.end, frame.from)).min()
    }

    /// A frame begins. Names the nodes for which the channel was idle so far, other than its sender.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        until: Timestamp,
        (from, to): (usize, Option<usize>),
        kind: Kind,
        newly_busy: &mut Vec<usize>,
    ) {
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
            if radio.sensed == 1 {
                newly_busy.push(node);
            }
            radio.notice(now, from, power_dbm);
        }
    }

    /// Takes the frame of this sender off the list, its end having come. [`Medium::end`] has to follow.
    pub(super) fn take(&mut self, from: usize) -> Frame {
        let index = self.on_air.iter().position(|frame| frame.from == from);
        self.on_air.swap_remove(index.expect("the sender has a frame on the air"))
    }

    /// A frame has ended, decoded by its receiver or not. Names the nodes for which the channel is idle
    /// now, its sender included.
    pub(super) fn end(&mut self, frame: Frame, decoded: bool, newly_idle: &mut Vec<usize>) {
        newly_idle.clear();
        let Frame { from, to, end: now, mut overlaps, .. } = frame;
        let powers = &self.power_dbm[from];
        for (node, (radio, &power_dbm)) in self.radios.iter_mut().zip(powers).enumerate() {
            if power_dbm < CARRIER_SENSE_DBM {
                continue;
            }
            radio.sensed -= 1;
            radio.idle_from = radio.idle_from.max(now);
            if let Some(reception) = radio.receiving.take_if(|it| it.from == from) {
                let garbled = if to == Some(node) { !decoded } else { reception.garbled };
                // EIFS follows a frame that could not be decoded, and a good one puts an end to it
                // [IEEE80211 §9.3.2.3.7].
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
    /// A frame of another node begins. One who sends has none that it could follow.
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
                // Neither preamble can be made out: energy, but no frame that EIFS could follow.
                self.receiving = None;
            }
        }
    }
}
