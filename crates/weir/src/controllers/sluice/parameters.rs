//! The constants of the controller, in one place: experiments change one at a time.

use crate::units::TimeDelta;

/// The constants. `docs/reference/controllers/sluice.md` gives the reason of each one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// `Q_MIN`: the part of the reference delay that does not depend on the path.
    pub q_min: TimeDelta,
    /// `Q_MAX`: the largest reference delay, without the time of a packet.
    pub q_max: TimeDelta,
    /// `K_NOISE`: weight of the delay noise in the reference delay.
    pub k_noise: f64,
    /// `K_PACKET`: weight of the time of one packet at the current rate in the reference delay. It
    /// makes flows equal that share a queue.
    pub k_packet: f64,
    /// `Q_PACKET`: largest part of the reference delay that comes from the time of a packet.
    pub q_packet: TimeDelta,
    /// `Q_PACKET_RR`: the same where receiver reports alone give the delay.
    pub q_packet_round_trip: TimeDelta,
    /// `MARGIN`: a standing queue this far above the reference delay is drained.
    pub margin: TimeDelta,
    /// `T_QUEUE`: time in which a deviation of the queue from the reference is corrected.
    pub t_queue: TimeDelta,
    /// `CUT_MAX`: largest share of the delivered rate by which a drain undercuts it.
    pub cut_max: f64,
    /// `T_LEVEL`: time constant with which the level follows the delivered rate while a queue
    /// stands.
    pub t_level: TimeDelta,
    /// `W_LEVEL`: window of the delivered rate that the level follows.
    pub w_level: TimeDelta,
    /// `W_DRAIN`: window of the delivered rate in a drain. A fall of the capacity must show soon.
    pub w_drain: TimeDelta,
    /// `G_START`: growth in the start, per second (natural logarithm).
    pub g_start: f64,
    /// `G_CLIMB`: fastest growth after the start, per second.
    pub g_climb: f64,
    /// `G_TRACK`: growth when the queue first falls below the reference, per second.
    pub g_track: f64,
    /// `G_RECOVER`: least growth below the level before the last drain, per second.
    pub g_recover: f64,
    /// `T_DOUBLE`: time without a queue in which the growth doubles.
    pub t_double: TimeDelta,
    /// `LIMITED`: the target grows no further than this multiple of the rate that is sent.
    pub limited: f64,
    /// `T_BASE`: time without a sight of the empty path after which the base is tested.
    pub t_base: TimeDelta,
    /// `TEST_RATE`: share of the delivered rate that a base test sends.
    pub test_rate: f64,
    /// `TEST_EXTRA`: a base test lasts this long beyond a round trip.
    pub test_extra: TimeDelta,
    /// `T_RIVAL`: a queue that stands this long, whatever is drained, belongs to a rival.
    pub t_rival: TimeDelta,
    /// `Q_RIVAL`: how far above the reference such a queue stands.
    pub q_rival: TimeDelta,
    /// `RELIEF`: seconds of crowding that a second without takes back.
    pub relief: f64,
    /// `Q_COMPETE`: no rival is followed into a queue longer than this.
    pub q_compete: TimeDelta,
    /// `A_COMPETE`: additive increase in competition, packets per round trip.
    pub a_compete: f64,
    /// `G_COMPETE`: fastest growth in competition, per second: a narrow link does not have the
    /// additive increase of a wide one.
    pub g_compete: f64,
    /// `B_COMPETE`: factor after a loss in competition.
    pub b_compete: f64,
    /// `T_YIELD`: competition ends after this time without a standing queue.
    pub t_yield: TimeDelta,
    /// `T_TEST`: a test of the rival lasts this long beyond a round trip.
    pub t_test: TimeDelta,
    /// `LOSS_EXCESS`: loss at a standing queue that is no longer chance.
    pub loss_excess: f64,
    /// `LOSS_MAX`: loss above this ratio is congestion, whatever the queue.
    pub loss_max: f64,
    /// `B_LOSS`: factor of the reference delay and of the level after congestive loss.
    pub b_loss: f64,
    /// `PACING`: pacing rate relative to the target. Above 1, the packets of a frame are a train.
    pub pacing: f64,
    /// `PACING_DRAIN`: the same in a drain and under L4S.
    pub pacing_drain: f64,
    /// `PACING_L4S`: the same under L4S, where a burst is marked.
    pub pacing_l4s: f64,
    /// `A_MARKED`: additive increase after a mark under L4S, packets per round trip.
    pub a_marked: f64,
    /// `T_MARKED`: time after a mark for which the growth is additive.
    pub t_marked: TimeDelta,
    /// `PATIENCE`: feedback is missing this long after it was due.
    pub patience: TimeDelta,
}

impl Parameters {
    /// The documented values.
    pub const DEFAULT: Self = Self {
        q_min: TimeDelta::from_millis(5),
        q_max: TimeDelta::from_millis(45),
        k_noise: 1.5,
        k_packet: 2.0,
        q_packet: TimeDelta::from_millis(30),
        q_packet_round_trip: TimeDelta::from_millis(150),
        margin: TimeDelta::from_millis(10),
        t_queue: TimeDelta::from_millis(300),
        cut_max: 0.5,
        t_level: TimeDelta::from_millis(300),
        w_level: TimeDelta::from_millis(500),
        w_drain: TimeDelta::from_millis(300),
        g_start: 1.6,
        g_climb: 0.9,
        g_track: 0.03,
        g_recover: 0.3,
        t_double: TimeDelta::from_millis(250),
        limited: 1.5,
        t_base: TimeDelta::from_secs(10),
        test_rate: 0.75,
        test_extra: TimeDelta::from_millis(100),
        t_rival: TimeDelta::from_secs(3),
        q_rival: TimeDelta::from_millis(25),
        relief: 0.4,
        q_compete: TimeDelta::from_millis(1_200),
        a_compete: 1.5,
        g_compete: 0.6,
        b_compete: 0.8,
        t_yield: TimeDelta::from_secs(1),
        t_test: TimeDelta::from_millis(1_000),
        loss_excess: 0.02,
        loss_max: 0.2,
        b_loss: 0.85,
        pacing: 1.4,
        pacing_drain: 1.05,
        pacing_l4s: 1.2,
        a_marked: 0.5,
        t_marked: TimeDelta::from_secs(2),
        patience: TimeDelta::from_millis(500),
    };
}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}
