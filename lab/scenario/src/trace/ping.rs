//! What ping prints: a line for each echo. Half of a round trip is the delay of one direction.
//!
//! ```text
//! iputils, busybox, macOS:  64 bytes from 192.0.2.1: icmp_seq=7 ttl=57 time=12.3 ms
//! the same with -D:         [1717000000.123456] 64 bytes from ...
//! Windows:                  Reply from 192.0.2.1: bytes=32 time=12ms TTL=57
//! ```

use weir::units::TimeDelta;

use super::series::Samples;
use super::unit::{Unit, number};
use super::{Options, Result, TraceError, clock, lines};

/// How many lines are looked at to recognise a log.
const HEAD: usize = 60;
/// Time between two echoes, unless the log or a key says otherwise.
const USUAL: TimeDelta = TimeDelta::from_secs(1);

/// Whether a text has lines of ping.
pub(super) fn is_ping(text: &str) -> bool {
    lines(text).take(HEAD).any(|(_, line)| echo(line).is_some())
}

/// An echo that was answered.
#[derive(Debug, PartialEq)]
struct Echo {
    /// When the answer came, in seconds since 1970.
    at: Option<f64>,
    /// Its number, of 16 bits in most programs.
    sequence: Option<u64>,
    round_trip_ms: f64,
}

fn echo(line: &str) -> Option<Echo> {
    if line.ends_with("(DUP!)") {
        return None;
    }
    let dated = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let (at, rest) = match dated {
        Some((at, rest)) => (Some(number(at)?), rest),
        None => (None, line),
    };
    if !rest.contains(" from ") {
        return None;
    }
    // Windows writes `time<1ms` of what it cannot measure.
    let round_trip = value(rest, &["time=", "time<"])?;
    let round_trip_ms = number(round_trip.strip_suffix("ms").unwrap_or(round_trip))?;
    let sequence =
        value(rest, &["icmp_seq=", "icmp_req=", "seq="]).and_then(|text| text.parse().ok());
    Some(Echo { at, sequence, round_trip_ms })
}

/// What stands behind one of these names.
fn value<'t>(line: &'t str, names: &[&str]) -> Option<&'t str> {
    let mut words = line.split([' ', ',']);
    words.find_map(|word| names.iter().find_map(|name| word.strip_prefix(*name)))
}

/// Whether a line says of an echo without a number that no answer came.
fn is_unanswered(line: &str) -> bool {
    line == "Request timed out." || line.ends_with("Destination host unreachable.")
}

/// The time between two echoes by the last lines: `20 packets transmitted, ..., time 19027ms`.
fn interval(text: &str) -> Option<TimeDelta> {
    let (_, last) = lines(text).find(|(_, line)| line.contains(" packets transmitted, "))?;
    let (count, rest) = last.split_once(" packets transmitted")?;
    let milliseconds = number(rest.rsplit_once("time ")?.1.strip_suffix("ms")?)?;
    let steps = number(count)? - 1.0;
    (steps >= 1.0).then(|| TimeDelta::from_secs_f64(milliseconds / steps / 1e3))
}

/// Reads the delays.
pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let half = if options.round_trip == Some(false) { 1.0 } else { 0.5 };
    let unit = Unit::Time(half * 1e-3).check(options.want)?;
    let step = options.interval.or_else(|| interval(text)).unwrap_or(USUAL);
    let mut samples = Samples::strict();
    let (mut sent, mut newest, mut end) = (0, None, None);
    for (line, content) in lines(text) {
        let Some(echo) = echo(content) else {
            sent += u64::from(is_unanswered(content));
            continue;
        };
        sent = match echo.sequence {
            Some(sequence) => unwrapped(sent, sequence),
            None => sent + 1,
        };
        let at = match echo.at {
            Some(seconds) if options.interval.is_none() => {
                clock::nanos(seconds - echo.round_trip_ms / 1e3)
            }
            _ => i64::try_from(sent).ok().and_then(|sent| sent.checked_mul(step.as_nanos())),
        };
        let at = at.ok_or_else(|| TraceError::at(line, "expected a time since 1970"))?;
        // An answer that others overtook says nothing new.
        if newest.is_some_and(|newest| at <= newest) {
            continue;
        }
        newest = Some(at);
        end = at.checked_add(step.as_nanos());
        samples.push(line, at, unit.value(line, echo.round_trip_ms)?)?;
    }
    if let Some(end) = end {
        samples.end_at(end);
    }
    Ok(samples)
}

/// The number near the newest one whose last 16 bits these are.
fn unwrapped(newest: u64, sequence: u64) -> u64 {
    const ROUND: u64 = 1 << 16;
    if sequence >= ROUND {
        return sequence;
    }
    let near = newest / ROUND * ROUND + sequence;
    match near + ROUND / 2 < newest {
        true => near + ROUND,
        false => near,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Want;
    use super::*;

    fn steps(text: &str) -> Vec<(f64, f64)> {
        let options = Options::new(Want::Delay);
        let series = read(text, &options).unwrap().series(super::super::series::Part::default());
        let series = series.unwrap();
        let ms = |of: &(weir::units::Timestamp, f64)| (of.0.as_secs_f64(), of.1 * 1e3);
        series.steps().iter().map(ms).collect()
    }

    #[test]
    fn half_of_each_round_trip_is_the_delay_of_its_second() {
        let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
            64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.0 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=30 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=31 ms (DUP!)\n\
            64 bytes from 192.0.2.1: icmp_seq=5 ttl=57 time=40 ms\n";
        assert_eq!(steps(text), [(0.0, 10.0), (1.0, 15.0), (4.0, 20.0)]);
        let whole = format!("{text}\n5 packets transmitted, 3 received, 40% loss, time 800ms\n");
        assert_eq!(steps(&whole), [(0.0, 10.0), (0.2, 15.0), (0.8, 20.0)]);
    }

    #[test]
    fn times_since_1970_count_and_numbers_wrap() {
        let text = "[1717000000.020] 64 bytes from a: icmp_seq=65535 ttl=57 time=20 ms\n\
            [1717000000.540] 64 bytes from a: icmp_seq=0 ttl=57 time=40 ms\n";
        assert_eq!(steps(text), [(0.0, 10.0), (0.5, 20.0)]);
        let plain = text.replace("[1717000000.020] ", "").replace("[1717000000.540] ", "");
        assert_eq!(steps(&plain), [(0.0, 10.0), (1.0, 20.0)]);
    }

    #[test]
    fn windows_counts_what_was_not_answered() {
        let text = "Reply from 192.0.2.1: bytes=32 time=12ms TTL=57\r\n\
            Request timed out.\r\n\
            Reply from 192.0.2.1: bytes=32 time<1ms TTL=57\r\n";
        assert_eq!(steps(text), [(0.0, 6.0), (2.0, 0.5)]);
    }
}
