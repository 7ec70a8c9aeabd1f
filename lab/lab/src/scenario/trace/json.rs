//! Tables in JSON: a list of objects whose keys are the columns.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::series::Samples;
use super::table::{MAX_COLUMNS, Table};
use super::{MAX_JSON, Options, Result, TraceError};

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    if text.len() > MAX_JSON {
        let message = format!("is larger than {} MB, too large for JSON", MAX_JSON / 1_000_000);
        return Err(TraceError::of_file(&message));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let samples = Rows(options).deserialize(&mut reader);
    let samples = samples.and_then(|samples| reader.end().map(|()| samples));
    samples.map_err(|error| TraceError::of_json(&error))
}

/// Reads the rows one after another, because all of them together would need much memory.
struct Rows<'o>(&'o Options);

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = Samples;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Samples, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = Samples;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, the rows of a table")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Samples, A::Error> {
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
        while let Some((key, Text(cell))) = map.next_entry::<String, Text>()? {
            if row.len() == MAX_COLUMNS {
                return Err(A::Error::custom(format!("more than {MAX_COLUMNS} columns")));
            }
            row.push((key, cell));
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

/// A value as text; empty if it is null, a list or an object.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl<'de> Visitor<'de> for Scalar {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_unit<E>(self) -> Result<Text, E> {
                Ok(Text(String::new()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text(String::new()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text(String::new()))
            }
        }
        reader.deserialize_any(Scalar)
    }
}
