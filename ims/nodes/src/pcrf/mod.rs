//! The policy and charging rules function: decides over Rx which bearers a call gets
//! ([TS 29.214 §4.4]).
//!
//! ```text
//!   AAR -> media components -> policy -> admission -> bearers -> AAA
//!   STR -> bearers removed -> STA
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use weir_diameter::{Avp, Message, avp, base};

use crate::peer::{Identity, answer, application};
use crate::policy::{MediaPolicy, Policy, media_name};

/// INVALID_SERVICE_INFORMATION ([TS 29.214 §5.5]).
pub const INVALID_SERVICE_INFORMATION: u32 = 5061;
/// FILTER_RESTRICTIONS ([TS 29.214 §5.5]).
pub const FILTER_RESTRICTIONS: u32 = 5062;
/// REQUESTED_SERVICE_NOT_AUTHORIZED ([TS 29.214 §5.5]).
pub const REQUESTED_SERVICE_NOT_AUTHORIZED: u32 = 5063;
/// IP-CAN_SESSION_NOT_AVAILABLE ([TS 29.214 §5.5]).
pub const IP_CAN_SESSION_NOT_AVAILABLE: u32 = 5065;

/// Flow-Status: removed ([TS 29.214 §5.3.11]).
const REMOVED: u32 = 4;
/// Flow-Usage: RTCP ([TS 29.214 §5.3.12]).
const RTCP: u32 = 1;
/// Abort-Cause: bearer released ([TS 29.214 §5.3.1]).
pub const BEARER_RELEASED: u32 = 0;
/// Abort-Cause: insufficient bearer resources ([TS 29.214 §5.3.1]).
pub const INSUFFICIENT_BEARER_RESOURCES: u32 = 2;
/// Specific-Action: INDICATION_OF_LOSS_OF_BEARER ([TS 29.214 §5.3.13]).
pub const LOSS_OF_BEARER: u32 = 2;
/// Most sessions at a time: a call of a full testbed has two.
pub const MOST_SESSIONS: usize = 4096;
/// Most bearers of one session.
pub const MOST_BEARERS: usize = 64;
/// Share of RTCP beside the media if RR and RS are not given, in percent ([RFC3550 §6.2]).
const RTCP_PERCENT: u32 = 5;

/// A bearer with its packet filters. Rates are in bit/s; RTCP is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// Media-Component-Number.
    pub component: u32,
    /// `audio`, `video` and so on.
    pub media: &'static str,
    /// QoS class identifier.
    pub qci: u8,
    /// Allocation and retention priority.
    pub arp: u8,
    /// Guaranteed bit rate from the terminal; 0 without guarantee.
    pub gbr_up_bps: u32,
    /// Guaranteed bit rate to the terminal; 0 without guarantee.
    pub gbr_down_bps: u32,
    /// Maximum bit rate from the terminal.
    pub mbr_up_bps: u32,
    /// Maximum bit rate to the terminal.
    pub mbr_down_bps: u32,
    /// Packet filters.
    pub filters: Vec<Filter>,
}

/// A packet filter of a Flow-Description: an IPFilterRule ([RFC6733 §4.3.1], [TS 29.214 §5.3.8]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// From the terminal (`in`) and not to it (`out`).
    pub is_up: bool,
    /// Sender: address, or none for any; port, or none for any.
    pub from: (Option<Ipv4Addr>, Option<u16>),
    /// Receiver.
    pub to: (Option<Ipv4Addr>, Option<u16>),
}

impl Filter {
    /// Reads the form `permit out 17 from ADDRESS PORT to ADDRESS PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (["permit", direction, protocol, "from"], rest) = words.split_at_checked(4)? else {
            return None;
        };
        // [TS 29.214 §5.3.8] Only permit; the protocol is UDP here, or any.
        let is_udp = matches!(*protocol, "17" | "ip");
        let to = rest.iter().position(|word| *word == "to")?;
        let is_up = match *direction {
            "in" => true,
            "out" => false,
            _ => return None,
        };
        let filter = Self { is_up, from: end(&rest[..to])?, to: end(&rest[to + 1..])? };
        is_udp.then_some(filter)
    }
}

