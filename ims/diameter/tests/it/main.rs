//! Tests of Diameter from outside.

mod round_trip;
