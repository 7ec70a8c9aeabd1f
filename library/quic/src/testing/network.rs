//! Two links with FIFO queues, and a rival on one of them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::End;

/// IPv4 and UDP.
const HEADERS: DataSize = DataSize::from_bytes(28);
/// A packet of the rival.
const RIVAL_PACKET: DataSize = DataSize::from_bytes(1_500);

/// One direction.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The capacity from each time on, by increasing time, from 0.
    pub capacity: Vec<(TimeDelta, Bitrate)>,
    /// The longest wait in the queue.
    pub queue: TimeDelta,
    /// Packets that wait longer are marked.
    pub marks_above: Option<TimeDelta>,
    /// The share of packets that are lost at random.
    pub loss: f64,
}

impl LinkConfig {
    /// A link of constant capacity.
    pub fn constant(capacity: Bitrate, queue: TimeDelta) -> Self {
        let capacity = [(TimeDelta::ZERO, capacity)].to_vec();
        Self { capacity, queue, marks_above: None, loss: 0.0 }
    }
}

/// A flow that fills a link: its window grows by a packet in a round trip, and halves when a
/// packet is lost [RFC5681 §3.1].
///
/// [RFC5681 §3.1]: https://www.rfc-editor.org/rfc/rfc5681#section-3.1
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// The end whose packets it leaves beside.
    pub beside: End,
    /// When it begins.
    pub from: TimeDelta,
}

/// The path between the two ends.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// From the publisher to the subscriber.
    pub up: LinkConfig,
    /// The way back.
    pub down: LinkConfig,
    /// The round-trip time of the empty path.
    pub rtt: TimeDelta,
    /// Another flow.
    pub rival: Option<Rival>,
    /// Decides which packets are lost.
    pub seed: u64,
}

impl NetworkConfig {
    /// A path with this capacity, queue and round-trip time, and a way back of 100 Mbit/s.
    pub fn constant(capacity: Bitrate, rtt: TimeDelta, queue: TimeDelta) -> Self {
        let down = LinkConfig::constant(Bitrate::from_kbps(100_000), queue);
        Self { up: LinkConfig::constant(capacity, queue), down, rtt, rival: None, seed: 1 }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// When it leaves the bottleneck.
    pub(super) leaves: Timestamp,
    pub(super) wait: TimeDelta,
}

struct Link {
    config: LinkConfig,
    free_at: Timestamp,
}

impl Link {
    fn capacity(&self, now: Timestamp) -> Bitrate {
        let since = now - Timestamp::ZERO;
        let steps = self.config.capacity.iter();
        let step = steps.rev().find(|(from, _)| *from <= since);
        step.map_or(self.config.capacity[0].1, |(_, capacity)| *capacity)
    }

    /// When the next step of the capacity comes.
    fn next_step(&self, now: Timestamp) -> Option<Timestamp> {
        let since = now - Timestamp::ZERO;
        let step = self.config.capacity.iter().find(|(from, _)| *from > since);
        step.map(|(from, _)| Timestamp::ZERO + *from)
    }

    /// The end of the transmission of this many bytes that begins at `begin`.
    fn end(&self, mut begin: Timestamp, mut size: DataSize) -> Timestamp {
        loop {
            let capacity = self.capacity(begin);
            let step = self.next_step(begin);
            let is_down = capacity == Bitrate::ZERO;
            let end = if is_down { Timestamp::MAX } else { begin + size / capacity };
            match step {
                Some(step) if step < end => {
                    size = size.saturating_sub(capacity * (step - begin));
                    begin = step;
                }
                _ => return end,
            }
        }
    }

