//! The streams of a peer: the purpose of each, and which of them getStats counts together.

pub use weir_record::calls::StreamDirection;
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::{Kind, StatsReport};

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRole {
    /// Original video packets.
    Video,
    /// Retransmitted video, and padding.
    Retransmission,
    /// Audio.
    Audio,
    /// A stream that no browser of the call reports.
    Other,
}

impl StreamRole {
    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Retransmission => "retransmission",
            Self::Audio => "audio",
            Self::Other => "other",
        }
    }

    /// The kind under which getStats counts it.
    pub(super) fn kind(self) -> Option<Kind> {
        match self {
            Self::Video | Self::Retransmission => Some(Kind::Video),
            Self::Audio => Some(Kind::Audio),
            Self::Other => None,
        }
    }
}

/// Streams that a count of getStats includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Original video packets.
    Video,
    /// Retransmitted video, and padding.
    Retransmissions,
    /// Video and its retransmissions together.
    VideoAndRetransmissions,
    /// Audio.
    Audio,
}

impl Counted {
    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Retransmissions => "retransmissions",
            Self::VideoAndRetransmissions => "video and retransmissions",
            Self::Audio => "audio",
        }
    }

    pub(super) fn kind(self) -> Kind {
        if self == Self::Audio { Kind::Audio } else { Kind::Video }
    }
}

/// The SSRCs of the streams that a peer sends: from its own reports, or, for a forwarding server,
/// from the receiver's reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    video: Option<u32>,
    retransmissions: Option<u32>,
    audio: Option<u32>,
    /// SSRCs of video and retransmissions of each simulcast layer.
    layers: Vec<[Option<u32>; 2]>,
}

impl Sources {
    pub(super) fn of(sender: &[TimedReport], receiver: &[TimedReport]) -> Self {
        let [mut video, mut retransmissions, mut audio] = [None; 3];
        // A forwarding server reports nothing.
        let (reports, is_sender) =
            if sender.is_empty() { (receiver, false) } else { (sender, true) };
        for TimedReport { report, .. } in reports {
            let [of_video, of_audio] = [Kind::Video, Kind::Audio].map(|kind| match is_sender {
                true => report.sent(kind).map(|it| (it.ssrc, it.rtx_ssrc)),
                false => report.received(kind).map(|it| (it.ssrc, it.rtx_ssrc)),
            });
            video = video.or(of_video.and_then(|it| it.0));
            retransmissions = retransmissions.or(of_video.and_then(|it| it.1));
            audio = audio.or(of_audio.and_then(|it| it.0));
        }
        let mut layers = Vec::new();
        if let Some(timed) = sender.iter().rev().find(|timed| !timed.report.layers.is_empty()) {
            for layer in &timed.report.layers {
                layers.push([layer.ssrc, layer.rtx_ssrc]);
            }
        }
        Self { layers, video, retransmissions, audio }
    }

    /// Purpose of a stream.
    pub(super) fn role(&self, ssrc: u32) -> StreamRole {
        match Some(ssrc) {
            it if it == self.video => StreamRole::Video,
            it if it == self.retransmissions => StreamRole::Retransmission,
            it if it == self.audio => StreamRole::Audio,
            it if self.layers.iter().any(|layer| layer[0] == it) => StreamRole::Video,
            it if self.layers.iter().any(|layer| layer[1] == it) => StreamRole::Retransmission,
            _ => StreamRole::Other,
        }
    }

    pub(super) fn with(&self, counted: Counted) -> Vec<u32> {
        if counted == Counted::Audio {
            return self.audio.into_iter().collect();
        }
        let single = [[self.video, self.retransmissions]];
        let layers = if self.layers.is_empty() { &single[..] } else { &self.layers };
        let mut ssrcs = Vec::new();
        for [video, retransmissions] in layers {
            if counted != Counted::Retransmissions {
                ssrcs.extend(*video);
            }
            if counted != Counted::Video {
                ssrcs.extend(*retransmissions);
            }
        }
        ssrcs
    }

    /// The separate counts in the last report of a peer.
    pub(super) fn counts(&self, last: &StatsReport, direction: StreamDirection) -> Vec<Counted> {
        use Counted::{Audio, Retransmissions, Video, VideoAndRetransmissions};
        let (video, audio) = (self.video.is_some(), self.audio.is_some());
        let separates_them = match direction {
            StreamDirection::Sent => false,
            StreamDirection::Received => last
                .received(Kind::Video)
                .is_some_and(|inbound| inbound.retransmitted_packets_received.is_some()),
        };
        let of_video: &[Counted] = match (video, self.retransmissions.is_some(), separates_them) {
            (false, ..) => &[],
            (true, false, _) => &[Video],
            (true, true, true) => &[Video, Retransmissions],
            (true, true, false) => &[VideoAndRetransmissions],
        };
        let of_audio: &[Counted] = if audio { &[Audio] } else { &[] };
        [of_video, of_audio].concat()
    }
}
