//! `series.csv`: a row a flow and 50 ms, integers only; an empty cell was not measured. The columns of
//! the video, of TCP and of feedback stand only in the records of runs that have them.

use std::io::Write;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row, Trace, Transfer, Video};

const HEADER: &str = "time_ms,flow,capacity_bps,target_bps,pacing_bps,window_bytes,sent_bytes,\
                      received_bytes,sent_packets,lost_packets,rtt_us,queuing_delay_us,queue_bytes";
const COLUMNS: usize = 13;
const VIDEO_HEADER: &str = ",media_bytes,rtx_bytes,fec_bytes,media_packets,unrepaired_packets,frames,\
                            freezes,frozen_us,frame_delay_us";
const VIDEO_COLUMNS: usize = 9;
const TRANSFER_HEADER: &str = ",goodput_bytes,retransmitted_packets";
const TRANSFER_COLUMNS: usize = 2;
const FEEDBACK_HEADER: &str = ",feedback_bytes";

/// Bytes or packets of a row: more than any network here carries in its time, and so few that their sum
/// over a run stays within its type.
const AMOUNT_MAX: u64 = 1 << 36;
/// More than the longest run lasts.
const MICROS_MAX: u64 = 1 << 40;

/// Which of the optional columns a file has.
#[derive(Clone, Copy, Debug)]
struct Columns {
    video: bool,
    transfer: bool,
    feedback: bool,
}

impl Columns {
    fn of(trace: &Trace) -> Self {
        Self {
            video: trace.rows.iter().any(|row| row.video.is_some()),
            transfer: trace.rows.iter().any(|row| row.transfer.is_some()),
            feedback: trace.rows.iter().any(|row| row.feedback.is_some()),
        }
    }

    /// As the first line says; `None` if it says something else.
    fn of_header(line: &str) -> Option<Self> {
        let rest = line.strip_prefix(HEADER)?;
        let without_video = rest.strip_prefix(VIDEO_HEADER);
        let rest = without_video.unwrap_or(rest);
        let without_transfer = rest.strip_prefix(TRANSFER_HEADER);
        let rest = without_transfer.unwrap_or(rest);
        let without_feedback = rest.strip_prefix(FEEDBACK_HEADER);
        let columns = Self {
            video: without_video.is_some(),
            transfer: without_transfer.is_some(),
            feedback: without_feedback.is_some(),
        };
        without_feedback.unwrap_or(rest).is_empty().then_some(columns)
    }

    fn header(self) -> String {
        let video = if self.video { VIDEO_HEADER } else { "" };
        let transfer = if self.transfer { TRANSFER_HEADER } else { "" };
        let feedback = if self.feedback { FEEDBACK_HEADER } else { "" };
        format!("{HEADER}{video}{transfer}{feedback}")
    }

    /// The first column of a TCP flow's transfer.
    fn transfer_column(self) -> usize {
        COLUMNS + if self.video { VIDEO_COLUMNS } else { 0 }
    }

    fn feedback_column(self) -> usize {
        self.transfer_column() + if self.transfer { TRANSFER_COLUMNS } else { 0 }
    }

    fn count(self) -> usize {
        self.feedback_column() + usize::from(self.feedback)
    }
}

