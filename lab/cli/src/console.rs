//! Changes of the network while it runs: typed at a terminal (`--interactive`), or from a program
//! such as `weir serve` (`--live`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use weir_call::LiveStats;
use weir_emu::{Change, DirectionStatus, Handle, Property, Status};
use weir_net::path::Direction;
use weir_net::{Jitter, LossModel};
use weir_record::lines;
use weir_scenario::quantity;

const HELP: &str = "type 'capacity 1Mbps', 'delay 50ms', 'jitter 10ms' or 'loss 5%', with 'up' or \
                    'down' before the value for one direction alone, 'end', which keeps the \
                    record of the run so far, or 'quit', which keeps no record of a call";

/// Time between two statuses for a program, in seconds.
const STATUS_INTERVAL_S: f64 = 0.2;
/// Bytes of a line that are read. A change is shorter.
const LINE_BYTES_MAX: usize = 1_000;
/// A program that does not read for so long is not written to any more.
const WRITE_TIMEOUT: Duration = Duration::from_millis(50);

/// A parsed input line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    Nothing,
    End,
    Quit,
    Change(Change),
}

/// Whether the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The run goes on.
    Continue,
    /// The run ends now, and its record is kept.
    End,
    /// The run ends now, without a record.
    Quit,
}

/// Who changes the network, and where its status is shown.
pub struct Console {
    lines: Receiver<String>,
    shown: Shown,
}

enum Shown {
    /// A status line at a terminal.
    Terminal(ProgressBar),
    /// JSON lines for a program.
    Program(Program),
}

/// A program at the other end of a socket.
struct Program {
    /// `None` after the program stopped reading.
    stream: Option<UnixStream>,
    /// Time of the last status, and of the last interval of each call and peer, in seconds.
    status_s: f64,
    stats_s: BTreeMap<(usize, &'static str), f64>,
}

impl Console {
    /// Listens to standard input. Its thread ends with the program: nothing interrupts a read.
    pub fn start() -> Self {
        eprintln!("weir: {HELP}");
        let lines = lines_of(|| Box::new(std::io::stdin().lock()));
        Self { lines, shown: Shown::Terminal(ProgressBar::new_spinner()) }
    }

    /// Connects to the socket of a program, which sends the same lines and gets JSON lines.
    pub fn connect(socket: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let typed = stream.try_clone()?;
        let lines = lines_of(|| Box::new(BufReader::new(typed)));
        let program = Program { stream: Some(stream), status_s: -1.0, stats_s: BTreeMap::new() };
        Ok(Self { lines, shown: Shown::Program(program) })
    }

    /// The console of these options; `None` if nobody wants one.
    pub fn of(interactive: bool, live: Option<&Path>) -> anyhow::Result<Option<Self>> {
        match live {
            Some(socket) => Ok(Some(Self::connect(socket)?)),
            None => Ok(interactive.then(Self::start)),
        }
    }

    /// Executes the lines that arrived since the last call, and shows the state of the network.
    pub fn tick(&mut self, handle: &Handle, stats: &[LiveStats]) -> Wish {
        loop {
            let line = match self.lines.try_recv() {
                Ok(line) => line,
                // A program that is gone wants no run. At a terminal, the input may just have
                // ended.
                Err(TryRecvError::Disconnected) if matches!(self.shown, Shown::Program(_)) => {
                    return Wish::Quit;
                }
                Err(_) => break,
            };
            match parse(&line) {
                Ok(Line::Nothing) => {}
                Ok(Line::End) => return self.ends(Wish::End),
                Ok(Line::Quit) => return self.ends(Wish::Quit),
                Ok(Line::Change(_)) if handle.hops() == 0 => {
                    self.refuse("there is no bottleneck to change");
                }
                Ok(Line::Change(change)) => {
                    handle.set(change);
                    self.confirm(&line, &change.to_string());
                }
                Err(error) => self.refuse(&error),
            }
        }
        match &mut self.shown {
            Shown::Terminal(bar) => {
                bar.set_message(shown(&handle.status()));
                bar.tick();
            }
            Shown::Program(program) => program.report(&handle.status(), stats),
        }
        Wish::Continue
    }

