//! Rules of what the P-, I- and S-CSCF send each other and the terminals.

use std::collections::BTreeMap;

use weir_nodes::sip::{Message, Start, uri_of};

use super::{Flow, Rule, has, is_call, is_proxy};
use crate::layout::address;

/// Whether the record has SIP between the CSCFs. Old records do not have it.
fn is_recorded(flow: &Flow<'_>) -> bool {
    flow.messages.iter().any(|one| one.to == "icscf" && is_proxy(&one.from))
}

fn is_recorded_call(flow: &Flow<'_>) -> bool {
    is_recorded(flow) && is_call(flow)
}

fn is_answered(flow: &Flow<'_>) -> bool {
    is_recorded_call(flow) && flow.place("200 INVITE", "*", flow.caller).is_ok()
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
    let candidates = flow.messages.iter().enumerate();
    let mut found = candidates
        .filter(|(_, one)| one.name == name && one.from == from && one.to == to)
        .filter_map(|(place, one)| Some((place, Message::parse(one.text.as_bytes()).ok()?)))
        .filter(|(_, one)| one.header("Call-ID") == other.header("Call-ID"));
    found.next().ok_or_else(|| format!("no such {name} from {from} to {to}"))
}

/// A message of the caller's registration.
fn registration(flow: &Flow<'_>, name: &str, from: &str, to: &str) -> Result<Message, String> {
    let own = flow.sip("REGISTER", flow.caller, flow.proxy)?;
    Ok(alike(flow, &own, name, from, to)?.1)
}

/// The caller's INVITE between these parts.
fn invitation(flow: &Flow<'_>, from: &str, to: &str) -> Result<Message, String> {
    let own = flow.sip("INVITE", flow.caller, flow.proxy)?;
    Ok(alike(flow, &own, "INVITE", from, to)?.1)
}

/// The S-CSCF that the HSS named last before this place, in an answer of this name.
fn named<'a>(flow: &Flow<'a>, answer: &str, place: usize) -> Result<&'a str, String> {
    const NAME: &str = "Server-Name=";
    let answers = flow.messages[..place].iter().rev().filter(|one| one.name.starts_with(answer));
    let mut names = answers.filter_map(|one| one.text.split_once(NAME));
    let (_, rest) = names.next().ok_or_else(|| format!("no {answer} with a {NAME}"))?;
    Ok(rest.split([' ', '}']).next().unwrap_or_default())
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

/// The lists of a header in two messages, which must be the same.
fn same_list(
    (one, name): (&Message, &str),
    (other, other_name): (&Message, &str),
) -> Result<(), String> {
    let [one, other] = [one.list(name), other.list(other_name)]
        .map(|list| list.iter().map(|value| uri_of(value)).collect::<Vec<_>>().join(", "));
    equal(name, &one, &other)
}

/// Whether a part has put itself first into the Record-Route.
fn stays(request: &Message, part: &str) -> Result<(), String> {
    let own = format!("@{}", address(part));
    match request.list("Record-Route").first() {
        Some(first) if uri_of(first).contains(&own) => Ok(()),
        first => Err(format!("Record-Route begins with {first:?}, not with {part}")),
    }
}

/// The charging identifier (`icid-value`) of a request.
fn charging_identifier(request: &Message) -> Result<String, String> {
    let vector = request.header("P-Charging-Vector").unwrap_or_default();
    let mut pairs = vector.split(';').filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(name, value)| *name == "icid-value" && !value.is_empty());
    let (_, value) = found.ok_or_else(|| format!("P-Charging-Vector is '{vector}'"))?;
    Ok(value.to_owned())
}

