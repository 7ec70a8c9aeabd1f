#![doc = include_str!("../README.md")]

mod flow;
#[cfg(feature = "moq")]
pub mod moq;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion;
use weir::controller::{EcnMode, Settings};
use weir::{ControllerFactory, DataSize};
use weir_quic::{Config, Congestion};

use flow::Flow;
pub use weir_quic::Control;

/// Builds a controller for each path of a connection:
/// `noq::TransportConfig::congestion_controller_factory`.
#[derive(Clone, Debug)]
pub struct RealTime {
    controller: ControllerFactory,
    settings: Settings,
    config: Config,
}

impl RealTime {
    /// Controllers of this kind. noq sends ECT(0), so a mark means what a loss means.
    pub fn new(controller: impl Into<ControllerFactory>, settings: impl Into<Settings>) -> Self {
        let settings = settings.into().with_ecn(EcnMode::Classic);
        Self { controller: controller.into(), settings, config: Config::default() }
    }

    /// The same for paths over IPv6, whose headers are longer.
    #[must_use]
    pub fn over_ipv6(mut self) -> Self {
        self.config = self.config.with_headers(DataSize::from_bytes(48));
        self
    }

    fn flow(&self, now: Instant, mtu: u16) -> Flow {
        let config = self.config.with_mtu(DataSize::from_bytes(mtu.into()));
        Flow::new(now, Congestion::new(self.controller.build(self.settings), config))
    }
}

impl congestion::ControllerFactory for RealTime {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(self.flow(now, mtu))
    }
}

/// The control of a controller that noq hands out (`Connection::congestion_state`). `None` if it
/// is not one of this crate.
pub fn control(controller: Box<dyn congestion::Controller>) -> Option<Control> {
    let any: Box<dyn Any> = controller.into_any();
    let flow = any.downcast::<Flow>().ok()?;
    Some(flow.control())
}
