//! What is asked and answered beside the media: STUN, DTLS, reports of RTCP. Whoever answers at
//! once is near the place of the capture; whoever never answers is not there.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use weir_capture::stun;

use super::flows::Ends;
use super::hosts::{Host, hosts};
use crate::read::dump::{ConnectionChange, ConnectionEvent, ConnectionState};
use crate::read::packets::receiver_reports;
use weir_rtcp::compact_ntp_to_time;

/// Requests that wait for their answer, pairs that are watched, and answers of a host that count.
const WAITING_MAX: usize = 16_384;
const PAIRS_MAX: usize = 1_024;
const ANSWERS_MAX: usize = 64;
/// Requests of a pair that say something if none is answered.
const LEAST_REQUESTS: u64 = 3;
/// Hellos that do.
const LEAST_HELLOS: u64 = 2;
/// What is asked again for a shorter time in ns may still be answered: STUN and DTLS wait for half
/// a second and for one at first.
const LEAST_ASKED: i64 = 1_000_000_000;
/// Longest time from a request to its answer in ns.
const LONGEST: i64 = 10_000_000_000;

/// Requests from one socket to another.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    first: i64,
    last: i64,
    count: u64,
    answered: u64,
}

impl Asked {
    /// Whether nobody answered, of so many questions at least.
    fn is_unanswered(&self, least: u64) -> bool {
        self.answered == 0 && self.count >= least && self.last - self.first >= LEAST_ASKED
    }

    fn add(&mut self, now: i64) {
        if self.count == 0 {
            self.first = now;
        }
        self.last = now;
        self.count += 1;
    }
}

#[derive(Default)]
pub(super) struct Handshakes {
    /// By socket that asked, socket that was asked, and transaction.
    waiting: HashMap<(Ends, [u8; 12]), i64>,
    checks: BTreeMap<Ends, Asked>,
    hellos: BTreeMap<Ends, Asked>,
    /// When a sender report was sent by this host, by the middle of its NTP time.
    sender_reports: HashMap<(Host, u32), i64>,
    /// How long after a question the answers of a host came by, in ns.
    answers: BTreeMap<Host, Vec<i64>>,
    /// Round trips of checks from one host to another: when the answer came, and after how long.
    pub round_trips: Vec<((Host, Host), i64, i64)>,
}

