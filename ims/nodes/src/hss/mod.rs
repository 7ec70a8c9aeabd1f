//! The home subscriber server: answers the four requests of Cx ([TS 29.228 §6.1, 6.3]).

use std::collections::BTreeMap;

use weir_diameter::{Avp, Message, avp, base};

use crate::md5::{hex, md5};
use crate::milenage::Block;
use crate::peer::{Identity, application};
use crate::subscribers::{Subscriber, Subscribers, profile};

/// DIAMETER_FIRST_REGISTRATION ([TS 29.229 §6.2.1.1]).
pub const FIRST_REGISTRATION: u32 = 2001;
/// DIAMETER_SUBSEQUENT_REGISTRATION ([TS 29.229 §6.2.1.2]).
pub const SUBSEQUENT_REGISTRATION: u32 = 2002;
/// DIAMETER_UNREGISTERED_SERVICE ([TS 29.229 §6.2.1.3]).
pub const UNREGISTERED_SERVICE: u32 = 2003;
/// DIAMETER_ERROR_USER_UNKNOWN ([TS 29.229 §6.2.2.1]).
pub const USER_UNKNOWN: u32 = 5001;
/// DIAMETER_ERROR_IDENTITIES_DONT_MATCH ([TS 29.229 §6.2.2.2]).
pub const IDENTITIES_DONT_MATCH: u32 = 5002;
/// DIAMETER_ERROR_IDENTITY_NOT_REGISTERED ([TS 29.229 §6.2.2.3]).
pub const IDENTITY_NOT_REGISTERED: u32 = 5003;
/// DIAMETER_ERROR_ROAMING_NOT_ALLOWED ([TS 29.229 §6.2.2.4]). Also for barred identities.
pub const ROAMING_NOT_ALLOWED: u32 = 5004;
/// DIAMETER_ERROR_AUTH_SCHEME_NOT_SUPPORTED ([TS 29.229 §6.2.2.6]).
pub const AUTH_SCHEME_NOT_SUPPORTED: u32 = 5006;

/// Values of User-Authorization-Type ([TS 29.229 §6.3.24]).
const DE_REGISTRATION: u32 = 1;
/// Least step of SQN: the lowest five bits are the index of TS 33.102 §C.1.1.1.
const SQN_STEP: u64 = 32;
/// 48 bits.
const SQN_LIMIT: u64 = 1 << 48;

/// What the HSS keeps of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Location {
    /// Name of the S-CSCF, from its first request on.
    server: Option<String>,
    is_registered: bool,
    sqn: u64,
}

/// The server. It keeps the S-CSCF of each subscription.
#[derive(Debug)]
pub struct Hss {
    identity: Identity,
    subscribers: Subscribers,
    /// By private identity.
    locations: BTreeMap<String, Location>,
}

impl Hss {
    /// A server without any registration.
    pub fn new(identity: Identity, subscribers: Subscribers) -> Self {
        Self { identity, subscribers, locations: BTreeMap::new() }
    }

    /// The registrations, one a line, for [`Hss::restore`].
    pub fn state(&self) -> String {
        let mut lines = String::new();
        for (name, Location { server, is_registered, sqn }) in &self.locations {
            let server = server.as_deref().unwrap_or("-");
            lines += &format!("{name} {server} {} {sqn}\n", u8::from(*is_registered));
        }
        lines
    }

