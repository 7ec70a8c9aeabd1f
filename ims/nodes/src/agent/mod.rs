//! A plain SIP user agent of an IMS: one registration and one call at a time, with reliable
//! provisional responses ([RFC3262 §3]) and preconditions ([RFC3312 §5]).
//!
//! ```text
//!   caller: INVITE -> 183 -> PRACK -> UPDATE -> 180 -> 200 -> ACK ... BYE
//! ```
//!
//! All requests go to the P-CSCF. The driver gives it datagrams and the time.

mod call;
mod register;
mod state;
mod transactions;

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::digest::Credentials;
use crate::sdp::Medium;
use crate::sip::{Message, Start};
use call::Call;
pub use state::Binding;
use transactions::{Clients, Servers};

/// How SIP reaches the P-CSCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams. Requests are repeated until they are answered.
    Udp,
    /// A WebSocket ([RFC7118 §4]): reliable, one message a frame.
    WebSocket,
}

/// Who the agent is and where it is connected.
#[derive(Clone, Debug)]
pub struct Account {
    /// Private identity.
    pub private: String,
    /// Public identity that registers and calls.
    pub public: String,
    /// Password or ISIM.
    pub credentials: Credentials,
    /// Domain of the home network.
    pub realm: String,
    /// Address and port of the agent.
    pub local: SocketAddrV4,
    /// Address and port of the P-CSCF.
    pub proxy: SocketAddrV4,
    /// Transport to the P-CSCF.
    pub transport: Transport,
    /// Media that it offers and accepts.
    pub media: Vec<Medium>,
    /// What it does with an incoming call.
    pub on_call: OnCall,
}

/// What an agent does with an incoming call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCall {
    /// Rings for this long and answers.
    Answer(Duration),
    /// Refuses with this status code, such as 486.
    Refuse(u16),
    /// Rings until the caller gives up.
    Ring,
}

/// What the driver must do, or may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this message to the P-CSCF.
    Send(String),
    /// Something has happened.
    Event(Event),
}

/// Something that the user of an agent wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The registration holds, with these public identities.
    Registered(Vec<String>),
    /// The registration has ended.
    Deregistered,
    /// A registration failed, for this reason.
    NotRegistered(String),
    /// A call has come from this identity.
    Incoming(String),
    /// The registrar tells of the registration ([`Agent::watch`]).
    Registrations(Vec<Binding>),
    /// The network refuses to tell of the registration, with this status code.
    NotWatched(u16),
    /// A text message has come ([RFC3428 §7]).
    Message(String),
    /// Resources are reserved on both sides.
    Reserved,
    /// The other side rings.
    Ringing,
    /// The call stands; media go to these ports of this address.
    Established(Ipv4Addr, Vec<Medium>),
    /// The other side holds the call or ends that; of who holds: the other side has agreed.
    Held(bool),
    /// The call has ended, by the other side or not.
    Ended {
        /// Whether the other side, or the network, ended it.
        by_other_side: bool,
    },
    /// The call failed with this status code.
    Failed(u16),
}

/// The agent.
#[derive(Debug)]
pub struct Agent {
    account: Account,
    clients: Clients,
    servers: Servers,
    /// Counts branches, tags and Call-IDs.
    unique: u64,
    sequence: u32,
    register_id: String,
    /// Expires of the REGISTER under way.
    expires: u32,
    /// Nonces of the challenges to the REGISTER under way that are answered.
    answered: Vec<String>,
    service_routes: Vec<String>,
    call: Option<Call>,
}

impl Agent {
    /// An agent without registration. `seed` makes its Call-IDs and tags different from others.
    pub fn new(account: Account, seed: u64) -> Self {
        let is_reliable = account.transport == Transport::WebSocket;
        Self {
            account,
            clients: Clients::new(is_reliable),
            servers: Servers::new(),
            unique: seed << 20,
            sequence: 0,
            register_id: String::new(),
            expires: 0,
            answered: Vec::new(),
            service_routes: Vec::new(),
            call: None,
        }
    }

