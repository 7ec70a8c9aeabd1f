//! Durations: how long each 802.11n frame occupies a channel of 20 MHz.
//!
//! ```text
//! HT-mixed   | legacy preamble 20 | HT-SIG 8 | HT-STF 4 | HT-LTF 4 a stream | data | extension |
//! OFDM       | legacy preamble 20 | data | extension |
//! ```
//!
//! Times are in microseconds. The extension is a silence of 6 us at the end of each frame at 2.4
//! GHz. The channel counts as busy during it, and every duration here includes it. SIFS is 10 us at
//! 2.4 GHz and 16 us at 5 GHz, so a cycle of frame and acknowledgement takes equally long in both
//! bands.

use weir::units::{Bitrate, DataSize, TimeDelta};

const fn us(micros: i64) -> TimeDelta {
    TimeDelta::from_micros(micros)
}

/// The times that depend on the band [IEEE80211 §20.4.4].
///
/// [IEEE80211 §20.4.4]: https://doi.org/10.1109/IEEESTD.2012.6178212
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Band {
    /// `aSlotTime`.
    pub slot: TimeDelta,
    /// `aSIFSTime`.
    pub sifs: TimeDelta,
    /// `aSignalExtension`: silence at the end of each frame.
    pub signal_extension: TimeDelta,
    /// Duration of an ACK at the lowest basic rate, a part of EIFS [IEEE80211 §9.3.2.3.7].
    ///
    /// [IEEE80211 §9.3.2.3.7]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub slowest_ack: TimeDelta,
}

/// `aPHY-RX-START-Delay`: from the start of a frame until its receiver detects it. 20 us as in
/// OFDM.
const RECEIVE_START_DELAY: TimeDelta = us(20);
/// DIFS is SIFS plus this many slots [IEEE80211 §9.3.7].
const DIFS_SLOTS: u32 = 2;

impl Band {
    /// 2.4 GHz with the short slot, as used by access points without 802.11b stations. The lowest
    /// basic rate is nevertheless 1 Mbit/s: an ACK there is a preamble of 192 us and 14 bytes.
    pub const GHZ_2_4: Self =
        Self { slot: us(9), sifs: us(10), signal_extension: us(6), slowest_ack: us(304) };
    /// 5 GHz; the lowest basic rate is 6 Mbit/s.
    pub const GHZ_5: Self =
        Self { slot: us(9), sifs: us(16), signal_extension: us(0), slowest_ack: us(44) };

    /// AIFS of `aifsn` slots [IEEE80211 §9.19.2.3].
    ///
    /// [IEEE80211 §9.19.2.3]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn aifs(&self, aifsn: u32) -> TimeDelta {
        self.sifs + self.slot * i64::from(aifsn)
    }

    /// DIFS, the interframe space of legacy stations [IEEE80211 §9.3.7].
    ///
    /// [IEEE80211 §9.3.7]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn difs(&self) -> TimeDelta {
        self.aifs(DIFS_SLOTS)
    }

    /// EIFS, which replaces an AIFS of `aifsn` slots after a frame that could not be decoded. It
    /// leaves time for the ACK that this frame may require [IEEE80211 §9.3.2.3.7, §9.19.2.3].
    ///
    /// [IEEE80211 §9.3.2.3.7, §9.19.2.3]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn eifs(&self, aifsn: u32) -> TimeDelta {
        self.sifs + self.slowest_ack + self.aifs(aifsn)
    }

    /// How long a sender waits after its frame for an answer to begin [IEEE80211 §9.3.2.8].
    ///
    /// [IEEE80211 §9.3.2.8]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn ack_timeout(&self) -> TimeDelta {
        self.sifs + self.slot + RECEIVE_START_DELAY
    }
}

/// Modulation and coding scheme. 0 to 7 use one spatial stream; 8 to 15 are the same with two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mcs(u8);

/// Data bits per OFDM symbol and stream, for MCS 0 to 7 [IEEE80211 §20.6].
const BITS_PER_SYMBOL: [u64; 8] = [26, 52, 78, 104, 156, 208, 234, 260];

impl Mcs {
    /// Number of schemes.
    pub const COUNT: usize = 16;
    /// The most robust scheme, MCS 0.
    pub const LOWEST: Self = Self(0);

    /// The scheme with this number; `None` if it is above 15.
    pub const fn new(index: u8) -> Option<Self> {
        if (index as usize) < Self::COUNT { Some(Self(index)) } else { None }
    }

    /// All schemes with at most this many streams (1 or 2), in ascending order.
    pub fn all(streams: u8) -> impl Iterator<Item = Self> {
        (0..8 * streams.min(2)).map(Self)
    }

