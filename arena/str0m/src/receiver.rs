//! The end that receives the video with str0m, which tells the sender transport-wide feedback and
//! asks for lost packets by itself. It has no decoder.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Instant;

use anyhow::bail;
use arena_driver::inbound::{Arrived, Inbound, Wanted};
use arena_driver::protocol::{self, Message, ReceiverSettings, Reporter};
use arena_driver::{Happening, Happenings, host_address, receive_datagrams};
use str0m::change::SdpOffer;
use str0m::media::KeyframeRequestKind;
use str0m::net::{Protocol, Receive};
use str0m::rtp::RtpPacket;
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc};

pub fn receive(
    mut reporter: Reporter,
    settings: ReceiverSettings,
    happenings: Happenings,
) -> anyhow::Result<()> {
    reporter.mark("joined");
    let now = Instant::now();
    // In RTP mode it hands packets over, not pictures.
    let mut rtc = Rtc::builder().clear_codecs().enable_vp8(true).set_rtp_mode(true).build(now);
    let socket = UdpSocket::bind((host_address()?, 0))?;
    let address = socket.local_addr()?;
    rtc.add_local_candidate(Candidate::host(address, "udp")?);
    let inbound = Inbound::new(&settings, now);
    Receiver { reporter, rtc, socket, address, inbound }.serve(happenings)
}

struct Receiver {
    reporter: Reporter,
    rtc: Rtc,
    socket: UdpSocket,
    address: SocketAddr,
    inbound: Inbound,
}

impl Receiver {
    /// Serves the call until the lab ends it.
    fn serve(&mut self, Happenings { sender, receiver }: Happenings) -> anyhow::Result<()> {
        let (socket, lines) = (self.socket.try_clone()?, sender.clone());
        thread::spawn(move || receive_datagrams(&socket, &sender));
        thread::spawn(move || protocol::read_lines(&lines));
        loop {
            let deadline = self.poll()?.min(self.inbound.next_stats());
            let wait = deadline.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(wait) {
                Ok(Happening::Line(line)) => {
                    if !self.on_line(&line)? {
                        return Ok(());
                    }
                }
                Ok(Happening::Datagram(source, bytes)) => self.on_datagram(source, &bytes)?,
                Ok(Happening::Frame(_)) => {}
                Ok(Happening::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    self.rtc.handle_input(Input::Timeout(Instant::now()))?;
                }
            }
            self.inbound.tell_in_time(&self.reporter, Instant::now());
        }
    }

    /// Sends what str0m has to send, and handles its events. Returns when it wants to be woken up.
    fn poll(&mut self) -> anyhow::Result<Instant> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(deadline) => return Ok(deadline),
                Output::Transmit(datagram) => {
                    // A link that is down refuses datagrams, which is a loss and not an error.
                    let _ = self.socket.send_to(&datagram.contents, datagram.destination);
                }
                Output::Event(Event::Connected) => {
                    self.reporter.mark("ice");
                    self.reporter.mark("connected");
                    self.reporter.connected();
                }
                Output::Event(Event::IceConnectionStateChange(
                    IceConnectionState::Disconnected,
                )) => bail!("no connection to the other peer"),
                Output::Event(Event::RtpPacket(packet)) => self.on_packet(&packet),
                Output::Event(_) => {}
            }
        }
    }

    fn on_packet(&mut self, packet: &RtpPacket) {
        let header = &packet.header;
        let arrived = Arrived {
            ssrc: *header.ssrc,
            // That of the packet which a repeat repeats.
            sequence: *packet.seq_no as u16,
            timestamp: header.timestamp,
            marker: header.marker,
            header_bytes: header.header_len,
            payload: &packet.payload,
        };
        let wanted = self.inbound.add(&self.reporter, &arrived, Instant::now());
        if wanted == Wanted::KeyFrame
            && let Some(stream) = self.rtc.direct_api().stream_rx(&header.ssrc)
        {
            stream.request_keyframe(KeyframeRequestKind::Pli);
        }
    }

    fn on_datagram(&mut self, source: SocketAddr, bytes: &[u8]) -> anyhow::Result<()> {
        // What is no packet of this call is dropped, as a socket would.
        if let Ok(contents) = bytes.try_into() {
            let datagram =
                Receive { proto: Protocol::Udp, source, destination: self.address, contents };
            self.rtc.handle_input(Input::Receive(Instant::now(), datagram))?;
        }
        Ok(())
    }

    /// Handles a line of the lab. Returns whether the call goes on.
    fn on_line(&mut self, line: &str) -> anyhow::Result<bool> {
        match protocol::message(line)? {
            Message::Config => self.reporter.ready(),
            Message::Start => self.reporter.mark("start"),
            Message::Offer { sdp } => {
                let answer = self.rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(&sdp)?)?;
                self.reporter.answer(&answer.to_sdp_string());
                self.reporter.mark("described");
            }
            Message::Candidate { candidate } => {
                // Of another kind, such as TCP or a name of mDNS.
                if let Ok(candidate) = Candidate::from_sdp_string(&candidate.candidate) {
                    self.rtc.add_remote_candidate(candidate);
                }
            }
            Message::Stop | Message::Refused => {
                self.inbound.tell(&self.reporter);
                self.reporter.left();
                return Ok(false);
            }
            Message::Answer { .. } | Message::Other => {}
        }
        Ok(true)
    }
}
