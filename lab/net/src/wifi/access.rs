//! The cell as an access network: how packets cross it, and what it logs.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::{DataSize, Timestamp};

use super::cell::Cell;
use super::config::{AccessCategory, Association, CellConfig, Link, NodeId};
use super::log::CellLog;
use super::rate::RateControl;
use crate::access::{AccessLog, AccessNetwork};
use crate::packet::{Header, Outcome};
use crate::path::{Attachment, Crossing, Direction, Network};
use crate::seed::Seed;

/// The class of an attachment is the access category.
impl From<Association> for Attachment {
    fn from(own: Association) -> Self {
        Self { terminal: own.station.0, class: own.category.index() }
    }
}

/// A cell with its log.
#[derive(Debug)]
struct LoggedCell<T> {
    cell: Cell<T>,
    log: CellLog,
}

/// Returns the sending and the receiving node of a packet.
fn nodes(Crossing { attachment, direction }: Crossing) -> (NodeId, NodeId) {
    let station = NodeId(attachment.terminal);
    match direction {
        Direction::Up => (station, NodeId::ACCESS_POINT),
        Direction::Down => (NodeId::ACCESS_POINT, station),
    }
}

impl<T: Debug + Send + 'static> Network<T> for LoggedCell<T> {
    type Crossing = Crossing;

    fn enqueue(&mut self, now: Timestamp, crossing: Crossing, header: Header, payload: T) {
        let category = AccessCategory::EACH[crossing.attachment.class];
        self.cell.enqueue(now, nodes(crossing), category, header, payload);
    }

    fn next_event(&self) -> Option<Timestamp> {
        self.cell.next_event()
    }

    fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        self.cell.poll(now)
    }

    fn poll_ahead(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<T>)> {
        self.cell.poll_ahead(now, horizon)
    }

    fn queued(&mut self, _now: Timestamp, crossing: Crossing) -> DataSize {
        self.cell.queued(nodes(crossing).0)
    }
}

impl<T: Debug + Send + 'static> AccessNetwork<T> for LoggedCell<T> {
    fn note(&mut self, now: Timestamp) {
        self.log.write(now, &mut self.cell);
    }

    fn move_notes(&mut self, log: &mut AccessLog) {
        log.wifi.append(&mut self.log.notes);
    }
}

/// Builds the cell in its idle state.
pub(crate) fn build<T: Clone + Debug + Send + 'static>(
    config: &CellConfig,
    noted: &Range<Timestamp>,
    seed: Seed,
) -> Box<dyn AccessNetwork<T>> {
    let mut cell = Cell::new(config, seed);
    let log = CellLog::new(&mut cell, noted.clone());
    Box::new(LoggedCell { cell, log })
}

impl CellConfig {
    /// The first terminal, in its usual class.
    pub(crate) fn default_attachment() -> Attachment {
        let category = AccessCategory::BestEffort;
        Association { station: NodeId::station(0), category }.into()
    }

    /// Fixes each rate at its first step, and keeps only the loads that start at time zero.
    pub(crate) fn before_run(&self) -> Self {
        let mut config = self.clone();
        for station in &mut config.stations {
            fix(&mut station.up);
            fix(&mut station.down);
        }
        for neighbour in &mut config.neighbours {
            fix(&mut neighbour.link);
        }
        config
    }
}

/// The link as it is before a run.
fn fix(link: &mut Link) {
    if let RateControl::Steps(first, _) = &link.rate {
        link.rate = RateControl::Fixed(*first);
    }
    link.loads.retain(|load| load.start == Timestamp::ZERO);
    for load in &mut link.loads {
        load.stop = Timestamp::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{Arrivals, Band, DataRate, Mcs, Station, StationLoad};

    #[test]
    fn before_a_run_rates_are_their_first_and_only_loads_from_zero_are_active() {
        let rate = |mcs| DataRate::long_guard(Mcs::new(mcs).unwrap());
        let steps = RateControl::Steps(rate(7), vec![(Timestamp::from_secs(1), rate(0))]);
        let mut station = Station::new("sta", steps, RateControl::Fixed(rate(3)));
        let load = |start| {
            let load = StationLoad::new(Arrivals::Saturated, DataSize::from_bytes(1_500));
            let stop = Timestamp::from_secs(5);
            StationLoad { start: Timestamp::from_millis(start), stop, ..load }
        };
        station.up.loads = vec![load(0), load(900)];
        let before = CellConfig::new(Band::GHZ_2_4, vec![station]).before_run();
        let Station { up, down, .. } = &before.stations[0];
        assert_eq!(
            (&up.rate, &down.rate),
            (&RateControl::Fixed(rate(7)), &RateControl::Fixed(rate(3)))
        );
        assert_eq!(up.loads, [StationLoad { stop: Timestamp::MAX, ..load(0) }]);
    }
}
