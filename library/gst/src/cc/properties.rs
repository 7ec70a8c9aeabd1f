//! The properties and signals of the element, with their ranges and texts.

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir::controller::{EcnMode, RateLimits};
use weir::units::Bitrate;
use weir_rtcp::FeedbackKind;

use super::WeirCc;
use super::session::Rtcp;

/// Which feedback drives the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "WeirFeedback")]
#[repr(i32)]
pub(super) enum Feedback {
    #[default]
    #[enum_value(name = "The most precise kind that arrives", nick = "auto")]
    Auto,
    #[enum_value(name = "Transport-wide congestion control feedback", nick = "twcc")]
    Twcc,
    #[enum_value(name = "Congestion control feedback of RFC 8888", nick = "ccfb")]
    Ccfb,
    #[enum_value(name = "RTCP receiver reports", nick = "rr")]
    Rr,
}

impl Feedback {
    /// The kind, or `None` for the most precise one.
    pub(super) fn kind(self) -> Option<FeedbackKind> {
        match self {
            Self::Auto => None,
            Self::Twcc => Some(FeedbackKind::Twcc),
            Self::Ccfb => Some(FeedbackKind::Ccfb),
            Self::Rr => Some(FeedbackKind::ReceiverReports),
        }
    }
}

/// How the controller answers to marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "WeirEcn")]
#[repr(i32)]
pub(super) enum Ecn {
    #[default]
    #[enum_value(name = "Packets do not support ECN", nick = "off")]
    Off,
    #[enum_value(name = "ECT(0), a mark counts as a loss", nick = "classic")]
    Classic,
    #[enum_value(name = "ECT(1), the reaction follows the share of marks", nick = "l4s")]
    L4s,
}

impl Ecn {
    pub(super) fn mode(self) -> EcnMode {
        match self {
            Self::Off => EcnMode::Off,
            Self::Classic => EcnMode::Classic,
            Self::L4s => EcnMode::L4s,
        }
    }
}

/// The values of the properties that the application sets.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) algorithm: String,
    /// In bit/s.
    pub(super) min_bitrate: u64,
    pub(super) start_bitrate: u64,
    pub(super) max_bitrate: u64,
    pub(super) feedback: Feedback,
    pub(super) ecn: Ecn,
    pub(super) local: bool,
    pub(super) group: Option<String>,
    pub(super) priority: f64,
    /// Bytes per packet.
    pub(super) overhead: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: "gcc".to_owned(),
            min_bitrate: 100_000,
            start_bitrate: 300_000,
            max_bitrate: 2_500_000,
            feedback: Feedback::Auto,
            ecn: Ecn::Off,
            local: false,
            group: None,
            priority: 1.0,
            overhead: SRTP_OVER_UDP,
        }
    }
}

/// IPv4 and UDP headers, and the tag of SRTP.
const SRTP_OVER_UDP: u32 = 20 + 8 + 10;

impl Settings {
    /// The limits with the start between the other two; `None` if these contradict each other.
    pub(super) fn limits(&self) -> Option<RateLimits> {
        if self.min_bitrate > self.max_bitrate {
            return None;
        }
        let start = self.start_bitrate.clamp(self.min_bitrate, self.max_bitrate);
        let [min, start, max] = [self.min_bitrate, start, self.max_bitrate].map(Bitrate::from_bps);
        RateLimits::new(min, start, max).ok()
    }

