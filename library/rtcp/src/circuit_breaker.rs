//! When a sender must stop, whatever its controller says: the circuit breaker of RTP [RFC8083 §4].
//!
//! A controller goes down to its minimum when feedback ends or everything is lost, and sends on.
//! The breaker ends that. It is a part of its own, which a host may switch on.
//!
//! The standard counts regular reports. Here feedback of any kind is one, and what came within one
//! reporting interval counts once, so that frequent feedback does not make the breaker hasty.

use alloc::collections::VecDeque;

use weir::feedback::LossCounts;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [RFC8083 §3, §4].
/// Three deterministic reporting intervals `Td`, each of which has a minimum of 5 s [RFC8083 §4.1].
const RTCP_TIMEOUT: TimeDelta = TimeDelta::from_secs(15);
/// `k`: reports in a row that show nothing new [RFC8083 §4.2].
const NON_REPORTING: i64 = 5;
/// The least `Tdr`: WebRTC's receivers report about once a second.
const MIN_REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// `Tf`, unless the host says another.
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_micros(33_333);
/// A flow may take this many times what TCP would get [RFC8083 §4.3].
const TCP_FACTOR: f64 = 10.0;

/// Why a sender must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CircuitBreak {
    /// Nothing was heard of the receiver for 15 s while packets were sent [RFC8083 §4.1].
    ///
    /// [RFC8083 §4.1]: https://www.rfc-editor.org/rfc/rfc8083#section-4.1
    NoFeedback,
    /// Feedback came, and nothing arrived for five reporting intervals, round trips or frames,
    /// whichever is longest [RFC8083 §4.2].
    ///
    /// [RFC8083 §4.2]: https://www.rfc-editor.org/rfc/rfc8083#section-4.2
    NothingArrives,
    /// The flow sent more than ten times what TCP would get at its losses and round-trip time, on
    /// average over three reporting intervals, ten round trips or ten frames, whichever is longest,
    /// but at most 15 s [RFC8083 §4.3].
    ///
    /// [RFC8083 §4.3]: https://www.rfc-editor.org/rfc/rfc8083#section-4.3
    Congestion,
}

/// Says when a flow must stop. Feed it with what is sent and reported, and ask it about once a
/// second. Switched on by [`SenderConfig::with_circuit_breaker`](crate::SenderConfig), a
/// [`Sender`](crate::Sender) feeds one.
///
/// After a break, send nothing until the user or the signalling starts the flow again, and then
/// begin with a new one. Time in which nothing is sent does not count.
///
/// ```
/// use weir::{DataSize, Timestamp};
/// use weir_rtcp::{CircuitBreak, CircuitBreaker};
///
/// let mut breaker = CircuitBreaker::new(Timestamp::ZERO);
/// for secs in 0..16 {
///     breaker.on_packet_sent(Timestamp::from_secs(secs), DataSize::from_bytes(1_200));
/// }
/// assert_eq!(breaker.check(Timestamp::from_secs(16)), Some(CircuitBreak::NoFeedback));
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    /// `Tf`.
    frame_interval: TimeDelta,
    /// `Tdr`: the usual time from one feedback to the next, but at least a second.
    report_interval: TimeDelta,
    /// The newest round-trip time, `Tr`.
    rtt: Option<TimeDelta>,
    /// When feedback last came, and when something last arrived by it; or the first packet.
    heard: Timestamp,
    arrived: Timestamp,
    /// The newest packet. Without packets nothing can be heard.
    sent: Option<Timestamp>,
    /// What happened since the last of the samples.
    open: Sample,
    /// One for each reporting interval of late, the oldest first.
    samples: VecDeque<Sample>,
}

/// What was sent and reported in one reporting interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    start: Timestamp,
    size: DataSize,
    packets: u64,
    received: u64,
    lost: u64,
}

