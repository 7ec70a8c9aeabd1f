//! Closed-form models to check a cell against: saturation, and the capacity beside a hidden
//! terminal.
//!
//! [`Saturated`] is the model of [BIANCHI §IV] with a limit on the attempts per packet. Every
//! station always has a packet, all stations hear each other, and every attempt collides with the
//! same probability. [`DiscardedPacket`] and [`HiddenTerminal`] are the formulas of
//! [INTERDIGITAL §3.1], with the durations that the paper uses.
//!
//! [BIANCHI §IV]: https://doi.org/10.1109/49.840210
//! [INTERDIGITAL §3.1]: https://doi.org/10.1145/2713168.2713173

use weir::units::{Bitrate, DataSize, TimeDelta};

/// Stations that always have a packet to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturated {
    /// Number of stations.
    pub stations: u32,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Maximum number of attempts per packet.
    pub attempts: u32,
    /// Payload counted for a delivered packet.
    pub payload: DataSize,
    /// Duration of a slot without a transmission.
    pub slot: TimeDelta,
    /// How long the transmission of a delivered packet stops the backoff of the others.
    pub success: TimeDelta,
    /// How long a collision stops the backoff of the others.
    pub collision: TimeDelta,
}

/// Solution of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// `tau`: probability that a station transmits in a slot.
    pub transmission: f64,
    /// `p`: probability that an attempt collides.
    pub collision: f64,
    /// Share of packets that are dropped after the last attempt.
    pub drop_ratio: f64,
    /// Payload delivered by all stations together.
    pub throughput: Bitrate,
}

/// Bisection steps after which an interval of width 1 is as narrow as a float allows.
const BISECTIONS: u32 = 60;

/// The contention window of each attempt. It doubles up to `cw_max`.
fn contention_windows(cw_min: u32, cw_max: u32, attempts: u32) -> impl Iterator<Item = u32> {
    let double = move |cw: &u32| Some(cw.saturating_mul(2).saturating_add(1).min(cw_max));
    std::iter::successors(Some(cw_min), double).take(attempts as usize)
}

impl Saturated {
    /// Solves the model by bisection.
    pub fn solve(&self) -> Saturation {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            // If a station expects more collisions, it sends less often and causes fewer.
            let caused = self.collision_probability(self.transmission_probability(middle));
            if caused > middle { low = middle } else { high = middle }
        }
        let collision = low;
        let transmission = self.transmission_probability(collision);
        Saturation {
            transmission,
            collision,
            drop_ratio: libm::pow(collision, f64::from(self.attempts)),
            throughput: self.throughput(transmission),
        }
    }

    /// Mean attempts per packet divided by the mean slots they take, with the mean backoff of each
    /// window.
    fn transmission_probability(&self, collision: f64) -> f64 {
        let windows = contention_windows(self.cw_min, self.cw_max, self.attempts);
        let (mut attempts, mut slots, mut reached) = (0.0, 0.0, 1.0);
        for cw in windows {
            attempts += reached;
            slots += reached * (f64::from(cw) / 2.0 + 1.0);
            reached *= collision;
        }
        attempts / slots
    }

    /// Probability that at least one other station transmits in the same slot.
    fn collision_probability(&self, transmission: f64) -> f64 {
        1.0 - libm::pow(1.0 - transmission, f64::from(self.stations) - 1.0)
    }

    /// Mean payload per slot divided by the mean duration of a slot.
    fn throughput(&self, transmission: f64) -> Bitrate {
        let stations = f64::from(self.stations);
        let idle = libm::pow(1.0 - transmission, stations);
        let success = stations * transmission * libm::pow(1.0 - transmission, stations - 1.0);
        let mean_slot = idle * self.slot.as_secs_f64()
            + success * self.success.as_secs_f64()
            + (1.0 - idle - success) * self.collision.as_secs_f64();
        Bitrate::from_bps_f64(success * self.payload.as_bits() as f64 / mean_slot)
    }
}