    /// The number of the scheme, 0 to 15.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Spatial streams: 1 or 2.
    pub const fn streams(self) -> u8 {
        1 + self.0 / 8
    }

    /// Number of the one-stream scheme with the same modulation and coding, 0 to 7.
    pub const fn per_stream(self) -> usize {
        self.0 as usize % 8
    }

    const fn bits_per_symbol(self) -> u64 {
        BITS_PER_SYMBOL[self.per_stream()] * self.streams() as u64
    }

    /// The rate at which its frames are acknowledged: the highest basic rate that is not above the
    /// OFDM rate with the same modulation and coding [IEEE80211 §9.7.6.5, §9.7.9].
    ///
    /// [IEEE80211 §9.7.6.5, §9.7.9]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub const fn control_rate(self) -> ControlRate {
        match self.per_stream() {
            0 => ControlRate::Mbps6,
            1 | 2 => ControlRate::Mbps12,
            _ => ControlRate::Mbps24,
        }
    }
}

/// Guard interval between symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GuardInterval {
    /// 800 ns: one symbol every 4 us.
    #[default]
    Long,
    /// 400 ns: one symbol every 3.6 us.
    Short,
}

/// `T_SYM`. The data of a frame lasts a multiple of it, with either guard interval.
const SYMBOL: TimeDelta = us(4);
/// `T_SYMS`: a symbol with the short guard interval.
const SHORT_SYMBOL: TimeDelta = TimeDelta::from_nanos(3_600);
/// Training fields and signal field of legacy OFDM.
const LEGACY_PREAMBLE: TimeDelta = us(20);
/// HT-SIG and HT short training field.
const HT_SIGNAL: TimeDelta = us(12);
/// An HT long training field. A frame has one per stream.
const HT_TRAINING: TimeDelta = us(4);
/// Bits of the service field and the tail, which surround the data of a frame.
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;

/// The transmission parameters of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataRate {
    /// Modulation, coding and streams.
    pub mcs: Mcs,
    /// Guard interval.
    pub guard: GuardInterval,
}

impl DataRate {
    /// The given scheme with the long guard interval.
    pub const fn long_guard(mcs: Mcs) -> Self {
        Self { mcs, guard: GuardInterval::Long }
    }

    const fn symbol(self) -> TimeDelta {
        match self.guard {
            GuardInterval::Long => SYMBOL,
            GuardInterval::Short => SHORT_SYMBOL,
        }
    }

    /// The nominal bitrate: bits per symbol divided by the symbol time.
    pub fn bitrate(self) -> Bitrate {
        Bitrate::from_bps_f64(self.mcs.bits_per_symbol() as f64 / self.symbol().as_secs_f64())
    }

    fn preamble(self) -> TimeDelta {
        LEGACY_PREAMBLE + HT_SIGNAL + HT_TRAINING * i64::from(self.mcs.streams())
    }

    /// How long a frame of the HT-mixed format occupies the channel [IEEE80211 §20.4.3]. `content`
    /// is the size of an MPDU or an A-MPDU with all its headers.
    ///
    /// [IEEE80211 §20.4.3]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn duration(self, content: DataSize, band: &Band) -> TimeDelta {
        self.air_time(content) + band.signal_extension
    }

    /// The duration without the signal extension.
    pub(super) fn air_time(self, content: DataSize) -> TimeDelta {
        let bits = content.as_bits() + SERVICE_AND_TAIL_BITS;
        let data = symbols_time(bits.div_ceil(self.mcs.bits_per_symbol()), self.symbol());
        self.preamble() + data
    }

    /// The largest content whose frame takes at most `limit`, not counting the signal extension.
    pub fn content_within(self, limit: TimeDelta) -> DataSize {
        let data = (limit - self.preamble()).as_nanos().max(0) / SYMBOL.as_nanos();
        let symbols = (SYMBOL * data).as_nanos() / self.symbol().as_nanos();
        let bits = symbols.cast_unsigned() * self.mcs.bits_per_symbol();
        DataSize::from_bytes(bits.saturating_sub(SERVICE_AND_TAIL_BITS) / 8)
    }
}

/// The time of this many symbols, rounded up to a multiple of the long symbol.
fn symbols_time(symbols: u64, symbol: TimeDelta) -> TimeDelta {
    let nanos = symbols * symbol.as_nanos().unsigned_abs();
    SYMBOL * nanos.div_ceil(SYMBOL.as_nanos().unsigned_abs()).cast_signed()
}

