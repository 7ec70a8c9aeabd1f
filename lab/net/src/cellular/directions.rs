//! Values for both directions.

use crate::path::Way;

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
    pub const fn of(&self, way: Way) -> &V {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// The value of a direction, to change it.
    pub const fn of_mut(&mut self, way: Way) -> &mut V {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    /// Builds both values from a function of the direction.
    pub fn from_fn(mut value: impl FnMut(Way) -> V) -> Self {
        Self { up: value(Way::Up), down: value(Way::Down) }
    }
}

impl<V: Clone> Directions<V> {
    /// The same value in both directions.
    pub fn both(value: V) -> Self {
        Self { up: value.clone(), down: value }
    }
}
