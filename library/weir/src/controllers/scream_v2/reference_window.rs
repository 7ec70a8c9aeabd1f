//! Reference window: the bytes in flight from which the target bitrate is computed.
//!
//! Implements [SCREAMV2 §4.2.2] and [SCREAMV2 §4.5.3]. Departs from them in SCREAMV2-D1 (initial
//! window), SCREAMV2-D2 (silence), SCREAMV2-D9 to SCREAMV2-D12 (rare reports, long round trips,
//! narrow links, ways back).

use super::parameters::Parameters;
use crate::controller::Reason;
use crate::units::{DataSize, TimeDelta, Timestamp};

// Parameters [SCREAMV2 §4.2.2].
/// `BETA_LOSS`: factor applied at a loss.
pub(super) const BETA_LOSS: f64 = 0.7;
/// `BETA_ECN`: factor applied at a mark with classic ECN.
const BETA_ECN: f64 = 0.8;
/// `POST_CONGESTION_DELAY_RTT`: round trips after congestion until growth reaches full speed again.
const POST_CONGESTION_DELAY_RTT: f64 = 100.0;
/// `MUL_INCREASE_FACTOR`: growth per round trip, as a share of the window.
const MUL_INCREASE_FACTOR: f64 = 0.02;
/// `VIRTUAL_RTT`: flows with a shorter round trip behave as if they had this one.
pub(super) const VIRTUAL_RTT: TimeDelta = TimeDelta::from_millis(25);
/// SCREAMV2-D10: over a longer round trip, rates grow in the same time as over this one, and one
/// reaction must do until its effect is known.
pub(super) const LONG_RTT: TimeDelta = TimeDelta::from_millis(300);
/// SCREAMV2-D10: but by at most this share of the window in a round trip, if that is more than the
/// draft's growth.
const LONG_STEP_MAX: f64 = 0.1;
// Parameters of [SCREAMV2 §4.2.2.1] and [SCREAMV2 §4.2.2.2] that the draft does not name.
/// Minimum strength, at the inflection point.
const INFLECTION_SCALE_MIN: f64 = 0.1;
/// Minimum scale of a reduction by L4S marks, near the inflection point or with jitter.
const REDUCTION_SCALE_MIN: f64 = 0.25;
/// Minimum scale of an increase, near the inflection point.
const INCREASE_SCALE_MIN: f64 = 0.25;
/// Minimum scale of an increase, with jitter.
const JITTER_SCALE_MIN: f64 = 0.1;
/// Share of the delay target below which L4S marks occur almost without a queue.
const SMALL_DELAY: f64 = 0.25;
/// Round trips without a reaction after which the window may no longer match the bytes in flight.
const LONG_UNCONGESTED: f64 = 100.0;
// Parameters [SCREAMV2 §4.5.3].
/// `ACKED_BITRATE_MARGIN`: share of the acknowledged bitrate below which the target counts as low.
pub(super) const ACKED_BITRATE_MARGIN: f64 = 0.8;
/// `BACKOFF_SCALE_LOW_TARGET_RATE`: scale of a reduction while the target is low.
const BACKOFF_SCALE_LOW_TARGET_RATE: f64 = 0.25;

/// The sign of congestion, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Congestion {
    /// Acknowledgements are missing (SCREAMV2-D2).
    Silence,
    /// Packets were lost.
    Loss,
    /// Packets were marked; the sender sets ECT(0).
    ClassicMark,
    /// Packets were marked; the sender sets ECT(1). Contains `l4s_alpha`.
    L4sMark(f64),
    /// The averaged queuing delay is in the range of virtual marks. Contains `l4s_alpha_v`.
    VirtualMark(f64),
}

impl Congestion {
    /// The reason reported for the lower target bitrate.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Silence => Reason::FeedbackLost,
            Self::Loss => Reason::Loss,
            Self::ClassicMark | Self::L4sMark(_) => Reason::Ecn,
            Self::VirtualMark(_) => Reason::QueuingDelay,
        }
    }
}

