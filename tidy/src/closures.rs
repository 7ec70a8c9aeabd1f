//! Closures in product code. A function or a loop reads better, and go-to-definition finds it.

use crate::files::with_ending;

/// Of each crate: closures with a name, `let x = |..|`, and at most how many closures there are in
/// all. The numbers only fall: lower one when you have replaced a closure.
const CLOSURES: [(&str, usize, usize); 31] = [
    ("library/capi", 1, 74),
    ("library/gst", 0, 158),
    ("library/rtcp", 1, 48),
    ("library/sfu", 2, 168),
    ("library/sfu-wasm", 0, 31),
    ("library/noq", 0, 0),
    ("library/quic", 0, 69),
    ("library/quinn", 0, 2),
    ("library/str0m", 0, 10),
    ("library/webrtc-rs", 0, 7),
    ("library/weir", 25, 328),
    ("library/wire", 3, 45),
    ("lab/analyze", 34, 1179),
    ("lab/call", 8, 553),
    ("lab/capture", 7, 61),
    ("lab/cli", 5, 680),
    ("lab/controllers", 2, 47),
    ("lab/emu", 10, 176),
    ("lab/metrics", 3, 56),
    ("lab/net", 13, 349),
    ("lab/python", 0, 142),
    ("lab/record", 7, 353),
    ("lab/report", 4, 307),
    ("lab/scenario", 13, 619),
    ("lab/sim", 8, 413),
    ("lab/wasm", 0, 1),
    ("lab/watch", 0, 0),
    ("ims/diameter", 0, 21),
    ("ims/nodes", 7, 118),
    ("ims/testbed", 5, 179),
    ("research", 0, 61),
];

/// The product code of a crate: each file's path and text, without its tests.
fn product(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, text) in with_ending(&format!("{folder}/src"), ".rs") {
        if !path.ends_with("/tests.rs") && !path.contains("/tests/") {
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            found.push((path, code.to_owned()));
        }
    }
    found
}

/// How many closures begin in a line. A comment has none; those with `||` alone are not counted
/// unless they begin an argument.
fn closures_in(line: &str) -> usize {
    let code = line.split("//").next().unwrap_or_default();
    let mut count = 0;
    let mut is_within = false;
    for (at, _) in code.match_indices('|') {
        if is_within {
            is_within = false;
            continue;
        }
        let before = code[..at].trim_end();
        let is_begin = before.is_empty()
            || before.ends_with(['(', ',', '=', '{', '['])
            || before.ends_with("move");
        if is_begin {
            count += 1;
            is_within = true;
        }
    }
    count
}

/// Whether a line gives a closure a name.
fn names_a_closure(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("let ") else { return false };
    let Some((name, value)) = rest.trim_start_matches("mut ").split_once(" = ") else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_name) && value.trim_start_matches("move ").starts_with('|')
}

/// Whether a line has a closure as the value of a member.
fn has_closure_in_a_literal(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut parts = code.split(": ").peekable();
    while let (Some(name), Some(value)) = (parts.next(), parts.peek()) {
        let before = name.trim_end_matches(is_name);
        let begins = before.trim().is_empty() || before.ends_with("{ ") || before.ends_with(", ");
        if begins && before != name && value.trim_start_matches("move ").starts_with('|') {
            return true;
        }
    }
    false
}

#[test]
fn members_are_functions_and_no_closures() {
    for (line, expected) in [
        ("        of: |runs| mean(runs),", true),
        ("    Column { decimals: 4, value: move |cell| cell },", true),
        ("    value: mean_of,", false),
        ("    kinds: A | B,", false),
    ] {
        assert_eq!(has_closure_in_a_literal(line), expected, "{line}");
    }
    for (name, _, _) in CLOSURES {
        for (path, code) in product(name) {
            for line in code.lines() {
                assert!(!has_closure_in_a_literal(line), "{path}: {line}");
            }
        }
    }
}

#[test]
fn closures_become_fewer() {
    for (line, expected) in [
        ("    let rates = flows.map(|flow| flow.rate());", 1),
        ("    spawn(move || run(|| stop(), |a, b| a | b));", 3),
        ("    matches!(kind, A | B) || is_other", 0),
        ("    // map(|flow| flow)", 0),
    ] {
        assert_eq!(closures_in(line), expected, "{line}");
    }
    for (name, named, most) in CLOSURES {
        let (mut found_named, mut found) = (0, 0);
        for line in product(name).iter().flat_map(|(_, code)| code.lines()) {
            found_named += usize::from(names_a_closure(line));
            found += closures_in(line);
        }
        assert_eq!(found_named, named, "{name}: write a function or a loop, or lower the number");
        assert!(found <= most, "{name}: {found} closures, for {most}: write functions or loops");
    }
}
