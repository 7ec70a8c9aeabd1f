//! The application function of Rx: from the offer and the answer of a call to an AAR, for any
//! profile of RTP ([TS 29.213 §6.2], [TS 29.214 §4.4]).
//!
//! Kamailio has one for plain user agents. It leaves out the filters of `UDP/TLS/RTP/SAVPF`, so
//! legs of browsers need this one.

use std::net::Ipv4Addr;

use weir_diameter::{Avp, Message, avp, base};

use crate::peer::{Identity, answer};
use crate::policy::media_type;

/// DIAMETER_LOGOUT of Termination-Cause ([RFC6733 §8.15]).
const LOGOUT: u32 = 1;
/// Values of Flow-Status ([TS 29.214 §5.3.11]).
const ENABLED_UPLINK: u32 = 0;
const ENABLED_DOWNLINK: u32 = 1;
const ENABLED: u32 = 2;
const DISABLED: u32 = 3;
const REMOVED: u32 = 4;
/// RTCP in Flow-Usage ([TS 29.214 §5.3.12]).
const RTCP: u32 = 1;
/// PRELIMINARY_SERVICE_INFORMATION of Service-Info-Status ([TS 29.214 §5.3.25]).
const PRELIMINARY: u32 = 1;
/// Events of which the function wants to hear: loss of bearer, release of bearer
/// ([TS 29.214 §5.3.13]).
const SPECIFIC_ACTIONS: [u32; 2] = [2, 4];

/// A medium of one side, as far as Rx needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    kind: String,
    port: u16,
    rtcp_port: u16,
    address: Ipv4Addr,
    /// `b=AS` in bit/s.
    bps: Option<u32>,
    rs_bps: Option<u32>,
    rr_bps: Option<u32>,
    sends: bool,
    receives: bool,
}

/// Reads the media of a description. A `c=` within a medium comes before that of the session.
fn sides(sdp: &str) -> Vec<Side> {
    let (mut session, mut media) = (Ipv4Addr::UNSPECIFIED, Vec::<Side>::new());
    for line in sdp.lines().map(str::trim_end) {
        let Some((kind, value)) = line.split_once('=') else { continue };
        let number = |value: &str| value.parse::<u32>().ok();
        match (kind, media.last_mut()) {
            ("m", _) => {
                let words: Vec<&str> = value.split(' ').collect();
                let port = words.get(1).and_then(|port| port.parse().ok()).unwrap_or(0);
                media.push(Side {
                    kind: words[0].into(),
                    port,
                    rtcp_port: port.saturating_add(1),
                    address: session,
                    bps: None,
                    rs_bps: None,
                    rr_bps: None,
                    sends: true,
                    receives: true,
                });
            }
            ("c", medium) => {
                let address = value.strip_prefix("IN IP4 ").and_then(|text| text.parse().ok());
                let Some(address) = address else { continue };
                match medium {
                    Some(medium) => medium.address = address,
                    None => session = address,
                }
            }
            ("b", Some(medium)) => match value.split_once(':') {
                // [TS 29.213 §6.2] b=TIAS is exact and comes before b=AS.
                Some(("TIAS", rate)) => medium.bps = number(rate).or(medium.bps),
                Some(("AS", rate)) if medium.bps.is_none() => {
                    medium.bps = number(rate).map(|kbps| kbps.saturating_mul(1000));
                }
                Some(("RS", rate)) => medium.rs_bps = number(rate),
                Some(("RR", rate)) => medium.rr_bps = number(rate),
                _ => {}
            },
            ("a", Some(medium)) => match value {
                "sendonly" => medium.receives = false,
                "recvonly" => medium.sends = false,
                "inactive" => (medium.sends, medium.receives) = (false, false),
                "rtcp-mux" => medium.rtcp_port = medium.port,
                _ => {}
            },
            _ => {}
        }
    }
    media
}

/// Makes the requests of one Rx session: one leg of a call.
#[derive(Debug)]
pub struct Function {
    identity: Identity,
    session: String,
    terminal: Ipv4Addr,
}

