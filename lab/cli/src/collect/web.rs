//! The server of `weir collect`: WebSockets and requests in, metrics out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use weir_analyze::LiveCall;
use weir_call::Holder;

use super::access::{Asked, Participant, Secret, asked, value};
use super::calls::Calls;
use super::counters::Refused;
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
/// A message costs at least its head.
const FRAME_BYTES: usize = 6;
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
    /// Held while a dump is read again until its client has joined, and while one gets its name.
    pub hand_over: Semaphore,
}

impl Shared {
    pub fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who the listener lets in.
    pub fn admits(&self, target: &str) -> Option<Holder> {
        match asked(&self.secret, target) {
            Some(Asked::Public) => Some(Holder::Public),
            Some(Asked::Reports(participant) | Asked::Jitsi(participant)) => Some(Holder::Named(
                format!("{}/{}/{}", participant.room, participant.call, participant.peer),
            )),
            None => {
                self.refused_tokens.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// All metrics.
    pub fn metrics(&self) -> Vec<metrics::Metric> {
        metrics::metrics(&self.calls(), self.refused_tokens.load(Ordering::Relaxed))
    }

    /// Admits a client. A call that ran before this program started goes on.
    async fn join<'a>(
        self: &'a Arc<Self>,
        participant: &'a Participant,
    ) -> Result<Joined<'a>, Refused> {
        if self.calls().runs(participant) {
            return self.admitted(participant, None);
        }
        let _expected = Expected::new(self, participant);
        let _one = self.hand_over.acquire().await;
        let mut before = None;
        // Another connection of this participant may have been faster.
        if !self.calls().runs(participant) {
            let (shared, own) = (self.clone(), participant.clone());
            let window_s = self.calls().limits().window_s;
            let replayed = spawn_blocking(move || shared.dumps.replay(&own, window_s)).await;
            before = replayed.ok().and_then(Result::ok).flatten();
        }
        self.admitted(participant, before)
    }

    fn admitted<'a>(
        &'a self,
        participant: &'a Participant,
        before: Option<(LiveCall, u64)>,
    ) -> Result<Joined<'a>, Refused> {
        let place = self.calls().join(Instant::now(), participant, before)?;
        Ok(Joined { shared: self, participant, place })
    }
}

/// A client of a participant. It leaves when this is dropped: the server drops what it was doing
/// for a connection that is closed.
struct Joined<'a> {
    shared: &'a Shared,
    participant: &'a Participant,
    place: u64,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        self.shared.calls().leave(Instant::now(), self.participant, self.place);
    }
}

/// A client that is about to join. Its dump stays as long as this lives.
struct Expected<'a> {
    shared: &'a Shared,
    participant: &'a Participant,
}

impl<'a> Expected<'a> {
    fn new(shared: &'a Shared, participant: &'a Participant) -> Self {
        shared.calls().expect(participant);
        Self { shared, participant }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.shared.calls().no_longer_expect(self.participant);
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
        Some(Asked::Reports(participant)) if is_post => {
            posted(&shared, &participant, &target, request).await
        }
        Some(Asked::Reports(participant)) => upgraded(shared, participant, false, request).await,
        Some(Asked::Jitsi(participant)) => upgraded(shared, participant, true, request).await,
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

/// Takes the events and snapshots of a request. The answer says whether they are on the disk.
async fn posted(
    shared: &Arc<Shared>,
    participant: &Participant,
    target: &str,
    request: Request,
) -> Response {
    let body = match body_of(shared, participant, request).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let connection = value(query, "connection").unwrap_or("0");
    let now_ms =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
    let Ok(lines) = forms::of_body(&body, connection, now_ms) else {
        shared.calls().refuse(Refused::Event);
        return (StatusCode::BAD_REQUEST, "neither events nor a snapshot\n").into_response();
    };
    let Ok(joined) = shared.join(participant).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut refused = None;
    let mut taken = Vec::new();
    for line in &lines {
        match shared.calls().look_at(Instant::now(), participant, joined.place, line.as_bytes()) {
            Ok(()) => taken.extend([line.as_bytes(), b"\n"].concat()),
            Err(why) => refused = Some(why),
        }
    }
    if !taken.is_empty() && !kept(shared, participant, taken).await {
        refused = Some(Refused::Disk);
    }
    match refused {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Refused::Event) => (StatusCode::BAD_REQUEST, "an event is odd\n").into_response(),
        Some(Refused::Disk) => StatusCode::INSUFFICIENT_STORAGE.into_response(),
        Some(_) => StatusCode::TOO_MANY_REQUESTS.into_response(),
    }
}

/// The body of a request, within what its participant may send.
async fn body_of(
    shared: &Shared,
    participant: &Participant,
    request: Request,
) -> Result<Bytes, Response> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let size = length.unwrap_or(MESSAGE_MAX);
    if size > MESSAGE_MAX {
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    }
    let now = Instant::now();
    let wait = shared.calls().wait(now, participant);
    if !wait.is_zero() {
        shared.calls().refuse(Refused::Bytes);
        let seconds = wait.as_secs() + 1;
        let later = [(header::RETRY_AFTER, seconds.to_string())];
        return Err((StatusCode::TOO_MANY_REQUESTS, later).into_response());
    }
    // Before it is here, since several requests may come together.
    shared.calls().budgets.spend(now, participant, size);
    match timeout(SHORT, to_bytes(request.into_body(), MESSAGE_MAX)).await {
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Ok(Ok(body)) => {
            shared.calls().budgets.give_back(Instant::now(), participant, size - body.len());
            Ok(body)
        }
    }
}

