//! An object of a report, with those of its members that the analysis uses.
//!
//! A dump of five minutes has a quarter of a million members. So a name is a number, and an object
//! is two lists.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::Value;

use super::members;

/// The objects of a report by their ids, in the order of the report.
pub(crate) type Objects = IndexMap<String, Object>;

/// Members of an object, about.
const MEMBERS: usize = 24;

/// The name of a member that the analysis uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(u16);

impl Name {
    /// `None` if the analysis does not use such a member.
    pub fn of(member: &str) -> Option<Self> {
        NAMES.numbers.get(member).copied().map(Self)
    }

    /// How it is written.
    pub fn text(self) -> &'static str {
        NAMES.texts[usize::from(self.0)]
    }
}

/// All names, and their places among them.
struct Names {
    texts: Vec<&'static str>,
    numbers: HashMap<&'static str, u16, BuildHasherDefault<Eights>>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let texts: Vec<&'static str> = members::used().into_iter().collect();
    let numbers = texts.iter().zip(0..).map(|(text, number)| (*text, number)).collect();
    Names { texts, numbers }
});

/// The name of the member that every object has.
static TYPE: LazyLock<Option<Name>> = LazyLock::new(|| Name::of("type"));

/// A hash of eight bytes at once, for a set that never grows: each member of each dump is looked up
/// in it.
#[derive(Default)]
struct Eights(u64);

impl Eights {
    /// An odd number without a pattern: the golden ratio's digits.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(Self::FACTOR);
    }
}

impl Hasher for Eights {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(byte.into());
    }

    fn finish(&self) -> u64 {
        // The table looks at the highest and at the lowest bits.
        self.0.rotate_left(32)
    }
}

/// A set of names, since most questions are about members that an object lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct NameSet([u64; NAME_WORDS]);

/// Words of 64 names in a set of names.
const NAME_WORDS: usize = 4;

impl NameSet {
    fn has(&self, name: Name) -> bool {
        self.0[usize::from(name.0) / 64] >> (name.0 % 64) & 1 == 1
    }

    fn add(&mut self, name: Name) {
        self.0[usize::from(name.0) / 64] |= 1 << (name.0 % 64);
    }
}

/// An object of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    has: NameSet,
    names: Vec<u16>,
    values: Vec<Value>,
}

impl Object {
    /// An empty one with room for the members of most.
    pub fn with_room() -> Self {
        Self {
            has: NameSet::default(),
            names: Vec::with_capacity(MEMBERS),
            values: Vec::with_capacity(MEMBERS),
        }
    }

    /// A member's value.
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.value(Name::of(member)?)
    }

    /// What kind of object it is.
    pub fn kind(&self) -> Option<&str> {
        self.value((*TYPE)?)?.as_str()
    }

    /// A member that is a text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.get(member)?.as_str()
    }

    /// A member that is a whole number.
    pub fn integer(&self, member: &str) -> Option<u64> {
        match self.get(member)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        }
    }

    /// A member that is a number.
    pub fn number(&self, member: &str) -> Option<f64> {
        match self.get(member)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64(),
        }
    }

    /// A member that is true or false.
    pub fn boolean(&self, member: &str) -> Option<bool> {
        match self.get(member)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_bool(),
        }
    }

    /// Whether it has this member.
    pub fn has(&self, name: Name) -> bool {
        self.has.has(name)
    }

    /// The value of the member with this name.
    pub fn value(&self, name: Name) -> Option<&Value> {
        self.values.get(self.place(name)?)
    }

    /// The same, to be changed.
    pub fn value_mut(&mut self, name: Name) -> Option<&mut Value> {
        let place = self.place(name)?;
        self.values.get_mut(place)
    }

    /// Gives a value to the member with this name.
    pub fn set(&mut self, name: Name, value: Value) {
        match self.value_mut(name) {
            Some(known) => *known = value,
            None => {
                self.has.add(name);
                self.names.push(name.0);
                self.values.push(value);
            }
        }
    }

    /// Gives a value to a member. One that the analysis does not use is left out.
    pub fn insert(&mut self, member: &str, value: impl Into<Value>) {
        if let Some(name) = Name::of(member) {
            self.set(name, value.into());
        }
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The members.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &Value)> {
        self.names.iter().map(|number| Name(*number)).zip(&self.values)
    }

    /// The members, to be kept elsewhere.
    pub fn into_members(self) -> impl Iterator<Item = (Name, Value)> {
        self.names.into_iter().map(Name).zip(self.values)
    }

    fn place(&self, name: Name) -> Option<usize> {
        if !self.has(name) {
            return None;
        }
        self.names.iter().position(|number| *number == name.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_its_last_value_and_one_that_is_not_used_is_left_out() {
        let mut object = Object::with_room();
        assert!(object.is_empty());
        object.insert("bytesSent", 7);
        object.insert("kind", "video");
        object.insert("bytesSent", 8);
        object.insert("nobodyNeedsThis", 9);
        let read: Vec<(&str, String)> =
            object.iter().map(|(name, value)| (name.text(), value.to_string())).collect();
        assert_eq!(read, [("bytesSent", "8".into()), ("kind", "\"video\"".into())]);
        assert_eq!((object.integer("bytesSent"), object.text("kind")), (Some(8), Some("video")));
        assert_eq!((object.number("bytesSent"), object.get("ssrc")), (Some(8.0), None));
        assert_eq!(Name::of("nobodyNeedsThis"), None);
        assert!(NAMES.texts.len() <= 64 * NAME_WORDS, "{} names", NAMES.texts.len());
    }
}
