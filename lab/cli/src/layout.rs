//! Layout of tables: as Markdown, complete for a pipe or a file, or within the width of a terminal.

use std::io::{IsTerminal, stdout};

use crate::output;

/// Smallest width that is used: smaller values of a terminal are mistakes.
const NARROWEST: usize = 40;
/// Blanks between two columns.
const GAP: usize = 2;
/// Minimum width of a wrapped column.
const WRAPPED: usize = 20;

/// The width limit: `COLUMNS` if it is set, else the width of the terminal. `None` if results go to
/// a pipe or a file, which get every column.
pub fn width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let width: Option<usize> = match set {
        None if stdout().is_terminal() => {
            terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
        }
        _ => set,
    };
    width.map(|width| width.max(NARROWEST))
}

/// Form of a table.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Aligned text, within a width if there is one.
    Text(Option<usize>),
    /// A Markdown table.
    Markdown,
}

impl Form {
    /// Markdown if `markdown` is set, else text for the place where results go.
    pub fn of(markdown: bool) -> Self {
        if markdown { Self::Markdown } else { Self::Text(width()) }
    }
}

/// Rows of cells, and the columns that may be left out or wrapped if the width is too small.
#[derive(Clone, Debug, Default)]
pub struct Table<'a> {
    /// Names of the columns.
    pub head: Vec<&'a str>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// Number of columns that are aligned to the left; the others contain numbers.
    pub left: usize,
    /// Columns that may become a line above the rows that share their values.
    pub common: Vec<usize>,
    /// Columns that may be left out, in this order.
    pub spare: Vec<usize>,
    /// A column of words that may be broken into several lines.
    pub words: Option<usize>,
}

impl Table<'_> {
    /// The table in one of its forms.
    pub fn written(&self, form: Form) -> String {
        match form {
            Form::Text(width) => self.text(width),
            Form::Markdown => self.markdown(),
        }
    }

    /// The table as Markdown, with columns of numbers aligned to the right.
    fn markdown(&self) -> String {
        let columns = 0..self.head.len();
        let rules: Vec<&str> =
            columns.map(|column| if column < self.left { "---" } else { "---:" }).collect();
        let mut text = format!("| {} |\n| {} |\n", self.head.join(" | "), rules.join(" | "));
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().map(|cell| output::escaped(cell).replace('|', "\\|")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text
    }

    /// The table as text, within a width if possible. Control characters in cells are escaped.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut escaped = self.clone();
        for cell in escaped.rows.iter_mut().flatten() {
            *cell = output::escaped(cell);
        }
        escaped.fitted(width)
    }

    fn fitted(&self, width: Option<usize>) -> String {
        let all: Vec<usize> = (0..self.head.len()).collect();
        let Some(width) = width.filter(|&width| self.needs(&all, None) > width) else {
            return self.lines(&all, 0, None);
        };
        let mut shown: Vec<usize> =
            all.iter().copied().filter(|column| !self.common.contains(column)).collect();
        let indent = if self.common.is_empty() { 0 } else { GAP };
        let room = width.saturating_sub(indent);
        let mut left_out = Vec::new();
        for &column in self.spare.iter().filter(|column| !self.common.contains(column)) {
            if self.needs(&shown, self.room_for_words(&shown, room)) <= room {
                break;
            }
            shown.retain(|&other| other != column);
            left_out.push(self.head[column]);
        }
        let mut text = self.lines(&shown, indent, self.room_for_words(&shown, room));
        if !left_out.is_empty() {
            text += &format!("not shown in {width} columns: {}\n", left_out.join(", "));
        }
        text
    }

    /// Width to which the column of words must be wrapped for the shown columns to fit into `room`.
    /// `None` if they fit as they are or have no such column.
    fn room_for_words(&self, shown: &[usize], room: usize) -> Option<usize> {
        let column = self.words.filter(|column| shown.contains(column))?;
        let width = self.width(column, None);
        let others = self.needs(shown, None) - width;
        let left = room.saturating_sub(others).max(WRAPPED);
        (left < width).then_some(left)
    }

    /// Width of a column, if the column of words is wrapped to the width `words`.
    fn width(&self, column: usize, words: Option<usize>) -> usize {
        if let Some(words) = words.filter(|_| self.words == Some(column)) {
            return words;
        }
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
    }

    /// Width of the shown columns with their gaps.
    fn needs(&self, shown: &[usize], words: Option<usize>) -> usize {
        let widths: usize = shown.iter().map(|&column| self.width(column, words)).sum();
        widths + GAP * shown.len().saturating_sub(1)
    }

    /// The shown columns, indented below lines with the values that rows have in common. `words` is
    /// the width of the column of words.
    fn lines(&self, shown: &[usize], indent: usize, words: Option<usize>) -> String {
        let columns: Vec<(bool, usize)> =
            shown.iter().map(|&column| (column < self.left, self.width(column, words))).collect();
        let heads: Vec<String> = shown.iter().map(|&column| self.head[column].into()).collect();
        let mut text = line(&columns, indent, &heads);
        let mut common: Option<String> = None;
        for row in &self.rows {
            let above = if indent > 0 { Some(self.in_common(row)) } else { None };
            if above != common {
                text.extend(above.iter().map(|above| format!("{above}\n")));
                common = above;
            }
            let mut cells: Vec<Vec<String>> = Vec::new();
            for &column in shown {
                cells.push(match words {
                    Some(room) if self.words == Some(column) => wrapped(&row[column], room),
                    _ => vec![row[column].clone()],
                });
            }
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for index in 0..height {
                let parts: Vec<String> =
                    cells.iter().map(|cell| cell.get(index).cloned().unwrap_or_default()).collect();
                text += &line(&columns, indent, &parts);
            }
        }
        text
    }

    /// The line above rows, such as `lund/rmcat-ns3, engine sim, seeds 5`.
    fn in_common(&self, row: &[String]) -> String {
        let mut text = row[self.common[0]].clone();
        for &column in &self.common[1..] {
            text += &format!(", {} {}", self.head[column], row[column]);
        }
        text
    }
}

