//! A server and its subscribers in small networks.

use weir::controller::{RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::path::{AccessPlan, Hop};
use weir_net::wifi::{
    AccessCategory, Association, Band, CellConfig, DataRate, Mcs, NodeId, RateControl, Station,
};
use weir_net::{Capacity, LinkConfig, LossModel, QueueLimit, Schedule, Seed};

use super::*;
use crate::config::{
    Config, Core, Direction, FlowConfig, FlowKind, Media, PublishedLayer, Source, TrackKind, Udp,
    Uplink, Watching,
};
use crate::media::Repair;
use crate::trace::{DecisionKind, Trace};

const SECONDS: i64 = 20;

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn camera(loss: f64) -> Publisher {
    let mut layers = Vec::new();
    for (width, height, rate) in [(320, 180, 150), (640, 360, 500), (1280, 720, 1_500)] {
        let rate = Schedule::constant(kbps(rate)).unwrap();
        layers.push(PublishedLayer { width, height, rate });
    }
    let uplink = Uplink { loss, ..Uplink::default() };
    Publisher::new("camera", TrackKind::Camera, layers).with_uplink(uplink)
}

fn hop(capacity: u64) -> Hop {
    let delay = TimeDelta::from_millis(20);
    let capacity = Capacity::Schedule(Schedule::constant(kbps(capacity)).unwrap());
    let down = LinkConfig::unlimited(delay)
        .with_capacity(capacity)
        .with_queue(QueueLimit::Time(TimeDelta::from_millis(400)));
    Hop::new(LinkConfig::unlimited(delay), down)
}

fn subscriber(name: &str, core: Core) -> FlowConfig {
    let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap();
    let source = Source::Filler { fps: 30.0, cap: None };
    let media = Media::new(LabAlgorithm::Sluice, Settings::new(limits), source)
        .with_repair(Some(Repair::NONE.with_nack(true)));
    let watching = Watching::new(media, vec![0]).with_core(core);
    let duration = TimeDelta::from_secs(SECONDS);
    FlowConfig::new(name, duration, FlowKind::Subscriber(watching)).with_direction(Direction::Down)
}

fn run(capacity: u64, loss: f64, core: Core) -> Trace {
    let flows = vec![subscriber("media-1", core)];
    let config = Config::wired(TimeDelta::from_secs(SECONDS), vec![hop(capacity)], flows)
        .with_publishers(vec![camera(loss)]);
    crate::run(&config, Seed::new(1))
}

/// The last layer that a run sends, from 0.
fn last_layer(trace: &Trace) -> Option<u64> {
    let mut switches = trace.decisions.iter().filter(|one| one.kind == DecisionKind::Switched);
    switches.next_back().and_then(|decision| decision.to)
}

#[test]
fn the_best_layer_that_fits_is_sent_and_shown() {
    for (capacity, layer) in [(5_000, 2), (1_000, 1), (250, 0)] {
        let trace = run(capacity, 0.0, Core::Weir);
        assert_eq!(last_layer(&trace), Some(layer), "{capacity} kbit/s");
        let forwarded = trace.rows.last().and_then(|row| row.forwarded).unwrap();
        assert_eq!(forwarded.best_layers, Some(layer + 1), "the oracle at {capacity} kbit/s");
        assert_eq!((forwarded.layers, forwarded.below), (layer + 1, 0));
        let frames: u64 = trace.rows.iter().filter_map(|row| row.video).map(|it| it.frames).sum();
        assert!(frames > 25 * SECONDS as u64, "{frames} frames");
    }
}

#[test]
fn a_publisher_s_losses_are_repaired_and_lower_no_target() {
    let [clean, lossy] = [0.0, 0.05].map(|loss| run(5_000, loss, Core::Weir));
    assert_eq!(last_layer(&lossy), Some(2));
    let target = |trace: &Trace| trace.rows.last().and_then(|row| row.target).unwrap();
    assert!(target(&lossy) >= target(&clean) * 0.9);
    let videos = lossy.rows.iter().filter_map(|row| row.video);
    let lost: u64 = videos.map(|video| video.unrepaired_packets).sum();
    // Of more than 3,000: what is lost at the very end is not repaired any more.
    assert!(lost <= 2, "{lost} packets stayed missing");
}

#[test]
fn equal_seeds_give_equal_traces() {
    assert_eq!(run(1_700, 0.02, Core::Weir), run(1_700, 0.02, Core::Weir));
}

#[test]
fn rivals_send_pictures_over_the_same_transport() {
    for core in [Core::Greedy, Core::LiveKit, Core::Mediasoup] {
        let trace = run(5_000, 0.0, core);
        let bytes: DataSize = trace.rows.iter().map(|row| row.received).sum();
        assert!(bytes > DataSize::from_bytes(500_000), "{core:?}: {bytes}");
        let frames: u64 = trace.rows.iter().filter_map(|row| row.video).map(|it| it.frames).sum();
        assert!(frames > 20 * SECONDS as u64, "{core:?}: {frames} frames");
    }
}

#[test]
fn a_stream_that_nobody_watches_is_stopped() {
    let mut server = Server::new(&[camera(0.0)], &[false], std::iter::empty(), Seed::new(1));
    let mut streams = [0; 3];
    server.on_request(Timestamp::ZERO, 0, Request::Watch { track: 0, stream: Some(1) });
    while let Some(now) = server.next_deadline().filter(|due| *due < Timestamp::from_secs(20)) {
        while let Some(news) = server.next(now.max(Timestamp::from_secs(0))) {
            if let Some(News::Packet(packet)) = news
                && now > Timestamp::from_secs(10)
            {
                streams[usize::from(packet.frame.stream)] += 1;
            }
        }
    }
    assert_eq!((streams[0], streams[2]), (0, 0));
    assert!(streams[1] > 200, "{streams:?}");
}

/// Two rooms behind links of their own, and a third subscriber who watches the second room.
fn two_rooms() -> Config {
    let mut flows = Vec::new();
    for (name, publisher, hop) in [("a", 0, 0), ("b", 1, 1), ("c", 1, 2)] {
        let mut flow = subscriber(name, Core::Weir);
        flow.hops = hop..hop + 1;
        if let FlowKind::Subscriber(watching) = &mut flow.traffic {
            watching.publishers = vec![publisher];
        }
        flows.push(flow);
    }
    let mut other = camera(0.02);
    other.name = "other".into();
    let hops = vec![hop(1_000), hop(3_000), hop(600)];
    Config::wired(TimeDelta::from_secs(SECONDS), hops, flows)
        .with_publishers(vec![camera(0.01), other])
}

#[test]
fn rooms_that_share_nothing_are_simulated_apart_with_the_same_results() {
    let config = two_rooms();
    let apart = crate::run(&config, Seed::new(1));
    let mut whole = crate::simulator::run_as_one(&config, Seed::new(1));
    assert_eq!(apart.rows, whole.rows);
    // What happens at the same time in two rooms has no order.
    let mut decisions = apart.decisions.clone();
    decisions.sort_by(|one, other| (one.time, &one.flow).cmp(&(other.time, &other.flow)));
    whole.decisions.sort_by(|one, other| (one.time, &one.flow).cmp(&(other.time, &other.flow)));
    assert_eq!(decisions, whole.decisions);
    let mut events = apart.events.clone();
    events.sort_by_key(|event| (event.time, event.flow));
    whole.events.sort_by_key(|event| (event.time, event.flow));
    assert_eq!(events, whole.events);
    assert!(!whole.decisions.is_empty() && !whole.events.is_empty());
    assert_eq!(apart, crate::run(&config, Seed::new(1)), "threads change nothing");
}

#[test]
fn frames_of_temporal_layers_are_left_out_without_a_key_frame() {
    let rate = Schedule::constant(kbps(500)).unwrap();
    let layers = vec![PublishedLayer { width: 640, height: 360, rate }];
    let camera = Publisher::new("camera", TrackKind::Camera, layers).with_temporal_layers(3);
    let flows = vec![subscriber("media-1", Core::Weir)];
    let mut frames = Vec::new();
    for capacity in [2_000, 400, 260] {
        let hops = vec![hop(capacity)];
        let config = Config::wired(TimeDelta::from_secs(SECONDS), hops, flows.clone())
            .with_publishers(vec![camera.clone()]);
        let trace = crate::run(&config, Seed::new(1));
        let asked = trace.decisions.iter().filter(|one| one.kind == DecisionKind::KeyFrameAsked);
        assert_eq!(asked.count(), 1, "{capacity} kbit/s: the first picture");
        let videos = trace.rows.iter().filter_map(|row| row.video);
        frames.push(videos.map(|video| video.frames).sum::<u64>() / SECONDS as u64);
    }
    assert!(frames[0] >= 26 && (12..20).contains(&frames[1]) && frames[2] < 10, "{frames:?}");
}

// A retransmission has two bytes more before the descriptor, which once were not carried.
#[test]
fn frames_of_temporal_layers_are_sent_again() {
    let flows = vec![subscriber("media-1", Core::Weir)];
    let mut lossy = hop(3_000);
    lossy.down = lossy.down.with_loss(LossModel::Random(0.05));
    let config = Config::wired(TimeDelta::from_secs(SECONDS), vec![lossy], flows)
        .with_publishers(vec![camera(0.0).with_temporal_layers(3)]);
    let trace = crate::run(&config, Seed::new(1));
    let videos = trace.rows.iter().filter_map(|row| row.video);
    let frames = videos.map(|video| video.frames).sum::<u64>();
    assert!(frames >= 20 * SECONDS as u64, "{frames}");
}

/// A subscriber at a station of a Wi-Fi cell at 6.5 Mbit/s, in which others always send.
fn run_in_cell(rivals: usize) -> Trace {
    let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(0).unwrap()));
    let category = AccessCategory::BestEffort;
    let mut stations = vec![Station::new("viewer", rate.clone(), rate.clone())];
    let mut flows = vec![subscriber("media-1", Core::Weir)];
    for rival in 0..rivals {
        let name = format!("rival-{rival}");
        stations.push(Station::new(&name, rate.clone(), rate.clone()));
        let all = Udp::new(Schedule::constant(kbps(20_000)).unwrap(), DataSize::from_bytes(1_228));
        flows.push(FlowConfig::new(&name, TimeDelta::from_secs(SECONDS), FlowKind::Udp(all)));
    }
    for (index, flow) in flows.iter_mut().enumerate() {
        let station = NodeId::station(index);
        flow.attachment = Some(Association { station, category }.into());
    }
    let link = LinkConfig::unlimited(TimeDelta::from_millis(10));
    let hops = vec![Hop::new(link.clone(), link)];
    let cell = CellConfig::new(Band::GHZ_2_4, stations);
    let config = Config::wired(TimeDelta::from_secs(SECONDS), hops, flows)
        .with_access(Some(AccessPlan::new(cell)))
        .with_publishers(vec![camera(0.0)]);
    crate::run(&config, Seed::new(1))
}

#[test]
fn in_a_cell_the_best_layer_is_what_a_sender_of_all_would_bring_through() {
    for (rivals, best) in [(0, 3..=3), (8, 1..=2)] {
        let trace = run_in_cell(rivals);
        let rows = trace.rows.iter().filter(|row| row.flow == 0);
        let layers = rows.filter_map(|row| row.forwarded?.best_layers).next_back();
        assert!(layers.is_some_and(|layers| best.contains(&layers)), "{layers:?}, {rivals} rivals");
    }
}
