//! What ping prints: a line for each echo. Half of a round trip is the delay of one direction.
//!
//! ```text
//! iputils, busybox, macOS:  64 bytes from 192.0.2.1: icmp_seq=7 ttl=57 time=12.3 ms
//! the same with -D:         [1717000000.123456] 64 bytes from ...
//! in any language:          64 Bytes von 192.0.2.1: icmp_seq=7 ttl=57 Zeit=12,3 ms
//! behind any time:          Jun 21 10:11:12 64 bytes from ...
//! Windows, in any language: Reply from 192.0.2.1: bytes=32 time=12ms TTL=57
//! fping, also with -D:      192.0.2.1 : [7], 64 bytes, 12.3 ms (12.1 avg, 0% loss)
//! irtt:                     [192.0.2.1:2112] seq=7 rtt=12.3ms rd=6.2ms sd=6.1ms ipdv=80.1µs
//! ```

use weir::units::TimeDelta;

use super::clock::{self, Clock};
use super::numbers::number;
use super::series::Samples;
use super::unit::{self, Unit};
use super::{Options, Result, TraceError, lines};

/// How many lines are looked at to recognise a log.
const HEAD: usize = 60;
/// Numbers above this, in seconds, are times since 1970.
const CALENDAR: f64 = 1e8;
/// Time between two echoes, unless the log or a key says otherwise.
const USUAL: TimeDelta = TimeDelta::from_secs(1);

/// Whether a text has lines of ping.
pub(super) fn is_ping(text: &str) -> bool {
    lines(text).take(HEAD).any(|(_, line)| echo(line).is_some())
}

/// An echo that was answered.
#[derive(Debug, PartialEq)]
struct Echo<'t> {
    /// Who answered, where each line says it of one of several.
    host: Option<&'t str>,
    /// When the answer came, as it is written before it.
    stamp: Option<&'t str>,
    /// Its number, of 16 bits in most programs.
    sequence: Option<u64>,
    round_trip_ms: f64,
}

fn echo(line: &str) -> Option<Echo<'_>> {
    if line.ends_with("(DUP!)") {
        return None;
    }
    if let Some(echo) = echo_of_irtt(line) {
        return Some(echo);
    }
    let dated = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let (stamp, rest) = match dated {
        Some((at, rest)) => (Some(at), rest),
        None => before_answer(line),
    };
    if let Some((host, rest)) = rest.split_once(" : [") {
        return echo_of_fping(stamp, host, rest);
    }
    let english = value(rest, &["time=", "time<"]).filter(|_| rest.contains(" from "));
    let round_trip_ms = match (english, echo_of_windows(rest)) {
        (Some(text), _) => number(text.strip_suffix("ms").unwrap_or(text))?,
        (None, Some(round_trip_ms)) => round_trip_ms,
        (None, None) => echo_of_linux(rest)?,
    };
    let sequence =
        value(rest, &["icmp_seq=", "icmp_req=", "seq="]).and_then(|text| text.parse().ok());
    Some(Echo { host: None, stamp, sequence, round_trip_ms })
}

/// What stands before `64 bytes from` in a line, if anything, such as the date that `ts` adds.
fn before_answer(line: &str) -> (Option<&str>, &str) {
    let Some(at) = line.find(" bytes from ") else { return (None, line) };
    let start = match line[..at].rfind(' ') {
        Some(space) => space + 1,
        None => 0,
    };
    let (before, answer) = line.split_at(start);
    let stamp = before.trim_end_matches([' ', ':', ']', ')', ',', '-', '|']);
    let stamp = stamp.trim_start_matches(['[', '(']);
    (if stamp.is_empty() { None } else { Some(stamp) }, answer)
}

