//! Tables in lines: with commas, semicolons, tabs or spaces between the cells.

use std::borrow::Cow;

use super::clock::Clock;
use super::series::Samples;
use super::table::{MAX_COLUMNS, Table};
use super::unit::number;
use super::{Column, Content, Options, Result, TraceError, lines};

pub(super) fn read(text: &str, options: &Options) -> Result<(Samples, Content)> {
    let mut lines = lines(text);
    let Some((line, first)) = lines.next() else {
        return Err(TraceError::of_file("the trace is empty"));
    };
    let separator = ['\t', ';', ','].into_iter().find(|separator| first.contains(*separator));
    let cells = cells(line, first, separator)?;
    let columns = cells.len();
    // Only a table whose columns are numbered may have no header.
    let is_value =
        |cell: &Cow<'_, str>| number(cell).is_some() || Clock::default().read(cell).is_some();
    let is_headless =
        matches!(options.column, Some(Column::Number(_))) && cells.iter().any(is_value);
    let mut table = if is_headless {
        let numbers: Vec<String> = (1..=columns).map(|number| number.to_string()).collect();
        let mut table = Table::new(&numbers, line, options)?;
        table.row(line, &cells)?;
        table
    } else {
        let header: Vec<String> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
        Table::new(&header, line, options)?
    };
    for (line, content) in lines {
        let cells = self::cells(line, content, separator)?;
        if cells.len() != columns {
            let found = cells.len();
            let message = format!("expected {columns} cells as in the first line, found {found}");
            return Err(TraceError::at(line, &message));
        }
        table.row(line, &cells)?;
    }
    table.finish()
}

/// The cells of a line. A cell in quotes may contain separators, and quotes that are doubled.
fn cells(line: usize, content: &str, separator: Option<char>) -> Result<Vec<Cow<'_, str>>> {
    let Some(separator) = separator else {
        let cells = content.split_whitespace().take(MAX_COLUMNS + 1);
        return Ok(cells.map(Cow::Borrowed).collect());
    };
    let mut cells = Vec::new();
    let mut rest = content;
    loop {
        let (cell, after) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let (cell, after) = unquoted(quoted).ok_or_else(|| {
                    TraceError::at(line, "expected a quote at the end of a cell in quotes")
                })?;
                (Cow::Owned(cell), after.trim_start())
            }
            None => {
                let (cell, _) = rest.split_once(separator).unwrap_or((rest, ""));
                (Cow::Borrowed(cell), &rest[cell.len()..])
            }
        };
        cells.push(cell);
        if cells.len() > MAX_COLUMNS {
            return Err(TraceError::at(line, &format!("more than {MAX_COLUMNS} columns")));
        }
        if after.is_empty() {
            return Ok(cells);
        }
        rest = after
            .strip_prefix(separator)
            .ok_or_else(|| TraceError::at(line, "expected a separator after a cell in quotes"))?;
    }
}

/// The text up to the quote that ends it, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                rest = more;
            }
            None => return Some((cell, after)),
        }
    }
}
