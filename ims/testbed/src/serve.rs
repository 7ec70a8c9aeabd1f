//! Sockets of the HSS and the PCRF: one thread for each connection.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Context;
use weir_diameter::{HEADER_SIZE, Message, base, frame};
use weir_nodes::hss::Hss;
use weir_nodes::pcrf::{BEARER_RELEASED, Decision, Pcrf};
use weir_nodes::peer::{Connection, Identity, Output, answer, bounded};

use crate::announce::announce;
use crate::args::{Serve, Server};
use crate::layout::{self, DIAMETER_PORT, Files, address, inner_address};
use crate::trace::{Noted, Trace};

/// How often the watchdog looks at a silent connection.
const TICK: Duration = Duration::from_secs(1);
/// Most connections at a time: a stranger that opens more waits.
const MOST_CONNECTIONS: usize = 32;
/// What is read of a line of the control socket.
const LINE_BYTES_MAX: u64 = 1_000;

/// What answers requests.
enum Role {
    Hss { hss: Hss, state: PathBuf },
    Pcrf { pcrf: Pcrf, decisions: Trace },
}

/// What all connections share.
struct Shared {
    identity: Identity,
    role: Mutex<Role>,
    trace: Trace,
    /// The open connections by Origin-Host, to send requests of our own.
    peers: Mutex<BTreeMap<String, Arc<Peer>>>,
    started: Instant,
}

struct Peer {
    connection: Mutex<Connection>,
    stream: TcpStream,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a server until it is ended by a signal.
pub(crate) fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    let folder = layout::folder();
    let (name, application, peers) = match args.server {
        Server::Hss => ("hss", base::CX, vec!["icscf", "scscf"]),
        _ => ("pcrf", base::RX, vec!["pcscf", "epcscf", "af"]),
    };
    let realm = &files.subscribers.realm;
    let identity = Identity {
        host: format!("{name}.{realm}"),
        realm: realm.clone(),
        address: IpAddr::V4(inner_address(name)),
        application,
        peers: peers.iter().map(|peer| format!("{peer}.{realm}")).collect(),
    };
    let role = match args.server {
        Server::Hss => {
            let mut hss = Hss::new(identity.clone(), files.subscribers.clone());
            let state = folder.join("hss.state");
            // A restart does not lose registrations.
            hss.restore(&fs::read_to_string(&state).unwrap_or_default());
            Role::Hss { hss, state }
        }
        _ => Role::Pcrf {
            pcrf: Pcrf::new(identity.clone(), files.policy.clone()),
            decisions: trace(&folder.join("bearers.jsonl"))?,
        },
    };
    let shared = Arc::new(Shared {
        identity,
        role: Mutex::new(role),
        trace: trace(&folder.join(format!("{name}.jsonl")))?,
        peers: Mutex::default(),
        started: Instant::now(),
    });
    let control = folder.join(format!("{name}.control"));
    let _ = fs::remove_file(&control);
    let control = UnixListener::bind(&control).context("cannot open the control socket")?;
    let listener = TcpListener::bind((inner_address(name), DIAMETER_PORT))
        .with_context(|| format!("cannot listen on {}:{DIAMETER_PORT}", inner_address(name)))?;
    let commands = Arc::clone(&shared);
    thread::spawn(move || {
        for stream in control.incoming().filter_map(Result::ok) {
            commands.on_command(stream);
        }
    });
    accept(&listener, &shared);
    Ok(ExitCode::SUCCESS)
}

fn trace(path: &Path) -> anyhow::Result<Trace> {
    Trace::append(path).with_context(|| format!("cannot write {}", path.display()))
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let open = Arc::new(());
    for stream in listener.incoming().filter_map(Result::ok) {
        let Ok(from) = stream.peer_addr() else { continue };
        // A terminal does not come this far: it does not reach the address.
        if !from.ip().is_loopback() || Arc::strong_count(&open) > MOST_CONNECTIONS {
            eprintln!("{from} is refused");
            continue;
        }
        let (shared, count) = (Arc::clone(shared), Arc::clone(&open));
        thread::spawn(move || {
            let why = shared.converse(stream);
            eprintln!("{from} is closed: {why}");
            drop(count);
        });
    }
}

