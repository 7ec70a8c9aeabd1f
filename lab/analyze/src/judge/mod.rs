//! What limited the call, and when: rules over samples become findings. The network that the call
//! met.

pub(crate) mod browser;
pub(crate) mod call;
pub(crate) mod cause;
pub(crate) mod delay_spikes;
pub(crate) mod finding;
pub(crate) mod headroom;
pub(crate) mod judgement;
pub(crate) mod late_begin;
pub(crate) mod merge;
pub(crate) mod network;
pub(crate) mod quality;
pub(crate) mod repeated_overuse;
pub(crate) mod rules;
pub(crate) mod stalls;
