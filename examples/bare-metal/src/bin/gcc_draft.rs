//! The sender with `gcc-draft`.

#![no_std]
#![no_main]

use weir::controllers::gcc_draft::GccDraft;

bare_metal::program!(bare_metal::run("gcc-draft", GccDraft::new, None));
