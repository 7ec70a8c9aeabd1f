//! A sender: RTP and RTCP in, paced RTP and sender reports out.

use core::ffi::c_char;
use std::collections::VecDeque;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_rtcp::{EnqueueError, RtcpEvent, Sender, SenderConfig};
use weir_wire::rtp::PayloadType;

use crate::border::{self, Guard, Handle, Outcome, array, packet, put, switch, weir_bytes};
use crate::growing::{Growing, check_size, get, growing, init, set};
use crate::metrics::weir_metrics;
use crate::random::random;
use crate::request::{kind_of, weir_packet_kind, weir_request, weir_request_kind};
use crate::rtp::extensions;
use crate::settings::{build, new_limits, weir_settings};
use crate::status::weir_status;
use crate::target::{number_of, weir_target};
use crate::{WEIR_NEVER, WEIR_NO_PROBE, WEIR_NO_VALUE};

/// The sending half of a media flow.
pub struct weir_sender {
    guard: Guard,
    sender: Sender,
    /// The packets of one call on their way to the queue. Empty between calls.
    incoming: Vec<Vec<u8>>,
    /// The packet that the caller has at the moment.
    handed_out: Vec<u8>,
    /// What the receiver asked for, until the caller takes it.
    requests: VecDeque<weir_request>,
}

impl Handle for weir_sender {
    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// Configuration of a sender. Call `weir_sender_config_init`, then change what you need.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_sender_config {
    /// `sizeof(weir_sender_config)`; the init function sets it.
    pub struct_size: usize,
    /// Any number. It spreads the times of sender reports; give each sender another one. Equal
    /// seeds and equal calls give equal results.
    pub random_seed: u64,
    /// SSRC of the media stream. The default is 1.
    pub ssrc: u32,
    /// SSRC of padding packets. Media must not use it: such packets are refused. The default is 2.
    pub padding_ssrc: u32,
    /// Clock rate of the RTP timestamps, in Hz. The default is 90,000.
    pub clock_rate_hz: u32,
    /// Bytes that other layers add to each RTP packet; they count towards the rate. The default is
    /// 28, for IPv4 and UDP. Add the overhead of encryption.
    pub overhead_bytes: u32,
    /// Id of the header extension with the transport-wide sequence number, which TWCC needs; zero
    /// if the packets do not have it. The default is 1.
    pub transport_sequence_number_id: u8,
    /// Id of the header extension with the absolute send time, which receivers need that answer
    /// with REMB; zero if the packets do not have it. The default is zero.
    pub abs_send_time_id: u8,
    /// Payload type of padding packets, at most 127. Media must not use it: such packets are
    /// refused. The default is 127.
    pub padding_payload_type: u8,
    /// 1: send sender reports, 0: the host sends its own. The default is 1.
    pub sender_reports: u8,
    /// Zero.
    pub reserved: u32,
}

growing!(weir_sender_config, reserved: u32, Self {
    struct_size: size_of::<Self>(),
    random_seed: 0,
    ssrc: 1,
    padding_ssrc: 2,
    clock_rate_hz: 90_000,
    overhead_bytes: 28,
    transport_sequence_number_id: 1,
    abs_send_time_id: 0,
    padding_payload_type: 127,
    sender_reports: 1,
    reserved: 0,
});

impl weir_sender_config {
    fn checked(&self) -> Outcome<SenderConfig> {
        let payload_type = PayloadType::new(self.padding_payload_type);
        let payload_type = payload_type.ok_or(weir_status::InvalidArgument)?;
        if self.clock_rate_hz == 0 || self.padding_ssrc == self.ssrc || self.reserved != 0 {
            return Err(weir_status::InvalidArgument);
        }
        let extensions = extensions(self.transport_sequence_number_id, self.abs_send_time_id)?;
        Ok(SenderConfig::new(self.ssrc, extensions)
            .with_overhead(DataSize::from_bytes(self.overhead_bytes.into()))
            .with_padding_ssrc(self.padding_ssrc)
            .with_padding_payload_type(payload_type)
            .with_clock_rate(self.clock_rate_hz)
            .with_sender_reports(switch(self.sender_reports)?))
    }
}

