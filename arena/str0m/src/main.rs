//! Driver of the arena for str0m: sends the video of one call, under str0m's own estimator, or with
//! the name of a controller as its argument, under that one of Weir; or receives it.
//!
//! The lab talks to it in lines of JSON (docs/guide/arena.md). str0m has no encoder, so the
//! pictures come from ../encoder.py. It has no sockets and no clock either: all of that is here.

mod packets;
mod receiver;

use std::env;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

use anyhow::Context;
use arena_driver::encoder::{self, Encoder};
use arena_driver::protocol::{self, Message, Reporter, Settings};
use arena_driver::{Happening, Happenings, host_address, receive_datagrams};
use str0m::bwe::{Bitrate, BweKind};
use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::media::{Direction, MediaKind, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc};
use weir::{Algorithm, Bitrate as OurBitrate, RateLimits};
use weir_str0m::Congestion;

use packets::Picture;

/// What a media line is sent under, if not str0m's own estimator.
enum Control {
    Theirs,
    /// Ours, before the line has a name.
    Chosen(Algorithm),
    Ours(Box<Congestion>),
}

/// The call.
struct Call {
    reporter: Reporter,
    settings: Settings,
    rtc: Rtc,
    socket: UdpSocket,
    address: SocketAddr,
    encoder: Encoder,
    offered: Option<SdpPendingOffer>,
    mid: Option<Mid>,
    control: Control,
    target_bps: u64,
    /// Pictures of the camera, and those of them that were encoded.
    pictures: u64,
    frames: u64,
}

fn main() -> ExitCode {
    let version = arena_driver::pinned(include_str!("../Cargo.toml"));
    arena_driver::run(&format!("str0m {version}"), call, receiver::receive)
}

fn call(reporter: Reporter, settings: Settings, happenings: Happenings) -> anyhow::Result<()> {
    Call::open(reporter, settings, &happenings.sender)?.serve(happenings)
}

impl Call {
    fn open(
        mut reporter: Reporter,
        settings: Settings,
        happenings: &Sender<Happening>,
    ) -> anyhow::Result<Self> {
        reporter.mark("joined");
        let config = Rtc::builder().clear_codecs().enable_vp8(true);
        let (config, control) = match env::args().nth(1) {
            None => {
                (config.enable_bwe(Some(Bitrate::bps(settings.start_bitrate))), Control::Theirs)
            }
            Some(name) => (weir_str0m::configure(config), Control::Chosen(name.parse()?)),
        };
        let mut rtc = config.build(Instant::now());
        let socket = UdpSocket::bind((host_address()?, 0))?;
        let address = socket.local_addr()?;
        rtc.add_local_candidate(Candidate::host(address, "udp")?);
        // No padding is asked for, but str0m keeps up 50 kbit/s. The source could use its maximum.
        rtc.bwe().set_bitrate(Bitrate::ZERO, Bitrate::bps(settings.max_bitrate));
        let encoder = Encoder::start(&settings, happenings.clone())?;
        reporter.mark("camera");
        let target_bps = settings.start_bitrate;
        Ok(Self {
            reporter,
            settings,
            rtc,
            socket,
            address,
            encoder,
            offered: None,
            mid: None,
            control,
            target_bps,
            pictures: 0,
            frames: 0,
        })
    }

    /// Serves the call until the lab ends it.
    fn serve(&mut self, Happenings { sender, receiver }: Happenings) -> anyhow::Result<()> {
        let (socket, lines) = (self.socket.try_clone()?, sender.clone());
        thread::spawn(move || receive_datagrams(&socket, &sender));
        thread::spawn(move || protocol::read_lines(&lines));
        loop {
            let deadline = self.poll()?;
            let wait = deadline.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(wait) {
                Ok(Happening::Line(line)) => {
                    if !self.receive(&line)? {
                        return Ok(());
                    }
                }
                Ok(Happening::Frame(frame)) => self.send(frame)?,
                Ok(Happening::Datagram(source, bytes)) => self.on_datagram(source, &bytes)?,
                Ok(Happening::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    self.rtc.handle_input(Input::Timeout(Instant::now()))?;
                }
            }
        }
    }