/// Input of an update, apart from congestion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Smoothed round-trip time, `s_rtt`.
    pub rtt: TimeDelta,
    /// The same without the queue.
    pub path: TimeDelta,
    /// How much longer than usual the next report takes, where reports are rare (SCREAMV2-D9).
    pub wait: TimeDelta,
    /// The largest window then, in bytes, and the part of it that a queue takes to drain.
    pub most: f64,
    pub drains: f64,
    /// Then the window that would hold what arrives, with the head room of the flight.
    pub carried: f64,
    /// Queuing delay relative to its target, `qdelay / qdelay_target`.
    pub delay_fraction: f64,
    /// Scale of changes because of delay jitter, `ref_wnd_delay_scale`.
    pub jitter_scale: f64,
    /// The larger of `max_bytes_in_flight` and `max_bytes_in_flight_prev`.
    pub max_in_flight: DataSize,
    /// Maximum bytes in flight during the previous round trip, `max_bytes_in_flight_prev`.
    pub previous_in_flight: DataSize,
    /// The target bitrate is below `ACKED_BITRATE_MARGIN` times the acknowledged bitrate.
    pub target_is_low: bool,
}

impl Conditions {
    /// `max(VIRTUAL_RTT, s_rtt)`.
    fn long_rtt(&self) -> TimeDelta {
        self.rtt.max(VIRTUAL_RTT)
    }

    /// How many times as long as usual the round trip is (SCREAMV2-D10).
    fn long(&self) -> f64 {
        (self.path / LONG_RTT).max(1.0)
    }

    /// Whether one reaction must do until its effect is known (SCREAMV2-D9, SCREAMV2-D10).
    fn is_late(&self) -> bool {
        self.wait > TimeDelta::ZERO || self.path > LONG_RTT
    }

    /// The time from a change of the window until a report tells its effect.
    fn feedback_time(&self) -> TimeDelta {
        self.rtt + self.wait
    }
}

/// `ref_wnd` and the state that limits its changes.
#[derive(Clone, Debug)]
pub(super) struct ReferenceWindow {
    p: Parameters,
    /// `MSS` and `MIN_REF_WND` in bytes, and the part of a segment in growth (SCREAMV2-D11).
    mss: f64,
    min: f64,
    growth: f64,
    /// `ref_wnd` in bytes.
    size: f64,
    /// `ref_wnd_i`: size of the window when congestion last ended its growth.
    inflection: f64,
    /// Whether the window has grown since the last reduction, `ref_wnd_i_update_allowed`.
    has_grown: bool,
    /// `last_congestion_detected_time`: time of the last loss or mark; virtual marks do not count.
    congested: Option<Timestamp>,
    /// Time of the last reduction, `last_reaction_to_congestion_time`.
    reacted: Option<Timestamp>,
}

impl ReferenceWindow {
    /// A window of this many bytes, at least `MIN_REF_WND` (SCREAMV2-D1).
    pub fn new(size: f64, p: Parameters) -> Self {
        Self {
            size: size.max(p.min_ref_wnd),
            mss: p.mss,
            min: p.min_ref_wnd,
            growth: 1.0,
            p,
            inflection: 1.0,
            has_grown: true,
            congested: None,
            reacted: None,
        }
    }

    /// SCREAMV2-D11: segments have this size from now on, and growth is this part of them.
    pub fn set_segment(&mut self, mss: f64, growth: f64) {
        (self.mss, self.growth) = (mss, growth);
        self.min = self.p.min_ref_wnd * (mss / self.p.mss);
    }

    /// Whether enough time has passed since the last reaction [SCREAMV2 §4.2.1].
    pub fn may_react(&self, now: Timestamp, rtt: TimeDelta, path: TimeDelta) -> bool {
        let least = if path > LONG_RTT { rtt } else { rtt.min(VIRTUAL_RTT) };
        self.reacted.is_none_or(|reacted| now - reacted >= least)
    }

    /// Records loss or marks, even without a reaction. Growth restarts slowly.
    pub fn on_congestion_detected(&mut self, now: Timestamp) {
        self.congested = Some(now);
    }

