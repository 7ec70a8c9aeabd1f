//! The TUN device, and the virtio header before the packets of a device.

use std::ffi::{CStr, c_uint};
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check, interface_request};

/// The kernel leaves checksums and the segmentation of TCP to the reader of the device.
const OFFLOADS: c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4;
/// That of UDP too, since Linux 6.2, which only takes both versions of IP together.
const UDP_OFFLOADS: c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// Makes a TUN interface in the network namespace in which `device` (`/dev/net/tun`) was opened.
/// From then on a read from `device` takes what the interface sends: a virtio header and a packet
/// or a super-packet. Returns whether the kernel knows super-packets of UDP.
pub(crate) fn create_tun(device: &File, name: &CStr) -> io::Result<bool> {
    let mut request = interface_request(name);
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes one ifreq.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
    if set_offloads(device, OFFLOADS | UDP_OFFLOADS).is_ok() {
        return Ok(true);
    }
    set_offloads(device, OFFLOADS).map(|()| false)
}

fn set_offloads(device: &File, offloads: c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number and no pointer.
    let set = unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
    };
    check(set).map(drop)
}

/// Lets a packet socket put the virtio header before each packet, as the TUN device does.
pub(crate) fn add_vnet_headers(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = mem::size_of_val(&on) as libc::socklen_t;
    let (level, option, value) = (libc::SOL_PACKET, libc::PACKET_VNET_HDR, (&raw const on).cast());
    // SAFETY: the option's value is as long as it is said to be.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}
