//! Real video calls through the emulator: browsers, their page, the signalling between them, and
//! their reports.
//!
//! [`run_call`] makes the calls of one run from set-up to tear-down. [`Session`] is only the
//! server, for browsers that somebody else opens. [`weir_lab::calls::derive`] converts their
//! reports to values per interval.
#![forbid(unsafe_code)]

mod agent;
mod app;
mod bearers;
mod bridge;
mod browser;
mod camera;
pub mod capture;
mod certificate;
mod confinement;
mod error;
mod handovers;
mod ims;
mod janus;
mod link;
mod loads;
mod message;
mod outcome;
mod pipeline;
mod plan;
mod players;
pub mod quality;
mod record;
mod relay;
mod run;
mod server;
mod signalling;
pub mod sound;
pub mod stack;
mod state;
mod targets;
mod token_listener;
mod transfer;
mod usage;
mod warning;
pub mod witness;

pub use app::{AppOutcome, AppParticipant, AppPlan, WATCHED_MAX, app_network, is_inside, run_app};
pub use browser::installed;
pub use error::CallError;
pub use ims::{Ims, ImsAccount, ImsRates, ImsUser, PageIms, SipMessage};
pub use janus::ForwardingRole;
pub use link::{LinkRun, link_record};
pub use message::{
    CallSettings, DrawnCamera, Peer, RelayAccess, STATS_INTERVAL, SetupTimes, TargetChange,
};
pub use outcome::{CallOutcome, CallResult, LoadOutcome, PeerOutcome, PlayerOutcome};
pub use plan::{
    Call, CallConfig, ChromiumMode, ControlledSender, IceHost, Participant, PlannedHandover,
    PlannedLoad, Player, RelayHost, Unplayable, nats, network,
};
pub use record::{app_facts, app_rows, record, warnings};
pub use run::{LiveStats, Progress, run_call};
pub use server::{Session, random_token};
pub use signalling::{Event, EventKind};
pub use token_listener::{AdmittedStream, Gate, ReachedAt, TokenListener};
pub use usage::Usage;
pub use warning::disturbances_of;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
