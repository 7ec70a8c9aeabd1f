//! An application server behind the filter criteria of the S-CSCF (ISC): it takes third-party
//! registrations ([TS 24.229 §5.4.1.7]), and hands calls back to the S-CSCF as a proxy without state.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;

use anyhow::Context;
use weir_ims::sip::{Message, Start, parameter_of, uri_of};

use crate::layout::{PARTS, SIP_PORT, address, folder};
use crate::serve::is_of_core;
use crate::trace::{Noted, Trace};
use crate::user::title;

/// Largest datagram.
const MOST_BYTES: usize = 65_536;
/// What makes this server's branches of those of the S-CSCF ([RFC3261 §16.11]).
const BRANCH: &str = "as";

/// Runs the server until it is ended by a signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let own = SocketAddrV4::new(address("as"), SIP_PORT);
    let socket = UdpSocket::bind(own).with_context(|| format!("cannot listen on {own}"))?;
    let trace = Trace::append(&folder().join("as.jsonl")).context("cannot write as.jsonl")?;
    let mut bytes = vec![0; MOST_BYTES];
    loop {
        // A refused datagram is reported at the next read.
        let Ok((count, from)) = socket.recv_from(&mut bytes) else { continue };
        let Ok(message) = Message::parse(&bytes[..count]) else { continue };
        if !is_of_core(from) {
            eprintln!("{from} is refused");
            continue;
        }
        let note = |from: &str, to: &str, message: &Message| {
            trace.note(&Noted::now(from, to, "SIP", title(message), message.to_string()));
        };
        note("scscf", "as", &message);
        if let Some((answer, to)) = carried(message, from) {
            note("as", "scscf", &answer);
            if let Err(error) = socket.send_to(answer.to_string().as_bytes(), to) {
                eprintln!("cannot send to {to}: {error}");
            }
        }
    }
}

/// What becomes of a message, and to where it goes.
fn carried(message: Message, from: SocketAddr) -> Option<(Message, SocketAddr)> {
    match message.start {
        Start::Response { .. } => back(message),
        Start::Request { .. } if message.method() == "REGISTER" => {
            let mut answer = message.response(200, "OK");
            for (name, value) in &mut answer.headers {
                if name == "To" && parameter_of(value, "tag").is_none() {
                    value.push_str(";tag=as");
                }
            }
            Some((answer, from))
        }
        Start::Request { .. } => on(message),
    }
}

/// A request goes on by its second Route ([RFC3261 §16.6]).
fn on(mut request: Message) -> Option<(Message, SocketAddr)> {
    let own = SocketAddrV4::new(address("as"), SIP_PORT);
    let first = request.headers.iter().position(|(name, _)| name == "Route")?;
    // Several routes may stand in one header.
    let rest: Vec<String> = request.list("Route").into_iter().skip(1).collect();
    let next = host(rest.first()?)?;
    request.headers.retain(|(name, _)| name != "Route");
    let routes = rest.into_iter().map(|route| ("Route".to_owned(), route));
    request.headers.splice(first..first, routes);
    let via = request.header("Via")?;
    let branch = parameter_of(via, "branch")?.to_owned();
    let via = format!("SIP/2.0/UDP {own};branch={branch}{BRANCH}");
    request.headers.insert(0, ("Via".into(), via));
    if request.method() == "INVITE" {
        // It hears of the end of the call too.
        request.headers.insert(1, ("Record-Route".into(), format!("<sip:{own};lr>")));
    }
    Some((request, next))
}

/// A response goes back by the second Via ([RFC3261 §16.11]).
fn back(mut response: Message) -> Option<(Message, SocketAddr)> {
    let first = response.headers.iter().position(|(name, _)| name == "Via")?;
    let rest: Vec<String> = response.list("Via").into_iter().skip(1).collect();
    let next = host(rest.first()?.split_once(' ')?.1.split(';').next()?)?;
    response.headers.retain(|(name, _)| name != "Via");
    let vias = rest.into_iter().map(|via| ("Via".to_owned(), via));
    response.headers.splice(first..first, vias);
    Some((response, next))
}

/// Address of `<sip:user@host:port;lr>` or `host:port`, by the names of the parts.
fn host(text: &str) -> Option<SocketAddr> {
    let uri = uri_of(text);
    let uri = uri.strip_prefix("sip:").unwrap_or(uri).split(';').next()?;
    let place = uri.rsplit('@').next()?;
    let (name, port) = place.split_once(':').unwrap_or((place, "5060"));
    let port = port.parse().ok()?;
    let known = name.split('.').next().and_then(|name| PARTS.iter().find(|part| part.name == name));
    let own = known.map(|part| address(part.name));
    Some(SocketAddr::from((own.or_else(|| name.parse().ok())?, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from() -> SocketAddr {
        SocketAddr::from((address("scscf"), SIP_PORT))
    }

    #[test]
    fn a_call_goes_back_to_the_scscf_and_its_responses_too() {
        let text = "INVITE sip:bob@ims.test SIP/2.0\r\n\
            Via: SIP/2.0/UDP 10.46.0.4:5060;branch=z9hG4bK1\r\nVia: SIP/2.0/UDP 10.46.0.1;branch=x\r\n\
            Route: <sip:as.ims.test:5060;lr>, <sip:iscmark@scscf.ims.test:5060;lr;s=1>\r\n\
            From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n\r\n";
        let (sent, to) = carried(Message::parse(text.as_bytes()).unwrap(), from()).unwrap();
        assert_eq!(to, from());
        assert_eq!(sent.list("Route"), ["<sip:iscmark@scscf.ims.test:5060;lr;s=1>"]);
        assert_eq!(sent.header("Record-Route"), Some("<sip:10.46.0.11:5060;lr>"));
        assert_eq!(sent.list("Via").len(), 3);
        let (answer, to) = carried(sent.response(180, "Ringing"), from()).unwrap();
        assert_eq!(to, from());
        assert_eq!(answer.list("Via")[0], "SIP/2.0/UDP 10.46.0.4:5060;branch=z9hG4bK1");
        assert_eq!(answer.list("Via").len(), 2);
    }

    #[test]
    fn a_third_party_registration_is_answered() {
        let text = "REGISTER sip:as.ims.test SIP/2.0\r\nVia: SIP/2.0/UDP 10.46.0.4;branch=x\r\n\
            From: <sip:scscf.ims.test>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 REGISTER\r\n\r\n";
        let (answer, to) = carried(Message::parse(text.as_bytes()).unwrap(), from()).unwrap();
        assert_eq!((answer.code(), to), (Some(200), from()));
        assert_eq!(answer.header("To"), Some("<sip:c@d>;tag=as"));
    }
}
