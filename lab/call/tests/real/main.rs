//! Calls in real time.

mod call;
mod nats;
mod pipeline;
