//! Ctrl-C: long work checks here whether to stop, and cleans up by returning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(calls)]
use std::time::Duration;

use anyhow::Context;

/// The program was asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; finished runs are kept, unfinished ones are removed")]
pub struct Interrupted;

impl Interrupted {
    /// An error as it is if it is this one, else with its context.
    pub fn or_why(error: anyhow::Error, context: String) -> anyhow::Error {
        if error.is::<Self>() { error } else { error.context(context) }
    }
}

/// Set once the user or the system asks the program to stop.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on, Ctrl-C, SIGTERM and SIGHUP only set the flag.
    pub fn listen() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        ctrlc::set_handler(move || set.store(true, Ordering::Relaxed))
            .context("cannot listen for Ctrl-C")?;
        // A program that is asked something must not delay the end.
        #[cfg(calls)]
        weir_emu::interrupt_answers(Arc::clone(&flag));
        Ok(Self(flag))
    }

    /// The flag itself, for work that checks it in its own loop.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Waits until the program is asked to stop.
    #[cfg(calls)]
    pub fn wait(&self) {
        while self.check().is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The result of work that was not interrupted. An error of work that was is not its own.
    #[cfg(calls)]
    pub fn or<T>(&self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        match result {
            Ok(done) => Ok(done),
            Err(error) => self.check().and(Err(error)),
        }
    }

    /// An error once the program was asked to stop.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        Ok(())
    }
}
