//! The element: pads, task, and state changes.
//!
//! Threads: packets arrive on the payloader's thread, RTCP on the session's thread, and packets
//! leave on the task of the source pad. All three share [`State`] behind one mutex. It is released
//! before anything is pushed, notified or emitted, because the handlers may set properties of this
//! element.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::{DataSize, Timestamp};

use super::adjustable::Limits;
use super::encoders::Encoders;
use super::group::Member;
use super::properties::{self, Settings};
use super::sender::{Config, PacedSender, Step};
use super::session::{self, Connection, Rtcp};

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("weircc", gst::DebugColorFlags::empty(), Some("Congestion control"))
});

/// The longest wait of the task. A wait ends earlier when something happens.
const MAX_WAIT: gst::ClockTime = gst::ClockTime::from_seconds(3600);

/// See the module.
pub struct WeirCc {
    pub(super) settings: Mutex<Settings>,
    pub(super) state: Mutex<State>,
    pub(super) encoders: Mutex<Encoders>,
    pub(super) sink: gst::Pad,
    pub(super) src: gst::Pad,
}

/// What the threads share.
pub(super) struct State {
    /// `None` in the states NULL and READY.
    pub(super) running: Option<Running>,
    /// The result of the last push, which the payloader gets in return for its next packet.
    flow: Result<gst::FlowSuccess, gst::FlowError>,
    /// The wait of the task, to end it early.
    waiting: Option<gst::SingleShotClockId>,
    /// The session whose RTCP arrives here.
    pub(super) session: Option<Connection>,
}

/// What exists only between READY and PAUSED.
pub(super) struct Running {
    pub(super) clock: gst::Clock,
    pub(super) sender: PacedSender,
    pub(super) limits: Limits,
    /// The place in the group, if the application named one.
    pub(super) member: Option<Arc<Member>>,
}

impl Running {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.time().nseconds() as i64)
    }
}

impl State {
    /// Lets the task look again.
    pub(super) fn wake(&mut self) {
        if let Some(id) = self.waiting.take() {
            id.unschedule();
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for WeirCc {
    const NAME: &'static str = "WeirCc";
    type Type = super::WeirCc;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let template = |name| class.pad_template(name).expect("one of the templates below");
        let sink = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |imp| imp.chain(std::iter::once(buffer)),
                )
            })
            .chain_list_function(|_, parent, list| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |imp| imp.chain(list.iter_owned()),
                )
            })
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |imp| imp.sink_event(pad, event))
            })
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        let src = gst::Pad::builder_from_template(&template("src"))
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |imp| imp.src_event(pad, event))
            })
            .activatemode_function(|pad, parent, mode, active| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::loggable_error!(CAT, "panic")),
                    |imp| imp.activate_src(pad, mode, active),
                )
            })
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        let state = State {
            running: None,
            flow: Err(gst::FlowError::Flushing),
            waiting: None,
            session: None,
        };
        Self {
            settings: Mutex::default(),
            state: Mutex::new(state),
            encoders: Mutex::default(),
            sink,
            src,
        }
    }
}

impl ObjectImpl for WeirCc {
    fn constructed(&self) {
        self.parent_constructed();
        let element = self.obj();
        element.add_pad(&self.sink).expect("a new element has no pads");
        element.add_pad(&self.src).expect("a new element has no such pad");
    }

    fn properties() -> &'static [glib::ParamSpec] {
        static LIST: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::list);
        &LIST
    }

    fn signals() -> &'static [glib::subclass::Signal] {
        static LIST: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(properties::signals);
        &LIST
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if spec.name() == "encoder" {
            return self.set_encoder(value.get().expect("GObject checks the type"));
        }
        let limits = {
            let mut settings = lock(&self.settings);
            settings.set(spec.name(), value);
            settings.limits()
        };
        if let Some(limits) = limits {
            self.apply(limits);
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        match spec.name() {
            "target-bitrate" => self.target_bps().to_value(),
            "pacer-queue" => self.pacer_queue().nseconds().to_value(),
            "encoder" => lock(&self.encoders).first().to_value(),
            "stats" => self.stats().to_value(),
            name => lock(&self.settings).get(name),
        }
    }
}

impl GstObjectImpl for WeirCc {}