/// A packet to be sent now. Set `struct_size` to `sizeof(weir_packet)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_packet {
    /// `sizeof(weir_packet)`.
    pub struct_size: usize,
    /// The RTP packet, with its header extensions filled in. It is valid until the next call with
    /// the same sender.
    pub data: *const u8,
    /// Number of bytes.
    pub length: usize,
    /// Transport-wide sequence number without wrapping.
    pub sequence_number: i64,
    /// Number of the probe to which the packet belongs, or `WEIR_NO_PROBE`.
    pub probe_id: u64,
    /// 1: the packet is padding that the sender made.
    pub is_padding: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

growing!(weir_packet, reserved: [u8; 7], Self {
    struct_size: size_of::<Self>(),
    data: core::ptr::null(),
    length: 0,
    sequence_number: 0,
    probe_id: WEIR_NO_PROBE,
    is_padding: 0,
    reserved: [0; 7],
});

/// Fills the configuration with the defaults. `size` is `sizeof(weir_sender_config)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_config_init(
    config: *mut weir_sender_config,
    size: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    border::contain(|| unsafe { init(config, size) })
}

/// Creates a sender that starts at `now_ns`. `name` is one of `weir_algorithm_name`. `settings` and
/// `config` were filled by their init functions. The new handle is written to `sender`; after an
/// error, NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_new(
    now_ns: i64,
    name: *const c_char,
    settings: *const weir_settings,
    config: *const weir_sender_config,
    sender: *mut *mut weir_sender,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::create(sender, || {
            let controller = build(name, settings)?;
            let raw = get(config)?;
            let mut guard = Guard::new();
            let now = guard.now(now_ns);
            let sender = Sender::new(now, controller, raw.checked()?, random(raw.random_seed));
            let (incoming, handed_out, requests) = Default::default();
            Ok(weir_sender { guard, sender, incoming, handed_out, requests })
        })
    }
}

/// Frees a sender. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_free(sender: *mut weir_sender) {
    // SAFETY: as this function requires.
    unsafe { border::free(sender) };
}

/// Copies the RTP packets of a picture to the end of the send queue. Pass all packets of a frame in
/// one call. Each packet has the header extensions of the configuration; their values are filled in
/// later. Sound that is passed here waits behind the pictures: use `weir_sender_enqueue_as`. After
/// an error, none of the packets is queued.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_enqueue(
    sender: *mut weir_sender,
    now_ns: i64,
    packets: *const weir_bytes,
    count: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { enqueue(sender, now_ns, weir_packet_kind::Video as u32, (packets, count)) }
}

/// Copies RTP packets to the front of the send queue, for retransmissions. Otherwise as
/// `weir_sender_enqueue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_enqueue_urgent(
    sender: *mut weir_sender,
    now_ns: i64,
    packets: *const weir_bytes,
    count: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { enqueue(sender, now_ns, weir_packet_kind::Repair as u32, (packets, count)) }
}

/// Copies RTP packets of this `weir_packet_kind` to the send queue: sound leaves at once, before
/// repair and pictures. Otherwise as `weir_sender_enqueue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_enqueue_as(
    sender: *mut weir_sender,
    now_ns: i64,
    kind: u32,
    packets: *const weir_bytes,
    count: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { enqueue(sender, now_ns, kind, (packets, count)) }
}

unsafe fn enqueue(
    sender: *mut weir_sender,
    now_ns: i64,
    kind: u32,
    (packets, count): (*const weir_bytes, usize),
) -> weir_status {
    // SAFETY: as the exported functions require.
    unsafe {
        border::change(sender, |handle| {
            let kind = kind_of(kind)?;
            let now = handle.guard.now(now_ns);
            handle.incoming.clear();
            for bytes in array(&packets, count)? {
                let bytes = packet(&bytes.data, bytes.length)?;
                let mut buffer = handle.sender.buffer();
                buffer.extend_from_slice(bytes);
                handle.incoming.push(buffer);
            }
            let result = handle.sender.enqueue_as(now, kind, handle.incoming.drain(..));
            result.map_err(|error| match error {
                EnqueueError::NoExtension(_) => weir_status::NoExtension,
                EnqueueError::NotRtp(_) => weir_status::NotRtp,
                _ => weir_status::PaddingClash,
            })
        })
    }
}