impl Handshakes {
    /// A STUN message.
    pub fn stun(&mut self, ends: Ends, now: i64, message: &[u8]) {
        // The class of a message is in two bits of its type [RFC8489 §5].
        const CLASS: u16 = 0x0110;
        const ANSWER: u16 = 0x0100;
        let Some(kind) = stun::u16_at(message, 0) else { return };
        let transaction = message.get(8..20).and_then(|it| it.first_chunk::<12>());
        let has_cookie = message.get(4..8).is_some_and(|it| it == stun::MAGIC_COOKIE);
        let Some(transaction) = transaction.filter(|_| has_cookie) else { return };
        match kind & CLASS {
            0 => {
                if self.checks.len() < PAIRS_MAX || self.checks.contains_key(&ends) {
                    self.checks.entry(ends).or_default().add(now);
                }
                if self.waiting.len() >= WAITING_MAX {
                    self.waiting.clear();
                }
                self.waiting.entry((ends, *transaction)).or_insert(now);
            }
            class if class & ANSWER != 0 => {
                let asked = (ends.1, ends.0);
                let Some(then) = self.waiting.remove(&(asked, *transaction)) else { return };
                if let Some(checks) = self.checks.get_mut(&asked) {
                    checks.answered += 1;
                }
                let (own, other) = hosts(ends);
                self.answered(own, now - then);
                if self.round_trips.len() < WAITING_MAX && (0..LONGEST).contains(&(now - then)) {
                    self.round_trips.push(((other, own), now, now - then));
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, host: Host, after: i64) {
        let answers = self.answers.entry(host).or_default();
        if answers.len() < ANSWERS_MAX && (0..LONGEST).contains(&after) {
            answers.push(after);
        }
    }

    /// A datagram of DTLS.
    pub fn dtls(&mut self, ends: Ends, now: i64, datagram: &[u8]) {
        const HANDSHAKE: u8 = 22;
        const CLIENT_HELLO: u8 = 1;
        const MESSAGE: usize = 13;
        let is_hello = datagram.first() == Some(&HANDSHAKE)
            && datagram.get(MESSAGE).is_none_or(|kind| *kind == CLIENT_HELLO);
        if let Some(asked) = self.hellos.get_mut(&(ends.1, ends.0)) {
            asked.answered += 1;
        }
        if is_hello && (self.hellos.len() < PAIRS_MAX || self.hellos.contains_key(&ends)) {
            self.hellos.entry(ends).or_default().add(now);
        }
    }

    /// A readable datagram of RTCP: a report that answers a sender report tells how long that took,
    /// without what the receiver held it [RFC3550 §6.4.1].
    pub fn rtcp(&mut self, ends: Ends, now: i64, datagram: &[u8]) {
        let (from, to) = hosts(ends);
        if let Some(sent) = receiver_reports::sender_report(datagram) {
            if self.sender_reports.len() >= WAITING_MAX {
                self.sender_reports.clear();
            }
            self.sender_reports.entry((from, sent)).or_insert(now);
        }
        for block in receiver_reports::blocks(datagram) {
            let key = (to, block.last_sender_report);
            let Some(then) = self.sender_reports.get(&key).copied() else { continue };
            let held = compact_ntp_to_time(block.delay_since_last_sender_report).as_nanos();
            // The unit is 15 us, and clocks drift.
            self.answered(from, (now - then - held).max(0));
        }
    }

    /// The median time after which the answers of a host came by, in ns.
    pub fn answers_after(&self, host: Host) -> Option<i64> {
        let mut answers = self.answers.get(&host)?.clone();
        answers.sort_unstable();
        answers.get(answers.len() / 2).copied()
    }

    /// What happened to connections without media, from a time in ns on.
    pub fn events(&self, zero: i64, has_media: &dyn Fn(Ends) -> bool) -> Vec<ConnectionEvent> {
        let mut events = Vec::new();
        for (ends, asked) in &self.hellos {
            if asked.is_unanswered(LEAST_HELLOS) && !has_media(*ends) {
                let states = [
                    (asked.first, ConnectionChange::Whole(ConnectionState::Connecting)),
                    (asked.last, ConnectionChange::Dtls(ConnectionState::Failed)),
                ];
                add(&mut events, *ends, zero, states);
            }
        }
        // Of the many pairs that ICE tries, most may fail.
        if events.is_empty() && self.checks.values().all(|it| it.answered == 0) {
            for (ends, asked) in &self.checks {
                if asked.is_unanswered(LEAST_REQUESTS) && !has_media(*ends) {
                    let states = [
                        (asked.first, ConnectionChange::Ice(ConnectionState::Connecting)),
                        (asked.last, ConnectionChange::Ice(ConnectionState::Failed)),
                    ];
                    add(&mut events, *ends, zero, states);
                }
            }
        }
        events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        events
    }

    /// In words, who was never answered.
    pub fn unanswered(&self, has_media: &dyn Fn(Ends) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for ((from, to), asked) in &self.hellos {
            if asked.is_unanswered(LEAST_HELLOS) && !has_media((*from, *to)) {
                let checks = self.checks.get(&(*from, *to)).copied().unwrap_or_default();
                let ice = match checks.answered {
                    0 => String::new(),
                    count => format!(" ({count} STUN checks were)"),
                };
                lines.push(format!(
                    "{} DTLS hellos from {from} to {to} were never answered{ice}",
                    asked.count
                ));
            }
        }
        for ((from, to), asked) in &self.checks {
            if asked.is_unanswered(LEAST_REQUESTS) && !has_media((*from, *to)) {
                lines.push(format!(
                    "{} STUN requests from {from} to {to} were never answered",
                    asked.count
                ));
            }
        }
        lines.truncate(3);
        lines
    }
}

fn add(
    events: &mut Vec<ConnectionEvent>,
    (from, to): (SocketAddr, SocketAddr),
    zero: i64,
    states: [(i64, ConnectionChange); 2],
) {
    for (time, change) in states {
        let time_s = (time - zero) as f64 / 1e9;
        events.push(ConnectionEvent { connection: format!("{from} to {to}"), time_s, change });
    }
}
