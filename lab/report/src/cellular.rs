//! A cellular cell over one run: curves of each bearer, what became of bearers, and who had which
//! resource blocks for a few milliseconds.

use weir::units::{TimeDelta, Timestamp};
use weir_net::cellular::{BearerEvent, BearerRow, BlockRecord, Directions};
use weir_net::path::{Direction, NOTE_INTERVAL};
use weir_record::run::Engine;
use weir_record::terminals::prbs_per_second;
use weir_record::{Reader, RecordError};
use weir_scenario::Access;

use super::format::{BearerChange, BearerCurve, Cellular, GridBlock, ResourceGrid};
use super::{Column, Run, rounded};

/// Maximum number of points of a curve.
const POINTS_MAX: i64 = 300;
/// Maximum number of curves: bearers times directions. More lines cannot be told apart.
const CURVES_MAX: usize = 64;
/// Maximum number of events of bearers.
const EVENTS_MAX: usize = 200;
/// TTIs in the picture of resource blocks: enough for several rounds of HARQ.
const TTIS_SHOWN: i64 = 40;
/// Maximum number of blocks in the picture, more than any cell sends in that time.
const BLOCKS_MAX: usize = 4_000;

/// Collects what is drawn of a run.
pub(super) struct Bearers {
    step: TimeDelta,
    points: usize,
    curves: Vec<Curve>,
    /// Whether there were more bearers than curves.
    is_cut: bool,
    events: Vec<BearerEvent>,
    blocks: Vec<BlockRecord>,
    tti: TimeDelta,
}

/// A curve while its rows are added up.
struct Curve {
    node: usize,
    bearer: String,
    direction: Direction,
    bins: Vec<Bin>,
}

/// Sums over the rows of one point.
#[derive(Clone, Copy, Default)]
struct Bin {
    rows: u32,
    sinr_db: f64,
    mcs: f64,
    blocks: u64,
    retransmissions: u64,
    prbs: f64,
    delivered: u64,
    queue: f64,
}

impl Bearers {
    /// Reads a record; `None` if its network is no cellular cell.
    pub(super) fn read(record: &Reader) -> Result<Option<Self>, RecordError> {
        let Some(config) = record.scenario.access.as_ref().and_then(Access::cellular) else {
            return Ok(None);
        };
        let mut bearers = Self::new(record.scenario.duration, config.carrier.tti());
        record.bearer_rows(|row| bearers.push(row))?;
        record.bearer_events(|event| {
            if bearers.events.len() < EVENTS_MAX {
                bearers.events.push(event);
            }
        })?;
        record.blocks(|block| bearers.push_block(block))?;
        Ok(Some(bearers))
    }

    fn new(duration: TimeDelta, tti: TimeDelta) -> Self {
        let rows = (duration.as_nanos() as u64).div_ceil(NOTE_INTERVAL.as_nanos() as u64);
        let rows_per_point = rows.div_ceil(POINTS_MAX as u64).max(1);
        Self {
            step: NOTE_INTERVAL * rows_per_point as i64,
            points: rows.div_ceil(rows_per_point) as usize,
            curves: Vec::new(),
            is_cut: false,
            events: Vec::new(),
            blocks: Vec::new(),
            tti,
        }
    }

    fn push(&mut self, row: &BearerRow) {
        let own = self.curves.iter().position(|curve| {
            curve.node == row.node && curve.direction == row.direction && curve.bearer == row.bearer
        });
        let index = match own {
            Some(index) => index,
            None if self.curves.len() == CURVES_MAX => {
                self.is_cut = true;
                return;
            }
            None => {
                let (node, direction, bearer) = (row.node, row.direction, row.bearer.clone());
                let bins = vec![Bin::default(); self.points];
                self.curves.push(Curve { node, bearer, direction, bins });
                self.curves.len() - 1
            }
        };
        // A row ends its interval, so the row at the end of a point belongs to it.
        let before = row.time - Timestamp::ZERO - TimeDelta::from_nanos(1);
        let point = (before.as_nanos().max(0) / self.step.as_nanos()) as usize;
        if let Some(bin) = self.curves[index].bins.get_mut(point) {
            bin.push(row);
        }
    }

    fn push_block(&mut self, block: BlockRecord) {
        let from = self.blocks.first().map_or(block.start, |first| first.start);
        let is_shown = block.start < from + self.tti * TTIS_SHOWN;
        if is_shown && self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(block);
        }
    }
}

impl Bin {
    fn push(&mut self, row: &BearerRow) {
        self.rows += 1;
        self.sinr_db += row.sinr_db;
        self.mcs += row.mcs.unwrap_or(0.0) * row.blocks as f64;
        self.blocks += row.blocks;
        self.retransmissions += row.retransmissions;
        self.prbs += row.prbs;
        self.delivered += row.delivered.as_bytes();
        self.queue += row.queue.as_bytes() as f64;
    }