fn end(words: &[&str]) -> Option<(Option<Ipv4Addr>, Option<u16>)> {
    let (address, port) = match words {
        [address] => (*address, None),
        [address, port] => (*address, Some(port.parse().ok()?)),
        _ => return None,
    };
    let address =
        if address == "any" { None } else { Some(address.trim_end_matches("/32").parse().ok()?) };
    Some((address, port))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|(address, port)| {
            let address = address.map_or("any".into(), |address| address.to_string());
            match port {
                Some(port) => format!("{address} {port}"),
                None => address,
            }
        });
        let direction = if self.is_up { "in" } else { "out" };
        write!(f, "permit {direction} 17 from {from} to {to}")
    }
}

/// What changes in the network of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The session has exactly these bearers from now on.
    Install {
        /// Session-Id.
        session: String,
        /// Address of the terminal.
        terminal: Ipv4Addr,
        /// The bearers.
        bearers: Vec<Bearer>,
    },
    /// The session and its bearers are gone.
    Remove {
        /// Session-Id.
        session: String,
    },
    /// A request was refused.
    Refuse {
        /// Session-Id.
        session: String,
        /// Code in the answer.
        code: u32,
        /// Reason.
        why: String,
    },
}

#[derive(Clone, Debug)]
struct Session {
    /// Origin-Host of the application function.
    peer: String,
    bearers: Vec<Bearer>,
}

/// The server.
#[derive(Debug)]
pub struct Pcrf {
    identity: Identity,
    policy: Policy,
    /// By Session-Id.
    sessions: BTreeMap<String, Session>,
}

/// Code and reason of a refusal.
struct Refusal(u32, String);

impl Pcrf {
    /// A server without sessions.
    pub fn new(identity: Identity, policy: Policy) -> Self {
        Self { identity, policy, sessions: BTreeMap::new() }
    }

    /// The Session-Ids in their order.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    /// Origin-Host of the session's application function.
    pub fn peer_of(&self, session: &str) -> Option<&str> {
        self.sessions.get(session).map(|session| session.peer.as_str())
    }

    /// Answers a request, and says what changes.
    pub fn on_request(&mut self, request: &Message) -> (Message, Option<Decision>) {
        let session = request.text(&avp::SESSION_ID).unwrap_or_default().to_owned();
        let result = match request.command {
            _ if session.is_empty() => Err(Refusal(base::MISSING_AVP, "no Session-Id".into())),
            base::AA => self.authorize(request, &session),
            base::SESSION_TERMINATION if self.sessions.remove(&session).is_some() => {
                Ok(Some(Decision::Remove { session: session.clone() }))
            }
            base::SESSION_TERMINATION => {
                Err(Refusal(base::UNKNOWN_SESSION_ID, "no such session".into()))
            }
            _ => Err(Refusal(base::COMMAND_UNSUPPORTED, "unknown command".into())),
        };
        match result {
            Ok(decision) => (answer(&self.identity, request, base::SUCCESS), decision),
            Err(Refusal(code, why)) => {
                (self.refusal(request, code, &why), Some(Decision::Refuse { session, code, why }))
            }
        }
    }

    /// The network has no room for the bearers of an AAR that was accepted: its session ends before
    /// the answer, which is a refusal.
    pub fn withdraw(&mut self, request: &Message, why: &str) -> (Message, Decision) {
        let session = request.text(&avp::SESSION_ID).unwrap_or_default().to_owned();
        self.sessions.remove(&session);
        let code = REQUESTED_SERVICE_NOT_AUTHORIZED;
        (self.refusal(request, code, why), Decision::Refuse { session, code, why: why.into() })
    }

    /// An ASR: the network can no longer carry this session ([TS 29.214 §4.4.6.1]).
    pub fn abort(&self, session: &str, cause: u32) -> Option<Message> {
        let request = self.to_function(base::ABORT_SESSION, session)?;
        Some(request.with(avp::ABORT_CAUSE.number(cause)))
    }

    /// A RAR: something has happened to this session's bearers ([TS 29.214 §4.4.6.3]).
    pub fn report(&self, session: &str, action: u32) -> Option<Message> {
        let request = self.to_function(base::RE_AUTH, session)?;
        Some(request.with(avp::SPECIFIC_ACTION.number(action)))
    }

