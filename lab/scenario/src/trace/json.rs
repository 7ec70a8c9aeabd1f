//! Tables in JSON: a list of objects whose keys are the columns. Keys of objects within them have
//! those that lead there before them, with dots between.
//!
//! ```text
//! text --path--> rows --once--> columns
//!                rows --again--> Table
//! ```
//!
//! A row may be a list, or a single value; then the columns have numbers. Objects one after another
//! without a list around them, as in a log, are rows too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::by_column::{self, ByColumn};
use super::numbers;
use super::object::{self, Within};
use super::series::Samples;
use super::table::{MAX_COLUMNS, Table};
use super::{Content, MAX_JSON, Options, Result, TraceError, quoted};

/// Most objects within one another whose keys are columns.
const MAX_DEPTH: usize = 8;

pub(super) fn read(text: &str, options: &Options) -> Result<(Samples, Content)> {
    if text.len() > MAX_JSON {
        let message = format!("is larger than {} MB, too large for JSON", MAX_JSON / 1_000_000);
        return Err(TraceError::of_file(&message));
    }
    let place = match place(text, options) {
        Ok(place) => place,
        Err(error) => {
            if options.list.is_some() {
                return Err(error);
            }
            let Some(ByColumn { header, rows }) = by_column::table(text) else { return Err(error) };
            let mut table = Table::new(&header, 0, options)?;
            for row in &rows {
                table.row(0, row)?;
            }
            return table.finish();
        }
    };
    let mut columns = Columns::default();
    each_row(text, &place, &mut columns)?;
    if columns.list.is_empty() {
        return Err(TraceError::of_file(&empty(text)));
    }
    let mut rows = Rows { table: Table::new(&columns.list, 0, options)?, header: columns.list };
    each_row(text, &place, &mut rows)?;
    rows.table.finish()
}

/// Why there are no rows: a test of iperf3 that failed says so beside its empty list.
fn empty(text: &str) -> String {
    #[derive(Deserialize)]
    struct Failed {
        error: String,
    }
    match serde_json::from_str::<Failed>(text) {
        Ok(Failed { error }) => format!("the list is empty, and its error is {}", quoted(&error)),
        Err(_) => "the list is empty".to_owned(),
    }
}

/// Where the rows are.
enum Place {
    /// In the list at the end of these keys.
    List(Vec<String>),
    /// One after another, without a list around them.
    Lines,
}

fn place(text: &str, options: &Options) -> Result<Place> {
    let is_list = text.trim_start().starts_with('[');
    let has_several = !is_list && object::has_several(text);
    // The rows may be within one of a list.
    let is_in_list = match &options.list {
        Some(list) => list.starts_with(numbers::is_digit),
        None => false,
    };
    if options.list.is_some() && ((is_list && !is_in_list) || has_several) {
        return Err(TraceError::of_file("it is a list already; leave the key list out"));
    }
    match (is_list, has_several) {
        (true, _) if !is_in_list => Ok(Place::List(Vec::new())),
        (_, true) => Ok(Place::Lines),
        _ => object::path(text, options).map(Place::List),
    }
}

/// What takes rows as they come.
trait TakesRows {
    fn take(&mut self, row: Vec<(String, String)>) -> Result<()>;
}

fn each_row(text: &str, place: &Place, to: &mut dyn TakesRows) -> Result<()> {
    let wrong = TraceError::of_json;
    let mut reader = serde_json::Deserializer::from_str(text);
    match place {
        Place::List(path) => {
            let rows = Within { path, last: List(to) };
            rows.deserialize(&mut reader).and_then(|()| reader.end()).map_err(|error| wrong(&error))
        }
        Place::Lines => {
            while reader.end().is_err() {
                Row(&mut *to).deserialize(&mut reader).map_err(|error| wrong(&error))?;
            }
            Ok(())
        }
    }
}

/// The columns of all rows, in the order in which they appear.
#[derive(Default)]
struct Columns {
    list: Vec<String>,
    known: BTreeSet<String>,
}

impl TakesRows for Columns {
    fn take(&mut self, row: Vec<(String, String)>) -> Result<()> {
        for (key, _) in row {
            if self.known.contains(&key) {
                continue;
            }
            if self.list.len() == MAX_COLUMNS {
                return Err(TraceError::of_file(&format!("more than {MAX_COLUMNS} columns")));
            }
            self.known.insert(key.clone());
            self.list.push(key);
        }
        Ok(())
    }
}

/// A table and its columns.
struct Rows<'o> {
    table: Table<'o>,
    header: Vec<String>,
}

impl TakesRows for Rows<'_> {
    fn take(&mut self, row: Vec<(String, String)>) -> Result<()> {
        self.table.row(0, &in_order(&self.header, row))
    }
}

/// Reads the rows one after another, because all of them together would need much memory.
struct List<'t>(&'t mut dyn TakesRows);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, the rows of a table")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row(&mut *self.0))?.is_some() {}
        Ok(())
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

/// Reads a row: an object, or a list or a value, whose columns have numbers.
struct Row<'t>(&'t mut dyn TakesRows);

impl Row<'_> {
    // The JSON reader counts the lines, and adds the line to the error.
    fn take<E: serde::de::Error>(self, row: Vec<(String, String)>) -> Result<(), E> {
        self.0.take(row).map_err(|error| E::custom(&error.message))
    }

    fn take_one<E: serde::de::Error>(self, cell: String) -> Result<(), E> {
        self.take(vec![("1".into(), cell)])
    }
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, a row of a table")
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.take_one(number.to_string())
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.take_one(number.to_string())
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.take_one(String::new())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut row = Vec::new();
        let mut number = 1;
        while list
            .next_element_seed(CellOf { key: number.to_string(), depth: 0, row: &mut row })?
            .is_some()
        {
            number += 1;
        }
        self.take(row)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut row = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(CellOf { key, depth: 0, row: &mut row })?;
        }
        self.take(row)
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
