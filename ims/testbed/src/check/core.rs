//! Rules of what the P-, I- and S-CSCF send each other and the terminals.

use std::collections::BTreeMap;

use weir_nodes::sip::{Message, Start, uri_of};

use super::Check::{Absent, By, Order};
use super::{CALLEE, CALLER, FAR_PROXY, Flow, PROXY, Rule, has, is_call, is_proxy};
use crate::layout::address;

/// Whether the record has SIP between the CSCFs. Old records do not have it.
fn is_recorded(flow: &Flow<'_>) -> bool {
    flow.messages.iter().any(|one| one.to == "icscf" && is_proxy(&one.from))
}

fn is_recorded_call(flow: &Flow<'_>) -> bool {
    is_recorded(flow) && is_call(flow)
}

fn is_answered(flow: &Flow<'_>) -> bool {
    is_recorded_call(flow) && flow.place("200 INVITE", "*", CALLER).is_ok()
}

/// The S-CSCF has sent keys of AKA with its challenge.
fn has_keys(flow: &Flow<'_>) -> bool {
    let challenge = registration(flow, "401 REGISTER", "scscf", "icscf");
    challenge.is_ok_and(|one| has(&one, "WWW-Authenticate", "ck=").is_ok())
}

/// Place and text of the first message of this name between these parts with the Call-ID of another
/// one.
fn alike(
    flow: &Flow<'_>,
    other: &Message,
    name: &str,
    from: &str,
    to: &str,
) -> Result<(usize, Message), String> {
    let (from, to) = (flow.part(from), flow.part(to));
    for (place, one) in flow.messages.iter().enumerate() {
        if one.name != name || one.from != from || one.to != to {
            continue;
        }
        let Ok(message) = Message::parse(one.text.as_bytes()) else { continue };
        if message.header("Call-ID") == other.header("Call-ID") {
            return Ok((place, message));
        }
    }
    Err(format!("no such {name} from {from} to {to}"))
}

/// A message of the caller's registration.
fn registration(flow: &Flow<'_>, name: &str, from: &str, to: &str) -> Result<Message, String> {
    let own = flow.sip("REGISTER", CALLER, PROXY)?;
    Ok(alike(flow, &own, name, from, to)?.1)
}

/// The caller's INVITE between these parts.
fn invitation(flow: &Flow<'_>, from: &str, to: &str) -> Result<Message, String> {
    let own = flow.sip("INVITE", CALLER, PROXY)?;
    Ok(alike(flow, &own, "INVITE", from, to)?.1)
}

/// The S-CSCF that the HSS named last before this place, in an answer of this name.
fn named<'a>(flow: &Flow<'a>, answer: &str, place: usize) -> Result<&'a str, String> {
    const NAME: &str = "Server-Name=";
    for one in flow.messages[..place].iter().rev() {
        if !one.name.starts_with(answer) {
            continue;
        }
        if let Some((_, rest)) = one.text.split_once(NAME) {
            return Ok(rest.split([' ', '}']).next().unwrap_or_default());
        }
    }
    Err(format!("no {answer} with a {NAME}"))
}

fn request_uri(request: &Message) -> &str {
    match &request.start {
        Start::Request { uri, .. } => uri,
        Start::Response { .. } => "",
    }
}

fn lacks(message: &Message, name: &str) -> Result<(), String> {
    match message.header(name) {
        Some(value) => Err(format!("{}: there is {name}: {value}", message.method())),
        None => Ok(()),
    }
}

fn equal(what: &str, is: &str, should: &str) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what} is {is} and not {should}")) }
}

/// The addresses in the list of a header.
fn addresses(message: &Message, header: &str) -> String {
    let mut addresses = Vec::new();
    for value in message.list(header) {
        addresses.push(uri_of(&value).to_owned());
    }
    addresses.join(", ")
}

/// The lists of a header in two messages, which must be the same.
fn same_list(
    (one, name): (&Message, &str),
    (other, other_name): (&Message, &str),
) -> Result<(), String> {
    equal(name, &addresses(one, name), &addresses(other, other_name))
}

/// Whether a part has put itself first into the Record-Route.
fn stays(flow: &Flow<'_>, request: &Message, part: &str) -> Result<(), String> {
    let part = flow.part(part);
    let own = format!("@{}", address(part));
    match request.list("Record-Route").first() {
        Some(first) if uri_of(first).contains(&own) => Ok(()),
        first => Err(format!("Record-Route begins with {first:?}, not with {part}")),
    }
}

