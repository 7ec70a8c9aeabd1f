//! The memory of a cellular cell does not grow: after five minutes five walking terminals in calls
//! hold no more than after one.

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_net::Seed;
use weir_net::cellular::fading::{Fading, Profile};
use weir_net::cellular::{
    Carrier, Cell, CellularConfig, Directions, Load, Signal, SignalChange, Terminal,
};
use weir_net::load::Arrivals;
use weir_net::path::Direction;

use crate::heap;

const PACKET: DataSize = DataSize::from_bytes(1_200);
const CALL: Arrivals = Arrivals::Poisson(Bitrate::from_kbps(1_500));

/// Most bytes held at the end of any second of a span.
fn most_held(cell: &mut Cell<[u64; 8]>, seconds: std::ops::Range<i64>) -> isize {
    let held = seconds.map(|second| {
        let end = Timestamp::from_secs(second + 1);
        while let Some(next) = cell.next_event().filter(|next| *next <= end) {
            cell.poll(next);
        }
        heap::live_bytes()
    });
    held.max().unwrap_or(0)
}

#[test]
fn the_memory_of_a_cell_does_not_grow_with_time() {
    let terminal = |index| {
        let fading = Some(Fading::new(Profile::Epa, 3.0));
        let signal = Signal::new(SignalChange::Constant(15.0), fading);
        let mut terminal = Terminal::new(format!("terminal-{index}"), Directions::both(signal));
        terminal.loads = Direction::BOTH
            .iter()
            .map(|direction| Load::new(*direction, 0, CALL, PACKET))
            .collect();
        terminal
    };
    let config = CellularConfig::new(Carrier::lte(50), (0..5).map(terminal).collect());
    let before = heap::live_bytes();
    let mut cell = Cell::new(&config, Seed::new(1));
    let first = most_held(&mut cell, 0..60) - before;
    let last = most_held(&mut cell, 240..300) - before;
    // Queues keep the room of the deepest fade so far.
    assert!(last < first + first / 2, "{first} bytes in the first minute, {last} in the fifth");
}
