//! Controllers that are written in Python, behind the trait of the library.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::controller::{Controller, Metrics, Reason, Settings, Signals, Target, Window};
use weir::feedback::{Ecn, FeedbackReport, SentPacket};
use weir::{Bitrate, ControllerFactory, DataSize, RateLimits, TimeDelta, Timestamp};

use crate::error;

/// Number of different names that states and signals may have. A name made from a number would
/// otherwise fill the memory.
const NAMES_MAX: usize = 1000;

/// The first exception of a controller. It ends the runs.
#[derive(Clone, Default)]
pub struct Fault {
    error: Arc<Mutex<Option<PyErr>>>,
    stop: Arc<AtomicBool>,
}

impl Fault {
    /// Set when the runs must end.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    fn put(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Raises the exception, if there was one.
    pub fn raise(&self) -> PyResult<()> {
        match self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// What feedback says of one packet.
#[pyclass(frozen, get_all, module = "weir_rtc")]
#[derive(Clone)]
pub struct PacketReport {
    sequence_number: i64,
    size_bytes: u64,
    send_time_us: i64,
    arrival_time_us: Option<i64>,
    is_marked: bool,
    is_recovered: bool,
}

/// One feedback report.
#[pyclass(frozen, get_all, module = "weir_rtc")]
pub struct Report {
    packets: Vec<PacketReport>,
    missing_feedback: u32,
    is_new_clock: bool,
}

impl From<&weir::feedback::PacketReport> for PacketReport {
    fn from(packet: &weir::feedback::PacketReport) -> Self {
        Self {
            sequence_number: packet.sequence_number,
            size_bytes: packet.size.as_bytes(),
            send_time_us: packet.send_time.as_micros(),
            arrival_time_us: packet.arrival_time.map(Timestamp::as_micros),
            is_marked: packet.ecn == Ecn::Ce,
            is_recovered: packet.recovered,
        }
    }
}

impl From<&FeedbackReport> for Report {
    fn from(report: &FeedbackReport) -> Self {
        Self {
            packets: report.packets.iter().map(PacketReport::from).collect(),
            missing_feedback: report.missing_feedback,
            is_new_clock: report.new_clock,
        }
    }
}

/// A factory of the controllers that `class` makes. It is called with the limits in bit/s: minimum,
/// start and maximum.
pub fn own_factory(class: &Bound<'_, PyAny>, fault: &Fault) -> PyResult<ControllerFactory> {
    let name: String = match class.getattr("name") {
        Ok(name) => name.extract()?,
        Err(_) => class.getattr("__name__")?.extract()?,
    };
    if let Some(taken) =
        weir_controllers::LabAlgorithm::named().find(|algorithm| algorithm.name() == name)
    {
        return Err(error(format!(
            "a controller of the library is called {}: choose another name",
            taken.name()
        )));
    }
    let (class, fault) = (class.clone().unbind(), fault.clone());
    let class = Arc::new(class);
    Ok(ControllerFactory::new(name, move |settings| {
        Box::new(Own::new(&class, settings, fault.clone()))
    }))
}

/// A controller whose rules are in Python. After an exception it keeps its last target.
struct Own {
    object: Option<Py<PyAny>>,
    settings: Settings,
    target: Target,
    metrics: Metrics,
    timeout: Option<Timestamp>,
    fault: Fault,
}

impl Own {
    fn new(class: &Py<PyAny>, settings: Settings, fault: Fault) -> Self {
        let limits = settings.limits;
        let start = limits.start();
        let mut own = Self {
            object: None,
            settings,
            target: Target::new(start, start),
            metrics: Metrics::new(Reason::Start, ""),
            timeout: None,
            fault,
        };
        Python::attach(|py| {
            let bps = [limits.min(), start, limits.max()].map(Bitrate::as_bps);
            match class.call1(py, (bps[0], bps[1], bps[2])) {
                Ok(object) => own.object = Some(object),
                Err(error) => own.fault.put(error),
            }
            own.after(py, Ok(()));
        });
        own
    }

    /// Reads what the object wants now; `called` is what the call before came to.
    fn after(&mut self, py: Python<'_>, called: PyResult<()>) {
        let Some(object) = &self.object else { return };
        let object = object.clone_ref(py);
        if let Err(error) = called.and_then(|()| self.read(object.bind(py))) {
            self.object = None;
            self.timeout = None;
            self.fault.put(error);
        }
    }

    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut bitrate = rate("target_bps", object.getattr("target_bps")?.extract()?)?;
        let limits = self.settings.limits;
        let limit: Option<f64> = object.getattr("limit_bps")?.extract()?;
        if let Some(limit) = limit {
            let limit = rate("limit_bps", limit)?.max(limits.min().as_bps() as f64);
            if bitrate > limit {
                // The object sees it, too. Otherwise its target would go on rising unseen, and jump
                // when the receiver lifts its limit.
                object.setattr("target_bps", limit)?;
                bitrate = limit;
            }
        }
        let bitrate = limits.clamp(Bitrate::from_bps(bitrate as u64));
        let pacing: Option<f64> = object.getattr("pacing_bps")?.extract()?;
        let pacing = pacing.map(|bps| rate("pacing_bps", bps)).transpose()?;
        let pacing = pacing
            .map_or(bitrate * PACING_FACTOR, |bps| Bitrate::from_bps(bps as u64).max(bitrate));
        let window: Option<(u64, u64)> = object.getattr("window_bytes")?.extract()?;
        let size = DataSize::from_bytes;
        let window = window.map(|(whole, free)| Window::new(size(whole), size(free)));
        self.target = Target::new(bitrate, pacing).with_window(window);
        let timeout: Option<i64> = object.getattr("next_timeout_us")?.extract()?;
        self.timeout = timeout.map(Timestamp::from_micros);
        let word: String = object.getattr("reason")?.extract()?;
        let reason = Reason::ALL.iter().find(|reason| reason.as_str() == word);
        let reason = reason.ok_or_else(|| {
            let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
            error(format!("no reason is called '{word}': {}", known.join(", ")))
        })?;
        let state: String = object.getattr("state")?.extract()?;
        let signals = object.getattr("signals")?;
        let mut named = [("", 0.0); Signals::CAPACITY];
        for (slot, (name, value)) in named.iter_mut().zip(signals.cast::<PyDict>()?) {
            *slot = (kept(&name.extract::<String>()?), value.extract()?);
        }
        let count = signals.len()?.min(Signals::CAPACITY);
        self.metrics =
            Metrics::new(*reason, kept(&state)).with_signals(Signals::first_of(&named[..count]));
        Ok(())
    }

    fn call(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        if self.object.is_none() {
            return;
        }
        Python::attach(|py| {
            let Some(object) = &self.object else { return };
            let called = call(object.bind(py));
            self.after(py, called);
        });
    }
}

/// Pacing rate over target bitrate where a controller names none. Frames then leave without a
/// growing queue.
const PACING_FACTOR: f64 = 1.5;

/// The value of an attribute that is a bitrate. Without this check NaN would become the lowest one.
fn rate(attribute: &str, bps: f64) -> PyResult<f64> {
    if bps.is_finite() { Ok(bps) } else { Err(error(format!("{attribute} is {bps}"))) }
}

/// A name that lives as long as the program.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    if names.len() == NAMES_MAX {
        return "too many names";
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}