/// Reads `12.3` of `64 Bytes von 192.0.2.1: icmp_seq=7 ttl=57 Zeit=12,3 ms`, whose words are those
/// of the user's language.
fn echo_of_linux(line: &str) -> Option<f64> {
    let is_answer = line.contains("icmp_seq=") && line.contains("ttl=");
    let (_, text) = line.rsplit_once('=')?;
    let (digits, unit) = text.split_once(' ')?;
    let is_unit = !unit.is_empty() && unit.chars().all(char::is_alphabetic);
    if is_answer && is_unit { number(&digits.replace(',', ".")) } else { None }
}

/// Reads `12` of `Antwort von 192.0.2.1: Bytes=32 Zeit=12ms TTL=57`, whose words are those of the
/// user's language, its unit too. The time stands last before the TTL; of IPv6, which has none, at
/// the end. What cannot be measured is `<1ms`.
fn echo_of_windows(line: &str) -> Option<f64> {
    let before = match line.split_once("TTL=") {
        Some((before, _)) => before,
        None if has_ipv6(line) => line,
        None => return None,
    };
    let (_, text) = before.rsplit_once(['=', '<'])?;
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let unit = text[end..].trim();
    let is_unit = !unit.is_empty() && unit.chars().all(|c| c.is_alphabetic() || c == '.');
    if is_unit { number(&text[..end]) } else { None }
}

/// Whether a line has an address of IPv6.
fn has_ipv6(line: &str) -> bool {
    line.split_whitespace().any(|word| word.matches(':').count() > 2)
}

/// Reads `7], 64 bytes, 12.3 ms (12.1 avg, 0% loss)`.
fn echo_of_fping<'t>(stamp: Option<&'t str>, host: &'t str, rest: &str) -> Option<Echo<'t>> {
    let (sequence, rest) = rest.split_once("], ")?;
    let round_trip_ms = number(rest.split_once(" ms")?.0.rsplit_once(", ")?.1)?;
    Some(Echo { host: Some(host.trim()), stamp, sequence: sequence.parse().ok(), round_trip_ms })
}

/// Reads `seq=7 rtt=12.3ms`, behind the host.
fn echo_of_irtt(line: &str) -> Option<Echo<'_>> {
    let rest =
        line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |of| of.1);
    let sequence = value(rest, &["seq="]).filter(|_| rest.starts_with("seq="))?;
    let text = value(rest, &["rtt="])?;
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let seconds = unit::time_of_name(&text[digits.len()..])?;
    let round_trip_ms = number(digits)? * seconds * 1e3;
    Some(Echo { host: None, stamp: None, sequence: sequence.parse().ok(), round_trip_ms })
}

/// What stands behind one of these names.
fn value<'t>(line: &'t str, names: &[&str]) -> Option<&'t str> {
    let mut words = line.split([' ', ',']);
    words.find_map(|word| names.iter().find_map(|name| word.strip_prefix(*name)))
}

/// The time between two echoes by the last lines: `20 packets transmitted, ..., time 19027ms`.
fn interval(text: &str) -> Option<TimeDelta> {
    let (_, last) = lines(text).find(|(_, line)| line.contains(" packets transmitted, "))?;
    let (count, rest) = last.split_once(" packets transmitted")?;
    let milliseconds = number(rest.rsplit_once("time ")?.1.strip_suffix("ms")?)?;
    let steps = number(count)? - 1.0;
    if steps >= 1.0 { Some(TimeDelta::from_secs_f64(milliseconds / steps / 1e3)) } else { None }
}

/// An answer of a log.
struct Answer {
    line: usize,
    /// How many echoes were sent up to its own.
    sent: u64,
    /// When it came, in nanoseconds, if the log says so.
    at: Option<i64>,
    round_trip_ms: f64,
}

impl Answer {
    fn is_of_whole_second(&self) -> bool {
        self.at.is_some_and(|at| at % 1_000_000_000 == 0)
    }
}

