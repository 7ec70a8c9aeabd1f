use weir::Reason;
use weir::controller::{RateLimits, Settings};
use weir_controllers::LabAlgorithm;
use weir_wire::rtp::View;

use super::*;
use crate::config::{Direction, EncoderVideo, FlowConfig, FlowKind, Repair, Source};

const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const ONE_WAY: TimeDelta = TimeDelta::from_millis(20);
const FILLER: Source = Source::Filler { fps: 25.0, cap: None };
const BROWSER: Source = Source::Encoder { fps: 25.0, cap: None, video: EncoderVideo::DEFAULT };

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn media(algorithm: LabAlgorithm, source: Source) -> Media {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(1_000), kbps(2_500)).unwrap();
    Media {
        controller: algorithm.into(),
        settings: Settings::new(limits),
        sender: None,
        source,
        source_limit: None,
        receiver_clock: Default::default(),
        feedback: vec![(Timestamp::ZERO, Feedback::Twcc)],
        feedback_interval: INTERVAL,
        route_changes: Vec::new(),
        watches: Vec::new(),
        repair: None,
    }
}

/// A flow that starts at zero, over a lossless path with a one-way delay of 20 ms.
struct Bench {
    ends: MediaEnds,
    now: Timestamp,
    in_flight: Vec<(Timestamp, End, Packet)>,
    /// Packets that the sender sent, with their times.
    sent: Vec<(Timestamp, Packet)>,
    /// Packets that the receiver sent.
    answers: Vec<Packet>,
    changes: Vec<Change>,
    rtts: Vec<TimeDelta>,
}

impl Bench {
    fn new(media: Media) -> Self {
        Self::with_pauses(media, Vec::new())
    }

    fn with_pauses(media: Media, pauses: Vec<Range<Timestamp>>) -> Self {
        let flow = FlowConfig {
            name: "media".to_owned(),
            direction: Direction::Up,
            attachment: None,
            hops: 0..1,
            access_delay: TimeDelta::ZERO,
            start: Timestamp::ZERO,
            stop: at(100_000),
            pauses,
            call: None,
            quality: false,
            traffic: FlowKind::Media(media.clone()),
        };
        Self {
            ends: MediaEnds::new(&flow, &media, 0, Seed::new(1)),
            now: Timestamp::ZERO,
            in_flight: Vec::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            changes: Vec::new(),
            rtts: Vec::new(),
        }
    }

    /// Handles deadlines in order of time, as the simulator does.
    fn run_until(mut self, end: Timestamp) -> Self {
        loop {
            let due = |end| self.ends.next_deadline(end).expect("media never end");
            let (timer, which) = End::BOTH
                .map(|end| (due(end), end))
                .into_iter()
                .min_by_key(|(time, _)| *time)
                .expect("there are two");
            let arrival = self.in_flight.iter().map(|(time, ..)| *time).min();
            let next = arrival.map_or(timer, |arrival| arrival.min(timer));
            if next > end {
                return self;
            }
            self.now = self.now.max(next);
            let mut out = Outbox::default();
            let index = self.in_flight.iter().position(|(time, ..)| Some(*time) == arrival);
            let from = if let Some(index) = index.filter(|_| arrival <= Some(timer)) {
                let (_, end, packet) = self.in_flight.remove(index);
                self.ends.on_packet(self.now, end, &packet, &mut out);
                end
            } else {
                self.ends.on_deadline(self.now, which, &mut out);
                which
            };
            self.take(from, out);
        }
    }

    fn take(&mut self, from: End, out: Outbox) {
        for packet in out.packets {
            match from {
                End::Sender => self.sent.push((self.now, packet.clone())),
                End::Receiver => self.answers.push(packet.clone()),
            }
            self.in_flight.push((self.now + ONE_WAY, from.other(), packet));
        }
        self.changes.extend(out.changes);
        self.rtts.extend(out.rtt);
    }