    /// Sends what str0m has to send, and handles its events. Returns when it wants to be woken up.
    fn poll(&mut self) -> anyhow::Result<Instant> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(deadline) => {
                    let Control::Ours(control) = &mut self.control else { return Ok(deadline) };
                    if !control.release(Instant::now(), &mut self.rtc)? {
                        let own = control.next_timeout().unwrap_or(deadline);
                        self.follow_ours();
                        return Ok(deadline.min(own));
                    }
                }
                Output::Transmit(datagram) => {
                    // A link that is down refuses datagrams, which is a loss and not an error.
                    let _ = self.socket.send_to(&datagram.contents, datagram.destination);
                }
                Output::Event(event) => self.on_event(event),
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        if let Control::Ours(control) = &mut self.control {
            control.on_event(Instant::now(), &event);
        }
        match event {
            Event::Connected => {
                if let Control::Ours(control) = &mut self.control {
                    control.start();
                }
                self.reporter.mark("connected");
                self.reporter.connected();
                self.encoder.say(&format!("rate {}", self.encoder_rate()));
                self.encoder.say("start");
            }
            Event::IceConnectionStateChange(IceConnectionState::Connected) => {
                self.reporter.mark("ice");
            }
            Event::KeyframeRequest(_) => self.encoder.say("key"),
            Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => {
                self.on_estimate(estimate.as_u64());
            }
            _ => {}
        }
    }

    /// Passes a change of what our controller has for the encoder on.
    fn follow_ours(&mut self) {
        let Control::Ours(control) = &mut self.control else { return };
        let target_bps = control.target().as_bps();
        self.encoder.follow(control.media_bitrate().as_bps(), control.wants_frame());
        if target_bps != self.target_bps {
            self.reporter.target(self.target_bps, target_bps);
            self.target_bps = target_bps;
        }
    }

    fn on_estimate(&mut self, estimate_bps: u64) {
        let target_bps = estimate_bps.clamp(self.settings.min_bitrate, self.settings.max_bitrate);
        if target_bps != self.target_bps {
            self.reporter.target(self.target_bps, target_bps);
            self.target_bps = target_bps;
            self.encoder.say(&format!("rate {}", self.encoder_rate()));
        }
    }

    fn encoder_rate(&self) -> u64 {
        encoder::rate(self.target_bps, self.settings.frame_rate)
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
    fn receive(&mut self, line: &str) -> anyhow::Result<bool> {
        match protocol::message(line)? {
            Message::Config => self.reporter.ready(),
            Message::Start => self.offer()?,
            Message::Answer { sdp } => {
                let offered = self.offered.take().context("an answer without an offer")?;
                // Padding of our controllers needs it; without them nothing uses it.
                let answer = SdpAnswer::from_sdp_string(&weir_str0m::with_filler(&sdp))?;
                self.rtc.sdp_api().accept_answer(offered, answer)?;
                self.reporter.mark("described");
            }
            Message::Candidate { candidate } => {
                // Of another kind, such as TCP or a name of mDNS.
                if let Ok(candidate) = Candidate::from_sdp_string(&candidate.candidate) {
                    self.rtc.add_remote_candidate(candidate);
                }
            }
            Message::Stop | Message::Refused => {
                self.reporter.left();
                return Ok(false);
            }
            Message::Offer { .. } | Message::Other => {}
        }
        Ok(true)
    }

    fn offer(&mut self) -> anyhow::Result<()> {
        self.reporter.mark("start");
        let mut changes = self.rtc.sdp_api();
        let mid = changes.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        self.mid = Some(mid);
        let (offer, pending) = changes.apply().context("nothing to offer")?;
        self.offered = Some(pending);
        if let Control::Chosen(algorithm) = self.control {
            let [min, start, max] =
                [self.settings.min_bitrate, self.settings.start_bitrate, self.settings.max_bitrate]
                    .map(OurBitrate::from_bps);
            let controller = algorithm.build(RateLimits::new(min, start, max)?);
            let control = Congestion::new(Instant::now(), mid, controller);
            self.control = Control::Ours(Box::new(control));
        }
        self.reporter.offer(&offer.to_sdp_string());
        Ok(())
    }

    fn send(&mut self, frame: Vec<u8>) -> anyhow::Result<()> {
        let time = MediaTime::from_90khz(self.pictures * 90_000 / self.settings.frame_rate);
        self.pictures += 1;
        if frame.is_empty() {
            return Ok(());
        }
        let number = self.frames;
        self.frames += 1;
        if let Control::Ours(control) = &mut self.control {
            let line = self.mid.and_then(|mid| self.rtc.media(mid));
            let agreed = line.and_then(|line| line.remote_pts().first());
            let Some(&payload_type) = agreed else { return Ok(()) };
            let picture = Picture { payload_type, number, timestamp: time.numer() as u32 };
            let packets = packets::of(&frame, picture);
            control.enqueue(Instant::now(), packets);
            return Ok(());
        }
        let Some(writer) = self.mid.and_then(|mid| self.rtc.writer(mid)) else { return Ok(()) };
        let payload_type = writer.payload_params().next().context("no codec")?.pt();
        writer.write(payload_type, Instant::now(), time, frame)?;
        Ok(())
    }
}
