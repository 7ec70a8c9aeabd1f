//! Packet captures that stay: beside the record while the call runs, and in it at the end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_call::capture::CapturePlan;
use weir_lab::run::RunInfo;

/// The folder of one run's captures. One that never came into a record stays, because a call that
/// failed or was interrupted is what somebody wants to look into.
pub struct Captures {
    plan: Option<CapturePlan>,
    /// Whether the files are where they belong.
    is_done: bool,
}

impl Captures {
    /// Makes the folder, if captures are wanted and there is a place.
    pub fn new(wanted: bool, out: Option<&Path>, info: &RunInfo) -> anyhow::Result<Self> {
        let Some(out) = out.filter(|_| wanted) else {
            return Ok(Self { plan: None, is_done: true });
        };
        let folder = PathBuf::from(format!("{}.captures", out.join(info.folder()).display()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let comment = format!("{}, seed {}", info.scenario, info.seed);
        Ok(Self { plan: Some(CapturePlan { folder, comment }), is_done: false })
    }

    /// Where the run is to write them.
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

    /// Removes them: of a command that never ran.
    pub fn discard(mut self) {
        if let Some(CapturePlan { folder, .. }) = &self.plan {
            // Where even this fails there is an error to be told that says more.
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
        // An empty folder is of no use; the removal of another one fails.
        if fs::remove_dir(folder).is_err() {
            eprintln!("weir: the packets of the run that was not recorded: {}", folder.display());
        }
    }
}
