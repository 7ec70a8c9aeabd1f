//! `series.csv`: one row for each flow and 50 ms. Cells are whole numbers. An empty cell means that
//! the value was not measured. The columns of the video, of TCP and of feedback exist only in
//! records of runs that have such values.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use weir::units::Timestamp;
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::table::{ColumnGroup, CsvColumn, Layout, always, column, name_column, time_column};

/// All columns, in the order of the file. A new column is declared only here.
pub(crate) const GROUPS: &[ColumnGroup<Row>] = &[
    ColumnGroup { columns: EVERY, is_in: always },
    ColumnGroup { columns: VIDEO, is_in: has_video },
    ColumnGroup { columns: TRANSFER, is_in: has_transfer },
    ColumnGroup { columns: FEEDBACK, is_in: has_feedback },
    ColumnGroup { columns: FORWARDED, is_in: has_forwarded },
    ColumnGroup { columns: SEEN, is_in: has_seen },
    ColumnGroup { columns: HEARD, is_in: has_heard },
    ColumnGroup { columns: MARKED, is_in: has_marked },
    ColumnGroup { columns: MEAN_CAPACITY, is_in: has_mean_capacity },
    ColumnGroup { columns: CARRIED, is_in: has_carried },
];

const FLOW: &str = "flow";

/// The column with this meaning in a real call.
const fn in_call(column: CsvColumn<Row>, in_call: &'static str) -> CsvColumn<Row> {
    CsvColumn { in_call, ..column }
}

const EVERY: &[CsvColumn<Row>] = &[
    time_column!(ROW_INTERVAL, "end of the interval, a multiple of 50"),
    name_column!(FLOW, flow, "flow", "name of the flow"),
    column!(
        "capacity_bps",
        "bit/s",
        capacity,
        "capacity of the bottleneck in the flow's direction at the start of the interval; empty if \
         unlimited"
    ),
    in_call(
        column!("target_bps", "bit/s", target, "target bitrate at the end of the interval"),
        "the browser's bandwidth estimate, from getStats; of a pipeline the controller's \
            target at the end of the interval",
    ),
    in_call(
        column!("pacing_bps", "bit/s", pacing_rate, "pacing rate at the end of the interval"),
        "empty",
    ),
    in_call(
        column!(
            "window_bytes",
            "byte",
            congestion_window,
            "congestion window at the end of the interval; empty without one"
        ),
        "empty",
    ),
    in_call(
        column!("sent_bytes", "byte", sent, "IP bytes that left the sender"),
        "IP bytes that reached the bottleneck in the flow's direction",
    ),
    in_call(
        column!("received_bytes", "byte", received, "IP bytes that arrived at the receiver"),
        "IP bytes that left the network in the flow's direction",
    ),
    in_call(
        column!("sent_packets", "packets", sent_packets, "packets that left the sender"),
        "packets that reached the bottleneck",
    ),
    column!("lost_packets", "packets", lost_packets, "packets that the network lost or dropped"),
    in_call(
        column!(
            "rtt_us",
            "µs",
            rtt,
            "minimum feedback response time over the feedback reports of the interval: \
             round-trip time plus the wait for feedback"
        ),
        "round-trip time from getStats: from RTCP, else from STUN",
    ),
    in_call(
        column!(
            "queuing_delay_us",
            "µs",
            queuing_delay,
            "mean time that the packets that arrived in the interval had waited in the queue; \
             empty if none arrived"
        ),
        "the same, over all packets of the direction",
    ),
    column!(
        "queue_bytes",
        "byte",
        queue,
        "bytes of all flows in the queues of the flow's path at the end of the interval. These are \
         the queues of the bottlenecks, and of the node at which the flow enters the access network"
    ),
];

const VIDEO: &[CsvColumn<Row>] = &[
    column!(
        "media_bytes",
        "byte",
        video?.media,
        "IP bytes received of media that was sent for the first time"
    ),
    column!("rtx_bytes", "byte", video?.rtx, "IP bytes received of retransmissions"),
    column!(
        "fec_bytes",
        "byte",
        video?.fec,
        "IP bytes received of parity packets; the rest of `received_bytes` is padding"
    ),
    column!(
        "media_packets",
        "packets",
        video?.media_packets,
        "media packets that became available to the receiver, received or repaired; each counts \
         once"
    ),
    column!(
        "unrepaired_packets",
        "packets",
        video?.unrepaired_packets,
        "media packets that stayed missing. They are counted when the receiver continues with a \
         later key frame. The last row also counts the packets that it had given up"
    ),
    column!("frames", "", video?.frames, "frames shown"),
    column!(
        "freezes",
        "",
        video?.freezes,
        "freezes that ended, as defined by `freeze_count` below. The last row also counts a freeze \
         that has not ended"
    ),
    column!("frozen_us", "µs", video?.frozen, "total duration of these freezes"),
    column!(
        "frame_delay_us",
        "µs",
        video?.frame_delay,
        "mean time from capture to screen of the frames shown; empty if none was shown. Encoding \
         and decoding take no time; the screen takes 10 ms"
    ),
];