impl ElementImpl for WeirCc {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "RTP congestion controller",
                "Network/RTP/Filter",
                "Sends RTP at the rate that a congestion controller allows (gcc, nada, scream)",
                "Weir",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            use gst::{PadDirection, PadPresence, PadTemplate};
            let rtp = gst::Caps::new_empty_simple("application/x-rtp");
            let rtcp = gst::Caps::new_empty_simple("application/x-rtcp");
            let template = |name, direction, presence, caps| {
                PadTemplate::new(name, direction, presence, caps).expect("a valid template")
            };
            vec![
                template("sink", PadDirection::Sink, PadPresence::Always, &rtp),
                template("src", PadDirection::Src, PadPresence::Always, &rtp),
                template("rtcp_sink", PadDirection::Sink, PadPresence::Request, &rtcp),
            ]
        });
        &TEMPLATES
    }

    fn request_new_pad(
        &self,
        template: &gst::PadTemplate,
        _name: Option<&str>,
        _caps: Option<&gst::Caps>,
    ) -> Option<gst::Pad> {
        if self.obj().static_pad("rtcp_sink").is_some() {
            gst::warning!(CAT, imp = self, "there is one rtcp_sink already");
            return None;
        }
        let pad = gst::Pad::builder_from_template(template)
            .name("rtcp_sink")
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |imp| {
                        imp.on_rtcp(&Rtcp::Datagram(buffer));
                        Ok(gst::FlowSuccess::Ok)
                    },
                )
            })
            // The events of this stream have no place downstream.
            .event_function(|_, _, _| true)
            .build();
        pad.set_active(true).ok()?;
        self.obj().add_pad(&pad).ok()?;
        Some(pad)
    }

    fn release_pad(&self, pad: &gst::Pad) {
        let _ = pad.set_active(false);
        let _ = self.obj().remove_pad(pad);
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            gst::StateChange::NullToReady => {
                self.algorithm()?;
            }
            gst::StateChange::ReadyToPaused => self.start()?,
            _ => {}
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::PausedToReady {
            self.stop();
        }
        result
    }
}

/// State changes.
impl WeirCc {
    /// The configured algorithm, or an error message on the bus that lists all names.
    fn algorithm(&self) -> Result<Algorithm, gst::StateChangeError> {
        let name = lock(&self.settings).algorithm.clone();
        name.parse().map_err(|unknown| {
            let text = format!("algorithm={name}: {unknown}");
            gst::element_imp_error!(self, gst::LibraryError::Settings, ("{}", text));
            gst::StateChangeError
        })
    }

    fn limits(&self) -> Result<RateLimits, gst::StateChangeError> {
        lock(&self.settings).limits().ok_or_else(|| {
            let text = "min-bitrate must be above 0 and at most max-bitrate";
            gst::element_imp_error!(self, gst::LibraryError::Settings, ("{}", text));
            gst::StateChangeError
        })
    }

    fn start(&self) -> Result<(), gst::StateChangeError> {
        let (algorithm, limits) = (self.algorithm()?, Limits::new(self.limits()?));
        let config = {
            let settings = lock(&self.settings);
            Config {
                algorithm,
                limits: limits.clone(),
                feedback: settings.feedback.kind(),
                overhead: DataSize::from_bytes(settings.overhead.into()),
            }
        };
        let member = self.join_group(self.limits()?);
        let mut sender = PacedSender::new(config);
        let update = sender.take_update();
        let clock = gst::SystemClock::obtain();
        lock(&self.state).running = Some(Running { clock, sender, limits, member });
        self.publish(update);
        Ok(())
    }

    fn stop(&self) {
        let (running, session) = {
            let mut state = lock(&self.state);
            (state.running.take(), state.session.take())
        };
        // Outside of the lock: one leaves its group, the other one disconnects.
        drop((running, session));
    }

    fn activate_src(
        &self,
        pad: &gst::Pad,
        mode: gst::PadMode,
        active: bool,
    ) -> Result<(), gst::LoggableError> {
        if mode != gst::PadMode::Push {
            return Err(gst::loggable_error!(CAT, "only push mode"));
        }
        if active {
            self.start_task().map_err(|_| gst::loggable_error!(CAT, "cannot start the task"))
        } else {
            self.halt_task();
            pad.stop_task().map_err(|_| gst::loggable_error!(CAT, "cannot stop the task"))
        }
    }

