//! A stream between two peers of str0m over a path of fixed delay, in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant, UNIX_EPOCH};

use str0m::change::SdpAnswer;
use str0m::format::Codec;
use str0m::media::{Direction, MediaKind, Mid, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::{RawPacket, RtpPacket};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};
use weir::{Algorithm, Bitrate, RateLimits};
use weir_str0m::{Congestion, Packet};

const ONE_WAY: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_millis(1);
const FRAME_MS: u64 = 33;
const CLOCK_PER_MS: u64 = 90;
/// From the camera to the queue.
const ENCODER: Duration = Duration::from_millis(200);
/// More than any that the start takes.
const START: Duration = Duration::from_millis(500);

struct Peer {
    rtc: Rtc,
    address: SocketAddr,
    /// Datagrams on their way to it, with their arrivals.
    inbox: VecDeque<(Instant, Vec<u8>)>,
    received: Vec<RtpPacket>,
    /// Bytes of the RTP packets that left, before encryption.
    sent: Vec<usize>,
}

impl Peer {
    fn new(now: Instant, config: RtcConfig, port: u16) -> Self {
        let mut rtc = config.build(now);
        let address = SocketAddr::from(([10, 0, 0, 1], port));
        rtc.add_local_candidate(Candidate::host(address, "udp").unwrap()).unwrap();
        Self { rtc, address, inbox: VecDeque::new(), received: Vec::new(), sent: Vec::new() }
    }

    /// Takes a datagram that has arrived. Returns whether there was one.
    fn take(&mut self, now: Instant, source: SocketAddr) -> bool {
        let Some((_, bytes)) = self.inbox.pop_front_if(|(at, _)| *at <= now) else { return false };
        let contents = bytes.as_slice().try_into().unwrap();
        let destination = self.address;
        let datagram = Receive { proto: Protocol::Udp, source, destination, contents };
        self.rtc.handle_input(Input::Receive(now, datagram)).unwrap();
        true
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::RtpPacket(packet) => self.received.push(packet),
            Event::RawPacket(raw) => {
                if let RawPacket::RtpTx(_, bytes) = *raw {
                    self.sent.push(bytes.len());
                }
            }
            _ => {}
        }
    }
}

struct Call {
    start: Instant,
    now: Instant,
    sender: Peer,
    receiver: Peer,
    mid: Mid,
    control: Congestion,
}

impl Call {
    /// A call that is up, with all codecs. `has_filler` says whether the answer goes through
    /// `with_filler`.
    fn connect(has_filler: bool, algorithm: Algorithm) -> Self {
        let start = Instant::now();
        let sender = Peer::new(start, weir_str0m::configure(Rtc::builder()), 1);
        let receiver = Peer::new(start, Rtc::builder().set_rtp_mode(true), 2);
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(100), kbps(300), kbps(2_000)).unwrap();
        let mid = Mid::from("vid");
        let control = Congestion::new(start, mid, algorithm.build(limits));
        let mut call = Self { start, now: start, sender, receiver, mid, control };
        let mut changes = call.sender.rtc.sdp_api();
        call.mid = changes.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        let (offer, pending) = changes.apply().unwrap();
        let answer = call.receiver.rtc.sdp_api().accept_offer(offer).unwrap().to_sdp_string();
        let answer = if has_filler { weir_str0m::with_filler(&answer) } else { answer };
        let answer = SdpAnswer::from_sdp_string(&answer).unwrap();
        call.sender.rtc.sdp_api().accept_answer(pending, answer).unwrap();
        call.control = Congestion::new(start, call.mid, algorithm.build(limits));
        call.run(START);
        assert!(call.sender.rtc.is_connected() && call.receiver.rtc.is_connected());
        call
    }

    /// The payload type of a codec that both have.
    fn payload_type(&self, codec: Codec) -> Pt {
        let agreed = self.sender.rtc.media(self.mid).unwrap().remote_pts();
        let of_codec = |pt: &Pt| {
            let params = self.sender.rtc.codec_config().iter();
            params.filter(|one| one.spec().codec == codec).any(|one| one.pt() == *pt)
        };
        *agreed.iter().find(|pt| of_codec(pt)).unwrap()
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            // str0m is polled after each datagram: it keeps one only.
            while self.sender.take(self.now, self.receiver.address) {
                self.poll_sender();
            }
            self.sender.rtc.handle_input(Input::Timeout(self.now)).unwrap();
            self.poll_sender();
            while self.receiver.take(self.now, self.sender.address) {
                self.poll_receiver();
            }
            self.receiver.rtc.handle_input(Input::Timeout(self.now)).unwrap();
            self.poll_receiver();
        }
    }

    /// The host's loop of the README.
    fn poll_sender(&mut self) {
        loop {
            match self.sender.rtc.poll_output().unwrap() {
                Output::Transmit(datagram) => {
                    let bytes = datagram.contents.to_vec();
                    self.receiver.inbox.push_back((self.now + ONE_WAY, bytes));
                }
                Output::Event(Event::Connected) => self.control.start(),
                Output::Event(event) => {
                    self.control.on_event(self.now, &event);
                    self.sender.note(event);
                }
                Output::Timeout(_) => {
                    if !self.control.release(self.now, &mut self.sender.rtc).unwrap() {
                        return;
                    }
                }
            }
        }
    }

    fn poll_receiver(&mut self) {
        loop {
            match self.receiver.rtc.poll_output().unwrap() {
                Output::Transmit(datagram) => {
                    let bytes = datagram.contents.to_vec();
                    self.sender.inbox.push_back((self.now + ONE_WAY, bytes));
                }
                Output::Event(event) => self.receiver.note(event),
                Output::Timeout(_) => return,
            }
        }
    }

    /// Queues a picture of as many bytes as the target has for one.
    fn picture(&mut self, payload_type: Pt) {
        self.picture_of(self.control.media_bitrate().as_bps() * FRAME_MS / 8_000, payload_type);
    }

    fn picture_of(&mut self, frame_bytes: u64, payload_type: Pt) {
        let count = frame_bytes.div_ceil(1_000);
        let captured = self.now - ENCODER;
        let timestamp = ((captured - self.start).as_millis() as u64 * CLOCK_PER_MS) as u32;
        let packets = (0..count).map(|index| Packet {
            payload: vec![1; (frame_bytes / count) as usize].into(),
            payload_type,
            timestamp,
            captured,
            marker: index + 1 == count,
        });
        self.control.enqueue(self.now, packets);
    }

    /// Sends pictures for a time.
    fn stream(&mut self, time: Duration, payload_type: Pt) {
        let end = self.now + time;
        while self.now < end {
            self.picture(payload_type);
            self.run(Duration::from_millis(FRAME_MS));
        }
    }
}

