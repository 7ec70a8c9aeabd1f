//! After some time, no call allocates memory for a packet: a sender and a receiver over a path in
//! memory, and a controller alone, under every controller.

#![expect(clippy::incompatible_msrv, reason = "tests run with the compiler of the lab")]

use std::collections::VecDeque;
use std::ffi::CString;
use std::ptr::null_mut;

use crate::common::{raw_report, raw_settings, sized};
use crate::heap;
use weir::controller::Settings;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, PacketReport, RateLimits};
use weir_capi::*;
use weir_wire::rtp::{AbsSendTime, ExtensionId, PayloadType, RtpHeader};

const MS: i64 = 1_000_000;
/// Packets of the sender before allocations count, and after that. Until then all memory has grown
/// to its bounds: the history of packets grows with the rate, which begins at its maximum, and
/// scream remembers the last 1024 lost packets, of which there is one in a hundred.
const WARM_UP: u64 = 110_000;
const COUNTED: u64 = 100_000;

fn settings() -> Settings {
    let kbps = Bitrate::from_kbps;
    Settings::new(RateLimits::new(kbps(500), kbps(8_000), kbps(8_000)).expect("in order"))
}

/// A datagram on its way. Its memory is the test's own, so it does not allocate while it counts.
struct InFlight {
    arrival_ns: i64,
    length: usize,
    bytes: [u8; 1_500],
}

/// A path with a delay of 20 ms and room for many datagrams.
struct Path(VecDeque<InFlight>);

impl Path {
    fn new() -> Self {
        Self(VecDeque::with_capacity(4_096))
    }

    fn put(&mut self, now_ns: i64, data: *const u8, length: usize) {
        assert!(self.0.len() < 4_096 && length <= 1_500);
        let mut packet = InFlight { arrival_ns: now_ns + 20 * MS, length, bytes: [0; 1_500] };
        // SAFETY: the library handed out this many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(data, length) };
        packet.bytes[..length].copy_from_slice(bytes);
        self.0.push_back(packet);
    }

    fn take(&mut self, now_ns: i64) -> Option<InFlight> {
        self.0.pop_front_if(|packet| packet.arrival_ns <= now_ns)
    }
}

struct Ends {
    sender: *mut weir_sender,
    receiver: *mut weir_receiver,
    up: Path,
    down: Path,
    frame: Vec<u8>,
    number: u16,
    sent: u64,
}

impl Ends {
    fn new(algorithm: Algorithm, format: weir_feedback_format) -> Self {
        let name = CString::new(algorithm.name()).expect("names have no NUL");
        let mut config: weir_sender_config = sized();
        let mut receiver_config: weir_receiver_config = sized();
        let (mut sender, mut receiver) = (null_mut(), null_mut());
        // SAFETY: all pointers are valid.
        unsafe {
            weir_sender_config_init(&mut config, size_of::<weir_sender_config>());
            weir_receiver_config_init(&mut receiver_config, size_of::<weir_receiver_config>());
            config.abs_send_time_id = 2;
            receiver_config.feedback = format as u32;
            let settings = raw_settings(&settings());
            let status = weir_sender_new(0, name.as_ptr(), &settings, &config, &mut sender);
            assert_eq!(status, weir_status::Ok);
            let status = weir_receiver_new(0, &receiver_config, &mut receiver);
            assert_eq!(status, weir_status::Ok);
        }
        let (up, down) = (Path::new(), Path::new());
        Self { sender, receiver, up, down, frame: vec![0; 1_200], number: 0, sent: 0 }
    }

    /// A millisecond: media every 40 ms, and what is due at both ends.
    fn step(&mut self, ms: i64) {
        let now = ms * MS;
        if ms % 40 == 0 {
            self.enqueue_frame(now);
        }
        let mut packet: weir_packet = sized();
        let mut rtcp = weir_bytes { data: std::ptr::null(), length: 0 };
        // SAFETY: the handles and the structs live; bytes are copied before the next call.
        unsafe {
            weir_sender_on_timeout(self.sender, now);
            while weir_sender_next_rtcp(self.sender, &mut rtcp) == weir_status::Ok {
                self.up.put(now, rtcp.data, rtcp.length);
            }
            while weir_sender_next_packet(self.sender, now, &mut packet) == weir_status::Ok {
                self.sent += 1;
                // One in 200 packets is lost.
                if !self.sent.is_multiple_of(200) {
                    self.up.put(now, packet.data, packet.length);
                }
            }
            while let Some(datagram) = self.up.take(now) {
                let (data, length) = (datagram.bytes.as_ptr(), datagram.length);
                let status = if weir_is_rtcp(data, length) == 1 {
                    weir_receiver_on_rtcp(self.receiver, now, data, length)
                } else {
                    weir_receiver_on_rtp(self.receiver, now, data, length, 0)
                };
                assert_eq!(status, weir_status::Ok);
            }
            weir_receiver_on_timeout(self.receiver, now);
            while weir_receiver_next_rtcp(self.receiver, &mut rtcp) == weir_status::Ok {
                self.down.put(now, rtcp.data, rtcp.length);
            }
            while let Some(datagram) = self.down.take(now) {
                let (data, length) = (datagram.bytes.as_ptr(), datagram.length);
                let status = weir_sender_on_rtcp(self.sender, now, data, length);
                assert_eq!(status, weir_status::Ok);
            }
        }
    }

