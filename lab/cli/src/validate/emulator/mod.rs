//! `weir research validate emulator`: how exact the emulator is on this machine, compared with the
//! kernel's tbf.
//!
//! A sender on one host stamps each packet, and the kernel stamps its arrival on the other. The
//! expected arrivals come from the model in virtual time, for packets sent at the same times. An
//! error is therefore that of the emulator (or of tbf) and of the two network stacks. Prints a
//! page.

mod ceiling;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_emu::{Emulator, Host, Lateness, Limits, Plan, Probe, Probed, probe, wake_lateness};
use weir_net::{
    Bottleneck, Capacity, Header, Jitter, LinkConfig, LossModel, Outcome, QueueLimit, Schedule,
    Seed,
};

use crate::args::research::Validate;
use crate::output;

const RATES_KBPS: [u64; 4] = [500, 2_000, 10_000, 100_000];
/// Of a thread that is awake before it is due: as long as an emulator on its own processor.
const AWAKE: Duration = Duration::from_micros(150);
/// Size of the probes, as IP packets.
const PACKET: DataSize = DataSize::from_bytes(1_250);
const DELAY: TimeDelta = TimeDelta::from_millis(20);
/// Longest queue, as time.
const QUEUE: TimeDelta = TimeDelta::from_millis(100);
/// Rates of the probes as shares of the capacity: one leaves no queue, one fills it.
const LIGHT: f64 = 0.6;
const HEAVY: f64 = 1.5;
const LOSS: f64 = 0.05;
const JITTER: TimeDelta = TimeDelta::from_millis(10);
/// Size of the Ethernet header, which tbf counts.
const ETHERNET: DataSize = DataSize::from_bytes(14);

// The goals, on an otherwise idle machine.
const RATE_GOAL: f64 = 0.005;
const DELAY_GOAL_MS: f64 = 0.3;

/// Measures and prints the page. The exit code says whether the goals are met.
pub fn validate(args: &Validate) -> anyhow::Result<ExitCode> {
    let time = if args.quick { TimeDelta::from_secs(2) } else { TimeDelta::from_secs(5) };
    if args.rates_only {
        let steps = ceiling::measure(time / 2)?;
        output::print(&ceiling::table(&steps))?;
        let met = ceiling::goals(&steps).iter().all(|goal| goal.2);
        return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    eprintln!("weir: the machine alone");
    let machine = Machine::measure(time)?;
    let rates = RATES_KBPS.map(Bitrate::from_kbps);
    let rows = rates.map(|rate| {
        eprintln!("weir: {:.1} Mbit/s", rate.as_mbps_f64());
        measure(rate, time)
    });
    let rows = rows.into_iter().collect::<anyhow::Result<Vec<RateResult>>>()?;
    eprintln!("weir: packets a second");
    let steps = ceiling::measure(time / 2)?;
    let (page, met) = page(&machine, &rows, &steps);
    output::print(&page)?;
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How late a thread wakes on this machine without an emulator, in ms.
#[derive(Clone, Copy, Debug)]
struct Machine {
    idle: Spread,
    /// The same for a thread that is awake for some time before it is due.
    awake: Spread,
    /// While each processor is kept busy by a computing thread.
    busy: Spread,
}

impl Machine {
    fn measure(time: TimeDelta) -> anyhow::Result<Self> {
        let interval = Duration::from_millis(1);
        let count = (time.as_millis_f64()) as u32;
        let idle = wake_lateness(interval, Duration::ZERO, count)?;
        let awake = wake_lateness(interval, AWAKE, count)?;
        let over = AtomicBool::new(false);
        let processors = thread::available_parallelism()?.get();
        let busy = thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let busy = wake_lateness(interval, Duration::ZERO, count);
            over.store(true, Ordering::Relaxed);
            busy
        });
        Ok(Self {
            idle: Spread::of_lateness(&idle),
            awake: Spread::of_lateness(&awake),
            busy: Spread::of_lateness(&busy?),
        })
    }
}

/// Results at one capacity.
#[derive(Clone, Debug)]
struct RateResult {
    rate: Bitrate,
    emulator: Link,
    tbf: Link,
    /// Number of packets lost in the model, number lost in fact, and whether they are the same
    /// packets.
    lost: (usize, usize, bool),
    /// Number of packets overtaken by a later one, in the model and in fact.
    overtook: (usize, usize),
    disturbances: Vec<String>,
}