    /// Reduces the window [SCREAMV2 §4.2.2.1].
    pub fn reduce(&mut self, now: Timestamp, congestion: Congestion, at: &Conditions) {
        let scale = self.inflection_scale();
        if core::mem::take(&mut self.has_grown) {
            self.inflection = self.size;
        }
        let factor = match congestion {
            Congestion::Loss | Congestion::Silence => BETA_LOSS,
            Congestion::ClassicMark => BETA_ECN,
            Congestion::L4sMark(alpha) => {
                let mut backoff = self.backoff(alpha, at);
                if at.delay_fraction < SMALL_DELAY {
                    backoff *= scale.max(REDUCTION_SCALE_MIN);
                    backoff *= at.jitter_scale.max(REDUCTION_SCALE_MIN);
                }
                if self.long_uncongested(now, at) {
                    self.size = self.size.min(at.previous_in_flight.as_bytes() as f64);
                }
                1.0 - backoff
            }
            Congestion::VirtualMark(_) if at.is_late() => 1.0 - at.drains,
            Congestion::VirtualMark(alpha) => 1.0 - self.backoff(alpha, at),
        };
        self.size = (self.size * factor).max(self.min);
        self.reacted = Some(now);
    }

    /// Reduction by half of `alpha` per round trip, divided among its reactions.
    fn backoff(&self, alpha: f64, at: &Conditions) -> f64 {
        let undershoot = if at.target_is_low { BACKOFF_SCALE_LOW_TARGET_RATE } else { 1.0 };
        let usual = (at.feedback_time() / VIRTUAL_RTT.max(at.wait)).max(1.0);
        let reactions = if at.path > LONG_RTT { 1.0 } else { usual };
        alpha / 2.0 / reactions * undershoot
    }

    fn long_uncongested(&self, now: Timestamp, at: &Conditions) -> bool {
        self.reacted.is_none_or(|reacted| now - reacted > at.long_rtt() * LONG_UNCONGESTED)
    }

    /// Grows the window by bytes that were newly acknowledged and not marked [SCREAMV2 §4.2.2.2].
    pub fn grow(&mut self, now: Timestamp, newly_acked: DataSize, at: &Conditions) {
        let scale = self.inflection_scale();
        let mut increment = newly_acked.as_bytes() as f64 * self.segment_ratio() * self.growth;
        increment *= (at.rtt / VIRTUAL_RTT).min(1.0);
        increment *= scale.max(INCREASE_SCALE_MIN);
        increment *= at.jitter_scale.max(JITTER_SCALE_MIN);
        let multiplicative = MUL_INCREASE_FACTOR * self.size / self.mss;
        increment *= 1.0 + multiplicative * self.post_congestion_scale(now, at) * scale;
        // SCREAMV2-D10: the rate is the window over the round trip.
        let most = newly_acked.as_bytes() as f64 * LONG_STEP_MAX;
        increment = (increment * at.long() * at.long()).min(increment.max(most));
        let mut limit = self.mss + at.max_in_flight.as_bytes() as f64 * self.p.head_room;
        if at.wait > TimeDelta::ZERO {
            // SCREAMV2-D9: as many round trips have passed, but their effect is known only now. Of
            // what is in flight, a report that came sooner than usual leaves less.
            limit = limit.max(at.carried);
            increment *= at.feedback_time() / at.rtt;
            increment = increment.min(limit.min(at.most) - self.size);
        }
        if increment > 0.0 && self.size + increment <= limit {
            self.size += increment;
            self.has_grown = true;
        }
    }

    /// `scl_t`: small near the inflection point.
    fn inflection_scale(&self) -> f64 {
        let distance = self.p.inflection_gain * (self.size - self.inflection) / self.inflection;
        (distance * distance).clamp(INFLECTION_SCALE_MIN, 1.0)
    }

