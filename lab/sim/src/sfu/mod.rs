//! A forwarding server between publishers and subscribers.
//!
//! ```text
//! publisher: encoders -> uplink --+                   +-> Forwarder -> network -> receiver
//!                                 +-> Server (tracks) +-> Forwarder -> network -> receiver
//! publisher: encoders -> uplink --+                   +-> ...                       ^
//!                                                        feedback, NACK, PLI -------+
//! ```
//!
//! A subscriber is a flow of the simulation, so it may be behind any network. What it is sent is
//! decided by the library's `weir-sfu`, with real packets; rivals take its place behind the same
//! trait. The way from a publisher to the server is a delay with losses, without bytes of its own.

mod forwarder;
mod good_time;
mod oracle;
mod publisher;
mod receiver;
mod rivals;
mod structure;
mod subscriber;
mod svc;
mod temporal;
#[cfg(test)]
mod tests;
mod witness;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_sfu::TrackConfig;

use crate::config::Publisher;

pub(crate) use oracle::Oracle;
pub(crate) use publisher::Published;
use publisher::{PublisherState, Sent};
pub(crate) use subscriber::SubscriberEnds;

/// Interval at which the server passes on measured bitrates.
const BITRATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// What a subscriber needs from the server. Tracks are publishers, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A key frame of a stream.
    KeyFrame { track: usize, stream: u8 },
    /// It watches this stream from now on; `None`: nothing of the track.
    Watch { track: usize, stream: Option<u8> },
    /// A packet of the publisher that has not come.
    Missing { track: usize, stream: u8, number: u16 },
}

/// What happens at the server.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next picture of a stream is due.
    Picture {
        track: usize,
        stream: usize,
    },
    /// A packet arrives.
    Arrival {
        track: usize,
        sent: Sent,
    },
    /// Looks whether a packet that was asked for has come.
    AskAgain {
        track: usize,
        stream: u8,
        number: u16,
    },
    /// Another size on the subscribers' screens.
    Shown {
        track: usize,
        size: (u16, u16),
    },
    /// A publisher comes or goes.
    Joined {
        track: usize,
    },
    Left {
        track: usize,
    },
    /// A subscriber goes, and watches nothing any more.
    SubscriberLeft {
        flow: usize,
    },
    /// Bitrates are measured.
    Bitrates,
}

/// An event with its time. Equal times come in the order in which they were added.
#[derive(Debug)]
struct Due {
    time: Timestamp,
    order: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}

/// What subscribers hear of the server.
pub(crate) enum News<'a> {
    /// A packet of a publisher.
    Packet(Published<'a>),
    /// The bitrates of a track's layers were measured again.
    Bitrates { track: usize, bitrates: Vec<Bitrate> },
    /// A track is there, or is shown in another size.
    Track { track: usize, config: &'a TrackConfig },
    /// A publisher has left.
    Left { track: usize },
}

impl News<'_> {
    /// The publisher that it is about.
    pub(crate) fn track(&self) -> usize {
        match self {
            Self::Packet(packet) => packet.track,
            Self::Bitrates { track, .. } | Self::Track { track, .. } | Self::Left { track } => {
                *track
            }
        }
    }
}

/// The server without its subscribers, which are flows.
pub(crate) struct Server {
    publishers: Vec<PublisherState>,
    is_there: Vec<bool>,
    due: BinaryHeap<Reverse<Due>>,
    order: u64,
    /// Tracks whose bitrates are still to be told.
    to_tell: Vec<usize>,
}

impl Server {
    /// `stops` are the ends of the subscribers' flows, by index. Foreign publishers send nothing
    /// here.
    pub(crate) fn new(
        publishers: &[Publisher],
        is_foreign: &[bool],
        stops: impl Iterator<Item = (usize, Timestamp)>,
        seed: Seed,
    ) -> Self {
        let mut states = Vec::with_capacity(publishers.len());
        for (index, publisher) in publishers.iter().enumerate() {
            states.push(PublisherState::new(publisher, index, seed));
        }
        let mut server = Self {
            publishers: states,
            is_there: vec![false; publishers.len()],
            due: BinaryHeap::new(),
            order: 0,
            to_tell: Vec::new(),
        };
        for (track, publisher) in publishers.iter().enumerate() {
            if is_foreign[track] {
                continue;
            }
            server.add(publisher.time.start, Event::Joined { track });
            if publisher.time.end < Timestamp::MAX {
                server.add(publisher.time.end, Event::Left { track });
            }
            for &(from, size) in publisher.shown.iter().skip(1) {
                server.add(from, Event::Shown { track, size });
            }
        }
        for (flow, stop) in stops {
            server.add(stop, Event::SubscriberLeft { flow });
        }
        server.add(Timestamp::ZERO + BITRATE_INTERVAL, Event::Bitrates);
        server
    }