    fn enqueue_frame(&mut self, now: i64) {
        let mut target: weir_target = sized();
        // SAFETY: the handle and the struct live.
        unsafe { weir_sender_target(self.sender, &mut target) };
        let packets = target.source_bitrate_bps / 8 / 25 / 1_200;
        for _ in 0..packets {
            let [number_id, time_id] = [1, 2].map(|id| ExtensionId::new(id).expect("not zero"));
            let payload_type = PayloadType::new(96).expect("below 128");
            RtpHeader::new(1, payload_type, self.number, (now / MS * 90) as u32)
                .with_transport_sequence_number(Some((number_id, 0)))
                .with_abs_send_time(Some((time_id, AbsSendTime::from_ticks(0))))
                .emit(&mut self.frame);
            self.number = self.number.wrapping_add(1);
            let packet = weir_bytes { data: self.frame.as_ptr(), length: self.frame.len() };
            // SAFETY: the handle and the bytes live.
            let status = unsafe { weir_sender_enqueue(self.sender, now, &packet, 1) };
            assert_eq!(status, weir_status::Ok);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        // SAFETY: both came from their `new` functions and are freed once.
        unsafe {
            weir_sender_free(self.sender);
            weir_receiver_free(self.receiver);
        }
    }
}

/// Allocations while a sender and a receiver carry `COUNTED` packets.
fn of_a_flow(algorithm: Algorithm, format: weir_feedback_format) -> u64 {
    let mut ends = Ends::new(algorithm, format);
    let mut ms = 0;
    let mut run_to = |ends: &mut Ends, packets| {
        while ends.sent < packets {
            ends.step(ms);
            ms += 1;
        }
    };
    run_to(&mut ends, WARM_UP);
    let before = heap::allocations();
    run_to(&mut ends, WARM_UP + COUNTED);
    heap::allocations() - before
}

/// Allocations of a controller alone during `COUNTED` packets.
fn of_a_controller(algorithm: Algorithm) -> u64 {
    let name = CString::new(algorithm.name()).expect("names have no NUL");
    let mut controller = null_mut();
    // SAFETY: all pointers are valid.
    let status =
        unsafe { weir_controller_new(name.as_ptr(), &raw_settings(&settings()), &mut controller) };
    assert_eq!(status, weir_status::Ok);
    let mut reports = Vec::with_capacity(10);
    let mut before = 0;
    let size = DataSize::from_bytes(1_250);
    for number in 0..(WARM_UP + COUNTED) as i64 {
        if number == WARM_UP as i64 {
            before = heap::allocations();
        }
        let now = Timestamp::from_millis(5 * number);
        let mut sent: weir_sent_packet = sized();
        sent.sequence_number = number;
        sent.size_bytes = size.as_bytes();
        let arrival = now + TimeDelta::from_millis(25);
        let report = PacketReport::new(number, size, now);
        reports
            .push(raw_report(&report.with_arrival_time((number % 100 != 37).then_some(arrival))));
        // SAFETY: the handle, the array and the structs live.
        unsafe {
            weir_controller_on_packet_sent(controller, now.as_nanos(), &sent);
            weir_controller_on_timeout(controller, now.as_nanos());
            if reports.len() == 10 {
                let mut feedback: weir_feedback = sized();
                feedback.packets = reports.as_ptr();
                feedback.packet_count = reports.len();
                let now = now + TimeDelta::from_millis(50);
                let status = weir_controller_on_feedback(controller, now.as_nanos(), &feedback);
                assert_eq!(status, weir_status::Ok);
                reports.clear();
            }
        }
    }
    // SAFETY: it came from `weir_controller_new` and is freed once.
    unsafe { weir_controller_free(controller) };
    heap::allocations() - before
}

#[test]
fn after_some_time_no_packet_costs_an_allocation() {
    for algorithm in Algorithm::all() {
        assert_eq!(of_a_controller(algorithm), 0, "{algorithm} alone");
        for format in [weir_feedback_format::Twcc, weir_feedback_format::Ccfb] {
            let count = of_a_flow(algorithm, format);
            println!("{algorithm}, {format:?}: {count} allocations in {COUNTED} packets");
            assert_eq!(count, 0, "{algorithm}, {format:?}");
        }
    }
}