/// Reads the delays.
pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let half = if options.round_trip == Some(false) { 1.0 } else { 0.5 };
    let unit = Unit::Time(half * 1e-3).check(options.want)?;
    let given = options.interval.or_else(|| interval(text));
    if given.is_none() && lines(text).any(|(_, line)| echo_of_irtt(line).is_some()) {
        let message = "irtt prints no times; write how far its packets are apart, such as \
                       interval = \"10ms\"";
        return Err(TraceError::of_file(message));
    }
    let answers = answers(text, options)?;
    let has_times = options.interval.is_none() && tells_times(&answers);
    let is_whole = answers.iter().all(Answer::is_of_whole_second);
    let step = given.or(mean_step(&answers)).unwrap_or(USUAL).as_nanos();
    let mut samples = Samples::strict();
    let (mut newest, mut end, mut first) = (None, None, None);
    for answer in &answers {
        let round_trip = clock::nanos(answer.round_trip_ms / 1e3).unwrap_or_default();
        let at = match answer.at {
            // Of a whole second, the round trip is within what it leaves open.
            Some(at) if has_times && is_whole => Some(at),
            Some(at) if has_times => Some(at - round_trip),
            _ => i64::try_from(answer.sent).ok().and_then(|sent| sent.checked_mul(step)),
        };
        let at = at.ok_or_else(|| TraceError::at(answer.line, "too many echoes before it"))?;
        // An answer that others overtook says nothing new.
        if newest.is_some_and(|newest| at <= newest) {
            continue;
        }
        newest = Some(at);
        // The last one lasts as long as it takes from one to the next.
        let (first_at, first_sent) = *first.get_or_insert((at, answer.sent));
        let steps = i64::try_from(answer.sent - first_sent).ok().filter(|steps| *steps > 0);
        end = at.checked_add(steps.map_or(step, |steps| (at - first_at) / steps));
        samples.push(answer.line, at, unit.value(answer.line, answer.round_trip_ms)?)?;
    }
    if let Some(end) = end {
        samples.end_at(end);
    }
    Ok(samples)
}

/// The answers, in the order of the lines.
fn answers(text: &str, options: &Options) -> Result<Vec<Answer>> {
    let (mut clock, mut host, mut sent) = (Clock::new(None, false, options), None, 0);
    let mut answers = Vec::new();
    // Windows numbers nothing: up to the next blank line, each line is an echo, or says in the
    // user's language that no answer came.
    let mut counts_lines = false;
    for (index, content) in text.lines().map(str::trim).enumerate() {
        let line = index + 1;
        let Some(echo) = echo(content) else {
            counts_lines &= !content.is_empty();
            sent += u64::from(counts_lines && !content.starts_with('#'));
            continue;
        };
        counts_lines = echo.sequence.is_none();
        if echo.host.is_some_and(|of| *host.get_or_insert(of) != of) {
            return Err(TraceError::at(line, "several hosts answer; keep the lines of one"));
        }
        sent = match echo.sequence {
            Some(sequence) => unwrapped(sent, sequence),
            None => sent + 1,
        };
        let at = match echo.stamp {
            Some(text) if !is_small(text) => clock.read(text),
            _ => None,
        };
        answers.push(Answer { line, sent, at, round_trip_ms: echo.round_trip_ms });
    }
    Ok(answers)
}

/// Whether a text is a small number, which counts lines.
fn is_small(text: &str) -> bool {
    match number(text) {
        Some(number) => number < CALENDAR,
        None => false,
    }
}

/// Whether the times before the answers tell when each came: all have one, and not the same as the
/// one before, as where times have whole seconds only.
fn tells_times(answers: &[Answer]) -> bool {
    let mut before: Option<&Answer> = None;
    for answer in answers {
        let Some(at) = answer.at else { return false };
        if let Some(last) = before.replace(answer)
            && last.at == Some(at)
            && last.sent != answer.sent
        {
            return false;
        }
    }
    true
}

