//! The element: pads, properties and state changes.

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::controller::{EcnMode, RateLimits};
use weir::units::DataSize;
use weir::{Algorithm, ControllerFactory};

use super::encoders::Encoders;
use super::group::Member;
use super::properties::{self, Settings};
use super::session::{self, Connection, Rtcp};
use crate::class;
use crate::pump::{Paced, Pump, lock, set_limits};
use crate::sender::{Config, Update};

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("weircc", gst::DebugColorFlags::empty(), Some("Congestion control"))
});

/// See the module.
pub struct WeirCc {
    pub(super) pump: Pump,
    pub(super) settings: Mutex<Settings>,
    pub(super) encoders: Mutex<Encoders>,
    /// The session whose RTCP arrives here.
    pub(super) session: Mutex<Option<Connection>>,
    /// The place in the group, if the application named one and the element runs.
    pub(super) member: Mutex<Option<Arc<Member>>>,
}

#[glib::object_subclass]
impl ObjectSubclass for WeirCc {
    const NAME: &'static str = "WeirCc";
    type Type = super::WeirCc;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        Self {
            pump: Pump::new::<Self>(class),
            settings: Mutex::default(),
            encoders: Mutex::default(),
            session: Mutex::default(),
            member: Mutex::default(),
        }
    }
}

impl ObjectImpl for WeirCc {
    fn constructed(&self) {
        self.parent_constructed();
        self.pump.add_pads(&*self.obj());
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
            set_limits(self, limits);
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        match spec.name() {
            "target-bitrate" => self.target_bps().to_value(),
            "pacer-queue" => self.pump.queue_time_ns().to_value(),
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
            class::metadata(
                "RTP congestion controller",
                "Network/RTP/Filter",
                "Sends RTP at the rate that a congestion controller allows (gcc, nada, scream)",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let (sink, on_request) = (gst::PadDirection::Sink, gst::PadPresence::Request);
            let mut templates = class::sink_and_src(class::RTP);
            templates.push(class::template("rtcp_sink", sink, on_request, class::RTCP));
            templates
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
                Self::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                    imp.on_rtcp(&Rtcp::Datagram(buffer));
                    Ok(gst::FlowSuccess::Ok)
                })
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

    /// The application says that packets take another route from now on.
    pub(super) fn on_route_change(&self) {
        let updated = self.pump.update(|running| running.sender.on_route_change(running.now()));
        if let Some(((), update)) = updated {
            self.publish(update);
        }
    }

    fn limits(&self) -> Result<RateLimits, gst::StateChangeError> {
        lock(&self.settings).limits().ok_or_else(|| {
            let text = "min-bitrate must be above 0 and at most max-bitrate";
            gst::element_imp_error!(self, gst::LibraryError::Settings, ("{}", text));
            gst::StateChangeError
        })
    }

    fn start(&self) -> Result<(), gst::StateChangeError> {
        let (algorithm, limits) = (self.algorithm()?, self.limits()?);
        let config = {
            let settings = lock(&self.settings);
            Config {
                controller: with_ecn(algorithm, settings.ecn.mode()),
                limits,
                feedback: settings.feedback.kind(),
                overhead: DataSize::from_bytes(settings.overhead.into()),
            }
        };
        *lock(&self.member) = self.join_group(limits);
        self.publish(self.pump.start(config));
        Ok(())
    }

    fn stop(&self) {
        self.pump.stop();
        let session = lock(&self.session).take();
        let member = lock(&self.member).take();
        // Not under a lock: one disconnects, and the other one leaves its group.
        drop((session, member));
    }
}

impl Paced for WeirCc {
    fn pump(&self) -> &Pump {
        &self.pump
    }

    fn publish(&self, update: Update) {
        self.tell_all(update);
    }

    fn before_packets(&self) {
        self.find_session();
    }

    fn on_caps(&self, _caps: &gst::Caps) {
        self.find_retransmissions();
    }

    fn on_custom_upstream(&self, event: &gst::event::CustomUpstream) {
        if let Some(packets) = session::twcc_packets(event) {
            self.on_twcc_event(&packets);
        }
    }
}

/// Makes controllers that answer to marks in this way, or in the nearest one that the algorithm
/// supports.
fn with_ecn(algorithm: Algorithm, ecn: EcnMode) -> ControllerFactory {
    ControllerFactory::new(algorithm.name(), move |settings| {
        algorithm.build(settings.with_ecn(ecn))
    })
}
