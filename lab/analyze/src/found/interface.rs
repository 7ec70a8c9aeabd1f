//! The network that a device is on.

/// `networkType` of a local candidate. Browsers hide it from most pages; their own dumps have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Wifi,
    Ethernet,
    Cellular,
    /// What is below it is not known.
    Vpn,
    Bluetooth,
    Wimax,
}

impl Interface {
    /// Reads the browser's word; `None` if it does not know it either.
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "wifi" => Self::Wifi,
            "ethernet" => Self::Ethernet,
            "cellular" => Self::Cellular,
            "vpn" => Self::Vpn,
            "bluetooth" => Self::Bluetooth,
            "wimax" => Self::Wimax,
            _ => return None,
        })
    }

    /// The browser's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wifi => "wifi",
            Self::Ethernet => "ethernet",
            Self::Cellular => "cellular",
            Self::Vpn => "vpn",
            Self::Bluetooth => "bluetooth",
            Self::Wimax => "wimax",
        }
    }

    /// How a sentence names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wifi => "Wi-Fi",
            Self::Ethernet => "Ethernet",
            Self::Cellular => "cellular",
            Self::Vpn => "a VPN",
            Self::Bluetooth => "Bluetooth",
            Self::Wimax => "WiMAX",
        }
    }
}
