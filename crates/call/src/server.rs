//! The lab's server: hands the call page to two browsers and carries the signalling between them.
//!
//! It runs on one thread of its own, on listeners that are made inside the network namespaces of
//! the browsers. Each browser talks to the lab over the loopback device of its own namespace, so
//! signalling neither loads the emulated path nor offers the media a second one.
//!
//! Whoever knows the token of the session can join, so a peer is not trusted: its messages are
//! bounded and checked, and one that breaks the rules is dropped with its cause in an event.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{mpsc, oneshot};

use crate::message::{LabMessage, Peer, PeerMessage, SetupTimes, VideoConfig, printable};
use crate::stats::StatsReport;

/// The longest message of a peer. A session description is about 6 KiB, a report 3 KiB.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Messages that may wait for a peer: its partner's candidates, some tens at the very most.
const OUTBOX_MESSAGES: usize = 256;
/// Events that may wait for the lab: minutes of reports from both peers.
const EVENTS_MAX: usize = 1024;
/// Until a full channel of events is tried again with one that must not be lost.
const EVENT_RETRY: Duration = Duration::from_millis(10);

const PAGE: &str = include_str!("../page/index.html");
const SCRIPT: &str = include_str!("../page/call.js");
const STYLE: &str = include_str!("../page/call.css");

/// What the server tells both pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// The camera and the limit of the encoder.
    pub video: VideoConfig,
    /// Whether peer b sends video too.
    pub two_way: bool,
    /// Time between two `getStats` reports.
    pub stats_interval: Duration,
}

/// Something that a peer did.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When the lab learned of it.
    pub at: Instant,
    /// Who.
    pub peer: Peer,
    /// What.
    pub kind: EventKind,
}

/// What a peer did.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// It opened the page, and its camera delivers where it sends.
    Joined,
    /// Media can flow.
    Connected(SetupTimes),
    /// It shows the first frame of the other peer: ms since its page was opened.
    Playing(f64),
    /// It reported its statistics.
    Stats(Box<StatsReport>),
    /// It gave up, or was dropped; the cause is one line.
    Failed(String),
    /// Its connection to the lab has ended.
    Left,
}

