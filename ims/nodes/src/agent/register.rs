//! Registration by Digest or AKA ([TS 24.229 §5.1.1]).

use core::time::Duration;

use super::{Agent, Event, Output};
use crate::digest::{Challenge, Credentials};
use crate::sip::{Message, uri_of};

const UNAUTHORIZED: u16 = 401;
/// Most challenges that are answered: Kamailio sends a second one if the answer to the first comes
/// before it has stored the vector, which it does after it has sent the challenge (`ims_auth`,
/// `cxdx_mar.c`).
const MOST_CHALLENGES: usize = 2;

impl Agent {
    /// Registers for this many seconds; 0 ends the registration.
    pub fn register(&mut self, now: Duration, expires: u32) -> Vec<Output> {
        let mut outputs = Vec::new();
        if self.register_id.is_empty() {
            self.register_id = self.unique("reg");
        }
        self.expires = expires;
        self.answered.clear();
        let algorithm = match self.account.credentials {
            Credentials::Password(_) => "MD5",
            Credentials::Aka(_) => "AKAv1-MD5",
        };
        // [TS 24.229 §5.1.1.2] The private identity goes with the first REGISTER already.
        let empty = format!(
            "Digest username=\"{}\",realm=\"{realm}\",nonce=\"\",uri=\"sip:{realm}\",response=\"\",\
             algorithm={algorithm}",
            self.account.private,
            realm = self.account.realm
        );
        self.send_register(now, empty, &mut outputs);
        outputs
    }

    fn send_register(&mut self, now: Duration, authorization: String, outputs: &mut Vec<Output>) {
        self.sequence += 1;
        let uri = format!("sip:{}", self.account.realm);
        let (via, tag) = (self.via(), self.unique("t"));
        let public = self.account.public.clone();
        let request = Message::request("REGISTER", &uri)
            .with("Via", via)
            .with("Max-Forwards", "70")
            .with("From", format!("<{public}>;tag={tag}"))
            .with("To", format!("<{public}>"))
            .with("Call-ID", self.register_id.clone())
            .with("CSeq", format!("{} REGISTER", self.sequence))
            .with("Contact", format!("{};expires={}", self.contact(), self.expires))
            .with("Expires", self.expires.to_string())
            .with("Supported", "path")
            .with("Authorization", authorization);
        self.send(now, &request, outputs);
    }

    pub(super) fn on_register_response(
        &mut self,
        now: Duration,
        response: &Message,
        outputs: &mut Vec<Output>,
    ) {
        let code = response.code().expect("the caller passes responses");
        match code {
            100..=199 => {}
            200..=299 => {
                if self.expires == 0 {
                    self.service_routes.clear();
                    outputs.push(Output::Event(Event::Deregistered));
                    return;
                }
                // [RFC3608 §5]
                self.service_routes = response.list("Service-Route");
                let identities = response.list("P-Associated-URI");
                let identities = identities.iter().map(|one| uri_of(one).to_owned()).collect();
                outputs.push(Output::Event(Event::Registered(identities)));
            }
            UNAUTHORIZED if self.answered.len() < MOST_CHALLENGES => {
                match self.authorization(response) {
                    Ok(authorization) => self.send_register(now, authorization, outputs),
                    Err(why) => outputs.push(Output::Event(Event::NotRegistered(why))),
                }
            }
            code => {
                outputs.push(Output::Event(Event::NotRegistered(format!("status {code}"))));
            }
        }
    }

    fn authorization(&mut self, response: &Message) -> Result<String, String> {
        let value = response.header("WWW-Authenticate").ok_or("401 without challenge")?;
        let challenge = Challenge::parse(value).ok_or("the challenge cannot be read")?;
        // [RFC2617 §3.2.1] The same nonce again says that the secret is wrong.
        if self.answered.contains(&challenge.nonce) {
            return Err(format!("status {UNAUTHORIZED}"));
        }
        self.answered.push(challenge.nonce.clone());
        let uri = format!("sip:{}", self.account.realm);
        let cnonce = self.unique("c");
        challenge.answer(
            &self.account.credentials,
            &self.account.private,
            "REGISTER",
            &uri,
            &cnonce,
        )
    }
}
