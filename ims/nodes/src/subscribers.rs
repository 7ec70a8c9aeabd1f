//! The file of subscribers.
//!
//! ```toml
//! realm = "ims.test"
//! scscf = "sip:scscf.ims.test:6060"
//!
//! [[subscriber]]
//! private = "alice@ims.test"
//! public = ["sip:alice@ims.test"]
//! password = "secret"
//! ```

use serde::Deserialize;

use crate::milenage::{Block, Secrets};

/// All subscribers of a home network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subscribers {
    /// The home network's domain.
    pub realm: String,
    /// SIP URI of the S-CSCF to which the HSS assigns its users.
    pub scscf: String,
    /// The subscribers.
    pub subscriber: Vec<Subscriber>,
}

/// A subscription with one private identity and one implicit registration set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subscriber {
    /// Private identity (IMPI).
    pub private: String,
    /// Public identities (IMPU) that are registered together; the first one is the default.
    /// A part between exclamation marks is a regular expression: a wildcarded identity.
    pub public: Vec<String>,
    /// Public identities that may not register or call.
    #[serde(default)]
    pub barred: Vec<String>,
    /// Password of SIP Digest.
    #[serde(default)]
    pub password: Option<String>,
    /// Secrets of AKA.
    #[serde(default)]
    pub aka: Option<Aka>,
    /// Whether the identity is one of the pool that the web server gives to visitors. Such a
    /// subscriber registers by a token and needs no secret.
    #[serde(default)]
    pub pool: bool,
    /// Initial filter criteria.
    #[serde(default)]
    pub ifc: Vec<FilterCriterion>,
}

/// Secrets of AKA, as hexadecimal digits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Aka {
    /// K, 32 digits.
    pub k: String,
    /// OPc, 32 digits.
    pub opc: String,
    /// AMF, 4 digits.
    #[serde(default = "default_amf")]
    pub amf: String,
}

fn default_amf() -> String {
    "8000".into()
}

/// When a request goes to an application server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FilterCriterion {
    /// Order among the criteria; the lowest comes first.
    pub priority: u32,
    /// SIP method.
    pub method: String,
    /// 0: originating registered, 1: terminating registered, 2: terminating unregistered.
    #[serde(default)]
    pub session_case: Option<u8>,
    /// SIP URI of the application server.
    pub server: String,
    /// Whether the request goes on if the server does not answer.
    #[serde(default = "yes")]
    pub continues: bool,
}

fn yes() -> bool {
    true
}

/// Why a file of subscribers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not TOML, or with unknown or missing keys.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The content contradicts itself.
    #[error("{0}")]
    Content(String),
}

impl Subscribers {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is not TOML of this form, an identity is there twice, or a subscriber has no secret or
    /// one of the wrong length.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let read: Self = toml::from_str(text)?;
        let mut seen = std::collections::BTreeSet::new();
        for subscriber in &read.subscriber {
            let name = &subscriber.private;
            let problem = if subscriber.public.is_empty() {
                Some("has no public identity".into())
            } else if !subscriber.pool && subscriber.password.is_none() && subscriber.aka.is_none()
            {
                Some("has neither password nor aka".into())
            } else if subscriber.aka.as_ref().is_some_and(|aka| aka.secrets().is_none()) {
                Some("needs k and opc of 32 hexadecimal digits and amf of 4".into())
            } else {
                let mut all = std::iter::once(name).chain(&subscriber.public);
                all.find(|identity| !seen.insert(*identity))
                    .map(|identity| format!("has {identity}, which is there twice"))
            };
            if let Some(problem) = problem {
                return Err(Error::Content(format!("subscriber {name} {problem}")));
            }
        }
        Ok(read)
    }
}

impl Aka {
    /// The secrets, or none if a value has the wrong length or other characters.
    pub fn secrets(&self) -> Option<(Secrets, [u8; 2])> {
        let k: Block = from_hex(&self.k)?;
        Some((Secrets { k, opc: from_hex(&self.opc)? }, from_hex(&self.amf)?))
    }
}

fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// The user profile that the HSS sends to the S-CSCF, as XML ([TS 29.228 §E]).
pub fn profile(subscriber: &Subscriber) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<IMSSubscription>");
    xml += &format!("<PrivateID>{}</PrivateID><ServiceProfile>", escaped(&subscriber.private));
    for identity in &subscriber.public {
        let barred = u8::from(subscriber.barred.contains(identity));
        xml += "<PublicIdentity>";
        xml += &format!("<BarringIndication>{barred}</BarringIndication>");
        xml += &format!("<Identity>{}</Identity>", escaped(identity));
        if identity.contains('!') {
            // Identity type 3: a wildcarded public identity.
            xml += "<Extension><IdentityType>3</IdentityType><Extension><Extension>";
            xml += &format!("<WildcardedIMPU>{}</WildcardedIMPU>", escaped(identity));
            xml += "</Extension></Extension></Extension>";
        }
        xml += "</PublicIdentity>";
    }
    for criterion in &subscriber.ifc {
        xml += &filter(criterion);
    }
    xml + "</ServiceProfile></IMSSubscription>"
}

fn filter(criterion: &FilterCriterion) -> String {
    let mut points = format!(
        "<SPT><ConditionNegated>0</ConditionNegated><Group>0</Group><Method>{}</Method></SPT>",
        escaped(&criterion.method)
    );
    if let Some(case) = criterion.session_case {
        points += &format!(
            "<SPT><ConditionNegated>0</ConditionNegated><Group>1</Group>\
             <SessionCase>{case}</SessionCase></SPT>"
        );
    }
    format!(
        "<InitialFilterCriteria><Priority>{}</Priority>\
         <TriggerPoint><ConditionTypeCNF>1</ConditionTypeCNF>{points}</TriggerPoint>\
         <ApplicationServer><ServerName>{}</ServerName><DefaultHandling>{}</DefaultHandling>\
         </ApplicationServer></InitialFilterCriteria>",
        criterion.priority,
        escaped(&criterion.server),
        u8::from(!criterion.continues)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(subscriber: &str) -> Result<Subscribers, String> {
        let head = "realm = 'ims.test'\nscscf = 'sip:s'\n[[subscriber]]\nprivate = 'a@ims.test'\n";
        Subscribers::from_toml(&format!("{head}{subscriber}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_subscriber_needs_an_identity_and_a_secret() {
        assert!(read("public = ['sip:a@ims.test']\npassword = 'x'").is_ok());
        let error = read("public = []\npassword = 'x'").unwrap_err();
        assert_eq!(error, "subscriber a@ims.test has no public identity");
        let error = read("public = ['sip:a@ims.test']").unwrap_err();
        assert_eq!(error, "subscriber a@ims.test has neither password nor aka");
        let error = read("public = ['sip:a']\naka = { k = '00', opc = '00' }").unwrap_err();
        assert!(error.contains("32 hexadecimal digits"), "{error}");
        let error = read("public = ['sip:a', 'sip:a']\npassword = 'x'").unwrap_err();
        assert!(error.contains("there twice"), "{error}");
        assert!(read("public = ['sip:a']\npasword = 'x'").is_err());
    }

    #[test]
    fn a_profile_lists_identities_and_criteria() {
        let text = "public = ['sip:a@ims.test', 'tel:+1']\nbarred = ['tel:+1']\npassword = 'x'\n\
            [[subscriber.ifc]]\npriority = 2\nmethod = 'INVITE'\nsession_case = 1\n\
            server = 'sip:as?a&b'";
        let read = read(text).unwrap();
        let xml = profile(&read.subscriber[0]);
        assert!(
            xml.contains("<BarringIndication>1</BarringIndication><Identity>tel:+1</Identity>")
        );
        assert!(xml.contains("<ServerName>sip:as?a&amp;b</ServerName>"));
        assert!(xml.contains("<SessionCase>1</SessionCase>"));
    }
}
