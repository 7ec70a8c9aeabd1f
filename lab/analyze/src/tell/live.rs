//! A call while it runs: the same rules, over a window of its latest samples.
//!
//! ```text
//! event -> report of each stream -> sample -> window -> findings -> causes that hold now
//!          (of the one before only the last is kept)
//! ```
//!
//! The rules look at the samples of the window. Four values of a whole call they need besides, and
//! these are kept when samples leave the window: the smallest round-trip time, the largest target,
//! the largest rate, and whether packets ever waited. So the memory of a call does not grow with
//! its length, and as long as a call is shorter than the window, it is found what
//! [`findings`](crate::findings) finds.

use std::collections::BTreeMap;

use weir_record::calls::derive;
use weir_record::calls::stats::Kind;

use crate::found::{Found, RuleName, StreamId};
use crate::judge::cause::{Cause, union_s};
use crate::judge::delay_spikes;
use crate::judge::finding;
use crate::judge::judgement;
use crate::judge::merge;
use crate::judge::repeated_overuse;
use crate::judge::rules::GAP_S;
use crate::measure::connectivity;
use crate::measure::good_time::{GoodTime, GoodTimeMeter};
use crate::measure::samples::{self, SampledStream};
use crate::read::dump::left_out::Refusal;
use crate::read::dump::{Collector, Connection, Reader, Stream, StreamDirection, StreamReport};

/// Streams of one call: nine cameras with three layers and their audio. More are left out.
const STREAMS_MAX: usize = 64;
/// Members that are kept of the last reports. Those of a call with nine cameras have about 2000.
const MEMBERS_MAX: usize = 10_000;
/// Events of connections that are kept.
const EVENTS_MAX: usize = 200;
/// Samples of a stream in the window, whatever the time between reports.
const SAMPLES_MAX: usize = 600;
/// A cause holds now if it held so shortly before the latest report, in s. Between two findings of
/// one rule may be as much.
const NOW_S: f64 = GAP_S;

/// A call that is analyzed while its reports arrive.
pub struct LiveCall {
    reader: Reader,
    window_s: f64,
    connections: Vec<LiveConnection>,
    /// Time of the first event in ms since 1970.
    first_ms: Option<f64>,
    /// Time of the latest event in s since the first report.
    now_s: f64,
    /// Until when the seconds of each cause are counted.
    counted_until_s: [f64; Cause::ALL.len()],
    cause_s: [f64; Cause::ALL.len()],
    good_time: GoodTime,
}

#[derive(Default)]
struct LiveConnection {
    name: String,
    streams: BTreeMap<(StreamDirection, bool, u32), LiveStream>,
    /// The latest round-trip time in ms, with its time in s, and the smallest one.
    rtt: Option<(f64, f64)>,
    base_rtt_ms: Option<f64>,
}

struct LiveStream {
    last: StreamReport,
    sampled: SampledStream,
    good_time: GoodTimeMeter,
}

/// What limits a call, or limited it within the window.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveFinding {
    /// The cause.
    pub cause: Cause,
    /// The rule that found it.
    pub rule: String,
    /// The part that is responsible.
    pub part: String,
    /// The sentence for people. It names no stream, address or person.
    pub says: String,
    /// Begin in s since the first report. What began before the window begins with it.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Whether it holds at the latest event.
    pub holds: bool,
}

impl LiveCall {
    /// A call of which the samples of the last `window_s` seconds are kept.
    pub fn new(window_s: f64) -> Self {
        Self {
            reader: Reader::new(Collector::default(), MEMBERS_MAX),
            window_s,
            connections: Vec::new(),
            first_ms: None,
            now_s: 0.0,
            counted_until_s: [0.0; Cause::ALL.len()],
            cause_s: [0.0; Cause::ALL.len()],
            good_time: GoodTime::default(),
        }
    }

