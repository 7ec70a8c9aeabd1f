//! A controller alone, for hosts with their own RTP stack, pacer and packet history.

use core::ffi::c_char;

use weir::controller::Controller;
use weir::feedback::{ArrivalTimes, FeedbackReport, PacketReport, ProbeId, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::border::{self, Guard, Handle, Outcome, array, put, switch};
use crate::growing::{get, growing, set};
use crate::metrics::weir_metrics;
use crate::rtp::ecn;
use crate::settings::{build, new_limits, weir_settings};
use crate::status::weir_status;
use crate::target::weir_target;
use crate::{WEIR_NEVER, WEIR_NO_PROBE, WEIR_NO_TIME, WEIR_NO_VALUE};

/// A congestion controller.
pub struct weir_controller {
    guard: Guard,
    controller: Box<dyn Controller + Send>,
    /// The report of the last call. Its memory is reused.
    report: FeedbackReport,
}

impl Handle for weir_controller {
    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// A packet that left the pacer. Set `struct_size` to `sizeof(weir_sent_packet)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_sent_packet {
    /// `sizeof(weir_sent_packet)`.
    pub struct_size: usize,
    /// Transport-wide sequence number without wrapping: increases by one with each packet.
    pub sequence_number: i64,
    /// Size in bytes. Count the same headers everywhere; IP and UDP headers fill the path too.
    pub size_bytes: u64,
    /// Bytes left in the send queue after this packet.
    pub queued_bytes: u64,
    /// Number of the probe to which the packet belongs, or `WEIR_NO_PROBE`.
    pub probe_id: u64,
    /// 1: the packet carries neither media nor repair of media.
    pub is_padding: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

growing!(weir_sent_packet, reserved: [u8; 7], Self {
    struct_size: size_of::<Self>(),
    sequence_number: 0,
    size_bytes: 0,
    queued_bytes: 0,
    probe_id: WEIR_NO_PROBE,
    is_padding: 0,
    reserved: [0; 7],
});

/// What became of one packet. The layout never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_packet_report {
    /// As when it was sent.
    pub sequence_number: i64,
    /// As when it was sent.
    pub size_bytes: u64,
    /// Time at which the packet left the pacer, in ns on the sender's clock.
    pub send_time_ns: i64,
    /// Time at which the packet arrived, in ns on the receiver's clock; `WEIR_NO_TIME` if the
    /// receiver does not have it.
    pub arrival_time_ns: i64,
    /// As when it was sent.
    pub probe_id: u64,
    /// The two ECN bits of the IP header on arrival: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// 1: an earlier report called the packet lost, but it was only late.
    pub is_recovered: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

/// Where the arrival times of a feedback report come from.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_arrival_times {
    /// The receiver measured the arrival of each packet.
    Measured = 0,
    /// Derived from RTCP receiver reports: send time plus round-trip time.
    RoundTrip = 1,
    /// The times at which the acknowledgements came, on the sender's clock, as in QUIC.
    Acknowledged = 2,
}

/// The news in one feedback packet. Set `struct_size` to `sizeof(weir_feedback)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_feedback {
    /// `sizeof(weir_feedback)`.
    pub struct_size: usize,
    /// The packets by increasing sequence number, each one once.
    pub packets: *const weir_packet_report,
    /// Number of packets, at most `WEIR_MAX_PACKETS`.
    pub packet_count: usize,
    /// Number of feedback packets lost since the last report, if the format shows it.
    pub missing_feedback: u32,
    /// A `weir_arrival_times`.
    pub arrival_times: u32,
    /// 1: the arrival times are on another clock than those of the last report.
    pub is_new_clock: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

growing!(weir_feedback, reserved: [u8; 7], Self {
    struct_size: size_of::<Self>(),
    packets: core::ptr::null(),
    packet_count: 0,
    missing_feedback: 0,
    arrival_times: weir_arrival_times::Measured as u32,
    is_new_clock: 0,
    reserved: [0; 7],
});

/// Creates a controller. `name` is one of `weir_algorithm_name`. `settings` were filled by
/// `weir_settings_init`. The new handle is written to `controller`; after an error, NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_new(
    name: *const c_char,
    settings: *const weir_settings,
    controller: *mut *mut weir_controller,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::create(controller, || {
            let controller = build(name, settings)?;
            Ok(weir_controller {
                guard: Guard::new(),
                controller,
                report: FeedbackReport::default(),
            })
        })
    }
}