    fn to_function(&self, command: u32, session: &str) -> Option<Message> {
        let peer = &self.sessions.get(session)?.peer;
        let request = Message::request(command, base::RX).with(avp::SESSION_ID.text(session));
        let request = self.identity.sign(request);
        Some(
            request
                .with(avp::DESTINATION_REALM.text(self.identity.realm.as_str()))
                .with(avp::DESTINATION_HOST.text(peer.as_str()))
                .with(avp::AUTH_APPLICATION_ID.number(base::RX)),
        )
    }

    fn refusal(&self, request: &Message, code: u32, why: &str) -> Message {
        // The codes of Rx stand in an Experimental-Result.
        let is_rx = (INVALID_SERVICE_INFORMATION..=IP_CAN_SESSION_NOT_AVAILABLE).contains(&code);
        if !is_rx {
            return answer(&self.identity, request, code).with(avp::ERROR_MESSAGE.text(why));
        }
        let result = avp::EXPERIMENTAL_RESULT.group([
            avp::VENDOR_ID.number(base::VENDOR_3GPP),
            avp::EXPERIMENTAL_RESULT_CODE.number(code),
        ]);
        let answer = request.answer().with(application(base::RX)).with(result);
        self.identity.sign(answer).with(avp::ERROR_MESSAGE.text(why))
    }

    /// Opens or changes a session ([TS 29.214 §4.4.1, 4.4.2]).
    fn authorize(&mut self, request: &Message, session: &str) -> Result<Option<Decision>, Refusal> {
        let terminal = terminal(request)?;
        let known = &self.policy.terminals;
        if !known.is_empty() && !known.iter().any(|net| terminal.to_string().starts_with(net)) {
            let why = format!("no terminal has {terminal}");
            return Err(Refusal(IP_CAN_SESSION_NOT_AVAILABLE, why));
        }
        let mut bearers =
            self.sessions.get(session).map(|old| old.bearers.clone()).unwrap_or_default();
        for component in request.all(&avp::MEDIA_COMPONENT_DESCRIPTION) {
            let number = component.find(&avp::MEDIA_COMPONENT_NUMBER).and_then(Avp::number);
            let number = number.ok_or_else(|| invalid("no Media-Component-Number"))?;
            // [TS 29.214 §4.4.2] A component that comes again replaces the old one.
            bearers.retain(|bearer| bearer.component != number);
            bearers.extend(self.bearer(component, number)?);
        }
        if bearers.len() > MOST_BEARERS {
            return Err(invalid("too many components"));
        }
        if self.sessions.len() >= MOST_SESSIONS && !self.sessions.contains_key(session) {
            let why = format!("there are {MOST_SESSIONS} sessions already");
            return Err(Refusal(base::UNABLE_TO_COMPLY, why));
        }
        self.admit(session, &bearers)?;
        let peer = request.text(&avp::ORIGIN_HOST).unwrap_or_default().to_owned();
        let is_signalling = bearers.is_empty() && !self.sessions.contains_key(session);
        self.sessions.insert(session.into(), Session { peer, bearers: bearers.clone() });
        if is_signalling {
            // Only asks for news of the path of signalling: no bearer changes.
            return Ok(None);
        }
        Ok(Some(Decision::Install { session: session.into(), terminal, bearers }))
    }

