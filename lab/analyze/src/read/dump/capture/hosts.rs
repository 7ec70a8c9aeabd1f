//! Hosts of a capture.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::flows::Ends as Sockets;

/// An end: an address, or a socket where both ends have one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Host {
    pub address: IpAddr,
    pub port: Option<u16>,
}

impl Host {
    fn socket(socket: SocketAddr) -> Self {
        Self { address: socket.ip(), port: Some(socket.port()) }
    }

    fn address(socket: SocketAddr) -> Self {
        Self { address: socket.ip(), port: None }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}", SocketAddr::new(self.address, port)),
            None => write!(f, "{}", self.address),
        }
    }
}

/// The hosts of two sockets.
pub(super) fn hosts((from, to): Sockets) -> (Host, Host) {
    if from.ip() == to.ip() {
        return (Host::socket(from), Host::socket(to));
    }
    (Host::address(from), Host::address(to))
}
