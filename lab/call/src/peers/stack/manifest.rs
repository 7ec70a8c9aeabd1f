//! The file `stack.toml`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weir_controllers::LabAlgorithm;
use weir_record::subject::StackRole;
use weir_scenario::files;

use crate::message::printable;

/// Maximum size of the file. The largest of the arena has 2 kB.
const FILE_BYTES_MAX: u64 = 1_000_000;
/// Maximum length of a text of the file. The longest of the arena has 400 characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// The file `stack.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the stack, as people know it.
    pub title: String,
    /// Address of its project.
    pub home: String,
    /// Its licence.
    pub licence: String,
    /// What controls the rate, in a few words.
    pub control: String,
    /// Our controller whose simulation should behave alike.
    #[serde(default)]
    pub twin: Option<String>,
    /// The feedback that it asks for.
    pub feedback: Vec<FeedbackKind>,
    /// What its driver can do in a call.
    #[serde(default = "sends")]
    pub roles: Vec<StackRole>,
    /// Whether it is at both ends of a call. One that speaks no WebRTC needs no browser.
    #[serde(default)]
    pub both_ends: bool,
    /// Where its pictures are encoded, in a few words.
    pub encoder: String,
    /// The driver's program and arguments. Paths are relative to the folder.
    pub driver: Vec<String>,
    /// A shell command that installs it, to be run in the folder.
    pub install: String,
    /// What its users should know, in a sentence.
    #[serde(default)]
    pub note: Option<String>,
    /// How its participants use it, if it is a forwarding server and not a sender.
    #[serde(default)]
    pub application: Option<ServedApplication>,
}

impl Manifest {
    /// An error if a text cannot be shown in a line, or be a word of a command.
    fn check_texts(&self) -> Result<(), String> {
        let Self { title, home, licence, control, encoder, install, note, .. } = self;
        let mut texts = vec![("title", title), ("home", home), ("licence", licence)];
        texts.extend([("control", control), ("encoder", encoder), ("install", install)]);
        texts.extend(note.iter().map(|note| ("note", note)));
        texts.extend(self.driver.iter().map(|word| ("driver", word)));
        if let Some(ServedApplication { page, serve, .. }) = &self.application {
            texts.extend([("page", page), ("serve", serve)]);
        }
        for (name, text) in texts {
            if text.contains(char::is_control) {
                return Err(format!("{name} has a control character: write one line of text"));
            }
            if text.chars().count() > TEXT_CHARS_MAX {
                return Err(format!("{name} is longer than {TEXT_CHARS_MAX} characters"));
            }
        }
        Ok(())
    }
}

/// The roles of a driver whose file names none.
fn sends() -> Vec<StackRole> {
    vec![StackRole::Sender]
}

/// A forwarding server with an application around it, as `weir call --app` takes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedApplication {
    /// The page of a participant, with `{server}` for the address.
    pub page: String,
    /// The module that makes a participant join, relative to the stack's folder.
    pub join: PathBuf,
    /// The shell command of the server, run in the stack's folder.
    pub serve: String,
    /// Number of participants.
    pub participants: usize,
}

/// What a receiver tells a sender about its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    /// Transport-wide feedback.
    Twcc,
    /// The feedback of RFC 8888.
    Ccfb,
    /// The receiver's own estimate.
    Remb,
    /// Receiver reports alone.
    Rr,
    /// The acknowledgements of QUIC.
    Quic,
}

impl fmt::Display for FeedbackKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Twcc => "TWCC",
            Self::Ccfb => "CCFB",
            Self::Remb => "REMB",
            Self::Rr => "RR",
            Self::Quic => "QUIC",
        })
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// One line, if it is damaged.
pub(super) fn read(path: &Path) -> Result<Manifest, String> {
    let text = files::read_text(path, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| {
        let before = error.span().map_or("", |span| &text[..span.start]);
        let line = before.matches('\n').count() + 1;
        printable(&format!("line {line}: {}", error.message().replace('\n', " ")))
    })?;
    if manifest.driver.first().is_none_or(String::is_empty) {
        return Err("driver is empty: name a program".into());
    }
    manifest.check_texts()?;
    if let Some(twin) = &manifest.twin {
        let known: Vec<&str> = LabAlgorithm::named().map(LabAlgorithm::name).collect();
        if !known.contains(&twin.as_str()) {
            return Err(format!("twin: no controller '{}': {}", printable(twin), known.join(", ")));
        }
    }
    Ok(manifest)
}
