//! Represents a pipeline in its calls: passes messages between the signalling and the process.

use std::collections::HashMap;

use tokio::sync::mpsc;

use super::messages::{Content, PipelineLine};
use super::process::{LineReader, LineWriter, Pipes};
use crate::message::{LabMessage, Peer};
use crate::run::signalling::{Call, EventKind};

/// Messages of the lab that may wait until the pipeline has read the earlier ones.
const WAITING_MESSAGES: usize = 64;

/// The representative of a pipeline.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The index of each of its calls, and its role in it.
    seats: Vec<(usize, Peer)>,
    pipes: Pipes,
}

impl Agent {
    pub(crate) fn new(seats: Vec<(usize, Peer)>, pipes: Pipes) -> Self {
        Self { seats, pipes }
    }

    /// Acts for the pipeline until it has left all its calls.
    pub(crate) async fn run(self, calls: &[Call]) {
        let mut seats: HashMap<usize, Peer> = HashMap::new();
        let (to_pipeline, from_lab) = mpsc::channel(WAITING_MESSAGES);
        for (index, peer) in self.seats {
            match calls[index].join(peer, None) {
                Ok(messages) => {
                    seats.insert(index, peer);
                    tokio::spawn(forward(index, messages, to_pipeline.clone()));
                }
                Err(cause) => calls[index].fail(peer, cause).await,
            }
        }
        drop(to_pipeline);
        let cause = match self.pipes.open() {
            Ok((reader, writer)) => exchange(calls, &mut seats, from_lab, reader, writer).await,
            Err(error) => Some(format!("cannot talk to the pipeline: {error}")),
        };
        for (index, peer) in seats {
            if let Some(cause) = &cause {
                calls[index].fail(peer, cause.clone()).await;
            }
            calls[index].leave(peer).await;
        }
    }
}

/// Passes the messages for one seat on, with the call's index.
async fn forward(
    call: usize,
    mut messages: mpsc::Receiver<LabMessage>,
    to_pipeline: mpsc::Sender<(usize, LabMessage)>,
) {
    while let Some(message) = messages.recv().await {
        if to_pipeline.send((call, message)).await.is_err() {
            return;
        }
    }
}

/// Carries messages in both directions until the pipeline has left its calls, ends or breaks a
/// rule. Returns the cause if it breaks one.
async fn exchange(
    calls: &[Call],
    seats: &mut HashMap<usize, Peer>,
    mut from_lab: mpsc::Receiver<(usize, LabMessage)>,
    mut reader: LineReader,
    mut writer: LineWriter,
) -> Option<String> {
    while !seats.is_empty() {
        tokio::select! {
            Some((call, message)) = from_lab.recv() => {
                // One that has ended does not read.
                writer.write(call, &message).await.ok()?;
            }
            line = reader.next() => {
                let result = match line? {
                    Ok(line) => take(calls, seats, line).await,
                    Err(cause) => Err(cause),
                };
                if let Err(cause) = result {
                    return Some(cause);
                }
            }
        }
    }
    None
}

/// Handles a line of the pipeline.
async fn take(
    calls: &[Call],
    seats: &mut HashMap<usize, Peer>,
    line: PipelineLine,
) -> Result<(), String> {
    let PipelineLine { call, content } = line;
    let Some(&peer) = seats.get(&call) else {
        return Err(format!("the pipeline speaks of call {call}, in which it has no part"));
    };
    match content {
        Content::Message(message) => calls[call].on_message(peer, message),
        Content::Target(change) => calls[call].emit(peer, EventKind::Target(Box::new(change))),
        Content::Left {} => {
            seats.remove(&call);
            calls[call].leave(peer).await;
            Ok(())
        }
    }
}
