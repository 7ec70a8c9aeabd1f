//! The sender with `gcc`.

#![no_std]
#![no_main]

use weir::controllers::gcc::Gcc;

bare_metal::program!(bare_metal::run("gcc", Gcc::new));
