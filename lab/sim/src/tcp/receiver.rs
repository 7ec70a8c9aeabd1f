//! The receiving end: reassembles data and sends acknowledgements.

use weir::units::{TimeDelta, Timestamp};

use super::receive_window::ReceiveWindow;
use super::segment::{Ack, Blocks, Data, MAX_SACK_BLOCKS, MSS, Part};
use super::timers::Timers;

/// Maximum delay of an acknowledgement while it waits for a second segment (Linux: `TCP_ATO_MIN`).
const DELAYED_ACK: TimeDelta = TimeDelta::from_millis(40);
/// Number of segments per delayed acknowledgement [RFC5681 §4.2].
const SEGMENTS_PER_ACK: u64 = 2;
/// Number of segments acknowledged immediately at the start of a connection, to avoid slowing down
/// slow start, and after duplicate data (Linux: `TCP_MAX_QUICKACKS`).
const QUICK_SEGMENTS: u32 = 16;
/// Number of segments acknowledged immediately after a mark, for senders with a small window
/// (Linux).
const QUICK_AFTER_MARK: u32 = 2;

/// The receiving end of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// All data below has arrived.
    next: u64,
    /// Received data above `next`; the most recently changed part is first.
    above: Vec<Part>,
    /// `next` of the last acknowledgement.
    acknowledged: u64,
    /// Data that arrived twice and is not reported yet.
    duplicate: Option<Part>,
    /// `TS.Recent`.
    echo: Timestamp,
    /// Whether a mark is being echoed, until the sender has reacted.
    echoes_mark: bool,
    /// Marked packets so far; `None` if marks are echoed and not counted.
    marks: Option<u64>,
    quick: u32,
    timers: Timers,
    deadline: Option<Timestamp>,
    window: ReceiveWindow,
}

impl Receiver {
    /// Creates a receiver whose window grows up to `window_limit` bytes.
    pub(super) fn new(window_limit: u64, timers: Timers) -> Self {
        Self {
            next: 0,
            above: Vec::new(),
            acknowledged: 0,
            duplicate: None,
            echo: Timestamp::ZERO,
            echoes_mark: false,
            marks: None,
            quick: QUICK_SEGMENTS,
            timers,
            deadline: None,
            window: ReceiveWindow::new(window_limit),
        }
    }

    /// The same receiver, which counts marks for the sender [RFC9768 §3.2].
    pub(super) fn with_counted_marks(self) -> Self {
        Self { marks: Some(0), ..self }
    }

    /// Number of bytes received in order.
    pub(super) fn received(&self) -> u64 {
        self.next
    }

    /// Time at which the delayed acknowledgement is due.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The delayed acknowledgement is due.
    pub(super) fn on_deadline(&mut self, now: Timestamp) -> Ack {
        self.ack(now)
    }

    /// Data arrived. `marked` is true if it carries a CE mark. Returns an acknowledgement if it
    /// must be sent immediately.
    pub(super) fn on_data(&mut self, now: Timestamp, data: &Data, marked: bool) -> Option<Ack> {
        // The echoed timestamp is that of the oldest segment that is not acknowledged yet
        // [RFC7323 §4.3].
        if data.part.start <= self.acknowledged {
            self.echo = self.echo.max(data.sent_at);
        }
        self.on_mark(marked, data.cwr);
        if data.part.is_empty() {
            return None;
        }
        let had_hole = !self.above.is_empty();
        if data.part.end <= self.next {
            self.duplicate = Some(data.part.clone());
            self.quick = QUICK_SEGMENTS;
            return Some(self.ack(now));
        }
        self.put(data.part.clone());
        let highest = self.above.iter().map(|part| part.end).max().unwrap_or(self.next);
        // While the offered window grows, acknowledgements are immediate (Linux:
        // `tcp_grow_window`). As a result, each segment of a slow start is acknowledged separately.
        if self.window.on_data(now, data, self.next, highest) {
            self.quick |= 1;
        }
        let has_hole = !self.above.is_empty();
        if self.quick > 0 {
            return Some(self.ack(now));
        }
        // A hole is reported immediately, and so is the end of a hole [RFC5681 §4.2]. "Immediately"
        // means after all data that arrived at this moment was processed. Linux sends
        // acknowledgements other than quick ones after the application has read
        // (`__tcp_ack_snd_check` compares the window), and a link-layer frame with many packets is
        // read as a whole.
        let is_due = self.next - self.acknowledged >= SEGMENTS_PER_ACK * MSS;
        let at_once = is_due || has_hole || had_hole;
        let deadline = if at_once { now } else { self.timers.expiry(now, DELAYED_ACK) };
        self.deadline = Some(self.deadline.map_or(deadline, |set| set.min(deadline)));
        None
    }