/// Writes lines to the dump of a participant at once. Whether they are there.
async fn kept(shared: &Arc<Shared>, participant: &Participant, lines: Vec<u8>) -> bool {
    let (dumps, own) = (shared.dumps.clone(), participant.clone());
    let written = spawn_blocking(move || dumps.append(&own, &lines)).await;
    let is_kept = written.is_ok_and(|written| written.is_ok());
    if !is_kept {
        shared.calls().counters.lost_writes += 1;
        shared.calls().refuse(Refused::Disk);
    }
    is_kept
}

async fn upgraded(
    shared: Arc<Shared>,
    participant: Participant,
    is_jitsi: bool,
    request: Request,
) -> Response {
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
        .on_upgrade(move |socket| serve(shared, participant, is_jitsi, socket))
}

fn first_protocol(headers: &HeaderMap) -> Option<String> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    offered.split(',').next().map(|first| first.trim().to_owned())
}

/// Takes the messages of a client until it goes, or may not send any more.
async fn serve(
    shared: Arc<Shared>,
    participant: Participant,
    is_jitsi: bool,
    mut socket: WebSocket,
) {
    let joined = match shared.join(&participant).await {
        Ok(joined) => joined,
        Err(why) => return close(&mut socket, why).await,
    };
    let mut replaced = shared.calls().replaced(&participant, joined.place);
    let client =
        Client { shared: &shared, participant: &participant, place: joined.place, is_jitsi };
    let ended = tokio::select! {
        ended = client.listen(&mut socket) => ended,
        _ = &mut replaced => {
            shared.calls().refuse(Refused::Replaced);
            Some(Refused::Replaced)
        }
    };
    if let Some(why) = ended {
        close(&mut socket, why).await;
    }
}

/// The client at a WebSocket.
struct Client<'a> {
    shared: &'a Shared,
    participant: &'a Participant,
    place: u64,
    is_jitsi: bool,
}

impl Client<'_> {
    /// Takes messages until the client is gone, or is refused for a reason.
    async fn listen(&self, socket: &mut WebSocket) -> Option<Refused> {
        let mut acknowledged = Instant::now();
        if self.is_jitsi && !self.acknowledge(socket, true).await {
            return None;
        }
        loop {
            // What a client sends too fast waits in its own socket, also if it comes back.
            let wait = self.shared.calls().wait(Instant::now(), self.participant);
            sleep(wait).await;
            let Ok(Some(Ok(message))) = timeout(self.shared.idle, socket.recv()).await else {
                return None;
            };
            let text = match &message {
                Message::Text(text) => text.as_str(),
                Message::Binary(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
                Message::Ping(bytes) | Message::Pong(bytes) => {
                    self.spend(bytes.len());
                    continue;
                }
                Message::Close(_) => return None,
            };
            self.spend(text.len());
            match self.taken(text) {
                // One odd event is not the end of a call.
                Err(Refused::Event) if !text.is_empty() => {}
                Err(why) => return Some(why),
                Ok(()) => {}
            }
            if self.is_jitsi && acknowledged.elapsed() > ACKNOWLEDGED {
                acknowledged = Instant::now();
                if !self.acknowledge(socket, false).await {
                    return None;
                }
            }
        }
    }

    fn spend(&self, bytes: usize) {
        self.shared.calls().budgets.spend(Instant::now(), self.participant, bytes + FRAME_BYTES);
    }

    fn taken(&self, text: &str) -> Result<(), Refused> {
        let mut calls = self.shared.calls();
        match forms::of_message(text, self.is_jitsi) {
            Ok(Some(line)) => {
                calls.take(Instant::now(), self.participant, self.place, line.as_bytes())
            }
            Ok(None) => Ok(()),
            Err(()) => {
                calls.refuse(Refused::Event);
                Err(Refused::Event)
            }
        }
    }

    /// Tells Jitsi's client which of its events are here. It begins to send after the first time,
    /// and forgets what it is told later, so that must be on the disk. Returns whether it was told.
    async fn acknowledge(&self, socket: &mut WebSocket, first: bool) -> bool {
        let body = if first {
            json!({ "value": self.shared.calls().sequence(self.participant), "state": "initial" })
        } else {
            json!({ "value": self.shared.calls().written(self.participant) })
        };
        let message = json!({ "type": "sn", "body": body }).to_string();
        let sent = timeout(SHORT, socket.send(Message::Text(message.into()))).await;
        matches!(sent, Ok(Ok(())))
    }
}

async fn close(socket: &mut WebSocket, why: Refused) {
    let code = if why == Refused::Event { BAD_DATA } else { POLICY };
    let frame = CloseFrame { code, reason: why.name().into() };
    let _ = timeout(SHORT, socket.send(Message::Close(Some(frame)))).await;
}
