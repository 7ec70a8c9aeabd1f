//! Plays the video of a real call with the model of a browser's receiver, to hold it against what
//! the browser said of the same packets (`weir research validate playout`).

use std::iter::Peekable;
use std::slice::Iter;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::assembler::Assembler;
use super::jitter_buffer::JitterBuffer;
use super::{MediaPacket, Receipt};

/// A packet of video that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPacket {
    /// When it came.
    pub came: Timestamp,
    /// Its RTP sequence number, unwrapped; of a retransmission, that of the lost packet.
    pub number: i64,
    /// Its RTP timestamp as a time, from any beginning.
    pub captured: Timestamp,
    /// First packet of its frame.
    pub first: bool,
    /// Last packet of its frame.
    pub last: bool,
    /// Whether it begins a frame that needs no other.
    pub key: bool,
    /// Size without IP, UDP and the fixed RTP header.
    pub size: DataSize,
    /// Whether it is a retransmission.
    pub repeated: bool,
}

/// Plays video. Returns the mean time from the first packet of a frame to the decoder, for each
/// `interval` from the first packet on; `None` for one in which nothing went to the decoder.
/// `round_trips` are those that the receiver learns, and when. Packets and round trips are in the
/// order in which they came.
pub fn play_video(
    packets: &[VideoPacket],
    round_trips: &[(Timestamp, TimeDelta)],
    interval: TimeDelta,
) -> Vec<Option<TimeDelta>> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Vec::new() };
    let mut player = Player {
        packets: packets.iter().peekable(),
        assembler: Assembler::default(),
        buffer: JitterBuffer::new(first.came),
        round_trips: round_trips.iter().peekable(),
    };
    let mut waits = Vec::new();
    let mut end = first.came + interval;
    while end <= last.came {
        player.run_until(end);
        waits.push(player.buffer.take_buffered());
        end += interval;
    }
    waits
}

struct Player<'a> {
    packets: Peekable<Iter<'a, VideoPacket>>,
    assembler: Assembler,
    buffer: JitterBuffer,
    round_trips: Peekable<Iter<'a, (Timestamp, TimeDelta)>>,
}

impl Player<'_> {
    fn run_until(&mut self, end: Timestamp) {
        while let Some(packet) = self.packets.next_if(|packet| packet.came < end) {
            self.render_until(packet.came);
            while let Some((at, rtt)) = self.round_trips.next_if(|(at, _)| *at <= packet.came) {
                self.buffer.on_round_trip_time(*at, *rtt);
            }
            self.assembler.insert(packet.into());
            while let Some(frame) = self.assembler.next_frame() {
                self.buffer.on_frame(packet.came, frame);
            }
        }
        self.render_until(end);
    }

    fn render_until(&mut self, end: Timestamp) {
        while let Some(due) = self.buffer.next_deadline().filter(|due| *due <= end) {
            self.buffer.render(due);
        }
    }
}

impl From<&VideoPacket> for MediaPacket {
    fn from(packet: &VideoPacket) -> Self {
        let VideoPacket { came, number, captured, first, last, key, size, repeated } = *packet;
        Self { number, captured, first, last, key, receipt: Receipt { at: came, size, repeated } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: TimeDelta = TimeDelta::from_millis(500);

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Two packets of a frame each 33 ms, which take 40 and 52 ms.
    fn video(frames: i64) -> Vec<VideoPacket> {
        let packets = (0..2 * frames).map(|number| {
            let captured = ms(number / 2 * 33);
            let first = number % 2 == 0;
            VideoPacket {
                came: captured + TimeDelta::from_millis(if first { 40 } else { 52 }),
                number,
                captured,
                first,
                last: !first,
                key: number == 0,
                size: DataSize::from_bytes(1_100),
                repeated: false,
            }
        });
        packets.collect()
    }

    // As `jitterBufferDelay` of getStats does, the time counts from the first packet.
    #[test]
    fn a_frame_waits_from_its_first_packet_on() {
        let waits = play_video(&video(300), &[], INTERVAL);
        assert_eq!(waits.len(), 19);
        let steady = waits[6].unwrap();
        assert!((12..26).contains(&steady.as_millis()), "{steady}");
    }

    #[test]
    fn a_lost_frame_is_waited_for() {
        let mut packets = video(300);
        packets.retain(|packet| packet.number != 301);
        let waits = play_video(&packets, &[], INTERVAL);
        assert_eq!(waits[11..], [None; 8], "nothing can be decoded without it");
        let again = VideoPacket { came: ms(6_400), repeated: true, ..video(300)[301] };
        let at = packets.partition_point(|packet| packet.came < again.came);
        packets.insert(at, again);
        let waits = play_video(&packets, &[], INTERVAL);
        assert_eq!(waits[11], None);
        assert!(waits[12..].iter().all(Option::is_some), "{waits:?}");
    }

    #[test]
    fn without_packets_nothing_is_played() {
        assert_eq!(play_video(&[], &[], INTERVAL), []);
    }
}
