//! The lines of a text.

/// The lines with their numbers from 1, without empty lines and comments, and without the line
/// `sep=;` by which programs for office name a separator.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(number, line)| {
        let names_separator = *number == 1 && line.trim_matches('"').starts_with("sep=");
        !line.is_empty() && !line.starts_with('#') && !names_separator
    })
}
