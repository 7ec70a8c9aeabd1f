//! Trace files in records. A small one is in `run.json`. A large one is beside the records, once
//! for all runs that use it: `traces/HASH.gz`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use weir_scenario::files;

/// Largest trace in `run.json`, in bytes.
const LARGE: usize = 1 << 16;
/// Largest trace file, in bytes: that of a scenario.
const MAX: u64 = 1 << 28;
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
    pub(super) fn of(text: &str) -> Self {
        match text.len() > LARGE {
            true => Self::Shared { shared: hash(text) },
            false => Self::Here(text.into()),
        }
    }

    /// Whether it is this text.
    pub(super) fn is(&self, text: &str) -> bool {
        match self {
            Self::Here(here) => here == text,
            Self::Shared { shared } => *shared == hash(text),
        }
    }

    /// The text, for a record in this folder; `None` for one that is in no folder.
    pub(super) fn read(&self, folder: Option<&Path>) -> Result<String, String> {
        let shared = match self {
            Self::Here(text) => return Ok(text.clone()),
            Self::Shared { shared } => shared,
        };
        let is_name = shared.len() == 32 && shared.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = format!("{shared}.gz");
        let mut folders = folder.into_iter().flat_map(Path::ancestors).take(LEVELS);
        let found = folders.find_map(|above| {
            let path = above.join(FOLDER).join(&name);
            path.is_file().then_some(path)
        });
        let Some(path) = found.filter(|_| is_name) else {
            return Err(format!(
                "its trace {FOLDER}/{name} is not in a folder above it; records that share a trace \
                 move with that folder"
            ));
        };
        let text = files::read_packed_text(&path, MAX)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        match hash(&text) == *shared {
            true => Ok(text),
            false => Err(format!("{} is not the trace that it is named by", path.display())),
        }
    }
}

/// Writes the large ones of these texts below the folder of all records, unless they are there.
pub(super) fn share(out: &Path, texts: &BTreeMap<String, String>) -> io::Result<()> {
    for text in texts.values() {
        let TraceText::Shared { shared } = TraceText::of(text) else { continue };
        let folder = out.join(FOLDER);
        let path = folder.join(format!("{shared}.gz"));
        if path.is_file() {
            continue;
        }
        fs::create_dir_all(&folder)?;
        write_packed(&folder, &path, text)?;
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

/// FNV-1a with 128 bits. It tells texts apart and is not meant for security.
fn hash(text: &str) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in text.bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_trace_is_kept_once_and_a_small_one_in_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let (small, large) = ("0 1\n".to_owned(), "0 1\n".repeat(40_000));
        let texts = [("a".into(), small.clone()), ("b".into(), large.clone())];
        let texts = BTreeMap::from(texts);
        share(folder.path(), &texts).unwrap();
        share(folder.path(), &texts).unwrap();
        let files: Vec<_> = fs::read_dir(folder.path().join(FOLDER)).unwrap().collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].as_ref().unwrap().metadata().unwrap().len() < 2_000);
        let run = folder.path().join("x/gcc/1");
        for text in [&small, &large] {
            let kept = TraceText::of(text);
            assert_eq!(kept.read(Some(&run)).as_ref(), Ok(text));
            assert!(kept.is(text) && !kept.is("0 2\n"));
        }
        let elsewhere = TraceText::of(&large).read(Some(Path::new("/nowhere/x")));
        assert!(elsewhere.unwrap_err().contains("is not in a folder above it"));
    }

    #[test]
    fn a_shared_trace_that_was_changed_or_named_at_will_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let large = "0 1\n".repeat(40_000);
        share(folder.path(), &BTreeMap::from([("a".into(), large.clone())])).unwrap();
        let path =
            fs::read_dir(folder.path().join(FOLDER)).unwrap().next().unwrap().unwrap().path();
        fs::write(&path, "0 2\n").unwrap();
        let error = TraceText::of(&large).read(Some(folder.path())).unwrap_err();
        assert!(error.contains("is not the trace that it is named by"), "{error}");
        let name = TraceText::Shared { shared: "../../etc/passwd".into() };
        assert!(name.read(Some(folder.path())).is_err());
    }

    // The values of the reference implementation of FNV.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash("a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
