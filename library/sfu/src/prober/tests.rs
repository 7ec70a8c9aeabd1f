use super::*;
use alloc::vec::Vec;
use weir::feedback::PacketReport;

/// A controller whose target never moves.
#[derive(Clone, Debug)]
struct Fixed(Bitrate);

impl Controller for Fixed {
    fn on_packet_sent(&mut self, _: Timestamp, _: &SentPacket) {}
    fn on_feedback(&mut self, _: Timestamp, _: &FeedbackReport) {}
    fn on_receiver_limit(&mut self, _: Timestamp, _: Option<Bitrate>) {}
    fn set_limits(&mut self, _: Timestamp, _: RateLimits) {}
    fn on_timeout(&mut self, _: Timestamp) {}
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn target(&self) -> Target {
        Target::new(self.0, self.0 * 1.4)
    }
    fn metrics(&self) -> Metrics {
        Metrics::new(Reason::Increase, "fixed")
    }
}

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn prober() -> Probing<Fixed> {
    let limits = RateLimits::new(kbps(50), kbps(300), kbps(5_000)).unwrap();
    Probing::new(Fixed(kbps(750)), limits)
}

/// Reports packets of 1000 bytes, sent at one rate from a time on, arriving at another.
fn report(
    start: i64,
    count: i64,
    sent: Bitrate,
    arrived: Bitrate,
    probe: Option<ProbeId>,
) -> FeedbackReport {
    let size = DataSize::from_bytes(1_000);
    let mut packets = Vec::new();
    for number in 0..count {
        let send_time = at(start) + (size / sent) * number;
        let arrival = at(start + 20) + (size / arrived) * number;
        packets.push(
            PacketReport::new(start + number, size, send_time)
                .with_arrival_time(Some(arrival))
                .with_probe(probe),
        );
    }
    FeedbackReport::new(packets)
}

/// Ends the open train, and says that feedback comes.
fn heartbeat(prober: &mut Probing<Fixed>, ms: i64) {
    prober.on_feedback(at(ms), &report(ms, 1, kbps(500), kbps(500), None));
}

fn started(prober: &Probing<Fixed>) -> Option<Probe> {
    prober.target().probe
}

#[test]
fn a_goal_above_the_target_is_probed_for_and_proved() {
    let mut prober = prober();
    heartbeat(&mut prober, 0);
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    let probe = started(&prober).expect("it cannot hurt");
    assert_eq!(probe.rate, kbps(1_500));
    prober.on_feedback(at(200), &report(100, 15, probe.rate, probe.rate, Some(probe.id)));
    heartbeat(&mut prober, 300);
    assert!(prober.target().bitrate >= kbps(1_400), "{}", prober.target().bitrate);
    assert!(prober.target().pacing_rate >= kbps(1_900));
    assert!(matches!(prober.last_outcome().unwrap().result, ProbeResult::Arrived(_)));
}

#[test]
fn a_probe_that_queues_proves_nothing_and_the_next_one_waits() {
    let mut prober = prober();
    heartbeat(&mut prober, 0);
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    let probe = started(&prober).unwrap();
    prober.on_feedback(at(200), &report(100, 15, probe.rate, kbps(1_000), Some(probe.id)));
    heartbeat(&mut prober, 300);
    assert_eq!((prober.target().bitrate, started(&prober)), (kbps(750), None));
    for ms in (400..4_300).step_by(100) {
        heartbeat(&mut prober, ms);
        assert_eq!(started(&prober), None, "at {ms} ms");
    }
    heartbeat(&mut prober, 4_300);
    assert!(started(&prober).is_some());
}

#[test]
fn a_goal_that_is_known_to_fit_is_not_probed_for() {
    let mut prober = prober();
    heartbeat(&mut prober, 0);
    prober.set_desired_bitrate(at(10), Some(kbps(700)));
    assert_eq!(started(&prober), None);
}

#[test]
fn media_that_arrives_in_a_burst_needs_no_probe() {
    let mut prober = prober();
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    prober.on_feedback(at(200), &report(100, 20, kbps(1_600), kbps(1_600), None));
    heartbeat(&mut prober, 300);
    assert!(prober.target().bitrate > kbps(1_500));
    assert_eq!(started(&prober), None);
}

#[test]
fn without_feedback_nothing_is_probed() {
    let mut prober = prober();
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    assert_eq!(started(&prober), None);
}

#[test]
fn padding_is_paid_for_by_media() {
    let mut prober = prober();
    let padding = SentPacket::new(0, DataSize::from_bytes(60_000)).with_padding(true);
    prober.on_packet_sent(at(0), &padding);
    heartbeat(&mut prober, 0);
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    assert_eq!(started(&prober), None);
    let media = SentPacket::new(1, DataSize::from_bytes(1_000_000));
    prober.on_packet_sent(at(20), &media);
    heartbeat(&mut prober, 30);
    assert!(started(&prober).is_some());
}

#[test]
fn what_was_proved_is_forgotten_after_30_s() {
    let mut prober = prober();
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    prober.on_feedback(at(200), &report(100, 20, kbps(1_600), kbps(1_600), None));
    heartbeat(&mut prober, 300);
    heartbeat(&mut prober, 30_100);
    assert!(prober.target().bitrate > kbps(750));
    heartbeat(&mut prober, 30_400);
    assert_eq!(prober.target().bitrate, kbps(750));
}
