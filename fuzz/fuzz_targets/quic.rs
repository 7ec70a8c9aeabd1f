//! A congestion control for QUIC accepts any order of packets, ACK ranges and losses, and its
//! outputs stay sane.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::controller::RateLimits;
use weir::{Algorithm, Bitrate, DataSize, TimeDelta, Timestamp};
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space, WindowRule};

const SPACES: [Space; 3] = [Space::Initial, Space::Handshake, Space::Data];

// The first byte selects the controller and the window. Each call takes ten bytes: its kind, a
// byte, and two numbers.
fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(500), kbps(5_000)).expect("they are in order");
    let count = Algorithm::all().len();
    let algorithm = Algorithm::all().nth(usize::from(choice) % count).expect("below their number");
    let window =
        if choice & 128 == 0 { WindowRule::Brake } else { WindowRule::Pacer { gain: 1.25 } };
    let config = Config::default().with_window(window);
    let mut congestion = Congestion::new(algorithm.build(limits), config);
    let mut now = Timestamp::ZERO;
    for call in rest.chunks_exact(10) {
        let small = u64::from(call[1]);
        let one = u64::from(u32::from_le_bytes([call[2], call[3], call[4], call[5]]));
        let other = u64::from(u32::from_le_bytes([call[6], call[7], call[8], call[9]]));
        let space = SPACES[usize::from(call[1]) % 3];
        let delta = TimeDelta::from_micros(one as i64);
        let size = DataSize::from_bytes(other % 2_000);
        match call[0] % 12 {
            0 => now += delta,
            1 => congestion.on_packet_sent(now, Sent::new(space, one, size)),
            2 => congestion.on_packet_sent(now, Sent::unnumbered(size)),
            3 => congestion.on_ack_range(space, one..=one.saturating_add(other)),
            4 => {
                congestion.on_sized_packet_acked(PacketName::SentAt(now - delta), size);
            }
            5 => {
                let ack = AckEnd::default().with_ce_count(space, other).with_delay(delta);
                congestion.on_ack_end(now, ack.with_app_limited(small % 2 == 0));
            }
            6 => congestion.on_packet_lost(now, PacketName::Number(one, None)),
            7 => congestion.on_bytes_lost(now, now - delta, DataSize::from_bytes(other)),
            8 => congestion.on_losses_taken_back(now - delta),
            9 => {
                let time = Timestamp::from_micros(other as i64);
                congestion.on_receive_time(PacketName::Numbered(space, one), time);
            }
            10 => {
                congestion.on_timeout(now);
                assert!(congestion.next_timeout().is_none_or(|next| next > now));
            }
            _ => congestion.on_new_path(now),
        }
        let target = congestion.target().bitrate;
        assert_eq!(limits.clamp(target), target);
        assert!(congestion.window() > DataSize::ZERO && congestion.pacing_rate() > Bitrate::ZERO);
    }
});
