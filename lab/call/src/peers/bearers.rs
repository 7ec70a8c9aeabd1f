//! Bearers that an IMS announces while a call runs: each becomes a bearer of the cellular cell that
//! the call's packets cross.
//!
//! The announcer writes one line of JSON and waits for a line. With `ok` the cell has the bearers
//! ahead of all packets that the call sends because of them. With `refused` and their names it has
//! no room for some, and the session has none.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{fs, iter, thread};

use serde::Deserialize;
use weir::units::Bitrate;
use weir_emu::Handle;
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerEventKind, BearerRef, Directions, Guarantee, PacketFilter,
    PortRange, Priority, Qci, Subnet,
};
use weir_net::path::AccessChange;

/// An announcer that does not finish its line is left.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the emulator may take for a change.
const OUTCOME: Duration = Duration::from_millis(300);
/// Maximum length of an announcement.
const LINE_BYTES_MAX: u64 = 1_000_000;
/// Number of UDP.
const UDP: u8 = 17;

/// An announcement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum Announcement {
    /// A session has exactly these bearers from now on.
    Install { session: String, terminal: Ipv4Addr, bearers: Vec<Announced> },
    /// A session and its bearers are gone.
    Remove { session: String },
}

/// A bearer as the PCRF gives it, with rates in bit/s. A guaranteed rate of 0 means that there is
/// no guarantee.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Announced {
    name: String,
    qci: u8,
    arp: u8,
    gbr_up_bps: u64,
    gbr_down_bps: u64,
    mbr_up_bps: u64,
    mbr_down_bps: u64,
    filters: Vec<AnnouncedFilter>,
}

/// UDP packets between a port of the terminal and the other end. A missing address or port of the
/// other end means any.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnnouncedFilter {
    port: u16,
    remote: Option<Ipv4Addr>,
    remote_port: Option<u16>,
}

/// The socket of the announcements. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Bearers {
    path: PathBuf,
}

impl Drop for Bearers {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Bearers {
    /// Listens at `path`, and applies what comes to the cell. `terminals` are the numbers of the
    /// cell's terminals by the address of their host.
    pub(crate) fn listen(
        path: &Path,
        handle: Handle,
        terminals: BTreeMap<Ipv4Addr, usize>,
    ) -> io::Result<Self> {
        // A run that was killed may have left it.
        let _ = fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        thread::Builder::new().name("weir-bearers".into()).spawn(move || {
            let mut sessions = Sessions { terminals, installed: BTreeMap::new() };
            for stream in listener.incoming().filter_map(Result::ok) {
                // A client that sends nothing gets no bearer, and does not block the next one.
                let _ = serve(&stream, &mut sessions, &handle);
            }
        })?;
        Ok(Self { path: path.to_owned() })
    }
}

fn serve(stream: &UnixStream, sessions: &mut Sessions, handle: &Handle) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(announcement) => apply(sessions, announcement, |change| ask(handle, change)) + "\n",
        Err(error) => format!("{error}\n"),
    };
    (&*stream).write_all(answer.as_bytes())
}

/// Applies an announcement, and returns the cell's answer.
fn apply(
    sessions: &mut Sessions,
    announcement: Announcement,
    change: impl Fn(BearerChange) -> Option<BearerEventKind>,
) -> String {
    let session = announcement.session().to_owned();
    let mut refused = Vec::new();
    for one in sessions.changes(announcement) {
        let name = one.bearer().to_owned();
        if change(one) == Some(BearerEventKind::Refused) {
            refused.push(name);
        }
    }
    if refused.is_empty() {
        return "ok".into();
    }
    // All or nothing: a call has no use for half of its bearers.
    for one in sessions.changes(Announcement::Remove { session }) {
        change(one);
    }
    format!("refused {}", refused.join(", "))
}

/// Asks the emulator for a change, and waits for its result.
fn ask(handle: &Handle, change: BearerChange) -> Option<BearerEventKind> {
    let (outcome, answer) = channel();
    handle.set_access(AccessChange::Bearer { change, outcome: Some(outcome) });
    answer.recv_timeout(OUTCOME).ok()
}

/// What is installed.
struct Sessions {
    terminals: BTreeMap<Ipv4Addr, usize>,
    /// By session: the terminal and its bearers.
    installed: BTreeMap<String, (usize, Vec<Installed>)>,
}