    fn start_task(&self) -> Result<(), glib::BoolError> {
        lock(&self.state).flow = Ok(gst::FlowSuccess::Ok);
        let element = self.obj().downgrade();
        self.src.start_task(move || {
            if let Some(element) = element.upgrade() {
                element.imp().run();
            }
        })
    }

    /// Makes the task pause, and refuses packets until it is started again.
    fn halt_task(&self) {
        let mut state = lock(&self.state);
        state.flow = Err(gst::FlowError::Flushing);
        state.wake();
    }
}

/// The media's way through the element.
impl WeirCc {
    fn chain(
        &self,
        buffers: impl Iterator<Item = gst::Buffer>,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.find_session();
        let update = {
            let mut state = lock(&self.state);
            state.flow?;
            let running = state.running.as_mut().ok_or(gst::FlowError::Flushing)?;
            running.sender.enqueue(running.now(), buffers);
            let update = running.sender.take_update();
            state.wake();
            update
        };
        self.publish(update);
        Ok(gst::FlowSuccess::Ok)
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::FlushStart(_) => {
                let sent = self.src.push_event(event);
                self.halt_task();
                let _ = self.src.pause_task();
                return sent;
            }
            gst::EventView::FlushStop(_) => {
                let sent = self.src.push_event(event);
                if let Some(running) = &mut lock(&self.state).running {
                    running.sender.flush(running.now());
                }
                return self.start_task().is_ok() && sent;
            }
            gst::EventView::Caps(caps) => self.set_caps(caps.caps_owned()),
            _ => {}
        }
        if !event.is_serialized() {
            return gst::Pad::event_default(pad, Some(&*self.obj()), event);
        }
        let mut state = lock(&self.state);
        if state.flow.is_err() {
            return false;
        }
        let Some(running) = &mut state.running else { return false };
        running.sender.enqueue_event(event);
        state.wake();
        true
    }

    fn src_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        if let gst::EventView::CustomUpstream(custom) = event.view()
            && let Some(packets) = session::twcc_packets(custom)
        {
            self.on_twcc_event(&packets);
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    fn set_caps(&self, caps: gst::Caps) {
        let types = session::rtx_payload_types(self.obj().upcast_ref());
        if let Some(running) = &mut lock(&self.state).running {
            running.sender.streams().set_rtx_payload_types(types);
            running.sender.set_caps(&caps);
        }
    }

    /// One round of the task: one packet, one event, or one wait.
    fn run(&self) {
        let mut state = lock(&self.state);
        let is_halted = state.flow.is_err();
        let Some(running) = state.running.as_mut().filter(|_| !is_halted) else {
            drop(state);
            let _ = self.src.pause_task();
            return;
        };
        let now = running.now();
        let step = running.sender.step(now);
        let update = running.sender.take_update();
        let wait = match step {
            Step::Wait(due) => Some(new_wait(&running.clock, due)),
            _ => None,
        };
        state.waiting.clone_from(&wait);
        drop(state);
        self.publish(update);
        match step {
            Step::Packet(buffer) => {
                let result = self.src.push(buffer);
                self.after_push(result);
            }
            Step::Event(event) => {
                let is_eos = event.type_() == gst::EventType::Eos;
                self.src.push_event(event);
                if is_eos {
                    self.after_push(Err(gst::FlowError::Eos));
                }
            }
            Step::Wait(_) => {
                // Ends at the time, or when `wake` is called.
                let _ = wait.map(|id| id.wait());
            }
        }
    }

    fn after_push(&self, result: Result<gst::FlowSuccess, gst::FlowError>) {
        if let Err(error) = result {
            gst::debug!(CAT, imp = self, "pausing: {error:?}");
            let mut state = lock(&self.state);
            // A flush that began meanwhile is the better reason.
            if state.flow.is_ok() {
                state.flow = Err(error);
            }
        }
    }
}

fn new_wait(clock: &gst::Clock, due: Option<Timestamp>) -> gst::SingleShotClockId {
    let latest = clock.time() + MAX_WAIT;
    let due = due.and_then(|due| u64::try_from(due.as_nanos()).ok());
    clock.new_single_shot_id(due.map_or(latest, |due| gst::ClockTime::from_nseconds(due).min(latest)))
}

/// A panic in another thread leaves the state as it was between two calls, which is usable.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