/// The charging identifier (`icid-value`) of a request.
fn charging_identifier(request: &Message) -> Result<String, String> {
    let vector = request.header("P-Charging-Vector").unwrap_or_default();
    for pair in vector.split(';') {
        if let Some(("icid-value", value)) = pair.trim().split_once('=')
            && !value.is_empty()
        {
            return Ok(value.to_owned());
        }
    }
    Err(format!("P-Charging-Vector is '{vector}'"))
}

fn requires_path(flow: &Flow<'_>) -> Result<(), String> {
    let register = registration(flow, "REGISTER", PROXY, "icscf")?;
    has(&register, "Path", &format!("{}.", flow.proxy))?;
    has(&register, "Require", "path")
}

fn gives_an_identifier_once(flow: &Flow<'_>) -> Result<(), String> {
    let register = registration(flow, "REGISTER", PROXY, "icscf")?;
    has(&register, "P-Visited-Network-ID", ".")?;
    let mut given = BTreeMap::new();
    for one in flow.messages {
        if one.name != "REGISTER" || one.from != flow.proxy || one.to != "icscf" {
            continue;
        }
        let Ok(request) = Message::parse(one.text.as_bytes()) else { continue };
        // A repetition has the branch of the first one.
        let branch = request.parameter("Via", "branch").unwrap_or_default().to_owned();
        let identifier = charging_identifier(&request)?;
        if given.entry(identifier.clone()).or_insert_with(|| branch.clone()) != &branch {
            return Err(format!("{identifier} stands for two registrations"));
        }
    }
    Ok(())
}

fn goes_to_the_named_server(flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.sip("REGISTER", CALLER, PROXY)?;
    let (place, register) = alike(flow, &own, "REGISTER", "icscf", "scscf")?;
    equal("the Request-URI", request_uri(&register), named(flow, "UAA", place)?)
}

fn keeps_keys(flow: &Flow<'_>) -> Result<(), String> {
    let challenge = registration(flow, "401 REGISTER", PROXY, CALLER)?;
    let challenge = challenge.header("WWW-Authenticate").unwrap_or_default();
    for key in ["ck=", "ik="] {
        if challenge.contains(key) {
            return Err(format!("the challenge has {key}"));
        }
    }
    Ok(())
}

fn returns_the_path(flow: &Flow<'_>) -> Result<(), String> {
    let register = registration(flow, "REGISTER", "icscf", "scscf")?;
    let response = registration(flow, "200 REGISTER", "scscf", "icscf")?;
    same_list((&response, "Path"), (&register, "Path"))?;
    has(&response, "Service-Route", "@scscf.")
}

fn subscribes_to_reg(flow: &Flow<'_>) -> Result<(), String> {
    let subscribe = flow.sip("SUBSCRIBE", PROXY, "icscf")?;
    equal("the Event", subscribe.header("Event").unwrap_or_default(), "reg")
}

fn follows_the_service_route(flow: &Flow<'_>) -> Result<(), String> {
    let response = registration(flow, "200 REGISTER", PROXY, CALLER)?;
    let invite = invitation(flow, PROXY, "scscf")?;
    same_list((&invite, "Route"), (&response, "Service-Route"))
}

fn caller_proxy_stays(flow: &Flow<'_>) -> Result<(), String> {
    stays(flow, &invitation(flow, PROXY, "scscf")?, PROXY)
}

fn asserts_a_registered_identity(flow: &Flow<'_>) -> Result<(), String> {
    let response = registration(flow, "200 REGISTER", PROXY, CALLER)?;
    let invite = invitation(flow, PROXY, "scscf")?;
    lacks(&invite, "P-Preferred-Identity")?;
    let asserted = invite.header("P-Asserted-Identity").unwrap_or_default();
    has(&response, "P-Associated-URI", &format!("<{}>", uri_of(asserted)))
}

fn keeps_the_identifier(flow: &Flow<'_>) -> Result<(), String> {
    let first = charging_identifier(&invitation(flow, PROXY, "scscf")?)?;
    let last = charging_identifier(&invitation(flow, "scscf", FAR_PROXY)?)?;
    equal("the last one", &last, &first)
}

fn takes_its_route_away(flow: &Flow<'_>) -> Result<(), String> {
    let invite = invitation(flow, "scscf", "icscf")?;
    lacks(&invite, "Route")?;
    stays(flow, &invite, "scscf")
}

