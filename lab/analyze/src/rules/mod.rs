//! The table of rules: what limits a stream, told by its samples.
//!
//! A rule holds at single samples. A finding is a time in which it holds without a longer gap.

mod moment;

use std::fmt;

use weir_lab::calls::stats::{Kind, LimitationReason};

use crate::dump::StreamDirection;
use crate::samples::{Sample, SampledStream, median, pixels};

pub(crate) use moment::Moment;

/// Growth of the round-trip time over its minimum that only a queue explains: twice what the
/// round-trip times of our calls on an idle link vary by.
pub(crate) const QUEUE_MS: f64 = 100.0;
/// A congestion control that keeps queues short lets the round-trip time rise by these, on average
/// and at most, while it follows the capacity. On an idle link ours vary by less than 20 ms.
const SHORT_QUEUE_MS: (f64, f64) = (20.0, 40.0);
/// Samples before and after one over which a short queue is looked for.
const SHORT_QUEUE_SAMPLES: usize = 2;
/// Round-trip times that differ by less are those of a longer path: a queue never stands still.
const QUEUE_MOVES_MS: f64 = 5.0;
/// Share of lost packets that Chromium's congestion control begins to answer [GCC §6].
pub(crate) const LOSS: f64 = 0.02;
/// An estimate that falls below this share of the one before was lowered. GCC's is then 0.85 of
/// what arrived [GCC §5.5].
pub(crate) const LOWERED: f64 = 0.95;
/// Round-trip time that hampers a conversation: twice the 150 ms one way of ITU-T G.114.
pub(crate) const LONG_RTT_MS: f64 = 300.0;
/// A target below this share of its largest is held down.
const HELD_DOWN: f64 = 0.7;
/// A stream that sends this share of the estimate is limited by it.
pub(crate) const FILLS: f64 = 0.8;
/// A stream that sends this multiple of the estimate does not follow it.
pub(crate) const TOO_MUCH: f64 = 2.0;
/// Fewer frames than this share of what the source gives are too few.
const FEW_FRAMES: f64 = 0.6;
/// At least this share of the source's frames is all of them.
const ALL_FRAMES: f64 = 0.8;
/// A stream below this share of its target needs no more.
const LITTLE: f64 = 0.5;
/// An encoder that makes this multiple of its target cannot follow it. While the target falls, one
/// that can makes up to three times as much.
const OVERSHOOT: f64 = 4.0;
/// An encoder that works for less than this share of the time waits for something else.
const ENCODER_WORKS: f64 = 0.5;
/// Share of a processor's time that the encoder may take.
const ENCODER_BUSY: f64 = 0.9;
/// So many pauses around a sample are those of a radio cell: one may be a change of the path.
const PAUSES: u32 = 3;
/// Samples before and after one over which they are counted.
const PAUSE_SAMPLES: usize = 2;
/// A picture with this share of the pixels of the largest one is a smaller layer: half its width.
const SMALL_PICTURE: f64 = 0.3;
/// The rule of packets that were lost on another's way to the server.
pub(crate) const FAR_LOSS: &str = "far loss";
/// Samples around one over which loss is averaged, because receiver reports come in steps.
const LOSS_SAMPLES: usize = 3;

/// The part of a call that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The connection itself: ICE, DTLS, and the servers that help to make it.
    Connection,
    /// The path between the two ends.
    Network,
    /// Congestion control.
    Controller,
    /// The encoder.
    Encoder,
    /// The machine.
    Processor,
    /// The application, or its camera.
    Application,
    /// Who sends what this end receives: a sender, or a server that forwards.
    FarEnd,
    /// What was seen.
    Video,
    /// What was heard.
    Audio,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection",
            Self::Network => "network",
            Self::Controller => "controller",
            Self::Encoder => "encoder",
            Self::Processor => "processor",
            Self::Application => "application",
            Self::FarEnd => "far end",
            Self::Video => "video",
            Self::Audio => "audio",
        })
    }
}

