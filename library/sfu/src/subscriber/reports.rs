//! Sender reports of a subscriber's tracks.

use alloc::collections::{BTreeMap, VecDeque};

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_rtcp::{SenderReports, seeded};
use weir_wire::report::ReportBlock;
use weir_wire::rtp::View;

use super::config::OutgoingStream;
use crate::track::TrackId;

/// Reports that the host has not taken. The oldest go first.
const MAX_DUE: usize = 64;

/// The reports of one track.
#[derive(Debug)]
struct OfTrack {
    reports: SenderReports,
    clock_rate: u32,
}

/// Sender reports about once a second for each track that is sent.
#[derive(Debug)]
pub(super) struct Reports {
    is_on: bool,
    tracks: BTreeMap<TrackId, OfTrack>,
    due: VecDeque<[u8; SenderReports::SIZE]>,
    taken: [u8; SenderReports::SIZE],
}

impl Reports {
    pub fn new(is_on: bool) -> Self {
        let taken = [0; SenderReports::SIZE];
        Self { is_on, tracks: BTreeMap::new(), due: VecDeque::new(), taken }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn add(&mut self, now: Timestamp, id: TrackId, stream: &OutgoingStream) {
        if self.is_on {
            let reports = SenderReports::new(now, stream.ssrc, seeded(stream.ssrc.into()));
            self.tracks.insert(id, OfTrack { reports, clock_rate: stream.clock_rate });
        }
    }

    pub fn remove(&mut self, id: TrackId) {
        self.tracks.remove(&id);
    }

    /// A packet of a track was queued.
    pub fn on_packet(&mut self, id: TrackId, packet: &[u8]) {
        if let Some(track) = self.tracks.get_mut(&id)
            && let Ok(view) = View::parse_header(packet)
        {
            let payload = packet.len().saturating_sub(view.header_size());
            track.reports.on_packet_sent(DataSize::from_bytes(payload as u64));
        }
    }

    /// Writes the report of a track if it is due. `newest` is its newest RTP timestamp, and when
    /// that was queued: the times of all tracks are on the server's clock, so that sound and
    /// pictures of one publisher stay together.
    pub fn on_timeout(&mut self, now: Timestamp, id: TrackId, newest: Option<(u32, Timestamp)>) {
        let (Some(track), Some((timestamp, at))) = (self.tracks.get_mut(&id), newest) else {
            return;
        };
        let elapsed = i128::from((now - at).as_micros());
        let ticks = (elapsed * i128::from(track.clock_rate) / 1_000_000) as u32;
        if let Some(report) = track.reports.on_timeout(now, timestamp.wrapping_add(ticks)) {
            if self.due.len() == MAX_DUE {
                self.due.pop_front();
            }
            self.due.push_back(report);
        }
    }

    pub fn pop(&mut self) -> Option<&[u8]> {
        self.taken = self.due.pop_front()?;
        Some(&self.taken)
    }

    /// The round-trip time of a block that answers one of the reports.
    pub fn round_trip_time(&self, now: Timestamp, block: &ReportBlock) -> Option<TimeDelta> {
        self.tracks.values().find_map(|track| track.reports.round_trip_time(now, block))
    }
}
