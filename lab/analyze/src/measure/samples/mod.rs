//! The values of a stream between two reports, as the rules need them.

pub(crate) mod losses;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_record::calls::derive::{self, Interval, Received, Sent, TimedReport};
use weir_record::calls::file::FindingSample;
use weir_record::calls::stats::{Kind, LimitationReason};

use crate::found::StreamId;
use crate::measure::connectivity;
use crate::read::dump::{Connection, Stream, StreamDirection, StreamReport};
use crate::read::packets::control::Controlled;
use crate::read::packets::last_hop;
use crate::read::packets::passages;
use crate::read::packets::pauses::{Pause, pauses};
use crate::read::packets::play::base_round_trip;

use losses::Counted;

/// How long a measured round-trip time counts, in s: receiver reports come every second, and STUN
/// checks every 2.5 s.
const RTT_HOLDS_S: f64 = 5.0;
/// Seconds around a sample in which its last hop is judged: half a second of a small picture has a
/// dozen packets.
const LAST_HOP_S: f64 = 1.0;
/// Share of the samples of a received video that have more frames than is usual.
const USUAL: f64 = 0.1;

/// The values of a stream between two reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Begin, in s since the first report of the dump.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// IP packets of the stream.
    pub rate_bps: f64,
    /// Payload that was sent for the first time; of a sent stream.
    pub media_bps: f64,
    /// Target of the encoder; of a sent stream.
    pub target_bps: Option<f64>,
    /// The browser's estimate of what the path carries.
    pub estimate_bps: Option<f64>,
    /// The latest round-trip time of the connection.
    pub rtt_ms: Option<f64>,
    /// Whether it was measured in this sample.
    pub is_rtt_new: bool,
    /// The smallest one of its path, where the connection's path changed.
    pub base_rtt_ms: Option<f64>,
    /// Lost packets over expected ones (`losses`). Of a sent stream by the receiver's reports,
    /// which come later: one report may name more packets than were sent in its time.
    pub loss: Option<f64>,
    /// Packets that the loss is a share of.
    pub expected: f64,
    /// What the counters say of lost packets.
    pub counted: Counted,
    /// Share of the packets of all streams that were lost on the last part of the way, behind a
    /// server that forwards, within a second around; of a received stream in a log of packets with
    /// transport-wide numbers.
    pub last_hop_loss: Option<f64>,
    /// Packets that were sent, or arrived.
    pub packets: u64,
    /// The same since the stream began.
    pub packets_so_far: u64,
    /// What limits the quality, as the browser says.
    pub limitation: LimitationReason,
    /// Frames encoded or decoded a second.
    pub frame_rate: Option<f64>,
    /// Frames a second that the source gives the encoder.
    pub source_rate: Option<f64>,
    /// Width and height of the frames.
    pub size: Option<(u32, u32)>,
    /// Width and height of the largest frames of the stream before.
    pub largest_before: Option<(u32, u32)>,
    /// Whether it is a shared screen, of which a still page needs no frames.
    pub is_screen: bool,
    /// Mean time to encode a frame.
    pub encode_ms: Option<f64>,
    /// Complete frames that arrived a second.
    pub received_rate: Option<f64>,
    /// Of these, decoded ones; `None` if the receiver does not count them.
    pub decoded_rate: Option<f64>,
    /// Mean time to decode a frame.
    pub decode_ms: Option<f64>,
    /// Key frames that this end asked for.
    pub key_frame_requests: u64,
    /// Mean level of the sound, of a microphone or as it arrived; 1 is the loudest.
    pub sound: Option<f64>,
    /// Interarrival jitter.
    pub jitter_ms: Option<f64>,
    /// Mean time of a frame in the jitter buffer.
    pub jitter_buffer_ms: Option<f64>,
    /// Freezes that ended.
    pub freezes: u64,
    /// Their seconds. They may have begun before.
    pub frozen_s: f64,
    /// Whether the application lets the stream be sent.
    pub active: Option<bool>,
    /// Whether it is between two moments at which the path was full, at the same rate
    /// (`repeated_overuse`).
    pub is_repeated_overuse: bool,
    /// Whether the estimate was lowered at both, and not by much less at the later one.
    pub is_at_one_rate: bool,
    /// Whether it is between two moments of long round trips that were over at once
    /// (`delay_spikes`).
    pub is_between_spikes: bool,
    /// Times in which packets waited and none arrived, and the longest of them; of a video in a log
    /// of packets.
    pub pauses: u32,
    pub longest_pause_ms: f64,
    /// What the sender's congestion control logged; of a sent video.
    pub controlled: Option<Controlled>,
}

