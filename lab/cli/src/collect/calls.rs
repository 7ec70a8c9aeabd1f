//! The calls that run: what each has sent, and what limits it. All bounds are here.
//!
//! Time is an argument, so that tests need no clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weir_analyze::{Cause, LiveCall, LiveFinding};

use super::access::Participant;
use super::budget::Budgets;
use super::counters::{Counters, Refused, WATCHED, watched_s};

/// Bytes of one end of a call that wait for the disk. A second brings 64 kB; more is a disk that
/// does not follow.
const UNWRITTEN_MAX: usize = 8 << 20;
/// The same for all ends, and the bytes from which on each client waits after a message.
const ALL_UNWRITTEN_MAX: usize = 256 << 20;
const ALL_UNWRITTEN_MANY: usize = 128 << 20;
const SLOW_DISK: Duration = Duration::from_secs(1);
/// Time between two analyses of a call.
const ANALYSIS: Duration = Duration::from_secs(5);

/// What is allowed.
#[derive(Clone, Debug)]
pub struct Limits {
    pub calls: usize,
    pub call_bytes: u64,
    pub window_s: f64,
    pub rejoin: Duration,
    /// How long a cause must hold before someone is told, in s.
    pub told_after_s: f64,
}

/// A cause that began to limit a call, or ceased to.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub participant: Participant,
    pub begins: bool,
    pub cause: Cause,
    pub rule: String,
    pub says: String,
    pub from_s: f64,
    pub to_s: f64,
}

/// Lines of one end for the disk.
#[derive(Debug)]
pub struct Batch {
    pub participant: Participant,
    pub lines: Vec<u8>,
    /// Number of the last event among them.
    sequence: u64,
}

/// The calls that run.
pub struct Calls {
    limits: Limits,
    ends: BTreeMap<Participant, End>,
    /// Participants whose client waits until what it had sent before is read again, with the number
    /// of its connections.
    expected: BTreeMap<Participant, u32>,
    /// What each participant may send. A call that ends and begins again has no more.
    pub budgets: Budgets,
    /// Bytes of all ends that wait for the disk.
    waiting: usize,
    next: u64,
    pub counters: Counters,
}

/// One end of a call.
struct End {
    call: LiveCall,
    findings: Vec<LiveFinding>,
    /// Causes that someone was told of.
    told: Vec<Change>,
    /// Seconds of causes that are in the counters.
    counted_s: [f64; Cause::ALL.len()],
    /// Seconds of its videos that are in the counters.
    counted_watched_s: [f64; WATCHED.len()],
    unwritten: Vec<u8>,
    /// Number of the last event that is on the disk.
    written: u64,
    bytes: u64,
    /// The connection that may send; `None` while it is away.
    connection: Option<u64>,
    /// Ends the wait of this connection when another one takes its place, by being dropped.
    replaced: Option<oneshot::Sender<()>>,
    last_at: Instant,
    due: Instant,
    is_new: bool,
}

impl Calls {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ends: BTreeMap::new(),
            expected: BTreeMap::new(),
            budgets: Budgets::default(),
            waiting: 0,
            next: 0,
            counters: Counters::default(),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether this end's call runs.
    pub fn runs(&self, participant: &Participant) -> bool {
        self.ends.contains_key(participant)
    }

    /// Whether this end's call runs, or its client is about to join. Its dump must stay.
    pub fn is_known(&self, participant: &Participant) -> bool {
        self.runs(participant) || self.expected.contains_key(participant)
    }

    /// A client is about to join.
    pub fn expect(&mut self, participant: &Participant) {
        *self.expected.entry(participant.clone()).or_default() += 1;
    }

    /// The client has joined, or is gone before that.
    pub fn no_longer_expect(&mut self, participant: &Participant) {
        if let Some(count) = self.expected.get_mut(participant) {
            *count -= 1;
            if *count == 0 {
                self.expected.remove(participant);
            }
        }
    }

