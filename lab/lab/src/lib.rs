//! Scenario files, run records, metrics, published values, expectations and the report.
//!
//! Metrics, expectations and the report work from a [`record`] alone, so the same code measures
//! simulated runs and real calls.
#![forbid(unsafe_code)]

pub mod calls;
pub mod cause;
pub mod compare;
pub mod constants;
mod controllers;
mod engine;
pub mod files;
pub mod gate;
#[cfg(test)]
mod generated;
pub mod metrics;
pub mod protocol;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shared;
pub mod significance;
mod simulate;
pub mod spread;
mod stats_dump;
pub mod subject;
pub mod summary;
mod terminals;
pub mod unfinished;
pub mod variation;
pub mod whole_file;
mod wifi_cell;

pub use controllers::{Controllers, UnknownController};
pub use simulate::simulate;
pub use stats_dump::stats_dump;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
