use std::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;
use weir::units::{TimeDelta, Timestamp};

use super::packet::checksum;
use super::{Behaviour, Nat, NatConfig, NatDrop};
use crate::Seed;

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 45, 1, 1);
const LATER: Ipv4Addr = Ipv4Addr::new(10, 45, 2, 1);
const UDP: u8 = 17;
const TCP: u8 = 6;
const INDEPENDENT: Behaviour = Behaviour::EndpointIndependent;
const ADDRESS: Behaviour = Behaviour::AddressDependent;
const PORT: Behaviour = Behaviour::AddressAndPortDependent;

fn at(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 45, 0, last), port)
}

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn nat(mapping: Behaviour, filtering: Behaviour) -> Nat {
    Nat::new(NatConfig { mapping, filtering, ..NatConfig::default() }, OUTSIDE, Seed::new(1))
}

/// A packet with right checksums and a payload of five bytes.
fn packet(protocol: u8, from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let body = if protocol == TCP { 20 } else { 8 } + 5;
    let mut packet = vec![0x45, 0, 0, 20 + body, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(from.ip().octets().iter().chain(&to.ip().octets()));
    packet.extend(from.port().to_be_bytes().iter().chain(&to.port().to_be_bytes()));
    packet.resize(usize::from(20 + body), 7);
    if protocol == UDP {
        packet[24..26].copy_from_slice(&u16::from(body).to_be_bytes());
    }
    complete(&mut packet);
    packet
}

/// An echo request or reply.
fn echo(kind: u8, identifier: u16, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let [a, b] = identifier.to_be_bytes();
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend(from.octets().iter().chain(&to.octets()));
    packet.extend([kind, 0, 0, 0, a, b, 0, 1]);
    complete(&mut packet);
    packet
}

/// "Port unreachable" about a packet, from its destination or from a router.
fn unreachable(about: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend(from.octets().iter().chain(&to.octets()));
    packet.extend([3, 3, 0, 0, 0, 0, 0, 0]);
    packet.extend(&about[..28]);
    complete(&mut packet);
    packet
}

fn body_checksum_at(packet: &[u8]) -> usize {
    20 + match packet[9] {
        UDP => 6,
        TCP => 16,
        _ => 2,
    }
}

/// The checksum over the body, with the pseudo-header where there is one.
fn body_checksum(packet: &[u8]) -> u16 {
    let mut covered = Vec::new();
    if packet[9] != 1 {
        covered.extend(&packet[12..20]);
        covered.extend([0, packet[9]]);
        covered.extend((packet.len() as u16 - 20).to_be_bytes());
    }
    covered.extend(&packet[20..]);
    checksum(&covered)
}

fn complete(packet: &mut [u8]) {
    let at = body_checksum_at(packet);
    packet[at..at + 2].fill(0);
    let sum = body_checksum(packet);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn is_sound(packet: &[u8]) -> bool {
    checksum(&packet[..20]) == 0 && body_checksum(packet) == 0
}

/// The endpoint whose address and port begin at these bytes.
fn end(packet: &[u8], ip: usize, port: usize) -> SocketAddrV4 {
    let ip: [u8; 4] = packet[ip..ip + 4].try_into().unwrap();
    SocketAddrV4::new(ip.into(), u16::from_be_bytes([packet[port], packet[port + 1]]))
}

fn ends(packet: &[u8]) -> [SocketAddrV4; 2] {
    [end(packet, 12, 20), end(packet, 16, 22)]
}

/// Sends a packet of UDP out. Returns the outside endpoint.
fn send(nat: &mut Nat, now: i64, from: SocketAddrV4, to: SocketAddrV4) -> SocketAddrV4 {
    let mut sent = packet(UDP, from, to);
    nat.send(ms(now), &mut sent).unwrap();
    assert!(is_sound(&sent) && ends(&sent)[1] == to);
    ends(&sent)[0]
}

/// Sends a packet of UDP in. Returns the inside endpoint.
fn receive(
    nat: &mut Nat,
    now: i64,
    from: SocketAddrV4,
    to: SocketAddrV4,
) -> Result<SocketAddrV4, NatDrop> {
    let mut received = packet(UDP, from, to);
    nat.receive(ms(now), &mut received)?;
    assert!(is_sound(&received) && ends(&received)[0] == from);
    Ok(ends(&received)[1])
}

// [RFC4787 §4.1 REQ-1]
#[test]
fn a_mapping_is_of_the_inside_endpoint_and_what_it_depends_on_outside() {
    let inside = at(1, 5_000);
    for (mapping, are_equal) in
        [(INDEPENDENT, [true, true]), (ADDRESS, [true, false]), (PORT, [false, false])]
    {
        let mut nat = nat(mapping, INDEPENDENT);
        let first = send(&mut nat, 0, inside, at(9, 700));
        assert_eq!(first, send(&mut nat, 1, inside, at(9, 700)), "the same session");
        let others = [at(9, 701), at(8, 700)].map(|to| send(&mut nat, 2, inside, to) == first);
        assert_eq!(others, are_equal, "{mapping:?}");
        assert_ne!(first, send(&mut nat, 3, at(1, 5_002), at(9, 700)), "another inside endpoint");
    }
}

// [RFC4787 §4.2 REQ-3, REQ-4]
#[test]
fn a_port_is_nobody_elses_and_keeps_its_range_and_parity() {
    let mut nat = nat(INDEPENDENT, INDEPENDENT);
    let mut seen = std::collections::BTreeSet::new();
    for host in 1..=50 {
        for port in [7_u16, 1_022, 1_024, 5_001, 65_535] {
            let outside = send(&mut nat, 0, at(host, port), at(99, 1)).port();
            assert!(seen.insert(outside), "{outside} stands for two endpoints");
            assert_eq!((outside % 2, outside < 1_024), (port % 2, port < 1_024));
            assert_ne!(outside, 0);
        }
    }
    assert_eq!(nat.counters().mappings, 250);
}

#[test]
fn a_nat_without_a_free_port_drops_and_a_mapping_that_is_over_makes_room() {
    let mut nat = nat(INDEPENDENT, INDEPENDENT);
    // Even ports below 1024, without zero.
    for host in 0..511_u16 {
        let inside = SocketAddrV4::new(Ipv4Addr::from(0x0A00_0000 + u32::from(host)), 22);
        send(&mut nat, 0, inside, at(99, 1));
    }
    let mut more = packet(UDP, at(1, 22), at(99, 1));
    assert_eq!(nat.send(ms(1), &mut more), Err(NatDrop::Full));
    assert_eq!(more, packet(UDP, at(1, 22), at(99, 1)), "a dropped packet is unchanged");
    for port in 0..3_600 {
        nat.send(ms(2), &mut packet(UDP, at(2, 2_000 + port), at(99, 1))).ok();
    }
    let full = nat.send(ms(3), &mut packet(UDP, at(3, 9_000), at(99, 1)));
    assert_eq!(full, Err(NatDrop::Full));
    assert!(nat.send(ms(300_002), &mut packet(UDP, at(3, 9_000), at(99, 1))).is_ok());
}

// [RFC4787 §4.3 REQ-5, REQ-6]
#[test]
fn a_mapping_lives_as_long_as_packets_go_out_not_by_those_that_come_in() {
    let config = NatConfig { mapping_timeout: TimeDelta::from_secs(30), ..NatConfig::default() };
    let mut nat = Nat::new(config, OUTSIDE, Seed::new(1));
    let (inside, remote) = (at(1, 5_000), at(9, 700));
    let outside = send(&mut nat, 0, inside, remote);
    assert_eq!(send(&mut nat, 30_000, inside, remote), outside);
    assert_eq!(receive(&mut nat, 60_000, remote, outside), Ok(inside));
    assert_eq!(receive(&mut nat, 60_001, remote, outside), Err(NatDrop::NoMapping));
    assert_ne!(send(&mut nat, 60_002, inside, remote), outside);
    assert_eq!(NatConfig::default().mapping_timeout, TimeDelta::from_secs(300));
}

// [RFC4787 §5 REQ-8]
#[test]
fn a_filter_lets_in_those_that_were_sent_to() {
    let (inside, remote) = (at(1, 5_000), at(9, 700));
    for (filtering, are_let_in) in
        [(INDEPENDENT, [true; 3]), (ADDRESS, [true, true, false]), (PORT, [true, false, false])]
    {
        let mut nat = nat(INDEPENDENT, filtering);
        let outside = send(&mut nat, 0, inside, remote);
        let from = [remote, at(9, 701), at(8, 700)];
        let let_in = from.map(|from| receive(&mut nat, 1, from, outside) == Ok(inside));
        assert_eq!(let_in, are_let_in, "{filtering:?}");
        let dropped = are_let_in.iter().filter(|passed| !**passed).count();
        assert_eq!(nat.counters().filtered_packets, dropped as u64);
    }
}

#[test]
fn nobody_comes_in_before_somebody_went_out() {
    let mut nat = nat(INDEPENDENT, INDEPENDENT);
    let to = SocketAddrV4::new(OUTSIDE, 5_000);
    assert_eq!(receive(&mut nat, 0, at(9, 700), to), Err(NatDrop::NoMapping));
    assert_eq!(nat.counters().unmapped_packets, 1);
    assert_eq!(nat.inside_of(&packet(UDP, at(9, 700), to)), None);
}

// [RFC4787 §6 REQ-9]
#[test]
fn a_hairpin_comes_back_in_from_the_outside_endpoint_or_is_dropped() {
    let (a, b) = (at(1, 5_000), at(2, 6_000));
    let mut nat = nat(INDEPENDENT, PORT);
    let outside = [a, b].map(|from| send(&mut nat, 0, from, at(9, 700)));
    let turn = |nat: &mut Nat, from, to| {
        let mut turned = packet(UDP, from, to);
        nat.send(ms(1), &mut turned).unwrap();
        assert_eq!(nat.inside_of(&turned), Some(*if to == outside[1] { b } else { a }.ip()));
        nat.receive(ms(2), &mut turned).map(|()| ends(&turned))
    };
    // Both must have sent to the other before the filter opens.
    assert_eq!(turn(&mut nat, a, outside[1]), Err(NatDrop::Filtered));
    assert_eq!(turn(&mut nat, b, outside[0]), Ok([outside[1], a]));
    assert_eq!(turn(&mut nat, a, outside[1]), Ok([outside[0], b]));
    let mut without =
        Nat::new(NatConfig { hairpin: false, ..NatConfig::default() }, OUTSIDE, Seed::new(1));
    let own = send(&mut without, 0, b, at(9, 700));
    assert_eq!(without.send(ms(1), &mut packet(UDP, a, own)), Err(NatDrop::Hairpin));
    assert_eq!(without.counters().hairpin_packets, 1);
}

// [RFC4787 §7 REQ-10]
#[test]
fn the_payload_is_never_changed() {
    let mut sent = packet(UDP, at(1, 5_000), at(9, 700));
    // The inside endpoint in the payload, as a STUN answer or a session description has it.
    sent.truncate(28);
    sent.extend([10, 45, 0, 1, 0x13, 0x88]);
    sent[24..26].copy_from_slice(&14_u16.to_be_bytes());
    complete(&mut sent);
    let payload = sent[28..].to_vec();
    nat(INDEPENDENT, PORT).send(ms(0), &mut sent).unwrap();
    assert!(is_sound(&sent) && sent[28..] == payload);
}

// [RFC4787 §8 REQ-11]
#[test]
fn equal_seeds_give_equal_ports_and_a_busy_nat_behaves_as_an_idle_one() {
    let (inside, remote) = (at(1, 5_000), at(9, 700));
    let mut a = nat(INDEPENDENT, INDEPENDENT);
    let mut b = nat(INDEPENDENT, INDEPENDENT);
    assert_eq!(send(&mut a, 0, inside, remote), send(&mut b, 0, inside, remote));
    for port in 0..2_000 {
        send(&mut a, 1, at(2, 3_000 + port), remote);
    }
    let first = send(&mut a, 2, inside, remote);
    assert_eq!(first, send(&mut a, 3, inside, at(8, 1)), "still endpoint-independent");
}

// [RFC4787 §9 REQ-12] [RFC5508 §4.2 REQ-4]
#[test]
fn an_icmp_error_finds_its_sender_and_ends_no_mapping() {
    for protocol in [UDP, TCP] {
        let (inside, remote) = (at(1, 5_000), at(9, 700));
        let mut nat = nat(INDEPENDENT, PORT);
        let mut sent = packet(protocol, inside, remote);
        nat.send(ms(0), &mut sent).unwrap();
        let router = Ipv4Addr::new(10, 45, 0, 77);
        let mut error = unreachable(&sent, router, OUTSIDE);
        assert_eq!(nat.inside_of(&error), Some(*inside.ip()));
        nat.receive(ms(1), &mut error).unwrap();
        assert!(is_sound(&error));
        let original = packet(protocol, inside, remote);
        assert_eq!(error[16..20], inside.ip().octets());
        // The checksum of TCP lies behind the eight bytes that an error has.
        assert_eq!(error[28..], original[..28], "the packet as its sender knows it");
        let mut again = packet(protocol, inside, remote);
        nat.send(ms(2), &mut again).unwrap();
        assert_eq!(ends(&again)[0], ends(&sent)[0]);
        let mut wrong = unreachable(&sent, router, OUTSIDE);
        wrong[30] ^= 1;
        assert_eq!(nat.receive(ms(3), &mut wrong), Err(NatDrop::Unknown));
    }
}

// [RFC5508 §4.2 REQ-5]
#[test]
fn an_icmp_error_from_inside_names_the_outside_endpoint() {
    let (inside, remote) = (at(1, 5_000), at(9, 700));
    let mut nat = nat(INDEPENDENT, INDEPENDENT);
    let outside = send(&mut nat, 0, inside, remote);
    let arrived = packet(UDP, remote, inside);
    let mut error = unreachable(&arrived, *inside.ip(), *remote.ip());
    nat.send(ms(1), &mut error).unwrap();
    assert!(is_sound(&error));
    assert_eq!(error[12..16], OUTSIDE.octets());
    assert_eq!(error[28..], packet(UDP, remote, outside)[..28]);
    let other = unreachable(&packet(UDP, remote, at(3, 9)), *inside.ip(), *remote.ip());
    assert_eq!(nat.send(ms(1), &mut other.clone()), Err(NatDrop::NoMapping));
}

// [RFC5508 §3.1 REQ-1]
#[test]
fn an_echo_is_answered_by_its_identifier() {
    let (inside, remote) = (Ipv4Addr::new(10, 45, 0, 1), Ipv4Addr::new(10, 45, 0, 9));
    let mut nat = nat(PORT, PORT);
    let mut request = echo(8, 77, inside, remote);
    nat.send(ms(0), &mut request).unwrap();
    assert!(is_sound(&request) && request[12..16] == OUTSIDE.octets());
    let identifier = u16::from_be_bytes([request[24], request[25]]);
    let mut reply = echo(0, identifier, remote, OUTSIDE);
    nat.receive(ms(1), &mut reply).unwrap();
    assert_eq!(reply, echo(0, 77, remote, inside));
    let unasked = nat.receive(ms(1), &mut echo(8, 77, remote, OUTSIDE));
    assert_eq!(unasked, Err(NatDrop::NoMapping));
}

#[test]
fn blocked_udp_leaves_tcp_its_way() {
    let config = NatConfig { blocks_udp: true, ..NatConfig::default() };
    let mut nat = Nat::new(config, OUTSIDE, Seed::new(1));
    let (inside, remote) = (at(1, 5_000), at(9, 443));
    assert_eq!(nat.send(ms(0), &mut packet(UDP, inside, remote)), Err(NatDrop::Blocked));
    let mut sent = packet(TCP, inside, remote);
    nat.send(ms(0), &mut sent).unwrap();
    assert!(is_sound(&sent));
    let mut answer = packet(TCP, remote, ends(&sent)[0]);
    nat.receive(ms(1), &mut answer).unwrap();
    assert!(is_sound(&answer) && ends(&answer)[1] == inside);
    let came = receive(&mut nat, 2, remote, ends(&sent)[0]);
    assert_eq!((came, nat.counters().blocked_packets), (Err(NatDrop::Blocked), 2));
}

#[test]
fn after_a_rebinding_the_old_endpoint_is_dead_and_a_new_one_is_made() {
    let (inside, remote) = (at(1, 5_000), at(9, 700));
    let mut nat = nat(INDEPENDENT, PORT);
    let old = send(&mut nat, 0, inside, remote);
    nat.rebind(LATER);
    assert_eq!(receive(&mut nat, 1, remote, old), Err(NatDrop::NoMapping));
    let new = send(&mut nat, 2, inside, remote);
    assert!(*new.ip() == LATER && new.port() != old.port());
    assert_eq!(receive(&mut nat, 3, remote, new), Ok(inside));
    assert_eq!(
        receive(&mut nat, 4, remote, SocketAddrV4::new(OUTSIDE, new.port())),
        Err(NatDrop::NoMapping)
    );
}

// [RFC768]
#[test]
fn a_datagram_without_a_checksum_still_has_none() {
    let mut sent = packet(UDP, at(1, 5_000), at(9, 700));
    sent[26..28].fill(0);
    nat(INDEPENDENT, INDEPENDENT).send(ms(0), &mut sent).unwrap();
    assert_eq!(sent[26..28], [0, 0]);
    assert_eq!(checksum(&sent[..20]), 0);
}

// NAT-D1
#[test]
fn fragments_and_other_protocols_are_dropped() {
    for (at, value) in [(6, 0x20), (7, 1), (9, 47), (0, 0x65), (0, 0x44), (0, 0x4F)] {
        let mut odd = packet(UDP, self::at(1, 5_000), self::at(9, 700));
        odd[at] = value;
        let mut nat = nat(INDEPENDENT, INDEPENDENT);
        assert_eq!(nat.send(ms(0), &mut odd), Err(NatDrop::Unknown), "byte {at} is {value}");
        assert_eq!(nat.counters().untranslated_packets, 1);
    }
}

/// Bytes that are nearly a packet.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(packet(UDP, at(1, 5_000), at(9, 700))),
        Just(packet(TCP, at(1, 5_000), at(9, 700))),
        Just(echo(8, 7, Ipv4Addr::new(10, 45, 0, 1), Ipv4Addr::new(10, 45, 0, 9))),
        Just(unreachable(
            &packet(UDP, SocketAddrV4::new(OUTSIDE, 5_000), at(9, 700)),
            Ipv4Addr::new(10, 45, 0, 9),
            OUTSIDE
        )),
    ];
    let changes = prop::collection::vec((0_usize..60, any::<u8>()), 0..4);
    (kind, changes, 0_usize..80, any::<bool>()).prop_map(|(mut packet, changes, length, right)| {
        for (at, value) in changes {
            if at < packet.len() {
                packet[at] = value;
            }
        }
        if right && packet.len() >= 28 && packet[0] == 0x45 {
            complete(&mut packet);
        }
        if length < 60 {
            packet.truncate(length);
        }
        packet
    })
}

