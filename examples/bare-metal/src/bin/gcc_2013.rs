//! The sender with `gcc-2013`, whose receiver estimates too.

#![no_std]
#![no_main]

use weir::Algorithm;
use weir::controllers::gcc_2013::Gcc2013;

bare_metal::program!(bare_metal::run(
    "gcc-2013",
    Gcc2013::new,
    Algorithm::Gcc2013.build_receiver()
));