pub(super) fn emit(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::with_capacity(trace.rows.len() * 80 + HEADER.len());
    let mut put = |row: std::fmt::Arguments<'_>| {
        out.write_fmt(row).expect("writing to memory does not fail");
    };
    let columns = Columns::of(trace);
    put(format_args!("{}\n", columns.header()));
    for row in &trace.rows {
        put(format_args!("{},{}", row.time.as_millis(), trace.flows[row.flow]));
        let optional = [
            row.capacity.map(|rate| rate.as_bps() as i64),
            row.target.map(|rate| rate.as_bps() as i64),
            row.pacing_rate.map(|rate| rate.as_bps() as i64),
            row.congestion_window.map(|size| size.as_bytes() as i64),
            Some(row.sent.as_bytes() as i64),
            Some(row.received.as_bytes() as i64),
            Some(row.sent_packets as i64),
            Some(row.lost_packets as i64),
            row.rtt.map(TimeDelta::as_micros),
            row.queuing_delay.map(TimeDelta::as_micros),
            Some(row.queue.as_bytes() as i64),
        ];
        let video = row.video.map_or([None; VIDEO_COLUMNS], video_cells);
        let video = if columns.video { &video[..] } else { &[] };
        let transfer = row.transfer.map_or([None; TRANSFER_COLUMNS], transfer_cells);
        let transfer = if columns.transfer { &transfer[..] } else { &[] };
        let feedback = [row.feedback.map(|size| size.as_bytes() as i64)];
        let feedback = if columns.feedback { &feedback[..] } else { &[] };
        for cell in optional.iter().chain(video).chain(transfer).chain(feedback) {
            match cell {
                Some(value) => put(format_args!(",{value}")),
                None => put(format_args!(",")),
            }
        }
        put(format_args!("\n"));
    }
    out
}

fn video_cells(video: Video) -> [Option<i64>; VIDEO_COLUMNS] {
    [
        Some(video.media.as_bytes() as i64),
        Some(video.rtx.as_bytes() as i64),
        Some(video.fec.as_bytes() as i64),
        Some(video.media_packets as i64),
        Some(video.unrepaired_packets as i64),
        Some(video.frames as i64),
        Some(video.freezes as i64),
        Some(video.frozen.as_micros()),
        video.frame_delay.map(TimeDelta::as_micros),
    ]
}

fn transfer_cells(transfer: Transfer) -> [Option<i64>; TRANSFER_COLUMNS] {
    [Some(transfer.goodput.as_bytes() as i64), Some(transfer.retransmitted_packets as i64)]
}

