//! The room: who publishes, who watches, and what one tells the other.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use weir::{Algorithm, TimeDelta, Timestamp};
use weir_sfu::{Change, Decision, TrackId};

use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::web::Request;

/// Between two measurements of the layers, and two lines of the log for each subscriber.
const SECOND: TimeDelta = TimeDelta::from_secs(1);

/// All connections of the one room.
pub struct Room {
    start: Instant,
    address: SocketAddr,
    socket: UdpSocket,
    controller: Algorithm,
    publishers: BTreeMap<u32, Publisher>,
    subscribers: BTreeMap<u32, Subscriber>,
    next_number: u32,
    next_measurement: Timestamp,
}

impl Room {
    pub fn new(
        start: Instant,
        address: SocketAddr,
        socket: UdpSocket,
        controller: Algorithm,
    ) -> Self {
        Self {
            start,
            address,
            socket,
            controller,
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            next_number: 0,
            next_measurement: Timestamp::ZERO + SECOND,
        }
    }

    fn at(&self, now: Instant) -> Timestamp {
        Timestamp::from_nanos((now - self.start).as_nanos() as i64)
    }

    /// When [`Room::on_timeout`] is due.
    pub fn deadline(&self) -> Instant {
        let mut due = self.next_measurement;
        let mut deadline = None;
        for publisher in self.publishers.values() {
            deadline = earlier(deadline, publisher.peer.deadline);
        }
        for subscriber in self.subscribers.values() {
            deadline = earlier(deadline, subscriber.downlink.peer.deadline);
            due = subscriber.deadline().map_or(due, |at| due.min(at));
        }
        let due = self.start + Duration::from_nanos(due.as_nanos().max(0) as u64);
        deadline.map_or(due, |deadline| deadline.min(due))
    }

    pub fn on_datagram(&mut self, now: Instant, source: SocketAddr, bytes: &[u8]) {
        let numbers: Vec<u32> = self.publishers.keys().copied().collect();
        for number in numbers {
            let Some(publisher) = self.publishers.get_mut(&number) else { continue };
            if publisher.peer.on_datagram(now, source, bytes) {
                self.poll_publisher(now, number);
                return;
            }
        }
        for subscriber in self.subscribers.values_mut() {
            if subscriber.downlink.peer.on_datagram(now, source, bytes) {
                subscriber.downlink.poll(&self.socket);
                return;
            }
        }
    }

    /// Lets a publisher's connection work, and forwards what came.
    fn poll_publisher(&mut self, now: Instant, number: u32) {
        let at = self.at(now);
        let Some(publisher) = self.publishers.get_mut(&number) else { return };
        for arrival in publisher.poll(at, &self.socket) {
            for subscriber in self.subscribers.values_mut() {
                subscriber.forward(at, TrackId(number), &arrival);
            }
        }
    }

    /// Does what is due, everywhere.
    pub fn on_timeout(&mut self, now: Instant) {
        let at = self.at(now);
        let numbers: Vec<u32> = self.publishers.keys().copied().collect();
        for number in numbers {
            let Some(publisher) = self.publishers.get_mut(&number) else { continue };
            if publisher.peer.deadline <= now {
                publisher.peer.on_timeout(now);
                self.poll_publisher(now, number);
            }
        }
        let mut decisions = Vec::new();
        for (&number, subscriber) in &mut self.subscribers {
            if subscriber.downlink.peer.deadline <= now {
                subscriber.downlink.peer.on_timeout(now);
                subscriber.downlink.poll(&self.socket);
            }
            if subscriber.has_work(at) {
                subscriber.work(now, at, &self.socket);
            }
            while let Some(decision) = subscriber.next_decision() {
                decisions.push((number, decision));
            }
        }
        for (number, decision) in decisions {
            self.obey(at, number, &decision);
            self.log_decision(number, &decision);
        }
        if self.next_measurement <= at {
            self.next_measurement = at + SECOND;
            self.measure(at);
            self.remove_who_left(at);
        }
    }

