//! Recorded flows that keep the rules, changed so that they break one.

use super::{Noted, Rule, judge};

/// Flows through the real components, as `weir ims record` and `weir ims call --out` left them:
/// of alice, who registers with a password, of carol, who registers by AKA, and others.
/// Messages that no rule reads, and lines of descriptions that say nothing here, are left out.
pub(super) const CALL: &str = include_str!("../../tests/data/call.jsonl");
pub(super) const SERVER: &str = include_str!("../../tests/data/server.jsonl");

pub(super) fn recorded(text: &str) -> Vec<Noted> {
    text.lines().map(|line| Noted::from_json(line).unwrap()).collect()
}

/// Without the messages of this name from this part, or from all.
pub(super) fn without(text: &str, name: &str, from: &str) -> Vec<Noted> {
    let mut messages = recorded(text);
    let before = messages.len();
    messages.retain(|one| one.name != name || (from != "*" && one.from != from));
    assert_ne!(messages.len(), before, "no {name} from {from}");
    messages
}

/// The text of the messages of this name between these parts, changed.
pub(super) fn changed(
    text: &str,
    [name, from, to]: [&str; 3],
    part: &str,
    other: &str,
) -> Vec<Noted> {
    let mut messages = recorded(text);
    let before = messages.clone();
    for message in &mut messages {
        let is_between = ["*", &message.from].contains(&from) && ["*", &message.to].contains(&to);
        if message.name == name && is_between {
            message.text = message.text.replace(part, other);
        }
    }
    assert_ne!(messages, before, "{name} from {from} to {to} has no {part}");
    messages
}

/// Moves the first message of this name to the end, or in front of the first one of another.
pub(super) fn moved(text: &str, name: &str, before: Option<&str>) -> Vec<Noted> {
    let mut messages = recorded(text);
    let first = messages.iter().position(|one| one.name == name).unwrap();
    let message = messages.remove(first);
    let place = before.map_or(messages.len(), |before| {
        messages.iter().position(|one| one.name == before).unwrap()
    });
    messages.insert(place, message);
    messages
}

/// The texts of those of the rules that are about these messages, and of those that are broken.
fn judged(rules: &[Rule], messages: &[Noted]) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut all, mut broken) = (Vec::new(), Vec::new());
    for (rule, result) in judge(messages).unwrap() {
        if rules.iter().all(|one| one.text != rule.text) {
            continue;
        }
        all.push(rule.text);
        if result.is_err() {
            broken.push(rule.text);
        }
    }
    (all, broken)
}

/// Each rule is about one of these flows, and they keep all rules.
pub(super) fn are_kept(rules: &[Rule], flows: &[&str]) {
    let mut seen = Vec::new();
    for text in flows {
        let (all, broken) = judged(rules, &recorded(text));
        assert_eq!(broken, [""; 0]);
        seen.extend(all);
    }
    for rule in rules {
        assert!(seen.contains(&rule.text), "no flow for '{}'", rule.text);
    }
}

/// For each rule, a flow that breaks it.
pub(super) fn are_broken_by(rules: &[Rule], breaches: &[Vec<Noted>]) {
    assert_eq!(breaches.len(), rules.len());
    for (rule, messages) in rules.iter().zip(breaches) {
        let (_, broken) = judged(rules, messages);
        assert!(broken.contains(&rule.text), "{}: {broken:?}", rule.text);
    }
}
