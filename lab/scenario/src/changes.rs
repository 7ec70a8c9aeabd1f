//! Differences between two versions of a scenario, key by key, and the keys of a variant in place.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Scenario;
use super::trace_files::FileText;

/// Keys that do not affect any packet.
const WORDS: [&str; 7] =
    ["title", "source", "description", "paper", "finding", "expect", "known_miss"];
const VARIANT: &str = "variant";
/// Digits of a hash that tell two versions of a trace file apart.
const HASH_DIGITS: usize = 16;

/// A key whose values differ; a value is `None` if that scenario does not have the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Path of the key, for example `network.up.queue` or `flow[2].start`.
    pub key: String,
    /// The value before, in TOML.
    pub before: Option<String>,
    /// The value after, in TOML.
    pub after: Option<String>,
}

/// The keys in which two scenarios differ, sorted. Texts, published values and expectations are
/// left out, because they do not affect any packet.
pub fn changes(before: &Scenario, after: &Scenario) -> Vec<Change> {
    let [before, after] = [before, after].map(values);
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differs
        .map(|key| Change {
            key: key.clone(),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
        })
        .collect()
}

/// The text of a file that means this scenario without naming a variant: the file's own text, or
/// for a variant the document with the variant's keys in place.
pub fn whole_text(scenario: &Scenario) -> String {
    if scenario.variant.is_none() {
        return scenario.text.clone();
    }
    toml::to_string(&whole(scenario)).expect("a document that was read can be written")
}

/// The document of a scenario, with the keys of its variant in place.
fn whole(scenario: &Scenario) -> Table {
    let mut table: Table = scenario.text.parse().expect("a scenario that was read is valid TOML");
    let variants = table.remove(VARIANT);
    if let Some(name) = &scenario.variant
        && let Some(Value::Table(variant)) = variants.as_ref().and_then(|all| all.get(name))
    {
        put_over(&mut table, variant);
    }
    table
}

/// All values of a scenario by their keys.
fn values(scenario: &Scenario) -> BTreeMap<String, String> {
    let mut table = whole(scenario);
    for key in WORDS {
        table.remove(key);
    }
    let mut values = BTreeMap::new();
    flatten("", &Value::Table(table), &mut values);
    let traces = scenario.traces.iter();
    values.extend(traces.map(|(name, text)| (format!("trace \"{name}\""), contents(text))));
    values
}

/// Replaces a table's keys by those of a variant. Subtables are merged; all other values are
/// replaced.
fn put_over(table: &mut Table, variant: &Table) {
    for (key, value) in variant {
        match (table.get_mut(key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => put_over(under, over),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Lists all values below `path`. A table yields one entry per key. A list of tables yields its
/// length and the entries of its tables with their numbers.
fn flatten(path: &str, value: &Value, values: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&below, value, values);
            }
        }
        Value::Array(elements) if elements.iter().any(Value::is_table) => {
            values.insert(path.into(), format!("list of {}", elements.len()));
            for (index, element) in elements.iter().enumerate() {
                if element.as_table().is_none_or(|table| !table.is_empty()) {
                    flatten(&format!("{path}[{}]", index + 1), element, values);
                }
            }
        }
        _ => {
            values.insert(path.into(), value.to_string());
        }
    }
}

/// A short summary that identifies the content of a trace file, which has thousands of lines.
fn contents(text: &FileText) -> String {
    format!("{} lines, {}", text.lines(), &text.hash()[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue, parse, parse_variant};

    fn text(queue: &str, extra: &str) -> String {
        format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"9s\"\n\
             [network.up]\nqueue = \"{queue}\"\ncapacity = \"2Mbps\"\n[[flow]]\n{extra}\n"
        )
    }

    fn lines(before: &Scenario, after: &Scenario) -> Vec<String> {
        let shown = |value: Option<String>| value.unwrap_or("-".into());
        let line = |change: Change| {
            format!("{} {} -> {}", change.key, shown(change.before), shown(change.after))
        };
        changes(before, after).into_iter().map(line).collect()
    }

    #[test]
    fn a_changed_key_is_said_with_both_values_and_words_do_not_count() {
        let read = |text: &str| parse("x", text, None).unwrap();
        let before = read(&text("1s", ""));
        assert_eq!(changes(&before, &before), []);
        let words = text("1s", "").replace("title = \"t\"", "title = \"another\"");
        assert_eq!(changes(&before, &read(&words)), []);
        let after = read(&text("300ms", "start = \"2s\"\n[[flow]]\nkind = \"tcp\""));
        assert_eq!(
            lines(&before, &after),
            [
                "flow list of 1 -> list of 2",
                "flow[1].start - -> \"2s\"",
                "flow[2].kind - -> \"tcp\"",
                "network.up.queue \"1s\" -> \"300ms\"",
            ]
        );
    }

    #[test]
    fn a_variant_is_compared_with_its_keys_in_place() {
        let with = |delay: &str| {
            let text = text("1s", &format!("[variant.far.network.up]\nqueue = \"{delay}\""));
            parse_variant("x/far", &text, "far", None).unwrap()
        };
        assert_eq!(lines(&with("2s"), &with("3s")), ["network.up.queue \"2s\" -> \"3s\""]);
        // Another variant's keys do not count.
        let other = text("1s", "[variant.near.network.up]\nqueue = \"9s\"");
        let plain = text("1s", "");
        let [a, b] = [other, plain].map(|text| parse("x", &text, None).unwrap());
        assert_eq!(changes(&a, &b), []);
    }

    #[test]
    fn the_whole_text_of_every_scenario_means_the_same() {
        for id in catalogue::ids() {
            // An id that has only variants selects the first of them.
            let Ok(found) = catalogue::find(id) else { continue };
            for scenario in found {
                let again = parse(&scenario.id, &whole_text(&scenario), None).unwrap();
                assert_eq!(changes(&scenario, &again), [], "{}", scenario.id);
                let unnamed = Scenario { variant: None, text: String::new(), ..scenario };
                // Not `assert_eq`, which would print a whole cell. The order of terminals counts,
                // too.
                assert!(Scenario { text: String::new(), ..again } == unnamed, "{}", unnamed.id);
            }
        }
    }
}
