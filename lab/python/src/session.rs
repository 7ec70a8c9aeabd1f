//! A simulated call that is driven step by step: at each interval it waits for the next bitrate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use weir::controller::{Controller, Metrics, Reason, Target};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::observation::Observer;
use weir::{Bitrate, ControllerFactory, RateLimits, TimeDelta, Timestamp};

use crate::error;
use crate::run::{Runs, measure};
use crate::scenario::Scenario;
use crate::tables::MeasuredRun;

/// What a sender knows at the end of an interval.
#[pyclass(frozen, get_all, module = "weir_rtc")]
#[derive(Clone, Default)]
pub struct Observation {
    /// Time since the beginning of the run.
    pub time_us: i64,
    /// The bitrate that was in force.
    pub target_bps: f64,
    /// Rate of the bytes that left the sender.
    pub sent_bps: f64,
    /// Rate of the bytes that feedback says arrived.
    pub received_bps: f64,
    /// Mean one-way delay of the packets reported, over the lowest so far; -1 without a report.
    pub queuing_delay_us: i64,
    /// The newest feedback response time; -1 before the first.
    pub rtt_us: i64,
    /// Packets that feedback calls lost over packets that it reports.
    pub loss_ratio: f64,
    /// Packets marked Congestion Experienced over packets that arrived.
    pub mark_ratio: f64,
    /// Feedback reports that arrived.
    pub reports: u32,
}

type Outcome = Result<Option<MeasuredRun>, weir_record::RecordError>;

struct Running {
    observations: Receiver<Observation>,
    actions: Sender<f64>,
    thread: JoinHandle<Outcome>,
    /// Whether a step found the call over.
    over: bool,
}

/// A simulated call whose first media flow gets its bitrate from Python.
#[pyclass(frozen, module = "weir_rtc")]
pub struct Session {
    running: Mutex<Option<Running>>,
    stop: Arc<AtomicBool>,
    limits: RateLimits,
}

