//! Isolated hosts that can only reach each other: one network namespace per host, with one TUN
//! interface.
//!
//! ```text
//!   host A  10.45.0.1  weir0 (TUN) <-> this process <-> weir0 (TUN)  10.45.0.2  host B
//! ```
//!
//! The namespaces have no name and no file. Only descriptors of this process refer to them, so they
//! disappear with it. All programs of all hosts are in one process namespace. Its first process
//! ends whenever this process ends, for any reason. Then the kernel kills every process in that
//! namespace.

use std::ffi::{CStr, OsStr, c_int};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::Error;
use crate::sys;
use crate::user::User;

/// Prefix of the network. A host's address is this prefix, zero, and the host's number from 1 on.
/// The outside address of a NAT has another third byte, one for each address that it gets.
const NETWORK: [u8; 2] = [10, 45];
/// Maximum number of hosts in the network.
const MOST_HOSTS: u8 = 254;
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 0, 0);
const INTERFACE: &CStr = c"weir0";
/// The second interface of a host, in the same namespace.
const SECOND_INTERFACE: &CStr = c"weir1";

/// Whether an address is in the emulated network.
pub(crate) fn in_network(address: Ipv4Addr) -> bool {
    address.octets()[..2] == NETWORK
}

/// The outside address of a NAT by its index, and by how many it had before.
pub(crate) fn outside_address(nat: usize, before: usize) -> Ipv4Addr {
    let [a, b] = NETWORK;
    let [third, fourth] = [before, nat].map(|index| u8::try_from(index + 1).unwrap_or(u8::MAX));
    Ipv4Addr::new(a, b, third, fourth)
}

/// A host. Clones refer to the same host.
#[derive(Clone, Debug)]
pub struct Host {
    address: Ipv4Addr,
    interface: &'static CStr,
    network: Arc<OwnedFd>,
    init: Arc<OwnedFd>,
}

impl Host {
    /// Its address on the emulated path.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A file of /proc that names its network namespace, for programs that enter it themselves. It
    /// is there as long as this process and the host are.
    pub fn network_file(&self) -> PathBuf {
        let number = self.network.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()))
    }

    pub(crate) fn interface_name(&self) -> &'static CStr {
        self.interface
    }

    /// Its network namespace.
    pub(crate) fn network(&self) -> BorrowedFd<'_> {
        self.network.as_fd()
    }

    /// Creates a command that will run on this host. It sees only processes of the hosts. Spawn it
    /// with [`Child::spawn`](crate::Child::spawn), unless it should share the caller's terminal.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_as(User::Own, program)
    }

    /// As [`Host::command`], but for a given user. Do not use `Command::uid`: it would drop the
    /// capabilities that are needed to enter the host's namespaces.
    pub fn command_as(&self, user: User, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let (network, init) = (Arc::clone(&self.network), Arc::clone(&self.init));
        sys::run_inside(&mut command, Some(network), init, move || user.take_over());
        command
    }

    /// Runs a short function on a thread in this host's network namespace. Sockets that it creates
    /// belong to this host.
    pub fn enter<R: Send>(&self, function: impl FnOnce() -> R + Send) -> Result<R, Error> {
        on_thread(|| {
            sys::enter_network(self.network.as_fd())
                .map_err(Error::system("enter a network namespace"))?;
            Ok(function())
        })
    }

    /// Number of packets that its interface dropped because the emulator did not read them in time.
    pub(crate) fn unread_packets(&self) -> Result<u64, Error> {
        let table = self.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        let table = table.map_err(Error::system("read the counters of an interface"))?;
        Ok(dropped_packets(&table, self.interface).unwrap_or(0))
    }

    /// Switches its interface on, and sends everything there that has no better route.
    pub fn bring_up(&self) -> Result<(), Error> {
        let interface = self.interface;
        self.enter(|| {
            sys::set_up(interface)?;
            sys::add_default_route(interface)
        })?
        .map_err(Error::system("switch a network interface on"))
    }

    /// Switches its interface off. The routes over it end, and programs are told so.
    pub fn take_down(&self) -> Result<(), Error> {
        let interface = self.interface;
        self.enter(|| sys::set_down(interface))?
            .map_err(Error::system("switch a network interface off"))
    }

    /// Listens on an address of this host. Its 127.0.0.1, for example, is not reachable from other
    /// hosts.
    pub fn bind_tcp(&self, address: impl Into<SocketAddr>) -> Result<TcpListener, Error> {
        let address = address.into();
        self.enter(move || TcpListener::bind(address))?
            .map_err(Error::system("listen on an address of an emulated host"))
    }
}

