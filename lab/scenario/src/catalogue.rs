//! The scenarios built into the program, and how the command line selects them.

use std::path::Path;
use std::sync::LazyLock;

use super::Scenario;
use super::error::{ScenarioError, nearest, printable, quoted};
use super::parse::{self, parse, parse_variant};
use crate::files;

/// Size limit of a scenario file in bytes, far above any real file.
const TEXT_MAX: u64 = 16_000_000;

/// Id and text of every file in `scenarios/`, ordered by id.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// All scenarios and variants of the files, ordered by id.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for &(file, text) in FILES {
        all.push(Entry { id: file.into(), variant: None, text });
        for variant in parse::variants(text) {
            let id = format!("{file}/{variant}");
            all.push(Entry { id, variant: Some(variant), text });
        }
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
});

struct Entry {
    id: String,
    /// Name of the variant within the file, if it is one.
    variant: Option<String>,
    text: &'static str,
}

impl Entry {
    fn read(&self) -> Result<Scenario, CatalogueError> {
        Ok(read_text(&self.id, self.text, self.variant.as_deref(), None)?)
    }
}

/// Maximum number of ids that an error suggests.
const SUGGESTIONS: usize = 3;
/// Minimum length, in bytes, of names that are compared without their source. See [`unknown`].
const SHORTEST: usize = 7;

/// Why a name selects no scenario; its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// There is no such id.
    #[error("there is no scenario {name}; {hint}")]
    Unknown {
        /// The name as given, in quotes.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// A pattern with a syntax error.
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
        /// The system's error message.
        why: String,
    },
    /// A file with an error in it.
    #[error(transparent)]
    Invalid(#[from] ScenarioError),
}

/// The ids of the catalogue in alphabetical order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.id.as_str())
}

/// The scenarios selected by a name on the command line, at least one. The name can be:
///
/// - an id; an id that has only variants selects the first of them;
/// - a pattern such as `lund/*`, whose `*` also matches `/`;
/// - the path of a `.toml` file, optionally followed by `/` and one of its variants;
/// - a pattern of such paths, as a shell would have expanded it, such as `network/*.toml`.
pub fn find(name: &str) -> Result<Vec<Scenario>, CatalogueError> {
    if name.ends_with(".toml") {
        let files = files_like(name)?;
        return files.iter().map(|path| read_file(path, path, None)).collect();
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

/// The files that a name means: one, or those of a pattern in the order of their names.
fn files_like(name: &str) -> Result<Vec<String>, CatalogueError> {
    let mut files = Vec::new();
    if name.contains(['*', '?', '[']) && !Path::new(name).exists() {
        for path in glob::glob(name).map_err(|error| no_pattern(name, &error))?.flatten() {
            files.extend(path.to_str().map(str::to_owned));
        }
        if files.is_empty() {
            let why = "no file has a name like this".into();
            return Err(CatalogueError::Unreadable { path: printable(&quoted(name)), why });
        }
    }
    if files.is_empty() {
        files.push(name.to_owned());
    }
    Ok(files)
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
    // A source, such as `lund`, is not a scenario, and its scenarios are not variants of it.
    if let Some(exact) = ENTRIES.iter().find(|entry| entry.id == id) {
        return vec![exact];
    }
    if !id.contains('/') {
        return Vec::new();
    }
    let variants = format!("{id}/");
    ENTRIES.iter().find(|entry| entry.id.starts_with(&variants)).into_iter().collect()
}

fn matching(name: &str) -> Result<Vec<&'static Entry>, CatalogueError> {
    let pattern = glob::Pattern::new(name).map_err(|error| no_pattern(name, &error))?;
    Ok(ENTRIES.iter().filter(|entry| pattern.matches(&entry.id)).collect())
}

fn no_pattern(name: &str, error: &glob::PatternError) -> CatalogueError {
    CatalogueError::Pattern { name: printable(&quoted(name)), why: printable(error.msg) }
}

fn unknown(name: &str) -> CatalogueError {
    let trimmed = name.trim_end_matches('/').to_lowercase();
    let source = format!("{trimmed}/");
    if !trimmed.contains('/') && ids().any(|id| id.starts_with(&source)) {
        let hint = format!("write '{source}*' for all of this source");
        return CatalogueError::Unknown { name: printable(&quoted(name)), hint };
    }
    if Path::new(name).is_dir() {
        let folder = name.trim_end_matches('/');
        let hint = format!("it is a folder: write '{}/*.toml' for its files", printable(folder));
        return CatalogueError::Unknown { name: printable(&quoted(name)), hint };
    }
    let of_source = ids().filter(|id| id.starts_with(&trimmed));
    // The name may be an id without its source, or part of an id.
    let within = ids().filter(|id| trimmed.len() > 2 && id.contains(&trimmed));
    let without_source = ids().filter(|id| {
        let last = id.rsplit_once('/').map_or(*id, |(_, last)| last);
        // For short words, the allowed two slips would match almost anything.
        trimmed.len().min(last.len()) >= SHORTEST && !nearest(&trimmed, [last]).is_empty()
    });
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
        "`weir list --all` shows all".into()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    CatalogueError::Unknown { name: printable(&quoted(name)), hint }
}
