//! The end that receives the video with webrtc-rs and its default interceptors: transport-wide
//! feedback, NACK and reports. It has no decoder.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use arena_driver::inbound::{Arrived, Inbound, Wanted};
use arena_driver::protocol::{self, Message, ReceiverSettings, Reporter};
use arena_driver::{Happening, Happenings, host_address, receive_datagrams};
use bytes::BytesMut;
use rtc::interceptor::Registry;
use rtc::peer_connection::configuration::interceptor_registry::register_default_interceptors;
use rtc::peer_connection::configuration::media_engine::MediaEngine;
use rtc::peer_connection::event::{RTCPeerConnectionEvent, RTCTrackEvent};
use rtc::peer_connection::message::RTCMessage;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::RTCIceCandidateInit;
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtp::Packet;
use rtc::rtp_transceiver::RTCRtpReceiverId;
use rtc::sansio::Protocol;
use rtc::shared::marshal::MarshalSize;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};

use crate::{connection, host_candidate};

pub fn receive(
    mut reporter: Reporter,
    settings: ReceiverSettings,
    happenings: Happenings,
) -> anyhow::Result<()> {
    reporter.mark("joined");
    let now = Instant::now();
    let socket = UdpSocket::bind((host_address()?, 0))?;
    let address = socket.local_addr()?;
    let mut media = MediaEngine::default();
    connection::register_vp8(&mut media)?;
    let registry = register_default_interceptors(Registry::new(), &mut media)?;
    let peer = RTCPeerConnectionBuilder::new()
        .with_media_engine(media)
        .with_interceptor_registry(registry)
        .build(now)?;
    let inbound = Inbound::new(&settings, now);
    Receiver {
        reporter,
        peer,
        socket,
        address,
        inbound,
        receiver: None,
        is_connected: false,
        is_described: false,
        early: Vec::new(),
    }
    .serve(happenings)
}

struct Receiver {
    reporter: Reporter,
    peer: RTCPeerConnection,
    socket: UdpSocket,
    address: SocketAddr,
    inbound: Inbound,
    /// Of the track, once it is there.
    receiver: Option<RTCRtpReceiverId>,
    is_connected: bool,
    is_described: bool,
    /// Candidates that came before the offer.
    early: Vec<String>,
}

impl Receiver {
    /// Serves the call until the lab ends it.
    fn serve(&mut self, Happenings { sender, receiver }: Happenings) -> anyhow::Result<()> {
        let (socket, lines) = (self.socket.try_clone()?, sender.clone());
        thread::spawn(move || receive_datagrams(&socket, &sender));
        thread::spawn(move || protocol::read_lines(&lines));
        loop {
            self.poll()?;
            let stats = self.inbound.next_stats();
            let due = self.peer.poll_timeout().map_or(stats, |due| due.min(stats));
            match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Happening::Line(line)) => {
                    if !self.on_line(&line)? {
                        return Ok(());
                    }
                }
                Ok(Happening::Datagram(source, bytes)) => self.on_datagram(source, &bytes),
                Ok(Happening::Frame(_)) => {}
                Ok(Happening::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => self.peer.handle_timeout(Instant::now())?,
            }
            self.inbound.tell_in_time(&self.reporter, Instant::now());
        }
    }

    /// Sends what webrtc-rs has to send, and handles what it tells.
    fn poll(&mut self) -> anyhow::Result<()> {
        while let Some(tagged) = self.peer.poll_read() {
            if let RTCMessage::RtpPacket(_, packet) = tagged.message {
                self.on_packet(&packet)?;
            }
        }
        while let Some(event) = self.peer.poll_event() {
            self.on_event(event)?;
        }
        while let Some(packet) = self.peer.poll_write() {
            // A link that is down refuses datagrams, which is a loss and not an error.
            let _ = self.socket.send_to(&packet.message, packet.transport.peer_addr);
        }
        Ok(())
    }

    fn on_event(&mut self, event: RTCPeerConnectionEvent) -> anyhow::Result<()> {
        match event {
            RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) => {
                ensure!(state != RTCPeerConnectionState::Failed, "no connection to the other peer");
                if state == RTCPeerConnectionState::Connected && !self.is_connected {
                    self.is_connected = true;
                    self.reporter.mark("ice");
                    self.reporter.mark("connected");
                    self.reporter.connected();
                }
            }
            RTCPeerConnectionEvent::OnTrack(RTCTrackEvent::OnOpen(track)) => {
                self.receiver = Some(track.receiver_id);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_packet(&mut self, packet: &Packet) -> anyhow::Result<()> {
        let header = &packet.header;
        let arrived = Arrived {
            ssrc: header.ssrc,
            sequence: header.sequence_number,
            timestamp: header.timestamp,
            marker: header.marker,
            header_bytes: header.marshal_size(),
            payload: &packet.payload,
        };
        let now = Instant::now();
        let wanted = self.inbound.add(&self.reporter, &arrived, now);
        if wanted == Wanted::KeyFrame
            && let Some(id) = self.receiver
            && let Some(mut receiver) = self.peer.rtp_receiver(id)
        {
            let request = PictureLossIndication { sender_ssrc: 0, media_ssrc: header.ssrc };
            receiver.write_rtcp(now, vec![Box::new(request)])?;
        }
        Ok(())
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
    fn on_line(&mut self, line: &str) -> anyhow::Result<bool> {
        match protocol::message(line)? {
            Message::Config => self.reporter.ready(),
            Message::Start => self.reporter.mark("start"),
            Message::Offer { sdp } => self.answer(sdp)?,
            Message::Candidate { candidate } if self.is_described => self.add(candidate.candidate),
            Message::Candidate { candidate } => self.early.push(candidate.candidate),
            Message::Stop | Message::Refused => {
                self.inbound.tell(&self.reporter);
                self.reporter.left();
                return Ok(false);
            }
            Message::Answer { .. } | Message::Other => {}
        }
        Ok(true)
    }

    fn answer(&mut self, sdp: String) -> anyhow::Result<()> {
        let now = Instant::now();
        self.peer.set_remote_description(now, RTCSessionDescription::offer(sdp)?)?;
        self.peer.add_local_candidate(host_candidate(self.address)?)?;
        let answer = self.peer.create_answer(None)?;
        self.peer.set_local_description(now, answer)?;
        let answer = self.peer.local_description().context("no answer")?;
        self.reporter.answer(&answer.sdp);
        self.reporter.mark("described");
        self.is_described = true;
        for candidate in std::mem::take(&mut self.early) {
            self.add(candidate);
        }
        Ok(())
    }

    fn add(&mut self, candidate: String) {
        let init = RTCIceCandidateInit { candidate, ..Default::default() };
        // Of another kind, such as TCP or a name of mDNS.
        let _ = self.peer.add_remote_candidate(init);
    }
}
