//! The listener of the lab's servers. It accepts only clients whose first request passes a gate,
//! such as that its path begins with the token of the session.
//!
//! ```text
//!   connection -> waits for its request -> head with the token -> server
//!                  \ too late, too long, too many: closed      \ another path: 404, closed
//! ```
//!
//! Connections without a valid request wait in their own queue. A silent one is closed after a
//! while, or earlier if others connect. So strangers can neither take the place of a peer nor use
//! up the lab's file descriptors.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Sleep, sleep, timeout};

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
const NOT_FOUND: &[u8] =
    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Whether a request is let in, by its path with its query.
pub type Gate = dyn Fn(&str) -> bool + Send + Sync;

/// A listener that returns only connections whose first request passes its gate.
pub struct TokenListener {
    listener: TcpListener,
    gate: Arc<Gate>,
    /// Time after which a connection is closed.
    lifetime: Option<Duration>,
    free: Arc<Semaphore>,
    waiting: JoinSet<Option<(FirstRequest, SocketAddr)>>,
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
    _place: OwnedSemaphorePermit,
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
        Self::with_gate(listener, Arc::new(move |path| begins_with(path, &token)), KNOWN_MAX)
    }

    /// Admits connections that pass the gate, so many at a time, for as long as they like.
    pub fn with_gate(listener: TcpListener, gate: Arc<Gate>, known_max: usize) -> Self {
        Self {
            listener,
            gate,
            lifetime: None,
            free: Arc::new(Semaphore::new(known_max)),
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
    fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        self.handles.retain(|handle| !handle.is_finished());
        if self.handles.len() >= UNKNOWN_MAX
            && let Some(longest) = self.handles.pop_front()
        {
            longest.abort();
        }
        let gate = self.gate.clone();
        let asked = async move {
            let asked = timeout(HEAD_TIMEOUT, ask(stream, &*gate)).await.ok()??;
            Some((asked, address))
        };
        self.handles.push_back(self.waiting.spawn(asked));
    }
}

/// Reads the head of a request. `None` if the request does not pass the gate.
async fn ask(mut stream: TcpStream, gate: &Gate) -> Option<FirstRequest> {
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
            RequestClass::Known => return Some(FirstRequest { stream, head }),
            RequestClass::Stranger => break,
        }
    }
    // Closed even if the stranger does not read the answer.
    let _ = stream.write_all(NOT_FOUND).await;
    None
}

/// Classification of a connection by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestClass {
    /// The head of the request is not complete.
    Incomplete,
    /// The path of the request passes the gate.
    Known,
    /// The path does not pass it, or the bytes are not an HTTP request.
    Stranger,
}

fn judge(head: &[u8], gate: &Gate) -> RequestClass {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => RequestClass::Incomplete,
        Ok(httparse::Status::Complete(_)) if request.path.is_some_and(gate) => RequestClass::Known,
        Ok(httparse::Status::Complete(_)) | Err(_) => RequestClass::Stranger,
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
                (stream, address) = Listener::accept(&mut self.listener) => {
                    self.admit(stream, address);
                }
                Some(waited) = self.waiting.join_next() => {
                    // The connection was closed or aborted.
                    let Ok(Some((asked, address))) = waited else { continue };
                    let place = Arc::clone(&self.free).acquire_owned().await;
                    let place = place.expect("the semaphore is never closed");
                    let expiry = self.lifetime.map(|lifetime| Box::pin(sleep(lifetime)));
                    return (AdmittedStream { asked, expiry, read: 0, _place: place }, address);
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
    /// Returns an error if the connection has been open for too long. If not, it makes the task
    /// wake up at that time.
    fn check_expiry(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let expiry = self.expiry.as_mut().map(|expiry| expiry.as_mut().poll(context));
        if expiry.is_some_and(|expiry| expiry.is_ready()) {
            return Err(io::ErrorKind::TimedOut.into());
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
        let gate = |path: &str| begins_with(path, "0af1");
        let judge = |line: &str| judge(format!("{line}\r\nHost: x\r\n\r\n").as_bytes(), &gate);
        assert_eq!(judge("GET /0af1/call/0/a HTTP/1.1"), RequestClass::Known);
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
        let gate = |path: &str| begins_with(path, "0af1");
        let head = b"GET /0af1/call/0/a HTTP/1.1\r\nHost: x\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(judge(&head[..length], &gate), RequestClass::Incomplete, "{length} bytes");
        }
        assert_eq!(judge(head, &gate), RequestClass::Known);
    }
}
