//! Tests the server with scripted peers: the rules of the protocol, and peers that break them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client::client};
use weir::units::Bitrate;
use weir_call::sound::Tap;
use weir_call::{CallSettings, EventKind, Peer, Session};
use weir_scenario::call::Picture;

/// Time limit for an answer. Only a missing answer takes this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of connections without a request.
const WAITING_MAX: usize = 128;
/// Number of messages that a peer may send at once.
const MESSAGES_AT_ONCE: usize = 200;

fn settings() -> CallSettings {
    CallSettings {
        picture: Picture::default(),
        video: [Some(Bitrate::from_kbps(2500)), None],
        offerer: Peer::A,
        audio: [true, true],
        opus: Default::default(),
        relay: None,
        relay_only: false,
        restarts: false,
        restarts_itself: false,
        bridge: None,
        ims: None,
        quality: false,
        drawn: None,
        stats_interval: Duration::from_millis(500),
    }
}

/// A session with one call that is allowed to begin.
fn session() -> Session {
    let session = session_of(vec![settings()]);
    session.release(0);
    session
}

fn session_of(calls: Vec<CallSettings>) -> Session {
    Session::start(vec![TcpListener::bind("127.0.0.1:0").unwrap()], calls).unwrap()
}

/// Splits a page's address into host and path.
fn parts(url: &str) -> (String, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

fn status_of(host: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

struct ScriptedPeer(WebSocket<TcpStream>);

impl ScriptedPeer {
    fn connect(session: &Session, peer: Peer) -> Self {
        let (host, path) = parts(&session.url(0, &[(0, peer)]));
        let stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(client(format!("ws://{host}{path}/socket"), stream).unwrap().0)
    }

    /// A peer that has received its configuration and is ready.
    fn ready(session: &Session, peer: Peer) -> Self {
        let mut scripted = Self::connect(session, peer);
        assert_eq!(scripted.read()["type"], "config");
        scripted.send(json!({"type": "ready"}));
        assert_eq!(event(session), (peer, EventKind::Joined));
        scripted
    }

    fn send(&mut self, message: Value) {
        self.send_text(&message.to_string());
    }

    fn send_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    fn read(&mut self) -> Value {
        serde_json::from_str(self.0.read().unwrap().to_text().unwrap()).unwrap()
    }

    /// Reads the cause that the server sends. Then the connection must be closed.
    fn refusal(mut self) -> String {
        let message = self.read();
        assert_eq!(message["type"], "refused", "{message}");
        assert!(self.0.read().unwrap().is_close());
        message["cause"].as_str().unwrap().to_owned()
    }
}

fn event(session: &Session) -> (Peer, EventKind) {
    let event = session.events().recv_timeout(PATIENCE).unwrap();
    (event.peer, event.kind)
}

/// Sends `text` as the only peer, and returns the cause why it is dropped.
fn misdeed(text: &str) -> String {
    let session = session();
    let mut peer = ScriptedPeer::ready(&session, Peer::A);
    peer.send_text(text);
    let cause = peer.refusal();
    assert_eq!(event(&session), (Peer::A, EventKind::Failed(cause.clone())));
    assert_eq!(event(&session), (Peer::A, EventKind::Left));
    cause
}

#[test]
fn a_page_is_found_only_by_the_token() {
    let session = session();
    let (host, path) = parts(&session.url(0, &[(0, Peer::A)]));
    assert_eq!(status_of(&host, &path), 200);
    let token = path.split('/').nth(1).unwrap();
    assert_eq!(token.len(), 32);
    for wanted in ["call/0/a", "call/0/a/socket", "calls/0a", "call.js", "simulcast.js", "call.css"]
    {
        let wrong = "0".repeat(32);
        assert_ne!(status_of(&host, &format!("/{wrong}/{wanted}")), 200, "{wanted}");
    }
    assert_eq!(status_of(&host, &format!("/{token}/call.js")), 200);
    assert_eq!(status_of(&host, &format!("/{token}/calls/0a-0b")), 200);
    for absent in ["call/1/a", "calls/1a", "calls/", "calls/0a-x", "calls/\u{e9}a"] {
        assert_ne!(status_of(&host, &format!("/{token}/{absent}")), 200, "{absent}");
    }
    assert_eq!(status_of(&host, &format!("/{token}/call/0/c")), 400);
    assert_eq!(status_of(&host, "/"), 404);
}

#[test]
fn a_socket_opens_only_with_the_token() {
    let session = session();
    let (host, _) = parts(&session.url(0, &[(0, Peer::A)]));
    let stream = TcpStream::connect(&host).unwrap();
    let url = format!("ws://{host}/{}/call/0/a/socket", "0".repeat(32));
    assert!(client(url, stream).is_err());
    assert!(session.events().try_recv().is_err());
}

/// Opens the connection for a peer's pictures.
fn pictures_of(session: &Session, peer: Peer) -> WebSocket<TcpStream> {
    let (host, path) = parts(&session.url(0, &[(0, peer)]));
    let stream = TcpStream::connect(&host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client(format!("ws://{host}{path}/pictures"), stream).unwrap().0
}

fn picture(text: &str, pixels: usize) -> Message {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len() + pixels, 7);
    Message::binary(bytes)
}

const FRAME: &str = r#"{"atMs":1500.0,"timestampUs":7,"width":64,"height":2,"blocks":""}"#;

#[test]
fn a_page_that_was_asked_sends_pictures_over_a_connection_of_their_own() {
    let session = session_of(vec![CallSettings { quality: true, ..settings() }]);
    let mut peer = ScriptedPeer::ready(&session, Peer::A);
    let mut pictures = pictures_of(&session, Peer::A);
    pictures.send(picture(FRAME, 128)).unwrap();
    let (Peer::A, EventKind::Picture(received)) = event(&session) else { panic!("a picture") };
    assert_eq!(received.luma.size(), (64, 2));
    // It ends the call that it cannot be trusted with.
    pictures.send(picture(FRAME, 127)).unwrap();
    let (Peer::A, EventKind::Failed(cause)) = event(&session) else { panic!("a failure") };
    assert_eq!(cause, "peer a sent no picture: it has 127 B, not 64 x 2");
    // A second connection would double the number that it may send.
    let mut second = pictures_of(&session, Peer::A);
    let refusal = second.read().unwrap();
    assert!(refusal.to_text().unwrap().contains("twice"), "{refusal}");
    peer.send(json!({"type": "failed", "cause": "x"}));
}

#[test]
fn pictures_that_nobody_asked_for_and_too_many_are_refused() {
    let plain = session();
    let refusal = pictures_of(&plain, Peer::A).read().unwrap();
    assert!(refusal.to_text().unwrap().contains("nobody asked"), "{refusal}");
    let session = session_of(vec![CallSettings { quality: true, ..settings() }]);
    let mut pictures = pictures_of(&session, Peer::A);
    for _ in 0..20 {
        // The server may close before the last.
        let _ = pictures.send(picture(FRAME, 128));
    }
    let mut taken = 0;
    let cause = loop {
        match event(&session) {
            (_, EventKind::Picture(_)) => taken += 1,
            (_, EventKind::Failed(cause)) => break cause,
            other => panic!("{other:?}"),
        }
    };
    assert!((8..16).contains(&taken) && cause.contains("pictures a second"), "{taken} {cause}");
}

#[test]
fn a_page_that_was_asked_sends_the_sound_of_each_tap_once() {
    let session = session_of(vec![CallSettings { quality: true, ..settings() }]);
    let sound_of = |tap: &str| {
        let url = session.url(0, &[(0, Peer::A)]).replace("http", "ws");
        tungstenite::connect(format!("{url}/sound/{tap}")).unwrap().0
    };
    let sound = |bytes| picture(r#"{"rate":48000,"blocks":[[1500.0,7.0,2]]}"#, bytes);
    let mut microphone = sound_of("microphone");
    microphone.send(sound(4)).unwrap();
    let (Peer::A, EventKind::Sound(Tap::Microphone, _)) = event(&session) else { panic!("sound") };
    microphone.send(sound(3)).unwrap();
    let (Peer::A, EventKind::Failed(cause)) = event(&session) else { panic!("a failure") };
    assert_eq!(cause, "peer a sent no sound: it has 3 B for 2 samples of 48000 Hz");
    let refusal = sound_of("microphone").read().unwrap();
    assert!(refusal.to_text().unwrap().contains("twice"), "{refusal}");
}

#[test]
fn two_peers_get_their_roles_and_each_others_messages() {
    let session = session();
    let mut a = ScriptedPeer::connect(&session, Peer::A);
    let config = a.read();
    assert_eq!(config["offers"], true);
    assert_eq!(config["video"], json!({"sends": true, "receives": false}));
    assert_eq!(config["audio"], json!({"sends": true, "receives": true}));
    assert_eq!((&config["codec"], &config["relay"]), (&json!("VP8"), &Value::Null));
    assert_eq!((&config["frameRate"], &config["maxBitrate"]), (&json!(30), &json!(2_500_000)));
    a.send(json!({"type": "ready"}));
    assert_eq!(event(&session), (Peer::A, EventKind::Joined));
    let mut b = ScriptedPeer::ready(&session, Peer::B);
    assert_eq!(a.read(), json!({"type": "start"}));
    assert_eq!(b.read(), json!({"type": "start"}));

    a.send(json!({"type": "offer", "sdp": "v=0 a"}));
    assert_eq!(b.read(), json!({"type": "offer", "sdp": "v=0 a"}));
    b.send(json!({"type": "answer", "sdp": "v=0 b"}));
    assert_eq!(a.read(), json!({"type": "answer", "sdp": "v=0 b"}));
    let candidate = json!({"candidate": "candidate:1", "sdpMid": "0", "sdpMLineIndex": 0,
        "usernameFragment": "u"});
    a.send(json!({"type": "candidate", "candidate": candidate}));
    assert_eq!(b.read(), json!({"type": "candidate", "candidate": candidate}));

    session.stop(0);
    assert_eq!(a.read(), json!({"type": "stop"}));
    assert_eq!(b.read(), json!({"type": "stop"}));
    a.0.close(None).unwrap();
    assert_eq!(event(&session), (Peer::A, EventKind::Left));
}

#[test]
fn a_report_reaches_the_lab() {
    let session = session();
    let mut peer = ScriptedPeer::ready(&session, Peer::B);
    peer.send(json!({"type": "stats", "report": {"inbound": {"timestamp": 1.5,
        "packetsReceived": 2, "packetsLost": -1, "bytesReceived": 3, "headerBytesReceived": 4}}}));
    let (Peer::B, EventKind::Stats(report)) = event(&session) else { panic!("no report") };
    assert_eq!(report.inbound.unwrap().packets_lost, -1);
}

#[test]
fn a_failure_of_the_page_is_one_printable_line() {
    let session = session();
    let mut peer = ScriptedPeer::ready(&session, Peer::A);
    peer.send(json!({"type": "failed", "cause": "no \u{1b}[31mcamera\n"}));
    assert_eq!(event(&session), (Peer::A, EventKind::Failed("peer a: no [31mcamera".into())));
}

#[test]
fn a_peer_that_breaks_the_rules_is_dropped_and_told_why() {
    assert!(misdeed("garbage").contains("not part of the protocol"));
    assert!(misdeed(r#"{"type":"reboot"}"#).contains("not part of the protocol"));
    assert!(misdeed(r#"{"type":"answer","sdp":""}"#).contains("not its turn"));
    assert!(misdeed(r#"{"type":"ready"}"#).contains("twice"));
    assert!(misdeed(&"[".repeat(100_000)).contains("not part of the protocol"));
}

#[test]
fn a_huge_session_description_drops_its_peer_and_spares_the_other() {
    let session = session();
    let mut b = ScriptedPeer::ready(&session, Peer::B);
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    let sdp = "x".repeat(300 * 1024);
    // The server may hang up before it has read everything.
    let _ = a.0.send(Message::text(json!({"type": "offer", "sdp": sdp}).to_string()));
    let (Peer::A, EventKind::Failed(cause)) = event(&session) else { panic!("not dropped") };
    assert!(cause.contains("peer a broke the connection") && cause.len() < 200, "{cause}");
    assert_eq!(event(&session), (Peer::A, EventKind::Left));
    assert_eq!(b.read(), json!({"type": "start"}));
    b.send(json!({"type": "playing", "firstFrame": 1.0}));
    assert_eq!(event(&session), (Peer::B, EventKind::Playing(1.0)));
}

#[test]
fn a_description_over_a_bridge_names_its_peer_to_the_bridge() {
    let bridge = [7, 8].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
    let session = session_of(vec![CallSettings { bridge: Some(bridge), ..settings() }]);
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    a.send(json!({"type": "offer", "sdp": "v=0\r\n"}));
    assert!(a.refusal().contains("without a=ice-ufrag"));
}

#[test]
fn a_second_peer_a_is_refused_and_the_first_stays() {
    let session = session();
    let mut first = ScriptedPeer::ready(&session, Peer::A);
    let second = ScriptedPeer::connect(&session, Peer::A);
    assert!(second.refusal().contains("already joined this call"));
    first.send(json!({"type": "playing", "firstFrame": 12.5}));
    assert_eq!(event(&session), (Peer::A, EventKind::Playing(12.5)));
}

#[test]
fn a_peer_without_a_partner_stays_and_the_absent_one_is_named() {
    let session = session();
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    a.send(json!({"type": "offer", "sdp": "v=0"}));
    assert_eq!(event(&session), (Peer::B, EventKind::Failed("peer b is not connected".into())));
    a.send(json!({"type": "playing", "firstFrame": 1.0}));
    assert_eq!(event(&session), (Peer::A, EventKind::Playing(1.0)));
}

#[test]
fn a_peer_that_floods_the_lab_is_dropped() {
    let session = session();
    let mut peer = ScriptedPeer::ready(&session, Peer::A);
    let report = json!({"type": "stats", "report": {}}).to_string();
    // A second or two may pass during this loop, and each allows 20 more messages.
    for _ in 0..5 * MESSAGES_AT_ONCE {
        if peer.0.send(Message::text(report.as_str())).is_err() {
            break;
        }
    }
    let mut reports = 0;
    let cause = loop {
        match event(&session) {
            (Peer::A, EventKind::Stats(_)) => reports += 1,
            (Peer::A, EventKind::Failed(cause)) => break cause,
            other => panic!("{other:?}"),
        }
    };
    assert!(cause.contains("more than 20 messages a second"), "{cause}");
    // The first message was `ready`.
    assert!((MESSAGES_AT_ONCE - 1..5 * MESSAGES_AT_ONCE).contains(&reports), "{reports}");
    assert_eq!(event(&session), (Peer::A, EventKind::Left));
}

/// Whether the server closes a connection, in whatever way.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn idle_strangers_do_not_keep_peers_out() {
    let session = session();
    let (host, _) = parts(&session.url(0, &[(0, Peer::A)]));
    let idle: Vec<TcpStream> =
        (0..3 * WAITING_MAX).map(|_| TcpStream::connect(&host).unwrap()).collect();
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    let mut b = ScriptedPeer::ready(&session, Peer::B);
    assert_eq!((&a.read()["type"], &b.read()["type"]), (&json!("start"), &json!("start")));
    // The oldest silent connections were closed. Connections with a request were not.
    assert!(idle[..WAITING_MAX].iter().all(is_closed));
    a.send(json!({"type": "playing", "firstFrame": 1.0}));
    assert_eq!(event(&session), (Peer::A, EventKind::Playing(1.0)));
}

#[test]
fn a_request_that_never_ends_is_closed_and_so_is_one_without_the_token() {
    let session = session();
    let (host, path) = parts(&session.url(0, &[(0, Peer::A)]));
    let ask = |text: String| {
        let mut stream = TcpStream::connect(&host).unwrap();
        // The server may hang up before it has read everything.
        let _ = stream.write_all(text.as_bytes());
        stream
    };
    let half = ask(format!("GET {path} HTTP/1.1\r\nHost: x\r\n"));
    let endless = ask(format!("GET {path} HTTP/1.1\r\n{}", "x".repeat(64 * 1024)));
    let mut stranger = ask("GET /call.js HTTP/1.1\r\nHost: x\r\n\r\n".into());
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(is_closed(&endless) && is_closed(&half));
    assert_eq!(status_of(&host, &path), 200);
}

#[test]
fn a_connection_is_for_one_request() {
    let session = session();
    let (host, path) = parts(&session.url(0, &[(0, Peer::A)]));
    // Only the end of the path: the token before it may begin with the same letter.
    let unknown = format!("{}c", path.strip_suffix('a').unwrap());
    for (path, status) in [(path, "200"), (unknown, "400")] {
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
}

#[test]
fn a_report_of_a_megabyte_is_refused() {
    let name = "x".repeat(20 * 1024);
    let text = json!({"type": "stats", "report": {"transport": {"srtpCipher": name}}});
    assert!(misdeed(&text.to_string()).contains("the limit is 16384 B"));
}

#[test]
fn over_a_bridge_no_peer_learns_the_others_address() {
    let bridge = [7, 8].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
    let session = session_of(vec![CallSettings { bridge: Some(bridge), ..settings() }]);
    session.release(0);
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    let mut b = ScriptedPeer::ready(&session, Peer::B);
    assert_eq!((&a.read()["type"], &b.read()["type"]), (&json!("start"), &json!("start")));
    let offer = |rest: &str| json!({"type": "offer", "sdp": format!("a=ice-ufrag:u\r\n{rest}")});
    a.send(offer("a=candidate:1 1 udp 1 10.1.1.1 9 typ host\r\n"));
    assert_eq!(b.read(), offer(""));
    // The bridge accepts checks with this peer's user fragment.
    assert_eq!(event(&session), (Peer::A, EventKind::Described("u".into())));
    let candidate = json!({"candidate": "candidate:9 1 udp 1 x.local 9 typ host", "sdpMid": "0",
        "sdpMLineIndex": 0, "usernameFragment": "u"});
    a.send(json!({"type": "candidate", "candidate": candidate}));
    let told = b.read();
    let expected = "candidate:1 1 udp 2130706431 192.0.2.1 8 typ host";
    assert_eq!(told["candidate"]["candidate"], expected);
    assert_eq!(told["candidate"]["usernameFragment"], "u");
}

#[test]
fn a_call_begins_when_both_are_ready_and_its_time_has_come() {
    let session = session_of(vec![settings(), settings()]);
    let mut a = ScriptedPeer::ready(&session, Peer::A);
    let mut b = ScriptedPeer::ready(&session, Peer::B);
    // Another call, without peers.
    session.release(1);
    session.release(0);
    assert_eq!(a.read(), json!({"type": "start"}));
    assert_eq!(b.read(), json!({"type": "start"}));
    session.stop(0);
    assert_eq!(a.read(), json!({"type": "stop"}));
}

#[test]
fn the_server_ends_with_its_session() {
    let session = session();
    let (host, _) = parts(&session.url(0, &[(0, Peer::A)]));
    let mut peer = ScriptedPeer::ready(&session, Peer::A);
    drop(session);
    assert!(peer.0.read().is_err());
    assert!(TcpStream::connect(&host).is_err());
}
