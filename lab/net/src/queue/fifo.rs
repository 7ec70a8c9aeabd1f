//! First-in, first-out list of packets that counts its bytes.

use std::collections::VecDeque;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::Room;
use crate::packet::Waiting;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: DataSize,
}

impl<T> Fifo<T> {
    pub(crate) fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: DataSize::ZERO }
    }

    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += packet.size();
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.packets.pop_front()?;
        if self.packets.is_empty() {
            // Sets the ring back to its start, so that a queue that is mostly short stays in the
            // processor's cache, however long it once was.
            self.packets.clear();
        }
        self.bytes = self.bytes.saturating_sub(packet.size());
        Some(packet)
    }

    pub(crate) fn bytes(&self) -> DataSize {
        self.bytes
    }

    /// Whether one more packet of this size fits.
    pub(crate) fn has_room(&self, now: Timestamp, room: Room<'_>, size: DataSize) -> bool {
        room.holds(now, self.bytes + size, self.packets.len() + 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn head_size(&self) -> Option<DataSize> {
        self.packets.front().map(Waiting::size)
    }

    /// Age of the packet at the head; zero if the queue is empty.
    pub(crate) fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.packets.front().map_or(TimeDelta::ZERO, |head| now - head.since)
    }
}
