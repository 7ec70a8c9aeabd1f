//! Tests of RTCP at both ends from outside, and the vectors.

mod ends;
mod extremes;
mod hostile;
mod vectors;
