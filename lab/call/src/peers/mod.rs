//! Who takes part: browsers, pipelines, stacks, applications, servers of others, and what stands
//! between them.

pub(crate) mod agent;
pub(crate) mod app;
pub(crate) mod bearers;
pub(crate) mod bridge;
pub(crate) mod browser;
pub(crate) mod camera;
pub(crate) mod certificate;
pub(crate) mod confinement;
pub(crate) mod ims;
pub(crate) mod janus;
pub(crate) mod pipeline;
pub(crate) mod players;
pub(crate) mod relay;
pub mod stack;
