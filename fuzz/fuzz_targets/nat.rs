//! A NAT takes any bytes as packets in both directions. What it drops stays as it was, and what it
//! passes keeps its length.
#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use weir::{TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::nat::{Behaviour, Nat, NatConfig};

// The first byte selects the behaviour, the second one the size of the pieces. Each piece is a
// packet, out or in by its first byte.
fuzz_target!(|bytes: &[u8]| {
    let [choice, size, rest @ ..] = bytes else { return };
    let kinds = Behaviour::NAMES.map(|(_, behaviour)| behaviour);
    let config = NatConfig {
        mapping: kinds[usize::from(choice & 3) % 3],
        filtering: kinds[usize::from(choice >> 2 & 3) % 3],
        hairpin: choice & 1 << 4 != 0,
        blocks_udp: choice & 1 << 5 != 0,
        mapping_timeout: TimeDelta::from_secs(1),
    };
    let mut nat = Nat::new(config, Ipv4Addr::new(10, 45, 1, 1), Seed::new(1));
    let mut now = Timestamp::ZERO;
    for piece in rest.chunks(usize::from(*size).max(2)) {
        let (first, piece) = (piece[0], &piece[1..]);
        let mut packet = piece.to_vec();
        nat.inside_of(&packet);
        let passed = match first & 1 {
            0 => nat.send(now, &mut packet),
            _ => nat.receive(now, &mut packet),
        };
        assert_eq!(packet.len(), piece.len());
        assert!(passed.is_ok() || packet == piece);
        now += TimeDelta::from_millis(i64::from(first));
    }
});