impl CircuitBreaker {
    /// A flow that begins.
    pub const fn new(now: Timestamp) -> Self {
        Self {
            frame_interval: FRAME_INTERVAL,
            report_interval: MIN_REPORT_INTERVAL,
            rtt: None,
            heard: now,
            arrived: now,
            sent: None,
            open: Sample { start: now, size: DataSize::ZERO, packets: 0, received: 0, lost: 0 },
            samples: VecDeque::new(),
        }
    }

    /// The same for a flow with this time between frames. The default is that of 30 frames a
    /// second; audio has 20 ms, a shared screen up to a second.
    #[must_use]
    pub const fn with_frame_interval(mut self, interval: TimeDelta) -> Self {
        self.frame_interval = interval;
        self
    }

    /// A packet of this size left.
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        let pause = self.sent.map(|sent| now - sent);
        if pause.is_none_or(|pause| pause > self.report_interval) {
            let pause = pause.unwrap_or(now - self.heard);
            self.heard += pause;
            self.arrived += pause;
            self.open = Sample { start: now, ..Sample::default() };
            self.samples.clear();
        }
        self.sent = Some(now);
        self.open.size += size;
        self.open.packets += 1;
    }

    /// Feedback came on this many packets, none if it told nothing new. `rtt` is the round-trip
    /// time, if it is known.
    pub fn on_feedback(&mut self, now: Timestamp, counts: LossCounts, rtt: Option<TimeDelta>) {
        let gap = (now - self.heard).max(MIN_REPORT_INTERVAL).min(RTCP_TIMEOUT);
        self.report_interval = (self.report_interval * 7 + gap) / 8;
        self.heard = now;
        self.rtt = rtt.or(self.rtt);
        if counts.received + counts.recovered > 0 {
            self.arrived = now;
        }
        self.open.received += counts.received;
        self.open.lost += counts.lost;
        if now - self.open.start < self.report_interval {
            return;
        }
        self.samples.push_back(self.open);
        self.open = Sample { start: now, ..Sample::default() };
        let memory = self.congestion_time();
        while self.samples.get(1).is_some_and(|sample| now - sample.start >= memory) {
            self.samples.pop_front();
        }
    }

    /// Whether the sender must stop.
    pub fn check(&self, now: Timestamp) -> Option<CircuitBreak> {
        let sent = self.sent?;
        if now - sent > self.report_interval {
            return None; // Nothing is sent.
        }
        if now - self.heard >= RTCP_TIMEOUT {
            return Some(CircuitBreak::NoFeedback);
        }
        // Reports are missing rather than packets, as long as none has come.
        if self.heard - self.arrived >= self.media_timeout() {
            return Some(CircuitBreak::NothingArrives);
        }
        (!self.is_fair()).then_some(CircuitBreak::Congestion)
    }

    /// `MEDIA_TIMEOUT` as a time: k max(Tf, Tr, Tdr) [RFC8083 §4.2].
    fn media_timeout(&self) -> TimeDelta {
        let rtt = self.rtt.unwrap_or(TimeDelta::ZERO);
        self.frame_interval.max(rtt).max(self.report_interval) * NON_REPORTING
    }

    /// `CB_INTERVAL` as a time: min(max(10 Tf, 10 Tr, 3 Tdr), max(15 s, 3 Td)), for a codec that
    /// changes its rate at each frame [RFC8083 §4.3].
    fn congestion_time(&self) -> TimeDelta {
        let rtt = self.rtt.unwrap_or(TimeDelta::ZERO);
        let time = (self.frame_interval.max(rtt) * 10).max(self.report_interval * 3);
        time.min(RTCP_TIMEOUT)
    }

    /// Whether the rate is below ten times that of TCP, by its simplified equation, on average over
    /// `CB_INTERVAL` [RFC8083 §4.3]. What is not known yet is fair.
    fn is_fair(&self) -> bool {
        let (Some(first), Some(rtt)) = (self.samples.front(), self.rtt) else { return true };
        let time = self.open.start - first.start;
        let mut all = Sample::default();
        for sample in &self.samples {
            all.size += sample.size;
            all.packets += sample.packets;
            all.received += sample.received;
            all.lost += sample.lost;
        }
        if time < self.congestion_time() || all.lost == 0 || rtt <= TimeDelta::ZERO {
            return true;
        }
        let loss = all.lost as f64 / (all.received + all.lost) as f64;
        let segment = all.size * (1.0 / all.packets.max(1) as f64);
        is_below(all.size / time, segment / rtt, loss)
    }
}

