//! The signalling of one call: its two seats, the messages between them, and the protocol rules.
//!
//! Anyone who knows the token can take a seat, so peers are not trusted. Their messages are limited
//! in length, number and order. A peer that breaks a rule is dropped, with the cause in an event.
//! The lab and the other calls continue.

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::sync::mpsc;
use weir_record::calls::stats::StatsReport;

use crate::measure::quality::picture::ReceivedPicture;
use crate::measure::quality::sighting::{FrameSighting, Place};
use crate::measure::sound::recording::{SoundChunk, Tap};
use crate::message::{
    CallSettings, LabMessage, PageConfig, Peer, PeerMessage, SetupTimes, TargetChange, printable,
};
use crate::peers::bridge::{user_fragment, without_candidates};
use crate::peers::ims::{PageIms, SipMessage};

/// Maximum size of a peer's message. A session description with many codecs has about 10 KiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Maximum size of messages other than session descriptions. A report has about 4 KiB.
const REPORT_BYTES_MAX: usize = 16 * 1024;
/// Number of messages that a peer may send at once. Its candidates are at most some tens.
const MESSAGES_AT_ONCE: u64 = 200;
/// Number of further messages per second: ten times the requested rate of reports.
const MESSAGES_PER_SECOND: u64 = 20;
/// The same for pictures: twice the rate at which a page sends them.
const PICTURES_AT_ONCE: u64 = 8;
const PICTURES_PER_SECOND: u64 = 4;
/// The same for recorded sound.
const SOUNDS_AT_ONCE: u64 = 200;
const SOUNDS_PER_SECOND: u64 = 4;
/// Number of messages that may wait for a peer, mainly the other peer's candidates.
const OUTBOX_MESSAGES: usize = 256;
/// Retry interval for an event that must not be lost, while the channel of events is full.
const EVENT_RETRY: Duration = Duration::from_millis(10);

/// An event from a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When the lab received it.
    pub at: Instant,
    /// The index of the call.
    pub call: usize,
    /// The peer.
    pub peer: Peer,
    /// The kind of event.
    pub kind: EventKind,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The page is open, and its camera delivers pictures if it sends video.
    Joined,
    /// The peer sent its session description, in a call over a bridge. Contains the user fragment
    /// of its connectivity checks.
    Described(String),
    /// Media can flow.
    Connected(SetupTimes),
    /// It displays the first frame of the other peer. Contains the ms since its page was opened.
    Playing(f64),
    /// It reported its statistics.
    Stats(Box<StatsReport>),
    /// Frames passed a place of its page.
    Frames(Place, Vec<FrameSighting>),
    /// A whole picture that it received.
    Picture(Box<ReceivedPicture>),
    /// Sound that it recorded there.
    Sound(Tap, Box<SoundChunk>),
    /// It sent or received a message of SIP.
    Signalled(Box<SipMessage>),
    /// The controller of a pipeline changed its target.
    Target(Box<TargetChange>),
    /// The peer gave up or was dropped. Contains the cause in one line.
    Failed(String),
    /// Its connection to the lab has ended.
    Left,
}

/// One call: the state shared by its connections.
#[derive(Debug)]
pub(crate) struct Call {
    index: usize,
    settings: CallSettings,
    events: SyncSender<Event>,
    state: Mutex<Rendezvous>,
}

#[derive(Debug, Default)]
struct Rendezvous {
    /// Whether the lab allows the call to begin.
    released: bool,
    seats: [Seat; 2],
}

/// State of one peer.
#[derive(Debug, Default)]
struct Seat {
    /// Whether the seat was ever taken. It can be taken only once: a page that is opened again is
    /// not the peer that left.
    taken: bool,
    ready: bool,
    /// Whether the peer has sent its session description.
    described: bool,
    connected: bool,
    playing: bool,
    /// Whether its connection for pictures was opened.
    sends_pictures: bool,
    /// Whether its connections for the sound of microphone and speaker were opened.
    sends_sound: [bool; 2],
    /// The address of this machine that the peer's page connected to.
    reached: Option<IpAddr>,
    outbox: Option<mpsc::Sender<LabMessage>>,
}

/// Why a peer is dropped: one line, safe to print.
pub(crate) type Violation = String;

impl Call {
    pub(crate) fn new(index: usize, settings: CallSettings, events: SyncSender<Event>) -> Self {
        Self { index, settings, events, state: Mutex::default() }
    }

    /// The IMS of a peer.
    pub(crate) fn ims(&self, peer: Peer) -> Option<&PageIms> {
        self.settings.ims.as_ref().map(|pages| &pages[peer.index()])
    }

    /// The pictures of the camera that its pages draw.
    pub(crate) fn drawn_camera(&self) -> Option<Arc<[u8]>> {
        self.settings.drawn.as_ref().map(|drawn| drawn.jpegs.clone())
    }

