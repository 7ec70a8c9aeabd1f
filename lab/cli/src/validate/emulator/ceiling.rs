//! The highest packet rate of the emulator, and how late it releases packets at each rate.

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_emu::{Emulation, Emulator, Plan, Probe, Probed, probe, wake_lateness};
use weir_net::LinkConfig;

use super::{Spread, seed};

/// Packets a second and their size.
const STEPS: [u32; 9] =
    [10_000, 50_000, 100_000, 125_000, 150_000, 200_000, 250_000, 300_000, 400_000];
const SMALL: DataSize = DataSize::from_bytes(200);
/// What a sender of so many packets sends at once: it would sleep for less time than a sleep costs.
const SINGLE_BURSTS_A_SECOND: u32 = 1_000;
/// At the goal these are 60 packets, hence one super-packet.
const SUPER_BURSTS_A_SECOND: u32 = 5_000;
/// Tries of a step: what the host of a virtual machine takes away for a moment is not the
/// emulator's.
const TRIES: usize = 3;
/// A step of which less passes has found the end of the machine.
const PASSED: f64 = 0.99;
/// Sleeps of 1 ms before each try.
const SLEEPS: u32 = 500;
/// A step holds if the 99th percentile of the lateness is at most this.
const LATE_MS: f64 = 1.0;

// The goals, on a machine that does nothing else.
pub(super) const GOAL: u32 = 300_000;
pub(super) const EXACT_MS: f64 = 0.1;

/// How the packets come to the emulator, and where its thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendMethod {
    /// A system call of the sender for each packet; the thread shares the processors.
    Single,
    /// Up to 64 packets a system call of the sender; the thread shares the processors.
    Together,
    /// The same, and the thread has a processor of its own.
    OwnProcessor,
}

const METHODS: [SendMethod; 3] =
    [SendMethod::Single, SendMethod::Together, SendMethod::OwnProcessor];

/// One rate of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) method: SendMethod,
    pub(super) asked: u32,
    /// Packets a second that arrived.
    pub(super) passed: f64,
    /// Of the releases.
    pub(super) lateness_ms: Spread,
    /// Share of one processor that the emulator's thread took.
    pub(super) thread: f64,
    /// Packets in and out, over the system calls that took and gave them.
    pub(super) packets_a_call: f64,
    /// How late a sleep ended just before, at the 99th percentile.
    pub(super) sleep_p99_ms: f64,
}

impl Step {
    /// Whether nearly all packets arrived, and not too late at the 99th percentile.
    pub(super) fn holds(&self, late_ms: f64) -> bool {
        self.lateness_ms.p99 <= late_ms && self.passes()
    }

    fn passes(&self) -> bool {
        self.passed >= PASSED * f64::from(self.asked)
    }

    fn is_better_than(&self, other: &Self) -> bool {
        (!self.holds(LATE_MS), self.lateness_ms.p99)
            < (!other.holds(LATE_MS), other.lateness_ms.p99)
    }

    fn measure(method: SendMethod, asked: u32, time: TimeDelta) -> anyhow::Result<Self> {
        let slept =
            Spread::of_lateness(&wake_lateness(Duration::from_millis(1), Duration::ZERO, SLEEPS)?);
        let count = (time.as_secs_f64() * f64::from(asked)) as u32;
        let bursts = match method {
            SendMethod::Single => SINGLE_BURSTS_A_SECOND,
            SendMethod::Together | SendMethod::OwnProcessor => SUPER_BURSTS_A_SECOND,
        };
        let stream = Probe {
            packet: SMALL,
            interval: TimeDelta::from_secs(1) / i64::from(asked),
            burst: asked / bursts,
            super_packets: method != SendMethod::Single,
            count,
            tail: Duration::from_millis(100),
        };
        // A thread of its own, because an emulator with its own processor changes the caller.
        let joined = thread::scope(|scope| scope.spawn(|| run(method, &stream)).join());
        let (probed, emulation, lasted) =
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let last = probed.received.last();
        let took = last.map_or(f64::NAN, |(_, at)| (*at - Timestamp::ZERO).as_secs_f64());
        let effort = emulation.effort;
        let crossed = (probed.sent.len() + probed.received.len()) as f64;
        Ok(Self {
            method,
            asked,
            passed: probed.received.len() as f64 / took,
            lateness_ms: Spread::of_lateness(&emulation.lateness),
            thread: effort.processor_time.as_secs_f64() / lasted.as_secs_f64(),
            packets_a_call: crossed / (effort.reads + effort.writes).max(1) as f64,
            sleep_p99_ms: slept.p99,
        })
    }
}

