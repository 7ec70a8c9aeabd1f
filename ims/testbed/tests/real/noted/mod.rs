//! What the running IMS has noted in its folder.

use std::collections::BTreeSet;
use std::fs;

/// Folder of the running IMS.
pub const RUN: &str = "/run/weir-ims";

/// Whether a message of this name has passed between two parts.
pub fn has_passed(name: &str) -> bool {
    let messages = fs::read_to_string(format!("{RUN}/sip.jsonl")).unwrap();
    messages.contains(&format!("\"{name}\""))
}

/// Sessions with this change of bearers since the IMS was started.
pub fn bearers(change: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(format!("{RUN}/bearers.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let session = |line: serde_json::Value| {
        let text = line["text"].as_str().unwrap();
        text.split(' ').next().unwrap().to_owned()
    };
    lines.filter(|line| line["name"] == change).map(session).collect()
}

/// Whether the HSS knows this user as registered.
pub fn is_registered(user: &str) -> bool {
    let state = fs::read_to_string(format!("{RUN}/hss.state")).unwrap_or_default();
    let line = state.lines().find(|line| line.starts_with(&format!("{user}@ims.test ")));
    line.is_some_and(|line| line.split(' ').nth(2) == Some("1"))
}

/// The newest link that the facilitator has sent.
pub fn told_link() -> String {
    let sent = fs::read_to_string(format!("{RUN}/sip.jsonl")).unwrap();
    let start = sent.rfind("https://").unwrap();
    sent[start..].chars().take_while(|c| *c != '"').collect()
}
