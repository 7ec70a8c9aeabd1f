//! `weir validate tcp`: the simulator's TCP against the kernel's, on the same network.
//!
//! The kernel's TCP runs in real time through the emulator, ours in virtual time through the
//! simulator; both drive the same model of the bottleneck. The emulator releases packets a little
//! late; the simulated network delays them by as much. Goodput is what the receiving application
//! got; the queue is the mean time that packets waited, by bytes.

use std::time::Duration;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_emu::{Emulator, KernelTcp, Lateness, Plan, kernel_congestion_controls, kernel_tcp};
use weir_net::{Capacity, Jitter, LinkConfig, LossModel, QueueLimit, Schedule, Seed};
use weir_sim::{Config, Congestion, Cubic, Direction, Flow, Hop, Tcp, Traffic};

use crate::output;
use crate::table;

/// Largest error of the goodput.
const GOODPUT_LIMIT: f64 = 0.05;
/// Largest error of the mean time in the queue.
const QUEUE_LIMIT: f64 = 0.15;
/// A smaller error of the queue is within the emulator's own: it may release packets so late.
const LATENESS_MS: f64 = 1.0;
/// Lateness is drawn from so many quantiles of the measured one.
const QUANTILES: u32 = 1_000;
/// A run that the machine has bent is made again, at most so often.
const ATTEMPTS: u32 = 3;

/// A bottleneck and what crosses it from host A to host B.
#[derive(Clone, Copy)]
struct Network {
    mbps: u64,
    rtt_ms: i64,
    queue_ms: i64,
    loss: f64,
    flows: usize,
    secs: i64,
}

const fn one(mbps: u64, rtt_ms: i64, queue_ms: i64) -> Network {
    Network { mbps, rtt_ms, queue_ms, loss: 0.0, flows: 1, secs: 30 }
}

const NETWORKS: [Network; 8] = [
    one(2, 50, 100),
    one(2, 100, 300),
    one(10, 50, 100),
    one(10, 100, 300),
    one(20, 20, 50),
    one(20, 50, 100),
    Network { loss: 0.01, secs: 60, ..one(10, 50, 100) },
    Network { flows: 2, secs: 60, ..one(10, 50, 100) },
];
/// Of `--quick`: what shows a broken stack in a minute and a half.
const QUICK: [Network; 2] =
    [Network { secs: 12, ..one(2, 50, 100) }, Network { secs: 12, ..one(10, 50, 100) }];

/// Name in the kernel, and ours.
const CONTROLS: [(&str, Congestion); 3] = [
    ("cubic", Congestion::Cubic(Cubic::Linux)),
    ("reno", Congestion::Reno),
    ("bbr", Congestion::Bbr),
];

const HEAD: [&str; 9] = [
    "network",
    "control",
    "goodput kernel Mbit/s",
    "ours",
    "error %",
    "queue kernel ms",
    "ours",
    "error %",
    "verdict",
];

/// What a run gave.
#[derive(Clone, Copy, Debug)]
struct Measured {
    goodput_mbps: f64,
    queue_ms: f64,
}

/// Measures, prints the table, and says whether all is within the limits.
pub fn validate(is_quick: bool) -> anyhow::Result<bool> {
    let networks: &[Network] = if is_quick { &QUICK } else { &NETWORKS };
    let known = kernel_congestion_controls()?;
    let (mut rows, mut notes, mut all_within) = (Vec::new(), Vec::new(), true);
    for (name, control) in CONTROLS {
        if !known.iter().any(|known| known == name) {
            notes.push(format!("skipped: this kernel has no congestion control {name}"));
            continue;
        }
        for network in networks {
            eprintln!("weir: {name}, {network}, {} s", network.secs);
            let (kernel, run) = measure_kernel(network, name)?;
            let bent = run.emulation.bent();
            notes.extend(
                bent.iter().map(|bent| format!("{name}, {network}: not to be trusted: {bent}")),
            );
            if rows.is_empty() {
                notes.extend(settings(&run));
            }
            let ours = measure_ours(network, control, &run.emulation.lateness);
            let within = is_within(kernel, ours);
            all_within &= within;
            rows.push(row(network, name, kernel, ours, within));
        }
    }
    anyhow::ensure!(!rows.is_empty(), "nothing to compare: {}", notes.join("; "));
    output::print(&table::aligned(&HEAD, &rows, 2))?;
    notes.iter().try_for_each(|note| output::line(note))?;
    Ok(all_within)
}

fn settings(run: &KernelTcp) -> Option<String> {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let settings = run.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    let settings = settings.collect::<Vec<_>>().join(", ");
    Some(format!("kernel {}: {settings}", version.trim()))
}

fn row(
    network: &Network,
    name: &str,
    kernel: Measured,
    ours: Measured,
    within: bool,
) -> Vec<String> {
    let percent = |kernel: f64, ours: f64| format!("{:+.1}", error(kernel, ours) * 100.0);
    vec![
        network.to_string(),
        name.into(),
        format!("{:.3}", kernel.goodput_mbps),
        format!("{:.3}", ours.goodput_mbps),
        percent(kernel.goodput_mbps, ours.goodput_mbps),
        format!("{:.1}", kernel.queue_ms),
        format!("{:.1}", ours.queue_ms),
        percent(kernel.queue_ms, ours.queue_ms),
        if within { "within" } else { "MISS" }.into(),
    ]
}

fn error(kernel: f64, ours: f64) -> f64 {
    (ours - kernel) / kernel
}

