//! Whole connections over simulated links.

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{Aqm, Capacity, DualPi2Config, LinkConfig, LossModel, QueueLimit, Schedule, Seed};

use super::{Quic, QuicAck, QuicCongestion, QuicDelivery, QuicSource, QuicStack};
use crate::config::{Config, Direction, FlowConfig, FlowKind, Media, Source};
use crate::simulator::run;
use crate::tcp::{Congestion, Tcp};
use crate::trace::{Row, Trace};

const LENGTH: TimeDelta = TimeDelta::from_secs(30);
const SETTLED: Timestamp = Timestamp::from_secs(10);
const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

/// A link of 5 Mbit/s with a delay of 50 ms and a queue of 500 ms.
fn link() -> LinkConfig {
    let capacity = Schedule::constant(kbps(5_000)).unwrap();
    LinkConfig::unlimited(MS(50))
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Time(MS(500)))
}

fn quic(source: QuicSource) -> Quic<Media> {
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    let none = Source::Filler { fps: 30.0, cap: None };
    Quic::new(Media::new(LabAlgorithm::Sluice, Settings::new(limits), none), source)
}

const FIXED: QuicSource = QuicSource::Fixed(Bitrate::from_kbps(10_000));
const ADAPTIVE: QuicSource = QuicSource::Adaptive {
    start: Bitrate::from_kbps(1_000),
    max: Bitrate::from_kbps(10_000),
    headroom: 0.9,
};

fn trace(quic: Quic<Media>, up: LinkConfig, down: LinkConfig, others: &[FlowConfig]) -> Trace {
    let mut flows = vec![FlowConfig::new("quic-1", LENGTH, FlowKind::Quic(quic))];
    flows.extend_from_slice(others);
    run(&Config::wired(LENGTH, vec![weir_net::Hop::new(up, down)], flows), Seed::new(1))
}

/// What the first flow came to after 10 s.
#[derive(Debug)]
struct Outcome {
    rows: Vec<Row>,
}

impl Outcome {
    fn of(trace: &Trace) -> Self {
        let rows = trace.rows.iter().filter(|row| row.flow == 0 && row.time > SETTLED);
        Self { rows: rows.copied().collect() }
    }

    fn sum(&self, value: fn(&Row) -> u64) -> f64 {
        self.rows.iter().map(value).sum::<u64>() as f64
    }

    fn utilization(&self) -> f64 {
        self.sum(|row| row.received.as_bytes()) / 12_500_000.0
    }

    fn queue_ms(&self, part: f64) -> f64 {
        let waits = self.rows.iter().filter_map(|row| row.queuing_delay);
        let mut waits: Vec<f64> = waits.map(TimeDelta::as_millis_f64).collect();
        waits.sort_by(f64::total_cmp);
        waits[(waits.len() as f64 * part) as usize]
    }

    fn frames(&self) -> f64 {
        self.sum(|row| row.video.map_or(0, |video| video.frames)) / 600.0
    }

    /// The longest delay of a frame.
    fn latest_frame(&self) -> Option<TimeDelta> {
        self.rows.iter().filter_map(|row| row.video?.frame_delay).max()
    }

    fn goodput(&self) -> f64 {
        self.sum(|row| row.transfer.map_or(0, |it| it.goodput.as_bytes())) / 12_500_000.0
    }

    fn sent_again(&self) -> f64 {
        self.sum(|row| row.transfer.map_or(0, |it| it.retransmitted_packets))
    }
}

fn outcome(quic: Quic<Media>, up: LinkConfig) -> Outcome {
    Outcome::of(&trace(quic, up, LinkConfig::unlimited(MS(50)), &[]))
}

#[test]
fn a_source_that_follows_nothing_fills_the_link_and_no_queue() {
    for stack in [QuicStack::Noq, QuicStack::Quinn] {
        let outcome = outcome(quic(FIXED).with_stack(stack), link());
        assert!(outcome.utilization() > 0.95, "{stack:?} {}", outcome.utilization());
        assert!(outcome.queue_ms(0.95) < 60.0, "{stack:?} {}", outcome.queue_ms(0.95));
        assert!((0.3..0.6).contains(&outcome.frames()), "{stack:?} {}", outcome.frames());
    }
}

