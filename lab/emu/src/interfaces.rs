//! The addresses of this machine itself, not of emulated hosts.

use std::io;
use std::net::Ipv4Addr;

use crate::sys;

/// An address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// Address of an interface that is up.
    pub address: Ipv4Addr,
    /// Broadcast address of the interface's network, if any.
    pub broadcast: Option<Ipv4Addr>,
}

/// The addresses of this machine, in the order of its interfaces.
pub fn own_addresses() -> io::Result<Vec<OwnAddress>> {
    let all = sys::interface_addresses()?.into_iter();
    Ok(all.map(|(address, broadcast)| OwnAddress { address, broadcast }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_its_loopback_address_which_has_no_broadcast() {
        let own = own_addresses().unwrap();
        let loopback = own.iter().find(|own| own.address == Ipv4Addr::LOCALHOST);
        match loopback {
            Some(loopback) => assert_eq!(loopback.broadcast, None),
            None => println!("skipped: this machine's loopback device is down"),
        }
    }
}
