//! What tc's users expect of a link: the emulator carries packets exactly as the model that the
//! simulator drives. No clock and no socket is needed: the same packets go into both.

use weir::units::Bitrate;
use weir_net::loss::GilbertElliott;
use weir_net::{Capacity, Jitter, JitterShape, LossModel, NetemJitter, Schedule};

use super::*;

const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const PACKETS: usize = 6_000;
/// Packets that are sent at once, every [`PAUSE`].
const BURST: usize = 50;
const PAUSE: TimeDelta = TimeDelta::from_millis(50);
const DELAY: TimeDelta = TimeDelta::from_millis(40);
const SIZE: usize = 125;

/// Number and delay of each packet that arrives, in order of arrival.
type Arrived = Vec<(usize, TimeDelta)>;

fn sent(number: usize) -> Timestamp {
    Timestamp::ZERO + PAUSE * (number / BURST) as i64
}

fn link() -> LinkConfig {
    LinkConfig::unlimited(DELAY)
}

fn jitter(distribution: JitterShape, correlation: f64, reorder: bool) -> LinkConfig {
    let amount = TimeDelta::from_millis(8);
    link().with_jitter(Jitter::Netem(NetemJitter { amount, distribution, correlation, reorder }))
}

fn reordering() -> LinkConfig {
    link().with_reorder(0.2)
}

fn correlated_losses() -> LinkConfig {
    link().with_loss(LossModel::GilbertElliott(GilbertElliott::correlated(0.1, 0.8)))
}

/// A bucket of 20 packets that fills at one packet a millisecond.
fn bucket() -> LinkConfig {
    let capacity = Schedule::constant(Bitrate::from_kbps(1_000)).unwrap();
    let burst = DataSize::from_bytes(20 * SIZE as u64);
    link().with_capacity(Capacity::Schedule(capacity)).with_burst(Some(burst))
}

fn emulated(link: &LinkConfig) -> Arrived {
    let mut network = Network::new(&Plan::two_hosts(link, link), &HOSTS, Seed::new(7));
    let mut arrived = Vec::new();
    for number in 0..PACKETS {
        let mut packet = vec![0; SIZE];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&HOSTS[0].octets());
        packet[16..20].copy_from_slice(&HOSTS[1].octets());
        packet[20..24].copy_from_slice(&(number as u32).to_be_bytes());
        take(&mut network, sent(number), &mut arrived);
        network.enqueue(sent(number), 0, &packet);
    }
    take(&mut network, Timestamp::from_secs(60), &mut arrived);
    arrived
}

fn take(network: &mut Network, until: Timestamp, arrived: &mut Arrived) {
    while let Some(Arrival { due, packet, .. }) = network.poll(until) {
        let number = u32::from_be_bytes(packet[20..24].try_into().unwrap()) as usize;
        arrived.push((number, due - sent(number)));
    }
}

/// The same packets through the model alone, as the simulator drives it.
fn simulated(link: &LinkConfig) -> Arrived {
    let mut model = Bottleneck::new(link, Seed::new(7), "up");
    let mut arrived = Vec::new();
    for number in 0..=PACKETS {
        let now = if number < PACKETS { sent(number) } else { Timestamp::from_secs(60) };
        while let Some(outcome) = model.poll(now) {
            if let Outcome::Delivered(delivery) = outcome {
                arrived.push((delivery.payload, delivery.due - sent(delivery.payload)));
            }
        }
        if number < PACKETS {
            model.enqueue(now, Header::new(DataSize::from_bytes(SIZE as u64)), number);
        }
    }
    arrived
}

/// Delays in milliseconds in the order of sending.
fn delays(arrived: &Arrived) -> Vec<f64> {
    let mut sorted = arrived.clone();
    sorted.sort_unstable();
    sorted.iter().map(|(_, delay)| delay.as_millis_f64()).collect()
}

/// Mean, standard deviation, and correlation of neighbours.
fn moments(values: &[f64]) -> [f64; 3] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let (mut variance, mut together, mut before) = (0.0, 0.0, 0.0);
    for value in values {
        let deviation = value - mean;
        variance += deviation * deviation / count;
        together += deviation * before / count;
        before = deviation;
    }
    [mean, variance.sqrt(), together / variance]
}

#[test]
fn each_impairment_is_that_of_the_simulator_packet_by_packet() {
    for link in [
        jitter(JitterShape::Normal, 0.0, true),
        jitter(JitterShape::Pareto, 0.0, true),
        jitter(JitterShape::Pareto, 0.5, false),
        jitter(JitterShape::Uniform, 0.9, true),
        reordering(),
        correlated_losses(),
        bucket(),
        bucket().with_reorder(0.1).with_loss(LossModel::Random(0.05)),
    ] {
        let emulated = emulated(&link);
        assert!(emulated.len() > PACKETS / 2, "{link:?}");
        assert_eq!(emulated, simulated(&link), "{link:?}");
    }
}

#[test]
fn delays_vary_with_the_distribution_and_the_correlation_of_the_jitter() {
    let normal = moments(&delays(&emulated(&jitter(JitterShape::Normal, 0.0, true))));
    assert!((normal[0] - 40.0).abs() < 0.4 && (normal[1] - 8.0).abs() < 0.3, "{normal:?}");
    assert!(normal[2].abs() < 0.05, "{normal:?}");
    let correlated = moments(&delays(&emulated(&jitter(JitterShape::Normal, 0.9, true))));
    assert!((correlated[2] - 0.9).abs() < 0.03, "{correlated:?}");
    let pareto = delays(&emulated(&jitter(JitterShape::Pareto, 0.0, true)));
    let late = pareto.iter().filter(|delay| **delay > 40.0 + 2.0 * 8.0).count();
    // 1/27 of the distribution is beyond twice the amount.
    assert!((150..300).contains(&late), "{late}");
    let in_order = emulated(&jitter(JitterShape::Pareto, 0.5, false));
    assert!(in_order.is_sorted_by_key(|(number, _)| *number));
}

#[test]
fn a_share_overtakes_and_losses_come_together() {
    let overtook = delays(&emulated(&reordering())).iter().filter(|delay| **delay == 0.0).count();
    assert!((1_080..1_320).contains(&overtook), "{overtook}");
    let arrived = emulated(&correlated_losses());
    let mut gaps = 0;
    for pair in arrived.windows(2) {
        gaps += usize::from(pair[1].0 > pair[0].0 + 1);
    }
    let lost = PACKETS - arrived.len();
    // The mean burst is 1 / (0.9 * 0.2) packets; a tenth of the packets is lost.
    let burst = lost as f64 / gaps as f64;
    assert!((450..750).contains(&lost) && (4.5..6.8).contains(&burst), "{lost}, {burst}");
}

#[test]
fn what_a_token_bucket_holds_leaves_at_once() {
    let delays = delays(&emulated(&bucket()));
    // The rest of a burst leaves a packet a millisecond; in the pause the bucket fills again.
    for burst in delays.chunks(BURST) {
        for (place, delay) in burst.iter().enumerate() {
            let waits = (place + 1).saturating_sub(20) as f64;
            assert!((delay - 40.0 - waits).abs() < 1e-3, "{place} {delay}");
        }
    }
}