    pub fn refuse(&mut self, why: Refused) {
        *self.counters.refused.entry(why).or_default() += 1;
    }

    /// Ends of calls, and how many of them are connected.
    pub fn counts(&self) -> (usize, usize) {
        let connected = self.ends.values().filter(|end| end.connection.is_some()).count();
        (self.ends.len(), connected)
    }

    /// Ends of calls that each cause limits now.
    pub fn limited(&self) -> [u64; Cause::ALL.len()] {
        let mut limited = [0; Cause::ALL.len()];
        for end in self.ends.values() {
            for (place, cause) in Cause::ALL.into_iter().enumerate() {
                let holds = end.findings.iter().any(|it| it.holds && it.cause == cause);
                limited[place] += u64::from(holds);
            }
        }
        limited
    }

    /// A connection of an end of a call. `before` is what the end had sent before this program
    /// started, with its bytes. An earlier connection of the same end may not send any more.
    pub fn join(
        &mut self,
        now: Instant,
        participant: &Participant,
        before: Option<(LiveCall, u64)>,
    ) -> Result<u64, Refused> {
        if !self.ends.contains_key(participant) {
            if self.ends.len() >= self.limits.calls {
                self.refuse(Refused::Calls);
                return Err(Refused::Calls);
            }
            let (mut call, bytes) =
                before.unwrap_or_else(|| (LiveCall::new(self.limits.window_s), 0));
            // What was found before the start is in the counters of that time.
            let findings = call.findings();
            let counted_s = *call.cause_s();
            let counted_watched_s = watched_s(call.good_time());
            self.counters.joined += 1;
            let written = call.sequence().unwrap_or(0);
            let end = End {
                call,
                findings,
                told: Vec::new(),
                counted_s,
                counted_watched_s,
                unwritten: Vec::new(),
                written,
                bytes,
                connection: None,
                replaced: None,
                last_at: now,
                due: now + ANALYSIS,
                is_new: true,
            };
            self.ends.insert(participant.clone(), end);
        }
        self.next += 1;
        if let Some(end) = self.ends.get_mut(participant) {
            end.connection = Some(self.next);
            end.replaced = None;
            end.last_at = now;
        }
        Ok(self.next)
    }

