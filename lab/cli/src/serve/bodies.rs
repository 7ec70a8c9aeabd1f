//! Reads the bodies of requests before anything else happens with them.
//!
//! A client that announces a body and does not send it holds one of the server's places. So only a
//! few may wait: one more ends the wait of the oldest, as with connections that have not sent their
//! head.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Largest body.
const BODY_MAX: usize = 2 << 20;
/// Maximum number of requests whose body has not arrived, a quarter of the connections that a
/// listener admits.
pub const WAITING_MAX: usize = 32;
/// Time limit for a whole body. A page of this machine sends it at once.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests that wait for their bodies.
#[derive(Clone, Debug, Default)]
pub struct Bodies {
    /// Dropping one ends its wait; oldest first.
    waiting: Arc<Mutex<VecDeque<oneshot::Sender<()>>>>,
}

impl Bodies {
    /// The request with its whole body in memory, or why it is refused.
    pub async fn whole(&self, request: Request) -> Result<Request, (StatusCode, String)> {
        let (head, body) = request.into_parts();
        let ended = self.wait();
        tokio::select! {
            bytes = to_bytes(body, BODY_MAX) => match bytes {
                Ok(bytes) => Ok(Request::from_parts(head, Body::from(bytes))),
                Err(_) => {
                    let why = format!("the body broke off, or is longer than {BODY_MAX} bytes");
                    Err((StatusCode::PAYLOAD_TOO_LARGE, why))
                }
            },
            _ = ended => Err(late("others wait, too")),
            () = sleep(BODY_TIMEOUT) => Err(late("it took too long")),
        }
    }

    /// Adds a request. What is returned completes when its wait has to end.
    fn wait(&self) -> oneshot::Receiver<()> {
        let (sender, ended) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|other| !other.is_closed());
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(sender);
        ended
    }
}

fn late(why: &str) -> (StatusCode, String) {
    (StatusCode::REQUEST_TIMEOUT, format!("the body did not arrive: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_bodies_end_the_oldest_wait_and_finished_ones_do_not_count() {
        let bodies = Bodies::default();
        let mut ended: Vec<_> = (0..WAITING_MAX).map(|_| bodies.wait()).collect();
        drop(ended.pop());
        ended.push(bodies.wait());
        let is_over = |it: &mut oneshot::Receiver<()>| {
            it.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        assert!(!ended.iter_mut().any(is_over));
        ended.push(bodies.wait());
        let over: Vec<bool> = ended.iter_mut().map(is_over).collect();
        assert!(over[0] && !over[1..].contains(&true));
    }
}
