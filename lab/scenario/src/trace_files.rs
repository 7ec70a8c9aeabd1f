//! Reads the trace files that a scenario refers to, and remembers which were read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files;

/// Size limit in bytes: about two hours at 50 Mbit/s with one packet per line.
const TRACE_MAX: u64 = 1 << 28;

/// The text of a trace file that a scenario uses.
#[derive(Clone, Debug)]
pub enum FileText {
    /// The text. Copies share it.
    Held(Arc<String>),
    /// A file that records share, and that keeps it.
    Kept(KeptText),
}

impl From<String> for FileText {
    fn from(text: String) -> Self {
        Self::Held(Arc::new(text))
    }
}

/// Texts are the same if they have the same hash.
impl PartialEq for FileText {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Held(one), Self::Held(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::Kept(one), Self::Kept(other)) => one.hash == other.hash,
            (Self::Held(text), Self::Kept(kept)) | (Self::Kept(kept), Self::Held(text)) => {
                kept.hash == hash(text)
            }
        }
    }
}

impl FileText {
    /// The text.
    ///
    /// # Errors
    /// If the file that keeps it cannot be read, or has another text.
    pub fn read(&self) -> io::Result<Arc<String>> {
        match self {
            Self::Held(text) => Ok(Arc::clone(text)),
            Self::Kept(kept) => kept.read(),
        }
    }

    /// The hash of the text in hexadecimal digits.
    pub(super) fn hash(&self) -> String {
        match self {
            Self::Held(text) => hash(text),
            Self::Kept(kept) => kept.hash.clone(),
        }
    }

    /// How many lines it has; those before an error, if it cannot be read.
    pub(super) fn lines(&self) -> usize {
        let mut count = 0;
        match self {
            Self::Held(text) => count = text.lines().count(),
            Self::Kept(kept) => {
                let counted = kept.each_line::<io::Error>(
                    |_| true,
                    |_| {
                        count += 1;
                        Ok(())
                    },
                );
                counted.unwrap_or_default();
            }
        }
        count
    }
}

/// A file that keeps a text, packed or not.
#[derive(Clone, Debug)]
pub struct KeptText {
    path: PathBuf,
    hash: String,
}

impl KeptText {
    /// The file at this path, whose text has this [`hash`].
    pub fn new(path: PathBuf, hash: String) -> Self {
        Self { path, hash }
    }

    /// The hash of its text.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    fn read(&self) -> io::Result<Arc<String>> {
        let text = files::read_packed_text(&self.path, TRACE_MAX)?;
        self.check(TextHash::of(text.as_bytes()))?;
        Ok(Arc::new(text))
    }

    fn check(&self, found: TextHash) -> io::Result<()> {
        if found.digits() == self.hash {
            return Ok(());
        }
        let message = format!("{} is not the trace that it is named by", self.path.display());
        Err(io::Error::new(ErrorKind::InvalidData, message))
    }

    /// Passes the lines to `take`, without holding the text; before that its beginning to `is_for`,
    /// which says whether to go on. Returns whether it did.
    ///
    /// # Errors
    /// As [`FileText::read`], and those of `take`.
    pub(super) fn each_line<E: From<io::Error>>(
        &self,
        is_for: impl FnOnce(&str) -> bool,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut reader = files::open_packed(&self.path)?.take(TRACE_MAX);
        let head = reader.fill_buf()?;
        // Up to its last line that is whole.
        let end = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let head = std::str::from_utf8(&head[..end]).unwrap_or_default();
        if head.is_empty() || head.starts_with('\u{feff}') || !is_for(head) {
            return Ok(false);
        }
        let (mut hash, mut line) = (TextHash::default(), Vec::new());
        while reader.read_until(b'\n', &mut line)? > 0 {
            hash.add(&line);
            let text = std::str::from_utf8(&line);
            take(text.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?)?;
            line.clear();
        }
        self.check(hash)?;
        Ok(true)
    }
}

/// FNV-1a with 128 bits. It tells texts apart and is not meant for security.
#[derive(Clone, Copy, Debug)]
struct TextHash(u128);

impl Default for TextHash {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl TextHash {
    fn of(bytes: &[u8]) -> Self {
        let mut hash = Self::default();
        hash.add(bytes);
        hash
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let mixed = self.0 ^ u128::from(*byte);
            self.0 = mixed.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn digits(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// The hash of a text in hexadecimal digits.
pub fn hash(text: &str) -> String {
    TextHash::of(text.as_bytes()).digits()
}

/// A place from which trace files are read. It remembers their contents, so that a record can
/// include them.
pub(super) struct TraceFiles<'a> {
    place: Place<'a>,
    read: RefCell<BTreeMap<String, FileText>>,
}

enum Place<'a> {
    /// No place: the scenario is built into the program.
    None,
    /// The folder of the scenario's file.
    Beside(&'a Path),
    /// A record, which stores them by the names that the scenario uses.
    Recorded(BTreeMap<String, FileText>),
}

impl<'a> TraceFiles<'a> {
    pub(super) fn beside(folder: Option<&'a Path>) -> Self {
        Self { place: folder.map_or(Place::None, Place::Beside), read: RefCell::default() }
    }

    pub(super) fn recorded(files: BTreeMap<String, FileText>) -> Self {
        Self { place: Place::Recorded(files), read: RefCell::default() }
    }

    /// Whether the scenario comes from the record of an earlier run.
    pub(super) fn are_recorded(&self) -> bool {
        matches!(self.place, Place::Recorded(_))
    }

    /// A file. Large ones are read once and not copied.
    pub(super) fn get(&self, name: &str) -> Result<FileText, String> {
        if let Some(text) = self.read.borrow().get(name) {
            return Ok(text.clone());
        }
        let text = match &self.place {
            Place::None => {
                return Err("a trace file needs a scenario file beside it; pass its path".into());
            }
            Place::Recorded(files) => {
                files.get(name).cloned().ok_or_else(|| "the record does not hold it".to_owned())?
            }
            Place::Beside(folder) => files::read_packed_text(&folder.join(name), TRACE_MAX)
                .map(FileText::from)
                .map_err(|error| match error.kind() {
                    ErrorKind::NotFound => "there is no such file beside the scenario".into(),
                    _ => error.to_string(),
                })?,
        };
        self.read.borrow_mut().insert(name.into(), text.clone());
        Ok(text)
    }

    /// The contents of the files read, by name.
    pub(super) fn into_read(self) -> BTreeMap<String, FileText> {
        self.read.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    // The values of the reference implementation of FNV.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash("a"), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn lines_of_a_kept_text_are_those_of_the_text_and_its_hash_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let text: String = (0..50_000).map(|at| format!("{at}\n")).collect();
        fs::write(&path, &text).unwrap();
        let kept = KeptText::new(path.clone(), hash(&text));
        let mut lines = String::new();
        let all = kept.each_line::<io::Error>(
            |head| text.starts_with(head),
            |line| {
                lines += line;
                Ok(())
            },
        );
        assert!(all.unwrap() && lines == text);
        assert!(!kept.each_line::<io::Error>(|_| false, |_| panic!("no lines")).unwrap());
        assert_eq!(*FileText::Kept(kept.clone()).read().unwrap(), text);
        assert_eq!(FileText::Kept(kept.clone()), FileText::from(text));
        fs::write(&path, "0\n").unwrap();
        assert!(kept.each_line::<io::Error>(|_| true, |_| Ok(())).is_err());
        assert!(FileText::Kept(kept).read().is_err());
    }
}
