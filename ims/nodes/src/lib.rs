//! Parts of an IMS as state machines: messages and the time go in, messages come out.
//!
//! | module | part |
//! |---|---|
//! | [`peer`] | a Diameter connection: capabilities exchange, watchdog |
//! | [`hss`], [`subscribers`] | home subscriber server over Cx, and its file |
//! | [`pcrf`], [`policy`] | policy and charging rules function over Rx, and its file |
//! | [`af`] | application function over Rx, for any profile of RTP |
//! | [`agent`], [`sip`], [`sdp`], [`digest`] | a SIP user agent with preconditions |
//! | [`md5`], [`milenage`] | the algorithms of SIP Digest and AKA |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod af;
pub mod agent;
pub mod digest;
pub mod hss;
pub mod md5;
pub mod milenage;
pub mod pcrf;
pub mod peer;
pub mod policy;
pub mod sdp;
pub mod sip;
pub mod subscribers;
