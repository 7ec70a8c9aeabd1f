//! Repeats a reference run with the model.

use anyhow::{Result, bail};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::cellular::fading::{Fading, Origin, Profile};
use weir_net::cellular::{
    BearerConfig, BearerQueue, Carrier, Cell, CellularConfig, Directions, Guarantee, Qci, RlcMode,
    Scheduler, Signal, SignalChange, Terminal,
};
use weir_net::path::Direction;
use weir_net::{Aqm, Header, Outcome, QueueLimit, Seed};

use super::reference::{Results, Row};

/// Size of the UDP payload of all packets, in bytes.
const PAYLOAD: u64 = 1_200;
/// Headers of IP and UDP, in bytes.
const HEADERS: u64 = 28;
/// When the measurement starts.
const WARM_UP: Timestamp = Timestamp::from_secs(2);
/// Flows start within this time from one second on.
const START_SPREAD: f64 = 0.05;
/// Bursts of a video load each second.
const BURSTS: f64 = 30.0;
/// Rate of a saturating load beside what the carrier could carry at most.
const SATURATION: f64 = 1.15;
/// Guaranteed bitrate beside the load.
const GUARANTEE: f64 = 1.1;
/// Carrier frequency of the fading traces.
const CARRIER_HZ: f64 = 1.857e9;

/// A source of packets.
struct Source {
    terminal: usize,
    bearer: usize,
    /// Bits a second of payload.
    rate: f64,
    is_video: bool,
    next: Timestamp,
    /// Share of a packet left over from the bursts so far.
    rest: f64,
}

/// A packet on the way.
#[derive(Clone, Copy, Debug)]
struct Packet {
    source: usize,
    sent: Timestamp,
}

/// What a flow has measured.
#[derive(Clone, Debug, Default)]
struct Measured {
    bytes: u64,
    sent: u64,
    delays_ms: Vec<f64>,
}

/// Repeats a run, given by the rows of its flows. Returns the results in the order of the rows.
pub fn run(rows: &[Row], seed: u64) -> Result<Vec<Results>> {
    let first = &rows[0];
    let direction = if first.is_up { Direction::Up } else { Direction::Down };
    let config = config(rows)?;
    let seed = Seed::new(seed);
    let mut sources = sources(rows, &config, seed)?;
    let mut cell: Cell<Packet> = Cell::new(&config, seed);
    cell.record_blocks();
    let end = WARM_UP + TimeDelta::from_secs(first.seconds);
    let header = Header::new(DataSize::from_bytes(PAYLOAD + HEADERS));
    let mut measured = vec![Measured::default(); sources.len()];
    let (mut mcs, mut blocks) = (0, 0);
    loop {
        let (index, arrival) = sources
            .iter()
            .enumerate()
            .map(|(index, source)| (index, source.next))
            .min_by_key(|(_, next)| *next)
            .expect("a run has flows");
        let now = cell.next_event().map_or(arrival, |event| event.min(arrival));
        if now >= end {
            break;
        }
        while let Some(outcome) = cell.poll(now) {
            if let Outcome::Delivered(delivery) = outcome {
                let Packet { source, sent } = delivery.payload;
                let flow = &mut measured[source];
                flow.bytes += if delivery.due >= WARM_UP { PAYLOAD } else { 0 };
                if sent >= WARM_UP {
                    flow.delays_ms.push((delivery.due - sent).as_millis_f64());
                }
            }
        }
        for block in cell.take_blocks() {
            if block.attempt == 1 && block.start >= WARM_UP {
                mcs += u64::from(block.mcs);
                blocks += 1;
            }
        }
        if now == arrival {
            let packets = sources[index].arrive();
            let Source { terminal, bearer, .. } = sources[index];
            for _ in 0..packets {
                measured[index].sent += u64::from(now >= WARM_UP);
                let packet = Packet { source: index, sent: now };
                cell.enqueue(now, (terminal, direction), Some(bearer), header, packet);
            }
        }
    }
    let mcs = if blocks > 0 { Some(mcs as f64 / f64::from(blocks)) } else { None };
    let mut all = Vec::new();
    for row in rows {
        let mut flows = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let is_of_terminal =
                row.terminal == "all" || (source.terminal + 1).to_string() == row.terminal;
            if is_of_terminal && (sources.len() == first.terminals || index + 1 == row.flow) {
                flows.push(&measured[index]);
            }
        }
        all.push(Results { mcs, ..results(&flows, first.seconds) });
    }
    Ok(all)
}