    /// Lets the call begin as soon as both peers are ready.
    pub(crate) fn release(&self) {
        let begins = {
            let mut state = self.state();
            !std::mem::replace(&mut state.released, true)
                && state.seats.iter().all(|seat| seat.ready)
        };
        if begins {
            self.send_both(&LabMessage::Start);
        }
    }

    /// Asks both peers to report a last time and to end the call.
    pub(crate) fn stop(&self) {
        self.send_both(&LabMessage::Stop);
    }

    /// Asks the offerer to restart ICE.
    pub(crate) fn restart(&self) {
        // If the peer is gone or does not read, its own connection reports that.
        let _ = self.send(self.settings.offerer, LabMessage::Restart);
    }

    fn send_both(&self, message: &LabMessage) {
        for peer in Peer::ALL {
            // If the peer is gone or does not read, its own connection reports that.
            let _ = self.send(peer, message.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, Rendezvous> {
        self.state.lock().expect("no code panics while it holds the seats")
    }

    fn event(&self, peer: Peer, kind: EventKind) -> Event {
        Event { at: Instant::now(), call: self.index, peer, kind }
    }

    pub(crate) fn emit(&self, peer: Peer, kind: EventKind) -> Result<(), Violation> {
        let sent = self.events.try_send(self.event(peer, kind));
        sent.map_err(|_| format!("{peer} sends faster than the lab can read"))
    }

    /// Emits an event that must not be lost, even if the lab is slow to read events.
    async fn emit_reliably(&self, peer: Peer, kind: EventKind) {
        let mut event = self.event(peer, kind);
        while let Err(TrySendError::Full(unsent)) = self.events.try_send(event) {
            event = unsent;
            tokio::time::sleep(EVENT_RETRY).await;
        }
    }

    /// Reports to the lab why the call cannot continue.
    pub(crate) async fn fail(&self, peer: Peer, cause: String) {
        self.emit_reliably(peer, EventKind::Failed(cause)).await;
    }

    fn send(&self, peer: Peer, message: LabMessage) -> Result<(), Violation> {
        let state = self.state();
        let Some(outbox) = &state.seats[peer.index()].outbox else {
            return Err(format!("{peer} is not connected"));
        };
        outbox.try_send(message).map_err(|_| format!("{peer} does not read its messages"))
    }

    /// Gives the seat of `peer` to a connection. Messages for it arrive at the returned receiver.
    pub(crate) fn join(
        &self,
        peer: Peer,
        reached: Option<IpAddr>,
    ) -> Result<mpsc::Receiver<LabMessage>, Violation> {
        let (outbox, messages) = mpsc::channel(OUTBOX_MESSAGES);
        {
            let seat = &mut self.state().seats[peer.index()];
            if seat.taken {
                return Err(format!("{peer} has already joined this call"));
            }
            *seat = Seat { taken: true, reached, outbox: Some(outbox), ..Seat::default() };
        }
        self.send(peer, LabMessage::Config(Box::new(PageConfig::of(&self.settings, peer))))?;
        Ok(messages)
    }

    pub(crate) async fn leave(&self, peer: Peer) {
        self.state().seats[peer.index()].outbox = None;
        self.emit_reliably(peer, EventKind::Left).await;
    }

    pub(crate) fn on_message(&self, peer: Peer, message: PeerMessage) -> Result<(), Violation> {
        match message {
            PeerMessage::Ready => self.on_ready(peer),
            PeerMessage::Offer { sdp } if peer == self.settings.offerer => {
                let sdp = self.described(peer, sdp)?;
                self.relay(peer, LabMessage::Offer { sdp })
            }
            PeerMessage::Answer { sdp } if peer != self.settings.offerer => {
                let sdp = self.described(peer, sdp)?;
                self.relay(peer, LabMessage::Answer { sdp })
            }
            PeerMessage::Offer { .. } => {
                Err(format!("{peer} sent an offer, but it is not its turn"))
            }
            PeerMessage::Answer { .. } => {
                Err(format!("{peer} sent an answer, but it is not its turn"))
            }
            PeerMessage::Candidate { candidate } => match self.settings.bridge {
                None => self.relay(peer, LabMessage::Candidate { candidate }),
                // The other peer reaches it only over the bridge, so its own addresses are
                // replaced.
                Some(bridge) => {
                    let candidate = candidate.at(self.towards(peer.other(), bridge));
                    self.relay(peer, LabMessage::Candidate { candidate })
                }
            },
            PeerMessage::Connected { setup } => {
                self.once(peer, "is connected", |seat| &mut seat.connected)?;
                self.emit(peer, EventKind::Connected(setup))
            }
            PeerMessage::Playing { first_frame } => {
                self.once(peer, "shows its first frame", |seat| &mut seat.playing)?;
                self.emit(peer, EventKind::Playing(first_frame))
            }
            PeerMessage::Stats { report } => self.emit(peer, EventKind::Stats(report)),
            PeerMessage::Frames { .. } if !self.settings.quality => {
                Err(format!("{peer} tells of frames, but nobody asked"))
            }
            PeerMessage::Frames { place, frames } => {
                self.emit(peer, EventKind::Frames(place, frames))
            }
            PeerMessage::Sip { message } => self.emit(peer, EventKind::Signalled(message)),
            PeerMessage::Failed { cause } => {
                self.emit(peer, EventKind::Failed(format!("{peer}: {}", printable(&cause))))
            }
        }
    }

    /// The address to which a peer sends its media: the socket of the bridge. If that socket is
    /// bound to all addresses of this machine, the address that the peer's page connected to.
    fn towards(&self, peer: Peer, bridge: [SocketAddr; 2]) -> SocketAddr {
        let socket = bridge[peer.index()];
        match self.state().seats[peer.index()].reached {
            Some(reached) if socket.ip().is_unspecified() => {
                SocketAddr::new(reached, socket.port())
            }
            _ => socket,
        }
    }

    /// Sets a flag of a peer that it can set only once.
    fn once(
        &self,
        peer: Peer,
        what: &str,
        flag: impl FnOnce(&mut Seat) -> &mut bool,
    ) -> Result<(), Violation> {
        let mut state = self.state();
        match std::mem::replace(flag(&mut state.seats[peer.index()]), true) {
            true => Err(format!("{peer} reported twice that it {what}")),
            false => Ok(()),
        }
    }

    fn on_ready(&self, peer: Peer) -> Result<(), Violation> {
        self.once(peer, "is ready", |seat| &mut seat.ready)?;
        let begins = {
            let state = self.state();
            state.released && state.seats.iter().all(|seat| seat.ready)
        };
        self.emit(peer, EventKind::Joined)?;
        if begins {
            self.send_both(&LabMessage::Start);
        }
        Ok(())
    }

    /// Takes the session description of a peer, which may send only one, unless ICE may restart.
    /// With a bridge, it provides the user fragment of valid checks, and loses its candidates.
    fn described(&self, peer: Peer, sdp: String) -> Result<String, Violation> {
        let again = std::mem::replace(&mut self.state().seats[peer.index()].described, true);
        if again && !self.settings.restarts {
            return Err(format!("{peer} reported twice that it describes its session"));
        }
        if self.settings.bridge.is_none() {
            return Ok(sdp);
        }
        let Some(user) = user_fragment(&sdp) else {
            return Err(format!("{peer} describes a session without a=ice-ufrag"));
        };
        self.emit(peer, EventKind::Described(user.into()))?;
        Ok(without_candidates(&sdp))
    }

    /// Forwards a message of `from` to the other peer.
    fn relay(&self, from: Peer, message: LabMessage) -> Result<(), Violation> {
        let Err(cause) = self.send(from.other(), message) else { return Ok(()) };
        // The other peer is at fault or has left, so the sending peer stays.
        self.emit(from.other(), EventKind::Failed(cause))
    }

    /// Serves a connection that requests the seat of `peer`, until it ends. It was made to
    /// `address`.
    pub(crate) async fn serve(&self, peer: Peer, address: Option<IpAddr>, mut socket: WebSocket) {
        let messages = match self.join(peer, address) {
            Ok(messages) => messages,
            Err(cause) => return refuse(socket, cause).await,
        };
        if let Err(cause) = self.exchange_messages(peer, &mut socket, messages).await {
            // Report to both at once, so that neither a slow lab nor a peer that does not read
            // delays the other.
            let failed = EventKind::Failed(cause.clone());
            tokio::join!(self.emit_reliably(peer, failed), refuse(socket, cause));
        }
        self.leave(peer).await;
    }

    /// Takes the pictures that a peer received, until it ends the connection or breaks a rule. They
    /// have a connection of their own, so that they delay no report.
    pub(crate) async fn serve_pictures(&self, peer: Peer, mut socket: WebSocket) {
        if let Err(cause) = self.take_pictures(peer, &mut socket).await {
            let failed = EventKind::Failed(cause.clone());
            tokio::join!(self.emit_reliably(peer, failed), refuse(socket, cause));
        }
    }

    async fn take_pictures(&self, peer: Peer, socket: &mut WebSocket) -> Result<(), Violation> {
        if !self.settings.quality {
            return Err(format!("{peer} sends pictures, but nobody asked"));
        }
        self.once(peer, "sends pictures", |seat| &mut seat.sends_pictures)?;
        let opened = Instant::now();
        let mut received = 0;
        while let Some(Ok(message)) = socket.recv().await {
            let Message::Binary(bytes) = message else { continue };
            received += 1;
            if received > PICTURES_AT_ONCE + PICTURES_PER_SECOND * opened.elapsed().as_secs() {
                return Err(format!(
                    "{peer} sends more than {PICTURES_PER_SECOND} pictures a second"
                ));
            }
            let picture = ReceivedPicture::read(&bytes)
                .map_err(|error| format!("{peer} sent no picture: {}", printable(&error)))?;
            self.emit_reliably(peer, EventKind::Picture(Box::new(picture))).await;
        }
        Ok(())
    }

    /// Takes the sound that a peer records at a tap, until it ends the connection or breaks a rule.
    pub(crate) async fn serve_sound(&self, peer: Peer, tap: Tap, mut socket: WebSocket) {
        if let Err(cause) = self.take_sound(peer, tap, &mut socket).await {
            let failed = EventKind::Failed(cause.clone());
            tokio::join!(self.emit_reliably(peer, failed), refuse(socket, cause));
        }
    }

    async fn take_sound(
        &self,
        peer: Peer,
        tap: Tap,
        socket: &mut WebSocket,
    ) -> Result<(), Violation> {
        if !self.settings.quality {
            return Err(format!("{peer} sends sound, but nobody asked"));
        }
        self.once(peer, "sends this sound", |seat| match tap {
            Tap::Microphone => &mut seat.sends_sound[0],
            Tap::Speaker => &mut seat.sends_sound[1],
        })?;
        let opened = Instant::now();
        let mut received = 0;
        while let Some(Ok(message)) = socket.recv().await {
            let Message::Binary(bytes) = message else { continue };
            received += 1;
            if received > SOUNDS_AT_ONCE + SOUNDS_PER_SECOND * opened.elapsed().as_secs() {
                return Err(format!("{peer} sends more than {SOUNDS_PER_SECOND} sounds a second"));
            }
            let chunk = SoundChunk::read(&bytes)
                .map_err(|error| format!("{peer} sent no sound: {}", printable(&error)))?;
            self.emit_reliably(peer, EventKind::Sound(tap, Box::new(chunk))).await;
        }
        Ok(())
    }

    /// Carries messages in both directions until the peer leaves (`Ok`) or breaks a rule.
    async fn exchange_messages(
        &self,
        peer: Peer,
        socket: &mut WebSocket,
        mut messages: mpsc::Receiver<LabMessage>,
    ) -> Result<(), Violation> {
        let joined = Instant::now();
        let mut received = 0;
        loop {
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return Ok(()) };
                    if socket.send(text(&message)).await.is_err() {
                        return Ok(());
                    }
                }
                incoming = socket.recv() => {
                    received += 1;
                    let more = MESSAGES_PER_SECOND * joined.elapsed().as_secs();
                    if received > MESSAGES_AT_ONCE + more {
                        return Err(format!(
                            "{peer} sends more than {MESSAGES_PER_SECOND} messages a second"
                        ));
                    }
                    match incoming {
                        None | Some(Ok(Message::Close(_))) => return Ok(()),
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Text(text))) => self.on_message(peer, read(peer, &text)?)?,
                        Some(Ok(Message::Binary(_))) => {
                            return Err(format!(
                                "{peer} sent a binary message; the protocol has none"
                            ));
                        }
                        Some(Err(error)) => {
                            let error = printable(&error.to_string());
                            return Err(format!("{peer} broke the connection: {error}"));
                        }
                    }
                }
            }
        }
    }
}

fn read(peer: Peer, text: &str) -> Result<PeerMessage, Violation> {
    let message = serde_json::from_str(text).map_err(|error| {
        let error = printable(&error.to_string());
        format!("{peer} sent a message that is not part of the protocol: {error}")
    })?;
    let describes = matches!(
        message,
        PeerMessage::Offer { .. } | PeerMessage::Answer { .. } | PeerMessage::Sip { .. }
    );
    if text.len() > REPORT_BYTES_MAX && !describes {
        return Err(format!(
            "{peer} sent a message of {} B; the limit is {REPORT_BYTES_MAX} B",
            text.len()
        ));
    }
    Ok(message)
}

/// Sends the cause and closes the connection, even if the peer does not read.
async fn refuse(mut socket: WebSocket, cause: Violation) {
    let _ = socket.send(text(&LabMessage::Refused { cause })).await;
    let frame = CloseFrame { code: close_code::POLICY, reason: "refused".into() };
    let _ = socket.send(Message::Close(Some(frame))).await;
}

fn text(message: &LabMessage) -> Message {
    let json = serde_json::to_string(message).expect("a message has only text keys");
    Message::Text(json.into())
}
