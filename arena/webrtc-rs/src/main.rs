//! Driver of the arena for webrtc-rs: sends the video of one call, under the GCC of webrtc-rs, or
//! with the name of a controller as its argument, under that one of Weir; or receives it.
//!
//! The lab talks to it in lines of JSON (docs/guide/arena.md). webrtc-rs has no encoder, so the
//! pictures come from ../encoder.py. It has no sockets and no clock either: all of that is here.

mod connection;
mod receiver;
mod watched;

use std::env;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use arena_driver::encoder::{self, Encoder};
use arena_driver::protocol::{self, Message, Reporter, Settings};
use arena_driver::{Happening, Happenings, host_address, receive_datagrams};
use bytes::{Bytes, BytesMut};
use rtc::peer_connection::RTCPeerConnection;
use rtc::peer_connection::event::RTCPeerConnectionEvent;
use rtc::peer_connection::message::RTCMessage;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::{
    CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit,
};
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtp::packetizer::Packetizer;
use rtc::rtp_transceiver::RTCRtpSenderId;
use rtc::sansio::Protocol;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};

use connection::{CLOCK_RATE, Connection};
use watched::Target;

/// How long nothing may wake the call.
const AN_HOUR: Duration = Duration::from_secs(3_600);

fn main() -> ExitCode {
    let version = arena_driver::pinned(include_str!("../Cargo.toml"));
    arena_driver::run(&format!("webrtc-rs/rtc {version}"), call, receiver::receive)
}

fn call(reporter: Reporter, settings: Settings, happenings: Happenings) -> anyhow::Result<()> {
    Call::open(reporter, settings, &happenings.sender)?.serve(happenings)
}

/// The call.
struct Call {
    reporter: Reporter,
    settings: Settings,
    peer: RTCPeerConnection,
    sender: RTCRtpSenderId,
    packetizer: Box<dyn Packetizer>,
    socket: UdpSocket,
    address: SocketAddr,
    encoder: Encoder,
    /// As the estimator says it.
    target: Target,
    target_bps: u64,
    is_connected: bool,
    is_described: bool,
    /// Candidates that came before the answer.
    early: Vec<String>,
}

impl Call {
    fn open(
        mut reporter: Reporter,
        settings: Settings,
        happenings: &Sender<Happening>,
    ) -> anyhow::Result<Self> {
        reporter.mark("joined");
        let socket = UdpSocket::bind((host_address()?, 0))?;
        let address = socket.local_addr()?;
        let controller = env::args().nth(1).map(|name| name.parse()).transpose()?;
        let Connection { peer, sender, packetizer, target } =
            Connection::open(&settings, controller)?;
        let encoder = Encoder::start(&settings, happenings.clone())?;
        reporter.mark("camera");
        let target_bps = settings.start_bitrate;
        Ok(Self {
            reporter,
            settings,
            peer,
            sender,
            packetizer,
            socket,
            address,
            encoder,
            target,
            target_bps,
            is_connected: false,
            is_described: false,
            early: Vec::new(),
        })
    }

