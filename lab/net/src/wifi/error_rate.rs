//! From signal-to-noise ratio to the probability that a frame is lost.
//!
//! Each scheme has a curve for frames of 1458 bytes: four points from the published tables of a
//! link simulation (binary convolutional code, additive white noise, ideal receiver). Straight
//! lines join the points, with loss as a logit over the ratio in decibels. Frames of other lengths
//! use the same curve, shifted by a number of decibels that is proportional to the logarithm of the
//! length. A frame of 32 bytes needs 1.5 dB less. For half to twice the length this is close to a
//! model of independent pieces, `1 - (1 - p)^(L / 1458)`. For an acknowledgement that model would
//! be too optimistic, because errors come in bursts as long as the acknowledgement.

use weir::units::DataSize;

use super::phy::{ControlRate, Mcs};

/// Thermal noise in a channel of 20 MHz at room temperature: -174 dBm per hertz.
const THERMAL_NOISE_DBM: f64 = -101.0;

/// Noise power at a receiver with this noise figure, in dBm. 7 dB is usual. Add 3 to 5 dB to model
/// the losses of real chips compared with the ideal receiver of the curves.
pub fn noise_dbm(noise_figure_db: f64) -> f64 {
    THERMAL_NOISE_DBM + noise_figure_db
}

/// The loss ratios of the curves' points, 0.9, 0.5, 0.1 and 0.01, as logits.
const LOGITS: [f64; 4] =
    [2.197_224_577_336_219_6, 0.0, -2.197_224_577_336_219_6, -4.595_119_850_134_59];
/// Signal-to-noise ratios in decibels at which MCS 0 to 7 lose a frame of 1458 bytes with these
/// ratios.
const CURVES: [[f64; 4]; 8] = [
    [-0.2, 0.3, 0.9, 1.6],
    [2.7, 3.3, 3.9, 4.6],
    [5.2, 5.8, 6.4, 7.1],
    [8.3, 8.9, 9.7, 10.5],
    [11.5, 12.0, 12.8, 13.6],
    [15.6, 16.2, 17.0, 18.0],
    [16.9, 17.5, 18.4, 19.3],
    [18.2, 18.8, 19.6, 20.5],
];
/// Frame length for which the curves apply.
const LONG_BYTES: f64 = 1458.0;
/// How many decibels less a frame of 32 bytes needs.
const SHORT_GAIN_DB: f64 = 1.5;
/// Natural logarithm of 1458 / 32.
const LOG_LONG_TO_SHORT: f64 = 3.819_085_009_768_877;
/// Cost of a second stream: 3 dB because the power is divided, 2 dB because the streams interfere.
const SECOND_STREAM_DB: f64 = 5.0;

/// Probability that an MPDU of this size is lost.
pub fn error_rate(mcs: Mcs, snr_db: f64, size: DataSize) -> f64 {
    let snr_db = snr_db - SECOND_STREAM_DB * f64::from(mcs.streams() - 1);
    of_curve(&CURVES[mcs.per_stream()], snr_db, size)
}

/// Probability that a control frame of this size is lost.
pub fn control_error_rate(rate: ControlRate, snr_db: f64, size: DataSize) -> f64 {
    let same_modulation = match rate {
        ControlRate::Mbps6 => 0,
        ControlRate::Mbps12 => 1,
        ControlRate::Mbps24 => 3,
    };
    of_curve(&CURVES[same_modulation], snr_db, size)
}

fn of_curve(curve: &[f64; 4], snr_db: f64, size: DataSize) -> f64 {
    let shorter = libm::log(LONG_BYTES / size.as_bytes().max(1) as f64) / LOG_LONG_TO_SHORT;
    let logit = logit_at(curve, snr_db + SHORT_GAIN_DB * shorter);
    1.0 / (1.0 + libm::exp(-logit))
}

/// The logit at this signal-to-noise ratio. Outside the points, the nearest segment is extended.
fn logit_at(curve: &[f64; 4], snr_db: f64) -> f64 {
    let right = curve[1..3].iter().filter(|&&db| db < snr_db).count() + 1;
    let left = right - 1;
    let slope = (LOGITS[right] - LOGITS[left]) / (curve[right] - curve[left]);
    LOGITS[left] + slope * (snr_db - curve[left])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mcs(index: u8) -> Mcs {
        Mcs::new(index).unwrap()
    }

    const LONG: DataSize = DataSize::from_bytes(1458);

    #[test]
    fn the_curves_go_through_their_points() {
        for (index, curve) in (0..8).zip(&CURVES) {
            let lost = curve.map(|db| error_rate(mcs(index), db, LONG));
            for (lost, point) in lost.iter().zip([0.9, 0.5, 0.1, 0.01]) {
                assert!((lost - point).abs() < 1e-9, "MCS {index}: {lost} for {point}");
            }
        }
    }

    #[test]
    fn more_signal_never_loses_more_and_a_longer_frame_never_less() {
        for mcs in Mcs::all(2) {
            let at = |db: f64, bytes| error_rate(mcs, db, DataSize::from_bytes(bytes));
            for step in -100..400 {
                let db = f64::from(step) / 10.0;
                assert!(at(db + 0.1, 1458) <= at(db, 1458), "{mcs:?} {db}");
                assert!(at(db, 1500) >= at(db, 400) && at(db, 400) >= at(db, 14));
            }
            assert!(at(-20.0, 1458) > 0.999 && at(60.0, 1458) < 1e-9);
        }
    }

    #[test]
    fn a_frame_of_32_bytes_needs_one_and_a_half_decibels_less() {
        for (index, curve) in (0..8).zip(&CURVES) {
            let lost = error_rate(mcs(index), curve[1] - 1.5, DataSize::from_bytes(32));
            assert!((lost - 0.5).abs() < 1e-9, "MCS {index}: {lost}");
        }
    }

    #[test]
    fn frames_of_half_to_twice_the_length_lose_nearly_as_independent_pieces() {
        for mcs in Mcs::all(1) {
            for step in 0..300 {
                let db = f64::from(step) / 10.0;
                let survives = 1.0 - error_rate(mcs, db, LONG);
                for (bytes, share) in [(729, 0.5), (2916, 2.0)] {
                    let lost = error_rate(mcs, db, DataSize::from_bytes(bytes));
                    let independent = 1.0 - libm::pow(survives, share);
                    assert!((lost - independent).abs() < 0.1, "{mcs:?} {db}: {lost} {independent}");
                }
            }
        }
    }

    #[test]
    fn a_second_stream_needs_five_decibels_more() {
        let one = error_rate(mcs(4), 12.8, LONG);
        assert!((error_rate(mcs(12), 17.8, LONG) - one).abs() < 1e-12);
    }

    #[test]
    fn an_ack_outlives_its_frame() {
        let ack = control_error_rate(ControlRate::Mbps24, 9.7, super::super::phy::ACK);
        assert!(ack < 0.01, "{ack}");
        assert!(error_rate(mcs(3), 9.7, LONG) > 0.09);
    }

    #[test]
    fn the_noise_of_an_ordinary_receiver_is_minus_94_dbm() {
        assert_eq!(noise_dbm(7.0), -94.0);
    }
}
