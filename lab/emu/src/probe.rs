//! Probe packets that are timed from outside, to measure the accuracy of an emulated network.
//!
//! Both timestamps are from the same clock. The sender takes its timestamp before it passes the
//! packet to the kernel. The receiver's timestamp is taken by the kernel when the packet arrives.
//! So the difference is the delay of the network, without the wake-up time of the receiving
//! program.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir::units::{DataSize, TimeDelta, Timestamp};

use crate::emulator::REAL_TIME_PRIORITY;
use crate::error::Error;
use crate::lateness::Lateness;
use crate::namespaces::Host;
use crate::offload::MOST_SEGMENTS;
use crate::sys;

const PORT: u16 = 5_000;
/// Size of an IPv4 and a UDP header.
const HEADERS: u64 = 28;
/// Largest payload of one datagram.
const LARGEST_PAYLOAD: usize = 65_507;
/// Interval of polls for packets. The kernel takes the timestamps, so a receiver may sleep. A
/// receiver that blocks would wake up for each packet and disturb the network that it measures.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A stream of UDP packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Size of each IP packet, with room for the headers and a number.
    pub packet: DataSize,
    /// Mean interval between packets. After a late packet, the next one may follow immediately.
    pub interval: TimeDelta,
    /// Number of packets sent back to back; above zero.
    pub burst: u32,
    /// Whether the packets of a burst go to the kernel as super-packets, in few system calls, and
    /// come from it so. The packets of one super-packet have the same time.
    pub super_packets: bool,
    /// Number of packets.
    pub count: u32,
    /// Time to wait for packets after the last one was sent.
    pub tail: Duration,
}

/// Results of a [`Probe`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Send times of all packets, since the first one.
    pub sent: Vec<Timestamp>,
    /// Number and arrival time of each packet that arrived, in order of arrival. Times are since
    /// the first packet was sent.
    pub received: Vec<(usize, Timestamp)>,
}

/// Measures the wake-up lateness of a thread with the emulator's priority that only sleeps. This is
/// the machine's part of the release lateness, without an emulator.
/// For the time `awake` before it is due, the thread reads the clock instead of sleeping.
pub fn wake_lateness(interval: Duration, awake: Duration, count: u32) -> Result<Lateness, Error> {
    // A separate thread, because the change of priority is permanent.
    let measured = thread::spawn(move || measure_wakes(interval, awake, count)).join();
    let measured = measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    measured.map_err(Error::system("set a timer"))
}

fn measure_wakes(interval: Duration, awake: Duration, count: u32) -> io::Result<Lateness> {
    sys::set_exact_timers()?;
    // If this is not permitted, the emulator runs without real-time priority, too.
    let _ = sys::set_real_time(REAL_TIME_PRIORITY);
    let mut lateness = Lateness::default();
    let start = Instant::now();
    for number in 1..=count {
        let due = start + interval * number;
        thread::sleep(due.saturating_duration_since(Instant::now() + awake));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        lateness.record(Instant::now().saturating_duration_since(due));
    }
    Ok(lateness)
}

/// Sends probe packets from one host to an address of another, and receives them there.
pub fn probe(from: &Host, to: &Host, target: Ipv4Addr, probe: &Probe) -> Result<Probed, Error> {
    let target = SocketAddrV4::new(target, PORT);
    let failed = || Error::system("send and receive packets");
    let receiver = to.enter(|| UdpSocket::bind(target))?.map_err(failed())?;
    let sender = from.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?.map_err(failed())?;
    sender.connect(target).map_err(failed())?;
    sys::make_room(&sender).map_err(failed())?;
    sys::make_room(&receiver).map_err(failed())?;
    sys::stamp_arrivals(&receiver).map_err(failed())?;
    if probe.super_packets {
        sys::batch::receive_segments(&receiver).map_err(failed())?;
    }
    receiver.set_nonblocking(true).map_err(failed())?;
    let over = AtomicBool::new(false);
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, probe.count, &over));
        let sending = scope.spawn(|| send(&sender, probe));
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        thread::sleep(probe.tail);
        over.store(true, Ordering::Release);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (sent, received)
    });
    let (sent, received) = (sent.map_err(failed())?, received.map_err(failed())?);
    let first = sent.first().copied().unwrap_or_default();
    let since = |stamp: Duration| {
        let nanos = stamp.as_nanos() as i128 - first.as_nanos() as i128;
        Timestamp::from_nanos(i64::try_from(nanos).expect("a probe takes less than a century"))
    };
    let received = received.into_iter().map(|(number, stamp)| (number as usize, since(stamp)));
    Ok(Probed { sent: sent.into_iter().map(since).collect(), received: received.collect() })
}

/// Sends the packets. Returns their send times since the Unix epoch.
fn send(socket: &UdpSocket, probe: &Probe) -> io::Result<Vec<Duration>> {
    sys::set_exact_timers()?;
    let payload = probe.packet.as_bytes().saturating_sub(HEADERS).max(size_of::<u32>() as u64);
    let payload = payload as usize;
    let most = MOST_SEGMENTS.min(LARGEST_PAYLOAD / payload).max(1);
    let together = if probe.super_packets { most } else { 1 };
    if together > 1 {
        sys::batch::send_segments(socket, payload)?;
    }
    let mut buffer = vec![0; payload * together];
    let interval = Duration::from_nanos(probe.interval.as_nanos().max(0).cast_unsigned());
    let start = Instant::now();
    let mut stamps = Vec::with_capacity(probe.count as usize);
    for first in (0..probe.count).step_by(probe.burst as usize) {
        let due = start + interval * first;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let numbers: Vec<u32> = (first..(first + probe.burst).min(probe.count)).collect();
        for numbers in numbers.chunks(together) {
            for (packet, number) in buffer.chunks_exact_mut(payload).zip(numbers) {
                packet[..4].copy_from_slice(&number.to_be_bytes());
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
            stamps.extend(numbers.iter().map(|_| now));
            socket.send(&buffer[..payload * numbers.len()])?;
        }
    }
    Ok(stamps)
}

/// Receives packets. Returns their numbers and arrival times since the Unix epoch, in order of
/// arrival.
fn receive(socket: &UdpSocket, count: u32, over: &AtomicBool) -> io::Result<Vec<(u32, Duration)>> {
    let mut buffers = sys::batch::Buffers::new();
    let mut received = Vec::with_capacity(count as usize);
    loop {
        let each = |datagram: &[u8], stamp| {
            if let Some(number) = datagram.first_chunk() {
                received.push((u32::from_be_bytes(*number), stamp));
            }
        };
        match buffers.receive(socket, each) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Acquire) {
                    return Ok(received);
                }
                thread::sleep(LOOK_INTERVAL);
            }
            Err(error) => return Err(error),
        }
    }
}
