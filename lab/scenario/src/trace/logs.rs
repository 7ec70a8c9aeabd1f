//! What measuring programs print: a line for each interval.
//!
//! ```text
//! iperf3, iperf:  [  5]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec    0    250 KBytes
//! nuttcp:           11.2500 MB /   1.00 sec =   94.3718 Mbps     0 retrans
//! ```

use super::series::Samples;
use super::unit::{Unit, number};
use super::{Options, Result, TraceError, clock, lines, quoted};

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
    from: f64,
    to: f64,
    rate: &'t str,
    unit: Unit,
}

/// Reads `[  5]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec`.
fn interval(line: &str) -> Option<Interval<'_>> {
    let (stream, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (times, rest) = rest.trim_start_matches(|c| c != ' ').split_once("sec")?;
    let (from, to) = times.trim().split_once('-')?;
    let (from, to) = (number(from)?, number(to.trim())?);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let place = words.iter().position(|word| word.ends_with("/sec"))?;
    let unit = Unit::of_name(words[place])?;
    Some(Interval {
        stream: stream.trim(),
        from,
        to,
        rate: words.get(place.checked_sub(1)?)?,
        unit,
    })
}

/// Reads the rates of the sum over the streams, or of the only stream.
pub(super) fn iperf(text: &str, options: &Options) -> Result<Samples> {
    Unit::Rate(1.0).check(options.want)?;
    let has_sum = lines(text).any(|(_, line)| interval(line).is_some_and(|of| of.stream == "SUM"));
    let mut samples = Samples::strict();
    let (mut at, mut before, mut only) = (0, 0.0, None);
    for (number, line) in lines(text) {
        let Some(of) = interval(line).filter(|of| has_sum == (of.stream == "SUM")) else {
            continue;
        };
        if line.ends_with("(omitted)") {
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
        let Some(lasts) = clock::nanos(of.to - of.from).filter(|lasts| *lasts > 0) else {
            return Err(TraceError::at(number, "expected an interval that lasts"));
        };
        samples.push(number, at, of.unit.read(number, of.rate)?)?;
        (at, before) = (at + lasts, of.to);
    }
    samples.end_at(at);
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
        samples.push(line, at, unit.read(line, rate)?)?;
        (at, count) = (at + lasts, count + 1);
    }
    samples.end_at(at);
    Ok(samples)
}
