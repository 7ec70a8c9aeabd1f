//! Agents take the seats of programs that have no page, and speak for them in the signalling.

use crate::peers::janus;
use crate::peers::pipeline;
use crate::run::signalling::Call;

/// Speaks for a program in its calls.
#[derive(Debug)]
pub(crate) enum Agent {
    /// For the forwarding server, in the call with this index.
    ForwardingServer(usize, janus::Agent),
    /// For a pipeline.
    Pipeline(pipeline::Agent),
}

impl Agent {
    /// Acts until the program has left its calls.
    pub(crate) async fn run(self, calls: &[Call]) {
        match self {
            Self::ForwardingServer(call, agent) => agent.run(&calls[call]).await,
            Self::Pipeline(agent) => agent.run(calls).await,
        }
    }
}