    /// Completes when the connection may not send any more, because another one came.
    pub fn replaced(
        &mut self,
        participant: &Participant,
        connection: u64,
    ) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if let Some(end) = self.ends.get_mut(participant)
            && end.connection == Some(connection)
        {
            end.replaced = Some(sender);
        }
        receiver
    }

    /// The connection is gone. Its end may join again.
    pub fn leave(&mut self, now: Instant, participant: &Participant, connection: u64) {
        if let Some(end) = self.ends.get_mut(participant)
            && end.connection == Some(connection)
        {
            end.connection = None;
            end.replaced = None;
            end.last_at = now;
        }
    }

    /// Takes an event in one line, as JSON, and keeps it for the disk.
    pub fn take(
        &mut self,
        now: Instant,
        participant: &Participant,
        connection: u64,
        line: &[u8],
    ) -> Result<(), Refused> {
        self.look_at(now, participant, connection, line)?;
        if let Some(end) = self.ends.get_mut(participant) {
            end.unwritten.extend(line);
            end.unwritten.push(b'\n');
            self.waiting += line.len() + 1;
        }
        Ok(())
    }

    /// Takes an event in one line, as JSON, for the rules alone.
    pub fn look_at(
        &mut self,
        now: Instant,
        participant: &Participant,
        connection: u64,
        line: &[u8],
    ) -> Result<(), Refused> {
        let taken = self.looked_at(now, participant, connection, line);
        if let Err(why) = taken {
            self.refuse(why);
        }
        taken
    }

    fn looked_at(
        &mut self,
        now: Instant,
        participant: &Participant,
        connection: u64,
        line: &[u8],
    ) -> Result<(), Refused> {
        let end = self.ends.get_mut(participant).filter(|end| end.connection == Some(connection));
        let end = end.ok_or(Refused::Replaced)?;
        let size = line.len() + 1;
        end.last_at = now;
        end.bytes += size as u64;
        self.counters.bytes += size as u64;
        if end.bytes > self.limits.call_bytes {
            return Err(Refused::Bytes);
        }
        let is_full = end.unwritten.len() + size > UNWRITTEN_MAX;
        if is_full || self.waiting + size > ALL_UNWRITTEN_MAX {
            return Err(Refused::Disk);
        }
        let is_report = end.call.take(line).map_err(|_| Refused::Event)?;
        self.counters.events += 1;
        self.counters.reports += u64::from(is_report);
        Ok(())
    }

    /// How long a client waits before its next message.
    pub fn wait(&self, now: Instant, participant: &Participant) -> Duration {
        let slow = if self.waiting > ALL_UNWRITTEN_MANY { SLOW_DISK } else { Duration::ZERO };
        self.budgets.wait(now, participant).max(slow)
    }

    /// Number of the last event that an end has sent; 0 before the first.
    pub fn sequence(&self, participant: &Participant) -> u64 {
        self.ends.get(participant).and_then(|end| end.call.sequence()).unwrap_or(0)
    }

    /// Number of the last event of an end that is on the disk.
    pub fn written(&self, participant: &Participant) -> u64 {
        self.ends.get(participant).map_or(0, |end| end.written)
    }

    /// Analyzes the calls whose turn it is, and returns what began or ended.
    pub fn analyze(&mut self, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        for (participant, end) in &mut self.ends {
            if end.due > now {
                continue;
            }
            // Calls that joined together take turns.
            let spread =
                if std::mem::take(&mut end.is_new) { spread(participant) } else { Duration::ZERO };
            end.due = now + ANALYSIS + spread;
            end.look(&mut self.counters);
            end.tell(participant, self.limits.told_after_s, &mut changes);
        }
        changes
    }

    /// What waits for the disk. The caller says with [`wrote`](Self::wrote) what became of it.
    pub fn unwritten(&mut self) -> Vec<Batch> {
        let mut all = Vec::new();
        for (participant, end) in &mut self.ends {
            if !end.unwritten.is_empty() {
                let lines = std::mem::take(&mut end.unwritten);
                let sequence = end.call.sequence().unwrap_or(0);
                all.push(Batch { participant: participant.clone(), lines, sequence });
            }
        }
        all
    }

    /// A batch is on the disk. What the disk did not take waits for the next time.
    pub fn wrote(&mut self, batch: Batch, is_written: bool) {
        let end = self.ends.get_mut(&batch.participant);
        if is_written || end.is_none() {
            self.waiting -= batch.lines.len();
        }
        let Some(end) = end else { return };
        if is_written {
            end.written = batch.sequence;
        } else {
            let later = std::mem::replace(&mut end.unwritten, batch.lines);
            end.unwritten.extend(later);
        }
    }

    /// Bytes that wait for the disk.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Removes the ends that are gone for too long to come back. What they sent must be written.
    pub fn ended(&mut self, now: Instant) -> Vec<(Participant, Vec<Change>)> {
        let mut gone = Vec::new();
        for (participant, end) in &self.ends {
            let is_away = end.connection.is_none() && end.unwritten.is_empty();
            if is_away && now.saturating_duration_since(end.last_at) > self.limits.rejoin {
                gone.push(participant.clone());
            }
        }
        let mut ended = Vec::new();
        for participant in gone {
            let Some(mut end) = self.ends.remove(&participant) else { continue };
            end.look(&mut self.counters);
            self.counters.ended += 1;
            let mut changes = end.told;
            for change in &mut changes {
                change.begins = false;
            }
            ended.push((participant, changes));
        }
        ended
    }
}

