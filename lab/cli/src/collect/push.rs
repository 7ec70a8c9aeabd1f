//! Sends JSON by HTTP to a receiver that its operator named: one short connection a message.
//!
//! Receivers are beside this program: an OpenTelemetry collector, or a program that passes a
//! message on. So there is no TLS, and addresses of this machine and of its network are as good as
//! any other. No client has a part in the address: its names stand in the body, and an answer that
//! points elsewhere is not followed.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::calls::Change;

/// Time limit for a whole message.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for what follows the first line of an answer.
const REST: Duration = Duration::from_millis(200);
/// Enough for an answer.
const ANSWER_MAX: usize = 4_096;

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Host and port.
    host: String,
    path: String,
}

impl Receiver {
    /// The receiver at `http://HOST[:PORT][/PATH]`.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://");
        let (host, path) = rest.map_or(("", ""), |rest| rest.split_once('/').unwrap_or((rest, "")));
        anyhow::ensure!(
            !host.is_empty() && url.bytes().all(|byte| byte.is_ascii_graphic()),
            "{url}: write http://HOST:PORT/PATH; for https, let a program on this machine pass it \
             on"
        );
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { host.into() } else { format!("{host}:80") };
        Ok(Self { host, path: format!("/{path}") })
    }

    /// The same with more behind its path.
    pub fn below(&self, more: &str) -> Self {
        Self { host: self.host.clone(), path: format!("{}{more}", self.path.trim_end_matches('/')) }
    }

    /// Sends a message. Whether the receiver took it.
    pub async fn post(&self, body: &Value) -> bool {
        let sent = timeout(TIMEOUT, self.sent(body.to_string())).await;
        sent.is_ok_and(|answer| answer.is_ok_and(|answer| is_taken(&answer)))
    }

    async fn sent(&self, body: String) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&self.host).await?;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.path,
            self.host,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        let mut answer = Vec::new();
        while answer.len() < ANSWER_MAX && !answer.contains(&b'\n') {
            if stream.read_buf(&mut answer).await? == 0 {
                return Ok(answer);
            }
        }
        // A receiver that still writes would see a reset.
        let _ = timeout(REST, stream.take(ANSWER_MAX as u64).read_to_end(&mut Vec::new())).await;
        Ok(answer)
    }
}

/// Whether an answer begins with a status of success.
fn is_taken(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.") && answer.get(8..10) == Some(b" 2")
}

/// When the counters began, in ns since 1970. It stays, unless the clock was set to a time before:
/// then the time that has passed tells it.
pub fn start_before(started_ns: u128, now_ns: u128, passed: Duration) -> u128 {
    if started_ns <= now_ns { started_ns } else { now_ns.saturating_sub(passed.as_nanos()) }
}

/// A change as a message.
pub fn message(change: &Change) -> Value {
    json!({
        "event": if change.begins { "begin" } else { "end" },
        "cause": change.cause.name(),
        "rule": change.rule,
        "says": change.says,
        "room": change.participant.room,
        "call": change.participant.call,
        "peer": change.participant.peer,
        "from_s": change.from_s,
        "to_s": change.to_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_an_address_without_tls() {
        let receiver = Receiver::new("http://127.0.0.1:4318/").unwrap().below("/v1/metrics");
        assert_eq!(
            (receiver.host.as_str(), receiver.path.as_str()),
            ("127.0.0.1:4318", "/v1/metrics")
        );
        assert_eq!(Receiver::new("http://[::1]").unwrap().host, "[::1]:80");
        for wrong in ["https://a", "a:80", "http://", "http:///x", "http://a b/", "http://a/\r\nx"]
        {
            assert!(Receiver::new(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_start_of_counters_is_never_after_now() {
        let passed = Duration::from_nanos(30);
        assert_eq!(start_before(1000, 1030, passed), 1000);
        // The clock was set ahead, and back.
        assert_eq!(start_before(1000, 9000, passed), 1000);
        assert_eq!(start_before(1000, 500, passed), 470);
        assert_eq!(start_before(1000, 20, passed), 0);
    }

    #[test]
    fn only_a_success_counts_as_taken() {
        assert!(is_taken(b"HTTP/1.1 204 No Content\r\n"));
        for answer in ["HTTP/1.1 404 Not Found\r\n", "", "HTTP/1.1", "SSH-2.0- 2"] {
            assert!(!is_taken(answer.as_bytes()), "{answer}");
        }
    }
}