/// The mean time from one echo to the next by the times before the answers.
fn mean_step(answers: &[Answer]) -> Option<TimeDelta> {
    let (first, last) = (answers.first()?, answers.last()?);
    let steps = i64::try_from(last.sent.checked_sub(first.sent)?).ok()?;
    let step = (last.at? - first.at?).checked_div(steps)?;
    if step > 0 { Some(TimeDelta::from_nanos(step)) } else { None }
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
        let series = read(text, &Options::new(Want::Delay)).unwrap();
        let series = series.series(super::super::series::Part::default()).unwrap();
        assert_eq!(series.length().as_millis(), 1_000);
        let plain = text.replace("[1717000000.020] ", "").replace("[1717000000.540] ", "");
        assert_eq!(steps(&plain), [(0.0, 10.0), (1.0, 20.0)]);
    }

    #[test]
    fn what_stands_before_an_answer_may_be_its_time() {
        let answers = [
            "64 bytes from a: icmp_seq=1 ttl=57 time=20 ms",
            "timed out",
            "64 bytes \
            from a: icmp_seq=3 ttl=57 time=40 ms",
        ];
        for (first, last) in [
            ("2024-06-21 10:11:12.020 ", "2024-06-21 10:11:12.440 "),
            ("2024-06-21T10:11:12.020: ", "2024-06-21T10:11:12.440: "),
            ("10:11:12.020 ", "10:11:12.440 "),
            ("23:59:59.820000 ", "00:00:00.240000 "),
            ("1718964672.020 ", "1718964672.440 "),
            ("Fri Jun 21 10:11:12.020 2024: ", "Fri Jun 21 10:11:12.440 2024: "),
            ("(10:11:12,020) ", "(10:11:12,440) "),
        ] {
            let text = format!("{first}{}\n{}\n{last}{}\n", answers[0], answers[1], answers[2]);
            assert_eq!(steps(&text), [(0.0, 10.0), (0.4, 20.0)], "{text}");
        }
        // What is no time says nothing.
        let text = format!("7: {}\n9: {}\n", answers[0], answers[2]);
        assert_eq!(steps(&text), [(0.0, 10.0), (2.0, 20.0)]);
    }

    #[test]
    fn whole_seconds_before_answers_tell_how_far_they_are_apart() {
        for (step_ms, count) in [(200, 51), (500, 21), (100, 101)] {
            let mut text = String::new();
            for sent in 0..count {
                let second = sent * step_ms / 1_000;
                text += &format!(
                    "Jun 21 10:11:{second:02} 64 bytes from a: icmp_seq={sent} ttl=57 \
                    time={} ms\n",
                    20 + sent % 3
                );
            }
            let found = steps(&text);
            assert_eq!(found.len(), count, "{step_ms}");
            assert_eq!(found[count - 1].0, 10.0, "{step_ms}");
        }
    }

    #[test]
    fn whole_seconds_far_apart_are_the_times_whatever_the_round_trips() {
        let text = "Jun 21 10:11:10 64 bytes from a: icmp_seq=1 ttl=57 time=20 ms\n\
            Jun 21 10:11:15 64 bytes from a: icmp_seq=2 ttl=57 time=800 ms\n\
            Jun 21 10:12:20 64 bytes from a: icmp_seq=3 ttl=57 time=40 ms\n";
        assert_eq!(steps(text), [(0.0, 10.0), (5.0, 400.0), (70.0, 20.0)]);
    }

    #[test]
    fn linux_is_read_in_any_language() {
        for end in ["Zeit=20.0 ms", "temps=20,0 ms", "время=20.0 мс", "時間=20 ミリ秒"]
        {
            let text = format!(
                "64 Bytes von 192.0.2.1: icmp_seq=1 ttl=57 {end}\n\
                 64 Bytes von 192.0.2.1: icmp_seq=3 ttl=57 {end}\n"
            );
            assert!(is_ping(&text), "{end}");
            assert_eq!(steps(&text), [(0.0, 10.0), (2.0, 10.0)], "{end}");
        }
    }

    #[test]
    fn windows_is_read_in_any_language() {
        let words = [
            ("Zeit", "ms", "Zeitüberschreitung der Anforderung."),
            ("temps", " ms", "Délai d’attente de la demande dépassé."),
            ("tiempo", "ms", "Tiempo de espera agotado para esta solicitud."),
            ("время", "мс", "Превышен интервал ожидания для запроса."),
            ("idő", " ezredmp.", "A kérésre nem érkezett válasz a határidőn belül."),
            ("時間 ", "ms", "要求がタイムアウトしました。"),
        ];
        for (word, unit, lost) in words {
            for (size, end) in [("Bytes=32 ", " TTL=57"), ("", "")] {
                let text = format!(
                    "x 2001:db8::1: {size}{word}=20{unit}{end}\r\n{lost}\r\n\
                     x 2001:db8::1: {size}{word}<1{unit}{end}\r\n\r\nx = 2, y = 1 (50%),\r\n"
                );
                assert!(is_ping(&text));
                assert_eq!(steps(&text), [(0.0, 10.0), (2.0, 0.5)], "{text}");
            }
        }
    }

    #[test]
    fn fping_and_irtt_are_read_like_ping() {
        let text = "192.0.2.1 : [0], 64 bytes, 20.0 ms (20.0 avg, 0% loss)\n\
            192.0.2.1 : [1], timed out (20.0 avg, 50% loss)\n\
            192.0.2.1 : [2], 64 bytes, 30.0 ms (25.0 avg, 33% loss)\n\n\
            192.0.2.1 : xmt/rcv/%loss = 3/2/33%, min/avg/max = 20.0/25.0/30.0\n";
        assert_eq!(steps(text), [(0.0, 10.0), (2.0, 15.0)]);
        let dated = "[1717000000.020] a : [0], 64 bytes, 20.0 ms (20.0 avg, 0% loss)\n\
            [1717000000.540] a : [1], 64 bytes, 40.0 ms (30.0 avg, 0% loss)\n";
        assert_eq!(steps(dated), [(0.0, 10.0), (0.5, 20.0)]);
        let options = Options::new(Want::Delay);
        let two = format!("{text}192.0.2.2 : [3], 64 bytes, 9 ms (9.0 avg, 0% loss)\n");
        let error = read(&two, &options).unwrap_err().to_string();
        assert_eq!(error, "line 6: several hosts answer; keep the lines of one");
        let irtt = "[Connecting] connecting to a\n\
            [a:2112] seq=0 rtt=20ms rd=10ms sd=10ms ipdv=n/a\n\
            [a:2112] seq=1 rtt=900µs rd=450µs sd=450µs ipdv=19.1ms\n\
            [a:2112] seq=3 rtt=1.5s rd=1s sd=0.5s ipdv=n/a\n";
        assert!(is_ping(irtt));
        let error = read(irtt, &options).unwrap_err().to_string();
        assert!(error.ends_with("such as interval = \"10ms\""), "{error}");
        let options = Options { interval: Some(TimeDelta::from_millis(10)), ..options };
        let samples = read(irtt, &options).unwrap();
        let series = samples.series(super::super::series::Part::default()).unwrap();
        let ms: Vec<f64> = series.steps().iter().map(|step| (step.1 * 1e6).round() / 1e3).collect();
        assert_eq!((ms, series.length().as_millis()), (vec![10.0, 0.45, 750.0], 40));
    }

    #[test]
    fn windows_counts_what_was_not_answered() {
        let text = "Reply from 192.0.2.1: bytes=32 time=12ms TTL=57\r\n\
            Request timed out.\r\n\
            Reply from 192.0.2.7: Destination host unreachable.\r\n\
            Reply from 192.0.2.1: bytes=32 time<1ms TTL=57\r\n";
        assert_eq!(steps(text), [(0.0, 6.0), (3.0, 0.5)]);
    }
}
