//! What a link has carried, to the bit: of a packet in transmission, the part that is out.
//!
//! Counters of delivered packets cannot say it. A packet that is being sent at the end of a second
//! would count whole in one of two seconds, and what is on the way would count late.

use weir::units::{DataSize, Timestamp};

use crate::capacity::{Capacity, TraceCursor};

/// Bits carried of each account, which is [`Header::account`](crate::packet::Header::account).
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    accounts: Vec<Account>,
    /// The transmission that began last.
    current: Option<Transmission>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Bits of the packets whose transmission has begun.
    begun: u64,
    /// Bits that were carried when they were asked for last.
    asked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    account: usize,
    size: DataSize,
    start: Timestamp,
    /// `None` if it never ends.
    finish: Option<Timestamp>,
}

impl Ledger {
    /// A transmission begins.
    #[inline]
    pub(super) fn begin(
        &mut self,
        account: usize,
        size: DataSize,
        start: Timestamp,
        finish: Option<Timestamp>,
    ) {
        if self.accounts.len() <= account {
            self.accounts.resize(account + 1, Account::default());
        }
        self.accounts[account].begun += size.as_bits();
        self.current = Some(Transmission { account, size, start, finish });
    }

    /// The transmission that never ends is given up, and its packet will be sent anew.
    pub(super) fn give_up(&mut self, now: Timestamp, capacity: &Capacity, cursor: &TraceCursor) {
        if let Some(current) = self.current.take() {
            self.accounts[current.account].begun -= current.left(now, capacity, cursor);
        }
    }

    /// Bits carried before `now` since the last time that this account was asked for.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        account: usize,
        capacity: &Capacity,
        cursor: &TraceCursor,
    ) -> u64 {
        let left = match self.current {
            Some(current) if current.account == account => current.left(now, capacity, cursor),
            _ => 0,
        };
        let Some(account) = self.accounts.get_mut(account) else { return 0 };
        let carried = account.begun - left;
        carried - std::mem::replace(&mut account.asked, carried)
    }
}

impl Transmission {
    /// Bits that are not out before `now`.
    fn left(&self, now: Timestamp, capacity: &Capacity, cursor: &TraceCursor) -> u64 {
        let size = self.size.as_bits() as f64;
        let out = match (capacity, self.finish) {
            (Capacity::Trace(trace), _) => cursor.share_before(trace, now),
            (_, Some(finish)) if finish <= now => 1.0,
            (Capacity::Schedule(schedule), Some(finish)) => {
                // The bits that the link carries in the whole transmission are those of the packet,
                // but for a change of the plan and the rounding to nanoseconds.
                match schedule.bits(self.start, finish) {
                    whole if whole > 0.0 => schedule.bits(self.start, now) / whole,
                    _ => 0.0,
                }
            }
            (Capacity::Schedule(schedule), None) => schedule.bits(self.start, now) / size,
            (Capacity::Unlimited, _) => 1.0,
        };
        (size * (1.0 - out.clamp(0.0, 1.0))).round() as u64
    }
}
