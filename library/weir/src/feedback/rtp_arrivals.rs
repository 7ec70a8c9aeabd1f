//! The receiver's record of arrivals by RTP stream, with their ECN marks.

use alloc::vec::Vec;

use super::arrivals::LOOK_BACK;
use super::restarts::{Place, Restarts};
use super::{Ecn, RtpNumber, SeqUnwrapper};
use crate::units::Timestamp;

/// A packet further ahead than this restarts its stream, because no report could span the gap.
const LONGEST_GAP: i64 = 1 << 14;
/// Maximum number of packets that may arrive late before the first one of a stream.
const LEAST_REORDERED: i64 = 64;
/// Sources that are recorded. It bounds the memory that a peer can use up with invented SSRCs, and
/// is more than a call of a hundred pictures, each with repeats, sends.
const MAX_STREAMS: usize = 256;

/// Arrival in microseconds and ECN bits of a received packet; `None` for a missing one.
pub type RtpArrival = Option<(i64, Ecn)>;

/// Records arrivals by RTP sequence number and returns them in batches for congestion control
/// feedback: one batch per media source and report.
///
/// Batches of a source follow each other without a gap [RFC8888 §3.1]. A batch begins earlier if a
/// packet arrived late. It then repeats the packets after it, because a received packet must stay
/// reported as received.
///
/// At most 256 sources are recorded. A new one takes the place of the one that has been silent for
/// longest.
///
/// [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1
#[derive(Clone, Debug, Default)]
pub struct RtpArrivalRecorder {
    /// Streams in the order of their first packets. There are few.
    streams: Vec<Stream>,
}

/// The part of a report on one media source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpBatch<'a> {
    /// The media source.
    pub ssrc: u32,
    /// RTP sequence number of the first packet, unwrapped.
    pub begin: i64,
    /// All packets from there to the highest one received.
    pub packets: &'a [RtpArrival],
}

#[derive(Clone, Debug)]
struct Stream {
    ssrc: u32,
    last_arrival: Timestamp,
    unwrapper: SeqUnwrapper,
    restarts: Restarts,
    /// The last packet, if its number is far from the others.
    far: Option<(RtpNumber, Timestamp, Ecn)>,
    /// RTP sequence number of the first packet in `packets`.
    first: i64,
    packets: Vec<RtpArrival>,
    /// First number of the next batch, unless a packet arrives late.
    next_begin: i64,
    /// Lowest number that arrived since the last batch.
    fresh: Option<i64>,
    /// First number of the current batch.
    batch: Option<i64>,
}

impl Stream {
    fn new(now: Timestamp, rtp: RtpNumber) -> Self {
        let first = i64::from(rtp.sequence_number);
        Self {
            ssrc: rtp.ssrc,
            last_arrival: now,
            unwrapper: SeqUnwrapper::default(),
            restarts: Restarts::default(),
            far: None,
            first,
            packets: Vec::new(),
            next_begin: first,
            fresh: None,
            batch: None,
        }
    }

    fn end(&self) -> i64 {
        self.first + self.packets.len() as i64
    }

    fn on_packet(&mut self, now: Timestamp, rtp: RtpNumber, ecn: Ecn) {
        self.last_arrival = now;
        let number = self.unwrapper.peek(rtp.sequence_number.into());
        if number - self.end() > LONGEST_GAP {
            *self = Self::new(now, rtp);
        }
        let number = self.unwrapper.peek(rtp.sequence_number.into());
        let far = self.far.take();
        match self.restarts.place(now, number, i64::MAX) {
            Place::Newer | Place::Late => self.note(now.as_micros(), number, ecn),
            Place::Far => self.far = Some((rtp, now, ecn)),
            Place::Anew => {
                *self = Self::new(now, far.map_or(rtp, |(first, ..)| first));
                if let Some((first, at, ecn)) = far {
                    self.on_packet(at, first, ecn);
                }
                self.on_packet(now, rtp, ecn);
            }
        }
    }

    fn note(&mut self, arrival_us: i64, number: i64, ecn: Ecn) {
        if number < self.first && !self.reach_back(number) {
            return;
        }
        if number >= self.end() {
            // Keep the newest number as reference: a very late packet must not pull it back.
            self.unwrapper.set_last(number);
            self.packets.resize((number - self.first) as usize, None);
            self.packets.push(Some((arrival_us, ecn)));
        } else {
            match &mut self.packets[(number - self.first) as usize] {
                // [RFC8888 §3.1]: keep the arrival of the first copy, and CE if any copy was
                // marked.
                Some((_, first_ecn)) => {
                    if ecn == Ecn::Ce {
                        *first_ecn = Ecn::Ce;
                    }
                    return;
                }
                missing => *missing = Some((arrival_us, ecn)),
            }
        }
        self.fresh = Some(self.fresh.map_or(number, |fresh| fresh.min(number)));
    }