    fn add(&mut self, time: Timestamp, event: Event) {
        self.order += 1;
        self.due.push(Reverse(Due { time, order: self.order, event }));
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        if !self.to_tell.is_empty() {
            return Some(Timestamp::ZERO);
        }
        self.due.peek().map(|Reverse(due)| due.time)
    }

    /// The tracks of all publishers that are there, by index.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = (usize, &TrackConfig)> {
        let all = self.publishers.iter().enumerate();
        all.filter(|(track, _)| self.is_there[*track]).map(|(track, one)| (track, &one.track))
    }

    /// Handles the next event that is due. Returns `None` when there is none; what nobody has to
    /// hear of is `Some(None)`.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<Option<News<'_>>> {
        if let Some(track) = self.to_tell.pop() {
            return Some(self.measure(now, track));
        }
        let Reverse(due) = self.due.peek()?;
        if due.time > now {
            return None;
        }
        let Reverse(due) = self.due.pop()?;
        Some(self.handle(now, due.event))
    }

    fn handle(&mut self, now: Timestamp, event: Event) -> Option<News<'_>> {
        match event {
            Event::Picture { track, stream } => self.encode(now, track, stream),
            Event::Arrival { track, sent } => return self.arrive(now, track, sent),
            Event::AskAgain { track, stream, number } => {
                if self.publishers[track].is_missing(stream, number) {
                    self.ask(now, track, stream, number);
                }
            }
            Event::Joined { track } => {
                self.is_there[track] = true;
                // Until somebody watches it, nobody does.
                self.publishers[track].uplink.set_watched(now, u32::MAX, None);
                for stream in 0..self.publishers[track].streams() {
                    self.add(now, Event::Picture { track, stream });
                }
                return Some(News::Track { track, config: &self.publishers[track].track });
            }
            Event::Left { track } => {
                self.is_there[track] = false;
                return Some(News::Left { track });
            }
            Event::Shown { track, size: (width, height) } => {
                let publisher = &mut self.publishers[track];
                (publisher.track.shown_width, publisher.track.shown_height) = (width, height);
                if self.is_there[track] {
                    return Some(News::Track { track, config: &self.publishers[track].track });
                }
            }
            Event::SubscriberLeft { flow } => {
                for publisher in &mut self.publishers {
                    publisher.uplink.set_watched(now, flow as u32, None);
                }
            }
            Event::Bitrates => {
                self.add(now + BITRATE_INTERVAL, Event::Bitrates);
                let there = (0..self.publishers.len()).rev().filter(|&track| self.is_there[track]);
                self.to_tell = there.collect();
            }
        }
        None
    }

    fn measure(&mut self, now: Timestamp, track: usize) -> Option<News<'_>> {
        let publisher = &mut self.publishers[track];
        publisher.pass_on_demands(now);
        let bitrates = publisher.uplink.bitrates(now, &publisher.track);
        for (layer, &bitrate) in publisher.track.layers.iter_mut().zip(&bitrates) {
            layer.bitrate = bitrate;
        }
        Some(News::Bitrates { track, bitrates })
    }

    fn encode(&mut self, now: Timestamp, track: usize, stream: usize) {
        if !self.is_there[track] {
            return;
        }
        let publisher = &mut self.publishers[track];
        let delay = publisher.config.uplink.delay;
        let (packets, interval) = publisher.encode(now, stream);
        for sent in packets {
            if !self.publishers[track].loses() {
                self.add(now + delay, Event::Arrival { track, sent });
            }
        }
        self.add(now + interval, Event::Picture { track, stream });
    }

    fn arrive(&mut self, now: Timestamp, track: usize, sent: Sent) -> Option<News<'_>> {
        if !self.is_there[track] {
            return None;
        }
        for number in self.publishers[track].on_arrival(now, sent) {
            self.ask(now, track, sent.stream, number);
        }
        Some(News::Packet(self.publishers[track].read(track, sent)))
    }

    /// Asks a publisher for a packet, which comes a round trip later if it is not lost again.
    fn ask(&mut self, now: Timestamp, track: usize, stream: u8, number: u16) {
        let publisher = &mut self.publishers[track];
        let round_trip = publisher.config.uplink.delay * 2;
        let Some(sent) = publisher.ask_again(now, stream, number) else { return };
        if !publisher.loses() {
            self.add(now + round_trip, Event::Arrival { track, sent });
        }
        let patience = round_trip + TimeDelta::from_millis(20);
        self.add(now + patience, Event::AskAgain { track, stream, number });
    }

    /// A subscriber needs something.
    pub(crate) fn on_request(&mut self, now: Timestamp, flow: usize, request: Request) {
        match request {
            Request::KeyFrame { track, stream } => {
                self.publishers[track].ask_for_key_frame(now, stream);
            }
            Request::Watch { track, stream } => {
                let publisher = &mut self.publishers[track];
                publisher.uplink.set_watched(now, flow as u32, stream);
                publisher.pass_on_demands(now);
            }
            Request::Missing { track, stream, number } => self.ask(now, track, stream, number),
        }
    }
}
