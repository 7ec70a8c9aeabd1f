//! The simulation: one thread that always goes to the earliest deadline.

use weir::units::{TimeDelta, Timestamp};
use weir_net::{Bottleneck, Delivery, Dropped, Fate, FlowKey, Header, Seed};

use crate::config::{Config, Direction};
use crate::deadlines::Deadlines;
use crate::endpoint::{MediaHeader, Receiver, Sender};
use crate::trace::{ROW_INTERVAL, RateChange, Row, Trace};

/// Runs a configuration from time zero to its end.
pub fn run(config: &Config, seed: Seed) -> Trace {
    let mut simulator = Simulator::new(config, seed);
    while let Some((now, part)) = simulator.deadlines.next() {
        if now > Timestamp::ZERO + config.duration {
            break;
        }
        simulator.on_deadline(now, part);
    }
    simulator.trace
}

#[derive(Clone, Debug)]
enum Packet {
    Media { flow: usize, header: MediaHeader },
    Feedback { flow: usize, bytes: Vec<u8> },
}

// Parts that have a deadline: three of the whole simulation, then four of each flow.
const ROWS: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;
const FIRST_FLOW: usize = 3;
const SOURCE: usize = 0;
const PACER: usize = 1;
const FEEDBACK: usize = 2;
const TIMEOUT: usize = 3;
const PARTS_PER_FLOW: usize = 4;

fn part(flow: usize, timer: usize) -> usize {
    FIRST_FLOW + flow * PARTS_PER_FLOW + timer
}

struct FlowState {
    sender: Sender,
    receiver: Receiver,
    /// The row that is being filled, and what its means are made of.
    row: Row,
    waited: TimeDelta,
    arrived: i64,
}

struct Simulator<'a> {
    config: &'a Config,
    deadlines: Deadlines,
    up: Bottleneck<Packet>,
    down: Bottleneck<Packet>,
    flows: Vec<FlowState>,
    trace: Trace,
}

impl<'a> Simulator<'a> {
    fn new(config: &'a Config, seed: Seed) -> Self {
        let mut deadlines = Deadlines::new(part(config.flows.len(), 0));
        deadlines.set(ROWS, Some(Timestamp::ZERO + ROW_INTERVAL));
        let flows = config.flows.iter().enumerate().map(|(index, flow)| {
            deadlines.set(part(index, SOURCE), Some(flow.start));
            let first_feedback = flow.start + config.feedback_interval;
            deadlines.set(part(index, FEEDBACK), Some(first_feedback));
            FlowState {
                sender: Sender::new(flow, index, seed),
                receiver: Receiver::new(index),
                row: Row::default(),
                waited: TimeDelta::ZERO,
                arrived: 0,
            }
        });
        let flows = flows.collect();
        let names = config.flows.iter().map(|flow| flow.name.clone()).collect();
        Self {
            config,
            deadlines,
            up: Bottleneck::new(&config.up, seed, "up"),
            down: Bottleneck::new(&config.down, seed, "down"),
            flows,
            trace: Trace { flows: names, ..Trace::default() },
        }
    }

    fn on_deadline(&mut self, now: Timestamp, part: usize) {
        match part {
            ROWS => self.close_rows(now),
            UP => self.deliver(now, Direction::Up),
            DOWN => self.deliver(now, Direction::Down),
            part => {
                let flow = (part - FIRST_FLOW) / PARTS_PER_FLOW;
                match (part - FIRST_FLOW) % PARTS_PER_FLOW {
                    SOURCE => self.on_source(now, flow),
                    PACER => self.on_pacer(now, flow),
                    FEEDBACK => self.on_feedback_timer(now, flow),
                    _ => self.on_timeout(now, flow),
                }
            }
        }
    }

    fn on_source(&mut self, now: Timestamp, flow: usize) {
        let stop = self.config.flows[flow].stop;
        if now >= stop {
            for timer in [SOURCE, PACER, FEEDBACK, TIMEOUT] {
                self.deadlines.set(part(flow, timer), None);
            }
            return;
        }
        let interval = self.flows[flow].sender.make_frame(now);
        self.deadlines.set(part(flow, SOURCE), Some((now + interval).min(stop)));
        self.after_sender(now, flow);
    }

    fn on_pacer(&mut self, now: Timestamp, flow: usize) {
        while let Some((size, header)) = self.flows[flow].sender.send(now) {
            let row = &mut self.flows[flow].row;
            row.sent += size;
            row.sent_packets += 1;
            let direction = self.config.flows[flow].direction;
            let outer = Header { flow: media_key(flow), ..Header::new(size) };
            self.enqueue(now, direction, outer, Packet::Media { flow, header });
            self.refresh_target(now, flow);
        }
        self.after_sender(now, flow);
    }

