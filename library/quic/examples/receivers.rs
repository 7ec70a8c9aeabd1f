//! What a host's knowledge is worth: the same networks with the ACK delay and without it, with
//! receive times, and with rare ACKs. Prints a Markdown table.

#[path = "../tests/it/model.rs"]
mod model;

use model::{Model, Receiver};
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta};
use weir_quic::testing::{End, LinkConfig, NetworkConfig, Rival, SourceConfig, run};

const CLOCK: TimeDelta = TimeDelta::from_secs(7);

fn receivers() -> [(&'static str, Receiver); 6] {
    let usual = Receiver::USUAL;
    let without = Receiver { tells_delay: false, ..usual };
    [
        ("time of the ACK", without),
        ("and ACK delay", usual),
        ("and receive times", Receiver { clock: Some(CLOCK), ..usual }),
        ("one ACK for 10 packets, time of the ACK", Receiver { ack_every: 10, ..without }),
        ("and ACK delay", Receiver { ack_every: 10, ..usual }),
        ("and receive times", Receiver { ack_every: 10, clock: Some(CLOCK), ..usual }),
    ]
}

fn main() {
    let mbps = |mbps: u64| Bitrate::from_kbps(mbps * 1_000);
    let ms = TimeDelta::from_millis;
    let limits =
        RateLimits::new(Bitrate::from_kbps(100), Bitrate::from_kbps(500), mbps(20)).expect("order");
    let free = NetworkConfig::constant(mbps(5), ms(100), ms(500));
    let full = NetworkConfig {
        down: LinkConfig::constant(mbps(5), ms(500)),
        rival: Some(Rival { beside: End::Subscriber, from: ms(0) }),
        ..free.clone()
    };
    println!(
        "| way back | the host knows | utilization | goodput / capacity | queue p50 / p95 ms | \
         frame delay p50 / p95 ms | frames whole | lost in the network |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for (way_back, network) in [("free", free), ("full", full)] {
        for (knows, receiver) in receivers() {
            let mut host = Model::new(Algorithm::Sluice, limits, receiver);
            let source = SourceConfig::adaptive(mbps(1), mbps(10));
            let outcome = run(&mut host, network.clone(), source, ms(40_000), ms(10_000));
            println!("| {way_back} | {knows} | {outcome} |");
        }
    }
}
