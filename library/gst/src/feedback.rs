//! `weirfeedback`: the receiver's side. RTP passes unchanged, and RTCP feedback on it leaves by a
//! pad of its own, for pipelines without an RTP session.
//!
//! Threads: packets arrive on the thread of the source, and feedback leaves on the task of
//! `rtcp_src`. Both share [`Shared`] behind one mutex, which is released before anything is pushed.

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::feedback::Ecn;
use weir::units::{TimeDelta, Timestamp};
use weir_rtcp::{Receiver, ReceiverConfig};
use weir_wire::rtp::ExtensionIds;

use crate::class;
use crate::pump::lock;
use crate::streams::add_extensions;

glib::wrapper! {
    /// The element `weirfeedback`.
    pub struct Feedback(ObjectSubclass<imp::Feedback>) @extends gst::Element, gst::Object;
}

/// Adds the element to the plugin.
pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    class::register::<Feedback>(plugin, "weirfeedback")
}

/// The format of the feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "WeirFeedbackFormat")]
#[repr(i32)]
enum Format {
    #[default]
    #[enum_value(name = "Transport-wide congestion control feedback", nick = "twcc")]
    Twcc,
    #[enum_value(name = "Congestion control feedback of RFC 8888", nick = "ccfb")]
    Ccfb,
    #[enum_value(name = "RTCP receiver reports", nick = "rr")]
    Rr,
}

impl From<Format> for weir_rtcp::Feedback {
    fn from(format: Format) -> Self {
        match format {
            Format::Twcc => Self::Twcc,
            Format::Ccfb => Self::Ccfb,
            Format::Rr => Self::ReceiverReports,
        }
    }
}

/// The values of the properties.
#[derive(Clone, Debug)]
struct Settings {
    format: Format,
    interval_ns: u64,
    ssrc: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { format: Format::Twcc, interval_ns: 50_000_000, ssrc: 0 }
    }
}

impl Settings {
    fn get(&self, name: &str) -> glib::Value {
        match name {
            "feedback" => self.format.to_value(),
            "interval" => self.interval_ns.to_value(),
            "ssrc" => self.ssrc.to_value(),
            _ => unreachable!("GObject asks only for properties in the list"),
        }
    }

    fn set(&mut self, name: &str, value: &glib::Value) {
        const CHECKED: &str = "GObject checks the type";
        match name {
            "feedback" => self.format = value.get().expect(CHECKED),
            "interval" => self.interval_ns = value.get().expect(CHECKED),
            "ssrc" => self.ssrc = value.get().expect(CHECKED),
            _ => unreachable!("GObject sets only properties in the list"),
        }
    }

    fn receiver(&self, now: Timestamp, extensions: ExtensionIds) -> Receiver {
        let ssrc = if self.ssrc == 0 { glib::random_int().max(1) } else { self.ssrc };
        let interval = TimeDelta::from_nanos(self.interval_ns.try_into().unwrap_or(i64::MAX));
        let config =
            ReceiverConfig::new(ssrc, extensions, self.format.into()).with_interval(interval);
        Receiver::new(now, config, Box::new(glib::random_double))
    }
}

fn properties() -> Vec<glib::ParamSpec> {
    let defaults = Settings::default();
    vec![
        glib::ParamSpecEnum::builder::<Format>("feedback")
            .blurb("The format of the feedback")
            .mutable_ready()
            .build(),
        glib::ParamSpecUInt64::builder("interval")
            .blurb("Time between two feedback packets of twcc and ccfb, in ns")
            .minimum(1_000_000)
            .maximum(10_000_000_000)
            .default_value(defaults.interval_ns)
            .mutable_ready()
            .build(),
        glib::ParamSpecUInt::builder("ssrc")
            .blurb("The receiver's own SSRC; 0 for a random one")
            .mutable_ready()
            .build(),
    ]
}

mod imp {
    use super::*;