    /// A message has come from the P-CSCF. Bytes that are no message are left out.
    pub fn on_bytes(&mut self, now: Duration, bytes: &[u8]) -> Vec<Output> {
        let Ok(message) = Message::parse(bytes) else { return Vec::new() };
        let mut outputs = Vec::new();
        if matches!(message.start, Start::Request { .. }) {
            if let Some(response) = self.servers.repeated(&message) {
                return vec![Output::Send(response)];
            }
            self.on_request(now, &message, &mut outputs);
            return outputs;
        }
        // A second 200 to an INVITE has no transaction any more, and wants its ACK again.
        if message.method() == "INVITE" && message.code().is_some_and(|code| code >= 200) {
            let is_known = self.clients.answered(&message);
            self.on_invite_final(now, &message, is_known, &mut outputs);
        } else if self.clients.answered(&message) {
            match message.method() {
                "REGISTER" => self.on_register_response(now, &message, &mut outputs),
                "SUBSCRIBE" => {
                    outputs.extend(
                        message
                            .code()
                            .filter(|code| *code >= 300)
                            .map(|code| Output::Event(Event::NotWatched(code))),
                    );
                }
                _ => self.on_call_response(now, &message, &mut outputs),
            }
        }
        outputs
    }

    /// Repeats what must be repeated, and answers a call that has rung long enough.
    pub fn on_time(&mut self, now: Duration) -> Vec<Output> {
        let (repeated, failed) = self.clients.on_time(now);
        let mut outputs: Vec<Output> = repeated.into_iter().map(Output::Send).collect();
        outputs.extend(self.servers.on_time(now).into_iter().map(Output::Send));
        for method in failed {
            match method.as_str() {
                "REGISTER" => {
                    outputs.push(Output::Event(Event::NotRegistered("no answer".into())));
                }
                "SUBSCRIBE" => outputs.push(Output::Event(Event::NotWatched(REQUEST_TIMEOUT))),
                "INVITE" | "PRACK" | "UPDATE" => {
                    self.call = None;
                    outputs.push(Output::Event(Event::Failed(REQUEST_TIMEOUT)));
                }
                _ => {}
            }
        }
        self.answer_call(now, &mut outputs);
        outputs
    }

    /// The agent has a new connection, with this address of its own: registers over it ([RFC5626
    /// §4.5]). A call stands.
    ///
    /// [RFC5626 §4.5]: https://www.rfc-editor.org/rfc/rfc5626#section-4.5
    pub fn reconnected(&mut self, now: Duration, local: SocketAddrV4) -> Vec<Output> {
        self.account.local = local;
        if self.expires == 0 {
            return Vec::new();
        }
        self.register(now, self.expires)
    }

    /// When [`Agent::on_time`] has something to do next.
    pub fn next_time(&self) -> Option<Duration> {
        let answer = self.call.as_ref().and_then(|call| call.answer_at);
        [self.clients.next_time(), self.servers.next_time(), answer].into_iter().flatten().min()
    }

    fn unique(&mut self, prefix: &str) -> String {
        self.unique += 1;
        format!("{prefix}{:x}", self.unique)
    }

    fn via(&mut self) -> String {
        let branch = self.unique("z9hG4bK");
        let word = match self.account.transport {
            Transport::Udp => "UDP",
            Transport::WebSocket => "WS",
        };
        format!("SIP/2.0/{word} {};branch={branch};rport", self.account.local)
    }

    fn contact(&self) -> String {
        let parameter = match self.account.transport {
            Transport::Udp => "",
            Transport::WebSocket => ";transport=ws",
        };
        let user = self.account.private.split('@').next().unwrap_or_default();
        format!("<sip:{user}@{}{parameter}>", self.account.local)
    }

    /// Sends a request and repeats it until it is answered.
    fn send(&mut self, now: Duration, request: &Message, outputs: &mut Vec<Output>) {
        let text = request.to_string();
        self.clients.sent(now, request, &text);
        outputs.push(Output::Send(text));
    }

    /// Sends a response, and sends it again when the request comes again.
    fn respond(&mut self, request: &Message, response: &Message, outputs: &mut Vec<Output>) {
        let text = response.to_string();
        self.servers.responded(request, &text);
        outputs.push(Output::Send(text));
    }
}

/// Request Timeout ([RFC3261 §21.4.9]).
const REQUEST_TIMEOUT: u16 = 408;

#[cfg(test)]
mod tests;
