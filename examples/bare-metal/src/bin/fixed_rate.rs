//! The sender with a controller that does nothing.

#![no_std]
#![no_main]

use bare_metal::fixed_rate::FixedRate;

bare_metal::program!(bare_metal::run("fixed-rate", |_| FixedRate));