/// The rules. The order is that of a call.
pub(super) const RULES: &[Rule] = &[
    Rule {
        section: "TS 24.229 5.2.2.1",
        text: "the P-CSCF puts itself into the Path of a registration, and requires that this is \
            understood",
        when: is_recorded,
        check: |flow| {
            let register = registration(flow, "REGISTER", flow.proxy, "icscf")?;
            has(&register, "Path", &format!("{}.", flow.proxy))?;
            has(&register, "Require", "path")
        },
    },
    Rule {
        section: "TS 24.229 5.2.2.1",
        text: "the P-CSCF names the visited network, and a charging identifier that it gives only \
            once",
        when: is_recorded,
        check: |flow| {
            let register = registration(flow, "REGISTER", flow.proxy, "icscf")?;
            has(&register, "P-Visited-Network-ID", ".")?;
            let mut given = BTreeMap::new();
            for one in flow.messages.iter().filter(|one| one.from == flow.proxy) {
                let Ok(request) = Message::parse(one.text.as_bytes()) else { continue };
                if one.name != "REGISTER" || one.to != "icscf" {
                    continue;
                }
                // A repetition has the branch of the first one.
                let branch = request.parameter("Via", "branch").unwrap_or_default().to_owned();
                let identifier = charging_identifier(&request)?;
                if given.insert(identifier.clone(), branch.clone()).is_some_and(|old| old != branch)
                {
                    return Err(format!("{identifier} stands for two registrations"));
                }
            }
            Ok(())
        },
    },
    Rule {
        section: "TS 24.229 5.3.1.2",
        text: "the I-CSCF sends a registration to the S-CSCF that the HSS names",
        when: is_recorded,
        check: |flow| {
            let own = flow.sip("REGISTER", flow.caller, flow.proxy)?;
            let (place, register) = alike(flow, &own, "REGISTER", "icscf", "scscf")?;
            equal("the Request-URI", request_uri(&register), named(flow, "UAA", place)?)
        },
    },
    Rule {
        section: "TS 24.229 5.2.2.2",
        text: "the P-CSCF keeps the keys of AKA from the terminal",
        when: has_keys,
        check: |flow| {
            let challenge = registration(flow, "401 REGISTER", flow.proxy, flow.caller)?;
            let challenge = challenge.header("WWW-Authenticate").unwrap_or_default();
            let key = ["ck=", "ik="].into_iter().find(|key| challenge.contains(key));
            key.map_or(Ok(()), |key| Err(format!("the challenge has {key}")))
        },
    },
    Rule {
        section: "TS 24.229 5.4.1.2.2F",
        text: "the S-CSCF returns the Path, and a service route to itself",
        when: is_recorded,
        check: |flow| {
            let register = registration(flow, "REGISTER", "icscf", "scscf")?;
            let response = registration(flow, "200 REGISTER", "scscf", "icscf")?;
            same_list((&response, "Path"), (&register, "Path"))?;
            has(&response, "Service-Route", "@scscf.")
        },
    },
    Rule {
        section: "TS 24.229 5.2.3",
        text: "the P-CSCF subscribes to the state of the registration, and the S-CSCF tells it",
        when: is_recorded,
        check: |flow| {
            flow.order(&[
                ("200 REGISTER", "icscf", flow.proxy),
                ("SUBSCRIBE", flow.proxy, "icscf"),
                ("SUBSCRIBE", "icscf", "scscf"),
                ("NOTIFY", "scscf", flow.proxy),
            ])?;
            equal(
                "the Event",
                flow.sip("SUBSCRIBE", flow.proxy, "icscf")?.header("Event").unwrap_or_default(),
                "reg",
            )
        },
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller passes the INVITE on along the service route",
        when: is_recorded_call,
        check: |flow| {
            let response = registration(flow, "200 REGISTER", flow.proxy, flow.caller)?;
            let invite = invitation(flow, flow.proxy, "scscf")?;
            same_list((&invite, "Route"), (&response, "Service-Route"))
        },
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller stays in the dialog",
        when: is_recorded_call,
        check: |flow| stays(&invitation(flow, flow.proxy, "scscf")?, flow.proxy),
    },
    Rule {
        section: "TS 24.229 5.2.6.3.1",
        text: "the P-CSCF asserts one of the registered identities, and passes no preferred one on",
        when: is_recorded_call,
        check: |flow| {
            let response = registration(flow, "200 REGISTER", flow.proxy, flow.caller)?;
            let invite = invitation(flow, flow.proxy, "scscf")?;
            lacks(&invite, "P-Preferred-Identity")?;
            let asserted = invite.header("P-Asserted-Identity").unwrap_or_default();
            has(&response, "P-Associated-URI", &format!("<{}>", uri_of(asserted)))
        },
    },
    Rule {
        section: "TS 24.229 5.2.6.3.3",
        text: "the P-CSCF of the caller gives the call a charging identifier, which it keeps \
            through the core",
        when: is_recorded_call,
        check: |flow| {
            let first = charging_identifier(&invitation(flow, flow.proxy, "scscf")?)?;
            let last = charging_identifier(&invitation(flow, "scscf", flow.far_proxy)?)?;
            equal("the last one", &last, &first)
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the S-CSCF of the caller takes its own route away and stays in the dialog",
        when: is_recorded_call,
        check: |flow| {
            let invite = invitation(flow, "scscf", "icscf")?;
            lacks(&invite, "Route")?;
            stays(&invite, "scscf")
        },
    },
    Rule {
        section: "TS 24.229 5.3.2.1",
        text: "the I-CSCF puts the S-CSCF that the HSS names into the Route of the INVITE",
        when: is_recorded_call,
        check: |flow| {
            let own = flow.sip("INVITE", flow.caller, flow.proxy)?;
            let (place, invite) = alike(flow, &own, "INVITE", "icscf", "scscf")?;
            let route = invite.list("Route").first().cloned().unwrap_or_default();
            equal("the first Route", uri_of(&route), named(flow, "LIA", place)?)
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee sends the INVITE along the Path to the registered contact",
        when: is_recorded_call,
        check: |flow| {
            let own = flow.sip("REGISTER", flow.callee, flow.far_proxy)?;
            let (_, register) = alike(flow, &own, "REGISTER", flow.far_proxy, "icscf")?;
            let invite = invitation(flow, "scscf", flow.far_proxy)?;
            same_list((&invite, "Route"), (&register, "Path"))?;
            let contact = uri_of(register.header("Contact").unwrap_or_default());
            // An older contact may be called too: Kamailio keeps that of a connection that was
            // lost.
            let mut called = flow.messages.iter().filter(|one| {
                one.name == "INVITE" && one.from == "scscf" && one.to == flow.far_proxy
            });
            let first = format!("INVITE {contact} ");
            if called.any(|one| one.text.starts_with(&first)) {
                return Ok(());
            }
            Err(format!("no INVITE to {contact}"))
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee says which identity was called",
        when: is_recorded_call,
        check: |flow| {
            let own = flow.sip("INVITE", flow.caller, flow.proxy)?;
            let invite = invitation(flow, "scscf", flow.far_proxy)?;
            let called = invite.header("P-Called-Party-ID").unwrap_or_default();
            equal("P-Called-Party-ID", uri_of(called), request_uri(&own))
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.3",
        text: "the S-CSCF of the callee stays in the dialog, and keeps P-Served-User to itself",
        when: is_recorded_call,
        check: |flow| {
            let invite = invitation(flow, "scscf", flow.far_proxy)?;
            stays(&invite, "scscf")?;
            lacks(&invite, "P-Served-User")
        },
    },
    Rule {
        section: "TS 24.229 5.2.1",
        text: "the P-CSCF of the callee tells the terminal nothing of charging",
        when: is_recorded_call,
        check: |flow| {
            let invite = flow.sip("INVITE", flow.far_proxy, flow.callee)?;
            lacks(&invite, "P-Charging-Vector")?;
            lacks(&invite, "P-Charging-Function-Addresses")
        },
    },
    Rule {
        section: "RFC 3261 12.2.1.1",
        text: "a request within the dialog passes the CSCFs that stayed in it, and no I-CSCF",
        when: is_answered,
        check: |flow| {
            flow.order(&[
                ("ACK", flow.caller, flow.proxy),
                ("ACK", flow.proxy, "scscf"),
                ("ACK", "scscf", flow.far_proxy),
                ("ACK", flow.far_proxy, flow.callee),
            ])?;
            match flow.place("ACK", "*", "icscf") {
                Ok(_) => Err("the I-CSCF gets the ACK".into()),
                Err(_) => Ok(()),
            }
        },
    },
];

#[cfg(test)]
mod tests {
    use super::super::{Noted, judge};
    use super::*;

    /// Calls through Kamailio, as `weir ims call --out` left them: of alice, who registers with a
    /// password, and of carol, who registers by AKA. Messages that no rule reads are left out.
    const CALL: &str = include_str!("../../tests/data/call.jsonl");
    const SERVER: &str = include_str!("../../tests/data/server.jsonl");

    fn recorded(text: &str) -> Vec<Noted> {
        text.lines().map(|line| Noted::from_json(line).unwrap()).collect()
    }

    /// The messages of this name between these parts, changed.
    fn changed(text: &str, [name, from, to]: [&str; 3], part: &str, other: &str) -> Vec<Noted> {
        let mut messages = recorded(text);
        let before = messages.clone();
        let is_it = |one: &&mut Noted| one.name == name && one.from == from && one.to == to;
        for message in messages.iter_mut().filter(is_it) {
            message.text = message.text.replace(part, other);
        }
        assert_ne!(messages, before, "{name} from {from} to {to} has no {part}");
        messages
    }

    fn without(text: &str, name: &str, from: &str) -> Vec<Noted> {
        let mut messages = recorded(text);
        let before = messages.len();
        messages.retain(|one| one.name != name || one.from != from);
        assert_ne!(messages.len(), before, "no {name} from {from}");
        messages
    }

    /// The rules of this file that are broken.
    fn broken(messages: &[Noted]) -> Vec<&'static str> {
        let judged = judge(messages).unwrap();
        let is_here = |rule: &Rule| RULES.iter().any(|one| one.text == rule.text);
        let broken = judged.iter().filter(|(rule, result)| result.is_err() && is_here(rule));
        broken.map(|(rule, _)| rule.text).collect()
    }

    #[test]
    fn recorded_calls_keep_all_rules() {
        let mut seen = Vec::new();
        for text in [CALL, SERVER] {
            let messages = recorded(text);
            assert_eq!(broken(&messages), [""; 0]);
            seen.extend(judge(&messages).unwrap().into_iter().map(|(rule, _)| rule.text));
        }
        for rule in RULES {
            assert!(seen.contains(&rule.text), "no call for '{}'", rule.text);
        }
    }

    /// For each rule, a call that breaks it.
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
        assert_eq!(breaches.len(), RULES.len());
        for (rule, messages) in RULES.iter().zip(&breaches) {
            let broken = broken(messages);
            assert!(broken.contains(&rule.text), "{}: {broken:?}", rule.text);
        }
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
