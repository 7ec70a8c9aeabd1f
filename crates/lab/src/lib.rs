//! Scenario files, run records, metrics, published values, expectations and the report.
//!
//! Metrics, expectations and the report work from a [`record`] alone, so the same code measures
//! simulated runs and real calls.

pub mod calls;
pub mod cell;
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
pub mod spread;
pub mod summary;
pub mod unfinished;
pub mod whole_file;
