//! What someone with a bad call may try, in words without terms of the field. It never contradicts
//! what the dump says of the device: nobody on Ethernet is told to use a cable.

use crate::found::{Evidence, Found, Interface, Part, Source};

/// What to try about a finding, on this interface; `None` if the dump does not say which.
pub(super) fn advice(found: &Found, interface: Option<Interface>) -> String {
    match &found.evidence {
        Evidence::Capacity(path) if !path.is_sent => {
            format!("Please pause downloads and films, and {}.", with_more_room(interface))
        }
        // The browser says so of the video that it sends.
        Evidence::Capacity(_) | Evidence::Bandwidth { .. } => {
            format!("Please pause uploads and backups, and {}.", with_more_room(interface))
        }
        Evidence::NeverConnected(_) | Evidence::NoTurnServer { .. } => {
            format!("Please try {}; an administrator can allow the app.", elsewhere(interface))
        }
        Evidence::OneWay { nothing_sent: false, .. } => format!(
            "Please try {}, and ask the other side whether it is muted.",
            elsewhere(interface)
        ),
        Evidence::Concealment(played) if played.lacks_packets() => {
            on_a_bad_path(found, interface).into()
        }
        _ => match found.part() {
            Part::Connection | Part::Network => on_a_bad_path(found, interface).into(),
            _ => of_a_device(found).into(),
        },
    }
}

/// What gives a full path more room.
fn with_more_room(interface: Option<Interface>) -> &'static str {
    match interface {
        Some(Interface::Wifi) => "use a cable or come closer to the router",
        Some(Interface::Ethernet) => "ask others on this connection to do the same",
        Some(Interface::Cellular | Interface::Wimax) => "use Wi-Fi, or go where the signal is good",
        Some(Interface::Vpn) => "try without the VPN",
        Some(Interface::Bluetooth) => "use Wi-Fi or a cable in place of Bluetooth",
        None => "come closer to the router if this is Wi-Fi",
    }
}

/// Where a call may go through that does not go through here.
fn elsewhere(interface: Option<Interface>) -> &'static str {
    match interface {
        Some(Interface::Vpn) => "without the VPN",
        Some(Interface::Cellular | Interface::Wimax) => "on Wi-Fi",
        Some(Interface::Wifi | Interface::Ethernet | Interface::Bluetooth) => "on a mobile network",
        None => "without a VPN or on another network",
    }
}

/// What may help on a path that loses or delays packets.
fn on_a_bad_path(found: &Found, interface: Option<Interface>) -> &'static str {
    let is_radio = matches!(found.evidence, Evidence::Pauses { .. } | Evidence::Spikes { .. });
    match interface {
        _ if matches!(found.evidence, Evidence::PathChange(_)) => {
            "Please stay on one network, the better one of the two."
        }
        Some(Interface::Wifi) => {
            "Please use a cable in place of Wi-Fi, or come closer to the router."
        }
        // Its own cable has no radio.
        Some(Interface::Ethernet) if is_radio => {
            "Please ask the other side to use a cable, or to come closer to its router."
        }
        Some(Interface::Ethernet) => {
            "Please try another network; if it comes back there, ask the other side to do the same."
        }
        Some(Interface::Cellular | Interface::Wimax) => {
            "Please use Wi-Fi, or go where the signal is good."
        }
        Some(Interface::Vpn) => "Please try without the VPN.",
        Some(Interface::Bluetooth) => "Please use Wi-Fi or a cable in place of Bluetooth.",
        None => "Please come closer to the router if this is Wi-Fi, or try another network.",
    }
}

