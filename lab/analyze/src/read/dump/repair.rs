//! Repair streams: retransmissions (RTX) and forward error correction. They belong to a stream of
//! media, and have no camera of their own.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::calls::stats::StatsReport;

use super::{Stream, StreamDirection};

/// Share of a stream's RTP timestamps that another stream had before: a retransmission repeats that
/// of the packet that was lost [RFC4588 §4].
///
/// [RFC4588 §4]: https://www.rfc-editor.org/rfc/rfc4588#section-4
const REPEATED: f64 = 0.9;
/// Timestamps that are too few to tell.
const LEAST_TIMESTAMPS: usize = 3;

/// The streams of media with at least two reports.
pub(crate) fn without_repairs(streams: Vec<Stream>) -> Vec<Stream> {
    let mut media = media(streams);
    media.retain(|stream| stream.reports.len() > 1);
    media
}

/// The streams of media. The counters of these include their retransmissions.
pub(crate) fn media(streams: Vec<Stream>) -> Vec<Stream> {
    let mut repairs: BTreeSet<(StreamDirection, u32)> = BTreeSet::new();
    for stream in &streams {
        for report in &stream.reports {
            let repair = repair_ssrc(&report.timed.report).filter(|ssrc| *ssrc != stream.ssrc);
            repairs.extend(repair.map(|ssrc| (stream.direction, ssrc)));
        }
    }
    let mut media = Vec::new();
    for stream in streams {
        let is_named = repairs.contains(&(stream.direction, stream.ssrc));
        if !is_named && !has_repair_codec(&stream) {
            media.push(stream);
        }
    }
    media
}

fn repair_ssrc(report: &StatsReport) -> Option<u32> {
    let sent = report.outbound.as_deref().and_then(|it| it.rtx_ssrc);
    sent.or_else(|| report.inbound.as_deref().and_then(|it| it.rtx_ssrc))
}

/// Whether the stream's codec carries repairs only. RED carries media as well.
fn has_repair_codec(stream: &Stream) -> bool {
    let last = stream.reports.last().and_then(|it| it.timed.report.outbound.as_deref());
    let Some(mime_type) = last.and_then(|it| it.mime_type.as_deref()) else { return false };
    let codec = mime_type.rsplit('/').next().unwrap_or_default().to_lowercase();
    codec == "rtx" || codec == "ulpfec" || codec.starts_with("flexfec")
}

/// The RTP timestamps of the streams of one direction.
#[derive(Default)]
pub(crate) struct Frames {
    streams: BTreeMap<u32, Frame>,
}

#[derive(Default)]
struct Frame {
    timestamps: BTreeSet<u32>,
    bytes: u64,
}

impl Frames {
    /// A packet with a payload.
    pub fn add(&mut self, ssrc: u32, rtp_timestamp: u32, payload_size: u32) {
        let stream = self.streams.entry(ssrc).or_default();
        stream.timestamps.insert(rtp_timestamp);
        stream.bytes += u64::from(payload_size);
    }

    /// Each repair stream with its stream of media: the larger stream that had its timestamps.
    /// Streams begin with random timestamps [RFC3550 §5.1], so others share none.
    ///
    /// [RFC3550 §5.1]: https://www.rfc-editor.org/rfc/rfc3550#section-5.1
    pub fn repairs(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (ssrc, stream) in &self.streams {
            if stream.timestamps.len() < LEAST_TIMESTAMPS {
                continue;
            }
            for (other, media) in &self.streams {
                let repeated = stream.timestamps.intersection(&media.timestamps).count();
                let is_larger = media.bytes > stream.bytes && other != ssrc;
                if is_larger && repeated as f64 >= REPEATED * stream.timestamps.len() as f64 {
                    found.push((*ssrc, *other));
                    break;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_repeats_the_timestamps_of_a_larger_one_is_its_repair() {
        let mut frames = Frames::default();
        for frame in 0..100 {
            frames.add(1, frame * 3_000, 1_000);
            frames.add(2, 77 + frame * 3_000, 400);
            if frame % 10 == 0 {
                frames.add(3, 77 + frame * 3_000, 300);
            }
            frames.add(4, frame * 960, 80);
        }
        assert_eq!(frames.repairs(), [(3, 2)]);
    }

    #[test]
    fn a_repair_stream_is_not_guessed_from_a_few_packets() {
        let mut frames = Frames::default();
        for frame in 0..100 {
            frames.add(1, frame * 3_000, 1_000);
        }
        frames.add(2, 3_000, 100);
        assert_eq!(frames.repairs(), []);
    }
}