/// Writes the next packet to `packet` if one may leave now, else returns `WEIR_STATUS_NONE`. Call
/// it until it does, and send each packet at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_next_packet(
    sender: *mut weir_sender,
    now_ns: i64,
    packet: *mut weir_packet,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            check_size(packet)?;
            let now = handle.guard.now(now_ns);
            let next = handle.sender.next_packet(now).ok_or(weir_status::None)?;
            let sent = std::mem::replace(&mut handle.handed_out, next.content);
            handle.sender.recycle(sent);
            let raw = weir_packet {
                data: handle.handed_out.as_ptr(),
                length: handle.handed_out.len(),
                sequence_number: next.sent.sequence_number,
                probe_id: number_of(next.sent.probe),
                is_padding: next.sent.padding.into(),
                ..weir_packet::defaults()
            };
            set(packet, &raw)
        })
    }
}

/// An RTCP datagram arrived. It may contain any bytes. Feedback, reports and REMB are used. What
/// the receiver asks for, NACK, PLI and FIR, waits for `weir_sender_next_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_rtcp(
    sender: *mut weir_sender,
    now_ns: i64,
    data: *const u8,
    length: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let bytes = packet(&data, length)?;
            let now = handle.guard.now(now_ns);
            let mut result = Ok(());
            for event in handle.sender.on_rtcp(now, bytes) {
                match event {
                    RtcpEvent::Retransmit(nack) => {
                        let kind = weir_request_kind::Retransmit;
                        for number in nack.sequence_numbers() {
                            let request = weir_request::new(kind, nack.media_ssrc(), number);
                            request.wait_in(&mut handle.requests);
                        }
                    }
                    RtcpEvent::KeyFrame(request) => {
                        for ssrc in request.media_ssrcs() {
                            let request = weir_request::new(weir_request_kind::KeyFrame, ssrc, 0);
                            request.wait_in(&mut handle.requests);
                        }
                    }
                    RtcpEvent::Malformed(_) => result = Err(weir_status::NotRtcp),
                    _ => {}
                }
            }
            result
        })
    }
}

/// Takes what the receiver asks for next, or returns `WEIR_STATUS_NONE`. The last 1,024 requests
/// are kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_next_request(
    sender: *mut weir_sender,
    request: *mut weir_request,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            check_size(request)?;
            let next = handle.requests.pop_front().ok_or(weir_status::None)?;
            set(request, &next)
        })
    }
}

/// The receiver limits the bitrate by signalling of the host's own, in bit/s; `WEIR_NO_VALUE` lifts
/// the limit. REMB is read by `weir_sender_on_rtcp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_receiver_limit(
    sender: *mut weir_sender,
    now_ns: i64,
    limit_bps: u64,
) -> weir_status {
    let limit = if limit_bps != WEIR_NO_VALUE { Some(Bitrate::from_bps(limit_bps)) } else { None };
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.on_receiver_limit(now, limit);
            Ok(())
        })
    }
}

/// Handles timeouts. RTCP that is due then waits for `weir_sender_next_rtcp`. A call before
/// `weir_sender_next_timeout` does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_timeout(
    sender: *mut weir_sender,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.on_timeout(now);
            Ok(())
        })
    }
}

/// Takes the next RTCP datagram to send, or returns `WEIR_STATUS_NONE`. Its bytes are valid until
/// the next call with the same sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_next_rtcp(
    sender: *mut weir_sender,
    rtcp: *mut weir_bytes,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            border::check_aligned(rtcp)?;
            let bytes = handle.sender.next_rtcp().ok_or(weir_status::None)?;
            put(rtcp, weir_bytes::of(bytes))
        })
    }
}

/// Writes the time in ns at which `weir_sender_on_timeout` and `weir_sender_next_packet` are due,
/// or `WEIR_NEVER`. The time may lie in the past.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_next_timeout(
    sender: *const weir_sender,
    due_ns: *mut i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(sender, |handle| {
            put(due_ns, handle.sender.next_timeout().map_or(WEIR_NEVER, Timestamp::as_nanos))
        })
    }
}

/// Writes the controller's target. A source that can drop frames follows `source_bitrate_bps`, any
/// other source `bitrate_bps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_target(
    sender: *const weir_sender,
    target: *mut weir_target,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { border::read(sender, |handle| set(target, &handle.sender.target().into())) }
}