const TRANSFER: &[CsvColumn<Row>] = &[
    in_call(
        column!(
            "goodput_bytes",
            "byte",
            transfer?.goodput,
            "payload delivered to the receiving \
        application"
        ),
        "the same, as iperf3 reports it every 100 ms; its clock starts when the emulator \
            sees the first data",
    ),
    column!(
        "retransmitted_packets",
        "packets",
        transfer?.retransmitted_packets,
        "packets that the sender retransmitted"
    ),
];

const FEEDBACK: &[CsvColumn<Row>] = &[column!(
    "feedback_bytes",
    "byte",
    feedback,
    "IP bytes of RTCP that left the receiver; empty in the rows of other flows"
)];

const MARKED: &[CsvColumn<Row>] = &[column!(
    "marked_packets",
    "packets",
    marked_packets,
    "packets that arrived with the mark Congestion Experienced; empty if there was none"
)];

const MEAN_CAPACITY: &[CsvColumn<Row>] = &[column!(
    "mean_capacity_bps",
    "bit/s",
    mean_capacity,
    "mean capacity over the interval, by which utilization is measured; empty if it is \
     `capacity_bps`. Of a trace of opportunities, `capacity_bps` is the mean of the whole second"
)];

const CARRIED: &[CsvColumn<Row>] = &[column!(
    "carried_bits",
    "bit",
    carried_bits,
    "bits of the flow that the narrowest link of its path carried within the interval, with the \
     parts of packets in transmission at its ends; utilization is made of them. Empty if they are \
     those of `received_bytes`"
)];

const FORWARDED: &[CsvColumn<Row>] = &[
    column!(
        "padding_bytes",
        "byte",
        forwarded?.padding,
        "IP bytes of padding that left the server"
    ),
    column!(
        "layer_switches",
        "",
        forwarded?.switches,
        "choices of another layer, as `layer_switches_per_min` below counts them"
    ),
    column!("key_frames_asked", "", forwarded?.key_frames, "key frames that the server asked for"),
    column!(
        "layers",
        "",
        forwarded?.layers,
        "sum over the tracks at the end of the interval: 0 if nothing is sent, 1 for the lowest \
         layer, 2 for the next"
    ),
    column!(
        "best_layers",
        "",
        forwarded?.best_layers,
        "the same sum for the best layers that fit, as `below_best_ratio` below defines them; \
         empty if the capacity is not known"
    ),
    column!("fitting_tracks", "", forwarded?.fitting, "tracks of which a layer fits"),
    column!(
        "tracks_below",
        "",
        forwarded?.below,
        "those of them that are sent in a lower layer, or not at all"
    ),
    column!("switch_freezes", "", forwarded?.switch_freezes, "freezes that a switch caused"),
    column!("switch_frozen_us", "µs", forwarded?.switch_frozen, "total duration of these freezes"),
    column!(
        "halves_without_picture",
        "",
        forwarded?.halves_without_picture,
        "half seconds of its cameras that ended without a new picture"
    ),
    column!("late_halves", "", forwarded?.late_halves, "with new pictures that were late"),
    column!(
        "bad_halves",
        "",
        forwarded?.bad_halves,
        "with pictures in time, but a VMAF below 80, by a model"
    ),
    column!("good_halves", "", forwarded?.good_halves, "in which all was well"),
];

const SEEN: &[CsvColumn<Row>] = &[
    column!(
        "vmaf_hundredths",
        "1/100",
        seen?.vmaf,
        "mean VMAF of the pictures shown, by a model; empty if none was shown, or without a model \
         of what the camera shows"
    ),
    column!(
        "jitter_buffer_us",
        "µs",
        seen?.jitter_buffer,
        "mean time of a frame between its first packet and the decoder"
    ),
];

const HEARD: &[CsvColumn<Row>] = &[
    column!("played_us", "µs", heard?.played, "time played, in blocks of 10 ms"),
    column!("concealed_us", "µs", heard?.concealed, "the part of it that was made up"),
    column!(
        "concealments",
        "",
        heard?.concealments,
        "stretches that were made up and began in the interval"
    ),
    column!("slowed_us", "µs", heard?.stretched, "time that was added by playing slower"),
    column!("hurried_us", "µs", heard?.shortened, "time that was taken out by playing faster"),
    column!(
        "mouth_to_ear_us",
        "µs",
        heard?.delay,
        "mean time from the microphone to the ear of what was not made up"
    ),
    column!("speech_target_us", "µs", heard?.target, "delay that the receiver's buffer aims at"),
];

fn has_video(row: &Row) -> bool {
    row.video.is_some()
}

fn has_transfer(row: &Row) -> bool {
    row.transfer.is_some()
}

fn has_feedback(row: &Row) -> bool {
    row.feedback.is_some()
}

fn has_forwarded(row: &Row) -> bool {
    row.forwarded.is_some()
}

fn has_seen(row: &Row) -> bool {
    row.seen.is_some()
}

