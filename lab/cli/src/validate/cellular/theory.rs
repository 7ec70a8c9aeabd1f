//! Compares the cell with formulas: goodput from block sizes, and waits in a queue whose service
//! takes a fixed time.

use std::ops::RangeInclusive;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::cellular::{
    Adaptation, Carrier, Cell, CellularConfig, Directions, RlcMode, Signal, SignalChange, Terminal,
};
use weir_net::path::Direction;
use weir_net::{Header, Outcome, Seed};

use super::{Check, Limit};

/// Transmission time interval of LTE in seconds.
const TTI_S: f64 = 1e-3;
/// Header of RLC in a block, and of PDCP in a packet, in bytes.
const RLC_HEADER: u64 = 2;
const PDCP_HEADER: u64 = 2;
/// Bytes by which the length fields of RLC grow for each boundary between packets: 12 bits each.
const LENGTH_FIELD: f64 = 1.5;
/// From the decision of the scheduler until the packets of a block are delivered, in TTIs: one to
/// prepare and three to decode (3GPP TR 36.912 §B.2).
const PROCESSING_TTIS: f64 = 4.0;
/// When the measurement starts.
const WARM_UP: Timestamp = Timestamp::from_secs(1);

/// Blocks of the whole carrier: resource blocks, SINR in decibels, and bits of a block
/// (3GPP TS 36.213 Table 7.1.7.2.1-1, at MCS 10, 20 and 28).
const BLOCKS: [(u16, f64, u64); 5] = [
    (25, 6.0, 4_008),
    (25, 15.0, 9_912),
    (25, 30.0, 18_336),
    (50, 30.0, 36_696),
    (100, 30.0, 75_376),
];
/// IP bytes of the packets whose goodput is measured.
const PACKET: u64 = 1_228;
/// Measured time for goodput.
const GOODPUT_TIME: TimeDelta = TimeDelta::from_secs(5);
/// Largest distance of the goodput, as a share. The formula takes the mean of the length fields.
const GOODPUT_LIMIT: f64 = 0.003;

/// Waits: how many blocks a packet fills, and the load of the server.
const QUEUES: [(u64, f64); 6] = [(1, 0.3), (1, 0.6), (1, 0.8), (1, 0.9), (3, 0.6), (3, 0.8)];
/// Measured time for waits, for each block that a packet fills.
const WAIT_TIME: TimeDelta = TimeDelta::from_secs(60);
/// Largest distance of the mean delay between the formula and the range over the seeds, as a share.
const WAIT_LIMIT: f64 = 0.02;

/// All checks, each for several seeds.
pub(super) fn checks(seeds: &RangeInclusive<u64>) -> Vec<Check> {
    let goodput = BLOCKS.iter().map(|(prbs, sinr_db, bits)| Check {
        run: format!("theory-goodput-{prbs}-s{sinr_db}"),
        what: "rate, Mbit/s",
        reference: expected_goodput(bits / 8),
        measured: vec![goodput(*prbs, *sinr_db)],
        limit: Limit::Share(GOODPUT_LIMIT),
    });
    let waits = QUEUES.iter().map(|(blocks, load)| Check {
        run: format!("theory-wait-{blocks}-{load}"),
        what: "mean, ms",
        reference: expected_delay_ms(*blocks, *load),
        measured: seeds.clone().map(|seed| delay_ms(*blocks, *load, seed)).collect(),
        limit: Limit::Share(WAIT_LIMIT),
    });
    goodput.chain(waits).collect()
}

/// IP Mbit/s of a queue that never empties. A block carries its bytes but the header of RLC and the
/// length fields, whose last one is half unused on average.
fn expected_goodput(block: u64) -> f64 {
    let carried = (block - RLC_HEADER) as f64 - 0.25;
    let packets = carried / ((PACKET + PDCP_HEADER) as f64 + LENGTH_FIELD);
    packets * PACKET as f64 * 8.0 / TTI_S / 1e6
}

/// Mean delay in milliseconds of Poisson arrivals that fill this many blocks each: the wait of an
/// M/D/1 queue, half a TTI until the next decision, and the time on the air with processing.
fn expected_delay_ms(blocks: u64, load: f64) -> f64 {
    let service = blocks as f64;
    let wait = load * service / (2.0 * (1.0 - load)) + 0.5;
    (wait + (service - 1.0) + PROCESSING_TTIS) * TTI_S * 1e3
}

/// A cell with one terminal without fading, with the report of ns-3: no outer loop, and schemes at
/// which a static signal hardly fails.
fn cell(prbs: u16, sinr_db: f64, seed: u64) -> Cell<Timestamp> {
    let signal = Signal::new(SignalChange::Constant(sinr_db), None);
    let mut terminal = Terminal::new("terminal", Directions::both(signal));
    terminal.bearers[0].rlc = RlcMode::UM;
    let mut config = CellularConfig::new(Carrier::lte(prbs), vec![terminal]);
    config.adaptation.down = Adaptation::NS3_DOWN;
    Cell::new(&config, Seed::new(seed))
}

/// IP Mbit/s of a queue that is kept full.
fn goodput(prbs: u16, sinr_db: f64) -> f64 {
    let mut cell = cell(prbs, sinr_db, 1);
    let header = Header::new(DataSize::from_bytes(PACKET));
    let (mut now, mut delivered) = (Timestamp::ZERO, 0_u64);
    while now < WARM_UP + GOODPUT_TIME {
        for _ in 0..100 {
            cell.enqueue(now, (0, Direction::Down), None, header, now);
        }
        // A hundred packets are more than a block of the largest carrier takes in five TTIs.
        now += TimeDelta::from_millis(5);
        while let Some(outcome) = cell.poll(now) {
            let is_counted = now > WARM_UP && matches!(outcome, Outcome::Delivered(_));
            delivered += if is_counted { PACKET } else { 0 };
        }
    }
    delivered as f64 * 8.0 / GOODPUT_TIME.as_secs_f64() / 1e6
}

/// Mean delay in milliseconds of packets that arrive as a Poisson process and fill whole blocks.
fn delay_ms(blocks: u64, load: f64, seed: u64) -> f64 {
    let (prbs, sinr_db, bits) = BLOCKS[1];
    let mut cell = cell(prbs, sinr_db, seed);
    let size = blocks * (bits / 8 - RLC_HEADER) - PDCP_HEADER;
    let header = Header::new(DataSize::from_bytes(size));
    let mut chance = Seed::new(seed).stream("validate/poisson");
    let end = WARM_UP + WAIT_TIME * blocks as i64;
    let (mut now, mut sum_ms, mut count) = (Timestamp::ZERO, 0.0, 0_u32);
    while now < end {
        let gap = -(1.0 - chance.uniform()).ln() * blocks as f64 * TTI_S / load;
        let arrival = now + TimeDelta::from_secs_f64(gap);
        while let Some(event) = cell.next_event().filter(|event| *event <= arrival) {
            while let Some(outcome) = cell.poll(event) {
                let Outcome::Delivered(delivery) = outcome else { continue };
                if delivery.payload >= WARM_UP {
                    sum_ms += (delivery.due - delivery.payload).as_millis_f64();
                    count += 1;
                }
            }
        }
        now = arrival;
        cell.enqueue(now, (0, Direction::Down), None, header, now);
    }
    sum_ms / f64::from(count)
}
