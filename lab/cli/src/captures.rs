//! Packet captures that are kept: next to the record while the call runs, in the record at the end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_call::capture::CapturePlan;
use weir_record::run::RunInfo;

/// The folder of one run's captures. It stays if there is no record, because captures of a failed
/// or interrupted call are worth a look.
pub struct Captures {
    plan: Option<CapturePlan>,
    /// Whether the files were moved or removed, or never wanted.
    is_done: bool,
}

impl Captures {
    /// Creates the folder if captures are wanted and an output folder is given.
    pub fn new(wanted: bool, out: Option<&Path>, info: &RunInfo) -> anyhow::Result<Self> {
        let Some(out) = out.filter(|_| wanted) else {
            return Ok(Self { plan: None, is_done: true });
        };
        let folder = PathBuf::from(format!("{}.captures", out.join(info.folder()).display()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let comment = format!("{}, seed {}", info.scenario, info.seed);
        Ok(Self { plan: Some(CapturePlan { folder, comment }), is_done: false })
    }

    /// Where the run must write the captures.
    pub fn plan(&self) -> Option<CapturePlan> {
        self.plan.clone()
    }

    /// Moves them into the record.
    pub fn move_to(mut self, record: &Path) -> anyhow::Result<()> {
        let Some(CapturePlan { folder, .. }) = &self.plan else { return Ok(()) };
        for file in fs::read_dir(folder)? {
            let file = file?;
            let to = record.join(file.file_name());
            fs::rename(file.path(), &to).with_context(|| to.display().to_string())?;
        }
        fs::remove_dir(folder).with_context(|| folder.display().to_string())?;
        self.is_done = true;
        Ok(())
    }

    /// Removes the captures of a command that never ran.
    pub fn discard(mut self) {
        if let Some(CapturePlan { folder, .. }) = &self.plan {
            // If this fails, the caller reports a more helpful error.
            let _ = fs::remove_dir_all(folder);
        }
        self.is_done = true;
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let Some(CapturePlan { folder, .. }) = self.plan.as_ref().filter(|_| !self.is_done) else {
            return;
        };
        // Remove an empty folder. For any other folder this fails.
        if fs::remove_dir(folder).is_err() {
            eprintln!(
                "weir: the run was not recorded; its packet captures are in {}",
                folder.display()
            );
        }
    }
}
