//! ECN from end to end: the sender's codepoint, a queue that marks, the receiver's CCFB and the
//! controller's response. Also the setting that makes a controller tolerate random loss.

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{
    Aqm, Capacity, CoDelConfig, DualPi2Config, Hop, LinkConfig, LossModel, QueueLimit, Schedule,
    Seed,
};
use weir_sim::{Config, Feedback, FlowConfig, FlowKind, Media, Source, Trace, run};

/// End of the ramp-up, which is not evaluated.
const SETTLED: Timestamp = Timestamp::from_secs(20);
const END: Timestamp = Timestamp::from_secs(80);

/// A link of this capacity with a queue of 300 ms.
fn link(mbps: u64, aqm: Aqm) -> LinkConfig {
    let capacity = Schedule::constant(Bitrate::from_kbps(1_000 * mbps)).unwrap();
    LinkConfig::unlimited(TimeDelta::from_millis(25))
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Time(TimeDelta::from_millis(300)))
        .with_aqm(aqm)
}

fn settings(mbps: u64, ecn: EcnMode) -> Settings {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_000 * mbps)).unwrap();
    Settings::from(limits).with_ecn(ecn)
}

/// A single flow on a link, with a round-trip time of 50 ms.
fn simulate(algorithm: LabAlgorithm, settings: Settings, up: LinkConfig) -> Settled {
    let media = Media::new(algorithm, settings, Source::Filler { fps: 60.0, cap: None })
        .with_feedback(vec![(Timestamp::ZERO, Feedback::Ccfb)])
        .with_feedback_interval(TimeDelta::from_millis(20));
    let duration = END - Timestamp::ZERO;
    let flow = FlowConfig::new("media-1", duration, FlowKind::Media(media));
    let hops = vec![Hop::new(up, LinkConfig::unlimited(TimeDelta::from_millis(25)))];
    settled(&run(&Config::wired(duration, hops, vec![flow]), Seed::new(1)))
}

/// Results of a flow after the ramp-up.
#[derive(Debug)]
struct Settled {
    delay_ms_p95: f64,
    rate_mbps: f64,
    lost_packets: u64,
    /// Number of target changes due to marks.
    answers_to_marks: usize,
}

impl std::fmt::Display for Settled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rate_mbps, delay_ms_p95, lost_packets, .. } = self;
        write!(f, "{rate_mbps:.2} Mbit/s, {delay_ms_p95:.0} ms, {lost_packets} lost")
    }
}

fn settled(trace: &Trace) -> Settled {
    let rows: Vec<_> = trace.rows.iter().filter(|row| row.time > SETTLED).collect();
    let mut delays: Vec<f64> =
        rows.iter().filter_map(|row| row.queuing_delay).map(TimeDelta::as_millis_f64).collect();
    delays.sort_by(f64::total_cmp);
    let received: DataSize = rows.iter().map(|row| row.received).sum();
    let events = trace.events.iter().filter(|event| event.time > SETTLED);
    Settled {
        delay_ms_p95: delays[delays.len() * 95 / 100],
        rate_mbps: (received / (END - SETTLED)).as_mbps_f64(),
        lost_packets: rows.iter().map(|row| row.lost_packets).sum(),
        answers_to_marks: events.filter(|event| event.reason == "ECN").count(),
    }
}

// [RFC9331 §4.1], [RFC9332 §2]
#[test]
fn an_l4s_flow_uses_the_link_with_next_to_no_queue() {
    for mbps in [5, 10, 20, 40] {
        let run = |ecn, aqm| simulate(LabAlgorithm::ScreamV2, settings(mbps, ecn), link(mbps, aqm));
        let marked = run(EcnMode::L4s, Aqm::DualPi2(DualPi2Config::default()));
        assert!(marked.delay_ms_p95 < 2.0, "{mbps} Mbit/s: {marked:?}");
        assert!(marked.rate_mbps > 0.65 * mbps as f64, "{mbps} Mbit/s: {marked:?}");
        assert_eq!(marked.lost_packets, 0);
        let dropped = run(EcnMode::Off, Aqm::DropTail);
        assert!(dropped.delay_ms_p95 > 15.0 * marked.delay_ms_p95, "{mbps} Mbit/s: {dropped:?}");
    }
}

// [RFC9332], [SCREAMV2 §4.2.1.3]: at a rate that is low for L4S, too.
#[test]
fn l4s_marks_hold_the_queue_below_what_delay_alone_does() {
    // NADA on its own has a queue of two packets, 10 ms each. Marks hardly reduce it.
    for (algorithm, share) in [(LabAlgorithm::Nada, 1.0), (LabAlgorithm::ScreamV2, 0.5)] {
        let run = |ecn, aqm| simulate(algorithm, settings(1, ecn), link(1, aqm));
        let plain = run(EcnMode::Off, Aqm::DropTail);
        let marked = run(EcnMode::L4s, Aqm::DualPi2(DualPi2Config::default()));
        println!("{algorithm}: {plain} drop-tail, {marked} L4S");
        assert!(
            marked.delay_ms_p95 < plain.delay_ms_p95 * share,
            "{algorithm}: {marked:?} {plain:?}"
        );
        assert!(marked.rate_mbps > 0.3, "{algorithm}: {marked:?}");
    }
}

// [RFC3168 §5], [RFC8867 §6.2]
#[test]
fn classic_marks_take_the_place_of_losses() {
    let codel = Aqm::CoDel(CoDelConfig::default());
    // The receiver of gcc-2013 sends no feedback that could carry marks.
    for algorithm in LabAlgorithm::all().filter(|a| *a != LabAlgorithm::Gcc2013) {
        let run = |ecn| simulate(algorithm, settings(2, ecn), link(2, codel));
        let (dropped, marked) = (run(EcnMode::Off), run(EcnMode::Classic));
        println!("{algorithm}, CoDel: {dropped} without ECN, {marked} with");
        assert!(dropped.lost_packets > 0, "{algorithm}: {dropped:?}");
        assert_eq!(dropped.answers_to_marks, 0, "{algorithm}");
        assert_eq!(marked.lost_packets, 0, "{algorithm}");
        assert!(marked.rate_mbps > 1.5, "{algorithm}: {marked:?}");
        // gcc-draft keeps the queue near CoDel's target, so it gets almost no marks.
        if algorithm != LabAlgorithm::GccDraft {
            assert!(marked.answers_to_marks > 0, "{algorithm}");
        }
    }
}

// SCREAMV2-D8
#[test]
fn tolerance_uses_85_percent_of_2_mbps_at_5_percent_loss() {
    let run = |tolerate_random_loss| {
        let settings = settings(2, EcnMode::Off).with_tolerate_random_loss(tolerate_random_loss);
        let lossy = link(2, Aqm::DropTail).with_loss(LossModel::Random(0.05));
        simulate(LabAlgorithm::ScreamV2, settings, lossy).rate_mbps
    };
    let (strict, tolerant) = (run(false), run(true));
    println!("{strict:.3} Mbit/s without, {tolerant:.3} with tolerance");
    assert!(strict < 1.0, "{strict}");
    assert!(tolerant > 1.7, "{tolerant}");
}
