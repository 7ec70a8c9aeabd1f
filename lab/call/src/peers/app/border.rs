//! The way from an emulated network to a server that runs elsewhere: the last host is a border.
//!
//! ```text
//!   participants = scenario's network = border: weir0 <- kernel -> tap0 <-> slirp4netns -+
//!                                                           sockets of this machine <----+
//! ```
//!
//! slirp4netns ends the connections of the namespace and makes them anew from this machine, as a
//! NAT does. Its queues are not emulated; everything between the participants and the border is.
//! Names are asked for through the network, too: slirp4netns passes the questions to this machine's
//! name servers.

use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_emu::{Child, Host, Limits};

use super::origin;
use crate::error::CallError;

const PROGRAM: &str = "slirp4netns";
/// Its interface on the border.
const INTERFACE: &str = "tap0";
/// The gateway of slirp4netns, which is the second address of its network.
const GATEWAY: &str = "10.0.2.2";
/// The name server of slirp4netns, which is the third one.
const NAME_SERVER: &str = "10.0.2.3";
/// Where programs read which name server to ask.
const RESOLVER: &str = "/etc/resolv.conf";

/// The running way out. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Border {
    _program: Child,
}

impl Border {
    /// Opens the way out of a host, makes the host a router, and gives all hosts its name server.
    /// `folder` is for a file that must stay as long as the hosts do.
    pub(super) fn open(host: &Host, folder: &Path) -> Result<Self, CallError> {
        let (mut ready, tell) = io::pipe().map_err(CallError::system("make a pipe"))?;
        // Its standard input is a pipe of this process, so it ends when this process does.
        let mut command = Command::new(PROGRAM);
        command.args(["--configure", "--mtu=1500", "--disable-host-loopback"]);
        command.args(["--netns-type=path", "--exit-fd=0", "--ready-fd=1"]);
        command.arg(host.network_file()).arg(INTERFACE);
        command.stdin(Stdio::piped()).stdout(tell).stderr(Stdio::null());
        let program = Child::spawn(&mut command).map_err(|_| CallError::NoBorder)?;
        // The pipe's other end must be only the program's.
        drop(command);
        let mut word = [0];
        ready.read_exact(&mut word).map_err(CallError::system("start slirp4netns"))?;
        host.enter(route)?.map_err(CallError::system("make a host the border"))?;
        let mut route = host.command("ip");
        route.args(["route", "replace", "default", "via", GATEWAY, "dev", INTERFACE]);
        succeed(route).map_err(CallError::system("set the border's route"))?;
        name_server(host, folder).map_err(CallError::system("set the hosts' name server"))?;
        Ok(Self { _program: program })
    }
}

/// Runs a command. If it fails, what it says is the error.
fn succeed(mut command: Command) -> io::Result<()> {
    let done = weir_emu::output(&mut command, Limits::SHORT)?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim()))
}

/// Makes programs on the hosts ask the border's name server. The hosts share mounts of their own.
fn name_server(host: &Host, folder: &Path) -> io::Result<()> {
    if !Path::new(RESOLVER).exists() {
        return Ok(());
    }
    let file = folder.join("resolv.conf");
    fs::write(&file, format!("nameserver {NAME_SERVER}\n"))?;
    // Browsers run as another user.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    let mut mount = host.command("mount");
    mount.arg("--bind").arg(file).arg(RESOLVER);
    succeed(mount)
}

/// Makes this namespace pass packets on, and answer slirp4netns for the addresses of all hosts.
fn route() -> io::Result<()> {
    let settings = [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv4/conf/tap0/proxy_arp", "1"),
        // By default the kernel waits up to 0.8 s before it answers for another.
        ("net/ipv4/neigh/tap0/proxy_delay", "0"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/tap0/rp_filter", "0"),
    ];
    settings.iter().try_for_each(|(name, value)| fs::write(format!("/proc/sys/{name}"), value))
}

/// The name or address of a URL's server.
pub(super) fn server_name(url: &str) -> &str {
    let host = origin(url).split("://").nth(1).unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// The address of a URL's server, as this machine resolves its name.
pub(super) fn server_address(url: &str) -> Result<Ipv4Addr, CallError> {
    let name = server_name(url);
    let nowhere = || CallError::NoServer(name.to_owned());
    let found = (name, 0).to_socket_addrs().map_err(|_| nowhere())?;
    let found = found.filter_map(|address| match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    // A participant's own loopback device is not this machine's.
    found.into_iter().find(|address| !address.is_loopback()).ok_or_else(nowhere)
}

/// The option by which Chromium finds this server where this machine does, and other names by
/// asking; not those of its own updates, which would be traffic in the scenario.
pub(super) fn resolver_rules(url: &str, address: Ipv4Addr) -> String {
    let name = server_name(url);
    format!(
        "--host-resolver-rules=MAP {name} {address}, MAP clients2.google.com ~NOTFOUND, \
         MAP update.googleapis.com ~NOTFOUND"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_an_address_that_is_not_a_loopback() {
        assert_eq!(server_name("https://meet.example.org:8443/room"), "meet.example.org");
        assert_eq!(server_address("http://192.0.2.7:9000/").unwrap(), Ipv4Addr::new(192, 0, 2, 7));
        let error = server_address("http://127.0.0.1:9000/").unwrap_err().to_string();
        assert!(error.contains("127.0.0.1") && error.contains("--serve-app"), "{error}");
        let rules = resolver_rules("https://meet.example.org/", Ipv4Addr::new(192, 0, 2, 7));
        assert!(rules.contains("MAP meet.example.org 192.0.2.7,"), "{rules}");
    }
}
