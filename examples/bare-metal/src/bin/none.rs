//! No sender: what the programs need apart from it.

#![no_std]
#![no_main]

bare_metal::program!(bare_metal::run_without_sender());
