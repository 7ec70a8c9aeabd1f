//! `weir research validate tcp`: the simulator's TCP against the kernel's, on the same network.
//!
//! The kernel's TCP runs in real time through the emulator, ours in virtual time through the
//! simulator. Both use the same model of the bottleneck. The emulator releases packets a little
//! late, and sometimes the whole machine stalls; the simulated network and hosts imitate both.
//! Goodput is the rate that the receiving application got. The queue is the mean waiting time of
//! packets, weighted by bytes.

use std::ops::Range;
use std::time::Duration;

use anyhow::Context;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_emu::{Emulator, KernelTcp, Lateness, Plan, kernel_congestion_controls, kernel_tcp};
use weir_metrics::mean;
use weir_net::{Capacity, Delay, Hop, Jitter, LinkConfig, LossModel, QueueLimit, Schedule, Seed};
use weir_record::spread::Spread;
use weir_sim::{Config, Congestion, Cubic, FlowConfig, FlowKind, Tcp};

use crate::args::research::Validate;
use crate::output;
use crate::table;

/// Largest error of the goodput.
const GOODPUT_LIMIT: f64 = 0.05;
/// Largest error of the mean time in the queue.
const QUEUE_LIMIT: f64 = 0.15;
/// A smaller error of the queue is ignored: it may be the emulator's release lateness.
const LATENESS_MS: f64 = 1.0;
/// Median and 99th percentile of a half-normal distribution, in standard deviations.
const HALF_NORMAL_MEDIAN: f64 = 0.674;
const HALF_NORMAL_P99: f64 = 2.576;
/// A stall delays a packet for the rest of the stall. The rest is modelled in this many steps.
const STALL_STEPS: i64 = 8;
/// Smallest distance between two steps of a schedule.
const TINY: TimeDelta = TimeDelta::from_nanos(1);
/// Maximum number of attempts: a run that the machine disturbed is repeated.
const ATTEMPTS: u32 = 3;
/// Runs of a network: no two runs of the kernel are equal.
const RUNS: u64 = 3;
/// Simulated runs for each run of the kernel: a flow starts at a random time between two ticks of
/// its hosts.
const SEEDS: u64 = 20;

/// A bottleneck and the flows through it from host A to host B.
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
/// Networks for `--quick`, enough to detect a broken stack in a minute and a half.
const QUICK: [Network; 2] =
    [Network { secs: 12, ..one(2, 50, 100) }, Network { secs: 12, ..one(10, 50, 100) }];

/// Congestion controls: name in the kernel, and our implementation.
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

/// Result of a run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    goodput_mbps: f64,
    queue_ms: f64,
}

/// Result of comparing ours with the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelComparison {
    Within,
    /// Beyond the limit, but within the 95 % confidence interval of the kernel's own mean.
    WithinSpread,
    Miss,
}

/// The runs of a network: those of the kernel, and several of ours for each.
#[derive(Clone, Debug, Default)]
struct Runs {
    kernel: Vec<Measured>,
    ours: Vec<Measured>,
}

/// Measures and prints the table. Returns whether all values are within the limits.
pub fn validate(args: &Validate) -> anyhow::Result<bool> {
    let networks: &[Network] = if args.quick { &QUICK } else { &NETWORKS };
    let runs = args.runs.unwrap_or(if args.quick { 1 } else { RUNS });
    let known = kernel_congestion_controls()?;
    let (mut measured, mut notes) = (Vec::new(), Vec::new());
    for (name, control) in controls(args.control.as_deref())? {
        if !known.iter().any(|known| known == name) {
            notes.push(format!("skipped: this kernel has no congestion control {name}"));
            continue;
        }
        for network in networks {
            let mut kernel = Vec::new();
            for number in 1..=runs {
                eprintln!("weir: {name}, {network}, {} s, run {number} of {runs}", network.secs);
                let (value, run) = measure_kernel(network, name, Seed::new(number))?;
                if measured.is_empty() && number == 1 {
                    notes.extend(settings(&run));
                }
                notes.extend(run.emulation.disturbances().iter().map(|cause| {
                    format!(
                        "{name}, {network}, run {number}: this machine disturbed the run: {cause}"
                    )
                }));
                kernel.push((value, run.emulation.lateness));
            }
            measured.push((name, control, network, kernel));
        }
    }
    anyhow::ensure!(!measured.is_empty(), "nothing to compare: {}", notes.join("; "));
    // Simulate only now, because the kernel's runs need the machine for themselves.
    eprintln!("weir: simulating the same");
    let runs = measured.into_iter().map(|(name, control, network, kernel)| {
        (name, network, Runs::beside(network, control, kernel))
    });
    let runs = runs.collect::<Vec<_>>();
    let rows = runs.iter().map(|(name, network, runs)| runs.row(network, name)).collect::<Vec<_>>();
    output::print(&table::aligned(&HEAD, &rows, 2))?;
    notes.iter().try_for_each(|note| output::line(note))?;
    Ok(runs.iter().all(|(_, _, runs)| runs.verdict() != KernelComparison::Miss))
}

