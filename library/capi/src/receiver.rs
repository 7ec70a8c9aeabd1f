//! A receiver: RTP and RTCP in, feedback and reports out.

use weir::units::TimeDelta;
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, RtcpEvent};

use crate::border::{self, Guard, Handle, Outcome, packet, put, weir_bytes};
use crate::growing::{get, growing, init};
use crate::random::random;
use crate::rtp::{ecn, extensions};
use crate::status::weir_status;

/// The receiving half of a media flow.
pub struct weir_receiver {
    guard: Guard,
    receiver: Receiver,
    /// TWCC can be sent: the packets have a transport-wide sequence number.
    has_sequence_number: bool,
}

impl Handle for weir_receiver {
    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// How a receiver reports the packets that arrived.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_feedback_format {
    /// Transport-wide feedback: `transport-cc` in SDP.
    Twcc = 0,
    /// Congestion control feedback of RFC 8888: `ack ccfb` in SDP.
    Ccfb = 1,
    /// Only RTCP receiver reports.
    ReceiverReports = 2,
}

/// Configuration of a receiver. Call `weir_receiver_config_init`, then change what you need.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_receiver_config {
    /// `sizeof(weir_receiver_config)`; the init function sets it.
    pub struct_size: usize,
    /// Any number. It spreads the times of receiver reports; give each receiver another one.
    pub random_seed: u64,
    /// Time between TWCC or CCFB packets in ns, 1 ms to 10 s. The default is 100 ms; between 50 and
    /// 200 ms is usual.
    pub interval_ns: i64,
    /// The receiver's own SSRC. The default is 3.
    pub ssrc: u32,
    /// A `weir_feedback_format`. The default is TWCC.
    pub feedback: u32,
    /// Clock rate of the RTP timestamps, in Hz. The default is 90,000.
    pub clock_rate_hz: u32,
    /// As in `weir_sender_config`.
    pub transport_sequence_number_id: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

growing!(weir_receiver_config, reserved: [u8; 3], Self {
    struct_size: size_of::<Self>(),
    random_seed: 0,
    interval_ns: 100_000_000,
    ssrc: 3,
    feedback: weir_feedback_format::Twcc as u32,
    clock_rate_hz: 90_000,
    transport_sequence_number_id: 1,
    reserved: [0; 3],
});

impl weir_receiver_config {
    fn checked(&self) -> Outcome<ReceiverConfig> {
        let interval = TimeDelta::from_nanos(self.interval_ns);
        let is_usable = self.clock_rate_hz != 0 && self.reserved == [0; 3];
        if !is_usable || interval < TimeDelta::from_millis(1) || interval > TimeDelta::from_secs(10)
        {
            return Err(weir_status::InvalidArgument);
        }
        let extensions = extensions(self.transport_sequence_number_id, 0)?;
        let has_sequence_number = extensions.transport_sequence_number.is_some();
        Ok(ReceiverConfig::new(
            self.ssrc,
            extensions,
            feedback(self.feedback, has_sequence_number)?,
        )
        .with_interval(interval)
        .with_clock_rate(self.clock_rate_hz))
    }
}

fn feedback(format: u32, has_sequence_number: bool) -> Outcome<Feedback> {
    match format {
        0 if has_sequence_number => Ok(Feedback::Twcc),
        1 => Ok(Feedback::Ccfb),
        2 => Ok(Feedback::ReceiverReports),
        _ => Err(weir_status::InvalidArgument),
    }
}

/// Fills the configuration with the defaults. `size` is `sizeof(weir_receiver_config)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_config_init(
    config: *mut weir_receiver_config,
    size: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    border::contain(|| unsafe { init(config, size) })
}

/// Creates a receiver that starts at `now_ns`. `config` was filled by its init function. The new
/// handle is written to `receiver`; after an error, NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_new(
    now_ns: i64,
    config: *const weir_receiver_config,
    receiver: *mut *mut weir_receiver,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::create(receiver, || {
            let raw = get(config)?;
            let config = raw.checked()?;
            let mut guard = Guard::new();
            let receiver = Receiver::new(guard.now(now_ns), config, random(raw.random_seed));
            let has_sequence_number = config.extensions.transport_sequence_number.is_some();
            Ok(weir_receiver { guard, receiver, has_sequence_number })
        })
    }
}

/// Frees a receiver. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_free(receiver: *mut weir_receiver) {
    // SAFETY: as this function requires.
    unsafe { border::free(receiver) };
}

/// An RTP packet arrived. Its payload may be encrypted. `ecn_bits` are the two ECN bits of its IP
/// header: 0 Not-ECT or unknown, 1 ECT(1), 2 ECT(0), 3 CE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_on_rtp(
    receiver: *mut weir_receiver,
    now_ns: i64,
    data: *const u8,
    length: usize,
    ecn_bits: u8,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(receiver, |handle| {
            let (bytes, ecn) = (packet(&data, length)?, ecn(ecn_bits)?);
            let now = handle.guard.now(now_ns);
            handle.receiver.on_rtp(now, bytes, ecn).map_err(|_| weir_status::NotRtp)
        })
    }
}

/// An RTCP datagram arrived. It may contain any bytes. Sender reports are used; everything else is
/// for the host to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_on_rtcp(
    receiver: *mut weir_receiver,
    now_ns: i64,
    data: *const u8,
    length: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(receiver, |handle| {
            let bytes = packet(&data, length)?;
            let now = handle.guard.now(now_ns);
            let ignored = handle.receiver.on_rtcp(now, bytes);
            let is_malformed = ignored.iter().any(|it| matches!(it, RtcpEvent::Malformed(_)));
            if is_malformed { Err(weir_status::NotRtcp) } else { Ok(()) }
        })
    }
}

/// Handles timeouts. RTCP that is due then waits for `weir_receiver_next_rtcp`. A call before
/// `weir_receiver_next_timeout` does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_on_timeout(
    receiver: *mut weir_receiver,
    now_ns: i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(receiver, |handle| {
            let now = handle.guard.now(now_ns);
            handle.receiver.on_timeout(now);
            Ok(())
        })
    }
}

/// Takes the next RTCP datagram to send, or returns `WEIR_STATUS_NONE`. Its bytes are valid until
/// the next call with the same receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_next_rtcp(
    receiver: *mut weir_receiver,
    rtcp: *mut weir_bytes,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(receiver, |handle| {
            border::check_aligned(rtcp)?;
            let bytes = handle.receiver.next_rtcp().ok_or(weir_status::None)?;
            put(rtcp, weir_bytes::of(bytes))
        })
    }
}

/// Writes the time in ns at which `weir_receiver_on_timeout` is due.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_next_timeout(
    receiver: *const weir_receiver,
    due_ns: *mut i64,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::read(receiver, |handle| put(due_ns, handle.receiver.next_timeout().as_nanos()))
    }
}

/// Switches to another `weir_feedback_format`. Earlier arrivals are first reported in the old
/// format; that RTCP waits for `weir_receiver_next_rtcp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_receiver_set_feedback(
    receiver: *mut weir_receiver,
    now_ns: i64,
    format: u32,
) -> weir_status {
    // SAFETY: as this function requires.
    unsafe {
        border::change(receiver, |handle| {
            let format = feedback(format, handle.has_sequence_number)?;
            let now = handle.guard.now(now_ns);
            handle.receiver.set_feedback(now, format);
            Ok(())
        })
    }
}
