//! What the paced elements share: two pads, the task that pushes packets, and its state.
//!
//! Threads: packets arrive on the payloader's thread, RTCP on the session's thread, and packets
//! leave on the task of the source pad. All three share [`Shared`] behind one mutex. It is released
//! before anything is pushed, notified or emitted, because the handlers may set properties of the
//! element.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::controller::RateLimits;
use weir::feedback::RtpNumber;
use weir::units::Timestamp;

use crate::class;
use crate::sender::{Config, PacedSender, Step, Update};

/// The longest wait of the task. A wait ends earlier when something happens.
const MAX_WAIT: gst::ClockTime = gst::ClockTime::from_seconds(3600);

/// Name of the event that asks an encoder for a key frame.
const KEY_FRAME_REQUEST: &str = "GstForceKeyUnit";

/// An element around a [`Pump`], and what it adds.
pub(crate) trait Paced: ElementImpl {
    /// The pads and the task.
    fn pump(&self) -> &Pump;

    /// Tells the application what has changed. No lock is held.
    fn publish(&self, update: Update);

    /// Packets are about to be queued.
    fn before_packets(&self) {}

    /// The packets that follow have these caps.
    fn on_caps(&self, _caps: &gst::Caps) {}

    /// An event of its own kind comes from downstream. It is passed on in any case.
    fn on_custom_upstream(&self, _event: &gst::event::CustomUpstream) {}
}

/// Pads and task of a paced element.
pub(crate) struct Pump {
    state: Mutex<Shared>,
    sink: gst::Pad,
    src: gst::Pad,
}

/// What the threads share.
struct Shared {
    /// `None` in the states NULL and READY.
    running: Option<Running>,
    /// The result of the last push, which the payloader gets in return for its next packet.
    flow: Result<gst::FlowSuccess, gst::FlowError>,
    /// The wait of the task, to end it early.
    waiting: Option<gst::SingleShotClockId>,
}

/// What exists only between READY and PAUSED.
pub(crate) struct Running {
    clock: gst::Clock,
    pub(crate) sender: PacedSender,
}

impl Running {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.time().nseconds() as i64)
    }
}

impl Shared {
    /// Lets the task look again.
    fn wake(&mut self) {
        if let Some(id) = self.waiting.take() {
            id.unschedule();
        }
    }
}

