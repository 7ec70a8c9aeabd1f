//! What a rule asks of a sample and of those around it.

use super::*;

/// A sample in its stream.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub stream: &'a SampledStream,
    pub index: usize,
}

impl Moment<'_> {
    pub(super) fn sample(&self) -> &Sample {
        &self.stream.samples[self.index]
    }

    /// Whether packets wait for long: the round-trip time is far above the smallest one. They also
    /// do if far more than the estimate is sent and some of it is lost. In that case the queue may
    /// never have been empty, so the smallest round-trip time does not count.
    pub fn queues(&self) -> bool {
        let sample = self.sample();
        let rtt = sample.rtt_ms.zip(sample.base_rtt_ms.or(self.stream.base_rtt_ms));
        let too_much = sample.estimate_bps.is_some_and(|it| sample.rate_bps > TOO_MUCH * it);
        let overflows =
            self.stream.direction == StreamDirection::Sent && too_much && self.loss() >= LOSS;
        overflows || rtt.is_some_and(|(now, base)| now > base + QUEUE_MS)
    }

    /// Whether the sender uses its estimate.
    pub fn fills_estimate(&self) -> bool {
        let sample = self.sample();
        sample.estimate_bps.is_some_and(|estimate| sample.rate_bps >= FILLS * estimate)
    }

    /// Whether the controller meets the capacity again and again: after a queue has lowered it, or
    /// about one rate.
    pub(super) fn is_repeated_overuse(&self) -> bool {
        let sample = self.sample();
        let is_lowered = self.is_low() && self.came_after_a_queue();
        sample.is_repeated_overuse && (is_lowered || sample.is_at_one_rate)
    }

    /// Whether the congestion control holds the target far below its largest.
    pub(super) fn is_low(&self) -> bool {
        let target = self.sample().target_bps;
        target.is_some_and(|it| it < HELD_DOWN * self.stream.peak_target_bps)
            && !self.is_capped_by_the_picture()
    }

    /// Whether the target is far below the estimate: then the encoder needs no more for a picture
    /// of this size. Layers of simulcast share an estimate.
    pub(super) fn is_capped_by_the_picture(&self) -> bool {
        let sample = self.sample();
        let needed = sample.target_bps.map(|target| target.max(sample.rate_bps));
        let known = needed.zip(sample.estimate_bps);
        let Some((needed, estimate)) = known.filter(|_| self.stream.id.rid.is_none()) else {
            return false;
        };
        needed < CAPPED * estimate && estimate - needed > BESIDE_BPS
    }

    /// Whether the path pauses again and again while packets wait, as a radio cell does: by
    /// packets, or by round trips that spring up.
    pub(super) fn lacks_air(&self) -> bool {
        let from = self.index.saturating_sub(PAUSE_SAMPLES);
        let to = (self.index + PAUSE_SAMPLES + 1).min(self.stream.samples.len());
        let pauses: u32 = self.stream.samples[from..to].iter().map(|it| it.pauses).sum();
        // A processor that is too slow makes packets wait, too.
        self.sample().is_between_spikes && !processor_busy(*self)
            || pauses >= PAUSES && self.loss() < LOSS
    }

    /// Whether packets waited for long in the sample before.
    pub(super) fn is_after_a_queue(&self) -> bool {
        let before = self.index.checked_sub(1);
        before.is_some_and(|index| Moment { index, ..*self }.queues())
    }

    /// Whether packets wait for a short time, again and again.
    pub(super) fn queues_shortly(&self) -> bool {
        let from = self.index.saturating_sub(SHORT_QUEUE_SAMPLES);
        let to = (self.index + SHORT_QUEUE_SAMPLES + 1).min(self.stream.samples.len());
        let around = &self.stream.samples[from..to];
        let Some(base) = self.stream.base_of(around) else { return false };
        let ends = smallest(around, |it| it.rtt_ms).zip(largest(around, |it| it.rtt_ms));
        if ends.is_none_or(|(least, most)| most - least < QUEUE_MOVES_MS) {
            return false;
        }
        mean(around, |it| it.rtt_ms).is_some_and(|rtt| rtt >= base + SHORT_QUEUE_MS.0)
            && largest(around, |it| it.rtt_ms).is_some_and(|rtt| rtt >= base + SHORT_QUEUE_MS.1)
    }

    /// Mean loss around the sample.
    pub fn loss(&self) -> f64 {
        let from = self.index.saturating_sub(LOSS_SAMPLES / 2);
        let to = (self.index + LOSS_SAMPLES / 2 + 1).min(self.stream.samples.len());
        losses::of(&self.stream.samples[from..to]).unwrap_or(0.0)
    }

    /// Whether packets miss that were never sent on the last part of the way.
    pub(super) fn was_lost_before_the_server(&self) -> bool {
        self.sample().last_hop_loss.is_some_and(|behind| behind <= self.loss() / 3.0)
    }

    pub(super) fn is_sent_video(&self) -> bool {
        self.stream.direction == StreamDirection::Sent && self.stream.kind == Kind::Video
    }

    /// A black or still picture: all frames are encoded, and need little.
    pub(super) fn needs_little(&self) -> bool {
        let sample = self.sample();
        let all = sample.frame_rate.zip(sample.source_rate);
        all.is_some_and(|(made, given)| made >= ALL_FRAMES * given)
            && sample.target_bps.is_some_and(|target| sample.rate_bps < LITTLE * target)
    }

    /// Whether a received video is far smaller than before.
    pub(super) fn has_small_picture(&self) -> bool {
        let sample = self.sample();
        let is_received =
            self.stream.direction == StreamDirection::Received && self.stream.kind == Kind::Video;
        let Some((now, before)) = sample.size.zip(sample.largest_before) else { return false };
        let share = pixels(now) as f64 / pixels(before) as f64;
        is_received && share > 0.0 && share <= SMALL_PICTURE
    }

    pub(super) fn is_held_down(&self) -> bool {
        let sample = self.sample();
        let runs = sample.active != Some(false) && sample.limitation != LimitationReason::Cpu;
        self.is_sent_video() && runs && self.is_low() && !capacity(*self) && self.loss() < LOSS
    }

    pub(super) fn came_after_a_queue(&self) -> bool {
        let first = self.stream.first_queue;
        self.stream.queued_before || first.is_some_and(|first| first < self.index)
    }
}
