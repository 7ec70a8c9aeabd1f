//! Super-packets of UDP through the emulator. Needs root; says so where it is missing.

use std::time::Duration;

use weir::units::{DataSize, TimeDelta};
use weir_emu::{Emulator, Error, Plan, Probe, probe};
use weir_net::{LinkConfig, Seed};

const COUNT: u32 = 640;
const SIZE: DataSize = DataSize::from_bytes(200);

#[test]
fn model_receiver_and_captures_see_single_packets_of_a_super_packet() {
    for super_packets in [false, true] {
        let link = LinkConfig::unlimited(TimeDelta::from_millis(1));
        let mut emulator = match Emulator::new(&Plan::two_hosts(&link, &link), Seed::new(1)) {
            Ok(emulator) => emulator,
            Err(error @ (Error::NotRoot | Error::NoTun | Error::TunDenied)) => {
                return println!("skipped: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        emulator.start();
        let (from, to) = (emulator.host(0), emulator.host(1));
        let mut taps = [from.tap().unwrap(), to.tap().unwrap()];
        let stream = Probe {
            packet: SIZE,
            interval: TimeDelta::from_micros(200),
            burst: 64,
            super_packets,
            count: COUNT,
            tail: Duration::from_millis(200),
        };
        let probed = probe(from, to, to.address(), &stream).unwrap();
        let numbers: Vec<usize> = probed.received.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..COUNT as usize).collect::<Vec<_>>());
        for tap in &mut taps {
            let mut beginning = [0; 28];
            let mut seen = 0;
            while let Some(tapped) = tap.receive(&mut beginning).unwrap() {
                assert_eq!(tapped.length as u64, SIZE.as_bytes());
                // The length in the IP header.
                assert_eq!(u16::from_be_bytes([beginning[2], beginning[3]]), 200);
                seen += 1;
            }
            assert_eq!((seen, tap.dropped_packets().unwrap()), (COUNT, 0));
        }
        let run = emulator.stop().unwrap();
        let up = run.hops[0].up.counters;
        let delivered = (up.delivered_packets, up.delivered.as_bytes());
        assert_eq!(delivered, (COUNT.into(), SIZE.as_bytes() * u64::from(COUNT)));
        assert_eq!((run.foreign_packets, run.refused_packets), (0, 0));
    }
}
