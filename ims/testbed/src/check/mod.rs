//! `weir ims check`: holds the messages of a recorded call against the standards.

mod core;
mod flows;

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use weir_nodes::sdp::Description;
use weir_nodes::sip::{Message, uri_of};

use crate::args;
use crate::layout::PARTS;
use crate::trace::Noted;

/// A rule with its section.
struct Rule {
    section: &'static str,
    text: &'static str,
    /// Whether it is about this flow at all.
    when: fn(&Flow<'_>) -> bool,
    check: fn(&Flow<'_>) -> Result<(), String>,
}

/// The messages of a call, and who is who.
struct Flow<'a> {
    messages: &'a [Noted],
    caller: &'a str,
    /// Empty if nobody was called.
    callee: &'a str,
    /// The P-CSCF of the caller.
    proxy: &'a str,
    /// The P-CSCF of the callee; empty if nobody was called.
    far_proxy: &'a str,
}

const P_CSCFS: [&str; 2] = ["pcscf", "epcscf"];

fn is_proxy(part: &str) -> bool {
    P_CSCFS.contains(&part)
}

fn is_terminal(part: &str) -> bool {
    PARTS.iter().all(|known| known.name != part)
}

impl<'a> Flow<'a> {
    fn new(messages: &'a [Noted]) -> Result<Self, String> {
        let [invite, register] = ["INVITE", "REGISTER"].map(|name| {
            messages
                .iter()
                .find(|one| one.name == name && is_terminal(&one.from) && is_proxy(&one.to))
        });
        // A registration alone is a flow too.
        let first = invite.or(register).ok_or("no INVITE and no REGISTER of a terminal")?;
        let called = messages
            .iter()
            .find(|one| one.name == "INVITE" && is_proxy(&one.from) && is_terminal(&one.to));
        let (far_proxy, callee) = called.map_or(("", ""), |one| (&one.from, &one.to));
        Ok(Self { messages, caller: &first.from, callee, proxy: &first.to, far_proxy })
    }

    /// Place of the first message of this name between these parts. A star stands for any part.
    fn place(&self, name: &str, from: &str, to: &str) -> Result<usize, String> {
        let found = self.messages.iter().position(|one| {
            one.name == name && ["*", &one.from].contains(&from) && ["*", &one.to].contains(&to)
        });
        found.ok_or_else(|| format!("no {name} from {from} to {to}"))
    }

    fn message(&self, name: &str, from: &str, to: &str) -> Result<&'a Noted, String> {
        Ok(&self.messages[self.place(name, from, to)?])
    }

    fn sip(&self, name: &str, from: &str, to: &str) -> Result<Message, String> {
        let message = self.message(name, from, to)?;
        Message::parse(message.text.as_bytes()).map_err(|error| format!("{name}: {error}"))
    }

    /// These messages, each after the one before it.
    fn order(&self, steps: &[(&str, &str, &str)]) -> Result<(), String> {
        let mut last = 0;
        for (name, from, to) in steps {
            let rest = Self { messages: &self.messages[last..], ..*self };
            last += rest.place(name, from, to).map_err(|why| format!("{why} at its place"))? + 1;
        }
        Ok(())
    }
}

fn always(_: &Flow<'_>) -> bool {
    true
}

/// The caller registers with a password or by AKA.
fn by_secret(flow: &Flow<'_>) -> bool {
    !flows::by_token(flow)
}

fn is_call(flow: &Flow<'_>) -> bool {
    !flow.callee.is_empty()
}

fn has(message: &Message, name: &str, part: &str) -> Result<(), String> {
    let values: Vec<&str> = message.all(name).collect();
    if values.iter().any(|value| value.contains(part)) {
        return Ok(());
    }
    Err(format!("{}: {name} is {values:?}, without '{part}'", message.method()))
}

fn contains(message: &Noted, part: &str) -> Result<(), String> {
    if message.text.contains(part) {
        Ok(())
    } else {
        Err(format!("{} has no {part}", message.name))
    }
}

fn description(message: &Message) -> Result<Description, String> {
    Description::parse(&message.body).map_err(|why| format!("{}: {why}", message.method()))
}

