//! A bearer: its two channels, its token buckets, and its totals.

use std::fmt::Debug;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::directions::Directions;
use super::rlc::{Channel, Fates};
use super::service::BearerConfig;
use crate::path::Direction;
use crate::seed::Seed;

/// Length of the token buckets of guarantees and limits: how much a bearer may catch up.
const BUCKET: TimeDelta = TimeDelta::from_millis(100);

/// Totals of a bearer in one direction since it began, loads included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) offered: DataSize,
    pub(super) delivered: DataSize,
    pub(super) delivered_packets: u64,
    pub(super) dropped_packets: u64,
    pub(super) lost_packets: u64,
    /// Resource blocks times TTIs of first transmissions and of retransmissions, shared among the
    /// bearers of a block by bytes.
    pub(super) blocks: f64,
    /// Parts sent again by RLC, in bytes.
    pub(super) repeated: DataSize,
}

/// A bearer.
#[derive(Debug)]
pub(super) struct Bearer<T> {
    pub(super) config: BearerConfig,
    pub(super) channels: Directions<Channel<T>>,
    pub(super) totals: Directions<Totals>,
    guarantees: Directions<Bucket>,
    limits: Directions<Bucket>,
    /// A bearer that has been removed stays, so that the numbers of the others do not change.
    pub(super) is_active: bool,
}

impl<T: Debug + Send + 'static> Bearer<T> {
    pub(super) fn new(config: BearerConfig, terminal: &str, seed: Seed) -> Self {
        let channel = |direction: Direction| {
            let name = format!("cellular/{terminal}/{}/{}", config.name, direction.word());
            Channel::new(config.rlc, config.queue.of(direction), seed.stream(&name))
        };
        let guarantee = config.guarantee;
        Self {
            channels: Directions::from_fn(channel),
            totals: Directions::default(),
            guarantees: Directions::from_fn(|direction| {
                Bucket::new(guarantee.map(|it| *it.rate.of(direction)))
            }),
            limits: Directions::from_fn(|direction| {
                Bucket::new(guarantee.map(|it| *it.limit.of(direction)))
            }),
            is_active: true,
            config,
        }
    }

    /// Gives the bearer another guarantee, or none, from now on.
    pub(super) fn set_guarantee(&mut self, guarantee: Option<super::service::Guarantee>) {
        self.config.guarantee = guarantee;
        for direction in [Direction::Up, Direction::Down] {
            self.guarantees.of_mut(direction).rate = guarantee.map(|it| *it.rate.of(direction));
            self.limits.of_mut(direction).rate = guarantee.map(|it| *it.limit.of(direction));
        }
    }

    /// Bytes that may be sent now: the backlog, or what the maximum bitrate leaves of it.
    pub(super) fn sendable(&mut self, now: Timestamp, direction: Direction) -> u64 {
        let backlog = self.channels.of(direction).backlog();
        match self.limits.of_mut(direction).left(now) {
            Some(left) if backlog > 0 => backlog.min(left),
            _ => backlog,
        }
    }

    /// Bytes that the guarantee still owes the bearer, at most its backlog.
    pub(super) fn owed(&mut self, now: Timestamp, direction: Direction) -> u64 {
        let backlog = self.channels.of(direction).backlog();
        self.guarantees.of_mut(direction).left(now).map_or(0, |left| left.min(backlog))
    }

    /// Takes what was sent from the buckets.
    pub(super) fn spend(&mut self, now: Timestamp, direction: Direction, bytes: u64) {
        self.guarantees.of_mut(direction).spend(now, bytes);
        self.limits.of_mut(direction).spend(now, bytes);
    }

    /// Removes the bearer: its packets are dropped.
    pub(super) fn end(&mut self, now: Timestamp, outcomes: &mut Fates<T>) {
        self.is_active = false;
        self.channels.up.clear(now, outcomes);
        self.channels.down.clear(now, outcomes);
    }
}

/// A token bucket that fills at a bitrate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// The rate; `None` for no bucket.
    pub(super) rate: Option<Bitrate>,
    /// Tokens in bits, and when they were counted; negative after a block that was too large.
    tokens: f64,
    counted: Option<Timestamp>,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Option<Bitrate>) -> Self {
        Self { rate, ..Self::default() }
    }

    /// Whole bytes in the bucket; `None` if there is none.
    pub(super) fn left(&mut self, now: Timestamp) -> Option<u64> {
        let rate = self.rate?;
        let size = rate.as_bps_f64() * BUCKET.as_secs_f64();
        // A new bucket is full.
        let since = self.counted.map_or(BUCKET, |counted| now - counted);
        self.tokens = (self.tokens + rate.as_bps_f64() * since.as_secs_f64()).min(size);
        self.counted = Some(now);
        Some((self.tokens.max(0.0) / 8.0) as u64)
    }

    /// Takes tokens.
    pub(super) fn spend(&mut self, now: Timestamp, bytes: u64) {
        if self.left(now).is_some() {
            self.tokens -= bytes as f64 * 8.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate_and_a_bucket_full_at_once() {
        let mut bucket = Bucket::new(Some(Bitrate::from_kbps(800)));
        let at = Timestamp::from_millis;
        assert_eq!(bucket.left(at(0)), Some(10_000));
        bucket.spend(at(0), 12_000);
        assert_eq!(bucket.left(at(10)), Some(0));
        assert_eq!(bucket.left(at(30)), Some(1_000));
        assert_eq!(bucket.left(at(10_000)), Some(10_000));
        assert_eq!(Bucket::default().left(at(0)), None);
    }
}