    fn on_feedback_timer(&mut self, now: Timestamp, flow: usize) {
        let back = opposite(self.config.flows[flow].direction);
        let link = match back {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        self.flows[flow].receiver.feedback(now, |size, bytes| {
            let header = Header { flow: feedback_key(flow), ..Header::new(size) };
            link.enqueue(now, header, Packet::Feedback { flow, bytes: bytes.to_vec() });
        });
        self.schedule_link(back);
        let next = now + self.config.feedback_interval;
        self.deadlines.set(part(flow, FEEDBACK), Some(next));
    }

    fn on_timeout(&mut self, now: Timestamp, flow: usize) {
        let controller = &mut self.flows[flow].sender.controller;
        controller.on_timeout(now);
        debug_assert!(controller.next_timeout().is_none_or(|next| next > now));
        self.after_sender(now, flow);
    }

    fn enqueue(&mut self, now: Timestamp, direction: Direction, header: Header, packet: Packet) {
        let link = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        link.enqueue(now, header, packet);
        self.schedule_link(direction);
    }

    fn schedule_link(&mut self, direction: Direction) {
        match direction {
            Direction::Up => self.deadlines.set(UP, self.up.next_event()),
            Direction::Down => self.deadlines.set(DOWN, self.down.next_event()),
        }
    }

    fn deliver(&mut self, now: Timestamp, direction: Direction) {
        loop {
            let fate = match direction {
                Direction::Up => self.up.poll(now),
                Direction::Down => self.down.poll(now),
            };
            match fate {
                Some(Fate::Delivered(delivery)) => self.on_delivery(now, delivery),
                Some(Fate::Dropped(dropped)) => self.on_drop(&dropped),
                None => break,
            }
        }
        self.schedule_link(direction);
    }

    fn on_drop(&mut self, dropped: &Dropped<Packet>) {
        match dropped.payload {
            Packet::Media { flow, .. } => self.flows[flow].row.lost_packets += 1,
            // Lost feedback is part of the experiment; the controllers have to live with it.
            Packet::Feedback { .. } => {}
        }
    }

    fn on_delivery(&mut self, now: Timestamp, delivery: Delivery<Packet>) {
        match delivery.payload {
            Packet::Media { flow, header } => {
                let state = &mut self.flows[flow];
                state.receiver.on_packet(now, &header);
                state.row.received += delivery.size;
                state.waited += delivery.queuing_delay;
                state.arrived += 1;
            }
            Packet::Feedback { flow, bytes } => {
                // What arrives after the flow's end has no sender to go to.
                if now >= self.config.flows[flow].stop {
                    return;
                }
                let state = &mut self.flows[flow];
                if let Some(report) = state.sender.on_feedback(now, &bytes) {
                    let sample = report.rtt(now);
                    state.row.rtt = match (state.row.rtt, sample) {
                        (Some(least), Some(sample)) => Some(least.min(sample)),
                        (least, sample) => least.or(sample),
                    };
                }
                self.after_sender(now, flow);
            }
        }
    }

    /// Takes over what the controller wants now and when it wants to be called.
    fn after_sender(&mut self, now: Timestamp, flow: usize) {
        self.refresh_target(now, flow);
        let sender = &self.flows[flow].sender;
        self.deadlines.set(part(flow, PACER), sender.next_send_time().map(|next| next.max(now)));
        self.deadlines.set(part(flow, TIMEOUT), sender.controller.next_timeout());
    }

    fn refresh_target(&mut self, now: Timestamp, flow: usize) {
        let sender = &mut self.flows[flow].sender;
        let Some(old) = sender.refresh_target(now) else { return };
        let metrics = sender.controller.metrics();
        self.trace.events.push(RateChange {
            time: now,
            flow,
            from: old.bitrate,
            to: sender.target().bitrate,
            reason: metrics.reason.as_str().into(),
            state: metrics.state.into(),
            signals: metrics.signals.map(|(name, value)| (name.into(), value)),
        });
    }

    fn close_rows(&mut self, now: Timestamp) {
        for (index, flow) in self.config.flows.iter().enumerate() {
            if now <= flow.start || now > flow.stop {
                continue;
            }
            let link = match flow.direction {
                Direction::Up => &mut self.up,
                Direction::Down => &mut self.down,
            };
            let state = &mut self.flows[index];
            let target = *state.sender.target();
            self.trace.rows.push(Row {
                time: now,
                flow: index,
                capacity: link.capacity(now - ROW_INTERVAL),
                target: Some(target.bitrate),
                pacing_rate: Some(target.pacing_rate),
                congestion_window: target.window.map(|window| window.congestion_window),
                rtt: state.row.rtt.map(whole_micros),
                queuing_delay: (state.arrived > 0)
                    .then(|| whole_micros(state.waited / state.arrived)),
                queue: link.queued(now),
                ..state.row
            });
            state.row = Row::default();
            state.waited = TimeDelta::ZERO;
            state.arrived = 0;
        }
        self.deadlines.set(ROWS, Some(now + ROW_INTERVAL));
    }
}

/// As a record holds it, so that a run measures the same before and after it was written.
fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

/// Media and feedback have addresses of their own: where they share a link, they are two flows.
fn media_key(flow: usize) -> FlowKey {
    FlowKey(2 * flow as u64)
}

fn feedback_key(flow: usize) -> FlowKey {
    FlowKey(2 * flow as u64 + 1)
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    }
}

#[cfg(test)]
mod tests;