    pub(super) fn get(&self, name: &str) -> glib::Value {
        match name {
            "algorithm" => self.algorithm.to_value(),
            "min-bitrate" => self.min_bitrate.to_value(),
            "start-bitrate" => self.start_bitrate.to_value(),
            "max-bitrate" => self.max_bitrate.to_value(),
            "feedback" => self.feedback.to_value(),
            "ecn" => self.ecn.to_value(),
            "local" => self.local.to_value(),
            "group" => self.group.to_value(),
            "priority" => self.priority.to_value(),
            "overhead" => self.overhead.to_value(),
            _ => unreachable!("GObject asks only for properties in the list"),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &glib::Value) {
        const CHECKED: &str = "GObject checks the type";
        match name {
            "algorithm" => {
                // NULL stands for the default.
                let name = value.get::<Option<String>>().expect(CHECKED);
                self.algorithm = name.unwrap_or_else(|| Self::default().algorithm);
            }
            "min-bitrate" => self.min_bitrate = value.get().expect(CHECKED),
            "start-bitrate" => self.start_bitrate = value.get().expect(CHECKED),
            "max-bitrate" => self.max_bitrate = value.get().expect(CHECKED),
            "feedback" => self.feedback = value.get().expect(CHECKED),
            "ecn" => self.ecn = value.get().expect(CHECKED),
            "local" => self.local = value.get().expect(CHECKED),
            "group" => self.group = value.get().expect(CHECKED),
            "priority" => self.priority = value.get().expect(CHECKED),
            "overhead" => self.overhead = value.get().expect(CHECKED),
            _ => unreachable!("GObject sets only properties in the list"),
        }
    }
}

/// All properties.
pub(super) fn list() -> Vec<glib::ParamSpec> {
    let defaults = Settings::default();
    vec![
        glib::ParamSpecString::builder("algorithm")
            .blurb("The congestion controller by name, such as gcc, nada or scream-v2")
            .default_value(Some(defaults.algorithm.as_str()))
            .mutable_ready()
            .build(),
        bitrate_spec("min-bitrate", "Lowest target bitrate, in bit/s", defaults.min_bitrate)
            .mutable_playing()
            .build(),
        bitrate_spec("start-bitrate", "First target bitrate, in bit/s", defaults.start_bitrate)
            .mutable_ready()
            .build(),
        bitrate_spec("max-bitrate", "Highest target bitrate, in bit/s", defaults.max_bitrate)
            .mutable_playing()
            .build(),
        glib::ParamSpecUInt64::builder("target-bitrate")
            .blurb("Bitrate that the media should have now, headers included, in bit/s")
            .read_only()
            .build(),
        glib::ParamSpecUInt64::builder("pacer-queue")
            .blurb("Time that the waiting packets take to leave, in ns")
            .read_only()
            .build(),
        glib::ParamSpecEnum::builder::<Feedback>("feedback")
            .blurb("Which feedback drives the controller")
            .mutable_ready()
            .build(),
        glib::ParamSpecEnum::builder::<Ecn>("ecn")
            .blurb(
                "How the controller answers to marks; the application sets the bits of the packets",
            )
            .mutable_ready()
            .build(),
        glib::ParamSpecBoolean::builder("local")
            .blurb(
                "Take feedback only from rtcp_sink and feedback-rtcp, and look for no rtpsession",
            )
            .mutable_ready()
            .build(),
        glib::ParamSpecObject::builder::<gst::Element>("encoder")
            .blurb("An encoder that follows the target bitrate; add-encoder takes more than one")
            .mutable_playing()
            .build(),
        glib::ParamSpecString::builder("group")
            .blurb("Elements of the same group share the sum of their rates by priority")
            .mutable_ready()
            .build(),
        glib::ParamSpecDouble::builder("priority")
            .blurb("Weight in the group")
            .minimum(0.001)
            .maximum(1_000.0)
            .default_value(1.0)
            .mutable_ready()
            .build(),
        glib::ParamSpecUInt::builder("overhead")
            .blurb(
                "Bytes that the layers below add to each RTP packet; they count towards the rate",
            )
            .default_value(defaults.overhead)
            .mutable_ready()
            .build(),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .blurb("The controller's metrics, and numbers of packets")
            .read_only()
            .build(),
    ]
}

fn bitrate_spec(
    name: &'static str,
    text: &'static str,
    default: u64,
) -> glib::ParamSpecUInt64Builder<'static> {
    glib::ParamSpecUInt64::builder(name).blurb(text).minimum(1).default_value(default)
}

/// All signals.
pub(super) fn signals() -> Vec<glib::subclass::Signal> {
    use glib::subclass::Signal;
    vec![
        Signal::builder("target-changed").param_types([gst::Structure::static_type()]).build(),
        Signal::builder("attach")
            .param_types([gst::Element::static_type()])
            .return_type::<bool>()
            .action()
            .class_handler(|values| {
                let element = values[0].get::<WeirCc>().expect("the emitter");
                let bin = values[1].get::<Option<gst::Element>>().expect("declared above");
                Some(bin.is_some_and(|bin| element.imp().attach(&bin)).to_value())
            })
            .build(),
        Signal::builder("add-encoder")
            .param_types([gst::Element::static_type(), f64::static_type()])
            .return_type::<bool>()
            .action()
            .class_handler(|values| {
                let element = values[0].get::<WeirCc>().expect("the emitter");
                let encoder = values[1].get::<Option<gst::Element>>().expect("declared above");
                let priority = values[2].get::<f64>().expect("declared above");
                let is_added = encoder.is_some_and(|it| element.imp().add_encoder(&it, priority));
                Some(is_added.to_value())
            })
            .build(),
        Signal::builder("remove-encoder")
            .param_types([gst::Element::static_type()])
            .action()
            .class_handler(|values| {
                let element = values[0].get::<WeirCc>().expect("the emitter");
                if let Ok(Some(encoder)) = values[1].get::<Option<gst::Element>>() {
                    element.imp().remove_encoder(&encoder);
                }
                None
            })
            .build(),
        Signal::builder("feedback-rtcp")
            .param_types([
                u32::static_type(),
                u32::static_type(),
                u32::static_type(),
                u32::static_type(),
                gst::Buffer::static_type(),
            ])
            .action()
            .class_handler(|values| {
                let element = values[0].get::<WeirCc>().expect("the emitter");
                if let Some(rtcp) = Rtcp::from_values(values) {
                    element.imp().on_rtcp(&rtcp);
                }
                None
            })
            .build(),
        Signal::builder("new-route")
            .action()
            .class_handler(|values| {
                let element = values[0].get::<WeirCc>().expect("the emitter");
                element.imp().on_route_change();
                None
            })
            .build(),
    ]
}