/// Measurements of a link through the emulator or through tbf.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Lateness against the model of packets that meet no queue, in ms.
    delay: Spread,
    /// Relative error of the rate of a full link against its capacity.
    rate_error: f64,
    /// The longest wait in a full queue, in ms.
    queue_ms: f64,
}

/// The shares of the values that a `Spread` covers.
const SPREAD: [f64; 3] = [0.5, 0.99, 1.0];

#[derive(Clone, Copy, Debug)]
struct Spread {
    median: f64,
    p99: f64,
    max: f64,
}

fn measure(rate: Bitrate, time: TimeDelta) -> anyhow::Result<RateResult> {
    let queue = QueueLimit::Bytes(rate * QUEUE);
    let capacity = Capacity::Schedule(Schedule::constant(rate)?);
    let plain = LinkConfig::unlimited(DELAY).with_capacity(capacity).with_queue(queue);
    let harsh = plain
        .clone()
        .with_loss(LossModel::Random(LOSS))
        .with_jitter(Jitter::Uniform { amount: JITTER, reorder: true });
    let mut disturbances = Vec::new();
    let (few, many) = (stream(rate * LIGHT, PACKET, time), stream(rate * HEAVY, PACKET, time));
    let light = through_emulator(&plain, &few, &mut disturbances)?;
    let heavy = through_emulator(&plain, &many, &mut disturbances)?;
    let chance = through_emulator(&harsh, &few, &mut disturbances)?;
    let model = replay(&harsh, PACKET, &chance);
    let (in_model, in_fact) = (lost(&model), lost(&chance));
    Ok(RateResult {
        rate,
        emulator: Link::of(&plain, PACKET, &light, &heavy),
        tbf: through_tbf(rate, time)?,
        lost: (in_model.len(), in_fact.len(), in_model == in_fact),
        overtook: (overtakers(&model), overtakers(&chance)),
        disturbances,
    })
}

fn stream(rate: Bitrate, packet: DataSize, time: TimeDelta) -> Probe {
    let interval = packet / rate;
    let tail = DELAY + QUEUE * 2;
    Probe {
        packet,
        interval,
        burst: 1,
        super_packets: false,
        count: (time.as_nanos() / interval.as_nanos()) as u32,
        tail: Duration::from_nanos(tail.as_nanos().cast_unsigned()),
    }
}

/// When each sent packet arrived, if it did.
fn arrivals(probed: &Probed) -> Vec<Option<Timestamp>> {
    let mut times = vec![None; probed.sent.len()];
    for (number, at) in &probed.received {
        times[*number] = Some(*at);
    }
    times
}

/// Numbers of the packets that did not arrive.
fn lost(probed: &Probed) -> Vec<usize> {
    let arrivals = arrivals(probed);
    (0..arrivals.len()).filter(|number| arrivals[*number].is_none()).collect()
}

/// Sends a stream through the emulator. Notes what disturbed the machine meanwhile.
fn through_emulator(
    link: &LinkConfig,
    stream: &Probe,
    disturbances: &mut Vec<String>,
) -> anyhow::Result<Probed> {
    let mut emulator = Emulator::new(&Plan::two_hosts(link, link), seed())?;
    emulator.start();
    let (from, to) = (emulator.host(0), emulator.host(1));
    let probed = probe(from, to, to.address(), stream)?;
    let emulation = emulator.stop()?;
    disturbances.extend(emulation.disturbances().iter().map(|cause| cause.to_string()));
    Ok(probed)
}

fn seed() -> Seed {
    Seed::new(1)
}

