//! Tests of the library from outside: by properties, and in closed loops over a path of their own.

mod closed_loop;
mod coupled_loop;
mod feedback;
mod gcc_loop;
mod heap;
mod media_sender;
mod memory;
mod nada_loop;
mod properties;
mod sluice_rules;
