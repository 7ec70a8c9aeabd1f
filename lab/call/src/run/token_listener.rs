//! The listener of the lab's servers. It accepts only clients whose first request passes a gate,
//! such as that its path begins with the token of the session.
//!
//! ```text
//!   connection -> waits for its request -> head with the token -> server
//!                  \ too late, too long, too many: closed      | another path: 404, closed
//!                                                              \ no place: 503, closed
//! ```
//!
//! Connections without a valid request wait in their own queue. A silent one is closed after a
//! while, or earlier if others connect. So strangers can neither take the place of a peer nor use
//! up the lab's file descriptors. A connection whose request is here is never closed for another
//! one that is still silent.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{Sleep, sleep, timeout};

use crate::run::places::{Holder, Place, Places};

/// Maximum number of connections of one listener whose request has the token. A browser needs a few
/// for each of its calls; the system's usual limit of descriptors is 1024.
const KNOWN_MAX: usize = 128;
/// Maximum number of connections that have not sent their request.
const UNKNOWN_MAX: usize = 128;
/// Time limit for the whole head of a request. A browser sends it at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a request's head. A browser's is about 500 bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of header lines of a request, as many as the server accepts.
const HEADERS_MAX: usize = 100;
/// Time limit for a public request. Its answer is small.
const PUBLIC_LIFETIME: Duration = Duration::from_secs(10);
const NOT_FOUND: &[u8] =
    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\n\
      connection: close\r\n\r\n";

/// Whose request it is, by its path with its query. `None` if it is not let in.
pub type Gate = dyn Fn(&str) -> Option<Holder> + Send + Sync;

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Whose request was let in, beside public ones.
    pub known: usize,
    /// Whose request is not here yet.
    pub unknown: usize,
}

/// A listener that returns only connections whose first request passes its gate.
pub struct TokenListener {
    listener: TcpListener,
    gate: Arc<Gate>,
    /// Time after which a connection is closed.
    lifetime: Option<Duration>,
    places: Places,
    unknown_max: usize,
    waiting: JoinSet<Option<(FirstRequest, Holder, SocketAddr)>>,
    /// Tasks of the waiting connections, oldest first.
    handles: VecDeque<AbortHandle>,
}

/// A connection and the bytes read from it.
#[derive(Debug)]
struct FirstRequest {
    stream: TcpStream,
    head: Vec<u8>,
}

/// An accepted connection. Its place becomes free when it is dropped.
#[derive(Debug)]
pub struct AdmittedStream {
    asked: FirstRequest,
    /// Completes when the connection has been open for too long.
    expiry: Option<Pin<Box<Sleep>>>,
    /// How many bytes of the head the server has read.
    read: usize,
    place: Place,
}

impl fmt::Debug for TokenListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenListener").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl TokenListener {
    /// Admits connections whose path begins with the token, for as long as they like.
    pub fn new(listener: TcpListener, token: &str) -> Self {
        let token: Arc<str> = token.into();
        let gate = move |path: &str| begins_with(path, &token).then_some(Holder::Session);
        let bounds = Bounds { known: KNOWN_MAX, unknown: UNKNOWN_MAX };
        Self::with_gate(listener, Arc::new(gate), bounds)
    }

    /// Admits connections that pass the gate, so many at a time, for as long as they like.
    pub fn with_gate(listener: TcpListener, gate: Arc<Gate>, bounds: Bounds) -> Self {
        Self {
            listener,
            gate,
            lifetime: None,
            places: Places::new(bounds.known),
            unknown_max: bounds.unknown,
            waiting: JoinSet::new(),
            handles: VecDeque::new(),
        }
    }

    /// Closes a connection after this time, so that a client that does not read its answer gives
    /// its place back.
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }

    /// Lets a connection wait for its request. If there are too many, the oldest one is closed.
    async fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        if self.handles.len() >= self.unknown_max {
            // Those whose request has come read it first.
            yield_now().await;
            self.handles.retain(|handle| !handle.is_finished());
        }
        if self.handles.len() >= self.unknown_max
            && let Some(longest) = self.handles.pop_front()
        {
            longest.abort();
        }
        let gate = self.gate.clone();
        let asked = async move {
            let (asked, holder) = timeout(HEAD_TIMEOUT, ask(stream, &*gate)).await.ok()??;
            Some((asked, holder, address))
        };
        self.handles.push_back(self.waiting.spawn(asked));
    }

    /// Gives a connection its place. Without one, it is told so and closed.
    async fn seat(&mut self, asked: FirstRequest, holder: Holder) -> Option<AdmittedStream> {
        let is_public = holder == Holder::Public;
        let Some(place) = self.places.take(holder).await else {
            // Whatever fits at once: nobody waits for a client that does not read.
            let _ = asked.stream.try_write(BUSY);
            return None;
        };
        let lifetime = if is_public { Some(PUBLIC_LIFETIME) } else { self.lifetime };
        let expiry = lifetime.map(|lifetime| Box::pin(sleep(lifetime)));
        Some(AdmittedStream { asked, expiry, read: 0, place })
    }
}

