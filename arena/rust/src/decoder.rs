//! A process of ../decoder.py, which tells the lab what a receiver without a decoder would show.

use std::env;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;

use crate::encoder::PYTHON;
use crate::program;
use crate::protocol::ReceiverSettings;

/// Names the file in which the lab wants to be told of frames.
const FRAMES: &str = "WEIR_FRAMES";

pub struct Decoder {
    process: Child,
    /// `None` at the end.
    input: Option<ChildStdin>,
}

impl Decoder {
    /// Starts it, if the lab wants to be told of frames.
    pub fn start(settings: &ReceiverSettings) -> anyhow::Result<Option<Self>> {
        if env::var_os(FRAMES).is_none() {
            return Ok(None);
        }
        let mut process = Command::new(PYTHON)
            .arg(program("decoder.py")?)
            .args([settings.width, settings.height].map(|length| length.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context(PYTHON)?;
        let input = process.stdin.take();
        Ok(Some(Self { process, input }))
    }

    /// Passes it the next frame.
    pub fn decode(&mut self, frame: &[u8]) {
        let length = u32::try_from(frame.len()).expect("a frame is shorter than 4 GB");
        if let Some(input) = &mut self.input {
            // A decoder that ended says why on standard error.
            let _ = input.write_all(&[&length.to_be_bytes(), frame].concat());
        }
    }
}

impl Drop for Decoder {
    /// Lets it tell of the last frames.
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}