    fn ends(&self, wish: Wish) -> Wish {
        if let Shown::Terminal(bar) = &self.shown {
            bar.finish_and_clear();
        }
        wish
    }

    fn confirm(&mut self, line: &str, change: &str) {
        match &mut self.shown {
            Shown::Terminal(bar) => bar.suspend(|| eprintln!("weir: {change}")),
            Shown::Program(program) => {
                program.write(&json!({ "changed": { "line": line.trim(), "text": change } }));
            }
        }
    }

    fn refuse(&mut self, why: &str) {
        match &mut self.shown {
            Shown::Terminal(bar) => bar.suspend(|| eprintln!("weir: {why}")),
            Shown::Program(program) => program.write(&json!({ "refused": why })),
        }
    }
}

/// The lines of an input, read by a thread of their own.
fn lines_of(open: impl FnOnce() -> Box<dyn BufRead> + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let typed = lines::cut(open(), LINE_BYTES_MAX);
        // Without a receiver there is no run left to change.
        let _ = typed.map(|line| sender.send(line)).take_while(Result::is_ok).last();
    });
    lines
}

impl Program {
    fn report(&mut self, status: &Status, stats: &[LiveStats]) {
        let time_s = status.time.as_secs_f64();
        if time_s >= self.status_s + STATUS_INTERVAL_S {
            self.status_s = time_s;
            self.write(&json!({ "status": status_entry(status) }));
        }
        for LiveStats { call, peer, interval } in stats {
            let end_s = interval.end.as_secs_f64();
            if self.stats_s.insert((*call, peer.name()), end_s) == Some(end_s) {
                continue;
            }
            let mut entry = json!(weir_record::calls::interval_entry(interval));
            entry["call"] = (*call).into();
            entry["peer"] = peer.name().into();
            self.write(&json!({ "stats": entry }));
        }
    }

    /// The run does not wait for a program that does not read.
    fn write(&mut self, message: &Value) {
        if let Some(stream) = &mut self.stream
            && stream.write_all(format!("{message}\n").as_bytes()).is_err()
        {
            self.stream = None;
        }
    }
}

/// A status as JSON: rates in Mbit/s, delays in ms.
fn status_entry(status: &Status) -> Value {
    let mut hops = Vec::new();
    for [up, down] in &status.hops {
        hops.push(json!({ "up": direction_entry(up), "down": direction_entry(down) }));
    }
    json!({
        "time_s": status.time.as_secs_f64(),
        "round_trip_ms": status.round_trip().as_millis_f64(),
        "hops": hops,
    })
}

fn direction_entry(direction: &DirectionStatus) -> Value {
    json!({
        "capacity_mbps": direction.capacity.map(|rate| rate.as_mbps_f64()),
        "rate_mbps": direction.rate.as_mbps_f64(),
        "loss_ratio": direction.loss_ratio,
        "delay_ms": direction.delay.as_millis_f64(),
        "queuing_delay_ms": direction.queuing_delay.as_millis_f64(),
    })
}

fn parse(line: &str) -> Result<Line, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, direction, value) = match words[..] {
        [] => return Ok(Line::Nothing),
        ["quit" | "exit"] => return Ok(Line::Quit),
        ["end"] => return Ok(Line::End),
        [name, "up", value] => (name, Some(Direction::Up), value),
        [name, "down", value] => (name, Some(Direction::Down), value),
        [name, value] => (name, None, value),
        _ => return Err(HELP.into()),
    };
    let property = match name {
        "capacity" => Property::Capacity(quantity::capacity(value)?),
        "delay" => Property::Delay(quantity::time(value)?),
        "jitter" => {
            Property::Jitter(Jitter::Uniform { amount: quantity::time(value)?, reorder: false })
        }
        "loss" => Property::Loss(LossModel::Random(quantity::probability(value)?)),
        _ => return Err(HELP.into()),
    };
    Ok(Line::Change(Change { hop: 0, direction, property }))
}

