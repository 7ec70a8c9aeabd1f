//! The sender with `scream-v2`.

#![no_std]
#![no_main]

use weir::controllers::scream_v2::ScreamV2;

bare_metal::program!(bare_metal::run("scream-v2", ScreamV2::new));