    /// `post_congestion_scale_t`: rises from zero at congestion to one a hundred round trips later.
    fn post_congestion_scale(&self, now: Timestamp, at: &Conditions) -> f64 {
        let full = at.long_rtt() * POST_CONGESTION_DELAY_RTT;
        self.congested.map_or(1.0, |congested| ((now - congested) / full).clamp(0.0, 1.0))
    }

    /// Share of one segment in the window, `ref_wnd_ratio`.
    pub fn segment_ratio(&self) -> f64 {
        (self.mss / self.size).min(1.0)
    }

    /// Scales window and inflection point to a new share of a coupled rate.
    pub fn scale(&mut self, factor: f64) {
        self.size = (self.size * factor).max(self.min);
        self.inflection = (self.inflection * factor).max(1.0);
    }

    /// Lowers the window to this size, if it is larger.
    pub fn limit(&mut self, most: f64) {
        self.size = self.size.min(most.max(self.min));
    }

    /// When congestion last reduced the window.
    pub fn reacted(&self) -> Option<Timestamp> {
        self.reacted
    }

    /// Whether congestion has ever reduced the window.
    pub fn has_reacted(&self) -> bool {
        self.reacted.is_some()
    }

    /// `ref_wnd` in bytes.
    pub fn size(&self) -> f64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Conditions = Conditions {
        rtt: TimeDelta::from_millis(100),
        path: TimeDelta::from_millis(100),
        wait: TimeDelta::ZERO,
        most: f64::MAX,
        drains: 0.0,
        carried: 0.0,
        delay_fraction: 0.0,
        jitter_scale: 1.0,
        max_in_flight: DataSize::from_bytes(1 << 30),
        previous_in_flight: DataSize::from_bytes(1 << 30),
        target_is_low: false,
    };
    /// Queuing delay of half the target, above the range of the rule for small delays.
    const QUEUED: Conditions = Conditions { delay_fraction: 0.5, ..CALM };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A window that reacted at 0 and has its inflection point far below.
    fn window(size: f64) -> ReferenceWindow {
        ReferenceWindow { reacted: Some(at(0)), ..ReferenceWindow::new(size, Parameters::DRAFT) }
    }

    fn reduced(size: f64, congestion: Congestion, conditions: &Conditions) -> f64 {
        let mut window = window(size);
        window.reduce(at(1_000), congestion, conditions);
        window.size
    }

    // [SCREAMV2 §4.2.2.1], SCREAMV2-D2
    #[test]
    fn loss_and_silence_take_30_percent_a_classic_mark_20_but_3000_bytes_stay() {
        assert_eq!(reduced(10_000.0, Congestion::Loss, &CALM), 7_000.0);
        assert_eq!(reduced(10_000.0, Congestion::Silence, &CALM), 7_000.0);
        assert_eq!(reduced(10_000.0, Congestion::ClassicMark, &CALM), 8_000.0);
        assert_eq!(reduced(3_100.0, Congestion::Loss, &CALM), 3_000.0);
    }

    // SCREAMV2-D11
    #[test]
    fn on_a_narrow_link_three_segments_stay_and_growth_is_one_of_them() {
        let mut window = window(3_000.0);
        window.set_segment(250.0, 1.0);
        window.limit(800.0);
        window.reduce(at(1_000), Congestion::Loss, &CALM);
        assert_eq!(window.size, 750.0);
        window.inflection = 1.0;
        window.grow(at(20_000), DataSize::from_bytes(750), &CALM);
        assert_eq!(window.size, 1_015.0, "a segment and 2 %");
        window.set_segment(250.0, 0.3);
        window.grow(at(20_000), DataSize::from_bytes(1_000), &CALM);
        assert!((window.size - 1_094.5).abs() < 1.0, "a third of it: {}", window.size);
    }

    // SCREAMV2-D9: the usual report comes after four times as long as this one.
    #[test]
    fn a_report_that_comes_sooner_than_usual_does_not_end_growth() {
        let wait = TimeDelta::from_secs(4);
        let in_flight = DataSize::from_bytes(2_500);
        let rare = Conditions { wait, max_in_flight: in_flight, most: 15_000.0, ..CALM };
        assert_eq!(growth(1.0, None, &rare), 0.0);
        assert_eq!(growth(1.0, None, &Conditions { carried: 12_000.0, ..rare }), 2_000.0);
    }

