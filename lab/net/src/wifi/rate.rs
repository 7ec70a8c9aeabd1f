//! Rate control: which modulation and coding a frame is sent with.
//!
//! [`RateControl::Minstrel`] follows the idea of the default rate control of Linux. For each rate
//! it estimates the share of packets that get through. Ten times a second it ranks the rates by
//! expected throughput. Every tenth frame may try a rate that could be better than the best one.
//!
//! ```text
//! outcomes of 100 ms -> share delivered (moving average) -> throughput -> rank
//!                                                                          v
//! attempts 1, 2: best   3, 4: second best   5, 6: most reliable   then: the lowest
//! ```

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::error_rate::error_rate;
use super::phy::{DataRate, GuardInterval, Mcs};
use crate::seed::Stream;

/// How a sender chooses modulation and coding.
#[derive(Clone, Debug, PartialEq)]
pub enum RateControl {
    /// Always the same rate.
    Fixed(DataRate),
    /// A first rate, then others from ascending times on: a trace of a real link.
    Steps(DataRate, Vec<(Timestamp, DataRate)>),
    /// The fastest rate that loses at most one packet in ten at the present signal-to-noise ratio.
    /// The sender knows this ratio without delay.
    Ideal(RateSet),
    /// Chosen from acknowledgements alone.
    Minstrel(RateSet),
}

/// The set of rates that a link may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSet {
    /// Maximum number of spatial streams, 1 or 2.
    pub streams: u8,
    /// Guard interval of all rates.
    pub guard: GuardInterval,
}

impl RateSet {
    /// The rates with at most this many spatial streams and this guard interval.
    pub const fn new(streams: u8, guard: GuardInterval) -> Self {
        Self { streams, guard }
    }

    fn rates(self) -> impl Iterator<Item = DataRate> {
        Mcs::all(self.streams).map(move |mcs| DataRate { mcs, guard: self.guard })
    }

    fn lowest(self) -> DataRate {
        DataRate { mcs: Mcs::LOWEST, guard: self.guard }
    }
}

/// Packet size for which rates are compared.
const REFERENCE_PACKET: DataSize = DataSize::from_bytes(1_200);
/// Largest loss ratio that the ideal rate may have.
const IDEAL_LOSS: f64 = 0.1;
/// Interval between Minstrel's rankings.
const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Weight of the old average when an interval has ended.
const EWMA_WEIGHT: f64 = 0.75;
/// A rate that delivers a smaller share counts as having no throughput.
const USELESS: f64 = 0.1;
/// Rates that deliver more count as equally reliable, so the faster one is ranked first.
const RELIABLE: f64 = 0.9;
/// One frame in this many tries another rate.
const SAMPLE_PERIOD: u32 = 10;
/// Attempts at each of the first three rates of the chain. The seventh attempt uses the lowest
/// rate.
const ATTEMPTS_A_STAGE: u32 = 2;

/// Rate control of one sender towards one receiver.
#[derive(Clone, Debug)]
pub struct RateSelector {
    state: Selection,
}

#[derive(Clone, Debug)]
enum Selection {
    Steps { current: DataRate, to_come: std::vec::IntoIter<(Timestamp, DataRate)> },
    Ideal(RateSet),
    Minstrel(Box<Minstrel>),
}

impl RateSelector {
    /// Rate control before the first frame. The stream must not be shared.
    pub fn new(control: RateControl, stream: Stream) -> Self {
        let state = match control {
            RateControl::Fixed(rate) => {
                Selection::Steps { current: rate, to_come: [].to_vec().into_iter() }
            }
            RateControl::Steps(first, steps) => {
                Selection::Steps { current: first, to_come: steps.into_iter() }
            }
            RateControl::Ideal(set) => Selection::Ideal(set),
            RateControl::Minstrel(set) => Selection::Minstrel(Box::new(Minstrel::new(set, stream))),
        };
        Self { state }
    }

