use std::sync::atomic::AtomicBool;

use weir::controller::RateLimits;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{Capacity, Hop, LinkConfig, LossModel, QueueLimit, Schedule, Seed};

use crate::trace::Video;
use crate::{
    Config, Content, Direction, EncoderVideo, Feedback, FlowConfig, FlowKind, Media, Repair,
    Source, Speech, Trace, Udp, run, run_unless,
};

fn secs(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn flow(name: &str, algorithm: LabAlgorithm, start: i64, stop: i64) -> FlowConfig {
    let kbps = Bitrate::from_kbps;
    FlowConfig {
        name: name.into(),
        direction: Direction::Up,
        attachment: None,
        hops: 0..1,
        access_delay: TimeDelta::ZERO,
        start: secs(start),
        stop: secs(stop),
        pauses: Vec::new(),
        call: None,
        quality: false,
        traffic: FlowKind::Media(Media {
            controller: algorithm.into(),
            settings: RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap().into(),
            sender: None,
            source: Source::Filler { fps: 30.0, cap: None },
            source_limit: None,
            receiver_clock: Default::default(),
            feedback: Vec::new(),
            feedback_interval: TimeDelta::from_millis(50),
            route_changes: Vec::new(),
            watches: Vec::new(),
            repair: None,
        }),
    }
}

fn link(kbps: u64) -> LinkConfig {
    let capacity = Capacity::Schedule(Schedule::constant(Bitrate::from_kbps(kbps)).unwrap());
    let queue = QueueLimit::Time(TimeDelta::from_millis(300));
    LinkConfig::unlimited(TimeDelta::from_millis(25)).with_capacity(capacity).with_queue(queue)
}

fn one_mbps(flows: Vec<FlowConfig>) -> Config {
    let down = LinkConfig::unlimited(TimeDelta::from_millis(25));
    let hops = vec![Hop::new(link(1_000), down)];
    Config::wired(TimeDelta::from_secs(20), hops, flows)
}

/// Each packet is sent, and each arrives, at the very end of a row.
#[test]
fn what_happens_at_the_end_of_a_row_is_in_the_next_one() {
    // 1,000 bytes every 50 ms.
    let rate = Schedule::constant(Bitrate::from_kbps(160)).unwrap();
    let traffic = FlowKind::Udp(Udp::new(rate, DataSize::from_bytes(1_000)));
    for delay in [0, 1, 2, 3, 20] {
        for capacity in [Capacity::Unlimited, link(4_000).capacity] {
            // At 4 Mbit/s a packet takes 2 ms.
            let transmission = if capacity == Capacity::Unlimited { 0 } else { 2 };
            let wait = TimeDelta::from_millis(50 * delay - transmission).max(TimeDelta::ZERO);
            let up = LinkConfig::unlimited(wait).with_capacity(capacity.clone());
            let down = LinkConfig::unlimited(TimeDelta::ZERO);
            let flow =
                FlowConfig { traffic: traffic.clone(), ..flow("u", LabAlgorithm::Gcc, 0, 3) };
            let config =
                Config::wired(TimeDelta::from_secs(3), vec![Hop::new(up, down)], vec![flow]);
            let rows = run(&config, Seed::new(1)).rows;
            assert_eq!(rows.len(), 60);
            for (place, row) in rows.iter().enumerate() {
                assert_eq!(row.sent_packets, 1, "{delay} {:?}", row.time);
                let arrived = if place as i64 >= delay { 1_000 } else { 0 };
                assert_eq!(row.received.as_bytes(), arrived, "{delay} {:?}", row.time);
                // The link carries all of it within the row in which it is sent.
                assert_eq!(row.bits_carried(), if transmission > 0 { 8_000 } else { arrived * 8 });
            }
        }
    }
}

fn received(trace: &Trace, flow: usize) -> DataSize {
    trace.rows.iter().filter(|row| row.flow == flow).map(|row| row.received).sum()
}

#[test]
fn equal_seeds_give_equal_traces_and_another_seed_another() {
    let mut config = one_mbps(vec![flow("media-1", LabAlgorithm::GccDraft, 0, 20)]);
    config.hops[0].up.loss = LossModel::Random(0.02);
    let first = run(&config, Seed::new(1));
    assert_eq!(first, run(&config, Seed::new(1)));
    assert_ne!(first, run(&config, Seed::new(2)));
}

#[test]
fn the_link_never_carries_more_than_its_capacity() {
    for algorithm in LabAlgorithm::all() {
        let flows = vec![flow("media-1", algorithm, 0, 20), flow("media-2", algorithm, 0, 20)];
        let trace = run(&one_mbps(flows), Seed::new(1));
        let total = received(&trace, 0) + received(&trace, 1);
        assert!(total <= DataSize::from_bytes(2_500_000), "{algorithm}: {total}");
        assert!(total >= DataSize::from_bytes(500_000), "{algorithm}: {total}");
    }
}

#[test]
fn a_flow_has_rows_from_its_start_to_its_stop_and_nothing_is_sent_outside() {
    let flows = vec![flow("media-1", LabAlgorithm::Nada, 2, 5)];
    let trace = run(&one_mbps(flows), Seed::new(1));
    let times: Vec<i64> = trace.rows.iter().map(|row| row.time.as_millis()).collect();
    assert_eq!(times, (2_050..=5_000).step_by(50).collect::<Vec<i64>>());
    assert!(trace.events.iter().all(|event| event.time >= secs(2) && event.time <= secs(5)));
    assert!(trace.rows[1].sent > DataSize::ZERO);
}

#[test]
fn packets_are_sent_lost_or_under_way_and_each_row_has_the_capacity() {
    let mut config = one_mbps(vec![flow("media-1", LabAlgorithm::Nada, 0, 20)]);
    config.hops[0].up.loss = LossModel::Random(0.05);
    let trace = run(&config, Seed::new(1));
    let (sent, lost) = trace
        .rows
        .iter()
        .fold((0, 0), |(sent, lost), row| (sent + row.sent_packets, lost + row.lost_packets));
    let ratio = lost as f64 / sent as f64;
    assert!((0.03..0.08).contains(&ratio), "{ratio}");
    assert!(trace.rows.iter().all(|row| row.capacity == Some(Bitrate::from_kbps(1_000))));
}

#[test]
fn lost_feedback_does_not_stop_the_simulation() {
    for algorithm in LabAlgorithm::all() {
        let mut config = one_mbps(vec![flow("media-1", algorithm, 0, 20)]);
        config.hops[0].down.loss = LossModel::Random(1.0);
        let trace = run(&config, Seed::new(1));
        assert_eq!(trace.rows.len(), 400, "{algorithm}");
        assert!(trace.rows.iter().all(|row| row.rtt.is_none()));
    }
}

#[test]
fn the_shortest_round_trip_is_propagation_serialisation_and_feedback_wait() {
    let trace = run(&one_mbps(vec![flow("media-1", LabAlgorithm::GccDraft, 0, 20)]), Seed::new(1));
    let least = trace.rows.iter().filter_map(|row| row.rtt).min().unwrap();
    assert!(least >= TimeDelta::from_millis(50), "{least}");
    assert!(least < TimeDelta::from_millis(110), "{least}");
}

#[test]
fn several_hops_carry_what_the_narrowest_does_and_each_flow_only_its_own() {
    let mut config = one_mbps(vec![
        FlowConfig { hops: 0..2, ..flow("media-1", LabAlgorithm::Nada, 0, 20) },
        FlowConfig {
            hops: 1..2,
            direction: Direction::Down,
            ..flow("media-2", LabAlgorithm::Nada, 0, 20)
        },
    ]);
    config.hops.push(Hop::new(link(400), link(600)));
    let trace = run(&config, Seed::new(1));
    let capacity = |flow| trace.rows.iter().find(|row| row.flow == flow).unwrap().capacity.unwrap();
    assert_eq!((capacity(0), capacity(1)), (Bitrate::from_kbps(400), Bitrate::from_kbps(600)));
    for (flow, most) in [(0, 1_000_000), (1, 1_500_000)] {
        let bytes = received(&trace, flow).as_bytes();
        assert!((most / 2..=most).contains(&bytes), "{flow}: {bytes}");
    }
    // Two hops with a one-way delay of 25 ms each; the other flow crosses one hop.
    let least =
        |flow| trace.rows.iter().filter(|row| row.flow == flow).filter_map(|row| row.rtt).min();
    assert!(least(0) >= Some(TimeDelta::from_millis(100)), "{:?}", least(0));
    assert!(least(1) < Some(TimeDelta::from_millis(100)), "{:?}", least(1));
}

#[test]
fn an_access_delay_counts_each_way() {
    let plain = flow("media-1", LabAlgorithm::GccDraft, 0, 20);
    let least = |flow: FlowConfig| {
        run(&one_mbps(vec![flow]), Seed::new(1))
            .rows
            .iter()
            .filter_map(|row| row.rtt)
            .min()
            .unwrap()
    };
    let far = FlowConfig { access_delay: TimeDelta::from_millis(40), ..plain.clone() };
    let more = least(far) - least(plain);
    assert!((more - TimeDelta::from_millis(80)).abs() < TimeDelta::from_millis(10), "{more}");
}

#[test]
fn a_paused_source_sends_nothing_and_goes_on_after_the_pause() {
    for algorithm in LabAlgorithm::all() {
        let pauses = vec![secs(8)..secs(12)];
        let trace = run(
            &one_mbps(vec![FlowConfig { pauses, ..flow("media-1", algorithm, 0, 20) }]),
            Seed::new(1),
        );
        let sent = |from: i64, to: i64| -> DataSize {
            let within = |row: &&crate::trace::Row| row.time > secs(from) && row.time <= secs(to);
            trace.rows.iter().filter(within).map(|row| row.sent).sum()
        };
        // Queued packets leave first. After that there are only sender reports, if any.
        let reports = DataSize::from_bytes(4 * (28 + 28 + 14));
        let most = if algorithm == LabAlgorithm::Gcc2013 { reports } else { DataSize::ZERO };
        assert!(sent(9, 11) <= most, "{algorithm}");
        assert!(sent(12, 20) > DataSize::from_bytes(100_000), "{algorithm}");
    }
}

/// Bytes received in the last 5 s of 40 s over a link of 1 Mbit/s, with this feedback plan.
fn late_bytes(algorithm: LabAlgorithm, plan: &[(Timestamp, Feedback)]) -> u64 {
    let mut flow = flow("media-1", algorithm, 0, 40);
    let FlowKind::Media(media) = &mut flow.traffic else { unreachable!("made as media") };
    media.feedback = plan.to_vec();
    let config = Config { duration: TimeDelta::from_secs(40), ..one_mbps(vec![flow]) };
    let trace = run(&config, Seed::new(1));
    let late = trace.rows.iter().filter(|row| row.time > secs(35));
    late.map(|row| row.received.as_bytes()).sum()
}

#[test]
fn feedback_by_packet_fills_a_link_in_either_format_and_after_switches() {
    let switches = [
        (secs(0), Feedback::Twcc),
        (secs(10), Feedback::Ccfb),
        (secs(20), Feedback::ReceiverReports),
        (secs(30), Feedback::Twcc),
    ];
    let plans = [&[][..], &[(secs(0), Feedback::Ccfb)], &switches];
    for algorithm in LabAlgorithm::all() {
        for plan in plans {
            // The link can carry 625 kB.
            let bytes = late_bytes(algorithm, plan);
            assert!(bytes > 500_000, "{algorithm} with {plan:?}: {bytes} B");
        }
    }
}

#[test]
fn receiver_reports_alone_keep_a_flow_above_its_least_bitrate() {
    for algorithm in LabAlgorithm::all() {
        let bytes = late_bytes(algorithm, &[(secs(0), Feedback::ReceiverReports)]);
        // 150 kbit/s corresponds to 94 kB.
        assert!(bytes > 100_000, "{algorithm}: {bytes} B");
    }
}

/// One video flow with this repair over a link of 1 Mbit/s with random loss.
fn repaired(repair: Repair, loss: f64, algorithm: LabAlgorithm) -> Trace {
    let mut flow = flow("media-1", algorithm, 0, 60);
    let FlowKind::Media(media) = &mut flow.traffic else { unreachable!("made as media") };
    media.repair = Some(repair);
    let mut config = one_mbps(vec![flow]);
    config.duration = TimeDelta::from_secs(60);
    config.hops[0].up.loss = LossModel::Random(loss);
    run(&config, Seed::new(1))
}

/// Sums of the video results over the trace. The frame delay is the maximum over the rows.
fn video(trace: &Trace) -> Video {
    trace.rows.iter().filter_map(|row| row.video).fold(Video::default(), |sum, video| Video {
        media: sum.media + video.media,
        rtx: sum.rtx + video.rtx,
        fec: sum.fec + video.fec,
        media_packets: sum.media_packets + video.media_packets,
        unrepaired_packets: sum.unrepaired_packets + video.unrepaired_packets,
        frames: sum.frames + video.frames,
        freezes: sum.freezes + video.freezes,
        frozen: sum.frozen + video.frozen,
        frame_delay: sum.frame_delay.max(video.frame_delay),
    })
}

const NO_REPAIR: Repair = Repair { nack: false, fec: false, key_frame_interval: None };
const NACK: Repair = Repair { nack: true, ..NO_REPAIR };
const FEC: Repair = Repair { fec: true, ..NO_REPAIR };
const BOTH: Repair = Repair { nack: true, fec: true, ..NO_REPAIR };

#[test]
fn a_picture_that_stands_to_the_end_froze_and_a_paused_one_did_not() {
    let steps = [(0, 1_000_000), (10, 0)].map(|(s, bps)| (secs(s), Bitrate::from_bps(bps)));
    let ends = Capacity::Schedule(Schedule::new(steps.to_vec()).unwrap());
    for quality in [false, true] {
        for algorithm in [LabAlgorithm::Gcc, LabAlgorithm::Sluice] {
            let mut flow = flow("media-1", algorithm, 0, 20);
            let FlowKind::Media(media) = &mut flow.traffic else { unreachable!("made as media") };
            media.repair = Some(NACK);
            flow.quality = quality;
            let mut config = one_mbps(vec![flow]);
            config.hops[0].up.capacity = ends.clone();
            let standing = video(&run(&config, Seed::new(1)));
            let time = standing.frozen.as_secs_f64();
            assert!(standing.freezes == 1 && (9.4..10.1).contains(&time), "{algorithm} {time} s");
            config.flows[0].pauses = vec![secs(9)..secs(20)];
            assert_eq!(video(&run(&config, Seed::new(1))).frozen, TimeDelta::ZERO, "{algorithm}");
        }
    }
}

#[test]
fn what_arrives_is_media_retransmission_or_parity() {
    let trace = repaired(BOTH, 0.05, LabAlgorithm::Nada);
    let video = video(&trace);
    assert_eq!(video.media + video.rtx + video.fec, received(&trace, 0));
    assert!(video.rtx > DataSize::ZERO && video.fec > DataSize::ZERO);
}

#[test]
fn a_flow_without_repair_has_no_video() {
    let trace = run(&one_mbps(vec![flow("media-1", LabAlgorithm::Nada, 0, 20)]), Seed::new(1));
    assert!(trace.rows.iter().all(|row| row.video.is_none()));
}

#[test]
fn a_pause_is_no_freeze_and_the_video_goes_on_after_it() {
    let mut flow = flow("media-1", LabAlgorithm::Nada, 0, 20);
    flow.pauses = vec![secs(6)..secs(12)];
    let FlowKind::Media(media) = &mut flow.traffic else { unreachable!("made above") };
    media.repair = Some(NACK);
    let video = video(&run(&one_mbps(vec![flow]), Seed::new(1)));
    // 14 s at 30 frames a second.
    assert_eq!((video.freezes, video.unrepaired_packets), (0, 0));
    assert!((410..=421).contains(&video.frames), "{video:?}");
}

#[test]
fn repair_buys_smooth_video() {
    let [none, nack, fec, both] = [NO_REPAIR, NACK, FEC, BOTH]
        .map(|repair| video(&repaired(repair, 0.03, LabAlgorithm::Nada)));
    // 60 s at 30 frames a second.
    assert!(none.frames < 1_400, "{none:?}");
    assert!(fec.frames > none.frames + 200, "{fec:?}");
    assert!(nack.frames > 1_650 && both.frames > 1_650, "{nack:?} {both:?}");
    assert!(nack.unrepaired_packets == 0 && both.unrepaired_packets == 0);
    let residual = |video: Video| {
        video.unrepaired_packets as f64 / (video.unrepaired_packets + video.media_packets) as f64
    };
    assert!(residual(none) > 0.02, "{none:?}");
    assert!(residual(fec) < 0.01, "{fec:?}");
}

// v = A - r_FEC - r_RTX: the total sent rate matches the controller's target.
#[test]
fn media_and_repair_together_meet_the_target() {
    for algorithm in LabAlgorithm::all() {
        for repair in [NO_REPAIR, NACK, FEC, BOTH] {
            let trace = repaired(repair, 0.05, algorithm);
            let late: Vec<_> = trace.rows.iter().filter(|row| row.time > secs(10)).collect();
            let sent: DataSize = late.iter().map(|row| row.sent).sum();
            let target: f64 =
                late.iter().map(|row| row.target.unwrap().as_bps_f64() / 8.0 * 0.05).sum();
            let ratio = sent.as_bytes() as f64 / target;
            assert!((0.93..1.07).contains(&ratio), "{algorithm} {repair:?}: {ratio}");
        }
    }
}

#[test]
fn parity_is_never_more_than_half_of_what_was_sent() {
    for loss in [0.02, 0.1, 0.3] {
        let video = video(&repaired(FEC, loss, LabAlgorithm::Nada));
        let share = video.fec.as_bytes() as f64 / (video.fec + video.media).as_bytes() as f64;
        assert!(share > 0.02, "{loss}: {share}");
        // With random losses, slightly more of either kind may arrive.
        assert!(share < 0.51, "{loss}: {share}");
    }
}

// [REMB §3]: the send times in the packets wrap at 64 s.
#[test]
fn a_receiver_that_estimates_limits_its_sender_by_remb() {
    let mut config = one_mbps(vec![flow("media-1", LabAlgorithm::Gcc2013, 0, 90)]);
    config.duration = TimeDelta::from_secs(90);
    let trace = run(&config, Seed::new(1));
    let reason = |reason: &str| trace.events.iter().filter(|event| event.reason == reason).count();
    assert!(reason("receiver limit") > 0, "over-use is found at the receiver");
    assert_eq!(reason("over-use"), 0, "and nowhere else");
    let late = trace.rows.iter().filter(|row| row.time > secs(65));
    let bytes: u64 = late.map(|row| row.received.as_bytes()).sum();
    assert!(bytes > 25 * 1_000_000 / 8 * 7 / 10, "{bytes} B in 25 s");
}

// [RFC8867 §6.1]
#[test]
fn flows_of_one_sender_share_by_priority_and_inherit_from_one_that_ends() {
    for algorithm in [LabAlgorithm::Gcc, LabAlgorithm::Nada, LabAlgorithm::ScreamV2] {
        let coupled = |name, priority, start, stop| {
            let mut flow = flow(name, algorithm, start, stop);
            let FlowKind::Media(media) = &mut flow.traffic else { unreachable!("made above") };
            media.sender = Some("studio".into());
            media.settings.priority = priority;
            flow
        };
        let flows = vec![
            coupled("media-1", 2.0, 0, 90),
            coupled("media-2", 1.0, 10, 90),
            coupled("media-3", 1.0, 20, 70),
        ];
        let down = LinkConfig::unlimited(TimeDelta::from_millis(25));
        let hops = vec![Hop::new(link(3_500), down)];
        let config = Config::wired(TimeDelta::from_secs(90), hops, flows);
        let trace = run(&config, Seed::new(1));
        let mbps = |flow: usize, from: i64, to: i64| {
            let rows = trace.rows.iter().filter(|row| row.flow == flow);
            let rows = rows.filter(|row| secs(from) < row.time && row.time <= secs(to));
            let bytes: DataSize = rows.map(|row| row.received).sum();
            (bytes / (secs(to) - secs(from))).as_mbps_f64()
        };
        let [first, second, third] = [0, 1, 2].map(|flow| mbps(flow, 40, 70));
        println!("{algorithm}: {first:.2} {second:.2} {third:.2} Mbit/s");
        assert!((1.6..2.4).contains(&(first / second)), "{algorithm}: {first} to {second}");
        assert!((1.6..2.4).contains(&(first / third)), "{algorithm}: {first} to {third}");
        assert!(first + second + third > 0.7 * 3.5);
        let [first, second] = [0, 1].map(|flow| mbps(flow, 75, 90));
        assert!((1.6..2.4).contains(&(first / second)), "{algorithm}: {first} to {second}");
    }
}

#[test]
fn a_run_that_is_stopped_gives_no_trace() {
    let config = one_mbps(vec![flow("media-1", LabAlgorithm::Nada, 0, 20)]);
    assert_eq!(run_unless(&config, Seed::new(1), &AtomicBool::new(true)), None);
    let trace = run_unless(&config, Seed::new(1), &AtomicBool::new(false));
    assert_eq!(trace, Some(run(&config, Seed::new(1))));
}

/// A film in 360p over this link with 25 ms each way, and speech beside it.
fn watched(kbps: u64, loss: f64) -> Trace {
    let mut film = flow("media-1", LabAlgorithm::Gcc, 0, 20);
    film.quality = true;
    let FlowKind::Media(media) = &mut film.traffic else { unreachable!("made as media") };
    let video =
        EncoderVideo { width: 640, height: 360, content: Content::Film, ..EncoderVideo::DEFAULT };
    media.source = Source::Encoder { fps: 30.0, cap: None, video };
    media.repair = Some(NACK);
    let rate = Schedule::constant(Bitrate::from_kbps(20)).unwrap();
    let speech = Udp::new(rate, DataSize::from_bytes(50))
        .with_speech(Some(Speech::plain(TimeDelta::from_millis(20))));
    let audio = FlowConfig::new("audio-1", TimeDelta::from_secs(20), FlowKind::Udp(speech));
    let mut config = one_mbps(vec![film, audio]);
    config.hops[0].up = link(kbps);
    config.hops[0].up.loss = LossModel::Random(loss);
    run(&config, Seed::new(1))
}

#[test]
fn on_a_clean_link_nothing_stalls_and_all_speech_is_heard() {
    let trace = watched(4_000, 0.0);
    let all = video(&trace);
    assert_eq!((all.freezes, all.frozen), (0, TimeDelta::ZERO));
    assert!(all.frames > 540, "{} frames", all.frames);
    let path = TimeDelta::from_millis(25);
    for row in &trace.rows {
        let delay = row.video.and_then(|video| video.frame_delay);
        assert!(delay.is_none_or(|delay| delay > path), "{delay:?}");
        let heard = row.heard.and_then(|heard| heard.delay);
        assert!(heard.is_none_or(|delay| delay > path + TimeDelta::from_millis(10)), "{heard:?}");
    }
    let late = trace.rows.iter().filter(|row| row.time > secs(10));
    let scores: Vec<u64> = late.filter_map(|row| row.seen?.vmaf).collect();
    assert!(scores.len() > 150 && scores.iter().all(|vmaf| *vmaf > 8_000), "{scores:?}");
    let heard = trace.rows.iter().filter_map(|row| row.heard);
    let (played, concealed) = heard.fold((TimeDelta::ZERO, TimeDelta::ZERO), |sum, heard| {
        (sum.0 + heard.played, sum.1 + heard.concealed)
    });
    assert!(played > TimeDelta::from_secs(19));
    assert_eq!(concealed, TimeDelta::ZERO);
}

#[test]
fn losses_make_the_picture_later_and_speech_is_made_up() {
    let delay = |trace: &Trace| {
        let rows = trace.rows.iter().filter(|row| row.time > secs(5));
        let delays = rows.filter_map(|row| row.video?.frame_delay);
        let delays: Vec<f64> = delays.map(TimeDelta::as_millis_f64).collect();
        delays.iter().sum::<f64>() / delays.len() as f64
    };
    let (clean, lossy) = (watched(4_000, 0.0), watched(4_000, 0.05));
    assert!(delay(&lossy) > delay(&clean) + 30.0, "{} and {}", delay(&clean), delay(&lossy));
    let concealed: TimeDelta = lossy
        .rows
        .iter()
        .filter_map(|row| row.heard)
        .fold(TimeDelta::ZERO, |sum, heard| sum + heard.concealed);
    let share = concealed.as_secs_f64() / 20.0;
    assert!((0.03..0.09).contains(&share), "{share}");
}