    /// Takes an event as rtcstats writes it: a JSON array. Returns whether it brought a report of a
    /// stream.
    ///
    /// # Errors
    /// If the event is not whole JSON, has no time, or is larger than what is kept of a call. The
    /// call goes on without it.
    pub fn take(&mut self, event: &[u8]) -> Result<bool, String> {
        let taken = self.reader.line(event);
        self.reader.go_on();
        self.reader.events.keep_latest(EVENTS_MAX);
        let time_ms = self.reader.time_ms();
        let first_ms = *self.first_ms.get_or_insert(time_ms);
        let zero_ms = self.reader.collector.zero_ms().unwrap_or(first_ms);
        self.now_s = ((time_ms - zero_ms) / 1e3).max(0.0);
        let mut is_report = false;
        for (name, streams) in self.reader.collector.take() {
            is_report |= !streams.is_empty();
            self.add(&name, streams);
        }
        match taken {
            Ok(()) => Ok(is_report),
            Err(Refusal::Odd(what)) => Err(what),
            Err(Refusal::Full(what)) => {
                self.reader.forget();
                Err(what)
            }
        }
    }

    /// Number of the last event, from clients that number them.
    pub fn sequence(&self) -> Option<u64> {
        self.reader.sequence
    }

    /// Length of the call so far, in s.
    pub fn duration_s(&self) -> f64 {
        self.now_s
    }

    /// Seconds in which each cause held so far, in the order of [`Cause::ALL`], as of the last
    /// [`findings`](Self::findings).
    pub fn cause_s(&self) -> &[f64; Cause::ALL.len()] {
        &self.cause_s
    }

    /// Good time of the received videos so far. Each part only grows, and is up to two reports
    /// behind, since a freeze is known when it ends.
    pub fn good_time(&self) -> GoodTime {
        self.good_time
    }

    /// What limits the call, the samples of the window considered.
    pub fn findings(&mut self) -> Vec<LiveFinding> {
        let found = self.found();
        let mut live = Vec::new();
        for it in found {
            let Some(cause) = Cause::of(&it) else { continue };
            let mut to_s = it.to_s;
            // A connection that is gone is bad until the window has passed.
            if it.rule().is_end() {
                to_s = self.now_s.min(to_s + self.window_s).max(to_s);
            }
            live.push(LiveFinding {
                cause,
                holds: to_s >= self.now_s - NOW_S,
                says: it.says(),
                part: it.part().to_string(),
                rule: it.rule().name().into(),
                from_s: it.from_s,
                to_s,
            });
        }
        self.count(&live);
        live
    }

    /// All findings of the window, those that name no cause too.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        let zero_ms = self.reader.collector.zero_ms();
        let mut found = Vec::new();
        let events = self.reader.events.clone().finish(zero_ms);
        for finding in connectivity::of_events(&events, self.now_s) {
            let is_cause = finding.rule().is_end() || finding.rule() == RuleName::Interruption;
            if is_cause && finding.to_s >= self.now_s - self.window_s {
                found.push(finding);
            }
        }
        let mut connections = Vec::new();
        for connection in &mut self.connections {
            connections.push(connection.sampled());
        }
        found.extend(connections.iter().flatten().flat_map(finding::of_stream));
        let mut found = merge::merged(&connections, None, found);
        let mut streams: Vec<&SampledStream> = Vec::new();
        streams.extend(connections.iter().flatten());
        judgement::settle(&mut found, &streams);
        found
    }

    /// Adds the seconds of findings that were not counted before.
    fn count(&mut self, found: &[LiveFinding]) {
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            // Times are the client's own: what it says of one moment is worth a window at most.
            let until_s = self.counted_until_s[place].max(self.now_s - self.window_s);
            let mut spans = Vec::new();
            for it in found.iter().filter(|it| it.cause == cause && it.to_s > until_s) {
                spans.push((it.from_s.max(until_s), it.to_s));
                self.counted_until_s[place] = self.counted_until_s[place].max(it.to_s);
            }
            self.cause_s[place] += union_s(spans);
        }
    }

    /// Adds a report of streams of a connection.
    fn add(&mut self, name: &str, streams: Vec<Stream>) {
        let place = match self.connections.iter().position(|it| it.name == name) {
            Some(place) => place,
            None => {
                self.connections.push(LiveConnection { name: name.into(), ..Default::default() });
                self.connections.len() - 1
            }
        };
        let others: usize = self.connections.iter().map(|it| it.streams.len()).sum();
        let free = STREAMS_MAX.saturating_sub(others);
        let judged = self.connections[place].add(streams, free);
        self.good_time.add(&judged);
        let oldest_s = self.now_s - self.window_s;
        for connection in &mut self.connections {
            connection.forget_before(oldest_s);
        }
        self.connections.retain(|connection| !connection.streams.is_empty());
    }
}

