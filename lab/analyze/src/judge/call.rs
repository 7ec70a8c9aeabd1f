//! A dump with the samples of its streams. All that is found rests on them, so they are made once.

use std::cell::OnceCell;

use crate::judge::network::{self, NetworkEstimate};
use crate::judge::repeated_overuse;
use crate::measure::samples::SampledStream;
use crate::read::dump::Dump;

/// A dump with the samples of its streams.
pub(crate) struct Call<'a> {
    pub dump: &'a Dump,
    /// The streams of each connection.
    pub connections: Vec<Vec<SampledStream>>,
    network: OnceCell<NetworkEstimate>,
}

impl<'a> Call<'a> {
    pub fn of(dump: &'a Dump) -> Self {
        let connections = dump.connections.iter().map(repeated_overuse::streams).collect();
        Self { dump, connections, network: OnceCell::new() }
    }

    /// The streams of all connections.
    pub fn streams(&self) -> impl Iterator<Item = &SampledStream> {
        self.connections.iter().flatten()
    }

    /// The network that the call met.
    pub fn network(&self) -> &NetworkEstimate {
        self.network.get_or_init(|| network::of_streams(self.dump, &self.connections))
    }
}
