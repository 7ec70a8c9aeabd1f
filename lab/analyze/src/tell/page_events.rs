//! What an application's pages called, and what happened to their connections, from the dump of one
//! participant.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;
use weir_record::calls::file::{AudioInterval, PageConnection, PageEvent, ReceivedAudio};
use weir_record::calls::stats::Kind;

use crate::error::AnalyzeError;
use crate::measure::samples;
use crate::read::dump::{Dump, Stream, StreamDirection};

/// Events of one participant in a record. A page that never stops calling has the rest in its dump.
const EVENTS_MAX: usize = 5_000;

/// The connections and events of a participant.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub connections: Vec<PageConnection>,
    pub events: Vec<PageEvent>,
}

/// Reads what a participant's dump has besides reports. `zero_ms` is time zero since 1970.
pub(crate) fn read(
    dump: &Path,
    zero_ms: f64,
    call: usize,
    participant: &str,
) -> Result<Page, AnalyzeError> {
    File::open(dump)
        .and_then(|file| page(BufReader::new(file), zero_ms, call, participant))
        .map_err(AnalyzeError::of_file(dump))
}

fn page(
    lines: impl BufRead,
    zero_ms: f64,
    call: usize,
    participant: &str,
) -> std::io::Result<Page> {
    let mut page = Page::default();
    for line in lines.lines() {
        let line = line?;
        // Reports are long and are read elsewhere.
        if line.starts_with("[\"getStats\"") {
            continue;
        }
        let Ok(Value::Array(event)) = serde_json::from_str(&line) else { continue };
        let (Some(name), Some(time)) =
            (event.first().and_then(Value::as_str), event.last().and_then(Value::as_f64))
        else {
            continue;
        };
        let connection = event.get(1).and_then(Value::as_str);
        let value = event.get(2).unwrap_or(&Value::Null);
        let time_s = (time - zero_ms) / 1e3;
        if let Some(connection) = connection {
            page.note(time_s, call, participant, (name, connection, value));
        }
        if page.events.len() < EVENTS_MAX {
            page.events.push(PageEvent {
                time_s,
                participant: participant.into(),
                connection: connection.map(Into::into),
                event: name.into(),
                value: value.to_string(),
            });
        }
    }
    page.events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    Ok(page)
}

impl Page {
    /// Notes what an event says about a connection.
    fn note(
        &mut self,
        time_s: f64,
        call: usize,
        participant: &str,
        (name, connection, value): (&str, &str, &Value),
    ) {
        if name == "create" {
            self.connections.push(PageConnection {
                call,
                participant: participant.into(),
                connection: connection.into(),
                url: value.as_str().unwrap_or_default().into(),
                created_s: time_s,
                ..PageConnection::default()
            });
        }
        let of = self.connections.iter_mut().find(|it| it.connection == connection);
        let Some(of) = of else { return };
        let step = match name {
            "setLocalDescription" | "setRemoteDescription" => &mut of.described_s,
            "onconnectionstatechange" if value == "connected" => &mut of.connected_s,
            "firstFrame" => &mut of.first_frame_s,
            _ => return,
        };
        step.get_or_insert(time_s);
    }
}

/// The audio streams that a participant received.
pub(crate) fn audio(dump: &Dump, call: usize, participant: &str) -> Vec<ReceivedAudio> {
    let streams = dump.connections.iter().flat_map(|connection| &connection.streams);
    let audio =
        streams.filter(|it| it.direction == StreamDirection::Received && it.kind == Kind::Audio);
    audio
        .map(|stream| ReceivedAudio {
            call,
            participant: participant.into(),
            ssrc: stream.ssrc,
            intervals: audio_intervals(stream),
        })
        .collect()
}

fn audio_intervals(stream: &Stream) -> Vec<AudioInterval> {
    let by_time: BTreeMap<_, _> = stream.reports.iter().map(|it| (it.timed.time, it)).collect();
    let mut intervals = Vec::new();
    for interval in samples::intervals(stream) {
        let [start, end] = [interval.start, interval.end]
            .map(|time| by_time.get(&time)?.timed.report.inbound.as_deref());
        let (Some(received), Some(before), Some(after)) = (interval.received, start, end) else {
            continue;
        };
        let samples = growth(before.total_samples_received, after.total_samples_received)
            .filter(|count| *count > 0);
        // When a sender pauses, the receiver plays silence and counts it as concealed, although
        // nothing was lost.
        let silent = growth(before.silent_concealed_samples, after.silent_concealed_samples);
        let concealed = growth(before.concealed_samples, after.concealed_samples)
            .map(|all| all.saturating_sub(silent.unwrap_or(0)));
        intervals.push(AudioInterval {
            time_s: interval.end.as_secs_f64(),
            receive_bps: Some(received.receive_rate.as_bps()),
            loss_ratio: received.loss_ratio,
            concealed_ratio: concealed.zip(samples).map(|(part, all)| part as f64 / all as f64),
            concealments: growth(before.concealment_events, after.concealment_events),
            jitter_buffer_ms: received.jitter_buffer_delay.map(|it| it.as_millis_f64()),
        });
    }
    intervals
}

fn growth(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_the_times_of_its_first_steps_and_calls_are_events() {
        let text = r#"RTCStatsDump
{"fileFormat":3}
["create","x-1","http://10.45.0.3/",1000000001000]
["opened",null,"http://10.45.0.3/",1000000001100]
["setLocalDescription","x-1",["offer"],1000000002000]
["getStats","x-1",{},1000000002100]
["setRemoteDescription","x-1",["answer"],1000000002200]
["onconnectionstatechange","x-1","connecting",1000000002300]
["onconnectionstatechange","x-1","connected",1000000002500]
["setParameters","x-1",[[{"active":true,"scalabilityMode":"L3T3"}]],1000000003000]
["firstFrame","x-1",{"mid":"0","ssrc":7},1000000002750]
["onconnectionstatechange","x-1","connected",1000000009000]
["setParam"#;
        let page = page(text.as_bytes(), 1_000_000_002_000.0, 1, "p1").unwrap();
        let [one] = &page.connections[..] else { panic!("{page:?}") };
        assert_eq!((one.created_s, one.described_s), (-1.0, Some(0.0)));
        assert_eq!((one.connected_s, one.first_frame_s), (Some(0.5), Some(0.75)));
        let names: Vec<&str> = page.events.iter().map(|it| it.event.as_str()).collect();
        assert_eq!(names[0], "create");
        assert_eq!(names.iter().position(|it| *it == "firstFrame"), Some(6), "{names:?}");
        let set = page.events.iter().find(|it| it.event == "setParameters").unwrap();
        assert_eq!(set.value, r#"[[{"active":true,"scalabilityMode":"L3T3"}]]"#);
        assert_eq!((page.events.len(), page.events[1].connection.as_deref()), (9, None));
    }
}
