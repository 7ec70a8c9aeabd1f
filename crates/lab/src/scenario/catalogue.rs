//! The scenarios that the program carries with it, and how a command line names them.

use std::fs;
use std::path::Path;

use super::error::{ScenarioError, nearest, printable, quoted};
use super::{Scenario, parse};

/// Id and text of every file below `scenarios/`, by id.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// How many ids an error suggests.
const SUGGESTIONS: usize = 3;

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
    FILES.iter().map(|file| file.0)
}

/// The scenarios that a name on the command line stands for, at least one: an id (one that has
/// only variants stands for the first of them), a pattern such as `lund/*` whose `*` also matches
/// `/`, or the path of a `.toml` file.
pub fn find(name: &str) -> Result<Vec<Scenario>, CatalogueError> {
    if name.ends_with(".toml") {
        return Ok(vec![read(name)?]);
    }
    let files = if name.contains(['*', '?', '[']) { matching(name)? } else { named(name) };
    if files.is_empty() {
        return Err(unknown(name));
    }
    files.into_iter().map(|(id, text)| Ok(parse(id, text, None)?)).collect()
}

fn read(path: &str) -> Result<Scenario, CatalogueError> {
    let text = fs::read_to_string(path).map_err(|error| CatalogueError::Unreadable {
        path: printable(&quoted(path)),
        why: printable(&error.to_string()),
    })?;
    Ok(parse(path, &text, Path::new(path).parent())?)
}

fn named(id: &str) -> Vec<(&'static str, &'static str)> {
    let is_variant = |name: &str| name.strip_prefix(id).is_some_and(|rest| rest.starts_with('/'));
    let exact = FILES.iter().find(|file| file.0 == id);
    // A source, such as `lund`, is no scenario; its scenarios are not its variants.
    let first = || FILES.iter().find(|file| id.contains('/') && is_variant(file.0));
    exact.or_else(first).copied().into_iter().collect()
}

fn matching(name: &str) -> Result<Vec<(&'static str, &'static str)>, CatalogueError> {
    let pattern = glob::Pattern::new(name).map_err(|error| CatalogueError::Pattern {
        name: printable(&quoted(name)),
        why: printable(error.msg),
    })?;
    Ok(FILES.iter().filter(|file| pattern.matches(file.0)).copied().collect())
}

fn unknown(name: &str) -> CatalogueError {
    let within = ids().filter(|id| id.starts_with(name.trim_end_matches('/')));
    let mut near: Vec<&str> = nearest(name, ids());
    near.extend(within);
    near.dedup();
    near.truncate(SUGGESTIONS);
    let hint = if near.is_empty() {
        "`weir list` shows all".into()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    CatalogueError::Unknown { name: printable(&quoted(name)), hint }
}