    // [SCREAMV2 §4.2.2.1]
    #[test]
    fn real_and_virtual_marks_take_half_of_alpha_in_a_round_trip() {
        for mark in [Congestion::L4sMark, Congestion::VirtualMark] {
            let short = Conditions { rtt: TimeDelta::from_millis(10), ..QUEUED };
            assert_eq!(reduced(10_000.0, mark(0.5), &short), 7_500.0);
            // A round trip of 100 ms allows four reactions.
            assert_eq!(reduced(10_000.0, mark(0.5), &QUEUED), 9_375.0);
        }
    }

    // [SCREAMV2 §4.2.2.1]
    #[test]
    fn queueless_marks_weigh_a_quarter_at_the_inflection_and_with_jitter() {
        let taken = |inflection: f64, jitter_scale, delay_fraction| {
            let mut window = ReferenceWindow { inflection, has_grown: false, ..window(10_000.0) };
            let at_rest = Conditions { jitter_scale, delay_fraction, ..CALM };
            window.reduce(at(1_000), Congestion::L4sMark(0.8), &at_rest);
            10_000.0 - window.size
        };
        assert_eq!(taken(1.0, 1.0, 0.0), 1_000.0);
        assert_eq!(taken(10_000.0, 1.0, 0.0), 250.0);
        assert_eq!(taken(1.0, 0.0, 0.0), 250.0);
        assert_eq!(taken(10_000.0, 0.0, 0.25), 1_000.0, "the delay is a quarter of its target");
    }

    // [SCREAMV2 §4.2.2.1]
    #[test]
    fn a_mark_after_100_peaceful_round_trips_takes_the_window_to_the_flight() {
        let small = Conditions { previous_in_flight: DataSize::from_bytes(5_000), ..QUEUED };
        let after = |millis| {
            let mut window = window(10_000.0);
            window.reduce(at(millis), Congestion::L4sMark(0.0), &small);
            window.size
        };
        assert_eq!([after(10_000), after(10_001)], [10_000.0, 5_000.0]);
        let short = Conditions { rtt: TimeDelta::from_millis(5), ..CALM };
        assert_eq!(short.long_rtt(), TimeDelta::from_millis(25));
    }

    // [SCREAMV2 §4.5.3]
    #[test]
    fn a_target_that_fell_by_its_round_trip_needs_a_quarter_of_the_reduction() {
        let low = Conditions { target_is_low: true, ..QUEUED };
        assert_eq!(reduced(16_000.0, Congestion::VirtualMark(1.0), &low), 15_500.0);
        assert_eq!(reduced(16_000.0, Congestion::VirtualMark(1.0), &QUEUED), 14_000.0);
    }

    // [SCREAMV2 §4.2.1]
    #[test]
    fn a_reaction_is_possible_again_after_25_ms_or_a_round_trip() {
        let window = window(10_000.0);
        let may = |millis, rtt| {
            let rtt = TimeDelta::from_millis(rtt);
            window.may_react(at(millis), rtt, rtt)
        };
        assert_eq!(
            [may(24, 100), may(25, 100), may(9, 10), may(10, 10)],
            [false, true, false, true]
        );
    }

    // SCREAMV2-D10
    #[test]
    fn over_a_long_round_trip_a_window_grows_by_more_and_reacts_once_in_a_round_trip() {
        let long = TimeDelta::from_millis(600);
        let long = Conditions { rtt: long, path: long, drains: 0.2, ..QUEUED };
        // A tenth of what was acknowledged is less than the draft's 120 bytes.
        assert_eq!(growth(1.0, None, &long), 120.0);
        let mut large = window(100_000.0);
        large.grow(at(20_000), DataSize::from_bytes(1_000), &long);
        // 30 bytes by the draft, four times as many by the round trip, and at most 100.
        assert_eq!(large.size, 100_100.0);
        assert_eq!(reduced(10_000.0, Congestion::VirtualMark(1.0), &long), 8_000.0);
        let may = |ms| window(10_000.0).may_react(at(ms), long.rtt, long.path);
        assert_eq!([may(599), may(600)], [false, true]);
        // A long queue is no long path.
        let queued = Conditions { path: TimeDelta::from_millis(100), ..long };
        assert_eq!(growth(1.0, None, &queued), 120.0);
    }

