//! What a terminal must not reach, and what must not end a part.

use std::fs;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use crate::noted::RUN;
use crate::{Running, asked, in_terminal, request, succeeds, web_socket};

#[test]
fn terminals_reach_neither_diameter_nor_the_control_of_the_gateways() {
    let Some(_running) = Running::start(&[]) else { return };
    for net in ["10.46.0", "127.46.0"] {
        for last in 1..14 {
            let connected = in_terminal("alice", || {
                TcpStream::connect(format!("{net}.{last}:3868")).map(|mut stream| {
                    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                })
            });
            assert!(connected.is_err(), "{net}.{last}");
        }
        for last in [7, 13] {
            let answer = in_terminal("alice", || {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                let _ = socket.send_to(b"1 d7:command4:pinge", format!("{net}.{last}:2223"));
                socket.recv(&mut [0; 100])
            });
            assert!(answer.is_err(), "{net}.{last}");
        }
    }
    all_parts_live();
}

#[test]
fn a_contact_without_a_host_of_sip_is_refused_and_ends_no_part() {
    let Some(_running) = Running::start(&[]) else { return };
    let contacts = ["<xip:a@b>", "<mailto:a@b>", "<tel:+46>", "<sip:a@b>, <mailto:a@b>", "*"];
    for contact in contacts {
        let invite = request("INVITE", "sip:bob@ims.test", "")
            .replace("<sip:alice@10.46.1.2:5060>", contact)
            .replace("z9hG4bK", &format!("z9hG4bK{}", contact.len()));
        assert_eq!(asked("10.46.0.1:5060", &invite), "SIP/2.0 400 Bad Contact", "{contact}");
        let mut socket = web_socket();
        let invite = invite.replace("SIP/2.0/UDP", "SIP/2.0/WS");
        socket.send(tungstenite::Message::text(invite)).unwrap();
        let answer = socket.read().unwrap().into_text().unwrap();
        assert!(answer.starts_with("SIP/2.0 400 Bad Contact"), "{answer}");
    }
    all_parts_live();
}

/// The same processes run as after the start, and a registration and a call pass.
fn all_parts_live() {
    for part in ["pcscf", "epcscf", "icscf", "scscf", "hss", "pcrf", "agw", "eagw"] {
        let pid = fs::read_to_string(format!("{RUN}/{part}.process")).unwrap();
        let program = fs::read_link(format!("/proc/{}/exe", pid.trim()));
        assert!(program.is_ok(), "{part} has ended");
    }
    succeeds(&["register", "alice", "--via", "ws"]);
    succeeds(&["call", "alice", "bob"]);
}

#[test]
fn only_root_reads_what_the_ims_writes_and_down_leaves_no_secret() {
    let Some(running) = Running::start(&[]) else { return };
    assert_eq!(fs::metadata(RUN).unwrap().permissions().mode() & 0o777, 0o700);
    succeeds(&["register", "carol"]);
    // A namespace of an earlier program, for a name with a space.
    let added = Command::new("ip").args(["netns", "add", "weir-ims-a b"]).status().unwrap();
    assert!(added.success());
    drop(running);
    for entry in fs::read_dir(RUN).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().unwrap(), "log", "{}", path.display());
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("-secret"), "{}", path.display());
    }
}