    /// The rate of the next frame, whose first packet has already had `attempts` transmissions.
    /// `snr_db` is the ratio at the receiver; it is infinite on links without noise.
    pub fn select(&mut self, now: Timestamp, attempts: u32, snr_db: f64) -> DataRate {
        match &mut self.state {
            Selection::Steps { current, to_come } => {
                while let Some(&(from, rate)) = to_come.as_slice().first()
                    && from <= now
                {
                    *current = rate;
                    to_come.next();
                }
                *current
            }
            Selection::Ideal(set) => ideal(*set, snr_db),
            Selection::Minstrel(minstrel) => minstrel.select(now, attempts),
        }
    }

    /// Records that a frame of `sent` packets was sent and `acknowledged` of them were
    /// acknowledged.
    pub fn on_outcome(&mut self, now: Timestamp, rate: DataRate, sent: u32, acknowledged: u32) {
        if let Selection::Minstrel(minstrel) = &mut self.state {
            minstrel.on_outcome(now, rate, sent, acknowledged);
        }
    }
}

/// The ideal rate. Among rates of equal bitrate it is the one with fewer streams, which comes first
/// and is more robust.
fn ideal(set: RateSet, snr_db: f64) -> DataRate {
    let mut best = set.lowest();
    for rate in set.rates() {
        let works = error_rate(rate.mcs, snr_db, REFERENCE_PACKET) <= IDEAL_LOSS;
        if works && rate.bitrate() > best.bitrate() {
            best = rate;
        }
    }
    best
}

#[derive(Clone, Debug)]
struct Minstrel {
    rates: Vec<RateStatistics>,
    /// Indices of `rates`: best, second best, most reliable, lowest.
    chain: [usize; 4],
    frames: u32,
    update: Option<Timestamp>,
    stream: Stream,
}

#[derive(Clone, Copy, Debug)]
struct RateStatistics {
    rate: DataRate,
    /// Packets sent in the current interval.
    sent: u32,
    acknowledged: u32,
    /// Moving average of the share delivered; `None` before the first interval with a packet.
    delivered: Option<f64>,
}

impl RateStatistics {
    /// Packets per second that would get through if this share of them did.
    fn throughput_at(&self, delivered: f64) -> f64 {
        if delivered < USELESS {
            return 0.0;
        }
        delivered.min(RELIABLE) / self.rate.air_time(REFERENCE_PACKET).as_secs_f64()
    }

    fn throughput(&self) -> f64 {
        self.throughput_at(self.delivered.unwrap_or(0.0))
    }

    fn end_interval(&mut self) {
        if self.sent > 0 {
            let share = f64::from(self.acknowledged) / f64::from(self.sent);
            let past = self.delivered.unwrap_or(share);
            self.delivered = Some(EWMA_WEIGHT * past + (1.0 - EWMA_WEIGHT) * share);
            (self.sent, self.acknowledged) = (0, 0);
        }
    }
}

impl Minstrel {
    fn new(set: RateSet, stream: Stream) -> Self {
        let rates = set.rates().map(|rate| RateStatistics {
            rate,
            sent: 0,
            acknowledged: 0,
            delivered: None,
        });
        Self { rates: rates.collect(), chain: [0; 4], frames: 0, update: None, stream }
    }

    fn select(&mut self, now: Timestamp, attempts: u32) -> DataRate {
        self.advance(now);
        let stage = (attempts / ATTEMPTS_A_STAGE) as usize;
        let mut index = self.chain[stage.min(self.chain.len() - 1)];
        if attempts == 0 {
            self.frames += 1;
            if self.frames.is_multiple_of(SAMPLE_PERIOD) {
                index = self.sample();
            }
        }
        self.rates[index].rate
    }

    /// A random rate to try. It is the best rate instead if the random one could not beat it even
    /// without loss.
    fn sample(&mut self) -> usize {
        let best = self.chain[0];
        let any = (self.stream.uniform() * self.rates.len() as f64) as usize;
        let may_be_better = self.rates[any].throughput_at(1.0) > self.rates[best].throughput();
        if may_be_better { any } else { best }
    }