    /// The bearer of a component; none if it is removed.
    fn bearer(&self, component: &Avp, number: u32) -> Result<Option<Bearer>, Refusal> {
        let value = |of| component.find(of).and_then(Avp::number);
        if value(&avp::FLOW_STATUS) == Some(REMOVED) {
            return Ok(None);
        }
        let media = value(&avp::MEDIA_TYPE).ok_or_else(|| invalid("no Media-Type"))?;
        let media = media_name(media);
        let policy = self.policy.media.get(media).ok_or_else(|| {
            Refusal(REQUESTED_SERVICE_NOT_AUTHORIZED, format!("no {media} for this subscriber"))
        })?;
        let filters = filters(component)?;
        let up = value(&avp::MAX_REQUESTED_BANDWIDTH_UL).unwrap_or(0);
        let down = value(&avp::MAX_REQUESTED_BANDWIDTH_DL).unwrap_or(0);
        let most = policy.most_kbps.saturating_mul(1000);
        if up.max(down) > most {
            let why = format!("{media} of {} bit/s is above {most}", up.max(down));
            return Err(Refusal(REQUESTED_SERVICE_NOT_AUTHORIZED, why));
        }
        // [TS 29.213 §6.2] RTCP comes on top: RR and RS, or a share of the media.
        let reports = match (value(&avp::RR_BANDWIDTH), value(&avp::RS_BANDWIDTH)) {
            (None, None) => None,
            (rr, rs) => Some(rr.unwrap_or(0).saturating_add(rs.unwrap_or(0))),
        };
        let [up, down] = [up, down]
            .map(|rate| rate.saturating_add(reports.unwrap_or(rate / 100 * RTCP_PERCENT)));
        Ok(Some(Bearer {
            component: number,
            media,
            qci: policy.qci,
            arp: policy.arp,
            gbr_up_bps: guaranteed(policy, up),
            gbr_down_bps: guaranteed(policy, down),
            mbr_up_bps: up,
            mbr_down_bps: down,
            filters,
        }))
    }

    /// Whether the guaranteed rates of all sessions fit the capacity.
    fn admit(&self, session: &str, bearers: &[Bearer]) -> Result<(), Refusal> {
        let others = self.sessions.iter().filter(|(name, _)| *name != session);
        let (mut up, mut down) = (0, 0);
        for bearer in others.flat_map(|(_, other)| &other.bearers).chain(bearers) {
            up += u64::from(bearer.gbr_up_bps);
            down += u64::from(bearer.gbr_down_bps);
        }
        let capacity = u64::from(self.policy.capacity_kbps) * 1000;
        if up.max(down) > capacity {
            let why = format!("{} bit/s guaranteed are above {capacity}", up.max(down));
            return Err(Refusal(REQUESTED_SERVICE_NOT_AUTHORIZED, why));
        }
        Ok(())
    }
}

fn guaranteed(policy: &MediaPolicy, rate: u32) -> u32 {
    if !policy.is_guaranteed() {
        return 0;
    }
    let share = u64::from(rate) * u64::from(policy.guaranteed_percent) / 100;
    u32::try_from(share).expect("a share of at most 100 % fits 32 bits")
}

fn invalid(why: &str) -> Refusal {
    Refusal(INVALID_SERVICE_INFORMATION, why.into())
}

/// The address in Framed-IP-Address ([TS 29.214 §5.6.1]).
fn terminal(request: &Message) -> Result<Ipv4Addr, Refusal> {
    let octets = request.find(&avp::FRAMED_IP_ADDRESS).and_then(Avp::octets);
    let octets: [u8; 4] = octets
        .ok_or_else(|| Refusal(base::MISSING_AVP, "no Framed-IP-Address".into()))?
        .try_into()
        .map_err(|_| Refusal(base::INVALID_AVP_VALUE, "Framed-IP-Address is not IPv4".into()))?;
    Ok(octets.into())
}

/// The packet filters of a component; those of RTCP come last.
fn filters(component: &Avp) -> Result<Vec<Filter>, Refusal> {
    let flows = component.group().iter().filter(|avp| avp.is(&avp::MEDIA_SUB_COMPONENT));
    let mut flows: Vec<&Avp> = flows.collect();
    flows.sort_by_key(|flow| flow.find(&avp::FLOW_USAGE).and_then(Avp::number) == Some(RTCP));
    let mut filters = Vec::new();
    for flow in flows {
        for rule in flow.group().iter().filter(|avp| avp.is(&avp::FLOW_DESCRIPTION)) {
            let text = rule.text().unwrap_or_default();
            let filter = Filter::parse(text)
                .ok_or_else(|| Refusal(FILTER_RESTRICTIONS, format!("cannot filter '{text}'")));
            filters.push(filter?);
        }
    }
    Ok(filters)
}

#[cfg(test)]
mod tests;