/// A bearer of a session in the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installed {
    announced: Announced,
    /// Its name in the cell. Another session of the terminal may have announced the same name, as a
    /// call and the facilitator do for video.
    name: String,
}

impl Sessions {
    /// The changes of the cell that an announcement asks for.
    fn changes(&mut self, announcement: Announcement) -> Vec<BearerChange> {
        let (session, wanted) = match announcement {
            Announcement::Remove { session } => (session, None),
            Announcement::Install { session, terminal, bearers } => {
                // A terminal outside the cell has a wired host, which needs no bearer.
                let Some(terminal) = self.terminals.get(&terminal) else { return Vec::new() };
                (session, Some((*terminal, bearers)))
            }
        };
        let (terminal, old) = self.installed.remove(&session).unwrap_or_default();
        let (kept, gone): (Vec<_>, Vec<_>) = old.into_iter().partition(|one| {
            wanted.as_ref().is_some_and(|(_, bearers)| bearers.contains(&one.announced))
        });
        let mut changes: Vec<BearerChange> = gone
            .into_iter()
            .map(|one| BearerChange::Remove(BearerRef { terminal, bearer: one.name }))
            .collect();
        let Some((terminal, bearers)) = wanted else { return changes };
        let mut own = kept;
        for announced in bearers {
            if own.iter().any(|one| one.announced == announced) {
                continue;
            }
            let name = self.free_name(&announced.name, terminal, &own);
            if let Some(bearer) = announced.config(&name) {
                changes.push(BearerChange::Add { terminal, bearer });
            }
            own.push(Installed { announced, name });
        }
        self.installed.insert(session, (terminal, own));
        changes
    }

    /// A name in the cell that no bearer of this terminal has, neither of another session nor of
    /// `own`.
    fn free_name(&self, wanted: &str, terminal: usize, own: &[Installed]) -> String {
        let others = self.installed.values().filter(|(of, _)| *of == terminal);
        let taken: BTreeSet<&str> =
            others.flat_map(|(_, all)| all).chain(own).map(|one| one.name.as_str()).collect();
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let mut names = iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| !taken.contains(name.as_str())).expect("the names are endless")
    }
}

impl Announcement {
    fn session(&self) -> &str {
        match self {
            Self::Install { session, .. } | Self::Remove { session } => session,
        }
    }
}

impl Announced {
    /// The bearer in the cell; `None` without a class that it knows, or without filters: it would
    /// take no packet.
    fn config(&self, name: &str) -> Option<BearerConfig> {
        let rate =
            |up, down| Directions { up: Bitrate::from_bps(up), down: Bitrate::from_bps(down) };
        let is_guaranteed = self.gbr_up_bps > 0 || self.gbr_down_bps > 0;
        let mut config = BearerConfig::default();
        config.name = name.into();
        config.qci = Qci::new(self.qci)?;
        config.guarantee = is_guaranteed.then(|| Guarantee {
            rate: rate(self.gbr_up_bps, self.gbr_down_bps),
            limit: rate(self.mbr_up_bps, self.mbr_down_bps),
        });
        config.priority = Priority { level: self.arp, ..Priority::default() };
        config.filters = self.filters.iter().map(AnnouncedFilter::filter).collect();
        (!config.filters.is_empty()).then_some(config)
    }
}