/// Reads the head of a request. `None` if the request does not pass the gate.
async fn ask(mut stream: TcpStream, gate: &Gate) -> Option<(FirstRequest, Holder)> {
    let mut head = Vec::new();
    loop {
        let before = head.len();
        if before > HEAD_BYTES_MAX || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
        // Parse only when a line is complete, so that single bytes do not each cost a parse.
        if !head[before..].contains(&b'\n') {
            continue;
        }
        match judge(&head, gate) {
            RequestClass::Incomplete => {}
            RequestClass::Known(holder) => return Some((FirstRequest { stream, head }, holder)),
            RequestClass::Stranger => break,
        }
    }
    // Closed even if the stranger does not read the answer.
    let _ = stream.write_all(NOT_FOUND).await;
    None
}

/// Classification of a connection by its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestClass {
    /// The head of the request is not complete.
    Incomplete,
    /// The path of the request passes the gate.
    Known(Holder),
    /// The path does not pass it, or the bytes are not an HTTP request.
    Stranger,
}

fn judge(head: &[u8], gate: &Gate) -> RequestClass {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => RequestClass::Incomplete,
        Ok(httparse::Status::Complete(_)) => match request.path.and_then(gate) {
            Some(holder) => RequestClass::Known(holder),
            None => RequestClass::Stranger,
        },
        Err(_) => RequestClass::Stranger,
    }
}

/// Whether the path begins with the token and continues after it.
fn begins_with(path: &str, token: &str) -> bool {
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(token));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

impl Listener for TokenListener {
    type Io = AdmittedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (AdmittedStream, SocketAddr) {
        loop {
            tokio::select! {
                // Who has asked is served before others may connect.
                biased;
                Some(waited) = self.waiting.join_next() => {
                    // The connection was closed or aborted.
                    let Ok(Some((asked, holder, address))) = waited else { continue };
                    if let Some(stream) = self.seat(asked, holder).await {
                        return (stream, address);
                    }
                }
                (stream, address) = Listener::accept(&mut self.listener) => {
                    self.admit(stream, address).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The address of this machine at which a connection reached it.
#[derive(Clone, Copy, Debug)]
pub struct ReachedAt(pub Option<IpAddr>);

impl Connected<IncomingStream<'_, TokenListener>> for ReachedAt {
    fn connect_info(stream: IncomingStream<'_, TokenListener>) -> Self {
        Self(stream.io().asked.stream.local_addr().ok().map(|address| address.ip()))
    }
}

impl AdmittedStream {
    /// Returns an error if the connection has been open for too long, or has lost its place. If
    /// not, it makes the task wake up when it does.
    fn check_expiry(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let expiry = self.expiry.as_mut().map(|expiry| expiry.as_mut().poll(context));
        if expiry.is_some_and(|expiry| expiry.is_ready()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.place.is_lost(context) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl AsyncRead for AdmittedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_expiry(context)?;
        let unread = &self.asked.head[self.read..];
        if unread.is_empty() {
            return Pin::new(&mut self.asked.stream).poll_read(context, buffer);
        }
        let length = unread.len().min(buffer.remaining());
        buffer.put_slice(&unread[..length]);
        self.read += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AdmittedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_expiry(context)?;
        Pin::new(&mut self.asked.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.asked.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.asked.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_let_in_by_the_token_as_the_first_part_of_its_path() {
        let gate = |path: &str| begins_with(path, "0af1").then_some(Holder::Session);
        let judge = |line: &str| judge(format!("{line}\r\nHost: x\r\n\r\n").as_bytes(), &gate);
        assert_eq!(judge("GET /0af1/call/0/a HTTP/1.1"), RequestClass::Known(Holder::Session));
        for line in [
            "GET / HTTP/1.1",
            "GET /0af1 HTTP/1.1",
            "GET /0af10/call HTTP/1.1",
            "GET /0af/call HTTP/1.1",
            "GET /x/0af1/call HTTP/1.1",
            "GET  /0af1/call HTTP/1.1",
            "0af1",
            "",
        ] {
            assert_eq!(judge(line), RequestClass::Stranger, "{line}");
        }
    }

    #[test]
    fn a_partial_request_head_is_refused() {
        let gate = |path: &str| begins_with(path, "0af1").then_some(Holder::Session);
        let head = b"GET /0af1/call/0/a HTTP/1.1\r\nHost: x\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(judge(&head[..length], &gate), RequestClass::Incomplete, "{length} bytes");
        }
        assert_eq!(judge(head, &gate), RequestClass::Known(Holder::Session));
    }
}
