//! Signalling of a call through an IMS: what a page needs to be a terminal of it, and the way from
//! the page to the network.
//!
//! ```text
//!   browser -- wss 127.0.0.1 --> this process --> namespace of the terminal --> eP-CSCF
//! ```
//!
//! The browser's host has only the emulated path, on which its media go. Its signalling is passed
//! on, still encrypted, from the terminal's own namespace, so the network sees the terminal's
//! address.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

/// Longest time for which a callee rings, in ms: long enough to be seen in the record.
const RINGING_MS: u32 = 200;

/// An IMS through which the call's signalling goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ims {
    /// For each call the user at peer a, which calls, and the one at peer b.
    pub users: Vec<[ImsUser; 2]>,
    /// Address of the eP-CSCF's secure WebSocket.
    pub proxy: SocketAddr,
    /// SHA-256 of the eP-CSCF's public key, in base 64: the only certificate that the browsers take
    /// although no authority has signed it.
    pub key_hash: String,
    /// Socket on which the network announces bearers.
    pub bearers: PathBuf,
}

/// A user of an IMS with its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImsUser {
    /// File of the terminal's network namespace.
    pub namespace: PathBuf,
    /// Who the user is.
    pub account: ImsAccount,
}

/// The account of a page's agent, with the members of `Account` in `ims/agent/surroundings.ts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImsAccount {
    /// Private identity.
    pub private: String,
    /// Public identity.
    pub public: String,
    /// Domain of the home network.
    pub realm: String,
    /// Address of the terminal.
    pub address: Ipv4Addr,
    /// What the user authenticates with.
    pub credentials: serde_json::Value,
    /// What this side wants to receive, in kbit/s.
    pub rates: ImsRates,
}

/// Rates of `b=AS` in kbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImsRates {
    /// Of the other side's voice.
    pub audio: u32,
    /// Of the other side's video.
    pub video: u32,
}

/// What a page is told about its IMS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageIms {
    /// Address of the WebSocket.
    pub(crate) url: String,
    account: ImsAccount,
    /// Public identity of the other user.
    target: String,
    ringing_ms: u32,
}

/// A SIP message that a page has sent or received; with the text `first picture`, the other side's
/// first picture.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SipMessage {
    /// When, in ms since 1970.
    pub time: f64,
    /// Whether the page sent it.
    pub is_sent: bool,
    /// The message.
    pub text: String,
}

impl Ims {
    /// What the pages of a call are told. `listeners` are those of [`forward`].
    pub(crate) fn pages(&self, call: usize, listeners: [SocketAddr; 2]) -> Box<[PageIms; 2]> {
        let users = &self.users[call];
        let pages = [(0, 1), (1, 0)].map(|(own, other)| PageIms {
            url: format!("wss://{}", listeners[own]),
            account: users[own].account.clone(),
            target: users[other].account.public.clone(),
            ringing_ms: RINGING_MS,
        });
        Box::new(pages)
    }
}

/// Passes each connection on to the eP-CSCF, from the terminal's namespace, until the process ends.
pub(crate) fn forward(
    listener: TcpListener,
    namespace: &Path,
    proxy: SocketAddr,
) -> io::Result<()> {
    let namespace = File::open(namespace)?;
    thread::Builder::new().name("weir-ims".into()).spawn(move || {
        // Without the terminal's network the eP-CSCF cannot be reached.
        if move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).is_err() {
            return;
        }
        for near in listener.incoming().filter_map(Result::ok) {
            if let Ok(far) = TcpStream::connect(proxy) {
                let _ = join(near, far);
            }
        }
    })?;
    Ok(())
}

/// Carries bytes both ways, each on a thread of its own, until both sides have closed.
fn join(near: TcpStream, far: TcpStream) -> io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for (mut from, mut to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        thread::Builder::new().name("weir-ims".into()).spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })?;
    }
    Ok(())
}
