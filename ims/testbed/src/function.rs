//! The application function of the eP-CSCF: asks the PCRF over Rx for the bearers of browsers'
//! calls.
//!
//! ```text
//!   eP-CSCF -- HTTP: the descriptions of a call --> function -- Rx --> PCRF
//! ```
//!
//! Kamailio posts each description to `/note/SIDE/WHO/CALL`, and that of a response which waits for
//! the bearers to `/authorize/SIDE/WHO/CALL`. SIDE is `orig` or `term`, the leg; WHO is `own` for
//! what the terminal has sent and `other` for what it receives. `/end/SIDE/-/CALL` ends the leg's
//! session. `/keep/SIDE/-/CALL` has the Session-Id of a session that Kamailio has opened itself:
//! the function ends it at `/end` if Kamailio has lost it by a restart, and loses it at `/forget`.
//! CALL is followed by the tags of caller and callee. If the PCRF takes the bearers away (ASR), the
//! function asks the eP-CSCF for the end of the call, by a SIP request.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use weir_diameter::{Message, base, frame};
use weir_nodes::af::{Function, Order};
use weir_nodes::peer::{Connection, Identity, Output};
use weir_nodes::sip;

use crate::layout::{DIAMETER_PORT, FUNCTION_PORT, Files, SIP_PORT, address, inner_address};
use crate::serve::{is_of_core, lock};

/// How long a response of SIP may wait for the PCRF.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two attempts to reach the PCRF, and between looks at the watchdog.
const TICK: Duration = Duration::from_secs(1);
/// Largest body: a description of Chromium has some 10 KiB.
const MOST_BYTES: usize = 65_536;
/// Longest line of a request.
const LINE_BYTES: u64 = 4096;

/// One leg of a call.
#[derive(Default)]
struct Leg {
    own: Option<String>,
    other: Option<String>,
    /// The session of Rx, after the first AAR.
    function: Option<Function>,
    /// Tags of caller and callee.
    tags: [String; 2],
}

struct Shared {
    identity: Identity,
    legs: Mutex<BTreeMap<(String, String), Leg>>,
    pcrf: Mutex<Option<Neighbour>>,
    /// Who waits for an answer, by its Hop-by-Hop Identifier.
    waiting: Mutex<BTreeMap<u32, Sender<Message>>>,
    started: Instant,
}

/// The connection to the PCRF.
struct Neighbour {
    connection: Connection,
    stream: TcpStream,
}

/// Runs the function until it is ended by a signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    let realm = files.subscribers.realm;
    let identity = Identity {
        host: format!("af.{realm}"),
        realm: realm.clone(),
        address: IpAddr::V4(inner_address("af")),
        application: base::RX,
        peers: vec![format!("pcrf.{realm}")],
    };
    let shared = Arc::new(Shared {
        identity,
        legs: Mutex::default(),
        pcrf: Mutex::default(),
        waiting: Mutex::default(),
        started: Instant::now(),
    });
    let listener = TcpListener::bind((address("af"), FUNCTION_PORT))
        .with_context(|| format!("cannot listen on {}:{FUNCTION_PORT}", address("af")))?;
    let to_pcrf = Arc::clone(&shared);
    thread::spawn(move || {
        loop {
            let why = to_pcrf.converse().unwrap_or_else(|error| error.to_string());
            *lock(&to_pcrf.pcrf) = None;
            lock(&to_pcrf.waiting).clear();
            eprintln!("no PCRF: {why}");
            thread::sleep(TICK);
        }
    });
    for stream in listener.incoming().filter_map(Result::ok) {
        // Only the core speaks for calls; terminals reach this address too.
        let Ok(from) = stream.peer_addr() else { continue };
        if !is_of_core(from) {
            eprintln!("{from} is refused");
            continue;
        }
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            if let Err(error) = shared.serve_http(stream) {
                eprintln!("a request failed: {error}");
            }
        });
    }
    Ok(ExitCode::SUCCESS)
}

