//! The names of records: their paths below the folder of records.

use std::path::Path;

use weir_lab::record;

/// The path of a record below the folder of records.
pub fn name_below(out: &Path, folder: &Path) -> String {
    folder.strip_prefix(out).unwrap_or(folder).display().to_string()
}

/// The names of the records in a folder below `out`.
pub fn names_in(out: &Path, folder: &Path) -> Vec<String> {
    let found = record::find(folder).unwrap_or_default();
    found.iter().map(|folder| name_below(out, folder)).collect()
}
