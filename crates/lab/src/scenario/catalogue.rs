//! The scenarios that the program carries with it, and how a command line names them.

use std::path::Path;
use std::sync::LazyLock;

use super::Scenario;
use super::error::{ScenarioError, nearest, printable, quoted};
use super::parse::{self, parse, parse_variant};
use crate::files;

/// Bytes of a scenario file: far more than anybody writes.
const TEXT_MAX: u64 = 16_000_000;

/// Id and text of every file below `scenarios/`, by id.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Every scenario of the files and their variants, by id.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entries = |&(file, text): &(&'static str, &'static str)| {
        let variant = move |variant: String| Entry {
            id: format!("{file}/{variant}"),
            variant: Some(variant),
            text,
        };
        let base = Entry { id: file.into(), variant: None, text };
        std::iter::once(base).chain(parse::variants(text).into_iter().map(variant))
    };
    let mut all: Vec<Entry> = FILES.iter().flat_map(entries).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
});

struct Entry {
    id: String,
    /// The variant of the file that it is.
    variant: Option<String>,
    text: &'static str,
}

impl Entry {
    fn read(&self) -> Result<Scenario, CatalogueError> {
        Ok(read_text(&self.id, self.text, self.variant.as_deref(), None)?)
    }
}

/// How many ids an error suggests.
const SUGGESTIONS: usize = 3;
/// The shortest id without its source that a misspelt one is held against.
const SHORTEST: usize = 7;

/// Why a name gave no scenario; its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// There is no such id.
    #[error("there is no scenario {name}; {hint}")]
    Unknown {
        /// The name, in quotes.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// A pattern with a mistake in it.
    #[error("{name} is not a pattern: {why}")]
    Pattern {
        /// The pattern, in quotes.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the scenario file {path}: {why}")]
    Unreadable {
        /// The path, in quotes.
        path: String,
        /// The system's words.
        why: String,
    },
    /// A file with a mistake in it.
    #[error(transparent)]
    Invalid(#[from] ScenarioError),
}

/// The ids of the catalogue, sorted.
pub fn ids() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.id.as_str())
}

/// The scenarios that a name on the command line stands for, at least one: an id (one that has
/// only variants stands for the first of them), a pattern such as `lund/*` whose `*` also matches
/// `/`, the path of a `.toml` file, or a path with one of the file's variants behind it.
pub fn find(name: &str) -> Result<Vec<Scenario>, CatalogueError> {
    if name.ends_with(".toml") {
        return Ok(vec![read_file(name, name, None)?]);
    }
    if let Some(end) = name.rfind(".toml/") {
        let (path, variant) = (&name[..end + ".toml".len()], &name[end + ".toml/".len()..]);
        return Ok(vec![read_file(name, path, Some(variant))?]);
    }
    let entries = if name.contains(['*', '?', '[']) { matching(name)? } else { named(name) };
    if entries.is_empty() {
        return Err(unknown(name));
    }
    entries.into_iter().map(Entry::read).collect()
}

fn read_file(id: &str, path: &str, variant: Option<&str>) -> Result<Scenario, CatalogueError> {
    let text = files::read_text(Path::new(path), TEXT_MAX).map_err(|error| {
        CatalogueError::Unreadable {
            path: printable(&quoted(path)),
            why: printable(&error.to_string()),
        }
    })?;
    Ok(read_text(id, &text, variant, Path::new(path).parent())?)
}

fn read_text(
    id: &str,
    text: &str,
    variant: Option<&str>,
    folder: Option<&Path>,
) -> Result<Scenario, ScenarioError> {
    match variant {
        Some(variant) => parse_variant(id, text, variant, folder),
        None => parse(id, text, folder),
    }
}

fn named(id: &str) -> Vec<&'static Entry> {
    let is_variant = |name: &str| name.strip_prefix(id).is_some_and(|rest| rest.starts_with('/'));
    let exact = ENTRIES.iter().find(|entry| entry.id == id);
    // A source, such as `lund`, is no scenario; its scenarios are not its variants.
    let first = || ENTRIES.iter().find(|entry| id.contains('/') && is_variant(&entry.id));
    exact.or_else(first).into_iter().collect()
}

fn matching(name: &str) -> Result<Vec<&'static Entry>, CatalogueError> {
    let pattern = glob::Pattern::new(name).map_err(|error| CatalogueError::Pattern {
        name: printable(&quoted(name)),
        why: printable(error.msg),
    })?;
    Ok(ENTRIES.iter().filter(|entry| pattern.matches(&entry.id)).collect())
}

fn unknown(name: &str) -> CatalogueError {
    let trimmed = name.trim_end_matches('/').to_lowercase();
    let of_source = ids().filter(|id| id.starts_with(&trimmed));
    // An id without its source, or a part of one.
    let within = ids().filter(|id| trimmed.len() > 2 && id.contains(&trimmed));
    let last = |id: &'static str| id.rsplit_once('/').map_or(id, |(_, last)| last);
    // Of a short word two slips would leave nothing.
    let is_long = |name: &str| name.len() >= SHORTEST;
    let near_last = |id: &&'static str| !nearest(&trimmed, [last(id)]).is_empty();
    let without_source = ids().filter(|id| is_long(&trimmed) && is_long(last(id)) && near_last(id));
    let mut near: Vec<&str> = Vec::new();
    for id in
        nearest(&trimmed, ids()).into_iter().chain(of_source).chain(within).chain(without_source)
    {
        if !near.contains(&id) {
            near.push(id);
        }
    }
    near.truncate(SUGGESTIONS);
    let hint = if near.is_empty() {
        "`weir list` shows all".into()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    CatalogueError::Unknown { name: printable(&quoted(name)), hint }
}
