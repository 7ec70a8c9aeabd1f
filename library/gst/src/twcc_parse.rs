//! `weirtwccparse`: passes RTCP on, and reports the transport-wide feedback in it.

use std::sync::{LazyLock, Mutex, PoisonError};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use weir_rtcp::{Message, messages};
use weir_wire::twcc::{ReferenceTime, TICK_US, View};

use crate::class;

glib::wrapper! {
    /// The element `weirtwccparse`.
    pub struct TwccParse(ObjectSubclass<imp::TwccParse>) @extends gst::Element, gst::Object;
}

/// Adds the element to the plugin.
pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    class::register::<TwccParse>(plugin, "weirtwccparse")
}

/// The structure of the signal `feedback`.
fn structure(view: &View<'_>) -> gst::Structure {
    let reference_us = i64::from(view.reference_time().units()) * ReferenceTime::UNIT_US;
    let packets = view.arrivals().map(|(number, ticks)| {
        let mut packet = gst::Structure::builder("weir-twcc-packet")
            .field("seqnum", u32::from(number))
            .field("received", ticks.is_some())
            .build();
        if let Some(ticks) = ticks {
            let arrival_us = reference_us + i64::from(ticks) * TICK_US;
            packet.set("arrival", u64::try_from(arrival_us * 1_000).unwrap_or(0));
        }
        packet.to_send_value()
    });
    gst::Structure::builder("weir-twcc-feedback")
        .field("sender-ssrc", view.sender_ssrc())
        .field("media-ssrc", view.media_ssrc())
        .field("base-seqnum", u32::from(view.base_sequence_number()))
        .field("count", u32::from(view.feedback_packet_count()))
        .field("packets", gst::Array::from_values(packets))
        .build()
}

mod imp {
    use super::*;

    pub struct TwccParse {
        sink: gst::Pad,
        src: gst::Pad,
        /// The feedback before, because some programs deliver each packet more than once.
        last: Mutex<Vec<u8>>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for TwccParse {
        const NAME: &'static str = "WeirTwccParse";
        type Type = super::TwccParse;
        type ParentType = gst::Element;

        fn with_class(class: &Self::Class) -> Self {
            let sink = gst::Pad::builder_from_template(&class::template_of(class, "sink"))
                .chain_function(|_, parent, buffer| {
                    Self::catch_panic_pad_function(parent, class::flow_after_panic, |imp| {
                        imp.report(&buffer);
                        imp.src.push(buffer)
                    })
                })
                .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
                .build();
            let src = gst::Pad::from_template(&class::template_of(class, "src"));
            Self { sink, src, last: Mutex::default() }
        }
    }

    impl ObjectImpl for TwccParse {
        fn constructed(&self) {
            self.parent_constructed();
            class::add_pads(&*self.obj(), [&self.sink, &self.src]);
        }

        fn signals() -> &'static [glib::subclass::Signal] {
            static LIST: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
                let kinds = [gst::Structure::static_type()];
                vec![glib::subclass::Signal::builder("feedback").param_types(kinds).build()]
            });
            &LIST
        }
    }

    impl GstObjectImpl for TwccParse {}

    impl ElementImpl for TwccParse {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                class::metadata(
                    "Parser of transport-wide feedback",
                    "Network/RTP/Analyzer",
                    "Passes RTCP on and reports the arrival of each packet in its feedback",
                )
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
                LazyLock::new(|| class::sink_and_src(class::RTCP));
            &TEMPLATES
        }
    }

    impl TwccParse {
        fn report(&self, buffer: &gst::Buffer) {
            let mut found = Vec::new();
            if let Ok(bytes) = buffer.map_readable() {
                for message in messages(&bytes) {
                    if let Ok(Message::Twcc(view)) = message {
                        found.push(structure(&view));
                    }
                }
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if *last == bytes.as_slice() {
                    return;
                }
                last.clear();
                last.extend_from_slice(&bytes);
            }
            for feedback in found {
                self.obj().emit_by_name::<()>("feedback", &[&feedback]);
            }
        }
    }
}