    /// Makes room for a packet before the first, unless a report has already covered that number.
    fn reach_back(&mut self, number: i64) -> bool {
        let missing = self.first - number;
        if self.next_begin != self.first || self.batch.is_some() || missing > LEAST_REORDERED {
            return false;
        }
        self.packets.splice(0..0, (0..missing).map(|_| None));
        self.first = number;
        self.next_begin = number;
        true
    }

    fn begin_batch(&mut self, horizon_us: i64) {
        self.batch = self.fresh.take().map(|fresh| fresh.min(self.next_begin));
        let Some(begin) = self.batch else { return };
        self.next_begin = self.end();
        let is_young = |packet: &RtpArrival| packet.is_some_and(|(time, _)| time >= horizon_us);
        let young = self.packets.iter().position(is_young).unwrap_or(self.packets.len());
        let old = young.min((begin - self.first) as usize);
        self.packets.drain(..old);
        self.first += old as i64;
    }
}

impl RtpArrivalRecorder {
    /// Records a packet. Of duplicates, the first arrival and any CE mark count.
    pub fn on_packet(&mut self, now: Timestamp, rtp: RtpNumber, ecn: Ecn) {
        let index = match self.streams.iter().position(|stream| stream.ssrc == rtp.ssrc) {
            Some(index) => index,
            None => self.begin(now, rtp),
        };
        self.streams[index].on_packet(now, rtp, ecn);
    }

    /// Makes a stream for a new source, in place of a silent one if there are many. Returns its
    /// index.
    fn begin(&mut self, now: Timestamp, rtp: RtpNumber) -> usize {
        if self.streams.len() >= MAX_STREAMS {
            let mut silent = 0;
            for (index, stream) in self.streams.iter().enumerate() {
                if stream.last_arrival < self.streams[silent].last_arrival {
                    silent = index;
                }
            }
            self.streams.remove(silent);
        }
        self.streams.push(Stream::new(now, rtp));
        self.streams.len() - 1
    }

