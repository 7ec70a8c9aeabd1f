//! The sending end: decides which segments to send when, and processes acknowledgements.
//!
//! ```text
//! acknowledgement -> scoreboard -> RACK -> phase --+-> proportional reduction -+-> window -> send
//!                        |                         +-> congestion control -----+
//!                        +-> round-trip time, delivery rate
//! ```

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::congestion::{AckEvent, CongestionControl, Repair, Window};
use super::delivery_rate::DeliveryRate;
use super::pacer::{Connection, Pacer};
use super::rack::{Rack, Times};
use super::recovery::RateReduction;
use super::rtt::{LEAST_VARIATION, RttEstimator};
use super::scoreboard::Scoreboard;
use super::segment::{Ack, Data, MSS, Part};
use super::timers::Timers;

/// Round-trip times before a tail probe [RFC8985 §7.2].
const PROBE_ROUNDS: i64 = 2;
/// Time that is added to the timers for reordering and for the tail probe (Linux:
/// `TCP_TIMEOUT_MIN_US`).
const LEAST_WAIT: TimeDelta = TimeDelta::from_millis(2);

/// Phase of congestion control.
#[derive(Clone, Debug)]
enum Phase {
    /// Nothing is lost.
    Open,
    /// Proportional reduction of the window after loss (`is_recovery`) or a mark, until `until` is
    /// acknowledged.
    Reducing { is_recovery: bool, until: u64, reduction: RateReduction },
    /// After a timeout: slow start for the data that was in flight, until `until` is acknowledged.
    Timeout { until: u64 },
}

/// Purpose of the single timer. The three purposes never overlap [RFC8985 §8].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Retransmission,
    /// Reordering window: until this time, a hole may be reordering.
    Reordering,
    /// Tail probe: the last segments may be lost.
    TailProbe,
}

/// The window before a congestion event, and the time of the first retransmission. An
/// acknowledgement of an older segment shows that nothing was lost [RFC4015 §3].
#[derive(Clone, Copy, Debug)]
struct Undo {
    window: Window,
    retransmitted_at: Option<Timestamp>,
}

/// A tail probe that was not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// `TLP.end_seq`.
    end: u64,
    /// `TLP.is_retrans`.
    is_retransmission: bool,
    is_sent: bool,
}

/// Limits on the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Amount of data in the transfer; `None` if endless.
    pub(super) length: Option<u64>,
    /// Maximum amount of data kept for retransmission.
    pub(super) send_buffer: u64,
    /// Limit on the data in the queue of the host's interface; `None` if the interface is not a
    /// bottleneck.
    pub(super) small_queue: Option<u64>,
}

/// A segment to send.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) data: Data,
    pub(super) is_retransmission: bool,
}

/// The sending end of a transfer after the handshake.
#[derive(Debug)]
pub(super) struct Sender {
    control: Box<dyn CongestionControl>,
    limits: Limits,
    window: Window,
    phase: Phase,
    board: Scoreboard,
    rack: Rack,
    rtt: RttEstimator,
    rate: DeliveryRate,
    /// `SND.UNA` and `SND.NXT`.
    acknowledged: u64,
    next: u64,
    /// Right edge of the receive window.
    peer_edge: u64,
    /// `sent_at` of the newest acknowledgement.
    peer_time: Timestamp,
    timers: Timers,
    timer: Option<(Timestamp, Timer)>,
    tail_probe: Option<TailProbe>,
    undo: Option<Undo>,
    /// Whether the next new segment carries CWR.
    says_reduced: bool,
    /// `s.cep`: marks that the receiver has counted so far.
    marks: u64,
    /// Whether the window limited the sender.
    is_window_limited: bool,
    pacer: Pacer,
    /// Amount of data that has not left the host.
    in_host: u64,
    last_rtt: Option<TimeDelta>,
}

