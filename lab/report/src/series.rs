//! Curves: the mean over the seeds of each run's curve, on one grid of time.
//!
//! As in lund, section 5.2, the points of each run are interpolated linearly, and the curve is the
//! mean of the runs. The grid has a limited number of points, each at the end of a span of whole
//! rows. A value is the mean over the rows of its span. Rates and loss ratios are taken over
//! [`WINDOW`] at least: 50 ms contain only a few packets, and their number would look like a
//! changing rate.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_metrics::RunningMean;
use weir_scenario::oracle::Possible;
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::format::Series;
use super::{rounded, rounded_if};

/// Shortest time over which received rate and loss are taken, as rates are in [RFC8868 §3].
pub(super) const WINDOW: TimeDelta = TimeDelta::from_millis(200);
/// A longer time without a value is a gap in the curve, so that missing feedback is visible.
pub(super) const MAX_GAP: TimeDelta = TimeDelta::from_secs(2);

/// A column of the page's curves.
struct Column {
    decimals: i32,
    value: fn(&Cell<'_>) -> Option<f64>,
}

const COLUMNS: [Column; 6] = [
    Column { decimals: 4, value: capacity_mbps },
    Column { decimals: 4, value: target_mbps },
    Column { decimals: 4, value: received_mbps },
    Column { decimals: 2, value: rtt_ms },
    Column { decimals: 2, value: queuing_delay_ms },
    Column { decimals: 3, value: loss_percent },
];

/// One run's curve of each column.
pub(super) struct Curve([Vec<Option<f64>>; COLUMNS.len()]);

/// Draws the curve of one run's rows of one flow, as they come.
pub(super) struct Pen<'a> {
    grid: &'a Grid,
    /// Rows for the next points.
    recent: Vec<Row>,
    curve: Curve,
    points: usize,
}

impl<'a> Pen<'a> {
    pub(super) fn new(grid: &'a Grid) -> Self {
        let curve = Curve([const { Vec::new() }; COLUMNS.len()]);
        Self { grid, recent: Vec::new(), curve, points: 0 }
    }

    pub(super) fn push(&mut self, row: &Row) {
        while self.grid.ends.get(self.points).is_some_and(|end| *end < row.time) {
            self.draw();
        }
        if self.points < self.grid.ends.len() {
            self.recent.push(*row);
        }
    }

    pub(super) fn finish(mut self) -> Curve {
        while self.points < self.grid.ends.len() {
            self.draw();
        }
        let Curve(columns) = self.curve;
        Curve(columns.map(|column| interpolated(column, self.grid.max_gap())))
    }

    /// Draws the next point.
    fn draw(&mut self) {
        let Grid { step, ends } = self.grid;
        let length = (*step).max(WINDOW);
        let cell = Cell {
            span: ending_at(&self.recent, ends[self.points], *step),
            window: ending_at(&self.recent, ends[self.points], length),
        };
        for (curve, column) in self.curve.0.iter_mut().zip(&COLUMNS) {
            curve.push((column.value)(&cell));
        }
        self.points += 1;
        let begin = ends.get(self.points).map_or(Timestamp::MAX, |end| *end - length);
        let past = self.recent.partition_point(|row| row.time <= begin);
        self.recent.drain(..past);
    }
}

/// The mean curve of some runs.
#[derive(Default)]
pub(super) struct Average([Vec<RunningMean>; COLUMNS.len()]);

impl Average {
    /// Adds a run's curve. All runs share one grid. The order of runs affects the last bit of a
    /// mean.
    pub(super) fn add(&mut self, curve: &Curve) {
        for (means, curve) in self.0.iter_mut().zip(&curve.0) {
            means.resize(curve.len(), RunningMean::default());
            for (mean, value) in means.iter_mut().zip(curve) {
                mean.extend(*value);
            }
        }
    }

    pub(super) fn series(&self, grid: &Grid, possible: Option<&Possible>) -> Series {
        let mut columns = [const { Vec::new() }; COLUMNS.len()];
        for ((values, means), column) in columns.iter_mut().zip(&self.0).zip(&COLUMNS) {
            for mean in means {
                values.push(rounded_if(mean.value(), column.decimals));
            }
        }
        let [capacity_mbps, target_mbps, received_mbps, rtt_ms, queuing_delay_ms, loss_percent] =
            columns;
        let (mut time_s, mut possible_of_all) = (Vec::new(), Vec::new());
        for end in &grid.ends {
            time_s.push(end.as_secs_f64());
            possible_of_all.push(match possible {
                Some(possible) => possible_mbps(possible, *end - grid.step, *end),
                None => None,
            });
        }
        Series {
            time_s,
            capacity_mbps,
            possible_mbps: possible_of_all,
            target_mbps,
            received_mbps,
            rtt_ms,
            queuing_delay_ms,
            loss_percent,
        }
    }
}