impl LiveConnection {
    /// Adds reports. At most `free` streams are new ones. Returns what is certain now of the good
    /// time.
    fn add(&mut self, streams: Vec<Stream>, mut free: usize) -> GoodTime {
        let mut judged = GoodTime::default();
        let mut intervals = Vec::new();
        for stream in &streams {
            let known = self.streams.get(&key(stream));
            let first = stream.reports.first().zip(known);
            intervals.push(
                first.and_then(|(new, known)| derive::between(&known.last.timed, &new.timed)),
            );
        }
        for interval in intervals.iter().flatten() {
            for ms in samples::measured_rtts(interval) {
                self.rtt = Some((interval.end.as_secs_f64(), ms));
                self.base_rtt_ms = self.base_rtt_ms.into_iter().chain([ms]).min_by(f64::total_cmp);
            }
        }
        for (mut stream, interval) in streams.into_iter().zip(intervals) {
            let Some(new) = stream.reports.pop() else { continue };
            let Some(known) = self.streams.get_mut(&key(&stream)) else {
                if free > 0 {
                    free -= 1;
                    self.begin(&stream, new);
                }
                continue;
            };
            let Some(interval) = interval else { continue };
            let end_s = interval.end.as_secs_f64();
            let rtt_ms = self.rtt.and_then(|rtt| samples::still_known(rtt, end_s));
            let sample = samples::sample(stream.direction, [&known.last, &new], interval, rtt_ms);
            if let Some(mut sample) = sample {
                sample.is_rtt_new = self.rtt.is_some_and(|(time_s, _)| time_s > sample.start_s);
                if (stream.direction, stream.kind) == (StreamDirection::Received, Kind::Video) {
                    judged.add(&known.good_time.push(&sample));
                }
                known.sampled.samples.push(sample);
            }
            known.last = new;
        }
        judged
    }

    fn begin(&mut self, stream: &Stream, first: StreamReport) {
        let connection = Connection { name: self.name.clone(), ..Connection::default() };
        let id = StreamId::of(&connection, stream);
        let sampled = SampledStream::new(id, stream, Vec::new(), None);
        let good_time = GoodTimeMeter::default();
        self.streams.insert(key(stream), LiveStream { last: first, sampled, good_time });
    }

    /// Forgets samples that ended before a time, and streams that ended.
    fn forget_before(&mut self, oldest_s: f64) {
        self.streams.retain(|_, stream| {
            let last_s = stream.last.timed.time.as_secs_f64();
            last_s >= oldest_s || stream.sampled.samples.iter().any(|it| it.end_s >= oldest_s)
        });
        for stream in self.streams.values_mut() {
            let samples = &stream.sampled.samples;
            let old = samples.iter().take_while(|it| it.end_s < oldest_s).count();
            let many = samples.len().saturating_sub(SAMPLES_MAX);
            // Some at once, because each time moves the others.
            if old.max(many) > samples.len() / 8 {
                stream.sampled.renew(self.base_rtt_ms);
                repeated_overuse::mark(&mut stream.sampled);
                delay_spikes::mark(&mut stream.sampled);
                stream.sampled.forget_first(old.max(many));
            }
        }
    }

