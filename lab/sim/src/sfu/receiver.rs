//! The subscriber's own end: feedback over all streams, and a video receiver for each track.

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_wire::rtp::View;

use super::good_time::Shown;
use crate::config::FlowConfig;
use crate::config::Media;
use crate::feedback::PlannedReporter;
use crate::flow::{Body, Outbox, Packet};
use crate::media::{Repair, Ssrcs, VideoReceiver};
use crate::rtp_format::{IP_UDP, SRTCP_TRAILER};
use crate::trace::Video;

/// SSRC of padding packets. Tracks and their retransmissions have smaller ones.
pub(super) const PADDING_SSRC: u32 = u32::MAX;
/// A freeze that ends this soon after a switch belongs to it.
const AFTER_SWITCH: TimeDelta = TimeDelta::from_secs(2);

/// The SSRCs of a subscriber's track, by its place among those that it watches.
pub(super) fn ssrcs(place: usize) -> Ssrcs {
    Ssrcs::of(1 + place as u32)
}

/// Freezes by their cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SwitchFreezes {
    pub count: u64,
    pub time: TimeDelta,
}

/// The receiver of one track.
struct Track {
    /// `None` for audio, which is only counted.
    video: Option<VideoReceiver>,
    /// When it is due: only a packet or a deadline changes that.
    due: Option<Timestamp>,
    /// When another layer began to be sent.
    switched: Option<Timestamp>,
    /// What was shown in the last row.
    shown: Shown,
}

/// The receiving end.
pub(super) struct Receiver {
    reporter: PlannedReporter,
    tracks: Vec<Track>,
    freezes: SwitchFreezes,
    /// When the earliest video is due.
    next_video: Option<Timestamp>,
}

impl Receiver {
    /// `is_video` says of each track that is watched whether it is a picture.
    pub(super) fn new(flow: &FlowConfig, media: &Media, is_video: &[bool], seed: Seed) -> Self {
        let repair = media.repair.unwrap_or(Repair::NONE);
        let mut tracks = Vec::new();
        for (place, &is_video) in is_video.iter().enumerate() {
            let video = is_video.then(|| VideoReceiver::new(repair, ssrcs(place)));
            tracks.push(Track { video, due: None, switched: None, shown: Shown::default() });
        }
        Self {
            reporter: PlannedReporter::new(
                flow.start,
                &media.feedback,
                media.feedback_interval,
                ssrcs(0),
                seed.stream(&format!("{}/rtcp/receiver", flow.name)),
            ),
            tracks,
            freezes: SwitchFreezes::default(),
            next_video: None,
        }
    }

    pub(super) fn next_deadline(&self) -> Timestamp {
        let reports = self.reporter.next_deadline();
        self.next_video.map_or(reports, |video| reports.min(video))
    }

    /// Looks at which track is due first.
    fn look_ahead(&mut self) {
        self.next_video = self.tracks.iter().filter_map(|track| track.due).min();
    }

    pub(super) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        for track in &mut self.tracks {
            if let Some(video) = &mut track.video {
                video.on_round_trip_time(now, rtt);
            }
        }
    }

    pub(super) fn on_packet(&mut self, now: Timestamp, bytes: &[u8], packet: &Packet) {
        let view = View::parse(bytes).expect("the server made this packet");
        self.reporter.on_packet(now, &view, packet.ecn);
        let place = self.place(view.ssrc());
        let Some(track) = place.map(|place| &mut self.tracks[place]) else { return };
        if let Some(video) = &mut track.video {
            video.on_packet(now, &view, packet.size);
            track.due = video.next_deadline();
            self.next_video = self.next_video.into_iter().chain(track.due).min();
        }
    }

    /// The track to which a stream belongs.
    fn place(&self, ssrc: u32) -> Option<usize> {
        let place = (ssrc & 0xffff).checked_sub(1)? as usize;
        (ssrc != PADDING_SSRC && place < self.tracks.len()).then_some(place)
    }

    /// Another layer of a track is sent from now on.
    pub(super) fn note_switch(&mut self, now: Timestamp, place: usize) {
        self.tracks[place].switched = Some(now);
    }

    pub(super) fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        if self.reporter.next_deadline() <= now {
            self.reporter.on_deadline(now);
            while let Some(bytes) = self.reporter.next_rtcp() {
                out.packets.push(rtcp(bytes));
            }
        }
        if self.next_video.is_none_or(|due| due > now) {
            return;
        }
        for track in &mut self.tracks {
            if let Some(video) = &mut track.video
                && track.due.is_some_and(|due| due <= now)
            {
                video.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
                track.due = video.next_deadline();
            }
        }
        self.look_ahead();
    }

    /// The run ends. `last_frame` is when a frame of this track was forwarded last.
    pub(super) fn finish(&mut self, place: usize, last_frame: Timestamp) {
        if let Some(video) = &mut self.tracks[place].video {
            video.finish(last_frame);
        }
    }

    /// The sum over all tracks since the last call.
    pub(super) fn take_video(&mut self, now: Timestamp) -> Video {
        let mut sum = Video::default();
        let mut delays = TimeDelta::ZERO;
        for track in &mut self.tracks {
            let Some(video) = &mut track.video else { continue };
            let noted = video.take_noted();
            sum.media += noted.media;
            sum.rtx += noted.rtx;
            sum.fec += noted.fec;
            sum.media_packets += noted.media_packets;
            sum.unrepaired_packets += noted.unrepaired_packets;
            sum.frames += noted.frames;
            sum.freezes += noted.freezes;
            sum.frozen += noted.frozen;
            let own = noted.frame_delay.map_or(TimeDelta::ZERO, |it| it * noted.frames as i64);
            delays += own;
            track.shown = Shown { frames: noted.frames, delays: own };
            if track.switched.is_some_and(|at| now - at - noted.frozen <= AFTER_SWITCH) {
                self.freezes.count += noted.freezes;
                self.freezes.time += noted.frozen;
            }
        }
        sum.frame_delay = (sum.frames > 0).then(|| delays / sum.frames as i64);
        sum
    }

    /// What was shown of a track in the last row.
    pub(super) fn shown(&self, place: usize) -> Shown {
        self.tracks[place].shown
    }

    /// Nothing was sent of a track for this time, because a layer could not wait for its key frame.
    pub(super) fn note_cut(&mut self, time: TimeDelta) {
        self.freezes.count += 1;
        self.freezes.time += time;
    }

    pub(super) fn take_switch_freezes(&mut self) -> SwitchFreezes {
        std::mem::take(&mut self.freezes)
    }
}

/// Wraps RTCP bytes into a packet.
fn rtcp(bytes: &[u8]) -> Packet {
    let size = DataSize::from_bytes(bytes.len() as u64 + IP_UDP + SRTCP_TRAILER);
    Packet { size, ecn: Ecn::NotEct, body: Body::Rtcp(bytes.to_vec()) }
}
