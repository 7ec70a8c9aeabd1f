//! The lines of a text.

/// The lines with their numbers from 1, without empty lines and comments, and without the line
/// `sep=;` by which programs for office name a separator.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(number, line)| {
        let names_separator = *number == 1 && line.trim_matches('"').starts_with("sep=");
        !line.is_empty() && !is_comment(line) && !names_separator
    })
}

/// Whether a line is a comment.
pub(super) fn is_comment(line: &str) -> bool {
    comment(line).is_some()
}

/// What a line says behind the mark of a comment, as of Unix, MATLAB or C; `None` if it is none.
pub(super) fn comment(line: &str) -> Option<&str> {
    for mark in ["#", "%", "//"] {
        if let Some(text) = line.strip_prefix(mark) {
            return Some(text);
        }
    }
    None
}
