//! Tables of columns: each CSV file of a record declares its columns once, and writing, reading and
//! `docs/reference/record-format.md` follow from the declaration.

use std::io::{self, Write};

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::Trace;

use crate::scenario::Scenario;

/// Bytes or packets of a row: more than any network here carries in its time, and so few that their sum
/// over a run stays within its type.
const AMOUNT_MAX: u64 = 1 << 36;
/// A time in µs: longer than the longest run.
const MICROS_MAX: u64 = 1 << 40;

/// A column of a file whose rows are `R`.
pub(crate) struct CsvColumn<R: 'static> {
    /// Its name in the first line.
    pub name: &'static str,
    /// The unit of its values; empty without one.
    pub unit: &'static str,
    /// What its values mean, in a simulated run at least.
    pub meaning: &'static str,
    /// What they mean in a real call; empty if the same.
    pub in_call: &'static str,
    /// Writes a row's cell. The names are those of the flows or nodes that rows count.
    pub put: fn(&R, &[String], &mut Vec<u8>),
    /// Reads a row's cell.
    pub take: fn(&mut R, &str, &[String]) -> Result<(), String>,
}

/// Declares a column: its name, its unit, the member of the row that it holds, and its meaning, if need be
/// with another one in calls. `part?.member` is a member of an optional part of the row.
macro_rules! column {
    ($name:literal, $unit:literal, $part:ident?.$member:ident, $meaning:literal) => {
        $crate::record::table::CsvColumn {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            in_call: "",
            put: |row, _, out| {
                if let Some(part) = &row.$part {
                    $crate::record::table::Cell::put(&part.$member, out);
                }
            },
            take: |row, cell, _| {
                let value = $crate::record::table::Cell::take(cell)?;
                row.$part.get_or_insert_default().$member = value;
                Ok(())
            },
        }
    };
    ($name:literal, $unit:literal, $part:ident?.$member:ident, $meaning:literal, call: $call:literal) => {
        $crate::record::table::CsvColumn {
            in_call: $call,
            ..$crate::record::table::column!($name, $unit, $part?.$member, $meaning)
        }
    };
    ($name:literal, $unit:literal, $member:ident, $meaning:literal) => {
        $crate::record::table::CsvColumn {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            in_call: "",
            put: |row, _, out| $crate::record::table::Cell::put(&row.$member, out),
            take: |row, cell, _| {
                row.$member = $crate::record::table::Cell::take(cell)?;
                Ok(())
            },
        }
    };
    ($name:literal, $unit:literal, $member:ident, $meaning:literal, call: $call:literal) => {
        $crate::record::table::CsvColumn {
            in_call: $call,
            ..$crate::record::table::column!($name, $unit, $member, $meaning)
        }
    };
}
pub(crate) use column;

/// A value as a cell holds it: a whole number in the column's unit.
pub(crate) trait Cell: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(cell: &str) -> Result<Self, String>;
}

/// Packets, or a count.
impl Cell for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, *self);
    }

    fn take(cell: &str) -> Result<Self, String> {
        at_most(number(cell)?, AMOUNT_MAX)
    }
}

/// Bytes.
impl Cell for DataSize {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.as_bytes());
    }

    fn take(cell: &str) -> Result<Self, String> {
        u64::take(cell).map(Self::from_bytes)
    }
}

/// A time in µs that is not negative.
impl Cell for TimeDelta {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.as_micros().unsigned_abs());
    }

    fn take(cell: &str) -> Result<Self, String> {
        micros(number(cell)?)
    }
}

/// A rate in bit/s.
impl Cell for Bitrate {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.as_bps());
    }

    fn take(cell: &str) -> Result<Self, String> {
        number(cell).map(Self::from_bps)
    }
}

/// An empty cell is a value that nobody measured, or that does not apply.
impl<T: Cell> Cell for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(cell: &str) -> Result<Self, String> {
        if cell.is_empty() { Ok(None) } else { T::take(cell).map(Some) }
    }
}

