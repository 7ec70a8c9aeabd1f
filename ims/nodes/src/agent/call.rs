//! A call of two sides with preconditions ([TS 24.229 §5.1.3, 5.1.4]).

use core::time::Duration;

use super::{Agent, Event, OnCall, Output};
use crate::sdp::{Description, Resources};
use crate::sip::{Message, parameter_of, uri_of};

/// What the agent supports.
const SUPPORTED: &str = "100rel, precondition";
const RINGING: u16 = 180;
const SESSION_PROGRESS: u16 = 183;
const OK: u16 = 200;
/// Number of the first reliable provisional response.
const RSEQ: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DialogState {
    /// INVITE sent or received.
    Early,
    /// A caller has sent CANCEL.
    Cancelled,
    /// 200 and ACK have passed.
    Established,
}

/// A dialog and what has been agreed in it.
#[derive(Debug)]
pub(super) struct Call {
    is_caller: bool,
    state: DialogState,
    id: String,
    local: String,
    remote: String,
    /// Request-URI of requests within the dialog.
    target: String,
    routes: Vec<String>,
    sequence: u32,
    /// The INVITE: of a caller for its CANCEL and ACK, of a callee for its responses.
    invite: Message,
    version: u32,
    resources: Resources,
    peer: Option<Description>,
    has_rung: bool,
    /// Whether we hold the other side.
    holds: bool,
    /// When a callee answers.
    pub(super) answer_at: Option<Duration>,
}

impl Agent {
    /// Calls this identity. Does nothing while another call stands.
    pub fn call(&mut self, now: Duration, target: &str) -> Vec<Output> {
        let mut outputs = Vec::new();
        if self.call.is_some() {
            return outputs;
        }
        let (id, tag) = (self.unique("call"), self.unique("t"));
        let local = format!("<{}>;tag={tag}", self.account.public);
        // [RFC3261 §12.1.2, RFC3608 §6.1] The way out: the P-CSCF, then the service route.
        let proxy = format!("<sip:{};lr>", self.account.proxy);
        let routes = [vec![proxy], self.service_routes.clone()].concat();
        let call = Call {
            is_caller: true,
            state: DialogState::Early,
            id,
            local,
            remote: format!("<{target}>"),
            target: target.into(),
            routes,
            sequence: 0,
            invite: Message::request("INVITE", target),
            version: 0,
            resources: Resources::default(),
            peer: None,
            has_rung: false,
            holds: false,
            answer_at: None,
        };
        self.call = Some(call);
        let invite = self.in_dialog("INVITE").expect("the call exists");
        let invite = invite
            .with("P-Preferred-Identity", format!("<{}>", self.account.public))
            .with_sdp(self.description(false));
        self.call.as_mut().expect("the call exists").invite = invite.clone();
        self.send(now, &invite, &mut outputs);
        outputs
    }

    /// Ends the call: CANCEL before its answer, BYE after it.
    pub fn hang_up(&mut self, now: Duration) -> Vec<Output> {
        let mut outputs = Vec::new();
        let Some(call) = &mut self.call else { return outputs };
        if call.state == DialogState::Established {
            let bye = self.in_dialog("BYE").expect("the call exists");
            self.send(now, &bye, &mut outputs);
        } else if call.is_caller && call.state == DialogState::Early {
            call.state = DialogState::Cancelled;
            let cancel = cancel(&call.invite);
            self.send(now, &cancel, &mut outputs);
        }
        outputs
    }

    /// Holds the other side of an established call by an UPDATE, or ends that.
    pub fn hold(&mut self, now: Duration, holds: bool) -> Vec<Output> {
        let mut outputs = Vec::new();
        let Some(call) = &mut self.call else { return outputs };
        if call.state != DialogState::Established {
            return outputs;
        }
        call.holds = holds;
        let update = self.in_dialog("UPDATE").expect("the call exists");
        let update = update.with_sdp(self.description(false));
        self.send(now, &update, &mut outputs);
        outputs
    }

    /// Our description at this point of the call.
    fn description(&mut self, asks_confirmation: bool) -> String {
        let call = self.call.as_mut().expect("only a call has a description");
        call.version += 1;
        let description = Description {
            address: *self.account.local.ip(),
            version: call.version,
            media: self.account.media.clone(),
            resources: call.resources,
            asks_confirmation,
            // [RFC3264 §6.1] Who is only sent to does not send.
            direction: match call.peer.as_ref().map(|peer| peer.direction.as_str()) {
                _ if call.holds => "sendonly",
                Some("sendonly") => "recvonly",
                Some("inactive") => "inactive",
                _ => "sendrecv",
            }
            .into(),
        };
        description.to_text()
    }

