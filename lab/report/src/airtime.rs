//! Use of the channel of a Wi-Fi cell: a few milliseconds of one run, for a picture.

use weir::units::{TimeDelta, Timestamp};
use weir_net::wifi::{AirtimeRecord, FrameKind};
use weir_record::airtime::word;
use weir_record::run::Engine;

use super::Column;
use super::format::{AirFrame, AirFrameKind, Airtime};

/// Time that is drawn: long enough for several exchanges, and short enough to tell the bars apart.
const SHOWN: TimeDelta = TimeDelta::from_millis(12);

/// Collects the frames of a run that may be drawn.
#[derive(Default)]
pub(super) struct Frames {
    /// The first frame's beginning.
    from: Option<Timestamp>,
    frames: Vec<AirtimeRecord>,
}

impl Frames {
    pub(super) fn push(&mut self, frame: AirtimeRecord) {
        let from = self.from.map_or(frame.start, |from| from.min(frame.start));
        self.from = Some(from);
        // A later frame may have an earlier start. Then even less is drawn.
        if frame.end <= from + SHOWN {
            self.frames.push(frame);
        }
    }

    fn is_empty(&self) -> bool {
        self.from.is_none()
    }

    fn shown(&self) -> impl Iterator<Item = &AirtimeRecord> {
        self.frames.iter().filter(|frame| frame.end <= self.from() + SHOWN)
    }

    fn from(&self) -> Timestamp {
        self.from.unwrap_or(Timestamp::ZERO)
    }
}

/// The picture of the first run with frames, preferably a simulated run. It begins with the first
/// frame.
pub(super) fn of(columns: &[Column<'_>]) -> Option<Airtime> {
    let (simulated, called): (Vec<&Column<'_>>, _) =
        columns.iter().partition(|column| column.engine == Engine::Sim);
    let mut runs = simulated.into_iter().chain(called).flat_map(|column| column.runs);
    let run = runs.find(|run| !run.frames.is_empty())?;
    let (from, shown) = (run.frames.from(), run.frames.shown());
    let micros = |time: TimeDelta| time.as_nanos() as f64 / 1e3;
    let frames = shown.map(|frame| AirFrame {
        start_us: micros(frame.start - from),
        end_us: micros(frame.end - from),
        node: frame.from.0,
        kind: match frame.kind {
            FrameKind::Data { .. } => AirFrameKind::Data,
            FrameKind::Ack => AirFrameKind::Ack,
            FrameKind::BlockAck => AirFrameKind::BlockAck,
        },
        mpdus: mpdus(frame),
        decoded: frame.decoded,
        text: text(frame, &run.record.nodes),
    });
    Some(Airtime {
        command: run.record.info.command(),
        controller: run.record.info.subject.to_string(),
        from_s: from.as_secs_f64(),
        nodes: run.record.nodes.clone(),
        frames: frames.collect(),
    })
}

fn mpdus(frame: &AirtimeRecord) -> usize {
    match frame.kind {
        FrameKind::Data { mpdus, .. } => mpdus,
        FrameKind::Ack | FrameKind::BlockAck => 1,
    }
}

/// `data to ap, MCS 7, best-effort, 1 packet, 1224 B: 0 decoded`.
fn text(frame: &AirtimeRecord, nodes: &[String]) -> String {
    let to = frame.to.map_or("an access point elsewhere", |to| &nodes[to.0]);
    let decoded = frame.decoded;
    match frame.kind {
        FrameKind::Data { rate, category, mpdus, size } => {
            let (mcs, bytes, category) = (rate.mcs.index(), size.as_bytes(), word(category));
            let packets = if mpdus == 1 { "packet" } else { "packets" };
            format!(
                "data to {to}, MCS {mcs}, {category}, {mpdus} {packets}, {bytes} B: {decoded} \
                 decoded"
            )
        }
        FrameKind::Ack => format!("ACK to {to}{}", lost(decoded)),
        FrameKind::BlockAck => format!("BlockAck to {to}{}", lost(decoded)),
    }
}

fn lost(decoded: usize) -> &'static str {
    if decoded == 0 { ", lost" } else { "" }
}
