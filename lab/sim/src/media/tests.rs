//! Both ends of a video over a path that loses exactly the given packets.

use weir::feedback::{FeedbackReport, PacketReport};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_wire::header;
use weir_wire::rtp::View;

use super::{Kind, Packet, Repair, Ssrcs, VideoReceiver, VideoSender};
use crate::flow::Body;
use crate::rtp_format::Departure;
use crate::trace::Video;

const DELAY: TimeDelta = TimeDelta::from_millis(40);
const INTERVAL: TimeDelta = TimeDelta::from_millis(33);
const SIZE: DataSize = DataSize::from_bytes(1_000);
const PACKETS_PER_FRAME: usize = 3;
const TARGET: Bitrate = Bitrate::from_kbps(1_000);
const NONE: Repair = Repair { nack: false, fec: false, key_frame_interval: None };

/// A packet in transit to either end.
#[derive(Clone, Debug)]
enum Flying {
    Rtp(Vec<u8>, DataSize),
    Rtcp(Vec<u8>),
}

struct Call {
    sender: VideoSender,
    receiver: VideoReceiver,
    /// Packets in transit, by time of arrival.
    path: Vec<(Timestamp, Flying)>,
    /// Number of media packets, and number of packets sent of each kind.
    media: usize,
    sent: [usize; 3],
    requests: usize,
    /// Whether the receiver's requests are lost.
    deaf: bool,
    /// Whether retransmissions are lost.
    loses_rtx: bool,
    /// A media packet with additional delay.
    late: Option<(usize, TimeDelta)>,
    /// The source pauses before this frame.
    pause: Option<(i64, TimeDelta)>,
}

impl Call {
    fn new(repair: Repair) -> Self {
        let ssrcs = Ssrcs::of(1);
        Self {
            sender: VideoSender::new(repair, ssrcs, None),
            receiver: VideoReceiver::new(repair, ssrcs),
            path: Vec::new(),
            media: 0,
            sent: [0; 3],
            requests: 0,
            deaf: false,
            loses_rtx: false,
            late: None,
            pause: None,
        }
    }

    /// Reports a loss ratio of 3 % to the sender. It then uses groups of eleven packets, or of
    /// three frames.
    fn report_loss(&mut self) {
        let report = |number: i64| {
            PacketReport::new(number, SIZE, Timestamp::ZERO)
                .with_arrival_time((number % 33 > 0).then_some(Timestamp::ZERO + DELAY))
        };
        let packets = (0..3_300).map(report).collect();
        let report = FeedbackReport::new(packets);
        self.sender.on_feedback(Timestamp::ZERO + DELAY, &report);
    }

    fn send(&mut self, now: Timestamp, packet: Packet, lost: impl Fn(usize) -> bool) {
        let (kind, size) = (packet.kind, packet.size);
        let Body::RtpPayload(bytes) =
            self.sender.send(now, packet, Departure::Number(0), |_| unreachable!("no browser"))
        else {
            unreachable!("video packets have a payload")
        };
        self.sent[kind as usize] += 1;
        self.media += usize::from(kind == Kind::Media);
        if kind == Kind::Media && lost(self.media - 1) || kind == Kind::Rtx && self.loses_rtx {
            return;
        }
        let late = self.late.filter(|&(number, _)| number + 1 == self.media);
        let delay = DELAY + late.map_or(TimeDelta::ZERO, |late| late.1);
        self.path.push((now + delay, Flying::Rtp(bytes, size)));
    }

