//! The kernel calls that the standard library does not offer. All unsafe code of this crate is here
//! and below.
//!
//! `rustix` makes those that it has. `libc` makes the rest: interface requests (`ifreq`,
//! `rtentry`), `getifaddrs`, socket options and messages with kernel time stamps,
//! `sched_setscheduler`, signal handlers, and all that runs between `fork` and `exec`.
//!
//! What runs between `fork` and `exec` may use only async-signal-safe calls, because the process
//! may have had other threads: no allocation, no lock, no formatting. Those functions say so.

pub(crate) mod batch;
pub(crate) mod packet;
pub(crate) mod signals;
pub(crate) mod thread;
pub(crate) mod tun;

use std::ffi::{CStr, c_int, c_uint, c_ulong};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes the calling thread, or its next child, out of namespaces that it shared with others.
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only a table of descriptors of its own could harm, and no caller asks for that.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Makes this process, which must have one thread, root of a user namespace of its own.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    unshare(UnshareFlags::NEWUSER)?;
    // Without this an unprivileged user may not map a group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Gives the calling thread a network namespace of its own.
pub(crate) fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Gives the calling thread mounts of its own, which others do not see, and its next child a
/// process namespace.
pub(crate) fn unshare_mounts_and_processes() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
    let flags = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    match rustix::mount::mount_change(c"/", flags) {
        Err(Errno::INVAL) => Err(io::Error::other(
            "the root folder is no mount point, as in a chroot: before chroot, bind it to itself \
            (mount --bind ROOT ROOT)",
        )),
        result => Ok(result?),
    }
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(namespace, kind)?)
}

/// Gives an interface of the calling thread's network namespace an address.
pub(crate) fn set_address(name: &CStr, address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_addr = socket_address(address);
    configure(libc::SIOCSIFADDR, &request)?;
    request.ifr_ifru.ifru_netmask = socket_address(mask);
    configure(libc::SIOCSIFNETMASK, &request)
}

/// Switches an interface of the calling thread's network namespace on.
pub(crate) fn set_up(name: &CStr) -> io::Result<()> {
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    configure(libc::SIOCSIFFLAGS, &request)
}

/// Switches an interface of the calling thread's network namespace off.
pub(crate) fn set_down(name: &CStr) -> io::Result<()> {
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = 0;
    configure(libc::SIOCSIFFLAGS, &request)
}

/// Sends everything that has no better route through an interface.
pub(crate) fn add_default_route(name: &CStr) -> io::Result<()> {
    // SAFETY: rtentry is plain data; all zeros is valid and means "unset".
    let mut route: libc::rtentry = unsafe { mem::zeroed() };
    route.rt_dst = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_flags = libc::RTF_UP;
    // The kernel only reads the name.
    route.rt_dev = name.as_ptr().cast_mut();
    configure(libc::SIOCADDRT, &route)
}

fn interface_request(name: &CStr) -> libc::ifreq {
    // SAFETY: ifreq is plain data; all zeros is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let bytes = name.to_bytes_with_nul();
    assert!(bytes.len() <= request.ifr_name.len(), "interface names are constants of this crate");
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: sockaddr is plain data; all zeros is valid.
    let mut generic: libc::sockaddr = unsafe { mem::zeroed() };
    generic.sa_family = libc::AF_INET as libc::sa_family_t;
    // struct sockaddr_in: a port of two bytes, then the address in network order.
    for (to, from) in generic.sa_data[2..6].iter_mut().zip(address.octets()) {
        *to = from.cast_signed();
    }
    generic
}

/// One configuring ioctl, on a socket of the calling thread's network namespace.
///
/// The C libraries disagree on the type of a request's number: its constants are unsigned longs,
/// musl's function takes an int.
fn configure<T>(request: c_ulong, argument: &T) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM)?;
    // SAFETY: every caller passes the struct that its request reads; none is written.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, ptr::from_ref(argument)) })
        .map(drop)
}

