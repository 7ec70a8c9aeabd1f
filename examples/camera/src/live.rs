//! Sends over UDP in real time, with three threads: encoder, sender, and one that waits for RTCP.
//!
//! The encoder must not run in the sender's thread. While it works, no packet could leave, and the
//! pacer does not make up for the time.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use weir::{Bitrate, TimeDelta, Timestamp};
use weir_over_udp::DATAGRAM;

use crate::camera::Camera;
use crate::progress::Progress;
use crate::source::{FRAME_INTERVAL, Source};

type Failure = Box<dyn Error + Send + Sync>;

/// Events that may wait for the sender. It is never busy for long.
const EVENTS: usize = 64;

/// What happens to the sender.
enum Event {
    /// The packets of a picture, and how many pictures before it were late.
    Picture { packets: Vec<Vec<u8>>, late: u64 },
    /// A datagram arrived.
    Rtcp(Vec<u8>),
    /// The encoder or the socket failed.
    Failed(Failure),
}

/// What the sender asks of the encoder.
struct Wishes {
    bitrate_bps: AtomicU64,
    key_frame: AtomicBool,
}

#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now(self) -> Timestamp {
        Timestamp::from_nanos(self.0.elapsed().as_nanos() as i64)
    }

    fn until(self, due: Timestamp) -> Duration {
        Duration::from_nanos((due - self.now()).as_nanos().max(0) as u64)
    }
}

/// Makes a picture for each frame interval. A camera does not make up for pictures that it missed.
fn encode(mut source: Source, clock: Clock, wishes: &Wishes, events: &SyncSender<Event>) {
    let mut due = clock.now();
    let mut late = 0;
    loop {
        thread::sleep(clock.until(due));
        if wishes.key_frame.swap(false, Relaxed) {
            source.force_key_frame();
        }
        let bitrate = Bitrate::from_bps(wishes.bitrate_bps.load(Relaxed));
        let event = match source.take_picture(clock.now(), bitrate) {
            Ok(packets) => Event::Picture { packets, late },
            Err(error) => Event::Failed(error),
        };
        // The sender ends the run by closing the channel.
        if events.send(event).is_err() {
            return;
        }
        due += FRAME_INTERVAL;
        late = 0;
        while due + FRAME_INTERVAL < clock.now() {
            due += FRAME_INTERVAL;
            late += 1;
        }
    }
}

/// Waits for datagrams. The thread ends with the program.
fn listen(socket: &UdpSocket, events: &SyncSender<Event>) {
    let mut buffer = [0; DATAGRAM];
    loop {
        // A receiver that is not there yet refuses datagrams, which is an error here.
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        if events.send(Event::Rtcp(buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

/// Runs the camera until `end`.
///
/// # Errors
/// If the address cannot be used or the encoder fails.
pub fn run(
    address: &str,
    mut camera: Camera,
    source: Source,
    end: Timestamp,
) -> Result<(), Failure> {
    let socket = Arc::new(UdpSocket::bind("0.0.0.0:0")?);
    socket.connect(address)?;
    let clock = Clock(Instant::now());
    let wishes = Arc::new(Wishes {
        bitrate_bps: AtomicU64::new(camera.source_bitrate().as_bps()),
        key_frame: AtomicBool::new(false),
    });
    let (events, incoming) = mpsc::sync_channel(EVENTS);
    let (encoder_wishes, encoder_events) = (Arc::clone(&wishes), events.clone());
    thread::spawn(move || encode(source, clock, &encoder_wishes, &encoder_events));
    let listener = Arc::clone(&socket);
    thread::spawn(move || listen(&listener, &events));

    let mut progress = Progress::default();
    while clock.now() < end {
        // What cannot be sent is lost like any other packet.
        camera.on_timeout(clock.now(), |datagram| {
            let _ = socket.send(&datagram);
        });
        wishes.bitrate_bps.store(camera.source_bitrate().as_bps(), Relaxed);
        progress.on_time(clock.now(), &camera);
        let due = progress.next_line().min(end + TimeDelta::from_nanos(1));
        let due = camera.next_timeout().map_or(due, |timeout| timeout.min(due));
        match incoming.recv_timeout(clock.until(due)) {
            Ok(Event::Picture { packets, late }) => {
                camera.on_picture(clock.now(), packets, late)?
            }
            Ok(Event::Rtcp(bytes)) => {
                if camera.on_rtcp(clock.now(), &bytes) {
                    wishes.key_frame.store(true, Relaxed);
                }
            }
            Ok(Event::Failed(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the encoder has ended".into()),
        }
    }
    progress.finish(end, &camera);
    Ok(())
}
