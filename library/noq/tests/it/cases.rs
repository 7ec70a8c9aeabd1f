//! The networks and sources of the comparison.

use weir::{Bitrate, TimeDelta};
use weir_quic::testing::{End, LinkConfig, NetworkConfig, Rival, SourceConfig};

pub const HEAD: &str = "| case | controller | utilization | goodput / capacity | queue p50 / p95 \
    ms | frame delay p50 / p95 ms | frames whole | lost in the network |\n\
    |---|---|---|---|---|---|---|---|";

pub struct Case {
    pub name: &'static str,
    pub network: NetworkConfig,
    pub source: SourceConfig,
}

fn mbps(mbps: f64) -> Bitrate {
    Bitrate::from_bps_f64(mbps * 1e6)
}

fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

pub fn cases() -> Vec<Case> {
    let moq = NetworkConfig::constant(mbps(5.0), ms(100), ms(500));
    let fixed = SourceConfig::Fixed(mbps(10.0));
    let adaptive = SourceConfig::adaptive(mbps(1.0), mbps(10.0));
    let full = NetworkConfig {
        down: LinkConfig::constant(mbps(5.0), ms(500)),
        rival: Some(Rival { beside: End::Subscriber, from: ms(0) }),
        ..moq.clone()
    };
    let beside =
        NetworkConfig { rival: Some(Rival { beside: End::Publisher, from: ms(0) }), ..moq.clone() };
    let mut loss = moq.clone();
    loss.up.loss = 0.02;
    let mut steps = moq.clone();
    steps.up.capacity = vec![(ms(0), mbps(5.0)), (ms(20_000), mbps(1.0)), (ms(30_000), mbps(3.0))];
    let mut outage = moq.clone();
    outage.up.capacity =
        vec![(ms(0), mbps(5.0)), (ms(20_000), Bitrate::ZERO), (ms(23_000), mbps(5.0))];
    let narrow = NetworkConfig::constant(mbps(1.0), ms(20), ms(500));
    [
        ("moq's case, fixed source", moq.clone(), fixed),
        ("moq's case, adaptive source", moq, adaptive),
        ("full way back", full, adaptive),
        ("2 % loss", loss, adaptive),
        ("5, 1, 3 Mbit/s", steps, adaptive),
        ("outage of 3 s", outage, adaptive),
        ("1 Mbit/s, 20 ms", narrow, adaptive),
        ("beside a Reno flow", beside, adaptive),
    ]
    .map(|(name, network, source)| Case { name, network, source })
    .into()
}