/// The rules of every registration and call. The order is that of a call.
const RULES: &[Rule] = &[
    Rule {
        section: "TS 24.229 5.1.1.2",
        text: "a terminal registers, is challenged, and answers the challenge",
        when: by_secret,
        check: |flow| {
            let (user, all) = (flow.caller, "*");
            let steps = ["REGISTER", "401 REGISTER", "REGISTER", "200 REGISTER"];
            let ways = [(user, all), (all, user), (user, all), (all, user)];
            let steps: Vec<_> =
                steps.iter().zip(ways).map(|(name, (from, to))| (*name, from, to)).collect();
            flow.order(&steps)
        },
    },
    Rule {
        section: "TS 24.229 5.1.1.2.1",
        text: "the first REGISTER names the private identity",
        when: by_secret,
        check: |flow| has(&flow.sip("REGISTER", flow.caller, "*")?, "Authorization", "username=\""),
    },
    Rule {
        section: "TS 29.228 6.1.1",
        text: "the I-CSCF asks for the S-CSCF with both identities and the visited network",
        when: always,
        check: |flow| {
            let uar = flow.message("UAR", "icscf", "hss")?;
            contains(uar, "User-Name=")?;
            contains(uar, "Public-Identity=")?;
            contains(uar, "Visited-Network-Identifier=")
        },
    },
    Rule {
        section: "TS 29.228 6.3.1",
        text: "the HSS answers a MAR with a vector",
        when: by_secret,
        check: |flow| {
            flow.order(&[("MAR", "scscf", "hss"), ("MAA 2001", "hss", "scscf")])?;
            contains(flow.message("MAA 2001", "hss", "*")?, "SIP-Auth-Data-Item=")
        },
    },
    Rule {
        section: "TS 29.228 6.1.2",
        text: "the HSS answers a SAR with the profile",
        when: always,
        check: |flow| {
            flow.order(&[("SAR", "scscf", "hss"), ("SAA 2001", "hss", "scscf")])?;
            contains(flow.message("SAA 2001", "hss", "*")?, "User-Data=")
        },
    },
    Rule {
        section: "TS 24.229 5.4.1.2.2",
        text: "a registration gives a service route and the associated identities",
        when: always,
        check: |flow| {
            let response = flow.sip("200 REGISTER", "*", flow.caller)?;
            has(&response, "Service-Route", "sip:orig@")?;
            has(&response, "P-Associated-URI", "sip:")
        },
    },
    Rule {
        section: "TS 24.229 5.1.3.1",
        text: "the caller supports 100rel and preconditions",
        when: is_call,
        check: |flow| {
            let invite = flow.sip("INVITE", flow.caller, "*")?;
            has(&invite, "Supported", "100rel")?;
            has(&invite, "Supported", "precondition")
        },
    },
    Rule {
        section: "TS 24.229 5.1.2A.1",
        text: "the caller follows its service route",
        when: is_call,
        check: |flow| has(&flow.sip("INVITE", flow.caller, "*")?, "Route", "sip:orig@"),
    },
    Rule {
        section: "RFC 3312 5",
        text: "the offer has preconditions whose resources are not there yet",
        when: is_call,
        check: |flow| {
            let offer = description(&flow.sip("INVITE", flow.caller, "*")?)?;
            if offer.resources.local { Err("the offer has its resources".into()) } else { Ok(()) }
        },
    },
    Rule {
        section: "TS 24.229 5.2.6.3",
        text: "the network asserts the identity of the caller",
        when: is_call,
        check: |flow| {
            let own = flow.sip("INVITE", flow.caller, "*")?;
            let identity = uri_of(own.header("From").unwrap_or_default());
            has(&flow.sip("INVITE", "*", flow.callee)?, "P-Asserted-Identity", identity)
        },
    },
    Rule {
        section: "TS 29.228 6.1.4",
        text: "the I-CSCF asks where the callee is before the callee gets the INVITE",
        when: is_call,
        check: |flow| {
            flow.order(&[
                ("LIR", "icscf", "hss"),
                ("LIA 2001", "hss", "icscf"),
                ("INVITE", "*", flow.callee),
            ])
        },
    },
    Rule {
        section: "RFC 3262 3",
        text: "the 183 is reliable",
        when: is_call,
        check: |flow| {
            let progress = flow.sip("183 INVITE", "*", flow.caller)?;
            has(&progress, "Require", "100rel")?;
            has(&progress, "RSeq", "")
        },
    },
    Rule {
        section: "TS 29.213 B.2",
        text: "the PCRF has authorised both sides before the caller gets the 183",
        when: is_call,
        check: |flow| {
            flow.order(&[
                ("183 INVITE", flow.callee, "*"),
                ("AAR", "*", "pcrf"),
                ("AAR", "*", "pcrf"),
                ("183 INVITE", "*", flow.caller),
            ])
        },
    },
    Rule {
        section: "TS 29.214 5.6.1",
        text: "an AAR names the terminal and describes the media",
        when: is_call,
        check: |flow| {
            let aar = flow.message("AAR", "*", "pcrf")?;
            contains(aar, "Framed-IP-Address=")?;
            contains(aar, "Media-Component-Description=")
        },
    },
    Rule {
        section: "TS 29.214 5.3.8",
        text: "each medium of an AAR has filters in both directions",
        when: is_call,
        check: |flow| {
            let aar = flow.message("AAR", "*", "pcrf")?;
            let media = aar.text.matches("Media-Component-Description=").count();
            for direction in ["permit out", "permit in"] {
                if aar.text.matches(direction).count() < media {
                    return Err(format!("{media} media and fewer filters '{direction}'"));
                }
            }
            Ok(())
        },
    },
    Rule {
        section: "RFC 3262 7.2",
        text: "the caller acknowledges the 183 by its number",
        when: is_call,
        check: |flow| {
            let progress = flow.sip("183 INVITE", "*", flow.caller)?;
            let number = progress.header("RSeq").unwrap_or_default().to_owned();
            let prack = flow.sip("PRACK", flow.caller, "*")?;
            let acknowledged = prack.header("RAck").unwrap_or_default();
            if acknowledged.split(' ').next() == Some(number.as_str()) {
                return Ok(());
            }
            Err(format!("RSeq is {number} and RAck is '{acknowledged}'"))
        },
    },
    Rule {
        section: "RFC 3312 7",
        text: "the caller says in an UPDATE that its resources are there",
        when: is_call,
        check: |flow| {
            let update = description(&flow.sip("UPDATE", flow.caller, "*")?)?;
            if update.resources.local { Ok(()) } else { Err("the UPDATE has none".into()) }
        },
    },
    Rule {
        section: "RFC 3312 8",
        text: "the callee rings only after the UPDATE",
        when: is_call,
        check: |flow| {
            flow.order(&[("UPDATE", "*", flow.callee), ("180 INVITE", flow.callee, "*")])?;
            let (ringing, update) = (
                flow.place("180 INVITE", flow.callee, "*")?,
                flow.place("UPDATE", "*", flow.callee)?,
            );
            if ringing > update { Ok(()) } else { Err("it rang before".into()) }
        },
    },
    Rule {
        section: "RFC 3261 13.2.2.4",
        text: "the caller acknowledges the 200",
        when: is_call,
        check: |flow| flow.order(&[("200 INVITE", "*", flow.caller), ("ACK", flow.caller, "*")]),
    },
    Rule {
        section: "TS 29.214 4.4.4",
        text: "each Rx session ends with the call",
        when: is_call,
        check: |flow| {
            let [begun, ended] = ["AAR", "STR"].map(|name| {
                let of = flow.messages.iter().filter(|one| one.name == name);
                of.filter_map(|one| one.text.split(' ').nth(1)).collect::<BTreeSet<_>>()
            });
            let open: Vec<&str> = begun.difference(&ended).copied().collect();
            if open.is_empty() { Ok(()) } else { Err(format!("no STR for {}", open.join(", "))) }
        },
    },
];