    /// A request within the dialog of the call, or its INVITE.
    fn in_dialog(&mut self, method: &str) -> Option<Message> {
        let (via, contact) = (self.via(), self.contact());
        let call = self.call.as_mut()?;
        if method != "ACK" {
            call.sequence += 1;
        }
        let mut request =
            Message::request(method, &call.target).with("Via", via).with("Max-Forwards", "70");
        for route in &call.routes {
            request = request.with("Route", route.clone());
        }
        let sequence = if method == "ACK" { invite_sequence(&call.invite) } else { call.sequence };
        Some(
            request
                .with("From", call.local.clone())
                .with("To", call.remote.clone())
                .with("Call-ID", call.id.clone())
                .with("CSeq", format!("{sequence} {method}"))
                .with("Contact", contact)
                .with("Supported", SUPPORTED)
                .with("Allow", "INVITE, ACK, CANCEL, BYE, PRACK, UPDATE"),
        )
    }

    pub(super) fn on_call_response(
        &mut self,
        now: Duration,
        response: &Message,
        outputs: &mut Vec<Output>,
    ) {
        let code = response.code().expect("the caller passes responses");
        match (response.method(), code) {
            ("INVITE", 101..=199) => self.on_provisional(now, response, code, outputs),
            // [RFC3312 §7] The network let the 183 pass: its resources are there.
            ("PRACK", OK) => self.confirm(now, outputs),
            ("UPDATE", OK) => {
                self.read_description(response);
                let Some(call) = &self.call else { return };
                outputs.push(Output::Event(match call.state {
                    DialogState::Established => Event::Held(call.holds),
                    _ => Event::Reserved,
                }));
            }
            ("BYE", 200..) => {
                self.call = None;
                outputs.push(Output::Event(Event::Ended { by_other_side: false }));
            }
            // [RFC3261 §14.1] As after a re-INVITE that is refused, the session stays as it was.
            ("UPDATE", 300..) if self.is_established() => {}
            ("PRACK" | "UPDATE", 300..) => {
                let cancelled = self.hang_up(now);
                outputs.extend(cancelled);
            }
            _ => {}
        }
    }

    fn on_provisional(
        &mut self,
        now: Duration,
        response: &Message,
        code: u16,
        outputs: &mut Vec<Output>,
    ) {
        let Some(call) = &mut self.call else { return };
        call.remote = response.header("To").unwrap_or_default().into();
        if let Some(contact) = response.header("Contact") {
            call.target = uri_of(contact).into();
            call.routes = response.list("Record-Route").into_iter().rev().collect();
        }
        if code == RINGING && !call.has_rung {
            call.has_rung = true;
            outputs.push(Output::Event(Event::Ringing));
        }
        let is_new = call.peer.is_none();
        self.read_description(response);
        // [RFC3262 §4]
        let requires = response.list("Require").iter().any(|option| option == "100rel");
        let (Some(number), true) = (response.header("RSeq").map(str::to_owned), requires) else {
            return;
        };
        if is_new {
            let sequence = response.header("CSeq").unwrap_or_default().to_owned();
            let prack = self.in_dialog("PRACK").expect("the call exists");
            let prack = prack.with("RAck", format!("{number} {sequence}"));
            self.send(now, &prack, outputs);
        }
    }

    /// The UPDATE that says that our resources are reserved.
    fn confirm(&mut self, now: Duration, outputs: &mut Vec<Output>) {
        let Some(call) = &mut self.call else { return };
        if call.resources.local || call.state != DialogState::Early {
            return;
        }
        call.resources.local = true;
        let update = self.in_dialog("UPDATE").expect("the call exists");
        let update = update.with_sdp(self.description(false));
        self.send(now, &update, outputs);
    }

    fn read_description(&mut self, message: &Message) {
        let Some(call) = &mut self.call else { return };
        if let Ok(description) = Description::parse(&message.body) {
            call.resources.remote = description.resources.local;
            call.peer = Some(description);
        }
    }

    pub(super) fn on_invite_final(
        &mut self,
        now: Duration,
        response: &Message,
        is_known: bool,
        outputs: &mut Vec<Output>,
    ) {
        let code = response.code().expect("the caller passes responses");
        let is_ours = self.call.as_ref().is_some_and(|call| {
            call.is_caller && response.header("Call-ID") == Some(call.id.as_str())
        });
        if code >= 300 {
            // [RFC3261 §17.1.1.3] The ACK of a refusal belongs to the INVITE's transaction.
            if let (true, Some(call)) = (is_ours, &self.call) {
                let to = response.header("To").unwrap_or_default();
                outputs.push(Output::Send(acknowledgement(&call.invite, to).to_string()));
            }
            if is_known && is_ours {
                self.call = None;
                outputs.push(Output::Event(Event::Failed(code)));
            }
            return;
        }
        if !is_ours {
            return;
        }
        self.read_description(response);
        let call = self.call.as_mut().expect("the call is ours");
        call.remote = response.header("To").unwrap_or_default().into();
        if let Some(contact) = response.header("Contact") {
            call.target = uri_of(contact).into();
            call.routes = response.list("Record-Route").into_iter().rev().collect();
        }
        let is_late = call.state == DialogState::Cancelled;
        call.state = DialogState::Established;
        let ack = self.in_dialog("ACK").expect("the call exists");
        outputs.push(Output::Send(ack.to_string()));
        if is_known {
            if is_late {
                // The answer crossed the CANCEL.
                outputs.extend(self.hang_up(now));
            } else {
                outputs.push(self.established());
            }
        }
    }