pub(super) fn parse(text: &str, flows: &[String]) -> Result<Vec<Row>, String> {
    let mut lines = text.lines();
    let columns = lines.next().and_then(Columns::of_header).ok_or_else(|| {
        format!(
            "the first line must be {HEADER}, with {VIDEO_HEADER}, {TRANSFER_HEADER} and \
             {FEEDBACK_HEADER} or not"
        )
    })?;
    let mut rows = Vec::new();
    for (index, line) in lines.enumerate() {
        let row = parse_row(line, columns, flows)
            .map_err(|what| format!("line {}: {what}", index + 2))?;
        if rows.last().is_some_and(|last: &Row| last.time > row.time) {
            return Err(format!("line {}: an earlier time than the line before", index + 2));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The rows of a file with this first line; an error tells the line.
pub(super) fn parse_rows<T>(
    text: &str,
    header: &str,
    parse_row: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(header) {
        return Err(format!("the first line must be {header}"));
    }
    let row = |(index, line)| parse_row(line).map_err(|what| format!("line {}: {what}", index + 2));
    lines.enumerate().map(row).collect()
}

/// The cells of a line.
pub(super) struct Cells<'a>(Vec<&'a str>);

impl<'a> Cells<'a> {
    /// The cells of a line that must have so many.
    pub(super) fn of(line: &'a str, columns: usize) -> Result<Self, String> {
        let cells: Vec<&str> = line.split(',').collect();
        match cells.len() {
            found if found == columns => Ok(Self(cells)),
            found => Err(format!("{found} columns, not {columns}")),
        }
    }

    pub(super) fn text(&self, column: usize) -> &'a str {
        self.0[column]
    }

    /// Which of these the cell names; `what` says what they are.
    pub(super) fn position(
        &self,
        column: usize,
        what: &str,
        names: &[String],
    ) -> Result<usize, String> {
        let name = self.0[column];
        names.iter().position(|known| known == name).ok_or_else(|| format!("no {what} '{name}'"))
    }

    pub(super) fn optional(&self, column: usize) -> Result<Option<u64>, String> {
        match self.0[column] {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| format!("'{cell}' is not a number")),
        }
    }

    pub(super) fn number(&self, column: usize) -> Result<u64, String> {
        self.optional(column)?.ok_or(format!("column {column} is empty"))
    }

    /// Bytes or packets of one row, which are added up over a run.
    pub(super) fn amount(&self, column: usize) -> Result<u64, String> {
        self.number(column).and_then(|amount| at_most(amount, AMOUNT_MAX))
    }

    pub(super) fn size(&self, column: usize) -> Result<DataSize, String> {
        self.amount(column).map(DataSize::from_bytes)
    }

    fn micros(&self, column: usize) -> Result<Option<TimeDelta>, String> {
        self.optional(column)?.map(time).transpose()
    }

    /// Whether these columns are there and one of them is filled.
    fn any(&self, columns: std::ops::Range<usize>) -> bool {
        self.0.get(columns).is_some_and(|cells| cells.iter().any(|cell| !cell.is_empty()))
    }

    fn video(&self, columns: Columns) -> Result<Option<Video>, String> {
        if !columns.video || !self.any(COLUMNS..COLUMNS + VIDEO_COLUMNS) {
            return Ok(None);
        }
        Ok(Some(Video {
            media: self.size(COLUMNS)?,
            rtx: self.size(COLUMNS + 1)?,
            fec: self.size(COLUMNS + 2)?,
            media_packets: self.amount(COLUMNS + 3)?,
            unrepaired_packets: self.amount(COLUMNS + 4)?,
            frames: self.amount(COLUMNS + 5)?,
            freezes: self.amount(COLUMNS + 6)?,
            frozen: time(self.number(COLUMNS + 7)?)?,
            frame_delay: self.micros(COLUMNS + 8)?,
        }))
    }

    fn transfer(&self, columns: Columns) -> Result<Option<Transfer>, String> {
        let first = columns.transfer_column();
        if !columns.transfer || !self.any(first..first + TRANSFER_COLUMNS) {
            return Ok(None);
        }
        Ok(Some(Transfer {
            goodput: self.size(first)?,
            retransmitted_packets: self.amount(first + 1)?,
        }))
    }

    fn feedback(&self, columns: Columns) -> Result<Option<DataSize>, String> {
        if !columns.feedback {
            return Ok(None);
        }
        let bytes = self.optional(columns.feedback_column())?;
        let bytes = bytes.map(|bytes| at_most(bytes, AMOUNT_MAX)).transpose()?;
        Ok(bytes.map(DataSize::from_bytes))
    }
}

fn at_most(value: u64, max: u64) -> Result<u64, String> {
    if value <= max { Ok(value) } else { Err(format!("{value} is too large")) }
}

/// A time in microseconds.
pub(super) fn time(micros: u64) -> Result<TimeDelta, String> {
    at_most(micros, MICROS_MAX).map(|micros| TimeDelta::from_micros(micros.cast_signed()))
}

fn parse_row(line: &str, columns: Columns, flows: &[String]) -> Result<Row, String> {
    let cells = Cells::of(line, columns.count())?;
    let rate = |column| Ok::<_, String>(cells.optional(column)?.map(Bitrate::from_bps));
    let time_ms = cells.number(0)?;
    if !time_ms.is_multiple_of(ROW_INTERVAL.as_millis() as u64) {
        return Err(format!("{time_ms} ms is not a multiple of {}", ROW_INTERVAL.as_millis()));
    }
    Ok(Row {
        time: Timestamp::ZERO + time(time_ms.saturating_mul(1000))?,
        flow: cells.position(1, "flow", flows)?,
        capacity: rate(2)?,
        target: rate(3)?,
        pacing_rate: rate(4)?,
        congestion_window: cells.optional(5)?.map(DataSize::from_bytes),
        sent: cells.size(6)?,
        received: cells.size(7)?,
        sent_packets: cells.amount(8)?,
        lost_packets: cells.amount(9)?,
        rtt: cells.micros(10)?,
        queuing_delay: cells.micros(11)?,
        queue: DataSize::from_bytes(cells.number(12)?),
        video: cells.video(columns)?,
        transfer: cells.transfer(columns)?,
        feedback: cells.feedback(columns)?,
    })
}