    /// Two of the decisions are for the publisher.
    fn obey(&mut self, at: Timestamp, number: u32, decision: &Decision) {
        let Some(TrackId(track)) = decision.track else { return };
        let Some(publisher) = self.publishers.get_mut(&track) else { return };
        match decision.change {
            Change::RequestKeyFrame { stream } => publisher.ask_for_key_frame(at, stream),
            Change::Choose { to, .. } => {
                let layer = to.and_then(|level| publisher.track.layers.get(level));
                publisher.uplink.set_watched(at, number, layer.map(|layer| layer.stream));
            }
            _ => {}
        }
    }

    fn measure(&mut self, at: Timestamp) {
        for (&number, publisher) in &mut self.publishers {
            publisher.measure(at);
            for subscriber in self.subscribers.values_mut() {
                subscriber.set_bitrates(TrackId(number), &publisher.bitrates);
                if subscriber.downlink.peer.is_connected && may_watch(publisher, subscriber) {
                    subscriber.watch(at, TrackId(number), &publisher.measured());
                }
            }
        }
        for (&number, subscriber) in &mut self.subscribers {
            let mut tracks = Vec::new();
            for place in subscriber.places() {
                let publisher = self.publishers.get(&place.track.0);
                let bitrates = publisher.map_or(&[][..], |publisher| &publisher.bitrates);
                let layers: Vec<u64> = bitrates.iter().map(|rate| rate.as_bps() / 1_000).collect();
                tracks.push(json!({
                    "name": name_of(&self.publishers, place.track),
                    "layers_kbps": layers,
                    "level": place.level,
                    "width": place.width,
                    "pictures": place.pictures,
                }));
            }
            let sent_kbps = subscriber.take_bytes() * 8 / 1_000;
            println!(
                "{}",
                json!({
                    "time_s": at.as_secs_f64(),
                    "subscriber": number,
                    "name": subscriber.name,
                    "target_kbps": subscriber.target().as_bps() / 1_000,
                    "sent_kbps": sent_kbps,
                    "tracks": tracks,
                })
            );
        }
    }

    fn remove_who_left(&mut self, at: Timestamp) {
        let mut gone = Vec::new();
        for (&number, publisher) in &self.publishers {
            if publisher.peer.is_over {
                gone.push(number);
            }
        }
        for number in gone {
            self.publishers.remove(&number);
            for subscriber in self.subscribers.values_mut() {
                subscriber.unwatch(at, TrackId(number));
            }
        }
        let mut gone = Vec::new();
        for (&number, subscriber) in &self.subscribers {
            if subscriber.downlink.peer.is_over {
                gone.push(number);
            }
        }
        for number in gone {
            self.subscribers.remove(&number);
            for publisher in self.publishers.values_mut() {
                publisher.uplink.set_watched(at, number, None);
            }
        }
    }

    /// A page asks for something.
    pub fn on_request(&mut self, now: Instant, request: Request) {
        let answer = self.answer(now, &request).map_err(|error| format!("{error:#}"));
        let _ = request.reply.send(answer);
    }

