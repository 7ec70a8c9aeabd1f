//! Durations of frames, and the formulas of a paper.

use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_net::wifi::phy::{
    ACK, BLOCK_ACK, Band, ControlRate, DataRate, GuardInterval, Mcs, mpdu_size,
};
use weir_net::wifi::theory::{DiscardedPacket, HiddenTerminal, packet_capacity};

use super::{Check, Limit};

/// Source of durations calculated by hand from the standard.
const BY_HAND: &str = "IEEE 802.11";
/// Source of values in the paper whose retry mechanism the cell implements.
const PAPER: &str = "interdigital";
/// Source of values recomputed with the formulas of that paper.
const RECOMPUTED: &str = "interdigital, recomputed";

const BAND: Band = Band::GHZ_2_4;

fn exact(quantity: String, source: &'static str, reference: f64, measured: f64) -> Check {
    Check { quantity, source, reference, measured, limit: Limit::EXACT, decimals: 3 }
}

/// Durations of frames at 2.4 GHz in microseconds, extension included.
pub fn durations() -> Vec<Check> {
    let (long, short) = (GuardInterval::Long, GuardInterval::Short);
    let rows = [
        ("packet of 1500 B, MCS 7", 234.0, frame(7, long, 1500)),
        ("packet of 1500 B, MCS 7, short guard interval", 218.0, frame(7, short, 1500)),
        ("packet of 1186 B, MCS 7", 194.0, frame(7, long, 1186)),
        ("packet of 1500 B, MCS 0", 1942.0, frame(0, long, 1500)),
        ("packet of 1500 B, MCS 15", 142.0, frame(15, long, 1500)),
        ("ACK, 24 Mbit/s", 34.0, ControlRate::Mbps24.duration(ACK, &BAND)),
        ("ACK, 6 Mbit/s", 50.0, ControlRate::Mbps6.duration(ACK, &BAND)),
        ("BlockAck, 24 Mbit/s", 38.0, ControlRate::Mbps24.duration(BLOCK_ACK, &BAND)),
    ];
    let mut checks = Vec::new();
    for (what, reference, measured) in rows {
        let us = measured.as_nanos() as f64 / 1e3;
        let check = exact(format!("{what}, us"), BY_HAND, reference, us);
        checks.push(Check { decimals: 0, ..check });
    }
    checks
}

/// Duration of a frame with a packet of this many bytes.
fn frame(mcs: u8, guard: GuardInterval, packet: u64) -> TimeDelta {
    let mcs = Mcs::new(mcs).expect("the table has no other");
    DataRate { mcs, guard }.duration(mpdu_size(DataSize::from_bytes(packet)), &BAND)
}

/// Mean transmit delays of a discarded packet, and the capacity next to a hidden terminal.
pub fn paper() -> Vec<Check> {
    let mut checks = transmit_delays();
    checks.extend(capacities());
    checks
}

/// Equation 3, in milliseconds. The paper prints 10.894 for p = 0. Its formula gives another value:
/// the paper used CW + 1 instead of CW.
fn transmit_delays() -> Vec<Check> {
    let (best_effort, video) = ((15, 1023), (7, 15));
    let slip = discarded(best_effort, 0.0).transmit_delay_with_whole_windows();
    let slip_name = "best effort, p 0, CW + 1 for CW: the paper's slip";
    let rows = [
        ("best effort, p 0.1", PAPER, 36.175, delay(best_effort, 0.1), 3),
        ("video, p 0.1", PAPER, 3.399, delay(video, 0.1), 3),
        ("best effort, p 0.9", PAPER, 238.68, delay(best_effort, 0.9), 2),
        ("best effort, p 0", RECOMPUTED, 10.8625, delay(best_effort, 0.0), 4),
        (slip_name, PAPER, 10.894, slip, 3),
    ];
    let mut checks = Vec::new();
    for (what, source, reference, measured, decimals) in rows {
        let quantity = format!("Eq. 3, {what}, ms");
        checks.push(Check {
            decimals,
            ..exact(quantity, source, reference, measured.as_millis_f64())
        });
    }
    checks
}

fn discarded((cw_min, cw_max): (u32, u32), busy: f64) -> DiscardedPacket {
    DiscardedPacket { size: DataSize::from_bytes(1224), attempts: 7, cw_min, cw_max, busy }
}

fn delay(windows: (u32, u32), busy: f64) -> TimeDelta {
    discarded(windows, busy).transmit_delay()
}

/// Arrivals in Mbit/s, Theorem 1, and its lower bound.
const THEOREM_1: [(f64, f64, f64); 11] = [
    (0.05, 4.972, 0.153),
    (0.1, 5.051, 0.305),
    (0.25, 5.290, 0.753),
    (0.5, 5.693, 1.477),
    (1.0, 6.513, 2.847),
    (1.5, 7.340, 4.120),
    (2.0, 8.164, 5.308),
    (2.5, 8.976, 6.417),
    (3.0, 9.768, 7.456),
    (3.5, 10.537, 8.431),
    (4.0, 11.280, 9.348),
];

fn capacities() -> Vec<Check> {
    let size = DataSize::from_bytes(1224);
    let capacity = packet_capacity(size).as_mbps_f64();
    let mut checks =
        vec![exact("C, packets of 1224 B, Mbit/s".into(), RECOMPUTED, 39.168, capacity)];
    for (mbps, expected, least) in THEOREM_1 {
        let (arrivals, hidden) = (Bitrate::from_bps_f64(mbps * 1e6), HiddenTerminal::PAPER);
        for (what, reference, measured) in [
            ("MC", expected, hidden.capacity(arrivals, size)),
            ("lower bound", least, hidden.least_capacity(arrivals, size)),
        ] {
            let quantity = format!("Theorem 1, {what}, {mbps} Mbit/s, Mbit/s");
            checks.push(exact(quantity, RECOMPUTED, reference, measured.as_mbps_f64()));
        }
    }
    checks
}
