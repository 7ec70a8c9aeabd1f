//! The MD5 message digest ([RFC1321 §3]), which SIP Digest needs. It protects nothing else here.
//!
//! [RFC1321 §3]: https://www.rfc-editor.org/rfc/rfc1321#section-3

/// Rotations of each round ([RFC1321 §3.4]).
const ROTATIONS: [[u32; 4]; 4] =
    [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// State before the first block ([RFC1321 §3.3]).
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// `floor(2^32 * abs(sin(i)))` for i from 1 to 64 ([RFC1321 §3.4]).
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// The digest of these bytes.
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let bits = u64::try_from(bytes.len()).expect("a length fits 64 bits").wrapping_mul(8);
    padded.extend(bits.to_le_bytes());
    let mut state = INITIAL;
    for block in padded.chunks_exact(64) {
        state = with_block(state, block);
    }
    let mut digest = [0; 16];
    for (word, out) in state.iter().zip(digest.chunks_exact_mut(4)) {
        out.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

fn with_block(state: [u32; 4], block: &[u8]) -> [u32; 4] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().expect("a word has four bytes"));
    }
    let [mut a, mut b, mut c, mut d] = state;
    for step in 0..64 {
        let (round, place) = (step / 16, step % 16);
        let (mixed, word) = match round {
            0 => ((b & c) | (!b & d), place),
            1 => ((d & b) | (!d & c), (5 * place + 1) % 16),
            2 => (b ^ c ^ d, (3 * place + 5) % 16),
            _ => (c ^ (b | !d), (7 * place) % 16),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(words[word]).wrapping_add(SINES[step]);
        let next = b.wrapping_add(sum.rotate_left(ROTATIONS[round][step % 4]));
        (a, b, c, d) = (d, next, b, c);
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
    ]
}

/// Bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC1321 §A.5]
    #[test]
    fn the_test_suite_of_the_standard_holds() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(&md5(text.as_bytes())), digest, "{text}");
        }
    }
}