/// What the PCRF wants of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The call must end: its bearers are gone ([TS 29.214 §4.4.6.1]).
    End,
    /// Something has happened to its bearers, by this Specific-Action ([TS 29.214 §4.4.6.3]).
    News(u32),
}

impl Function {
    /// The function for the leg of this terminal. `session` is unique at this host.
    pub fn new(identity: Identity, session: &str, terminal: Ipv4Addr) -> Self {
        let session = format!("{};{session}", identity.host);
        Self { identity, session, terminal }
    }

    /// The function for a session that somebody else of this realm has opened and lost, by its
    /// whole Session-Id: it can only be ended.
    pub fn of_session(identity: Identity, session: &str) -> Self {
        Self { identity, session: session.into(), terminal: Ipv4Addr::UNSPECIFIED }
    }

    /// The AAR for a pair of descriptions: what the terminal has sent, and what it has received.
    /// Without the second one the information is preliminary.
    pub fn authorize(&self, own: &str, other: Option<&str>) -> Message {
        let (own, others) = (sides(own), other.map(sides).unwrap_or_default());
        let mut request = self
            .request(base::AA)
            .with(avp::AF_APPLICATION_IDENTIFIER.text("IMS Services"))
            .with(avp::FRAMED_IP_ADDRESS.octets(&self.terminal.octets()));
        for (number, medium) in (1..).zip(&own) {
            let other = usize::try_from(number).ok().and_then(|at: usize| others.get(at - 1));
            request = request.with(component(number, medium, other));
        }
        for action in SPECIFIC_ACTIONS {
            request = request.with(avp::SPECIFIC_ACTION.number(action));
        }
        if other.is_none() {
            request = request.with(avp::SERVICE_INFO_STATUS.number(PRELIMINARY));
        }
        request
    }

    /// The STR at the end of the call.
    pub fn terminate(&self) -> Message {
        self.request(base::SESSION_TERMINATION).with(avp::TERMINATION_CAUSE.number(LOGOUT))
    }

    /// Answers a request of the PCRF, and says what it wants.
    pub fn on_request(&self, request: &Message) -> (Message, Option<Order>) {
        let is_ours = request.text(&avp::SESSION_ID) == Some(self.session.as_str());
        let (code, order) = match request.command {
            _ if !is_ours => (base::UNKNOWN_SESSION_ID, None),
            base::ABORT_SESSION => (base::SUCCESS, Some(Order::End)),
            base::RE_AUTH => {
                let action = request.number(&avp::SPECIFIC_ACTION).unwrap_or(0);
                (base::SUCCESS, Some(Order::News(action)))
            }
            _ => (base::COMMAND_UNSUPPORTED, None),
        };
        (answer(&self.identity, request, code), order)
    }

    fn request(&self, command: u32) -> Message {
        let request =
            Message::request(command, base::RX).with(avp::SESSION_ID.text(self.session.as_str()));
        self.identity
            .sign(request)
            .with(avp::DESTINATION_REALM.text(self.identity.realm.as_str()))
            .with(avp::AUTH_APPLICATION_ID.number(base::RX))
    }
}

