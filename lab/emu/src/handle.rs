//! Interface to the emulator's thread: changes of the network during a run, and its status.

use std::fmt;
use std::io::{PipeWriter, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::path::AccessChange;
use weir_net::path::Direction;
use weir_net::{Jitter, LossModel};

/// A command to the emulator's thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Sets time zero of the run.
    Start(Instant),
    /// A hop changes.
    Set(Change),
    /// The access network changes.
    SetAccess(Box<AccessChange>),
    /// Ends the run.
    Stop,
}

/// A change of one hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The index of the hop in the plan.
    pub hop: usize,
    /// The direction to which the change applies; `None` for both.
    pub direction: Option<Direction>,
    /// The property that changes, with its new value.
    pub property: Property,
}

/// A property of one direction of a hop, with its new value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Property {
    /// Capacity. Zero is an outage until the next change.
    Capacity(Bitrate),
    /// Propagation delay.
    Delay(TimeDelta),
    /// Variation of the delay.
    Jitter(Jitter),
    /// Loss that is not due to congestion.
    Loss(LossModel),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.property {
            Property::Capacity(rate) => write!(f, "capacity {:.3} Mbit/s", rate.as_mbps_f64())?,
            Property::Delay(delay) => write!(f, "delay {} ms", delay.as_millis_f64())?,
            Property::Jitter(Jitter::None) => write!(f, "jitter 0 ms")?,
            Property::Jitter(Jitter::Uniform { amount, .. }) => {
                write!(f, "jitter {} ms", amount.as_millis_f64())?;
            }
            Property::Jitter(Jitter::HalfNormal { sd, .. }) => {
                write!(f, "half-normal jitter of {} ms", sd.as_millis_f64())?;
            }
            Property::Jitter(Jitter::Netem(of)) => {
                write!(f, "jitter {} ms", of.amount.as_millis_f64())?;
            }
            Property::Loss(LossModel::None) => write!(f, "loss 0 %")?,
            Property::Loss(LossModel::Random(share)) => write!(f, "loss {} %", share * 100.0)?,
            Property::Loss(LossModel::GilbertElliott(model)) => {
                write!(f, "bursts of loss, {:.1} % in the mean", model.mean_loss() * 100.0)?;
            }
        }
        match self.direction {
            Some(direction) => write!(f, " {}", direction.word()),
            None => Ok(()),
        }
    }
}

/// Status of the network, for a status line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Time of the status since the start of the run.
    pub time: Timestamp,
    /// Status of both directions (up, down) of each hop.
    pub hops: Vec<[DirectionStatus; 2]>,
}

/// Status of one direction of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionStatus {
    /// Capacity; `None` if unlimited.
    pub capacity: Option<Bitrate>,
    /// Rate of the packets that arrived over the last second.
    pub rate: Bitrate,
    /// Share of the packets of the last second that were lost or dropped.
    pub loss_ratio: f64,
    /// Propagation delay plus current queuing delay.
    pub delay: TimeDelta,
    /// Current queuing delay.
    pub queuing_delay: TimeDelta,
}

impl Status {
    /// Current round-trip time: the sum of the delays of all hops in both directions.
    pub fn round_trip(&self) -> TimeDelta {
        let ways = self.hops.iter().flatten();
        ways.fold(TimeDelta::ZERO, |sum, direction| sum + direction.delay)
    }
}

/// Changes and watches a running emulator. Clones refer to the same emulator.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    wake: Arc<PipeWriter>,
    hops: usize,
    status: Arc<Mutex<Status>>,
}

impl Handle {
    pub(crate) fn new(commands: Sender<Command>, wake: PipeWriter, hops: usize) -> Self {
        Self { commands, wake: Arc::new(wake), hops, status: Arc::default() }
    }

    pub(crate) fn send(&self, command: Command) {
        // Both fail only if the thread has ended: `Emulator::stop` reports why.
        if self.commands.send(command).is_ok() {
            let _ = self.wake.as_ref().write(&[0]);
        }
    }

    pub(crate) fn shared_status(&self) -> Arc<Mutex<Status>> {
        Arc::clone(&self.status)
    }

    /// Number of hops.
    pub fn hops(&self) -> usize {
        self.hops
    }

    /// Changes the network from now on. The record of the run includes the change.
    ///
    /// # Panics
    /// If there is no such hop.
    pub fn set(&self, change: Change) {
        assert!(change.hop < self.hops, "the plan has {} hops", self.hops);
        self.send(Command::Set(change));
    }

    /// Changes the access network from now on. The record of the run includes the change. Nothing
    /// happens without an access network, or if it does not support the change.
    pub fn set_access(&self, change: impl Into<AccessChange>) {
        self.send(Command::SetAccess(Box::new(change.into())));
    }

    /// Status of the network. It is at most a twentieth of a second old.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_what_it_does() {
        let text = |direction, property| Change { hop: 0, direction, property }.to_string();
        let rate = Bitrate::from_kbps(1_500);
        assert_eq!(text(Some(Direction::Up), Property::Capacity(rate)), "capacity 1.500 Mbit/s up");
        assert_eq!(text(None, Property::Loss(LossModel::Random(0.05))), "loss 5 %");
        let delay = TimeDelta::from_micros(2_500);
        assert_eq!(text(Some(Direction::Down), Property::Delay(delay)), "delay 2.5 ms down");
    }
}