#[test]
fn an_encoder_that_follows_has_its_frames_whole_and_in_time() {
    let outcome = outcome(quic(ADAPTIVE), link());
    assert!(outcome.utilization() > 0.8, "{}", outcome.utilization());
    assert!(outcome.frames() > 0.99, "{}", outcome.frames());
    let delay = |row: &Row| row.video?.frame_delay;
    assert!(outcome.rows.iter().filter_map(delay).all(|delay| delay > MS(50)));
    let ratio = outcome.goodput() / outcome.utilization();
    assert!((0.9..0.98).contains(&ratio), "{ratio}");
    assert_eq!(outcome.sent_again(), 0.0);
}

#[test]
fn windows_fill_the_queue_and_lose() {
    for congestion in [QuicCongestion::Cubic, QuicCongestion::NewReno] {
        let bulk = quic(QuicSource::Bulk).with_congestion(congestion);
        let outcome = outcome(bulk, link());
        assert!(outcome.utilization() > 0.95, "{congestion:?} {}", outcome.utilization());
        assert!(outcome.queue_ms(0.5) > 200.0, "{congestion:?} {}", outcome.queue_ms(0.5));
        assert!(outcome.goodput() > 0.9, "{congestion:?} {}", outcome.goodput());
        assert!(outcome.rows.iter().all(|row| row.video.is_none()));
    }
}

#[test]
fn lost_data_is_sent_again_and_frames_stay_whole() {
    let outcome = outcome(quic(ADAPTIVE), link().with_loss(LossModel::Random(0.02)));
    assert!(outcome.frames() > 0.97, "{}", outcome.frames());
    let lost = outcome.sum(|row| row.lost_packets);
    let again = outcome.sent_again() / lost;
    assert!(lost > 50.0 && (0.9..1.2).contains(&again), "{again} of {lost}");
}

#[test]
fn a_full_way_back_takes_less_where_acks_have_receive_times() {
    let download = FlowKind::Tcp(Tcp::new(Congestion::Reno));
    let download = FlowConfig::new("tcp-1", LENGTH, download).with_direction(Direction::Down);
    let [without, with] = [false, true].map(|times| {
        let quic = quic(ADAPTIVE).with_ack(QuicAck::new().with_receive_times(times));
        Outcome::of(&trace(quic, link(), link(), std::slice::from_ref(&download))).utilization()
    });
    assert!(with > 0.75 && without < with, "{without} {with}");
}

#[test]
fn rare_acks_have_fewer_bytes() {
    let [usual, rare] = [2, 10].map(|packets| {
        let ack = QuicAck::new().with_packets(packets).with_delay(MS(100));
        outcome(quic(FIXED).with_ack(ack), link()).sum(|row| row.feedback.unwrap().as_bytes())
    });
    assert!(rare < usual / 3.0, "{rare} {usual}");
}

#[test]
fn marks_that_acks_count_keep_the_queue_short() {
    let l4s = link().with_aqm(Aqm::DualPi2(DualPi2Config::default()));
    let mut quic = quic(ADAPTIVE);
    quic.media.settings.ecn = EcnMode::L4s;
    let outcome = outcome(quic, l4s);
    assert!(outcome.sum(|row| row.marked_packets.unwrap_or(0)) > 0.0);
    assert!(outcome.queue_ms(0.95) < 30.0, "{}", outcome.queue_ms(0.95));
    assert!(outcome.utilization() > 0.5, "{}", outcome.utilization());
}

#[test]
fn a_connection_goes_on_after_an_outage() {
    let steps = [(0, 5_000), (12, 0), (15, 5_000)];
    let steps = steps.map(|(s, rate)| (Timestamp::from_secs(s), kbps(rate))).to_vec();
    let capacity = Capacity::Schedule(Schedule::new(steps).unwrap());
    for congestion in [QuicCongestion::Media, QuicCongestion::Cubic] {
        let quic = quic(ADAPTIVE).with_congestion(congestion);
        let outcome = outcome(quic, link().with_capacity(capacity.clone()));
        let last = &outcome.rows[outcome.rows.len() - 20..];
        let received: DataSize = last.iter().map(|row| row.received).sum();
        assert!(received > DataSize::from_bytes(100_000), "{congestion:?} {received:?}");
    }
}