/// The rows that make one point of a curve.
struct Cell<'a> {
    /// Rows since the previous point.
    span: &'a [Row],
    /// Rows of the same time, or of [`WINDOW`] if that is longer.
    window: &'a [Row],
}

/// Times at which the points of a curve end.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    step: TimeDelta,
    ends: Vec<Timestamp>,
}

impl Grid {
    /// A grid over a run's whole time, with `max_points` points at most.
    pub(super) fn over(duration: TimeDelta, max_points: usize) -> Self {
        let rows = (duration.as_nanos() as u64).div_ceil(ROW_INTERVAL.as_nanos() as u64) as i64;
        let rows_per_point = (rows as u64).div_ceil(max_points as u64).max(1) as i64;
        let step = ROW_INTERVAL * rows_per_point;
        let points = (rows as u64).div_ceil(rows_per_point as u64) as i64;
        let end = Timestamp::ZERO + duration;
        let ends = (1..=points).map(|point| (Timestamp::ZERO + step * point).min(end)).collect();
        Self { step, ends }
    }

    /// [`MAX_GAP`] in points.
    fn max_gap(&self) -> usize {
        (MAX_GAP / self.step) as usize
    }
}

/// The rows of the time that ends at `end`.
fn ending_at(rows: &[Row], end: Timestamp, length: TimeDelta) -> &[Row] {
    let [from, until] =
        [end - length, end].map(|time| rows.partition_point(|row| row.time <= time));
    &rows[from..until]
}

fn mean_of(rows: &[Row], value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    rows.iter().filter_map(value).collect::<RunningMean>().value()
}

/// The capacity at the end of the time, or its mean over the time if it changes within rows.
fn capacity_mbps(cell: &Cell<'_>) -> Option<f64> {
    if cell.span.iter().any(|row| row.mean_capacity.is_some()) {
        return mean_of(cell.span, |row| row.capacity_over_it().map(Bitrate::as_mbps_f64));
    }
    Some(cell.span.last()?.capacity?.as_mbps_f64())
}

fn target_mbps(cell: &Cell<'_>) -> Option<f64> {
    mean_of(cell.span, |row| row.target.map(Bitrate::as_mbps_f64))
}

fn rtt_ms(cell: &Cell<'_>) -> Option<f64> {
    mean_of(cell.span, |row| row.rtt.map(TimeDelta::as_millis_f64))
}

fn queuing_delay_ms(cell: &Cell<'_>) -> Option<f64> {
    mean_of(cell.span, |row| row.queuing_delay.map(TimeDelta::as_millis_f64))
}

fn received_mbps(cell: &Cell<'_>) -> Option<f64> {
    // After a flow has ended, the window may still contain rows, but the flow receives nothing.
    cell.span.last()?;
    let received: DataSize = cell.window.iter().map(|row| row.received).sum();
    Some((received / (ROW_INTERVAL * cell.window.len() as i64)).as_mbps_f64())
}

fn loss_percent(cell: &Cell<'_>) -> Option<f64> {
    cell.span.last()?;
    let sent: u64 = cell.window.iter().map(|row| row.sent_packets).sum();
    let lost: u64 = cell.window.iter().map(|row| row.lost_packets).sum();
    // A packet may be lost in a later row than it was sent in.
    (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0) * 100.0)
}

/// The oracle's mean rate between two times; `None` while the flow is not active.
fn possible_mbps(possible: &Possible, from: Timestamp, to: Timestamp) -> Option<f64> {
    let seconds = (to - from).as_secs_f64();
    let is_active = seconds > 0.0 && possible.shared_bits(from, to) > 0.0;
    if is_active { Some(rounded(possible.bits(from, to) / seconds / 1e6, 4)) } else { None }
}

