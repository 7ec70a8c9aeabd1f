//! Sockets of a user agent, in the namespace of its terminal.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message as Frame, WebSocket};
use weir_nodes::agent::{Account, Agent, Event, OnCall, Output, Transport};
use weir_nodes::digest::Credentials;
use weir_nodes::sdp::Medium;
use weir_nodes::sip::{self, Start};

use crate::args::SipAccess;
use crate::layout::{
    Files, SIP_PORT, WEBSOCKET_PORT, address, terminal_addresses, terminal_namespace, user_name,
};
use crate::trace::Noted;

/// Kind, port and rate of each medium. Rates of delft's calls, in kbit/s: narrow-band audio, and
/// video of 2.5 Mbit/s.
pub(crate) const MEDIA: [(&str, u16, u32); 2] = [("audio", 40_000, 64), ("video", 40_002, 2500)];

/// Runs a short function on a thread in a named network namespace. Sockets stay in it.
pub(crate) fn enter<R: Send>(
    namespace: &str,
    function: impl FnOnce() -> R + Send,
) -> anyhow::Result<R> {
    let path = Path::new("/run/netns").join(namespace);
    let file =
        File::open(&path).with_context(|| format!("no namespace {namespace}: weir ims up"))?;
    thread::scope(|scope| {
        let entered = scope.spawn(move || {
            move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&file),
                Some(LinkNameSpaceType::Network),
            )
            .map(|()| function())
        });
        let result = entered.join().map_err(|_| anyhow!("a thread in {namespace} failed"))?;
        result.with_context(|| format!("cannot enter {namespace}: weir ims needs root"))
    })
}

/// Time between two attempts to open a WebSocket again.
const AGAIN: Duration = Duration::from_millis(250);
/// How long they are made.
const PATIENCE: Duration = Duration::from_secs(20);

enum Socket {
    Udp(UdpSocket),
    Ws(Box<WebSocket<TcpStream>>),
    /// A WebSocket that was lost, since then.
    Lost(Instant),
}

/// An agent with its socket, its events and its messages.
pub(crate) struct User {
    pub(crate) name: String,
    agent: Agent,
    socket: Socket,
    started: Instant,
    proxy: &'static str,
    pub(crate) events: Vec<Event>,
    pub(crate) messages: Vec<Noted>,
}

impl User {
    /// Opens the socket of a user.
    pub(crate) fn new(
        files: &Files,
        name: &str,
        way: SipAccess,
        on_call: OnCall,
        password: Option<&str>,
        started: Instant,
    ) -> anyhow::Result<Self> {
        let number = files.user(name)?;
        let subscriber = &files.subscribers.subscriber[number];
        let own = terminal_addresses(number).0;
        let namespace = terminal_namespace(name);
        let (proxy, transport) = match way {
            SipAccess::Udp => ("pcscf", Transport::Udp),
            SipAccess::Ws => ("epcscf", Transport::WebSocket),
        };
        let (socket, local, remote) = enter(&namespace, || open(way, own))??;
        let credentials = match (password, &subscriber.password, &subscriber.aka) {
            (Some(other), ..) => Credentials::Password(other.into()),
            (None, Some(password), _) => Credentials::Password(password.clone()),
            (None, None, Some(aka)) => {
                Credentials::Aka(aka.secrets().context("the secrets of AKA cannot be read")?.0)
            }
            (None, None, None) => return Err(anyhow!("{name} has no secret")),
        };
        let account = Account {
            private: subscriber.private.clone(),
            public: subscriber.public[0].clone(),
            credentials,
            realm: files.subscribers.realm.clone(),
            local,
            proxy: remote,
            transport,
            media: MEDIA
                .iter()
                .map(|(kind, port, kbps)| Medium { kind: (*kind).into(), port: *port, kbps: *kbps })
                .collect(),
            on_call,
        };
        let mut seed = [0; 4];
        getrandom::fill(&mut seed).context("no random numbers")?;
        Ok(Self {
            name: user_name(&subscriber.private).into(),
            agent: Agent::new(account, u32::from_be_bytes(seed).into()),
            socket,
            started,
            proxy,
            events: Vec::new(),
            messages: Vec::new(),
        })
    }

    /// Lets the agent do something now.
    pub(crate) fn act(
        &mut self,
        action: impl FnOnce(&mut Agent, Duration) -> Vec<Output>,
    ) -> anyhow::Result<()> {
        let outputs = action(&mut self.agent, self.started.elapsed());
        self.carry_out(outputs)
    }

    /// Reads what has come and repeats what is due.
    pub(crate) fn poll(&mut self) -> anyhow::Result<()> {
        if let Socket::Lost(since) = self.socket {
            return self.reopen(since);
        }
        while let Some(bytes) = self.receive()? {
            if let Ok(message) = sip::Message::parse(&bytes) {
                let noted =
                    Noted::now(self.proxy, &self.name, "SIP", title(&message), message.to_string());
                self.messages.push(noted);
            }
            let outputs = self.agent.on_bytes(self.started.elapsed(), &bytes);
            self.carry_out(outputs)?;
        }
        let outputs = self.agent.on_time(self.started.elapsed());
        self.carry_out(outputs)
    }

