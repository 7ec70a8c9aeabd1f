//! Controllers in a closed loop: SCReAM by its specifications, and all by the complaints of users.

#![expect(clippy::incompatible_msrv, reason = "tests run with the compiler of the lab")]

mod both_screams;
mod complaints;
mod late_hosts;
mod naive;
mod path;
mod scream;
mod scream_v2;