    /// Serves the call until the lab ends it.
    fn serve(&mut self, Happenings { sender, receiver }: Happenings) -> anyhow::Result<()> {
        let (socket, lines) = (self.socket.try_clone()?, sender.clone());
        thread::spawn(move || receive_datagrams(&socket, &sender));
        thread::spawn(move || protocol::read_lines(&lines));
        loop {
            self.poll()?;
            let due = self.peer.poll_timeout().unwrap_or_else(|| Instant::now() + AN_HOUR);
            match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Happening::Line(line)) => {
                    if !self.receive(&line)? {
                        return Ok(());
                    }
                }
                Ok(Happening::Frame(frame)) => self.send(frame)?,
                Ok(Happening::Datagram(source, bytes)) => self.on_datagram(source, &bytes),
                Ok(Happening::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => self.peer.handle_timeout(Instant::now())?,
            }
        }
    }

    /// Sends what webrtc-rs has to send, and handles what it tells.
    fn poll(&mut self) -> anyhow::Result<()> {
        while let Some(packet) = self.peer.poll_write() {
            // A link that is down refuses datagrams, which is a loss and not an error.
            let _ = self.socket.send_to(&packet.message, packet.transport.peer_addr);
        }
        while let Some(event) = self.peer.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                ensure!(state != RTCPeerConnectionState::Failed, "no connection to the other peer");
                if state == RTCPeerConnectionState::Connected && !self.is_connected {
                    self.on_connected();
                }
            }
        }
        while let Some(tagged) = self.peer.poll_read() {
            if let RTCMessage::RtcpPacket(_, packets) = tagged.message {
                if packets.iter().any(|packet| packet.as_any().is::<PictureLossIndication>()) {
                    self.encoder.say("key");
                }
            }
        }
        self.follow_target();
        Ok(())
    }

    fn on_connected(&mut self) {
        self.is_connected = true;
        self.reporter.mark("ice");
        self.reporter.mark("connected");
        self.reporter.connected();
        self.encoder.say(&format!("rate {}", self.encoder_rate()));
        self.encoder.say("start");
    }

    fn follow_target(&mut self) {
        let target_bps = self.target.bps();
        if target_bps != self.target_bps {
            self.reporter.target(self.target_bps, target_bps);
            self.target_bps = target_bps;
            if let Target::Theirs(_) = self.target {
                self.encoder.say(&format!("rate {}", self.encoder_rate()));
            }
        }
        if let Target::Ours(control) = &self.target {
            self.encoder.follow(control.media_bitrate().as_bps(), control.wants_frame());
        }
    }

    fn encoder_rate(&self) -> u64 {
        encoder::rate(self.target_bps, self.settings.frame_rate)
    }

    fn on_datagram(&mut self, peer_addr: SocketAddr, bytes: &[u8]) {
        let transport = TransportContext {
            local_addr: self.address,
            peer_addr,
            ecn: None,
            transport_protocol: TransportProtocol::UDP,
        };
        let message = BytesMut::from(bytes);
        // What is no packet of this call is dropped, as a socket would.
        let _ = self.peer.handle_read(TaggedBytesMut { now: Instant::now(), transport, message });
    }

    /// Handles a line of the lab. Returns whether the call goes on.
    fn receive(&mut self, line: &str) -> anyhow::Result<bool> {
        match protocol::message(line)? {
            Message::Config => self.reporter.ready(),
            Message::Start => self.offer()?,
            Message::Answer { sdp } => {
                let answer = RTCSessionDescription::answer(sdp)?;
                self.peer.set_remote_description(Instant::now(), answer)?;
                self.reporter.mark("described");
                self.is_described = true;
                for candidate in std::mem::take(&mut self.early) {
                    self.add(candidate);
                }
            }
            Message::Candidate { candidate } if self.is_described => self.add(candidate.candidate),
            Message::Candidate { candidate } => self.early.push(candidate.candidate),
            Message::Stop | Message::Refused => {
                self.reporter.left();
                return Ok(false);
            }
            Message::Offer { .. } | Message::Other => {}
        }
        Ok(true)
    }

    fn add(&mut self, candidate: String) {
        let init = RTCIceCandidateInit { candidate, ..Default::default() };
        // Of another kind, such as TCP or a name of mDNS.
        let _ = self.peer.add_remote_candidate(init);
    }

    fn offer(&mut self) -> anyhow::Result<()> {
        self.reporter.mark("start");
        self.peer.add_local_candidate(host_candidate(self.address)?)?;
        let offer = self.peer.create_offer(None)?;
        self.peer.set_local_description(Instant::now(), offer)?;
        let offer = self.peer.local_description().context("no offer")?;
        self.reporter.offer(&offer.sdp);
        Ok(())
    }

    fn send(&mut self, frame: Vec<u8>) -> anyhow::Result<()> {
        let now = Instant::now();
        let samples = CLOCK_RATE / self.settings.frame_rate as u32;
        if frame.is_empty() {
            self.packetizer.skip_samples(samples);
            return Ok(());
        }
        for packet in self.packetizer.packetize(now, &Bytes::from(frame), samples)? {
            let mut sender = self.peer.rtp_sender(self.sender).context("the track is gone")?;
            sender.write_rtp(now, packet)?;
        }
        Ok(())
    }
}

/// The candidate of the driver's socket.
fn host_candidate(address: SocketAddr) -> anyhow::Result<RTCIceCandidateInit> {
    let base_config = CandidateConfig {
        network: "udp".to_owned(),
        address: address.ip().to_string(),
        port: address.port(),
        component: 1,
        ..Default::default()
    };
    let host = CandidateHostConfig { base_config, ..Default::default() };
    Ok(RTCIceCandidate::from(&host.new_candidate_host()?).to_json()?)
}
