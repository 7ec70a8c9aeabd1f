//! What came of a run.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use weir::{DataSize, TimeDelta, Timestamp};

use super::Frame;
use super::network::Passage;

/// The figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes that passed the bottleneck over those that fit.
    pub utilization: f64,
    /// Bytes of whole frames over those that fit.
    pub goodput: f64,
    /// Waits of packets in the queue, sorted.
    pub waits: Vec<TimeDelta>,
    /// Times from capture to the last byte of frames, sorted.
    pub frame_delays: Vec<TimeDelta>,
    /// Whole frames over frames made.
    pub whole: f64,
    /// Packets that the network lost over packets sent.
    pub lost: f64,
}

impl Outcome {
    /// This part of the packets waited at most so long.
    pub fn wait(&self, part: f64) -> TimeDelta {
        percentile(&self.waits, part)
    }

    /// This part of the whole frames took at most so long.
    pub fn frame_delay(&self, part: f64) -> TimeDelta {
        percentile(&self.frame_delays, part)
    }
}

/// A row: utilization, goodput, waits and frame delays (p50 / p95, ms), whole frames, loss.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3} | {:.3} | {} / {} | {} / {} | {:.0} % | {:.2} %",
            self.utilization,
            self.goodput,
            self.wait(0.5).as_millis(),
            self.wait(0.95).as_millis(),
            self.frame_delay(0.5).as_millis(),
            self.frame_delay(0.95).as_millis(),
            self.whole * 100.0,
            self.lost * 100.0,
        )
    }
}

fn percentile(sorted: &[TimeDelta], part: f64) -> TimeDelta {
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(TimeDelta::ZERO)
}

pub(super) struct Tally {
    from: Timestamp,
    to: Timestamp,
    passed: DataSize,
    packets: u64,
    lost: u64,
    frames: u64,
    whole_bytes: DataSize,
    waits: Vec<TimeDelta>,
    frame_delays: Vec<TimeDelta>,
}

impl Tally {
    pub(super) fn new(from: Timestamp, to: Timestamp) -> Self {
        Self {
            from,
            to,
            passed: DataSize::ZERO,
            packets: 0,
            lost: 0,
            frames: 0,
            whole_bytes: DataSize::ZERO,
            waits: Vec::new(),
            frame_delays: Vec::new(),
        }
    }

    pub(super) fn on_packet(&mut self, now: Timestamp, size: DataSize, passage: Option<Passage>) {
        if now < self.from {
            return;
        }
        self.packets += 1;
        let Some(passage) = passage else {
            self.lost += 1;
            return;
        };
        self.waits.push(passage.wait);
        if passage.leaves <= self.to {
            self.passed += size;
        }
    }

    pub(super) fn on_frame(&mut self, frame: &Frame) {
        self.frames += u64::from(frame.captured >= self.from);
    }

    pub(super) fn on_whole(&mut self, now: Timestamp, frame: &Frame) {
        if frame.captured >= self.from {
            self.frame_delays.push(now - frame.captured);
            self.whole_bytes += frame.size;
        }
    }

    pub(super) fn outcome(mut self, fits: DataSize) -> Outcome {
        self.waits.sort_unstable();
        self.frame_delays.sort_unstable();
        let fits = fits.as_bytes().max(1) as f64;
        Outcome {
            utilization: self.passed.as_bytes() as f64 / fits,
            goodput: self.whole_bytes.as_bytes() as f64 / fits,
            whole: self.frame_delays.len() as f64 / self.frames.max(1) as f64,
            lost: self.lost as f64 / self.packets.max(1) as f64,
            waits: self.waits,
            frame_delays: self.frame_delays,
        }
    }
}

/// Which frames of a group's stream are whole, by the bytes that arrived in order.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: VecDeque<(u64, Group)>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    written: u64,
    read: u64,
    /// Frames by the byte at which they end.
    ends: VecDeque<(u64, Frame)>,
}

impl Groups {
    /// The frame is the next one of its group.
    pub fn on_sent(&mut self, frame: Frame) {
        if self.groups.back().is_none_or(|(id, _)| *id != frame.group) {
            self.groups.push_back((frame.group, Group::default()));
        }
        let Some((_, group)) = self.groups.back_mut() else { return };
        group.written += frame.size.as_bytes();
        group.ends.push_back((group.written, frame));
    }

    /// So many more bytes of the group arrived.
    pub fn on_read(&mut self, group: u64, bytes: u64, whole: &mut Vec<Frame>) {
        let found = self.groups.iter_mut().find(|(id, _)| *id == group);
        let Some((_, group)) = found else { return };
        group.read += bytes;
        while group.ends.front().is_some_and(|&(end, _)| end <= group.read) {
            whole.extend(group.ends.pop_front().map(|(_, frame)| frame));
        }
    }

    /// The group was reset.
    pub fn forget(&mut self, group: u64) {
        self.groups.retain(|(id, _)| *id != group);
    }
}
