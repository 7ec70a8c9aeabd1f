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

/// Datagrams that one call takes.
const MOST: usize = 64;
/// Bytes of each datagram that are kept.
const HEAD: usize = 4;
/// Room for one timestamp beside a datagram.
const CONTROL_WORDS: usize = 8;

/// From now on what is sent in one call leaves as datagrams of this many bytes each.
pub(crate) fn send_segments(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).map_err(io::Error::other)?;
    let length = mem::size_of_val(&bytes) as libc::socklen_t;
    let (level, option, value) = (libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const bytes).cast());
    // SAFETY: the option's value is as long as it is said to be.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// Takes the datagrams that wait at a socket, at most 64: the first four bytes of each, and when it
/// came, since the epoch.
pub(crate) fn receive_stamped(socket: &UdpSocket) -> io::Result<Vec<([u8; HEAD], Duration)>> {
    let mut heads = [[0_u8; HEAD]; MOST];
    // Words, so that the headers in it are aligned.
    let mut controls = [[0_u64; CONTROL_WORDS]; MOST];
    // SAFETY: iovec and mmsghdr are plain data; all zeros is valid.
    let (mut parts, mut messages): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    for index in 0..MOST {
        parts[index] = libc::iovec { iov_base: heads[index].as_mut_ptr().cast(), iov_len: HEAD };
        let message = &mut messages[index].msg_hdr;
        message.msg_iov = &raw mut parts[index];
        message.msg_iovlen = 1;
        message.msg_control = controls[index].as_mut_ptr().cast();
        // The length's type differs between C libraries.
        message.msg_controllen = mem::size_of_val(&controls[index]) as _;
    }
    let (list, wait) = (messages.as_mut_ptr(), ptr::null_mut());
    // SAFETY: the messages point at buffers of the lengths that they say, which outlive the call.
    let count = check(unsafe { libc::recvmmsg(socket.as_raw_fd(), list, MOST as _, 0, wait) })?;
    let messages = messages.iter().zip(&heads).take(count.cast_unsigned() as usize);
    let stamped = messages.map(|(message, head)| {
        let time = timestamp(&message.msg_hdr);
        Ok((*head, time.ok_or_else(|| io::Error::other("a datagram without its time"))?))
    });
    stamped.collect()
}
