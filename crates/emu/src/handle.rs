//! How the owner talks to the emulator's thread.

use std::io::{PipeWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// This moment is time zero of the run.
    Start(Instant),
    /// The run is over.
    Stop,
}

/// The owner's end. Clones are the same end.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    commands: Sender<Command>,
    wake: Arc<PipeWriter>,
}

impl Handle {
    pub(crate) fn new(commands: Sender<Command>, wake: PipeWriter) -> Self {
        Self { commands, wake: Arc::new(wake) }
    }

    pub(crate) fn send(&self, command: Command) {
        // Both fail only if the thread has failed, which `Emulator::stop` reports.
        if self.commands.send(command).is_ok() {
            let _ = self.wake.as_ref().write(&[0]);
        }
    }
}