impl AnnouncedFilter {
    fn filter(&self) -> PacketFilter {
        let [ports, remote_ports] = [Some(self.port), self.remote_port]
            .map(|port| port.map_or(PortRange::ANY, |port| PortRange { first: port, last: port }));
        PacketFilter::Packets {
            protocol: UDP,
            ports,
            remote: self.remote.map_or(Subnet::ANY, |address| Subnet { address, prefix: 32 }),
            remote_ports,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const TERMINAL: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);

    fn sessions() -> Sessions {
        Sessions { terminals: BTreeMap::from([(TERMINAL, 0)]), installed: BTreeMap::new() }
    }

    fn install(session: &str, terminal: &str, gbr: u64) -> Announcement {
        serde_json::from_str(&format!(
            "{{\"type\":\"install\",\"session\":\"{session}\",\"terminal\":\"{terminal}\",\
             \"bearers\":[{{\"name\":\"video\",\"qci\":2,\"arp\":4,\"gbr_up_bps\":{gbr},\
             \"gbr_down_bps\":{gbr},\"mbr_up_bps\":{gbr},\"mbr_down_bps\":{gbr},\"filters\":[\
             {{\"port\":5002,\"remote\":\"10.45.0.2\",\"remote_port\":6000}}]}}]}}"
        ))
        .unwrap()
    }

    #[test]
    fn a_session_gets_its_bearers_and_loses_them() {
        let mut sessions = sessions();
        let added = sessions.changes(install("1", "10.45.0.1", 2_000_000));
        let [BearerChange::Add { terminal: 0, bearer }] = &added[..] else { panic!("{added:?}") };
        assert_eq!((bearer.name.as_str(), bearer.qci.number), ("video", 2));
        assert_eq!(bearer.guarantee.unwrap().rate.up, Bitrate::from_kbps(2000));
        let PacketFilter::Packets { ports, remote, remote_ports, .. } = bearer.filters[0] else {
            panic!("{bearer:?}")
        };
        assert_eq!((ports.first, remote_ports.first, remote_ports.last), (5002, 6000, 6000));
        assert_eq!(remote, Subnet { address: Ipv4Addr::new(10, 45, 0, 2), prefix: 32 });
        // The AAR after the UPDATE says the same again: the bearer keeps its packets.
        assert_eq!(sessions.changes(install("1", "10.45.0.1", 2_000_000)), []);
        let changed = sessions.changes(install("1", "10.45.0.1", 1_000_000));
        assert!(matches!(changed[..], [BearerChange::Remove(_), BearerChange::Add { .. }]));
        let removed = sessions.changes(Announcement::Remove { session: "1".into() });
        assert_eq!(removed.len(), 1);
        assert_eq!(removed[0].to_string(), "bearer video of terminal 1 removed");
        assert_eq!(sessions.changes(Announcement::Remove { session: "1".into() }), []);
    }

    #[test]
    fn a_session_of_which_the_cell_refuses_a_bearer_has_none() {
        let mut sessions = sessions();
        let seen = RefCell::new(Vec::new());
        let cell = |refuses: bool| {
            let seen = &seen;
            move |change: BearerChange| {
                seen.borrow_mut().push(change.to_string());
                Some(if refuses { BearerEventKind::Refused } else { BearerEventKind::Added })
            }
        };
        let said = apply(&mut sessions, install("1", "10.45.0.1", 2_000_000), cell(true));
        assert_eq!(said, "refused video");
        let added = "bearer video of terminal 1 added";
        assert_eq!(*seen.borrow(), [added, "bearer video of terminal 1 removed"]);
        // It may ask again.
        let said = apply(&mut sessions, install("1", "10.45.0.1", 1_000_000), cell(false));
        assert_eq!((said.as_str(), seen.borrow()[2].as_str()), ("ok", added));
    }

    #[test]
    fn two_sessions_of_a_terminal_have_bearers_of_the_same_name() {
        let mut sessions = sessions();
        let mut said = |announcement| -> Vec<String> {
            sessions.changes(announcement).iter().map(ToString::to_string).collect()
        };
        assert_eq!(said(install("call", "10.45.0.1", 1)), ["bearer video of terminal 1 added"]);
        assert_eq!(said(install("link", "10.45.0.1", 2)), ["bearer video-2 of terminal 1 added"]);
        // A repeated AAR changes neither.
        assert_eq!(said(install("link", "10.45.0.1", 2)), [""; 0]);
        let end = |session: &str| Announcement::Remove { session: session.into() };
        assert_eq!(said(end("call")), ["bearer video of terminal 1 removed"]);
        assert_eq!(said(install("third", "10.45.0.1", 3)), ["bearer video of terminal 1 added"]);
        assert_eq!(said(end("link")), ["bearer video-2 of terminal 1 removed"]);
    }

    #[test]
    fn a_host_outside_the_cell_gets_no_bearer() {
        assert_eq!(sessions().changes(install("1", "10.45.0.9", 1)), []);
    }

    #[test]
    fn a_line_that_is_no_announcement_is_refused() {
        for line in ["", "{}", r#"{"type":"remove","session":"1","more":1}"#] {
            assert!(serde_json::from_str::<Announcement>(line).is_err(), "{line}");
        }
    }
}
