//! Tests of the emulator with real packets.

mod hosts;
mod impairments;
mod nats;
mod super_packets;