/// Setting up.
impl Pump {
    /// The pads `sink` and `src` of an element of this class.
    pub(crate) fn new<T: Paced>(class: &glib::Class<gst::Element>) -> Self {
        let sink = gst::Pad::builder_from_template(&class::template_of(class, "sink"))
            .chain_function(|_, parent, buffer| {
                T::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                    chain(imp, std::iter::once(buffer))
                })
            })
            .chain_list_function(|_, parent, list| {
                T::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                    chain(imp, list.iter_owned())
                })
            })
            .event_function(|pad, parent, event| {
                T::catch_panic_pad_function(parent, || false, |imp| sink_event(imp, pad, event))
            })
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        let src = gst::Pad::builder_from_template(&class::template_of(class, "src"))
            .event_function(|pad, parent, event| {
                T::catch_panic_pad_function(
                    parent,
                    || false,
                    |imp| src_event(imp, pad, parent, event),
                )
            })
            .activatemode_function(|pad, parent, mode, active| {
                T::catch_panic_pad_function(parent, activation_after_panic, |imp| {
                    activate(imp, pad, mode, active)
                })
            })
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        let state = Shared { running: None, flow: Err(gst::FlowError::Flushing), waiting: None };
        Self { state: Mutex::new(state), sink, src }
    }

    pub(crate) fn src(&self) -> &gst::Pad {
        &self.src
    }

    /// Adds the pads to their element.
    pub(crate) fn add_pads(&self, element: &impl IsA<gst::Element>) {
        class::add_pads(element, [&self.sink, &self.src]);
    }

    /// From READY to PAUSED.
    pub(crate) fn start(&self, config: Config) -> Update {
        let mut sender = PacedSender::new(config);
        let update = sender.take_update();
        let clock = gst::SystemClock::obtain();
        lock(&self.state).running = Some(Running { clock, sender });
        update
    }

    /// From PAUSED to READY.
    pub(crate) fn stop(&self) {
        let _ = lock(&self.state).running.take();
    }

    /// Reads the sender; `None` if it does not run.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Running) -> R) -> Option<R> {
        lock(&self.state).running.as_ref().map(read)
    }

    /// Changes the sender; `None` if it does not run. The caller publishes the update.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut Running) -> R) -> Option<(R, Update)> {
        let mut state = lock(&self.state);
        let running = state.running.as_mut()?;
        let result = change(running);
        let update = running.sender.take_update();
        state.wake();
        Some((result, update))
    }

    /// Time that the waiting packets take to leave, in ns.
    pub(crate) fn queue_time_ns(&self) -> u64 {
        let queue = self.read(|running| running.sender.queue_time().as_nanos());
        queue.and_then(|queue| u64::try_from(queue).ok()).unwrap_or(0)
    }

    /// Asks the encoder upstream for a key frame.
    pub(crate) fn request_key_frame(&self) {
        let structure = gst::Structure::builder(KEY_FRAME_REQUEST).field("all-headers", true);
        let structure = structure.build();
        self.sink.push_event(gst::event::CustomUpstream::new(structure));
    }

    /// Whether the key frame that is on its way answers a request of the receiver.
    fn answers_key_frame_request(&self, ssrc: Option<u32>) -> bool {
        let updated =
            self.update(|running| running.sender.on_key_frame_request(running.now(), ssrc));
        updated.is_some_and(|(is_passed_on, _)| !is_passed_on)
    }

    /// Asks `rtprtxsend` upstream to send a packet again.
    pub(crate) fn request_retransmission(&self, packet: RtpNumber) {
        let structure = gst::Structure::builder("GstRTPRetransmissionRequest")
            .field("seqnum", u32::from(packet.sequence_number))
            .field("ssrc", packet.ssrc)
            .build();
        self.sink.push_event(gst::event::CustomUpstream::new(structure));
    }

    /// Makes the task pause, and refuses packets until it is started again.
    fn halt(&self) {
        let mut state = lock(&self.state);
        state.flow = Err(gst::FlowError::Flushing);
        state.wake();
    }
}

/// New limits for an element that may be running.
pub(crate) fn set_limits<T: Paced>(imp: &T, limits: RateLimits) {
    let updated = imp.pump().update(|running| running.sender.set_limits(running.now(), limits));
    if let Some(((), update)) = updated {
        imp.publish(update);
    }
}

fn start_task<T: Paced>(imp: &T) -> Result<(), glib::BoolError> {
    lock(&imp.pump().state).flow = Ok(gst::FlowSuccess::Ok);
    let element = imp.obj().upcast_ref::<gst::Element>().downgrade();
    imp.pump().src.start_task(move || {
        let Some(element) = element.upgrade() else { return };
        if let Some(element) = element.downcast_ref::<T::Type>() {
            run(T::from_obj(element));
        }
    })
}

fn error(text: &str) -> gst::LoggableError {
    gst::loggable_error!(gst::CAT_RUST, "{}", text)
}

fn activation_after_panic() -> Result<(), gst::LoggableError> {
    Err(error("a panic in the element"))
}

fn activate<T: Paced>(
    imp: &T,
    pad: &gst::Pad,
    mode: gst::PadMode,
    active: bool,
) -> Result<(), gst::LoggableError> {
    if mode != gst::PadMode::Push {
        return Err(error("only push mode"));
    }
    if active {
        start_task(imp).map_err(|_| error("cannot start the task"))
    } else {
        imp.pump().halt();
        pad.stop_task().map_err(|_| error("cannot stop the task"))
    }
}

