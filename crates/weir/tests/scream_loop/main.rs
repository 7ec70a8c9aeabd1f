//! Both versions of SCReAM in a closed loop.

mod first;
mod path;
mod second;
