//! Any order of switches, losses, reorderings and wraps gives a stream whose frames can be decoded,
//! by what its dependency descriptors say.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weir::Timestamp;
use weir_sfu::{DependencyReader, Rewriter, Selection, TargetSelector, Verdict};
use weir_wire::dependency::{Descriptor, Indication, Prediction, Structure};
use weir_wire::rtp::{Element, ExtensionId, PayloadType, RtpHeader, View};

const ID: ExtensionId = ExtensionId::new(2).unwrap();
const PACKETS_PER_FRAME: u16 = 2;
const SOURCES: u8 = 2;

/// A frame of a publisher: its source and its number, unwrapped.
type Frame = (u8, i64);

/// An encoder's stream: pictures of several spatial layers, each of them a frame of two packets.
struct Stream {
    source: u8,
    structure: Structure,
    sequence_number: u16,
    timestamp: u32,
    /// The next frame, unwrapped; its low 16 bits are sent.
    next_frame: i64,
    /// The next picture, counted from the key frame.
    picture: u32,
}

/// A packet on its way in.
#[derive(Clone)]
struct Incoming {
    bytes: Vec<u8>,
    frame: Frame,
    starts_key_frame: bool,
}

impl Stream {
    fn picture(&mut self, is_key: bool) -> Vec<Incoming> {
        if is_key {
            self.picture = 0;
        }
        self.timestamp = self.timestamp.wrapping_add(3_000);
        let spatial_layers = self.structure.chains as u8;
        let mut packets = Vec::new();
        for spatial in 0..spatial_layers {
            let template = self.structure.svc_template(spatial, self.picture).unwrap();
            let mut descriptor = Descriptor::new(template, self.next_frame as u16);
            for part in 0..PACKETS_PER_FRAME {
                descriptor.starts_frame = part == 0;
                descriptor.ends_frame = part + 1 == PACKETS_PER_FRAME;
                let starts_key_frame = self.picture == 0 && spatial == 0 && part == 0;
                descriptor.structure = starts_key_frame.then(|| Box::new(self.structure.clone()));
                let is_last = descriptor.ends_frame && spatial + 1 == spatial_layers;
                let bytes = self.packet(&descriptor, is_last);
                let frame = (self.source, self.next_frame);
                packets.push(Incoming { bytes, frame, starts_key_frame });
            }
            self.next_frame += 1;
        }
        self.picture += 1;
        packets
    }

    fn packet(&mut self, descriptor: &Descriptor, is_last: bool) -> Vec<u8> {
        let header = RtpHeader::new(
            self.source.into(),
            PayloadType::new(96).unwrap(),
            self.sequence_number,
            self.timestamp,
        )
        .with_marker(is_last);
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let data = descriptor.emit(&self.structure);
        let elements = [Element::new(ID, &data).unwrap()];
        let mut bytes = vec![0; header.size_with(&elements)];
        header.emit_with(&elements, &mut bytes);
        bytes.push(7);
        bytes
    }
}

/// What a script does at a picture.
#[derive(Clone, Copy, Debug)]
struct Step {
    want: Option<(u8, u8)>,
    switch_to: Option<u8>,
    is_key: bool,
    lose: Option<usize>,
    delay: Option<(usize, usize)>,
    pause: bool,
}

fn steps(has_losses: bool) -> impl Strategy<Value = Vec<Step>> {
    let chance = 0.15;
    let step = (
        prop::option::weighted(0.2, (0_u8..4, 0_u8..4)),
        prop::option::weighted(0.03, 0..SOURCES),
        prop::bool::weighted(0.05),
        prop::option::weighted(chance, 0_usize..6),
        prop::option::weighted(chance, (0_usize..6, 1_usize..4)),
        prop::bool::weighted(0.02),
    );
    let step = step.prop_map(move |(want, switch_to, is_key, lose, delay, pause)| Step {
        want,
        switch_to,
        is_key,
        lose: lose.filter(|_| has_losses),
        delay: delay.filter(|_| has_losses),
        pause,
    });
    prop::collection::vec(step, 1..150)
}

/// A packet on its way out, by its unwrapped number.
struct Outgoing {
    bytes: Vec<u8>,
    frame: Frame,
    is_fill: bool,
}

