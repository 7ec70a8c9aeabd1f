//! The commands of a shell that repeat a run with what its sliders changed.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use weir_record::shell::quoted;

/// Name of an edited scenario, as a file and in records.
pub const EDITED: &str = "edited.toml";

/// Changes of one property that follow each other faster are one movement of a slider: its last
/// value counts.
const MOVEMENT: Duration = Duration::from_secs(1);

/// The command that started a run, and the changes since.
#[derive(Debug)]
pub struct Repeat {
    began: Instant,
    /// Text of an edited scenario.
    edited: Option<String>,
    /// Words of the command line, up to the options' end.
    words: Vec<String>,
    /// Command in the emulated network; empty for other runs.
    inside: Vec<String>,
    /// Time since the start, and a line such as `loss up 5%`.
    changes: Vec<(Duration, String)>,
}

impl Repeat {
    /// A run that starts now as `weir` with these words.
    pub fn new(edited: Option<&str>, words: &[String], inside: &[String]) -> Self {
        Self {
            began: Instant::now(),
            edited: edited.map(String::from),
            words: words.into(),
            inside: inside.into(),
            changes: Vec::new(),
        }
    }

    /// Keeps a change that was made now.
    pub fn change(&mut self, line: &str) {
        self.change_at(self.began.elapsed(), line);
    }

    fn change_at(&mut self, time: Duration, line: &str) {
        if let Some((last, before)) = self.changes.last_mut()
            && property(before) == property(line)
            && time.saturating_sub(*last) < MOVEMENT
        {
            (*last, *before) = (time, line.into());
            return;
        }
        self.changes.push((time, line.into()));
    }

    /// Text to paste into a shell.
    pub fn shell(&self) -> String {
        let mut text = String::new();
        if let Some(edited) = &self.edited {
            let mut end = String::from("EOF");
            while edited.contains(&end) {
                end.push('_');
            }
            let newline = if edited.ends_with('\n') { "" } else { "\n" };
            let _ = writeln!(text, "cat > {EDITED} <<'{end}'\n{edited}{newline}{end}");
        }
        let mut words = vec!["weir".to_owned()];
        words.extend(self.words.iter().map(|word| quoted(word)));
        if !self.changes.is_empty() {
            let mut before = Duration::ZERO;
            text.push_str("{ ");
            for (time, line) in &self.changes {
                let pause = time.saturating_sub(before).as_secs_f64();
                let _ = write!(text, "sleep {pause:.1}; echo {}; ", quoted(line));
                before = *time;
            }
            text.push_str("} | ");
            words.push("--interactive".into());
        }
        if !self.inside.is_empty() {
            words.push("--".into());
            words.extend(self.inside.iter().map(|word| quoted(word)));
        }
        text.push_str(&words.join(" "));
        text
    }
}

/// What a change is of, such as `loss up`.
fn property(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(property, _)| property)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    /// What `weir` gets from the shell: its words, one a line, and its input if it asks for it.
    fn run(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let weir = "weir() { printf '%s\\n' \"$@\"; \
                    case \"$*\" in *--interactive*) cat;; esac; }; sleep() { :; }";
        let script = format!("{weir}\n{text}\n[ ! -e edited.toml ] || cat edited.toml");
        let done = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn a_link_has_its_command_and_the_changes_of_the_sliders() {
        let inside = words("sh -c ping|cat");
        let mut repeat = Repeat::new(None, &words("link demo/first-call"), &inside);
        assert_eq!(run(&repeat.shell()), "link\ndemo/first-call\n--\nsh\n-c\nping|cat\n");
        for (s, line) in
            [(2.0, "loss 1%"), (2.5, "loss 5%"), (2.6, "delay up 9ms"), (9.0, "loss 0%")]
        {
            repeat.change_at(Duration::from_secs_f64(s), line);
        }
        let expected = "link\ndemo/first-call\n--interactive\n--\nsh\n-c\nping|cat\n\
                        loss 5%\ndelay up 9ms\nloss 0%\n";
        assert_eq!(run(&repeat.shell()), expected);
        assert!(repeat.shell().contains("sleep 2.5;") && repeat.shell().contains("sleep 6.4;"));
    }

    #[test]
    fn an_edited_scenario_comes_with_its_text() {
        let text = "title = \"EOF $HOME\"\nx = 'y'";
        let repeat = Repeat::new(Some(text), &words("run edited.toml"), &[]);
        assert_eq!(run(&repeat.shell()), format!("run\nedited.toml\n{text}\n"));
    }
}