    /// Takes over the registrations of a server that ran before. Lines that cannot be read, and
    /// subscribers that no longer exist, are left out.
    pub fn restore(&mut self, state: &str) {
        for line in state.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let &[name, server, registered, sqn] = &words[..] else { continue };
            let Ok(sqn) = sqn.parse() else { continue };
            if self.subscribers.subscriber.iter().any(|one| one.private == name) {
                let server = if server != "-" { Some(server.to_owned()) } else { None };
                let location = Location { server, is_registered: registered == "1", sqn };
                self.locations.insert(name.into(), location);
            }
        }
    }

    /// Answers a request. `random` is the RAND of a challenge, if there is one.
    pub fn on_request(&mut self, request: &Message, random: Block) -> Message {
        let result = match request.command {
            base::USER_AUTHORIZATION => self.user_authorization(request),
            base::MULTIMEDIA_AUTH => self.multimedia_auth(request, random),
            base::SERVER_ASSIGNMENT => self.server_assignment(request),
            base::LOCATION_INFO => self.location_info(request),
            _ => Err(Code::Base(base::COMMAND_UNSUPPORTED)),
        };
        match result {
            Ok((code, avps)) => avps.into_iter().fold(self.answer(request, code), Message::with),
            Err(code) => self.answer(request, code),
        }
    }

    fn answer(&self, request: &Message, code: Code) -> Message {
        let mut answer = request.answer().with(application(base::CX));
        let result = match code {
            Code::Base(code) => {
                // [RFC6733 §7.1.3] Flag E marks protocol errors, 3xxx.
                answer.is_error = (3000..4000).contains(&code);
                avp::RESULT_CODE.number(code)
            }
            Code::Cx(code) => avp::EXPERIMENTAL_RESULT.group([
                avp::VENDOR_ID.number(base::VENDOR_3GPP),
                avp::EXPERIMENTAL_RESULT_CODE.number(code),
            ]),
        };
        let answer = answer.with(result).with(avp::AUTH_SESSION_STATE.number(NO_STATE_MAINTAINED));
        self.identity.sign(answer)
    }

    /// Whether an S-CSCF may be asked to register this user ([TS 29.228 §6.1.1.1]).
    fn user_authorization(&self, request: &Message) -> Answer {
        let (subscriber, public) = self.both_identities(request)?;
        if subscriber.barred.iter().any(|barred| barred == public) {
            return Err(Code::Cx(ROAMING_NOT_ALLOWED));
        }
        let server = self.server_of(subscriber);
        let kind = request.number(&avp::USER_AUTHORIZATION_TYPE).unwrap_or(0);
        match (kind, server) {
            (DE_REGISTRATION, Some(server)) => Ok((SUCCESS, vec![avp::SERVER_NAME.text(server)])),
            (DE_REGISTRATION, None) => Err(Code::Cx(IDENTITY_NOT_REGISTERED)),
            (_, Some(server)) => {
                Ok((Code::Cx(SUBSEQUENT_REGISTRATION), vec![avp::SERVER_NAME.text(server)]))
            }
            (_, None) => {
                let name = avp::SERVER_NAME.text(self.subscribers.scscf.as_str());
                Ok((Code::Cx(FIRST_REGISTRATION), vec![avp::SERVER_CAPABILITIES.group([name])]))
            }
        }
    }

    /// Gives the S-CSCF a vector to authenticate a user ([TS 29.228 §6.3]).
    fn multimedia_auth(&mut self, request: &Message, random: Block) -> Answer {
        let (subscriber, public) = self.both_identities(request)?;
        let (subscriber, public) = (subscriber.clone(), public.to_owned());
        let item = request.find(&avp::SIP_AUTH_DATA_ITEM);
        let item = item.ok_or(MISSING_AVP)?;
        let scheme = item.find(&avp::SIP_AUTHENTICATION_SCHEME).and_then(Avp::text);
        let vector = match scheme.unwrap_or("Unknown") {
            "SIP Digest" | "Digest-MD5" => self.digest(&subscriber),
            "Digest-AKAv1-MD5" => self.aka(&subscriber, item, random)?,
            // [TS 29.228 §6.3.1] An unknown scheme: what the subscription has.
            "Unknown" if subscriber.password.is_some() => self.digest(&subscriber),
            "Unknown" => self.aka(&subscriber, item, random)?,
            _ => None,
        };
        let vector = vector.ok_or(Code::Cx(AUTH_SCHEME_NOT_SUPPORTED))?;
        if let Some(server) = request.text(&avp::SERVER_NAME) {
            self.location(&subscriber.private).server = Some(server.into());
        }
        Ok((
            SUCCESS,
            vec![
                avp::USER_NAME.text(subscriber.private.as_str()),
                avp::PUBLIC_IDENTITY.text(public),
                avp::SIP_NUMBER_AUTH_ITEMS.number(1),
                vector,
            ],
        ))
    }

    /// H(A1) of SIP Digest ([TS 29.229 §6.3.36]).
    fn digest(&self, subscriber: &Subscriber) -> Option<Avp> {
        let realm = &self.subscribers.realm;
        let password = subscriber.password.as_ref()?;
        let secret = format!("{}:{realm}:{password}", subscriber.private);
        Some(avp::SIP_AUTH_DATA_ITEM.group([
            avp::SIP_ITEM_NUMBER.number(1),
            avp::SIP_AUTHENTICATION_SCHEME.text("SIP Digest"),
            avp::SIP_DIGEST_AUTHENTICATE.group([
                avp::DIGEST_REALM.text(realm.as_str()),
                avp::DIGEST_ALGORITHM.text("MD5"),
                avp::DIGEST_QOP.text("auth"),
                avp::DIGEST_HA1.text(hex(&md5(secret.as_bytes()))),
            ]),
        ]))
    }

    /// A vector of AKA ([TS 29.228 §6.3, TS 33.203 §6.1.1]).
    fn aka(
        &mut self,
        subscriber: &Subscriber,
        item: &Avp,
        random: Block,
    ) -> Result<Option<Avp>, Code> {
        let Some((secrets, amf)) = subscriber.aka.as_ref().and_then(|aka| aka.secrets()) else {
            return Ok(None);
        };
        let location = self.location(&subscriber.private);
        // [TS 33.203 §6.1.3] The terminal found SQN out of range: RAND and AUTS.
        if let Some(sent) = item.find(&avp::SIP_AUTHORIZATION).and_then(Avp::octets) {
            let invalid = || Code::Base(base::INVALID_AVP_VALUE);
            let (rand, auts) = sent.split_at_checked(16).ok_or_else(invalid)?;
            let rand = rand.try_into().map_err(|_| invalid())?;
            let auts = auts.try_into().map_err(|_| invalid())?;
            let sqn = secrets.resynchronised(rand, auts).ok_or_else(invalid)?;
            location.sqn = sqn.iter().fold(0, |sqn, byte| sqn << 8 | u64::from(*byte));
        }
        location.sqn = (location.sqn + SQN_STEP) % SQN_LIMIT;
        let [_, _, sqn @ ..] = location.sqn.to_be_bytes();
        let vector = secrets.vector(random, sqn, amf);
        let challenge = [random, vector.autn(sqn, amf)].concat();
        Ok(Some(avp::SIP_AUTH_DATA_ITEM.group([
            avp::SIP_ITEM_NUMBER.number(1),
            avp::SIP_AUTHENTICATION_SCHEME.text("Digest-AKAv1-MD5"),
            avp::SIP_AUTHENTICATE.octets(&challenge),
            avp::SIP_AUTHORIZATION.octets(&vector.res),
            avp::CONFIDENTIALITY_KEY.octets(&vector.ck),
            avp::INTEGRITY_KEY.octets(&vector.ik),
        ])))
    }

    /// Takes or ends a registration, and gives the profile ([TS 29.228 §6.1.2.1]).
    fn server_assignment(&mut self, request: &Message) -> Answer {
        let kind = request.number(&avp::SERVER_ASSIGNMENT_TYPE);
        let kind = kind.ok_or(MISSING_AVP)?;
        let server = request.text(&avp::SERVER_NAME).ok_or(MISSING_AVP)?;
        let subscriber = match request.text(&avp::PUBLIC_IDENTITY) {
            Some(public) => self.with_public(public)?,
            None => self.with_private(request.text(&avp::USER_NAME).unwrap_or_default())?,
        };
        if request.text(&avp::USER_NAME).is_some_and(|name| name != subscriber.private) {
            return Err(Code::Cx(IDENTITIES_DONT_MATCH));
        }
        let subscriber = subscriber.clone();
        let location = self.location(&subscriber.private);
        // [TS 29.229 §6.3.15]
        match kind {
            0 => {}
            1 | 2 => {
                *location =
                    Location { server: Some(server.into()), is_registered: true, ..*location }
            }
            3 => {
                *location =
                    Location { server: Some(server.into()), is_registered: false, ..*location }
            }
            // Deregistered, but the S-CSCF stays assigned.
            6 | 7 => location.is_registered = false,
            4 | 5 | 8..=11 => {
                *location = Location { server: None, is_registered: false, ..*location }
            }
            _ => return Err(Code::Base(base::INVALID_AVP_VALUE)),
        }
        let mut avps = vec![avp::USER_NAME.text(subscriber.private.as_str())];
        if kind <= 3 {
            avps.push(avp::USER_DATA.text(profile(&subscriber)));
        }
        Ok((SUCCESS, avps))
    }

    /// Tells the I-CSCF where a called user is ([TS 29.228 §6.1.4.1]).
    fn location_info(&self, request: &Message) -> Answer {
        let public = request.text(&avp::PUBLIC_IDENTITY);
        let subscriber = self.with_public(public.ok_or(MISSING_AVP)?)?;
        match self.locations.get(&subscriber.private) {
            Some(Location { server: Some(server), is_registered, .. }) => {
                let code = if *is_registered { SUCCESS } else { Code::Cx(UNREGISTERED_SERVICE) };
                Ok((code, vec![avp::SERVER_NAME.text(server.as_str())]))
            }
            _ => Err(Code::Cx(IDENTITY_NOT_REGISTERED)),
        }
    }

    fn location(&mut self, private: &str) -> &mut Location {
        self.locations.entry(private.into()).or_default()
    }

    fn server_of(&self, subscriber: &Subscriber) -> Option<&str> {
        self.locations.get(&subscriber.private)?.server.as_deref()
    }

    fn with_private(&self, private: &str) -> Result<&Subscriber, Code> {
        let found = self.subscribers.subscriber.iter().find(|one| one.private == private);
        found.ok_or(Code::Cx(USER_UNKNOWN))
    }

    fn with_public(&self, public: &str) -> Result<&Subscriber, Code> {
        for subscriber in &self.subscribers.subscriber {
            if subscriber.public.iter().any(|identity| matches(identity, public)) {
                return Ok(subscriber);
            }
        }
        Err(Code::Cx(USER_UNKNOWN))
    }

    /// The subscriber of User-Name and Public-Identity, which must belong together.
    fn both_identities<'a>(
        &'a self,
        request: &'a Message,
    ) -> Result<(&'a Subscriber, &'a str), Code> {
        let private = request.text(&avp::USER_NAME).ok_or(MISSING_AVP)?;
        let public = request.text(&avp::PUBLIC_IDENTITY).ok_or(MISSING_AVP)?;
        let subscriber = self.with_private(private)?;
        self.with_public(public)?;
        if !subscriber.public.iter().any(|identity| matches(identity, public)) {
            return Err(Code::Cx(IDENTITIES_DONT_MATCH));
        }
        Ok((subscriber, public))
    }
}

/// NO_STATE_MAINTAINED of Auth-Session-State ([RFC6733 §8.11]).
const NO_STATE_MAINTAINED: u32 = 1;

type Answer = Result<(Code, Vec<Avp>), Code>;

/// A result of the base protocol, or one of Cx. Both have a 2001, with different meanings.
#[derive(Clone, Copy)]
enum Code {
    Base(u32),
    Cx(u32),
}

const SUCCESS: Code = Code::Base(base::SUCCESS);
const MISSING_AVP: Code = Code::Base(base::MISSING_AVP);

/// Whether an identity is this one, or the wildcarded one that covers it. Between the exclamation
/// marks only `.*` is known ([TS 23.003 §13.4A]).
fn matches(identity: &str, public: &str) -> bool {
    let Some((before, rest)) = identity.split_once('!') else { return identity == public };
    let Some((".*", after)) = rest.split_once('!') else { return identity == public };
    public.len() >= before.len() + after.len()
        && public.starts_with(before)
        && public.ends_with(after)
}

#[cfg(test)]
mod tests;