    static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
        let color = gst::DebugColorFlags::empty();
        gst::DebugCategory::new("weirfeedback", color, Some("Congestion control feedback"))
    });

    pub struct Feedback {
        sink: gst::Pad,
        src: gst::Pad,
        rtcp_sink: gst::Pad,
        rtcp_src: gst::Pad,
        settings: Mutex<Settings>,
        state: Mutex<Shared>,
    }

    /// What the threads share.
    #[derive(Default)]
    struct Shared {
        /// `None` in the states NULL and READY.
        running: Option<Running>,
        /// Whether the events before the first feedback have left.
        has_started: bool,
        /// The wait of the task with its end, to end it early.
        waiting: Option<(gst::SingleShotClockId, Timestamp)>,
    }

    struct Running {
        clock: gst::Clock,
        receiver: Receiver,
        extensions: ExtensionIds,
    }

    impl Running {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(self.clock.time().nseconds() as i64)
        }
    }

    impl Shared {
        /// Lets the task look again, if the next feedback is due before the end of its wait.
        fn wake(&mut self) {
            let Some(running) = &self.running else { return };
            let due = running.receiver.next_timeout();
            if let Some((wait, _)) = self.waiting.take_if(|(_, end)| due < *end) {
                wait.unschedule();
            }
        }
    }

    fn buffer(rtcp: &[u8]) -> gst::Buffer {
        gst::Buffer::from_slice(rtcp.to_vec())
    }

    /// The pads that an event or a query on this pad goes to.
    fn links(pad: &gst::Pad, parent: Option<&gst::Object>) -> gst::Iterator<gst::Pad> {
        let element = parent.and_then(|parent| parent.downcast_ref::<super::Feedback>());
        let linked = element.and_then(|element| element.imp().linked(pad));
        gst::Iterator::from_vec(linked.into_iter().collect())
    }

    /// The pad of this name, not yet built.
    fn pad(class: &glib::Class<gst::Element>, name: &str) -> gst::PadBuilder<gst::Pad> {
        let template = class::template_of(class, name);
        gst::Pad::builder_from_template(&template).iterate_internal_links_function(links)
    }

    fn activation_after_panic() -> Result<(), gst::LoggableError> {
        Err(gst::loggable_error!(CAT, "a panic in the element"))
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Feedback {
        const NAME: &'static str = "WeirReceiverFeedback";
        type Type = super::Feedback;
        type ParentType = gst::Element;

        fn with_class(class: &Self::Class) -> Self {
            let sink = pad(class, "sink")
                .chain_function(|_, parent, buffer| {
                    Self::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                        imp.on_rtp(buffer)
                    })
                })
                .event_function(|pad, parent, event| {
                    Self::catch_panic_pad_function(
                        parent,
                        || false,
                        |imp| imp.on_event(pad, parent, event),
                    )
                })
                .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
                .build();
            let src = pad(class, "src").flags(gst::PadFlags::PROXY_CAPS).build();
            let rtcp_sink = pad(class, "rtcp_sink")
                .chain_function(|_, parent, buffer| {
                    Self::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                        imp.on_rtcp(&buffer)
                    })
                })
                // The events of this stream have no place downstream.
                .event_function(|_, _, _| true)
                .build();
            let rtcp_src = pad(class, "rtcp_src")
                .query_function(|pad, parent, query| match query.view_mut() {
                    // The pipeline asks each of its sinks. Feedback is as late as the media.
                    gst::QueryViewMut::Latency(_) => Self::catch_panic_pad_function(
                        parent,
                        || false,
                        |imp| imp.sink.peer_query(query),
                    ),
                    _ => gst::Pad::query_default(pad, parent, query),
                })
                .activatemode_function(|_, parent, _, active| {
                    Self::catch_panic_pad_function(parent, activation_after_panic, |imp| {
                        imp.activate(active)
                    })
                })
                .build();
            let (settings, state) = Default::default();
            Self { sink, src, rtcp_sink, rtcp_src, settings, state }
        }
    }

    impl ObjectImpl for Feedback {
        fn constructed(&self) {
            self.parent_constructed();
            let pads = [&self.sink, &self.src, &self.rtcp_sink, &self.rtcp_src];
            class::add_pads(&*self.obj(), pads);
        }

        fn properties() -> &'static [glib::ParamSpec] {
            static LIST: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties);
            &LIST
        }

        fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
            lock(&self.settings).set(spec.name(), value);
        }

        fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
            lock(&self.settings).get(spec.name())
        }
    }

    impl GstObjectImpl for Feedback {}

    impl ElementImpl for Feedback {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                class::metadata(
                    "Congestion control feedback",
                    "Network/RTP/Filter",
                    "Passes RTP on, and makes the RTCP feedback that weircc needs at the sender",
                )
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                use gst::PadDirection::{Sink, Src};
                let mut templates = class::sink_and_src(class::RTP);
                templates.push(class::always("rtcp_sink", Sink, class::RTCP));
                templates.push(class::always("rtcp_src", Src, class::RTCP));
                templates
            });
            &TEMPLATES
        }

        fn change_state(
            &self,
            transition: gst::StateChange,
        ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
            if transition == gst::StateChange::ReadyToPaused {
                self.start(ExtensionIds::NONE);
            }
            let result = self.parent_change_state(transition);
            if transition == gst::StateChange::PausedToReady {
                *lock(&self.state) = Shared::default();
            }
            result
        }
    }

    /// Start and end.
    impl Feedback {
        fn start(&self, extensions: ExtensionIds) {
            let clock = gst::SystemClock::obtain();
            let now = Timestamp::from_nanos(clock.time().nseconds() as i64);
            let receiver = lock(&self.settings).receiver(now, extensions);
            let mut state = lock(&self.state);
            state.running = Some(Running { clock, receiver, extensions });
            if let Some((wait, _)) = state.waiting.take() {
                wait.unschedule();
            }
        }

        fn start_task(&self) -> Result<(), glib::BoolError> {
            let element = self.obj().downgrade();
            self.rtcp_src.start_task(move || {
                if let Some(element) = element.upgrade() {
                    element.imp().run();
                }
            })
        }

        fn activate(&self, active: bool) -> Result<(), gst::LoggableError> {
            if active {
                let started = self.start_task();
                return started.map_err(|_| gst::loggable_error!(CAT, "cannot start the task"));
            }
            let waiting = {
                let mut state = lock(&self.state);
                // Without this, the task would wait again.
                state.running = None;
                state.waiting.take()
            };
            if let Some((wait, _)) = waiting {
                wait.unschedule();
            }
            let stopped = self.rtcp_src.stop_task();
            stopped.map_err(|_| gst::loggable_error!(CAT, "cannot stop the task"))
        }
    }

    /// Data.
    impl Feedback {
        /// The other one of the two pads of RTP; `None` for the pads of RTCP.
        fn linked(&self, pad: &gst::Pad) -> Option<gst::Pad> {
            match pad {
                pad if *pad == self.sink => Some(self.src.clone()),
                pad if *pad == self.src => Some(self.sink.clone()),
                _ => None,
            }
        }

        fn on_rtp(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
            if let Ok(bytes) = buffer.map_readable() {
                let mut state = lock(&self.state);
                if let Some(running) = &mut state.running {
                    let now = running.now();
                    // GStreamer 1.22 does not tell the ECN bits of a datagram.
                    if let Err(error) = running.receiver.on_rtp(now, &bytes, Ecn::NotEct) {
                        gst::debug!(CAT, imp = self, "not RTP: {error}");
                    }
                    state.wake();
                }
            }
            self.src.push(buffer)
        }

        /// A sender report of the other end.
        fn on_rtcp(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
            if let (Ok(bytes), Some(running)) =
                (buffer.map_readable(), &mut lock(&self.state).running)
            {
                let now = running.now();
                running.receiver.on_rtcp(now, &bytes);
            }
            Ok(gst::FlowSuccess::Ok)
        }

        fn on_event(
            &self,
            pad: &gst::Pad,
            parent: Option<&gst::Object>,
            event: gst::Event,
        ) -> bool {
            match event.view() {
                gst::EventView::Caps(caps) => self.on_caps(caps.caps()),
                gst::EventView::Eos(_) => {
                    self.rtcp_src.push_event(event.clone());
                }
                _ => {}
            }
            gst::Pad::event_default(pad, parent, event)
        }

        /// The ids of the header extensions are those of the newest caps. Other ids start a new
        /// receiver.
        fn on_caps(&self, caps: &gst::CapsRef) {
            let known = lock(&self.state).running.as_ref().map(|running| running.extensions);
            let (Some(known), Some(structure)) = (known, caps.structure(0)) else { return };
            let mut extensions = known;
            add_extensions(structure, &mut extensions);
            let wants_number = lock(&self.settings).format == Format::Twcc;
            if wants_number && extensions.transport_sequence_number.is_none() {
                let text = "the caps have no extmap-N for the transport-wide number";
                gst::element_imp_warning!(self, gst::StreamError::Format, ("{}", text));
            }
            if extensions != known {
                self.start(extensions);
            }
        }

        /// One round of the task: what is due, or one wait.
        fn run(&self) {
            let mut state = lock(&self.state);
            let Some(running) = &mut state.running else {
                drop(state);
                let _ = self.rtcp_src.pause_task();
                return;
            };
            let mut due = Vec::new();
            let now = running.now();
            running.receiver.on_timeout(now);
            while let Some(rtcp) = running.receiver.next_rtcp() {
                due.push(buffer(rtcp));
            }
            if due.is_empty() {
                let end = running.receiver.next_timeout();
                let nanos = u64::try_from(end.as_nanos()).unwrap_or(0);
                let time = gst::ClockTime::from_nseconds(nanos);
                let wait = running.clock.new_single_shot_id(time);
                state.waiting = Some((wait.clone(), end));
                drop(state);
                let _ = wait.wait();
                return;
            }
            let is_first = !std::mem::replace(&mut state.has_started, true);
            drop(state);
            if is_first {
                self.push_first_events();
            }
            for rtcp in due {
                // Without a peer the element only passes RTP on.
                let _ = self.rtcp_src.push(rtcp);
            }
        }

        fn push_first_events(&self) {
            let id = format!("{}/rtcp", self.obj().name());
            let caps = gst::Caps::new_empty_simple("application/x-rtcp");
            let segment = gst::FormattedSegment::<gst::ClockTime>::new();
            self.rtcp_src.push_event(gst::event::StreamStart::new(&id));
            self.rtcp_src.push_event(gst::event::Caps::new(&caps));
            self.rtcp_src.push_event(gst::event::Segment::new(&segment));
        }
    }
}
