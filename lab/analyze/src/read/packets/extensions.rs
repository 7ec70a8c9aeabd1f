//! Which header extension is which. A capture has no session description, so the ids are told by
//! what their values do.

use std::collections::BTreeMap;

use weir::units::{TimeDelta, Timestamp};
use weir_wire::rtp::{AbsSendTime, View};

/// Packets of a direction that are watched before the ids are decided.
pub(crate) const WATCHED: usize = 200;
/// Fewer values prove nothing.
const LEAST_STEPS: u32 = 8;
/// Share of the steps between two packets that must look right. Packets may be reordered.
const SHARE: f64 = 0.8;
/// How far a step of the absolute send time may differ from the time that passed.
const TOLERANCE: TimeDelta = TimeDelta::from_millis(200);

/// Values of the header extensions of a packet that may be numbers or times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Candidates {
    numbers: [Option<(u8, u16)>; 2],
    times: [Option<(u8, u32)>; 3],
}

impl Candidates {
    /// The elements of two, four or three bytes of a packet's header.
    pub fn of(packet: &View<'_>) -> Self {
        let mut found = Self::default();
        for element in packet.elements() {
            let (id, data) = (element.id().get(), element.data());
            match *data {
                // The long form of the number requests feedback.
                [a, b] | [a, b, _, _] => put(&mut found.numbers, (id, u16::from_be_bytes([a, b]))),
                [a, b, c] => put(&mut found.times, (id, u32::from_be_bytes([0, a, b, c]))),
                _ => {}
            }
        }
        found
    }
}

fn put<T>(places: &mut [Option<T>], value: T) {
    if let Some(free) = places.iter_mut().find(|place| place.is_none()) {
        *free = Some(value);
    }
}

/// Ids of the transport-wide sequence number [TWCC] and of the absolute send time [REMB §3].
///
/// [TWCC]: https://datatracker.ietf.org/doc/html/draft-holmer-rmcat-transport-wide-cc-extensions-01
/// [REMB §3]: https://datatracker.ietf.org/doc/html/draft-alvestrand-rmcat-remb-03#section-3
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ids {
    number: Option<u8>,
    time: Option<u8>,
}

impl Ids {
    /// Decides from the packets of one direction. A transport-wide number grows by one from packet
    /// to packet, whatever their streams; an absolute send time grows as time passes.
    pub fn of(packets: impl Iterator<Item = (Timestamp, Candidates)> + Clone) -> Self {
        let numbers = packets.clone().flat_map(|(time, it)| {
            it.numbers.into_iter().flatten().map(move |(id, value)| (id, time, u32::from(value)))
        });
        let times = packets.flat_map(|(time, it)| {
            it.times.into_iter().flatten().map(move |(id, value)| (id, time, value))
        });
        Self {
            number: best(numbers, |(_, before), (_, after)| after == (before + 1) & 0xFFFF),
            time: best(times, |(then, before), (now, after)| {
                let ticks = after.wrapping_sub(before) & ((1 << 24) - 1);
                let step = i64::from(ticks) * 1_000_000 / AbsSendTime::TICKS_PER_SECOND;
                let error = TimeDelta::from_micros(step) - (now - then);
                ticks != 0 && error < TOLERANCE && error > -TOLERANCE
            }),
        }
    }

    pub fn number(&self, candidates: &Candidates) -> Option<u16> {
        value(&candidates.numbers, self.number?)
    }

    pub fn time(&self, candidates: &Candidates) -> Option<u32> {
        value(&candidates.times, self.time?)
    }
}

fn value<T: Copy>(places: &[Option<(u8, T)>], wanted: u8) -> Option<T> {
    places.iter().flatten().find(|(id, _)| *id == wanted).map(|(_, value)| *value)
}

/// The id most of whose steps look right.
fn best(
    values: impl Iterator<Item = (u8, Timestamp, u32)>,
    is_right: impl Fn((Timestamp, u32), (Timestamp, u32)) -> bool,
) -> Option<u8> {
    #[derive(Default)]
    struct Steps {
        last: Option<(Timestamp, u32)>,
        all: u32,
        right: u32,
    }
    let mut ids: BTreeMap<u8, Steps> = BTreeMap::new();
    for (id, time, value) in values {
        let steps = ids.entry(id).or_default();
        if let Some(last) = steps.last.replace((time, value)) {
            steps.all += 1;
            steps.right += u32::from(is_right(last, (time, value)));
        }
    }
    let share = |steps: &Steps| f64::from(steps.right) / f64::from(steps.all.max(1));
    let good = ids.iter().filter(|(_, it)| it.all >= LEAST_STEPS && share(it) >= SHARE);
    good.max_by(|(_, a), (_, b)| share(a).total_cmp(&share(b))).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(number: u16, ticks: u32) -> Candidates {
        Candidates {
            numbers: [Some((3, 7)), Some((5, number))],
            times: [Some((2, 0)), Some((4, ticks)), None],
        }
    }

    #[test]
    fn extension_ids_are_found_by_the_steps_of_their_values() {
        // 20 ms are 5243 ticks. The number wraps; extension 3 is constant, and 2 is always 0.
        let packets = (0..50_u32).map(|index| {
            let time = Timestamp::from_millis(i64::from(index) * 20);
            (time, candidates((65_520 + index) as u16, 16_700_000 + index * 5_243))
        });
        let packets: Vec<_> = packets.collect();
        let ids = Ids::of(packets.iter().copied());
        assert_eq!(ids, Ids { number: Some(5), time: Some(4) });
        assert_eq!(ids.number(&packets[1].1), Some(65_521));
        assert_eq!(ids.time(&packets[0].1), Some(16_700_000));
    }

    #[test]
    fn extension_ids_stay_unknown_with_few_or_random_values() {
        let few = (0..5_u16).map(|index| {
            (Timestamp::from_millis(i64::from(index)), candidates(index, u32::from(index) * 262))
        });
        assert_eq!(Ids::of(few.collect::<Vec<_>>().into_iter()), Ids::default());
        let random = (0..99_u16).map(|index| {
            let value = index.wrapping_mul(40_503);
            (Timestamp::from_millis(i64::from(index)), candidates(value, u32::from(value) << 8))
        });
        assert_eq!(Ids::of(random.collect::<Vec<_>>().into_iter()), Ids::default());
    }
}