struct Server {
    rewriter: Rewriter,
    selector: TargetSelector,
    source: Option<u8>,
    wanted_source: u8,
    out: BTreeMap<i64, Outgoing>,
    last: Option<i64>,
    /// Frames that came before the key frame on which they depend. Their numbers stay free, so the
    /// receiver asks for them again.
    too_early: BTreeSet<Frame>,
}

impl Server {
    fn new() -> Self {
        let mut selector = TargetSelector::new(ID);
        selector.want(Some((3, 3)));
        Self {
            rewriter: Rewriter::new(90_000, false).with_dependency(Some(ID)),
            selector,
            source: None,
            wanted_source: 0,
            out: BTreeMap::new(),
            last: None,
            too_early: BTreeSet::new(),
        }
    }

    /// What a subscriber's part of a server does with a packet.
    fn on_packet(&mut self, now: Timestamp, packet: &Incoming) -> Result<(), TestCaseError> {
        let source = packet.frame.0;
        if packet.starts_key_frame && self.rewriter.is_jump(&packet.bytes, source) {
            self.rewriter.restart();
        }
        if self.source != Some(source) {
            if !packet.starts_key_frame || self.wanted_source != source {
                self.too_early.insert(packet.frame);
                return Ok(());
            }
            self.selector.reset();
            self.source = Some(source);
        }
        let Some(selection) = self.selector.decide(&packet.bytes) else {
            self.too_early.insert(packet.frame);
            return Ok(());
        };
        let mut bytes = packet.bytes.clone();
        match self.rewriter.rewrite(now, &mut bytes, source, selection.keep) {
            Verdict::Forward { sequence_number } => {
                self.mark(&mut bytes, selection);
                self.sent(bytes, sequence_number, packet.frame, false)
            }
            Verdict::Fill { sequence_number } => {
                self.sent(bytes, sequence_number, packet.frame, true)
            }
            Verdict::Lost => {
                self.selector.pause();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn mark(&self, bytes: &mut Vec<u8>, selection: Selection) {
        if selection.ends_picture {
            bytes[1] |= 0x80;
        }
        if selection.announces {
            self.selector.announce(bytes);
        }
    }

    fn sent(
        &mut self,
        bytes: Vec<u8>,
        number: u16,
        frame: Frame,
        is_fill: bool,
    ) -> Result<(), TestCaseError> {
        let number = self.last.map_or(i64::from(number), |last| {
            last + i64::from(number.wrapping_sub(last as u16) as i16)
        });
        self.last = self.last.max(Some(number));
        let before = self.out.insert(number, Outgoing { bytes, frame, is_fill });
        prop_assert!(before.is_none(), "number {} twice", number);
        Ok(())
    }
}

/// What a receiver reads from the packets, in the order of their numbers.
struct Receiver {
    structure: Option<Structure>,
    last_number: Option<u16>,
    /// The outgoing number of each frame that was forwarded.
    numbers: BTreeMap<Frame, u16>,
    /// Frames of the publisher of which a packet was lost or came late.
    damaged: BTreeSet<Frame>,
}

impl Receiver {
    fn read(&mut self, number: i64, packet: &Outgoing) -> Result<(), TestCaseError> {
        let view = View::parse(&packet.bytes).expect("it stays RTP");
        let data = view.element(ID).expect("the descriptor stays");
        let mut descriptor = Descriptor::parse(data, self.structure.as_ref())
            .map_err(|error| TestCaseError::fail(format!("{number}: {error}")))?;
        if let Some(structure) = descriptor.structure.take() {
            self.structure = Some(*structure);
        }
        let structure = self.structure.as_ref();
        let structure = structure.ok_or_else(|| TestCaseError::fail("no key frame first"))?;
        let found = descriptor.frame(structure);
        let found = found.map_err(|error| TestCaseError::fail(format!("{number}: {error}")))?;
        let out = descriptor.frame_number;
        let step = out.wrapping_sub(self.last_number.unwrap_or(out));
        prop_assert!(step < 1 << 15, "the frame number goes back at {}", number);
        self.last_number = Some(out);
        let known = *self.numbers.entry(packet.frame).or_insert(out);
        prop_assert_eq!(known, out, "a frame has one number: {}", number);
        let (source, frame) = packet.frame;
        for &back in found.references.differences() {
            let needed = (source, frame - i64::from(back));
            match self.numbers.get(&needed) {
                Some(&other) => prop_assert_eq!(out.wrapping_sub(back), other),
                None => prop_assert!(
                    self.damaged.contains(&needed),
                    "frame {:?} needs {:?}, which was left out",
                    packet.frame,
                    needed
                ),
            }
        }
        if let Some(active) = descriptor.active_targets {
            let mut is_in_one = false;
            for target in 0..structure.targets {
                let is_active = active >> target & 1 == 1;
                let is_part = found.indications.get(target) != Indication::NotPresent;
                is_in_one |= is_active && is_part;
            }
            prop_assert!(is_in_one, "a frame of no active target is sent: {}", number);
        }
        Ok(())
    }
}

fn streams(modes: [(u8, u8, bool); 2], starts: [u16; 2]) -> Vec<Stream> {
    let mut streams = Vec::new();
    for (source, (spatial, temporal, is_always)) in modes.into_iter().enumerate() {
        let prediction = if is_always { Prediction::Always } else { Prediction::AtKeyFrames };
        let mut structure = Structure::svc(spatial, temporal, prediction).unwrap();
        structure.first_id = starts[source] as u8 & 63;
        streams.push(Stream {
            source: source as u8,
            structure,
            sequence_number: starts[source],
            timestamp: u32::from(starts[source]) << 16,
            next_frame: i64::from(starts[source]) + (1 << 20),
            picture: 0,
        });
    }
    streams
}

struct Outcome {
    server: Server,
    damaged: BTreeSet<Frame>,
}

fn run(streams: &mut [Stream], steps: &[Step]) -> Result<Outcome, TestCaseError> {
    let mut server = Server::new();
    let mut damaged = BTreeSet::new();
    let mut flying: Vec<(usize, Incoming)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let now = Timestamp::from_millis(index as i64 * 33);
        if let Some(want) = step.want {
            server.selector.want(Some(want));
        }
        server.wanted_source = step.switch_to.unwrap_or(server.wanted_source);
        if step.pause {
            server.selector.pause();
            server.rewriter.pause();
        }
        for stream in streams.iter_mut() {
            for (place, packet) in stream.picture(step.is_key || index == 0).into_iter().enumerate()
            {
                let delay = step.delay.filter(|delay| delay.0 == place).map_or(0, |delay| delay.1);
                if step.lose == Some(place) || delay > 0 {
                    damaged.insert(packet.frame);
                }
                if step.lose != Some(place) {
                    flying.push((index + delay, packet));
                }
            }
        }
        let mut rest = Vec::new();
        for (due, packet) in flying.drain(..) {
            if due <= index {
                server.on_packet(now, &packet)?;
            } else {
                rest.push((due, packet));
            }
        }
        flying = rest;
    }
    Ok(Outcome { server, damaged })
}

fn modes() -> impl Strategy<Value = [(u8, u8, bool); 2]> {
    let mode = (1_u8..=3, 1_u8..=3, any::<bool>());
    [mode.clone(), mode]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_lost_a_forwarded_frame_needs_only_forwarded_or_lost_ones(
        modes in modes(),
        starts in any::<[u16; 2]>(),
        steps in steps(true),
    ) {
        let outcome = run(&mut streams(modes, starts), &steps)?;
        let mut receiver = Receiver {
            structure: None,
            last_number: None,
            numbers: BTreeMap::new(),
            damaged: outcome.damaged.union(&outcome.server.too_early).copied().collect(),
        };
        for (number, packet) in &outcome.server.out {
            if !packet.is_fill {
                receiver.read(*number, packet)?;
            }
        }
    }

    #[test]
    fn without_losses_numbers_are_complete_and_each_pictures_end_is_marked(
        modes in modes(),
        starts in any::<[u16; 2]>(),
        steps in steps(false),
    ) {
        let outcome = run(&mut streams(modes, starts), &steps)?;
        let mut receiver = Receiver {
            structure: None,
            last_number: None,
            numbers: BTreeMap::new(),
            damaged: BTreeSet::new(),
        };
        let mut before: Option<(i64, u32, bool)> = None;
        for (&number, packet) in &outcome.server.out {
            receiver.read(number, packet)?;
            let view = View::parse(&packet.bytes).expect("it stays RTP");
            if let Some((last, time, is_end)) = before {
                prop_assert_eq!(number, last + 1);
                prop_assert_eq!(is_end, view.timestamp() != time, "an end is marked: {}", last);
            }
            before = Some((number, view.timestamp(), view.marker()));
        }
        prop_assert!(before.is_none_or(|(_, _, is_end)| is_end));
    }

    #[test]
    fn after_a_key_frame_what_is_wanted_is_forwarded(
        mode in (1_u8..=3, 1_u8..=3, any::<bool>()),
        want in (0_u8..4, 0_u8..4),
        pictures in 0_usize..9,
    ) {
        let mut streams = streams([mode, mode], [65_500, 0]);
        let mut server = Server::new();
        for index in 0..=pictures {
            for packet in streams[0].picture(index == 0) {
                server.on_packet(Timestamp::ZERO, &packet)?;
            }
        }
        server.selector.want(Some(want));
        for packet in streams[0].picture(true) {
            server.on_packet(Timestamp::ZERO, &packet)?;
        }
        let expected = (want.0.min(mode.0 - 1), want.1.min(mode.1 - 1));
        prop_assert_eq!(server.selector.active(), Some(expected));
    }

    #[test]
    fn malformed_descriptors_never_panic(
        data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..40),
        keeps in any::<bool>(),
    ) {
        let mut server = Server::new();
        let mut reader = DependencyReader::new(ID);
        let mut stream = streams([(3, 3, true), (1, 1, true)], [0, 0]).remove(0);
        for packet in stream.picture(true) {
            server.on_packet(Timestamp::ZERO, &packet)?;
        }
        for (number, data) in data.iter().enumerate() {
            let header = RtpHeader::new(0, PayloadType::new(96).unwrap(), number as u16 + 6, 0);
            let elements = [Element::new(ID, data).unwrap()];
            let mut bytes = vec![0; header.size_with(&elements)];
            header.emit_with(&elements, &mut bytes);
            let _ = reader.read(&bytes);
            let _ = server.selector.decide(&bytes);
            server.rewriter.rewrite(Timestamp::ZERO, &mut bytes, 0, keeps);
            server.selector.announce(&mut bytes);
        }
    }
}

#[test]
fn layers_above_the_wanted_one_end_at_once_and_come_back_where_they_may() {
    let mut streams = streams([(3, 3, true), (1, 1, true)], [0, 0]);
    let mut server = Server::new();
    let mut active = Vec::new();
    for index in 0..16 {
        match index {
            2 => server.selector.want(Some((0, 3))),
            6 => server.selector.want(Some((2, 0))),
            9 => server.selector.want(Some((2, 3))),
            _ => {}
        }
        for packet in streams[0].picture(index == 0 || index == 7) {
            server.on_packet(Timestamp::ZERO, &packet).unwrap();
        }
        active.push(server.selector.active().unwrap());
    }
    // Down at the next frame. Up only with the key frame, temporal layers again at the next frame
    // of the lowest one, the fourth after the key frame.
    let low = [(0, 2); 5];
    let base = [(2, 0); 4];
    assert_eq!(active[..2], [(2, 2); 2]);
    assert_eq!(active[2..7], low);
    assert_eq!(active[7..11], base);
    assert_eq!(active[11..], [(2, 2); 5]);
}

// An encoder is made anew for another resolution, and the packets go on.
#[test]
fn frames_that_are_counted_anew_are_forwarded_at_once_and_go_on() {
    for anew in [0, 3, 900, 1_100, 30_000, 40_000, 65_500] {
        let mut streams = streams([(3, 3, true), (1, 1, true)], [1_000, 0]);
        let mut server = Server::new();
        let mut receiver = Receiver {
            structure: None,
            last_number: None,
            numbers: BTreeMap::new(),
            damaged: BTreeSet::new(),
        };
        for index in 0..80 {
            if index == 50 {
                streams[0].next_frame = anew;
            }
            for mut packet in streams[0].picture(index % 50 == 0) {
                if index >= 50 {
                    packet.frame.1 += 1 << 30; // A frame of its own.
                }
                let before = server.out.len();
                server.on_packet(Timestamp::ZERO, &packet).unwrap();
                assert_eq!(server.out.len(), before + 1, "{anew}: {index}");
            }
        }
        for (number, packet) in &server.out {
            receiver.read(*number, packet).unwrap();
        }
    }
}