impl End {
    /// Analyzes the call, and adds the seconds that are new.
    fn look(&mut self, counters: &mut Counters) {
        self.findings = self.call.findings();
        for (place, counted_s) in self.call.cause_s().iter().enumerate() {
            counters.bad_s[place] += counted_s - self.counted_s[place];
            self.counted_s[place] = *counted_s;
        }
        for (place, seconds) in watched_s(self.call.good_time()).into_iter().enumerate() {
            counters.watched_s[place] += seconds - self.counted_watched_s[place];
            self.counted_watched_s[place] = seconds;
        }
    }

    /// Notes the causes that began or ceased since the last time.
    fn tell(&mut self, participant: &Participant, after_s: f64, changes: &mut Vec<Change>) {
        for it in self.findings.iter().filter(|it| it.holds && it.to_s - it.from_s >= after_s) {
            if let Some(known) = self.told.iter_mut().find(|known| known.cause == it.cause) {
                known.to_s = it.to_s;
                continue;
            }
            let change = Change {
                participant: participant.clone(),
                begins: true,
                cause: it.cause,
                rule: it.rule.clone(),
                says: it.says.clone(),
                from_s: it.from_s,
                to_s: it.to_s,
            };
            changes.push(change.clone());
            self.told.push(change);
        }
        let findings = &self.findings;
        self.told.retain(|known| {
            let holds = findings.iter().any(|it| it.holds && it.cause == known.cause);
            if !holds {
                changes.push(Change { begins: false, ..known.clone() });
            }
            holds
        });
    }
}

