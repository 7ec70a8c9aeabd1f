//! Browsers as terminals: what they need to reach the running IMS, and the record of their call.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use weir_nodes::sip;

use crate::announce;
use crate::call::{phases, with_network, write};
use crate::layout::{
    self, Files, SECURE_PORT, address, terminal_addresses, terminal_namespace, user_name,
};
use crate::trace::Noted;
use crate::user::title;

/// A user's terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Name of the user.
    pub name: String,
    /// File of the network namespace.
    pub namespace: PathBuf,
    /// Private identity.
    pub private: String,
    /// First public identity.
    pub public: String,
    /// Domain of the home network.
    pub realm: String,
    /// Address of the terminal.
    pub address: Ipv4Addr,
    /// Password or keys of AKA, as the page's agent takes them.
    pub credentials: Value,
}

/// What pairs of browsers need to call each other through the running IMS.
#[derive(Clone, Debug)]
pub struct Wic {
    /// The caller's and the callee's of each call.
    pub terminals: Vec<[Terminal; 2]>,
    /// The eP-CSCF's secure WebSocket.
    pub proxy: SocketAddr,
    /// SHA-256 of the eP-CSCF's public key, in base 64.
    pub key_hash: String,
    /// Socket on which the PCRF announces bearers.
    pub bearers: PathBuf,
}

/// The text that stands for the first picture of the other side among the messages of a terminal.
const FIRST_PICTURE: &str = "first picture";

/// A SIP message at a terminal, or the first picture there.
#[derive(Clone, Debug)]
pub struct Signalled {
    /// When, in ms since 1970.
    pub time_ms: f64,
    /// Whether the terminal sent it.
    pub is_sent: bool,
    /// The message.
    pub text: String,
}

impl Wic {
    /// The terminals of pairs of users of the running IMS, named as in `alice,bob`.
    ///
    /// # Errors
    /// If no IMS runs, or it does not have these users.
    pub fn of_running(users: &str) -> anyhow::Result<Self> {
        let names: Vec<&str> = users.split(',').collect();
        let (pairs, rest) = names.as_chunks::<2>();
        ensure!(rest.is_empty(), "--ims takes two users for each call: alice,bob");
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        ensure!(distinct.len() == names.len(), "a user cannot be in two places: {users}");
        let files = Files::of_running()?;
        let mut terminals = Vec::new();
        for [caller, callee] in pairs {
            terminals.push([terminal(&files, caller)?, terminal(&files, callee)?]);
        }
        let hash = layout::folder().join("epcscf.hash");
        Ok(Self {
            terminals,
            proxy: SocketAddr::from((address("epcscf"), SECURE_PORT)),
            key_hash: fs::read_to_string(hash).context("no certificate of the eP-CSCF")?,
            bearers: announce::socket(),
        })
    }

    /// Writes the messages of the calls beside their record: those of all terminals, and of HSS and
    /// PCRF since the first of them. Returns the times of the first call's phases in ms.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(
        &self,
        out: &Path,
        messages: &[[Vec<Signalled>; 2]],
    ) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let mut own = Vec::new();
        for (terminals, messages) in self.terminals.iter().zip(messages) {
            for (terminal, messages) in terminals.iter().zip(messages) {
                own.push(noted(&terminal.name, messages));
            }
        }
        let phases = own.first().map_or(Vec::new(), |caller| phases(caller));
        let own = own.concat();
        let names = [&*self.terminals[0][0].name, &*self.terminals[0][1].name];
        let start_ns = own.iter().map(|message| message.time_ns).min().unwrap_or(u64::MAX);
        write(out, names, &with_network(own, start_ns), &phases)?;
        Ok(phases)
    }
}

fn terminal(files: &Files, name: &str) -> anyhow::Result<Terminal> {
    let number = files.user(name)?;
    let subscriber = &files.subscribers.subscriber[number];
    let credentials = match (&subscriber.password, &subscriber.aka) {
        (Some(password), _) => json!({ "password": password }),
        (None, Some(aka)) => json!({ "aka": { "k": aka.k, "opc": aka.opc } }),
        (None, None) => anyhow::bail!("{name} has no secret"),
    };
    Ok(Terminal {
        name: user_name(&subscriber.private).into(),
        namespace: Path::new("/run/netns").join(terminal_namespace(name)),
        private: subscriber.private.clone(),
        public: subscriber.public[0].clone(),
        realm: files.subscribers.realm.clone(),
        address: terminal_addresses(number).0,
        credentials,
    })
}

fn noted(name: &str, messages: &[Signalled]) -> Vec<Noted> {
    let mut all = Vec::new();
    for message in messages {
        let text = message.text.as_str();
        let (from, to) = if message.is_sent { (name, "epcscf") } else { ("epcscf", name) };
        let (from, to, protocol, title, text) = match sip::Message::parse(text.as_bytes()) {
            _ if text == FIRST_PICTURE => (name, name, "media", FIRST_PICTURE.into(), ""),
            Ok(parsed) => (from, to, "SIP", title(&parsed), text),
            Err(_) => (from, to, "SIP", "unreadable".into(), text),
        };
        all.push(Noted {
            time_ns: (message.time_ms * 1e6) as u64,
            from: from.into(),
            to: to.into(),
            protocol: protocol.into(),
            name: title,
            text: text.into(),
        });
    }
    all
}