/// One call between two peers: the server, and the channel of its events.
#[derive(Debug)]
pub struct Session {
    token: String,
    addresses: Vec<SocketAddr>,
    events: Receiver<Event>,
    call: Arc<Call>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Serves one call on `listeners` until it is dropped.
    ///
    /// # Errors
    /// Where the system gives no random bytes, no thread or no event loop.
    pub fn start(listeners: Vec<TcpListener>, config: PageConfig) -> io::Result<Self> {
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        let token = random_token()?;
        let (event_sender, events) = sync_channel(EVENTS_MAX);
        let call = Arc::new(Call {
            token: token.clone(),
            config,
            events: event_sender,
            seats: Mutex::new(Default::default()),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners = {
            let _guard = runtime.enter();
            listeners.into_iter().map(into_tokio).collect::<io::Result<Vec<_>>>()?
        };
        let (shutdown, stopped) = oneshot::channel();
        let router = router(call.clone());
        let serve = move || {
            runtime.block_on(async move {
                for listener in listeners {
                    let serving = axum::serve(listener, router.clone());
                    tokio::spawn(async move { serving.await });
                }
                // An error means that the session is gone without a word: stop as well.
                let _ = stopped.await;
            });
        };
        let thread = std::thread::Builder::new().name("weir-call".into()).spawn(serve)?;
        Ok(Self { token, addresses, events, call, shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// The address of a peer's page at the listener with this index.
    pub fn url(&self, listener: usize, peer: Peer) -> String {
        format!("http://{}/{}/peer/{}", self.addresses[listener], self.token, peer.name())
    }

    /// What the peers do, in the order in which the lab learned of it.
    pub fn events(&self) -> &Receiver<Event> {
        &self.events
    }

    /// Asks both peers to report a last time and to end the call.
    pub fn stop(&self) {
        for peer in Peer::ALL {
            // A peer that is gone or does not read needs no request to stop.
            let _ = self.call.send(peer, LabMessage::Stop);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed there; a second one in a drop would abort.
            let _ = thread.join();
        }
    }
}

fn into_tokio(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// 128 bits of the system's randomness, in hexadecimal.
fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn router(call: Arc<Call>) -> Router {
    Router::new()
        .route("/{token}/peer/{peer}", get(page))
        .route("/{token}/peer/{peer}/socket", get(socket))
        .route("/{token}/call.js", get(script))
        .route("/{token}/call.css", get(style))
        .with_state(call)
}

async fn page(call: State<Arc<Call>>, Path((token, _)): Path<(String, Peer)>) -> Response {
    call.asset(&token, "text/html; charset=utf-8", PAGE)
}

async fn script(call: State<Arc<Call>>, Path(token): Path<String>) -> Response {
    call.asset(&token, "text/javascript; charset=utf-8", SCRIPT)
}

async fn style(call: State<Arc<Call>>, Path(token): Path<String>) -> Response {
    call.asset(&token, "text/css; charset=utf-8", STYLE)
}

async fn socket(
    State(call): State<Arc<Call>>,
    Path((token, peer)): Path<(String, Peer)>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if token != call.token {
        return StatusCode::NOT_FOUND.into_response();
    }
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| serve_peer(call, peer, socket))
}

/// The call that all connections share.
#[derive(Debug)]
struct Call {
    token: String,
    config: PageConfig,
    events: SyncSender<Event>,
    seats: Mutex<[Seat; 2]>,
}

/// What the lab knows of one peer.
#[derive(Debug, Default)]
struct Seat {
    /// A seat is taken once in a call: a page that is opened again is not the peer that left.
    taken: bool,
    ready: bool,
    /// It has described its side of the session.
    described: bool,
    outbox: Option<mpsc::Sender<LabMessage>>,
}

/// Why a peer is dropped: one line, safe to print.
type Misdeed = String;

impl Call {
    fn asset(&self, token: &str, content_type: &'static str, body: &'static str) -> Response {
        if token != self.token {
            return StatusCode::NOT_FOUND.into_response();
        }
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_SECURITY_POLICY, "default-src 'self'"),
            // The address holds the token.
            (header::REFERRER_POLICY, "no-referrer"),
        ];
        (headers, body).into_response()
    }

    fn seats(&self) -> MutexGuard<'_, [Seat; 2]> {
        self.seats.lock().expect("no code panics while it holds the seats")
    }

    fn emit(&self, peer: Peer, kind: EventKind) -> Result<(), Misdeed> {
        let event = Event { at: Instant::now(), peer, kind };
        self.events.try_send(event).map_err(|_| format!("{peer} sends faster than the lab reads"))
    }

    /// Emits an event that must not be lost, however far behind the lab is.
    async fn announce(&self, peer: Peer, kind: EventKind) {
        let mut event = Event { at: Instant::now(), peer, kind };
        while let Err(TrySendError::Full(unsent)) = self.events.try_send(event) {
            event = unsent;
            tokio::time::sleep(EVENT_RETRY).await;
        }
    }

    fn send(&self, peer: Peer, message: LabMessage) -> Result<(), Misdeed> {
        let seats = self.seats();
        let Some(outbox) = &seats[peer.index()].outbox else {
            return Err(format!("{peer} is not there"));
        };
        outbox.try_send(message).map_err(|_| format!("{peer} does not read its messages"))
    }

    /// Gives the seat of `peer` to a connection; its messages will come out of the receiver.
    fn join(&self, peer: Peer) -> Result<mpsc::Receiver<LabMessage>, Misdeed> {
        let (outbox, messages) = mpsc::channel(OUTBOX_MESSAGES);
        {
            let seat = &mut self.seats()[peer.index()];
            if seat.taken {
                return Err(format!("{peer} has joined this call already"));
            }
            *seat = Seat { taken: true, outbox: Some(outbox), ..Seat::default() };
        }
        let PageConfig { video, two_way, stats_interval } = self.config;
        let config = LabMessage::Config {
            offers: peer == Peer::A,
            sends: two_way || peer == Peer::A,
            receives: two_way || peer == Peer::B,
            width: video.width,
            height: video.height,
            frame_rate: video.frame_rate,
            max_bitrate: video.max_bitrate.as_bps(),
            stats_interval: u64::try_from(stats_interval.as_millis()).unwrap_or(u64::MAX),
        };
        self.send(peer, config)?;
        Ok(messages)
    }

    async fn leave(&self, peer: Peer) {
        self.seats()[peer.index()].outbox = None;
        self.announce(peer, EventKind::Left).await;
    }

    fn on_message(&self, peer: Peer, message: PeerMessage) -> Result<(), Misdeed> {
        match message {
            PeerMessage::Ready => self.on_ready(peer),
            PeerMessage::Offer { sdp } if peer == Peer::A => {
                self.describe(peer, LabMessage::Offer { sdp })
            }
            PeerMessage::Answer { sdp } if peer == Peer::B => {
                self.describe(peer, LabMessage::Answer { sdp })
            }
            PeerMessage::Offer { .. } => {
                Err(format!("{peer} sent an offer, which is not its turn"))
            }
            PeerMessage::Answer { .. } => {
                Err(format!("{peer} sent an answer, which is not its turn"))
            }
            PeerMessage::Candidate { candidate } => {
                self.relay(peer, LabMessage::Candidate { candidate })
            }
            PeerMessage::Connected { setup } => self.emit(peer, EventKind::Connected(setup)),
            PeerMessage::Playing { first_frame } => {
                self.emit(peer, EventKind::Playing(first_frame))
            }
            PeerMessage::Stats { report } => self.emit(peer, EventKind::Stats(report)),
            PeerMessage::Failed { cause } => {
                self.emit(peer, EventKind::Failed(format!("{peer}: {}", printable(&cause))))
            }
        }
    }

    fn on_ready(&self, peer: Peer) -> Result<(), Misdeed> {
        let all_ready = {
            let mut seats = self.seats();
            if std::mem::replace(&mut seats[peer.index()].ready, true) {
                return Err(format!("{peer} said twice that it is ready"));
            }
            seats.iter().all(|seat| seat.ready)
        };
        self.emit(peer, EventKind::Joined)?;
        if all_ready {
            self.send(peer, LabMessage::Start)?;
            self.relay(peer, LabMessage::Start)?;
        }
        Ok(())
    }

    fn describe(&self, peer: Peer, description: LabMessage) -> Result<(), Misdeed> {
        if std::mem::replace(&mut self.seats()[peer.index()].described, true) {
            return Err(format!("{peer} described its session twice"));
        }
        self.relay(peer, description)
    }

    /// Passes a message of `from` to the other peer.
    fn relay(&self, from: Peer, message: LabMessage) -> Result<(), Misdeed> {
        let Err(cause) = self.send(from.other(), message) else { return Ok(()) };
        // The fault is the other peer's, or that it has left: the one who speaks stays.
        self.emit(from.other(), EventKind::Failed(cause))
    }
}

async fn serve_peer(call: Arc<Call>, peer: Peer, mut socket: WebSocket) {
    let messages = match call.join(peer) {
        Ok(messages) => messages,
        Err(cause) => return refuse(socket, cause).await,
    };
    if let Err(cause) = converse(&call, peer, &mut socket, messages).await {
        // Neither a slow lab nor a peer that does not listen keeps the other from knowing.
        let failed = EventKind::Failed(cause.clone());
        tokio::join!(call.announce(peer, failed), refuse(socket, cause));
    }
    call.leave(peer).await;
}

/// Carries messages both ways until the peer leaves (`Ok`) or breaks a rule.
async fn converse(
    call: &Call,
    peer: Peer,
    socket: &mut WebSocket,
    mut messages: mpsc::Receiver<LabMessage>,
) -> Result<(), Misdeed> {
    loop {
        tokio::select! {
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                if socket.send(text(&message)).await.is_err() {
                    return Ok(());
                }
            }
            incoming = socket.recv() => match incoming {
                None | Some(Ok(Message::Close(_))) => return Ok(()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(text))) => {
                    let message = serde_json::from_str(&text).map_err(|error| {
                        let error = printable(&error.to_string());
                        format!("{peer} sent a message that is not of the protocol: {error}")
                    })?;
                    call.on_message(peer, message)?;
                }
                Some(Ok(Message::Binary(_))) => {
                    return Err(format!("{peer} sent a binary message; the protocol has none"));
                }
                Some(Err(error)) => {
                    let error = printable(&error.to_string());
                    return Err(format!("{peer} broke the connection: {error}"));
                }
            }
        }
    }
}

/// Says why, and closes. A peer that does not listen is closed all the same.
async fn refuse(mut socket: WebSocket, cause: Misdeed) {
    let _ = socket.send(text(&LabMessage::Refused { cause })).await;
    let frame = CloseFrame { code: close_code::POLICY, reason: "refused".into() };
    let _ = socket.send(Message::Close(Some(frame))).await;
}

fn text(message: &LabMessage) -> Message {
    let json = serde_json::to_string(message).expect("a message has only text keys");
    Message::Text(json.into())
}