impl Sender {
    /// Creates a sender on the host with these timers.
    pub(super) fn new(control: Box<dyn CongestionControl>, limits: Limits, timers: Timers) -> Self {
        Self {
            control,
            limits,
            window: Window::INITIAL,
            phase: Phase::Open,
            board: Scoreboard::default(),
            rack: Rack::default(),
            rtt: RttEstimator::default(),
            rate: DeliveryRate::default(),
            acknowledged: 0,
            next: 0,
            peer_edge: 0,
            peer_time: Timestamp::ZERO,
            timers,
            timer: None,
            tail_probe: None,
            undo: None,
            says_reduced: false,
            marks: 0,
            is_window_limited: false,
            pacer: Pacer::default(),
            in_host: 0,
            last_rtt: None,
        }
    }

    /// Takes the round-trip time of the handshake (`None` if the SYN was sent more than once) and
    /// the receiver's window.
    pub(super) fn on_connected(&mut self, rtt: Option<TimeDelta>, window: u64) {
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
        }
        self.peer_edge = window;
    }

    /// Whether all data has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.limits.length == Some(self.acknowledged)
    }

    /// `cwnd`.
    pub(super) fn congestion_window(&self) -> DataSize {
        DataSize::from_bytes(MSS) * self.window.congestion
    }

    /// Round-trip time of the newest segment that the last acknowledgement answered.
    pub(super) fn last_rtt(&self) -> Option<TimeDelta> {
        self.last_rtt
    }

    /// The pacing rate, if the congestion control paces.
    pub(super) fn pacing_rate(&self) -> Option<Bitrate> {
        self.control.pacing().map(|pacing| pacing.rate)
    }

    /// Time at which to call [`Sender::on_deadline`] and then [`Sender::next_segment`], which
    /// returns segments that the pacer has delayed.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let timer = self.timer.map(|(at, _)| at);
        let may_send = self.has_segment() && self.window_has_room() && self.host_has_room();
        let pacer = self.pacer.next_departure().filter(|_| may_send);
        timer.into_iter().chain(pacer).min()
    }

    /// A deadline has passed. Call [`Sender::next_segment`] afterwards.
    pub(super) fn on_deadline(&mut self, now: Timestamp) {
        let Some((_, timer)) = self.timer.take_if(|(at, _)| *at <= now) else { return };
        self.pacer.reconsider();
        match timer {
            Timer::Retransmission => self.on_timeout(now),
            Timer::TailProbe => self.start_tail_probe(),
            Timer::Reordering => self.on_reordering_timeout(now),
        }
        if self.timer.is_none() {
            self.set_timer(now);
        }
    }

    /// An acknowledgement arrived.
    pub(super) fn on_ack(&mut self, now: Timestamp, ack: &Ack) {
        if ack.next < self.acknowledged {
            return; // A newer one came before it.
        }
        self.pacer.reconsider();
        self.peer_edge = self.peer_edge.max(ack.next + ack.window);
        self.peer_time = self.peer_time.max(ack.sent_at);
        let prior_in_flight = self.board.in_flight();
        let has_advanced = ack.next > self.acknowledged;
        let (delivered, rtt) = self.take_deliveries(now, ack, has_advanced);
        self.last_rtt = rtt;
        self.acknowledged = ack.next;
        if has_advanced {
            self.undo_if_spurious(ack);
        }
        self.answer_tail_probe(now, ack);
        if ack.duplicate.is_some() {
            self.rack.on_needless_retransmission();
        }
        if has_advanced {
            self.set_timer(now);
        }
        let lost = self.detect_loss(now);
        self.leave_phase(ack.next);
        if self.board.lost() > 0 {
            self.on_loss(now);
        } else if ack.ece {
            self.on_mark(now);
        }
        let marked = ack.marks.saturating_sub(self.marks);
        self.marks += marked;
        let event = AckEvent {
            now,
            delivered,
            lost,
            marked,
            total_delivered: self.rate.delivered(),
            rtt,
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            prior_in_flight,
            in_flight: self.board.in_flight(),
            acknowledged: ack.next,
            next: self.next,
            repair: self.repair(),
            is_window_limited: self.is_window_limited,
            has_advanced,
            sample: self.rate.take_sample(self.rtt.minimum().unwrap_or_default()),
            departure_wait: self.pacer.wait(now),
        };
        self.control.count_marks(&event);
        self.set_window(&event);
    }

    /// Marks newly acknowledged segments on the scoreboard. Returns their number, and the
    /// round-trip time of the newest.
    fn take_deliveries(
        &mut self,
        now: Timestamp,
        ack: &Ack,
        has_advanced: bool,
    ) -> (u64, Option<TimeDelta>) {
        let (rate, rack) = (&mut self.rate, &mut self.rack);
        let min_rtt = self.rtt.minimum().unwrap_or_default();
        // Only segments that were sent once give an unambiguous round-trip time (Karn's rule)
        // [RFC6298 §3].
        let (mut oldest, mut newest) = (None, None);
        let delivered = self.board.on_ack(ack.next, ack.blocks.as_slice(), |sent| {
            rate.on_delivered(now, sent.sent_at, sent.stamp);
            rack.on_delivered(now, sent, min_rtt);
            if !sent.retransmitted {
                let rtt = now - sent.sent_at;
                oldest = Some(oldest.map_or(rtt, |oldest: TimeDelta| oldest.max(rtt)));
                newest = Some(newest.map_or(rtt, |newest: TimeDelta| newest.min(rtt)));
            }
        });
        // The echoed timestamp identifies the acknowledged transmission [RFC7323 §4.1].
        let echoed = if has_advanced && delivered > 0 { Some(now - ack.echo) } else { None };
        if let Some(rtt) = oldest.or(echoed) {
            self.rtt.on_sample(rtt);
        }
        (delivered, newest)
    }

    fn repair(&self) -> Repair {
        match self.phase {
            Phase::Reducing { is_recovery: true, .. } => Repair::Recovery,
            Phase::Timeout { .. } => Repair::Timeout,
            _ => Repair::None,
        }
    }

    fn detect_loss(&mut self, now: Timestamp) -> u64 {
        let in_recovery = self.repair() != Repair::None;
        if !in_recovery && self.board.sacked() == 0 {
            return 0; // No segment was overtaken.
        }
        let times = Times {
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            min_rtt: self.rtt.minimum().unwrap_or_default(),
        };
        let (lost, wait) = self.rack.detect(now, &mut self.board, times, in_recovery);
        if let Some(wait) = wait {
            let at = self.timers.expiry(now, wait + LEAST_WAIT);
            self.timer = Some((at, Timer::Reordering));
        }
        lost
    }

    /// Ends the phase if the data in flight at its start is acknowledged.
    fn leave_phase(&mut self, acknowledged: u64) {
        match &self.phase {
            // After a mark, newer data must be acknowledged, too: the segment that carried CWR.
            Phase::Reducing { until, reduction, is_recovery }
                if acknowledged > *until || (*is_recovery && acknowledged == *until) =>
            {
                if !self.control.rules_in_recovery() {
                    self.window.congestion = reduction.target() as f64;
                }
                if *is_recovery {
                    self.rack.on_recovery_end();
                }
            }
            Phase::Timeout { until } if acknowledged >= *until => {}
            _ => return,
        }
        self.phase = Phase::Open;
        self.undo = None;
    }

    fn on_loss(&mut self, now: Timestamp) {
        match &mut self.phase {
            Phase::Open => self.reduce(now, true),
            Phase::Reducing { is_recovery, .. } => *is_recovery = true,
            Phase::Timeout { .. } => {}
        }
    }

    /// Reacts to a mark, at most once in a round trip [RFC3168 §6.1.2].
    fn on_mark(&mut self, now: Timestamp) {
        if matches!(self.phase, Phase::Open) {
            self.reduce(now, false);
            self.says_reduced = true;
        }
    }

    fn reduce(&mut self, now: Timestamp, is_recovery: bool) {
        self.undo = Some(Undo { window: self.window, retransmitted_at: None });
        self.window.threshold = self.control.on_congestion(now, &self.window);
        let from = libm::floor(self.window.congestion) as u64;
        let reduction = RateReduction::new(from, self.window.threshold as u64);
        self.phase = Phase::Reducing { is_recovery, until: self.next, reduction };
        self.tail_probe = None;
    }

    /// Sets the window after an acknowledgement.
    fn set_window(&mut self, event: &AckEvent) {
        match &mut self.phase {
            Phase::Reducing { reduction, .. } if !self.control.rules_in_recovery() => {
                let is_safe = event.has_advanced && event.lost == 0;
                let window = reduction.on_ack(event.delivered, event.in_flight, is_safe);
                self.window.congestion = window as f64;
            }
            _ => self.control.on_ack(&mut self.window, event),
        }
    }

    /// The reordering window has passed. Overtaken segments are lost.
    fn on_reordering_timeout(&mut self, now: Timestamp) {
        let was_repairing = self.repair() != Repair::None;
        if self.detect_loss(now) == 0 {
            return;
        }
        self.on_loss(now);
        if !was_repairing
            && !self.control.rules_in_recovery()
            && let Phase::Reducing { reduction, .. } = &mut self.phase
        {
            // Linux counts the timer as a delivery (`tcp_rack_reo_timeout`).
            self.window.congestion = reduction.on_ack(1, self.board.in_flight(), false) as f64;
        }
    }

    /// Retransmission timeout [RFC6298 §5], with RACK's rule for lost segments [RFC8985 §6.3].
    fn on_timeout(&mut self, now: Timestamp) {
        let is_new = !matches!(self.phase, Phase::Timeout { .. })
            && !matches!(self.phase, Phase::Reducing { is_recovery: true, .. });
        if is_new {
            self.undo = Some(Undo { window: self.window, retransmitted_at: None });
            self.window.threshold = self.control.on_congestion(now, &self.window);
        }
        self.control.on_timeout();
        self.rack.mark_lost_at_timeout(now, &mut self.board);
        self.rtt.on_timeout();
        self.tail_probe = None;
        self.phase = Phase::Timeout { until: self.next };
        // One segment leaves [RFC5681 §3.1].
        self.window.congestion = (self.board.in_flight() + 1) as f64;
        self.pacer.end_wait(now);
    }

    /// Restores the window if the acknowledgement is for data that was sent before the first
    /// retransmission. Then nothing was lost; only the delay had grown [RFC4015 §3.2].
    fn undo_if_spurious(&mut self, ack: &Ack) {
        let Some(Undo { window, retransmitted_at: Some(first) }) = self.undo else { return };
        if ack.echo >= first {
            return;
        }
        self.window.congestion = self.window.congestion.max(window.congestion);
        self.window.threshold = self.window.threshold.max(window.threshold);
        self.board.unmark_lost();
        self.control.on_undo();
        self.phase = Phase::Open;
        self.undo = None;
    }

    /// Starts a tail probe: a segment whose acknowledgement shows a loss at the end of the data
    /// before the retransmission timeout.
    fn start_tail_probe(&mut self) {
        let is_retransmission = !self.has_new_data();
        if is_retransmission {
            let Some(last) = self.board.last() else { return };
            self.board.mark_lost(last);
        }
        self.tail_probe = Some(TailProbe { end: self.next, is_retransmission, is_sent: false });
    }

    /// Checks whether a tail probe was acknowledged [RFC8985 §7.4.2].
    fn answer_tail_probe(&mut self, now: Timestamp, ack: &Ack) {
        let Some(probe) = self.tail_probe.filter(|probe| ack.next >= probe.end) else { return };
        if !probe.is_retransmission || ack.duplicate.is_some() {
            self.tail_probe = None;
        } else if ack.next > probe.end {
            // The probe repaired a loss, which is a congestion signal like any other.
            self.tail_probe = None;
            if matches!(self.phase, Phase::Open) {
                self.reduce(now, false);
            }
        }
    }

    /// Restarts the timer: for a tail probe if nothing seems lost, else for retransmission.
    fn set_timer(&mut self, now: Timestamp) {
        self.timer = None;
        if self.board.outstanding() == 0 {
            return;
        }
        let timeout = self.rtt.timeout();
        let may_probe = matches!(self.phase, Phase::Open)
            && self.board.sacked() == 0
            && self.tail_probe.is_none();
        self.timer = Some(match self.rtt.smoothed().filter(|_| may_probe) {
            Some(smoothed) => {
                // The acknowledgement of a single segment may be delayed.
                let single = self.board.outstanding() == 1;
                let patience = if single { LEAST_VARIATION } else { LEAST_WAIT };
                let probe = smoothed * PROBE_ROUNDS + patience;
                (self.timers.expiry(now, probe.min(timeout)), Timer::TailProbe)
            }
            None => (self.timers.expiry(now, timeout), Timer::Retransmission),
        });
    }

    fn has_new_data(&self) -> bool {
        self.limits.length.is_none_or(|length| self.next < length)
            && self.next + MSS <= self.peer_edge
            && self.next + MSS <= self.acknowledged + self.limits.send_buffer
    }

    fn has_segment(&self) -> bool {
        self.board.lost() > 0 || self.has_new_data()
    }

    /// A tail probe is not limited by the window [RFC8985 §7.3].
    fn window_has_room(&self) -> bool {
        self.room() > 0 || self.tail_probe.is_some_and(|probe| !probe.is_sent)
    }

    /// Number of segments that fit into the window.
    fn room(&self) -> u64 {
        (libm::floor(self.window.congestion) as u64).saturating_sub(self.board.in_flight())
    }

    /// TCP small queues: data in the queue of the interface delays the rest.
    fn host_has_room(&self) -> bool {
        self.limits.small_queue.is_none_or(|limit| self.in_host <= limit)
    }

    /// A segment left the host.
    pub(super) fn on_left_host(&mut self, part: &Part) {
        self.in_host -= part.end - part.start;
    }

    /// Returns the next segment if one may leave now. Call until `None`.
    pub(super) fn next_segment(&mut self, now: Timestamp) -> Option<Outgoing> {
        if !self.has_segment() {
            self.is_window_limited = !self.window_has_room();
            if self.limits.length == Some(self.next) {
                self.rate.on_app_limited(self.board.in_flight());
            }
            return None;
        }
        if !self.window_has_room() {
            self.is_window_limited = true;
            return None;
        }
        if !self.host_has_room() || !self.pacer_lets(now) {
            return None;
        }
        let stamp = self.rate.on_sent(now, self.board.in_flight());
        let (part, is_retransmission) = match self.board.next_lost() {
            Some(index) => (self.board.on_sent_again(now, index, stamp), true),
            None => {
                let left = self.limits.length.map_or(MSS, |length| length - self.next);
                let part = self.next..self.next + left.min(MSS);
                self.next = part.end;
                self.board.on_sent(now, part.clone(), stamp);
                (part, false)
            }
        };
        self.after_sent(now, is_retransmission);
        let cwr = !is_retransmission && std::mem::take(&mut self.says_reduced);
        if self.limits.small_queue.is_some() {
            self.in_host += part.end - part.start;
        }
        let data = Data { part, sent_at: now, echo: self.peer_time, cwr };
        Some(Outgoing { data, is_retransmission })
    }

    fn after_sent(&mut self, now: Timestamp, is_retransmission: bool) {
        if let Phase::Reducing { reduction, .. } = &mut self.phase {
            reduction.on_sent();
        }
        if let Some(probe) = self.tail_probe.as_mut().filter(|probe| !probe.is_sent) {
            (probe.end, probe.is_sent) = (self.next, true);
        }
        if is_retransmission && let Some(undo) = &mut self.undo {
            undo.retransmitted_at.get_or_insert(now);
        }
        let is_probe_due = matches!(self.timer, Some((_, Timer::TailProbe)));
        if self.timer.is_none() || (is_probe_due && !is_retransmission) {
            self.set_timer(now);
        }
    }

    fn pacer_lets(&mut self, now: Timestamp) -> bool {
        let Some(pacing) = self.control.pacing() else { return true };
        let is_probe = self.tail_probe.is_some_and(|probe| !probe.is_sent);
        let connection = Connection {
            sent: self.next / MSS,
            window: libm::floor(self.window.congestion) as u64,
            room: self.room(),
            oldest_sent_at: self.board.first_sent_at(),
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            is_urgent: is_probe || self.repair() != Repair::None,
        };
        let may_send = self.pacer.may_send(now, pacing, &connection);
        self.is_window_limited |= self.pacer.is_deferred();
        may_send
    }
}

#[cfg(test)]
mod tests;