/// Sends the same streams between two hosts over a virtual Ethernet cable (veth) with tbf at its
/// end.
fn through_tbf(rate: Bitrate, time: TimeDelta) -> anyhow::Result<Link> {
    let unused = LinkConfig::unlimited(TimeDelta::ZERO);
    let emulator = Emulator::new(&Plan::two_hosts(&unused, &unused), seed())?;
    let (from, to) = (emulator.host(0), emulator.host(1));
    // The hosts share one PID namespace. Its process 1 is on the last host.
    run(from, "ip", "link add tbf0 type veth peer name tbf0 netns 1")?;
    for (host, number) in [(from, 1), (to, 2)] {
        run(host, "ip", &format!("address add 10.46.0.{number}/24 dev tbf0"))?;
        run(host, "ip", "link set tbf0 up")?;
    }
    let frame = PACKET + ETHERNET;
    let (bps, limit, burst) = (rate.as_bps(), (rate * QUEUE).as_bytes(), frame.as_bytes() * 2);
    let tbf = format!("qdisc add dev tbf0 root tbf rate {bps}bit burst {burst} limit {limit}");
    run(from, "tc", &tbf)?;
    let target = std::net::Ipv4Addr::new(10, 46, 0, 2);
    // The first packet triggers the look-up of its neighbour's address, and later packets wait for
    // that.
    probe(from, to, target, &Probe { count: 3, ..stream(rate, frame, time) })?;
    let few = Probe { packet: PACKET, ..stream(rate * LIGHT, frame, time) };
    let many = Probe { packet: PACKET, ..stream(rate * HEAVY, frame, time) };
    let (light, heavy) = (probe(from, to, target, &few)?, probe(from, to, target, &many)?);
    let link = unused
        .with_capacity(Capacity::Schedule(Schedule::constant(rate)?))
        .with_queue(QueueLimit::Bytes(rate * QUEUE));
    Ok(Link::of(&link, frame, &light, &heavy))
}

