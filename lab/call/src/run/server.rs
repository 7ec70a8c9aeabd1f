//! The lab's server: serves the call page to the browsers and carries the signalling of their
//! calls.
//!
//! It runs on its own thread, with listeners inside the network namespaces of the browsers. Each
//! browser talks to the lab over the loopback device of its own namespace. So signalling does not
//! load the emulated path, and media has no second path.
//!
//! All paths begin with the token of the session; a client without it gets nothing.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use crate::measure::quality::picture::PICTURE_BYTES_MAX;
use crate::measure::sound::recording::{SOUND_BYTES_MAX, Tap};
use crate::message::{CallSettings, Peer};
use crate::peers::agent::Agent;
use crate::run::signalling::{Call, Event, MESSAGE_BYTES_MAX};
use crate::run::token_listener::{ReachedAt, TokenListener};

/// Capacity of the event channel: minutes of reports from several peers.
const EVENTS_MAX: usize = 1024;

const PAGE: &str = include_str!("../../page/index.html");
const SCRIPT: &str = include_str!("../../page/call.js");
const WIC: &str = include_str!("../../page/wic.js");
const SIMULCAST: &str = include_str!("../../page/simulcast.js");
const QUALITY: &str = include_str!("../../page/quality.js");
const FRAMES: &str = include_str!("../../page/frames.js");
const CAMERA: &str = include_str!("../../page/camera.js");
const QUALITY_WORKER: &str = include_str!("../../page/quality-worker.js");
const OPUS: &str = include_str!("../../page/opus.js");
const SOUND: &str = include_str!("../../page/sound.js");
const SOUND_WORKER: &str = include_str!("../../page/sound-worker.js");
const STYLE: &str = include_str!("../../page/call.css");

/// A session of calls between two peers each: the server and its channel of events.
#[derive(Debug)]
pub struct Session {
    addresses: Vec<SocketAddr>,
    events: Receiver<Event>,
    shared: Arc<Shared>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all connections.
#[derive(Debug)]
struct Shared {
    token: String,
    calls: Vec<Call>,
}

impl Session {
    /// Serves calls on `listeners` until the session is dropped.
    ///
    /// # Errors
    /// If the system provides no random bytes, thread or event loop.
    pub fn start(listeners: Vec<TcpListener>, calls: Vec<CallSettings>) -> io::Result<Self> {
        Self::with_agents(listeners, calls, Vec::new())
    }

