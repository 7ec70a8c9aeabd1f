//! Sends video to a browser by webrtc-rs, with a congestion controller of Weir. See README.md.

mod estimator;
mod video;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::extract::State;
use axum::response::Html;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::BytesMut;
use estimator::Estimator;
use rtc::interceptor::Registry;
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::interceptor_registry::{
    CongestionFeedback, configure_congestion_control, register_default_interceptors,
};
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_VP8, MediaEngine};
use rtc::peer_connection::event::RTCPeerConnectionEvent;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate};
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtp::packetizer::{Packetizer, new_packetizer};
use rtc::rtp_transceiver::RTCRtpSenderId;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RTCRtpRtxParameters, RtpCodecKind,
};
use rtc::sansio::Protocol;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};
use serde::Deserialize;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{interval, sleep_until};
use video::{FRAMES_PER_SECOND, Video};
use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::Bitrate;

const SSRC: u32 = 0x5e1f;
/// Retransmissions are a stream of their own. Otherwise SRTP takes one of a packet that was only
/// late for a replay, and the browser reports it as lost.
const RTX_SSRC: u32 = SSRC + 1;
/// As browsers number VP8 and its retransmissions.
const PAYLOAD_TYPE: u8 = 96;
const RTX_PAYLOAD_TYPE: u8 = 97;
const CLOCK_RATE: u32 = 90_000;
/// Bytes of an RTP packet without extensions.
const MTU: usize = 1200;
const USAGE: &str = "write: weir-with-webrtc-rs CONTROLLER ADDRESS:PORT VIDEO-FOLDER SECONDS";

/// What the page asks of this program.
enum Request {
    Offer(RTCSessionDescription, oneshot::Sender<RTCSessionDescription>),
    Stats(Stats),
}

/// What the browser has received since the start, from its `getStats`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    bytes_received: u64,
    frames_decoded: u64,
    packets_lost: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [controller, address, folder, seconds] = &words[..] else { anyhow::bail!(USAGE) };
    let algorithm: Algorithm = controller.parse()?;
    let address: SocketAddr = address.parse().context(USAGE)?;
    let end = Duration::from_secs(seconds.parse().context(USAGE)?);
    let video = Video::read(Path::new(folder))?;
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(800), kbps(2_500))?;

    let (requests, inbox) = mpsc::channel(8);
    let listener = TcpListener::bind(address).await?;
    println!("open http://{}/", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, pages(requests)).await });
    let (estimator, target) = Estimator::new(algorithm, limits);
    let socket = UdpSocket::bind((address.ip(), 0)).await?;
    let call = Call::new(estimator, socket, target, video)?;
    tokio::time::timeout(end, call.run(inbox)).await.unwrap_or(Ok(()))
}

/// The page, and what it sends.
fn pages(requests: mpsc::Sender<Request>) -> Router {
    let offer = |State(requests): State<mpsc::Sender<Request>>, Json(offer)| async move {
        let (reply, answer) = oneshot::channel();
        let _ = requests.send(Request::Offer(offer, reply)).await;
        // Without an answer the call has failed, and the program ends.
        Json(answer.await.ok())
    };
    let stats = |State(requests): State<mpsc::Sender<Request>>, Json(stats)| async move {
        let _ = requests.send(Request::Stats(stats)).await;
        Json(())
    };
    Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/offer", post(offer))
        .route("/stats", post(stats))
        .with_state(requests)
}

/// One call and all that it sends.
struct Call {
    start: Instant,
    peer: RTCPeerConnection,
    sender: RTCRtpSenderId,
    socket: UdpSocket,
    packetizer: Box<dyn Packetizer>,
    video: Video,
    target: watch::Receiver<Bitrate>,
    /// Of the stats before, to tell rates.
    received_bytes: u64,
}

