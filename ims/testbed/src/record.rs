//! `weir ims record`: what passed since the IMS was started, as a record.
//!
//! The record of `weir ims call` has the messages of its two user agents. This one has those of
//! every terminal that leaves its messages in the folder of the running IMS, as browsers do that
//! `drive.mjs` drives, and the HTTP of the web servers.

use std::process::ExitCode;

use anyhow::ensure;

use crate::args;
use crate::call::{phases, with_network, write};
use crate::layout::{Files, folder};
use crate::trace::{self, Noted};

/// `weir ims record`.
pub(crate) fn record(args: &args::Record) -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    ensure!(!args.out.exists(), "{} exists already", args.out.display());
    let mut own: Vec<Noted> = Vec::new();
    for user in files.users() {
        own.extend(trace::since(&folder().join(format!("terminal-{user}.jsonl")), 0));
    }
    ensure!(!own.is_empty(), "no terminal has left messages in {}", folder().display());
    own.sort_by_key(|message| message.time_ns);
    let call = own.iter().find(|one| one.name == "INVITE" && files.user(&one.from).is_ok());
    let caller = call.unwrap_or(&own[0]).from.clone();
    let callee = own.iter().find(|one| one.name == "INVITE" && files.user(&one.to).is_ok());
    let callee = callee.map_or_else(|| "the network".to_owned(), |one| one.to.clone());
    let messages = with_network(own, 0);
    let of_caller = messages.iter().filter(|one| one.from == caller || one.to == caller);
    let phases = phases(&of_caller.cloned().collect::<Vec<_>>());
    write(&args.out, [&caller, &callee], &messages, &phases)?;
    println!("recorded in {}", args.out.display());
    Ok(ExitCode::SUCCESS)
}