/// A part of the time between two analyses, by the participant's name.
fn spread(participant: &Participant) -> Duration {
    let mut sum = 0_u64;
    for byte in participant.call.bytes().chain(participant.peer.bytes()) {
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(byte));
    }
    Duration::from_millis(sum % ANALYSIS.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(call_bytes: u64) -> Calls {
        let rejoin = Duration::from_secs(10);
        Calls::new(Limits { calls: 2, call_bytes, window_s: 60.0, rejoin, told_after_s: 5.0 })
    }

    fn participant() -> Participant {
        Participant::new("room", "call", "anna").unwrap()
    }

    /// An event of a call whose path is full from 10 s on.
    fn event(second: u64) -> String {
        let time = 1.7e12 + second as f64 * 1e3;
        let rtt = if second < 10 { 0.04 } else { 0.4 };
        let sent = json!({
            "type": "outbound-rtp", "kind": "video", "ssrc": 7, "timestamp": time,
            "packetsSent": second * 100, "bytesSent": second * 100_000, "remoteId": "r",
        });
        let reported = json!({
            "type": "remote-inbound-rtp", "timestamp": time, "roundTripTime": rtt,
            "roundTripTimeMeasurements": second,
        });
        json!(["getStats", "a", { "o": sent, "r": reported }, time]).to_string()
    }

    #[test]
    fn a_cause_is_told_as_it_begins_and_as_its_call_ends_and_counted_once() {
        let (mut calls, now) = (calls(1 << 20), Instant::now());
        let place = calls.join(now, &participant(), None).unwrap();
        for second in 0..30 {
            calls.take(now, &participant(), place, event(second).as_bytes()).unwrap();
        }
        let later = now + ANALYSIS;
        let begun = calls.analyze(later);
        assert_eq!(begun.len(), 1);
        assert_eq!((begun[0].begins, begun[0].cause), (true, Cause::UplinkCapacity));
        assert!(calls.analyze(later + 3 * ANALYSIS).is_empty());
        let counted_s: f64 = calls.counters.bad_s.iter().sum();
        assert!((19.0..=21.0).contains(&counted_s), "{counted_s} s");
        calls.leave(later, &participant(), place);
        assert_eq!(calls.unwritten().len(), 1);
        assert!(calls.ended(later + Duration::from_secs(9)).is_empty());
        let ended = calls.ended(later + Duration::from_secs(11));
        assert_eq!((ended.len(), ended[0].1.len(), ended[0].1[0].begins), (1, 1, false));
        assert_eq!(calls.counters.bad_s.iter().sum::<f64>(), counted_s);
    }

    #[test]
    fn a_call_that_ends_before_its_turn_is_analyzed_at_its_end() {
        let (mut calls, now) = (calls(1 << 20), Instant::now());
        let place = calls.join(now, &participant(), None).unwrap();
        for second in 0..30 {
            calls.take(now, &participant(), place, event(second).as_bytes()).unwrap();
        }
        calls.leave(now, &participant(), place);
        calls.unwritten();
        calls.ended(now + Duration::from_secs(11));
        assert!(calls.counters.bad_s[1] > 15.0, "{:?}", calls.counters.bad_s);
    }

    fn large() -> String {
        format!("[\"ontrack\",\"a\",\"{}\",1700000000000]", "x".repeat(1_000_000))
    }

    #[test]
    fn an_end_that_has_sent_too_much_is_refused() {
        let (mut calls, now) = (calls(6_000_000), Instant::now());
        let place = calls.join(now, &participant(), None).unwrap();
        for _ in 0..5 {
            calls.take(now, &participant(), place, large().as_bytes()).unwrap();
        }
        let refused = calls.take(now, &participant(), place, large().as_bytes());
        assert_eq!(refused, Err(Refused::Bytes));
        // Nothing is kept of an event that is none.
        let before = calls.unwritten()[0].lines.len();
        assert!(before < 6_000_000, "{before}");
        assert_eq!(calls.take(now, &participant(), place, b"{"), Err(Refused::Bytes));
    }

    #[test]
    fn what_the_disk_does_not_take_waits_in_its_order_up_to_a_bound() {
        let (mut calls, now) = (calls(1 << 30), Instant::now());
        let place = calls.join(now, &participant(), None).unwrap();
        let numbered = |number: u32| format!("[\"ontrack\",\"a\",0,1700000000000,{number}]");
        for number in 1..=3 {
            calls.take(now, &participant(), place, numbered(number).as_bytes()).unwrap();
            let batch = calls.unwritten().pop().unwrap();
            calls.wrote(batch, number == 1);
        }
        // What was told to a client is on the disk.
        assert_eq!((calls.sequence(&participant()), calls.written(&participant())), (3, 1));
        let batch = calls.unwritten().pop().unwrap();
        let expected = format!("{}\n{}\n", numbered(2), numbered(3));
        assert_eq!(String::from_utf8_lossy(&batch.lines), expected);
        calls.wrote(batch, true);
        assert_eq!((calls.written(&participant()), calls.waiting()), (3, 0));
        let mut refused = None;
        for _ in 0..20 {
            if let Err(why) = calls.take(now, &participant(), place, large().as_bytes()) {
                refused = Some(why);
            }
        }
        assert_eq!(refused, Some(Refused::Disk));
        assert!(calls.waiting() <= UNWRITTEN_MAX);
        // The call may not end before its events are on the disk.
        calls.leave(now, &participant(), place);
        assert!(calls.ended(now + Duration::from_secs(3600)).is_empty());
    }

    #[test]
    fn a_connection_learns_at_once_that_another_one_replaced_it() {
        let (mut calls, now) = (calls(1 << 20), Instant::now());
        let older = calls.join(now, &participant(), None).unwrap();
        let mut replaced = calls.replaced(&participant(), older);
        assert_eq!(replaced.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let newer = calls.join(now, &participant(), None).unwrap();
        assert_eq!(replaced.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        let mut own = calls.replaced(&participant(), newer);
        assert_eq!(own.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(calls.take(now, &participant(), older, b"[]"), Err(Refused::Replaced));
    }

    #[test]
    fn a_seat_is_known_while_one_of_its_clients_waits_to_join() {
        let mut calls = calls(1 << 20);
        calls.expect(&participant());
        calls.expect(&participant());
        calls.no_longer_expect(&participant());
        assert!(calls.is_known(&participant()) && !calls.runs(&participant()));
        calls.no_longer_expect(&participant());
        assert!(!calls.is_known(&participant()));
    }
}