/// Basic rates at which control frames are sent, with OFDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlRate {
    /// 6 Mbit/s: BPSK, code rate 1/2, as MCS 0.
    Mbps6,
    /// 12 Mbit/s: QPSK, code rate 1/2, as MCS 1.
    Mbps12,
    /// 24 Mbit/s: 16-QAM, code rate 1/2, as MCS 3.
    Mbps24,
}

impl ControlRate {
    const fn bits_per_symbol(self) -> u64 {
        match self {
            Self::Mbps6 => 24,
            Self::Mbps12 => 48,
            Self::Mbps24 => 96,
        }
    }

    /// How long a control frame occupies the channel [IEEE80211 §18.4.3].
    ///
    /// [IEEE80211 §18.4.3]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub fn duration(self, frame: DataSize, band: &Band) -> TimeDelta {
        let bits = frame.as_bits() + SERVICE_AND_TAIL_BITS;
        let data = symbols_time(bits.div_ceil(self.bits_per_symbol()), SYMBOL);
        LEGACY_PREAMBLE + data + band.signal_extension
    }
}

/// Size of an ACK frame [IEEE80211 §8.3.1.4].
///
/// [IEEE80211 §8.3.1.4]: https://doi.org/10.1109/IEEESTD.2012.6178212
pub const ACK: DataSize = DataSize::from_bytes(14);
/// Size of a compressed BlockAck frame [IEEE80211 §8.3.1.9].
///
/// [IEEE80211 §8.3.1.9]: https://doi.org/10.1109/IEEESTD.2012.6178212
pub const BLOCK_ACK: DataSize = DataSize::from_bytes(32);

/// Headers that turn an IP packet into an MPDU: LLC and SNAP 8, QoS data header 26, check sequence
/// 4.
pub const MPDU_OVERHEAD: DataSize = DataSize::from_bytes(8 + 26 + 4);

/// Size of the MPDU that carries an IP packet of this size, without encryption.
pub fn mpdu_size(packet: DataSize) -> DataSize {
    packet + MPDU_OVERHEAD
}

/// Size of the delimiter before each MPDU of an A-MPDU [IEEE80211 §8.6.1].
const DELIMITER_BYTES: u64 = 4;
/// Each MPDU of an A-MPDU begins at a multiple of this.
const ALIGNMENT_BYTES: u64 = 4;

/// Maximum number of MPDUs in an A-MPDU: the window of a BlockAck.
pub const A_MPDU_COUNT_LIMIT: usize = 64;
/// Maximum size of an A-MPDU [IEEE80211 §8.4.2.58.3].
///
/// [IEEE80211 §8.4.2.58.3]: https://doi.org/10.1109/IEEESTD.2012.6178212
pub const A_MPDU_SIZE_LIMIT: DataSize = DataSize::from_bytes(65_535);
/// Maximum duration of a frame, set by the length field of the legacy signal.
pub const FRAME_TIME_LIMIT: TimeDelta = us(5_484);

