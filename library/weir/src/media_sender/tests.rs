use alloc::vec::Vec;
use core::cell::Cell;

use super::*;
use crate::controller::{Probe, ProbeId, Reason, Window};
use crate::feedback::{CcfbPacket, CcfbReception, Ecn, TwccHeader};
use crate::{Algorithm, RateLimits};

const SIZE: DataSize = DataSize::from_bytes(1_250); // 10 ms at 1 Mbit/s

/// A recorded call to the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Queued { added: u64, queued: u64 },
    Sent { number: i64, size: u64, queued: u64, padding: bool },
    Feedback { packets: usize },
    RoundTrip(TimeDelta),
    Limit(Option<Bitrate>),
    Limits(RateLimits),
    NewRoute,
    Share(Bitrate),
    Timeout(Timestamp),
}

/// A controller that records its calls and returns the target set by the test.
struct Script {
    calls: Vec<Call>,
    target: Cell<Target>,
    timeout: Cell<Option<Timestamp>>,
    /// Each sent packet closes the window.
    one_at_a_time: bool,
    /// Each round-trip time and each report lowers the target by this much.
    step_down: Bitrate,
}

impl Script {
    fn new(target: Target) -> Self {
        Self {
            calls: Vec::new(),
            target: Cell::new(target),
            timeout: Cell::new(None),
            one_at_a_time: false,
            step_down: Bitrate::ZERO,
        }
    }

    fn lower(&mut self) {
        let target = self.target.get_mut();
        target.bitrate = target.bitrate.saturating_sub(self.step_down);
    }
}

