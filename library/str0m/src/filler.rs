//! What fills packets without a payload: a header extension that nobody reads.
//!
//! [`RtpWrite`](str0m::rtp::RtpWrite) cannot set the padding bit, and str0m pads only under its own
//! estimator.

use str0m::RtcConfig;
use str0m::media::Media;
use str0m::rtp::{Extension, ExtensionSerializer, ExtensionValues};

/// Bytes of the extension, the most that there can be.
pub(crate) const BYTES: usize = 255;
/// Not used by str0m's standard extensions, nor by a browser's for video.
const ID: u8 = 9;
const URI: &str = "urn:weir:filler";
/// A section with this extension has feedback, so it can be under a controller.
const TRANSPORT_WIDE: &str = "draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// Asks for the extension in a packet's values.
#[derive(Debug)]
pub(crate) struct Filler;

impl ExtensionSerializer for Filler {
    fn write_to(&self, buffer: &mut [u8], values: &ExtensionValues) -> usize {
        if values.user_values.get::<Self>().is_none() || buffer.len() < BYTES {
            return 0;
        }
        buffer[..BYTES].fill(0);
        BYTES
    }

    fn parse_value(&self, _: &[u8], _: &mut ExtensionValues) -> bool {
        false
    }

    fn is_video(&self) -> bool {
        true
    }

    fn is_audio(&self) -> bool {
        false
    }

    fn requires_two_byte_form(&self, values: &ExtensionValues) -> bool {
        values.user_values.get::<Self>().is_some()
    }
}

/// What a connection needs for a [`Congestion`](crate::Congestion): RTP mode, raw packets, and the
/// extension of padding. The estimator of str0m must stay off.
pub fn configure(config: RtcConfig) -> RtcConfig {
    config
        .set_rtp_mode(true)
        .enable_raw_packets(true)
        .set_extension(ID, Extension::with_serializer(URI, Filler))
}

/// The other peer's description of the session, with the extension of padding added where there is
/// transport-wide feedback. Give str0m this one: it writes only extensions that both peers have.
pub fn with_filler(description: &str) -> String {
    let own = format!("a=extmap:{ID}");
    let mut text = String::new();
    for line in description.lines() {
        if line.starts_with(&format!("{own} ")) || line.starts_with(&format!("{own}/")) {
            // The peer uses the number for something else, and str0m must know for what.
            return description.to_owned();
        }
        text.push_str(line);
        text.push_str("\r\n");
        if line.starts_with("a=extmap:") && line.ends_with(TRANSPORT_WIDE) {
            text.push_str(&format!("{own} {URI}\r\n"));
        }
    }
    text
}

/// Whether both peers have the extension.
pub(crate) fn is_agreed(media: &Media) -> bool {
    media.remote_extmap().lookup(ID).is_some_and(|extension| extension.as_uri() == URI)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &str = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=extmap:3 http://www.ietf.org/id/\
        draft-holmer-rmcat-transport-wide-cc-extensions-01\r\na=mid:0\r\n";

    #[test]
    fn the_extension_stands_in_sections_with_transport_wide_feedback_only() {
        let audio = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\n";
        let text = with_filler(&format!("{SECTION}{audio}"));
        assert_eq!(text.matches("a=extmap:9 urn:weir:filler\r\n").count(), 1);
        assert!(text.find("filler").unwrap() < text.find("m=audio").unwrap());
    }

    #[test]
    fn a_number_that_the_peer_uses_stays_the_peers() {
        let taken = format!("{SECTION}a=extmap:9 urn:other\r\n");
        assert_eq!(with_filler(&taken), taken);
    }
}
