//! Notifications of the state of one's own registration ([RFC3680], [TS 24.229 §5.1.1.3]).

use core::time::Duration;

use super::{Agent, Event, Output};
use crate::sip::Message;

/// Longest subscription that is asked for, in s ([TS 24.229 §5.1.1.3]).
const EXPIRES: u32 = 600_000;

/// What the registrar says of one public identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Public identity.
    pub identity: String,
    /// `init`, `active` or `terminated` ([RFC3680 §5.2.2]).
    pub state: String,
    /// What happened to its contact, such as `registered` or `expired` ([RFC3680 §5.2.3]); empty
    /// without a contact.
    pub event: String,
}

impl Agent {
    /// Subscribes to the state of one's own registration.
    pub fn watch(&mut self, now: Duration) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.sequence += 1;
        let (via, tag, id) = (self.via(), self.unique("t"), self.unique("watch"));
        let public = self.account.public.clone();
        let mut request =
            Message::request("SUBSCRIBE", &public).with("Via", via).with("Max-Forwards", "70");
        let proxy = format!("<sip:{};lr>", self.account.proxy);
        for route in [vec![proxy], self.service_routes.clone()].concat() {
            request = request.with("Route", route);
        }
        let request = request
            .with("From", format!("<{public}>;tag={tag}"))
            .with("To", format!("<{public}>"))
            .with("Call-ID", id)
            .with("CSeq", format!("{} SUBSCRIBE", self.sequence))
            .with("Contact", self.contact())
            .with("Event", "reg")
            .with("Accept", "application/reginfo+xml")
            .with("Expires", EXPIRES.to_string());
        self.send(now, &request, &mut outputs);
        outputs
    }

    /// A NOTIFY has come.
    pub(super) fn on_notify(&mut self, request: &Message, outputs: &mut Vec<Output>) {
        if request.header("Event") != Some("reg") {
            let response = request.response(489, "Bad Event");
            return self.respond(request, &response, outputs);
        }
        self.respond(request, &request.response(200, "OK"), outputs);
        outputs.push(Output::Event(Event::Registrations(bindings(&request.body))));
    }
}

/// The registrations of a document ([RFC3680 §5]).
fn bindings(xml: &str) -> Vec<Binding> {
    let mut bindings: Vec<Binding> = Vec::new();
    for element in xml.split('<').skip(1) {
        let (tag, attributes) =
            element.split_once([' ', '\t', '\r', '\n']).unwrap_or((element, ""));
        let value = |name| attribute(attributes, name).unwrap_or_default();
        match tag {
            "registration" => bindings.push(Binding {
                identity: value("aor"),
                state: value("state"),
                event: String::new(),
            }),
            "contact" => {
                if let Some(last) = bindings.last_mut() {
                    last.event = value("event");
                }
            }
            _ => {}
        }
    }
    bindings
}

/// The value of an attribute, between quotation marks of either kind.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    for (at, _) in attributes.match_indices(name) {
        let is_whole = attributes[..at].chars().last().is_none_or(char::is_whitespace);
        let Some(rest) = attributes[at + name.len()..].trim_start().strip_prefix('=') else {
            continue;
        };
        let rest = rest.trim_start();
        let mark = rest.chars().next().filter(|mark| matches!(mark, '"' | '\''));
        let (true, Some(mark)) = (is_whole, mark) else { continue };
        return rest[1..].split_once(mark).map(|(value, _)| value.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC3680 §7]
    #[test]
    fn a_document_says_what_happened_to_each_identity() {
        let xml = "<?xml version=\"1.0\"?>\n<reginfo xmlns=\"urn:ietf:params:xml:ns:reginfo\" \
            version='1' state=\"full\">\n<registration aor=\"sip:joe@example.com\" id=\"a7\" \
            state='terminated'>\n<contact id=\"76\" state=\"terminated\" event=\"expired\" \
            q=\"0.8\"><uri>sip:joe@pc34.example.com</uri></contact></registration>\
            <registration id=\"a8\" aor=\"tel:+1\" state=\"init\"/></reginfo>";
        let binding = |identity: &str, state: &str, event: &str| Binding {
            identity: identity.into(),
            state: state.into(),
            event: event.into(),
        };
        assert_eq!(
            bindings(xml),
            [
                binding("sip:joe@example.com", "terminated", "expired"),
                binding("tel:+1", "init", ""),
            ]
        );
        for text in ["", "<", "<registration", "<registration aor=>", "<contact event='x'>"] {
            assert!(bindings(text).iter().all(|one| one.state.is_empty()), "{text}");
        }
    }
}
