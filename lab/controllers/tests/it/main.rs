//! Tests of the controllers that only the lab has.

mod gcc_draft_loop;
mod properties;
mod remb;
