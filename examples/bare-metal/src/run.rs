//! Drives a sender and a receiver over the network in virtual time.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::mem::size_of;

use weir::controller::Controller;
use weir::feedback::Ecn;
use weir::{Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, Sender, SenderConfig, is_rtcp};
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};

use crate::heap::{self, Owner, within};
use crate::machine::{self, Console};
use crate::network::Network;

/// The SSRCs of the sender and the receiver.
const SENDER: u32 = 1;
const RECEIVER: u32 = 2;
/// The length of the run.
const END: Timestamp = Timestamp::from_secs(200);
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / 30);
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Packets that the send history keeps: more than 2 s at the highest bitrate.
const HISTORY: usize = 512;
/// Largest RTP packet in bytes.
const PACKET_MAX: usize = 1_200;
/// Bytes of IP and UDP headers.
const OVERHEAD: usize = 28;
const EXTENSIONS: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(ExtensionId::new(1));

/// A controller whose allocations and instructions belong to [`Owner::Controller`].
struct Owned<C>(C);

impl<C> Owned<C> {
    fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
        within(Owner::Controller, || work(&mut self.0))
    }

    fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
        within(Owner::Controller, || work(&self.0))
    }
}

impl<C: Controller> Controller for Owned<C> {
    weir::forward_controller!(change, read);
}

/// The media source and the sender.
struct Device<C> {
    sender: Sender<Owned<C>>,
    next_frame: Timestamp,
    number: u16,
    packets: u32,
}

impl<C: Controller> Device<C> {
    fn new(build: impl FnOnce(RateLimits) -> C) -> Self {
        let kbps = Bitrate::from_kbps;
        // The limits of lund/rmcat-ns3.
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
        let controller = within(Owner::Controller, || Owned(build(limits)));
        let config = SenderConfig::new(SENDER, EXTENSIONS).with_history_capacity(Some(HISTORY));
        let sender = Sender::new(Timestamp::ZERO, controller, config, Box::new(|| 0.5));
        Self { sender, next_frame: Timestamp::ZERO, number: 0, packets: 0 }
    }

    fn next_timeout(&self) -> Timestamp {
        within(Owner::Sender, || self.sender.next_timeout())
            .map_or(self.next_frame, |due| due.min(self.next_frame))
    }

    fn advance(&mut self, now: Timestamp, network: &mut Network) {
        while let Some(rtcp) = within(Owner::Network, || network.take_down(now)) {
            self.sender.on_rtcp(now, &rtcp);
        }
        if self.next_frame <= now {
            self.next_frame += FRAME_INTERVAL;
            let frame = within(Owner::Media, || self.frame(now));
            self.sender.enqueue(now, frame).expect("the packets have the extensions");
        }
        self.sender.on_timeout(now);
        while let Some(rtcp) = self.sender.next_rtcp() {
            within(Owner::Network, || network.send_up(now, rtcp.to_vec()));
        }
        while let Some(packet) = self.sender.next_packet(now) {
            self.packets += 1;
            // In a product the packet leaves here.
            within(Owner::Network, || network.send_up(now, packet.content.clone()));
        }
    }

    /// The packets of a frame that is as large as the target asks for.
    fn frame(&mut self, now: Timestamp) -> Vec<Vec<u8>> {
        let bitrate = self.sender.target().source_bitrate;
        let mut left = (bitrate * FRAME_INTERVAL).as_bytes() as usize;
        let mut packets = Vec::new();
        while left > 0 {
            let size = left.min(PACKET_MAX + OVERHEAD);
            left -= size;
            let payload_type = const { PayloadType::new(96).unwrap() };
            let no_time = AbsSendTime::from_ticks(0);
            let rtp_time = (now.as_millis() * 90) as u32;
            let header = RtpHeader::new(SENDER, payload_type, self.number, rtp_time)
                .with_marker(left == 0)
                .with_transport_sequence_number(
                    EXTENSIONS.transport_sequence_number.map(|id| (id, 0)),
                )
                .with_abs_send_time(EXTENSIONS.abs_send_time.map(|id| (id, no_time)));
            self.number = self.number.wrapping_add(1);
            let mut packet = vec![0; size.saturating_sub(OVERHEAD).max(header.size())];
            header.emit(&mut packet);
            packets.push(packet);
        }
        packets
    }
}

/// Passes what has arrived to the receiver, and its RTCP to the network.
fn receive(now: Timestamp, receiver: &mut Receiver, network: &mut Network) {
    while let Some(datagram) = network.take_up(now) {
        if is_rtcp(&datagram) {
            receiver.on_rtcp(now, &datagram);
        } else {
            // The device sends nothing but RTP and RTCP.
            let _ = receiver.on_rtp(now, &datagram, Ecn::NotEct);
        }
    }
    receiver.on_timeout(now);
    while let Some(rtcp) = receiver.next_rtcp() {
        network.send_down(now, rtcp.to_vec());
    }
}

fn receiver() -> Receiver {
    let config =
        ReceiverConfig::new(RECEIVER, EXTENSIONS, Feedback::Twcc).with_interval(FEEDBACK_INTERVAL);
    Receiver::new(Timestamp::ZERO, config, Box::new(|| 0.5))
}

/// Runs the sender with a controller and prints the memory that it used. Stack and code include the
/// receiver and the network.
pub fn run<C: Controller>(name: &str, build: impl FnOnce(RateLimits) -> C) {
    let mut network = Network::default();
    let mut receiver = receiver();
    let mut device = within(Owner::Sender, || Device::new(build));
    let mut now = Timestamp::ZERO;
    while now < END {
        within(Owner::Sender, || device.advance(now, &mut network));
        receive(now, &mut receiver, &mut network);
        let due = device.next_timeout().min(receiver.next_timeout());
        now = network.next_event().map_or(due, |event| event.min(due)).max(now);
    }
    let _ = writeln!(
        Console,
        "controller {name} packets {} controller_bytes {} controller_heap {} sender_bytes {} \
         sender_heap {} media_heap {} stack {}",
        device.packets,
        size_of::<C>(),
        heap::peak(Owner::Controller),
        size_of::<Sender<C>>() - size_of::<C>(),
        heap::peak(Owner::Sender),
        heap::peak(Owner::Media),
        machine::stack_used(),
    );
}

/// Runs the receiver and the network alone, which get one packet in each frame interval.
pub fn run_without_sender() {
    let mut network = Network::default();
    let mut receiver = receiver();
    let (mut now, mut packets) = (Timestamp::ZERO, 0_u16);
    while now < END {
        let header = RtpHeader::new(SENDER, const { PayloadType::new(96).unwrap() }, packets, 0)
            .with_transport_sequence_number(
                EXTENSIONS.transport_sequence_number.map(|id| (id, packets)),
            );
        let mut packet = vec![0; PACKET_MAX];
        header.emit(&mut packet);
        network.send_up(now, packet);
        receive(now, &mut receiver, &mut network);
        while network.take_down(now).is_some() {}
        packets += 1;
        now += FRAME_INTERVAL;
    }
    let _ = writeln!(Console, "controller none packets {packets}");
}