impl Controller for Script {
    fn on_media_queued(&mut self, _: Timestamp, added: DataSize, queued: DataSize) {
        self.calls.push(Call::Queued { added: added.as_bytes(), queued: queued.as_bytes() });
    }
    fn on_packet_sent(&mut self, _: Timestamp, packet: &SentPacket) {
        let &SentPacket { sequence_number: number, size, queued, padding, .. } = packet;
        let (size, queued) = (size.as_bytes(), queued.as_bytes());
        self.calls.push(Call::Sent { number, size, queued, padding });
        if self.one_at_a_time {
            let congestion_window = SIZE;
            self.target.get_mut().window =
                Some(Window { congestion_window, available: DataSize::ZERO });
        }
    }
    fn on_feedback(&mut self, _: Timestamp, report: &FeedbackReport) {
        self.calls.push(Call::Feedback { packets: report.packets.len() });
        self.lower();
    }
    fn on_round_trip_time(&mut self, _: Timestamp, rtt: TimeDelta) {
        self.calls.push(Call::RoundTrip(rtt));
        self.lower();
    }
    fn on_receiver_limit(&mut self, _: Timestamp, limit: Option<Bitrate>) {
        self.calls.push(Call::Limit(limit));
    }
    fn set_limits(&mut self, _: Timestamp, limits: RateLimits) {
        self.calls.push(Call::Limits(limits));
    }
    fn on_route_change(&mut self, _: Timestamp) {
        self.calls.push(Call::NewRoute);
    }
    fn on_shared_rate(&mut self, _: Timestamp, share: Bitrate) {
        self.calls.push(Call::Share(share));
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.calls.push(Call::Timeout(now));
        self.timeout.set(Some(now + TimeDelta::from_millis(100)));
    }
    fn next_timeout(&self) -> Option<Timestamp> {
        self.timeout.get()
    }
    fn target(&self) -> Target {
        self.target.get()
    }
    fn metrics(&self) -> Metrics {
        let limits = RateLimits::new(kbps(1), kbps(1), kbps(1)).unwrap();
        Metrics { reason: Reason::Loss, ..Algorithm::Nada.build(limits).metrics() }
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn target(kbps_: u64) -> Target {
    Target::new(kbps(kbps_), kbps(kbps_))
}

fn sender() -> MediaSender<u32, Script> {
    MediaSender::new(Script::new(target(1_000)))
}

fn frame(packets: core::ops::Range<u32>) -> impl Iterator<Item = (DataSize, u32)> {
    packets.map(|packet| (SIZE, packet))
}

/// All packets that may leave now.
fn drain(sender: &mut MediaSender<u32, Script>, now: Timestamp) -> Vec<Option<u32>> {
    core::iter::from_fn(|| sender.next_packet(now)).map(|packet| packet.content).collect()
}

#[test]
fn a_frame_is_told_once_and_each_packet_when_it_leaves() {
    let mut sender = sender();
    sender.enqueue(at(0), frame(0..2));
    assert_eq!(sender.queued(), SIZE * 2.0);
    assert_eq!(drain(&mut sender, at(0)), [Some(0)]);
    // The pacer lets packets leave 5 ms ahead.
    assert_eq!((sender.next_send_time(), sender.next_timeout()), (Some(at(5)), Some(at(5))));
    assert_eq!(drain(&mut sender, at(5)), [Some(1)]);
    let sent = |number, queued| Call::Sent { number, size: 1_250, queued, padding: false };
    let queued = Call::Queued { added: 2_500, queued: 2_500 };
    assert_eq!(sender.controller().calls, [queued, sent(0, 1_250), sent(1, 0)]);
}

#[test]
fn a_packet_past_the_queue_has_its_own_number_and_the_controller_hears() {
    let mut sender = sender();
    sender.enqueue(at(0), frame(0..2));
    assert_eq!(drain(&mut sender, at(0)), [Some(0)]);
    let sent = sender.on_packet_sent(at(0), SIZE, None);
    assert_eq!(sent.sequence_number, 1);
    assert_eq!(sender.next_send_time(), Some(at(15)), "10 ms later than without it");
    let past = Call::Sent { number: 1, size: 1_250, queued: 1_250, padding: false };
    assert_eq!(sender.controller().calls.last(), Some(&past));
    let report = sender.on_feedback(at(50), |sent| {
        sent.on_twcc(
            TwccHeader { reference_time: 0, feedback_count: 0 },
            [(1, Some(80))].into_iter(),
        )
    });
    assert_eq!(report.expect("feedback on it").received().count(), 1);
}

#[test]
fn a_window_that_a_packet_fills_holds_back_the_next_one() {
    let mut script = Script::new(target(100_000));
    script.one_at_a_time = true;
    let mut sender = MediaSender::new(script);
    sender.enqueue(at(0), frame(0..3));
    assert_eq!(drain(&mut sender, at(0)), [Some(0)]);
    assert_eq!(sender.next_send_time(), None);
    // Any event that opens the window again releases one more packet.
    sender.controller().target.set(target(100_000));
    sender.on_receiver_limit(at(1), None);
    assert_eq!(drain(&mut sender, at(1)), [Some(1)]);
}

#[test]
fn urgent_packets_leave_first_and_parity_last() {
    let mut sender = MediaSender::new(Script::new(target(100_000)));
    sender.enqueue(at(0), frame(0..1));
    sender.enqueue_parity(SIZE, 7);
    sender.enqueue_urgent(at(0), frame(8..10));
    // Parity is not new media: it counts only in the queue length.
    let calls = [
        Call::Queued { added: 1_250, queued: 1_250 },
        Call::Queued { added: 2_500, queued: 5_000 },
    ];
    assert_eq!(sender.controller().calls, calls);
    assert_eq!(drain(&mut sender, at(0)), [8, 9, 0, 7].map(Some));
}

#[test]
fn the_encoder_gets_the_target_less_the_repair_of_the_last_second() {
    let mut sender = MediaSender::new(Script::new(target(100)));
    let left = |sender: &mut MediaSender<u32, Script>, ms| {
        sender.on_timeout(at(ms));
        sender.media_bitrate()
    };
    assert_eq!(sender.media_bitrate(), kbps(100));
    assert_eq!(left(&mut sender, 0), kbps(100));
    sender.enqueue(at(0), frame(0..1));
    sender.enqueue_urgent(at(0), frame(8..9));
    sender.enqueue_parity(SIZE, 7);
    // What waits counts, too.
    sender.clear_queue(at(0));
    sender.on_packet_sent(at(500), SIZE, None);
    assert_eq!(left(&mut sender, 999), kbps(70));
    assert_eq!(left(&mut sender, 1_000), kbps(90));
    assert_eq!(left(&mut sender, 1_500), kbps(100));
    // At least half is left.
    sender.enqueue_urgent(at(3_000), frame(10..20));
    assert_eq!(left(&mut sender, 3_950), kbps(50));
    sender.clear_queue(at(4_000));
    assert_eq!(left(&mut sender, 4_000), kbps(100));
}

#[test]
fn the_encoder_makes_less_while_more_than_a_frame_waits_none_if_late() {
    let mut sender = MediaSender::new(Script::new(target(100)));
    let paced = sender.target().pacing_rate;
    let mut queued = DataSize::ZERO;
    let mut with = |sender: &mut MediaSender<u32, Script>, ms| {
        let whole = paced * TimeDelta::from_millis(ms);
        let size = whole.saturating_sub(queued);
        queued = whole;
        sender.enqueue(at(0), [(size, 0)]);
        (sender.media_bitrate(), sender.wants_frame())
    };
    assert_eq!(with(&mut sender, 50), (kbps(100), true));
    // What waits for 25 ms more leaves within half a second.
    let [usual, more] = [50, 75].map(|ms| paced * TimeDelta::from_millis(ms));
    let excess = more.saturating_sub(usual);
    assert_eq!(
        with(&mut sender, 75),
        (kbps(100).saturating_sub(excess / TimeDelta::from_millis(500)), true)
    );
    assert_eq!(with(&mut sender, 250), (kbps(60), true));
    assert_eq!(with(&mut sender, 260), (kbps(58), false));
    assert_eq!(with(&mut sender, 1_000), (kbps(50), false));
}

#[test]
fn a_cleared_queue_is_told_as_empty() {
    let mut sender = sender();
    sender.enqueue(at(0), frame(0..9));
    sender.clear_queue(at(1));
    assert_eq!(sender.controller().calls[1..], [Call::Queued { added: 0, queued: 0 }]);
    assert_eq!((sender.queued(), sender.next_timeout()), (DataSize::ZERO, None));
}

#[test]
fn the_controllers_timer_runs_when_it_is_due_and_not_before() {
    let mut sender = sender();
    sender.controller().timeout.set(Some(at(30)));
    assert_eq!(sender.next_timeout(), Some(at(30)));
    sender.on_timeout(at(29));
    assert_eq!(sender.controller().calls, []);
    sender.on_timeout(at(31));
    assert_eq!(sender.controller().calls, [Call::Timeout(at(31))]);
    // The pacer may be due before the controller's timeout.
    assert_eq!(sender.next_timeout(), Some(at(131)));
    sender.enqueue(at(40), frame(0..2));
    sender.next_packet(at(40));
    assert_eq!(sender.next_timeout(), Some(at(45)));
}

#[test]
fn a_time_that_goes_back_counts_as_the_latest_one() {
    let mut sender = sender();
    sender.enqueue(at(100), frame(0..1));
    sender.controller().timeout.set(Some(at(90)));
    sender.on_timeout(at(10));
    assert_eq!(sender.controller().calls[1..], [Call::Timeout(at(100))]);
    assert_eq!(drain(&mut sender, at(20)), [Some(0)]);
    let header = TwccHeader { reference_time: 0, feedback_count: 0 };
    let arrivals = [(0, Some(4))].into_iter();
    let report = sender.on_feedback(at(130), |sent| sent.on_twcc(header, arrivals)).unwrap();
    assert_eq!(report.packets[0].send_time, at(100));
}

#[test]
fn probes_and_padding_ask_the_caller_for_packets() {
    let mut sender = sender();
    sender.set_padding_size(DataSize::from_bytes(500));
    let probe =
        Probe { id: ProbeId(3), rate: kbps(10_000), size: DataSize::from_bytes(2_000), packets: 3 };
    sender.controller().target.set(Target { probe: Some(probe), ..target(1_000) });
    sender.enqueue(at(0), frame(0..1));
    let mut sent = Vec::new();
    while let Some(due) = sender.next_send_time() {
        sent.push(sender.next_packet(due).unwrap());
    }
    let seen: Vec<_> =
        sent.iter().map(|p| (p.content, p.size.as_bytes(), p.sent.padding)).collect();
    assert_eq!(seen, [(Some(0), 1_250, false), (None, 500, true), (None, 500, true)]);
    assert!(sent.iter().all(|packet| packet.sent.probe == Some(ProbeId(3))));
    assert_eq!(sent.iter().map(|p| p.sent.transport_sequence_number()).max(), Some(2));
}

#[test]
fn what_is_not_counted_is_hidden_from_the_controller_not_from_the_pacer() {
    let mut sender = sender();
    sender.set_uncounted(DataSize::from_bytes(10));
    sender.enqueue(at(0), frame(0..2));
    let packet = sender.next_packet(at(0)).unwrap();
    assert_eq!((packet.size, packet.sent.size), (SIZE, DataSize::from_bytes(1_240)));
    assert_eq!(sender.next_send_time(), Some(at(5)));
}

// The sizes that the controller sees have 1,240 bytes each.
#[test]
fn a_probe_ends_when_the_controller_has_seen_its_bytes() {
    let mut sender = sender();
    sender.set_uncounted(DataSize::from_bytes(10));
    let size = DataSize::from_bytes(2_500);
    let probe = Probe { id: ProbeId(3), rate: kbps(10_000), size, packets: 2 };
    sender.controller().target.set(Target { probe: Some(probe), ..target(1_000) });
    sender.enqueue(at(0), frame(0..9));
    let mut counted = DataSize::ZERO;
    for ms in 0..20 {
        let Some(packet) = sender.next_packet(at(ms)) else { continue };
        counted += packet.sent.probe.map_or(DataSize::ZERO, |_| packet.sent.size);
    }
    assert_eq!(counted, DataSize::from_bytes(3 * 1_240));
}

#[test]
fn changes_of_the_target_count_as_one_until_they_are_taken() {
    let mut sender = sender();
    assert_eq!(sender.take_change(), None);
    for rate in [800, 600] {
        sender.controller().target.set(target(rate));
        sender.on_receiver_limit(at(0), None);
    }
    assert_eq!(sender.target().bitrate, kbps(600));
    let change = sender.take_change().unwrap();
    assert_eq!((change.from, change.to), (kbps(1_000), kbps(600)));
    assert_eq!(change.metrics.reason, Reason::Loss);
    assert_eq!(sender.take_change(), None);
    // A change that is reverted is not reported.
    for rate in [800, 600] {
        sender.controller().target.set(target(rate));
        sender.on_shared_rate(at(0), kbps(rate));
    }
    assert_eq!(sender.take_change(), None);
}

#[test]
fn feedback_goes_to_the_controller_with_its_round_trip_time_in_one_step() {
    let mut script = Script::new(target(1_000));
    script.step_down = kbps(100);
    let mut sender = MediaSender::new(script);
    sender.enqueue(at(0), frame(0..1));
    sender.next_packet(at(0));
    let header = TwccHeader { reference_time: 0, feedback_count: 0 };
    let arrivals = || [(0, Some(4))].into_iter();
    let rtt = TimeDelta::from_millis(40);
    let report = sender.on_feedback_with(
        at(50),
        |sent| sent.on_twcc(header, arrivals()),
        |report| (report.packets.len() == 1).then_some(rtt),
    );
    assert_eq!(report.unwrap().received().count(), 1);
    assert_eq!(
        sender.controller().calls[2..],
        [Call::Feedback { packets: 1 }, Call::RoundTrip(rtt)]
    );
    assert_eq!(sender.take_change().map(|change| change.to), Some(kbps(800)));
    // Repeated feedback contains nothing new, so the controller is not called.
    let again =
        sender.on_feedback_with(at(60), |sent| sent.on_twcc(header, arrivals()), |_| Some(rtt));
    assert_eq!(again, None);
    assert_eq!(sender.controller().calls.len(), 4);
    assert_eq!(sender.take_change(), None);
}

#[test]
fn limits_shares_and_round_trip_times_reach_the_controller() {
    let mut sender = sender();
    sender.on_receiver_limit(at(0), Some(kbps(300)));
    sender.on_shared_rate(at(0), kbps(200));
    sender.on_round_trip_time(at(0), TimeDelta::from_millis(5));
    let limits = RateLimits::new(kbps(1), kbps(2), kbps(3)).unwrap();
    sender.set_limits(at(0), limits);
    let rtt = Call::RoundTrip(TimeDelta::from_millis(5));
    let calls = [Call::Limit(Some(kbps(300))), Call::Share(kbps(200)), rtt, Call::Limits(limits)];
    assert_eq!(sender.controller().calls, calls);
}

#[test]
fn feedback_on_packets_of_an_old_route_is_ignored() {
    let mut sender = sender();
    sender.enqueue(at(0), frame(0..2));
    sender.next_packet(at(0));
    sender.on_route_change(at(20));
    let second = sender.next_packet(at(20)).expect("the queue takes the new route");
    assert_eq!(second.sent.sequence_number, 1, "the numbers go on");
    let header = |feedback_count| TwccHeader { reference_time: 0, feedback_count };
    let old =
        sender.on_feedback(at(40), |sent| sent.on_twcc(header(0), [(0, Some(80))].into_iter()));
    assert_eq!(old, None);
    let new =
        sender.on_feedback(at(60), |sent| sent.on_twcc(header(1), [(1, Some(80))].into_iter()));
    assert_eq!(new.map(|report| report.packets.len()), Some(1));
    assert!(sender.controller().calls.contains(&Call::NewRoute));
}

// [RFC8888 §3.1]
#[test]
fn feedback_by_rtp_stream_finds_packets_by_the_number_they_left_with() {
    let mut sender = MediaSender::new(Script::new(target(100_000)));
    sender.enqueue(at(0), frame(0..2));
    for sequence_number in [65_535, 0] {
        let rtp = RtpNumber { ssrc: 7, sequence_number };
        let packet = sender.next_packet_with(at(0), |release| (release.media, Some(rtp)));
        assert!(packet.is_some());
    }
    let reception = Some(CcfbReception { ecn: Ecn::Ce, offset: 0 });
    let rtp = RtpNumber { ssrc: 7, sequence_number: 0 };
    let packets = [CcfbPacket { rtp, reception }];
    let report = sender.on_feedback(at(9), |sent| sent.on_ccfb(1, packets.into_iter())).unwrap();
    assert_eq!((report.packets[0].sequence_number, report.packets[0].ecn), (1, Ecn::Ce));
}

#[test]
fn a_boxed_controller_behaves_as_the_bare_one() {
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap();
    let mut boxed = MediaSender::new(Algorithm::ScreamV2.build(limits));
    let mut bare = MediaSender::new(crate::controllers::scream_v2::ScreamV2::new(limits));
    for index in 0..200_u16 {
        let now = at(10 * i64::from(index));
        boxed.enqueue(now, [(SIZE, index)]);
        bare.enqueue(now, [(SIZE, index)]);
        boxed.on_timeout(now);
        bare.on_timeout(now);
        assert_eq!(boxed.next_packet(now), bare.next_packet(now));
        let header = TwccHeader { reference_time: 0, feedback_count: index as u8 };
        let arrivals = || [(index, Some(40 * i32::from(index)))].into_iter();
        boxed.on_feedback(now, |sent| sent.on_twcc(header, arrivals()));
        bare.on_feedback(now, |sent| sent.on_twcc(header, arrivals()));
        assert_eq!(boxed.target(), bare.target());
        assert_eq!(boxed.take_change(), bare.take_change());
    }
    assert_ne!(boxed.target().bitrate, kbps(300), "it did something");
}

/// The longest wait of sound of 32 kbit/s behind pictures that fill a path of this rate, in ms.
fn longest_wait_of_sound(kbps: u64, probe: Option<Probe>) -> i64 {
    let wanted = target(kbps).with_probe(probe);
    let mut sender = MediaSender::new(Script::new(wanted));
    let mut longest = 0;
    let mut waits = alloc::collections::VecDeque::new();
    for ms in 0..2_000 {
        if ms % 33 == 0 {
            // Half as much again as the path carries, in packets of 1,250 bytes.
            let packets = (kbps * 33 * 3 / 2 / 8 / 1_250).max(1);
            sender.enqueue(at(ms), (0..packets).map(|_| (SIZE, false)));
        }
        if ms % 20 == 0 {
            let sound = [(DataSize::from_bytes(80), true)];
            sender.enqueue_as(at(ms), PacketKind::Audio, sound);
            waits.push_back(ms);
        }
        while let Some(packet) = sender.next_packet(at(ms)) {
            if packet.content == Some(true) {
                longest = longest.max(ms - waits.pop_front().expect("it was queued"));
            }
        }
    }
    assert!(waits.len() <= 1, "{} wait", waits.len());
    longest
}

#[test]
fn sound_waits_at_most_20_ms_behind_pictures() {
    for kbps in [300, 700, 2_500, 20_000] {
        let rate = Bitrate::from_kbps(kbps);
        let probe = Probe::new(ProbeId(0), rate * 2.0, DataSize::from_bytes(kbps * 20), 6);
        assert_eq!(longest_wait_of_sound(kbps, None), 0, "at {kbps} kbit/s");
        let longest = longest_wait_of_sound(kbps, Some(probe));
        assert!(longest <= 20, "{longest} ms in a probe at {kbps} kbit/s");
    }
}

#[test]
fn sound_is_taken_off_what_the_encoder_may_make() {
    let mut sender = MediaSender::new(Script::new(target(1_000)));
    for ms in (0..1_000).step_by(20) {
        sender.enqueue_as(at(ms), PacketKind::Audio, [(DataSize::from_bytes(100), ())]);
        while sender.next_packet(at(ms)).is_some() {}
    }
    assert_eq!(sender.media_bitrate(), kbps(960));
}