fn routes_to_the_named_server(flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.sip("INVITE", CALLER, PROXY)?;
    let (place, invite) = alike(flow, &own, "INVITE", "icscf", "scscf")?;
    let route = invite.list("Route").first().cloned().unwrap_or_default();
    equal("the first Route", uri_of(&route), named(flow, "LIA", place)?)
}

fn calls_the_registered_contact(flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.sip("REGISTER", CALLEE, FAR_PROXY)?;
    let (_, register) = alike(flow, &own, "REGISTER", FAR_PROXY, "icscf")?;
    let invite = invitation(flow, "scscf", FAR_PROXY)?;
    same_list((&invite, "Route"), (&register, "Path"))?;
    let contact = uri_of(register.header("Contact").unwrap_or_default());
    let first = format!("INVITE {contact} ");
    // An older contact may be called too: Kamailio keeps that of a connection that was lost.
    for one in flow.messages {
        let is_invite = one.name == "INVITE" && one.from == "scscf" && one.to == flow.far_proxy;
        if is_invite && one.text.starts_with(&first) {
            return Ok(());
        }
    }
    Err(format!("no INVITE to {contact}"))
}

fn says_who_was_called(flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.sip("INVITE", CALLER, PROXY)?;
    let invite = invitation(flow, "scscf", FAR_PROXY)?;
    let called = invite.header("P-Called-Party-ID").unwrap_or_default();
    equal("P-Called-Party-ID", uri_of(called), request_uri(&own))
}

fn keeps_served_user(flow: &Flow<'_>) -> Result<(), String> {
    let invite = invitation(flow, "scscf", FAR_PROXY)?;
    stays(flow, &invite, "scscf")?;
    lacks(&invite, "P-Served-User")
}

fn tells_nothing_of_charging(flow: &Flow<'_>) -> Result<(), String> {
    let invite = flow.sip("INVITE", FAR_PROXY, CALLEE)?;
    lacks(&invite, "P-Charging-Vector")?;
    lacks(&invite, "P-Charging-Function-Addresses")
}

