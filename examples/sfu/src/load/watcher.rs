//! A participant who counts what arrives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use str0m::change::SdpOffer;
use str0m::rtp::RtpPacket;
use str0m::{Candidate, Event, Rtc};
use weir_sfu::PayloadDescriptor;

use super::{post, socket, wait};
use crate::offer::SLOTS;
use crate::peer::Peer;

/// Interval at which the page, too, says what is seen.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of IP, UDP, RTP with extensions, and the authentication tag of SRTP.
const HEADERS: u64 = 20 + 8 + 20 + 10;

/// One track.
#[derive(Default)]
struct Track {
    first: Option<u64>,
    last: u64,
    /// Packets in the time that is counted.
    packets: u64,
    /// Width of the picture, as the last key frame says.
    width: u16,
    pictures: u64,
}

/// What one subscriber saw in the time that is counted.
#[derive(Default)]
pub struct Seen {
    pub packets: u64,
    pub bytes: u64,
    tracks: BTreeMap<u32, Track>,
}

impl Seen {
    /// Packets that never arrived. The server numbers what it sends without gaps.
    pub fn lost(&self) -> u64 {
        let mut lost = 0;
        for track in self.tracks.values() {
            let expected = track.first.map_or(0, |first| track.last + 1 - first);
            lost += expected.saturating_sub(track.packets);
        }
        lost
    }

    /// Widths of the pictures at the end.
    pub fn widths(&self) -> Vec<u16> {
        self.tracks.values().map(|track| track.width).collect()
    }

    fn on_packet(&mut self, packet: &RtpPacket, is_counted: bool) {
        // Padding has no payload, and repeated packets come under the numbers of the first ones.
        let Ok(descriptor) = PayloadDescriptor::parse(&packet.payload) else { return };
        let track = self.tracks.entry(*packet.header.ssrc).or_default();
        if descriptor.starts_key_frame {
            track.width = width(&packet.payload).unwrap_or(track.width);
        }
        track.pictures += u64::from(packet.header.marker);
        if is_counted {
            let number = *packet.seq_no;
            track.first = Some(track.first.map_or(number, |first| first.min(number)));
            track.last = track.last.max(number);
            track.packets += 1;
            self.packets += 1;
            self.bytes += packet.payload.len() as u64 + HEADERS;
        }
    }

    /// What a page would say of its slots: size shown, width of the picture, pictures.
    fn places(&self) -> Vec<(u16, u16, u16, u64)> {
        let mut places = vec![(960, 540, 0, 0); SLOTS as usize];
        for (place, track) in places.iter_mut().zip(self.tracks.values()) {
            (place.2, place.3) = (track.width, track.pictures);
        }
        places
    }
}

/// The width that a key frame of VP8 begins with, after its start code [RFC6386 §9.1].
fn width(payload: &[u8]) -> Option<u16> {
    const START_CODE: [u8; 3] = [0x9d, 0x01, 0x2a];
    let beginning = payload.get(..payload.len().min(24))?;
    let place = beginning.windows(3).position(|bytes| bytes == START_CODE)?;
    let bytes = beginning.get(place + 3..place + 5)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x3fff)
}

/// Joins under this name, and counts what arrives in a time.
pub fn watch(server: SocketAddr, name: &str, counted: Range<Instant>) -> anyhow::Result<Seen> {
    let (socket, address) = socket(server)?;
    let builder = Rtc::builder().set_rtp_mode(true).clear_codecs().enable_vp8(true);
    let mut rtc = builder.build(Instant::now());
    rtc.add_local_candidate(Candidate::host(address, "udp")?).context("candidate")?;
    let answer = post(server, &format!("/subscribe?name={name}"), "")?;
    let number = answer["number"].as_u64().context("no number")?;
    let offer = SdpOffer::from_sdp_string(answer["sdp"].as_str().context("no sdp")?)?;
    let answer = rtc.sdp_api().accept_offer(offer)?;
    post(server, &format!("/answer?number={number}"), &answer.to_sdp_string())?;
    let mut peer = Peer::new(Instant::now(), rtc, address);
    peer.on_timeout(Instant::now());
    let mut seen = Seen::default();
    let mut next_report = Instant::now();
    while Instant::now() < counted.end && !peer.is_over {
        for event in peer.poll(&socket) {
            if let Event::RtpPacket(packet) = event {
                seen.on_packet(&packet, counted.contains(&packet.timestamp));
            }
        }
        if next_report <= Instant::now() {
            let places = serde_json::to_string(&seen.places())?;
            post(server, &format!("/shown?number={number}"), &places)?;
            next_report += REPORT_INTERVAL;
        }
        wait(&mut peer, &socket, next_report.min(counted.end))?;
    }
    Ok(seen)
}
