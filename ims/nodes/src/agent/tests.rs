//! Two agents, joined without a network between them.

use super::*;
use crate::sip::uri_of;

const NOW: Duration = Duration::ZERO;

fn account(name: &str, last: u8, on_call: OnCall) -> Account {
    let medium = |kind: &str, port, kbps| Medium { kind: kind.into(), port, kbps };
    Account {
        private: format!("{name}@ims.test"),
        public: format!("sip:{name}@ims.test"),
        credentials: Credentials::Password("secret".into()),
        realm: "ims.test".into(),
        local: SocketAddrV4::new(Ipv4Addr::new(10, 46, 1, last), 5060),
        proxy: SocketAddrV4::new(Ipv4Addr::new(10, 46, 0, 1), 5060),
        transport: Transport::Udp,
        media: vec![medium("audio", 4000, 64), medium("video", 4002, 2000)],
        on_call,
    }
}

/// Both agents, the methods and codes on the wire, and the events of each.
struct Pair {
    agents: [Agent; 2],
    wire: Vec<String>,
    events: [Vec<Event>; 2],
}

impl Pair {
    fn new(on_call: OnCall) -> Self {
        let alice = Agent::new(account("alice", 1, OnCall::Ring), 1);
        let bob = Agent::new(account("bob", 2, on_call), 2);
        Self { agents: [alice, bob], wire: Vec::new(), events: [Vec::new(), Vec::new()] }
    }

    /// Delivers until nothing is sent any more.
    fn deliver(&mut self, from: usize, now: Duration, outputs: Vec<Output>) {
        let mut queue: Vec<(usize, Output)> = outputs.into_iter().map(|one| (from, one)).collect();
        while !queue.is_empty() {
            let (from, output) = queue.remove(0);
            match output {
                Output::Event(event) => self.events[from].push(event),
                Output::Send(text) => {
                    let message = Message::parse(text.as_bytes()).unwrap();
                    let name = match message.code() {
                        Some(code) => format!("{code} {}", message.method()),
                        None => message.method().to_owned(),
                    };
                    self.wire.push(name);
                    let to = 1 - from;
                    let outputs = self.agents[to].on_bytes(now, text.as_bytes());
                    queue.extend(outputs.into_iter().map(|one| (to, one)));
                }
            }
        }
    }

    fn call(&mut self) {
        let outputs = self.agents[0].call(NOW, "sip:bob@ims.test");
        self.deliver(0, NOW, outputs);
    }

    fn time(&mut self, agent: usize, now: Duration) {
        let outputs = self.agents[agent].on_time(now);
        self.deliver(agent, now, outputs);
    }
}

// [RFC3312 §13]
#[test]
fn a_call_rings_only_after_both_sides_have_their_resources() {
    let mut pair = Pair::new(OnCall::Answer(Duration::from_secs(1)));
    pair.call();
    let order = "INVITE, 100 INVITE, 183 INVITE, PRACK, 200 PRACK, UPDATE, 200 UPDATE, 180 INVITE";
    assert_eq!(pair.wire.join(", "), order);
    assert_eq!(pair.events[0], [Event::Reserved, Event::Ringing]);
    pair.wire.clear();
    pair.time(1, Duration::from_secs(1));
    assert_eq!(pair.wire, ["200 INVITE", "ACK"]);
    let media = account("", 0, OnCall::Ring).media;
    let established = |last| Event::Established(Ipv4Addr::new(10, 46, 1, last), media.clone());
    assert_eq!(pair.events[0].last(), Some(&established(2)));
    assert_eq!(pair.events[1].last(), Some(&established(1)));
    pair.wire.clear();
    let outputs = pair.agents[1].hang_up(NOW);
    pair.deliver(1, NOW, outputs);
    assert_eq!(pair.wire, ["BYE", "200 BYE"]);
    assert_eq!(pair.events[0].last(), Some(&Event::Ended { by_other_side: true }));
    assert_eq!(pair.events[1].last(), Some(&Event::Ended { by_other_side: false }));
}

// [RFC3264 §6.1]
#[test]
fn who_is_held_sends_nothing_until_it_is_taken_back() {
    let mut pair = Pair::new(OnCall::Answer(Duration::ZERO));
    // Nobody is held before the call stands.
    assert_eq!(pair.agents[0].hold(NOW, true), []);
    pair.call();
    pair.time(1, NOW);
    for holds in [true, false] {
        pair.wire.clear();
        let outputs = pair.agents[0].hold(NOW, holds);
        let [Output::Send(update)] = &outputs[..] else { panic!("{outputs:?}") };
        let direction = if holds { "a=sendonly" } else { "a=sendrecv" };
        assert!(update.contains(direction), "{update}");
        pair.deliver(0, NOW, outputs);
        assert_eq!(pair.wire, ["UPDATE", "200 UPDATE"]);
        for events in &pair.events {
            assert_eq!(events.last(), Some(&Event::Held(holds)));
        }
    }
}

