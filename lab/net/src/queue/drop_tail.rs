//! First in, first out. A new packet that does not fit is dropped.

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::fifo::Fifo;
use super::{Discipline, Log, Room};
use crate::packet::Waiting;

#[derive(Clone, Debug)]
pub(crate) struct DropTail<T>(Fifo<T>);

impl<T> DropTail<T> {
    pub(crate) fn new() -> Self {
        Self(Fifo::new())
    }
}

impl<T: Debug> Discipline<T> for DropTail<T> {
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        if self.0.has_room(now, room, packet.size()) {
            self.0.push(packet);
        } else {
            log.drop_full(now, packet);
        }
    }

    fn dequeue(&mut self, _now: Timestamp, _log: &mut Log<T>) -> Option<Waiting<T>> {
        self.0.pop()
    }

    fn bytes(&self) -> DataSize {
        self.0.bytes()
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.0.head_delay(now)
    }
}
