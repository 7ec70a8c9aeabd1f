//! Captures that are made here: calls whose truth is known, behind any link and tunnel.

use std::net::{Ipv4Addr, SocketAddr};

use weir_analyze::{
    AnalyzeError, CaptureOptions, Dump, LocalEnd, StreamDirection, StreamFacts, answer, read_from,
};

/// A captured packet: time in ms, and the frame.
pub type Frame = (f64, Vec<u8>);

pub const NEAR: &str = "192.0.2.7:40000";
pub const FAR: &str = "198.51.100.9:50000";

/// A packet of RTP.
pub fn rtp(kind: u8, number: u16, timestamp: u32, ssrc: u32, size: usize) -> Vec<u8> {
    let mut packet = vec![0x80, kind];
    packet.extend(number.to_be_bytes());
    packet.extend(timestamp.to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.resize(12 + size, 0x55);
    packet
}

/// An IPv4 packet of UDP.
pub fn udp(from: &str, to: &str, id: u16, payload: &[u8]) -> Vec<u8> {
    let [from, to] = [from, to].map(|it| it.parse::<SocketAddr>().unwrap());
    let mut datagram = Vec::new();
    datagram.extend(from.port().to_be_bytes());
    datagram.extend(to.port().to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ip(17, from, to, id, &datagram)
}

/// An IPv4 packet.
pub fn ip(protocol: u8, from: SocketAddr, to: SocketAddr, id: u16, rest: &[u8]) -> Vec<u8> {
    let octets = |it: SocketAddr| it.ip().to_string().parse::<Ipv4Addr>().unwrap().octets();
    let mut packet = vec![0x45, 0];
    packet.extend((20 + rest.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0, 0, 64, protocol, 0, 0]);
    packet.extend(octets(from));
    packet.extend(octets(to));
    packet.extend(rest);
    packet
}

/// A frame of Ethernet with this type.
pub fn ethernet(kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(kind.to_be_bytes());
    frame.extend(rest);
    frame
}

/// A pcap file of this link.
pub fn pcap(link: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file =
        [0xA1B2_C3D4_u32, 2 | 4 << 16, 0, 0, 262_144, link].map(u32::to_le_bytes).concat();
    for (time_ms, frame) in frames {
        let us = (time_ms * 1e3) as u64;
        let (seconds, rest) = (1_700_000_000 + us / 1_000_000, us % 1_000_000);
        let length = frame.len() as u32;
        file.extend([seconds as u32, rest as u32, length, length].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}

/// Sorted by time.
pub fn sorted(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.sort_by(|a, b| a.0.total_cmp(&b.0));
    frames
}

/// Voice of G.711 each 20 ms, in raw IP.
pub fn voice(from: &str, to: &str, ssrc: u32, seconds: u32) -> Vec<Frame> {
    let packet = |index: u32| {
        let rtp = rtp(0, index as u16, index * 160, ssrc, 160);
        (f64::from(index) * 20.0, udp(from, to, 0, &rtp))
    };
    (0..seconds * 50).map(packet).collect()
}

/// A video of 30 packets a second, each a frame, in raw IP.
pub fn video(from: &str, to: &str, ssrc: u32, seconds: u32) -> Vec<Frame> {
    let packet = |index: u32| {
        let rtp = rtp(96, index as u16, index * 3_000, ssrc, 1_000);
        (f64::from(index) * 100.0 / 3.0, udp(from, to, 0, &rtp))
    };
    (0..seconds * 30).map(packet).collect()
}

/// Without every eleventh packet.
pub fn thinned(frames: Vec<Frame>) -> Vec<Frame> {
    let kept = frames.into_iter().enumerate().filter(|(index, _)| index % 11 != 7);
    kept.map(|(_, frame)| frame).collect()
}

/// A video each way for 20 s; of what is received, 54 of 600 packets are missing.
pub fn call() -> Vec<Frame> {
    sorted([video(NEAR, FAR, 0x3333, 20), thinned(video(FAR, NEAR, 0x1111, 20))].concat())
}

/// Each frame changed.
pub fn wrapped(frames: &[Frame], wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Frame> {
    frames.iter().map(|(time, frame)| (*time, wrap(frame))).collect()
}

pub fn analyzed(file: Vec<u8>, local: Option<&str>) -> Result<Dump, AnalyzeError> {
    let local = local.map(|text| text.parse::<LocalEnd>().unwrap());
    let options = CaptureOptions { keys: None, local };
    let from = Box::new(std::io::Cursor::new(file));
    read_from("made".as_ref(), from, Some(&options))
}

/// The measured streams of all calls.
pub fn streams(dump: &Dump) -> Vec<&StreamFacts> {
    let logs = dump.connections.iter().filter_map(|it| it.packets.as_ref());
    logs.flat_map(|log| &log.streams).collect()
}

/// A segment of TCP with the next bytes of a stream.
pub fn segment(from: &str, to: &str, sequence: u32, data: &[u8]) -> Vec<u8> {
    let [from, to] = [from, to].map(|it| it.parse::<std::net::SocketAddr>().unwrap());
    let mut rest = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    rest.extend(sequence.to_be_bytes());
    rest.extend([0, 0, 0, 0, 5 << 4, 0x18, 4, 0, 0, 0, 0, 0]);
    rest.extend(data);
    ip(6, from, to, 0, &rest)
}

/// Direction, packets, lost ones and copies of each stream.
pub fn counts(dump: &Dump) -> Vec<(StreamDirection, u64, u64, u64)> {
    let all = streams(dump);
    all.iter().map(|it| (it.direction, it.packets, it.lost, it.duplicates)).collect()
}

pub const SENT: StreamDirection = StreamDirection::Sent;
pub const RECEIVED: StreamDirection = StreamDirection::Received;
pub const CALL: [(StreamDirection, u64, u64, u64); 2] = [(SENT, 600, 0, 0), (RECEIVED, 546, 54, 0)];

/// The lines below a verdict.
pub fn details(dump: &Dump) -> String {
    answer(dump).details.join("\n")
}
