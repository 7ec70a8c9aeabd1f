//! Values for both directions.

use crate::path::Direction;

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions<V> {
    /// From the terminal to the base station.
    pub up: V,
    /// From the base station to the terminal.
    pub down: V,
}

impl<V> Directions<V> {
    /// The value of a direction.
    pub const fn of(&self, direction: Direction) -> &V {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The value of a direction, to change it.
    pub const fn of_mut(&mut self, direction: Direction) -> &mut V {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Builds both values from a function of the direction.
    pub fn from_fn(mut value: impl FnMut(Direction) -> V) -> Self {
        Self { up: value(Direction::Up), down: value(Direction::Down) }
    }
}

impl<V: Clone> Directions<V> {
    /// The same value in both directions.
    pub fn both(value: V) -> Self {
        Self { up: value.clone(), down: value }
    }
}