/// The results of a row. With several flows each value is the mean over the flows.
fn results(flows: &[&Measured], seconds: i64) -> Results {
    let each: Vec<Results> = flows.iter().map(|flow| flow.results(seconds)).collect();
    Results {
        mbps: mean(each.iter().map(|it| it.mbps)),
        loss: mean(each.iter().map(|it| it.loss)),
        mean_ms: mean(each.iter().map(|it| it.mean_ms)),
        p50_ms: mean(each.iter().map(|it| it.p50_ms)),
        p95_ms: mean(each.iter().map(|it| it.p95_ms)),
        p99_ms: mean(each.iter().map(|it| it.p99_ms)),
        mcs: None,
    }
}

/// Mean of values; `None` if one of them is unknown.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
}

/// The value below which a share of the values lies. The values are sorted.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied()
}

impl Measured {
    fn results(&self, seconds: i64) -> Results {
        let mut delays = self.delays_ms.clone();
        delays.sort_by(f64::total_cmp);
        let count = delays.len() as f64;
        Results {
            mbps: Some(self.bytes as f64 * 8.0 / seconds as f64 / 1e6),
            loss: if self.sent > 0 { Some(1.0 - count / self.sent as f64) } else { None },
            mean_ms: if count > 0.0 { Some(delays.iter().sum::<f64>() / count) } else { None },
            p50_ms: percentile(&delays, 0.5),
            p95_ms: percentile(&delays, 0.95),
            p99_ms: percentile(&delays, 0.99),
            mcs: None,
        }
    }
}

impl Source {
    /// Packets that are sent now.
    fn arrive(&mut self) -> u32 {
        let bits = PAYLOAD as f64 * 8.0;
        if !self.is_video {
            self.next += TimeDelta::from_secs_f64(bits / self.rate);
            return 1;
        }
        self.rest += self.rate / BURSTS / bits;
        let packets = (self.rest + 1e-9).floor();
        self.rest -= packets;
        self.next += TimeDelta::from_secs_f64(1.0 / BURSTS);
        packets as u32
    }
}

fn sources(rows: &[Row], config: &CellularConfig, seed: Seed) -> Result<Vec<Source>> {
    let mut chance = seed.stream("validate/starts");
    let mut sources = Vec::new();
    for row in rows {
        let terminals = match row.terminal.as_str() {
            "all" => 0..row.terminals,
            number => {
                let number: usize = number.parse()?;
                number - 1..number
            }
        };
        let (kind, mbps) = row.load.split_once(':').unwrap_or((&row.load, ""));
        let (rate, is_video) = match kind {
            "sat" => (peak(&config.carrier) * SATURATION, false),
            "cbr" => (mbps.parse::<f64>()? * 1e6, false),
            "video" => (mbps.parse::<f64>()? * 1e6, true),
            _ => bail!("unknown load {:?}", row.load),
        };
        for terminal in terminals {
            let start = TimeDelta::from_secs_f64(1.0 + START_SPREAD * chance.uniform());
            sources.push(Source {
                terminal,
                bearer: usize::from(row.flow == 1 && row.bearer != "default"),
                rate,
                is_video,
                next: Timestamp::ZERO + start,
                rest: 0.0,
            });
        }
    }
    Ok(sources)
}

/// Most bits a second of a carrier.
fn peak(carrier: &Carrier) -> f64 {
    // 18336 bits per millisecond on 25 resource blocks.
    18_336e3 / 25.0 * f64::from(carrier.prbs.down)
}

