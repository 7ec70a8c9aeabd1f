//! What a cell carries for flows of constant rate.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_net::{Schedule, Seed};

use super::{BIN, bin_of};
use crate::{Scenario, Traffic, Udp};

/// Size of the packets that measure a cell.
const PROBE_PACKET: DataSize = DataSize::from_bytes(1_200);

/// What arrives of each flow in each bin of a run, bit/s, with a flow of constant rate in place of
/// each one for which a rate above zero is offered.
pub(crate) fn constant_rates(
    scenario: &Scenario,
    seed: u64,
    offered: &[Option<Bitrate>],
) -> Vec<Vec<f64>> {
    let mut probed = scenario.clone();
    for (flow, offered) in probed.flows.iter_mut().zip(offered) {
        let Some(offered) = *offered else { continue };
        let rate = Schedule::constant(offered).expect("not zero");
        flow.traffic = Traffic::Udp(Udp::new(rate, PROBE_PACKET));
    }
    let bins = bin_of(Timestamp::ZERO + scenario.duration);
    let mut rates = vec![vec![0.0; bins]; scenario.flows.len()];
    // No controller is left for which a name matters.
    let config = probed.sim_config(weir_controllers::LabAlgorithm::Gcc);
    let (seed, stop) = (Seed::new(seed), AtomicBool::new(false));
    let Ok(_) = weir_sim::run_in_parts(&config, seed, &stop, |part| {
        for row in &part.rows {
            if let Some(rate) = rates[row.flow].get_mut(bin_of(row.time).saturating_sub(1)) {
                *rate = row.received.as_bits() as f64 / BIN.as_secs_f64();
            }
        }
        Ok::<(), Infallible>(())
    });
    rates
}
