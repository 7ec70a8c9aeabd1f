//! Participants that are pipelines of GStreamer: real media under a controller of Weir.
//!
//! A pipeline is a Python program in a process of its own on the participant's host. It talks to
//! the lab in lines of JSON. In its calls an [`Agent`] takes its seat, so for the other peer it is
//! a normal peer.
//!
//! ```text
//!   camera file -> encoder -> webrtcbin with weircc -> host        sender.py
//!          |                                                       stdin, stdout: lines
//!        Agent -- signalling of the call -- page of a browser
//! ```

mod agent;
mod messages;
mod process;
mod sender;

pub(crate) use agent::Agent;
pub(crate) use process::{Gstreamer, PipelineProcess};
pub(crate) use sender::{ELEMENTS, frames_file, start, start_stack};
