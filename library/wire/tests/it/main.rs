//! Tests of the wire formats from outside.

mod round_trip;