    /// The batches to report now, one for each source with news. A batch begins at the lowest
    /// number that was not reported or arrived late, and ends at the highest one received.
    pub fn take_batches(&mut self, now: Timestamp) -> impl Iterator<Item = RtpBatch<'_>> {
        let horizon_us = (now - LOOK_BACK).as_micros();
        for stream in &mut self.streams {
            stream.begin_batch(horizon_us);
        }
        self.streams.iter().filter_map(|stream| {
            let begin = stream.batch?;
            let packets = &stream.packets[(begin - stream.first) as usize..];
            Some(RtpBatch { ssrc: stream.ssrc, begin, packets })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Notes packets of source 7, each 1 ms after the one before, from `start_ms` on.
    fn arrive(recorder: &mut RtpArrivalRecorder, start_ms: i64, numbers: &[u16]) {
        for (ms, &sequence_number) in (start_ms..).zip(numbers) {
            recorder.on_packet(at(ms), RtpNumber { ssrc: 7, sequence_number }, Ecn::Ect1);
        }
    }

    /// First number and arrivals in milliseconds of the only batch.
    fn take(recorder: &mut RtpArrivalRecorder, now_ms: i64) -> (i64, Vec<Option<i64>>) {
        let mut batches = recorder.take_batches(at(now_ms));
        let RtpBatch { ssrc, begin, packets } = batches.next().expect("one source has news");
        assert_eq!((ssrc, batches.next()), (7, None));
        let arrivals = packets.iter().map(|packet| packet.map(|(time, _)| time / 1_000));
        (begin, arrivals.collect())
    }

    // [RFC8888 §3.1]
    #[test]
    fn batches_follow_each_other_without_a_gap() {
        let mut recorder = RtpArrivalRecorder::default();
        arrive(&mut recorder, 1, &[65_534, 0]);
        assert_eq!(take(&mut recorder, 5), (65_534, alloc::vec![Some(1), None, Some(2)]));
        // 1 and 2 are lost. They are in the next batch, although only 3 arrived.
        arrive(&mut recorder, 6, &[3]);
        assert_eq!(take(&mut recorder, 7), (65_537, alloc::vec![None, None, Some(6)]));
        assert_eq!(recorder.take_batches(at(8)).next(), None);
    }

    // [RFC8888 §3.1]
    #[test]
    fn a_late_packet_is_reported_with_all_that_follow_it() {
        let mut recorder = RtpArrivalRecorder::default();
        arrive(&mut recorder, 1, &[10, 12, 13]);
        take(&mut recorder, 5);
        arrive(&mut recorder, 6, &[11, 14]);
        let all = alloc::vec![Some(6), Some(2), Some(3), Some(7)];
        assert_eq!(take(&mut recorder, 8), (11, all));
    }

    #[test]
    fn a_packet_may_come_before_the_first() {
        let mut recorder = RtpArrivalRecorder::default();
        arrive(&mut recorder, 1, &[2, 0]);
        assert_eq!(take(&mut recorder, 5), (0, alloc::vec![Some(2), None, Some(1)]));
    }

    // [RFC8888 §3.1]
    #[test]
    fn a_duplicate_keeps_its_first_arrival_and_a_mark_on_any_copy() {
        let mut recorder = RtpArrivalRecorder::default();
        let rtp = RtpNumber { ssrc: 7, sequence_number: 3 };
        for (ms, ecn) in [(1, Ecn::Ect0), (2, Ecn::Ce), (3, Ecn::Ect0)] {
            recorder.on_packet(at(ms), rtp, ecn);
        }
        let batch = recorder.take_batches(at(4)).next().unwrap();
        assert_eq!(batch.packets, [Some((1_000, Ecn::Ce))]);
    }

    #[test]
    fn each_source_has_its_own_batch() {
        let mut recorder = RtpArrivalRecorder::default();
        for (ssrc, sequence_number) in [(7, 1), (8, 900), (7, 2)] {
            recorder.on_packet(at(1), RtpNumber { ssrc, sequence_number }, Ecn::NotEct);
        }
        let begins: Vec<_> =
            recorder.take_batches(at(2)).map(|b| (b.ssrc, b.begin, b.packets.len())).collect();
        assert_eq!(begins, [(7, 1, 2), (8, 900, 1)]);
    }

    // The 65th source of a transport was never reported, and each one after it.
    #[test]
    fn a_new_source_takes_the_place_of_the_one_that_is_silent_for_longest() {
        let mut recorder = RtpArrivalRecorder::default();
        // Source 0 always sends. Each other one sends for a second, then the next one begins.
        for ssrc in 1..3_000_u32 {
            for part in 0..2_u16 {
                let now = at(i64::from(ssrc) * 1_000 + i64::from(part));
                for source in [0, ssrc] {
                    let sequence_number = (ssrc as u16).wrapping_mul(2) + part;
                    recorder.on_packet(now, RtpNumber { ssrc: source, sequence_number }, Ecn::Ect0);
                }
            }
            let mut reported = Vec::new();
            for batch in recorder.take_batches(at(i64::from(ssrc) * 1_000 + 10)) {
                reported.push((batch.ssrc, batch.packets.iter().flatten().count()));
            }
            assert_eq!(reported, [(0, 2), (ssrc, 2)]);
            assert!(recorder.streams.len() <= MAX_STREAMS);
        }
    }

    #[test]
    fn as_many_sources_as_are_recorded_are_all_reported() {
        let mut recorder = RtpArrivalRecorder::default();
        for sequence_number in 0..50_u16 {
            let now = at(i64::from(sequence_number) * 20);
            for ssrc in 0..MAX_STREAMS as u32 {
                recorder.on_packet(now, RtpNumber { ssrc, sequence_number }, Ecn::Ect0);
            }
            assert_eq!(recorder.take_batches(now).count(), MAX_STREAMS);
        }
    }

    #[test]
    fn a_jump_that_no_report_could_span_begins_the_stream_anew() {
        let mut recorder = RtpArrivalRecorder::default();
        arrive(&mut recorder, 1, &[0, 20_000]);
        assert_eq!(take(&mut recorder, 5), (20_000, alloc::vec![Some(2)]));
    }

    // [RFC3550 §A.1]
    #[test]
    fn a_source_that_begins_anew_is_reported_from_its_first_packet_on() {
        for new in [0, 200, 20_000, 39_000, 44_500, 65_500_u16] {
            let mut recorder = RtpArrivalRecorder::default();
            for step in 0..5_000_u16 {
                arrive(&mut recorder, step.into(), &[40_000 + step]);
                take(&mut recorder, step.into());
            }
            let mut arrived = 0;
            for step in 0..10_000_u16 {
                let now = 5_000 + i64::from(step);
                arrive(&mut recorder, now, &[new.wrapping_add(step)]);
                for batch in recorder.take_batches(at(now)) {
                    let fresh = batch.packets.iter().flatten();
                    arrived += fresh.filter(|(at, _)| *at == now * 1_000).count();
                    assert!(batch.packets.len() <= 1_100, "{new} at {step}");
                }
            }
            assert!(arrived >= 9_690, "{new}: {arrived}");
        }
    }

    #[test]
    fn old_arrivals_are_forgotten_and_stay_so() {
        let mut recorder = RtpArrivalRecorder::default();
        for number in 0..2_000_u16 {
            arrive(&mut recorder, i64::from(number) * 10, &[number]);
            take(&mut recorder, i64::from(number) * 10);
        }
        assert!(recorder.streams[0].packets.len() <= 51);
        // A copy of a packet received long ago is not news, nor is another packet as old.
        arrive(&mut recorder, 20_000, &[5]);
        assert_eq!(recorder.take_batches(at(20_000)).next(), None);
    }
}