/// Size of an acknowledgement in the paper, including headers of the physical layer
/// [INTERDIGITAL §3.1.1].
const PAPER_ACK: DataSize = DataSize::from_bytes(76);
/// Time per packet besides its bits: PLCP 40, SIFS 16, DIFS 34 us [INTERDIGITAL §3.1.1].
const PAPER_OVERHEAD: TimeDelta = TimeDelta::from_micros(40 + 16 + 34);
/// `aSlotTime` [INTERDIGITAL §3.1.1].
const PAPER_SLOT: TimeDelta = TimeDelta::from_micros(9);
/// Bitrate of the physical layer [INTERDIGITAL §3.1.1].
const PAPER_RATE: Bitrate = Bitrate::from_kbps(65_000);

/// `T(L)`: time that a packet of this size takes without backoff [INTERDIGITAL §3.1.1]. The
/// acknowledgement is sent at the rate of the data and has no preamble of its own.
///
/// [INTERDIGITAL §3.1.1]: https://doi.org/10.1145/2713168.2713173
pub fn packet_time(size: DataSize) -> TimeDelta {
    TimeDelta::from_secs_f64(packet_secs(size))
}

fn packet_secs(size: DataSize) -> f64 {
    (size + PAPER_ACK).as_bits() as f64 / PAPER_RATE.as_bps_f64() + PAPER_OVERHEAD.as_secs_f64()
}

/// `C`: bitrate of packets of this size sent back to back [INTERDIGITAL §3.1.2].
///
/// [INTERDIGITAL §3.1.2]: https://doi.org/10.1145/2713168.2713173
pub fn packet_capacity(size: DataSize) -> Bitrate {
    Bitrate::from_bps_f64(size.as_bits() as f64 / packet_secs(size))
}

/// A packet that is dropped after its last attempt, timed as in [INTERDIGITAL §3.1.1, Eq. 3].
///
/// [INTERDIGITAL §3.1.1, Eq. 3]: https://doi.org/10.1145/2713168.2713173
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiscardedPacket {
    /// `L`: its size.
    pub size: DataSize,
    /// `R`: number of attempts.
    pub attempts: u32,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// `p`: probability that other nodes hold the channel in a slot.
    pub busy: f64,
}

impl DiscardedPacket {
    /// `TD(R, L)`: mean time from the head of the queue until the drop
    /// [INTERDIGITAL §3.1.1, Eq. 3].
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 3]: https://doi.org/10.1145/2713168.2713173
    pub fn transmit_delay(&self) -> TimeDelta {
        self.with_slots(self.windows().map(u64::from).sum())
    }

    /// The same delay with windows of `CW + 1` slots. For p = 0 the paper prints 10.894 ms twice.
    /// That value follows from this variant; its Eq. 3 gives 10.8625 ms. Its other values follow
    /// from Eq. 3.
    pub fn transmit_delay_with_whole_windows(&self) -> TimeDelta {
        self.with_slots(self.windows().map(|cw| u64::from(cw) + 1).sum())
    }

    fn windows(&self) -> impl Iterator<Item = u32> {
        contention_windows(self.cw_min, self.cw_max, self.attempts)
    }

    fn with_slots(&self, slots: u64) -> TimeDelta {
        let packet = packet_time(self.size);
        let mean_slot = packet * self.busy + PAPER_SLOT;
        mean_slot * (slots as f64 / 2.0) + packet * i64::from(self.attempts)
    }
}

/// A hidden terminal that holds the channel for part of each period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HiddenTerminal {
    /// `T_htt`: time from one burst to the next.
    pub period: TimeDelta,
    /// `tau_b`: duration of a burst.
    pub busy: TimeDelta,
}

impl HiddenTerminal {
    /// The terminal of the paper: a video of 30 frames a second [INTERDIGITAL §3.1.2].
    ///
    /// [INTERDIGITAL §3.1.2]: https://doi.org/10.1145/2713168.2713173
    pub const PAPER: Self =
        Self { period: TimeDelta::from_millis(33), busy: TimeDelta::from_micros(10_750) };

    /// `rho`: share of the time in which the terminal holds the channel.
    pub fn utilization(&self) -> f64 {
        self.busy / self.period
    }

