//! The server of `weir collect`: WebSockets and requests in, metrics out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::access::{Asked, Seat, Secret, asked, value};
use super::calls::{Calls, Refused};
use super::dumps::Dumps;
use super::{forms, metrics};

/// Largest message and body. The largest events of browsers are session descriptions of some 100
/// kB.
const MESSAGE_MAX: usize = 1 << 20;
/// Time limit for the body of a request, and for a message to a client.
const SHORT: Duration = Duration::from_secs(10);
/// The library's buffers of a connection. Their usual size is for large messages.
const BUFFER_BYTES: usize = 8 << 10;
/// Time between two acknowledgements to Jitsi's client, which keeps 1000 events until then.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);
/// Close codes of WebSockets (RFC 6455, section 7.4.1): policy violation, and bad data.
const POLICY: u16 = 1008;
const BAD_DATA: u16 = 1007;

const CLIENT: &str = include_str!("client.js");

/// What all connections share.
pub struct Shared {
    pub secret: Secret,
    pub calls: Mutex<Calls>,
    pub dumps: Dumps,
    pub idle: Duration,
    pub refused_tokens: AtomicU64,
    /// One dump is read again at a time.
    pub replays: Semaphore,
}

impl Shared {
    pub fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the listener lets a request in.
    pub fn admits(&self, target: &str) -> bool {
        let is_known = asked(&self.secret, target).is_some();
        if !is_known {
            self.refused_tokens.fetch_add(1, Ordering::Relaxed);
        }
        is_known
    }

    /// All metrics.
    pub fn metrics(&self) -> Vec<metrics::Metric> {
        metrics::metrics(&self.calls(), self.refused_tokens.load(Ordering::Relaxed))
    }

    /// Seats a client. A call that ran before this program started goes on.
    async fn join(self: &Arc<Self>, seat: &Seat) -> Result<u64, Refused> {
        let mut before = None;
        if !self.calls().is_known(seat) {
            let _one = self.replays.acquire().await;
            let (shared, own) = (self.clone(), seat.clone());
            let window_s = self.calls().limits().window_s;
            let replayed = spawn_blocking(move || shared.dumps.replay(&own, window_s)).await;
            before = replayed.ok().and_then(Result::ok).flatten();
        }
        self.calls().join(Instant::now(), seat, before)
    }
}

pub fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(answer).layer(map_response(once)).with_state(shared)
}

/// Closes the connection after the response: a connection serves one request, or one client.
async fn once(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let target = request.uri().path_and_query().map_or("", |it| it.as_str()).to_owned();
    let is_post = request.method() == Method::POST;
    match asked(&shared.secret, &target) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Asked::Public) => public(&shared, request.uri().path()),
        Some(Asked::Reports(seat)) if is_post => posted(&shared, &seat, &target, request).await,
        Some(Asked::Reports(seat)) => upgraded(shared, seat, false, request).await,
        Some(Asked::Jitsi(seat)) => upgraded(shared, seat, true, request).await,
    }
}

fn public(shared: &Shared, path: &str) -> Response {
    let (kind, body) = match path {
        "/metrics" => {
            ("text/plain; version=0.0.4; charset=utf-8", metrics::text(&shared.metrics()))
        }
        "/client.js" => ("text/javascript; charset=utf-8", CLIENT.into()),
        _ => ("text/plain; charset=utf-8", "well\n".into()),
    };
    // Pages of other sites import the client.
    let any_site = (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    ([(header::CONTENT_TYPE, kind), any_site], body).into_response()
}

/// Takes the events and snapshots of a request.
async fn posted(shared: &Arc<Shared>, seat: &Seat, target: &str, request: Request) -> Response {
    let body = match timeout(SHORT, to_bytes(request.into_body(), MESSAGE_MAX)).await {
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Ok(Ok(body)) => body,
    };
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let connection = value(query, "connection").unwrap_or("0");
    let now_ms =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
    let Ok(lines) = forms::of_body(&body, connection, now_ms) else {
        shared.calls().refuse(Refused::Event);
        return (StatusCode::BAD_REQUEST, "neither events nor a snapshot\n").into_response();
    };
    let Ok(place) = shared.join(seat).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut refused = None;
    for line in &lines {
        if let Err(why) = shared.calls().take(Instant::now(), seat, place, line.as_bytes()) {
            refused = Some(why);
        }
    }
    shared.calls().leave(Instant::now(), seat, place);
    match refused {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Refused::Event) => (StatusCode::BAD_REQUEST, "an event is odd\n").into_response(),
        Some(_) => StatusCode::TOO_MANY_REQUESTS.into_response(),
    }
}

