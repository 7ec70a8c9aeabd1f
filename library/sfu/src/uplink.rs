//! A track on its way in: what its layers take, who watches which of them, and when its publisher
//! is asked for key frames.
//!
//! A publisher's loss stays here: subscribers' controllers hear only of packets that the server
//! itself has sent, under transport-wide numbers of its own.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::track::{Structure, TrackConfig};

const STREAMS: usize = 4;
const TEMPORALS: usize = 4;
/// A layer's bitrate is measured over windows of this length.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// The largest of this many windows counts: a screen that stands still does not become a cheap
/// layer that grows at the next slide.
const WINDOWS: usize = 4;
/// A layer is stopped when nobody has watched it for this time.
const LINGER: TimeDelta = TimeDelta::from_secs(5);
/// A layer that is wanted again counts with its bitrate before the stop for this time: its first
/// key frame takes a while, and then it is measured over whole windows.
const RESUME_TIME: TimeDelta = TimeDelta::from_secs(3);
/// A publisher is asked for a key frame of a stream this often at most, however many subscribers
/// want one.
const KEY_FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// What is left to a stream that somebody watches is unlimited, unless the host sets a limit.
const UNLIMITED: Bitrate = Bitrate::MAX;

/// What a publisher should know of one of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerDemand {
    /// Number of the simulcast stream or spatial layer.
    pub stream: u8,
    /// Whether somebody watches it.
    pub is_watched: bool,
    /// What it may take: zero if nobody watches it, else the host's limit. Tell the publisher by
    /// REMB for the stream's SSRC, or by the signalling's own means.
    pub limit: Bitrate,
}

#[derive(Clone, Debug)]
struct Stream {
    /// Bytes by temporal layer in each window, the open one last.
    windows: [[DataSize; TEMPORALS]; WINDOWS + 1],
    limit: Bitrate,
    last_packet: Option<Timestamp>,
    unwatched_since: Option<Timestamp>,
    /// What the publisher was last told.
    told: Option<LayerDemand>,
    /// Bitrates by highest temporal layer, as long as it is stopped.
    before_stop: [Bitrate; TEMPORALS],
    /// When it was wanted again after a stop.
    resumed: Option<Timestamp>,
    last_key_frame: Option<Timestamp>,
}

impl Stream {
    fn new() -> Self {
        Self {
            windows: [[DataSize::ZERO; TEMPORALS]; WINDOWS + 1],
            limit: UNLIMITED,
            last_packet: None,
            unwatched_since: None,
            told: None,
            before_stop: [Bitrate::ZERO; TEMPORALS],
            resumed: None,
            last_key_frame: None,
        }
    }

    fn is_stopped(&self) -> bool {
        self.told.is_some_and(|told| !told.is_watched)
    }

    /// Whether the publisher has sent nothing of it for a while.
    fn is_quiet(&self, now: Timestamp) -> bool {
        self.last_packet.is_none_or(|last| now - last >= WINDOW)
    }

    /// Whether it was wanted again a moment ago, so that its packets may still be on their way.
    fn is_resuming(&self, now: Timestamp) -> bool {
        self.resumed.is_some_and(|resumed| now - resumed < RESUME_TIME)
    }

    fn bitrate(&self, temporal: usize) -> Bitrate {
        let mut most = DataSize::ZERO;
        for window in &self.windows {
            most = most.max(window[..=temporal].iter().copied().sum());
        }
        most / WINDOW
    }
}

/// One track of a publisher, for all who watch it.
///
/// ```
/// use weir::Timestamp;
/// use weir_sfu::{Structure, Uplink};
///
/// let mut uplink = Uplink::new(Structure::Simulcast);
/// let now = Timestamp::ZERO;
/// uplink.set_watched(now, 7, Some(2)); // Subscriber 7 watches the third stream.
/// assert!(uplink.on_key_frame_request(now, 2), "ask the publisher");
/// assert!(!uplink.on_key_frame_request(now, 2), "another subscriber asked a moment ago");
/// ```
#[derive(Clone, Debug)]
pub struct Uplink {
    streams: Vec<Stream>,
    /// The highest stream that each subscriber wants.
    watchers: BTreeMap<u32, u8>,
    structure: Structure,
    window_start: Option<Timestamp>,
}

impl Uplink {
    /// A track whose streams depend on each other like this.
    pub fn new(structure: Structure) -> Self {
        let mut streams = Vec::with_capacity(STREAMS);
        streams.resize_with(STREAMS, Stream::new);
        Self { streams, watchers: BTreeMap::new(), structure, window_start: None }
    }