/// A socket that programs do not inherit.
fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// Connects over TCP with a congestion control of the kernel, which must be chosen before: one that
/// has paced leaves its pacing behind.
pub(crate) fn connect(to: SocketAddrV4, congestion_control: &str) -> io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM)?;
    sockopt::set_tcp_congestion(&socket, congestion_control)?;
    rustix::net::connect(&socket, &to)?;
    Ok(socket.into())
}

/// The IPv4 addresses of the interfaces that are up in the network namespace of the calling thread,
/// each with the broadcast address of its network if it has one.
pub(crate) fn interface_addresses() -> io::Result<Vec<(Ipv4Addr, Option<Ipv4Addr>)>> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the kernel's answer goes to a local.
    check(unsafe { libc::getifaddrs(&mut list) })?;
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: getifaddrs gave a list that ends with null and lives until it is freed below. An
    // address is null or of the family that it says; ifa_ifu is the broadcast address where the
    // flag says so.
    unsafe {
        while let Some(entry) = next.as_ref() {
            let (up, broadcast) = (libc::IFF_UP as u32, libc::IFF_BROADCAST as u32);
            if let Some(address) = ipv4(entry.ifa_addr)
                && entry.ifa_flags & up != 0
            {
                let has_broadcast = entry.ifa_flags & broadcast != 0;
                addresses.push((address, has_broadcast.then(|| ipv4(entry.ifa_ifu)).flatten()));
            }
            next = entry.ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(addresses)
}

/// # Safety
/// The pointer is null or to an address of the family that it says.
unsafe fn ipv4(address: *const libc::sockaddr) -> Option<Ipv4Addr> {
    // SAFETY: by the caller's promise an address of the family AF_INET is a sockaddr_in.
    unsafe {
        let family = address.as_ref()?.sa_family;
        let is_ipv4 = family == libc::AF_INET as libc::sa_family_t;
        is_ipv4.then(|| {
            let address = ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
            Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes())
        })
    }
}

/// Bytes of datagrams that a socket may hold, beyond what the kernel allows everybody.
const ROOM: usize = 64 << 20;

/// Makes the buffers of a socket so large that it neither drops datagrams nor blocks.
pub(crate) fn make_room(socket: &UdpSocket) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size_force(socket, ROOM)?;
    Ok(sockopt::set_socket_recv_buffer_size_force(socket, ROOM)?)
}

/// Lets the kernel stamp each packet that comes to a socket with its time.
pub(crate) fn stamp_arrivals(socket: &impl AsRawFd) -> io::Result<()> {
    let on: c_int = 1;
    let length = mem::size_of_val(&on) as libc::socklen_t;
    let (level, option, value) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, (&raw const on).cast());
    // SAFETY: the option's value is as long as it is said to be.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// The longest time that is waited at once.
const LONGEST_WAIT: Duration = Duration::from_secs(1 << 30);

/// Waits for descriptors that can be read, and knows which those are.
#[derive(Debug)]
pub(crate) struct Poll<'fd> {
    polled: Vec<PollFd<'fd>>,
}

impl<'fd> Poll<'fd> {
    /// None of the descriptors counts as readable before the first wait.
    pub(crate) fn new(fds: impl IntoIterator<Item = BorrowedFd<'fd>>) -> Self {
        let polled = fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        Self { polled: polled.collect() }
    }

    /// Waits until one of them can be read or the time has passed.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout.min(LONGEST_WAIT)).ok();
        match rustix::event::poll(&mut self.polled, timeout.as_ref()) {
            Err(Errno::INTR) => {
                self.polled.iter_mut().for_each(PollFd::clear_revents);
                Ok(())
            }
            result => Ok(result.map(drop)?),
        }
    }

    /// Whether the descriptor with this index can be read, or has failed.
    pub(crate) fn is_readable(&self, index: usize) -> bool {
        !self.polled[index].revents().is_empty()
    }
}

