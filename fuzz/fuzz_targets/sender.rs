//! A sender accepts any bytes as RTCP, and its target bitrate stays within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::controller::{Controller, RateLimits};
use weir::{Algorithm, Bitrate, TimeDelta, Timestamp};
use weir_rtcp::{Sender, SenderConfig};
use weir_wire::rtp::{ExtensionId, PayloadType, RtpHeader};

const SSRC: u32 = 7;
const ID: ExtensionId = ExtensionId::new(1).unwrap();

fn packet(number: u16) -> Vec<u8> {
    let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), number, 0)
        .with_transport_sequence_number(Some((ID, 0)));
    let mut bytes = vec![0; header.size() + 100];
    header.emit(&mut bytes);
    bytes
}

// The first byte selects the controller and the size of the datagrams cut from the rest.
fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(500), kbps(5_000)).expect("they are in order");
    let count = Algorithm::all().len();
    let algorithm = Algorithm::all().nth(usize::from(choice) % count).expect("below their number");
    let controller = algorithm.build(limits);
    let config = SenderConfig::twcc(SSRC, ID);
    let mut now = Timestamp::ZERO;
    let mut sender = Sender::new(now, controller, config, Box::new(|| 0.5));
    let size = usize::from(choice).max(8);
    for (number, datagram) in (0..).zip(rest.chunks(size)) {
        sender.enqueue(now, [packet(number)]).expect("it has room for the number");
        while sender.next_packet(now).is_some() {}
        now += TimeDelta::from_millis(20);
        sender.on_rtcp(now, datagram);
        sender.on_timeout(now);
        while sender.next_rtcp().is_some() {}
        let target = sender.target();
        assert_eq!(limits.clamp(target.bitrate), target.bitrate);
        assert!(sender.media().controller().metrics().loss_ratio <= 1.0);
    }
});
