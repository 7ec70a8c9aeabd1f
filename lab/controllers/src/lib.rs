#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

extern crate alloc;

mod algorithm;
pub mod bbr_media;
mod controller;
pub mod copa;
mod delay_signal;
pub mod gcc_2013;
pub mod gcc_draft;
mod measure;
mod receiver;
mod remb_reporter;
mod scream_v2;

pub use algorithm::LabAlgorithm;
pub use controller::LabController;
pub use receiver::{AbsSendTimes, ReceivedPacket, ReceiverEstimator};
pub use remb_reporter::RembReporter;