fn config(rows: &[Row]) -> Result<CellularConfig> {
    let first = &rows[0];
    let signals: Vec<f64> = if first.terminal == "all" {
        vec![first.sinr_db; first.terminals]
    } else {
        let rows_of_terminals = (1..=first.terminals)
            .map_while(|number| rows.iter().find(|row| row.terminal == number.to_string()));
        rows_of_terminals.map(|row| row.sinr_db).collect()
    };
    anyhow::ensure!(signals.len() == first.terminals, "a terminal has no row");
    let (fading, period) = fading(&first.fading)?;
    let terminals = signals.iter().enumerate().map(|(index, sinr_db)| {
        let signal = Signal::new(SignalChange::Constant(*sinr_db), fading);
        let mut terminal = Terminal::new(format!("ue-{}", index + 1), Directions::both(signal));
        terminal.bearers = bearers(first);
        terminal
    });
    let mut config = CellularConfig::ns3(Carrier::lte(first.prbs), terminals.collect());
    if let Some(period) = period {
        config.adaptation.down.period = period;
    }
    config.scheduler = match first.scheduler.as_str() {
        "Rr" => Scheduler::RoundRobin,
        // With one terminal PSS serves it alone, as proportional fair does.
        "Pf" | "Pss" => Scheduler::ProportionalFair,
        other => bail!("unknown scheduler {other:?}"),
    };
    Ok(config)
}

fn bearers(row: &Row) -> Vec<BearerConfig> {
    let queue = BearerQueue {
        limit: QueueLimit::Bytes(DataSize::from_bytes(row.queue)),
        aqm: Aqm::DropTail,
    };
    let rlc = if row.is_acknowledged { RlcMode::AM_NS3 } else { RlcMode::UM };
    let mut default = BearerConfig::default();
    default.rlc = rlc;
    default.queue = Directions::both(queue);
    let mut own = default.clone();
    own.name = "own".into();
    match row.bearer.as_str() {
        "gbr" => {
            let load: f64 =
                row.load.rsplit(':').next().and_then(|mbps| mbps.parse().ok()).unwrap_or(1.0);
            let rate = Directions::both(Bitrate::from_bps_f64(load * 1e6 * GUARANTEE));
            own.qci = Qci::new(2).expect("the table has it");
            own.guarantee = Some(Guarantee {
                rate,
                limit: Directions::both(Bitrate::from_kbps(u32::MAX.into())),
            });
        }
        "nongbr" => own.qci = Qci::new(7).expect("the table has it"),
        _ => return vec![default],
    }
    vec![default, own]
}

/// Fading and report period from their short form.
///
/// All runs of ns-3 with a profile play one recording of ten seconds, so its luck is in all of
/// their rates. Of the first recordings of ours, those are used whose rates come closest: within
/// 6 % of the means of eight runs of ns-3. With any recording, the rates spread by up to 20 %.
fn fading(text: &str) -> Result<(Option<Fading>, Option<TimeDelta>)> {
    let (channel, period) = text.split_once("/cqi").unwrap_or((text, ""));
    let period = match period.strip_suffix("ms") {
        // ns-3 sends a report one TTI after its period has passed.
        Some(millis) => Some(TimeDelta::from_millis(millis.parse::<i64>()? + 1)),
        None => None,
    };
    if channel == "none" {
        return Ok((None, period));
    }
    let (name, speed) = channel.split_at(3);
    let (profile, seed) = match name {
        "EPA" => (Profile::Epa, 10),
        "EVA" => (Profile::Eva, 12),
        "ETU" => (Profile::Etu, 10),
        other => bail!("unknown fading {other:?}"),
    };
    let origin = Origin::Recording { seed };
    let fading = Fading { profile, speed_kmh: speed.parse()?, carrier_hz: CARRIER_HZ, origin };
    Ok((Some(fading), period))
}