impl Controller for Own {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        let arguments = (now.as_micros(), added.as_bytes(), queued.as_bytes());
        self.call(|object| object.call_method1("on_media_queued", arguments).map(drop));
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        let arguments = (
            now.as_micros(),
            packet.sequence_number,
            packet.size.as_bytes(),
            packet.queued.as_bytes(),
        );
        self.call(|object| object.call_method1("on_packet_sent", arguments).map(drop));
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        let report = Report::from(report);
        self.call(|object| object.call_method1("on_feedback", (now.as_micros(), report)).map(drop));
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        let arguments = (now.as_micros(), rtt.as_micros());
        self.call(|object| object.call_method1("on_round_trip_time", arguments).map(drop));
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        let arguments = (now.as_micros(), limit.map(Bitrate::as_bps));
        self.call(|object| object.call_method1("on_receiver_limit", arguments).map(drop));
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        let arguments = (now.as_micros(), limits.min().as_bps(), limits.max().as_bps());
        self.call(|object| object.call_method1("on_limits", arguments).map(drop));
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        let arguments = (now.as_micros(), desired.map(Bitrate::as_bps));
        self.call(|object| object.call_method1("on_desired_bitrate", arguments).map(drop));
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.call(|object| object.call_method1("on_route_change", (now.as_micros(),)).map(drop));
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        let arguments = (now.as_micros(), share.as_bps());
        self.call(|object| object.call_method1("on_shared_rate", arguments).map(drop));
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.call(|object| object.call_method1("on_timeout", (now.as_micros(),)).map(drop));
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.timeout
    }

    fn target(&self) -> Target {
        self.target
    }

    fn metrics(&self) -> Metrics {
        self.metrics
    }
}

/// Checks a controller class against the contract with random scripts. Raises `WeirError` with the
/// first broken rule and the script that shows it.
#[pyfunction]
pub fn check_controller(
    py: Python<'_>,
    class: Bound<'_, PyAny>,
    scripts: u32,
    seed: u64,
) -> PyResult<()> {
    let fault = Fault::default();
    let factory = own_factory(&class, &fault)?;
    let checked = py.detach(|| weir::testing::check_controller(&factory, scripts, seed));
    fault.raise()?;
    checked.map_err(error)
}
