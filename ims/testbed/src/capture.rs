//! The SIP between the parts of the core, taken from its network: Kamailio keeps no copy of what it
//! sends.
//!
//! A process in the core's namespace gets a copy of each datagram that is delivered there, and
//! notes those of SIP between two parts. What passes between a part and a terminal leaves the
//! namespace or comes from outside; the terminals note it.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use weir_emu::DatagramTap;
use weir_nodes::sip::Message;

use crate::layout::{CORE, PARTS, SIP_PORT, address, folder};
use crate::trace::{Noted, Trace};
use crate::user::{enter, title};

/// File of the messages in the folder of the running IMS.
pub(crate) const FILE: &str = "sip.jsonl";
/// A datagram to this address is answered when all before it are noted. The port is that of the
/// discard service.
const MARK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest IP packet.
const MOST_BYTES: usize = 1 << 16;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// Captures until it is ended by a signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let trace =
        Trace::append(&folder().join(FILE)).with_context(|| format!("cannot write {FILE}"))?;
    let marks = UdpSocket::bind(MARK).with_context(|| format!("cannot listen on {MARK}"))?;
    let mut tap = DatagramTap::open()?;
    let mut bytes = vec![0; MOST_BYTES];
    loop {
        let Some((time, length)) = tap.receive(&mut bytes)? else { continue };
        let Some(datagram) = Datagram::parse(&bytes[..length.min(MOST_BYTES)]) else { continue };
        if datagram.to == MARK {
            // The asker may be gone.
            let _ = marks.send_to(&[], datagram.from);
        } else if let Some(noted) = noted(time, &datagram) {
            trace.note(&noted);
        }
    }
}

/// Waits until all messages that the parts have sent so far are noted.
///
/// # Errors
/// If no IMS runs, or its capture does not answer in time.
pub(crate) fn settled() -> anyhow::Result<()> {
    enter(CORE, || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send_to(&[], MARK)?;
        socket.recv(&mut []).map(drop)
    })?
    .context("the capture of SIP does not answer")
}

/// A datagram with its ends.
#[derive(Debug, PartialEq, Eq)]
struct Datagram<'a> {
    from: SocketAddrV4,
    to: SocketAddrV4,
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The datagram of a whole IP packet ([RFC791 §3.1]).
    fn parse(packet: &'a [u8]) -> Option<Self> {
        let header = usize::from(packet.first()? & 0xF) * 4;
        let (ip, udp) = packet.split_at_checked(header)?;
        if ip.len() < IP_HEADER || udp.len() < UDP_HEADER {
            return None;
        }
        let [from, to] = [(12, 0), (16, 2)].map(|(at, port)| {
            let address = Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
            SocketAddrV4::new(address, u16::from_be_bytes([udp[port], udp[port + 1]]))
        });
        Some(Self { from, to, payload: &udp[UDP_HEADER..] })
    }
}

/// The part with this address.
fn part(of: SocketAddrV4) -> Option<&'static str> {
    PARTS.iter().map(|part| part.name).find(|name| address(name) == *of.ip())
}

fn noted(time: Duration, datagram: &Datagram<'_>) -> Option<Noted> {
    let (from, to) = (part(datagram.from)?, part(datagram.to)?);
    // The gateways have a protocol of their own, on other ports.
    if datagram.from.port() != SIP_PORT && datagram.to.port() != SIP_PORT {
        return None;
    }
    let message = Message::parse(datagram.payload).ok()?;
    Some(Noted {
        time_ns: u64::try_from(time.as_nanos()).ok()?,
        from: from.into(),
        to: to.into(),
        protocol: "SIP".into(),
        name: title(&message),
        text: message.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYE: &str = "BYE sip:bob@ims.test SIP/2.0\r\nv: SIP/2.0/UDP 10.46.0.1;branch=x\r\n\
        From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\nCall-ID: 1\r\nCSeq: 2 BYE\r\n\r\n";

    /// An IP packet between two addresses and ports, with options of IP.
    fn packet(from: [u8; 4], to: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 24 + UDP_HEADER];
        packet[0] = 0x46;
        packet[12..16].copy_from_slice(&from);
        packet[16..20].copy_from_slice(&to);
        packet[24..26].copy_from_slice(&ports[0].to_be_bytes());
        packet[26..28].copy_from_slice(&ports[1].to_be_bytes());
        [packet, payload.to_vec()].concat()
    }

    fn of(from: [u8; 4], to: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Option<Noted> {
        let packet = packet(from, to, ports, payload);
        noted(Duration::from_nanos(7), &Datagram::parse(&packet).unwrap())
    }

    #[test]
    fn sip_between_two_parts_is_noted_by_their_names() {
        let bye = of([10, 46, 0, 1], [10, 46, 0, 4], [5060, 5060], BYE.as_bytes()).unwrap();
        assert_eq!((&*bye.from, &*bye.to, &*bye.name), ("pcscf", "scscf", "BYE"));
        assert_eq!((bye.time_ns, &*bye.protocol), (7, "SIP"));
        assert!(bye.text.contains("Via: SIP/2.0/UDP 10.46.0.1;branch=x"), "{}", bye.text);
        // A client with a port of its own, as the application function is one.
        assert!(of([10, 46, 0, 8], [10, 46, 0, 2], [40_000, 5060], BYE.as_bytes()).is_some());
    }

    #[test]
    fn packets_that_are_not_sip_between_parts_are_left_out() {
        let (pcscf, terminal) = ([10, 46, 0, 1], [10, 46, 1, 2]);
        assert_eq!(of(terminal, pcscf, [5060, 5060], BYE.as_bytes()), None);
        assert_eq!(of(pcscf, [10, 46, 0, 7], [40_000, 2223], BYE.as_bytes()), None);
        assert_eq!(of(pcscf, [10, 46, 0, 4], [5060, 5060], b"\r\n\r\n"), None);
    }

    #[test]
    fn every_truncation_of_the_headers_is_rejected() {
        let packet = packet([127, 0, 0, 1], [127, 0, 0, 1], [1, 9], b"x");
        for length in 0..packet.len() - 1 {
            assert_eq!(Datagram::parse(&packet[..length]), None, "{length}");
        }
        assert_eq!(Datagram::parse(&packet).unwrap().to, MARK);
    }
}