fn is_within(kernel: Measured, ours: Measured) -> bool {
    let goodput = error(kernel.goodput_mbps, ours.goodput_mbps).abs() <= GOODPUT_LIMIT;
    let queue = error(kernel.queue_ms, ours.queue_ms).abs() <= QUEUE_LIMIT
        || (ours.queue_ms - kernel.queue_ms).abs() <= LATENESS_MS;
    goodput && queue
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mbps, rtt_ms, queue_ms, loss, flows, .. } = self;
        write!(f, "{mbps} Mbit/s, {rtt_ms} ms, queue {queue_ms} ms")?;
        if *loss > 0.0 {
            write!(f, ", {} % loss", loss * 100.0)?;
        }
        if *flows > 1 {
            write!(f, ", {flows} flows")?;
        }
        Ok(())
    }
}

impl Network {
    fn links(&self) -> (LinkConfig, LinkConfig) {
        let rate = Schedule::constant(Bitrate::from_kbps(self.mbps * 1_000));
        let down = LinkConfig::unlimited(TimeDelta::from_micros(self.rtt_ms * 500));
        let up = LinkConfig {
            capacity: Capacity::Schedule(rate.expect("the rates above are not zero")),
            queue: QueueLimit::Time(TimeDelta::from_millis(self.queue_ms)),
            loss: if self.loss > 0.0 { LossModel::Random(self.loss) } else { LossModel::None },
            ..down.clone()
        };
        (up, down)
    }
}

/// The kernel's TCP, again where the machine has bent the run.
fn measure_kernel(network: &Network, control: &str) -> anyhow::Result<(Measured, KernelTcp)> {
    let (up, down) = network.links();
    let duration = Duration::from_secs(network.secs.cast_unsigned());
    let mut attempt = 1;
    let run = loop {
        let emulator = Emulator::new(&Plan::two_hosts(&up, &down), Seed::new(1))?;
        let run = kernel_tcp(emulator, control, network.flows, duration)?;
        if run.emulation.bent().is_empty() || attempt == ATTEMPTS {
            break run;
        }
        attempt += 1;
    };
    let received = run.received_bytes.iter().sum();
    let samples = run.emulation.hops[0].up.samples.iter().map(|sample| sample.traffic);
    let waits = samples.filter_map(|passed| Some((passed.mean_wait()?, passed.delivered)));
    let measured = Measured {
        goodput_mbps: mbps(DataSize::from_bytes(received), network),
        queue_ms: mean_by_bytes(waits),
    };
    Ok((measured, run))
}

/// Ours, where packets are released as late as in the kernel's run.
fn measure_ours(network: &Network, control: Congestion, lateness: &Lateness) -> Measured {
    let (up, down) = network.links();
    let release = release(lateness);
    let duration = TimeDelta::from_secs(network.secs);
    let flow = |index: usize| Flow {
        name: format!("tcp-{}", index + 1),
        direction: Direction::Up,
        station: None,
        hops: 0..2,
        access_delay: TimeDelta::ZERO,
        start: Timestamp::ZERO,
        stop: Timestamp::ZERO + duration,
        pauses: Vec::new(),
        traffic: Traffic::Tcp(Tcp::new(control)),
    };
    let flows = (0..network.flows).map(flow).collect();
    let hops = vec![Hop { up, down }, Hop { up: release.clone(), down: release }];
    let config = Config::wired(duration, hops, flows);
    let trace = weir_sim::run(&config, Seed::new(1));
    let goodput = trace.rows.iter().filter_map(|row| row.transfer).map(|done| done.goodput);
    let waits = trace.rows.iter().filter_map(|row| Some((row.queuing_delay?, row.received)));
    Measured { goodput_mbps: mbps(goodput.sum(), network), queue_ms: mean_by_bytes(waits) }
}

/// What stands for the emulator's thread: it hands over packets late, in order, and holds none back.
fn release(lateness: &Lateness) -> LinkConfig {
    let quantile = |index| {
        let share = (f64::from(index) + 0.5) / f64::from(QUANTILES);
        let late = lateness.quantile(share)?.as_micros();
        Some(TimeDelta::from_micros(i64::try_from(late).expect("no run is late by years")))
    };
    let late: Vec<TimeDelta> = (0..QUANTILES).filter_map(quantile).collect();
    let jitter = if late.is_empty() { Jitter::None } else { Jitter::Measured(late.into()) };
    LinkConfig { jitter, ..LinkConfig::unlimited(TimeDelta::ZERO) }
}

fn mbps(size: DataSize, network: &Network) -> f64 {
    (size / TimeDelta::from_secs(network.secs)).as_mbps_f64()
}

/// Mean of times in milliseconds, each weighted by its bytes.
fn mean_by_bytes(waits: impl Iterator<Item = (TimeDelta, DataSize)>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (wait, size) in waits {
        sum += wait.as_millis_f64() * size.as_bytes() as f64;
        weights += size.as_bytes() as f64;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(goodput_mbps: f64, queue_ms: f64) -> Measured {
        Measured { goodput_mbps, queue_ms }
    }

    #[test]
    fn the_limits_are_5_percent_of_goodput_and_15_percent_or_a_millisecond_of_queue() {
        let kernel = measured(10.0, 100.0);
        assert!(is_within(kernel, measured(9.51, 114.9)));
        assert!(!is_within(kernel, measured(9.49, 100.0)));
        assert!(!is_within(kernel, measured(10.0, 84.9)));
        assert!(is_within(measured(10.0, 1.2), measured(10.0, 2.1)));
        assert!(!is_within(measured(10.0, 1.2), measured(10.0, 2.3)));
        assert!(!is_within(kernel, measured(10.0, f64::NAN)));
    }

    #[test]
    fn a_simulated_flow_fills_its_link_and_uses_its_queue() {
        let ours = measure_ours(&QUICK[0], Congestion::Reno, &Lateness::default());
        assert!((1.8..1.94).contains(&ours.goodput_mbps), "{ours:?}");
        assert!((40.0..90.0).contains(&ours.queue_ms), "{ours:?}");
    }
}
