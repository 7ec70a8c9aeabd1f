//! Tables in lines: with commas, semicolons, tabs or spaces between the cells.

use std::borrow::Cow;

use super::clock::Clock;
use super::numbers;
use super::series::Samples;
use super::table::{MAX_COLUMNS, Table};
use super::{Column, Content, Decimal, Options, Result, TraceError, Want, columns, lines};

/// What to write for a log of words.
pub(super) const WORDS: &str =
    "; of a log in words, write format = \"lines\", and as column the text before the values";

/// How many lines are looked at to find a header.
const HEAD: usize = 60;

pub(super) fn read(text: &str, options: &Options) -> Result<(Samples, Content)> {
    let mut lines = lines(text);
    let Some((line, first)) = lines.next() else {
        return Err(TraceError::of_file("the trace is empty"));
    };
    if is_rrd(text) {
        return read_rrd(text, (line, first), options);
    }
    let separator = separator(first, options);
    let first_row = cells(line, first, separator)?;
    let columns = first_row.len();
    // Some programs end the header with a separator, or the rows.
    let named = columns - usize::from(first_row.last().is_some_and(|cell| cell.trim().is_empty()));
    // Only a table whose columns are numbered, or named in a comment, may have no header.
    let values = first_row.iter().filter(|cell| is_value(cell, options)).count();
    let names = columns::names(text, options);
    let is_numbered = matches!(options.column, Some(Column::Number(_))) && values > 0;
    let is_named = values > 0 && names.len() == columns;
    let has_header = !is_named && !is_numbered;
    let mut table = if is_named {
        let mut table = Table::new(&names, line, options)?;
        table.row(line, &first_row)?;
        table
    } else if is_numbered {
        let numbers: Vec<String> = (1..=columns).map(|number| number.to_string()).collect();
        let mut table = Table::new(&numbers, line, options)?;
        table.row(line, &first_row)?;
        table
    } else {
        let header: Vec<String> = first_row.iter().map(|cell| cell.trim().to_owned()).collect();
        let table = Table::new(&header, line, options);
        table.map_err(|error| with_hint(error, text, (line, columns), separator))?
    };
    for (line, content) in lines {
        // A log that was begun anew has its header again.
        if (has_header && content == first) || is_rule(content) {
            continue;
        }
        let cells = cells(line, content, separator)?;
        let is_ended = cells.len() == columns + 1 && cells[columns].trim().is_empty();
        if !is_ended && !(named..=columns).contains(&cells.len()) {
            let found = cells.len();
            let message = format!("expected {columns} cells as in the first line, found {found}");
            return Err(TraceError::at(line, &message));
        }
        table.row(line, &cells)?;
    }
    table.finish()
}

/// Says how to read the table if the first line is not of it: lines before a header have fewer
/// cells than it, and words of a log are no cells.
fn with_hint(
    error: TraceError,
    text: &str,
    (line, columns): (usize, usize),
    separator: Option<char>,
) -> TraceError {
    for (later, content) in lines(text).take(HEAD) {
        let later_separator = self::separator(content, &Options::new(Want::Up));
        let Ok(cells) = cells(later, content, later_separator) else { continue };
        let is_header = cells.len() > columns && cells.len() > 1 && later > line;
        if is_header && later_separator.is_some() {
            let skip = later - 1;
            let hint = format!("; if line {later} names the columns, write skip = {skip}");
            return error.and(&hint);
        }
    }
    let has_names = lines(text).take(HEAD).any(|(_, content)| content.contains('='));
    if separator.is_none() || has_names { error.and(WORDS) } else { error }
}

/// Whether a text is what `rrdtool fetch` prints: names without one of the times, which end with a
/// colon.
pub(super) fn is_rrd(text: &str) -> bool {
    let mut lines = lines(text);
    let (Some((_, names)), Some((_, row))) = (lines.next(), lines.next()) else { return false };
    let Some((time, cells)) = row.split_once(": ") else { return false };
    let is_time = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    is_time && cells.split_whitespace().count() == names.split_whitespace().count()
}

fn read_rrd(
    text: &str,
    (line, names): (usize, &str),
    options: &Options,
) -> Result<(Samples, Content)> {
    let mut header = vec!["time".to_owned()];
    header.extend(names.split_whitespace().map(String::from));
    let mut table = Table::new(&header, line, options)?;
    for (line, content) in lines(text).skip(1) {
        let mut cells: Vec<&str> = content.split_whitespace().collect();
        if let Some(time) = cells.first_mut() {
            *time = time.trim_end_matches(':');
        }
        if cells.len() != header.len() {
            let message = format!("expected {} cells, found {}", header.len(), cells.len());
            return Err(TraceError::at(line, &message));
        }
        table.row(line, &cells)?;
    }
    table.finish()
}

/// Whether a cell is a number or a time, and no name.
fn is_value(cell: &str, options: &Options) -> bool {
    numbers::whole(cell, options.decimal).is_some() || Clock::default().read(cell).is_some()
}

/// What separates the cells of the first line; `None` for white space. What is in quotes separates
/// nothing, and of numbers with decimal commas, those do not.
fn separator(first: &str, options: &Options) -> Option<char> {
    let bare: String = first.split('"').step_by(2).collect();
    let mut is_decimal = false;
    for word in bare.split_whitespace().filter(|word| word.contains(',')) {
        let is_comma = options.decimal == Some(Decimal::Comma);
        is_decimal |= is_comma && numbers::whole(word, options.decimal).is_some();
    }
    ['\t', ';', ',', '|']
        .into_iter()
        .find(|&separator| bare.contains(separator) && !(separator == ',' && is_decimal))
}

fn is_drawn(c: char) -> bool {
    " |-+:=".contains(c)
}

/// Whether a line only draws one, below the header of a table in Markdown.
fn is_rule(content: &str) -> bool {
    content.contains("--") && content.contains(['|', '+']) && content.chars().all(is_drawn)
}

/// The cells of a line. A cell in quotes may contain separators, and quotes that are doubled.
fn cells(line: usize, content: &str, separator: Option<char>) -> Result<Vec<Cow<'_, str>>> {
    let Some(separator) = separator else { return spaced(line, content) };
    let content = match content.strip_prefix('|') {
        Some(row) if separator == '|' => row.strip_suffix('|').unwrap_or(row),
        _ => content,
    };
    let mut cells = Vec::new();
    let mut rest = content;
    loop {
        // A tab may be the separator.
        let (cell, after) = match rest.trim_start_matches(' ').strip_prefix('"') {
            Some(quoted) => {
                let (cell, after) = unquoted(quoted).ok_or_else(|| no_end(line))?;
                (Cow::Owned(cell), after.trim_start_matches(' '))
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

/// The cells of a line with white space between them.
fn spaced(line: usize, content: &str) -> Result<Vec<Cow<'_, str>>> {
    let mut cells = Vec::new();
    let mut rest = content.trim_start();
    while !rest.is_empty() && cells.len() <= MAX_COLUMNS {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (cell, after) = unquoted(quoted).ok_or_else(|| no_end(line))?;
                (Cow::Owned(cell), after)
            }
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        cells.push(cell);
        rest = after.trim_start();
    }
    Ok(cells)
}

fn no_end(line: usize) -> TraceError {
    TraceError::at(line, "expected a quote at the end of a cell in quotes")
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
