//! Rules of flows that not every call has: registration with a token, an application server, the
//! facilitator, the media gateway, and hold.

use weir_nodes::sip::{Message, uri_of};

use super::Check::{Absent, By, Header, Order, Text};
use super::{CALLEE, CALLER, Flow, Rule, contains, has};
use crate::layout::{GATEWAYS, address};

/// The caller registers with a token (registrations 2 and 3 of the thesis, 4.2.3).
pub(super) fn by_token(flow: &Flow<'_>) -> bool {
    let first = flow.sip("REGISTER", CALLER, "*");
    first.is_ok_and(|register| has(&register, "Authorization", "Bearer ").is_ok())
}

fn by_pool(flow: &Flow<'_>) -> bool {
    by_token(flow) && flow.place("POST /visit", CALLER, "wwsf").is_ok()
}

fn by_log_in(flow: &Flow<'_>) -> bool {
    by_token(flow) && !by_pool(flow)
}

fn through_server(flow: &Flow<'_>) -> bool {
    flow.place("INVITE", "scscf", "as").is_ok()
}

fn third_party(flow: &Flow<'_>) -> bool {
    flow.place("REGISTER", "scscf", "as").is_ok()
}

fn facilitated(flow: &Flow<'_>) -> bool {
    flow.place("POST call begin", "as", "facilitator").is_ok()
}

fn answered_with_video(flow: &Flow<'_>) -> bool {
    facilitated(flow) && flow.place("200 INVITE", "*", CALLER).is_ok()
}

/// The line of the callee's offer that sends its media to a gateway of ours; `None` if they do
/// not.
fn gateway(flow: &Flow<'_>) -> Option<String> {
    let invite = flow.sip("INVITE", "*", CALLEE).ok()?;
    let lines = GATEWAYS.map(|name| format!("c=IN IP4 {}\r\n", address(name)));
    lines.into_iter().find(|line| invite.body.contains(line))
}

fn through_gateway(flow: &Flow<'_>) -> bool {
    gateway(flow).is_some()
}

/// The first description within the call by which somebody holds the other party.
fn holding<'a>(flow: &Flow<'a>) -> Option<(&'a str, Message)> {
    flow.messages.iter().find_map(|one| {
        let is_terminal = one.from == flow.caller || one.from == flow.callee;
        let message = Message::parse(one.text.as_bytes()).ok()?;
        let is_offer = one.name == "UPDATE" || one.name == "INVITE";
        let holds = message.body.contains("a=sendonly") || message.body.contains("a=inactive");
        (is_terminal && is_offer && holds).then_some((one.from.as_str(), message))
    })
}

fn holds(flow: &Flow<'_>) -> bool {
    holding(flow).is_some()
}

fn names_the_way_back(flow: &Flow<'_>) -> Result<(), String> {
    let routes = flow.sip("INVITE", "scscf", "as")?.list("Route");
    let [server, back, ..] = &routes[..] else { return Err(format!("Route: {routes:?}")) };
    if !uri_of(server).contains("as.") {
        return Err(format!("{server} is no application server"));
    }
    if !uri_of(back).contains("scscf.") {
        return Err(format!("{back} does not lead back"));
    }
    Ok(())
}

fn answers_through_gateway(flow: &Flow<'_>) -> Result<(), String> {
    let gateway = gateway(flow).ok_or("no gateway")?;
    for one in flow.messages {
        if one.to == flow.caller && one.name.ends_with(" INVITE") && one.text.contains("m=audio") {
            return contains(one, &gateway);
        }
    }
    Err("no answer with a description".into())
}

fn answers_without_sending(flow: &Flow<'_>) -> Result<(), String> {
    let (holder, offer) = holding(flow).ok_or("nobody holds")?;
    for one in flow.messages {
        let Ok(answer) = Message::parse(one.text.as_bytes()) else { continue };
        let is_its_answer = one.to == holder
            && answer.code() == Some(200)
            && answer.header("Call-ID") == offer.header("Call-ID")
            && answer.header("CSeq") == offer.header("CSeq")
            && answer.parameter("From", "tag") == offer.parameter("From", "tag");
        if !is_its_answer {
            continue;
        }
        if answer.body.contains("a=sendrecv") || answer.body.contains("a=sendonly") {
            return Err("the answer sends".into());
        }
        return Ok(());
    }
    Err("no answer".into())
}

