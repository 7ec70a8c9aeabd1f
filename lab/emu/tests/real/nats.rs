//! NATs between real sockets. The tests need root. They print a line if something is missing.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use weir::units::TimeDelta;
use weir_emu::{Emulator, Error, Host, HostPlan, NatPlan, Plan};
use weir_net::nat::{Behaviour, NatConfig};
use weir_net::{Hop, LinkConfig, Seed};

const PORT: u16 = 4_000;

/// Hosts `a` and `c` at one end of a link, `b` and `d` at the other.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

fn emulator(nats: Vec<NatPlan>) -> Option<Emulator> {
    let link = LinkConfig::unlimited(TimeDelta::from_millis(5));
    let plan = Plan {
        hosts: [0, 1, 0, 1].map(HostPlan::at).into(),
        nats,
        local_traffic: true,
        ..Plan::two_hosts(&link, &link)
    };
    assert_eq!(plan.hops, [Hop::new(link.clone(), link)]);
    match Emulator::new(&plan, Seed::new(1)) {
        Ok(emulator) => Some(emulator),
        Err(error @ (Error::NotRoot | Error::NoTun | Error::TunDenied)) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn nat(hosts: &[usize], config: NatConfig) -> NatPlan {
    NatPlan { config, hosts: hosts.into(), rebinds: Vec::new() }
}

fn socket(host: &Host) -> UdpSocket {
    let socket = host.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

fn at(host: &Host) -> SocketAddr {
    (host.address(), PORT).into()
}

/// What the next datagram says, and where it came from; `None` if none comes.
fn receive(socket: &UdpSocket) -> Option<(String, SocketAddr)> {
    let mut buffer = [0; 100];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    Some((String::from_utf8_lossy(&buffer[..length]).into_owned(), from))
}

// [RFC4787 §4.1 REQ-1, §5 REQ-8]
#[test]
fn a_stranger_comes_in_by_the_filter_alone_and_answers_reach_their_sender() {
    for (filtering, is_let_in) in
        [(Behaviour::EndpointIndependent, true), (Behaviour::AddressDependent, false)]
    {
        let config = NatConfig { filtering, ..NatConfig::default() };
        let Some(emulator) = emulator(vec![nat(&[A], config)]) else { return };
        let hosts = emulator.hosts();
        let [a, b, d] = [A, B, D].map(|host| socket(&hosts[host]));
        a.send_to(b"hello", at(&hosts[B])).unwrap();
        let (said, outside) = receive(&b).unwrap();
        assert_eq!(said, "hello");
        assert_ne!(outside.ip(), hosts[A].address());
        b.send_to(b"welcome", outside).unwrap();
        assert_eq!(receive(&a), Some(("welcome".into(), at(&hosts[B]))));
        d.send_to(b"and I?", outside).unwrap();
        assert_eq!(receive(&a).is_some(), is_let_in);
        // Nobody has a route to the inside address.
        b.send_to(b"lost", at(&hosts[A])).unwrap();
        assert_eq!(receive(&a), None);
        let record = emulator.stop().unwrap();
        assert_eq!(record.nats[0].unroutable_packets, 1);
        assert_eq!(record.nats[0].counters.filtered_packets, u64::from(!is_let_in));
    }
}

// [RFC4787 §4.1]
#[test]
fn a_symmetric_nat_shows_each_destination_another_port() {
    let config = NatConfig { mapping: Behaviour::AddressAndPortDependent, ..NatConfig::default() };
    let Some(emulator) = emulator(vec![nat(&[A], config)]) else { return };
    let hosts = emulator.hosts();
    let [a, b, d] = [A, B, D].map(|host| socket(&hosts[host]));
    a.send_to(b"1", at(&hosts[B])).unwrap();
    a.send_to(b"2", at(&hosts[D])).unwrap();
    let ports = [b, d].map(|socket| receive(&socket).unwrap().1);
    assert_eq!(ports[0].ip(), ports[1].ip());
    assert_ne!(ports[0].port(), ports[1].port());
}

// [RFC4787 §6 REQ-9]
#[test]
fn two_hosts_behind_one_nat_meet_by_hairpin_or_not_at_all() {
    for hairpin in [true, false] {
        let config = NatConfig { hairpin, ..NatConfig::default() };
        let Some(emulator) = emulator(vec![nat(&[A, B], config)]) else { return };
        let hosts = emulator.hosts();
        let [a, b, d] = [A, B, D].map(|host| socket(&hosts[host]));
        b.send_to(b"where am I?", at(&hosts[D])).unwrap();
        let (_, outside) = receive(&d).unwrap();
        a.send_to(b"direct", at(&hosts[B])).unwrap();
        assert_eq!(receive(&b), None);
        a.send_to(b"around", outside).unwrap();
        match receive(&b) {
            Some((said, from)) => assert!(hairpin && said == "around" && from.ip() == outside.ip()),
            None => assert!(!hairpin),
        }
    }
}

#[test]
fn where_udp_is_blocked_tcp_still_connects() {
    let config = NatConfig { blocks_udp: true, ..NatConfig::default() };
    let Some(emulator) = emulator(vec![nat(&[A], config)]) else { return };
    let hosts = emulator.hosts();
    let [a, c] = [A, C].map(|host| socket(&hosts[host]));
    let b = socket(&hosts[B]);
    a.send_to(b"blocked", at(&hosts[B])).unwrap();
    assert_eq!(receive(&b), None);
    // The other host at that place has no firewall.
    c.send_to(b"open", at(&hosts[B])).unwrap();
    assert_eq!(receive(&b), Some(("open".into(), at(&hosts[C]))));
    let listener: TcpListener = hosts[B].bind_tcp(at(&hosts[B])).unwrap();
    let far = at(&hosts[B]);
    let connected =
        hosts[A].enter(move || TcpStream::connect_timeout(&far, Duration::from_secs(5)));
    assert!(connected.unwrap().is_ok());
    let (_, from) = listener.accept().unwrap();
    assert_ne!(from.ip(), hosts[A].address());
}

#[test]
fn after_a_rebinding_a_sender_has_another_address() {
    let plan = NatPlan { rebinds: vec![TimeDelta::ZERO], ..nat(&[A], NatConfig::default()) };
    let Some(mut emulator) = emulator(vec![plan]) else { return };
    let hosts = emulator.hosts().to_vec();
    let [a, b] = [A, B].map(|host| socket(&hosts[host]));
    let mut seen = Vec::new();
    for _ in 0..2 {
        a.send_to(b"me", at(&hosts[B])).unwrap();
        seen.push(receive(&b).unwrap().1);
        emulator.start();
    }
    assert_ne!(seen[0].ip(), seen[1].ip());
    b.send_to(b"old", seen[0]).unwrap();
    assert_eq!(receive(&a), None);
    b.send_to(b"new", seen[1]).unwrap();
    assert_eq!(receive(&a).unwrap().0, "new");
    assert_eq!(emulator.stop().unwrap().nats[0].addresses.len(), 2);
}