    fn send(&mut self, now: Timestamp, size: DataSize) -> Option<Passage> {
        let begin = self.free_at.max(now);
        let wait = begin - now;
        if wait > self.config.queue {
            return None;
        }
        self.free_at = self.end(begin, size);
        Some(Passage { leaves: self.free_at, wait })
    }
}

pub(super) struct Delivery<D> {
    pub(super) at: End,
    pub(super) datagram: D,
    pub(super) is_marked: bool,
}

struct Arrival<D> {
    time: Timestamp,
    delivery: Delivery<D>,
}

/// The rival's packets that are on their way, and its window.
struct Download {
    way: usize,
    from: Timestamp,
    window: f64,
    /// When the ACK of a packet arrives, or its loss is seen.
    news: VecDeque<(Timestamp, bool)>,
    /// Losses before this time count once.
    recovers_until: Timestamp,
}

/// The network of a run.
pub struct Network<D> {
    config: NetworkConfig,
    links: [Link; 2],
    arrivals: [VecDeque<Arrival<D>>; 2],
    download: Option<Download>,
    random: u64,
}

impl<D> Network<D> {
    /// An empty network.
    pub fn new(config: NetworkConfig) -> Self {
        let links = [config.up.clone(), config.down.clone()]
            .map(|config| Link { config, free_at: Timestamp::ZERO });
        let download = config.rival.map(|rival| Download {
            way: rival.beside as usize,
            from: Timestamp::ZERO + rival.from,
            window: 10.0,
            news: VecDeque::new(),
            recovers_until: Timestamp::ZERO,
        });
        let random = config.seed;
        Self { config, links, arrivals: [VecDeque::new(), VecDeque::new()], download, random }
    }

    /// The headers below QUIC.
    pub fn headers(&self) -> DataSize {
        HEADERS
    }

    /// A number from 0 to 1 (SplitMix64).
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    pub(super) fn send(
        &mut self,
        now: Timestamp,
        from: End,
        size: DataSize,
        datagram: D,
    ) -> Option<Passage> {
        let way = from as usize;
        let passage = self.links[way].send(now, size)?;
        let is_lost =
            self.links[way].config.loss > 0.0 && self.draw() < self.links[way].config.loss;
        if is_lost {
            return None;
        }
        let marks = self.links[way].config.marks_above;
        let is_marked = marks.is_some_and(|above| passage.wait > above);
        let time = passage.leaves + self.config.rtt / 2;
        let delivery = Delivery { at: from.other(), datagram, is_marked };
        self.arrivals[way].push_back(Arrival { time, delivery });
        Some(passage)
    }

    /// What arrives now.
    pub(super) fn deliver(&mut self, now: Timestamp) -> Option<Delivery<D>> {
        self.run_download(now);
        for queue in &mut self.arrivals {
            if queue.front().is_some_and(|arrival| arrival.time <= now) {
                return queue.pop_front().map(|arrival| arrival.delivery);
            }
        }
        None
    }

    fn run_download(&mut self, now: Timestamp) {
        let rtt = self.config.rtt;
        let Some(download) = self.download.as_mut() else { return };
        if now < download.from {
            return;
        }
        while let Some(&(time, arrived)) = download.news.front() {
            if time > now {
                break;
            }
            download.news.pop_front();
            if arrived {
                download.window += 1.0 / download.window;
            } else if time > download.recovers_until {
                download.window = (download.window / 2.0).max(2.0);
                download.recovers_until = time + rtt + self.links[download.way].config.queue;
            }
        }
        while (download.news.len() as f64) < download.window {
            let passage = self.links[download.way].send(now, RIVAL_PACKET);
            // A loss is seen when the packets behind it arrive.
            let free_at = self.links[download.way].free_at;
            let news = passage.map_or(free_at, |passage| passage.leaves) + rtt;
            download.news.push_back((news, passage.is_some()));
        }
    }

    pub(super) fn next_time(&self) -> Option<Timestamp> {
        let fronts = self.arrivals.iter().filter_map(VecDeque::front);
        let download = self
            .download
            .as_ref()
            .map(|download| download.news.front().map_or(download.from, |&(time, _)| time));
        fronts.map(|arrival| arrival.time).chain(download).min()
    }

    /// What the link to the subscriber carries between these times.
    pub(super) fn capacity_bytes(&self, from: Timestamp, to: Timestamp) -> DataSize {
        let link = &self.links[End::Publisher as usize];
        let (mut sum, mut at) = (DataSize::ZERO, from);
        while at < to {
            let next = link.next_step(at).unwrap_or(to).min(to);
            sum += link.capacity(at) * (next - at);
            at = next;
        }
        sum
    }
}
