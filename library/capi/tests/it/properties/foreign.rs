//! Controllers behind the C functions, as Rust objects.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use weir::RateLimits;
use weir::controller::{
    Burst, Controller, Metrics, Probe, ProbeId, Reason, Settings, Signals, Target, Window,
};
use weir::feedback::{ArrivalTimes, FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, ControllerFactory};
use weir_capi::*;

use crate::common::{ok, probe_number, raw_report, raw_settings, sized};

/// A controller of which this side knows only the C functions.
pub struct Foreign {
    handle: *mut weir_controller,
    reports: Vec<weir_packet_report>,
}

// SAFETY: the header allows a handle to move between threads.
unsafe impl Send for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: it came from `weir_controller_new` and is freed once.
        unsafe { weir_controller_free(self.handle) };
    }
}

/// A text of the library with the lifetime that `Metrics` wants. Tests may leak it.
fn text(name: &[c_char]) -> &'static str {
    // SAFETY: the library's names end with NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    name.to_str().expect("names are ASCII").to_owned().leak()
}

impl Foreign {
    pub fn new(algorithm: Algorithm, settings: Settings) -> Self {
        let name = CString::new(algorithm.name()).expect("names have no NUL");
        let mut handle = null_mut();
        // SAFETY: all pointers are valid.
        ok(unsafe { weir_controller_new(name.as_ptr(), &raw_settings(&settings), &mut handle) });
        Self { handle, reports: Vec::new() }
    }

    /// Makes controllers of this algorithm behind the border.
    pub fn factory(algorithm: Algorithm) -> ControllerFactory {
        ControllerFactory::new(algorithm.name(), move |settings| {
            Box::new(Self::new(algorithm, settings))
        })
        .with_ecn(move |wanted| algorithm.ecn_mode(wanted))
    }
}

