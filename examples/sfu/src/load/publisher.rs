//! A participant who sends three layers from files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use str0m::change::SdpAnswer;
use str0m::media::{Direction, Frequency, MediaKind, MediaTime, Mid, Simulcast, SimulcastLayer};
use str0m::{Candidate, Event, Rtc};

use super::video::{Video, is_key_frame};
use super::{RIDS, post, socket, wait};
use crate::peer::Peer;

const FRAMES_PER_SECOND: u64 = 30;
const CLOCK: u64 = 90_000;

/// Joins under this name and sends until a time. Frames of a layer follow each other in the file's
/// order; who asks for a key frame gets the file's next one at once.
pub fn publish(server: SocketAddr, name: &str, video: &Video, end: Instant) -> anyhow::Result<()> {
    let (socket, address) = socket(server)?;
    let mut rtc = Rtc::builder().clear_codecs().enable_vp8(true).build(Instant::now());
    rtc.add_local_candidate(Candidate::host(address, "udp")?).context("candidate")?;
    let mut simulcast = Simulcast::new();
    for rid in RIDS {
        simulcast.add_send_layer(SimulcastLayer::new(rid));
    }
    let mut change = rtc.sdp_api();
    let direction = Direction::SendOnly;
    let mid = change.add_media(MediaKind::Video, direction, None, None, Some(simulcast));
    let (offer, pending) = change.apply().context("an offer")?;
    let answer = post(server, &format!("/publish?name={name}"), &offer.to_sdp_string())?;
    let answer = SdpAnswer::from_sdp_string(answer["sdp"].as_str().context("no sdp")?)?;
    rtc.sdp_api().accept_answer(pending, answer)?;
    let mut peer = Peer::new(Instant::now(), rtc, address);
    peer.on_timeout(Instant::now());
    let mut next = [0; RIDS.len()];
    let (start, mut sent) = (Instant::now(), 0);
    while Instant::now() < end && !peer.is_over {
        for event in peer.poll(&socket) {
            if let Event::KeyframeRequest(request) = event {
                let layer = RIDS.iter().position(|&rid| request.rid == Some(rid.into()));
                let layer = layer.unwrap_or(0);
                next[layer] = next_key_frame(video, layer, next[layer]);
            }
        }
        let (number, layer) = (sent / RIDS.len() as u64, sent as usize % RIDS.len());
        let due = start + Duration::from_secs(number) / FRAMES_PER_SECOND as u32;
        if Instant::now() < due {
            wait(&mut peer, &socket, due.min(end))?;
            continue;
        }
        if peer.is_connected {
            // str0m takes one frame, and has to be polled before the next.
            let frames = &video.layers[layer];
            let frame = frames[next[layer] % frames.len()].clone();
            next[layer] += 1;
            write(&mut peer, mid, layer, number, frame)?;
        }
        sent += 1;
    }
    Ok(())
}

/// The place of the first key frame from this one on.
fn next_key_frame(video: &Video, layer: usize, from: usize) -> usize {
    let frames = &video.layers[layer];
    let mut place = from % frames.len();
    while !is_key_frame(&frames[place]) {
        place = (place + 1) % frames.len();
    }
    place
}

/// Sends the frame of this number as one of a layer.
fn write(
    peer: &mut Peer,
    mid: Mid,
    layer: usize,
    number: u64,
    frame: Arc<[u8]>,
) -> anyhow::Result<()> {
    let time = MediaTime::new(number * CLOCK / FRAMES_PER_SECOND, Frequency::NINETY_KHZ);
    let writer = peer.rtc.writer(mid).context("no media")?;
    let payload_type = writer.payload_params().next().context("no codec")?.pt();
    writer.rid(RIDS[layer].into()).write(payload_type, Instant::now(), time, frame)?;
    Ok(())
}
