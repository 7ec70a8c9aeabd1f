//! A Wi-Fi cell of 802.11n.

pub mod phy;
