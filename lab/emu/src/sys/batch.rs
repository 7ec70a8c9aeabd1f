//! Many datagrams in one system call, on sockets of this process.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use libc::c_int;

use super::check;
use super::packet::timestamp;

/// Messages that one call takes.
const MOST: usize = 16;
/// Bytes of a message: no super-packet is longer.
const ROOM: usize = 1 << 16;
/// Room for a timestamp and a size beside a message.
const CONTROL_WORDS: usize = 16;

/// From now on what is sent in one call leaves as datagrams of this many bytes each.
pub(crate) fn send_segments(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).map_err(io::Error::other)?;
    set_udp_option(socket, libc::UDP_SEGMENT, bytes)
}

/// From now on a message that the socket receives may be a super-packet, of which only the last
/// datagram may be smaller than the others.
pub(crate) fn receive_segments(socket: &UdpSocket) -> io::Result<()> {
    set_udp_option(socket, libc::UDP_GRO, 1)
}

fn set_udp_option(socket: &UdpSocket, option: c_int, value: c_int) -> io::Result<()> {
    let length = mem::size_of_val(&value) as libc::socklen_t;
    let (level, value) = (libc::SOL_UDP, (&raw const value).cast());
    // SAFETY: the option's value is as long as it is said to be.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// The buffers of a receiver.
#[derive(Debug)]
pub(crate) struct Buffers {
    messages: Vec<u8>,
    /// Words, so that the headers in it are aligned.
    controls: Vec<[u64; CONTROL_WORDS]>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { messages: vec![0; MOST * ROOM], controls: vec![[0; CONTROL_WORDS]; MOST] }
    }

    /// Takes what waits at a socket, but at most 16 messages, and gives each datagram to `each`,
    /// with the time at which it came, since the epoch.
    pub(crate) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(&[u8], Duration),
    ) -> io::Result<()> {
        // SAFETY: iovec and mmsghdr are plain data; all zeros is valid.
        let (mut parts, mut list): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let buffers = self.messages.chunks_exact_mut(ROOM).zip(&mut self.controls);
        for ((buffer, control), (part, message)) in buffers.zip(parts.iter_mut().zip(&mut list)) {
            part.iov_base = buffer.as_mut_ptr().cast();
            part.iov_len = buffer.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            // The length's type differs between C libraries.
            message.msg_hdr.msg_controllen = mem::size_of_val(control) as _;
        }
        let (first, wait) = (list.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the messages point at buffers of the lengths that they say, which outlive the
        // call.
        let count =
            check(unsafe { libc::recvmmsg(socket.as_raw_fd(), first, MOST as _, 0, wait) })?;
        let messages = list.iter().zip(self.messages.chunks_exact(ROOM));
        for (message, buffer) in messages.take(count.cast_unsigned() as usize) {
            let time = timestamp(&message.msg_hdr);
            let time = time.ok_or_else(|| io::Error::other("a datagram without its time"))?;
            let bytes = &buffer[..(message.msg_len as usize).min(ROOM)];
            let size = segment(&message.msg_hdr).filter(|size| *size > 0);
            for datagram in bytes.chunks(size.unwrap_or(ROOM)) {
                each(datagram, time);
            }
        }
        Ok(())
    }
}

/// Bytes of each datagram of a super-packet.
fn segment(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: recvmmsg has filled the control buffer, which the message still points at.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros give null or a whole header within the control buffer.
        let kind = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if kind == (libc::SOL_UDP, libc::UDP_GRO) {
            // SAFETY: the data of this kind is an int; it need not be aligned.
            let size = unsafe { libc::CMSG_DATA(header).cast::<c_int>().read_unaligned() };
            return usize::try_from(size).ok();
        }
        // SAFETY: as for the first one.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}
