//! A Wi-Fi cell of 802.11n.

pub mod error_rate;
pub mod phy;
pub mod propagation;
pub mod rate;
pub mod retry;
pub mod theory;