/// Takes the change of the target bitrate since the last call, or returns `WEIR_STATUS_NONE`.
/// Writes the bitrates before and after in bit/s, and to `metrics` the reason and what led to it.
/// Each of the three pointers may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_take_change(
    sender: *mut weir_sender,
    from_bps: *mut u64,
    to_bps: *mut u64,
    metrics: *mut weir_metrics,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            if !metrics.is_null() {
                // Before the change is taken, so that an error loses nothing.
                check_size(metrics)?;
            }
            let change = handle.sender.take_change().ok_or(weir_status::None)?;
            for (pointer, bitrate) in [(from_bps, change.from), (to_bps, change.to)] {
                if !pointer.is_null() {
                    put(pointer, bitrate.as_bps())?;
                }
            }
            if metrics.is_null() { Ok(()) } else { set(metrics, &(&change.metrics).into()) }
        })
    }
}

/// Writes the controller's internal signals, for traces and reports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_metrics(
    sender: *const weir_sender,
    metrics: *mut weir_metrics,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(sender, |handle| {
            set(metrics, &(&handle.sender.media().controller().metrics()).into())
        })
    }
}

/// Writes what the encoder of the pictures may make, in bit/s, headers included:
/// `source_bitrate_bps` of the target less the rate of sound and of packets that were sent again in
/// the last second, less what waits in the queue for more than 50 ms, and at least half of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_media_bitrate(
    sender: *const weir_sender,
    bitrate_bps: *mut u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(sender, |handle| put(bitrate_bps, handle.sender.media_bitrate().as_bps()))
    }
}

/// Writes 1 if a picture that is taken now should be encoded, and 0 if it would be late, because
/// more than 250 ms wait in the queue: leave it out before the encoder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_wants_frame(
    sender: *const weir_sender,
    wants_frame: *mut u8,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { border::read(sender, |handle| put(wants_frame, handle.sender.wants_frame().into())) }
}

/// Writes the number of bytes in the send queue, headers included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_queued(
    sender: *const weir_sender,
    bytes: *mut u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { border::read(sender, |handle| put(bytes, handle.sender.media().queued().as_bytes())) }
}

/// The host's RTP stack measured this round-trip time of the path, in ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_round_trip_time(
    sender: *mut weir_sender,
    now_ns: i64,
    rtt_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.on_round_trip_time(now, TimeDelta::from_nanos(rtt_ns));
            Ok(())
        })
    }
}

/// The application changed the range of the target bitrate, in bit/s: `0 < min <= start <= max`.
/// What is known of the path stays known. The start counts from the next new route; 0 stands for
/// 300,000, or what is nearest to it in the range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_set_limits(
    sender: *mut weir_sender,
    now_ns: i64,
    min_bps: u64,
    start_bps: u64,
    max_bps: u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let limits = new_limits(min_bps, start_bps, max_bps)?;
            let now = handle.guard.now(now_ns);
            handle.sender.set_limits(now, limits);
            Ok(())
        })
    }
}

/// The most that the source could use now, in bit/s; `WEIR_NO_VALUE` for an unknown amount. A
/// controller that probes does not probe far above it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_set_desired_bitrate(
    sender: *mut weir_sender,
    now_ns: i64,
    desired_bps: u64,
) -> weir_status {
    let desired = (desired_bps != WEIR_NO_VALUE).then(|| Bitrate::from_bps(desired_bps));
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.set_desired_bitrate(now, desired);
            Ok(())
        })
    }
}

/// Packets take another route from now on, for instance because the device left a Wi-Fi network.
/// What was measured is forgotten, and the target is the start bitrate again. Feedback on
/// packets of the old route is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_route_change(
    sender: *mut weir_sender,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.on_route_change(now);
            Ok(())
        })
    }
}

/// The coupled flows of this host gave this flow a new share of their total rate, in bit/s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_on_shared_rate(
    sender: *mut weir_sender,
    now_ns: i64,
    share_bps: u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.on_shared_rate(now, Bitrate::from_bps(share_bps));
            Ok(())
        })
    }
}

/// Discards all queued packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sender_clear_queue(
    sender: *mut weir_sender,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(sender, |handle| {
            let now = handle.guard.now(now_ns);
            handle.sender.clear_queue(now);
            Ok(())
        })
    }
}