pub(crate) fn is_of_core(from: SocketAddr) -> bool {
    matches!(from.ip(), IpAddr::V4(from) if from.octets()[..3] == address("pcscf").octets()[..3])
}

impl Shared {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Serves one connection to its end. Returns why it ended.
    fn converse(&self, stream: TcpStream) -> String {
        let (Ok(mut input), Ok(())) = (stream.try_clone(), stream.set_read_timeout(Some(TICK)))
        else {
            return "no socket".into();
        };
        let connection = Mutex::new(Connection::accepted(self.identity.clone(), self.now()));
        let peer = Arc::new(Peer { connection, stream });
        let why = self.read(&mut input, &peer);
        let mut peers = lock(&self.peers);
        peers.retain(|_, other| !Arc::ptr_eq(other, &peer));
        why
    }

    fn read(&self, input: &mut TcpStream, peer: &Arc<Peer>) -> String {
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let outputs = match input.read(&mut part) {
                Ok(0) => return "the peer has closed".into(),
                Ok(count) => {
                    bytes.extend_from_slice(&part[..count]);
                    match self.take_messages(&mut bytes, peer) {
                        Ok(outputs) => outputs,
                        Err(why) => return why,
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    lock(&peer.connection).on_time(self.now())
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return error.to_string(),
            };
            for output in outputs {
                match self.carry_out(output, peer) {
                    Ok(None) => {}
                    Ok(Some(why)) => return why,
                    Err(error) => return error.to_string(),
                }
            }
        }
    }

    /// Takes whole messages from the front of the bytes.
    fn take_messages(&self, bytes: &mut Vec<u8>, peer: &Peer) -> Result<Vec<Output>, String> {
        let mut outputs = Vec::new();
        while let Some(length) = frame(bytes).map_err(|error| error.to_string())? {
            if bytes.len() < length {
                break;
            }
            let whole: Vec<u8> = bytes.drain(..length).collect();
            match Message::parse(&whole) {
                Ok(message) => {
                    let mut connection = lock(&peer.connection);
                    outputs.extend(connection.on_message(self.now(), message));
                }
                Err(error) => {
                    // [RFC6733 §7.1.5] The header can still be answered.
                    debug_assert!(whole.len() >= HEADER_SIZE);
                    let header = Message::parse_header(&whole);
                    eprintln!("malformed {}: {error}", header.name());
                    if header.is_request {
                        let code = error.result_code();
                        outputs.push(Output::Send(answer(&self.identity, &header, code)));
                    }
                }
            }
        }
        Ok(outputs)
    }

    /// Does what a connection asks for. Returns why it must be closed, if so.
    fn carry_out(&self, output: Output, peer: &Arc<Peer>) -> std::io::Result<Option<String>> {
        match output {
            Output::Send(message) => self.send(&message, peer)?,
            Output::Opened => {
                let name = lock(&peer.connection).peer().to_owned();
                eprintln!("{name} is connected");
                lock(&self.peers).insert(name, Arc::clone(peer));
            }
            Output::Deliver(message) => {
                let name = lock(&peer.connection).peer().to_owned();
                self.note(&name, &self.identity.host, &message);
                if message.is_request {
                    let answer = self.answer(&message);
                    self.send(&answer, peer)?;
                }
            }
            Output::Close(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    fn answer(&self, request: &Message) -> Message {
        let mut role = lock(&self.role);
        match &mut *role {
            Role::Hss { hss, state } => {
                let mut random = [0; 16];
                getrandom::fill(&mut random).expect("the system has random numbers");
                let answer = hss.on_request(request, random);
                if matches!(request.command, base::SERVER_ASSIGNMENT | base::MULTIMEDIA_AUTH)
                    && let Err(error) = fs::write(&*state, hss.state())
                {
                    eprintln!("cannot write {}: {error}", state.display());
                }
                answer
            }
            Role::Pcrf { pcrf, decisions } => {
                let (mut answer, decision) = pcrf.on_request(request);
                if let Some(decision) = decision {
                    note_decision(decisions, &decision);
                    // Before the answer: what it lets pass finds its bearer.
                    if let Some(said) = announce(&decision) {
                        let name = format!("cell: {said}");
                        decisions.note(&Noted::now(
                            "network",
                            "pcrf",
                            "bearer",
                            name,
                            said.clone(),
                        ));
                        if said.starts_with("refused") {
                            let why = format!("no room in the cell: {said}");
                            let (refusal, decision) = pcrf.withdraw(request, &why);
                            note_decision(decisions, &decision);
                            answer = refusal;
                        }
                    }
                }
                answer
            }
        }
    }

    fn send(&self, message: &Message, peer: &Peer) -> std::io::Result<()> {
        let message = &bounded(&self.identity, message.clone());
        if message.application != base::COMMON {
            let name = lock(&peer.connection).peer().to_owned();
            self.note(&self.identity.host, &name, message);
        }
        (&peer.stream).write_all(&message.to_bytes())
    }

    fn note(&self, from: &str, to: &str, message: &Message) {
        let [from, to] = [from, to].map(|name| name.split('.').next().unwrap_or(name));
        let text = message.to_string();
        let result = message.result().map(|code| format!(" {code}")).unwrap_or_default();
        let name = message.name() + &result;
        self.trace.note(&Noted::now(from, to, "Diameter", name, text));
    }

    /// A line on the control socket: `abort` sends an ASR for each session.
    fn on_command(&self, mut stream: UnixStream) {
        let mut line = String::new();
        let _ = stream.set_read_timeout(Some(TICK));
        let _ = Read::by_ref(&mut stream).take(LINE_BYTES_MAX).read_to_string(&mut line);
        let requests: Vec<Message> = match (&*lock(&self.role), line.trim()) {
            (Role::Pcrf { pcrf, .. }, "abort") => {
                pcrf.sessions().filter_map(|session| pcrf.abort(session, BEARER_RELEASED)).collect()
            }
            _ => Vec::new(),
        };
        let mut sent = 0;
        for request in requests {
            let host = request.text(&weir_diameter::avp::DESTINATION_HOST).unwrap_or_default();
            let Some(peer) = lock(&self.peers).get(host).cloned() else { continue };
            let request = lock(&peer.connection).numbered(request);
            sent += usize::from(self.send(&request, &peer).is_ok());
        }
        let _ = writeln!(stream, "{sent}");
    }
}

/// A line for each change of bearers.
fn note_decision(trace: &Trace, decision: &Decision) {
    let (name, text) = match decision {
        Decision::Install { session, terminal, bearers } => {
            let mut lines = Vec::new();
            for one in bearers {
                let filters: Vec<String> = one.filters.iter().map(ToString::to_string).collect();
                lines.push(format!(
                    "{} QCI {} ARP {} GBR {}/{} MBR {}/{} bit/s up/down [{}]",
                    one.media,
                    one.qci,
                    one.arp,
                    one.gbr_up_bps,
                    one.gbr_down_bps,
                    one.mbr_up_bps,
                    one.mbr_down_bps,
                    filters.join("; ")
                ));
            }
            ("install", format!("{session} {terminal}: {}", lines.join(", ")))
        }
        Decision::Remove { session } => ("remove", session.clone()),
        Decision::Refuse { session, code, why } => ("refuse", format!("{session} {code}: {why}")),
        _ => ("other", String::new()),
    };
    eprintln!("{name} {text}");
    trace.note(&Noted::now("pcrf", "network", "bearer", name.into(), text));
}

/// `weir ims abort`.
pub(crate) fn abort() -> anyhow::Result<ExitCode> {
    let sent = send_abort()?;
    println!("{sent} sessions aborted");
    Ok(ExitCode::SUCCESS)
}

/// Asks the running PCRF to abort all sessions. Returns how many there were.
pub(crate) fn send_abort() -> anyhow::Result<usize> {
    let path = layout::folder().join("pcrf.control");
    let mut stream = UnixStream::connect(&path).context("no PCRF is running: weir ims up")?;
    stream.write_all(b"abort\n")?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(LINE_BYTES_MAX).read_to_string(&mut answer)?;
    answer.trim().parse().context("the PCRF did not answer")
}