    /// A packet of a stream came from the publisher. `size` counts headers. Streams and temporal
    /// layers above 3 count as 3.
    pub fn on_packet(&mut self, now: Timestamp, stream: u8, temporal: u8, size: DataSize) {
        self.advance(now);
        let stream = &mut self.streams[usize::from(stream).min(STREAMS - 1)];
        if stream.is_quiet(now) {
            // It is back. Whether anybody wants it shows from now on.
            stream.unwatched_since = stream.unwatched_since.map(|_| now);
        }
        stream.windows[WINDOWS][usize::from(temporal).min(TEMPORALS - 1)] += size;
        stream.last_packet = Some(now);
    }

    /// Opens a new window if the open one is over.
    fn advance(&mut self, now: Timestamp) {
        let start = *self.window_start.get_or_insert(now);
        let over = (now - start).as_nanos() / WINDOW.as_nanos();
        for _ in 0..over.clamp(0, WINDOWS as i64 + 1) {
            for stream in &mut self.streams {
                stream.windows.rotate_left(1);
                stream.windows[WINDOWS] = [DataSize::ZERO; TEMPORALS];
            }
        }
        self.window_start = Some(start + WINDOW * over.max(0));
    }

    /// The bitrates of a track's layers, for
    /// [`Allocator::set_bitrates`](crate::Allocator::set_bitrates): the largest of the last
    /// seconds. A layer that was stopped because nobody watches it keeps its last bitrate, so that
    /// it can be chosen again. Before the first whole second, the bitrates of the configuration.
    pub fn bitrates(&mut self, now: Timestamp, track: &TrackConfig) -> Vec<Bitrate> {
        self.advance(now);
        let mut found = Vec::with_capacity(track.layers.len());
        for layer in &track.layers {
            let stream = usize::from(layer.stream).min(STREAMS - 1);
            let temporal = usize::from(layer.temporal).min(TEMPORALS - 1);
            let lowest = if self.structure == Structure::Svc { 0 } else { stream };
            let mut sum = Bitrate::ZERO;
            for part in &self.streams[lowest..=stream] {
                let is_new =
                    part.windows[..WINDOWS].iter().flatten().all(|&size| size == DataSize::ZERO);
                sum = sum
                    + if part.is_stopped() {
                        part.before_stop[temporal]
                    } else if part.is_resuming(now) {
                        part.before_stop[temporal].max(part.bitrate(temporal))
                    } else if is_new && part.last_packet.is_some_and(|at| now - at < WINDOW) {
                        layer.bitrate
                    } else {
                        part.bitrate(temporal)
                    };
            }
            found.push(sum);
        }
        found
    }

    /// A subscriber wants streams up to this one; `None`: it no longer watches the track.
    pub fn set_watched(&mut self, now: Timestamp, subscriber: u32, stream: Option<u8>) {
        match stream {
            Some(stream) => self.watchers.insert(subscriber, stream),
            None => self.watchers.remove(&subscriber),
        };
        for index in 0..self.streams.len() {
            let is_watched = self.is_watched(index);
            let stream = &mut self.streams[index];
            stream.unwatched_since = match (is_watched, stream.unwatched_since) {
                (true, _) => None,
                (false, None) => Some(now),
                (false, since) => since,
            };
        }
    }

    fn is_watched(&self, index: usize) -> bool {
        self.watchers.values().any(|&stream| match self.structure {
            Structure::Simulcast => usize::from(stream) == index,
            Structure::Svc => usize::from(stream) >= index,
        })
    }

    /// Limits what the publisher may send in a stream.
    pub fn set_limit(&mut self, stream: u8, limit: Bitrate) {
        if let Some(stream) = self.streams.get_mut(usize::from(stream)) {
            stream.limit = limit;
        }
    }