/// Columns that a file has together or not at all.
pub(crate) struct ColumnGroup<R: 'static> {
    pub columns: &'static [CsvColumn<R>],
    /// Whether a row has values in them.
    pub is_in: fn(&R) -> bool,
}

/// The groups of columns that a file has.
pub(crate) struct Layout<R: 'static> {
    groups: &'static [ColumnGroup<R>],
    /// A bit for each group.
    present: u32,
}

impl<R> Clone for Layout<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Layout<R> {}

impl<R> Layout<R> {
    /// Whether both have the same columns.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.present == other.present
    }

    /// The first group alone.
    pub(crate) fn first(groups: &'static [ColumnGroup<R>]) -> Self {
        Self { groups, present: 1 }
    }

    /// As the first line of a file says; an error if it says something else.
    pub(crate) fn of_header(groups: &'static [ColumnGroup<R>], line: &str) -> Result<Self, String> {
        let names: Vec<&str> = line.split(',').collect();
        let (mut rest, mut present) = (names.as_slice(), 0);
        for (index, group) in groups.iter().enumerate() {
            let own = group.columns.iter().map(|column| column.name);
            let count = group.columns.len();
            if rest.len() >= count && rest[..count].iter().copied().eq(own) {
                present |= 1 << index;
                rest = &rest[count..];
            }
        }
        if rest.is_empty() && present & 1 == 1 {
            return Ok(Self { groups, present });
        }
        let [every, more] = [&groups[..1], &groups[1..]]
            .map(|groups| groups.iter().map(names_of).collect::<Vec<_>>());
        let with = match more.as_slice() {
            [] => String::new(),
            more => format!(", with {} or not", more.join("; ")),
        };
        Err(format!("the first line must be {}{with}", every[0]))
    }

    /// This layout, with the groups that the rows need.
    pub(crate) fn and(self, rows: &[R]) -> Self {
        let needed = self.groups.iter().enumerate().filter(|(index, group)| {
            self.present & (1 << index) == 0 && rows.iter().any(group.is_in)
        });
        let present = needed.fold(self.present, |present, (index, _)| present | 1 << index);
        Self { present, ..self }
    }

    /// Each group, and whether the file has it.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&'static ColumnGroup<R>, bool)> + use<R> {
        let (groups, present) = (self.groups, self.present);
        groups.iter().enumerate().map(move |(index, group)| (group, present & (1 << index) != 0))
    }

    fn present(&self) -> impl Iterator<Item = &'static ColumnGroup<R>> + use<R> {
        self.groups().filter(|(_, is_present)| *is_present).map(|(group, _)| group)
    }

    /// The first line of the file.
    pub(crate) fn header(&self) -> String {
        self.present().map(names_of).collect::<Vec<_>>().join(",")
    }

    /// Writes a row as a line.
    pub(crate) fn put(&self, row: &R, names: &[String], out: &mut Vec<u8>) {
        for (index, column) in self.present().flat_map(|group| group.columns).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            (column.put)(row, names, out);
        }
        out.push(b'\n');
    }
}

impl<R: Default> Layout<R> {
    /// Reads a line as a row. Of a group whose cells are all empty the row has nothing.
    pub(crate) fn take(&self, line: &str, names: &[String]) -> Result<R, String> {
        let mut row = R::default();
        let mut cells = line.split(',');
        for (index, group) in self.present().enumerate() {
            let count = group.columns.len();
            let is_empty = index > 0 && cells.clone().take(count).all(str::is_empty);
            for column in group.columns {
                let cell = cells.next().ok_or_else(|| self.wrong_count(line))?;
                if !is_empty {
                    (column.take)(&mut row, cell, names)
                        .map_err(|what| format!("{}: {what}", column.name))?;
                }
            }
        }
        if cells.next().is_some() { Err(self.wrong_count(line)) } else { Ok(row) }
    }

    fn wrong_count(&self, line: &str) -> String {
        let columns: usize = self.present().map(|group| group.columns.len()).sum();
        format!("{} columns, not {columns}", line.split(',').count())
    }
}

/// The names of a group's columns, as the first line has them.
fn names_of<R>(group: &ColumnGroup<R>) -> String {
    group.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",")
}