/// A stream as the rules see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampledStream {
    pub id: StreamId,
    pub direction: StreamDirection,
    pub kind: Kind,
    pub samples: Vec<Sample>,
    /// Smallest round-trip time of the connection.
    pub base_rtt_ms: Option<f64>,
    /// Largest target.
    pub peak_target_bps: f64,
    /// Largest rate.
    pub peak_rate_bps: f64,
    /// Medians over the stream.
    pub source_rate: Option<f64>,
    pub frame_rate: Option<f64>,
    pub jitter_buffer_ms: Option<f64>,
    /// Frames a second of a received video when nothing limits it.
    pub usual_frame_rate: Option<f64>,
    /// Whether packets waited before the first sample, where earlier ones were not kept.
    pub queued_before: bool,
    /// The first sample in which packets waited for long (`repeated_overuse`).
    pub first_queue: Option<usize>,
    /// The largest frames of the samples that were not kept.
    largest_forgotten: Option<(u32, u32)>,
}

/// The streams of a connection.
pub(crate) fn streams(connection: &Connection) -> Vec<SampledStream> {
    let mut intervals: Vec<Vec<Option<Interval>>> = Vec::new();
    for stream in &connection.streams {
        let pairs = stream.reports.windows(2);
        intervals.push(pairs.map(|pair| derive::between(&pair[0].timed, &pair[1].timed)).collect());
    }
    let rtts = rtts(&intervals);
    // Packets show the delay of the queue, even if the queue was never empty.
    let without_queue = connection.packets.as_ref().and_then(base_round_trip);
    let base = rtts.iter().map(|(_, ms)| *ms);
    let base = base.chain(without_queue.map(TimeDelta::as_millis_f64)).min_by(f64::total_cmp);
    let log = connection.packets.as_ref();
    let up = log.map(|log| pauses(&passages::up(log), StreamDirection::Sent));
    let down = log.map(|log| pauses(&passages::down(log), StreamDirection::Received));
    let mut streams = Vec::new();
    for (stream, intervals) in connection.streams.iter().zip(intervals) {
        let pauses = if stream.direction == StreamDirection::Sent { &up } else { &down };
        let pauses = pauses.as_deref().unwrap_or_default();
        let samples = samples(connection, stream, intervals, &rtts, pauses);
        let id = StreamId::of(connection, stream);
        streams.push(SampledStream::new(id, stream, samples, base));
    }
    add_bases_of_paths(&mut streams, &rtts, &connectivity::path_changes(connection));
    streams
}

/// The smallest round-trip time of each path, where there were several: another path has another
/// length.
fn add_bases_of_paths(streams: &mut [SampledStream], rtts: &[(f64, f64)], changes: &[f64]) {
    if changes.is_empty() {
        return;
    }
    let mut ends: Vec<f64> = changes.to_vec();
    ends.push(f64::INFINITY);
    let mut from_s = f64::NEG_INFINITY;
    for to_s in ends {
        let own = rtts.iter().filter(|(at_s, _)| (from_s..to_s).contains(at_s));
        let base = own.map(|(_, ms)| *ms).min_by(f64::total_cmp);
        for sample in streams.iter_mut().flat_map(|it| &mut it.samples) {
            if (from_s..to_s).contains(&sample.end_s) {
                sample.base_rtt_ms = base;
            }
        }
        from_s = to_s;
    }
}

/// The intervals of a stream.
pub(crate) fn intervals(stream: &Stream) -> Vec<Interval> {
    let mut intervals = Vec::new();
    for pair in stream.reports.windows(2) {
        intervals.extend(derive::between(&pair[0].timed, &pair[1].timed));
    }
    intervals
}