    /// RTP headers of the sent packets.
    fn headers(&self) -> Vec<View<'_>> {
        let bytes = self.sent.iter().filter_map(|(_, packet)| match &packet.body {
            Body::Rtp(bytes) => Some(bytes.as_slice()),
            Body::RtpPayload(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        bytes.map(|bytes| View::parse_header(bytes).unwrap()).collect()
    }

    /// Sizes of the packets of each frame, by RTP timestamp.
    fn frames(&self) -> Vec<Vec<u64>> {
        let mut frames: Vec<(u32, Vec<u64>)> = Vec::new();
        for (view, (_, packet)) in self.headers().iter().zip(&self.sent) {
            match frames.last_mut().filter(|(time, _)| *time == view.timestamp()) {
                Some((_, sizes)) => sizes.push(packet.size.as_bytes()),
                None => frames.push((view.timestamp(), vec![packet.size.as_bytes()])),
            }
        }
        frames.into_iter().map(|(_, sizes)| sizes).collect()
    }
}

#[test]
fn a_frame_leaves_in_packets_of_equal_size_with_a_marker_on_the_last() {
    let bench = Bench::new(media(LabAlgorithm::Nada, FILLER)).run_until(at(39));
    // 1 Mbit/s at 25 frames a second: 5000 bytes per frame.
    assert_eq!(bench.frames(), [[1_000; 5]]);
    let markers: Vec<bool> = bench.headers().iter().map(View::marker).collect();
    assert_eq!(markers, [false, false, false, false, true]);
}

#[test]
fn packets_are_numbered_in_a_row_by_stream_and_by_transport() {
    let bench = Bench::new(media(LabAlgorithm::Nada, FILLER)).run_until(at(1_000));
    assert!(bench.sent.len() > 100);
    for (number, view) in (0..).zip(bench.headers()) {
        let transport = view.transport_sequence_number(EXTENSION_ID).unwrap().sequence_number;
        assert_eq!((view.sequence_number(), transport, view.ssrc()), (number, number, 1));
        assert_eq!(view.abs_send_time(EXTENSION_ID), None);
    }
}

#[test]
fn feedback_tells_the_sender_round_trip_times_and_moves_its_target() {
    let bench = Bench::new(media(LabAlgorithm::Nada, FILLER)).run_until(at(5_000));
    assert!(bench.rtts.len() > 90, "one each 50 ms: {}", bench.rtts.len());
    let within = 2 * ONE_WAY.as_millis()..=2 * ONE_WAY.as_millis() + 40;
    assert!(bench.rtts.iter().all(|rtt| within.contains(&rtt.as_millis())), "{:?}", bench.rtts);
    let (first, last) = (bench.changes.first().unwrap(), bench.changes.last().unwrap());
    assert_eq!(first.from, Bitrate::from_kbps(1_000));
    assert_eq!(Some(last.to), bench.ends.state().target);
    let chained = bench.changes.windows(2).all(|pair| pair[0].to == pair[1].from);
    assert!(chained, "each change begins where the last one ended");
}

#[test]
fn a_pause_makes_no_frames() {
    let pause = at(200)..at(600);
    let bench = Bench::with_pauses(media(LabAlgorithm::Nada, FILLER), vec![pause.clone()]);
    let bench = bench.run_until(at(1_000));
    let times: Vec<Timestamp> = bench.headers().iter().zip(&bench.sent).map(|(_, s)| s.0).collect();
    // A frame queued before the pause may leave during it. Pacing takes up to 40 ms.
    assert!(!times.iter().any(|time| (at(240)..at(600)).contains(time)));
    assert!(times.contains(&at(600)) && times.iter().any(|time| *time < at(200)));
}

/// Kinds of the RTCP packets among these.
fn kinds<'a>(packets: impl Iterator<Item = &'a Packet>) -> Vec<&'static str> {
    let rtcp = packets.filter_map(|packet| match &packet.body {
        Body::Rtcp(bytes) => Some(bytes),
        _ => None,
    });
    let message = |bytes| Message::read(header::Packet::parse(bytes).unwrap());
    rtcp.map(|bytes| match message(bytes) {
        Ok(Message::Report(_)) => "report",
        Ok(Message::Remb(_)) => "limit",
        Ok(Message::Twcc(_) | Message::Ccfb(_)) => "feedback on packets",
        Ok(_) | Err(_) => "other",
    })
    .collect()
}