/// The rules. The order is that of a call.
pub(super) const RULES: &[Rule] = &[
    Rule {
        section: "TS 24.229 5.2.2.1",
        text: "the P-CSCF puts itself into the Path of a registration, and requires that this is \
            understood",
        when: is_recorded,
        checks: &[By(requires_path)],
    },
    Rule {
        section: "TS 24.229 5.2.2.1",
        text: "the P-CSCF names the visited network, and a charging identifier that it gives only \
            once",
        when: is_recorded,
        checks: &[By(gives_an_identifier_once)],
    },
    Rule {
        section: "TS 24.229 5.3.1.2",
        text: "the I-CSCF sends a registration to the S-CSCF that the HSS names",
        when: is_recorded,
        checks: &[By(goes_to_the_named_server)],
    },
    Rule {
        section: "TS 24.229 5.2.2.2",
        text: "the P-CSCF keeps the keys of AKA from the terminal",
        when: has_keys,
        checks: &[By(keeps_keys)],
    },
    Rule {
        section: "TS 24.229 5.4.1.2.2F",
        text: "the S-CSCF returns the Path, and a service route to itself",
        when: is_recorded,
        checks: &[By(returns_the_path)],
    },
    Rule {
        section: "TS 24.229 5.2.3",
        text: "the P-CSCF subscribes to the state of the registration, and the S-CSCF tells it",
        when: is_recorded,
        checks: &[
            Order(&[
                ("200 REGISTER", "icscf", PROXY),
                ("SUBSCRIBE", PROXY, "icscf"),
                ("SUBSCRIBE", "icscf", "scscf"),
                ("NOTIFY", "scscf", PROXY),
            ]),
            By(subscribes_to_reg),
        ],
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller passes the INVITE on along the service route",
        when: is_recorded_call,
        checks: &[By(follows_the_service_route)],
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller stays in the dialog",
        when: is_recorded_call,
        checks: &[By(caller_proxy_stays)],
    },
    Rule {
        section: "TS 24.229 5.2.6.3.1",
        text: "the P-CSCF asserts one of the registered identities, and passes no preferred one on",
        when: is_recorded_call,
        checks: &[By(asserts_a_registered_identity)],
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller gives the call a charging identifier, which it keeps \
            through the core",
        when: is_recorded_call,
        checks: &[By(keeps_the_identifier)],
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the S-CSCF of the caller takes its own route away and stays in the dialog",
        when: is_recorded_call,
        checks: &[By(takes_its_route_away)],
    },
    Rule {
        section: "TS 24.229 5.3.2.1",
        text: "the I-CSCF puts the S-CSCF that the HSS names into the Route of the INVITE",
        when: is_recorded_call,
        checks: &[By(routes_to_the_named_server)],
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee sends the INVITE along the Path to the registered contact",
        when: is_recorded_call,
        checks: &[By(calls_the_registered_contact)],
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee says which identity was called",
        when: is_recorded_call,
        checks: &[By(says_who_was_called)],
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee stays in the dialog, and keeps P-Served-User to itself",
        when: is_recorded_call,
        checks: &[By(keeps_served_user)],
    },
    Rule {
        section: "TS 24.229 5.2.1",
        text: "the P-CSCF of the callee tells the terminal nothing of charging",
        when: is_recorded_call,
        checks: &[By(tells_nothing_of_charging)],
    },
    Rule {
        section: "RFC 3261 12.2.1.1",
        text: "a request within the dialog passes the CSCFs that stayed in it, and no I-CSCF",
        when: is_answered,
        checks: &[
            Order(&[
                ("ACK", CALLER, PROXY),
                ("ACK", PROXY, "scscf"),
                ("ACK", "scscf", FAR_PROXY),
                ("ACK", FAR_PROXY, CALLEE),
            ]),
            Absent(("ACK", "*", "icscf")),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::super::testing::{
        CALL, SERVER, are_broken_by, are_kept, changed, recorded, without,
    };
    use super::*;

    #[test]
    fn recorded_calls_keep_all_rules() {
        are_kept(RULES, &[CALL, SERVER]);
    }

    #[test]
    fn each_rule_can_be_broken() {
        let register = ["REGISTER", "pcscf", "icscf"];
        let invite = ["INVITE", "pcscf", "scscf"];
        let last = ["INVITE", "scscf", "pcscf"];
        let to_callee = ["INVITE", "pcscf", "bob"];
        let named = "Route: <sip:scscf.";
        let path = "Route: <sip:term@";
        let mut one_identifier = recorded(CALL);
        for message in one_identifier.iter_mut().filter(|one| one.name == "REGISTER") {
            message.text = message.text.replace("icid-value=", "icid-value=1;x=");
        }
        let breaches = [
            changed(CALL, register, "Require: path", "X: path"),
            one_identifier,
            changed(CALL, ["REGISTER", "icscf", "scscf"], "REGISTER sip:scscf.", "REGISTER sip:"),
            changed(SERVER, ["401 REGISTER", "pcscf", "carol"], "qop=", "ik=\"1\", qop="),
            changed(CALL, ["200 REGISTER", "scscf", "icscf"], "Path: <sip:term@", "Path: <sip:"),
            without(CALL, "SUBSCRIBE", "pcscf"),
            changed(CALL, invite, "Route: <sip:orig@", "Route: <sip:"),
            changed(CALL, invite, "Record-Route", "X"),
            changed(CALL, invite, "P-Asserted-Identity: <sip:", "P-Asserted-Identity: <sip:x"),
            changed(CALL, last, "icid-value=", "icid-value=x"),
            changed(CALL, ["INVITE", "scscf", "icscf"], "Via:", "Route: <sip:scscf>\r\nVia:"),
            changed(CALL, ["INVITE", "icscf", "scscf"], named, "Route: <sip:elsewhere."),
            changed(CALL, last, path, "Route: <sip:"),
            changed(CALL, last, "P-Called-Party-ID", "X"),
            changed(CALL, last, "From:", "P-Served-User: <sip:bob@ims.test>\r\nFrom:"),
            changed(CALL, to_callee, "From:", "P-Charging-Vector: icid-value=1\r\nFrom:"),
            without(CALL, "ACK", "scscf"),
        ];
        are_broken_by(RULES, &breaches);
    }

    #[test]
    fn the_rules_of_the_core_skip_a_record_without_it() {
        let mut messages = recorded(CALL);
        let cscfs = ["icscf", "scscf"];
        messages.retain(|one| {
            one.protocol != "SIP"
                || ![&one.from, &one.to].iter().any(|part| cscfs.contains(&part.as_str()))
        });
        let flow = Flow::new(&messages).unwrap();
        assert!(RULES.iter().all(|rule| !(rule.when)(&flow)));
    }
}