fn run(host: &Host, program: &str, arguments: &str) -> anyhow::Result<()> {
    let mut command = host.command(program);
    let output = weir_emu::output(command.args(arguments.split(' ')), Limits::SHORT);
    let output = output.with_context(|| format!("cannot run {program}: install iproute2"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("it failed");
    anyhow::ensure!(output.status.success(), "{program} {arguments}: {first}");
    Ok(())
}

impl Link {
    /// `size` is the size of a packet as the link counts it.
    fn of(link: &LinkConfig, size: DataSize, light: &Probed, heavy: &Probed) -> Self {
        let expected = replay(link, size, light);
        let pairs = arrivals(&expected).into_iter().zip(arrivals(light));
        let errors = pairs.filter_map(|(model, fact)| Some((fact? - model?).as_millis_f64()));
        // Skip the first half of the time: any queue fills in it.
        let half = heavy.sent.last().copied().unwrap_or_default() - Timestamp::ZERO;
        let steady = heavy.received.iter().filter(|(_, at)| *at - Timestamp::ZERO > half / 2);
        let steady: Vec<(usize, Timestamp)> = steady.copied().collect();
        let carried = match (steady.first(), steady.last()) {
            (Some(first), Some(last)) => size * (steady.len() - 1) as f64 / (last.1 - first.1),
            _ => Bitrate::default(),
        };
        let capacity = link.capacity.rate(Timestamp::ZERO).unwrap_or_default();
        let base = link.delay.at(Timestamp::ZERO) + size / capacity;
        let waits = steady.iter().map(|(number, at)| *at - heavy.sent[*number] - base);
        Self {
            delay: Spread::of(errors.collect()),
            rate_error: carried / capacity - 1.0,
            queue_ms: waits.max().unwrap_or_default().as_millis_f64(),
        }
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let [median, p99, max] = SPREAD.map(|share| {
            let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
            values.get(rank - 1).copied().unwrap_or(f64::NAN)
        });
        Self { median, p99, max }
    }

    fn of_lateness(lateness: &Lateness) -> Self {
        let [median, p99, max] =
            SPREAD.map(|share| lateness.quantile(share).unwrap_or_default().as_secs_f64() * 1e3);
        Self { median, p99, max }
    }
}

/// The arrivals in the model of packets sent at the same times.
fn replay(link: &LinkConfig, size: DataSize, probed: &Probed) -> Probed {
    // The name of the emulator's first hop, so that both use the same random numbers.
    let mut model = Bottleneck::new(link, seed(), "up");
    let mut received = Vec::new();
    for (number, &at) in probed.sent.iter().enumerate() {
        take(&mut model, at, &mut received);
        model.enqueue(at, Header::new(size), number);
    }
    take(&mut model, Timestamp::from_secs(3_600), &mut received);
    Probed { sent: probed.sent.clone(), received }
}

/// Takes what a model delivers until a time.
fn take(model: &mut Bottleneck<usize>, until: Timestamp, received: &mut Vec<(usize, Timestamp)>) {
    while let Some(at) = model.next_event().filter(|at| *at <= until) {
        if let Some(Outcome::Delivered(delivery)) = model.poll(at) {
            received.push((delivery.payload, delivery.due));
        }
    }
}

/// Number of packets that arrived after one that was sent later.
fn overtakers(probed: &Probed) -> usize {
    let (mut latest, mut late) = (0, 0);
    for (number, _) in &probed.received {
        late += usize::from(*number < latest);
        latest = latest.max(*number);
    }
    late
}

/// The text of the page, and whether the goals are met.
fn page(machine: &Machine, rows: &[RateResult], steps: &[ceiling::Step]) -> (String, bool) {
    let rate = rows.iter().map(|row| row.emulator.rate_error.abs()).fold(0.0, f64::max);
    let delay = rows.iter().map(|row| row.emulator.delay.p99).fold(0.0, f64::max);
    let same_lost = rows.iter().all(|row| row.lost.2);
    let mut goals = vec![
        (format!("rate off by {:.3} % at most", rate * 100.0), "0.5 %".into(), rate <= RATE_GOAL),
        (format!("delay off by {delay:.3} ms at p99"), "0.3 ms".into(), delay <= DELAY_GOAL_MS),
        ("the packets lost that the model loses".into(), "all".into(), same_lost),
    ];
    goals.extend(ceiling::goals(steps));
    let mut page = String::from(HEAD);
    let Machine { idle, awake, busy } = machine;
    page += &format!("| idle | {idle} |\n| idle, awake | {awake} |\n| computing | {busy} |\n");
    page += RATES_HEAD;
    page += "\n";
    for row in rows {
        let RateResult { rate, emulator, tbf, lost, overtook, .. } = row;
        page += &format!(
            "| {} | {} | {} | {} | {} | {:.0} | {:.1} | {:.1} | {} / {} | {} / {} |\n",
            rate.as_mbps_f64(),
            emulator.delay,
            tbf.delay,
            percent(emulator.rate_error),
            percent(tbf.rate_error),
            QUEUE.as_millis_f64(),
            emulator.queue_ms,
            tbf.queue_ms,
            lost.0,
            lost.1,
            overtook.0,
            overtook.1,
        );
    }
    page += ceiling::table(steps).trim_end();
    page += "\n\n## Goals\n\n| measured | goal | met |\n|---|---|---|\n";
    for (measured, goal, met) in &goals {
        page += &format!("| {measured} | {goal} | {} |\n", if *met { "yes" } else { "no" });
    }
    for row in rows {
        for cause in &row.disturbances {
            let mbps = row.rate.as_mbps_f64();
            page += &format!("\nThis machine disturbed the run at {mbps} Mbit/s: {cause}.\n");
        }
    }
    (page, goals.iter().all(|goal| goal.2))
}

fn percent(error: f64) -> String {
    format!("{:+.3} %", error * 100.0)
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} / {:.3} / {:.3}", self.median, self.p99, self.max)
    }
}

const HEAD: &str = "\
# Accuracy of the emulator

`weir research validate emulator` makes this page.

A sender on one host stamps each packet with the wall clock. The kernel of the other host stamps its
arrival with the same clock. The expected arrival is that of the model in virtual time, for packets
sent at these times. So an error contains the errors of the emulator and of both network stacks.
Packets have 1250 bytes, the delay is 20 ms, and the queue has room for 100 ms.

## The machine

A thread with the emulator's priority sleeps for 1 ms at a time. The table shows how late it wakes
(median / p99 / largest): on an idle machine, the same when it looks at the clock for the last \
0.15 ms
instead of sleeping (awake), and beside one computing thread on each processor. This test \
does not use
the emulator, and no emulator can be more accurate. The host of a virtual machine adds the time \
that it
takes from the processors.

| processors | late, ms |
|---|---|
";

const RATES_HEAD: &str = "
## The links

- **Delay**: the arrival time minus the model's, in ms, at a load of 60 %: median / p99 / largest.
- **Rate**: the error of the carried rate at a load of 150 %.
- **Queue**: the longest queuing delay at this load, in ms. The packet that is being sent does not
  wait, so the model's queue is full up to one packet.