/// Round-trip times of a connection in ms, by their time in s.
fn rtts(intervals: &[Vec<Option<Interval>>]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for interval in intervals.iter().flatten().flatten() {
        for rtt in measured_rtts(interval) {
            found.push((interval.end.as_secs_f64(), rtt));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// The round-trip times in ms that were measured in an interval.
pub(crate) fn measured_rtts(interval: &Interval) -> impl Iterator<Item = f64> {
    let of_stream = interval.sent.as_ref().and_then(|sent| sent.rtt);
    let both = of_stream.into_iter().chain(interval.stun_rtt).map(TimeDelta::as_millis_f64);
    // Zero is what browsers report before the first measurement.
    both.filter(|ms| *ms > 0.0)
}

fn samples(
    connection: &Connection,
    stream: &Stream,
    intervals: Vec<Option<Interval>>,
    rtts: &[(f64, f64)],
    pauses: &[Pause],
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (pair, interval) in stream.reports.windows(2).zip(intervals) {
        let Some(interval) = interval else { continue };
        let end_s = interval.end.as_secs_f64();
        let known = &rtts[..rtts.partition_point(|(time, _)| *time <= end_s)];
        let rtt_ms = known.last().and_then(|latest| still_known(*latest, end_s));
        let is_rtt_new = known.last().is_some_and(|(time, _)| *time > interval.start.as_secs_f64());
        let found = sample(stream.direction, [&pair[0], &pair[1]], interval, rtt_ms);
        samples.extend(found.map(|sample| Sample { is_rtt_new, ..sample }));
    }
    if let (Some(log), StreamDirection::Sent, Kind::Video) =
        (&connection.packets, stream.direction, stream.kind)
    {
        for sample in &mut samples {
            let [from, to] = [sample.start_s, sample.end_s].map(Timestamp::from_secs_f64);
            sample.controlled = log.controlled(from, to);
        }
    }
    if let (Some(log), StreamDirection::Received) = (&connection.packets, stream.direction) {
        for sample in &mut samples {
            let around = [sample.start_s - LAST_HOP_S, sample.end_s + LAST_HOP_S];
            let [from, to] = around.map(Timestamp::from_secs_f64);
            sample.last_hop_loss = last_hop::loss(&log.received, from, to);
        }
    }
    if stream.kind == Kind::Video {
        add_pauses(&mut samples, pauses);
    }
    samples
}

/// Counts the pauses of the path in the samples in which they were. Both are in order of time, but
/// for packets that overtook others.
fn add_pauses(samples: &mut [Sample], pauses: &[Pause]) {
    for pause in pauses {
        let at_s = pause.at.as_secs_f64();
        let index = samples.partition_point(|sample| sample.end_s <= at_s);
        if let Some(sample) = samples.get_mut(index)
            && sample.start_s <= at_s
        {
            sample.pauses += 1;
            sample.longest_pause_ms = sample.longest_pause_ms.max(pause.length.as_millis_f64());
        }
    }
}

/// A round-trip time in ms that was measured at a time in s, if it still counts.
pub(crate) fn still_known((time_s, ms): (f64, f64), now_s: f64) -> Option<f64> {
    (now_s - time_s < RTT_HOLDS_S).then_some(ms)
}

impl SampledStream {
    /// What the samples of a stream say together.
    pub fn new(
        id: StreamId,
        stream: &Stream,
        samples: Vec<Sample>,
        base_rtt_ms: Option<f64>,
    ) -> Self {
        let mut sampled = Self {
            id,
            direction: stream.direction,
            kind: stream.kind,
            samples,
            base_rtt_ms,
            peak_target_bps: 0.0,
            peak_rate_bps: 0.0,
            source_rate: None,
            frame_rate: None,
            jitter_buffer_ms: None,
            usual_frame_rate: None,
            queued_before: false,
            first_queue: None,
            largest_forgotten: None,
        };
        sampled.renew(base_rtt_ms);
        sampled
    }

    /// Computes what the samples say together, after some were added.
    pub fn renew(&mut self, base_rtt_ms: Option<f64>) {
        self.base_rtt_ms = base_rtt_ms;
        losses::share(self.direction, &mut self.samples);
        let mut largest = self.largest_forgotten;
        for sample in &mut self.samples {
            sample.largest_before = largest;
            largest = larger(largest, sample.size);
            self.peak_target_bps = sample.target_bps.unwrap_or(0.0).max(self.peak_target_bps);
            self.peak_rate_bps = sample.rate_bps.max(self.peak_rate_bps);
        }
        self.source_rate = median(&self.samples, |sample| sample.source_rate);
        self.frame_rate = median(&self.samples, |sample| sample.frame_rate);
        self.jitter_buffer_ms = median(&self.samples, |sample| sample.jitter_buffer_ms);
        self.usual_frame_rate = usual_frame_rate(&self.samples);
    }

    /// The smallest round-trip time of the path of these samples.
    pub fn base_of(&self, samples: &[Sample]) -> Option<f64> {
        let own = samples.iter().filter_map(|it| it.base_rtt_ms).min_by(f64::total_cmp);
        own.or(self.base_rtt_ms)
    }

    /// Forgets the first samples, but for what the rules need of them.
    pub fn forget_first(&mut self, count: usize) {
        self.queued_before |= self.first_queue.is_some_and(|first| first < count);
        for sample in self.samples.drain(..count) {
            self.largest_forgotten = larger(self.largest_forgotten, sample.size);
        }
    }
}

fn larger(a: Option<(u32, u32)>, b: Option<(u32, u32)>) -> Option<(u32, u32)> {
    a.into_iter().chain(b).max_by_key(|size| pixels(*size))
}

/// Pixels of a picture.
pub(crate) fn pixels((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

/// Median of a value over the samples that have it.
pub(crate) fn median(samples: &[Sample], value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The frame rate that a stream has when nothing limits it: a tenth of its samples has more.
fn usual_frame_rate(samples: &[Sample]) -> Option<f64> {
    let mut rates: Vec<f64> = Vec::new();
    for sample in samples {
        rates.extend(sample.received_rate.or(sample.frame_rate).filter(|rate| *rate > 0.0));
    }
    rates.sort_by(f64::total_cmp);
    let place = ((rates.len() as f64) * (1.0 - USUAL)) as usize;
    rates.get(place.min(rates.len().checked_sub(1)?)).copied()
}

/// The values between two reports of a stream.
pub(crate) fn sample(
    direction: StreamDirection,
    pair: [&StreamReport; 2],
    interval: Interval,
    rtt_ms: Option<f64>,
) -> Option<Sample> {
    let timed = pair.map(|it| &it.timed);
    // Who joins again may count anew.
    if has_begun_anew(direction, timed) {
        return None;
    }
    let mut sample = Sample {
        start_s: interval.start.as_secs_f64(),
        end_s: interval.end.as_secs_f64(),
        rtt_ms,
        estimate_bps: interval.estimated_bitrate.map(bps),
        active: pair[1].active,
        ..Sample::default()
    };
    match direction {
        StreamDirection::Sent => add_sent(&mut sample, timed, interval.sent?),
        StreamDirection::Received => add_received(&mut sample, timed, interval.received?),
    }
    Some(sample)
}

/// Whether the packets of a stream became fewer between two reports.
fn has_begun_anew(direction: StreamDirection, pair: [&TimedReport; 2]) -> bool {
    let [before, after] = pair.map(|timed| match direction {
        StreamDirection::Sent => timed.report.outbound.as_deref().map(|it| it.packets_sent),
        StreamDirection::Received => timed.report.inbound.as_deref().map(|it| it.packets_received),
    });
    after.is_some() && after < before
}

fn add_sent(sample: &mut Sample, timed: [&TimedReport; 2], sent: Sent) {
    let [before, after] = timed.map(|it| &it.report);
    let sources = before.media_source.as_ref().zip(after.media_source.as_ref());
    let source = after.media_source.as_ref();
    let counts = before.outbound.as_deref().zip(after.outbound.as_deref());
    sample.rate_bps = bps(sent.send_rate);
    sample.media_bps = bps(sent.media_rate);
    sample.target_bps = sent.target_bitrate.map(bps);
    sample.limitation = sent.limitation;
    sample.frame_rate = sent.frame_rate;
    sample.source_rate = source.and_then(|source| source.frames_per_second);
    sample.size = sent.frame_size;
    sample.encode_ms = sent.encode_time.map(TimeDelta::as_millis_f64);
    sample.counted = reported_by_the_far_end(timed);
    if let Some((before, after)) = counts {
        sample.packets = after.packets_sent.saturating_sub(before.packets_sent);
        let again = before.retransmitted_packets_sent.zip(after.retransmitted_packets_sent);
        let again = again.map_or(0, |(before, after)| after.saturating_sub(before));
        // The far end misses packets of this stream only, and retransmissions have their own.
        let first_time = sample.packets.saturating_sub(again);
        sample.counted.expected = sample.counted.expected.or(Some(first_time));
        sample.packets_so_far = after.packets_sent;
        sample.is_screen = is_screen(after.content_type.as_deref());
    }
    if let Some((before, after)) = sources {
        sample.sound = level(
            (before.total_audio_energy, before.total_samples_duration),
            (after.total_audio_energy, after.total_samples_duration),
        );
    }
}

fn add_received(sample: &mut Sample, timed: [&TimedReport; 2], received: Received) {
    let counts = timed.map(|it| it.report.inbound.as_deref());
    let length_s = sample.end_s - sample.start_s;
    sample.rate_bps = bps(received.receive_rate);
    sample.packets = received.packets;
    sample.frame_rate = received.frame_rate;
    sample.size = received.frame_size;
    sample.jitter_buffer_ms = received.jitter_buffer_delay.map(TimeDelta::as_millis_f64);
    sample.jitter_ms = received.jitter.map(TimeDelta::as_millis_f64);
    sample.decode_ms = received.decode_time.map(TimeDelta::as_millis_f64);
    sample.freezes = received.freezes;
    sample.frozen_s = received.frozen.as_secs_f64();
    let [Some(before), Some(after)] = counts else { return };
    let missing = after.packets_lost.saturating_sub(before.packets_lost);
    let again = before.retransmitted_packets_received.zip(after.retransmitted_packets_received);
    let again = again.map_or(0, |(before, after)| after.saturating_sub(before));
    let first_time = received.packets.saturating_sub(again);
    sample.counted = Counted {
        missing: Some(missing),
        expected: Some(first_time.saturating_add_signed(missing)),
        has_arrived: false,
        is_reported: true,
        since_begin: None,
    };
    sample.packets_so_far = after.packets_received;
    sample.is_screen = is_screen(after.content_type.as_deref());
    sample.received_rate = rate(before.frames_received, after.frames_received, length_s);
    sample.decoded_rate = rate(before.frames_decoded, after.frames_decoded, length_s);
    let requests = before.pli_count.zip(after.pli_count);
    sample.key_frame_requests = requests.map_or(0, |(before, after)| after.saturating_sub(before));
    sample.sound = level(
        (before.total_audio_energy, before.total_samples_duration),
        (after.total_audio_energy, after.total_samples_duration),
    );
}

fn is_screen(content_type: Option<&str>) -> bool {
    content_type == Some("screenshare")
}

/// Growth of a counter a second.
fn rate(before: Option<u64>, after: Option<u64>, length_s: f64) -> Option<f64> {
    let growth = after?.saturating_sub(before?);
    (length_s > 0.0).then(|| growth as f64 / length_s)
}

/// Mean level of a sound, from its energy and its seconds before and after.
fn level(before: (Option<f64>, Option<f64>), after: (Option<f64>, Option<f64>)) -> Option<f64> {
    let energy = after.0? - before.0?;
    let seconds = after.1? - before.1?;
    (seconds > 0.0).then(|| (energy / seconds).max(0.0).sqrt())
}

/// What the receiver said of a sent stream between two reports.
fn reported_by_the_far_end(pair: [&TimedReport; 2]) -> Counted {
    let [before, after] = pair.map(|timed| timed.report.remote_inbound.as_ref());
    let Some(after) = after else { return Counted::default() };
    let Some(before) = before else {
        let since_begin = after.packets_lost;
        let is_reported = since_begin.is_some();
        return Counted { is_reported, since_begin, ..Counted::default() };
    };
    let missing = before.packets_lost.zip(after.packets_lost);
    let missing = missing.map(|(before, after)| after.saturating_sub(before));
    // Where the far end says how many arrived (Firefox), these and the missing ones are all that
    // it knew of.
    let arrived = before.packets_received.zip(after.packets_received);
    let expected = arrived.zip(missing).map(|((before, after), missing)| {
        after.saturating_sub(before).saturating_add_signed(missing)
    });
    let is_measured =
        match before.round_trip_time_measurements.zip(after.round_trip_time_measurements) {
            Some((before, after)) => after > before,
            None => after.timestamp != before.timestamp,
        };
    let is_reported = is_measured || missing.is_some_and(|it| it != 0);
    Counted {
        missing: missing.filter(|_| is_reported),
        expected,
        has_arrived: expected.is_some(),
        is_reported,
        since_begin: None,
    }
}

fn bps(rate: Bitrate) -> f64 {
    rate.as_bps() as f64
}

impl Sample {
    /// Its middle, in s. Findings begin and end with samples, at times that are rounded.
    pub fn middle_s(&self) -> f64 {
        self.start_s.midpoint(self.end_s)
    }

    /// What is known of the delay to screen or ear in ms: half a round trip and the jitter buffer.
    /// `None` without the latter.
    pub fn delay_ms(&self) -> Option<f64> {
        Some(self.jitter_buffer_ms? + self.rtt_ms.unwrap_or(0.0) / 2.0)
    }

    /// The values that a reader of a finding wants to see.
    pub fn evidence(&self) -> FindingSample {
        FindingSample {
            time_s: (self.end_s * 1e3).round() / 1e3,
            rate_kbps: (self.rate_bps / 1e3).round(),
            target_kbps: self.target_bps.map(|bps| (bps / 1e3).round()),
            estimate_kbps: self.estimate_bps.map(|bps| (bps / 1e3).round()),
            rtt_ms: self.rtt_ms.map(|ms| (ms * 10.0).round() / 10.0),
            loss_ratio: self.loss.map(|loss| (loss.min(1.0) * 1e4).round() / 1e4),
            frame_rate: self.frame_rate.map(|rate| (rate * 10.0).round() / 10.0),
        }
    }
}
