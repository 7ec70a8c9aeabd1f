//! Tests of the whole cell.
