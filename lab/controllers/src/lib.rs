#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

extern crate alloc;

mod algorithm;
mod controller;
mod delay_signal;
pub mod gcc_2013;
pub mod gcc_draft;
mod receiver;
mod remb_reporter;

pub use algorithm::LabAlgorithm;
pub use controller::LabController;
pub use receiver::{AbsSendTimes, ReceivedPacket, ReceiverEstimator};
pub use remb_reporter::RembReporter;
