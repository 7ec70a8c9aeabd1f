//! `weirshaper`: a rate-shaping buffer. It sends RTP packets at a given rate.

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::ControllerFactory;
use weir::controller::{Controller, Metrics, RateLimits, Reason, Target};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, Timestamp};

use crate::class;
use crate::pump::{Paced, Pump, lock, set_limits};
use crate::sender::{Config, Update};

glib::wrapper! {
    /// The element `weirshaper`.
    pub struct Shaper(ObjectSubclass<imp::Shaper>) @extends gst::Element, gst::Object;
}

/// Adds the element to the plugin.
pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    class::register::<Shaper>(plugin, "weirshaper")
}

/// A controller that always asks for the same rate.
struct FixedRate(Bitrate);

impl Controller for FixedRate {
    fn on_packet_sent(&mut self, _now: Timestamp, _packet: &SentPacket) {}
    fn on_feedback(&mut self, _now: Timestamp, _report: &FeedbackReport) {}
    fn on_receiver_limit(&mut self, _now: Timestamp, _limit: Option<Bitrate>) {}
    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.0 = limits.max();
    }
    fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate) {}
    fn on_timeout(&mut self, _now: Timestamp) {}
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn target(&self) -> Target {
        Target::new(self.0, self.0)
    }
    fn metrics(&self) -> Metrics {
        Metrics::new(Reason::Start, "fixed")
    }
}

/// The limits that leave only this rate.
fn exactly(bitrate_bps: u64) -> RateLimits {
    let rate = Bitrate::from_bps(bitrate_bps);
    RateLimits::new(rate, rate, rate).expect("the property is above zero")
}

mod imp {
    use super::*;

    const DEFAULT_BPS: u64 = 1_000_000;

    pub struct Shaper {
        pump: Pump,
        bitrate_bps: Mutex<u64>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Shaper {
        const NAME: &'static str = "WeirShaper";
        type Type = super::Shaper;
        type ParentType = gst::Element;

        fn with_class(class: &Self::Class) -> Self {
            Self { pump: Pump::new::<Self>(class), bitrate_bps: Mutex::new(DEFAULT_BPS) }
        }
    }

    impl ObjectImpl for Shaper {
        fn constructed(&self) {
            self.parent_constructed();
            self.pump.add_pads(&*self.obj());
        }

        fn properties() -> &'static [glib::ParamSpec] {
            static LIST: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
                vec![
                    glib::ParamSpecUInt64::builder("bitrate")
                        .blurb("Rate at which packets leave, RTP headers included, in bit/s")
                        .minimum(1)
                        .default_value(DEFAULT_BPS)
                        .mutable_playing()
                        .build(),
                    glib::ParamSpecUInt64::builder("pacer-queue")
                        .blurb("Time that the waiting packets take to leave, in ns")
                        .read_only()
                        .build(),
                ]
            });
            &LIST
        }

        fn set_property(&self, _id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
            let bitrate_bps = value.get().expect("GObject checks the type");
            *lock(&self.bitrate_bps) = bitrate_bps;
            set_limits(self, exactly(bitrate_bps));
        }

        fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
            match spec.name() {
                "bitrate" => lock(&self.bitrate_bps).to_value(),
                _ => self.pump.queue_time_ns().to_value(),
            }
        }
    }

    impl GstObjectImpl for Shaper {}

    impl ElementImpl for Shaper {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                class::metadata(
                    "RTP rate-shaping buffer",
                    "Network/RTP/Filter",
                    "Sends RTP packets at a given rate",
                )
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
                LazyLock::new(|| class::sink_and_src(class::RTP));
            &TEMPLATES
        }

        fn change_state(
            &self,
            transition: gst::StateChange,
        ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
            if transition == gst::StateChange::ReadyToPaused {
                self.pump.start(Config {
                    controller: ControllerFactory::new("fixed", |settings| {
                        Box::new(FixedRate(settings.limits.start()))
                    }),
                    limits: exactly(*lock(&self.bitrate_bps)),
                    feedback: None,
                    overhead: DataSize::ZERO,
                });
            }
            let result = self.parent_change_state(transition);
            if transition == gst::StateChange::PausedToReady {
                self.pump.stop();
            }
            result
        }
    }

    impl Paced for Shaper {
        fn pump(&self) -> &Pump {
            &self.pump
        }

        /// Its rate changes only by the application itself.
        fn publish(&self, update: Update) {
            if update.wants_key_frame {
                self.pump.request_key_frame();
            }
        }
    }
}
