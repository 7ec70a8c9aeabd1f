//! One connection of str0m: its socket, its clock and its events.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use str0m::net::{Protocol, Receive};
use str0m::{Event, IceConnectionState, Input, Output, Rtc, RtcError};

/// A connection with what it waits for.
pub struct Peer {
    pub rtc: Rtc,
    /// When str0m wants to be woken up.
    pub deadline: Instant,
    pub is_connected: bool,
    pub is_over: bool,
    local: SocketAddr,
}

impl Peer {
    pub fn new(now: Instant, rtc: Rtc, local: SocketAddr) -> Self {
        Self { rtc, deadline: now, is_connected: false, is_over: false, local }
    }

    /// Takes a datagram if it belongs to this connection. Returns whether it did.
    pub fn on_datagram(&mut self, now: Instant, source: SocketAddr, bytes: &[u8]) -> bool {
        let Ok(contents) = bytes.try_into() else { return false };
        let receive = Receive { proto: Protocol::Udp, source, destination: self.local, contents };
        let input = Input::Receive(now, receive);
        if !self.rtc.accepts(&input) {
            return false;
        }
        let result = self.rtc.handle_input(input);
        self.note(result);
        true
    }

    pub fn on_timeout(&mut self, now: Instant) {
        let result = self.rtc.handle_input(Input::Timeout(now));
        self.note(result);
    }

    /// Sends what is to be sent, and returns the events that are the host's.
    pub fn poll(&mut self, socket: &UdpSocket) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.is_over {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(deadline)) => {
                    self.deadline = deadline;
                    break;
                }
                Ok(Output::Transmit(datagram)) => {
                    // A link that is down refuses datagrams, which is a loss and not an error.
                    let _ = socket.send_to(&datagram.contents, datagram.destination);
                }
                Ok(Output::Event(Event::Connected)) => self.is_connected = true,
                Ok(Output::Event(Event::IceConnectionStateChange(
                    IceConnectionState::Disconnected,
                ))) => self.is_over = true,
                Ok(Output::Event(event)) => events.push(event),
                Err(error) => self.note(Err(error)),
            }
        }
        events
    }

    fn note(&mut self, result: Result<(), RtcError>) {
        if let Err(error) = result {
            eprintln!("a connection ends: {error}");
            self.is_over = true;
        }
    }
}