- **Lost** and **overtook**: packets in the model / measured, with 5 % loss and a jitter of 10 ms, \
at
  a load of 60 %. The same packets are lost. The order can differ where delays differ.

The columns tbf show the same streams between the same hosts over the kernel's virtual Ethernet \
cable
(veth) with its token bucket filter. Its bucket holds two packets. The model is the same without the
delay. A full bucket lets a packet pass at once, while a link needs time to send it. This \
explains the
negative errors.

| Mbit/s | delay error, ms | tbf | rate error | tbf | queue asked | queue | tbf | lost | overtook |
|---|---|---|---|---|---|---|---|---|---|";

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A link of 1000 kbit/s, so that 1250 B take 10 ms, with 20 ms of delay.
    fn link() -> LinkConfig {
        let schedule = Schedule::constant(Bitrate::from_kbps(1_000)).unwrap();
        LinkConfig::unlimited(DELAY).with_capacity(Capacity::Schedule(schedule))
    }

    fn probed(sent: &[i64], received: &[(usize, i64)]) -> Probed {
        Probed {
            sent: sent.iter().copied().map(ms).collect(),
            received: received.iter().map(|(number, at)| (*number, ms(*at))).collect(),
        }
    }

    #[test]
    fn the_model_says_when_packets_should_have_come() {
        let sent = probed(&[0, 1, 100], &[]);
        let model = replay(&link(), PACKET, &sent);
        assert_eq!(model, probed(&[0, 1, 100], &[(0, 30), (1, 40), (2, 130)]));
    }

    #[test]
    fn an_error_is_the_time_after_the_models_arrival() {
        let light = probed(&[0, 1, 100], &[(0, 31), (2, 132)]);
        let heavy = probed(&[0, 10, 20, 30], &[(0, 30), (1, 40), (2, 50), (3, 61)]);
        let measured = Link::of(&link(), PACKET, &light, &heavy);
        assert_eq!((measured.delay.median, measured.delay.max), (1.0, 2.0));
        // Ten milliseconds for each packet but the last, at 1 Mbit/s, in whole bits per second.
        assert!((measured.rate_error - (30.0 / 31.0 - 1.0)).abs() <= 1e-6, "{measured:?}");
        assert_eq!(measured.queue_ms, 1.0);
    }

    #[test]
    fn a_packet_has_overtaken_those_that_come_after_it() {
        assert_eq!(overtakers(&probed(&[0; 4], &[(0, 1), (2, 2), (1, 3), (3, 4)])), 1);
        assert_eq!(overtakers(&probed(&[0; 4], &[(3, 1), (0, 2), (1, 3), (2, 4)])), 3);
    }

    #[test]
    fn a_goal_that_is_missed_is_said_so() {
        let spread = Spread { median: 0.05, p99: 0.2, max: 0.4 };
        let link = Link { delay: spread, rate_error: -0.001, queue_ms: 100.0 };
        let row = RateResult {
            rate: Bitrate::from_kbps(2_000),
            emulator: link,
            tbf: link,
            lost: (3, 3, true),
            overtook: (5, 6),
            disturbances: vec!["late".into()],
        };
        let step = |late_ms| ceiling::Step {
            method: ceiling::SendMethod::OwnProcessor,
            asked: ceiling::GOAL,
            passed: 300_000.0,
            lateness_ms: Spread { p99: late_ms, ..spread },
            thread: 0.7,
            packets_a_call: 50.0,
            sleep_p99_ms: 0.08,
        };
        let machine = Machine { idle: spread, awake: spread, busy: spread };
        let (text, met) = page(&machine, std::slice::from_ref(&row), &[step(0.09)]);
        assert!(met, "{text}");
        assert!(text.contains("| 2 | 0.050 / 0.200 / 0.400 |"), "{text}");
        assert!(text.contains("This machine disturbed the run at 2 Mbit/s: late."), "{text}");
        assert!(!page(&machine, std::slice::from_ref(&row), &[step(0.11)]).1);
        let off = RateResult { emulator: Link { rate_error: 0.006, ..link }, ..row };
        assert!(!page(&machine, &[off], &[step(0.09)]).1);
    }
}
