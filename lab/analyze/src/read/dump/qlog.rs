//! qlog [QLOG]: what one end of a QUIC connection wrote down, as quinn, noq and others do.
//!
//! The file is a sequence of JSON records, each after a record separator [RFC7464 §2.2]: a head,
//! then events with a time. The events of each second become a report like a browser's, so that the
//! same rules apply: the larger direction is a stream, its packets and bytes are counted, the
//! connection's round-trip time is that of the stack, and the estimate is its pacing rate, or else
//! its window in a round-trip time.

use std::io::{BufRead, Read};

use serde_json::Value;
use weir::units::Timestamp;
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::{
    Candidate, CandidatePair, InboundRtp, Kind, OutboundRtp, RemoteInboundRtp, StatsReport,
};

use super::left_out::LeftOut;
use super::{Connection, Dump, Stream, StreamDirection, StreamReport};
use crate::read::format::{Format, QLOG_SEPARATOR};

/// Longest record.
const RECORD_MAX: u64 = 1 << 20;
/// A report for each of these.
const INTERVAL_MS: f64 = 1_000.0;
/// Most reports: a day.
const REPORTS_MAX: usize = 86_400;

/// Reads the log record by record.
pub(crate) fn read(mut from: Box<dyn BufRead>) -> Result<Dump, String> {
    let mut log = Log::default();
    let mut left_out = LeftOut::default();
    let mut number = 0_u64;
    loop {
        match next_record(&mut from) {
            Ok(None) => break,
            Ok(Some(record)) if record.trim_ascii().is_empty() => {}
            Ok(Some(record)) => {
                number += 1;
                match serde_json::from_slice(&record) {
                    Ok(value) => log.record(&value),
                    Err(error) => left_out.skip(format!("record {number}: {error}")),
                }
            }
            Err(what) => {
                left_out.stop(format!("after record {number}: {what}"));
                break;
            }
        }
        if log.reports.len() > REPORTS_MAX {
            left_out.stop(format!("after record {number}: longer than a day"));
            break;
        }
    }
    let (program, connection) = log.finish()?;
    Ok(Dump {
        format: Format::Qlog,
        program,
        connections: vec![connection],
        warnings: left_out.warnings("records"),
        events: Vec::new(),
        zero_ms: None,
        end_s: 0.0,
        is_part: false,
        data_channels: Vec::new(),
    })
}

/// The bytes up to the next separator, which is left out.
fn next_record(from: &mut dyn BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut record = Vec::new();
    let length = from.take(RECORD_MAX).read_until(QLOG_SEPARATOR, &mut record);
    let length = length.map_err(|error| error.to_string())?;
    if record.last() == Some(&QLOG_SEPARATOR) {
        record.pop();
    } else if length as u64 == RECORD_MAX {
        return Err("a record of more than a megabyte".into());
    }
    Ok((length > 0).then_some(record))
}

/// Packets of one direction so far.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

/// What the log said so far.
#[derive(Clone, Debug, Default)]
struct Counters {
    sent: Count,
    received: Count,
    lost: i64,
    /// Round-trip times, their number, and the time of the last.
    rtt_ms: Option<f64>,
    smoothed_ms: Option<f64>,
    rtts: u64,
    rtt_at_ms: f64,
    /// Bytes, and bit/s.
    window: Option<f64>,
    pacing_rate: Option<f64>,
}

#[derive(Debug, Default)]
struct Log {
    title: Option<String>,
    /// Whether times count from the event before.
    is_delta: bool,
    /// The time of the first event and of the last one.
    first_ms: Option<f64>,
    now_ms: f64,
    now: Counters,
    reports: Vec<(f64, Counters)>,
}

impl Log {
    fn record(&mut self, record: &Value) {
        if let Some(name) = record["name"].as_str() {
            if let Some(time) = record["time"].as_f64() {
                self.event(time, name, &record["data"]);
            }
            return;
        }
        let trace = &record["trace"];
        let titles = [&trace["vantage_point"]["name"], &trace["title"], &record["title"]];
        self.title = titles.iter().find_map(|title| title.as_str()).map(str::to_owned);
        let common = &trace["common_fields"];
        let formats = [&common["time_format"], &common["reference_time"]["time_format"]];
        self.is_delta = formats
            .iter()
            .any(|it| matches!(it.as_str(), Some("delta" | "relative_to_previous_event")));
    }

