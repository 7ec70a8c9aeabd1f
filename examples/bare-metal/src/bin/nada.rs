//! The sender with `nada`.

#![no_std]
#![no_main]

use weir::controllers::nada::Nada;

bare_metal::program!(bare_metal::run("nada", Nada::new));
