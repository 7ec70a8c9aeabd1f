//! Messages as lines of JSON.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// A file to which messages are appended. Several processes have one each.
pub(crate) struct Trace(Mutex<File>);

impl Trace {
    pub(crate) fn append(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Notes a message. An error is no reason to stop a server.
    pub(crate) fn note(&self, message: &Noted) {
        let line = format!("{}\n", message.to_json());
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = file.write_all(line.as_bytes());
    }
}

/// A message between two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Time by the clock of the machine, which all namespaces share.
    pub(crate) time_ns: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    /// `SIP` or `Diameter`.
    pub(crate) protocol: String,
    /// Method, status or command.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Noted {
    pub(crate) fn now(from: &str, to: &str, protocol: &str, name: String, text: String) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self { time_ns, from: from.into(), to: to.into(), protocol: protocol.into(), name, text }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "time_ns": self.time_ns.to_string(),
            "from": self.from,
            "to": self.to,
            "protocol": self.protocol,
            "name": self.name,
            "text": self.text,
        })
    }

    pub(crate) fn from_json(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self {
            time_ns: text("time_ns")?.parse().ok()?,
            from: text("from")?,
            to: text("to")?,
            protocol: text("protocol")?,
            name: text("name")?,
            text: text("text")?,
        })
    }
}

/// The messages of a file from this time on.
pub(crate) fn since(path: &Path, time_ns: u64) -> Vec<Noted> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let noted = text.lines().filter_map(Noted::from_json);
    noted.filter(|one| one.time_ns >= time_ns).collect()
}

/// A ladder diagram in text: a column for each part, an arrow for each message.
pub(crate) fn ladder(messages: &[Noted]) -> String {
    const WIDTH: usize = 14;
    let mut parts: Vec<&str> = Vec::new();
    for message in messages {
        for part in [message.from.as_str(), message.to.as_str()] {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    let start = messages.first().map_or(0, |first| first.time_ns);
    let mut text = format!("{:>9} ", "ms");
    for part in &parts {
        let _ = write!(text, "{part:^WIDTH$}");
    }
    text.push('\n');
    for message in messages {
        let [from, to] = [&message.from, &message.to]
            .map(|name| parts.iter().position(|part| part == name).unwrap_or(0));
        let (left, right) = (from.min(to), from.max(to));
        let ms = (message.time_ns - start) as f64 / 1e6;
        let name = &message.name;
        let width = ((right - left) * WIDTH).saturating_sub(2).max(name.len());
        let line = format!("{name:-^width$}");
        let arrow = if to >= from { format!("{line}>") } else { format!("<{line}") };
        let before = " ".repeat(left * WIDTH + WIDTH / 2);
        let _ = writeln!(text, "{ms:9.1} {before}{arrow}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(time_ns: u64, from: &str, to: &str, name: &str) -> Noted {
        Noted {
            time_ns,
            from: from.into(),
            to: to.into(),
            protocol: "SIP".into(),
            name: name.into(),
            text: "a\r\n\"b\"".into(),
        }
    }

    #[test]
    fn a_message_is_written_and_read() {
        let message = noted(u64::MAX, "a", "b", "INVITE");
        assert_eq!(Noted::from_json(&message.to_json().to_string()), Some(message));
        assert_eq!(Noted::from_json("{}"), None);
    }

    #[test]
    fn a_ladder_has_an_arrow_for_each_message() {
        let messages = [noted(0, "a", "b", "INVITE"), noted(1_500_000, "b", "a", "200")];
        let lines: Vec<String> =
            ladder(&messages).lines().map(|line| line.trim_end().into()).collect();
        assert_eq!(lines[0], "       ms       a             b");
        assert_eq!(lines[1], "      0.0        ---INVITE--->");
        assert_eq!(lines[2], "      1.5        <----200-----");
    }
}
