//! The signalling of one call: two seats, the messages between them, and the rules that keep them.
//!
//! Whoever knows the token can take a seat, so a peer is not trusted. What it may say is bounded in
//! length, in number and in order; one that breaks a rule is dropped with its cause in an event, and
//! the lab and the other calls go on.

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::sync::mpsc;

use crate::bridge::{user_fragment, without_candidates};
use crate::message::{
    CallSettings, LabMessage, PageConfig, Peer, PeerMessage, SetupTimes, printable,
};
use crate::stats::StatsReport;

/// The longest message of a peer: a session description with many codecs is some 10 KiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// The longest of all messages that are no session description. A report is some 4 KiB.
const REPORT_BYTES_MAX: usize = 16 * 1024;
/// Messages that a peer may send at once: its candidates, some tens at the very most.
const MESSAGES_AT_ONCE: u64 = 200;
/// And beyond these in each second: ten times the reports that it is asked for.
const MESSAGES_PER_SECOND: u64 = 20;
/// Messages that may wait for a peer: its partner's candidates.
const OUTBOX_MESSAGES: usize = 256;
/// Until a full channel of events is tried again with one that must not be lost.
const EVENT_RETRY: Duration = Duration::from_millis(10);

/// Something that a peer did.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When the lab learned of it.
    pub at: Instant,
    /// The index of the call.
    pub call: usize,
    /// Who.
    pub peer: Peer,
    /// What.
    pub kind: EventKind,
}

/// What a peer did.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// It opened the page, and its camera delivers where it sends.
    Joined,
    /// It described its side of a session over a bridge: the user fragment of its connectivity checks.
    Described(String),
    /// Media can flow.
    Connected(SetupTimes),
    /// It shows the first frame of the other peer: ms since its page was opened.
    Playing(f64),
    /// It reported its statistics.
    Stats(Box<StatsReport>),
    /// It gave up, or was dropped; the cause is one line.
    Failed(String),
    /// Its connection to the lab has ended.
    Left,
}

/// One call, as all its connections share it.
#[derive(Debug)]
pub(crate) struct Call {
    index: usize,
    settings: CallSettings,
    events: SyncSender<Event>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The lab lets it begin.
    released: bool,
    seats: [Seat; 2],
}

/// What the lab knows of one peer.
#[derive(Debug, Default)]
struct Seat {
    /// A seat is taken once in a call: a page that is opened again is not the peer that left.
    taken: bool,
    ready: bool,
    /// It has described its side of the session.
    described: bool,
    connected: bool,
    playing: bool,
    /// The address of this machine at which its page reached it.
    reached: Option<IpAddr>,
    outbox: Option<mpsc::Sender<LabMessage>>,
}

/// Why a peer is dropped: one line, safe to print.
pub(crate) type Violation = String;

impl Call {
    pub(crate) fn new(index: usize, settings: CallSettings, events: SyncSender<Event>) -> Self {
        Self { index, settings, events, state: Mutex::default() }
    }

    /// Lets the call begin as soon as both peers are ready.
    pub(crate) fn release(&self) {
        let begins = {
            let mut state = self.state();
            !std::mem::replace(&mut state.released, true)
                && state.seats.iter().all(|seat| seat.ready)
        };
        if begins {
            self.tell_both(&LabMessage::Start);
        }
    }

    /// Asks both peers to report a last time and to end the call.
    pub(crate) fn stop(&self) {
        self.tell_both(&LabMessage::Stop);
    }