/// Lets timers of the calling thread fire when they are due; the kernel may else be 50 us late.
pub(crate) fn set_exact_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Puts the calling thread before all threads that are not real-time threads.
pub(crate) fn set_real_time(priority: c_int) -> io::Result<()> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // musl's function always fails, because the kernel means a thread where POSIX means a process.
    // SAFETY: the kernel reads a sched_param, which is the priority alone; 0 is the calling thread.
    let set =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, ptr::from_ref(&priority)) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Forks the first process of the calling thread's new process namespace. When it ends, the kernel
/// kills all others in there. It ends when the last copy of the other end of `lifeline` is closed,
/// hence also when this process is killed. To `report` it writes 0 or why it failed (errno).
pub(crate) fn fork_init(lifeline: BorrowedFd<'_>, report: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: the child calls only `init`, which is async-signal-safe.
    match check(unsafe { libc::fork() })? {
        0 => init(lifeline.as_raw_fd(), report.as_raw_fd()),
        pid => Ok(pid),
    }
}

/// Runs after `fork`: async-signal-safe.
fn init(lifeline: RawFd, report: RawFd) -> ! {
    // SAFETY: system calls only, on descriptors that the fork copied and on locals.
    unsafe {
        // No signal but SIGKILL may end or interrupt it; handlers of the parent make no sense here.
        block_all_signals();
        // Orphans come to this process; ignoring SIGCHLD lets the kernel reap them.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"weir-init".as_ptr());
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let name = c"proc".as_ptr();
        let mounted = libc::mount(name, c"/proc".as_ptr(), name, flags, ptr::null());
        let error: c_int = if mounted == 0 { 0 } else { *libc::__errno_location() };
        libc::write(report, ptr::from_ref(&error).cast(), size_of::<c_int>());
        libc::dup2(lifeline, 0);
        close_from(1);
        let mut byte = 0_u8;
        // Nobody writes: this returns at the end of the other side.
        libc::read(0, ptr::from_mut(&mut byte).cast(), 1);
        libc::_exit(0)
    }
}

/// Closes all descriptors from `first` on. A system call of its own because musl has no function
/// for it. Runs after `fork`: async-signal-safe.
fn close_from(first: c_uint) {
    // SAFETY: takes no pointer; callers use no descriptor from `first` on afterwards.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
}

/// A descriptor for a process, from its number.
pub(crate) fn open_process(pid: c_int) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(Errno::INVAL)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Kills a child of this process and waits until it is gone.
pub(crate) fn kill_and_reap(pid: c_int) {
    // Not reaped before, so the number is still the child's.
    let Some(child) = Pid::from_raw(pid) else { return };
    let _ = rustix::process::kill_process(child, Signal::KILL);
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(child), WaitOptions::empty()) {}
}

/// Kills a process group, if it still exists.
pub(crate) fn kill_group(leader: u32) {
    if let Some(leader) = Pid::from_raw(leader.cast_signed()) {
        let _ = rustix::process::kill_process_group(leader, Signal::KILL);
    }
}

/// Makes a command run in a process namespace, and on a host if it has a network, see
/// [`move_child`]; it keeps the descriptors open. `become_user` must be async-signal-safe.
pub(crate) fn run_inside(
    command: &mut Command,
    network: Option<Arc<OwnedFd>>,
    init: Arc<OwnedFd>,
    become_user: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) {
    let enter = move || {
        let network = network.as_ref().map(|network| network.as_raw_fd());
        move_child(network, init.as_raw_fd(), &become_user)
    };
    // SAFETY: `move_child` is async-signal-safe, and `become_user` by the caller's promise.
    unsafe { command.pre_exec(enter) };
}

/// Makes a command end with the thread that spawns it.
pub(crate) fn end_with_parent(command: &mut Command) {
    // SAFETY: `die_with_parent` is async-signal-safe.
    unsafe { command.pre_exec(die_with_parent) };
}

