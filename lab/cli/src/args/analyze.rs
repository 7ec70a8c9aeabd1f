//! Arguments of `weir analyze`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
#[cfg(feature = "analyze")]
use weir_analyze::LocalEnd;

#[cfg(not(feature = "analyze"))]
use crate::unavailable::LocalEnd;

/// `weir analyze`
#[derive(ClapArgs)]
#[command(after_help = "\
The content tells the format; gzip, bzip2, xz, zstd and zip are unpacked:

  webrtc-internals dump   chrome://webrtc-internals, \"Create a WebRTC-Internals dump\"
  rtcstats dump           the other button of the same page, rtcstats-js, @jitsi/rtcstats
  getStats                what a page's getStats returned, as JSON, again and again or once
  RTC event log           what Chromium writes with --webrtc-event-logging=DIR
  pcap, pcapng, snoop     packets with RTP, at one end of the call; --keys opens its SRTCP
  rtpdump, Janus' .mjr    recordings of one stream
  qlog                    JSON records (JSON-SEQ, .sqlog) of a QUIC stack

Examples:
  weir analyze webrtc_internals_dump.gz
  weir analyze webrtc_internals_dump.gz -o report.html --scenario met.toml
  weir analyze alice/webrtc_internals_dump.gz bob/webrtc_internals_dump.gz -o both.html
  weir analyze webrtc_internals_dump.gz --ticket
  weir analyze call.pcapng --keys keys.txt --local 192.0.2.7
  weir run met.toml --controller gcc")]
pub struct Analyze {
    /// Dumps. `-` is the standard input.
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
    /// File with the keys of SRTP, for captures: a key log (SSLKEYLOGFILE: CLIENT_RANDOM lines of
    /// DTLS 1.2, EXPORTER_SECRET lines of DTLS 1.3), or a=crypto lines.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// The end at which a capture was made: its address, with a port where both ends have one
    /// address (default: what the packets tell; the answer says why).
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub local: Option<LocalEnd>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print three sentences for a customer's ticket: what was noticed, where it comes from, what
    /// to try.
    #[arg(long, conflicts_with = "json")]
    pub ticket: bool,
}
