//! An application server behind the filter criteria of the S-CSCF (ISC): it takes third-party
//! registrations ([TS 24.229 §5.4.1.7]), and hands calls back to the S-CSCF as a proxy without
//! state.
//!
//! A criterion whose server is `sip:facilitator@as.REALM` makes it tell the facilitator of a call's
//! begin, answer and end.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use weir_nodes::sip::{Message, Start, parameter_of, uri_of};

use crate::layout::{FACILITATOR_PORT, PARTS, SIP_PORT, address, folder};
use crate::serve::is_of_core;
use crate::trace::{Noted, Trace};

/// Largest datagram.
const MOST_BYTES: usize = 65_536;
/// What makes this server's branches of those of the S-CSCF ([RFC3261 §16.11]).
const BRANCH: &str = "as";
/// How long the facilitator may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is read of its answer, of which only the status counts.
const ANSWER_BYTES_MAX: u64 = 100_000;

/// Runs the server until it is ended by a signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let own = SocketAddrV4::new(address("as"), SIP_PORT);
    let socket = UdpSocket::bind(own).with_context(|| format!("cannot listen on {own}"))?;
    let trace = Trace::append(&folder().join("as.jsonl")).context("cannot write as.jsonl")?;
    let facilitator = facilitator(trace);
    let mut bytes = vec![0; MOST_BYTES];
    loop {
        // A refused datagram is reported at the next read.
        let Ok((count, from)) = socket.recv_from(&mut bytes) else { continue };
        let Ok(message) = Message::parse(&bytes[..count]) else { continue };
        if !is_of_core(from) {
            eprintln!("{from} is refused");
            continue;
        }
        if let Some(news) = news(&message) {
            // Without the thread there is no facilitator, and the call goes on all the same.
            let _ = facilitator.send(news);
        }
        if let Some((answer, to)) = carried(message, from)
            && let Err(error) = socket.send_to(answer.to_string().as_bytes(), to)
        {
            eprintln!("cannot send to {to}: {error}");
        }
    }
}

/// A thread that tells the facilitator what it is sent: SIP does not wait for HTTP.
fn facilitator(trace: Trace) -> Sender<Value> {
    let (sender, receiver) = channel::<Value>();
    thread::spawn(move || {
        let mut known = BTreeSet::new();
        for news in receiver {
            // Calls that it has not begun are not the facilitator's.
            let call = news["call"].to_string();
            let is_its = match news["state"].as_str() {
                Some("begin") => known.insert(call),
                Some("ended") => known.remove(&call),
                _ => known.contains(&call),
            };
            if !is_its {
                continue;
            }
            let body = news.to_string();
            let name = format!("POST call {}", news["state"].as_str().unwrap_or_default());
            trace.note(&Noted::now("as", "facilitator", "HTTP", name, body.clone()));
            match told(&body) {
                Ok(status) => {
                    trace.note(&Noted::now("facilitator", "as", "HTTP", status, String::new()));
                }
                // The call goes on without video.
                Err(error) => eprintln!("no facilitator: {error}"),
            }
        }
    });
    sender
}

/// Posts to the facilitator. Returns the status of its answer.
fn told(body: &str) -> io::Result<String> {
    let to = SocketAddr::from((address("facilitator"), FACILITATOR_PORT));
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /calls HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// What the facilitator is told about a message from the S-CSCF. `None` if the message does not
/// concern it.
fn news(message: &Message) -> Option<Value> {
    let call = message.header("Call-ID")?;
    let state = |state: &str| Some(json!({ "call": call, "state": state }));
    let routes = message.list("Route");
    let is_for_facilitator =
        routes.first().is_some_and(|route| uri_of(route).starts_with("sip:facilitator@"));
    match &message.start {
        Start::Request { method, uri } if method == "INVITE" => {
            let is_new = message.parameter("To", "tag").is_none();
            if !is_new || !is_for_facilitator {
                return None;
            }
            // [TS 24.229 §5.2.6.3] The network has asserted who calls.
            let caller = message.header("P-Asserted-Identity").or(message.header("From"))?;
            Some(json!({
                "call": call, "state": "begin", "caller": uri_of(caller), "callee": uri,
            }))
        }
        Start::Request { method, .. } if method == "BYE" => state("ended"),
        Start::Response { code, .. } if message.method() == "INVITE" => match code {
            200..=299 => state("answered"),
            300.. => state("ended"),
            _ => None,
        },
        _ => None,
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
            Via: SIP/2.0/UDP 10.46.0.4:5060;branch=z9hG4bK1\r\n\
            Via: SIP/2.0/UDP 10.46.0.1;branch=x\r\n\
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
    fn the_facilitator_hears_of_its_calls_only() {
        let text = "INVITE sip:dave@ims.test SIP/2.0\r\nVia: SIP/2.0/UDP 10.46.0.4;branch=x\r\n\
            Route: <sip:facilitator@as.ims.test:5060;lr>, <sip:iscmark@scscf.ims.test:5060;lr>\r\n\
            P-Asserted-Identity: <sip:alice@ims.test>\r\n\
            From: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n\r\n";
        let of = |text: &str| news(&Message::parse(text.as_bytes()).unwrap());
        let begin = of(text).unwrap();
        assert_eq!((&begin["state"], &begin["call"]), (&json!("begin"), &json!("1")));
        assert_eq!(begin["caller"], "sip:alice@ims.test");
        assert_eq!(begin["callee"], "sip:dave@ims.test");
        assert_eq!(of(&text.replace("facilitator@", "")), None);
        assert_eq!(of(&text.replace("To: <sip:c@d>", "To: <sip:c@d>;tag=2")), None);
        let invite = Message::parse(text.as_bytes()).unwrap();
        for (code, state) in [(200, Some("answered")), (486, Some("ended")), (180, None)] {
            let heard = news(&invite.response(code, "x"));
            let heard = heard.as_ref().and_then(|news| news["state"].as_str());
            assert_eq!(heard, state, "{code}");
        }
    }

    #[test]
    fn a_third_party_registration_is_answered() {
        let text = "REGISTER sip:as.ims.test SIP/2.0\r\nVia: SIP/2.0/UDP 10.46.0.4;branch=x\r\n\
            From: <sip:scscf.ims.test>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\n\
            CSeq: 1 REGISTER\r\n\r\n";
        let (answer, to) = carried(Message::parse(text.as_bytes()).unwrap(), from()).unwrap();
        assert_eq!((answer.code(), to), (Some(200), from()));
        assert_eq!(answer.header("To"), Some("<sip:c@d>;tag=as"));
    }
}
