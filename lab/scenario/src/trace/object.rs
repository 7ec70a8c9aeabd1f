//! The list of rows within an object of JSON.

use std::fmt;

use serde::de::{
    DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Options, Result, TraceError, Want, quoted};

/// Most keys that an error names.
const SHOWN_KEYS: usize = 6;
/// Most keys that lead to a list.
const MAX_KEYS: usize = 8;

/// The keys of the object at the root.
struct Keys(Vec<String>);

impl Keys {
    fn have(&self, wanted: &[&str]) -> bool {
        for key in wanted {
            if !self.0.iter().any(|own| own == key) {
                return false;
            }
        }
        true
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        reader.deserialize_map(Each)
    }
}

/// Whether more values follow the first one: objects one after another, as in a log.
pub(super) fn has_several(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    matches!((values.next(), values.next()), (Some(Ok(_)), Some(Ok(_))))
}

/// The keys that lead to the list of rows.
///
/// # Errors
/// If the text is no object, or none that is known while no key says where the list is.
pub(super) fn path(text: &str, options: &Options) -> Result<Vec<String>> {
    if let Some(list) = &options.list {
        return Ok(list.split('.').map(String::from).collect());
    }
    let keys: Keys = serde_json::from_str(text).map_err(|error| TraceError::of_json(&error))?;
    let path: &[&str] = if keys.have(&["start", "intervals"]) {
        &["intervals"]
    } else if keys.have(&["uplink"]) || keys.have(&["downlink"]) {
        match options.want {
            Want::Down => &["downlink", "trace_pattern"],
            Want::Delay | Want::Loss | Want::Jitter if has_rows(text, "downlink") => {
                if has_rows(text, "uplink") {
                    let message = "has rows of both directions; write list = \
                                   \"uplink.trace_pattern\" or list = \"downlink.trace_pattern\"";
                    return Err(TraceError::of_file(message));
                }
                &["downlink", "trace_pattern"]
            }
            _ => &["uplink", "trace_pattern"],
        }
    } else if keys.have(&["version", "entries"]) {
        &["entries"]
    } else if keys.have(&["round_trips"]) {
        &["round_trips"]
    } else {
        let shown: Vec<String> = keys.0.iter().take(SHOWN_KEYS).map(|key| quoted(key)).collect();
        let more = if keys.0.len() > SHOWN_KEYS { ", ..." } else { "" };
        let message = format!(
            "an object with {}{more}, of no known program; write where its rows are, such as \
             list = \"{}\"",
            if shown.is_empty() { "nothing in it".into() } else { shown.join(", ") },
            first_list(text).unwrap_or_else(|| "data.rows".into())
        );
        return Err(TraceError::of_file(&message));
    };
    Ok(path.iter().map(|key| (*key).to_owned()).collect())
}

/// Whether a file of AlphaRTC has rows of this direction.
fn has_rows(text: &str, direction: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    matches!(value[direction]["trace_pattern"].as_array(), Some(rows) if !rows.is_empty())
}

/// The keys that lead to the longest list of rows, which are objects or lists.
fn first_list(text: &str) -> Option<String> {
    let mut found = Found::default();
    found.look(&serde_json::from_str(text).ok()?, &mut Vec::new());
    found.path
}

/// The longest list of rows so far.
#[derive(Default)]
struct Found {
    rows: usize,
    path: Option<String>,
}

impl Found {
    fn look(&mut self, value: &Value, keys: &mut Vec<String>) {
        if keys.len() > MAX_KEYS {
            return;
        }
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    keys.push(key.clone());
                    self.look(value, keys);
                    keys.pop();
                }
            }
            Value::Array(list) => {
                let is_rows = list.iter().any(|row| row.is_object() || row.is_array());
                if is_rows && list.len() > self.rows && !keys.is_empty() {
                    (self.rows, self.path) = (list.len(), Some(keys.join(".")));
                }
                // The rows of a series may be within the only one of its kind.
                if let Some(first) = list.first() {
                    keys.push("0".into());
                    self.look(first, keys);
                    keys.pop();
                }
            }
            _ => {}
        }
    }
}

/// Goes down a path of keys to a value, which `last` reads.
pub(super) struct Within<'p, S> {
    pub(super) path: &'p [String],
    pub(super) last: S,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<S::Value, D::Error> {
        match self.path {
            [] => self.last.deserialize(reader),
            // A number may also be a key.
            _ => reader.deserialize_any(self),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Within<'_, S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", quoted(&self.path[0]))
    }

    /// Goes to the element of a list that the key counts from 0.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<S::Value, A::Error> {
        let (key, rest) = self.path.split_first().expect("only a path with keys is visited");
        let Ok(place) = key.parse::<usize>() else {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        };
        for _ in 0..place {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Err(missing(key));
            }
        }
        let found = list.next_element_seed(Within { path: rest, last: self.last })?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        found.ok_or_else(|| missing(key))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<S::Value, A::Error> {
        let (key, rest) = self.path.split_first().expect("only a path with keys is visited");
        let mut last = Some(self.last);
        let mut found = None;
        while let Some(at) = map.next_key::<String>()? {
            match last.take_if(|_| at == *key) {
                Some(last) => found = Some(map.next_value_seed(Within { path: rest, last })?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        found.ok_or_else(|| missing(key))
    }
}

fn missing<E: serde::de::Error>(key: &str) -> E {
    let hint = "write list, such as list = \"data.rows\"";
    E::custom(format!("there is no {} in it; {hint}", quoted(key)))
}
