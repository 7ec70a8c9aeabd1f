//! Both ends of a flow with bytes between them: what one end writes, the other one reads.

mod path;
mod receiver;
mod sender;
