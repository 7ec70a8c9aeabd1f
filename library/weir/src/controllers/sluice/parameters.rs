//! The constants of the controller, in one place: experiments change one at a time.

use crate::controllers::silence::MISSED_REPORTS;
use crate::units::TimeDelta;

/// A type of constants. As a number, a time is in milliseconds.
#[cfg(feature = "experiments")]
trait Constant: Copy {
    fn number(self) -> f64;
    fn of_number(number: f64) -> Self;
}

#[cfg(feature = "experiments")]
impl Constant for f64 {
    fn number(self) -> f64 {
        self
    }
    fn of_number(number: f64) -> Self {
        number
    }
}

#[cfg(feature = "experiments")]
impl Constant for TimeDelta {
    fn number(self) -> f64 {
        self.as_millis_f64()
    }
    fn of_number(number: f64) -> Self {
        Self::from_millis_f64(number)
    }
}

/// Declares the constants once: their fields, their documented values, and access by name.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ident = $value:expr;)+) => {
        /// The constants. `docs/reference/controllers/sluice.md` gives the reason of each one.
        ///
        /// They are for experiments: no application needs other values.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Parameters {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl Parameters {
            /// The documented values.
            pub const DEFAULT: Self = Self { $($name: $value,)+ };
        }

        #[cfg(feature = "experiments")]
        impl Parameters {
            /// Names of all constants, as [`get`](Self::get) and [`set`](Self::set) take them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The constant of this name, times in milliseconds. `None` if there is none.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name.number()),)+
                    _ => None,
                }
            }

            /// Sets the constant of this name, times in milliseconds. Returns whether it exists.
            #[must_use]
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = <$type as Constant>::of_number(value),)+
                    _ => return false,
                }
                true
            }
        }
    };
}