#[pymethods]
impl Session {
    /// Starts the call. The other media flows of the scenario have the controller `others`.
    #[new]
    fn new(scenario: &Scenario, seed: u64, interval_ms: u32, others: &str) -> PyResult<Self> {
        if interval_ms == 0 {
            return Err(error("interval_ms must be at least 1"));
        }
        let scenario = Arc::clone(&scenario.0);
        let media = scenario.flows.iter().find_map(|flow| flow.traffic.media());
        let Some(media) = media else {
            return Err(error(format!("{} has no media flow", scenario.id)));
        };
        let limits = media.settings.limits;
        let controllers = weir_scenario::Controllers::default();
        let others = controllers.find(others).map_err(error)?.clone();
        let (put_observation, observations) = mpsc::channel();
        let (actions, take_action) = mpsc::channel();
        let ends = Mutex::new(Some((put_observation, take_action)));
        let interval = TimeDelta::from_millis(interval_ms.into());
        let factory = ControllerFactory::new("policy", move |settings| {
            match ends.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(ends) => Box::new(Driven::new(settings.limits, interval, ends)),
                None => others.build(settings),
            }
        });
        let factory = factory.into();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || measure(&scenario, &factory, seed, None, &stopped));
        let running = Mutex::new(Some(Running { observations, actions, thread, over: false }));
        Ok(Self { running, stop, limits })
    }

    /// Lowest and highest bitrate of the flow in bit/s.
    #[getter]
    fn limits_bps(&self) -> (u64, u64) {
        (self.limits.min().as_bps(), self.limits.max().as_bps())
    }

    /// Sets the bitrate of the next interval, and returns what the sender knows at its end; `None`
    /// when the call is over. Without a bitrate: the first observation.
    #[pyo3(signature = (bitrate_bps = None))]
    fn step(&self, py: Python<'_>, bitrate_bps: Option<f64>) -> PyResult<Option<Observation>> {
        if bitrate_bps.is_some_and(|bps| !bps.is_finite() || bps < 0.0) {
            return Err(error("a bitrate is a finite number of at least 0"));
        }
        py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(running) = running.as_mut() else { return Ok(None) };
            // A call that is over hears no action.
            if let Some(bps) = bitrate_bps {
                let _ = running.actions.send(bps);
            }
            let seen = running.observations.recv().ok();
            running.over = seen.is_none();
            Ok(seen)
        })
    }

    /// The measured run, after the last step. Raises `WeirError` while the call goes on.
    fn result(&self, py: Python<'_>) -> PyResult<Runs> {
        py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            match running.take() {
                None => Err(error("the call was closed, or its result was taken already")),
                Some(still) if !still.over => {
                    *running = Some(still);
                    Err(error("the call goes on: step() until it returns None"))
                }
                Some(ended) => {
                    drop((ended.actions, ended.observations));
                    let outcome = ended.thread.join().map_err(|_| error("the run failed"))?;
                    let measured = outcome.map_err(error)?;
                    Ok(Runs(measured.into_iter().collect()))
                }
            }
        })
    }

    /// Ends the call before its time.
    fn close(&self, py: Python<'_>) {
        self.stop.store(true, Ordering::Relaxed);
        py.detach(|| {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(Running { observations, actions, thread, .. }) = running {
                drop((observations, actions));
                let _ = thread.join();
            }
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The thread ends by itself: without the other ends of its channels it waits for nobody.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A controller that asks the other side of two channels for its bitrate.
struct Driven {
    limits: RateLimits,
    interval: TimeDelta,
    due: Timestamp,
    bitrate: Bitrate,
    observations: Sender<Observation>,
    actions: Receiver<f64>,
    observer: Observer,
    reason: Reason,
}

impl Driven {
    fn new(
        limits: RateLimits,
        interval: TimeDelta,
        (observations, actions): (Sender<Observation>, Receiver<f64>),
    ) -> Self {
        Self {
            limits,
            interval,
            due: Timestamp::ZERO + interval,
            bitrate: limits.start(),
            observations,
            actions,
            observer: Observer::new(interval),
            reason: Reason::Start,
        }
    }

    fn observe(&mut self, now: Timestamp) -> Observation {
        let seen = self.observer.take();
        Observation {
            time_us: now.as_micros(),
            target_bps: self.bitrate.as_bps() as f64,
            sent_bps: seen.sent_bps,
            received_bps: seen.received_bps,
            queuing_delay_us: micros(seen.queuing_delay),
            rtt_us: micros(seen.rtt),
            loss_ratio: seen.loss_ratio,
            mark_ratio: seen.mark_ratio,
            reports: seen.reports,
        }
    }
}

/// A measured time in microseconds; -1 if there was nothing to measure.
fn micros(time: Option<TimeDelta>) -> i64 {
    time.map_or(-1, TimeDelta::as_micros)
}

impl Controller for Driven {
    fn on_packet_sent(&mut self, _now: Timestamp, packet: &SentPacket) {
        self.observer.on_packet_sent(packet);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.observer.on_feedback(now, report);
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, _limit: Option<Bitrate>) {}

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.bitrate = limits.clamp(self.bitrate);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.bitrate = self.limits.clamp(share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.due = now + self.interval;
        let observation = self.observe(now);
        // Without the other side, the run is about to be stopped, and the bitrate stays.
        if self.observations.send(observation).is_err() {
            return;
        }
        if let Ok(bps) = self.actions.recv() {
            let wanted = self.limits.clamp(Bitrate::from_bps(bps as u64));
            if wanted != self.bitrate {
                self.reason = Reason::Policy;
            }
            self.bitrate = wanted;
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        Some(self.due)
    }

    fn target(&self) -> Target {
        Target::new(self.bitrate, self.bitrate * 1.5)
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(self.reason, "policy")
    }
}
