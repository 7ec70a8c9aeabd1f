//! A sender on a processor without an operating system: what a program needs around a controller
//! there.
//!
//! Each program of `bin/` runs one controller through 200 s of virtual time over the network of
//! lund/rmcat-ns3, and prints how much memory it used.

#![no_std]

extern crate alloc;

pub mod fixed_rate;
pub mod heap;
pub mod machine;
mod network;
mod run;

pub use run::{run, run_without_sender};

/// Defines the program: what runs after the machine has started.
#[macro_export]
macro_rules! program {
    ($work:expr) => {
        #[unsafe(no_mangle)]
        fn program() {
            $work
        }
    };
}