impl Controller for Foreign {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        let [added, queued] = [added, queued].map(DataSize::as_bytes);
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_on_media_queued(self.handle, now.as_nanos(), added, queued) });
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        let raw = weir_sent_packet {
            sequence_number: packet.sequence_number,
            size_bytes: packet.size.as_bytes(),
            queued_bytes: packet.queued.as_bytes(),
            probe_id: probe_number(packet.probe),
            is_padding: packet.padding.into(),
            ..sized()
        };
        // SAFETY: the handle and the struct live.
        ok(unsafe { weir_controller_on_packet_sent(self.handle, now.as_nanos(), &raw) });
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.reports.clear();
        self.reports.extend(report.packets.iter().map(raw_report));
        let raw = weir_feedback {
            packets: self.reports.as_ptr(),
            packet_count: self.reports.len(),
            missing_feedback: report.missing_feedback,
            arrival_times: match report.arrival_times {
                ArrivalTimes::Measured => weir_arrival_times::Measured,
                ArrivalTimes::RoundTrip => weir_arrival_times::RoundTrip,
                ArrivalTimes::Acknowledged => weir_arrival_times::Acknowledged,
            } as u32,
            is_new_clock: report.new_clock.into(),
            ..sized()
        };
        // SAFETY: the handle, the array and the struct live.
        ok(unsafe { weir_controller_on_feedback(self.handle, now.as_nanos(), &raw) });
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        // SAFETY: the handle lives.
        ok(unsafe {
            weir_controller_on_round_trip_time(self.handle, now.as_nanos(), rtt.as_nanos())
        });
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        let limit = limit.map_or(WEIR_NO_VALUE, Bitrate::as_bps);
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_on_receiver_limit(self.handle, now.as_nanos(), limit) });
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        let [min, start, max] = [limits.min(), limits.start(), limits.max()].map(Bitrate::as_bps);
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_set_limits(self.handle, now.as_nanos(), min, start, max) });
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        let desired = desired.map_or(WEIR_NO_VALUE, Bitrate::as_bps);
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_set_desired_bitrate(self.handle, now.as_nanos(), desired) });
    }

    fn on_route_change(&mut self, now: Timestamp) {
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_on_route_change(self.handle, now.as_nanos()) });
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_on_shared_rate(self.handle, now.as_nanos(), share.as_bps()) });
    }

    fn on_timeout(&mut self, now: Timestamp) {
        // SAFETY: the handle lives.
        ok(unsafe { weir_controller_on_timeout(self.handle, now.as_nanos()) });
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        let mut due = 0;
        // SAFETY: the handle and the variable live.
        ok(unsafe { weir_controller_next_timeout(self.handle, &mut due) });
        (due != WEIR_NEVER).then(|| Timestamp::from_nanos(due))
    }

    fn target(&self) -> Target {
        let mut raw: weir_target = sized();
        // SAFETY: the handle and the struct live.
        ok(unsafe { weir_controller_target(self.handle, &mut raw) });
        let burst_time = TimeDelta::from_nanos(raw.burst_time_ns);
        let burst = if raw.burst == weir_burst::Whole as u32 {
            Burst::Whole(burst_time)
        } else {
            Burst::Ahead(burst_time)
        };
        let window = (raw.congestion_window_bytes != WEIR_NO_VALUE).then(|| {
            let [window, available] = [raw.congestion_window_bytes, raw.available_bytes];
            Window::new(DataSize::from_bytes(window), DataSize::from_bytes(available))
        });
        let probe = raw.probe_id.checked_sub(1).map(|id| {
            let (id, size) = (ProbeId(id as u32), DataSize::from_bytes(raw.probe_size_bytes));
            Probe::new(id, Bitrate::from_bps(raw.probe_rate_bps), size, raw.probe_packets)
        });
        let [bitrate, source, pacing, padding] =
            [raw.bitrate_bps, raw.source_bitrate_bps, raw.pacing_rate_bps, raw.padding_rate_bps]
                .map(Bitrate::from_bps);
        Target::new(bitrate, pacing)
            .with_source_bitrate(source)
            .with_burst(burst)
            .with_window(window)
            .with_padding_rate(padding)
            .with_probe(probe)
    }

    fn metrics(&self) -> Metrics {
        let mut raw: weir_metrics = sized();
        // SAFETY: the handle and the struct live.
        ok(unsafe { weir_controller_metrics(self.handle, &mut raw) });
        let reason = Reason::ALL[raw.reason as usize];
        assert_eq!(text(&raw.reason_text), reason.as_str());
        let time = |ns| (ns != WEIR_NO_TIME).then(|| TimeDelta::from_nanos(ns));
        let acknowledged = raw.acknowledged_bitrate_bps;
        Metrics::new(reason, text(&raw.state))
            .with_rtt(time(raw.rtt_ns))
            .with_queuing_delay(time(raw.queuing_delay_ns))
            .with_loss_ratio(raw.loss_ratio)
            .with_acknowledged_bitrate(
                (acknowledged != WEIR_NO_VALUE).then(|| Bitrate::from_bps(acknowledged)),
            )
            .with_signals(signals(&raw.signals[..raw.signal_count as usize]))
    }
}

/// `Signals` wants their number at compile time.
fn signals(raw: &[weir_signal]) -> Signals {
    let at = |index: usize| (text(&raw[index].name), raw[index].value);
    match raw.len() {
        0 => Signals::NONE,
        1 => Signals::new::<1>(std::array::from_fn(at)),
        2 => Signals::new::<2>(std::array::from_fn(at)),
        3 => Signals::new::<3>(std::array::from_fn(at)),
        4 => Signals::new::<4>(std::array::from_fn(at)),
        5 => Signals::new::<5>(std::array::from_fn(at)),
        6 => Signals::new::<6>(std::array::from_fn(at)),
        7 => Signals::new::<7>(std::array::from_fn(at)),
        _ => Signals::new::<8>(std::array::from_fn(at)),
    }
}