    /// What has changed for the publisher. Call it until it returns `None`, now and then. A stream
    /// is stopped five seconds after the last subscriber left it, and wanted again at once. One of
    /// which nothing comes is not stopped: nobody could see that the publisher sends it again.
    pub fn next_demand(&mut self, now: Timestamp) -> Option<LayerDemand> {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if stream.last_packet.is_none() {
                continue;
            }
            let since = stream.unwatched_since;
            let is_quiet = stream.is_quiet(now) && !stream.is_stopped();
            let is_watched = is_quiet || since.is_none_or(|since| now - since < LINGER);
            let limit = if is_watched { stream.limit } else { Bitrate::ZERO };
            let demand = LayerDemand { stream: index as u8, is_watched, limit };
            if stream.told == Some(demand) {
                continue;
            }
            stream.resumed = (is_watched && stream.is_stopped()).then_some(now);
            if !is_watched {
                for temporal in 0..TEMPORALS {
                    stream.before_stop[temporal] = stream.bitrate(temporal);
                }
            }
            stream.told = Some(demand);
            return Some(demand);
        }
        None
    }

    /// A subscriber needs a key frame of a stream. Returns whether to ask the publisher now:
    /// requests of many subscribers become one.
    pub fn on_key_frame_request(&mut self, now: Timestamp, stream: u8) -> bool {
        let Some(stream) = self.streams.get_mut(usize::from(stream)) else { return false };
        if stream.last_key_frame.is_some_and(|last| now - last < KEY_FRAME_INTERVAL) {
            return false;
        }
        stream.last_key_frame = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::Layer;
    use alloc::vec;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A track of two streams of 80 and 400 kbit/s, over some seconds.
    fn uplink(structure: Structure, seconds: i64) -> Uplink {
        let mut uplink = Uplink::new(structure);
        for step in 0..seconds * 10 {
            uplink.on_packet(at(step * 100), 0, 0, DataSize::from_bytes(1_000));
            uplink.on_packet(at(step * 100), 1, (step % 2) as u8, DataSize::from_bytes(5_000));
        }
        uplink
    }

    fn track() -> TrackConfig {
        TrackConfig::camera(vec![
            Layer::new(0, 320, 180, Bitrate::from_kbps(100)),
            Layer::new(1, 640, 360, Bitrate::from_kbps(1)).with_temporal(0),
            Layer::new(1, 640, 360, Bitrate::from_kbps(500)),
        ])
    }

    fn kbps(rates: &[Bitrate]) -> Vec<u64> {
        rates.iter().map(|rate| rate.as_bps() / 1_000).collect()
    }

    #[test]
    fn layers_are_measured_by_stream_and_temporal_layer() {
        let mut uplink = uplink(Structure::Simulcast, 3);
        assert_eq!(kbps(&uplink.bitrates(at(3_000), &track())), [80, 200, 400]);
        let mut uplink = self::uplink(Structure::Svc, 3);
        assert_eq!(kbps(&uplink.bitrates(at(3_000), &track())), [80, 280, 480]);
        assert_eq!(kbps(&uplink.bitrates(at(9_000), &track())), [0, 0, 0]);
    }

    #[test]
    fn a_layer_nobody_watches_is_stopped_after_a_while_and_keeps_its_bitrate() {
        let mut uplink = uplink(Structure::Simulcast, 3);
        uplink.set_watched(at(3_000), 1, Some(1));
        assert!(uplink.next_demand(at(3_000)).is_some_and(|demand| demand.is_watched));
        while uplink.next_demand(at(3_000)).is_some() {}
        uplink.set_watched(at(3_100), 1, Some(0));
        for step in 30..81 {
            uplink.on_packet(at(step * 100), 1, (step % 2) as u8, DataSize::from_bytes(5_000));
        }
        assert_eq!(uplink.next_demand(at(8_000)), None);
        let stopped = uplink.next_demand(at(8_100)).unwrap();
        assert_eq!((stopped.stream, stopped.limit), (1, Bitrate::ZERO));
        uplink.set_watched(at(9_000), 1, Some(1));
        let wanted = uplink.next_demand(at(9_000)).unwrap();
        assert_eq!((wanted.stream, wanted.limit), (1, Bitrate::MAX));
        // Its first packet has not come yet.
        let before = kbps(&uplink.bitrates(at(9_100), &track()));
        assert!(before[2] > 0, "{before:?}");
        assert_eq!(kbps(&uplink.bitrates(at(13_000), &track()))[2], 0);
    }

    // Found in simulation: a layer that ended for more than five seconds never came back.
    #[test]
    fn a_layer_of_which_nothing_comes_is_stopped_only_when_it_is_back_and_nobody_wants_it() {
        let mut uplink = uplink(Structure::Simulcast, 3);
        uplink.set_watched(at(3_000), 1, Some(1));
        while uplink.next_demand(at(3_000)).is_some() {}
        uplink.set_watched(at(4_500), 1, Some(0));
        assert_eq!(uplink.next_demand(at(20_000)), None);
        for ms in (20_000..25_000).step_by(100) {
            uplink.on_packet(at(ms), 0, 0, DataSize::from_bytes(1_000));
            uplink.on_packet(at(ms), 1, 0, DataSize::from_bytes(5_000));
            assert_eq!(uplink.next_demand(at(ms)), None, "{ms}");
        }
        let stopped = uplink.next_demand(at(25_000)).unwrap();
        assert_eq!((stopped.stream, stopped.is_watched), (1, false));
        assert_eq!(kbps(&uplink.bitrates(at(30_000), &track()))[2], 400);
    }

    #[test]
    fn many_requests_for_a_key_frame_become_one() {
        let mut uplink = Uplink::new(Structure::Simulcast);
        assert!(uplink.on_key_frame_request(at(0), 2));
        assert!(!uplink.on_key_frame_request(at(499), 2));
        assert!(uplink.on_key_frame_request(at(499), 1));
        assert!(uplink.on_key_frame_request(at(500), 2));
        assert!(!uplink.on_key_frame_request(at(500), 99));
    }
}