fn has_heard(row: &Row) -> bool {
    row.heard.is_some()
}

fn has_marked(row: &Row) -> bool {
    row.marked_packets.is_some()
}

fn has_mean_capacity(row: &Row) -> bool {
    row.mean_capacity.is_some()
}

fn has_carried(row: &Row) -> bool {
    row.carried_bits.is_some()
}

/// A column of `series.csv` whose values are numbers: every column except `flow`.
#[derive(Clone, Copy)]
pub struct NumberColumn(&'static CsvColumn<Row>);

/// These columns, in the order of the file.
pub fn number_columns() -> impl Iterator<Item = NumberColumn> {
    let columns = GROUPS.iter().flat_map(|group| group.columns);
    columns.filter(|column| column.name != FLOW).map(NumberColumn)
}

impl NumberColumn {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The unit of its values; empty for a count.
    pub const fn unit(self) -> &'static str {
        self.0.unit
    }

    /// What its values mean in a simulated run.
    pub const fn meaning(self) -> &'static str {
        self.0.meaning
    }

    /// The values of these rows. `None` where the file has an empty cell.
    pub fn values(self, rows: &[Row]) -> impl Iterator<Item = Option<u64>> + '_ {
        let mut cell = Vec::new();
        rows.iter().map(move |row| {
            cell.clear();
            (self.0.put)(row, &[], &mut cell);
            str::from_utf8(&cell).ok().and_then(|cell| cell.parse().ok())
        })
    }
}

/// The whole file for these rows.
pub(super) fn bytes(flows: &[String], rows: &[Row]) -> Vec<u8> {
    let layout = Layout::first(GROUPS).and(rows);
    let mut out = layout.header().into_bytes();
    out.push(b'\n');
    for row in rows {
        layout.put(row, flows, &mut out);
    }
    out
}

/// The file while it is written. The rows decide which columns it needs. When later rows need more
/// columns, the file so far is rewritten with them.
pub(super) struct SeriesFile {
    path: PathBuf,
    out: BufWriter<File>,
    layout: Layout<Row>,
    lines: Vec<u8>,
}

impl SeriesFile {
    /// Creates the file, which must not exist yet.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let layout = Layout::first(GROUPS);
        let mut out = BufWriter::new(File::create_new(&path)?);
        writeln!(out, "{}", layout.header())?;
        Ok(Self { path, out, layout, lines: Vec::new() })
    }

    /// Writes the next rows.
    pub(super) fn write(&mut self, flows: &[String], rows: &[Row]) -> io::Result<()> {
        let wider = self.layout.and(rows);
        if !wider.is(&self.layout) {
            self.widen(wider)?;
        }
        self.lines.clear();
        for row in rows {
            self.layout.put(row, flows, &mut self.lines);
        }
        self.out.write_all(&self.lines)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn widen(&mut self, wider: Layout<Row>) -> io::Result<()> {
        self.out.flush()?;
        let path = self.path.with_extension("wider");
        let mut out = BufWriter::new(File::create_new(&path)?);
        writeln!(out, "{}", wider.header())?;
        for line in BufReader::new(File::open(&self.path)?).lines().skip(1) {
            let line = line?;
            let mut cells = line.split(',');
            let mut separator = "";
            for ((group, was), (_, is)) in self.layout.groups().zip(wider.groups()) {
                for _ in group.columns.iter().filter(|_| is) {
                    let cell = if was { cells.next().unwrap_or_default() } else { "" };
                    write!(out, "{separator}{cell}")?;
                    separator = ",";
                }
            }
            writeln!(out)?;
        }
        fs::rename(&path, &self.path)?;
        (self.out, self.layout) = (out, wider);
        Ok(())
    }
}

/// Reads the file line by line.
pub(super) struct SeriesReader<'a> {
    flows: &'a [String],
    /// No row may be later than this, the end of the run: readers keep values for each row of time,
    /// so later rows could fill the memory.
    end: Timestamp,
    layout: Option<Layout<Row>>,
    last: Timestamp,
}

impl<'a> SeriesReader<'a> {
    pub(super) fn new(flows: &'a [String], end: Timestamp) -> Self {
        Self { flows, end, layout: None, last: Timestamp::ZERO }
    }

    /// The row of the next line; `None` for the first line.
    pub(super) fn read(&mut self, line: &str) -> Result<Option<Row>, String> {
        let Some(layout) = self.layout else {
            self.layout = Some(Layout::of_header(GROUPS, line)?);
            return Ok(None);
        };
        let row = layout.take(line, self.flows)?;
        if self.last > row.time {
            return Err("an earlier time than the line before".into());
        }
        if row.time > self.end {
            return Err(format!("a row at {} ms, after the end", row.time.as_millis()));
        }
        self.last = row.time;
        Ok(Some(row))
    }

    /// An error if the file was empty.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self.layout {
            Some(_) => Ok(()),
            None => Layout::of_header(GROUPS, "").map(drop),
        }
    }
}
