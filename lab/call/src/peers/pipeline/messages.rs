//! Lines between a pipeline and the lab.
//!
//! Each line is a JSON object with the number of a call. The messages of a call are those that the
//! page of a browser sends and receives. A pipeline also tells the changes of its controller.

use serde::{Deserialize, Serialize};

use crate::message::{LabMessage, PeerMessage, TargetChange};

/// A line from the lab to a pipeline.
#[derive(Debug, Serialize)]
pub(super) struct LabLine<'a> {
    /// The index of the call.
    pub(super) call: usize,
    pub(super) message: &'a LabMessage,
}

/// A line from a pipeline to the lab.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct PipelineLine {
    /// The index of the call.
    pub(super) call: usize,
    #[serde(flatten)]
    pub(super) content: Content,
}

/// What a pipeline tells about a call.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Content {
    /// A message of the call's protocol.
    Message(PeerMessage),
    /// The controller has changed its target.
    Target(TargetChange),
    /// The pipeline is no longer part of the call.
    Left {},
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PipelineLine, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_line_is_a_message_of_a_call_or_a_change_of_its_controller() {
        let ready = read(r#"{"call":1,"message":{"type":"ready"}}"#).unwrap();
        assert_eq!(ready, PipelineLine { call: 1, content: Content::Message(PeerMessage::Ready) });
        let change = r#"{"call":0,"target":{"timeNs":7,"fromBps":1,"targetBps":2,"reason":"r",
            "state":"s","signals":{"rtt_ms":1.5}}}"#;
        let Content::Target(change) = read(change).unwrap().content else { panic!("a change") };
        assert_eq!((change.time_ns, change.target_bps, change.signals["rtt_ms"]), (7, 2, 1.5));
        assert_eq!(read(r#"{"call":0,"left":{}}"#).unwrap().content, Content::Left {});
    }

    #[test]
    fn an_unknown_line_of_a_pipeline_is_an_error() {
        for text in [
            r#"{"message":{"type":"ready"}}"#,
            r#"{"call":0}"#,
            r#"{"call":0,"message":{"type":"reboot"}}"#,
            r#"{"call":0,"target":{"timeNs":7}}"#,
            "[]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
