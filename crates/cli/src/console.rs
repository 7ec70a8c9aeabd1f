//! `--interactive`: typed lines that change the network while it runs, and a status line.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use indicatif::ProgressBar;
use weir_emu::{Change, Handle, Property, Status, WayStatus, Ways};
use weir_lab::scenario::quantity;
use weir_net::{Jitter, LossModel};

const HELP: &str = "type 'capacity 1Mbps', 'delay 50ms', 'jitter 10ms' or 'loss 5%', with 'up' or \
                    'down' before the value for one direction alone, or 'quit', which keeps no record";

/// A parsed input line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    Nothing,
    Quit,
    Change(Change),
}

/// The typed lines, and the status line.
pub struct Console {
    lines: Receiver<String>,
    bar: ProgressBar,
}

impl Console {
    /// Listens to standard input. Its thread ends with the program: nothing interrupts a read.
    pub fn start() -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            let typed = std::io::stdin().lock().lines().map_while(Result::ok);
            // Without a receiver there is no run left to change.
            let _ = typed.map(|line| sender.send(line)).take_while(Result::is_ok).last();
        });
        eprintln!("weir: {HELP}");
        Self { lines, bar: ProgressBar::new_spinner() }
    }

    /// Executes the lines typed since the last call, and shows the state of the network. Returns
    /// whether to go on.
    pub fn tick(&self, handle: &Handle) -> bool {
        for line in self.lines.try_iter() {
            match parse(&line) {
                Ok(Line::Nothing) => {}
                Ok(Line::Quit) => {
                    self.bar.finish_and_clear();
                    return false;
                }
                Ok(Line::Change(_)) if handle.hops() == 0 => {
                    self.show_message("there is no bottleneck to change");
                }
                Ok(Line::Change(change)) => {
                    handle.set(change);
                    self.show_message(&change.to_string());
                }
                Err(error) => self.show_message(&error),
            }
        }
        self.bar.set_message(shown(&handle.status()));
        self.bar.tick();
        true
    }

    fn show_message(&self, text: &str) {
        self.bar.suspend(|| eprintln!("weir: {text}"));
    }
}

fn parse(line: &str) -> Result<Line, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, ways, value) = match words[..] {
        [] => return Ok(Line::Nothing),
        ["quit" | "exit"] => return Ok(Line::Quit),
        [name, "up", value] => (name, Ways::Up, value),
        [name, "down", value] => (name, Ways::Down, value),
        [name, value] => (name, Ways::Both, value),
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
    Ok(Line::Change(Change { hop: 0, ways, property }))
}

/// The status line: rate and loss of each direction, and the round-trip time.
fn shown(status: &Status) -> String {
    let way = |name: &str, way: &WayStatus| {
        let of =
            way.capacity.map_or(String::new(), |rate| format!(" of {:.3}", rate.as_mbps_f64()));
        let loss = way.loss_ratio * 100.0;
        format!("{name} {:.3}{of} Mbit/s, {loss:.1} % lost", way.rate.as_mbps_f64())
    };
    let mut parts = vec![format!("{:.0} s", (status.time.as_secs_f64()))];
    for [up, down] in &status.hops {
        parts.extend([way("up", up), way("down", down)]);
    }
    parts.push(format!("round trip {:.0} ms", status.round_trip().as_millis_f64()));
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, TimeDelta, Timestamp};

    use super::*;

    fn change(ways: Ways, property: Property) -> Result<Line, String> {
        Ok(Line::Change(Change { hop: 0, ways, property }))
    }

    #[test]
    fn a_line_names_a_property_a_direction_or_none_and_a_value() {
        let rate = Property::Capacity(Bitrate::from_kbps(1_000));
        assert_eq!(parse("capacity 1Mbps"), change(Ways::Both, rate));
        assert_eq!(parse("  capacity  down 1000kbps "), change(Ways::Down, rate));
        let outage = Property::Capacity(Bitrate::ZERO);
        assert_eq!(parse("capacity up 0bps"), change(Ways::Up, outage));
        let delay = Property::Delay(TimeDelta::from_millis(50));
        assert_eq!(parse("delay up 50ms"), change(Ways::Up, delay));
        assert_eq!(parse("loss 5%"), change(Ways::Both, Property::Loss(LossModel::Random(0.05))));
        assert_eq!((parse(""), parse("quit")), (Ok(Line::Nothing), Ok(Line::Quit)));
    }

    #[test]
    fn what_is_not_understood_is_answered_with_what_can_be_typed() {
        for line in ["capacity", "capacity left 1Mbps", "speed 1Mbps", "delay 1 ms now"] {
            assert_eq!(parse(line), Err(HELP.into()), "{line}");
        }
        for line in ["capacity -1Mbps", "delay 5", "loss 120%"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_state_is_one_line() {
        let up = WayStatus {
            capacity: Some(Bitrate::from_kbps(2_000)),
            rate: Bitrate::from_kbps(1_250),
            loss_ratio: 0.021,
            delay: TimeDelta::from_millis(40),
        };
        let down = WayStatus { capacity: None, loss_ratio: 0.0, ..up };
        let status = Status { time: Timestamp::from_secs(12), hops: vec![[up, down]] };
        assert_eq!(
            shown(&status),
            "12 s | up 1.250 of 2.000 Mbit/s, 2.1 % lost | down 1.250 Mbit/s, 0.0 % lost | round \
             trip 80 ms"
        );
    }
}
