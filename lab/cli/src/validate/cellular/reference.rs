//! The reference runs: what was simulated with ns-3, and what came out.

use anyhow::{Context, Result};

/// The runs. The first lines say how they were made.
const TABLE: &str = include_str!("reference.csv");

/// Means over several runs of ns-3 for the runs with fading, of which the table has one each.
const MEANS: &str = include_str!("fading_means.csv");

/// One flow of a run (or the mean over equal flows), with its conditions and results.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the run; flows of one run share it.
    pub id: String,
    /// Whether the data goes up.
    pub is_up: bool,
    /// Resource blocks.
    pub prbs: u16,
    /// `Pf`, `Rr` or `Pss`.
    pub scheduler: String,
    /// Whether RLC acknowledges.
    pub is_acknowledged: bool,
    /// `none`, or profile, speed and perhaps the report period, such as `EPA3/cqi40ms`.
    pub fading: String,
    /// `default`, `nongbr` or `gbr`.
    pub bearer: String,
    /// Bytes of the queue.
    pub queue: u64,
    /// Number of terminals.
    pub terminals: usize,
    /// Number of the terminal from 1, or `all`.
    pub terminal: String,
    /// SINR in decibels.
    pub sinr_db: f64,
    /// Number of the flow of its terminal, from 1.
    pub flow: usize,
    /// `sat`, `cbr:M` or `video:M`.
    pub load: String,
    /// Measured time in seconds.
    pub seconds: i64,
    /// Results.
    pub results: Results,
}

/// Results of a flow. `None` where the run gave no value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results {
    /// UDP payload in Mbit/s.
    pub mbps: Option<f64>,
    /// Share of the packets lost.
    pub loss: Option<f64>,
    /// Delays in milliseconds: mean, percentiles, least.
    pub mean_ms: Option<f64>,
    /// 50th percentile.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Mean MCS of first transmissions, over the cell.
    pub mcs: Option<f64>,
}

/// Reads the rows.
pub fn rows() -> Result<Vec<Row>> {
    read(TABLE)
}

/// Reads rows of this format. For runs with fading, rate and 95th percentile are the means.
fn read(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let mut row = row(line).with_context(|| format!("reference row {line:?}"))?;
            if let Some((mbps, p95)) = mean_of(&row.id) {
                row.results.mbps = Some(mbps);
                row.results.p95_ms = Some(p95);
            }
            Ok(row)
        })
        .collect()
}

/// Rate and 95th percentile of the row's means; `None` if there are none.
fn mean_of(id: &str) -> Option<(f64, f64)> {
    for line in MEANS.lines() {
        if let Some((of, rest)) = line.split_once(',')
            && of == id
            && let Some((mbps, p95)) = rest.split_once(',')
        {
            return Some((mbps.parse().ok()?, p95.parse().ok()?));
        }
    }
    None
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    anyhow::ensure!(cells.len() == 28, "{} columns instead of 28", cells.len());
    let number = |index: usize| cells[index].parse::<f64>().ok();
    Ok(Row {
        id: cells[0].into(),
        is_up: cells[1] == "ul",
        prbs: cells[2].parse()?,
        scheduler: cells[3].into(),
        is_acknowledged: cells[4] == "am",
        fading: cells[5].into(),
        bearer: cells[6].into(),
        queue: cells[7].parse()?,
        terminals: cells[8].parse()?,
        terminal: cells[9].into(),
        sinr_db: cells[10].parse()?,
        flow: cells[11].parse()?,
        load: cells[12].into(),
        seconds: cells[13].parse()?,
        results: Results {
            mbps: number(15),
            loss: number(19),
            mean_ms: number(20),
            p50_ms: number(21),
            p95_ms: number(22),
            p99_ms: number(23),
            mcs: number(27),
        },
    })
}

/// The rows of each run, in order.
pub fn runs(rows: &[Row]) -> Vec<&[Row]> {
    rows.chunk_by(|a, b| a.id == b.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_of_the_table_are_read() {
        let rows = rows().unwrap();
        assert!(rows.len() > 250, "{}", rows.len());
        assert!(rows.iter().all(|row| row.results.mbps.is_some()));
        assert!(runs(&rows).len() < rows.len());
        let of = |id| rows.iter().find(|row| row.id == id).unwrap().results;
        // The mean of eight runs, and a run without fading.
        assert_eq!(of("fadEPA-dl-25-n1-s10").mbps, Some(3.685));
        assert_eq!(of("sweep-dl-25-s5").mbps, Some(3.64));
    }
}
