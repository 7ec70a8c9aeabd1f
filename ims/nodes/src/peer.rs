//! A connection between two Diameter neighbours: capabilities exchange, watchdog, disconnection.
//!
//! ```text
//!   accepted: WaitRequest --CER--> Open --DPR or DPA--> Closed
//!   opened:   WaitAnswer  --CEA--> Open
//! ```

use core::time::Duration;
use std::net::IpAddr;

use weir_diameter::{Avp, Message, avp, base};

/// Tw: silence after which a watchdog goes out, and after which it counts as lost
/// ([RFC6733 §5.5], [RFC3539 §3.4.1]).
pub const WATCHDOG_INTERVAL: Duration = Duration::from_secs(30);

/// Who we are, and with whom we talk.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Origin-Host.
    pub host: String,
    /// Origin-Realm.
    pub realm: String,
    /// Host-IP-Address.
    pub address: IpAddr,
    /// Application that is offered, of vendor 3GPP.
    pub application: u32,
    /// Origin-Host of each neighbour that may connect.
    pub peers: Vec<String>,
}

impl Identity {
    /// A message with our Origin-Host and Origin-Realm.
    pub fn sign(&self, message: Message) -> Message {
        message
            .with(avp::ORIGIN_HOST.text(self.host.as_str()))
            .with(avp::ORIGIN_REALM.text(self.realm.as_str()))
    }

    fn capabilities(&self, message: Message) -> Message {
        self.sign(message)
            .with(avp::HOST_IP_ADDRESS.address(self.address))
            .with(avp::VENDOR_ID.number(base::VENDOR_3GPP))
            .with(avp::PRODUCT_NAME.text("Weir"))
            .with(avp::SUPPORTED_VENDOR_ID.number(base::VENDOR_3GPP))
            // In both forms: Kamailio looks for the second one when it answers an ASR by an STR.
            .with(application(self.application))
            .with(avp::AUTH_APPLICATION_ID.number(self.application))
    }
}

/// The application in the form that 3GPP requires ([TS 29.229 §5.6]).
pub fn application(id: u32) -> Avp {
    avp::VENDOR_SPECIFIC_APPLICATION_ID
        .group([avp::VENDOR_ID.number(base::VENDOR_3GPP), avp::AUTH_APPLICATION_ID.number(id)])
}

/// An answer with the result, the application and our names.
pub fn answer(identity: &Identity, request: &Message, result: u32) -> Message {
    let mut answer = request.answer();
    // [RFC6733 §7.1.3] Flag E marks protocol errors, 3xxx.
    answer.is_error = (3000..4000).contains(&result);
    let answer = answer.with(avp::RESULT_CODE.number(result));
    identity.sign(answer.with(application(identity.application)))
}