#[test]
fn equal_seeds_give_equal_traces() {
    let both = [1, 1].map(|_| {
        let up = link().with_loss(LossModel::Random(0.02));
        trace(quic(ADAPTIVE), up, link(), &[])
    });
    assert_eq!(both[0], both[1]);
}

#[test]
fn no_frames_are_made_in_a_pause() {
    let mut flow = FlowConfig::new("quic-1", LENGTH, FlowKind::Quic(quic(ADAPTIVE)));
    flow.pauses = vec![Timestamp::from_secs(11)..Timestamp::from_secs(29)];
    let hops = vec![weir_net::Hop::new(link(), link())];
    let trace = run(&Config::wired(LENGTH, hops, vec![flow]), Seed::new(1));
    let in_pause = trace
        .rows
        .iter()
        .filter(|row| row.time > Timestamp::from_secs(12) && row.time < Timestamp::from_secs(29));
    assert_eq!(in_pause.map(|row| row.video.unwrap().frames).sum::<u64>(), 0);
}

#[test]
fn bbr_fills_the_link_with_a_short_queue() {
    let bulk = quic(QuicSource::Bulk).with_congestion(QuicCongestion::Bbr3);
    let clean = outcome(bulk, link());
    assert!(clean.utilization() > 0.9, "{}", clean.utilization());
    assert!(clean.queue_ms(0.95) < 100.0, "{}", clean.queue_ms(0.95));
}

/// Freezes and the time that they last.
fn freezes(flow: FlowConfig, up: LinkConfig) -> (u64, TimeDelta) {
    let hops = vec![weir_net::Hop::new(up, link())];
    let trace = run(&Config::wired(LENGTH, hops, vec![flow]), Seed::new(1));
    let (mut count, mut time) = (0, TimeDelta::ZERO);
    for video in trace.rows.iter().filter_map(|row| row.video) {
        count += video.freezes;
        time += video.frozen;
    }
    (count, time)
}

#[test]
fn a_picture_that_stands_to_the_end_froze_and_a_pause_is_no_freeze() {
    let mut flow = FlowConfig::new("quic-1", LENGTH, FlowKind::Quic(quic(ADAPTIVE)));
    let steps = [(0, 5_000), (12, 0)].map(|(s, rate)| (Timestamp::from_secs(s), kbps(rate)));
    let ends = Capacity::Schedule(Schedule::new(steps.to_vec()).unwrap());
    let (count, time) = freezes(flow.clone(), link().with_capacity(ends.clone()));
    assert_eq!(count, 1);
    assert!((TimeDelta::from_secs(17)..TimeDelta::from_secs(18)).contains(&time), "{time:?}");
    flow.pauses = vec![Timestamp::from_secs(11)..Timestamp::from_secs(20)];
    assert_eq!(freezes(flow.clone(), link()), (0, TimeDelta::ZERO));
    flow.pauses = vec![Timestamp::from_secs(11)..Timestamp::from_secs(30)];
    assert_eq!(freezes(flow, link().with_capacity(ends)), (0, TimeDelta::ZERO));
}

#[test]
fn datagrams_lose_frames_at_random_loss_and_are_sooner_than_streams() {
    let up = link().with_loss(LossModel::Random(0.02));
    let streams = outcome(quic(ADAPTIVE), up.clone());
    let datagrams = outcome(quic(ADAPTIVE).with_delivery(QuicDelivery::Datagrams), up);
    assert!(streams.frames() > 0.99, "{}", streams.frames());
    assert!((0.6..0.9).contains(&datagrams.frames()), "{}", datagrams.frames());
    assert_eq!(datagrams.sent_again(), 0.0);
    assert!(datagrams.latest_frame() < streams.latest_frame());
}
