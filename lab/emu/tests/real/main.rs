//! Tests of the emulator with real packets.

mod hosts;
mod nats;
mod super_packets;