    fn established(&self) -> Output {
        let peer = self.call.as_ref().and_then(|call| call.peer.as_ref());
        let address = peer.map_or(std::net::Ipv4Addr::UNSPECIFIED, |peer| peer.address);
        let media = peer.map(|peer| peer.media.clone()).unwrap_or_default();
        Output::Event(Event::Established(address, media))
    }

    pub(super) fn on_request(
        &mut self,
        now: Duration,
        request: &Message,
        outputs: &mut Vec<Output>,
    ) {
        let is_ours = self
            .call
            .as_ref()
            .is_some_and(|call| request.header("Call-ID") == Some(call.id.as_str()));
        match request.method() {
            "INVITE" if !is_ours => self.on_invite(now, request, outputs),
            "ACK" => {
                self.servers.acknowledged(OK);
                if let (true, Some(call)) = (is_ours, &mut self.call)
                    && call.state == DialogState::Early
                {
                    call.state = DialogState::Established;
                    outputs.push(self.established());
                }
            }
            "OPTIONS" => self.respond(request, &request.response(OK, "OK"), outputs),
            "NOTIFY" => self.on_notify(request, outputs),
            "MESSAGE" => {
                self.respond(request, &request.response(OK, "OK"), outputs);
                outputs.push(Output::Event(Event::Message(request.body.clone())));
            }
            _ if !is_ours => {
                let response = request.response(481, "Call Does Not Exist");
                self.respond(request, &response, outputs);
            }
            "PRACK" => {
                self.servers.acknowledged(SESSION_PROGRESS);
                self.respond(request, &request.response(OK, "OK"), outputs);
                self.ring_if_reserved(now, outputs);
            }
            "UPDATE" => self.on_update(now, request, outputs),
            "BYE" => {
                self.respond(request, &request.response(OK, "OK"), outputs);
                self.call = None;
                self.servers.acknowledged(OK);
                outputs.push(Output::Event(Event::Ended { by_other_side: true }));
            }
            "CANCEL" => {
                self.respond(request, &request.response(OK, "OK"), outputs);
                let call = self.call.take().expect("the call is ours");
                self.servers.acknowledged(SESSION_PROGRESS);
                let response = with_tag(&call, 487, "Request Terminated");
                self.respond(&call.invite, &response, outputs);
                outputs.push(Output::Event(Event::Ended { by_other_side: true }));
            }
            _ => {
                let response = request.response(405, "Method Not Allowed");
                self.respond(request, &response, outputs);
            }
        }
    }

    fn on_invite(&mut self, now: Duration, request: &Message, outputs: &mut Vec<Output>) {
        if self.call.is_some() {
            let tag = self.unique("t");
            self.respond(request, &tagged(request.response(486, "Busy Here"), &tag), outputs);
            return;
        }
        let tag = self.unique("t");
        if let OnCall::Refuse(code) = self.account.on_call {
            self.respond(request, &tagged(request.response(code, "Refused"), &tag), outputs);
            return;
        }
        let Ok(offer) = Description::parse(&request.body) else {
            let response = tagged(request.response(488, "Not Acceptable Here"), &tag);
            self.respond(request, &response, outputs);
            return;
        };
        // [RFC3261 §9.1, 17.2.1] The network may take up to seconds for the resources. Until a
        // provisional response has come it cannot send a CANCEL.
        outputs.push(Output::Send(request.response(100, "Trying").to_string()));
        let from = request.header("From").unwrap_or_default().to_owned();
        let contact = request.header("Contact").unwrap_or_default();
        self.call = Some(Call {
            is_caller: false,
            state: DialogState::Early,
            id: request.header("Call-ID").unwrap_or_default().into(),
            local: format!("{};tag={tag}", request.header("To").unwrap_or_default()),
            remote: from.clone(),
            target: uri_of(contact).into(),
            routes: request.list("Record-Route"),
            sequence: 0,
            invite: request.clone(),
            version: 0,
            resources: Resources { local: false, remote: offer.resources.local },
            peer: Some(offer),
            has_rung: false,
            holds: false,
            answer_at: None,
        });
        let caller = request.header("P-Asserted-Identity").unwrap_or(&from);
        outputs.push(Output::Event(Event::Incoming(uri_of(caller).into())));
        let supports = [request.list("Supported"), request.list("Require")].concat();
        if supports.iter().any(|option| option == "100rel") {
            // [RFC3262 §3]
            let sdp = self.description(true);
            let call = self.call.as_ref().expect("the call exists");
            let progress = with_tag(call, SESSION_PROGRESS, "Session Progress")
                .with("Contact", self.contact())
                .with("Require", SUPPORTED)
                .with("RSeq", RSEQ.to_string())
                .with_sdp(sdp);
            self.respond(request, &progress, outputs);
            self.servers.repeat(now, SESSION_PROGRESS, progress.to_string());
        } else {
            let call = self.call.as_mut().expect("the call exists");
            call.resources = Resources { local: true, remote: true };
            self.ring_if_reserved(now, outputs);
        }
    }