    fn tell_both(&self, message: &LabMessage) {
        for peer in Peer::ALL {
            // A peer that is gone or does not read is known from its own connection.
            let _ = self.send(peer, message.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the seats")
    }

    fn event(&self, peer: Peer, kind: EventKind) -> Event {
        Event { at: Instant::now(), call: self.index, peer, kind }
    }

    fn emit(&self, peer: Peer, kind: EventKind) -> Result<(), Violation> {
        let sent = self.events.try_send(self.event(peer, kind));
        sent.map_err(|_| format!("{peer} sends faster than the lab reads"))
    }

    /// Emits an event that must not be lost, however far behind the lab is.
    async fn announce(&self, peer: Peer, kind: EventKind) {
        let mut event = self.event(peer, kind);
        while let Err(TrySendError::Full(unsent)) = self.events.try_send(event) {
            event = unsent;
            tokio::time::sleep(EVENT_RETRY).await;
        }
    }

    /// Tells the lab why the call cannot go on.
    pub(crate) async fn fail(&self, peer: Peer, cause: String) {
        self.announce(peer, EventKind::Failed(cause)).await;
    }

    fn send(&self, peer: Peer, message: LabMessage) -> Result<(), Violation> {
        let state = self.state();
        let Some(outbox) = &state.seats[peer.index()].outbox else {
            return Err(format!("{peer} is not there"));
        };
        outbox.try_send(message).map_err(|_| format!("{peer} does not read its messages"))
    }

    /// Gives the seat of `peer` to a connection; its messages will come out of the receiver.
    pub(crate) fn join(
        &self,
        peer: Peer,
        reached: Option<IpAddr>,
    ) -> Result<mpsc::Receiver<LabMessage>, Violation> {
        let (outbox, messages) = mpsc::channel(OUTBOX_MESSAGES);
        {
            let seat = &mut self.state().seats[peer.index()];
            if seat.taken {
                return Err(format!("{peer} has joined this call already"));
            }
            *seat = Seat { taken: true, reached, outbox: Some(outbox), ..Seat::default() };
        }
        self.send(peer, LabMessage::Config(Box::new(PageConfig::of(&self.settings, peer))))?;
        Ok(messages)
    }

    pub(crate) async fn leave(&self, peer: Peer) {
        self.state().seats[peer.index()].outbox = None;
        self.announce(peer, EventKind::Left).await;
    }

    pub(crate) fn on_message(&self, peer: Peer, message: PeerMessage) -> Result<(), Violation> {
        match message {
            PeerMessage::Ready => self.on_ready(peer),
            PeerMessage::Offer { sdp } if peer == Peer::A => {
                let sdp = self.described(peer, sdp)?;
                self.relay(peer, LabMessage::Offer { sdp })
            }
            PeerMessage::Answer { sdp } if peer == Peer::B => {
                let sdp = self.described(peer, sdp)?;
                self.relay(peer, LabMessage::Answer { sdp })
            }
            PeerMessage::Offer { .. } => {
                Err(format!("{peer} sent an offer, which is not its turn"))
            }
            PeerMessage::Answer { .. } => {
                Err(format!("{peer} sent an answer, which is not its turn"))
            }
            PeerMessage::Candidate { candidate } => match self.settings.bridge {
                None => self.relay(peer, LabMessage::Candidate { candidate }),
                // Whatever its own addresses are, the other one reaches it over the bridge.
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
            PeerMessage::Failed { cause } => {
                self.emit(peer, EventKind::Failed(format!("{peer}: {}", printable(&cause))))
            }
        }
    }

    /// Where a peer sends its media: the socket of the bridge, at the address that its page came to if the
    /// socket is at all addresses of this machine.
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
        flag: fn(&mut Seat) -> &mut bool,
    ) -> Result<(), Violation> {
        let mut state = self.state();
        match std::mem::replace(flag(&mut state.seats[peer.index()]), true) {
            true => Err(format!("{peer} said twice that it {what}")),
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
            self.tell_both(&LabMessage::Start);
        }
        Ok(())
    }

    /// Takes the one description of a peer. A bridge learns from it whom to let in, and stands in for the
    /// addresses that it names.
    fn described(&self, peer: Peer, sdp: String) -> Result<String, Violation> {
        self.once(peer, "describes its session", |seat| &mut seat.described)?;
        if self.settings.bridge.is_none() {
            return Ok(sdp);
        }
        let Some(user) = user_fragment(&sdp) else {
            return Err(format!("{peer} describes a session without a=ice-ufrag"));
        };
        self.emit(peer, EventKind::Described(user.into()))?;
        Ok(without_candidates(&sdp))
    }

    /// Passes a message of `from` to the other peer.
    fn relay(&self, from: Peer, message: LabMessage) -> Result<(), Violation> {
        let Err(cause) = self.send(from.other(), message) else { return Ok(()) };
        // The fault is the other peer's, or that it has left: the one who speaks stays.
        self.emit(from.other(), EventKind::Failed(cause))
    }

    /// Serves a connection that wants the seat of `peer`, to its end. It reached this machine at `address`.
    pub(crate) async fn serve(&self, peer: Peer, address: Option<IpAddr>, mut socket: WebSocket) {
        let messages = match self.join(peer, address) {
            Ok(messages) => messages,
            Err(cause) => return refuse(socket, cause).await,
        };
        if let Err(cause) = self.converse(peer, &mut socket, messages).await {
            // Neither a slow lab nor a peer that does not listen keeps the other from knowing.
            let failed = EventKind::Failed(cause.clone());
            tokio::join!(self.announce(peer, failed), refuse(socket, cause));
        }
        self.leave(peer).await;
    }

    /// Carries messages both ways until the peer leaves (`Ok`) or breaks a rule.
    async fn converse(
        &self,
        peer: Peer,
        socket: &mut WebSocket,
        mut messages: mpsc::Receiver<LabMessage>,
    ) -> Result<(), Violation> {
        let joined = Instant::now();
        let mut heard = 0;
        loop {
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return Ok(()) };
                    if socket.send(text(&message)).await.is_err() {
                        return Ok(());
                    }
                }
                incoming = socket.recv() => {
                    heard += 1;
                    if heard > MESSAGES_AT_ONCE + MESSAGES_PER_SECOND * joined.elapsed().as_secs() {
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
        format!("{peer} sent a message that is not of the protocol: {error}")
    })?;
    let describes = matches!(message, PeerMessage::Offer { .. } | PeerMessage::Answer { .. });
    if text.len() > REPORT_BYTES_MAX && !describes {
        return Err(format!(
            "{peer} sent a message of {} B; {REPORT_BYTES_MAX} may be",
            text.len()
        ));
    }
    Ok(message)
}

/// Says why, and closes. A peer that does not listen is closed all the same.
async fn refuse(mut socket: WebSocket, cause: Violation) {
    let _ = socket.send(text(&LabMessage::Refused { cause })).await;
    let frame = CloseFrame { code: close_code::POLICY, reason: "refused".into() };
    let _ = socket.send(Message::Close(Some(frame))).await;
}

fn text(message: &LabMessage) -> Message {
    let json = serde_json::to_string(message).expect("a message has only text keys");
    Message::Text(json.into())
}