    // [SCREAMV2 §4.2.2.1]
    #[test]
    fn the_inflection_point_is_the_window_at_the_end_of_growth() {
        let mut window = window(10_000.0);
        for millis in [1_000, 1_100] {
            window.reduce(at(millis), Congestion::Loss, &CALM);
            assert_eq!(window.inflection, 10_000.0);
        }
        window.grow(at(1_200), DataSize::from_bytes(1_000), &CALM);
        let grown = window.size;
        window.reduce(at(1_300), Congestion::Loss, &CALM);
        assert_eq!(window.inflection, grown);
    }

    /// Growth of a window of 10 kB by 1000 acknowledged bytes, in bytes.
    fn growth(inflection: f64, congested: Option<Timestamp>, conditions: &Conditions) -> f64 {
        let mut window = ReferenceWindow { inflection, congested, ..window(10_000.0) };
        window.grow(at(20_000), DataSize::from_bytes(1_000), conditions);
        libm::round((window.size - 10_000.0) * 1e6) / 1e6
    }

    // [RFC8699 §5.3.1]
    #[test]
    fn a_share_moves_window_and_inflection_point_alike_and_3000_bytes_stay() {
        let mut window = ReferenceWindow { inflection: 8_000.0, ..window(10_000.0) };
        window.scale(0.5);
        assert_eq!((window.size, window.inflection), (5_000.0, 4_000.0));
        window.scale(0.5);
        assert_eq!(window.size, 3_000.0);
    }

    // [SCREAMV2 §4.2.2.2]
    #[test]
    fn growth_is_a_segment_and_two_percent_a_round_trip() {
        assert_eq!(growth(1.0, None, &CALM), 120.0);
        assert_eq!(growth(1.0, Some(at(10_000)), &CALM), 120.0, "100 round trips later");
        assert_eq!(growth(1.0, Some(at(15_000)), &CALM), 110.0, "50 round trips later");
        assert_eq!(growth(1.0, Some(at(20_000)), &CALM), 100.0);
        let short = Conditions { rtt: TimeDelta::from_millis(5), ..CALM };
        assert_eq!(growth(1.0, None, &short), 24.0, "a fifth of the virtual round trip");
    }

    // [SCREAMV2 §4.2.2.2]
    #[test]
    fn congestion_that_is_not_reacted_to_makes_growth_careful_too() {
        let mut window = ReferenceWindow { inflection: 1.0, ..window(10_000.0) };
        window.on_congestion_detected(at(15_000));
        window.grow(at(20_000), DataSize::from_bytes(1_000), &CALM);
        assert!((window.size - 10_110.0).abs() < 1e-6);
    }

    // [SCREAMV2 §4.2.2.2]
    #[test]
    fn growth_is_slow_next_to_the_inflection_point_and_with_jitter() {
        assert_eq!(growth(10_000.0, None, &CALM), 25.5, "a quarter, and a tenth of the 2 %");
        // A 16th below it: (8 / 16)^2.
        assert_eq!(growth(10_000.0 / 0.9375, None, &CALM), 26.25);
        let jitter = Conditions { jitter_scale: 0.0, ..CALM };
        assert_eq!(growth(1.0, None, &jitter), 12.0);
    }

    // [SCREAMV2 §4.2.2.2]
    #[test]
    fn growth_ends_at_one_and_a_half_times_the_flight_and_a_segment() {
        let of = |bytes| Conditions { max_in_flight: DataSize::from_bytes(bytes), ..CALM };
        assert_eq!(growth(1.0, None, &of(6_080)), 120.0);
        assert_eq!(growth(1.0, None, &of(6_079)), 0.0);
    }
}