    /// `MC`: capacity beside the terminal, for packets of this size that arrive as a Poisson
    /// process [INTERDIGITAL §3.1.2, Eq. 8].
    ///
    /// [INTERDIGITAL §3.1.2, Eq. 8]: https://doi.org/10.1145/2713168.2713173
    pub fn capacity(&self, arrivals: Bitrate, size: DataSize) -> Bitrate {
        let expected = arrivals.as_bps_f64() / size.as_bits() as f64 * self.busy.as_secs_f64();
        let hit = (expected + libm::exp(-expected) - 1.0) / expected;
        self.capacity_with(arrivals, size, hit)
    }

    /// Lower bound of `MC` for any arrival process [INTERDIGITAL §3.1.2, Eq. 7]. The upper bound is
    /// `C`.
    ///
    /// [INTERDIGITAL §3.1.2, Eq. 7]: https://doi.org/10.1145/2713168.2713173
    pub fn least_capacity(&self, arrivals: Bitrate, size: DataSize) -> Bitrate {
        self.capacity_with(arrivals, size, 1.0)
    }

    /// The capacity for a given `hit`: the mean delay of a burst's first packet, as a share of the
    /// burst.
    fn capacity_with(&self, arrivals: Bitrate, size: DataSize, hit: f64) -> Bitrate {
        let capacity = packet_capacity(size);
        let taken = self.utilization() * capacity.as_bps_f64() * hit;
        capacity * (arrivals.as_bps_f64() / (arrivals.as_bps_f64() + taken))
    }
}

#[cfg(test)]
mod tests {
    use super::super::phy::{ACK, Band, ControlRate, DataRate, Mcs, mpdu_size};
    use super::*;

    /// Stations with best-effort defaults that send packets of this size at this MCS. All
    /// acknowledgements go at 24 Mbit/s, as in the independent solution that the expected figures
    /// come from.
    fn saturated(stations: u32, mcs: u8, packet: u64) -> Saturated {
        let (band, mcs) = (Band::GHZ_2_4, Mcs::new(mcs).unwrap());
        let packet = DataSize::from_bytes(packet);
        let data = DataRate::long_guard(mcs).duration(mpdu_size(packet), &band);
        let ack = ControlRate::Mbps24.duration(ACK, &band);
        let success = data + band.sifs + ack + band.aifs(3);
        Saturated {
            stations,
            cw_min: 15,
            cw_max: 1023,
            attempts: 7,
            payload: packet,
            slot: band.slot,
            success,
            collision: success,
        }
    }

    fn losers_resume_at_once(saturated: Saturated) -> Saturated {
        let band = Band::GHZ_2_4;
        let ack = ControlRate::Mbps24.duration(ACK, &band);
        Saturated { collision: saturated.success - band.sifs - ack, ..saturated }
    }

    fn assert_mbps(expected: [f64; 5], model: impl Fn(u32) -> Saturated) {
        for (stations, expected) in [1, 2, 5, 10, 20].into_iter().zip(expected) {
            let mbps = model(stations).solve().throughput.as_mbps_f64();
            assert!((mbps - expected).abs() < 0.006, "{stations}: {mbps}, not {expected}");
        }
    }

    // [BIANCHI §IV]
    #[test]
    fn saturation_throughput_is_that_of_an_independent_solution() {
        assert_mbps([31.37, 32.27, 30.51, 28.30, 25.78], |n| saturated(n, 7, 1500));
        let at_once = |n| losers_resume_at_once(saturated(n, 7, 1500));
        assert_mbps([31.37, 32.49, 31.13, 29.19, 26.89], at_once);
        assert_mbps([18.00, 17.84, 16.48, 15.15, 13.73], |n| saturated(n, 3, 1500));
        assert_mbps([5.74, 5.51, 4.98, 4.55, 4.11], |n| saturated(n, 0, 1500));
        assert_mbps([27.70, 28.79, 27.41, 25.49, 23.26], |n| saturated(n, 7, 1186));
    }

    #[test]
    fn collisions_and_drops_are_those_of_an_independent_solution() {
        let solved = [2, 3, 5, 8, 10, 20].map(|n| saturated(n, 7, 1500).solve());
        let collisions = solved.map(|solved| format!("{:.4}", solved.collision));
        assert_eq!(collisions, ["0.1046", "0.1781", "0.2722", "0.3530", "0.3892", "0.4959"]);
        let drops = solved.map(|solved| format!("{:.1e}", solved.drop_ratio));
        assert_eq!(drops, ["1.4e-7", "5.7e-6", "1.1e-4", "6.8e-4", "1.4e-3", "7.4e-3"]);
        assert_eq!(saturated(1, 7, 1500).solve().collision, 0.0);
    }