    /// Like [`start`](Session::start), with agents that take the seats of programs without a page.
    pub(crate) fn with_agents(
        listeners: Vec<TcpListener>,
        calls: Vec<CallSettings>,
        agents: Vec<Agent>,
    ) -> io::Result<Self> {
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        let token = random_token()?;
        let (event_sender, events) = sync_channel(EVENTS_MAX);
        let calls = calls.into_iter().enumerate();
        let calls = calls.map(|(index, call)| Call::new(index, call, event_sender.clone()));
        let shared = Arc::new(Shared { token, calls: calls.collect() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners = {
            let _guard = runtime.enter();
            listeners.into_iter().map(into_tokio).collect::<io::Result<Vec<_>>>()?
        };
        let (shutdown, stopped) = oneshot::channel();
        let router = router(shared.clone());
        let seated = shared.clone();
        let thread = std::thread::Builder::new().name("weir-call".into()).spawn(move || {
            runtime.block_on(async move {
                let service = router.into_make_service_with_connect_info::<ReachedAt>();
                for listener in listeners {
                    let serving =
                        axum::serve(TokenListener::new(listener, &seated.token), service.clone());
                    tokio::spawn(async move { serving.await });
                }
                for agent in agents {
                    let shared = seated.clone();
                    tokio::spawn(async move { agent.run(&shared.calls).await });
                }
                // An error means that the session was dropped: stop, too.
                let _ = stopped.await;
            });
        });
        let (shutdown, thread) = (Some(shutdown), Some(thread?));
        Ok(Self { addresses, events, shared, shutdown, thread })
    }

    /// The page address at this listener (by index) for a browser with these seats: index of each
    /// call, and the browser's role in it.
    pub fn url(&self, listener: usize, seats: &[(usize, Peer)]) -> String {
        self.url_at(self.addresses[listener].ip(), listener, seats)
    }

    /// Like [`url`](Session::url), for a listener with several addresses.
    pub(crate) fn url_at(&self, ip: IpAddr, listener: usize, seats: &[(usize, Peer)]) -> String {
        let address = SocketAddr::new(ip, self.addresses[listener].port());
        let base = format!("http://{address}/{}", self.shared.token);
        match seats {
            [(call, peer)] => format!("{base}/call/{call}/{}", peer.name()),
            _ => {
                let seats: Vec<String> =
                    seats.iter().map(|(call, peer)| format!("{call}{}", peer.name())).collect();
                format!("{base}/calls/{}", seats.join("-"))
            }
        }
    }

    /// Events from the peers, in order of arrival.
    pub fn events(&self) -> &Receiver<Event> {
        &self.events
    }

    /// Lets a call begin as soon as both peers are ready.
    pub fn release(&self, call: usize) {
        self.shared.calls[call].release();
    }

    /// Asks the offerer of a call to restart ICE.
    pub fn restart(&self, call: usize) {
        self.shared.calls[call].restart();
    }

    /// Asks both peers of a call to report a last time and to end it.
    pub fn stop(&self, call: usize) {
        self.shared.calls[call].stop();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic. A second panic in a drop would abort.
            let _ = thread.join();
        }
    }
}

fn into_tokio(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// 128 random bits from the system, in hexadecimal.
///
/// # Errors
/// If the system provides none.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/{token}/call/{call}/{peer}", get(page))
        .route("/{token}/call/{call}/camera", get(camera))
        .route("/{token}/call/{call}/{peer}/socket", get(socket))
        .route("/{token}/call/{call}/{peer}/pictures", get(pictures))
        .route("/{token}/call/{call}/{peer}/sound/{tap}", get(sound))
        .route("/{token}/calls/{seats}", get(frames))
        .route("/{token}/call.js", get(script))
        .route("/{token}/wic.js", get(wic))
        .route("/{token}/simulcast.js", get(simulcast))
        .route("/{token}/quality.js", get(quality))
        .route("/{token}/quality-worker.js", get(quality_worker))
        .route("/{token}/frames.js", get(frames_script))
        .route("/{token}/camera.js", get(camera_script))
        .route("/{token}/opus.js", get(opus))
        .route("/{token}/sound.js", get(sound_script))
        .route("/{token}/sound-worker.js", get(sound_worker))
        .route("/{token}/call.css", get(style))
        .layer(map_response(once))
        .with_state(shared)
}

/// Closes the connection after the response. A connection serves one request, or one peer.
async fn once(mut response: Response) -> Response {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

type Seat = Path<(String, usize, Peer)>;

async fn page(shared: State<Arc<Shared>>, Path((token, call, peer)): Seat) -> Response {
    let Some(call) = shared.calls.get(call) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = shared.asset(&token, "text/html; charset=utf-8", PAGE.into());
    // The page may also reach its IMS.
    let policy =
        call.ims(peer).map(|ims| format!("default-src 'self'; connect-src 'self' {}", ims.url));
    if let Some(policy) = policy.and_then(|policy| HeaderValue::from_str(&policy).ok()) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The page of a browser with several calls. Each call is in a frame, so that all are visible:
/// browsers slow down pages in the background.
async fn frames(shared: State<Arc<Shared>>, path: Path<(String, String)>) -> Response {
    let Path((token, seats)) = path;
    let mut body = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
                    <title>Weir calls</title>\n<link rel=\"stylesheet\" href=\"../call.css\">\n"
        .to_owned();
    for seat in seats.split('-') {
        let peer = Peer::ALL.into_iter().find(|peer| seat.ends_with(peer.name()));
        let number = seat.get(..seat.len().saturating_sub(1));
        let call: Option<usize> = number.and_then(|number| number.parse().ok());
        let (Some(peer), Some(call)) = (peer, call.filter(|call| *call < shared.calls.len()))
        else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let peer = peer.name();
        writeln!(
            body,
            "<iframe src=\"../call/{call}/{peer}\" allow=\"camera; microphone\"></iframe>"
        )
        .expect("a String takes all text");
    }
    shared.asset(&token, "text/html; charset=utf-8", body)
}

async fn script(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", SCRIPT.into())
}

async fn wic(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", WIC.into())
}

async fn simulcast(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", SIMULCAST.into())
}

async fn quality(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", QUALITY.into())
}

async fn frames_script(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", FRAMES.into())
}

async fn camera_script(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", CAMERA.into())
}

/// The pictures of a camera that a page draws.
async fn camera(
    State(shared): State<Arc<Shared>>,
    Path((token, call)): Path<(String, usize)>,
) -> Response {
    let jpegs = shared.calls.get(call).and_then(Call::drawn_camera);
    match jpegs.filter(|_| token == shared.token) {
        Some(jpegs) => Body::from(Bytes::from_owner(jpegs)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn quality_worker(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", QUALITY_WORKER.into())
}

async fn opus(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", OPUS.into())
}

async fn sound_script(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", SOUND.into())
}

async fn sound_worker(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/javascript; charset=utf-8", SOUND_WORKER.into())
}

async fn style(shared: State<Arc<Shared>>, Path(token): Path<String>) -> Response {
    shared.asset(&token, "text/css; charset=utf-8", STYLE.into())
}

async fn socket(
    State(shared): State<Arc<Shared>>,
    Path((token, call, peer)): Seat,
    ConnectInfo(ReachedAt(address)): ConnectInfo<ReachedAt>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if token != shared.token || shared.calls.get(call).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX).on_upgrade(
        move |socket| async move { shared.calls[call].serve(peer, address, socket).await },
    )
}

async fn pictures(
    State(shared): State<Arc<Shared>>,
    Path((token, call, peer)): Seat,
    upgrade: WebSocketUpgrade,
) -> Response {
    if token != shared.token || shared.calls.get(call).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    upgrade.max_message_size(PICTURE_BYTES_MAX).max_frame_size(PICTURE_BYTES_MAX).on_upgrade(
        move |socket| async move { shared.calls[call].serve_pictures(peer, socket).await },
    )
}

async fn sound(
    State(shared): State<Arc<Shared>>,
    Path((token, call, peer, tap)): Path<(String, usize, Peer, Tap)>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if token != shared.token || shared.calls.get(call).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    upgrade.max_message_size(SOUND_BYTES_MAX).max_frame_size(SOUND_BYTES_MAX).on_upgrade(
        move |socket| async move { shared.calls[call].serve_sound(peer, tap, socket).await },
    )
}

impl Shared {
    fn asset(&self, token: &str, content_type: &'static str, body: String) -> Response {
        if token != self.token {
            return StatusCode::NOT_FOUND.into_response();
        }
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_SECURITY_POLICY, "default-src 'self'"),
            // The address contains the token.
            (header::REFERRER_POLICY, "no-referrer"),
        ];
        (headers, body).into_response()
    }
}
