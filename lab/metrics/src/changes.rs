//! Capacity changes, and how a flow responded to each.

use std::collections::BTreeMap;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::{ROWS_PER_SECOND, Window};

/// A controller has responded once its output differs by this much (lund, section 5.2).
const RESPONSE: Bitrate = Bitrate::from_kbps(250);

/// A change of the capacity. It takes effect with row `first`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityChange {
    /// Index of the first row with the new capacity.
    pub first: usize,
    /// When the capacity changed.
    pub time: Timestamp,
    /// Whether the capacity rose.
    pub up: bool,
    /// The new capacity.
    pub capacity: Bitrate,
    /// Time until the received rate over a second first reached 90 % of the new capacity. `None` if
    /// the next change or the end of the run came first, or if the new capacity is zero.
    pub reached_s: Option<f64>,
    /// First row whose target differed by 250 kbit/s, and the time from the change until then.
    pub(super) answered: Option<(usize, TimeDelta)>,
}

/// Finds capacity changes between rows, and the response to each.
///
/// The response is defined in lund, section 5.2: the target at the change is compared with the
/// target of each later row, every 50 ms, until they differ by 250 kbit/s. The search continues
/// past the next change, as in the paper. A change without a response does not count.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    found: Vec<CapacityChange>,
    rows: usize,
    before: Option<Before>,
    /// Changes without a response so far, by the target before the change.
    open: BTreeMap<Bitrate, Vec<usize>>,
    /// Bytes received since the last change, until 90 % of the new capacity is reached or the
    /// capacity changes again.
    reaching: Option<Window>,
}

/// Values of the previous row.
#[derive(Clone, Copy, Debug)]
struct Before {
    time: Timestamp,
    capacity: Option<Bitrate>,
    target: Option<Bitrate>,
}

impl Changes {
    pub(super) fn push(&mut self, row: &Row) {
        let Row { time, capacity, target, .. } = *row;
        if let Some(before) = self.before.replace(Before { time, capacity, target }) {
            self.compare(&before, row);
        }
        if let Some(target) = row.target {
            self.answer(target, row.time);
        }
        self.reach(row);
        self.rows += 1;
    }

    pub(super) fn into_changes(self) -> Vec<CapacityChange> {
        self.found
    }

    fn compare(&mut self, before: &Before, row: &Row) {
        let (Some(old), Some(new)) = (before.capacity, row.capacity) else { return };
        if old == new {
            return;
        }
        if let Some(target) = before.target {
            self.open.entry(target).or_default().push(self.found.len());
        }
        self.found.push(CapacityChange {
            first: self.rows,
            time: before.time,
            up: new > old,
            capacity: new,
            reached_s: None,
            answered: None,
        });
        self.reaching = (new > Bitrate::ZERO).then(Window::default);
    }

    /// Records the response to all open changes whose target differs enough. The map is sorted, so
    /// only its first and last entries need a look.
    fn answer(&mut self, target: Bitrate, now: Timestamp) {
        let differs = |before: &Bitrate| {
            target.saturating_sub(*before) >= RESPONSE || before.saturating_sub(target) >= RESPONSE
        };
        loop {
            let open = match self.open.first_entry().filter(|open| differs(open.key())) {
                Some(first) => first,
                None => match self.open.last_entry().filter(|open| differs(open.key())) {
                    Some(last) => last,
                    None => return,
                },
            };
            for index in open.remove() {
                let change = &mut self.found[index];
                change.answered = Some((self.rows, now - change.time));
            }
        }
    }

    fn reach(&mut self, row: &Row) {
        let Some(change) = self.found.last_mut() else { return };
        if row.capacity != Some(change.capacity) {
            self.reaching = None;
        }
        let Some(window) = &mut self.reaching else { return };
        let received = DataSize::from_bytes(window.push(row.received.as_bytes()));
        let rate = received / (ROW_INTERVAL * ROWS_PER_SECOND as i64);
        if window.is_full() && rate / change.capacity >= 0.9 {
            let rows = self.rows + 1 - change.first;
            change.reached_s = Some((ROW_INTERVAL * rows as i64).as_secs_f64());
            self.reaching = None;
        }
    }
}

impl CapacityChange {
    /// Response time, if the response came before row `end`.
    pub(super) fn response_s(&self, end: usize) -> Option<f64> {
        self.answered.filter(|(row, _)| *row < end).map(|(_, time)| time.as_secs_f64())
    }
}