    fn paper(cw_min: u32, cw_max: u32, busy: f64) -> DiscardedPacket {
        let size = DataSize::from_bytes(1224);
        DiscardedPacket { size, attempts: 7, cw_min, cw_max, busy }
    }

    fn delay_ms(cw_min: u32, cw_max: u32, busy: f64) -> String {
        format!("{:.4}", paper(cw_min, cw_max, busy).transmit_delay().as_millis_f64())
    }

    // [INTERDIGITAL §3.1.1]
    #[test]
    fn a_packet_of_1224_bytes_takes_a_quarter_of_a_millisecond() {
        assert_eq!(packet_time(DataSize::from_bytes(1224)), TimeDelta::from_micros(250));
        let capacity = [1224, 1000, 800, 600, 400, 200].map(|size| {
            format!("{:.3}", packet_capacity(DataSize::from_bytes(size)).as_mbps_f64())
        });
        assert_eq!(capacity, ["39.168", "35.966", "32.353", "27.714", "21.537", "12.906"]);
    }

    // [INTERDIGITAL §3.1.1, Eq. 3]
    #[test]
    fn transmit_delays_are_the_papers_but_for_one() {
        assert_eq!(delay_ms(15, 1023, 0.1), "36.1750");
        assert_eq!(delay_ms(7, 15, 0.1), "3.3990");
        // The paper prints 238.68.
        assert_eq!(delay_ms(15, 1023, 0.9), "238.6750");
        assert_eq!([0.0, 0.9].map(|busy| delay_ms(7, 15, busy)), ["2.1865", "13.0990"]);
        let voice = [0.0, 0.1, 0.9].map(|busy| delay_ms(3, 7, busy));
        assert_eq!(voice, ["1.9525", "2.5150", "7.0150"]);
        // The paper prints 10.894, which its Eq. 3 does not give.
        assert_eq!(delay_ms(15, 1023, 0.0), "10.8625");
        let slip = paper(15, 1023, 0.0).transmit_delay_with_whole_windows();
        assert_eq!(slip, TimeDelta::from_micros(10_894));
    }

    // [INTERDIGITAL §3.1.2]
    #[test]
    fn the_condition_of_theorem_1_holds_in_both_readings() {
        let packet = paper(15, 1023, 0.0);
        assert!(packet.transmit_delay() > HiddenTerminal::PAPER.busy);
        assert!(packet.transmit_delay_with_whole_windows() > HiddenTerminal::PAPER.busy);
    }

    const ARRIVALS_KBPS: [u64; 11] =
        [50, 100, 250, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000];

    fn capacities(capacity: impl Fn(&HiddenTerminal, Bitrate, DataSize) -> Bitrate) -> Vec<String> {
        let size = DataSize::from_bytes(1224);
        let of = |kbps| capacity(&HiddenTerminal::PAPER, Bitrate::from_kbps(kbps), size);
        ARRIVALS_KBPS.map(|kbps| format!("{:.3}", of(kbps).as_mbps_f64())).into()
    }

    // [INTERDIGITAL §3.1.2, Eq. 7 and 8]
    #[test]
    fn the_capacity_beside_a_hidden_terminal_grows_slower_than_the_arrivals() {
        let expected = [
            "4.972", "5.051", "5.290", "5.693", "6.513", "7.340", "8.164", "8.976", "9.768",
            "10.537", "11.280",
        ];
        assert_eq!(capacities(HiddenTerminal::capacity), expected);
        let least = [
            "0.153", "0.305", "0.753", "1.477", "2.847", "4.120", "5.308", "6.417", "7.456",
            "8.431", "9.348",
        ];
        assert_eq!(capacities(HiddenTerminal::least_capacity), least);
    }

    #[test]
    fn the_hidden_terminal_of_the_paper_holds_a_third_of_the_time() {
        assert!((HiddenTerminal::PAPER.utilization() - 0.325_76).abs() < 5e-6);
    }
}