/// The status line: rate, loss and queue of each direction, and the round-trip time.
pub(crate) fn shown(status: &Status) -> String {
    let mut parts = vec![format!("{:.0} s", (status.time.as_secs_f64()))];
    for [up, down] in &status.hops {
        for (name, direction) in [("up", up), ("down", down)] {
            let of = match direction.capacity {
                Some(rate) => format!(" of {:.3}", rate.as_mbps_f64()),
                None => String::new(),
            };
            let (rate, loss) = (direction.rate.as_mbps_f64(), direction.loss_ratio * 100.0);
            let queue = direction.queuing_delay.as_millis_f64();
            parts.push(format!(
                "{name} {rate:.3}{of} Mbit/s, {loss:.1} % lost, queue {queue:.0} ms"
            ));
        }
    }
    parts.push(format!("round trip {:.0} ms", status.round_trip().as_millis_f64()));
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, TimeDelta, Timestamp};

    use super::*;

    fn change(direction: Option<Direction>, property: Property) -> Result<Line, String> {
        Ok(Line::Change(Change { hop: 0, direction, property }))
    }

    #[test]
    fn a_line_names_a_property_a_direction_or_none_and_a_value() {
        let rate = Property::Capacity(Bitrate::from_kbps(1_000));
        assert_eq!(parse("capacity 1Mbps"), change(None, rate));
        assert_eq!(parse("  capacity  down 1000kbps "), change(Some(Direction::Down), rate));
        let outage = Property::Capacity(Bitrate::ZERO);
        assert_eq!(parse("capacity up 0bps"), change(Some(Direction::Up), outage));
        let delay = Property::Delay(TimeDelta::from_millis(50));
        assert_eq!(parse("delay up 50ms"), change(Some(Direction::Up), delay));
        assert_eq!(parse("loss 5%"), change(None, Property::Loss(LossModel::Random(0.05))));
        assert_eq!((parse(""), parse("quit")), (Ok(Line::Nothing), Ok(Line::Quit)));
    }

    #[test]
    fn an_unknown_line_is_answered_with_the_help() {
        for line in ["capacity", "capacity left 1Mbps", "speed 1Mbps", "delay 1 ms now"] {
            assert_eq!(parse(line), Err(HELP.into()), "{line}");
        }
        for line in ["capacity -1Mbps", "delay 5", "loss 120%"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_status_is_one_line() {
        let up = DirectionStatus {
            capacity: Some(Bitrate::from_kbps(2_000)),
            rate: Bitrate::from_kbps(1_250),
            loss_ratio: 0.021,
            delay: TimeDelta::from_millis(40),
            queuing_delay: TimeDelta::from_millis(15),
        };
        let down = DirectionStatus { capacity: None, loss_ratio: 0.0, ..up };
        let status = Status { time: Timestamp::from_secs(12), hops: vec![[up, down]] };
        assert_eq!(
            shown(&status),
            "12 s | up 1.250 of 2.000 Mbit/s, 2.1 % lost, queue 15 ms | down 1.250 Mbit/s, 0.0 % \
             lost, queue 15 ms | round trip 80 ms"
        );
    }

    #[test]
    fn a_program_that_does_not_read_is_left_alone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_write_timeout(Some(WRITE_TIMEOUT)).unwrap();
        let mut program = Program { stream: Some(ours), status_s: -1.0, stats_s: BTreeMap::new() };
        let long = "x".repeat(10_000);
        // More than any socket's buffer.
        for _ in 0..1_000 {
            program.write(&json!({ "refused": long }));
        }
        assert!(program.stream.is_none());
        drop(theirs);
    }

    #[test]
    fn a_program_gets_each_status_once() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut program = Program { stream: Some(ours), status_s: -1.0, stats_s: BTreeMap::new() };
        let at = |ms| Status { time: Timestamp::from_millis(ms), hops: vec![] };
        for ms in [0, 100, 200, 250, 400] {
            program.report(&at(ms), &[]);
        }
        drop(program);
        let lines: Vec<String> = BufReader::new(theirs).lines().map(Result::unwrap).collect();
        let times: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["status"]["time_s"].clone())
            .collect();
        assert_eq!(times, [0.0, 0.2, 0.4]);
    }
}