impl Shared {
    /// Talks to the PCRF as long as the connection stands. Returns why it ended.
    fn converse(self: &Arc<Self>) -> io::Result<String> {
        let mut stream = TcpStream::connect((inner_address("pcrf"), DIAMETER_PORT))?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_nodelay(true)?;
        let (connection, first) = Connection::opened(self.identity.clone(), self.started.elapsed());
        *lock(&self.pcrf) = Some(Neighbour { connection, stream: stream.try_clone()? });
        if let Some(why) = self.carry_out(vec![first])? {
            return Ok(why);
        }
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let mut outputs = Vec::new();
            match stream.read(&mut part) {
                Ok(0) => return Ok("it has closed".into()),
                Ok(count) => bytes.extend_from_slice(&part[..count]),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    outputs.extend(self.with_pcrf(|pcrf, now| pcrf.connection.on_time(now)));
                }
                Err(error) => return Err(error),
            }
            while let Some(length) = frame(&bytes).map_err(io::Error::other)? {
                if bytes.len() < length {
                    break;
                }
                let whole: Vec<u8> = bytes.drain(..length).collect();
                let message = Message::parse(&whole).map_err(io::Error::other)?;
                outputs.extend(
                    self.with_pcrf(|pcrf, now| pcrf.connection.on_message(now, message.clone())),
                );
            }
            if let Some(why) = self.carry_out(outputs)? {
                return Ok(why);
            }
        }
    }

    fn with_pcrf(&self, action: impl Fn(&mut Neighbour, Duration) -> Vec<Output>) -> Vec<Output> {
        let mut pcrf = lock(&self.pcrf);
        pcrf.as_mut().map_or(Vec::new(), |pcrf| action(pcrf, self.started.elapsed()))
    }

    fn carry_out(self: &Arc<Self>, outputs: Vec<Output>) -> io::Result<Option<String>> {
        for output in outputs {
            match output {
                Output::Send(message) => self.send(&message)?,
                Output::Opened => eprintln!("the PCRF is connected"),
                Output::Close(why) => return Ok(Some(why)),
                Output::Deliver(message) if message.is_request => self.on_request(&message)?,
                Output::Deliver(answer) => {
                    if let Some(waiting) = lock(&self.waiting).remove(&answer.hop_by_hop) {
                        let _ = waiting.send(answer);
                    }
                }
            }
        }
        Ok(None)
    }

    fn send(&self, message: &Message) -> io::Result<()> {
        match &mut *lock(&self.pcrf) {
            Some(pcrf) => pcrf.stream.write_all(&message.to_bytes()),
            None => Err(io::Error::other("no PCRF")),
        }
    }

    /// An ASR or a RAR of the PCRF.
    fn on_request(self: &Arc<Self>, request: &Message) -> io::Result<()> {
        let legs = lock(&self.legs);
        let mut answer = None;
        for ((call, side), leg) in &*legs {
            let Some(function) = &leg.function else { continue };
            let (made, order) = function.on_request(request);
            if let Some(order) = order {
                eprintln!("{call} {side}: the PCRF says {order:?}");
                if order == Order::End {
                    let shared = Arc::clone(self);
                    let (call, tags) = (call.clone(), leg.tags.clone());
                    let session = format!("/end/{side}/-/{call}/-/-");
                    thread::spawn(move || {
                        let said = end_call(&call, &tags);
                        eprintln!("the eP-CSCF is asked to end {call}: {said:?}");
                        // The network's own BYE does not pass the eP-CSCF's routes.
                        shared.on_post(&session, "");
                    });
                }
                answer = Some(made);
                break;
            }
            answer.get_or_insert(made);
        }
        drop(legs);
        answer.map_or(Ok(()), |answer| self.send(&answer))
    }

    /// Sends a request of Rx and waits for its answer; `None` if there is none in time.
    fn ask(&self, request: Message) -> Option<Message> {
        let (sender, receiver) = channel();
        let request = {
            let mut pcrf = lock(&self.pcrf);
            let pcrf = pcrf.as_mut().filter(|pcrf| pcrf.connection.is_open())?;
            pcrf.connection.numbered(request)
        };
        lock(&self.waiting).insert(request.hop_by_hop, sender);
        self.send(&request).ok()?;
        let answer = receiver.recv_timeout(PATIENCE).ok();
        lock(&self.waiting).remove(&request.hop_by_hop);
        answer
    }

    fn serve_http(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = || {
            let mut text = String::new();
            reader.by_ref().take(LINE_BYTES).read_line(&mut text)?;
            io::Result::Ok(text)
        };
        let first = line()?;
        let (mut length, mut expects) = (0, false);
        loop {
            let text = line()?.to_ascii_lowercase();
            match text.trim_end().split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                Some(("expect", _)) => expects = true,
                Some(_) => {}
            }
        }
        let mut stream = stream;
        if length > MOST_BYTES {
            return stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        }
        if expects {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let path = first.split(' ').nth(1).unwrap_or_default();
        let status = self.on_post(path, &String::from_utf8_lossy(&body));
        let reason = if status == 200 { "OK" } else { "No" };
        write!(
            stream,
            "HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    }

    /// What the eP-CSCF tells or asks. Returns a status of HTTP.
    fn on_post(&self, path: &str, body: &str) -> u16 {
        let words: Vec<&str> = path.split('/').collect();
        let ["", action, side, who, call, from_tag, to_tag] = words[..] else { return 404 };
        let key = (call.to_owned(), side.to_owned());
        if action == "forget" {
            lock(&self.legs).remove(&key);
            return 200;
        }
        if action == "keep" {
            // The same Session-Id comes again with each answer of the call.
            let function = Function::of_session(self.identity.clone(), body.trim());
            lock(&self.legs).entry(key).or_default().function = Some(function);
            return 200;
        }
        if action == "end" {
            let leg = lock(&self.legs).remove(&key);
            let request = leg.and_then(|leg| leg.function).map(|function| function.terminate());
            return if request.is_none_or(|request| self.ask(request).is_some()) {
                200
            } else {
                503
            };
        }
        let request = {
            let mut legs = lock(&self.legs);
            let leg = legs.entry(key).or_default();
            match who {
                "own" => leg.own = Some(body.to_owned()),
                "other" => leg.other = Some(body.to_owned()),
                _ => return 404,
            }
            if action == "note" {
                return 200;
            }
            if leg.function.is_none() {
                leg.tags = [from_tag.into(), to_tag.into()];
            }
            let Some(own) = &leg.own else { return 400 };
            let Some(terminal) = terminal(own) else { return 400 };
            let session = format!("{call};{side}");
            let function = leg
                .function
                .get_or_insert_with(|| Function::new(self.identity.clone(), &session, terminal));
            function.authorize(own, leg.other.as_deref())
        };
        match self.ask(request) {
            Some(answer) if answer.result() == Some(base::SUCCESS) => 200,
            Some(_) => 403,
            None => 503,
        }
    }
}

/// Asks the eP-CSCF to end a call, by a request with the names of its dialog. Returns the first
/// line of the response.
fn end_call(call: &str, [from, to]: &[String; 2]) -> io::Result<String> {
    let (own, proxy) = (address("af"), address("epcscf"));
    let socket = UdpSocket::bind((own, 0))?;
    let port = socket.local_addr()?.port();
    socket.set_read_timeout(Some(PATIENCE))?;
    let request = sip::Message::request("INFO", &format!("sip:bearer-lost@{proxy}"))
        .with("Via", format!("SIP/2.0/UDP {own}:{port};branch=z9hG4bK{port}"))
        .with("Max-Forwards", "1")
        .with("From", format!("<sip:{own}>;tag={from}"))
        .with("To", format!("<sip:{proxy}>;tag={to}"))
        .with("Call-ID", call)
        .with("CSeq", "1 INFO");
    socket.send_to(request.to_string().as_bytes(), (proxy, SIP_PORT))?;
    let mut bytes = [0; 2048];
    let count = socket.recv(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The address of the first `c=` of a description.
fn terminal(sdp: &str) -> Option<Ipv4Addr> {
    sdp.lines().find_map(|line| line.trim_end().strip_prefix("c=IN IP4 ")?.parse().ok())
}
