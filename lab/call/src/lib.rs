//! Real video calls through the emulator: browsers, their page, the signalling between them, and
//! their reports.
//!
//! [`run_call`] makes the calls of one run from set-up to tear-down. [`Session`] is only the
//! server, for browsers that somebody else opens. [`weir_record::calls::derive`] converts their
//! reports to values per interval.
//!
//! # Modules
//!
//! - `plan/`: derives the hosts and the calls from a scenario: the hosts and ends of each topology,
//!   pipelines and Firefox at the sending ends, a stack at the receiving ones.
//! - `peers/`: who takes part. `players` starts the programs; `pipeline/` is a Python program with
//!   webrtcbin and the element `weircc`; `stack` reads the folder of a stack and starts its driver;
//!   `app/` is an application under test with its browsers; `agent` takes the seats of programs
//!   without a page in the signalling; `ims` and `bearers` are the way to the IMS; `bridge` carries
//!   the media of people on other machines; `confinement` finds out as whom a browser can run.
//! - `run/`: drives the calls from set-up to tear-down. `signalling` and `state` are the rules of a
//!   call and whether it succeeded; `token_listener` closes connections that do not know the token;
//!   `link` makes the record of `weir link`, for any command.
//! - `measure/`: `capture/` writes and reads packets at both ends; `quality` is what is seen, by
//!   tags in the camera's film; `sound` is what is heard, by recordings of both ends on one clock;
//!   `witness/` compares browser reports, captures and the emulator's log of one call; `record`
//!   gives the results the shape of a simulated run.
#![forbid(unsafe_code)]

mod error;
mod measure;
mod message;
mod peers;
mod plan;
mod run;

pub use error::CallError;
pub use measure::outcome::{CallOutcome, CallResult, LoadOutcome, PeerOutcome, PlayerOutcome};
pub use measure::record::{app_facts, app_rows, record, warnings};
pub use measure::warning::disturbances_of;
pub use measure::{capture, quality, sound, witness};
pub use message::{
    CallSettings, DrawnCamera, Peer, RelayAccess, STATS_INTERVAL, SetupTimes, TargetChange,
};
pub use peers::app::{
    AppOutcome, AppParticipant, AppPlan, WATCHED_MAX, app_network, is_inside, run_app,
};
pub use peers::browser::installed;
pub use peers::ims::{Ims, ImsAccount, ImsRates, ImsUser, PageIms, SipMessage};
pub use peers::janus::ForwardingRole;
pub use peers::stack;
pub use plan::{
    Call, CallConfig, ChromiumMode, ControlledSender, IceHost, Participant, PlannedHandover,
    PlannedLoad, Player, RelayHost, Unplayable, nats, network,
};
pub use run::link::{LinkRun, link_record};
pub use run::places::Holder;
pub use run::server::{Session, random_token};
pub use run::signalling::{Event, EventKind};
pub use run::token_listener::{AdmittedStream, Bounds, Gate, ReachedAt, TokenListener};
pub use run::usage::Usage;
pub use run::{LiveStats, Progress, run_call};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
