//! A TURN relay on its own host: Debian's coturn.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use weir_emu::{Child, Host, Limits, User};
use weir_scenario::call::IceServer;

use crate::error::CallError;
use crate::message::{RelayAccess, printable};
use crate::peers::certificate;

const PROGRAM: &str = "turnserver";
/// The port of TURN without TLS.
const PORT: u16 = 3478;
/// The port of TURN with TLS [RFC8656 §3.1].
const TLS_PORT: u16 = 5349;
/// User name and password of the relay. Only the hosts of the run can reach it.
const USER: &str = "weir";
/// Time limit for its start.
const PATIENCE: Duration = Duration::from_secs(20);
/// Polling interval while it starts.
const RETRY: Duration = Duration::from_millis(50);

/// A running relay. Dropping it kills the relay.
#[derive(Debug)]
pub(crate) struct RelayServer {
    _child: Child,
    /// How pages reach it.
    pub(crate) access: RelayAccess,
    /// SHA-256 of its public key in base 64, if it has TLS.
    pub(crate) key_hash: Option<String>,
    /// Version, as the program reports it.
    pub(crate) version: String,
}

impl RelayServer {
    /// Starts a relay on a host, and waits until it listens. Its files are in a new folder below
    /// `folder`.
    pub(crate) fn start(
        host: &Host,
        servers: &[IceServer],
        folder: &Path,
    ) -> Result<Self, CallError> {
        let version = version(host)?;
        let user = User::ordinary();
        let folder = &folder.join("relay");
        user.make_folder(folder).map_err(CallError::system("make the relay's folder"))?;
        let log = File::create(folder.join("relay.log"));
        let log = log.map_err(CallError::system("make the relay's log"))?;
        let address = host.address().to_string();
        let mut command = host.command_as(user, PROGRAM);
        command.current_dir(folder).env("HOME", folder);
        command.args(["-n", "--no-cli", "--no-dtls", "--no-multicast-peers"]);
        let key_hash = match servers.contains(&IceServer::TurnTls) {
            true => Some(certificate::make(host, user, folder, host.address())?),
            false => None,
        };
        match &key_hash {
            Some(_) => {
                command.arg("--tls-listening-port").arg(TLS_PORT.to_string());
                command.arg("--cert").arg(folder.join(certificate::CERTIFICATE));
                command.arg("--pkey").arg(folder.join(certificate::KEY));
            }
            None => drop(command.arg("--no-tls")),
        }
        command.args(["--listening-ip", &address, "--relay-ip", &address]);
        command.args(["--lt-cred-mech", "--realm", "weir", "--user", &format!("{USER}:{USER}")]);
        command.args(["--log-file", "stdout", "--pidfile"]).arg(folder.join("relay.pid"));
        // Not every user can use coturn's default database.
        command.arg("--userdb").arg(folder.join("relay.db"));
        command.stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        let child = Child::spawn(&mut command)?;
        let started = Instant::now();
        while host.enter(|| TcpStream::connect((host.address(), PORT)))?.is_err() {
            if started.elapsed() > PATIENCE {
                let late = io::Error::new(io::ErrorKind::TimedOut, "it did not start to listen");
                return Err(CallError::system("start the relay")(late));
            }
            std::thread::sleep(RETRY);
        }
        let urls = servers.iter().map(|server| url(*server, &address)).collect();
        let access = RelayAccess { urls, username: USER.into(), credential: USER.into() };
        Ok(Self { _child: child, access, key_hash, version })
    }
}

/// The address of a server as a page knows it.
fn url(server: IceServer, address: &str) -> String {
    match server {
        IceServer::Stun => format!("stun:{address}:{PORT}"),
        IceServer::TurnUdp => format!("turn:{address}:{PORT}?transport=udp"),
        IceServer::TurnTcp => format!("turn:{address}:{PORT}?transport=tcp"),
        IceServer::TurnTls => format!("turns:{address}:{TLS_PORT}?transport=tcp"),
    }
}

/// Version of the relay on this machine; an error if there is none.
fn version(host: &Host) -> Result<String, CallError> {
    let output = weir_emu::output(host.command(PROGRAM).arg("--version"), Limits::SHORT);
    let output = output.map_err(|_| CallError::NoRelay)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(printable(&format!("coturn {}", text.lines().last().unwrap_or_default().trim())))
}
