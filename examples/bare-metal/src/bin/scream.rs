//! The sender with `scream`.

#![no_std]
#![no_main]

use weir::controllers::scream::Scream;

bare_metal::program!(bare_metal::run("scream", Scream::new));
