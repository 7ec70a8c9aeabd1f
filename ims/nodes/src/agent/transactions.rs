//! Repeats requests until they are answered, and responses when their request comes again
//! ([RFC3261 §17]).

use core::time::Duration;
use std::collections::VecDeque;

use crate::sip::Message;

/// T1: estimate of the round-trip time ([RFC3261 §17.1.1.1]).
pub(super) const T1: Duration = Duration::from_millis(500);
/// T2: longest interval between repetitions ([RFC3261 §17.1.2.1]).
pub(super) const T2: Duration = Duration::from_secs(4);
/// 64 T1: a request without answer has failed ([RFC3261 §17.1.2.2]).
pub(super) const PATIENCE: Duration = Duration::from_secs(32);
/// A caller waits longer for the answer of a person, for example while a network reserves.
const INVITE_PATIENCE: Duration = Duration::from_secs(180);
/// Responses that are kept for repeated requests.
const MOST_RESPONSES: usize = 64;

#[derive(Debug)]
struct Client {
    branch: String,
    method: String,
    text: String,
    /// Next repetition; none after a provisional response to an INVITE.
    repeat_at: Option<Duration>,
    interval: Duration,
    fails_at: Duration,
}

/// Requests under way.
#[derive(Debug)]
pub(super) struct Clients {
    is_reliable: bool,
    open: Vec<Client>,
}

impl Clients {
    pub(super) fn new(is_reliable: bool) -> Self {
        Self { is_reliable, open: Vec::new() }
    }

    pub(super) fn sent(&mut self, now: Duration, request: &Message, text: &str) {
        let method = request.method().to_owned();
        let patience = if method == "INVITE" { INVITE_PATIENCE } else { PATIENCE };
        self.open.push(Client {
            branch: request.parameter("Via", "branch").unwrap_or_default().into(),
            method,
            text: text.into(),
            repeat_at: (!self.is_reliable).then_some(now + T1),
            interval: T1,
            fails_at: now + patience,
        });
    }

    /// Takes a response. Returns whether its request was under way.
    pub(super) fn answered(&mut self, response: &Message) -> bool {
        let branch = response.parameter("Via", "branch").unwrap_or_default();
        let method = response.method();
        let found = self.open.iter().position(|one| one.branch == branch && one.method == method);
        let Some(at) = found else { return false };
        if response.code().is_some_and(|code| code >= 200) {
            self.open.remove(at);
        } else if method == "INVITE" {
            self.open[at].repeat_at = None;
        }
        true
    }

    /// The texts to repeat, and the methods of the requests that have failed.
    pub(super) fn on_time(&mut self, now: Duration) -> (Vec<String>, Vec<String>) {
        let mut repeated = Vec::new();
        for client in &mut self.open {
            if client.repeat_at.is_some_and(|at| at <= now) {
                // [RFC3261 §17.1.1.2, 17.1.2.2] Only requests other than INVITE are held at T2.
                let double = 2 * client.interval;
                client.interval = if client.method == "INVITE" { double } else { double.min(T2) };
                client.repeat_at = Some(now + client.interval);
                repeated.push(client.text.clone());
            }
        }
        let failed = self.open.iter().filter(|one| one.fails_at <= now);
        let failed = failed.map(|one| one.method.clone()).collect();
        self.open.retain(|one| one.fails_at > now);
        (repeated, failed)
    }

    pub(super) fn next_time(&self) -> Option<Duration> {
        let times =
            self.open.iter().map(|one| one.repeat_at.unwrap_or(one.fails_at).min(one.fails_at));
        times.min()
    }
}

#[derive(Debug)]
struct Repeated {
    /// Status code, to find the response that is acknowledged.
    code: u16,
    text: String,
    at: Duration,
    interval: Duration,
    ends_at: Duration,
}

/// Responses that were sent.
#[derive(Debug)]
pub(super) struct Servers {
    /// Branch, method and last response of the newest requests.
    responses: VecDeque<(String, String, String)>,
    /// Responses that are repeated until a PRACK or an ACK.
    repeated: Vec<Repeated>,
}

impl Servers {
    pub(super) fn new() -> Self {
        Self { responses: VecDeque::new(), repeated: Vec::new() }
    }

    pub(super) fn responded(&mut self, request: &Message, text: &str) {
        let branch = request.parameter("Via", "branch").unwrap_or_default().to_owned();
        let method = request.method().to_owned();
        self.responses.retain(|(of, by, _)| (of, by) != (&branch, &method));
        self.responses.push_back((branch, method, text.into()));
        if self.responses.len() > MOST_RESPONSES {
            self.responses.pop_front();
        }
    }

    /// The last response to this request, if it has come before.
    pub(super) fn repeated(&self, request: &Message) -> Option<String> {
        let branch = request.parameter("Via", "branch").unwrap_or_default();
        let mut responses = self.responses.iter();
        let found = responses.find(|(of, by, _)| of == branch && by == request.method());
        found.map(|(.., text)| text.clone())
    }

    /// Repeats this response until it is acknowledged ([RFC3262 §3], [RFC3261 §13.3.1.4]): over a
    /// reliable transport too, because a hop behind the proxy may not be.
    pub(super) fn repeat(&mut self, now: Duration, code: u16, text: String) {
        self.repeated.push(Repeated {
            code,
            text,
            at: now + T1,
            interval: T1,
            ends_at: now + PATIENCE,
        });
    }

    /// A response with this code has been acknowledged.
    pub(super) fn acknowledged(&mut self, code: u16) {
        self.repeated.retain(|one| one.code != code);
    }

    pub(super) fn on_time(&mut self, now: Duration) -> Vec<String> {
        self.repeated.retain(|one| one.ends_at > now);
        let mut texts = Vec::new();
        for one in self.repeated.iter_mut().filter(|one| one.at <= now) {
            one.interval = (2 * one.interval).min(T2);
            one.at = now + one.interval;
            texts.push(one.text.clone());
        }
        texts
    }

    pub(super) fn next_time(&self) -> Option<Duration> {
        self.repeated.iter().map(|one| one.at).min()
    }
}
