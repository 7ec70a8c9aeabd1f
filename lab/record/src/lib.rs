//! Records of runs, simulated or real, and what is computed from them: metrics of a run, published
//! values beside measured ones, expectations, comparisons.
//!
//! Everything works from a [`Record`] alone, so the same code measures simulated runs and real
//! calls.
//!
//! # Modules
//!
//! - `folder/`: writes and reads records. `folder/table.rs` makes the tables in which each column
//!   is declared once.
//! - `shell`: commands that are offered to be copied: each name is one word and no option.
//! - `summary`, `shared`: the metrics of a run; those of several flows together.
//! - `calls/`: what only a call has. `calls/stats` are the reports of a browser, `calls/derive`
//!   makes values per interval of them.
//! - `cause`: why a run misses an expectation, in words: controller, encoder or sender.
//! - `gate`: judges expectations, known misses and the RFC 8836 verdicts, from summaries alone.
//! - `recovery`: how long a measure takes until it is back to what it was.
//! - `spread`: how far the mean of a few runs may be from the true mean.
//! - `compare`: what differs between two sets of runs.
//! - `significance`: whether two sets of runs differ by more than chance.
//! - `whole_file`: writes a file completely or not at all.
//! - `unfinished`: locks records and folders of calls while they are written, and removes what a
//!   killed run left.
//!
//! # Memory
//!
//! No part of the program keeps all rows of a run. The simulator passes them on in parts of a
//! thousand. `record::Writer` appends them to their files. `summary::Measurer` aggregates them
//! (`metrics/`): it keeps sums and a count for each different delay. Two columns are needed twice,
//! so the part that does not fit into memory goes into a temporary file without a name. A report
//! reads records in the same way, one after the other. It keeps a summary, curves as wide as a
//! screen, and a reduced set of rate changes. Only two things grow with the length of a run: the
//! steps of its capacity (70 bytes each) and the number of different delays.
#![forbid(unsafe_code)]

pub mod calls;
pub mod cause;
pub mod compare;
mod engine;
mod folder;
pub mod gate;
#[cfg(test)]
mod generated;
pub mod lines;
mod recovery;
pub mod run;
pub mod shared;
pub mod shell;
pub mod significance;
mod simulate;
pub mod spread;
mod stats_dump;
pub mod subject;
pub mod summary;
pub mod terminals;
pub mod unfinished;
pub mod whole_file;
mod wifi_cell;

pub use folder::{
    LINK_DURATION_MAX, NumberColumn, Reader, Record, RecordError, SCHEMA, Scenarios, Writer,
    airtime, blocks, clean, find, find_with, memory, number_columns,
};
pub use simulate::simulate;
pub use stats_dump::stats_dump;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