    /// A mark is counted, or echoed until the sender confirms that it has reacted
    /// [RFC3168 §6.1.3].
    fn on_mark(&mut self, marked: bool, reduced: bool) {
        if let Some(marks) = &mut self.marks {
            *marks += u64::from(marked);
            return;
        }
        if reduced {
            self.echoes_mark = false;
        }
        if marked {
            if !self.echoes_mark {
                self.quick = self.quick.max(QUICK_AFTER_MARK);
            }
            self.echoes_mark = true;
        }
    }

    fn put(&mut self, part: Part) {
        let mut merged = part;
        self.above.retain(|other| {
            let apart = other.end < merged.start || merged.end < other.start;
            if !apart {
                if merged.start >= other.start && merged.end <= other.end {
                    self.duplicate = Some(merged.clone());
                }
                merged = merged.start.min(other.start)..merged.end.max(other.end);
            }
            apart
        });
        if merged.start <= self.next {
            self.next = merged.end;
        } else {
            self.above.insert(0, merged);
        }
    }

    fn ack(&mut self, now: Timestamp) -> Ack {
        self.quick = self.quick.saturating_sub(1);
        self.deadline = None;
        self.acknowledged = self.next;
        let duplicate = self.duplicate.take();
        let room = MAX_SACK_BLOCKS - usize::from(duplicate.is_some());
        Ack {
            next: self.next,
            window: self.window.advertise(self.next),
            blocks: Blocks::first_of(&self.above, room),
            duplicate,
            sent_at: now,
            echo: self.echo,
            ece: self.echoes_mark,
            marks: self.marks.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A receiver that has sent its quick acknowledgements.
    fn receiver() -> Receiver {
        Receiver { quick: 0, ..Receiver::new(1 << 20, Timers::FROM_ZERO) }
    }

    /// Full-sized segment `number`, sent at `number` ms.
    fn segment(number: u64) -> Data {
        let sent_at = at(number as i64);
        let part = number * MSS..(number + 1) * MSS;
        Data { part, sent_at, echo: Timestamp::ZERO, cwr: false }
    }

    /// A segment arrives alone. Returns the acknowledgement of that moment, if any.
    fn receive(receiver: &mut Receiver, now: Timestamp, data: &Data, marked: bool) -> Option<Ack> {
        let due = |receiver: &Receiver| receiver.next_deadline() == Some(now);
        receiver
            .on_data(now, data, marked)
            .or_else(|| due(receiver).then(|| receiver.on_deadline(now)))
    }

    /// The acknowledged data and the SACK blocks, in segments.
    fn acknowledged(ack: Option<Ack>) -> Option<(u64, Vec<(u64, u64)>)> {
        let ack = ack?;
        let blocks = ack.blocks.as_slice().iter();
        Some((ack.next / MSS, blocks.map(|part| (part.start / MSS, part.end / MSS)).collect()))
    }

    // [RFC5681 §4.2]
    #[test]
    fn every_second_segment_is_acknowledged_or_the_first_after_40_ms() {
        let mut receiver = receiver();
        assert_eq!(receiver.on_data(at(100), &segment(0), false), None);
        assert_eq!(receiver.next_deadline(), Some(at(144)));
        assert_eq!(
            acknowledged(receive(&mut receiver, at(110), &segment(1), false)),
            Some((2, vec![]))
        );
        assert_eq!(receiver.next_deadline(), None);
        assert_eq!(receiver.on_data(at(120), &segment(2), false), None);
        assert_eq!(acknowledged(Some(receiver.on_deadline(at(164)))), Some((3, vec![])));
    }

    #[test]
    fn segments_that_arrive_at_one_moment_are_answered_once() {
        let mut receiver = receiver();
        for number in 0..10 {
            assert_eq!(receiver.on_data(at(100), &segment(number), false), None);
        }
        assert_eq!(receiver.next_deadline(), Some(at(100)));
        assert_eq!(acknowledged(Some(receiver.on_deadline(at(100)))), Some((10, vec![])));
        for number in [11, 13] {
            assert_eq!(receiver.on_data(at(101), &segment(number), false), None);
        }
        let holes = vec![(13, 14), (11, 12)];
        assert_eq!(acknowledged(Some(receiver.on_deadline(at(101)))), Some((10, holes)));
    }

    #[test]
    fn the_first_segments_of_a_connection_are_acknowledged_one_by_one() {
        let mut receiver = Receiver::new(1 << 20, Timers::FROM_ZERO);
        let answers = (0..20).map(|number| receive(&mut receiver, at(0), &segment(number), false));
        let answered: Vec<bool> = answers.map(|ack| ack.is_some()).collect();
        assert!(answered[..16].iter().all(|answered| *answered));
        assert_eq!(answered[16..], [false, true, false, true]);
    }

    // [RFC2018 §4]
    #[test]
    fn the_first_block_changed_last_and_a_filled_hole_is_told_at_once() {
        let mut receiver = receiver();
        let mut receive =
            |number| acknowledged(receive(&mut receiver, at(0), &segment(number), false));
        assert_eq!(receive(1), Some((0, vec![(1, 2)])));
        assert_eq!(receive(3), Some((0, vec![(3, 4), (1, 2)])));
        assert_eq!(receive(5), Some((0, vec![(5, 6), (3, 4), (1, 2)])));
        assert_eq!(receive(2), Some((0, vec![(1, 4), (5, 6)])));
        assert_eq!(receive(7), Some((0, vec![(7, 8), (1, 4), (5, 6)])));
        assert_eq!(receive(9), Some((0, vec![(9, 10), (7, 8), (1, 4)])));
        assert_eq!(receive(0), Some((4, vec![(9, 10), (7, 8), (5, 6)])));
    }

    // [RFC2883 §4]
    #[test]
    fn what_arrives_twice_is_told_once_in_front() {
        let mut receiver = receiver();
        receive(&mut receiver, at(0), &segment(0), false);
        receive(&mut receiver, at(0), &segment(2), false);
        let ack = receive(&mut receiver, at(0), &segment(0), false).unwrap();
        assert_eq!(ack.duplicate, Some(0..MSS));
        assert_eq!(acknowledged(Some(ack)), Some((1, vec![(2, 3)])));
        let ack = receive(&mut receiver, at(0), &segment(2), false).unwrap();
        assert_eq!(ack.duplicate, Some(2 * MSS..3 * MSS));
        assert_eq!(receive(&mut receiver, at(0), &segment(1), false).unwrap().duplicate, None);
    }

    // [RFC7323 §4.3]
    #[test]
    fn the_echo_is_the_time_of_the_oldest_segment_that_was_not_answered() {
        let mut receiver = receiver();
        receive(&mut receiver, at(50), &segment(0), false);
        assert_eq!(receive(&mut receiver, at(51), &segment(1), false).unwrap().echo, at(0));
        // Segment 2 is missing, so later segments do not change the echo.
        assert_eq!(receive(&mut receiver, at(53), &segment(3), false).unwrap().echo, at(0));
        let again = Data { sent_at: at(99), ..segment(2) };
        assert_eq!(receive(&mut receiver, at(150), &again, false).unwrap().echo, at(99));
    }

    // [RFC9768 §3.2]: PRAGUE-D1.
    #[test]
    fn a_receiver_that_counts_marks_reports_their_number_and_echoes_none() {
        let mut receiver = receiver().with_counted_marks();
        let first = receive(&mut receiver, at(0), &segment(1), true).unwrap();
        let second = receive(&mut receiver, at(0), &segment(0), true).unwrap();
        let third = receive(&mut receiver, at(0), &segment(3), false).unwrap();
        assert_eq!([first.marks, second.marks, third.marks], [1, 2, 2]);
        assert!(![first, second, third].iter().any(|ack| ack.ece));
    }

    // [RFC3168 §6.1.3]
    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
        let mut receiver = receiver();
        assert!(receive(&mut receiver, at(0), &segment(0), true).unwrap().ece);
        assert!(receive(&mut receiver, at(0), &segment(1), false).unwrap().ece);
        receive(&mut receiver, at(0), &segment(2), false);
        let reduced = Data { cwr: true, ..segment(3) };
        assert!(!receive(&mut receiver, at(0), &reduced, false).unwrap().ece);
    }
}