/// Also returns how long the run lasted.
fn run(method: SendMethod, stream: &Probe) -> anyhow::Result<(Probed, Emulation, Duration)> {
    let link = LinkConfig::unlimited(TimeDelta::from_millis(1));
    let plan = Plan::two_hosts(&link, &link);
    let mut emulator = match method {
        SendMethod::Single | SendMethod::Together => Emulator::new(&plan, seed())?,
        SendMethod::OwnProcessor => Emulator::on_own_processor(&plan, seed())?,
    };
    let start = emulator.start();
    let (from, to) = (emulator.host(0), emulator.host(1));
    let probed = probe(from, to, to.address(), stream)?;
    let lasted = start.elapsed();
    Ok((probed, emulator.stop()?, lasted))
}

/// Rising rates of small packets by each method, to the first at which packets get lost or queue
/// up.
pub(super) fn measure(time: TimeDelta) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    for method in METHODS {
        for asked in STEPS {
            let mut step = Step::measure(method, asked, time)?;
            for _ in 1..TRIES {
                if step.holds(EXACT_MS) {
                    break;
                }
                let again = Step::measure(method, asked, time)?;
                if again.is_better_than(&step) {
                    step = again;
                }
            }
            steps.push(step);
            // Lateness alone does not end the search: a busy host can make any step late.
            if !step.passes() {
                break;
            }
        }
    }
    Ok(steps)
}

/// The highest rate at which packets were late by at most this at the 99th percentile.
pub(super) fn highest(steps: &[Step], late_ms: f64) -> u32 {
    steps.iter().filter(|step| step.holds(late_ms)).map(|step| step.asked).max().unwrap_or(0)
}

/// The goals of the steps: the measured value, the goal, and whether it is met.
pub(super) fn goals(steps: &[Step]) -> [(String, String, bool); 2] {
    [LATE_MS, EXACT_MS].map(|limit| {
        let reached = highest(steps, limit);
        let what = format!("{reached} packets/s, p99 of the release lateness at most {limit} ms");
        (what, GOAL.to_string(), reached >= GOAL)
    })
}

/// The table of the page.
pub(super) fn table(steps: &[Step]) -> String {
    let mut table = String::from(HEAD);
    for step in steps {
        let method = match step.method {
            SendMethod::Single => "single",
            SendMethod::Together => "super-packets",
            SendMethod::OwnProcessor => "super-packets, own processor",
        };
        let Step { asked, passed, lateness_ms, thread, packets_a_call, sleep_p99_ms, .. } = step;
        let holds = if step.holds(LATE_MS) { "yes" } else { "no" };
        let thread = thread * 100.0;
        writeln!(
            table,
            "| {method} | {asked} | {passed:.0} | {lateness_ms} | {sleep_p99_ms:.3} | {thread:.0} \
             % | {packets_a_call:.1} | {holds} |"
        )
        .expect("a string takes all");
    }
    table
}

const HEAD: &str = "
## The ceiling

Packets of 200 bytes over a link of 1 ms without a rate limit. A rate holds if the p99 release \
lateness is at
most 1 ms and 99 % of the packets arrive at the requested rate, in the best of three tries. Sender \
and receiver
run on the same machine.

- **Sent**: single packets in 1000 bursts a second, with a system call for each packet. Or 5000 \
super-packets
  a second of up to 64 packets, which the receiver takes as super-packets (UDP_SEGMENT, UDP_GRO). \
*Own
  processor*: the sender and the receiver stay off the processor of the emulator's thread, which \
polls for the
  last 0.15 ms before a release.
- **Sleep**: how late a thread of the emulator's priority woke from sleeps of 1 ms just before, \
in ms, at
  the 99th percentile. It is what this machine adds to a release without any emulator.
- **Thread**: the share of one processor that the emulator's thread took.
- **Packets a call**: packets in and out, over the reads and writes of the TUN devices.

| sent | packets/s asked | passed | released late, ms | sleep p99, ms | thread | \
packets a call | holds |
|---|---|---|---|---|---|---|---|
";
