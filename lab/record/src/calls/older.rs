//! `call.json` of older versions, in the form of today.

use serde_json::{Map, Value};

/// The members as this version writes them. Schema 1 called `disturbed` `bent`. Until the key
/// `kind` came, only the other members told the kind of run.
pub(super) fn as_of_now(mut members: Map<String, Value>) -> Value {
    if let Some(bent) = members.remove("bent") {
        members.insert("disturbed".into(), bent);
    }
    if !members.contains_key("kind") {
        let kind = kind(&members);
        members.insert("kind".into(), kind.into());
    }
    Value::Object(members)
}

/// The kind of run that has these members.
fn kind(members: &Map<String, Value>) -> &'static str {
    let of_kind = [
        ("command", "link"),
        ("exit_code", "link"),
        ("verdict", "dump"),
        ("connections", "application"),
        ("page_events", "application"),
    ];
    for (member, kind) in of_kind {
        if members.contains_key(member) {
            return kind;
        }
    }
    "call"
}