/// The component of a medium ([TS 29.213 §6.2]).
fn component(number: u32, own: &Side, other: Option<&Side>) -> Avp {
    let mut avps = vec![avp::MEDIA_COMPONENT_NUMBER.number(number)];
    let is_refused = own.port == 0 || other.is_some_and(|other| other.port == 0);
    if is_refused {
        avps.push(avp::FLOW_STATUS.number(REMOVED));
        return avp::MEDIA_COMPONENT_DESCRIPTION.group(avps);
    }
    if let Some(other) = other {
        avps.push(flow(1, own, other, false));
        // With rtcp-mux on both sides RTCP is in the flow of RTP ([RFC5761 §5.1.1]).
        if own.rtcp_port != own.port || other.rtcp_port != other.port {
            avps.push(flow(2, own, other, true));
        }
    }
    let up = own.sends && other.is_none_or(|other| other.receives);
    let down = own.receives && other.is_none_or(|other| other.sends);
    let status = match (up, down) {
        (true, true) => ENABLED,
        (true, false) => ENABLED_UPLINK,
        (false, true) => ENABLED_DOWNLINK,
        (false, false) => DISABLED,
    };
    avps.push(avp::FLOW_STATUS.number(status));
    if let Some(kind) = media_type(&own.kind) {
        avps.push(avp::MEDIA_TYPE.number(kind));
    }
    // [RFC4566 §5.8] b= says what its author receives: the terminal's own is the way down.
    let rates = [
        (&avp::MAX_REQUESTED_BANDWIDTH_DL, own.bps),
        (&avp::MAX_REQUESTED_BANDWIDTH_UL, other.and_then(|other| other.bps)),
        (&avp::RS_BANDWIDTH, own.rs_bps),
        (&avp::RR_BANDWIDTH, own.rr_bps),
    ];
    avps.extend(rates.into_iter().filter_map(|(of, rate)| Some(of.number(rate?))));
    avp::MEDIA_COMPONENT_DESCRIPTION.group(avps)
}

