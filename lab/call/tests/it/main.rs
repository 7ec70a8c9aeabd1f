//! Tests of the parts of a real call that need no call.

mod server;
