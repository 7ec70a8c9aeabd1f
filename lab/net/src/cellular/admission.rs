//! Bearers that are added, changed and removed during a run, and which guarantees fit.

use std::fmt::Debug;

use weir::units::Timestamp;

use super::bearer::Bearer;
use super::cell::Cell;
use super::event::{BearerEvent, BearerEventKind};
use super::service::{BearerChange, BearerConfig, BearerRef, Guarantee, Priority};
use crate::path::Direction;

impl<T: Debug + Send + 'static> Cell<T> {
    /// Applies a change to the bearers, and logs what became of it. `None` without such a terminal.
    pub(super) fn apply(
        &mut self,
        now: Timestamp,
        change: &BearerChange,
    ) -> Option<BearerEventKind> {
        let terminal = change.terminal();
        if terminal >= self.terminals.len() {
            return None;
        }
        let name = change.bearer().to_owned();
        let kind = match change {
            BearerChange::Add { bearer, .. } => self.add(now, terminal, bearer),
            BearerChange::Guarantee { bearer, guarantee } => {
                self.change_guarantee(now, bearer, *guarantee)
            }
            BearerChange::Remove(bearer) => self.remove(now, bearer),
        };
        self.note(now, terminal, name, kind);
        Some(kind)
    }

    fn note(&mut self, time: Timestamp, terminal: usize, bearer: String, kind: BearerEventKind) {
        self.events.push(BearerEvent { time, node: terminal + 1, bearer, kind });
    }

    fn position(&self, bearer: &BearerRef) -> Option<usize> {
        let bearers = &self.terminals[bearer.terminal].bearers;
        bearers.iter().position(|it| it.is_active && it.config.name == bearer.bearer)
    }

    fn add(&mut self, now: Timestamp, terminal: usize, config: &BearerConfig) -> BearerEventKind {
        let bearer = BearerRef { terminal, bearer: config.name.clone() };
        if self.position(&bearer).is_some() {
            return BearerEventKind::Unknown;
        }
        let fits = config
            .guarantee
            .is_none_or(|it| self.make_room(now, (terminal, None), it, config.priority));
        let state = &mut self.terminals[terminal];
        let mut bearer = Bearer::new(config.clone(), &state.name, self.seed);
        // A refused bearer has its number too, so that the numbers of later ones do not depend on
        // what fits.
        bearer.is_active = fits;
        // A bearer of the same name that was removed gives its number, so that packets whose sender
        // names the number find it.
        let old =
            state.bearers.iter().position(|it| !it.is_active && it.config.name == config.name);
        match old {
            Some(number) => state.bearers[number] = bearer,
            None => {
                state.bearers.push(bearer);
                state.uplink.claims.push(0);
            }
        }
        if fits { BearerEventKind::Added } else { BearerEventKind::Refused }
    }

    fn change_guarantee(
        &mut self,
        now: Timestamp,
        bearer: &BearerRef,
        guarantee: Option<Guarantee>,
    ) -> BearerEventKind {
        let Some(number) = self.position(bearer) else { return BearerEventKind::Unknown };
        let priority = self.terminals[bearer.terminal].bearers[number].config.priority;
        if let Some(guarantee) = guarantee
            && !self.make_room(now, (bearer.terminal, Some(number)), guarantee, priority)
        {
            return BearerEventKind::Refused;
        }
        self.terminals[bearer.terminal].bearers[number].set_guarantee(guarantee);
        BearerEventKind::Changed
    }

    /// Removes a bearer; the default bearer stays.
    fn remove(&mut self, now: Timestamp, bearer: &BearerRef) -> BearerEventKind {
        match self.position(bearer) {
            None | Some(0) => BearerEventKind::Unknown,
            Some(number) => {
                self.end_bearer(now, bearer.terminal, number);
                BearerEventKind::Removed
            }
        }
    }

    fn end_bearer(&mut self, now: Timestamp, terminal: usize, number: usize) {
        let state = &mut self.terminals[terminal];
        state.bearers[number].end(now, &mut self.outcomes);
        state.uplink.claims[number] = 0;
        // Blocks on the air may carry parts of it; the packets are gone.
        for direction in [Direction::Up, Direction::Down] {
            for block in self.air.of_mut(direction).iter_mut().chain(self.again.of_mut(direction)) {
                if block.terminal == terminal {
                    block.parts.retain(|part| part.bearer != number);
                }
            }
        }
    }

    /// Whether a guarantee fits into the cell, perhaps after bearers that are less important have
    /// made room. `own` is the bearer that asks, if it is there already.
    fn make_room(
        &mut self,
        now: Timestamp,
        (terminal, own): (usize, Option<usize>),
        guarantee: Guarantee,
        priority: Priority,
    ) -> bool {
        let needs = [Direction::Up, Direction::Down]
            .map(|direction| self.share_of(now, terminal, guarantee, direction));
        loop {
            let taken = [Direction::Up, Direction::Down]
                .map(|direction| self.taken(now, (terminal, own), direction));
            let mut sums = taken.iter().zip(needs).map(|(taken, need)| taken + need);
            if sums.all(|sum| sum <= self.admission.share) {
                return true;
            }
            let victim = self.least_important((terminal, own), priority);
            let Some((victim, number)) = victim.filter(|_| priority.may_preempt) else {
                return false;
            };
            let name = self.terminals[victim].bearers[number].config.name.clone();
            self.end_bearer(now, victim, number);
            self.note(now, victim, name, BearerEventKind::Preempted);
        }
    }

    /// Share of the cell that the guarantees of the other bearers take.
    fn taken(&mut self, now: Timestamp, own: (usize, Option<usize>), direction: Direction) -> f64 {
        let mut sum = 0.0;
        for terminal in 0..self.terminals.len() {
            for number in 0..self.terminals[terminal].bearers.len() {
                let bearer = &self.terminals[terminal].bearers[number];
                if let Some(guarantee) = bearer.config.guarantee
                    && bearer.is_active
                    && own != (terminal, Some(number))
                {
                    sum += self.share_of(now, terminal, guarantee, direction);
                }
            }
        }
        sum
    }

    /// Share of the cell that a guarantee takes at the terminal's present signal.
    fn share_of(
        &mut self,
        now: Timestamp,
        terminal: usize,
        guarantee: Guarantee,
        direction: Direction,
    ) -> f64 {
        let tti = self.carrier.after(now);
        self.learn(tti, terminal, direction);
        let prbs = *self.carrier.prbs.of(direction);
        let known = self.terminals[terminal].known.of_mut(direction);
        let mcs = self.choosers.of(direction).wide(&self.carrier, known);
        let symbols = self.carrier.symbols;
        let bytes = mcs.map_or(0, |mcs| self.carrier.block_bytes(direction, prbs, mcs, symbols));
        let possible = f64::from(bytes) * 8.0 / self.tti_seconds();
        let rate = guarantee.rate.of(direction).as_bps_f64();
        // Nothing can be guaranteed without a signal.
        if rate == 0.0 { 0.0 } else { rate / possible }
    }

    /// The bearer with a guarantee that must go first for one of this priority.
    fn least_important(
        &self,
        own: (usize, Option<usize>),
        priority: Priority,
    ) -> Option<(usize, usize)> {
        let all = self.terminals.iter().enumerate().flat_map(|(terminal, state)| {
            state.bearers.iter().enumerate().map(move |(number, bearer)| (terminal, number, bearer))
        });
        all.filter(|(terminal, number, bearer)| {
            let arp = bearer.config.priority;
            bearer.is_active
                && bearer.config.guarantee.is_some()
                && arp.preemptable
                && arp.level > priority.level
                && own != (*terminal, Some(*number))
        })
        .max_by_key(|(_, _, bearer)| bearer.config.priority.level)
        .map(|(terminal, number, _)| (terminal, number))
    }

    /// Refuses the guarantees of the configuration that do not fit: these bearers are not set up.
    pub(super) fn admit_configured(&mut self) {
        for terminal in 0..self.terminals.len() {
            for number in 1..self.terminals[terminal].bearers.len() {
                let BearerConfig { guarantee, priority, name, .. } =
                    self.terminals[terminal].bearers[number].config.clone();
                let Some(guarantee) = guarantee else { continue };
                self.terminals[terminal].bearers[number].is_active = false;
                let fits =
                    self.make_room(Timestamp::ZERO, (terminal, Some(number)), guarantee, priority);
                self.terminals[terminal].bearers[number].is_active = fits;
                let kind = if fits { BearerEventKind::Added } else { BearerEventKind::Refused };
                self.note(Timestamp::ZERO, terminal, name, kind);
            }
        }
    }
}