    /// Opens a WebSocket that was lost, and registers over it.
    fn reopen(&mut self, since: Instant) -> anyhow::Result<()> {
        thread::sleep(AGAIN);
        match enter(&terminal_namespace(&self.name), || open(SipAccess::Ws, Ipv4Addr::UNSPECIFIED))?
        {
            Ok((socket, local, _)) => {
                self.socket = socket;
                self.act(|agent, now| agent.reconnected(now, local))
            }
            Err(_) if since.elapsed() < PATIENCE => Ok(()),
            Err(error) => Err(error).context("the WebSocket has failed"),
        }
    }

    fn carry_out(&mut self, outputs: Vec<Output>) -> anyhow::Result<()> {
        for output in outputs {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::Send(text) => {
                    if let Ok(message) = sip::Message::parse(text.as_bytes()) {
                        let noted = Noted::now(
                            &self.name,
                            self.proxy,
                            "SIP",
                            title(&message),
                            text.clone(),
                        );
                        self.messages.push(noted);
                    }
                    match &mut self.socket {
                        Socket::Udp(socket) => socket.send(text.as_bytes()).map(|_| ())?,
                        Socket::Ws(socket) => {
                            if socket.send(Frame::text(text)).is_err() {
                                self.socket = Socket::Lost(Instant::now());
                            }
                        }
                        Socket::Lost(_) => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        match &mut self.socket {
            Socket::Udp(socket) => {
                let mut bytes = vec![0; 1 << 16];
                match socket.recv(&mut bytes) {
                    Ok(count) => Ok(Some(bytes[..count].to_vec())),
                    Err(error) if is_nothing(&error) => Ok(None),
                    Err(error) => Err(error).context("cannot receive SIP"),
                }
            }
            Socket::Ws(socket) => match socket.read() {
                Ok(Frame::Text(text)) => Ok(Some(text.as_bytes().to_vec())),
                Ok(Frame::Binary(bytes)) => Ok(Some(bytes.to_vec())),
                Ok(_) => Ok(Some(Vec::new())),
                Err(tungstenite::Error::Io(error)) if is_nothing(&error) => Ok(None),
                Err(_) => {
                    self.socket = Socket::Lost(Instant::now());
                    Ok(None)
                }
            },
            Socket::Lost(_) => Ok(None),
        }
    }

    /// Forgets that the network has confirmed a registration, so that the next confirmation is
    /// seen.
    pub(crate) fn forget_registration(&mut self) {
        self.events.retain(|event| !matches!(event, Event::Registered(_)));
    }

    pub(crate) fn has(&self, is_it: fn(&Event) -> bool) -> bool {
        self.events.iter().any(is_it)
    }
}

fn is_nothing(error: &io::Error) -> bool {
    // A refused datagram is reported at the next read, and is repeated anyway.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused)
}

fn open(way: SipAccess, own: Ipv4Addr) -> anyhow::Result<(Socket, SocketAddrV4, SocketAddrV4)> {
    match way {
        SipAccess::Udp => {
            let remote = SocketAddrV4::new(address("pcscf"), SIP_PORT);
            let local = SocketAddrV4::new(own, SIP_PORT);
            let socket = UdpSocket::bind(local).context("cannot open a socket of the terminal")?;
            socket.connect(remote)?;
            socket.set_nonblocking(true)?;
            Ok((Socket::Udp(socket), local, remote))
        }
        SipAccess::Ws => {
            let remote = SocketAddrV4::new(address("epcscf"), WEBSOCKET_PORT);
            let stream = TcpStream::connect(remote).context("cannot reach the eP-CSCF")?;
            stream.set_nodelay(true)?;
            let local = match stream.local_addr()? {
                std::net::SocketAddr::V4(local) => local,
                std::net::SocketAddr::V6(local) => return Err(anyhow!("{local} is not IPv4")),
            };
            let mut request = format!("ws://{remote}/").into_client_request()?;
            // [RFC7118 §4.1]
            request.headers_mut().insert("Sec-WebSocket-Protocol", "sip".parse()?);
            let (socket, _) = tungstenite::client(request, stream)
                .map_err(|error| anyhow!("the eP-CSCF refuses the WebSocket: {error}"))?;
            socket.get_ref().set_nonblocking(true)?;
            Ok((Socket::Ws(Box::new(socket)), local, remote))
        }
    }
}

/// Method, or status and method.
pub(crate) fn title(message: &sip::Message) -> String {
    match &message.start {
        Start::Request { method, .. } => method.clone(),
        Start::Response { code, .. } => format!("{code} {}", message.method()),
    }
}
