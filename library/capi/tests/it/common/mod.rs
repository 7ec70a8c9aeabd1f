//! Structs of the header from values of the Rust crates.

use std::mem::zeroed;

use weir::PacketReport;
use weir::controller::{EcnMode, ProbeId, Settings};
use weir::feedback::Ecn;
use weir::units::Timestamp;
use weir_capi::*;

/// A struct of the header, all zero except for its size.
pub fn sized<T>() -> T {
    // SAFETY: the structs of the header consist of integers, floats and raw pointers.
    let mut value: T = unsafe { zeroed() };
    // SAFETY: `struct_size` is their first member.
    unsafe { (&raw mut value).cast::<usize>().write(size_of::<T>()) };
    value
}

/// Fails the test unless a call succeeded.
pub fn ok(status: weir_status) {
    assert_eq!(status, weir_status::Ok);
}

/// Settings of the header.
pub fn raw_settings(settings: &Settings) -> weir_settings {
    let mut raw: weir_settings = sized();
    // SAFETY: the struct lives.
    ok(unsafe { weir_settings_init(&mut raw, size_of::<weir_settings>()) });
    raw.min_bitrate_bps = settings.limits.min().as_bps();
    raw.start_bitrate_bps = settings.limits.start().as_bps();
    raw.max_bitrate_bps = settings.limits.max().as_bps();
    raw.priority = settings.priority;
    raw.ecn = match settings.ecn {
        EcnMode::Off => weir_ecn_mode::Off,
        EcnMode::Classic => weir_ecn_mode::Classic,
        EcnMode::L4s => weir_ecn_mode::L4s,
    } as u32;
    raw.tolerate_random_loss = settings.tolerate_random_loss.into();
    raw.compete_with_tcp = settings.compete_with_tcp.into();
    raw.probe_when_limited = settings.probe_when_limited.into();
    raw
}

/// The number of a probe as the header counts: from 1.
pub fn probe_number(probe: Option<ProbeId>) -> u64 {
    probe.map_or(WEIR_NO_PROBE, |id| u64::from(id.0) + 1)
}

/// A packet report of the header.
pub fn raw_report(packet: &PacketReport) -> weir_packet_report {
    weir_packet_report {
        sequence_number: packet.sequence_number,
        size_bytes: packet.size.as_bytes(),
        send_time_ns: packet.send_time.as_nanos(),
        arrival_time_ns: packet.arrival_time.map_or(WEIR_NO_TIME, Timestamp::as_nanos),
        probe_id: probe_number(packet.probe),
        ecn: match packet.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        },
        is_recovered: packet.recovered.into(),
        reserved: [0; 6],
    }
}
