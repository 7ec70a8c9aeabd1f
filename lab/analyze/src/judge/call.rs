//! A dump with the samples of its streams. All that is found rests on them, so they are made once.

use std::cell::OnceCell;

use crate::judge::network::{self, NetworkEstimate};
use crate::judge::repeated_overuse;
use crate::measure::samples::SampledStream;
use crate::measure::samples::losses;
use crate::read::dump::{Dump, StreamDirection};

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

    /// How much is known of the stream of which most is known, in s.
    pub fn media_s(&self) -> f64 {
        let mut longest_s: f64 = 0.0;
        for stream in self.streams() {
            if let (Some(first), Some(last)) = (stream.samples.first(), stream.samples.last()) {
                longest_s = longest_s.max(last.end_s - first.start_s);
            }
        }
        longest_s
    }

    /// Share of the packets of a direction that were lost; `None` if it is unknown.
    pub fn loss(&self, direction: StreamDirection) -> Option<f64> {
        let own = self.streams().filter(|it| it.direction == direction);
        losses::of(own.flat_map(|it| &it.samples))
    }

    /// The smallest round-trip time in ms, of the longest of several paths.
    pub fn base_rtt_ms(&self) -> Option<f64> {
        self.streams().filter_map(|it| it.base_rtt_ms).max_by(f64::total_cmp)
    }
}
