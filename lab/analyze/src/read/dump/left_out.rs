//! What of a file was left out, in lines for its reader.

/// Odd places that a warning names one by one.
const NAMED_MAX: usize = 2;

/// Why a part of a file was not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// It breaks the rules of its format. Reading goes on behind it.
    Odd(String),
    /// A limit is reached. Reading ends.
    Full(String),
}

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Self::Odd(what)
    }
}

impl From<&str> for Refusal {
    fn from(what: &str) -> Self {
        Self::Odd(what.into())
    }
}

/// What was left out so far.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    skipped: u64,
    first: Vec<String>,
    end: Option<String>,
    more: Vec<String>,
}

impl LeftOut {
    /// One part was skipped; `what` names its place.
    pub fn skip(&mut self, what: String) {
        self.skipped += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(what);
        }
    }

    /// The file was not read any further.
    pub fn stop(&mut self, why: String) {
        self.end.get_or_insert(why);
    }

    /// One more line.
    pub fn note(&mut self, line: Option<String>) {
        self.more.extend(line);
    }

    /// The lines; `parts` names what was skipped, such as `lines`.
    pub fn warnings(self, parts: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.skipped > 0 {
            let more = self.skipped - self.first.len() as u64;
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let named = self.first.join("; ");
            warnings.push(format!("skipped {parts}: {}: {named}{more}", self.skipped));
        }
        warnings.extend(self.more);
        warnings.extend(self.end.map(|why| format!("read as far as this: {why}")));
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_odd_lines_are_one_warning_that_names_the_first_two() {
        let mut left_out = LeftOut::default();
        (3..9).for_each(|line| left_out.skip(format!("line {line}: odd")));
        left_out.stop("the file ends within line 9".into());
        left_out.stop("and again".into());
        let expected = [
            "skipped lines: 6: line 3: odd; line 4: odd; and 4 more",
            "read as far as this: the file ends within line 9",
        ];
        assert_eq!(left_out.warnings("lines"), expected);
        assert!(LeftOut::default().warnings("lines").is_empty());
    }
}