/// The rules. The order is that of a call.
pub(super) const RULES: &[Rule] = &[
    Rule {
        section: "TS 33.203 X.3",
        text: "a user logs in before the web server asks for a token",
        when: by_log_in,
        checks: &[Order(&[("POST /login", CALLER, "wwsf"), ("POST /token", "wwsf", "waf")])],
    },
    Rule {
        section: "TS 33.203 X.4",
        text: "a visitor gets an identity of the pool before the web server asks for a token",
        when: by_pool,
        checks: &[Order(&[("POST /visit", CALLER, "wwsf"), ("POST /token", "wwsf", "waf")])],
    },
    Rule {
        section: "RFC 7662 2.1",
        text: "the eP-CSCF asks what a token is worth before the S-CSCF takes the registration",
        when: by_token,
        checks: &[Order(&[
            ("REGISTER", CALLER, "epcscf"),
            ("POST /token/introspection", "epcscf", "waf"),
            ("200 /token/introspection", "waf", "epcscf"),
            ("SAR", "scscf", "hss"),
            ("200 REGISTER", "epcscf", CALLER),
        ])],
    },
    Rule {
        section: "RFC 8898 2",
        text: "who registers with a token gets no challenge",
        when: by_token,
        checks: &[Absent(("401 REGISTER", "*", CALLER))],
    },
    Rule {
        section: "TS 24.229 5.4.1.7",
        text: "the S-CSCF registers the user at the application server, which answers",
        when: third_party,
        checks: &[
            Header(("REGISTER", "scscf", "as"), "From", "scscf."),
            Header(("REGISTER", "scscf", "as"), "To", "sip:"),
            Order(&[("REGISTER", "scscf", "as"), ("200 REGISTER", "as", "scscf")]),
        ],
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the INVITE to an application server names the server and the way back",
        when: through_server,
        checks: &[By(names_the_way_back)],
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the INVITE to an application server names the user that is served, and the case",
        when: through_server,
        checks: &[Header(("INVITE", "scscf", "as"), "P-Served-User", "sescase=")],
    },
    Rule {
        section: "TS 24.229 5.7.4",
        text: "the application server hands the INVITE back before the callee gets it",
        when: through_server,
        checks: &[Order(&[
            ("INVITE", "scscf", "as"),
            ("INVITE", "as", "scscf"),
            ("INVITE", "*", CALLEE),
        ])],
    },
    Rule {
        section: "delft 4.1",
        text: "the facilitator hears of the call and sends both parties a link",
        when: facilitated,
        checks: &[
            Order(&[
                ("POST call begin", "as", "facilitator"),
                ("MESSAGE", "facilitator", "icscf"),
                ("MESSAGE", "*", CALLER),
            ]),
            Text(("MESSAGE", "*", CALLER), "https://"),
            Order(&[
                ("POST call begin", "as", "facilitator"),
                ("MESSAGE", "facilitator", "icscf"),
                ("MESSAGE", "*", CALLEE),
            ]),
            Text(("MESSAGE", "*", CALLEE), "https://"),
        ],
    },
    Rule {
        section: "delft 4.1",
        text: "the video ends with the call",
        when: answered_with_video,
        checks: &[Order(&[
            ("POST call answered", "as", "facilitator"),
            ("BYE", "*", "*"),
            ("POST call ended", "as", "facilitator"),
        ])],
    },
    Rule {
        section: "TS 24.371 5A.4",
        text: "media that go through a gateway do so on both sides",
        when: through_gateway,
        checks: &[By(answers_through_gateway)],
    },
    Rule {
        section: "RFC 3264 6.1",
        text: "who is held answers that it sends nothing",
        when: holds,
        checks: &[By(answers_without_sending)],
    },
];

#[cfg(test)]
mod tests {
    use super::super::Noted;
    use super::super::testing::{
        SERVER, are_broken_by, are_kept, changed, moved, recorded, without,
    };
    use super::*;

    const LOGIN: &str = include_str!("../../tests/data/login.jsonl");
    const VISIT: &str = include_str!("../../tests/data/visit.jsonl");
    const FACILITATOR: &str = include_str!("../../tests/data/facilitator.jsonl");

    #[test]
    fn each_rule_is_about_a_recorded_flow_that_keeps_it() {
        are_kept(RULES, &[LOGIN, VISIT, SERVER, FACILITATOR]);
    }

    #[test]
    fn each_rule_can_be_broken() {
        let mut challenged = recorded(LOGIN);
        let is_answer = |one: &Noted| one.name == "200 REGISTER" && one.to == "alice";
        let register = challenged.iter().position(is_answer).unwrap();
        let mut refusal = challenged[register].clone();
        refusal.name = "401 REGISTER".into();
        challenged.insert(register, refusal);
        let [invite, message, progress, update] =
            ["INVITE", "MESSAGE", "183 INVITE", "200 UPDATE"].map(|name| [name, "*", "*"]);
        let breaches = [
            without(LOGIN, "POST /login", "alice"),
            moved(VISIT, "POST /visit", None),
            without(LOGIN, "POST /token/introspection", "epcscf"),
            challenged,
            without(SERVER, "200 REGISTER", "as"),
            changed(SERVER, invite, "iscmark@scscf.", "iscmark@elsewhere."),
            changed(SERVER, invite, "P-Served-User", "X"),
            without(SERVER, "INVITE", "as"),
            changed(FACILITATOR, message, "https://", "ftp://"),
            without(FACILITATOR, "POST call ended", "as"),
            changed(LOGIN, progress, "c=IN IP4 10.46.0.7", "c=IN IP4 10.46.2.2"),
            changed(LOGIN, update, "a=recvonly", "a=sendrecv"),
        ];
        are_broken_by(RULES, &breaches);
    }
}