/// What may help where no path is at fault.
fn of_a_device(found: &Found) -> &'static str {
    match &found.evidence {
        Evidence::Refused(refusal) if refusal.error.starts_with("NotReadableError") => {
            "Please close the other program or tab that uses it, and join again."
        }
        Evidence::Refused(refusal) if refusal.is_of_device() => {
            "Please allow camera and microphone for this site, and choose them in its settings."
        }
        Evidence::NotSent
        | Evidence::SilentSource
        | Evidence::OneWay { nothing_sent: true, .. } => {
            "Please switch it on in the call, and choose the right device in the settings."
        }
        Evidence::SilentSound | Evidence::NothingReceived { .. } => {
            "Please ask the other side whether it is muted, or its camera off."
        }
        Evidence::NotEncoded { .. } => "Please restart the browser; if it comes back, tell us.",
        Evidence::Source(Source::Little { .. } | Source::Easy { .. }) => {
            "Please look whether the camera is on; if it is, load the page again."
        }
        Evidence::Hole { was_asleep: true, .. } => "Please keep the device awake in a call.",
        _ => match found.part() {
            Part::Controller => "Nothing needs to be done at your end: this is for our engineers.",
            Part::Encoder | Part::Processor => {
                "Please close other programs and tabs, and switch off background effects."
            }
            Part::FarEnd => "Please ask the other side to try a cable or another device.",
            Part::Video | Part::Audio => "Please restart the browser; if it comes back, tell us.",
            Part::Application | Part::Connection | Part::Network => {
                "Please load the page again; if it comes back, tell us."
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::{FullPath, Subject};

    const ALL: [Option<Interface>; 7] = [
        None,
        Some(Interface::Wifi),
        Some(Interface::Ethernet),
        Some(Interface::Cellular),
        Some(Interface::Vpn),
        Some(Interface::Bluetooth),
        Some(Interface::Wimax),
    ];

    fn of(evidence: Evidence) -> Found {
        Found::new(Subject::Connection("6-1".into()), (0.0, 20.0), evidence)
    }

    fn full(is_sent: bool) -> Evidence {
        Evidence::Capacity(FullPath {
            is_sent,
            rate_bps: None,
            lost: None,
            queue_ms: None,
            estimate_bps: None,
            carried: None,
            overflows: false,
        })
    }

    #[test]
    fn no_advice_contradicts_the_interface_of_the_dump() {
        let all = [
            full(true),
            full(false),
            Evidence::Bandwidth { estimate_bps: None, rate_bps: None },
            Evidence::Loss { lost: Some(0.1), rtt_ms: None },
            Evidence::Delay { rtt_ms: None, base_ms: None },
            Evidence::Pauses { count: 3, longest_ms: 90.0 },
            Evidence::Interruption,
            Evidence::Stall { streams: 2, came_late: true },
            Evidence::NoTurnServer { servers: 0 },
            Evidence::OneWay { nothing_sent: false, is_begin: false },
        ];
        for evidence in all {
            let found = of(evidence);
            for interface in ALL {
                let text = advice(&found, interface);
                let at = format!("{:?}, {interface:?}: {text}", found.evidence);
                let wrong: &[&str] = match interface {
                    Some(Interface::Ethernet) => &["use a cable or", "Wi-Fi", "VPN", "the router"],
                    Some(Interface::Wifi) => &["use Wi-Fi", "on Wi-Fi", "VPN"],
                    Some(Interface::Cellular) => &["router", "cable", "mobile network", "VPN"],
                    Some(Interface::Vpn) => &["router", "cable", "Wi-Fi"],
                    _ => &[],
                };
                assert!(!wrong.iter().any(|it| text.contains(it)), "{at}");
                assert!(text.starts_with("Please ") && text.ends_with('.'), "{at}");
            }
        }
    }

    #[test]
    fn what_fills_a_path_is_paused_in_its_direction() {
        assert!(advice(&of(full(true)), None).contains("uploads"));
        assert!(advice(&of(full(false)), None).contains("downloads"));
        let bandwidth = Evidence::Bandwidth { estimate_bps: None, rate_bps: None };
        assert!(advice(&of(bandwidth), None).contains("uploads"));
    }
}