    fn event(&mut self, time: f64, name: &str, data: &Value) {
        let at = if self.is_delta { self.now_ms + time } else { time };
        let first = *self.first_ms.get_or_insert(at);
        if self.reports.is_empty() {
            self.reports.push((first, Counters::default()));
        }
        // Threads may write events out of order.
        self.now_ms = at.max(self.now_ms).max(first);
        let mut due = first + self.reports.len() as f64 * INTERVAL_MS;
        while due <= self.now_ms && self.reports.len() <= REPORTS_MAX {
            self.reports.push((due, self.now.clone()));
            due += INTERVAL_MS;
        }
        // The protocol of an event had other names in earlier drafts.
        match name.rsplit(':').next().unwrap_or(name) {
            "packet_sent" => self.now.sent.add(data),
            "packet_received" => self.now.received.add(data),
            "packet_lost" => self.now.lost += 1,
            "metrics_updated" | "recovery_metrics_updated" => self.now.measure(at, data),
            _ => {}
        }
    }

    fn finish(mut self) -> Result<(Option<String>, Connection), String> {
        self.reports.push((self.now_ms, self.now.clone()));
        let Count { packets, .. } = self.now.sent;
        if packets + self.now.received.packets == 0 {
            return Err("this qlog has no packets: neither packet_sent nor packet_received".into());
        }
        let direction = match self.now.sent.bytes >= self.now.received.bytes {
            true => StreamDirection::Sent,
            false => StreamDirection::Received,
        };
        let first = self.first_ms.unwrap_or(0.0);
        let mut reports: Vec<StreamReport> = Vec::with_capacity(self.reports.len());
        for (at_ms, counters) in &self.reports {
            let time = Timestamp::from_micros(((at_ms - first) * 1e3) as i64);
            let is_later = reports.last().is_none_or(|last| last.timed.time < time);
            if is_later {
                let timed = TimedReport { time, report: counters.report(direction, *at_ms) };
                reports.push(StreamReport { timed, active: None });
            }
        }
        let stream = Stream { direction, kind: Kind::Video, ssrc: 0, rid: None, reports };
        let streams = if stream.reports.len() > 1 { vec![stream] } else { Vec::new() };
        let name = "QUIC".to_owned();
        Ok((self.title, Connection { name, streams, packets: None }))
    }
}

impl Count {
    fn add(&mut self, data: &Value) {
        let sizes = [&data["raw"]["length"], &data["header"]["packet_size"], &data["packet_size"]];
        self.packets += 1;
        self.bytes += sizes.iter().find_map(|size| number(size)).map_or(0, |size| size as u64);
    }
}

impl Counters {
    /// Only what changed is told.
    fn measure(&mut self, at_ms: f64, data: &Value) {
        if let Some(rtt) = number(&data["latest_rtt"]).or_else(|| number(&data["smoothed_rtt"])) {
            self.rtt_ms = Some(rtt);
            self.rtts += 1;
            self.rtt_at_ms = at_ms;
        }
        self.smoothed_ms = number(&data["smoothed_rtt"]).or(self.smoothed_ms);
        self.window = number(&data["congestion_window"]).or(self.window);
        self.pacing_rate = number(&data["pacing_rate"]).or(self.pacing_rate);
    }

    /// What the stack would let the application send, in bit/s.
    fn estimate(&self) -> Option<f64> {
        if let Some(rate) = self.pacing_rate.filter(|rate| *rate > 0.0) {
            return Some(rate);
        }
        Some(self.window? * 8e3 / self.smoothed_ms.filter(|ms| *ms > 0.0)?)
    }

    fn report(&self, direction: StreamDirection, timestamp: f64) -> StatsReport {
        let mut report = StatsReport {
            pair: Some(Box::new(CandidatePair {
                timestamp,
                packets_sent: self.sent.packets,
                bytes_sent: self.sent.bytes,
                packets_received: self.received.packets,
                bytes_received: self.received.bytes,
                current_round_trip_time: self.rtt_ms.map(|ms| ms / 1e3),
                responses_received: Some(self.rtts),
                available_outgoing_bitrate: self.estimate(),
                local: Candidate::default(),
                remote: Candidate::default(),
            })),
            ..StatsReport::default()
        };
        match direction {
            StreamDirection::Sent => {
                report.outbound = Some(Box::new(OutboundRtp {
                    timestamp,
                    packets_sent: self.sent.packets,
                    bytes_sent: self.sent.bytes,
                    target_bitrate: self.estimate(),
                    ..OutboundRtp::default()
                }));
                report.remote_inbound = Some(RemoteInboundRtp {
                    timestamp: self.rtt_at_ms,
                    round_trip_time: self.rtt_ms.map(|ms| ms / 1e3),
                    round_trip_time_measurements: Some(self.rtts),
                    jitter: None,
                    fraction_lost: None,
                    packets_lost: Some(self.lost),
                    packets_received: None,
                });
            }
            StreamDirection::Received => {
                report.inbound = Some(Box::new(InboundRtp {
                    timestamp,
                    packets_received: self.received.packets,
                    bytes_received: self.received.bytes,
                    ..InboundRtp::default()
                }));
            }
        }
        report
    }
}

/// A number, or a text of one.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|number| number.is_finite())
}
