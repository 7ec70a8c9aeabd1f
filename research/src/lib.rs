//! The protocol by which controllers are compared on scenarios that nobody wrote by hand.
//!
//! ```text
//! seed -> generate -> scenario -+-> simulate -> reached -+
//!                               +-> oracle ---> possible +-> score -> regret -> contest
//! ```
//!
//! [`generate`] draws scenarios, [`oracle`] computes what a sender could reach on one, [`score`]
//! compares a run with it, [`contest`] compares two controllers over many runs, and [`results`] has
//! all of it as JSON. [`ablation`] compares `sluice` with itself without a rule.
//! `docs/reference/generated-scenarios.md` describes all of them.
//!
//! [`oracle`]: weir_scenario::oracle
#![forbid(unsafe_code)]

pub mod ablation;
pub mod contest;
pub mod generate;
pub mod results;
pub mod score;

mod draw;
mod families;
mod waits;

pub use families::Family;