// [REMB §3]
#[test]
fn an_algorithm_with_a_receivers_half_gets_departures_limits_and_reports() {
    let mut media = media(LabAlgorithm::Gcc2013, FILLER);
    media.feedback = vec![(Timestamp::ZERO, Feedback::Ccfb)];
    let bench = Bench::new(media).run_until(at(5_000));
    assert!(bench.headers().iter().all(|view| view.abs_send_time(EXTENSION_ID).is_some()));
    let answers = kinds(bench.answers.iter());
    let count = |name| answers.iter().filter(|is| **is == name).count();
    assert_eq!(count("report") + count("limit"), bench.answers.len());
    assert!((3..=10).contains(&count("report")) && count("limit") >= 4);
    let reports = kinds(bench.sent.iter().map(|(_, packet)| packet));
    assert!((3..=10).contains(&reports.len()), "the sender's own: {}", reports.len());
}

#[test]
fn a_share_of_coupled_flows_is_taken_over_with_its_reason() {
    let mut bench = Bench::new(media(LabAlgorithm::GccDraft, FILLER)).run_until(at(100));
    let mut out = Outbox::default();
    bench.ends.on_shared_rate(at(100), Bitrate::from_kbps(700), &mut out);
    let change = out.changes.pop().unwrap();
    assert_eq!((change.to, change.reason), (Bitrate::from_kbps(700), Reason::Coupled.as_str()));
    assert_eq!(bench.ends.state().target, Some(Bitrate::from_kbps(700)));
}

#[test]
fn a_browsers_packets_reach_the_socket_singly_those_of_others_in_bursts() {
    let gaps = |source| {
        let bench = Bench::new(media(LabAlgorithm::Gcc, source)).run_until(at(2_000));
        let times: Vec<_> = bench.sent.iter().map(|(time, _)| *time).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap()
    };
    assert!(gaps(BROWSER) > TimeDelta::ZERO);
    assert_eq!(gaps(FILLER), TimeDelta::ZERO);
}

#[test]
fn marks_are_asked_for_as_the_controller_uses_them() {
    let ecn = |algorithm, mode| {
        let mut media = media(algorithm, FILLER);
        media.settings.ecn = mode;
        let bench = Bench::new(media).run_until(at(100));
        bench.sent[0].1.ecn
    };
    use weir::controller::EcnMode;
    assert_eq!(ecn(LabAlgorithm::ScreamV2, EcnMode::L4s), Ecn::Ect1);
    assert_eq!(ecn(LabAlgorithm::Gcc, EcnMode::L4s), Ecn::Ect0);
    assert_eq!(ecn(LabAlgorithm::ScreamV2, EcnMode::Off), Ecn::NotEct);
}

#[test]
fn a_request_for_a_lost_packet_is_answered_before_the_media_that_wait() {
    let mut with_repair = media(LabAlgorithm::Nada, FILLER);
    with_repair.repair = Some(Repair { nack: true, ..Repair::default() });
    let mut bench = Bench::new(with_repair).run_until(at(500));
    let nack = weir_wire::nack::Nack::new(1, 1, &[3]).unwrap();
    let mut bytes = vec![0; nack.size()];
    nack.emit(&mut bytes);
    let sent_before = bench.sent.len();
    let mut out = Outbox::default();
    bench.ends.on_packet(bench.now, End::Sender, &rtcp(&bytes), &mut out);
    bench = bench.run_until(at(600));
    let next = bench.headers()[sent_before..].iter().find(|view| view.ssrc() != 1).copied();
    let next = next.expect("it is sent again").ssrc();
    assert_eq!(next, Ssrcs::of(1).rtx);
}

#[test]
fn equal_seeds_give_equal_flows() {
    let run = || {
        let bench = Bench::new(media(LabAlgorithm::Gcc, BROWSER)).run_until(at(3_000));
        bench.sent.iter().map(|(time, packet)| (*time, packet.size)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