    fn answer(&mut self, now: Instant, request: &Request) -> anyhow::Result<String> {
        let at = self.at(now);
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let name = parameter(query, "name").unwrap_or("somebody").to_owned();
        match path {
            "/publish" => {
                let (publisher, sdp) = Publisher::answer(now, self.address, name, &request.body)?;
                let number = self.number();
                self.publishers.insert(number, publisher);
                self.poll_publisher(now, number);
                Ok(json!({"number": number, "sdp": sdp}).to_string())
            }
            "/subscribe" => {
                let (mut subscriber, sdp) =
                    Subscriber::offer(now, at, self.address, name, self.controller)?;
                subscriber.downlink.poll(&self.socket);
                let number = self.number();
                self.subscribers.insert(number, subscriber);
                Ok(json!({"number": number, "sdp": sdp}).to_string())
            }
            "/answer" => {
                let subscriber = self.subscriber(query)?;
                subscriber.downlink.accept(&request.body)?;
                subscriber.downlink.peer.on_timeout(now);
                Ok("{}".to_owned())
            }
            "/shown" => {
                let number = number_of(query)?;
                self.show(at, number, &request.body)
            }
            "/demands" => {
                let number = number_of(query)?;
                let publisher = self.publishers.get(&number).context("no such publisher")?;
                Ok(json!(publisher.demands).to_string())
            }
            _ => bail!("no such page"),
        }
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    fn subscriber(&mut self, query: &str) -> anyhow::Result<&mut Subscriber> {
        self.subscribers.get_mut(&number_of(query)?).context("no such subscriber")
    }

    /// `places` is a list of `[width, height, width of the picture, pictures]`, one for each slot.
    /// The answer says who is in which slot.
    fn show(&mut self, at: Timestamp, number: u32, places: &str) -> anyhow::Result<String> {
        let places: Vec<(u16, u16, u16, u64)> = serde_json::from_str(places).context("places")?;
        let subscriber = self.subscribers.get_mut(&number).context("no such subscriber")?;
        for (slot, &(width, height, picture, count)) in places.iter().enumerate() {
            let new = subscriber.show(slot, (width, height), (picture, count));
            let Some(TrackId(track)) = new else { continue };
            if let Some(publisher) = self.publishers.get(&track) {
                subscriber.update(at, TrackId(track), &publisher.measured());
            }
        }
        let mut shown: BTreeMap<usize, Value> = BTreeMap::new();
        for place in subscriber.places() {
            let name = name_of(&self.publishers, place.track);
            shown.insert(place.slot, json!({"name": name, "level": place.level}));
        }
        Ok(json!(shown).to_string())
    }

    fn log_decision(&self, number: u32, decision: &Decision) {
        let mut line = json!({
            "time_s": decision.at.as_secs_f64(),
            "subscriber": number,
            "publisher": decision.track.and_then(|track| name_of(&self.publishers, track)),
            "reason": decision.reason.as_str(),
            "budget_kbps": decision.budget.as_bps() / 1_000,
            "needed_kbps": decision.needed.as_bps() / 1_000,
        });
        let (change, details) = change(&decision.change);
        line["change"] = json!(change);
        if let (Value::Object(line), Value::Object(details)) = (&mut line, details) {
            line.extend(details);
        }
        println!("{line}");
    }
}

/// Name of a change in the log, and its members.
fn change(change: &Change) -> (&'static str, Value) {
    match *change {
        Change::Choose { from, to } => ("choose", json!({"from": from, "to": to})),
        Change::Switched { from, to } => ("switched", json!({"from": from, "to": to})),
        Change::RequestKeyFrame { stream } => ("key frame", json!({"stream": stream})),
        Change::Refuse { layer } => ("refuse", json!({"layer": layer})),
        Change::Cut => ("cut", json!({})),
        Change::Probe { rate, size } => {
            ("probe", json!({"rate_kbps": rate.as_bps() / 1_000, "bytes": size.as_bytes()}))
        }
        Change::Proved { rate } => ("proved", json!({"rate_kbps": rate.as_bps() / 1_000})),
        Change::Disproved { rate } => ("disproved", json!({"rate_kbps": rate.as_bps() / 1_000})),
        _ => ("other", json!({})),
    }
}

fn name_of(publishers: &BTreeMap<u32, Publisher>, TrackId(track): TrackId) -> Option<&str> {
    publishers.get(&track).map(|publisher| publisher.name.as_str())
}

/// Nobody watches their own camera, unless the name says so: see the page.
fn may_watch(publisher: &Publisher, subscriber: &Subscriber) -> bool {
    publisher.peer.is_connected && publisher.name != subscriber.name
}

fn earlier(deadline: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(deadline.map_or(other, |deadline| deadline.min(other)))
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    for pair in query.split('&') {
        if let Some((found, value)) = pair.split_once('=')
            && found == name
        {
            return Some(value);
        }
    }
    None
}

fn number_of(query: &str) -> anyhow::Result<u32> {
    let number = parameter(query, "number").context("no number")?;
    number.parse().context("not a number")
}