    /// The caller has its resources. Ours are there too: the 183 with our answer has passed the
    /// network, and the PRACK came back.
    fn on_update(&mut self, now: Duration, request: &Message, outputs: &mut Vec<Output>) {
        self.read_description(request);
        let call = self.call.as_mut().expect("the caller checks the call");
        call.resources.local = true;
        let sdp = self.description(false);
        let response = request.response(OK, "OK").with("Contact", self.contact()).with_sdp(sdp);
        self.respond(request, &response, outputs);
        if let (true, Some(call)) = (self.is_established(), &self.call) {
            let direction = call.peer.as_ref().map_or("", |peer| &peer.direction);
            outputs.push(Output::Event(Event::Held(direction != "sendrecv")));
        }
        self.ring_if_reserved(now, outputs);
    }

    fn is_established(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.state == DialogState::Established)
    }

    fn ring_if_reserved(&mut self, now: Duration, outputs: &mut Vec<Output>) {
        let Some(call) = &mut self.call else { return };
        let is_reserved = call.resources.local && call.resources.remote;
        // [RFC3312 §8] The user is alerted only when both sides have their resources.
        if !is_reserved || call.has_rung || call.state != DialogState::Early {
            return;
        }
        call.has_rung = true;
        if let OnCall::Answer(after) = self.account.on_call {
            call.answer_at = Some(now + after);
        }
        let invite = call.invite.clone();
        let ringing = with_tag(call, RINGING, "Ringing").with("Contact", self.contact());
        self.respond(&invite, &ringing, outputs);
        outputs.push(Output::Event(Event::Reserved));
    }

    pub(super) fn answer_call(&mut self, now: Duration, outputs: &mut Vec<Output>) {
        let Some(call) = &mut self.call else { return };
        if call.answer_at.is_none_or(|at| at > now) {
            return;
        }
        call.answer_at = None;
        let invite = call.invite.clone();
        let mut response = with_tag(call, OK, "OK");
        let has_answered = call.version > 0;
        response = response.with("Contact", self.contact()).with("Supported", SUPPORTED);
        if !has_answered {
            // Without 100rel the answer stands in the 200.
            response = response.with_sdp(self.description(false));
        }
        self.respond(&invite, &response, outputs);
        self.servers.repeat(now, OK, response.to_string());
    }
}

/// A response to the call's INVITE.
fn with_tag(call: &Call, code: u16, reason: &str) -> Message {
    let tag = parameter_of(&call.local, "tag").unwrap_or_default();
    tagged(call.invite.response(code, reason), tag)
}

fn tagged(mut response: Message, tag: &str) -> Message {
    for (name, value) in &mut response.headers {
        if name == "To" && parameter_of(value, "tag").is_none() {
            value.push_str(&format!(";tag={tag}"));
        }
    }
    response
}

fn invite_sequence(invite: &Message) -> u32 {
    let sequence = invite.header("CSeq").unwrap_or_default();
    sequence.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// The CANCEL of a request ([RFC3261 §9.1]).
fn cancel(invite: &Message) -> Message {
    same_transaction(invite, "CANCEL", invite.header("To").unwrap_or_default())
}

/// The ACK of a refusal.
fn acknowledgement(invite: &Message, to: &str) -> Message {
    same_transaction(invite, "ACK", to)
}

fn same_transaction(invite: &Message, method: &str, to: &str) -> Message {
    let mut request =
        Message { start: invite.start.clone(), headers: Vec::new(), body: String::new() };
    if let crate::sip::Start::Request { method: of, .. } = &mut request.start {
        *of = method.into();
    }
    for name in ["Via", "Max-Forwards", "Route", "From", "Call-ID"] {
        for value in invite.all(name) {
            request = request.with(name, value);
        }
    }
    request.with("To", to).with("CSeq", format!("{} {method}", invite_sequence(invite)))
}
