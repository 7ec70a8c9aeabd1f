//! The server's offer to a subscriber, and what is read of the answer.

use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::Context;
use str0m::IceCreds;
use str0m::crypto::Fingerprint;

/// Payload types and extension ids are the server's choice, since it makes the offer.
pub const VP8: u8 = 96;
pub const RTX: u8 = 97;
pub const TWCC_ID: u8 = 3;
pub const MID_ID: u8 = 4;
/// Tracks that a subscriber can watch at once: each has a place from the start, so that nothing is
/// negotiated when somebody joins.
pub const SLOTS: u32 = 8;

/// SSRC of a slot, and of its retransmissions.
pub fn ssrcs(slot: u32) -> (u32, u32) {
    (1_000 + 2 * slot, 1_001 + 2 * slot)
}

/// The offer: one m-line a slot, over one transport with ICE lite.
pub fn write(local: SocketAddr, ice: &IceCreds, fingerprint: &Fingerprint) -> String {
    let (ip, port) = (local.ip(), local.port());
    let mut sdp = format!("v=0\r\no=- 1 1 IN IP4 {ip}\r\ns=-\r\nt=0 0\r\na=ice-lite\r\n");
    sdp.push_str("a=extmap-allow-mixed\r\na=group:BUNDLE");
    for slot in 0..SLOTS {
        // Writing into a text cannot fail.
        let _ = write!(sdp, " {slot}");
    }
    sdp.push_str("\r\n");
    for slot in 0..SLOTS {
        let (ssrc, rtx) = ssrcs(slot);
        let _ = write!(
            sdp,
            "m=video {port} UDP/TLS/RTP/SAVPF {VP8} {RTX}\r\n\
             c=IN IP4 {ip}\r\n\
             a=mid:{slot}\r\n\
             a=sendonly\r\n\
             a=rtcp-mux\r\n\
             a=rtcp-rsize\r\n\
             a=ice-ufrag:{}\r\n\
             a=ice-pwd:{}\r\n\
             a=fingerprint:{fingerprint}\r\n\
             a=setup:actpass\r\n\
             a=candidate:1 1 udp 2130706431 {ip} {port} typ host\r\n\
             a=end-of-candidates\r\n\
             a=extmap:{TWCC_ID} http://www.ietf.org/id/\
             draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
             a=extmap:{MID_ID} urn:ietf:params:rtp-hdrext:sdes:mid\r\n\
             a=rtpmap:{VP8} VP8/90000\r\n\
             a=rtcp-fb:{VP8} transport-cc\r\n\
             a=rtcp-fb:{VP8} nack\r\n\
             a=rtcp-fb:{VP8} nack pli\r\n\
             a=rtpmap:{RTX} rtx/90000\r\n\
             a=fmtp:{RTX} apt={VP8}\r\n\
             a=msid:slot{slot} slot{slot}\r\n\
             a=ssrc-group:FID {ssrc} {rtx}\r\n\
             a=ssrc:{ssrc} cname:weir\r\n\
             a=ssrc:{rtx} cname:weir\r\n",
            ice.ufrag, ice.pass
        );
    }
    sdp
}

/// What is read of an answer. The rest is as offered, or the subscriber sees nothing.
pub struct Answer {
    pub ice: IceCreds,
    pub fingerprint: Fingerprint,
    /// The subscriber waits for the server to begin with DTLS. Browsers begin themselves.
    pub is_passive: bool,
}

/// Reads a subscriber's answer.
pub fn read_answer(sdp: &str) -> anyhow::Result<Answer> {
    let ufrag = attribute(sdp, "ice-ufrag").context("the answer has no ice-ufrag")?.to_owned();
    let pass = attribute(sdp, "ice-pwd").context("the answer has no ice-pwd")?.to_owned();
    let fingerprint = attribute(sdp, "fingerprint").context("the answer has no fingerprint")?;
    let fingerprint = fingerprint.parse().map_err(anyhow::Error::msg)?;
    let is_passive = attribute(sdp, "setup") == Some("passive");
    Ok(Answer { ice: IceCreds { ufrag, pass }, fingerprint, is_passive })
}

fn attribute<'a>(sdp: &'a str, name: &str) -> Option<&'a str> {
    for line in sdp.lines() {
        let value = line.strip_prefix("a=").and_then(|rest| rest.strip_prefix(name));
        if let Some(value) = value.and_then(|rest| rest.strip_prefix(':')) {
            return Some(value.trim());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_password_is_refused() {
        let answer = "v=0\r\na=ice-ufrag:ab\r\na=ice-pwd:cd\r\na=fingerprint:sha-256 0A:FF\r\n";
        let Answer { ice, fingerprint, is_passive } = read_answer(answer).unwrap();
        assert_eq!((ice.ufrag.as_str(), ice.pass.as_str()), ("ab", "cd"));
        assert_eq!((fingerprint.bytes, is_passive), (vec![0x0a, 0xff], false));
        assert!(read_answer(&format!("{answer}a=setup:passive\r\n")).unwrap().is_passive);
        assert!(read_answer(&answer.replace("ice-pwd", "ice-options")).is_err());
    }
}
