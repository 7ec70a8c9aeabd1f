//! Sockets that look on: the kernel hands over what an interface sends and receives, or copies of
//! datagrams, with the time.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, netdevice, sockopt};

use super::{check, socket, stamp_arrivals, tun};

/// Bytes that wait for the reader before the kernel drops: seconds of a call, the kernel's own
/// bookkeeping included, however long the reader does not run.
const RECEIVE_BUFFER: usize = 16 << 20;
/// Room for one timestamp beside a packet.
const CONTROL_WORDS: usize = 8;

/// A packet that a host sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// Since 1970, by the clock of the machine that all hosts share.
    pub time: Duration,
    /// Whether the host sent it; else it received it.
    pub is_sent: bool,
    /// Bytes of the whole IP packet.
    pub length: usize,
}

/// A socket of the calling thread's network namespace that sees all packets of one interface. Each
/// comes with a virtio header, because it can be a super-packet.
pub(crate) fn open_packet_socket(
    interface: &std::ffi::CStr,
    wait: Duration,
) -> io::Result<OwnedFd> {
    let every_protocol = (libc::ETH_P_ALL as u16).to_be();
    // Without a protocol at first: it would see other interfaces before it is bound to this one.
    let socket = socket(AddressFamily::PACKET, SocketType::RAW)?;
    make_patient(&socket, wait)?;
    tun::add_vnet_headers(&socket)?;
    let name = interface.to_str().map_err(io::Error::other)?;
    let index = netdevice::name_to_index(&socket, name)?;
    // SAFETY: sockaddr_ll is plain data; all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = every_protocol;
    address.sll_ifindex = index.cast_signed();
    let length = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is a sockaddr_ll of that length.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// A socket that gets a copy of each datagram of UDP that is delivered in the calling thread's
/// network namespace, as one whole IP packet.
pub(crate) fn open_datagram_socket(wait: Duration) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::RAW);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::UDP))?;
    make_patient(&socket, wait)?;
    Ok(socket)
}

/// Lets packets wait for the reader, with the times of their arrival, and the reader wait for
/// packets.
fn make_patient(socket: &OwnedFd, wait: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(wait))?;
    stamp_arrivals(socket)?;
    // Beyond the limit of ordinary sockets where that is granted, else up to it.
    sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER))?;
    Ok(())
}

/// The next frame, a virtio header and a packet or a super-packet, of which the buffer takes the
/// beginning; `None` if none comes for the time that the socket waits. The length is that of the
/// frame.
pub(crate) fn receive_packet(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<Tapped>> {
    // SAFETY: sockaddr_ll is plain data; all zeros is valid.
    let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
    let received = receive_stamped(socket, buffer, Some(&mut from))?;
    let is_sent = u32::from(from.sll_pkttype) == u32::from(libc::PACKET_OUTGOING);
    Ok(received.map(|(time, length)| Tapped { time, is_sent, length }))
}

/// Receives as [`receive_packet`] does, from any socket that stamps arrivals. Returns the time and
/// the length.
pub(crate) fn receive_stamped(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    from: Option<&mut libc::sockaddr_ll>,
) -> io::Result<Option<(Duration, usize)>> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Words, so that the headers in it are aligned.
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: msghdr is plain data; all zeros is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    if let Some(from) = from {
        message.msg_namelen = mem::size_of_val(from) as libc::socklen_t;
        message.msg_name = (&raw mut *from).cast();
    }
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // The length's type differs between C libraries.
    message.msg_controllen = mem::size_of_val(&control) as _;
    // SAFETY: the message points at buffers of the lengths that it says, which outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_TRUNC) };
    let Ok(length) = usize::try_from(received) else {
        let error = io::Error::last_os_error();
        return match error.kind() {
            // An interface that was switched off says so once.
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NetworkDown => {
                Ok(None)
            }
            _ => Err(error),
        };
    };
    let time = timestamp(&message).ok_or_else(|| io::Error::other("a packet without its time"))?;
    Ok(Some((time, length)))
}

/// When the kernel stamped a message that was received.
pub(super) fn timestamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: recvmsg has filled the control buffer, which the message still points at.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros give null or a whole header within the control buffer.
        let kind = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: the data of this kind is a timespec; it need not be aligned.
            let time: libc::timespec =
                unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            let seconds = u64::try_from(time.tv_sec).ok()?;
            return Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?));
        }
        // SAFETY: as for the first one.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

/// Packets that the kernel dropped since the last call because they were not read in time.
pub(crate) fn dropped_packets(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: tpacket_stats is plain data; all zeros is valid.
    let mut statistics: libc::tpacket_stats = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the value is as long as it is said to be.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &mut length,
        )
    })?;
    Ok(u64::from(statistics.tp_drops))
}
