//! Frame exchanges: a data frame, the answer one SIFS later, and how both sides act on the result.
//!
//! ```text
//! sender    access | data  |                 | next data of the TXOP, or backoff
//! receiver                 | SIFS | ACK or BlockAck |
//! sender    access | data  |  no answer by the ACK timeout: backoff in a wider window
//! ```

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::cell::{Cell, link_to};
use super::config::{AccessCategory, NodeId};
use super::link::Signal;
use super::medium::{Frame, Kind};
use super::node::{Action, Exchange, Node};
use super::phy::{self, Band, DataRate};
use super::record::{AirtimeRecord, FrameKind, Ledger};
use super::send_queue::Limits;

impl<T: Debug + Send + 'static> Cell<T> {
    /// A node gains access to the channel. Of its categories whose backoff has ended, the most
    /// urgent one sends. The others act as if their frames had collided [IEEE80211 §9.19.2.4].
    pub(super) fn on_access(&mut self, now: Timestamp, node: usize) {
        self.accesses[node] = Timestamp::MAX;
        let idle_from = self.medium.idle_from(node);
        let Node { categories, chance, .. } = &mut self.nodes[node];
        let mut winner = None;
        let mut losers = [None; AccessCategory::COUNT];
        for category in AccessCategory::EACH {
            let entry = &mut categories[category.index()];
            let has_packets = entry.queue.has_packets();
            if has_packets && entry.contention.access(idle_from) <= now {
                losers[category.index()] = winner.replace(category);
            } else {
                entry.contention.freeze(now, idle_from, has_packets, chance);
            }
        }
        for loser in losers.into_iter().flatten() {
            self.collide_within(now, node, loser);
        }
        self.note_contender(node);
        // The packets may be gone: a full queue can have dropped them in favour of another packet.
        let Some(category) = winner else { return };
        let txop = self.nodes[node].txops[category.index()];
        if !self.send(now, node, (category, now + txop), true) {
            self.end_opportunity(node, category);
        }
        self.top_up(now, node);
    }

    /// Handles an internal collision: a more urgent category of the same node sends instead.
    fn collide_within(&mut self, now: Timestamp, node: usize, category: AccessCategory) {
        let Node { categories, counters, chance, .. } = &mut self.nodes[node];
        let entry = &mut categories[category.index()];
        counters.virtual_collisions += 1;
        let mut ledger = Ledger { outcomes: &mut self.outcomes, counters };
        let receiver = entry.queue.next_receiver().expect("it has packets");
        let one = Limits { mpdus: 1, size: DataSize::ZERO, at_least_one: true };
        entry.queue.fill(now, receiver, one, &mut ledger);
        let resolution = entry.queue.resolve(now, receiver, false, &mut ledger);
        if resolution.is_fresh {
            entry.contention.on_done(chance);
        } else {
            entry.contention.on_failure(chance);
        }
    }

    /// Sends the next data frame of a category. Returns false if there is none, or if the frame and
    /// its answer would not end before `txop_end`. The first frame of an opportunity may exceed
    /// that limit.
    fn send(
        &mut self,
        now: Timestamp,
        node: usize,
        (category, txop_end): (AccessCategory, Timestamp),
        is_first: bool,
    ) -> bool {
        let Node { categories, links, counters, aggregation, .. } = &mut self.nodes[node];
        let queue = &mut categories[category.index()].queue;
        let Some(receiver) = queue.next_receiver() else { return false };
        let link = &mut links[receiver];
        let power_dbm = link.to.map_or(f64::INFINITY, |to| self.medium.power_dbm(node, to));
        let snr_db = link.snr_db(now, power_dbm);
        let rate = link.rate.select(now, queue.attempts(receiver), snr_db);
        let mut limits =
            Limits { mpdus: aggregation.mpdus, size: aggregation.bytes, at_least_one: is_first };
        // The size limits only what is no single first packet.
        if !is_first || aggregation.mpdus > 1 {
            let mut duration = aggregation.duration;
            if txop_end > now {
                let answer = self.band.sifs + answer_duration(rate, true, &self.band);
                duration = duration.min(txop_end - now - answer - self.band.signal_extension);
            }
            limits.size = limits.size.min(rate.content_within(duration));
        }
        let mut ledger = Ledger { outcomes: &mut self.outcomes, counters };
        let content = queue.fill(now, receiver, limits, &mut ledger);
        if content.mpdus == 0 {
            self.note_contender(node);
            return false;
        }
        let airtime = rate.duration(content.size(), &self.band);
        queue.charge(receiver, airtime);
        counters.frames += 1;
        let to = link.to;
        let exchange = Exchange { category, receiver, rate, content, txop_end };
        self.nodes[node].exchange = Some(exchange);
        self.begin_frame(now, airtime, (node, to), Kind::Data);
        true
    }

    /// Puts a frame on the air. Nodes that hear it defer, unless they are already committed to
    /// send.
    fn begin_frame(
        &mut self,
        now: Timestamp,
        airtime: TimeDelta,
        ends: (usize, Option<usize>),
        kind: Kind,
    ) {
        self.nodes[ends.0].counters.airtime += airtime;
        let mut newly_busy = std::mem::take(&mut self.changed);
        self.medium.begin(now, now + airtime, ends, kind, &mut newly_busy);
        for &node in &newly_busy {
            self.on_busy(now, node);
        }
        self.changed = newly_busy;
    }

    /// The channel becomes busy at a node. A node whose backoff ends less than one slot from now
    /// sends anyway: it needs that time to sense a frame and to switch to sending
    /// [IEEE80211 §9.3.7].
    fn on_busy(&mut self, now: Timestamp, node: usize) {
        if !self.contenders[node].is_counting && self.accesses[node] == Timestamp::MAX {
            return;
        }
        if self.accesses[node] < now + self.band.slot || self.nodes[node].is_engaged() {
            return;
        }
        self.accesses[node] = Timestamp::MAX;
        let idle_from = self.medium.idle_from(node);
        let Node { categories, chance, .. } = &mut self.nodes[node];
        for entry in categories {
            entry.contention.freeze(now, idle_from, entry.queue.has_packets(), chance);
        }
        self.note_contender(node);
    }

    /// Handles the end of a frame: decodes it, records it, and starts what follows.
    pub(super) fn on_frame_end(&mut self, now: Timestamp, from: usize) {
        let frame = self.medium.take(from);
        let decoded = match frame.kind {
            Kind::Data => self.receive(&frame),
            Kind::Answer { is_block } => self.receive_answer(&frame, is_block),
        };
        self.record(&frame, decoded);
        let (to, kind) = (frame.to, frame.kind);
        let mut newly_idle = std::mem::take(&mut self.changed);
        self.medium.end(frame, decoded > 0, &mut newly_idle);
        let mut answerer = None;
        if kind == Kind::Data {
            answerer = self.await_answer(now, (from, to), decoded > 0);
        } else if let Some(to) = to.filter(|&to| self.medium.senses(to, from)) {
            self.conclude(now, to, decoded > 0);
        }
        for &node in &newly_idle {
            // Who hears the answer begin cannot have sent before.
            let is_brief = answerer.is_some_and(|it| self.medium.senses(node, it));
            if !(is_brief && self.answers_first) {
                self.refresh_access(node);
            }
        }
        self.changed = newly_idle;
    }

    /// Returns how many MPDUs of a data frame its receiver can decode; zero if it missed the
    /// preamble.
    fn receive(&mut self, frame: &Frame) -> usize {
        let Node { categories, links, exchange, counters, .. } = &mut self.nodes[frame.from];
        let Exchange { category, receiver, rate, .. } = exchange.expect("its frame was on the air");
        let (now, start, link) = (frame.end, frame.start, &mut links[receiver]);
        let power_dbm = self.medium.power_of(frame);
        let signal = |from: Timestamp, until: Timestamp| Signal {
            power_dbm,
            interference_mw: frame.interference_mw(from, until),
        };
        // Where no other frame is, it does not matter when a part is on the air.
        let is_alone = frame.is_alone();
        let part = |size: DataSize| if is_alone { start } else { start + rate.air_time(size) };
        let is_noticed =
            self.medium.is_sensed(frame) && link.notices(now, signal(start, part(DataSize::ZERO)));
        let decodes = |begin: DataSize, end: DataSize| {
            let size = end.saturating_sub(begin);
            is_noticed && link.decodes(now, rate.mcs, size, signal(part(begin), part(end)))
        };
        let mut ledger = Ledger { outcomes: &mut self.outcomes, counters };
        let queue = &mut categories[category.index()].queue;
        queue.receive(now, (receiver, start), decodes, &mut ledger)
    }

    /// After a data frame: the receiver plans an answer if it decoded at least one MPDU, and the
    /// sender waits for that answer [IEEE80211 §9.3.2.8]. A receiver that is sending an answer, or
    /// is about to, does not answer this frame. Returns who will answer.
    fn await_answer(
        &mut self,
        now: Timestamp,
        (from, to): (usize, Option<usize>),
        decoded: bool,
    ) -> Option<usize> {
        let answer_at = now + self.band.sifs;
        let mut answerer = None;
        match to {
            Some(to)
                if decoded
                    && self.nodes[to].action == Action::None
                    && !self.medium.is_sending(to) =>
            {
                self.plan(to, answer_at, Action::Respond { to: from });
                answerer = Some(to);
            }
            None if decoded => {
                let answer = self.answer_to(from).0;
                self.plan(from, answer_at + answer, Action::AnsweredElsewhere);
                return None;
            }
            _ => {}
        }
        self.plan(from, now + self.band.ack_timeout(), Action::TimeOut);
        answerer
    }

    fn plan(&mut self, node: usize, at: Timestamp, action: Action) {
        self.nodes[node].action = action;
        self.actions[node] = at;
    }

    /// Returns the duration and the kind of the answer to a sender's frame.
    fn answer_to(&self, sender: usize) -> (TimeDelta, Kind) {
        let Exchange { rate, content, .. } =
            self.nodes[sender].exchange.expect("it waits for an answer");
        let is_block = content.mpdus > 1;
        (answer_duration(rate, is_block, &self.band), Kind::Answer { is_block })
    }

    /// Carries out the action that a node has planned for this time.
    pub(super) fn on_action(&mut self, now: Timestamp, node: usize) {
        self.actions[node] = Timestamp::MAX;
        match std::mem::take(&mut self.nodes[node].action) {
            Action::None => {}
            Action::Respond { to } => {
                let (airtime, kind) = self.answer_to(to);
                self.begin_frame(now, airtime, (node, Some(to)), kind);
                if self.medium.senses(to, node) {
                    // The sender hears the answer begin, so it waits for its end instead of timing
                    // out.
                    self.plan(to, Timestamp::MAX, Action::None);
                }
            }
            Action::TimeOut => {
                self.medium.hold(node, now);
                self.conclude(now, node, false);
            }
            Action::AnsweredElsewhere => {
                self.medium.hold(node, now);
                self.conclude(now, node, true);
            }
            Action::Continue => {
                let Exchange { category, txop_end, .. } =
                    self.nodes[node].exchange.expect("it continues one");
                if !self.send(now, node, (category, txop_end), false) {
                    self.end_opportunity(node, category);
                }
            }
        }
    }

    /// Returns 1 if the answer can be decoded, otherwise 0.
    fn receive_answer(&mut self, frame: &Frame, is_block: bool) -> usize {
        let Some(to) = frame.to.filter(|_| self.medium.is_sensed(frame)) else { return 0 };
        let Some(Exchange { rate, .. }) = self.nodes[to].exchange else { return 0 };
        let signal = Signal {
            power_dbm: self.medium.power_of(frame),
            interference_mw: frame.interference_mw(frame.start, frame.end),
        };
        let (rate, size) = (rate.mcs.control_rate(), answer_size(is_block));
        let link = &mut self.nodes[frame.from].links[link_to(frame.from, to)];
        usize::from(link.decodes_answer(frame.end, rate, size, signal))
    }

    /// Ends an exchange: the sender has the answer, or knows that there is none.
    fn conclude(&mut self, now: Timestamp, node: usize, is_answered: bool) {
        let Node { categories, links, counters, chance, exchange, .. } = &mut self.nodes[node];
        let Exchange { category, receiver, rate, content, txop_end } =
            exchange.expect("it waits for an answer");
        let entry = &mut categories[category.index()];
        let mut ledger = Ledger { outcomes: &mut self.outcomes, counters };
        let resolution = entry.queue.resolve(now, receiver, is_answered, &mut ledger);
        let [sent, acknowledged] = [content.mpdus, resolution.acknowledged].map(|n| n as u32);
        links[receiver].rate.on_outcome(now, rate, sent, acknowledged);
        let next = now + self.band.sifs;
        if is_answered && next < txop_end && entry.queue.has_packets() {
            self.plan(node, next, Action::Continue);
        } else if is_answered || resolution.is_fresh {
            self.end_opportunity(node, category);
        } else {
            entry.contention.on_failure(chance);
            *exchange = None;
            self.note_contender(node);
            self.refresh_access(node);
        }
        self.top_up(now, node);
    }

    /// Ends a transmission opportunity: a new backoff is drawn from the smallest window.
    fn end_opportunity(&mut self, node: usize, category: AccessCategory) {
        let Node { categories, chance, exchange, .. } = &mut self.nodes[node];
        categories[category.index()].contention.on_done(chance);
        *exchange = None;
        self.note_contender(node);
        self.refresh_access(node);
    }

    /// Records a frame that has ended, if the cell keeps airtime records.
    fn record(&mut self, frame: &Frame, decoded: usize) {
        let Some(airtime) = &mut self.airtime else { return };
        let kind = match frame.kind {
            Kind::Answer { is_block: false } => FrameKind::Ack,
            Kind::Answer { is_block: true } => FrameKind::BlockAck,
            Kind::Data => {
                let Exchange { rate, category, content, .. } =
                    self.nodes[frame.from].exchange.expect("its frame was on the air");
                FrameKind::Data { rate, category, mpdus: content.mpdus, size: content.size() }
            }
        };
        airtime.push(AirtimeRecord {
            start: frame.start,
            end: frame.end,
            from: NodeId(frame.from),
            to: frame.to.map(NodeId),
            kind,
            decoded,
        });
    }
}

fn answer_size(is_block: bool) -> DataSize {
    if is_block { phy::BLOCK_ACK } else { phy::ACK }
}

fn answer_duration(rate: DataRate, is_block: bool, band: &Band) -> TimeDelta {
    rate.mcs.control_rate().duration(answer_size(is_block), band)
}
