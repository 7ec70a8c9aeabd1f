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

/// A rule, or a part of one, that no constant switches off, for experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    /// S-8: the additive growth after a mark.
    Marked,
    /// S-9. Without it the flow begins in track.
    Start,
    /// S-13: the rate is what the level or the delivered rate is.
    Correction,
    /// S-17: the tests of the rival.
    RivalTests,
    /// S-19: the sign of a path that is longer both ways.
    LongerPath,
    /// S-19: the sign of a path that was away.
    Cut,
    /// S-20.
    BaseTest,
    /// S-21: the steps of the rise.
    Steps,
    /// S-31.
    Window,
    /// S-32.
    SenderWait,
    /// S-36.
    Policer,
    /// S-37.
    ReceiverClock,
    /// S-38.
    Trend,
}

/// The rules in the order of their switches.
#[cfg(feature = "experiments")]
const SWITCHES: [&str; 13] = [
    "S-8-marked",
    "S-9",
    "S-13",
    "S-17",
    "S-19-longer",
    "S-19-cut",
    "S-20",
    "S-21-steps",
    "S-31",
    "S-32",
    "S-36",
    "S-37",
    "S-38",
];

/// The place of the switch of a rule, such as `S-9`.
#[cfg(feature = "experiments")]
fn switch_of(rule: &str) -> Option<usize> {
    SWITCHES.iter().position(|known| *known == rule)
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
            #[cfg(feature = "experiments")]
            off: [bool; SWITCHES.len()],
        }

        impl Parameters {
            /// The documented values.
            pub const DEFAULT: Self = Self {
                $($name: $value,)+
                #[cfg(feature = "experiments")]
                off: [false; SWITCHES.len()],
            };
        }

        #[cfg(feature = "experiments")]
        impl Parameters {
            /// Names of all constants, as [`get`](Self::get) and [`set`](Self::set) take them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The constant of this name, times in milliseconds, or whether a rule is on. `None` if
            /// there is none.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name.number()),)+
                    rule => Some(f64::from(u8::from(!self.off[switch_of(rule)?]))),
                }
            }

            /// Sets the constant of this name, times in milliseconds. A rule such as `S-9` that no
            /// constant switches off is off with 0. Returns whether there is such a name.
            #[must_use]
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = <$type as Constant>::of_number(value),)+
                    rule => match switch_of(rule) {
                        Some(switch) => self.off[switch] = value == 0.0,
                        None => return false,
                    },
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
    /// `MARGIN`: a standing queue this far above the reference delay is drained. A delay that
    /// varies by less, beside its noise, stays the same.
    margin: TimeDelta = TimeDelta::from_millis(10);
    /// `CUT_MAX`: largest share of the delivered rate by which a drain undercuts it. A base test
    /// takes half of it, and a drain of a radio link all.
    cut_max: f64 = 0.5;
    /// `W_LEVEL`: window of the delivered rate that the level follows. Feedback is missing this
    /// long after it was due; a longer outage of a radio link counts as one of this time.
    w_level: TimeDelta = TimeDelta::from_millis(500);
    /// `G_START`: growth in the start, and of the level of a radio link without a queue, per second
    /// (natural logarithm).
    g_start: f64 = 1.6;
    /// `G_CLIMB`: fastest growth after the start, per second.
    g_climb: f64 = 0.9;
    /// `G_TRACK`: growth when the queue first falls below the reference, per second. A flow that
    /// gives way leaves as much to others.
    g_track: f64 = 0.03;
    /// `G_RECOVER`: least growth below the level before the last drain, per second.
    g_recover: f64 = 0.3;
    /// `T_DOUBLE`: time without a queue in which the growth doubles.
    t_double: TimeDelta = TimeDelta::from_millis(250);
    /// `LIMITED`: the target grows no further than this multiple of the rate that is sent, or twice
    /// this multiple on a radio link.
    limited: f64 = 1.5;
    /// `USED`: a source that sends less than this share of the level says nothing about the
    /// capacity while a queue stands.
    used: f64 = 0.7;
    /// `MOVED_FALL`: share of what a base test drains that a queue must fall by, and that a queue
    /// which is longer than that may be short of.
    moved_fall: f64 = 0.3;
    /// `LOSSES`: so many losses are no chance, neither if they are in a row nor if they are
    /// missing.
    losses: f64 = 5.0;
    /// `POLICED`: share of a policer's rate that is sent.
    policed: f64 = 0.97;
    /// `T_RIVAL`: a queue that stands this long, whatever is drained, belongs to a rival. A rival
    /// is tested as often, and what makes losses must show in this time.
    t_rival: TimeDelta = TimeDelta::from_secs(3);
    /// `Q_RIVAL`: a queue this far above the reference is not the flow's own wish. The data in
    /// flight may make it on a radio link.
    q_rival: TimeDelta = TimeDelta::from_millis(25);
    /// `D_RIVAL`: the same in bytes at the current rate, if that takes longer: a rival has at least
    /// a packet of its own there.
    d_rival: f64 = 400.0;
    /// `SHARE_KEPT`: share that a flow keeps which leaves room: of the level before the crowding
    /// beside a rival that is not known yet, and of the fastest growth when it gives way.
    share_kept: f64 = 0.2;
    /// `RELIEF`: seconds of crowding that a second without takes back.
    relief: f64 = 0.4;
    /// `A_COMPETE`: additive increase in competition, packets per round trip.
    a_compete: f64 = 1.5;
    /// `G_COMPETE`: fastest growth in competition, per second: a narrow link does not have the
    /// additive increase of a wide one.
    g_compete: f64 = 0.6;
    /// `B_COMPETE`: factor after a loss in competition.
    b_compete: f64 = 0.8;
    /// `LOSS_EXCESS`: loss at a standing queue that is no longer chance.
    loss_excess: f64 = 0.02;
    /// `LOSS_MAX`: loss above this ratio is congestion, whatever the queue.
    loss_max: f64 = 0.2;
    /// `LOSS_BASE`: losses up to this many times the smallest ratio without a standing queue belong
    /// to the path, even above `LOSS_MAX`.
    loss_base: f64 = 2.0;
    /// `B_LOSS`: factor of the reference delay and of the level after congestive loss, and share of
    /// the delivered rate that a trial of a policer sends.
    b_loss: f64 = 0.85;
    /// `PACING`: pacing rate relative to the target. Above 1, the packets of a frame are a train.
    pacing: f64 = 1.4;
    /// `S_PACING`: the pacing falls towards that of a drain below this scale of the reference
    /// delay: a short queue drops the ends of trains.
    s_pacing: f64 = 0.4;
    /// `PACING_DRAIN`: the same in a drain, and under L4S, where a burst is marked.
    pacing_drain: f64 = 1.05;
    /// `A_MARKED`: additive increase after a mark under L4S, packets per round trip.
    a_marked: f64 = 0.5;
    /// `G_L4S`: fastest growth under L4S above what was reached, per round trip.
    g_l4s: f64 = 0.01;
    /// `SHARE_FAIR`: share of the capacity up to which the flow does not give way.
    share_fair: f64 = 0.55;
    /// `SHARE_ALONE`: share of the capacity from which the flow counts as alone. By chance, the own
    /// part of a flow that is alone is half as far below this as this is below 1.
    share_alone: f64 = 0.9;
    /// `SHARE_SCALE`: scale of the reference delay of a flow that gives way. Losses that leave no
    /// more of it say that others are there.
    share_scale: f64 = 0.3;
    /// `MISSED_REPORTS`: feedback is missing after this many times the usual interval.
    missed_reports: f64 = 4.0;
    /// `T_OFTEN`: reports that come more often than this show a queue soon enough.
    t_often: TimeDelta = TimeDelta::from_millis(350);
    /// `T_SOON`: two buckets: the effect of what was sent is in them. What waits in the sender of a
    /// radio link leaves in this time. A step of the rate is at most twice as long. No round trip
    /// counts with less than a quarter.
    t_soon: TimeDelta = TimeDelta::from_millis(100);
    /// `T_EFFECT`: what changes on a path, or what others do, has shown after this time, beyond
    /// doubt after twice of it, and on a radio link after four times. No rival is followed into a
    /// longer queue.
    t_effect: TimeDelta = TimeDelta::from_secs(1);
    /// `T_LOOP`: what a control loop takes: two to three times the delay of the usual one. A rate
    /// is taken over it where a fall must show soon, a deviation of the queue is corrected in it,
    /// and the level follows the delivered rate with it. A path that carries nothing for half of it
    /// was away.
    t_loop: TimeDelta = TimeDelta::from_millis(300);
    /// `Q_REPORT`: queue that the growth may make until the next of rare reports shows it.
    q_report: TimeDelta = TimeDelta::from_millis(50);
    /// `Q_STANDS`: a standing queue, or noise, above this is more than none.
    q_stands: TimeDelta = TimeDelta::from_millis(2);
    /// `CHANCE`: share of the noise, or of a loss ratio, that is chance.
    chance: f64 = 0.5;
    /// `T_PERIOD`: length of one of the two periods whose minima are the base delay. A rival that
    /// is back within this time is the same one.
    t_period: TimeDelta = TimeDelta::from_secs(15);
    /// `DRIFT_MAX`: the most that a receiver's clock gains, and that the delay of the empty path
    /// changes, in seconds a second.
    drift_max: f64 = 0.002;
    /// `Q_SIGHT`: two sights of the empty path differ by so much, beside the noise, by chance.
    q_sight: TimeDelta = TimeDelta::from_micros(750);
    /// `NOISE_GAIN`: share of a new difference in the delay noise.
    noise_gain: f64 = 1.0 / 64.0;
    /// `NOISE_STEP_MAX`: largest difference of two buckets that counts as noise. More is a change
    /// of the path.
    noise_step_max: TimeDelta = TimeDelta::from_millis(30);
    /// `TOP_DECAY`: share of the longest delay of late that is left after another report.
    top_decay: f64 = 0.995;
    /// `RECOVERED`: share of the level before a drain up to which the level recovers fast. By as
    /// much as that is below 1, the level may exceed the largest target.
    recovered: f64 = 0.9;
    /// `G_SCALE`: growth of what congestive losses have lowered, per second: the scale of the
    /// reference delay, and the level above the rate of a policer.
    g_scale: f64 = 0.02;
    /// `SCALE_MIN`: smallest scale of the reference delay.
    scale_min: f64 = 0.1;
    /// `Q_EMPTY`: a queue this short, or a quarter of the reference, is a sight of the empty path.
    /// One that does not fall varies by twice as much, beside its noise.
    q_empty: TimeDelta = TimeDelta::from_millis(3);
    /// `FELL`: a delivered rate below this part of the level is a fall of the capacity. A level of
    /// which a policer's rate is less than this part shows that the policer is gone.
    fell: f64 = 0.8;
    /// `DRAINING`: a queue that falls by this much in a second is being drained.
    draining: TimeDelta = TimeDelta::from_millis(20);
    /// `T_FLAT`: time for which a delay must not change to be that of a longer path.
    t_flat: TimeDelta = TimeDelta::from_millis(800);
    /// `ALPHA_GAIN`: share of a new round trip in the smoothed ratio of marks under L4S
    /// [SCREAMV2 §4.2.1.3].
    alpha_gain: f64 = 1.0 / 16.0;
    /// `SHARE_FAIR_RAMP`: the surplus grows from 0 to 1 over this much above the fair part.
    share_fair_ramp: f64 = 0.2;
    /// `RADIO_GAIN`: share of a new change of the rate in the variation.
    radio_gain: f64 = 1.0 / 32.0;
    /// `RADIO_VARIATION`: variation up to which a link is wired. At one and a half times as much it
    /// is a radio link.
    radio_variation: f64 = 0.12;
    /// `G_RETURN`: fastest growth of the rate on a radio link, per second.
    g_return: f64 = 40.0;
    /// `K_WINDOW`: mean deviations by which feedback may be late before the data in flight ends.
    k_window: f64 = 3.0;
}