parameters! {
    /// `Q_MIN`: the part of the reference delay that does not depend on the path.
    q_min: TimeDelta = TimeDelta::from_millis(5);
    /// `Q_MAX`: the largest reference delay, without the time of a packet.
    q_max: TimeDelta = TimeDelta::from_millis(45);
    /// `K_NOISE`: weight of the delay noise in the reference delay.
    k_noise: f64 = 1.5;
    /// `K_PACKET`: weight of the time of one packet at the current rate in the reference delay. It
    /// makes flows equal that share a queue.
    k_packet: f64 = 2.0;
    /// `Q_PACKET`: largest part of the reference delay that comes from the time of a packet.
    q_packet: TimeDelta = TimeDelta::from_millis(30);
    /// `Q_PACKET_RR`: the same where receiver reports alone give the delay.
    q_packet_round_trip: TimeDelta = TimeDelta::from_millis(150);
    /// `MARGIN`: a standing queue this far above the reference delay is drained.
    margin: TimeDelta = TimeDelta::from_millis(10);
    /// `T_QUEUE`: time in which a deviation of the queue from the reference is corrected.
    t_queue: TimeDelta = TimeDelta::from_millis(300);
    /// `CUT_MAX`: largest share of the delivered rate by which a drain undercuts it.
    cut_max: f64 = 0.5;
    /// `T_LEVEL`: time constant with which the level follows the delivered rate while a queue
    /// stands.
    t_level: TimeDelta = TimeDelta::from_millis(300);
    /// `W_LEVEL`: window of the delivered rate that the level follows.
    w_level: TimeDelta = TimeDelta::from_millis(500);
    /// `W_DRAIN`: window of the delivered rate in a drain. A fall of the capacity must show soon.
    w_drain: TimeDelta = TimeDelta::from_millis(300);
    /// `G_START`: growth in the start, per second (natural logarithm).
    g_start: f64 = 1.6;
    /// `G_CLIMB`: fastest growth after the start, per second.
    g_climb: f64 = 0.9;
    /// `G_TRACK`: growth when the queue first falls below the reference, per second.
    g_track: f64 = 0.03;
    /// `G_RECOVER`: least growth below the level before the last drain, per second.
    g_recover: f64 = 0.3;
    /// `T_DOUBLE`: time without a queue in which the growth doubles.
    t_double: TimeDelta = TimeDelta::from_millis(250);
    /// `LIMITED`: the target grows no further than this multiple of the rate that is sent.
    limited: f64 = 1.5;
    /// `USED`: a source that sends less than this share of the level says nothing about the
    /// capacity while a queue stands.
    used: f64 = 0.7;
    /// `T_BASE`: time without a sight of the empty path after which the base is tested.
    t_base: TimeDelta = TimeDelta::from_secs(10);
    /// `T_MOVED`: the same after the delay rose at once.
    t_moved: TimeDelta = TimeDelta::from_secs(1);
    /// `MOVED_NOISE`: with more noise, a rise of the delay at once says nothing about the path.
    moved_noise: TimeDelta = TimeDelta::from_millis(2);
    /// `MOVED_FALL`: share of what a base test drains that a queue must have fallen by.
    moved_fall: f64 = 0.3;
    /// `T_CUT`: the path was away if nothing arrived of what was sent over this time, ...
    t_cut: TimeDelta = TimeDelta::from_millis(150);
    /// `CUT_PACKETS`: ... and at least so many packets were lost.
    cut_packets: f64 = 5.0;
    /// `TRIAL_RATE`: share of the delivered rate that a trial of a policer sends.
    trial_rate: f64 = 0.85;
    /// `TRIAL_LOSSES`: bursts of losses that must be missing in a trial.
    trial_losses: f64 = 5.0;
    /// `T_TRIAL`: a trial that would last longer is not made.
    t_trial: TimeDelta = TimeDelta::from_secs(3);
    /// `T_TRIAL_WAIT`: time without a trial after one that failed. It doubles each time.
    t_trial_wait: TimeDelta = TimeDelta::from_secs(1);
    /// `POLICED`: share of a policer's rate that is sent.
    policed: f64 = 0.97;
    /// `G_POLICED`: growth above that, per second.
    g_policed: f64 = 0.02;
    /// `POLICED_GONE`: a level this many times the rate of a policer shows that it is gone.
    policed_gone: f64 = 1.25;
    /// `TEST_RATE`: share of the delivered rate that a base test sends.
    test_rate: f64 = 0.75;
    /// `TEST_EXTRA`: a base test lasts this long beyond a round trip.
    test_extra: TimeDelta = TimeDelta::from_millis(100);
    /// `T_RIVAL`: a queue that stands this long, whatever is drained, belongs to a rival.
    t_rival: TimeDelta = TimeDelta::from_secs(3);
    /// `Q_RIVAL`: how far above the reference such a queue stands.
    q_rival: TimeDelta = TimeDelta::from_millis(25);
    /// `D_RIVAL`: the same in bytes at the current rate, if that takes longer: a rival has at least
    /// a packet of its own there.
    d_rival: f64 = 400.0;
    /// `T_SUSPECT`: after this time of crowding a drain falls no further than to `SHARE_HELD`.
    t_suspect: TimeDelta = TimeDelta::from_secs(2);
    /// `SHARE_HELD`: share of the level before the crowding that a flow keeps beside a rival, until
    /// it competes and when it begins to.
    share_held: f64 = 0.2;
    /// `RELIEF`: seconds of crowding that a second without takes back.
    relief: f64 = 0.4;
    /// `Q_COMPETE`: no rival is followed into a queue longer than this.
    q_compete: TimeDelta = TimeDelta::from_millis(1_200);
    /// `A_COMPETE`: additive increase in competition, packets per round trip.
    a_compete: f64 = 1.5;
    /// `G_COMPETE`: fastest growth in competition, per second: a narrow link does not have the
    /// additive increase of a wide one.
    g_compete: f64 = 0.6;
    /// `B_COMPETE`: factor after a loss in competition.
    b_compete: f64 = 0.8;
    /// `T_YIELD`: competition ends after this time without a standing queue.
    t_yield: TimeDelta = TimeDelta::from_secs(1);
    /// `T_TEST`: a test of the rival lasts this long beyond a round trip.
    t_test: TimeDelta = TimeDelta::from_millis(1_000);
    /// `LOSS_EXCESS`: loss at a standing queue that is no longer chance.
    loss_excess: f64 = 0.02;
    /// `LOSS_MAX`: loss above this ratio is congestion, whatever the queue.
    loss_max: f64 = 0.2;
    /// `LOSS_BASE`: losses up to this many times the smallest ratio without a standing queue belong
    /// to the path, even above `LOSS_MAX`.
    loss_base: f64 = 2.0;
    /// `B_LOSS`: factor of the reference delay and of the level after congestive loss.
    b_loss: f64 = 0.85;
    /// `PACING`: pacing rate relative to the target. Above 1, the packets of a frame are a train.
    pacing: f64 = 1.4;
    /// `S_PACING`: the pacing falls towards that of a drain below this scale of the reference
    /// delay: a short queue drops the ends of trains.
    s_pacing: f64 = 0.4;
    /// `PACING_DRAIN`: the same in a drain.
    pacing_drain: f64 = 1.05;
    /// `PACING_L4S`: the same under L4S, where a burst is marked.
    pacing_l4s: f64 = 1.05;
    /// `A_MARKED`: additive increase after a mark under L4S, packets per round trip.
    a_marked: f64 = 0.5;
    /// `G_MARKED`: fastest of this growth, per second.
    g_marked: f64 = 6.0;
    /// `T_MARKED`: time after a mark for which the growth is additive.
    t_marked: TimeDelta = TimeDelta::from_secs(2);
    /// `G_L4S`: fastest growth under L4S above what was reached, per round trip.
    g_l4s: f64 = 0.01;
    /// `SHARE_FAIR`: share of the capacity up to which the flow does not give way.
    share_fair: f64 = 0.55;
    /// `SHARE_ALONE`: share of the capacity from which the flow counts as alone.
    share_alone: f64 = 0.9;
    /// `SHARE_SCALE`: scale of the reference delay of a flow that gives way.
    share_scale: f64 = 0.3;
    /// `SHARE_GROWTH`: scale of the fastest growth of a flow that gives way.
    share_growth: f64 = 0.2;
    /// `SHARE_CUT`: part of its rate that a flow that gives way leaves to others, per second.
    share_cut: f64 = 0.03;
    /// `T_LEFT`: after this time without a queue nobody else wants the capacity.
    t_left: TimeDelta = TimeDelta::from_secs(1);
    /// `PATIENCE`: feedback is missing this long after it was due.
    patience: TimeDelta = TimeDelta::from_millis(500);
    /// `STEP_MAX`: longest time between two reports that counts for a step of the rate.
    step_max: TimeDelta = TimeDelta::from_millis(200);
    /// `MISSED_REPORTS`: feedback is missing after this many times the usual interval.
    missed_reports: f64 = MISSED_REPORTS;
    /// `LATE_REPORTS`: feedback of a radio link is late after this many times the usual interval.
    late_reports: f64 = 2.5;
    /// `T_OFTEN`: reports that come more often than this show a queue soon enough.
    t_often: TimeDelta = TimeDelta::from_millis(350);
    /// `T_LOOP`: what is too much shows soon enough in round trips up to this one.
    t_loop: TimeDelta = TimeDelta::from_millis(300);
    /// `Q_REPORT`: queue that the growth may make until the next of rare reports shows it.
    q_report: TimeDelta = TimeDelta::from_millis(50);
    /// `Q_STANDS`: a standing queue above this is one for the fit of the own part.
    q_stands: TimeDelta = TimeDelta::from_millis(2);
    /// `WAIT_NOISE`: weight of the delay noise in the delay that is no wait in a queue.
    wait_noise: f64 = 0.5;
    /// `T_PERIOD`: length of one of the two periods whose minima are the base delay.
    t_period: TimeDelta = TimeDelta::from_secs(15);
    /// `FLOOR_FALL`: share of what a base test drains that a longer queue falls by.
    floor_fall: f64 = 0.7;
    /// `TREND_MAX`: fastest change of the delay of the empty path, in seconds a second.
    trend_max: f64 = 0.0015;
    /// `DRIFT_MAX`: the most that a receiver's clock gains, in seconds a second.
    drift_max: f64 = 0.002;
    /// `Q_SIGHT`: two sights of the empty path differ by so much, beside the noise, by chance.
    q_sight: TimeDelta = TimeDelta::from_micros(500);
    /// `NOISE_GAIN`: share of a new difference in the delay noise.
    noise_gain: f64 = 1.0 / 64.0;
    /// `NOISE_STEP_MAX`: largest difference of two buckets that counts as noise. More is a change
    /// of the path.
    noise_step_max: TimeDelta = TimeDelta::from_millis(30);
    /// `TOP_DECAY`: share of the longest delay of late that is left after another report.
    top_decay: f64 = 0.995;
    /// `RECOVERED`: share of the level before a drain up to which the level recovers fast.
    recovered: f64 = 0.9;
    /// `T_STEPPED`: a path change is believed within this time after a step of the delay.
    t_stepped: TimeDelta = TimeDelta::from_secs(10);
    /// `RTT_COMPETE_MIN`: shortest round-trip time by which competition grows.
    rtt_compete_min: TimeDelta = TimeDelta::from_millis(20);
    /// `RTT_COMPETE_MAX`: longest round-trip time by which competition grows.
    rtt_compete_max: TimeDelta = TimeDelta::from_millis(300);
    /// `G_SCALE`: growth of the scale of the reference delay after congestive losses, per second.
    g_scale: f64 = 0.02;
    /// `SCALE_MIN`: smallest scale of the reference delay.
    scale_min: f64 = 0.1;
    /// `Q_EMPTY`: a queue this short, or a quarter of the reference, is a sight of the empty path.
    q_empty: TimeDelta = TimeDelta::from_millis(3);
    /// `FELL`: a delivered rate below this part of the level is a fall of the capacity.
    fell: f64 = 0.8;
    /// `LEVEL_MAX`: the level may exceed the largest target by this factor.
    level_max: f64 = 1.1;
    /// `DRAINING`: a queue that falls by this much in a second is being drained.
    draining: TimeDelta = TimeDelta::from_millis(20);
    /// `Q_NEAR`: deviation of a queue that does not fall, beside its noise.
    q_near: TimeDelta = TimeDelta::from_millis(6);
    /// `T_FLAT`: time for which a delay must not change to be that of a longer path.
    t_flat: TimeDelta = TimeDelta::from_millis(800);
    /// `Q_FLAT`: change of a delay, beside its noise, that is none.
    q_flat: TimeDelta = TimeDelta::from_millis(15);
    /// `T_FIRST_TEST`: time from the beginning of competition to its first test.
    t_first_test: TimeDelta = TimeDelta::from_secs(3);
    /// `T_LAST_TEST`: longest time between two tests.
    t_last_test: TimeDelta = TimeDelta::from_secs(48);
    /// `T_SAME_RIVAL`: a rival that is back within this time is the same one.
    t_same_rival: TimeDelta = TimeDelta::from_secs(15);
    /// `LOSS_CHANCE`: the ratios of a path that loses at random differ by up to this share of them.
    loss_chance: f64 = 0.5;
    /// `ALPHA_GAIN`: share of a new round trip in the smoothed ratio of marks under L4S
    /// [SCREAMV2 §4.2.1.3].
    alpha_gain: f64 = 1.0 / 16.0;
    /// `SHARE_FAIR_RAMP`: the surplus grows from 0 to 1 over this much above the fair part.
    share_fair_ramp: f64 = 0.2;
    /// `SHARE_ALONE_RAMP`: the surplus falls from 1 to 0 over this much below the part of a flow
    /// that is alone.
    share_alone_ramp: f64 = 0.05;
    /// `LONG_WINDOW`: packets over which the own part of a radio link is taken.
    long_window: f64 = 1_000.0;
    /// `SOON_MARGIN`: that own part is at most this much above the one of S-26.
    soon_margin: f64 = 0.25;
    /// `T_BIN`: busy time of a link over which one rate is taken.
    t_bin: TimeDelta = TimeDelta::from_millis(45);
    /// `T_OUTAGE`: a busy link that sends nothing for longer than this was away.
    t_outage: TimeDelta = TimeDelta::from_millis(150);
    /// `T_AWAY`: an outage counts as an absence of at most this time.
    t_away: TimeDelta = TimeDelta::from_millis(500);
    /// `T_ABSENCE`: time over which the absence of the link is taken.
    t_absence: TimeDelta = TimeDelta::from_secs(1);
    /// `RADIO_GAIN`: share of a new change of the rate in the variation.
    radio_gain: f64 = 1.0 / 32.0;
    /// `RADIO_VARIATION`: variation up to which a link is wired.
    radio_variation: f64 = 0.12;
    /// `RADIO_VARIATION_RAMP`: the belief grows from 0 to 1 over this much above it.
    radio_variation_ramp: f64 = 0.06;
    /// `RADIO_OWN`: own part of the capacity up to which the variation may be that of others.
    radio_own: f64 = 0.85;
    /// `RADIO_OWN_RAMP`: the belief grows from 0 to 1 over this much above it.
    radio_own_ramp: f64 = 0.1;
    /// `RADIO_SCALE`: scale of the reference up to which losses say that others are there.
    radio_scale: f64 = 0.3;
    /// `T_SURE`: variation and own part must speak for a radio link for this long.
    t_sure: TimeDelta = TimeDelta::from_secs(4);
    /// `T_RADIO`: time constant with which the level follows the rate of a radio link.
    t_radio: TimeDelta = TimeDelta::from_millis(150);
    /// `CUT_RADIO`: `CUT_MAX` of a radio link.
    cut_radio: f64 = 1.0;
    /// `T_CALM`: after this time without a queue the level grows by `G_RADIO`.
    t_calm: TimeDelta = TimeDelta::from_millis(100);
    /// `G_RADIO`: growth of the level on a radio link without a queue, per second.
    g_radio: f64 = 2.0;
    /// `G_RETURN`: fastest growth of the rate on a radio link, per second.
    g_return: f64 = 40.0;
    /// `T_WINDOW`: queue that the data in flight may make on a radio link.
    t_window: TimeDelta = TimeDelta::from_millis(25);
    /// `K_WINDOW`: mean deviations by which feedback may be late before the data in flight ends.
    k_window: f64 = 3.0;
    /// `D_WINDOW`: bytes that may be in flight beyond that.
    d_window: f64 = 2_500.0;
    /// `T_SENDER`: time in which what waits in the sender should leave.
    t_sender: TimeDelta = TimeDelta::from_millis(100);
    /// `T_PAUSE`: feedback of a radio link is late this long after it was due.
    t_pause: TimeDelta = TimeDelta::from_millis(100);
    /// `LIMITED_RADIO`: `LIMITED` of a radio link.
    limited_radio: f64 = 3.0;
}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_constant_is_set_by_its_name_and_no_other_changes() {
        for name in Parameters::NAMES {
            let mut changed = Parameters::DEFAULT;
            assert!(changed.set(name, 7.0), "{name}");
            assert_eq!(changed.get(name), Some(7.0), "{name}");
            for other in Parameters::NAMES.iter().filter(|other| *other != name) {
                assert_eq!(changed.get(other), Parameters::DEFAULT.get(other), "{name}, {other}");
            }
        }
        assert!(!Parameters::DEFAULT.clone().set("q_mim", 7.0));
        assert_eq!(Parameters::DEFAULT.get("q_mim"), None);
    }
}
