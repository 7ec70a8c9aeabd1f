//! The table of rules: what limits a stream, told by its samples.
//!
//! A rule holds at single samples. A finding is a time in which it holds without a longer gap.

mod moment;
mod received;

use std::fmt;

use weir_record::calls::stats::{Kind, LimitationReason};

use crate::found::{Evidence, FullPath, HeldDown, Logged, Part, RuleName, Source, TooLarge};
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream, median, pixels};
use crate::read::dump::StreamDirection;

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
/// A target below this share of the estimate is not held down by it.
const CAPPED: f64 = 0.75;
/// So much of an estimate, in bit/s, is the sound's beside a video.
const BESIDE_BPS: f64 = 64e3;
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
/// Longest time between two samples at which a rule holds, in s, within one finding.
pub(crate) const GAP_S: f64 = 2.5;
/// Samples that follow each other are closer, in s.
const FOLLOWS_S: f64 = 1e-3;
/// Samples around one over which loss is averaged, because receiver reports come in steps.
const LOSS_SAMPLES: usize = 3;

/// A rule of the table.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in findings.
    pub name: &'static str,
    pub(crate) rule: RuleName,
    /// How long it must hold, in s.
    pub least_s: f64,
    /// Smallest share of lost packets, over all samples of a finding.
    pub(crate) least_loss: f64,
    pub(crate) holds: fn(Moment<'_>) -> bool,
    pub(crate) evidence: fn(&SampledStream, &Span<'_>) -> Evidence,
}

/// The samples of a finding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    /// Those at which the rule holds.
    pub held: &'a [Sample],
    /// All from the first of these to the last.
    pub whole: &'a [Sample],
    /// Whether it lasts to the end of the stream.
    pub is_to_end: bool,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rule {
    const fn new(
        rule: RuleName,
        least_s: f64,
        holds: fn(Moment<'_>) -> bool,
        evidence: fn(&SampledStream, &Span<'_>) -> Evidence,
    ) -> Self {
        Self { name: rule.name(), rule, least_s, least_loss: 0.0, holds, evidence }
    }

    /// One that holds over a time in which so much is lost.
    const fn of_loss(self) -> Self {
        Self { least_loss: LOSS, ..self }
    }

    /// Whether it says something of the mean of a whole call.
    pub(crate) fn is_of_means(&self) -> bool {
        matches!(
            self.rule,
            RuleName::Loss
                | RuleName::Delay
                | RuleName::Late
                | RuleName::NotDecoded
                | RuleName::NotEncoded
                | RuleName::SilentSound
                | RuleName::SilentSource
        )
    }

    /// Whether it lasts as long as its loss, since nothing else makes it hold.
    pub(crate) fn lasts_as_its_loss(&self) -> bool {
        matches!(self.rule, RuleName::Loss | RuleName::FarLoss)
    }

    /// Longest time between two samples at which it holds, in s, within one finding. What brings
    /// nothing at all is over with the first packet: pauses between words are no long one.
    pub(crate) fn gap_s(&self) -> f64 {
        match self.rule {
            RuleName::NothingReceived | RuleName::NotSent => FOLLOWS_S,
            _ => GAP_S,
        }
    }

    /// Who limits the stream if it holds.
    pub fn part(&self) -> Part {
        self.rule.part(false)
    }
}

/// All rules, in the order of the report. Comments say when each holds; a text would also be in the
/// WebAssembly.
pub const RULES: &[Rule] = &[
    // The round-trip time is 100 ms above its minimum: packets wait in a queue, so the stream fills
    // the path. A received stream must also lose packets, or its frames must wait or be few; after
    // such a report, lost packets are enough. Or a sent video fills 80 % of the estimate, and over
    // five reports the round-trip time is 20 ms above its minimum on average, 40 ms at most, and
    // moves by 5 ms. Or the estimate is lowered without loss again and again, within 15 s: about
    // one rate, at no more than 1.33 times and no less than 0.75 times the one before, in a stream
    // that never lacked air. After a queue, and while the target stays below 70 % of its largest, a
    // lower rate counts, too.
    Rule::new(RuleName::Capacity, 1.5, capacity, full_path),
    // The browser says that bandwidth limits the video (`qualityLimitationReason`), and no other
    // rule says what holds the estimate there. Of a target far below the estimate, the picture's
    // size is the reason.
    Rule::new(RuleName::Bandwidth, 10.0, |it| it.is_limited_by_bandwidth(), bandwidth),
    // By a log of packets: three times within five reports, packets waited and for 60 ms or more
    // none arrived, and then they came so fast that the wait was over in 250 ms, with less than 2 %
    // lost. By reports: twice within 15 s, a single measured round trip is 40 ms above the
    // smallest, those before and after it are short again, no queue stands between or stood within
    // 30 s before, no report is late, the processor is free, less than 2 % is lost, and the sender
    // does not send less after each. So does a Wi-Fi or cellular cell in which others have the air,
    // or whose signal fades.
    Rule::new(RuleName::AirTime, 1.5, |it| it.lacks_air(), air_time),
    // 2 % of the packets are lost, and no queue explains it.
    Rule::new(RuleName::Loss, 2.5, is_lossy, |_, span| Evidence::Loss {
        lost: losses::of(span.whole),
        rtt_ms: median(span.held, |it| it.rtt_ms),
    })
    .of_loss(),
    // The round-trip time is 300 ms or more, and no queue explains it.
    Rule::new(RuleName::Delay, 2.5, is_long, |stream, span| Evidence::Delay {
        rtt_ms: median(span.held, |it| it.rtt_ms),
        base_ms: stream.base_rtt_ms,
    }),
    // A sent video fills 80 % of the estimate, 2 % of the packets are lost, and there is no queue:
    // the estimate answers loss that does not come from congestion.
    Rule::new(RuleName::LossRule, 2.5, is_loss_answered, |_, span| Evidence::LossRule {
        estimate_bps: median(span.held, |it| it.estimate_bps),
    })
    .of_loss(),
    // The target of a sent video is below 70 % of its largest, after a queue, and now there is
    // neither queue nor loss.
    Rule::new(
        RuleName::Recovery,
        1.5,
        |it| it.is_held_down() && it.came_after_a_queue(),
        |stream, span| Evidence::Recovery(held_down(stream, span)),
    ),
    // The target of a sent video is below 70 % of its largest, and there was neither queue nor loss
    // so far.
    Rule::new(
        RuleName::StartUp,
        2.5,
        |it| it.is_held_down() && !it.came_after_a_queue(),
        |stream, span| Evidence::StartUp(held_down(stream, span)),
    ),
    // Fewer than 60 % of the source's frames are encoded, and yet they are four times the target:
    // the encoder keeps a picture that is too large for it.
    Rule::new(RuleName::PictureSize, 2.5, picture_too_large, too_large),
    // A source gives frames, the stream is active, and none is encoded. Of simulcast, layers may be
    // left out.
    Rule::new(
        RuleName::NotEncoded,
        5.0,
        |it| it.is_nothing_encoded(),
        |_, span| Evidence::NotEncoded { source_rate: median(span.held, |it| it.source_rate) },
    ),
    // The browser says so (`qualityLimitationReason` is `cpu`), or fewer than 60 % of the source's
    // frames are encoded, that takes half of the time, and all of them would take 90 % of it or
    // more.
    Rule::new(RuleName::Processor, 1.5, processor_busy, |_, span| Evidence::Processor {
        encode_ms: median(span.held, |it| it.encode_ms),
        frame_rate: median(span.held, |it| it.frame_rate),
    }),
    // Of whole frames that arrive, fewer than 60 % are decoded, and nothing is lost.
    Rule::new(
        RuleName::Decoder,
        2.5,
        |it| it.is_decoder_slow(),
        |_, span| Evidence::Decoder {
            received_rate: median(span.held, |it| it.received_rate),
            frame_rate: median(span.held, |it| it.decoded_rate),
            decode_ms: median(span.held, |it| it.decode_ms),
        },
    ),
    // The application deactivates the stream, or its source gives fewer than 60 % of the frames
    // that it gives otherwise, or all frames together need less than half of the target, or in an
    // event log the sender finds itself limited by the application and sends less than half of its
    // estimate and of its largest rate. A shared screen is none of these: a page that stands still
    // needs nothing.
    Rule::new(RuleName::Source, 1.5, gives_little, |stream, span| {
        Evidence::Source(source(stream, span))
    }),
    // No packet of a sound that was sent before.
    Rule::new(RuleName::NotSent, 5.0, |it| it.is_nothing_sent(), |_, _| Evidence::NotSent),
    // The microphone's sound has no energy at all, while packets are sent.
    Rule::new(
        RuleName::SilentSource,
        10.0,
        |it| it.is_silence(StreamDirection::Sent),
        |_, _| Evidence::SilentSource,
    ),
    // 2 % of the packets of a received stream are missing, and at most a third as many of the
    // transport-wide numbers, which the server gives that sent them here: they were lost before it.
    // Only event logs and captures know this.
    Rule::new(RuleName::FarLoss, 2.5, is_lost_far_away, |_, span| Evidence::FarLoss {
        lost: losses::of(span.whole),
        behind: mean(span.held, |it| it.last_hop_loss),
    })
    .of_loss(),
    // A received video has at most 0.3 of the pixels that it has had at its largest before, and
    // there is neither queue nor loss on the way here: its sender, or a server that forwards one of
    // its layers, chose so.
    Rule::new(RuleName::SmallPicture, 5.0, is_far_picture_small, |_, span| {
        Evidence::SmallPicture {
            now: span.held[0].size.unwrap_or_default(),
            before: span.held[0].largest_before.unwrap_or_default(),
        }
    }),
    // A received video has fewer than half of its usual frames, and there is neither queue nor loss
    // on the way here. A shared screen may stand still.
    Rule::new(
        RuleName::FewFrames,
        5.0,
        |it| it.has_few_frames(),
        |stream, span| Evidence::FewFrames {
            now: median(span.held, |it| it.received_rate.or(it.frame_rate)).unwrap_or_default(),
            before: stream.usual_frame_rate.unwrap_or_default(),
        },
    ),
    // No packet of a stream that came before, or never one of a stream that was announced, and
    // none is lost.
    Rule::new(
        RuleName::NothingReceived,
        5.0,
        |it| it.is_nothing_received(),
        |_, span| Evidence::NothingReceived { is_to_end: span.is_to_end },
    ),
    // The sound of the packets that arrive has no energy at all.
    Rule::new(
        RuleName::SilentSound,
        10.0,
        |it| it.is_silence(StreamDirection::Received),
        |_, _| Evidence::SilentSound,
    ),
    // Packets of a video arrive, and no frame is decoded.
    Rule::new(RuleName::NotDecoded, 2.5, |it| it.is_not_decoded(), not_decoded),
    // Half a round trip and the jitter buffer together take more than 250 ms, and no queue explains
    // it.
    Rule::new(
        RuleName::Late,
        5.0,
        |it| it.is_late(),
        |_, span| Evidence::Late {
            delay_ms: median(span.held, Sample::delay_ms),
            buffer_ms: median(span.held, |it| it.jitter_buffer_ms),
            jitter_ms: median(span.held, |it| it.jitter_ms),
        },
    ),
];

fn is_lossy(moment: Moment<'_>) -> bool {
    !moment.queues() && moment.loss() >= LOSS && !moment.was_lost_before_the_server()
}

fn is_long(moment: Moment<'_>) -> bool {
    !moment.queues() && moment.sample().rtt_ms.is_some_and(|rtt| rtt >= LONG_RTT_MS)
}

fn is_loss_answered(moment: Moment<'_>) -> bool {
    moment.is_sent_video() && !moment.queues() && moment.loss() >= LOSS && moment.fills_estimate()
}

fn is_lost_far_away(moment: Moment<'_>) -> bool {
    !moment.queues() && moment.loss() >= LOSS && moment.was_lost_before_the_server()
}

fn is_far_picture_small(moment: Moment<'_>) -> bool {
    moment.has_small_picture() && !moment.queues() && moment.loss() < LOSS
}

fn gives_little(moment: Moment<'_>) -> bool {
    let (sample, usual) = (moment.sample(), moment.stream.source_rate);
    let few = sample.source_rate.zip(usual).is_some_and(|(now, usual)| now < FEW_FRAMES * usual);
    let is_limited = sample.controlled.as_ref().is_some_and(|it| it.is_application_limited);
    let is_little = sample.estimate_bps.is_some_and(|it| sample.rate_bps < LITTLE * it)
        && sample.rate_bps < LITTLE * moment.stream.peak_rate_bps;
    moment.is_sent_video()
        && (sample.active == Some(false)
            || !sample.is_screen && (few || moment.needs_little() || is_limited && is_little))
}

fn capacity(moment: Moment<'_>) -> bool {
    let (sample, stream) = (moment.sample(), moment.stream);
    if moment.lacks_air() {
        return false;
    }
    if !moment.queues() {
        // A queue that overflows may be seen by a single report.
        let overflowed = stream.direction == StreamDirection::Received
            && moment.loss() >= LOSS
            && moment.is_after_a_queue();
        let is_short = moment.fills_estimate() && moment.queues_shortly();
        return overflowed || moment.is_sent_video() && (is_short || moment.is_repeated_overuse());
    }
    match stream.direction {
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
        && sample.media_bps > 0.0
        && !processor_busy(moment)
}

fn bandwidth(_: &SampledStream, span: &Span<'_>) -> Evidence {
    Evidence::Bandwidth {
        estimate_bps: median(span.held, |it| it.estimate_bps),
        rate_bps: median(span.held, |it| Some(it.rate_bps)),
    }
}

fn air_time(stream: &SampledStream, span: &Span<'_>) -> Evidence {
    let count: u32 = span.held.iter().map(|it| it.pauses).sum();
    match count {
        0 => Evidence::Spikes {
            longest_ms: largest(span.held, |it| it.rtt_ms),
            base_ms: stream.base_rtt_ms,
        },
        count => Evidence::Pauses {
            count,
            longest_ms: span.held.iter().map(|it| it.longest_pause_ms).fold(0.0, f64::max),
        },
    }
}

fn too_large(_: &SampledStream, span: &Span<'_>) -> Evidence {
    Evidence::PictureSize(TooLarge {
        size: span.held.iter().rev().find_map(|it| it.size).unwrap_or_default(),
        target_bps: median(span.held, |it| it.target_bps),
        media_bps: median(span.held, |it| Some(it.media_bps)),
        frame_rate: median(span.held, |it| it.frame_rate).unwrap_or_default(),
        source_rate: median(span.held, |it| it.source_rate).unwrap_or_default(),
    })
}

fn not_decoded(stream: &SampledStream, span: &Span<'_>) -> Evidence {
    let is_ever = stream.samples.iter().all(|it| it.decoded_rate.unwrap_or(0.0) == 0.0);
    Evidence::NotDecoded {
        key_frame_requests: span.whole.iter().map(|it| it.key_frame_requests).sum(),
        is_ever,
    }
}

fn held_down(stream: &SampledStream, span: &Span<'_>) -> HeldDown {
    let target = |sample: Option<&Sample>| sample.and_then(|it| it.target_bps);
    HeldDown {
        target_bps: (target(span.held.first()), target(span.held.last())),
        rtt_ms: median(span.held, |it| it.rtt_ms),
        lost: losses::of(span.whole),
        logged: logged(stream, span.held),
    }
}

/// Whether a time in which the path seems full has round trips or losses that show it: a single
/// moment looks at its neighbours, too.
pub(crate) fn shows_full_path(stream: &SampledStream, span: &[Sample]) -> bool {
    let longest = largest(span, |it| it.rtt_ms).zip(stream.base_of(span));
    longest.is_some_and(|(now, base)| now >= base + SHORT_QUEUE_MS.0)
        || losses::of(span).is_some_and(|ratio| ratio >= LOSS)
        || span.iter().any(|it| it.is_repeated_overuse)
}

/// How a full path shows: the queue's delay, the loss, or both.
fn full_path(stream: &SampledStream, span: &Span<'_>) -> Evidence {
    let longest = largest(span.held, |it| it.rtt_ms).zip(stream.base_of(span.held));
    Evidence::Capacity(FullPath {
        is_sent: stream.direction == StreamDirection::Sent,
        rate_bps: median(span.held, |it| Some(it.rate_bps)),
        lost: losses::of(span.whole),
        queue_ms: longest.filter(|(now, base)| *now >= base + SHORT_QUEUE_MS.0),
        estimate_bps: median(span.held, |it| it.estimate_bps),
        carried: None,
        overflows: overflows(span.held),
    })
}

/// Whether far more was sent than the estimate in most samples.
fn overflows(held: &[Sample]) -> bool {
    let far_more = |it: &&Sample| it.estimate_bps.is_some_and(|bps| it.rate_bps > TOO_MUCH * bps);
    2 * held.iter().filter(far_more).count() > held.len()
}

/// What a source gave that limited the stream.
fn source(stream: &SampledStream, span: &Span<'_>) -> Source {
    let rate_bps = median(span.held, |it| Some(it.rate_bps));
    if span.held.iter().any(|it| it.active == Some(false)) {
        return Source::Deactivated;
    }
    if span.held.iter().all(|it| it.source_rate.is_none()) {
        let estimate_bps = median(span.held, |it| it.estimate_bps);
        return Source::Little { rate_bps, estimate_bps };
    }
    let source_rate = median(span.held, |it| it.source_rate).unwrap_or_default();
    let target_bps = median(span.held, |it| it.target_bps);
    match (target_bps, stream.source_rate) {
        (None, Some(usual_rate)) if source_rate < FEW_FRAMES * usual_rate => {
            Source::Few { source_rate, usual_rate }
        }
        _ => Source::Easy { source_rate, rate_bps, target_bps },
    }
}

/// What the congestion control itself logged: the last overuse that lowered its rate, and its best
/// probe since.
fn logged(stream: &SampledStream, held: &[Sample]) -> Option<Logged> {
    if held.iter().all(|it| it.controlled.is_none()) {
        return None;
    }
    let end_s = held.last().map_or(0.0, |it| it.end_s);
    let until = stream.samples.iter().take_while(|it| it.end_s <= end_s);
    let overused = until.filter(|it| it.controlled.as_ref().is_some_and(|it| it.overuses > 0));
    let probed = held.iter().filter_map(|it| it.controlled.as_ref()?.probed).max();
    Some(Logged {
        overuse_s: overused.last().map(|it| it.end_s),
        probed_bps: probed.map(|rate| rate.as_kbps_f64() * 1e3),
    })
}

fn mean(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = span.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn largest(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    span.iter().filter_map(value).max_by(f64::total_cmp)
}

fn smallest(span: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    span.iter().filter_map(value).min_by(f64::total_cmp)
}