    /// Sends this many frames and waits for another second. `lost` selects media packets by number.
    /// Repair packets are not lost, unless the call loses retransmissions.
    fn run(&mut self, frames: i64, lost: impl Fn(usize) -> bool) -> Video {
        let mut next_frame = 0_usize;
        let captured = |frame: i64| {
            let pause = self.pause.filter(|&(first, _)| frame >= first);
            Timestamp::ZERO + INTERVAL * frame + pause.map_or(TimeDelta::ZERO, |pause| pause.1)
        };
        let frame_times: Vec<Timestamp> = (0..frames).map(captured).collect();
        let end = captured(frames) + TimeDelta::from_secs(1);
        loop {
            let frame = frame_times.get(next_frame).copied();
            let arrival = self.path.iter().map(|flying| flying.0).min();
            let due = self.receiver.next_deadline();
            let now = [frame, arrival, due].into_iter().flatten().min().unwrap_or(end);
            if now >= end {
                self.receiver.finish(frame_times.last().copied().unwrap_or_default());
                return self.receiver.take_noted();
            }
            if frame == Some(now) {
                next_frame += 1;
                self.make_frame(now, &lost);
            }
            while let Some(at) = self.path.iter().position(|flying| flying.0 == now) {
                match self.path.remove(at).1 {
                    Flying::Rtp(bytes, size) => {
                        self.receiver.on_packet(now, &View::parse(&bytes).unwrap(), size);
                    }
                    Flying::Rtcp(_) if self.deaf => {}
                    Flying::Rtcp(bytes) => {
                        for packet in self
                            .sender
                            .on_request(now, TARGET, header::Packet::parse(&bytes).unwrap())
                            .unwrap()
                        {
                            self.send(now, packet, &lost);
                        }
                    }
                }
            }
            if self.receiver.next_deadline().is_some_and(|due| due <= now) {
                let path = &mut self.path;
                let before = path.len();
                self.receiver.on_deadline(now, |bytes| {
                    path.push((now + DELAY, Flying::Rtcp(bytes.to_vec())));
                });
                self.requests += self.path.len() - before;
            }
        }
    }

    fn make_frame(&mut self, now: Timestamp, lost: &impl Fn(usize) -> bool) {
        let is_key_frame = self.sender.begin_frame(now);
        let mut packets = Vec::new();
        let sizes = [SIZE; PACKETS_PER_FRAME].into_iter();
        self.sender.packetize(now, is_key_frame, sizes, |packet| packets.push(packet));
        for packet in packets {
            self.send(now, packet, lost);
        }
    }
}

#[test]
fn without_loss_every_frame_is_shown_after_the_path_and_the_screen() {
    let mut call = Call::new(NONE);
    let video = call.run(100, |_| false);
    assert_eq!((video.frames, video.freezes, video.unrepaired_packets), (100, 0, 0));
    assert_eq!(video.media_packets, 300);
    let delay = video.frame_delay.unwrap() - (DELAY + TimeDelta::from_millis(10));
    assert!(delay.abs() < TimeDelta::from_micros(20), "RTP timestamps round it: {delay}");
    assert_eq!(call.requests, 0);
}

#[test]
fn one_lost_packet_without_repair_freezes_the_picture_until_a_key_frame() {
    let mut call = Call::new(NONE);
    // Packet of frame 50. The next packet of the frame reveals the loss.
    let video = call.run(100, |number| number == 151);
    assert_eq!(call.requests, 1, "one picture loss indication");
    // The request arrives 80 ms after the frame was sent, so the key frame is frame 53.
    assert_eq!((video.frames, video.unrepaired_packets), (97, 1));
    assert_eq!(video.freezes, 0, "132 ms are no freeze");
}

#[test]
fn a_loss_after_a_key_frame_freezes_the_picture_until_another_is_allowed() {
    let mut call = Call::new(NONE);
    let video = call.run(100, |number| number == 4);
    // Frame 1 is lost. Key frames are at least 300 ms apart, so the next one is frame 10.
    assert_eq!((video.frames, video.freezes), (91, 0), "five intervals come before a verdict");
    let mut later = Call::new(Repair { key_frame_interval: Some(INTERVAL * 50), ..NONE });
    let video = later.run(100, |number| number == 154);
    assert_eq!((video.frames, video.freezes), (91, 1));
    assert_eq!(video.frozen, INTERVAL * 10);
}

#[test]
fn with_key_frames_by_interval_the_next_ends_the_wait_without_requests() {
    let mut call = Call::new(Repair { key_frame_interval: Some(INTERVAL * 50), ..NONE });
    call.deaf = true;
    let video = call.run(100, |number| number == 31);
    assert!(call.requests > 4, "the receiver keeps asking: {}", call.requests);
    // Frames 10 to 49 are not shown.
    assert_eq!((video.frames, video.freezes), (60, 1));
    assert_eq!(video.frozen, INTERVAL * 41);
}

#[test]
fn a_picture_that_stands_to_the_end_is_a_freeze_up_to_the_last_frame() {
    let mut call = Call::new(NONE);
    call.deaf = true;
    let video = call.run(100, |number| number == 31);
    assert_eq!((video.frames, video.freezes), (10, 1));
    assert!(video.frozen > INTERVAL * 88, "{}", video.frozen);
    assert_eq!(video.unrepaired_packets, 1);
}

