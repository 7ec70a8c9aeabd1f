//! Arguments of `weir collect`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// `weir collect`
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "\
It listens until Ctrl-C, and writes one dump for each end of a call into LAKE/dumps. The first \
start \
makes a secret in LAKE/.collect-secret, from which the tokens of the rooms follow.

Clients send their getStats reports while they call: rtcstats-js and Jitsi's client over a \
WebSocket, the small client at /client.js, and anything else by POST:

  ws://HOST:PORT/c/ROOM/CALL/PEER?token=TOKEN       also for POST
  ws://HOST:PORT/jitsi/ROOM/TOKEN                   the endpoint of Jitsi's client

The token of a room is the HMAC-SHA256 of its name under the secret, in hexadecimal. /metrics has \
what limits the calls in Prometheus's text format. The dumps are below LAKE/dumps, where `weir \
fleet analyze LAKE/dumps --out LAKE` takes them.

Examples:
  weir collect --out lake --port 8090
  weir collect --out lake --token-for room-7
  weir collect --out lake --port 8090 --otlp http://127.0.0.1:4318
  weir collect --out lake --port 8090 --webhook http://127.0.0.1:9000/weir --webhook-cause \
uplink_capacity,connection"
)]
pub struct Collect {
    /// Folder of the dumps, and of the secret without --secret-file.
    #[arg(long, value_name = "LAKE")]
    pub out: PathBuf,
    /// Port (default: any free one).
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Address of this machine at which clients are served. With another one than the default, put
    /// a reverse proxy with TLS in front.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: IpAddr,
    /// File of the secret that makes the tokens. A missing file is created (default:
    /// LAKE/.collect-secret).
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Print the token of a room, and end.
    #[arg(long, value_name = "ROOM")]
    pub token_for: Option<String>,
    /// Ends of calls at a time. More are refused.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub max_calls: usize,
    /// Bytes that one end of a call may send in all, in MB.
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub max_call_mb: u64,
    /// Seconds of a call that the rules look at.
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub window: f64,
    /// Seconds without a message after which a connection is closed.
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub idle: f64,
    /// Seconds after which a call whose client is gone has ended. Until then it may join again.
    #[arg(long, value_name = "S", default_value_t = 120.0, value_parser = seconds)]
    pub rejoin: f64,
    /// Send the metrics to this OTLP receiver (HTTP with JSON), every 15 s.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Post a JSON message to this address when a cause begins to limit a call, and when it ends.
    #[arg(long, value_name = "URL")]
    pub webhook: Option<String>,
    /// Causes of which the webhook is told (default: all).
    #[arg(long, value_name = "LIST", requires = "webhook", value_delimiter = ',')]
    pub webhook_cause: Vec<String>,
    /// Seconds for which a cause must hold before the webhook is told.
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    pub webhook_after: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("write seconds between 0.1 and 86400".into()),
    }
}