/// The other end of a host's interface.
#[derive(Debug)]
pub(crate) struct Tun {
    pub(crate) file: File,
    /// Whether it takes super-packets of UDP.
    pub(crate) takes_super_packets: bool,
}

impl Tun {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, ..*self })
    }
}

/// All hosts and their TUN interfaces.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) hosts: Vec<Host>,
    /// Packets sent by host `i` are read from TUN `i`. Packets for host `i` are written to it.
    pub(crate) tuns: Vec<Tun>,
    _init: Init,
}

impl Namespaces {
    /// The hosts of a plan. For each that is a second interface, `seconds` has the host to which it
    /// belongs; all these come last.
    ///
    /// # Panics
    /// If there is no host, or more than [`MOST_HOSTS`].
    pub(crate) fn new(seconds: &[Option<usize>]) -> Result<Self, Error> {
        let firsts = seconds.iter().take_while(|first| first.is_none()).count();
        assert!(seconds.len() <= usize::from(MOST_HOSTS), "a network has at most 254 hosts");
        let mut made = Self::firsts(firsts)?;
        for (number, first) in (1..).zip(seconds).skip(firsts) {
            let first = made.hosts[first.expect("second interfaces come last")].clone();
            let address = address_of(number);
            let tun = first.enter(|| second_interface(address))??;
            made.hosts.push(Host { address, interface: SECOND_INTERFACE, ..first });
            made.tuns.push(tun);
        }
        Ok(made)
    }

    fn firsts(hosts: usize) -> Result<Self, Error> {
        let last = u8::try_from(hosts).ok().filter(|last| (1..=MOST_HOSTS).contains(last));
        let last = last.expect("a network has between one and 254 hosts");
        let others = (1..last).map(|number| on_thread(|| new_network(address_of(number))));
        let mut networks = others.collect::<Result<Vec<_>, _>>()?;
        let (network, init) = on_thread(|| {
            let network = new_network(address_of(last))?;
            // The first process runs on the last host. So with two hosts, A finds the network
            // namespace of B at /proc/1/ns/net.
            Ok((network, Init::new()?))
        })?;
        networks.push(network);
        let (networks, tuns): (Vec<_>, Vec<_>) = networks.into_iter().unzip();
        let hosts = (1..=last).zip(networks).map(|(number, network)| Host {
            address: address_of(number),
            interface: INTERFACE,
            network: Arc::new(network),
            init: Arc::clone(&init.process),
        });
        Ok(Self { hosts: hosts.collect(), tuns, _init: init })
    }
}

fn address_of(host: u8) -> Ipv4Addr {
    let [a, b] = NETWORK;
    Ipv4Addr::new(a, b, 0, host)
}

/// The first process of the process namespace. Dropping it kills all processes of all hosts and
/// waits until they are gone.
#[derive(Debug)]
pub(crate) struct Init {
    pid: c_int,
    process: Arc<OwnedFd>,
    _lifeline: PipeWriter,
}

impl Init {
    /// Call this on a temporary thread, because it moves the thread to the mount namespace of the
    /// hosts.
    pub(crate) fn new() -> Result<Self, Error> {
        sys::unshare_mounts_and_processes().map_err(Error::system("make a process namespace"))?;
        let (lifeline, held) = io::pipe().map_err(Error::system("make a pipe"))?;
        let (mut report, reported) = io::pipe().map_err(Error::system("make a pipe"))?;
        let pid = sys::fork_init(lifeline.as_fd(), reported.as_fd())
            .map_err(Error::system("fork into a process namespace"))?;
        drop(reported);
        let process = sys::open_process(pid).map_err(Error::system("open a child process"))?;
        let init = Self { pid, process: Arc::new(process), _lifeline: held };
        let mut errno = [0; size_of::<c_int>()];
        report.read_exact(&mut errno).map_err(Error::system("start a process namespace"))?;
        match c_int::from_ne_bytes(errno) {
            0 => Ok(init),
            errno => Err(io::Error::from_raw_os_error(errno)).map_err(Error::system("mount /proc")),
        }
    }

