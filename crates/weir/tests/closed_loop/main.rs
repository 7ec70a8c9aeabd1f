//! Controllers in a closed loop: SCReAM by its texts, and all of them by what users complain about.

mod both_screams;
mod complaints;
mod naive;
mod path;
mod scream;
mod scream_v2;
