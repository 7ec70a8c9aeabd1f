//! Driver of the arena for QUIC stacks: both ends of a call whose video is a stream for each group
//! of frames, as Media over QUIC has it. The arguments are the stack, `noq` or `quinn`, and its
//! controller: one that it comes with, or one of Weir.
//!
//! The lab talks to it in lines of JSON (docs/guide/arena.md). The session descriptions of such a
//! call are an address and a certificate. Nothing is added to the stacks: no repeats of our own, no
//! probes, no frame that is left out.

#![allow(clippy::duplicate_mod, reason = "sender and receiver are there once for each stack")]

mod description;
mod groups;
mod noq;
mod quinn;
mod viewer;

use std::env;
use std::process::ExitCode;
use std::thread;

use arena_driver::protocol::{self, Settings};
use arena_driver::{Happening, Happenings};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use weir::{Bitrate, RateLimits};

/// What the command line asks for.
enum Stack {
    Noq,
    Quinn,
}

fn main() -> ExitCode {
    let versions = include_str!("../Cargo.toml");
    let stack = match env::args().nth(1).as_deref() {
        Some("noq") => Stack::Noq,
        Some("quinn") => Stack::Quinn,
        _ => {
            eprintln!("arena-quic: name a stack and its controller: noq cubic");
            return ExitCode::from(2);
        }
    };
    match stack {
        Stack::Noq => {
            let version = format!("noq {}", pinned(versions, "noq"));
            arena_driver::run(&version, noq::send, noq::receive)
        }
        Stack::Quinn => {
            let version = format!("quinn {}", pinned(versions, "quinn"));
            arena_driver::run(&version, quinn::send, quinn::receive)
        }
    }
}

/// The version of this dependency that the manifest pins.
fn pinned<'a>(manifest: &'a str, name: &str) -> &'a str {
    let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
    arena_driver::pinned(line.unwrap_or_default())
}

/// The controller of the second argument.
fn controller() -> String {
    env::args().nth(2).unwrap_or_default()
}

/// The limits of a controller of ours.
fn limits(settings: &Settings) -> anyhow::Result<RateLimits> {
    let Settings { min_bitrate, start_bitrate, max_bitrate, .. } = *settings;
    let [min, start, max] = [min_bitrate, start_bitrate, max_bitrate].map(Bitrate::from_bps);
    Ok(RateLimits::new(min, start, max)?)
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The happenings of a call, for a task.
fn in_tasks(happenings: Happenings) -> UnboundedReceiver<Happening> {
    let (to_task, in_task) = unbounded_channel();
    thread::spawn(move || {
        while let Ok(happening) = happenings.receiver.recv() {
            if to_task.send(happening).is_err() {
                return;
            }
        }
    });
    let lines = happenings.sender;
    thread::spawn(move || protocol::read_lines(&lines));
    in_task
}
