//! `weir ims`: an IMS in network namespaces, and calls through it.
//!
//! | module | purpose |
//! |---|---|
//! | `layout` | names, addresses and configuration files of the parts |
//! | `up` | starts and stops the parts |
//! | `serve` | sockets of the HSS and the PCRF |
//! | `announce` | the PCRF's decisions for a cell |
//! | `application` | the application server |
//! | `capture` | the SIP between the parts |
//! | `function` | sockets of the application function |
//! | `user` | sockets of the user agents |
//! | `call` | one call with its record |
//! | `record` | what passed since the IMS was started, as a record |
//! | `talk` | calls of plain user agents with anybody, with media |
//! | `web` | the web servers of web authentication |
//! | `wic` | what browsers need to be terminals, and the record of their call |
//! | `command` | runs programs to their end |
//! | `certificate` | keys and certificates of the parts with TLS |
//! | `check` | rules of the standards for a recorded call |
//! | `trace` | messages as lines of JSON, and the ladder diagram in text |
//! | `ladder` | the ladder diagram as a page with the text of each message |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod announce;
mod application;
mod args;
mod call;
mod capture;
mod certificate;
mod check;
mod command;
mod function;
mod layout;
mod record;
mod serve;
mod talk;
mod trace;
mod up;
mod user;
mod web;
mod wic;

use std::process::ExitCode;

pub use args::Args;
use args::Command;
pub use wic::{Signalled, Terminal, Wic};

/// Runs a command and returns its exit code.
///
/// # Errors
/// If something is missing on this machine, or a part does not start.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Up(up) => up::up(up),
        Command::Down => up::down(),
        Command::Restart(restart) => up::restart(restart),
        Command::Register(register) => call::register(register),
        Command::Call(call) => call::call(call),
        Command::Answer(talk) => talk::answer(talk),
        Command::Dial(dial) => talk::dial(dial),
        Command::Record(args) => record::record(args),
        Command::Check(args) => check::check(args),
        Command::Abort => serve::abort(),
        Command::Serve(args) => match args.server {
            args::Server::Af => function::serve(),
            args::Server::As => application::serve(),
            args::Server::Capture => capture::serve(),
            _ => serve::serve(args),
        },
    }
}