/// A rule, and why it is broken if it is.
type Verdict = (&'static Rule, Result<(), String>);

/// Judges the rules that are about these messages. Fails if they are neither a call nor a
/// registration.
fn judge(messages: &[Noted]) -> Result<Vec<Verdict>, String> {
    let flow = Flow::new(messages)?;
    let rules = all().filter(|rule| (rule.when)(&flow));
    Ok(rules.map(|rule| (rule, (rule.check)(&flow))).collect())
}

/// All rules.
fn all() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(core::RULES).chain(flows::RULES)
}

/// `weir ims check`.
pub(crate) fn check(args: &args::Check) -> anyhow::Result<ExitCode> {
    let path = args.record.join("messages.jsonl");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let messages: Vec<Noted> = text.lines().filter_map(Noted::from_json).collect();
    ensure!(
        messages.len() == text.lines().count(),
        "{} has lines that are no messages",
        path.display()
    );
    let judged = judge(&messages).map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?;
    for (rule, result) in &judged {
        let word = if result.is_ok() { "holds " } else { "BROKEN" };
        println!("{word} {:20} {}", rule.section, rule.text);
        if let Err(why) = result {
            println!("       {why}");
        }
    }
    if let Some(path) = &args.junit {
        fs::write(path, junit(&judged)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{} rules are about flows that are not in this record", all().count() - judged.len());
    let broken = judged.iter().filter(|(_, result)| result.is_err()).count();
    println!("{} rules hold, {broken} are broken", judged.len() - broken);
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn junit(judged: &[(&Rule, Result<(), String>)]) -> anyhow::Result<String> {
    let mut report = Report::new("weir ims check");
    let mut suite = TestSuite::new("call");
    for (rule, result) in judged {
        let status = match result {
            Ok(()) => TestCaseStatus::success(),
            Err(why) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(why.clone());
                status
            }
        };
        let mut case = TestCase::new(rule.text, status);
        case.set_classname(rule.section);
        suite.add_test_case(case);
    }
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of alice and bob through Kamailio, as `weir ims call alice bob --out` left it.
    fn recorded() -> Vec<Noted> {
        let text = include_str!("../../tests/data/call.jsonl");
        text.lines().map(|line| Noted::from_json(line).unwrap()).collect()
    }

    fn broken(messages: &[Noted]) -> Vec<&'static str> {
        let judged = judge(messages).unwrap();
        judged.iter().filter(|(_, result)| result.is_err()).map(|(rule, _)| rule.text).collect()
    }

    fn without(name: &str, from: &str) -> Vec<Noted> {
        let mut messages = recorded();
        messages.retain(|one| one.name != name || (from != "*" && one.from != from));
        messages
    }

    /// The text of all messages of this name, changed.
    fn changed(name: &str, from: &str, to: &str) -> Vec<Noted> {
        let mut messages = recorded();
        let before = messages.clone();
        for message in messages.iter_mut().filter(|one| one.name == name) {
            message.text = message.text.replace(from, to);
        }
        assert_ne!(messages, before, "{name} has no {from}");
        messages
    }

    #[test]
    fn a_recorded_call_keeps_all_rules() {
        assert_eq!(broken(&recorded()), [""; 0]);
    }

    /// For each rule, a call that breaks it.
    #[test]
    fn each_rule_can_be_broken() {
        let mut early = recorded();
        let ringing = early.iter().position(|one| one.name == "180 INVITE").unwrap();
        let ringing = early.remove(ringing);
        let progress = early.iter().position(|one| one.name == "183 INVITE").unwrap();
        early.insert(progress, ringing);
        let mut late = recorded();
        let first = late.iter().position(|one| one.name == "AAR").unwrap();
        let aar = late.remove(first);
        late.push(aar);
        let breaches = [
            without("401 REGISTER", "*"),
            changed("REGISTER", "username=", "user="),
            changed("UAR", "Visited-Network-Identifier=", "x="),
            changed("MAA 2001", "SIP-Auth-Data-Item=", "x="),
            changed("SAA 2001", "User-Data=", "x="),
            changed("200 REGISTER", "Service-Route", "X"),
            changed("INVITE", "100rel, ", ""),
            changed("INVITE", "sip:orig@", "sip:"),
            changed("INVITE", "qos local none", "qos local sendrecv"),
            changed("INVITE", "P-Asserted-Identity", "X"),
            without("LIR", "*"),
            changed("183 INVITE", "100rel", "x"),
            late,
            changed("AAR", "Framed-IP-Address=", "x="),
            changed("AAR", "permit in", "deny in"),
            changed("PRACK", "RAck: ", "RAck: 7"),
            changed("UPDATE", "qos local sendrecv", "qos local none"),
            early,
            without("ACK", "*"),
            without("STR", "*"),
        ];
        assert_eq!(breaches.len(), RULES.len());
        for (rule, messages) in RULES.iter().zip(&breaches) {
            let broken = broken(messages);
            assert!(broken.contains(&rule.text), "{}: {broken:?}", rule.text);
        }
    }

    #[test]
    fn a_junit_file_has_a_case_for_each_rule() {
        let messages = without("STR", "*");
        let judged = judge(&messages).unwrap();
        let text = junit(&judged).unwrap();
        assert_eq!(text.matches("<testcase ").count(), judged.len());
        assert_eq!(text.matches("<failure ").count(), 1);
    }
}
