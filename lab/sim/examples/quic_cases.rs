//! Simulated QUIC connections over the eight cases of `library/noq` and `library/quinn`: the same
//! network and the same source as their example `compare`, in place of the real stacks. Prints a
//! Markdown table.

#[path = "../../../library/noq/tests/it/cases.rs"]
mod cases;

use weir::controller::{RateLimits, Settings};
use weir::units::{Bitrate, TimeDelta};
use weir_controllers::LabAlgorithm;
use weir_quic::testing;
use weir_sim::{Media, Quic, QuicCongestion, QuicPair, QuicSource, QuicStack, Source};

fn quic(algorithm: LabAlgorithm) -> Quic<Media> {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    let none = Source::Filler { fps: 30.0, cap: None };
    Quic::new(Media::new(algorithm, Settings::new(limits), none), QuicSource::Fixed(kbps(1)))
}

fn connections() -> Vec<(&'static str, Quic<Media>)> {
    let (sluice, scream) = (quic(LabAlgorithm::Sluice), quic(LabAlgorithm::ScreamV2));
    let quinn = |quic: &Quic<Media>| quic.clone().with_stack(QuicStack::Quinn);
    let under = |congestion| quic(LabAlgorithm::Sluice).with_congestion(congestion);
    vec![
        ("sluice as on quinn", quinn(&sluice)),
        ("scream-v2 as on quinn", quinn(&scream)),
        ("sluice as on noq", sluice),
        ("scream-v2 as on noq", scream),
        ("CUBIC", under(QuicCongestion::Cubic)),
        ("NewReno", under(QuicCongestion::NewReno)),
        ("BBRv3", under(QuicCongestion::Bbr3)),
    ]
}

fn main() {
    println!("{}", cases::HEAD);
    for case in cases::cases() {
        for (name, quic) in connections() {
            let mut host = QuicPair::new(&quic);
            let (length, from) = (TimeDelta::from_secs(40), TimeDelta::from_secs(10));
            let network = case.network.clone();
            let outcome = testing::run(&mut host, network, case.source, length, from);
            println!("| {} | {name} | {outcome} |", case.name);
        }
    }
}