/// Size of an A-MPDU of size `so_far` after one more MPDU is added. The earlier content is padded,
/// then comes a delimiter, then the MPDU. An empty A-MPDU has size zero.
pub fn a_mpdu_with(so_far: DataSize, mpdu: DataSize) -> DataSize {
    let begin = so_far.as_bytes().next_multiple_of(ALIGNMENT_BYTES);
    DataSize::from_bytes(begin + DELIMITER_BYTES) + mpdu
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANDS: [Band; 2] = [Band::GHZ_2_4, Band::GHZ_5];

    fn mcs(index: u8) -> Mcs {
        Mcs::new(index).unwrap()
    }

    fn bytes(size: u64) -> DataSize {
        DataSize::from_bytes(size)
    }

    fn frame_us(index: u8, guard: GuardInterval, size: u64, band: &Band) -> i64 {
        DataRate { mcs: mcs(index), guard }.duration(bytes(size), band).as_micros()
    }

    #[test]
    fn a_packet_of_1500_bytes_at_mcs_7_takes_234_us_and_its_ack_34_us() {
        let size = mpdu_size(bytes(1500)).as_bytes();
        assert_eq!(size, 1538);
        assert_eq!(frame_us(7, GuardInterval::Long, size, &Band::GHZ_2_4), 234);
        assert_eq!(ControlRate::Mbps24.duration(ACK, &Band::GHZ_2_4), us(34));
        // The frames of the hidden terminal of docs/reference/wifi.md: 1224 bytes.
        assert_eq!(frame_us(7, GuardInterval::Long, 1224, &Band::GHZ_2_4), 194);
    }

    #[test]
    fn a_cycle_takes_as_long_at_2_4_as_at_5_ghz() {
        for band in BANDS {
            let data = DataRate::long_guard(mcs(7)).duration(bytes(1538), &band);
            let ack = ControlRate::Mbps24.duration(ACK, &band);
            assert_eq!(data + band.sifs + ack + band.aifs(3), us(315));
        }
    }

    #[test]
    fn control_frames_take_these_times_at_5_ghz() {
        let of = |rate: ControlRate, size| rate.duration(size, &Band::GHZ_5).as_micros();
        let rates = [ControlRate::Mbps24, ControlRate::Mbps12, ControlRate::Mbps6];
        assert_eq!(rates.map(|rate| of(rate, ACK)), [28, 32, 44]);
        assert_eq!(rates.map(|rate| of(rate, BLOCK_ACK)), [32, 44, 68]);
        let at_2_4 = ControlRate::Mbps24.duration(BLOCK_ACK, &Band::GHZ_2_4);
        assert_eq!(at_2_4, us(38));
    }

    #[test]
    fn one_stream_has_a_preamble_of_36_us_and_two_of_40_us() {
        // Both take one symbol: 3 bytes and 22 bits are 46 bits, and a symbol carries 52.
        assert_eq!(frame_us(1, GuardInterval::Long, 3, &Band::GHZ_5), 36 + 4);
        assert_eq!(frame_us(8, GuardInterval::Long, 3, &Band::GHZ_5), 40 + 4);
    }

    #[test]
    fn short_symbols_end_on_a_multiple_of_4_us() {
        // 1538 bytes need 48 symbols of MCS 7: 172.8 us, rounded up to 176.
        assert_eq!(frame_us(7, GuardInterval::Short, 1538, &Band::GHZ_5), 36 + 176);
    }

    #[test]
    fn nominal_bitrates_are_those_of_the_standard() {
        let kbps = |index, guard| DataRate { mcs: mcs(index), guard }.bitrate().as_bps() / 1_000;
        let long: Vec<u64> = (0..16).map(|index| kbps(index, GuardInterval::Long)).collect();
        assert_eq!(long[..8], [6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000]);
        assert_eq!(long[8..], [13_000, 26_000, 39_000, 52_000, 78_000, 104_000, 117_000, 130_000]);
        let short = [0, 4, 7, 15].map(|index| kbps(index, GuardInterval::Short));
        assert_eq!(short, [7_222, 43_333, 72_222, 144_444]);
    }

    // [IEEE80211 §9.7.9]
    #[test]
    fn the_control_rate_follows_modulation_and_coding_not_streams() {
        use ControlRate::{Mbps6, Mbps12, Mbps24};
        let one = [Mbps6, Mbps12, Mbps12, Mbps24, Mbps24, Mbps24, Mbps24, Mbps24];
        let of = |first: u8| (first..first + 8).map(|index| mcs(index).control_rate());
        assert!(of(0).eq(one) && of(8).eq(one));
    }

    #[test]
    fn interframe_spaces_are_those_of_the_band() {
        let spaces = |band: Band| {
            let all = [band.aifs(3), band.difs(), band.eifs(DIFS_SLOTS), band.ack_timeout()];
            all.map(TimeDelta::as_micros)
        };
        assert_eq!(spaces(Band::GHZ_2_4), [37, 28, 342, 39]);
        assert_eq!(spaces(Band::GHZ_5), [43, 34, 94, 45]);
    }

    #[test]
    fn there_is_no_scheme_beyond_15() {
        assert_eq!(Mcs::new(16), None);
        assert_eq!(Mcs::all(1).last(), Mcs::new(7));
        assert_eq!(Mcs::all(2).last(), Mcs::new(15));
    }

    #[test]
    fn the_most_content_of_a_time_fits_it_and_a_byte_more_does_not() {
        for guard in [GuardInterval::Long, GuardInterval::Short] {
            for mcs in Mcs::all(2) {
                let rate = DataRate { mcs, guard };
                let most = rate.content_within(FRAME_TIME_LIMIT);
                assert!(rate.duration(most, &Band::GHZ_5) <= FRAME_TIME_LIMIT);
                assert!(rate.duration(most + bytes(1), &Band::GHZ_5) > FRAME_TIME_LIMIT);
            }
        }
        assert_eq!(DataRate::long_guard(mcs(0)).content_within(us(36)), DataSize::ZERO);
    }

    #[test]
    fn an_a_mpdu_pads_all_but_its_last_mpdu() {
        let one = a_mpdu_with(DataSize::ZERO, bytes(1538));
        assert_eq!(one, bytes(1542));
        assert_eq!(a_mpdu_with(one, bytes(1538)), bytes(1544 + 1542));
    }
}
