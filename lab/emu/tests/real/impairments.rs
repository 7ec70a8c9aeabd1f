//! Jitter, reordering, loss and a token bucket between real sockets, beside the model alone. Needs
//! root; says so where it is missing.

use std::time::Duration;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_emu::{Emulator, Error, Plan, Probe, Probed, probe};
use weir_net::loss::GilbertElliott;
use weir_net::{
    Bottleneck, Capacity, Header, Jitter, JitterShape, LinkConfig, LossModel, NetemJitter, Outcome,
    Schedule, Seed,
};

const COUNT: u32 = 400;
const SIZE: DataSize = DataSize::from_bytes(200);

fn links() -> Vec<(LinkConfig, u32)> {
    let link = || LinkConfig::unlimited(TimeDelta::from_millis(60));
    let jitter = |distribution, correlation, reorder| {
        let amount = TimeDelta::from_millis(15);
        Jitter::Netem(NetemJitter { amount, distribution, correlation, reorder })
    };
    let capacity = Schedule::constant(Bitrate::from_kbps(400)).unwrap();
    let losses = GilbertElliott::correlated(0.2, 0.7);
    vec![
        (link().with_jitter(jitter(JitterShape::Normal, 0.5, true)), 1),
        (link().with_jitter(jitter(JitterShape::Pareto, 0.0, false)), 1),
        (link().with_reorder(0.2), 1),
        (link().with_loss(LossModel::GilbertElliott(losses)), 1),
        (
            link()
                .with_capacity(Capacity::Schedule(capacity))
                .with_burst(Some(DataSize::from_bytes(4_000))),
            40,
        ),
    ]
}

/// Number and arrival of the packets that the model alone delivers, if they are sent as these were.
fn modelled(link: &LinkConfig, sent: &[Timestamp]) -> Vec<(usize, Timestamp)> {
    let mut model = Bottleneck::new(link, Seed::new(1), "up");
    let mut arrived = Vec::new();
    for (number, at) in sent.iter().enumerate() {
        model.enqueue(*at, Header::new(SIZE), number);
    }
    while let Some(outcome) = model.poll(Timestamp::from_secs(1_000)) {
        if let Outcome::Delivered(delivery) = outcome {
            arrived.push((delivery.payload, delivery.due));
        }
    }
    arrived.sort_unstable();
    arrived
}

#[test]
fn real_packets_meet_the_jitter_losses_and_bucket_of_the_model() {
    for (link, burst) in links() {
        let plain = LinkConfig::unlimited(TimeDelta::from_millis(1));
        let mut emulator = match Emulator::new(&Plan::two_hosts(&link, &plain), Seed::new(1)) {
            Ok(emulator) => emulator,
            Err(error @ (Error::NotRoot | Error::NoTun | Error::TunDenied)) => {
                return println!("skipped: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        emulator.start();
        let (from, to) = (emulator.host(0), emulator.host(1));
        let stream = Probe {
            packet: SIZE,
            interval: TimeDelta::from_millis(4),
            burst,
            super_packets: false,
            count: COUNT,
            tail: Duration::from_millis(500),
        };
        let Probed { sent, mut received } = probe(from, to, to.address(), &stream).unwrap();
        received.sort_unstable();
        let modelled = modelled(&link, &sent);
        let mut late: Vec<f64> = Vec::new();
        for ((number, at), (expected, due)) in received.iter().zip(&modelled) {
            assert_eq!(number, expected, "{link:?}");
            late.push((*at - *due).as_millis_f64());
        }
        assert_eq!(received.len(), modelled.len(), "{link:?}");
        late.sort_unstable_by(f64::total_cmp);
        // The model is never early; a packet that had to wait for an earlier one's release is late.
        assert!(late[0] > -0.1, "{link:?} {late:?}");
        // Half of the packets are within less than the impairment itself.
        assert!(late[late.len() / 2] < 5.0, "{link:?} {late:?}");
        emulator.stop().unwrap();
    }
}