/// The two filters of a flow, seen from the terminal.
fn flow(number: u32, own: &Side, other: &Side, is_rtcp: bool) -> Avp {
    let [here, there] = [own, other].map(|side| {
        format!("{} {}", side.address, if is_rtcp { side.rtcp_port } else { side.port })
    });
    let mut avps = vec![
        avp::FLOW_NUMBER.number(number),
        avp::FLOW_DESCRIPTION.text(format!("permit out 17 from {there} to {here}")),
        avp::FLOW_DESCRIPTION.text(format!("permit in 17 from {here} to {there}")),
    ];
    if is_rtcp {
        avps.push(avp::FLOW_USAGE.number(RTCP));
    }
    avp::MEDIA_SUB_COMPONENT.group(avps)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::pcrf::{BEARER_RELEASED, Decision, LOSS_OF_BEARER, Pcrf};
    use crate::policy::Policy;

    /// As Chromium writes it: an address for each medium, and RTCP on the port of RTP.
    const BROWSER: &str = "v=0\r\nm=audio 5000 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 10.46.1.2\r\n\
        b=AS:64\r\na=rtcp-mux\r\n\
        m=video 5002 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 10.46.1.2\r\nb=AS:1000\r\n\
        b=TIAS:2000000\r\nb=RS:0\r\nb=RR:5000\r\na=rtcp-mux\r\n";
    const GATEWAY: &str = "v=0\r\nc=IN IP4 10.46.0.7\r\nm=audio 30000 UDP/TLS/RTP/SAVPF 111\r\n\
        b=AS:32\r\na=rtcp-mux\r\nm=video 30002 UDP/TLS/RTP/SAVPF 96\r\nb=AS:1500\r\na=sendonly\r\n";

    fn identity(host: &str) -> Identity {
        Identity {
            host: host.into(),
            realm: "ims.test".into(),
            address: IpAddr::from([127, 0, 0, 1]),
            application: base::RX,
            peers: Vec::new(),
        }
    }

    fn function() -> Function {
        Function::new(identity("epcscf.ims.test"), "1", Ipv4Addr::new(10, 46, 1, 2))
    }

    fn components(aar: &Message) -> Vec<String> {
        aar.all(&avp::MEDIA_COMPONENT_DESCRIPTION).map(ToString::to_string).collect()
    }

    // [TS 29.213 §6.2]
    #[test]
    fn each_medium_becomes_a_component_with_filters_and_rates() {
        let media = components(&function().authorize(BROWSER, Some(GATEWAY)));
        assert_eq!(
            media[0],
            "Media-Component-Description={Media-Component-Number=1 Media-Sub-Component={\
             Flow-Number=1 \
             Flow-Description=permit out 17 from 10.46.0.7 30000 to 10.46.1.2 5000 \
             Flow-Description=permit in 17 from 10.46.1.2 5000 to 10.46.0.7 30000} \
             Flow-Status=2 Media-Type=0 Max-Requested-Bandwidth-DL=64000 \
             Max-Requested-Bandwidth-UL=32000}"
        );
        // The other side does not receive video, and has RTCP on a port of its own.
        assert!(media[1].contains("Flow-Status=1 Media-Type=1"), "{}", media[1]);
        assert!(media[1].contains("from 10.46.0.7 30003 to 10.46.1.2 5002"), "{}", media[1]);
        assert!(media[1].contains("Bandwidth-DL=2000000 "), "{}", media[1]);
        assert!(media[1].contains("RS-Bandwidth=0 RR-Bandwidth=5000"), "{}", media[1]);
    }

    // [TS 29.214 §5.3.25]
    #[test]
    fn an_offer_alone_is_preliminary_and_has_no_filters() {
        let aar = function().authorize(BROWSER, None);
        assert_eq!(aar.number(&avp::SERVICE_INFO_STATUS), Some(PRELIMINARY));
        assert!(!aar.to_string().contains("Flow-Description"));
        let both = function().authorize(BROWSER, Some(GATEWAY));
        assert_eq!(both.find(&avp::SERVICE_INFO_STATUS), None);
    }

    #[test]
    fn a_refused_medium_is_removed() {
        let refused = GATEWAY.replace("m=video 30002", "m=video 0");
        let media = components(&function().authorize(BROWSER, Some(&refused)));
        assert_eq!(
            media[1],
            "Media-Component-Description={Media-Component-Number=2 Flow-Status=4}"
        );
    }

    #[test]
    fn our_pcrf_gives_bearers_and_takes_them_away() {
        let policy = "capacity_kbps = 9000\n[media.audio]\nqci = 1\narp = 2\nmost_kbps = 64\n\
            [media.video]\nqci = 2\narp = 3\nmost_kbps = 3000";
        let mut pcrf = Pcrf::new(identity("pcrf.ims.test"), Policy::from_toml(policy).unwrap());
        let function = function();
        let (aaa, decision) = pcrf.on_request(&function.authorize(BROWSER, Some(GATEWAY)));
        assert_eq!(aaa.result(), Some(base::SUCCESS));
        let Some(Decision::Install { bearers, .. }) = decision else { panic!("{decision:?}") };
        let rates: Vec<_> = bearers.iter().map(|one| (one.qci, one.mbr_down_bps)).collect();
        assert_eq!(rates, [(1, 67_200), (2, 2_005_000)]);
        let asr = pcrf.abort("epcscf.ims.test;1", BEARER_RELEASED).unwrap();
        let (asa, order) = function.on_request(&asr);
        assert_eq!((asa.result(), order), (Some(base::SUCCESS), Some(Order::End)));
        let rar = pcrf.report("epcscf.ims.test;1", LOSS_OF_BEARER).unwrap();
        assert_eq!(function.on_request(&rar).1, Some(Order::News(LOSS_OF_BEARER)));
        let (sta, decision) = pcrf.on_request(&function.terminate());
        assert_eq!(sta.result(), Some(base::SUCCESS));
        assert!(matches!(decision, Some(Decision::Remove { .. })));
        // Who has opened a session may have lost it.
        pcrf.on_request(&function.authorize(BROWSER, Some(GATEWAY)));
        let heir = Function::of_session(identity("af.ims.test"), "epcscf.ims.test;1");
        let (sta, decision) = pcrf.on_request(&heir.terminate());
        assert_eq!(sta.result(), Some(base::SUCCESS));
        assert!(matches!(decision, Some(Decision::Remove { .. })));
        let other = Function::new(identity("epcscf.ims.test"), "2", Ipv4Addr::LOCALHOST);
        assert_eq!(other.on_request(&asr).0.result(), Some(base::UNKNOWN_SESSION_ID));
    }
}
