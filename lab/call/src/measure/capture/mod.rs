//! Packet captures at both ends of a call.
//!
//! ```text
//! host's interface -> kernel -> Recorder -> pcapng file -> HostCapture -> Stream
//! ```
//!
//! A recorder sees the same packets as any sniffer on the host. It is independent of browser and
//! emulator. Payload is never written to disk.

mod host;
mod pcapng;
mod recorder;
mod stream;

pub use host::{HostCapture, Side, Sighting, Window, Windowed, read};
pub use pcapng::{Packet as CapturedPacket, Reader, Writer};
pub use recorder::{CapturePlan, Recorded, Recorder, Recording};
pub use stream::{DELAY_BIN, DELAY_BINS, Stream, between, loss_ratio};