    fn on_outcome(&mut self, now: Timestamp, rate: DataRate, sent: u32, acknowledged: u32) {
        self.advance(now);
        let statistics = &mut self.rates[rate.mcs.index()];
        statistics.sent += sent;
        statistics.acknowledged += acknowledged;
    }

    fn advance(&mut self, now: Timestamp) {
        let update = *self.update.get_or_insert(now + UPDATE_INTERVAL);
        if now >= update {
            self.rates.iter_mut().for_each(RateStatistics::end_interval);
            self.rank();
            self.update = Some(now + UPDATE_INTERVAL);
        }
    }

    /// Ranks the rates. Among equals, the lowest rate comes first.
    fn rank(&mut self) {
        let mut order: Vec<usize> = (0..self.rates.len()).collect();
        order.sort_by(|&a, &b| self.rates[b].throughput().total_cmp(&self.rates[a].throughput()));
        let (best, second) = (order[0], order[1]);
        // The first reliable rate in the order of throughput. If none is reliable, the most
        // reliable one.
        let share = |index: usize| self.rates[index].delivered.unwrap_or(0.0).min(RELIABLE);
        let reliable = order.iter().copied().reduce(|a, b| if share(b) > share(a) { b } else { a });
        self.chain = [best, second, reliable.unwrap_or(0), 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;
    use crate::wifi::propagation::{Fading, Propagation, RadioPath};

    const SET: RateSet = RateSet { streams: 2, guard: GuardInterval::Long };
    const PACKET: DataSize = DataSize::from_bytes(1_538);

    fn ms(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rate(mcs: u8) -> DataRate {
        DataRate::long_guard(Mcs::new(mcs).unwrap())
    }

    fn selector(control: RateControl) -> RateSelector {
        RateSelector::new(control, Seed::new(1).stream("rate"))
    }

    /// Sends one packet per millisecond with at most 7 attempts each, over a channel with this
    /// signal-to-noise ratio. Returns the scheme of each first attempt and the number of lost
    /// packets.
    fn drive(control: RateControl, secs: i64, mut snr_db: impl FnMut(Timestamp) -> f64) -> Outcome {
        let mut selector = selector(control);
        let mut chance = Seed::new(2).stream("errors");
        let mut outcome = Outcome::default();
        for packet in 0..secs * 1_000 {
            let (now, snr_db) = (ms(packet), snr_db(ms(packet)));
            let is_through = (0..7).any(|attempts| {
                let rate = selector.select(now, attempts, snr_db);
                if attempts == 0 {
                    outcome.first.push(rate.mcs.index());
                }
                let is_through = !chance.chance(error_rate(rate.mcs, snr_db, PACKET));
                selector.on_outcome(now, rate, 1, u32::from(is_through));
                is_through
            });
            outcome.lost += u32::from(!is_through);
        }
        outcome
    }

    #[derive(Default)]
    struct Outcome {
        first: Vec<usize>,
        lost: u32,
    }

    impl Outcome {
        /// Share of first attempts that used this scheme, from this second on.
        fn share(&self, from_secs: usize, mcs: usize) -> f64 {
            let late = &self.first[from_secs * 1_000..];
            late.iter().filter(|&&first| first == mcs).count() as f64 / late.len() as f64
        }

        /// The most used scheme of each second.
        fn each_second(&self) -> Vec<usize> {
            let most = |second: &[usize]| {
                let count = |mcs: usize| second.iter().filter(|&&first| first == mcs).count();
                (0..Mcs::COUNT).max_by_key(|&mcs| count(mcs)).unwrap()
            };
            self.first.chunks(1_000).map(most).collect()
        }
    }

    #[test]
    fn steps_take_effect_at_their_times() {
        let steps = vec![(ms(10), rate(3)), (ms(20), rate(12))];
        let mut selector = selector(RateControl::Steps(rate(7), steps));
        let rates = [9, 10, 19, 25].map(|at| selector.select(ms(at), 0, f64::INFINITY));
        assert_eq!(rates, [rate(7), rate(3), rate(3), rate(12)]);
    }

    #[test]
    fn a_fixed_rate_stays_whatever_happens() {
        let mut selector = selector(RateControl::Fixed(rate(7)));
        selector.on_outcome(ms(0), rate(7), 10, 0);
        assert_eq!(selector.select(ms(1_000), 6, -10.0), rate(7));
    }

    #[test]
    fn the_ideal_rate_is_the_fastest_that_loses_at_most_a_tenth() {
        let mut selector = selector(RateControl::Ideal(SET));
        // MCS 4 loses a tenth of 1458-byte frames at 12.8 dB, and less of the shorter reference
        // packet. MCS 5 needs 17.0 dB. MCS 10 is as fast as MCS 4 and needs 11.4 dB. MCS 11 is as
        // fast as MCS 5 and needs 14.7 dB.
        let at = [-5.0, 12.8, 15.0, 60.0].map(|db| selector.select(ms(0), 0, db).mcs.index());
        assert_eq!(at, [0, 4, 11, 15]);
    }

    #[test]
    fn minstrel_finds_the_best_rate_of_a_steady_channel() {
        for (snr_db, best) in [(60.0, 15), (20.0, 12), (4.7, 1)] {
            let outcome = drive(RateControl::Minstrel(SET), 10, |_| snr_db);
            assert!(outcome.share(5, best) > 0.85, "{snr_db}: {}", outcome.share(5, best));
            assert!(outcome.lost < 10, "{snr_db}: {}", outcome.lost);
        }
    }

    #[test]
    fn minstrel_follows_a_channel_down_and_up_again() {
        let snr_db = |now: Timestamp| {
            if (10..20).contains(&(now.as_millis() / 1_000)) { 13.0 } else { 40.0 }
        };
        let used = drive(RateControl::Minstrel(SET), 30, snr_db).each_second();
        assert_eq!([used[9], used[19], used[29]], [15, 4, 15], "{used:?}");
    }

    #[test]
    fn a_tenth_of_the_frames_at_most_tries_another_rate() {
        let outcome = drive(RateControl::Minstrel(SET), 10, |_| 20.0);
        let others = 1.0 - outcome.share(5, 12);
        assert!(others > 0.005 && others <= 0.1, "{others}");
    }

    #[test]
    fn retries_go_down_the_chain_and_end_at_the_lowest_rate() {
        let mut selector = selector(RateControl::Minstrel(SET));
        for (mcs, acknowledged) in [(15, 60), (12, 80), (4, 100), (0, 100)] {
            selector.on_outcome(ms(0), rate(mcs), 100, acknowledged);
        }
        let chain: Vec<usize> =
            (0..7).map(|attempts| selector.select(ms(100), attempts, 0.0).mcs.index()).collect();
        // MCS 15 delivers 60 % of 130 Mbit/s, MCS 12 80 % of 78. Among the reliable rates 39 comes
        // before 6.5.
        assert_eq!(chain, [15, 15, 12, 12, 4, 4, 0]);
    }

    // The rate of a distant station swings between many schemes. Delay-based controllers see
    // jitter.
    #[test]
    fn fading_makes_the_rate_swing() {
        let fading = Fading { k_factor: 1.0, coherence: TimeDelta::from_millis(50) };
        let propagation = Propagation { fading: Some(fading), ..Propagation::INDOOR };
        let mut path = RadioPath::new(&propagation, 30.0, Seed::new(3).stream("path"));
        // 15 dBm over 30 m: -69 dBm, 22 dB above the noise of a real receiver.
        let outcome = drive(RateControl::Minstrel(SET), 60, |now| 15.0 + path.gain_db(now) + 91.0);
        let used = outcome.each_second();
        let distinct: std::collections::BTreeSet<_> = used.iter().collect();
        let swings = used.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(distinct.len() >= 4 && swings >= 20, "{used:?}");
        let steady = drive(RateControl::Minstrel(SET), 60, |_| 20.0).each_second();
        assert!(steady[5..].iter().all(|&mcs| mcs == 12), "{steady:?}");
    }
}