/// Frees a controller. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_free(controller: *mut weir_controller) {
    // SAFETY: as this function requires.
    unsafe { border::free(controller) };
}

/// Passes an event on to the controller.
///
/// # Safety
/// As [`border::change`].
unsafe fn event(
    controller: *mut weir_controller,
    now_ns: i64,
    pass_on: impl FnOnce(&mut weir_controller, Timestamp) -> Outcome,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(controller, |handle| {
            let now = handle.guard.now(now_ns);
            pass_on(handle, now)
        })
    }
}

/// The media source put `added_bytes` into the send queue, which now contains `queued_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_media_queued(
    controller: *mut weir_controller,
    now_ns: i64,
    added_bytes: u64,
    queued_bytes: u64,
) -> weir_status {
    let [added, queued] = [added_bytes, queued_bytes].map(DataSize::from_bytes);
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.on_media_queued(now, added, queued);
            Ok(())
        })
    }
}

/// A packet left the pacer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_packet_sent(
    controller: *mut weir_controller,
    now_ns: i64,
    packet: *const weir_sent_packet,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.on_packet_sent(now, &get(packet)?.checked()?);
            Ok(())
        })
    }
}

/// A feedback report arrived from the receiver. The array is only read during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_feedback(
    controller: *mut weir_controller,
    now_ns: i64,
    feedback: *const weir_feedback,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            get(feedback)?.read_into(&mut handle.report)?;
            handle.controller.on_feedback(now, &handle.report);
            Ok(())
        })
    }
}

/// A receiver report gave this round-trip time of the path, in ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_round_trip_time(
    controller: *mut weir_controller,
    now_ns: i64,
    rtt_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.on_round_trip_time(now, TimeDelta::from_nanos(rtt_ns));
            Ok(())
        })
    }
}

/// The receiver set an upper limit of the bitrate (REMB), in bit/s. `WEIR_NO_VALUE` lifts it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_receiver_limit(
    controller: *mut weir_controller,
    now_ns: i64,
    limit_bps: u64,
) -> weir_status {
    let limit = if limit_bps != WEIR_NO_VALUE { Some(Bitrate::from_bps(limit_bps)) } else { None };
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.on_receiver_limit(now, limit);
            Ok(())
        })
    }
}

/// The application changed the range of the target bitrate, in bit/s: `0 < min <= start <= max`.
/// What is known of the path stays known. The start counts from the next new route; 0 stands for
/// 300,000, or what is nearest to it in the range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_set_limits(
    controller: *mut weir_controller,
    now_ns: i64,
    min_bps: u64,
    start_bps: u64,
    max_bps: u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(controller, |handle| {
            let limits = new_limits(min_bps, start_bps, max_bps)?;
            let now = handle.guard.now(now_ns);
            handle.controller.set_limits(now, limits);
            Ok(())
        })
    }
}

/// The most that the source could use now, in bit/s; `WEIR_NO_VALUE` for an unknown amount. A
/// controller that probes does not probe far above it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_set_desired_bitrate(
    controller: *mut weir_controller,
    now_ns: i64,
    desired_bps: u64,
) -> weir_status {
    let desired = (desired_bps != WEIR_NO_VALUE).then(|| Bitrate::from_bps(desired_bps));
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.set_desired_bitrate(now, desired);
            Ok(())
        })
    }
}

/// Packets take another route from now on, for instance because the device left a Wi-Fi network.
/// What was measured is forgotten, and the target is the start bitrate again. Do not pass on
/// feedback on packets of the old route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_route_change(
    controller: *mut weir_controller,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(controller, |handle| {
            let now = handle.guard.now(now_ns);
            handle.controller.on_route_change(now);
            Ok(())
        })
    }
}