// [RFC3261 §9]
#[test]
fn a_caller_that_gives_up_cancels() {
    let mut pair = Pair::new(OnCall::Ring);
    pair.call();
    pair.wire.clear();
    let outputs = pair.agents[0].hang_up(NOW);
    pair.deliver(0, NOW, outputs);
    assert_eq!(pair.wire, ["CANCEL", "200 CANCEL", "487 INVITE", "ACK"]);
    assert_eq!(pair.events[0].last(), Some(&Event::Failed(487)));
    assert!(pair.agents.iter().all(|agent| agent.call.is_none()));
}

#[test]
fn a_callee_may_refuse() {
    let mut pair = Pair::new(OnCall::Refuse(486));
    pair.call();
    assert_eq!(pair.wire, ["INVITE", "486 INVITE", "ACK"]);
    assert_eq!(pair.events[0], [Event::Failed(486)]);
}

// [RFC3261 §17.1.2.2], [RFC3262 §3]
#[test]
fn requests_and_reliable_responses_are_repeated_until_they_are_answered() {
    let mut alice = Agent::new(account("alice", 1, OnCall::Ring), 1);
    let first = alice.register(NOW, 600);
    let next = alice.next_time().unwrap();
    assert_eq!(next, Duration::from_millis(500));
    assert_eq!(alice.on_time(next), first);
    assert_eq!(alice.next_time(), Some(Duration::from_millis(1500)));
    let last = alice.on_time(Duration::from_secs(32));
    assert_eq!(last.last(), Some(&Output::Event(Event::NotRegistered("no answer".into()))));

    let mut bob = Agent::new(account("bob", 2, OnCall::Ring), 2);
    let [Output::Send(invite)] = &alice.call(NOW, "sip:bob@ims.test")[..] else { panic!() };
    let outputs = bob.on_bytes(NOW, invite.as_bytes());
    // The first one is the 100.
    let mut sent = outputs.iter().filter(|one| matches!(one, Output::Send(_)));
    let progress = sent.nth(1).unwrap().clone();
    assert_eq!(bob.on_time(Duration::from_millis(500)), std::slice::from_ref(&progress));
    // The INVITE again: the same response again, and no second call.
    assert_eq!(bob.on_bytes(NOW, invite.as_bytes()), [progress]);
}

// [TS 24.229 §5.1.1]
#[test]
fn a_registration_answers_one_challenge_and_keeps_the_service_route() {
    let mut alice = Agent::new(account("alice", 1, OnCall::Ring), 1);
    let sent = |outputs: &[Output]| {
        let Output::Send(text) = &outputs[0] else { panic!("{outputs:?}") };
        Message::parse(text.as_bytes()).unwrap()
    };
    let first = sent(&alice.register(NOW, 600));
    assert!(first.header("Authorization").unwrap().contains("username=\"alice@ims.test\""));
    let challenge = "Digest realm=\"ims.test\",nonce=\"n\",algorithm=MD5,qop=\"auth\"";
    let refusal = |request: &Message| {
        request.response(401, "Unauthorized").with("WWW-Authenticate", challenge).to_string()
    };
    let second = sent(&alice.on_bytes(NOW, refusal(&first).as_bytes()));
    assert!(second.header("Authorization").unwrap().contains("nonce=\"n\""));
    let wrong = alice.on_bytes(NOW, refusal(&second).as_bytes());
    assert_eq!(wrong, [Output::Event(Event::NotRegistered("status 401".into()))]);

    // A new nonce is answered, once.
    let first = sent(&alice.register(NOW, 600));
    let second = sent(&alice.on_bytes(NOW, refusal(&first).as_bytes()));
    let again = |request: &Message, nonce: &str| refusal(request).replace("\"n\"", nonce);
    let third = sent(&alice.on_bytes(NOW, again(&second, "\"m\"").as_bytes()));
    assert!(third.header("Authorization").unwrap().contains("nonce=\"m\""));
    let wrong = alice.on_bytes(NOW, again(&third, "\"o\"").as_bytes());
    assert_eq!(wrong, [Output::Event(Event::NotRegistered("status 401".into()))]);

    let third = sent(&alice.register(NOW, 600));
    let ok = third
        .response(200, "OK")
        .with("Service-Route", "<sip:orig@scscf;lr>")
        .with("P-Associated-URI", "<sip:alice@ims.test>, <tel:+1>")
        .to_string();
    let registered = Event::Registered(vec!["sip:alice@ims.test".into(), "tel:+1".into()]);
    assert_eq!(alice.on_bytes(NOW, ok.as_bytes()), [Output::Event(registered)]);
    let invite = sent(&alice.call(NOW, "sip:bob@ims.test"));
    let routes: Vec<String> =
        invite.list("Route").iter().map(|one| uri_of(one).to_owned()).collect();
    assert_eq!(routes, ["sip:10.46.0.1:5060;lr", "sip:orig@scscf;lr"]);
}

#[test]
fn what_is_no_message_is_left_out() {
    let mut alice = Agent::new(account("alice", 1, OnCall::Ring), 1);
    for bytes in [&b"\r\n\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff, 0xfe]] {
        assert_eq!(alice.on_bytes(NOW, bytes), []);
    }
}