/// The congestion controls of these names, or all.
fn controls(names: Option<&str>) -> anyhow::Result<Vec<(&'static str, Congestion)>> {
    let Some(names) = names else { return Ok(CONTROLS.to_vec()) };
    let mut chosen = Vec::new();
    for name in names.split(',') {
        let found = CONTROLS.iter().find(|(known, _)| *known == name);
        chosen.push(
            *found
                .with_context(|| format!("no congestion control '{name}': cubic, reno or bbr"))?,
        );
    }
    Ok(chosen)
}

fn settings(run: &KernelTcp) -> Option<String> {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let settings = run.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    let settings = settings.collect::<Vec<_>>().join(", ");
    Some(format!("kernel {}: {settings}", version.trim()))
}

impl Runs {
    /// Adds several simulated runs for each run of the kernel, with the same release lateness.
    fn beside(network: &Network, control: Congestion, kernel: Vec<(Measured, Lateness)>) -> Self {
        let mut runs = Self::default();
        for ((value, lateness), first) in kernel.into_iter().zip((1..).step_by(SEEDS as usize)) {
            runs.kernel.push(value);
            for seed in first..first + SEEDS {
                runs.ours.push(measure_ours(network, control, &lateness, Seed::new(seed)));
            }
        }
        runs
    }

    fn verdict(&self) -> KernelComparison {
        let goodput = self.judge(|run| run.goodput_mbps, GOODPUT_LIMIT, 0.0);
        let queue = self.judge(|run| run.queue_ms, QUEUE_LIMIT, LATENESS_MS);
        match (goodput, queue) {
            (KernelComparison::Miss, _) | (_, KernelComparison::Miss) => KernelComparison::Miss,
            (KernelComparison::Within, KernelComparison::Within) => KernelComparison::Within,
            _ => KernelComparison::WithinSpread,
        }
    }

    /// Compares one value. The error may be at most the share `share` of the kernel's value, or
    /// `much`.
    fn judge(&self, value: fn(&Measured) -> f64, share: f64, much: f64) -> KernelComparison {
        let (kernel, ours) = self.values(value);
        let difference = (average(&ours) - average(&kernel)).abs();
        if difference <= share * average(&kernel) || difference <= much {
            return KernelComparison::Within;
        }
        let spread = Spread::of(&kernel).filter(|spread| difference <= spread.confidence);
        if spread.is_some() { KernelComparison::WithinSpread } else { KernelComparison::Miss }
    }

    fn values(&self, value: fn(&Measured) -> f64) -> (Vec<f64>, Vec<f64>) {
        (self.kernel.iter().map(value).collect(), self.ours.iter().map(value).collect())
    }

    fn row(&self, network: &Network, name: &str) -> Vec<String> {
        let mut row = vec![network.to_string(), name.into()];
        row.extend(self.cells(|run| run.goodput_mbps, 3));
        row.extend(self.cells(|run| run.queue_ms, 1));
        let verdict = match self.verdict() {
            KernelComparison::Within => "within",
            KernelComparison::WithinSpread => "within spread",
            KernelComparison::Miss => "MISS",
        };
        row.push(verdict.into());
        row
    }

    /// The kernel's value, ours, and the error.
    fn cells(&self, value: fn(&Measured) -> f64, decimals: usize) -> [String; 3] {
        let (kernel, ours) = self.values(value);
        let error = (average(&ours) - average(&kernel)) / average(&kernel);
        let percent = format!("{:+.1}", error * 100.0);
        [table::with_spread(&kernel, decimals), table::with_spread(&ours, decimals), percent]
    }
}

fn average(values: &[f64]) -> f64 {
    mean(values.to_vec()).unwrap_or(f64::NAN)
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
        let up = down
            .clone()
            .with_capacity(Capacity::Schedule(rate.expect("the rates above are not zero")))
            .with_queue(QueueLimit::Time(TimeDelta::from_millis(self.queue_ms)))
            .with_loss(if self.loss > 0.0 {
                LossModel::Random(self.loss)
            } else {
                LossModel::None
            });
        (up, down)
    }
}

