//! A controller that writes down each call that it gets, and what it wants afterwards.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use weir::controller::{Metrics, RateLimits, Target};
use weir::feedback::{Ecn, FeedbackReport, ProbeId, SentPacket};
use weir::{Bitrate, Controller, DataSize, TimeDelta, Timestamp};

/// The text of a vector while it is written.
#[derive(Default)]
pub struct Record {
    text: String,
    /// The last row of a target. It stands for all events until the next one.
    target: String,
    /// The feedback packet that is being read.
    pub datagram: Option<Vec<u8>>,
}

impl Record {
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

pub type SharedRecord = Rc<RefCell<Record>>;

pub struct Recorder {
    inner: Box<dyn Controller + Send>,
    record: SharedRecord,
}

/// Time of an event in microseconds: the path has only whole ones.
fn us(time: Timestamp) -> i64 {
    assert_eq!(time.as_nanos() % 1_000, 0, "{time:?}");
    time.as_micros()
}

pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn optional(bitrate: Option<Bitrate>) -> String {
    bitrate.map_or_else(|| "null".into(), |bitrate| bitrate.as_bps().to_string())
}

/// Probes count from 1, as in weir.h: zero is no probe.
fn number(id: ProbeId) -> u32 {
    id.0 + 1
}

fn target_row(target: &Target, metrics: &Metrics) -> String {
    let window = target
        .window
        .map_or_else(|| "null".into(), |window| window.congestion_window.as_bytes().to_string());
    let probe = target.probe.map_or_else(
        || "null".into(),
        |probe| {
            let (rate, size) = (probe.rate.as_bps(), probe.size.as_bytes());
            format!("[{},{rate},{size},{}]", number(probe.id), probe.packets)
        },
    );
    let (bitrate, pacing) = (target.bitrate.as_bps(), target.pacing_rate.as_bps());
    let (padding, reason) = (target.padding_rate.as_bps(), metrics.reason.as_str());
    let state = metrics.state;
    format!("[\"target\",{bitrate},{pacing},{padding},{window},{probe},\"{state}\",\"{reason}\"]")
}

/// `[number, arrival, ecn, recovered]`, without the zeros at its end.
fn packet_row(packet: &weir::PacketReport) -> String {
    let arrival = packet.arrival_time.map_or_else(|| "null".into(), |time| us(time).to_string());
    let ecn = match packet.ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let number = packet.sequence_number;
    match (ecn, packet.recovered) {
        (0, false) => format!("[{number},{arrival}]"),
        (ecn, false) => format!("[{number},{arrival},{ecn}]"),
        (ecn, true) => format!("[{number},{arrival},{ecn},1]"),
    }
}

impl Recorder {
    pub fn new(inner: Box<dyn Controller + Send>, record: SharedRecord) -> Self {
        let recorder = Self { inner, record };
        recorder.note_target();
        recorder
    }

    fn note(&self, row: &str) {
        self.record.borrow_mut().line(row);
        self.note_target();
    }

    fn note_target(&self) {
        let row = target_row(&self.inner.target(), &self.inner.metrics());
        let mut record = self.record.borrow_mut();
        if record.target != row {
            record.line(&row);
            record.target = row;
        }
    }
}

#[test]
fn a_recorded_controller_gets_every_call() {
    let record = SharedRecord::default();
    record.borrow_mut().datagram = Some(Vec::new());
    let wrap = |controller| Recorder::new(Box::new(controller), record);
    weir::testing::check_wrapper(wrap).unwrap();
}

impl Controller for Recorder {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.inner.on_media_queued(now, added, queued);
        let (added, queued) = (added.as_bytes(), queued.as_bytes());
        self.note(&format!("[\"queued\",{},{added},{queued}]", us(now)));
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.inner.on_packet_sent(now, packet);
        let (size, queued) = (packet.size.as_bytes(), packet.queued.as_bytes());
        let mut row = format!("[\"sent\",{},{},{size},{queued}", us(now), packet.sequence_number);
        if packet.probe.is_some() || packet.padding {
            let probe = packet.probe.map_or(0, number);
            write!(row, ",{probe},{}", u8::from(packet.padding)).unwrap();
        }
        self.note(&(row + "]"));
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.inner.on_feedback(now, report);
        let datagram = self.record.borrow_mut().datagram.take().expect("feedback has bytes");
        let packets: Vec<String> = report.packets.iter().map(packet_row).collect();
        let (bytes, packets) = (hex(&datagram), packets.join(","));
        let (missing, new_clock) = (report.missing_feedback, u8::from(report.new_clock));
        let now = us(now);
        self.note(&format!("[\"feedback\",{now},\"{bytes}\",[{packets}],{missing},{new_clock}]"));
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.inner.on_round_trip_time(now, rtt);
        self.note(&format!("[\"rtt\",{},{}]", us(now), rtt.as_micros()));
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.inner.on_receiver_limit(now, limit);
        self.note(&format!("[\"receiver-limit\",{},{}]", us(now), optional(limit)));
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.inner.set_limits(now, limits);
        let [min, start, max] =
            [limits.min(), limits.start(), limits.max()].map(|bitrate| bitrate.as_bps());
        self.note(&format!("[\"limits\",{},{min},{start},{max}]", us(now)));
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.inner.set_desired_bitrate(now, desired);
        self.note(&format!("[\"desired\",{},{}]", us(now), optional(desired)));
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.inner.on_route_change(now);
        self.note(&format!("[\"route\",{}]", us(now)));
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.inner.on_shared_rate(now, share);
        self.note(&format!("[\"share\",{},{}]", us(now), share.as_bps()));
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.inner.on_timeout(now);
        self.note(&format!("[\"timeout\",{}]", us(now)));
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.inner.next_timeout()
    }

    fn target(&self) -> Target {
        self.inner.target()
    }

    fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }
}
