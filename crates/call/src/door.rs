//! The listener of the lab's server: takes so many connections at a time, so that whoever opens more than
//! that, with a token or without, does not leave the lab without descriptors for its captures and records.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of one listener. A browser has a few for each of its calls; the system's usual limit of descriptors
/// is 1024.
const CONNECTIONS_MAX: usize = 128;

/// A listener; those who come when it is full wait in the system's queue.
pub(crate) struct Door {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

/// A connection that has passed; its place is free again when it is dropped.
pub(crate) struct Passed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Door {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Door {
    type Io = Passed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Passed, SocketAddr) {
        let place = Arc::clone(&self.free).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Passed { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Passed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Passed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