#[test]
fn the_target_grows_to_its_most_and_packets_have_their_payload_type() {
    let mut call = Call::connect(true, Algorithm::Sluice);
    let [first, h264] = [Codec::Vp8, Codec::H264].map(|codec| call.payload_type(codec));
    assert_ne!(first, h264);
    call.stream(Duration::from_secs(8), h264);
    assert_eq!(call.control.target(), Bitrate::from_kbps(2_000));
    let media = call.receiver.received.iter().filter(|packet| !packet.payload.is_empty());
    let others = media.clone().filter(|packet| packet.header.payload_type != h264);
    assert_eq!((media.clone().count() > 1_000, others.count()), (true, 0));
    let numbers: Vec<u64> = call.receiver.received.iter().map(|packet| *packet.seq_no).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "in order, without a gap");
}

#[test]
fn a_sender_report_says_when_a_picture_was_taken() {
    let mut call = Call::connect(true, Algorithm::Sluice);
    let vp8 = call.payload_type(Codec::Vp8);
    call.stream(Duration::from_secs(8), vp8);
    let newest = call.receiver.received.last().expect("packets");
    let report = newest.last_sender_info.expect("a sender report");
    // Both clocks, since some time before the call.
    let ntp_ms = report.ntp_time.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let rtp_ms = (report.rtp_time.numer() / CLOCK_PER_MS) as i64;
    let elapsed = std::time::SystemTime::now() - call.start.elapsed();
    let start_ms = elapsed.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let difference = ntp_ms - start_ms - rtp_ms;
    assert!(difference.abs() < 100, "{difference} ms");
}

#[test]
fn padding_is_filled_only_where_the_answer_has_the_extension() {
    let padding = |has_filler| {
        let mut call = Call::connect(has_filler, Algorithm::Gcc);
        let vp8 = call.payload_type(Codec::Vp8);
        // A source that makes little, so the probes of a call's start need padding.
        for _ in 0..100 {
            call.picture_of(500, vp8);
            call.run(Duration::from_millis(FRAME_MS));
        }
        let packets = call.receiver.received.iter().filter(|packet| packet.payload.is_empty());
        (packets.count(), *call.sender.sent.iter().min().unwrap())
    };
    let [(filled, size), (bare, bare_size)] = [true, false].map(padding);
    assert!(filled > 0 && bare > 0, "{filled} {bare}");
    assert!(size > 255 && bare_size < 50, "{size} {bare_size}");
}

#[test]
fn an_m_line_that_may_not_send_keeps_nothing_and_wakes_nobody_up() {
    let mut call = Call::connect(true, Algorithm::Sluice);
    let vp8 = call.payload_type(Codec::Vp8);
    call.stream(Duration::from_secs(1), vp8);
    let mut changes = call.sender.rtc.sdp_api();
    changes.set_direction(call.mid, Direction::Inactive);
    let (offer, pending) = changes.apply().unwrap();
    let answer = call.receiver.rtc.sdp_api().accept_offer(offer).unwrap();
    let answer = weir_str0m::with_filler(&answer.to_sdp_string());
    let answer = SdpAnswer::from_sdp_string(&answer).unwrap();
    call.sender.rtc.sdp_api().accept_answer(pending, answer).unwrap();
    let sent = call.sender.sent.len();
    call.picture(vp8);
    assert!(call.control.queued().as_bytes() > 0);
    call.run(STEP);
    assert_eq!((call.control.queued().as_bytes(), call.control.next_timeout()), (0, None));
    call.stream(Duration::from_secs(1), vp8);
    assert_eq!(call.sender.sent.len(), sent);
}

#[test]
fn a_queue_that_is_cleared_is_empty() {
    let mut call = Call::connect(true, Algorithm::Sluice);
    let vp8 = call.payload_type(Codec::Vp8);
    call.picture(vp8);
    assert!(call.control.queued().as_bytes() > 0);
    call.control.clear_queue(call.now);
    assert_eq!(call.control.queued().as_bytes(), 0);
}
