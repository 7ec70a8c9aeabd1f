//! Rules of flows that not every call has: registration with a token, an application server, the
//! facilitator, the media gateway, and hold.

use weir_nodes::sip::{Message, uri_of};

use super::{Flow, Rule, contains, has};
use crate::layout::{GATEWAYS, address};

/// The caller registers with a token (registrations 2 and 3 of the thesis, 4.2.3).
pub(super) fn by_token(flow: &Flow<'_>) -> bool {
    let first = flow.sip("REGISTER", flow.caller, "*");
    first.is_ok_and(|register| has(&register, "Authorization", "Bearer ").is_ok())
}

fn by_pool(flow: &Flow<'_>) -> bool {
    by_token(flow) && flow.place("POST /visit", flow.caller, "wwsf").is_ok()
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
    facilitated(flow) && flow.place("200 INVITE", "*", flow.caller).is_ok()
}

/// The line of the callee's offer that sends its media to a gateway of ours; `None` if they do
/// not.
fn gateway(flow: &Flow<'_>) -> Option<String> {
    let invite = flow.sip("INVITE", "*", flow.callee).ok()?;
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

/// The rules. The order is that of a call.
pub(super) const RULES: &[Rule] = &[
    Rule {
        section: "TS 33.203 X.3",
        text: "a user logs in before the web server asks for a token",
        when: by_log_in,
        check: |flow| {
            flow.order(&[("POST /login", flow.caller, "wwsf"), ("POST /token", "wwsf", "waf")])
        },
    },
    Rule {
        section: "TS 33.203 X.4",
        text: "a visitor gets an identity of the pool before the web server asks for a token",
        when: by_pool,
        check: |flow| {
            flow.order(&[("POST /visit", flow.caller, "wwsf"), ("POST /token", "wwsf", "waf")])
        },
    },
    Rule {
        section: "RFC 7662 2.1",
        text: "the eP-CSCF asks what a token is worth before the S-CSCF takes the registration",
        when: by_token,
        check: |flow| {
            flow.order(&[
                ("REGISTER", flow.caller, "epcscf"),
                ("POST /token/introspection", "epcscf", "waf"),
                ("200 /token/introspection", "waf", "epcscf"),
                ("SAR", "scscf", "hss"),
                ("200 REGISTER", "epcscf", flow.caller),
            ])
        },
    },
    Rule {
        section: "RFC 8898 2",
        text: "who registers with a token gets no challenge",
        when: by_token,
        check: |flow| match flow.place("401 REGISTER", "*", flow.caller) {
            Ok(_) => Err("there is a 401".into()),
            Err(_) => Ok(()),
        },
    },
    Rule {
        section: "TS 24.229 5.4.1.7",
        text: "the S-CSCF registers the user at the application server, which answers",
        when: third_party,
        check: |flow| {
            let register = flow.sip("REGISTER", "scscf", "as")?;
            has(&register, "From", "scscf.")?;
            has(&register, "To", "sip:")?;
            flow.order(&[("REGISTER", "scscf", "as"), ("200 REGISTER", "as", "scscf")])
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the INVITE to an application server names the server and the way back",
        when: through_server,
        check: |flow| {
            let routes = flow.sip("INVITE", "scscf", "as")?.list("Route");
            let [server, back, ..] = &routes[..] else { return Err(format!("Route: {routes:?}")) };
            if !uri_of(server).contains("as.") {
                return Err(format!("{server} is no application server"));
            }
            if !uri_of(back).contains("scscf.") {
                return Err(format!("{back} does not lead back"));
            }
            Ok(())
        },
    },
    Rule {
        section: "TS 24.229 5.4.3.2",
        text: "the INVITE to an application server names the user that is served, and the case",
        when: through_server,
        check: |flow| {
            let invite = flow.sip("INVITE", "scscf", "as")?;
            has(&invite, "P-Served-User", "sescase=")
        },
    },
    Rule {
        section: "TS 24.229 5.7.4",
        text: "the application server hands the INVITE back before the callee gets it",
        when: through_server,
        check: |flow| {
            flow.order(&[
                ("INVITE", "scscf", "as"),
                ("INVITE", "as", "scscf"),
                ("INVITE", "*", flow.callee),
            ])
        },
    },
    Rule {
        section: "delft 4.1",
        text: "the facilitator hears of the call and sends both parties a link",
        when: facilitated,
        check: |flow| {
            for party in [flow.caller, flow.callee] {
                flow.order(&[
                    ("POST call begin", "as", "facilitator"),
                    ("MESSAGE", "facilitator", "icscf"),
                    ("MESSAGE", "*", party),
                ])?;
                let name =
                    flow.messages.iter().find(|one| one.name == "MESSAGE" && one.to == party);
                contains(name.ok_or("no MESSAGE")?, "https://")?;
            }
            Ok(())
        },
    },
    Rule {
        section: "delft 4.1",
        text: "the video ends with the call",
        when: answered_with_video,
        check: |flow| {
            flow.order(&[
                ("POST call answered", "as", "facilitator"),
                ("BYE", "*", "*"),
                ("POST call ended", "as", "facilitator"),
            ])
        },
    },
    Rule {
        section: "TS 24.371 5A.4",
        text: "media that go through a gateway do so on both sides",
        when: through_gateway,
        check: |flow| {
            let answer = flow.messages.iter().find(|one| {
                one.to == flow.caller
                    && one.name.ends_with(" INVITE")
                    && one.text.contains("m=audio")
            });
            let gateway = gateway(flow).ok_or("no gateway")?;
            contains(answer.ok_or("no answer with a description")?, &gateway)
        },
    },
    Rule {
        section: "RFC 3264 6.1",
        text: "who is held answers that it sends nothing",
        when: |flow| holding(flow).is_some(),
        check: |flow| {
            let (holder, offer) = holding(flow).ok_or("nobody holds")?;
            let answers = flow.messages.iter().filter(|one| one.to == holder);
            let mut answers = answers.filter_map(|one| Message::parse(one.text.as_bytes()).ok());
            let answer = answers.find(|one| {
                one.code() == Some(200)
                    && one.header("Call-ID") == offer.header("Call-ID")
                    && one.header("CSeq") == offer.header("CSeq")
                    && one.parameter("From", "tag") == offer.parameter("From", "tag")
            });
            let answer = answer.ok_or("no answer")?;
            if answer.body.contains("a=sendrecv") || answer.body.contains("a=sendonly") {
                return Err("the answer sends".into());
            }
            Ok(())
        },
    },
];

#[cfg(test)]
mod tests {
    use super::super::{Noted, judge};
    use super::*;

    /// Flows through the real components, as `weir ims record` and `weir ims call --out` left them;
    /// messages that no rule reads, and lines of descriptions that say nothing here, are left out.
    const LOGIN: &str = include_str!("../../tests/data/login.jsonl");
    const VISIT: &str = include_str!("../../tests/data/visit.jsonl");
    const SERVER: &str = include_str!("../../tests/data/server.jsonl");
    const FACILITATOR: &str = include_str!("../../tests/data/facilitator.jsonl");

    fn recorded(text: &str) -> Vec<Noted> {
        text.lines().map(|line| Noted::from_json(line).unwrap()).collect()
    }

    /// The rules of this file that are about these messages, and those of them that are broken.
    fn judged(messages: &[Noted]) -> (Vec<&'static str>, Vec<&'static str>) {
        let here = |text: &str| RULES.iter().any(|rule| rule.text == text);
        let all = judge(messages).unwrap();
        let all: Vec<_> = all.iter().filter(|(rule, _)| here(rule.text)).collect();
        let broken = all.iter().filter(|(_, result)| result.is_err());
        (
            all.iter().map(|(rule, _)| rule.text).collect(),
            broken.map(|(rule, _)| rule.text).collect(),
        )
    }

    fn without(text: &str, name: &str, from: &str) -> Vec<Noted> {
        let mut messages = recorded(text);
        let before = messages.len();
        messages.retain(|one| one.name != name || one.from != from);
        assert_ne!(messages.len(), before, "no {name} from {from}");
        messages
    }

    fn changed(text: &str, name: &str, from: &str, to: &str) -> Vec<Noted> {
        let mut messages = recorded(text);
        let before = messages.clone();
        for message in messages.iter_mut().filter(|one| one.name == name) {
            message.text = message.text.replace(from, to);
        }
        assert_ne!(messages, before, "{name} has no {from}");
        messages
    }

    #[test]
    fn each_rule_is_about_a_recorded_flow_that_keeps_it() {
        let mut seen = Vec::new();
        for text in [LOGIN, VISIT, SERVER, FACILITATOR] {
            let (all, broken) = judged(&recorded(text));
            assert_eq!(broken, [""; 0]);
            seen.extend(all);
        }
        for rule in RULES {
            assert!(seen.contains(&rule.text), "no flow for '{}'", rule.text);
        }
    }

    /// For each rule, a flow that breaks it.
    #[test]
    fn each_rule_can_be_broken() {
        let mut challenged = recorded(LOGIN);
        let is_answer = |one: &Noted| one.name == "200 REGISTER" && one.to == "alice";
        let register = challenged.iter().position(is_answer).unwrap();
        let mut refusal = challenged[register].clone();
        refusal.name = "401 REGISTER".into();
        challenged.insert(register, refusal);
        let mut late = recorded(VISIT);
        let visit = late.iter().position(|one| one.name == "POST /visit").unwrap();
        let visit = late.remove(visit);
        late.push(visit);
        let breaches = [
            without(LOGIN, "POST /login", "alice"),
            late,
            without(LOGIN, "POST /token/introspection", "epcscf"),
            challenged,
            without(SERVER, "200 REGISTER", "as"),
            changed(SERVER, "INVITE", "iscmark@scscf.", "iscmark@elsewhere."),
            changed(SERVER, "INVITE", "P-Served-User", "X"),
            without(SERVER, "INVITE", "as"),
            changed(FACILITATOR, "MESSAGE", "https://", "ftp://"),
            without(FACILITATOR, "POST call ended", "as"),
            changed(LOGIN, "183 INVITE", "c=IN IP4 10.46.0.7", "c=IN IP4 10.46.2.2"),
            changed(LOGIN, "200 UPDATE", "a=recvonly", "a=sendrecv"),
        ];
        assert_eq!(breaches.len(), RULES.len());
        for (rule, messages) in RULES.iter().zip(&breaches) {
            let (_, broken) = judged(messages);
            assert!(broken.contains(&rule.text), "{}: {broken:?}", rule.text);
        }
    }
}