    /// A descriptor that leads into its namespaces.
    pub(crate) fn process(&self) -> &Arc<OwnedFd> {
        &self.process
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        sys::kill_and_reap(self.pid);
    }
}

/// Moves the calling thread to a new network namespace, with the loopback and a TUN interface up.
fn new_network(address: Ipv4Addr) -> Result<(OwnedFd, Tun), Error> {
    sys::unshare_network().map_err(Error::system("make a network namespace"))?;
    let network = File::open("/proc/thread-self/ns/net")
        .map_err(Error::system("open a network namespace"))?;
    // The emulated path is IPv4 only. A kernel without IPv6 does not have this file.
    match std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).map_err(Error::system("switch IPv6 off"));
        }
        _ => {}
    }
    let file = open_tun()?;
    let takes_super_packets =
        sys::tun::create_tun(&file, INTERFACE).map_err(Error::system("make a TUN interface"))?;
    let failed = || Error::system("configure a network interface");
    sys::set_up(c"lo").map_err(failed())?;
    sys::set_address(INTERFACE, address, NETMASK).map_err(failed())?;
    sys::set_up(INTERFACE).map_err(failed())?;
    // Browsers find their own address by connecting to a public address, which needs a default
    // route.
    sys::add_default_route(INTERFACE).map_err(failed())?;
    Ok((network.into(), Tun { file, takes_super_packets }))
}

/// Makes a second interface in the calling thread's network namespace. It is down.
fn second_interface(address: Ipv4Addr) -> Result<Tun, Error> {
    let file = open_tun()?;
    let takes_super_packets = sys::tun::create_tun(&file, SECOND_INTERFACE)
        .map_err(Error::system("make a TUN interface"))?;
    sys::set_address(SECOND_INTERFACE, address, NETMASK)
        .and_then(|()| sys::set_down(SECOND_INTERFACE))
        .map_err(Error::system("configure a network interface"))?;
    Ok(Tun { file, takes_super_packets })
}

fn open_tun() -> Result<File, Error> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/net/tun");
    opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Error::NoTun,
        // The namespace could be created, so only access to the device is missing.
        Some(Errno::ACCESS | Errno::PERM) => Error::TunDenied,
        _ => Error::system("open /dev/net/tun")(error),
    })
}

/// Runs a function on a temporary thread. A namespace belongs to a thread, so other threads are not
/// affected.
pub(crate) fn on_thread<R: Send>(
    function: impl FnOnce() -> Result<R, Error> + Send,
) -> Result<R, Error> {
    thread::scope(|scope| {
        let handle = thread::Builder::new()
            .name("weir-namespace".into())
            .spawn_scoped(scope, function)
            .map_err(Error::system("start a thread"))?;
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Number of outgoing packets that an interface dropped. `table` is the content of /proc/net/dev.
fn dropped_packets(table: &str, interface: &CStr) -> Option<u64> {
    let name = interface.to_str().expect("interface names are ASCII");
    let rows = table.lines().filter_map(|row| row.split_once(':'));
    let (_, counters) = rows.into_iter().find(|(of, _)| of.trim() == name)?;
    // Eight counters of received traffic, then bytes, packets, errors and drops of sent traffic.
    counters.split_whitespace().nth(8 + 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_says_what_it_dropped_of_what_it_was_to_send() {
        let table = "Inter-|   Receive                    |  Transmit\n \
             face |bytes packets errs drop fifo frame compressed multicast|\
             bytes packets errs drop\n    \
             lo:  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n \
             weir0:   84       1    0    0    0     0          0         0  168 2 0 17 0 0 0 0\n";
        assert_eq!(dropped_packets(table, c"weir0"), Some(17));
        assert_eq!(dropped_packets(table, c"weir1"), None);
    }
}
