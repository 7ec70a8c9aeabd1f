//! The kinds of access networks.

mod config;
mod log;
mod network;

pub use config::{AccessConfig, AccessPlan};
pub use log::{AccessChange, AccessLog};
pub use network::AccessNetwork;
