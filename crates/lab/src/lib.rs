//! The lab's paperwork: scenario files, run records, metrics, published values, expectations, report.
//!
//! Everything past [`record`] works from records alone, so a simulated run and a real call are
//! measured by the same code.

pub mod calls;
pub mod cell;
mod controllers;
pub mod files;
pub mod gate;
#[cfg(test)]
mod generated;
pub mod metrics;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shared;
pub mod significance;
mod simulate;
pub mod spread;
pub mod summary;
pub mod unfinished;
pub mod whole_file;

pub use controllers::{Controllers, UnknownController};
pub use simulate::simulate;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
