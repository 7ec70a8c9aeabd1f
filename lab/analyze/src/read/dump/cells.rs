//! Values of a series, read without the memory that a hostile file asks for.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Most values of a connection: 25 streams of 40 members over the 1000 reports that browsers keep.
pub(super) const VALUES_MAX: usize = 1_000_000;
/// Longest text that is kept, in bytes.
const TEXT_MAX: usize = 1_000;
/// Most members of a value that is an object.
const MEMBERS_MAX: usize = 16;

/// A number, a short text, or a small object of them. All else is null.
#[derive(Debug, Default)]
pub(super) struct Cell(pub Value);

/// An array of cells, or a text that holds one; `None` if it is something else.
#[derive(Debug, Default)]
pub(super) struct Cells(pub Option<Vec<Value>>);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfCell).map(Self)
    }
}

struct OfCell;

impl<'de> Visitor<'de> for OfCell {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(if text.len() <= TEXT_MAX { text.into() } else { Value::Null })
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<Cell>()?.0;
            if members.len() < MEMBERS_MAX && name.len() <= TEXT_MAX && !value.is_object() {
                members.insert(name, value);
            }
        }
        Ok(members.into())
    }
}

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfCells).map(Self)
    }
}

struct OfCells;

impl<'de> Visitor<'de> for OfCells {
    type Value = Option<Vec<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        // A text within the text is no array.
        if !text.trim_start().starts_with('[') {
            return Ok(None);
        }
        Ok(serde_json::from_str::<Cells>(text).ok().and_then(|cells| cells.0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(cell) = all.next_element::<Cell>()? {
            if values.len() == VALUES_MAX {
                let what = format!("a series has more than {VALUES_MAX} values");
                return Err(A::Error::custom(what));
            }
            values.push(cell.0);
        }
        Ok(Some(values))
    }
}
