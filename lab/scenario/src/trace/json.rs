//! Tables in JSON: a list of objects whose keys are the columns. Keys of objects within them have
//! those that lead there before them, with dots between.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::object::{self, Within};
use super::series::Samples;
use super::table::{MAX_COLUMNS, Table};
use super::{Content, MAX_JSON, Options, Result, TraceError};

/// Most objects within one another whose keys are columns.
const MAX_DEPTH: usize = 8;

pub(super) fn read(text: &str, options: &Options) -> Result<(Samples, Content)> {
    if text.len() > MAX_JSON {
        let message = format!("is larger than {} MB, too large for JSON", MAX_JSON / 1_000_000);
        return Err(TraceError::of_file(&message));
    }
    let path = match text.trim_start().starts_with('{') {
        true => object::path(text, options)?,
        false if options.list.is_some() => {
            return Err(TraceError::of_file("it is a list already; leave the key list out"));
        }
        false => Vec::new(),
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let rows = Within { path: &path, last: Rows(options) };
    let samples = rows.deserialize(&mut reader);
    let samples = samples.and_then(|samples| reader.end().map(|()| samples));
    samples.map_err(|error| TraceError::of_json(&error))
}

/// Reads the rows one after another, because all of them together would need much memory.
struct Rows<'o>(&'o Options);

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = (Samples, Content);

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = (Samples, Content);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, the rows of a table")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
        let mut table = None;
        while rows.next_element_seed(Row { options: self.0, table: &mut table })?.is_some() {}
        let (_, table) = table.ok_or_else(|| A::Error::custom("the list is empty"))?;
        table.finish().map_err(|error| A::Error::custom(&error.message))
    }
}

/// The cells of a row in the order of the header; empty where the row has none.
fn in_order(header: &[String], row: Vec<(String, String)>) -> Vec<String> {
    let is_same = row.len() == header.len() && row.iter().zip(header).all(|(a, b)| a.0 == *b);
    if is_same {
        return row.into_iter().map(|(_, cell)| cell).collect();
    }
    let mut cells: BTreeMap<String, String> = row.into_iter().collect();
    header.iter().map(|key| cells.remove(key).unwrap_or_default()).collect()
}

/// Reads a row into the table, which the keys of the first row begin.
struct Row<'t, 'o> {
    options: &'o Options,
    table: &'t mut Option<(Vec<String>, Table<'o>)>,
}

impl<'de> DeserializeSeed<'de> for Row<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, a row of a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // The JSON reader counts the lines, and adds the line to the error.
        let wrong = |error: TraceError| A::Error::custom(&error.message);
        let mut row: Vec<(String, String)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(CellOf { key, depth: 0, row: &mut row })?;
        }
        let (header, table) = match self.table {
            Some(begun) => begun,
            none => {
                let header: Vec<String> = row.iter().map(|(key, _)| key.clone()).collect();
                let table = Table::new(&header, 0, self.options).map_err(wrong)?;
                none.insert((header, table))
            }
        };
        table.row(0, &in_order(header, row)).map_err(wrong)
    }
}

/// Reads a value into cells: one, or those of an object. A list is an empty cell.
struct CellOf<'r> {
    key: String,
    depth: usize,
    row: &'r mut Vec<(String, String)>,
}

impl CellOf<'_> {
    fn put<E: serde::de::Error>(self, cell: String) -> Result<(), E> {
        if self.row.len() == MAX_COLUMNS {
            return Err(E::custom(format!("more than {MAX_COLUMNS} columns")));
        }
        self.row.push((self.key, cell));
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for CellOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CellOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.put(text.to_owned())
    }
    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.put(value.to_string())
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.put(number.to_string())
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.put(number.to_string())
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.put(number.to_string())
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.put(String::new())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.put(String::new())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let depth = self.depth + 1;
        while let Some(name) = map.next_key::<String>()? {
            if depth > MAX_DEPTH {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let key = format!("{}.{name}", self.key);
            map.next_value_seed(CellOf { key, depth, row: &mut *self.row })?;
        }
        Ok(())
    }
}
