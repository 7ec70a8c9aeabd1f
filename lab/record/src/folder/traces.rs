//! Trace files in records. A small one is in `run.json`. A large one is beside the records, once
//! for all runs that use it: `traces/HASH.gz`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use weir_scenario::trace_files::{FileText, KeptText, hash};

/// Largest trace in `run.json`, in bytes.
const LARGE: usize = 1 << 16;
/// Folder of the files that runs share.
const FOLDER: &str = "traces";
/// Number of folders above a record in which the files are looked for.
const LEVELS: usize = 6;

/// Where the text of a trace file is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum TraceText {
    /// Here.
    Here(String),
    /// In a file that runs share.
    Shared {
        /// The hash of the text in hexadecimal digits, which names the file.
        shared: String,
    },
}

impl TraceText {
    /// How a folder of records keeps a text.
    pub(super) fn of(text: &FileText) -> Self {
        match text {
            FileText::Held(text) if text.len() > LARGE => Self::Shared { shared: hash(text) },
            FileText::Held(text) => Self::Here(text.to_string()),
            FileText::Kept(kept) => Self::Shared { shared: kept.hash().into() },
        }
    }

    /// Whether it is this text.
    pub(super) fn is(&self, text: &FileText) -> bool {
        match (self, text) {
            (Self::Here(here), FileText::Held(text)) => *here == **text,
            _ => *self == Self::of(text),
        }
    }

    /// The text, for a record in this folder; `None` for one that is in no folder. One that runs
    /// share stays in its file.
    pub(super) fn find(&self, folder: Option<&Path>) -> Result<FileText, String> {
        let shared = match self {
            Self::Here(text) => return Ok(text.clone().into()),
            Self::Shared { shared } => shared,
        };
        let is_name = shared.len() == 32 && shared.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = format!("{shared}.gz");
        let mut folders = folder.into_iter().flat_map(Path::ancestors).take(LEVELS);
        let found = folders.find_map(|above| {
            let path = above.join(FOLDER).join(&name);
            path.is_file().then_some(path)
        });
        match found.filter(|_| is_name) {
            Some(path) => Ok(FileText::Kept(KeptText::new(path, shared.clone()))),
            None => Err(format!(
                "its trace {FOLDER}/{name} is not in a folder above it; records that share a trace \
                 move with that folder"
            )),
        }
    }
}

/// The texts of a scenario, as a folder of records keeps them.
pub(super) fn in_folder(texts: &BTreeMap<String, FileText>) -> BTreeMap<String, TraceText> {
    texts.iter().map(|(name, text)| (name.clone(), TraceText::of(text))).collect()
}

/// The texts of a scenario, all of them in the record.
pub(super) fn in_record(
    texts: &BTreeMap<String, FileText>,
) -> io::Result<BTreeMap<String, TraceText>> {
    let mut found = BTreeMap::new();
    for (name, text) in texts {
        found.insert(name.clone(), TraceText::Here(text.read()?.to_string()));
    }
    Ok(found)
}

/// Writes the large ones of these texts below the folder of all records, unless they are there.
pub(super) fn share(out: &Path, texts: &BTreeMap<String, FileText>) -> io::Result<()> {
    for text in texts.values() {
        let TraceText::Shared { shared } = TraceText::of(text) else { continue };
        let folder = out.join(FOLDER);
        let path = folder.join(format!("{shared}.gz"));
        if path.is_file() {
            continue;
        }
        fs::create_dir_all(&folder)?;
        write_packed(&folder, &path, &text.read()?)?;
    }
    Ok(())
}

/// Another run may write the same file at the same time: the last one replaces equal bytes.
fn write_packed(folder: &Path, path: &PathBuf, text: &str) -> io::Result<()> {
    let new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    let mut out = GzEncoder::new(io::BufWriter::new(new.as_file()), Compression::new(9));
    out.write_all(text.as_bytes())?;
    out.finish()?.flush()?;
    new.persist(path).map(|_: File| ()).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_trace_is_kept_once_and_a_small_one_in_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let (small, large) = ("0 1\n".to_owned(), "0 1\n".repeat(40_000));
        let texts = [("a".into(), small.clone().into()), ("b".into(), large.clone().into())];
        let texts = BTreeMap::from(texts);
        share(folder.path(), &texts).unwrap();
        share(folder.path(), &texts).unwrap();
        let files: Vec<_> = fs::read_dir(folder.path().join(FOLDER)).unwrap().collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].as_ref().unwrap().metadata().unwrap().len() < 2_000);
        let run = folder.path().join("x/gcc/1");
        for text in [small, large.clone()].map(FileText::from) {
            let kept = TraceText::of(&text);
            assert_eq!(kept.find(Some(&run)), Ok(text.clone()));
            assert!(kept.is(&text) && !kept.is(&"0 2\n".to_owned().into()));
        }
        let elsewhere = TraceText::of(&large.into()).find(Some(Path::new("/nowhere/x")));
        assert!(elsewhere.unwrap_err().contains("is not in a folder above it"));
    }

    #[test]
    fn a_shared_trace_that_was_changed_or_named_at_will_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let large = FileText::from("0 1\n".repeat(40_000));
        share(folder.path(), &BTreeMap::from([("a".into(), large.clone())])).unwrap();
        let path =
            fs::read_dir(folder.path().join(FOLDER)).unwrap().next().unwrap().unwrap().path();
        fs::write(&path, "0 2\n").unwrap();
        let found = TraceText::of(&large).find(Some(folder.path())).unwrap();
        let error = found.read().unwrap_err().to_string();
        assert!(error.contains("is not the trace that it is named by"), "{error}");
        let name = TraceText::Shared { shared: "../../etc/passwd".into() };
        assert!(name.find(Some(folder.path())).is_err());
    }
}