fn chain<T: Paced>(
    imp: &T,
    buffers: impl Iterator<Item = gst::Buffer>,
) -> Result<gst::FlowSuccess, gst::FlowError> {
    imp.before_packets();
    let flow = lock(&imp.pump().state).flow;
    flow?;
    let updated = imp.pump().update(|running| running.sender.enqueue(running.now(), buffers));
    let ((), update) = updated.ok_or(gst::FlowError::Flushing)?;
    imp.publish(update);
    Ok(gst::FlowSuccess::Ok)
}

fn src_event<T: Paced>(
    imp: &T,
    pad: &gst::Pad,
    parent: Option<&gst::Object>,
    event: gst::Event,
) -> bool {
    if let gst::EventView::CustomUpstream(custom) = event.view() {
        imp.on_custom_upstream(custom);
        // The session names the stream.
        let ssrc = event.structure().and_then(|structure| structure.get("ssrc").ok());
        if event.has_name(KEY_FRAME_REQUEST) && imp.pump().answers_key_frame_request(ssrc) {
            return true;
        }
    }
    gst::Pad::event_default(pad, parent, event)
}

fn sink_event<T: Paced>(imp: &T, pad: &gst::Pad, event: gst::Event) -> bool {
    let pump = imp.pump();
    match event.view() {
        gst::EventView::FlushStart(_) => {
            let sent = pump.src.push_event(event);
            pump.halt();
            let _ = pump.src.pause_task();
            return sent;
        }
        gst::EventView::FlushStop(_) => {
            let sent = pump.src.push_event(event);
            let _ = pump.update(|running| running.sender.flush(running.now()));
            return start_task(imp).is_ok() && sent;
        }
        gst::EventView::Caps(caps) => {
            let caps = caps.caps_owned();
            imp.on_caps(&caps);
            let _ = pump.update(|running| running.sender.set_caps(running.now(), &caps));
        }
        _ => {}
    }
    if !event.is_serialized() {
        return gst::Pad::event_default(pad, Some(&*imp.obj()), event);
    }
    let flow = lock(&pump.state).flow;
    flow.is_ok() && pump.update(|running| running.sender.enqueue_event(event)).is_some()
}

/// One round of the task: one packet, one event, or one wait.
fn run<T: Paced>(imp: &T) {
    let pump = imp.pump();
    let mut state = lock(&pump.state);
    let is_halted = state.flow.is_err();
    let Some(running) = state.running.as_mut().filter(|_| !is_halted) else {
        drop(state);
        let _ = pump.src.pause_task();
        return;
    };
    let step = running.sender.step(running.now());
    let update = running.sender.take_update();
    let wait = match step {
        Step::Wait(due) => Some(new_wait(&running.clock, due)),
        _ => None,
    };
    state.waiting.clone_from(&wait);
    drop(state);
    imp.publish(update);
    match step {
        Step::Packet(buffer) => after_push(pump, pump.src.push(buffer)),
        Step::Event(event) => {
            let is_eos = event.type_() == gst::EventType::Eos;
            pump.src.push_event(event);
            if is_eos {
                after_push(pump, Err(gst::FlowError::Eos));
            }
        }
        Step::Wait(_) => {
            // Ends at the time, or when `wake` is called.
            let _ = wait.map(|id| id.wait());
        }
    }
}

fn after_push(pump: &Pump, result: Result<gst::FlowSuccess, gst::FlowError>) {
    if let Err(error) = result {
        let mut state = lock(&pump.state);
        // A flush that began meanwhile is the better reason.
        if state.flow.is_ok() {
            state.flow = Err(error);
        }
    }
}

fn new_wait(clock: &gst::Clock, due: Option<Timestamp>) -> gst::SingleShotClockId {
    let latest = clock.time() + MAX_WAIT;
    let due = due.and_then(|due| u64::try_from(due.as_nanos()).ok());
    let due = due.map_or(latest, |due| gst::ClockTime::from_nseconds(due).min(latest));
    clock.new_single_shot_id(due)
}

/// A panic in another thread leaves the value as it was between two calls, which is usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
