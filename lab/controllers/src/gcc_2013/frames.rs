//! Joins packets into frames and compares consecutive frames: their send and arrival intervals, and
//! their size difference [BARI §arrival-time filter]. Departs from it in BARI-D1.

use weir::units::{DataSize, TimeDelta, Timestamp};

/// A longer silence, or a larger clock jump, resets the frames: BARI-D1.
const MAX_GAP: TimeDelta = TimeDelta::from_secs(2);

/// A packet that arrived, with the inputs of the delay-based half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    pub arrival: Timestamp,
    pub departure: Timestamp,
    /// Frame number, which increases from frame to frame. All packets of a frame share it.
    pub frame: i64,
    pub size: DataSize,
}

/// Forms frames from packets in arrival order.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    /// The last complete frame.
    previous: Option<Frame>,
    current: Option<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    number: i64,
    /// `T(i)`: send time of its first packet.
    departure: Timestamp,
    /// `t(i)`: arrival time of its last packet.
    arrival: Timestamp,
    /// `L(i)`.
    size: DataSize,
}

/// Effect of a packet on the frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Framing {
    /// The packet joined the current frame, belongs to an older one, or completed a frame without
    /// predecessor.
    Pending,
    /// The packet started a new frame, which completes the frame before it.
    Complete(FrameDelta),
    /// There was a gap before the packet. What was learned before no longer applies.
    Restarted,
}

/// Differences between two consecutive frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FrameDelta {
    /// `T(i) - T(i-1)`.
    pub departure: TimeDelta,
    /// `t(i) - t(i-1)`.
    pub arrival: TimeDelta,
    /// `L(i) - L(i-1)` in bytes.
    pub size_bytes: f64,
}

impl Frames {
    /// Takes the next packet in arrival order.
    pub(super) fn on_packet(&mut self, packet: &Arrival) -> Framing {
        let Arrival { arrival, departure, frame: number, size } = *packet;
        let fresh = Frame { number, departure, arrival, size };
        let Some(current) = &mut self.current else {
            self.current = Some(fresh);
            return Framing::Pending;
        };
        let jumped = |a: Timestamp, b: Timestamp| (a - b).abs() > MAX_GAP;
        if jumped(arrival, current.arrival) || jumped(departure, current.departure) {
            // BARI-D1: the first difference after a gap compares unrelated queues.
            *self = Self { previous: None, current: Some(fresh) };
            return Framing::Restarted;
        }
        if number == current.number {
            current.arrival = current.arrival.max(arrival);
            current.size += size;
            return Framing::Pending;
        }
        // Packets out of order, for instance retransmissions, belong to a frame that is already
        // complete.
        if number < current.number || departure <= current.departure {
            return Framing::Pending;
        }
        let complete = core::mem::replace(current, fresh);
        match self.previous.replace(complete) {
            Some(previous) => Framing::Complete(FrameDelta {
                departure: complete.departure - previous.departure,
                arrival: complete.arrival - previous.arrival,
                size_bytes: complete.size.as_bytes() as f64 - previous.size.as_bytes() as f64,
            }),
            None => Framing::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: i64, departure_ms: i64, arrival_ms: i64) -> Arrival {
        let (departure, arrival) =
            (Timestamp::from_millis(departure_ms), Timestamp::from_millis(arrival_ms));
        Arrival { arrival, departure, frame, size: DataSize::from_bytes(1_000) }
    }

    // [BARI §arrival-time filter]
    #[test]
    fn frames_are_compared_from_first_departure_to_last_arrival() {
        let mut frames = Frames::default();
        let mut take =
            |frame, departure, arrival| frames.on_packet(&packet(frame, departure, arrival));
        assert_eq!(take(0, 0, 50), Framing::Pending);
        assert_eq!(take(0, 5, 58), Framing::Pending);
        assert_eq!(take(1, 33, 84), Framing::Pending, "nothing to compare with");
        let delta = FrameDelta {
            departure: TimeDelta::from_millis(33),
            arrival: TimeDelta::from_millis(26),
            size_bytes: -1_000.0,
        };
        assert_eq!(take(2, 66, 117), Framing::Complete(delta));
    }

    #[test]
    fn a_packet_of_a_closed_frame_is_ignored() {
        let mut frames = Frames::default();
        for at in [0, 33, 66] {
            frames.on_packet(&packet(at / 33, at, at + 50));
        }
        assert_eq!(frames.on_packet(&packet(1, 80, 130)), Framing::Pending, "a retransmission");
        let Framing::Complete(delta) = frames.on_packet(&packet(3, 99, 149)) else { panic!() };
        assert_eq!((delta.arrival, delta.size_bytes), (TimeDelta::from_millis(33), 0.0));
    }

    // BARI-D1
    #[test]
    fn a_gap_of_two_seconds_or_a_jump_of_a_clock_starts_anew() {
        for (departure, arrival) in [(2_100, 2_150), (99, 5_000), (99, -5_000), (-5_000, 149)] {
            let mut frames = Frames::default();
            for at in [0, 33, 66] {
                frames.on_packet(&packet(at / 33, at, at + 50));
            }
            let next = packet(3, departure, arrival);
            assert_eq!(frames.on_packet(&next), Framing::Restarted, "{departure} {arrival}");
            let after = packet(4, departure + 33, arrival + 33);
            assert_eq!(frames.on_packet(&after), Framing::Pending, "nothing to compare with");
        }
    }
}