/// A file that only runs over some kind of network have: rows of `R`, which stand for items of `T`.
pub(crate) struct Log<R: 'static, T: 'static> {
    /// The file's name.
    pub file: &'static str,
    /// Its columns, in a single group.
    pub groups: &'static [ColumnGroup<R>],
    /// The items of a part of a run.
    pub items: fn(&Trace) -> &[T],
    /// Where items that were read go.
    pub read: fn(&mut Trace) -> &mut Vec<T>,
    /// Whether runs of the scenario have the file.
    pub applies: fn(&Scenario) -> bool,
    /// The row of an item.
    pub row: fn(&T) -> R,
    /// The item of a row.
    pub item: fn(R) -> Result<T, String>,
}

impl<R: Default, T> Log<R, T> {
    /// The first line.
    pub(crate) fn header(&self) -> String {
        Layout::first(self.groups).header()
    }

    /// Writes items, a line each.
    pub(crate) fn write_items(
        &self,
        out: &mut dyn Write,
        names: &[String],
        items: &[T],
    ) -> io::Result<()> {
        let layout = Layout::first(self.groups);
        let mut lines = Vec::new();
        items.iter().for_each(|item| layout.put(&(self.row)(item), names, &mut lines));
        out.write_all(&lines)
    }

    /// Reads a line.
    pub(crate) fn parse(&self, line: &str, names: &[String]) -> Result<T, String> {
        (self.item)(Layout::first(self.groups).take(line, names)?)
    }
}

/// A [`Log`], whatever its rows are.
pub(super) trait AnyLog: Sync {
    fn file(&self) -> &'static str;
    fn applies(&self, scenario: &Scenario) -> bool;
    fn header(&self) -> String;
    /// Writes the items of a part of a run.
    fn write(&self, out: &mut dyn Write, part: &Trace) -> io::Result<()>;
    /// Reads a line into a run.
    fn read_line(&self, line: &str, names: &[String], into: &mut Trace) -> Result<(), String>;
}

impl<R: Default, T> AnyLog for Log<R, T> {
    fn file(&self) -> &'static str {
        self.file
    }

    fn applies(&self, scenario: &Scenario) -> bool {
        (self.applies)(scenario)
    }

    fn header(&self) -> String {
        Log::header(self)
    }

    fn write(&self, out: &mut dyn Write, part: &Trace) -> io::Result<()> {
        self.write_items(out, &part.nodes, (self.items)(part))
    }

    fn read_line(&self, line: &str, names: &[String], into: &mut Trace) -> Result<(), String> {
        let item = self.parse(line, names)?;
        (self.read)(into).push(item);
        Ok(())
    }
}

/// A number in decimal: a record is mostly these, and formatting them one by one takes most of its time.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// A number without a limit.
pub(crate) fn number(cell: &str) -> Result<u64, String> {
    match cell {
        "" => Err("an empty cell".into()),
        cell => cell.parse().map_err(|_| format!("'{cell}' is not a number")),
    }
}

/// Which of these names the cell is; `what` says what they name.
pub(crate) fn position(cell: &str, what: &str, names: &[String]) -> Result<usize, String> {
    names.iter().position(|name| name == cell).ok_or_else(|| format!("no {what} '{cell}'"))
}

/// The end of an interval in ms, a multiple of the interval.
pub(crate) fn interval_end(cell: &str, interval: TimeDelta) -> Result<Timestamp, String> {
    let ms = number(cell)?;
    if !ms.is_multiple_of(interval.as_millis().unsigned_abs()) {
        return Err(format!("{ms} ms is not a multiple of {}", interval.as_millis()));
    }
    Ok(Timestamp::ZERO + micros(ms.saturating_mul(1000))?)
}

fn micros(micros: u64) -> Result<TimeDelta, String> {
    at_most(micros, MICROS_MAX).map(|micros| TimeDelta::from_micros(micros.cast_signed()))
}

fn at_most(value: u64, max: u64) -> Result<u64, String> {
    if value <= max { Ok(value) } else { Err(format!("{value} is too large")) }
}
