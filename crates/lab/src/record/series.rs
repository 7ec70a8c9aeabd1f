//! `series.csv`: a row a flow and 50 ms, integers only; an empty cell was not measured. The columns of
//! the video, of TCP and of feedback stand only in the records of runs that have them.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row, Transfer, Video};

pub(super) const HEADER: &str = "time_ms,flow,capacity_bps,target_bps,pacing_bps,window_bytes,sent_bytes,\
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
#[derive(Clone, Copy, Debug, PartialEq)]
struct Columns {
    video: bool,
    transfer: bool,
    feedback: bool,
}

impl Columns {
    /// These, and those that the rows need.
    fn and(self, rows: &[Row]) -> Self {
        Self {
            video: self.video || rows.iter().any(|row| row.video.is_some()),
            transfer: self.transfer || rows.iter().any(|row| row.transfer.is_some()),
            feedback: self.feedback || rows.iter().any(|row| row.feedback.is_some()),
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

/// The file as it grows. Which columns it has only the rows tell, and some come late: where one comes
/// first, what was written is written again with that column.
pub(super) struct SeriesFile {
    path: PathBuf,
    out: BufWriter<File>,
    columns: Columns,
    lines: Vec<u8>,
}

impl SeriesFile {
    /// Begins a file that must not be there yet.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let columns = Columns { video: false, transfer: false, feedback: false };
        let mut out = BufWriter::new(File::create_new(&path)?);
        writeln!(out, "{}", columns.header())?;
        Ok(Self { path, out, columns, lines: Vec::new() })
    }

    /// Writes the next rows.
    pub(super) fn write(&mut self, flows: &[String], rows: &[Row]) -> io::Result<()> {
        let wider = self.columns.and(rows);
        if wider != self.columns {
            self.widen(wider)?;
        }
        self.lines.clear();
        for row in rows {
            put_row(&mut self.lines, row, &flows[row.flow], self.columns);
        }
        self.out.write_all(&self.lines)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn widen(&mut self, wider: Columns) -> io::Result<()> {
        self.out.flush()?;
        let path = self.path.with_extension("wider");
        let mut out = BufWriter::new(File::create_new(&path)?);
        writeln!(out, "{}", wider.header())?;
        for line in BufReader::new(File::open(&self.path)?).lines().skip(1) {
            let line = line?;
            let mut cells = line.split(',');
            let groups = [
                (COLUMNS, true, true),
                (VIDEO_COLUMNS, self.columns.video, wider.video),
                (TRANSFER_COLUMNS, self.columns.transfer, wider.transfer),
                (1, self.columns.feedback, wider.feedback),
            ];
            let mut separator = "";
            for (count, was, is) in groups {
                for _ in 0..if is { count } else { 0 } {
                    let cell = if was { cells.next().unwrap_or_default() } else { "" };
                    write!(out, "{separator}{cell}")?;
                    separator = ",";
                }
            }
            writeln!(out)?;
        }
        fs::rename(&path, &self.path)?;
        (self.out, self.columns) = (out, wider);
        Ok(())
    }
}

fn put_row(lines: &mut Vec<u8>, row: &Row, flow: &str, columns: Columns) {
    put_number(lines, row.time.as_millis().unsigned_abs());
    lines.push(b',');
    lines.extend_from_slice(flow.as_bytes());
    put_cells(
        lines,
        &[
            row.capacity.map(Bitrate::as_bps),
            row.target.map(Bitrate::as_bps),
            row.pacing_rate.map(Bitrate::as_bps),
            row.congestion_window.map(DataSize::as_bytes),
            Some(row.sent.as_bytes()),
            Some(row.received.as_bytes()),
            Some(row.sent_packets),
            Some(row.lost_packets),
            row.rtt.map(micros),
            row.queuing_delay.map(micros),
            Some(row.queue.as_bytes()),
        ],
    );
    if columns.video {
        put_cells(lines, &row.video.map_or([None; VIDEO_COLUMNS], video_cells));
    }
    if columns.transfer {
        put_cells(lines, &row.transfer.map_or([None; TRANSFER_COLUMNS], transfer_cells));
    }
    if columns.feedback {
        put_cells(lines, &[row.feedback.map(DataSize::as_bytes)]);
    }
    lines.push(b'\n');
}

/// Cells, each behind a comma; one that was not measured is empty.
pub(super) fn put_cells(lines: &mut Vec<u8>, cells: &[Option<u64>]) {
    for cell in cells {
        lines.push(b',');
        if let Some(number) = cell {
            put_number(lines, *number);
        }
    }
}

/// A number in decimal: a record is mostly these, and formatting them one by one takes most of its time.
pub(super) fn put_number(lines: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    lines.extend_from_slice(&digits[first..]);
}

/// A time that is not negative, in microseconds.
pub(super) fn micros(time: TimeDelta) -> u64 {
    time.as_micros().unsigned_abs()
}

fn video_cells(video: Video) -> [Option<u64>; VIDEO_COLUMNS] {
    [
        Some(video.media.as_bytes()),
        Some(video.rtx.as_bytes()),
        Some(video.fec.as_bytes()),
        Some(video.media_packets),
        Some(video.unrepaired_packets),
        Some(video.frames),
        Some(video.freezes),
        Some(micros(video.frozen)),
        video.frame_delay.map(micros),
    ]
}

fn transfer_cells(transfer: Transfer) -> [Option<u64>; TRANSFER_COLUMNS] {
    [Some(transfer.goodput.as_bytes()), Some(transfer.retransmitted_packets)]
}

/// Reads line after line.
pub(super) struct SeriesReader<'a> {
    flows: &'a [String],
    /// No row may lie behind the end of the run: what a reader keeps a row of time would have no end.
    end: Timestamp,
    columns: Option<Columns>,
    last: Timestamp,
}

impl<'a> SeriesReader<'a> {
    pub(super) fn new(flows: &'a [String], end: Timestamp) -> Self {
        Self { flows, end, columns: None, last: Timestamp::ZERO }
    }

    /// The row of the next line; `None` of the first line.
    pub(super) fn read(&mut self, line: &str) -> Result<Option<Row>, String> {
        let Some(columns) = self.columns else {
            self.columns = Some(Columns::of_header(line).ok_or_else(wrong_header)?);
            return Ok(None);
        };
        let row = parse_row(line, columns, self.flows)?;
        if self.last > row.time {
            return Err("an earlier time than the line before".into());
        }
        if row.time > self.end {
            return Err(format!("a row at {} ms, after the end", row.time.as_millis()));
        }
        self.last = row.time;
        Ok(Some(row))
    }

    /// Whether the first line was there.
    pub(super) fn finish(&self) -> Result<(), String> {
        self.columns.map(|_| ()).ok_or_else(wrong_header)
    }
}

fn wrong_header() -> String {
    format!(
        "the first line must be {HEADER}, with {VIDEO_HEADER}, {TRANSFER_HEADER} and {FEEDBACK_HEADER} \
         or not"
    )
}

/// The most columns of a line.
const MOST: usize = COLUMNS + VIDEO_COLUMNS + TRANSFER_COLUMNS + 1;

/// The cells of a line.
pub(super) struct Cells<'a> {
    cells: [&'a str; MOST],
    count: usize,
}

impl<'a> Cells<'a> {
    /// The cells of a line that must have so many.
    pub(super) fn of(line: &'a str, columns: usize) -> Result<Self, String> {
        let (mut cells, mut last) = ([""; MOST], "");
        let mut found = 0;
        let mut rest = line;
        // By bytes: a comma is one, whatever stands around it.
        while let Some(comma) = rest.bytes().position(|byte| byte == b',') {
            let place = cells.get_mut(found).unwrap_or(&mut last);
            (*place, rest) = (&rest[..comma], &rest[comma + 1..]);
            found += 1;
        }
        *cells.get_mut(found).unwrap_or(&mut last) = rest;
        found += 1;
        if found == columns {
            Ok(Self { cells, count: columns })
        } else {
            Err(format!("{found} columns, not {columns}"))
        }
    }

    pub(super) fn text(&self, column: usize) -> &'a str {
        self.cells[column]
    }

    /// Which of these the cell names; `what` says what they are.
    pub(super) fn position(
        &self,
        column: usize,
        what: &str,
        names: &[String],
    ) -> Result<usize, String> {
        let name = self.text(column);
        names.iter().position(|known| known == name).ok_or_else(|| format!("no {what} '{name}'"))
    }

    pub(super) fn optional(&self, column: usize) -> Result<Option<u64>, String> {
        match self.text(column) {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| format!("'{cell}' is not a number")),
        }
    }

    pub(super) fn number(&self, column: usize) -> Result<u64, String> {
        self.optional(column)?.ok_or_else(|| format!("column {column} is empty"))
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
        self.cells[..self.count]
            .get(columns)
            .is_some_and(|cells| cells.iter().any(|it| !it.is_empty()))
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