/// One line of text. Of each column it is known whether it is aligned to the left, and its width.
fn line(columns: &[(bool, usize)], indent: usize, cells: &[String]) -> String {
    let mut padded = Vec::new();
    for (&(is_left, width), cell) in columns.iter().zip(cells) {
        padded.push(if is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
    }
    format!("{:indent$}{}\n", "", padded.join(&" ".repeat(GAP)).trim_end())
}

/// A text in lines of at most `width` characters, broken at blanks. A longer word has a line of its
/// own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<'static> {
        let row = |name: &str, value: &str| {
            ["lund/rmcat-ns3", "5", name, value, "99.99", "a few words that may be broken"]
                .map(String::from)
                .to_vec()
        };
        Table {
            head: vec!["scenario", "seeds", "controller", "rate", "loss", "why"],
            rows: vec![row("gcc", "1.124 ±0.012"), row("scream-v2", "1.142 ±0.007")],
            left: 3,
            common: vec![0, 1],
            spare: vec![4],
            words: None,
        }
    }

    #[test]
    fn a_markdown_table_has_every_column_and_no_bar_within_a_cell() {
        let table = Table {
            head: vec!["scenario", "rate"],
            rows: vec![vec!["a|b".into(), "1.5".into()]],
            left: 1,
            ..Table::default()
        };
        let expected = "| scenario | rate |\n| --- | ---: |\n| a\\|b | 1.5 |\n";
        assert_eq!(table.written(Form::Markdown), expected);
    }

    #[test]
    fn a_table_that_fits_is_shown_whole_and_so_is_one_for_a_pipe() {
        let whole = table().text(None);
        assert_eq!(whole.lines().next().unwrap().split("  ").next(), Some("scenario"));
        assert_eq!(table().text(Some(200)), whole);
    }

    #[test]
    fn common_values_go_above_the_rows_before_columns_are_left_out() {
        assert_eq!(
            table().text(Some(70)),
            "  controller          rate   loss                             why\n\
             lund/rmcat-ns3, seeds 5\n\
             \x20 gcc         1.124 ±0.012  99.99  a few words that may be broken\n\
             \x20 scream-v2   1.142 ±0.007  99.99  a few words that may be broken\n"
        );
        let narrow = table().text(Some(60));
        assert!(narrow.ends_with("\nnot shown in 60 columns: loss\n"), "{narrow}");
        assert!(!narrow.contains("99.99"));
    }

    #[test]
    fn words_are_broken_before_a_column_is_left_out() {
        let table = Table { words: Some(5), left: 6, ..table() };
        let text = table.text(Some(60));
        assert!(text.contains("99.99") && text.lines().all(|line| line.chars().count() <= 60));
        assert!(text.lines().count() > 4, "{text}");
    }

    #[test]
    fn a_word_longer_than_the_line_has_one_of_its_own() {
        assert_eq!(wrapped("a bc defghij k", 4), ["a bc", "defghij", "k"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