/// Measures the kernel's TCP. Repeats the run if the machine disturbed it.
fn measure_kernel(
    network: &Network,
    control: &str,
    seed: Seed,
) -> anyhow::Result<(Measured, KernelTcp)> {
    let (up, down) = network.links();
    let duration = Duration::from_secs(network.secs.cast_unsigned());
    let mut attempt = 1;
    let run = loop {
        let emulator = Emulator::new(&Plan::two_hosts(&up, &down), seed)?;
        let run = kernel_tcp(emulator, control, network.flows, duration)?;
        if run.emulation.disturbances().is_empty() || attempt == ATTEMPTS {
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

/// Measures our TCP, with packets released as late as in the kernel's run.
fn measure_ours(
    network: &Network,
    control: Congestion,
    lateness: &Lateness,
    seed: Seed,
) -> Measured {
    let (up, down) = network.links();
    let release = release(lateness);
    let tcp = Tcp::new(control).with_timer_stalls(stalls(lateness));
    let duration = TimeDelta::from_secs(network.secs);
    let mut flows = Vec::new();
    for number in 1..=network.flows {
        let traffic = FlowKind::Tcp(tcp.clone());
        flows.push(FlowConfig::new(format!("tcp-{number}"), duration, traffic).with_hops(0..2));
    }
    let hops = vec![Hop::new(up, release.clone()), Hop::new(release, down)];
    let config = Config::wired(duration, hops, flows);
    let trace = weir_sim::run(&config, seed);
    let goodput = trace.rows.iter().filter_map(|row| row.transfer).map(|done| done.goodput);
    let waits = trace.rows.iter().filter_map(|row| Some((row.queuing_delay?, row.received)));
    Measured { goodput_mbps: mbps(goodput.sum(), network), queue_ms: mean_by_bytes(waits) }
}

/// A model of the emulator's thread behind the link: it releases packets late but in order, and
/// none during a stall.
fn release(lateness: &Lateness) -> LinkConfig {
    let [median, most] =
        [0.5, 0.99].map(|share| time_delta(lateness.quantile(share).unwrap_or_default()));
    let sd = (most - median) * (1.0 / (HALF_NORMAL_P99 - HALF_NORMAL_MEDIAN));
    let always = (median - sd * HALF_NORMAL_MEDIAN).max(TimeDelta::ZERO);
    let mut steps = vec![(Timestamp::ZERO, always)];
    for stall in stalls(lateness) {
        let length = stall.end - stall.start;
        let start = stall.start.max(steps[steps.len() - 1].0 + TINY);
        steps.extend((0..=STALL_STEPS).map(|number| {
            let passed = length * (number as f64 / STALL_STEPS as f64);
            (start + passed, always + length - passed)
        }));
    }
    LinkConfig::unlimited(TimeDelta::ZERO)
        .with_delay(Delay::new(steps).expect("stalls come one after the other"))
        .with_jitter(Jitter::HalfNormal { sd, reorder: false })
}

/// The stalls of the machine. They stop the hosts too: the hosts' timers run on the emulator's
/// processor, and after a stall usually no more than one burst is read.
fn stalls(lateness: &Lateness) -> Vec<Range<Timestamp>> {
    let mut stalls = Vec::new();
    for stall in lateness.stalls() {
        let start = Timestamp::ZERO + time_delta(stall.start);
        stalls.push(start..start + time_delta(stall.length));
    }
    stalls
}

fn time_delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_micros(i64::try_from(duration.as_micros()).expect("no run takes years"))
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

    fn runs_of(kernel: &[(f64, f64)], ours: (f64, f64)) -> Runs {
        let measured = |&(goodput_mbps, queue_ms): &(f64, f64)| Measured { goodput_mbps, queue_ms };
        Runs { kernel: kernel.iter().map(measured).collect(), ours: vec![measured(&ours)] }
    }

    #[test]
    fn the_limits_are_5_percent_of_goodput_and_15_percent_or_1_ms_of_queue() {
        let verdict = |kernel, ours| runs_of(&[kernel], ours).verdict();
        assert_eq!(verdict((10.0, 100.0), (9.51, 114.9)), KernelComparison::Within);
        assert_eq!(verdict((10.0, 100.0), (9.49, 100.0)), KernelComparison::Miss);
        assert_eq!(verdict((10.0, 100.0), (10.0, 84.9)), KernelComparison::Miss);
        assert_eq!(verdict((10.0, 1.2), (10.0, 2.1)), KernelComparison::Within);
        assert_eq!(verdict((10.0, 1.2), (10.0, 2.3)), KernelComparison::Miss);
        assert_eq!(verdict((10.0, 100.0), (10.0, f64::NAN)), KernelComparison::Miss);
    }

    #[test]
    fn beyond_the_limit_the_interval_of_the_kernel_s_own_mean_decides() {
        // Mean 10 ms, standard error 1/sqrt(3) ms: an interval of ±2.5 ms.
        let kernel = [(10.0, 9.0), (10.0, 10.0), (10.0, 11.0)];
        assert_eq!(runs_of(&kernel, (10.0, 7.6)).verdict(), KernelComparison::WithinSpread);
        assert_eq!(runs_of(&kernel, (10.0, 7.4)).verdict(), KernelComparison::Miss);
        assert_eq!(runs_of(&kernel, (9.0, 10.0)).verdict(), KernelComparison::Miss);
    }

    #[test]
    fn a_simulated_flow_fills_its_link_and_uses_its_queue() {
        let lateness = Lateness::default();
        let ours = measure_ours(&QUICK[0], Congestion::Reno, &lateness, Seed::new(1));
        assert!((1.8..1.94).contains(&ours.goodput_mbps), "{ours:?}");
        assert!((40.0..90.0).contains(&ours.queue_ms), "{ours:?}");
    }
}