/// Runs after `fork`: one async-signal-safe system call.
fn die_with_parent() -> io::Result<()> {
    // SAFETY: it takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Moves a forked child into a network namespace, if one is given, and into the process and mount
/// namespaces of `init`, and forks there; the inner process becomes its user and returns, to
/// `exec`. The outer one stays, outside, to pass signals in and the exit status out. Runs after
/// `fork`: async-signal-safe.
fn move_child(
    network: Option<RawFd>,
    init: RawFd,
    become_user: &dyn Fn() -> io::Result<()>,
) -> io::Result<()> {
    let mut directory = [0; libc::PATH_MAX as usize];
    // SAFETY: system calls only, on locals and on descriptors that the caller keeps open.
    unsafe {
        if libc::getcwd(directory.as_mut_ptr(), directory.len()).is_null() {
            return Err(io::Error::last_os_error());
        }
        check(libc::setns(init, libc::CLONE_NEWPID | libc::CLONE_NEWNS))?;
        // Entering other mounts leads to their root.
        check(libc::chdir(directory.as_ptr()))?;
        if let Some(network) = network {
            check(libc::setns(network, libc::CLONE_NEWNET))?;
        }
        // Before the fork, so that no signal ends the outer process while the inner one lives.
        let old = block_all_signals();
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        match check(libc::fork())? {
            0 => {
                become_user()?;
                // Last, because the kernel forgets it when the user changes.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::sigprocmask(libc::SIG_SETMASK, &old, ptr::null_mut());
                Ok(())
            }
            pid => forward_to(pid),
        }
    }
}

/// Makes the calling process, which is root, an ordinary user without groups. Async-signal-safe.
pub(crate) fn become_ordinary(number: u32) -> io::Result<()> {
    // SAFETY: system calls with numbers. A list of length 0 may be a null pointer.
    unsafe {
        check(libc::setgroups(0, ptr::null()))?;
        check(libc::setresgid(number, number, number))?;
        check(libc::setresuid(number, number, number)).map(drop)
    }
}

/// Gives the calling process, which has one thread and is called root in its user namespace, an
/// ordinary number in another one, where it loses all rights when it executes a program.
/// Async-signal-safe.
pub(crate) fn become_renamed() -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    write_to(c"/proc/self/setgroups", b"deny")?;
    write_to(c"/proc/self/uid_map", RENAMED)?;
    write_to(c"/proc/self/gid_map", RENAMED)
}

/// A map of a user namespace: the number inside, the number outside, how many.
const RENAMED: &[u8] = b"1000 0 1";

/// Writes to a file of /proc, which takes all at once. Async-signal-safe.
fn write_to(path: &CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a C string, the text is as long as it is said to be, and the descriptor
    // is this function's own.
    unsafe {
        let file = check(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        let result = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

/// Whether this process is root, or is called so in its user namespace.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The outer process of [`move_child`]. Runs after `fork`: async-signal-safe.
fn forward_to(inner: c_int) -> ! {
    // SAFETY: system calls only, on locals.
    unsafe {
        // Among these is the pipe on which the parent waits for the inner process to exec.
        close_from(0);
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut all);
        let mut status = 0;
        loop {
            let mut info: libc::siginfo_t = mem::zeroed();
            let signal = libc::sigwaitinfo(&all, &mut info);
            if signal == libc::SIGCHLD && libc::waitpid(inner, &mut status, libc::WNOHANG) == inner
            {
                break;
            }
            // What the kernel sends (Ctrl-C at a terminal) goes to the inner process by itself.
            if signal > 0 && signal != libc::SIGCHLD && info.si_code <= 0 {
                libc::kill(inner, signal);
            }
        }
        if libc::WIFEXITED(status) {
            libc::_exit(libc::WEXITSTATUS(status));
        }
        // Ends by the same signal, without a core of its own.
        let signal = libc::WTERMSIG(status);
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as c_ulong);
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &all, ptr::null_mut());
        libc::_exit(128 + signal)
    }
}

/// Returns the signals that were blocked before. Async-signal-safe.
///
/// # Safety
/// Always sound; unsafe only because it is a run of raw calls like its callers.
unsafe fn block_all_signals() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data that sigfillset and sigprocmask fill.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut old: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut old);
        old
    }
}