#[test]
fn with_nack_a_lost_packet_is_there_again_after_a_round_trip() {
    let mut call = Call::new(Repair { nack: true, ..NONE });
    let video = call.run(100, |number| number == 151);
    assert_eq!(call.requests, 1);
    assert_eq!(call.sent, [300, 1, 0]);
    assert_eq!((video.unrepaired_packets, video.freezes), (0, 0));
    assert_eq!(video.rtx, SIZE + DataSize::from_bytes(2));
    // The loss is detected at once, and the packet arrives 80 ms later. Of the frames that it
    // blocked, the newest is shown.
    assert_eq!(video.frames, 98);
}

// [LIBWEBRTC §VideoReceiveStream2]
#[test]
fn a_browser_waits_three_seconds_for_a_frame_then_asks_for_a_key_frame() {
    let mut call = Call::new(Repair { nack: true, ..NONE });
    call.loses_rtx = true;
    call.receiver.play_as_browser(Timestamp::ZERO);
    // The packet would be asked for a hundred times, for 8 s.
    call.receiver.on_round_trip_time(Timestamp::ZERO, DELAY * 2);
    let video = call.run(300, |number| number == 151);
    assert_eq!(video.freezes, 1);
    let waited = TimeDelta::from_millis(3_000)..TimeDelta::from_millis(3_400);
    assert!(waited.contains(&video.frozen), "{}", video.frozen);
}

#[test]
fn parity_repairs_one_loss_a_group_without_a_round_trip() {
    let mut call = Call::new(Repair { fec: true, ..NONE });
    call.report_loss();
    // One packet of every third frame: one packet in every group.
    let video = call.run(99, |number| number % 9 == 4);
    assert_eq!(call.requests, 0);
    assert_eq!(call.sent, [297, 0, 33]);
    assert_eq!((video.unrepaired_packets, video.freezes, video.media_packets), (0, 0, 297));
    assert!(video.frames > 90, "{}", video.frames);
}

#[test]
fn what_parity_cannot_repair_waits_for_a_retransmission_or_a_key_frame() {
    let two_of_a_group = |number: usize| number == 154 || number == 156;
    let mut with_nack = Call::new(Repair { fec: true, nack: true, ..NONE });
    with_nack.report_loss();
    let video = with_nack.run(100, two_of_a_group);
    assert_eq!((video.unrepaired_packets, video.media_packets), (0, 300));
    let mut without = Call::new(Repair { fec: true, ..NONE });
    without.report_loss();
    let video = without.run(100, two_of_a_group);
    assert!(video.unrepaired_packets >= 2, "{}", video.unrepaired_packets);
    assert_eq!((without.requests, video.freezes), (1, 1));
}

#[test]
fn a_late_packet_is_no_loss() {
    let mut call = Call::new(Repair { nack: true, ..NONE });
    call.late = Some((150, INTERVAL * 2));
    let video = call.run(100, |_| false);
    assert_eq!((video.unrepaired_packets, video.media_packets), (0, 300));
    assert_eq!(call.requests, 1, "it was asked for, which is how patience is learned");
}

// [WEBRTC-STATS §8]
#[test]
fn a_source_that_paused_is_told_from_one_whose_frames_were_lost() {
    let pause = Some((50, TimeDelta::from_secs(6)));
    let mut paused = Call::new(NONE);
    paused.pause = pause;
    assert_eq!(paused.run(100, |_| false).freezes, 0);
    let mut lost = Call::new(Repair { key_frame_interval: Some(INTERVAL * 50), ..NONE });
    lost.pause = pause;
    assert_eq!(lost.run(100, |number| number == 148).freezes, 1, "the last frame before it");
}

// [LIBWEBRTC §NackRequester]
#[test]
fn packets_before_a_key_frame_that_is_there_are_not_asked_for_any_more() {
    let every_20_frames = Some(INTERVAL * 20);
    let mut call = Call::new(Repair { nack: true, key_frame_interval: every_20_frames, ..NONE });
    call.deaf = true;
    let video = call.run(100, |number| number == 31);
    // The loss is detected at 370 ms, and the key frame is complete at 700 ms.
    assert_eq!((call.requests, video.unrepaired_packets), (4, 1));
    let mut told = Call::new(Repair { nack: true, key_frame_interval: every_20_frames, ..NONE });
    told.deaf = true;
    told.receiver.on_round_trip_time(Timestamp::ZERO, TimeDelta::from_millis(50));
    told.run(100, |number| number == 31);
    assert_eq!(told.requests, 7, "each round trip where the receiver is told it");
}