/// Fills gaps of at most `max_gap` points with the line between their ends.
fn interpolated(mut curve: Vec<Option<f64>>, max_gap: usize) -> Vec<Option<f64>> {
    let mut last: Option<(usize, f64)> = None;
    for point in 0..curve.len() {
        let Some(value) = curve[point] else { continue };
        if let Some((from, start)) = last
            && point - from <= max_gap
        {
            let slope = (value - start) / (point - from) as f64;
            for (distance, between) in (1..).zip(&mut curve[from + 1..point]) {
                *between = Some(start + slope * f64::from(distance));
            }
        }
        last = Some((point, value));
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_POINTS: usize = 1_200;

    /// 1000 rows, so that a point of the grid is a row; row `index` receives what `received` says.
    fn rows(received: impl Fn(i64) -> u64) -> Vec<Row> {
        (0..1_000)
            .map(|index| {
                let capacity = Bitrate::from_kbps(if index < 500 { 2_000 } else { 500 });
                Row::new(Timestamp::ZERO + ROW_INTERVAL * (index + 1), 0)
                    .with_capacity(Some(capacity))
                    .with_target(Some(Bitrate::from_kbps(1_000)))
                    .with_received(DataSize::from_bytes(received(index)))
                    .with_sent_packets(5)
            })
            .collect()
    }

    fn average(runs: &[&[Row]], duration: TimeDelta, max_points: usize) -> Series {
        let grid = Grid::over(duration, max_points);
        let mut average = Average::default();
        for rows in runs {
            let mut pen = Pen::new(&grid);
            for row in *rows {
                pen.push(row);
            }
            average.add(&pen.finish());
        }
        average.series(&grid, None)
    }

    const LENGTH: TimeDelta = TimeDelta::from_secs(50);

    #[test]
    fn gaps_are_filled_with_a_line_up_to_their_limit() {
        let gap = |curve: &[Option<f64>], limit| interpolated(curve.to_vec(), limit);
        let curve = [None, Some(1.0), None, None, None, Some(3.0), None];
        assert_eq!(
            gap(&curve, 4),
            [None, Some(1.0), Some(1.5), Some(2.0), Some(2.5), Some(3.0), None]
        );
        assert_eq!(gap(&curve, 3), curve);
    }

    #[test]
    fn the_curve_is_the_mean_of_the_runs_that_have_a_value() {
        let [mut first, mut second] = [rows(|_| 1_250), rows(|_| 3_750)];
        first[10].rtt = Some(TimeDelta::from_millis(40));
        first[14].rtt = Some(TimeDelta::from_millis(80));
        second[12].rtt = Some(TimeDelta::from_millis(100));
        let series = average(&[&first, &second], LENGTH, MAX_POINTS);
        // 200 and 600 kbit/s.
        assert_eq!(series.received_mbps[500], Some(0.4));
        assert_eq!(
            series.rtt_ms[9..16],
            [None, Some(40.0), Some(50.0), Some(80.0), Some(70.0), Some(80.0), None]
        );
    }

    #[test]
    fn what_is_possible_is_a_mean_over_each_point() {
        let possible = Possible {
            step: ROW_INTERVAL,
            share: vec![2e6, 2e6, 0.0, 0.0],
            rate: vec![1e6, 2e6, 0.0, 0.0],
            delay: vec![0.0; 4],
            lag: ROW_INTERVAL,
        };
        let grid = Grid::over(ROW_INTERVAL * 4, 2);
        let series = Average::default().series(&grid, Some(&possible));
        assert_eq!(series.possible_mbps, [Some(1.5), None]);
    }

    #[test]
    fn received_rate_is_taken_over_200_ms() {
        // All that 200 ms bring comes in one row of four: 5000 B in 200 ms are 200 kbit/s.
        let rows = rows(|index| if index % 4 == 0 { 5_000 } else { 0 });
        let series = average(&[&rows], LENGTH, MAX_POINTS);
        assert!(series.received_mbps[3..].iter().all(|rate| *rate == Some(0.2)));
    }

    #[test]
    fn loss_is_per_cent_of_the_packets_sent_and_unknown_where_none_was() {
        let mut rows = rows(|_| 0);
        rows[100].lost_packets = 1;
        for row in rows[200..].iter_mut() {
            row.sent_packets = 0;
        }
        let series = average(&[&rows], LENGTH, MAX_POINTS);
        // One of the twenty packets of 200 ms.
        assert_eq!(series.loss_percent[99..105], [0.0, 5.0, 5.0, 5.0, 5.0, 0.0].map(Some));
        assert_eq!(series.loss_percent[300], None);
    }

    #[test]
    fn a_long_run_has_no_more_points_than_a_screen_shows() {
        let series = average(&[&rows(|_| 1_250)], TimeDelta::from_secs(200), MAX_POINTS);
        // 4000 rows, four a point.
        assert_eq!(series.time_s.len(), 1_000);
        assert_eq!(series.time_s[..2], [0.2, 0.4]);
        // The span from 24.8 to 25 s is the last before the drop.
        assert_eq!(series.capacity_mbps[124..126], [Some(2.0), Some(0.5)]);
        assert_eq!(series.target_mbps[249], Some(1.0));
        assert_eq!(series.target_mbps[250], None);
    }
}
