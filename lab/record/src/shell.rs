//! Commands that are offered to be copied into a shell.
//!
//! Names in them come from other people's files. Each word is quoted, and no name is taken for an
//! option: one that begins with a dash is written as a path, `./-x`, and the name of a member of an
//! archive stands behind `--`.

use core::fmt;

/// A command that is offered. [`fmt::Display`] writes it in shell syntax, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    text: String,
}

impl CommandLine {
    /// Begins with words of our own, such as `weir call`.
    pub fn new(words: &str) -> Self {
        Self { text: words.into() }
    }

    /// Adds a name that somebody gave: of a scenario, a file or a folder.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.quoted_word(&undashed(name))
    }

    /// Adds an option of ours.
    #[must_use]
    pub fn flag(mut self, option: &str) -> Self {
        self.text.push(' ');
        self.text.push_str(option);
        self
    }

    /// Adds an option of ours with a value that somebody gave.
    #[must_use]
    pub fn option(self, option: &str, value: &str) -> Self {
        if value.starts_with('-') {
            return self.quoted_word(&format!("{option}={value}"));
        }
        self.flag(option).quoted_word(value)
    }

    /// Adds an option of ours with the name of a file or folder.
    #[must_use]
    pub fn path(self, option: &str, path: &str) -> Self {
        self.flag(option).quoted_word(&undashed(path))
    }

    /// Adds words that a record holds in shell syntax. What is more than words, such as `;` or
    /// `$(…)`, becomes one word.
    #[must_use]
    pub fn shell(mut self, text: &str) -> Self {
        for word in words(text).unwrap_or_else(|| vec![text.into()]) {
            self = self.quoted_word(&word);
        }
        self
    }

    /// Adds an option of ours with a value that a record holds in shell syntax.
    #[must_use]
    pub fn shell_option(self, option: &str, text: &str) -> Self {
        match words(text).as_deref() {
            Some([value]) => self.option(option, value),
            _ => self.option(option, text),
        }
    }

    /// Begins with what writes a member of an archive, zip or tar, to the standard output.
    pub fn unpacking(archive: &str, member: &str) -> Self {
        if is_zip(archive) {
            return Self::new("unzip -p").name(archive).quoted_word(&unzip_pattern(member));
        }
        // GNU tar takes what stands before a colon for a machine, unless a slash is before it, and
        // a backslash in a name for the begin of a character's number.
        let is_machine = archive.split('/').next().is_some_and(|first| first.contains(':'));
        let archive = if is_machine { format!("./{archive}") } else { archive.into() };
        let member = member.replace('\\', r"\\");
        Self::new("tar -xOf").name(&archive).flag("--").quoted_word(&member)
    }

    /// Gives the output of this command to another one.
    #[must_use]
    pub fn piped(mut self, to: &Self) -> Self {
        self.text.push_str(" | ");
        self.text.push_str(&to.text);
        self
    }

    fn quoted_word(mut self, word: &str) -> Self {
        self.text.push(' ');
        self.text.push_str(&quoted(word));
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A name that no program takes for an option. A single dash is the standard input.
fn undashed(name: &str) -> String {
    let is_option = name.starts_with('-') && name != "-";
    if is_option { format!("./{name}") } else { name.into() }
}

fn is_zip(archive: &str) -> bool {
    archive.to_lowercase().ends_with(".zip")
}

/// The pattern of unzip that means this name and no other. It knows no `--`, so that a dash at the
/// begin is escaped like what stands for other characters.
fn unzip_pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        if "*?[]\\".contains(c) || (at == 0 && c == '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// A word in shell syntax, in one line.
pub fn quoted(word: &str) -> String {
    // The shell zsh replaces a word that begins with an equals sign.
    let is_plain = word.chars().all(is_plain) && !word.starts_with('=');
    if is_plain && !word.is_empty() {
        return word.into();
    }
    if word.contains(is_written) {
        let escaped = word.chars().map(|c| match c {
            '\\' | '\'' => format!("\\{c}"),
            c if is_written(c) => format!("\\u{:04x}", u32::from(c)),
            c => c.into(),
        });
        return format!("$'{}'", escaped.collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c)
}

/// Whether the character is written as its number: it controls a terminal, ends a line, or shows
/// what follows in another order.
fn is_written(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The words of a text in shell syntax. `None` if a shell would do more with it than take it apart.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut found, mut word) = (Vec::new(), None::<String>);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' => found.extend(word.take()),
            '\'' => single_quoted(&mut rest, word.get_or_insert_default())?,
            '$' if rest.next_if_eq(&'\'').is_some() => {
                escape_quoted(&mut rest, word.get_or_insert_default())?;
            }
            '\\' => {
                let escaped = rest.next().filter(|it| *it != '\n')?;
                word.get_or_insert_default().push(escaped);
            }
            c if is_plain(c) || c.is_alphanumeric() => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    found.extend(word);
    Some(found)
}

/// Takes what stands in `'…'`.
fn single_quoted(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '\'' => return Some(()),
            c => word.push(c),
        }
    }
}