impl Parameters {
    /// Share of the delivered rate by which a base test undercuts it.
    pub(super) const fn test_cut(&self) -> f64 {
        self.cut_max / 2.0
    }

    /// How far the own part of a flow that is alone varies by chance.
    pub(super) fn share_alone_ramp(&self) -> f64 {
        // Constants of an experiment may leave nothing.
        (1.0 - self.share_alone).max(f64::EPSILON) / 2.0
    }

    /// The level may exceed the largest target by this factor.
    pub(super) fn level_max(&self) -> f64 {
        2.0 - self.recovered
    }

    /// Longest time between two reports that counts for a step of the rate.
    pub(super) fn step_max(&self) -> TimeDelta {
        self.t_soon * 2
    }

    /// Shortest round-trip time by which growth counts.
    pub(super) fn rtt_min(&self) -> TimeDelta {
        self.t_soon / 4
    }

    /// A path that carries nothing for longer than this was away.
    pub(super) fn outage(&self) -> TimeDelta {
        self.t_loop / 2
    }

    /// Time without a sight of the empty path after which the base is tested: the memory of the
    /// base then has three sights. A step of the delay is remembered for as long.
    pub(super) fn t_base(&self) -> TimeDelta {
        self.t_period * 2 / 3
    }

    /// Whether a rule is on: always, except in experiments.
    #[inline]
    pub(super) const fn has(&self, rule: Switch) -> bool {
        #[cfg(feature = "experiments")]
        {
            !self.off[rule as usize]
        }
        #[cfg(not(feature = "experiments"))]
        {
            let _ = rule;
            true
        }
    }
}

// One number for all controllers; the table of the page has it as a value.
const _: () = assert!(Parameters::DEFAULT.missed_reports == MISSED_REPORTS);

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
