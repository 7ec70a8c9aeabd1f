//! What a subscriber could have had: the best layers under its fair share of the known capacity.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_sfu::{Allocator, Kind, TrackConfig, TrackId};

/// A layer fits if all of them take at most this part of the share: bitrates vary, and a queue
/// that is always full is no success.
const USABLE: f64 = 0.9;
/// The allocator leaves room of this factor above what it chooses anew. The oracle needs none.
const MARGIN: f64 = 1.1;

/// Remembers its last answer, because it is asked every 50 ms and capacities rarely change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    budget: Bitrate,
    tracks: Vec<(usize, TrackConfig)>,
    levels: Vec<Option<usize>>,
}

impl Oracle {
    /// The level of each of these tracks that is best under this share of the capacity.
    pub(crate) fn levels(
        &mut self,
        share: Bitrate,
        tracks: &[(usize, &TrackConfig)],
    ) -> &[Option<usize>] {
        if share == self.budget && self.knows(tracks) {
            return &self.levels;
        }
        let mut allocator = Allocator::default();
        for &(track, config) in tracks {
            allocator.set_track(TrackId(track as u32), config.clone());
        }
        let budget = (share * USABLE).saturating_sub(allocator.audio());
        // The first choice of an allocator depends on nothing that was before.
        allocator.allocate(Timestamp::ZERO + TimeDelta::from_secs(1), budget * MARGIN);
        self.levels.clear();
        self.tracks.clear();
        for &(track, config) in tracks {
            let level = allocator.level(TrackId(track as u32));
            self.levels.push(level.filter(|_| config.kind != Kind::Audio));
            self.tracks.push((track, config.clone()));
        }
        self.budget = share;
        &self.levels
    }

    /// Whether these are the tracks of the last answer.
    fn knows(&self, tracks: &[(usize, &TrackConfig)]) -> bool {
        let same = self.tracks.iter().map(|(track, config)| (*track, config));
        same.eq(tracks.iter().copied())
    }
}
