//! What measuring programs print: a line for each interval.
//!
//! ```text
//! iperf3, iperf:  [  5]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec    0    250 KBytes
//! iperf3 --bidir: [  5][TX-C]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec
//! nuttcp:           11.2500 MB /   1.00 sec =   94.3718 Mbps     0 retrans
//! ```

use super::numbers::number;
use super::series::Samples;
use super::spans::Spans;
use super::unit::Unit;
use super::{Options, Result, TraceError, Want, clock, lines, quoted};

/// How many lines are looked at to recognise a log.
const HEAD: usize = 60;

/// Whether a text has lines of iperf3 or iperf.
pub(super) fn is_iperf(text: &str) -> bool {
    lines(text).take(HEAD).any(|(_, line)| interval(line).is_some())
}

/// Whether a text has lines of nuttcp.
pub(super) fn is_nuttcp(text: &str) -> bool {
    lines(text).take(HEAD).any(|(_, line)| amount(line).is_some())
}

/// A line of iperf3 or iperf.
struct Interval<'t> {
    /// Such as `5`, or `SUM`.
    stream: &'t str,
    /// Of a test of both directions, the one of this stream.
    direction: Option<Want>,
    from: f64,
    to: f64,
    rate: &'t str,
    unit: Unit,
}

/// Reads `[  5]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec`, behind anything, such as a date.
fn interval(line: &str) -> Option<Interval<'_>> {
    line.match_indices('[').find_map(|(at, _)| interval_at(&line[at..]))
}

fn interval_at(line: &str) -> Option<Interval<'_>> {
    let (stream, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (role, rest) = rest.split_at(rest.find(' ')?);
    let (times, rest) = rest.split_once("sec")?;
    let (from, to) = times.trim().split_once('-')?;
    let (from, to) = (number(from)?, number(to.trim())?);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let place = words.iter().position(|word| word.ends_with("/sec"))?;
    let unit = rate_of(words[place])?;
    let direction = match role {
        "[TX-C]" | "[RX-S]" => Some(Want::Up),
        "[RX-C]" | "[TX-S]" => Some(Want::Down),
        _ => None,
    };
    let rate = words.get(place.checked_sub(1)?)?;
    Some(Interval { stream: stream.trim(), direction, from, to, rate, unit })
}

/// The unit of a rate of iperf, whose amounts of bytes are powers of 1024, and of bits of 1000.
fn rate_of(word: &str) -> Option<Unit> {
    let power = match word.strip_suffix("Bytes/sec") {
        Some("") => 0,
        Some("K") => 1,
        Some("M") => 2,
        Some("G") => 3,
        Some("T") => 4,
        _ => return Unit::of_name(word),
    };
    Some(Unit::Rate(8.0 * 1024_f64.powi(power)))
}

/// Reads the rates of the sum over the streams, or of the only stream. Of a test of both
/// directions, those of the one that is wanted.
pub(super) fn iperf(text: &str, options: &Options) -> Result<Samples> {
    Unit::Rate(1.0).check(options.want)?;
    let has_sum = lines(text).any(|(_, line)| interval(line).is_some_and(|of| of.stream == "SUM"));
    let mut samples = Samples::strict();
    let (mut spans, mut before, mut only) = (Spans::default(), 0.0, None);
    for (number, line) in lines(text) {
        // What the server saw follows what the client saw.
        if line.starts_with("Server output:") {
            break;
        }
        let Some(of) = interval(line).filter(|of| has_sum == (of.stream == "SUM")) else {
            continue;
        };
        if line.ends_with("(omitted)")
            || of.direction.is_some_and(|direction| direction != options.want)
        {
            continue;
        }
        // The last lines are of the whole time, of the sender and of the receiver.
        let is_whole = of.from == 0.0 && before > 0.0 && of.to >= before;
        if is_whole || line.ends_with("sender") || line.ends_with("receiver") {
            continue;
        }
        if *only.get_or_insert(of.stream) != of.stream {
            let message = format!("the stream {} beside others, and no sum", quoted(of.stream));
            return Err(TraceError::at(number, &message));
        }
        let (Some(from), Some(to)) = (clock::nanos(of.from), clock::nanos(of.to)) else {
            return Err(TraceError::at(number, "expected an interval that lasts"));
        };
        let Some(at) = spans.place(from, to) else {
            return Err(TraceError::at(number, "expected an interval that lasts"));
        };
        samples.push(number, at, of.unit.read(number, of.rate, None)?)?;
        before = of.to;
    }
    samples.end_at(spans.end());
    Ok(samples)
}

/// Reads `11.2500 MB /   1.00 sec =   94.3718 Mbps`: the seconds, the rate and its unit.
fn amount(line: &str) -> Option<(f64, &str, Unit)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.windows(3).position(|words| words[0] == "/" && words[2] == "sec")?;
    let [_, seconds, _, "=", rate, unit] = words.get(place..place + 6)? else { return None };
    Some((number(seconds)?, *rate, Unit::of_name(unit)?))
}

/// Reads the rates of the intervals.
pub(super) fn nuttcp(text: &str, options: &Options) -> Result<Samples> {
    Unit::Rate(1.0).check(options.want)?;
    let mut samples = Samples::strict();
    let (mut at, mut count) = (0, 0);
    for (line, content) in lines(text) {
        let Some((seconds, rate, unit)) = amount(content) else { continue };
        // The last line is of the whole time, with the load of both processors.
        if content.contains("%TX") && count > 0 {
            continue;
        }
        let Some(lasts) = clock::nanos(seconds).filter(|lasts| *lasts > 0) else {
            return Err(TraceError::at(line, "expected seconds above 0"));
        };
        samples.push(line, at, unit.read(line, rate, None)?)?;
        (at, count) = (at + lasts, count + 1);
    }
    samples.end_at(at);
    Ok(samples)
}