proptest! {
    #[test]
    fn no_bytes_bring_it_down_and_what_it_drops_is_unchanged(
        packets in prop::collection::vec(
            (prop_oneof![nearly(), prop::collection::vec(any::<u8>(), 0..80)], any::<bool>()),
            1..20,
        ),
        symmetric in any::<bool>(),
    ) {
        let mapping = if symmetric { PORT } else { INDEPENDENT };
        let mut nat = nat(mapping, INDEPENDENT);
        send(&mut nat, 0, at(1, 5_000), at(9, 700));
        for (bytes, out) in packets {
            let mut done = bytes.clone();
            nat.inside_of(&bytes);
            let result = match out {
                true => nat.send(ms(1), &mut done),
                false => nat.receive(ms(1), &mut done),
            };
            prop_assert_eq!(done.len(), bytes.len());
            if result.is_err() {
                prop_assert_eq!(&done, &bytes);
            } else if bytes[0] == 0x45 && bytes[9] != UDP && is_sound(&bytes) {
                prop_assert!(is_sound(&done), "{:?} became {:?}", bytes, done);
            }
        }
    }

    #[test]
    fn what_goes_out_comes_back_to_its_sender(
        port in 1_u16.., remote in 1_u16.., mapping in 0_usize..3, filtering in 0_usize..3,
    ) {
        let [mapping, filtering] = [mapping, filtering].map(|it| Behaviour::NAMES[it].1);
        let mut nat = nat(mapping, filtering);
        let outside = send(&mut nat, 0, at(1, port), at(9, remote));
        prop_assert_eq!(receive(&mut nat, 1, at(9, remote), outside), Ok(at(1, port)));
    }
}