async fn upgraded(shared: Arc<Shared>, seat: Seat, is_jitsi: bool, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let protocol = first_protocol(&parts.headers);
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &shared).await {
        Ok(upgrade) => upgrade,
        Err(refused) => return refused.into_response(),
    };
    upgrade
        // Browsers close a connection that takes none of the protocols that they offer.
        .protocols(protocol)
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(MESSAGE_MAX)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(BUFFER_BYTES)
        .on_upgrade(move |socket| serve(shared, seat, is_jitsi, socket))
}

fn first_protocol(headers: &HeaderMap) -> Option<String> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    offered.split(',').next().map(|first| first.trim().to_owned())
}

/// Takes the messages of a client until it goes, or may not send any more.
async fn serve(shared: Arc<Shared>, seat: Seat, is_jitsi: bool, mut socket: WebSocket) {
    let place = match shared.join(&seat).await {
        Ok(place) => place,
        Err(why) => return close(&mut socket, why).await,
    };
    let mut acknowledged = Instant::now();
    if is_jitsi && !acknowledge(&shared, &seat, &mut socket, true).await {
        return shared.calls().leave(Instant::now(), &seat, place);
    }
    while let Ok(Some(Ok(message))) = timeout(shared.idle, socket.recv()).await {
        let text = match &message {
            Message::Text(text) => text.as_str(),
            Message::Binary(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => break,
        };
        match taken(&shared, &seat, place, text, is_jitsi) {
            // What a client sends too fast waits in its own socket.
            Ok(wait) if wait > Duration::ZERO => tokio::time::sleep(wait).await,
            Ok(_) => {}
            // One odd event is not the end of a call.
            Err(Refused::Event) if !text.is_empty() => {}
            Err(why) => {
                close(&mut socket, why).await;
                break;
            }
        }
        if is_jitsi && acknowledged.elapsed() > ACKNOWLEDGED {
            acknowledged = Instant::now();
            if !acknowledge(&shared, &seat, &mut socket, false).await {
                break;
            }
        }
    }
    shared.calls().leave(Instant::now(), &seat, place);
}

fn taken(
    shared: &Shared,
    seat: &Seat,
    place: u64,
    text: &str,
    is_jitsi: bool,
) -> Result<Duration, Refused> {
    let mut calls = shared.calls();
    match forms::of_message(text, is_jitsi) {
        Ok(Some(line)) => calls.take(Instant::now(), seat, place, line.as_bytes()),
        Ok(None) => Ok(Duration::ZERO),
        Err(()) => {
            calls.refuse(Refused::Event);
            Err(Refused::Event)
        }
    }
}

/// Tells Jitsi's client which of its events are here. It begins to send after the first time.
/// Returns whether it was told.
async fn acknowledge(shared: &Shared, seat: &Seat, socket: &mut WebSocket, first: bool) -> bool {
    let mut body = json!({ "value": shared.calls().sequence(seat) });
    if first {
        body["state"] = "initial".into();
    }
    let message = json!({ "type": "sn", "body": body }).to_string();
    let sent = timeout(SHORT, socket.send(Message::Text(message.into()))).await;
    matches!(sent, Ok(Ok(())))
}

async fn close(socket: &mut WebSocket, why: Refused) {
    let code = if why == Refused::Event { BAD_DATA } else { POLICY };
    let frame = CloseFrame { code, reason: why.name().into() };
    let _ = timeout(SHORT, socket.send(Message::Close(Some(frame)))).await;
}
