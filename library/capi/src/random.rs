//! Random numbers for the times of reports. The host gives the seed.

use weir_rtcp::Random;

/// SplitMix64: equal seeds give equal numbers, uniformly distributed in 0.0..1.0.
pub(crate) fn random(seed: u64) -> Random {
    let mut state = seed;
    Box::new(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // A double has room for 53 bits.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_over_the_range_and_follow_from_the_seed() {
        let draw = |seed| {
            let mut random = random(seed);
            (0..1_000).map(|_| random()).collect::<Vec<f64>>()
        };
        let numbers = draw(0);
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1_000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!(numbers, draw(0));
        assert_ne!(numbers, draw(1));
    }
}