/// Takes what stands in `$'…'` as [`quoted`] writes it.
fn escape_quoted(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '\'' => return Some(()),
            '\\' => match rest.next()? {
                c @ ('\\' | '\'') => word.push(c),
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    word.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                _ => return None,
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("--time=3"), "--time=3");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("ping $WEIR_PEER"), "'ping $WEIR_PEER'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("it's\n"), "$'it\\'s\\u000a'");
        assert_eq!(quoted("a\u{202e}b"), "$'a\\u202eb'");
    }

    #[test]
    fn quoted_words_are_taken_apart_again() {
        let given = ["-c", "it's", "a\nb'\\", "", "x y", "$(id)", "--a=b", "\u{202e}"];
        let text: Vec<String> = given.iter().map(|word| quoted(word)).collect();
        assert_eq!(words(&text.join(" ")).unwrap(), given);
        for more in ["a; b", "a $b", "`id`", "a > b", "a\nb", "'open", "$(id)", "\"a\"", "a*", "~"]
        {
            assert_eq!(words(more), None, "{more}");
        }
    }

    #[test]
    fn no_name_is_an_option() {
        let of = |name: &str| CommandLine::new("weir run").name(name).to_string();
        assert_eq!(of("rfc8867/5.1"), "weir run rfc8867/5.1");
        assert_eq!(of("--out=x"), "weir run ./--out=x");
        assert_eq!(of("-"), "weir run -");
        let line = CommandLine::new("weir run").option("--controller", "-x").path("-o", "-y");
        assert_eq!(line.to_string(), "weir run --controller=-x -o ./-y");
        let line = CommandLine::new("weir link").shell("ping 'a b'").shell("a; b");
        assert_eq!(line.to_string(), "weir link ping 'a b' 'a; b'");
    }

    #[test]
    fn the_name_of_a_member_is_no_option_and_no_pattern() {
        let of = |archive: &str, member: &str| CommandLine::unpacking(archive, member).to_string();
        assert_eq!(of("x.tgz", "m/a"), "tar -xOf x.tgz -- m/a");
        assert_eq!(of("-x.tar", "--to-command=id"), "tar -xOf ./-x.tar -- --to-command=id");
        assert_eq!(of("host:x.tar", r"a\101"), r"tar -xOf ./host:x.tar -- 'a\\101'");
        assert_eq!(of("a/b:x.tar", "-"), "tar -xOf a/b:x.tar -- -");
        assert_eq!(of("x.zip", "m/a.gz"), "unzip -p x.zip m/a.gz");
        assert_eq!(of("-x.ZIP", "-d/tmp"), r"unzip -p ./-x.ZIP '\-d/tmp'");
        assert_eq!(of("x.zip", "a*[b]?"), r"unzip -p x.zip 'a\*\[b\]\?'");
        let analyze = CommandLine::new("weir analyze").name("-").path("-o", "call.html");
        let line = CommandLine::unpacking("x.zip", "a").piped(&analyze);
        assert_eq!(line.to_string(), "unzip -p x.zip a | weir analyze - -o call.html");
    }
}
