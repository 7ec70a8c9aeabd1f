//! The sender with `sluice`.

#![no_std]
#![no_main]

use weir::controllers::sluice::Sluice;

bare_metal::program!(bare_metal::run("sluice", Sluice::new));
