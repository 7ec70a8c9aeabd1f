//! `weir ims check`: holds the messages of a recorded call against the standards.

mod core;
mod flows;
#[cfg(test)]
mod testing;

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use weir_nodes::sdp::Description;
use weir_nodes::sip::{Message, uri_of};

use self::Check::{By, Header, Order, Text};
use crate::args;
use crate::layout::PARTS;
use crate::trace::Noted;

/// A rule with its section.
struct Rule {
    section: &'static str,
    text: &'static str,
    /// Whether it is about this flow at all.
    when: fn(&Flow<'_>) -> bool,
    /// What it asks for. The first that fails says why.
    checks: &'static [Check],
}

/// A message: its name, who sends it and who gets it. A star stands for any part.
type Hop = (&'static str, &'static str, &'static str);

const CALLER: &str = "the caller";
const CALLEE: &str = "the callee";
/// The P-CSCF of the caller.
const PROXY: &str = "the caller's P-CSCF";
/// The P-CSCF of the callee.
const FAR_PROXY: &str = "the callee's P-CSCF";

/// What a rule asks of a flow.
enum Check {
    /// These messages come, each after the one before it.
    Order(&'static [Hop]),
    /// The first such SIP message has this header, and one of its values this part.
    Header(Hop, &'static str, &'static str),
    /// The first such message has this text.
    Text(Hop, &'static str),
    /// There is no such message.
    Absent(Hop),
    /// What this function asks for.
    By(fn(&Flow<'_>) -> Result<(), String>),
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

    /// The part that this name of a [`Hop`] stands for.
    fn part<'b>(&'b self, name: &'b str) -> &'b str {
        match name {
            CALLER => self.caller,
            CALLEE => self.callee,
            PROXY => self.proxy,
            FAR_PROXY => self.far_proxy,
            other => other,
        }
    }

    /// Place of the first message of this name between these parts. A star stands for any part.
    fn place(&self, name: &str, from: &str, to: &str) -> Result<usize, String> {
        let (from, to) = (self.part(from), self.part(to));
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
    fn order(&self, steps: &[Hop]) -> Result<(), String> {
        let mut last = 0;
        for (name, from, to) in steps {
            let rest = Self { messages: &self.messages[last..], ..*self };
            last += rest.place(name, from, to).map_err(|why| format!("{why} at its place"))? + 1;
        }
        Ok(())
    }

    /// Why this rule is broken, if it is.
    fn keeps(&self, rule: &Rule) -> Result<(), String> {
        for check in rule.checks {
            match *check {
                Check::Order(steps) => self.order(steps)?,
                Check::Header((name, from, to), header, part) => {
                    has(&self.sip(name, from, to)?, header, part)?;
                }
                Check::Text((name, from, to), part) => {
                    contains(self.message(name, from, to)?, part)?;
                }
                Check::Absent((name, from, to)) => {
                    if self.place(name, from, to).is_ok() {
                        return Err(format!("there is a {name}"));
                    }
                }
                Check::By(function) => function(self)?,
            }
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

fn has_no_resources_yet(flow: &Flow<'_>) -> Result<(), String> {
    let offer = description(&flow.sip("INVITE", CALLER, "*")?)?;
    if offer.resources.local { Err("the offer has its resources".into()) } else { Ok(()) }
}

fn asserts_identity(flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.sip("INVITE", CALLER, "*")?;
    let identity = uri_of(own.header("From").unwrap_or_default());
    has(&flow.sip("INVITE", "*", CALLEE)?, "P-Asserted-Identity", identity)
}

fn filters_both_directions(flow: &Flow<'_>) -> Result<(), String> {
    let aar = flow.message("AAR", "*", "pcrf")?;
    let media = aar.text.matches("Media-Component-Description=").count();
    for direction in ["permit out", "permit in"] {
        if aar.text.matches(direction).count() < media {
            return Err(format!("{media} media and fewer filters '{direction}'"));
        }
    }
    Ok(())
}

fn acknowledges_by_number(flow: &Flow<'_>) -> Result<(), String> {
    let progress = flow.sip("183 INVITE", "*", CALLER)?;
    let number = progress.header("RSeq").unwrap_or_default();
    let prack = flow.sip("PRACK", CALLER, "*")?;
    let acknowledged = prack.header("RAck").unwrap_or_default();
    if acknowledged.split(' ').next() == Some(number) {
        return Ok(());
    }
    Err(format!("RSeq is {number} and RAck is '{acknowledged}'"))
}

fn says_that_resources_are_there(flow: &Flow<'_>) -> Result<(), String> {
    let update = description(&flow.sip("UPDATE", CALLER, "*")?)?;
    if update.resources.local { Ok(()) } else { Err("the UPDATE has none".into()) }
}

fn did_not_ring_before(flow: &Flow<'_>) -> Result<(), String> {
    let ringing = flow.place("180 INVITE", CALLEE, "*")?;
    let update = flow.place("UPDATE", "*", CALLEE)?;
    if ringing > update { Ok(()) } else { Err("it rang before".into()) }
}

/// The sessions of the messages of this name.
fn sessions<'a>(flow: &Flow<'a>, name: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for one in flow.messages {
        if one.name == name {
            found.extend(one.text.split(' ').nth(1));
        }
    }
    found
}

fn sessions_end(flow: &Flow<'_>) -> Result<(), String> {
    let ended = sessions(flow, "STR");
    let open: Vec<&str> = sessions(flow, "AAR").difference(&ended).copied().collect();
    if open.is_empty() { Ok(()) } else { Err(format!("no STR for {}", open.join(", "))) }
}

/// The rules of every registration and call. The order is that of a call.
const RULES: &[Rule] = &[
    Rule {
        section: "TS 24.229 5.1.1.2",
        text: "a terminal registers, is challenged, and answers the challenge",
        when: by_secret,
        checks: &[Order(&[
            ("REGISTER", CALLER, "*"),
            ("401 REGISTER", "*", CALLER),
            ("REGISTER", CALLER, "*"),
            ("200 REGISTER", "*", CALLER),
        ])],
    },
    Rule {
        section: "TS 24.229 5.1.1.2.1",
        text: "the first REGISTER names the private identity",
        when: by_secret,
        checks: &[Header(("REGISTER", CALLER, "*"), "Authorization", "username=\"")],
    },
    Rule {
        section: "TS 29.228 6.1.1",
        text: "the I-CSCF asks for the S-CSCF with both identities and the visited network",
        when: always,
        checks: &[
            Text(("UAR", "icscf", "hss"), "User-Name="),
            Text(("UAR", "icscf", "hss"), "Public-Identity="),
            Text(("UAR", "icscf", "hss"), "Visited-Network-Identifier="),
        ],
    },
    Rule {
        section: "TS 29.228 6.3.1",
        text: "the HSS answers a MAR with a vector",
        when: by_secret,
        checks: &[
            Order(&[("MAR", "scscf", "hss"), ("MAA 2001", "hss", "scscf")]),
            Text(("MAA 2001", "hss", "*"), "SIP-Auth-Data-Item="),
        ],
    },
    Rule {
        section: "TS 29.228 6.1.2",
        text: "the HSS answers a SAR with the profile",
        when: always,
        checks: &[
            Order(&[("SAR", "scscf", "hss"), ("SAA 2001", "hss", "scscf")]),
            Text(("SAA 2001", "hss", "*"), "User-Data="),
        ],
    },
    Rule {
        section: "TS 24.229 5.4.1.2.2",
        text: "a registration gives a service route and the associated identities",
        when: always,
        checks: &[
            Header(("200 REGISTER", "*", CALLER), "Service-Route", "sip:orig@"),
            Header(("200 REGISTER", "*", CALLER), "P-Associated-URI", "sip:"),
        ],
    },
    Rule {
        section: "TS 24.229 5.1.3.1",
        text: "the caller supports 100rel and preconditions",
        when: is_call,
        checks: &[
            Header(("INVITE", CALLER, "*"), "Supported", "100rel"),
            Header(("INVITE", CALLER, "*"), "Supported", "precondition"),
        ],
    },
    Rule {
        section: "TS 24.229 5.1.2A.1",
        text: "the caller follows its service route",
        when: is_call,
        checks: &[Header(("INVITE", CALLER, "*"), "Route", "sip:orig@")],
    },
    Rule {
        section: "RFC 3312 5",
        text: "the offer has preconditions whose resources are not there yet",
        when: is_call,
        checks: &[By(has_no_resources_yet)],
    },
    Rule {
        section: "TS 24.229 5.2.6.3",
        text: "the network asserts the identity of the caller",
        when: is_call,
        checks: &[By(asserts_identity)],
    },
    Rule {
        section: "TS 29.228 6.1.4",
        text: "the I-CSCF asks where the callee is before the callee gets the INVITE",
        when: is_call,
        checks: &[Order(&[
            ("LIR", "icscf", "hss"),
            ("LIA 2001", "hss", "icscf"),
            ("INVITE", "*", CALLEE),
        ])],
    },
    Rule {
        section: "RFC 3262 3",
        text: "the 183 is reliable",
        when: is_call,
        checks: &[
            Header(("183 INVITE", "*", CALLER), "Require", "100rel"),
            Header(("183 INVITE", "*", CALLER), "RSeq", ""),
        ],
    },
    Rule {
        section: "TS 29.213 B.2",
        text: "the PCRF has authorised both sides before the caller gets the 183",
        when: is_call,
        checks: &[Order(&[
            ("183 INVITE", CALLEE, "*"),
            ("AAR", "*", "pcrf"),
            ("AAR", "*", "pcrf"),
            ("183 INVITE", "*", CALLER),
        ])],
    },
    Rule {
        section: "TS 29.214 5.6.1",
        text: "an AAR names the terminal and describes the media",
        when: is_call,
        checks: &[
            Text(("AAR", "*", "pcrf"), "Framed-IP-Address="),
            Text(("AAR", "*", "pcrf"), "Media-Component-Description="),
        ],
    },
    Rule {
        section: "TS 29.214 5.3.8",
        text: "each medium of an AAR has filters in both directions",
        when: is_call,
        checks: &[By(filters_both_directions)],
    },
    Rule {
        section: "RFC 3262 7.2",
        text: "the caller acknowledges the 183 by its number",
        when: is_call,
        checks: &[By(acknowledges_by_number)],
    },
    Rule {
        section: "RFC 3312 7",
        text: "the caller says in an UPDATE that its resources are there",
        when: is_call,
        checks: &[By(says_that_resources_are_there)],
    },
    Rule {
        section: "RFC 3312 8",
        text: "the callee rings only after the UPDATE",
        when: is_call,
        checks: &[
            Order(&[("UPDATE", "*", CALLEE), ("180 INVITE", CALLEE, "*")]),
            By(did_not_ring_before),
        ],
    },
    Rule {
        section: "RFC 3261 13.2.2.4",
        text: "the caller acknowledges the 200",
        when: is_call,
        checks: &[Order(&[("200 INVITE", "*", CALLER), ("ACK", CALLER, "*")])],
    },
    Rule {
        section: "TS 29.214 4.4.4",
        text: "each Rx session ends with the call",
        when: is_call,
        checks: &[By(sessions_end)],
    },
];

/// A rule, and why it is broken if it is.
type Verdict = (&'static Rule, Result<(), String>);

/// Judges the rules that are about these messages. Fails if they are neither a call nor a
/// registration.
fn judge(messages: &[Noted]) -> Result<Vec<Verdict>, String> {
    let flow = Flow::new(messages)?;
    let mut verdicts = Vec::new();
    for rule in all() {
        if (rule.when)(&flow) {
            verdicts.push((rule, flow.keeps(rule)));
        }
    }
    Ok(verdicts)
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
    use super::testing::{CALL, are_broken_by, are_kept, moved};
    use super::*;

    fn without(name: &str) -> Vec<Noted> {
        testing::without(CALL, name, "*")
    }

    /// The text of all messages of this name, changed.
    fn changed(name: &str, part: &str, other: &str) -> Vec<Noted> {
        testing::changed(CALL, [name, "*", "*"], part, other)
    }

    #[test]
    fn a_recorded_call_keeps_all_rules() {
        are_kept(RULES, &[CALL]);
    }

    #[test]
    fn each_rule_can_be_broken() {
        let breaches = [
            without("401 REGISTER"),
            changed("REGISTER", "username=", "user="),
            changed("UAR", "Visited-Network-Identifier=", "x="),
            changed("MAA 2001", "SIP-Auth-Data-Item=", "x="),
            changed("SAA 2001", "User-Data=", "x="),
            changed("200 REGISTER", "Service-Route", "X"),
            changed("INVITE", "100rel, ", ""),
            changed("INVITE", "sip:orig@", "sip:"),
            changed("INVITE", "qos local none", "qos local sendrecv"),
            changed("INVITE", "P-Asserted-Identity", "X"),
            without("LIR"),
            changed("183 INVITE", "100rel", "x"),
            moved(CALL, "AAR", None),
            changed("AAR", "Framed-IP-Address=", "x="),
            changed("AAR", "permit in", "deny in"),
            changed("PRACK", "RAck: ", "RAck: 7"),
            changed("UPDATE", "qos local sendrecv", "qos local none"),
            moved(CALL, "180 INVITE", Some("183 INVITE")),
            without("ACK"),
            without("STR"),
        ];
        are_broken_by(RULES, &breaches);
    }

    #[test]
    fn a_junit_file_has_a_case_for_each_rule() {
        let messages = without("STR");
        let judged = judge(&messages).unwrap();
        let text = junit(&judged).unwrap();
        assert_eq!(text.matches("<testcase ").count(), judged.len());
        assert_eq!(text.matches("<failure ").count(), 1);
    }
}
