//! What a person sees of a call: when each frame of the camera reaches the other peer's screen.
//!
//! ```text
//!   file with tags -> camera -> encoder -> network -> decoder -> track -> screen
//!                       |                                          |        |
//!                       +------------- sightings of tags ----------+--------+
//!                                             v
//!                                    timeline -> summary
//! ```
//!
//! Each frame of the camera's file has a [`tag`] with its number. Both pages read the tags of the
//! frames that pass them, and tell the lab when. [`Timeline`] finds for each frame that was
//! received when it was captured. [`Pictures`] are compared with the file.

pub(crate) mod camera_file;
pub mod drawn;
mod file;
pub(crate) mod frame_messages;
mod lateness;
pub(crate) mod picture;
pub(crate) mod scoring;
pub(crate) mod sighting;
mod summary;
mod timeline;

use std::ops::Range;

use weir::units::Timestamp;
use weir_record::calls::quality::Quality;

use crate::measure::outcome::{CallOutcome, CallResult};
use crate::message::Peer;
use crate::peers::camera;
use crate::plan::CallConfig;

pub use file::write;
pub(crate) use lateness::late_camera;
pub use picture::ReceivedPicture;
pub use scoring::{Pictures, ScoredPicture};
pub use sighting::{FrameSighting, Place, TimedSighting};
pub use timeline::{Frame, Timeline};
pub use weir_vmaf::tag;

/// The frames that one peer of a call received.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedFrames {
    /// Number of the call.
    pub call: usize,
    /// Name of the participant that sent them.
    pub from: String,
    /// Name of the participant that received them.
    pub to: String,
    /// When each was captured, received and shown.
    pub timeline: Timeline,
    /// Scores of some of them.
    pub pictures: Pictures,
    /// What follows from that.
    pub quality: Quality,
}

/// Whose camera is watched on whose screen.
pub(crate) struct Watched {
    /// Number of the call.
    pub(crate) call: usize,
    /// The participant whose camera it is.
    pub(crate) from: String,
    /// The participant whose screen it is.
    pub(crate) to: String,
}

impl Watched {
    /// What follows from the frames and pictures that were received within `span`.
    pub(crate) fn received(
        self,
        timeline: Timeline,
        pictures: Pictures,
        span: Range<Timestamp>,
    ) -> ReceivedFrames {
        let Self { call, from, to } = self;
        let quality = summary::of(&timeline, &pictures.scored, span);
        let quality = Quality { call, from: from.clone(), to: to.clone(), ..quality };
        ReceivedFrames { call, from, to, timeline, pictures, quality }
    }
}

/// The received frames of all calls; none if the run did not ask for them.
pub fn received_frames(config: &CallConfig, outcome: &CallOutcome) -> Vec<ReceivedFrames> {
    let mut received = Vec::new();
    if !config.quality {
        return received;
    }
    let length = outcome.ended.unwrap_or(config.duration);
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        for peer in Peer::ALL {
            let [from, to] = [peer, peer.other()];
            let sender = &config.participants[call.ends[from.index()]];
            if call.video[from.index()].is_none() || !sender.player.has_tags() {
                continue;
            }
            let span = call.span(length);
            let timeline = timeline_of(result, from);
            let pictures = result.peers[peer.other().index()].pictures.clone();
            let [from, to] = [from, to].map(|peer| {
                let participant = call.ends[peer.index()];
                config.participants[participant].name.clone()
            });
            let watched = Watched { call: call.number, from, to };
            received.push(watched.received(timeline, pictures, span));
        }
    }
    received
}

/// Why a camera shows that the machine disturbed the run, one line each.
pub fn disturbances(config: &CallConfig, outcome: &CallOutcome) -> Vec<String> {
    let mut causes = Vec::new();
    if !config.quality {
        return causes;
    }
    let length = outcome.ended.unwrap_or(config.duration);
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        let span = call.span(length);
        for peer in Peer::ALL {
            let sender = &config.participants[call.ends[peer.index()]];
            if call.video[peer.index()].is_none() || !sender.player.has_tags() {
                continue;
            }
            let late = timeline::camera_late(&result.peers[peer.index()].frames);
            let late = lateness::of(&late, &span);
            causes.extend(late.and_then(|late| late_camera(&sender.name, &late)));
        }
    }
    causes
}

fn timeline_of(result: &CallResult, from: Peer) -> Timeline {
    let sent = &result.peers[from.index()].frames;
    let received = &result.peers[from.other().index()].frames;
    Timeline::of(sent, received, camera::tagged_loop())
}