    /// The streams as the rules see them: sent ones first, video before audio.
    fn sampled(&mut self) -> Vec<SampledStream> {
        let mut streams = Vec::new();
        for stream in self.streams.values_mut() {
            stream.sampled.renew(self.base_rtt_ms);
            repeated_overuse::mark(&mut stream.sampled);
            delay_spikes::mark(&mut stream.sampled);
            streams.push(stream.sampled.clone());
        }
        streams
    }
}

/// A stream within its connection.
fn key(stream: &Stream) -> (StreamDirection, bool, u32) {
    (stream.direction, stream.kind == Kind::Audio, stream.ssrc)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::judge::finding::Finding;
    use crate::judge::rules::RULES;

    /// A call that sends one video over a path whose round trips take `rtt_ms` at a time in s.
    fn events(seconds: u64, rtt_ms: impl Fn(u64) -> f64) -> Vec<String> {
        let mut events = Vec::new();
        for second in 0..seconds {
            let time = 1.7e12 + second as f64 * 1e3;
            let rtt = rtt_ms(second) / 1e3;
            events.push(format!(
                "[\"getStats\",\"a\",{{\"o\":{{\"type\":\"outbound-rtp\",\"kind\":\"video\",\
                 \"ssrc\":7,\"timestamp\":{time},\"packetsSent\":{},\"bytesSent\":{},\
                 \"remoteId\":\"r\"}},\"r\":{{\"type\":\"remote-inbound-rtp\",\"timestamp\":{time},\
                 \"roundTripTime\":{rtt},\"roundTripTimeMeasurements\":{second},\
                 \"packetsLost\":0}}}},{time}]",
                second * 100,
                second * 100_000,
            ));
        }
        events
    }

    fn live(window_s: f64, events: &[String]) -> LiveCall {
        let mut call = LiveCall::new(window_s);
        for event in events {
            call.take(event.as_bytes()).unwrap();
        }
        call
    }

    #[test]
    fn a_queue_is_a_cause_while_it_lasts_and_its_seconds_are_counted_once() {
        let all = events(90, |second| if (30..60).contains(&second) { 300.0 } else { 40.0 });
        let mut call = LiveCall::new(20.0);
        let mut held = Vec::new();
        for (second, event) in all.iter().enumerate() {
            assert!(call.take(event.as_bytes()).unwrap());
            if call.findings().iter().any(|it| it.holds && it.cause == Cause::UplinkCapacity) {
                held.push(second);
            }
        }
        assert_eq!((held.first(), held.last()), (Some(&31), Some(&61)));
        let counted_s = call.cause_s()[1];
        assert!((29.0..=31.0).contains(&counted_s), "{counted_s} s");
        assert_eq!(call.cause_s().iter().sum::<f64>(), counted_s);
    }

    #[test]
    fn the_smallest_round_trip_outlives_the_window() {
        let queue_to_the_end = |second| if second < 10 { 40.0 } else { 400.0 };
        let mut call = live(15.0, &events(300, queue_to_the_end));
        assert!(call.findings().iter().any(|it| it.holds && it.cause == Cause::UplinkCapacity));
    }

    #[test]
    fn samples_before_the_window_and_streams_that_ended_are_forgotten() {
        let mut call = live(10.0, &events(500, |_| 40.0));
        let stream = call.connections[0].streams.values().next().unwrap();
        assert!(stream.sampled.samples.len() < 15, "{}", stream.sampled.samples.len());
        call.take(
            b"[\"getStats\",\"b\",{\"i\":{\"type\":\"inbound-rtp\",\"kind\":\"video\",\
            \"ssrc\":9}},1700000600000]",
        )
        .unwrap();
        let names: Vec<&str> = call.connections.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }

    #[test]
    fn odd_events_are_refused_and_the_call_goes_on() {
        let mut call = LiveCall::new(60.0);
        let long = format!("[\"ontrack\",\"{}\",0,1]", "x".repeat(1000));
        for odd in ["", "{", "[\"getStats\",\"a\",7,1700000000000]", "[]", &long] {
            let taken = call.take(odd.as_bytes());
            assert!(!taken.unwrap_or(false), "{odd}");
        }
        let many: Vec<String> = (0..MEMBERS_MAX).map(|it| format!("\"{it}\":{{}}")).collect();
        let many = format!("[\"getStats\",\"a\",{{{}}},1700000000000]", many.join(","));
        assert_eq!(call.take(many.as_bytes()), Ok(false));
        let more = format!("{{{}}}", "\"type\":\"x\",\"kind\":\"video\"");
        let more = format!("[\"getStats\",\"b\",{{\"a\":{more}}},1700000001000]");
        assert!(call.take(more.as_bytes()).unwrap_err().contains("members"));
        for event in events(20, |_| 40.0) {
            assert_eq!(call.take(event.as_bytes()), Ok(true));
        }
    }

    #[test]
    fn within_the_window_it_is_found_what_a_whole_dump_says() {
        let dumps = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dumps");
        let names = ["drop", "cpu", "delay", "free", "hard", "loss", "muted"];
        let mut count = 0;
        for name in names {
            let path = format!("{dumps}/{name}.rtcstats.gz");
            let mut text = Vec::new();
            let file = std::fs::File::open(&path).unwrap();
            flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
            let mut call = LiveCall::new(3600.0);
            for line in text.split(|byte| *byte == b'\n').skip(2) {
                call.take(line).unwrap();
            }
            let whole = crate::answer(&crate::read(path.as_ref()).unwrap());
            let mut expected = told(whole.findings);
            let lag_s = whole.good_time.watched_s() - call.good_time().watched_s();
            assert!((0.0..3.0).contains(&lag_s), "{name}: {lag_s} s");
            let lost_s = whole.good_time.no_picture_s - call.good_time().no_picture_s;
            assert!((0.0..3.0).contains(&lost_s), "{name}: {lost_s} s");
            // What is seen and heard is no cause, and paths are none either.
            expected.retain(|(rule, ..)| RULES.iter().any(|it| it.name == rule));
            let live: Vec<Finding> = call.found().into_iter().map(Finding::from).collect();
            assert_eq!(told(live), expected, "{name}");
            count += expected.len();
        }
        assert!(count > 10, "{count} findings");
    }

    /// Rule, stream and milliseconds of findings, in an order of their own.
    fn told(found: Vec<Finding>) -> Vec<(String, String, u64, u64)> {
        let mut told = Vec::new();
        for Finding(it) in found {
            let [from_ms, to_ms] = [it.from_s, it.to_s].map(|s| (s * 1e3) as u64);
            told.push((it.rule, it.stream, from_ms, to_ms));
        }
        told.sort_unstable();
        told
    }

    #[test]
    fn events_are_known_by_their_numbers_too() {
        let mut call = live(60.0, &events(3, |_| 40.0));
        for (number, value, second) in [(24, "connected", 1), (24, "disconnected", 2)] {
            let time = 1.7e12 + f64::from(second) * 1e3;
            call.take(format!("[{number},\"a\",\"{value}\",{time}]").as_bytes()).unwrap();
        }
        assert_eq!(call.findings()[0].rule, "interruption");
    }

    #[test]
    fn a_failed_connection_is_a_cause_for_a_window_and_names_nobody() {
        let mut call = live(20.0, &events(10, |_| 40.0));
        let failed = "[\"oniceconnectionstatechange\",\"Anna\",\"failed\",1700000010000]";
        call.take(failed.as_bytes()).unwrap();
        let found = call.findings();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].cause, found[0].holds), (Cause::Connection, true));
        assert!(!found[0].says.contains("Anna"));
        for second in [15, 29, 45] {
            let later = format!("[\"ontrack\",\"Anna\",0,{}]", 1.7e12 + second as f64 * 1e3);
            call.take(later.as_bytes()).unwrap();
            let holds = call.findings().iter().any(|it| it.holds);
            assert_eq!(holds, second < 40, "{second}");
        }
        assert!(call.cause_s()[0] <= 21.0);
    }
}