/// A rule of the table.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in findings.
    pub name: &'static str,
    /// Who limits the stream if it holds.
    pub part: Part,
    /// How long it must hold, in s.
    pub least_s: f64,
    /// Smallest share of lost packets, over all samples of a finding.
    pub(crate) least_loss: f64,
    pub(crate) holds: fn(Moment<'_>) -> bool,
    pub(crate) says: fn(&SampledStream, &[Sample]) -> String,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All rules, in the order of the report. Comments say when each holds; a text would also be in the
/// WebAssembly.
pub const RULES: &[Rule] = &[
    Rule {
        name: "capacity",
        part: Part::Network,
        // The round-trip time is 100 ms above its minimum: packets wait in a queue, so the
        // stream fills the path. A received stream must also lose packets, or its frames
        // must wait or be few; after such a report, lost packets are enough. Or a sent
        // video fills 80 % of the estimate, and over five reports the round-trip time is
        // 20 ms above its minimum on average, 40 ms at most, and moves by 5 ms. Or the
        // estimate is lowered without loss again and again, within 15 s: about one rate,
        // at no more than 1.33 times and no less than 0.75 times the one before, in a
        // stream that never lacked air. After a queue, and while the target stays below 70
        // % of its largest, a lower rate counts, too.
        least_s: 1.5,
        least_loss: 0.0,
        holds: capacity,
        says: |stream, span| {
            let what =
                if stream.way == StreamDirection::Sent { "left the sender" } else { "arrived" };
            let rate = median(span, |it| Some(it.rate_bps));
            format!("the path's capacity: {} {what} {}", kbps(rate), full_path(stream, span))
        },
    },
    Rule {
        name: "air time",
        part: Part::Network,
        // By a log of packets: three times within five reports, packets waited and for 60
        // ms or more none arrived, and then they came so fast that the wait was over in
        // 250 ms, with less than 2 % lost. By reports: twice within 15 s, a single
        // measured round trip is 40 ms above the smallest, those before and after it are
        // short again, no queue stands between or stood within 30 s before, no report is
        // late, the processor is free, less than 2 % is lost, and the sender does not send
        // less after each. So does a Wi-Fi or cellular cell in which others have the air,
        // or whose signal fades.
        least_s: 1.5,
        least_loss: 0.0,
        holds: |moment| moment.lacks_air(),
        says: |stream, span| {
            let count: u32 = span.iter().map(|it| it.pauses).sum();
            if count == 0 {
                return springs_up(stream, span);
            }
            let longest = span.iter().map(|it| it.longest_pause_ms).fold(0.0, f64::max);
            format!(
                "pauses of a radio cell: {count} times packets waited and none arrived, for up to \
                 {longest:.0} ms, and then they came fast"
            )
        },
    },
    Rule {
        name: "loss",
        part: Part::Network,
        // 2 % of the packets are lost, and no queue explains it.
        least_s: 2.5,
        least_loss: LOSS,
        holds: |moment| {
            !moment.queues() && moment.loss() >= LOSS && !moment.was_lost_before_the_server()
        },
        says: |_, span| {
            format!(
                "packet loss without a queue: {} of the packets were lost{}",
                percent(loss(span)),
                at_round_trips(median(span, |it| it.rtt_ms)),
            )
        },
    },
    Rule {
        name: "delay",
        part: Part::Network,
        // The round-trip time is 300 ms or more, and no queue explains it.
        least_s: 2.5,
        least_loss: 0.0,
        holds: |moment| {
            !moment.queues() && moment.sample().rtt_ms.is_some_and(|rtt| rtt >= LONG_RTT_MS)
        },
        says: |stream, span| {
            format!(
                "a long path: round trips took {}, and {} at best",
                ms(median(span, |it| it.rtt_ms)),
                ms(stream.base_rtt_ms),
            )
        },
    },
    Rule {
        name: "loss rule",
        part: Part::Controller,
        // A sent video fills 80 % of the estimate, 2 % of the packets are lost, and there
        // is no queue: the estimate answers loss that does not come from congestion.
        least_s: 2.5,
        least_loss: LOSS,
        holds: |moment| {
            moment.is_sent_video()
                && !moment.queues()
                && moment.loss() >= LOSS
                && moment.fills_estimate()
        },
        says: |_, span| {
            format!(
                "the congestion controller's answer to loss: it held its estimate at {} although \
                 no queue says that the path was full",
                kbps(median(span, |it| it.estimate_bps)),
            )
        },
    },
    Rule {
        name: "recovery",
        part: Part::Controller,
        // The target of a sent video is below 70 % of its largest, after a queue, and now
        // there is neither queue nor loss.
        least_s: 1.5,
        least_loss: 0.0,
        holds: |moment| moment.is_held_down() && moment.came_after_a_queue(),
        says: |stream, span| held_down(stream, span, "recovery after the path was full"),
    },
    Rule {
        name: "start-up",
        part: Part::Controller,
        // The target of a sent video is below 70 % of its largest, and there was neither
        // queue nor loss so far.
        least_s: 2.5,
        least_loss: 0.0,
        holds: |moment| moment.is_held_down() && !moment.came_after_a_queue(),
        says: |stream, span| held_down(stream, span, "slow start-up"),
    },
    Rule {
        name: "picture size",
        part: Part::Encoder,
        // Fewer than 60 % of the source's frames are encoded, and yet they are four times
        // the target: the encoder keeps a picture that is too large for it.
        least_s: 2.5,
        least_loss: 0.0,
        holds: picture_too_large,
        says: |_, span| {
            let size = span.iter().rev().find_map(|it| it.size).unwrap_or_default();
            format!(
                "the encoder's picture of {}x{}: at a target of {} it made {} and {:.1} of {:.0} \
                 frames a second",
                size.0,
                size.1,
                kbps(median(span, |it| it.target_bps)),
                kbps(median(span, |it| Some(it.media_bps))),
                median(span, |it| it.frame_rate).unwrap_or_default(),
                median(span, |it| it.source_rate).unwrap_or_default(),
            )
        },
    },
    Rule {
        name: "processor",
        part: Part::Processor,
        // The browser says so (`qualityLimitationReason` is `cpu`), or fewer than 60 % of
        // the source's frames are encoded, that takes half of the time, and all of them
        // would take 90 % of it or more.
        least_s: 1.5,
        least_loss: 0.0,
        holds: processor_busy,
        says: |_, span| {
            format!(
                "the sender's processor: encoding a frame took {}, and {:.1} frames a second were \
                 encoded",
                ms(median(span, |it| it.encode_ms)),
                median(span, |it| it.frame_rate).unwrap_or_default(),
            )
        },
    },
    Rule {
        name: "source",
        part: Part::Application,
        // The application deactivates the stream, or its source gives fewer than 60 % of
        // the frames that it gives otherwise, or all frames together need less than half
        // of the target, or in an event log the sender finds itself limited by the
        // application and sends less than half of its estimate and of its largest rate.
        least_s: 1.5,
        least_loss: 0.0,
        holds: |moment| {
            let (sample, usual) = (moment.sample(), moment.stream.source_rate);
            let few =
                sample.source_rate.zip(usual).is_some_and(|(now, usual)| now < FEW_FRAMES * usual);
            let is_limited = sample.controlled.as_ref().is_some_and(|it| it.is_application_limited);
            let is_little = sample.estimate_bps.is_some_and(|it| sample.rate_bps < LITTLE * it)
                && sample.rate_bps < LITTLE * moment.stream.peak_rate_bps;
            moment.is_sent_video()
                && (sample.active == Some(false)
                    || few
                    || moment.needs_little()
                    || is_limited && is_little)
        },
        says: |stream, span| match span.iter().any(|it| it.active == Some(false)) {
            true => "the application: it deactivated the stream".into(),
            false if span.iter().all(|it| it.source_rate.is_none()) => format!(
                "the application: it gave {} to send{}",
                kbps(median(span, |it| Some(it.rate_bps))),
                of("an estimate", median(span, |it| it.estimate_bps)),
            ),
            false => few_or_small(stream, span),
        },
    },
    Rule {
        name: FAR_LOSS,
        part: Part::FarEnd,
        // 2 % of the packets of a received stream are missing, and at most a third as many
        // of the transport-wide numbers, which the server gives that sent them here: they
        // were lost before it. Only event logs and captures know this.
        least_s: 2.5,
        least_loss: LOSS,
        holds: |moment| {
            !moment.queues() && moment.loss() >= LOSS && moment.was_lost_before_the_server()
        },
        says: |_, span| {
            format!(
                "the far end: {} of the packets were lost before the server that forwards them, \
                 and {} behind it",
                percent(loss(span)),
                percent(mean(span, |it| it.last_hop_loss)),
            )
        },
    },
    Rule {
        name: "small picture",
        part: Part::FarEnd,
        // A received video has at most 0.3 of the pixels that it has had at its largest
        // before, and there is neither queue nor loss on the way here: its sender, or a
        // server that forwards one of its layers, chose so.
        least_s: 5.0,
        least_loss: 0.0,
        holds: |moment| moment.has_small_picture() && !moment.queues() && moment.loss() < LOSS,
        says: |_, span| {
            let (width, height) = span[0].size.unwrap_or_default();
            let before = span[0].largest_before.unwrap_or_default();
            format!(
                "the far end sent pictures of {width}x{height} instead of {}x{}: its sender, or a \
                 server between, chose so, and nothing on the way here made it",
                before.0, before.1,
            )
        },
    },
];

fn capacity(moment: Moment<'_>) -> bool {
    let (sample, stream) = (moment.sample(), moment.stream);
    if moment.lacks_air() {
        return false;
    }
    if !moment.queues() {
        // A queue that overflows may be seen by a single report.
        let overflowed = stream.way == StreamDirection::Received
            && moment.loss() >= LOSS
            && moment.is_after_a_queue();
        let is_short = moment.fills_estimate() && moment.queues_shortly();
        return overflowed || moment.is_sent_video() && (is_short || moment.is_full_again());
    }
    match stream.way {
        StreamDirection::Sent => true,
        StreamDirection::Received => {
            let waits = sample.jitter_buffer_ms.zip(stream.jitter_buffer_ms);
            let few = sample.frame_rate.zip(stream.frame_rate);
            moment.loss() >= LOSS
                || waits.is_some_and(|(now, usual)| now > 2.0 * usual + QUEUE_MS / 2.0)
                || few.is_some_and(|(now, usual)| now < FEW_FRAMES * usual)
        }
    }
}

fn processor_busy(moment: Moment<'_>) -> bool {
    let sample = moment.sample();
    let busy = sample.encode_ms.zip(sample.source_rate).map(|(ms, rate)| ms * rate / 1e3);
    let few = sample.frame_rate.zip(sample.source_rate);
    let few = few.is_some_and(|(made, given)| made < FEW_FRAMES * given);
    let is_busy = sample.encode_ms.zip(sample.frame_rate);
    let is_busy = is_busy.is_some_and(|(ms, made)| ms * made / 1e3 >= ENCODER_WORKS);
    let cannot = few && is_busy && busy.is_some_and(|it| it >= ENCODER_BUSY);
    sample.limitation == LimitationReason::Cpu || cannot
}

fn picture_too_large(moment: Moment<'_>) -> bool {
    let sample = moment.sample();
    let few = sample.frame_rate.zip(sample.source_rate);
    moment.is_sent_video()
        && few.is_some_and(|(made, given)| made < FEW_FRAMES * given)
        && sample.target_bps.is_some_and(|target| sample.media_bps >= OVERSHOOT * target)
        && !processor_busy(moment)
}

fn held_down(stream: &SampledStream, span: &[Sample], why: &str) -> String {
    format!(
        "the congestion controller's {why}: its target was {}{}{}{}",
        from_to(
            span.first().and_then(|it| it.target_bps),
            span.last().and_then(|it| it.target_bps)
        ),
        at_round_trips(median(span, |it| it.rtt_ms)),
        loss(span).map(|ratio| format!(", with {} lost", percent(Some(ratio)))).unwrap_or_default(),
        its_own_words(stream, span),
    )
}

/// Whether a time in which the path seems full has round trips or losses that show it: a single
/// moment looks at its neighbours, too.
pub(crate) fn shows_full_path(stream: &SampledStream, span: &[Sample]) -> bool {
    let longest = largest(span, |it| it.rtt_ms).zip(stream.base_rtt_ms);
    longest.is_some_and(|(now, base)| now >= base + SHORT_QUEUE_MS.0)
        || loss(span).is_some_and(|ratio| ratio >= LOSS)
        || span.iter().any(|it| it.is_full_again)
}

/// How a full path shows: the queue's delay, the loss, or both.
fn full_path(stream: &SampledStream, span: &[Sample]) -> String {
    let lost = loss(span).map(|ratio| format!("{} were lost", percent(Some(ratio))));
    let longest = largest(span, |it| it.rtt_ms).zip(stream.base_rtt_ms);
    let longest = longest.filter(|(now, base)| *now >= base + SHORT_QUEUE_MS.0);
    match (longest, lost) {
        (Some((now, base)), lost) => {
            let lost = lost.map(|it| format!(", and {it}")).unwrap_or_default();
            format!(
                "while packets waited in a queue (round trips of up to {now:.0} ms instead of \
                 {base:.0} ms{lost})"
            )
        }
        // It sends far more than its estimate.
        (None, Some(lost)) => {
            let estimate = of("an estimate", median(span, |it| it.estimate_bps));
            format!("{}, and {lost}", estimate.trim_start())
        }
        (None, None) => "and the path was full".into(),
    }
}

/// Round trips of a radio cell, where only reports are known.
fn springs_up(stream: &SampledStream, span: &[Sample]) -> String {
    format!(
        "a radio cell without air: round trips sprang up to {} instead of {}, and were short again \
         with the next report",
        ms(largest(span, |it| it.rtt_ms)),
        ms(stream.base_rtt_ms),
    )
}

/// What a source gave that limited the stream.
fn few_or_small(stream: &SampledStream, span: &[Sample]) -> String {
    let rate = median(span, |it| it.source_rate).unwrap_or_default();
    let target = median(span, |it| it.target_bps);
    let needed = kbps(median(span, |it| Some(it.rate_bps)));
    match (target, stream.source_rate) {
        (Some(target), _) => format!(
            "the application's source: its {rate:.1} frames a second needed {needed} of a target \
             of {}",
            kbps(Some(target))
        ),
        (None, Some(usual)) if rate < FEW_FRAMES * usual => format!(
            "the application's source: it gave {rate:.1} frames a second instead of {usual:.1}"
        ),
        (None, _) => {
            format!("the application's source: its {rate:.1} frames a second needed {needed}")
        }
    }
}

/// ` of an estimate of 700 kbit/s`, or nothing where it is unknown.
fn of(what: &str, bps: Option<f64>) -> String {
    bps.map(|bps| format!(" of {what} of {}", kbps(Some(bps)))).unwrap_or_default()
}

/// ` at round trips of 40 ms`, or nothing where they are unknown.
fn at_round_trips(rtt_ms: Option<f64>) -> String {
    rtt_ms.map(|ms| format!(" at round trips of {ms:.0} ms")).unwrap_or_default()
}

/// `203 kbit/s`, or `203 to 300 kbit/s` if it changed.
fn from_to(first: Option<f64>, last: Option<f64>) -> String {
    match (kbps(first), kbps(last)) {
        (first, last) if first == last => first,
        (first, last) => format!("{} to {last}", first.trim_end_matches(" kbit/s")),
    }
}

/// What the congestion control itself logged: the last overuse that lowered its rate, and its best
/// probe since.
fn its_own_words(stream: &SampledStream, span: &[Sample]) -> String {
    if span.iter().all(|it| it.controlled.is_none()) {
        return String::new();
    }
    let end_s = span.last().map_or(0.0, |it| it.end_s);
    let until = stream.samples.iter().take_while(|it| it.end_s <= end_s);
    let overused = until.filter(|it| it.controlled.as_ref().is_some_and(|it| it.overuses > 0));
    let last = overused.last();
    let last = last.map(|it| format!("its delay detector said overuse last at {:.1} s", it.end_s));
    let probed = span.iter().filter_map(|it| it.controlled.as_ref()?.probed).max();
    let probed =
        probed.map(|rate| format!("its best probe reached {:.0} kbit/s", rate.as_kbps_f64()));
    format!(
        "; {}, {}",
        last.unwrap_or_else(|| "its delay detector never said overuse".into()),
        probed.unwrap_or_else(|| "and no probe succeeded in this time".into()),
    )
}

fn mean(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = span.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Lost packets of several samples over all of them.
pub(crate) fn loss(span: &[Sample]) -> Option<f64> {
    let (mut packets, mut lost) = (0.0, 0.0);
    for sample in span {
        if let Some(loss) = sample.loss {
            packets += sample.packets as f64;
            lost += loss * sample.packets as f64;
        }
    }
    (packets > 0.0).then(|| (lost / packets).min(1.0))
}

fn largest(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    span.iter().filter_map(value).max_by(f64::total_cmp)
}

fn smallest(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    span.iter().filter_map(value).min_by(f64::total_cmp)
}

fn kbps(bps: Option<f64>) -> String {
    bps.map_or("an unknown rate".into(), |bps| format!("{:.0} kbit/s", bps / 1e3))
}

fn ms(ms: Option<f64>) -> String {
    ms.map_or("an unknown time".into(), |ms| format!("{ms:.0} ms"))
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("an unknown share".into(), |ratio| format!("{:.1} %", ratio * 100.0))
}
