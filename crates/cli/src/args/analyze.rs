//! Arguments of `weir analyze`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// `weir analyze`
#[derive(ClapArgs)]
#[command(after_help = "\
The content tells the format; gzip is unpacked:

  webrtc-internals dump   chrome://webrtc-internals, \"Create a WebRTC-Internals dump\"
  rtcstats dump           the other button of the same page, rtcstats-js, @jitsi/rtcstats
  RTC event log           what Chromium writes with --webrtc-event-logging=DIR
  pcap, pcapng            packets with RTP over IPv4, at one end of the call; --keys opens its SRTCP

Examples:
  weir analyze webrtc_internals_dump.gz
  weir analyze webrtc_internals_dump.gz -o report.html --scenario met.toml
  weir run met.toml --controller gcc")]
pub struct Analyze {
    /// Dumps.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// File for a report with the plots of a run.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// File for a scenario with the network that the call met; of one dump.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Folder for the records. It is made if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// File with the keys of SRTP, for captures: a key log (CLIENT_RANDOM lines, DTLS 1.2), or a=crypto lines.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}