/// The coupled flows of this sender gave this flow a new share of their total rate, in bit/s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_shared_rate(
    controller: *mut weir_controller,
    now_ns: i64,
    share_bps: u64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            handle.controller.on_shared_rate(now, Bitrate::from_bps(share_bps));
            Ok(())
        })
    }
}

/// Handles the timeout if it is due. A call before `weir_controller_next_timeout` does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_on_timeout(
    controller: *mut weir_controller,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        event(controller, now_ns, |handle, now| {
            if handle.controller.next_timeout().is_some_and(|due| due <= now) {
                handle.controller.on_timeout(now);
            }
            Ok(())
        })
    }
}

/// Writes the time in ns at which `weir_controller_on_timeout` is due, or `WEIR_NEVER`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_next_timeout(
    controller: *const weir_controller,
    due_ns: *mut i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(controller, |handle| {
            put(due_ns, handle.controller.next_timeout().map_or(WEIR_NEVER, Timestamp::as_nanos))
        })
    }
}

/// Writes what the sender should do now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_target(
    controller: *const weir_controller,
    target: *mut weir_target,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe { border::read(controller, |handle| set(target, &(&handle.controller.target()).into())) }
}

/// Writes the internal signals, for traces and reports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_metrics(
    controller: *const weir_controller,
    metrics: *mut weir_metrics,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(controller, |handle| set(metrics, &(&handle.controller.metrics()).into()))
    }
}

/// The probe with this number of the header, which counts from 1.
fn probe(number: u64) -> Outcome<Option<ProbeId>> {
    let Some(id) = number.checked_sub(1) else { return Ok(None) };
    u32::try_from(id).map(|id| Some(ProbeId(id))).map_err(|_| weir_status::InvalidArgument)
}

/// An error unless all bytes are zero.
fn check_reserved(bytes: &[u8]) -> Outcome {
    if bytes.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(weir_status::InvalidArgument) }
}

impl weir_sent_packet {
    fn checked(&self) -> Outcome<SentPacket> {
        check_reserved(&self.reserved)?;
        Ok(SentPacket::new(self.sequence_number, DataSize::from_bytes(self.size_bytes))
            .with_queued(DataSize::from_bytes(self.queued_bytes))
            .with_probe(probe(self.probe_id)?)
            .with_padding(switch(self.is_padding)?))
    }
}

impl weir_packet_report {
    fn checked(&self) -> Outcome<PacketReport> {
        check_reserved(&self.reserved)?;
        let arrival = (self.arrival_time_ns != WEIR_NO_TIME)
            .then(|| Timestamp::from_nanos(self.arrival_time_ns));
        let size = DataSize::from_bytes(self.size_bytes);
        let send_time = Timestamp::from_nanos(self.send_time_ns);
        Ok(PacketReport::new(self.sequence_number, size, send_time)
            .with_arrival_time(arrival)
            .with_ecn(ecn(self.ecn)?)
            .with_recovered(switch(self.is_recovered)?)
            .with_probe(probe(self.probe_id)?))
    }
}

impl weir_feedback {
    /// Overwrites the report.
    ///
    /// # Safety
    /// `packets` is NULL or points to `packet_count` elements.
    unsafe fn read_into(&self, report: &mut FeedbackReport) -> Outcome {
        check_reserved(&self.reserved)?;
        report.missing_feedback = self.missing_feedback;
        report.arrival_times = match self.arrival_times {
            0 => ArrivalTimes::Measured,
            1 => ArrivalTimes::RoundTrip,
            2 => ArrivalTimes::Acknowledged,
            _ => return Err(weir_status::InvalidArgument),
        };
        report.new_clock = switch(self.is_new_clock)?;
        report.packets.clear();
        // SAFETY: as this function requires.
        for packet in unsafe { array(&self.packets, self.packet_count) }? {
            let last = report.packets.last().map(|packet| packet.sequence_number);
            if last.is_some_and(|last| packet.sequence_number <= last) {
                return Err(weir_status::InvalidArgument);
            }
            report.packets.push(packet.checked()?);
        }
        Ok(())
    }
}