    fn mean(self, sum: f64, decimals: i32) -> Option<f64> {
        if self.rows > 0 { Some(rounded(sum / f64::from(self.rows), decimals)) } else { None }
    }

    fn seconds(self) -> f64 {
        NOTE_INTERVAL.as_secs_f64() * f64::from(self.rows)
    }
}

/// The cell in the run of the scenario that has one, preferably a simulated run.
pub(super) fn of(columns: &[Column<'_>]) -> Option<Cellular> {
    let mut runs: Vec<(&Run, &Bearers)> = Vec::new();
    for run in columns.iter().flat_map(|column| column.runs) {
        runs.extend(run.bearers.iter().filter(|it| !it.curves.is_empty()).map(|it| (run, it)));
    }
    let simulated = runs.iter().find(|(run, _)| run.record.info.engine == Engine::Sim);
    let (run, bearers) = simulated.or(runs.first())?;
    let access = run.record.scenario.access.as_ref()?;
    let config = access.cellular()?;
    let prbs = Directions::from_fn(|direction| prbs_per_second(&config.carrier, direction));
    let nodes = &run.record.nodes;
    let changes = bearers.events.iter().map(|event| BearerChange {
        time_s: event.time.as_secs_f64(),
        terminal: nodes[event.node].clone(),
        bearer: event.bearer.clone(),
        event: event.kind.to_string(),
    });
    let ends = (1..=bearers.points).map(|point| bearers.step * point as i64);
    Some(Cellular {
        command: run.record.info.command(),
        controller: run.record.info.subject.to_string(),
        time_s: ends.map(TimeDelta::as_secs_f64).collect(),
        curves: bearers.curves.iter().map(|it| curve(it, nodes, *prbs.of(it.direction))).collect(),
        is_cut: bearers.is_cut,
        changes: changes.collect(),
        grid: grid(bearers, access, nodes),
    })
}

fn curve(curve: &Curve, nodes: &[String], prbs_per_second: f64) -> BearerCurve {
    let bins = curve.bins.iter().copied();
    BearerCurve {
        terminal: nodes[curve.node].clone(),
        bearer: curve.bearer.clone(),
        direction: curve.direction,
        rate_mbps: bins
            .clone()
            .map(|bin| of_time(bin, bin.delivered as f64 * 8.0 / 1e6, 3))
            .collect(),
        queue_kb: bins.clone().map(|bin| bin.mean(bin.queue / 1e3, 2)).collect(),
        prb_percent: bins
            .clone()
            .map(|bin| of_time(bin, bin.prbs / prbs_per_second * 100.0, 2))
            .collect(),
        sinr_db: bins.clone().map(|bin| bin.mean(bin.sinr_db, 2)).collect(),
        mcs: bins.clone().map(|bin| share(bin.mcs, bin.blocks as f64, 2)).collect(),
        retransmission_percent: bins.map(retransmission_percent).collect(),
    }
}

fn retransmission_percent(bin: Bin) -> Option<f64> {
    let again = bin.retransmissions as f64;
    share(100.0 * again, bin.blocks as f64 + again, 2)
}

fn of_time(bin: Bin, amount: f64, decimals: i32) -> Option<f64> {
    share(amount, bin.seconds(), decimals)
}

fn share(part: f64, whole: f64, decimals: i32) -> Option<f64> {
    if whole > 0.0 { Some(rounded(part / whole, decimals)) } else { None }
}

/// The picture of resource blocks; `None` if no block was recorded.
fn grid(bearers: &Bearers, access: &Access, nodes: &[String]) -> Option<ResourceGrid> {
    let config = access.cellular()?;
    let from = bearers.blocks.first()?.start;
    let mut blocks = Vec::new();
    for block in &bearers.blocks {
        let tti = (block.start - from).as_nanos() as f64 / bearers.tti.as_nanos() as f64;
        blocks.push(GridBlock {
            tti: tti.round() as u32,
            direction: block.direction,
            node: block.node,
            prbs: block.prbs.iter().map(|it| (it.start, it.end.saturating_sub(1))).collect(),
            mcs: block.mcs,
            bytes: block.bytes,
            attempt: block.attempt,
            is_decoded: block.is_decoded,
        });
    }
    Some(ResourceGrid {
        from_s: from.as_secs_f64(),
        tti_ms: bearers.tti.as_millis_f64(),
        ttis: TTIS_SHOWN as u32,
        prbs_up: config.carrier.prbs.up,
        prbs_down: config.carrier.prbs.down,
        nodes: nodes.to_vec(),
        blocks,
    })
}