/// The answer, or if it is longer than a message may be, one that says so: it leaves out all that
/// the request gave, for that may be what is too long.
pub fn bounded(identity: &Identity, answer: Message) -> Message {
    if answer.fits() {
        return answer;
    }
    let bare = Message { avps: Vec::new(), is_error: false, ..answer };
    identity
        .sign(bare.with(avp::RESULT_CODE.number(base::UNABLE_TO_COMPLY)))
        .with(avp::ERROR_MESSAGE.text("the answer is too long"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    WaitRequest,
    WaitAnswer,
    Open,
    Closed,
}

/// What the driver must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this message to the neighbour.
    Send(Message),
    /// A message of the application has come.
    Deliver(Message),
    /// The neighbour may be used.
    Opened,
    /// Close the connection, for this reason.
    Close(String),
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    state: PeerState,
    peer: String,
    last_heard: Duration,
    awaits_watchdog: bool,
    next_identifier: u32,
}

impl Connection {
    /// A connection that a neighbour has opened.
    pub fn accepted(identity: Identity, now: Duration) -> Self {
        Self {
            identity,
            state: PeerState::WaitRequest,
            peer: String::new(),
            last_heard: now,
            awaits_watchdog: false,
            next_identifier: 1,
        }
    }

    /// A connection that we have opened, and its CER.
    pub fn opened(identity: Identity, now: Duration) -> (Self, Output) {
        let mut connection = Self::accepted(identity, now);
        connection.state = PeerState::WaitAnswer;
        let request = Message::request(base::CAPABILITIES_EXCHANGE, base::COMMON);
        let request = connection.identity.capabilities(request);
        let request = connection.numbered(request);
        (connection, Output::Send(request))
    }

    /// Origin-Host of the neighbour; empty before its capabilities are known.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Whether messages of the application may be sent.
    pub fn is_open(&self) -> bool {
        self.state == PeerState::Open
    }

    /// Gives a request the identifiers of this connection.
    pub fn numbered(&mut self, mut request: Message) -> Message {
        request.hop_by_hop = self.next_identifier;
        request.end_to_end = self.next_identifier;
        self.next_identifier = self.next_identifier.wrapping_add(1);
        request
    }

    /// A message has come.
    pub fn on_message(&mut self, now: Duration, message: Message) -> Vec<Output> {
        self.last_heard = now;
        // [RFC6733 §5.5.3] Any message shows that the neighbour lives.
        self.awaits_watchdog = false;
        match (self.state, message.command, message.is_request) {
            (PeerState::Closed, ..) => Vec::new(),
            (PeerState::WaitRequest, base::CAPABILITIES_EXCHANGE, true) => {
                self.on_request(&message)
            }
            (PeerState::WaitAnswer, base::CAPABILITIES_EXCHANGE, false) => self.on_answer(&message),
            (PeerState::WaitRequest | PeerState::WaitAnswer, ..) => {
                self.close(format!("{} before the capabilities exchange", message.name()))
            }
            (PeerState::Open, base::CAPABILITIES_EXCHANGE, true) => {
                vec![Output::Send(self.capabilities_answer(&message, base::SUCCESS))]
            }
            (PeerState::Open, base::DEVICE_WATCHDOG, true) => {
                let answer = message.answer().with(avp::RESULT_CODE.number(base::SUCCESS));
                vec![Output::Send(self.identity.sign(answer))]
            }
            (PeerState::Open, base::DEVICE_WATCHDOG | base::CAPABILITIES_EXCHANGE, false) => {
                Vec::new()
            }
            (PeerState::Open, base::DISCONNECT_PEER, true) => {
                let answer = message.answer().with(avp::RESULT_CODE.number(base::SUCCESS));
                let answer = Output::Send(self.identity.sign(answer));
                [vec![answer], self.close("the peer disconnects".into())].concat()
            }
            (PeerState::Open, base::DISCONNECT_PEER, false) => self.close("disconnected".into()),
            // [RFC6733 §6.1.4, 7.1.3]
            (PeerState::Open, _, true) if message.application != self.identity.application => {
                let result = base::APPLICATION_UNSUPPORTED;
                vec![Output::Send(answer(&self.identity, &message, result))]
            }
            (PeerState::Open, ..) => vec![Output::Deliver(message)],
        }
    }

    /// Sends a watchdog after silence, and closes the connection if it stays silent. Call this at
    /// least once a second.
    pub fn on_time(&mut self, now: Duration) -> Vec<Output> {
        if self.state == PeerState::Closed || now < self.last_heard + WATCHDOG_INTERVAL {
            return Vec::new();
        }
        if self.state != PeerState::Open {
            return self.close("no capabilities exchange".into());
        }
        if self.awaits_watchdog {
            return self.close("no answer to the watchdog".into());
        }
        self.awaits_watchdog = true;
        self.last_heard = now;
        let request = Message::request(base::DEVICE_WATCHDOG, base::COMMON);
        let request = self.identity.sign(request);
        vec![Output::Send(self.numbered(request))]
    }

    fn close(&mut self, reason: String) -> Vec<Output> {
        self.state = PeerState::Closed;
        vec![Output::Close(reason)]
    }

    fn on_request(&mut self, request: &Message) -> Vec<Output> {
        let peer = request.text(&avp::ORIGIN_HOST).unwrap_or_default();
        // [RFC6733 §5.3] Unknown neighbours are told so, and the connection ends.
        if !self.identity.peers.iter().any(|known| known == peer) {
            let reason = format!("'{peer}' is no known peer");
            let answer = self.capabilities_answer(request, base::UNKNOWN_PEER);
            return [vec![Output::Send(answer)], self.close(reason)].concat();
        }
        if !has_application(request, self.identity.application) {
            let reason = format!("{peer} has no application in common");
            let answer = self.capabilities_answer(request, base::NO_COMMON_APPLICATION);
            return [vec![Output::Send(answer)], self.close(reason)].concat();
        }
        self.peer = peer.into();
        self.state = PeerState::Open;
        vec![Output::Send(self.capabilities_answer(request, base::SUCCESS)), Output::Opened]
    }

    fn capabilities_answer(&self, request: &Message, result: u32) -> Message {
        let mut answer = request.answer().with(avp::RESULT_CODE.number(result));
        answer.is_error = (3000..4000).contains(&result);
        self.identity.capabilities(answer)
    }

    fn on_answer(&mut self, answer: &Message) -> Vec<Output> {
        if answer.result() != Some(base::SUCCESS) {
            return self.close(format!("the peer refuses: {answer}"));
        }
        self.peer = answer.text(&avp::ORIGIN_HOST).unwrap_or_default().into();
        self.state = PeerState::Open;
        vec![Output::Opened]
    }
}

fn has_application(request: &Message, application: u32) -> bool {
    let own = request.find(&avp::AUTH_APPLICATION_ID).into_iter();
    let groups = request.all(&avp::VENDOR_SPECIFIC_APPLICATION_ID);
    let mut all = own.chain(groups.filter_map(|group| group.find(&avp::AUTH_APPLICATION_ID)));
    all.any(|avp| avp.number() == Some(application))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    fn identity(host: &str, peer: &str) -> Identity {
        Identity {
            host: host.into(),
            realm: "ims.test".into(),
            address: IpAddr::from([127, 0, 0, 1]),
            application: base::CX,
            peers: vec![peer.into()],
        }
    }

    fn sent(outputs: &[Output]) -> &Message {
        let Output::Send(message) = &outputs[0] else { panic!("{outputs:?}") };
        message
    }

    /// A client and a server after the capabilities exchange.
    fn open() -> (Connection, Connection) {
        let (mut client, request) = Connection::opened(identity("icscf", "hss"), START);
        let mut server = Connection::accepted(identity("hss", "icscf"), START);
        let Output::Send(request) = request else { panic!() };
        let outputs = server.on_message(START, request);
        assert_eq!(outputs[1], Output::Opened);
        assert_eq!(client.on_message(START, sent(&outputs).clone()), [Output::Opened]);
        (client, server)
    }

    // [RFC6733 §5.3]
    #[test]
    fn known_neighbours_with_a_common_application_open_the_connection() {
        let (client, server) = open();
        assert!(client.is_open() && server.is_open());
        assert_eq!((client.peer(), server.peer()), ("hss", "icscf"));
    }

    // [RFC6733 §5.3, 7.1.3]
    #[test]
    fn a_stranger_is_refused() {
        let (_, request) = Connection::opened(identity("mallory", "hss"), START);
        let Output::Send(request) = request else { panic!() };
        let mut server = Connection::accepted(identity("hss", "icscf"), START);
        let outputs = server.on_message(START, request);
        assert_eq!(sent(&outputs).result(), Some(base::UNKNOWN_PEER));
        assert!(matches!(&outputs[1], Output::Close(_)), "{outputs:?}");
        assert!(!server.is_open());
    }

    // [RFC6733 §5.3]
    #[test]
    fn a_peer_without_a_common_application_is_refused() {
        let other = Identity { application: base::RX, ..identity("icscf", "hss") };
        let (_, Output::Send(request)) = Connection::opened(other, START) else { panic!() };
        let mut server = Connection::accepted(identity("hss", "icscf"), START);
        let outputs = server.on_message(START, request);
        assert_eq!(sent(&outputs).result(), Some(base::NO_COMMON_APPLICATION));
    }

    #[test]
    fn nothing_passes_before_the_capabilities_exchange() {
        let mut server = Connection::accepted(identity("hss", "icscf"), START);
        let request = Message::request(base::USER_AUTHORIZATION, base::CX);
        assert!(matches!(&server.on_message(START, request)[..], [Output::Close(_)]));
    }

    // [RFC3539 §3.4.1]
    #[test]
    fn a_silent_neighbour_gets_one_watchdog_and_is_then_closed() {
        let (mut client, mut server) = open();
        let just_before = WATCHDOG_INTERVAL - Duration::from_millis(1);
        assert_eq!(server.on_time(just_before), []);
        let watchdog = server.on_time(WATCHDOG_INTERVAL);
        assert_eq!(sent(&watchdog).name(), "DWR");
        let answer = client.on_message(WATCHDOG_INTERVAL, sent(&watchdog).clone());
        assert_eq!(sent(&answer).result(), Some(base::SUCCESS));
        assert_eq!(server.on_message(WATCHDOG_INTERVAL, sent(&answer).clone()), []);
        assert_eq!(sent(&server.on_time(2 * WATCHDOG_INTERVAL)).name(), "DWR");
        assert!(matches!(&server.on_time(3 * WATCHDOG_INTERVAL)[..], [Output::Close(_)]));
    }

    // [RFC6733 §7.1.5]
    #[test]
    fn an_answer_that_is_too_long_becomes_one_that_says_so() {
        let mut request = Message::request(base::AA, base::RX)
            .with(avp::SESSION_ID.text("s".repeat(weir_diameter::MOST_BYTES - 60)));
        request.hop_by_hop = 7;
        assert!(request.fits());
        let identity = identity("pcrf", "af");
        let long = answer(&identity, &request, base::SUCCESS);
        assert!(!long.fits());
        let sent = bounded(&identity, long);
        assert_eq!((sent.result(), sent.hop_by_hop), (Some(base::UNABLE_TO_COMPLY), 7));
        assert!(Message::parse(&sent.to_bytes()).is_ok());
    }

    // [RFC6733 §6.1.4]
    #[test]
    fn a_request_of_another_application_is_answered_with_an_error() {
        let (_, mut server) = open();
        let outputs = server.on_message(START, Message::request(base::AA, base::RX));
        assert_eq!(sent(&outputs).result(), Some(base::APPLICATION_UNSUPPORTED));
        assert!(sent(&outputs).is_error);
    }
}