/// Whether a rate is below ten times a segment for each round trip by the square root of 2p/3. The
/// squares are compared, because `core` has no square root.
fn is_below(rate: Bitrate, per_round_trip: Bitrate, loss: f64) -> bool {
    let rate = rate.as_bps_f64() / TCP_FACTOR;
    let segment = per_round_trip.as_bps_f64();
    rate * rate <= segment * segment / (loss * 2.0 / 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn counts(received: u64, lost: u64) -> LossCounts {
        LossCounts::default().with_received(received).with_lost(lost)
    }

    /// A flow of this many packets a second, with this feedback so often a second.
    fn run(secs: i64, packets: u64, often: u64, feedback: Option<LossCounts>) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::new(at(0));
        for step in 0..secs * 20 {
            let now = at(0) + TimeDelta::from_millis(50) * step;
            for _ in 0..packets / 20 {
                breaker.on_packet_sent(now, DataSize::from_bytes(1_200));
            }
            if let Some(counts) = feedback.filter(|_| (step as u64).is_multiple_of(20 / often)) {
                breaker.on_feedback(now, counts, Some(TimeDelta::from_millis(100)));
            }
        }
        breaker
    }

    // [RFC8083 §4.1]
    #[test]
    fn fifteen_seconds_without_feedback_end_a_flow() {
        assert_eq!(run(15, 20, 1, None).check(at(14)), None);
        assert_eq!(run(16, 20, 1, None).check(at(16)), Some(CircuitBreak::NoFeedback));
    }

    // [RFC8083 §4.2]
    #[test]
    fn five_reports_on_which_nothing_arrived_end_a_flow() {
        for often in [1, 20] {
            let nothing = Some(counts(0, 10));
            assert_eq!(run(5, 20, often, nothing).check(at(5)), None, "{often} a second");
            let breaker = run(7, 20, often, nothing);
            let broken = Some(CircuitBreak::NothingArrives);
            assert_eq!(breaker.check(at(7)), broken, "{often} a second");
            let some = Some(counts(1, 0));
            assert_eq!(run(60, 20, often, some).check(at(60)), None, "{often} a second");
        }
    }

    // [RFC8083 §4.3]
    #[test]
    fn ten_times_the_rate_of_tcp_ends_a_flow() {
        // TCP has 1.2 Mbit/s at 100 ms and 1 %, and 0.26 at 20 %. The flow has 9.6.
        for often in [1, 20] {
            let fair = run(60, 1_000, often, Some(counts(99, 1)));
            assert_eq!(fair.check(at(60)), None, "{often} a second");
            let unfair = Some(counts(80, 20));
            assert_eq!(run(2, 1_000, often, unfair).check(at(2)), None, "{often} a second");
            let breaker = run(7, 1_000, often, unfair);
            assert_eq!(breaker.check(at(7)), Some(CircuitBreak::Congestion), "{often} a second");
        }
    }

    #[test]
    fn time_in_which_nothing_is_sent_does_not_count() {
        let mut breaker = run(10, 20, 1, Some(counts(10, 0)));
        assert_eq!(breaker.check(at(60)), None, "nothing was sent");
        let packet = DataSize::from_bytes(1_200);
        breaker.on_packet_sent(at(100), packet);
        assert_eq!(breaker.check(at(101)), None);
        // A dead path is noticed although there are pauses.
        for second in 101..110 {
            breaker.on_packet_sent(at(second), packet);
        }
        assert_eq!(breaker.check(at(110)), None);
        for second in 200..210 {
            breaker.on_packet_sent(at(second), packet);
        }
        assert_eq!(breaker.check(at(210)), Some(CircuitBreak::NoFeedback));
    }
}