impl Call {
    fn new(
        estimator: Estimator,
        socket: UdpSocket,
        target: watch::Receiver<Bitrate>,
        video: Video,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let vp8 = RTCRtpCodec {
            mime_type: MIME_TYPE_VP8.to_owned(),
            clock_rate: CLOCK_RATE,
            ..Default::default()
        };
        let mut media = MediaEngine::default();
        let codec = RTCRtpCodecParameters { rtp_codec: vp8.clone(), payload_type: PAYLOAD_TYPE };
        media.register_codec(codec, RtpCodecKind::Video)?;
        let rtx = RTCRtpCodec {
            mime_type: "video/rtx".to_owned(),
            clock_rate: CLOCK_RATE,
            sdp_fmtp_line: format!("apt={PAYLOAD_TYPE}"),
            ..Default::default()
        };
        let codec = RTCRtpCodecParameters { rtp_codec: rtx, payload_type: RTX_PAYLOAD_TYPE };
        media.register_codec(codec, RtpCodecKind::Video)?;
        // The controller goes in here; the rest is what any sender of webrtc-rs does.
        let (registry, feedback) = (Registry::new(), CongestionFeedback::Twcc);
        let registry = configure_congestion_control(registry, estimator, feedback, &mut media)?;
        let registry = register_default_interceptors(registry, &mut media)?;
        let mut peer = RTCPeerConnectionBuilder::new()
            .with_media_engine(media)
            .with_interceptor_registry(registry)
            .build(start)?;
        let (stream, track, label) = ("weir".to_owned(), "video".to_owned(), "video".to_owned());
        let encoding = RTCRtpEncodingParameters {
            rtp_coding_parameters: RTCRtpCodingParameters {
                ssrc: Some(SSRC),
                rtx: Some(RTCRtpRtxParameters { ssrc: RTX_SSRC }),
                ..Default::default()
            },
            codec: vp8.clone(),
            ..Default::default()
        };
        let track =
            MediaStreamTrack::new(stream, track, label, RtpCodecKind::Video, vec![encoding]);
        let sender = peer.add_track(track)?;
        let sequence = Box::new(rtc::rtp::sequence::new_random_sequencer());
        let payloader = vp8.payloader()?;
        let packetizer =
            new_packetizer(start, MTU, PAYLOAD_TYPE, SSRC, payloader, sequence, CLOCK_RATE);
        let packetizer = Box::new(packetizer);
        Ok(Self { start, peer, sender, socket, packetizer, video, target, received_bytes: 0 })
    }

    /// Until the connection fails.
    async fn run(mut self, mut inbox: mpsc::Receiver<Request>) -> anyhow::Result<()> {
        let mut buffer = vec![0; 2000];
        let mut frames = interval(Duration::from_secs(1) / FRAMES_PER_SECOND as u32);
        let mut is_connected = false;
        loop {
            while let Some(packet) = self.peer.poll_write() {
                // A packet that the kernel refuses is lost, as others are on the way.
                let _ = self.socket.send_to(&packet.message, packet.transport.peer_addr).await;
            }
            while let Some(event) = self.peer.poll_event() {
                if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                    anyhow::ensure!(state != RTCPeerConnectionState::Failed, "connection failed");
                    is_connected = state == RTCPeerConnectionState::Connected;
                }
            }
            while self.peer.poll_read().is_some() {}
            let an_hour = || Instant::now() + Duration::from_secs(3600);
            let due = self.peer.poll_timeout().unwrap_or_else(an_hour);
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let (length, from) = received?;
                    self.read(&buffer[..length], from)?;
                }
                () = sleep_until(due.into()) => self.peer.handle_timeout(Instant::now())?,
                _ = frames.tick(), if is_connected => self.send_frame()?,
                Some(request) = inbox.recv() => match request {
                    Request::Offer(offer, reply) => {
                        let _ = reply.send(self.answer(offer)?);
                    }
                    Request::Stats(stats) => self.print(&stats),
                },
            }
        }
    }

    fn answer(&mut self, offer: RTCSessionDescription) -> anyhow::Result<RTCSessionDescription> {
        let now = Instant::now();
        self.peer.set_remote_description(now, offer)?;
        let address = self.socket.local_addr()?;
        let base_config = CandidateConfig {
            network: "udp".to_owned(),
            address: address.ip().to_string(),
            port: address.port(),
            component: 1,
            ..Default::default()
        };
        let candidate =
            CandidateHostConfig { base_config, ..Default::default() }.new_candidate_host()?;
        self.peer.add_local_candidate(RTCIceCandidate::from(&candidate).to_json()?)?;
        let answer = self.peer.create_answer(None)?;
        self.peer.set_local_description(now, answer)?;
        self.peer.local_description().context("no answer")
    }

    fn read(&mut self, bytes: &[u8], peer_addr: SocketAddr) -> anyhow::Result<()> {
        let transport = TransportContext {
            local_addr: self.socket.local_addr()?,
            peer_addr,
            ecn: None,
            transport_protocol: TransportProtocol::UDP,
        };
        let message = BytesMut::from(bytes);
        self.peer.handle_read(TaggedBytesMut { now: Instant::now(), transport, message })?;
        Ok(())
    }

    fn send_frame(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let frame = self.video.next_frame(*self.target.borrow());
        let samples = CLOCK_RATE / FRAMES_PER_SECOND as u32;
        for packet in self.packetizer.packetize(now, &frame, samples)? {
            let mut sender = self.peer.rtp_sender(self.sender).context("the track is gone")?;
            sender.write_rtp(now, packet)?;
        }
        Ok(())
    }

    /// A line a second.
    fn print(&mut self, stats: &Stats) {
        let received = stats.bytes_received - self.received_bytes.min(stats.bytes_received);
        self.received_bytes = stats.bytes_received;
        println!(
            "time_s {:.0} target_kbps {:.0} received_kbps {:.0} frames_decoded {} packets_lost {}",
            self.start.elapsed().as_secs_f64(),
            self.target.borrow().as_kbps_f64(),
            received as f64 * 8.0 / 1000.0,
            stats.frames_decoded,
            stats.packets_lost
        );
    }
}
