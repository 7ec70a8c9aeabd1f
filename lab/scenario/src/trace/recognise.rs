//! Which format a text has, and which keys apply to a format.

use super::csv::WORDS;
use super::text::lines;
use super::{
    Format, Options, Result, TraceError, columns, csv, logs, netem, numbers, ping, quoted,
};

/// The format that a text has by its first lines.
pub(super) fn recognised(text: &str, options: &Options) -> Result<Format> {
    let Some((number, line)) = lines(text).next() else {
        return Err(TraceError::of_file("the trace is empty"));
    };
    match line.chars().next() {
        _ if netem::is_model(text, line) => return Ok(Format::NetemTrace),
        Some('{') => return Ok(Format::Json),
        _ if logs::is_iperf(text) => return Ok(Format::Iperf),
        _ if ping::is_ping(text) => return Ok(Format::Ping),
        Some('[') => return Ok(Format::Json),
        _ if options.column.is_some() || csv::is_rrd(text) => return Ok(Format::Csv),
        _ if logs::is_nuttcp(text) => return Ok(Format::Nuttcp),
        _ => {}
    }
    let fields = columns::fields(line, options.decimal);
    let is_numbers = fields.iter().all(|field| numbers::whole(field, options.decimal).is_some());
    match fields.len() {
        1 if is_numbers => Ok(Format::Mahimahi),
        2 if is_numbers => Ok(Format::Columns),
        6 if is_numbers && !line.contains([',', ';']) => Ok(Format::Ghent),
        2.. if !is_numbers => Ok(Format::Csv),
        3.. if columns::names(text, options).len() == fields.len() => Ok(Format::Csv),
        // With decimal commas, those of a header separate.
        1 if !is_numbers && line.contains([',', '|']) => Ok(Format::Csv),
        count => {
            let message = match is_numbers {
                true => {
                    let hint = columns::comma_hint(line, options);
                    format!("{count} columns without a header; write column, unit and time{hint}")
                }
                false => format!("{} is no trace; write its format{WORDS}", quoted(line)),
            };
            Err(TraceError::at(number, &message))
        }
    }
}

/// Refuses keys that do not apply to a format.
pub(super) fn check_keys(format: Format, options: &Options) -> Result<()> {
    let known: &[&str] = match format {
        Format::Mahimahi => &["opportunity", "from", "to"],
        Format::Columns => &["unit", "time_unit", "times", "round_trip", "counter", "from", "to"],
        Format::NetemTrace | Format::Ghent | Format::Iperf | Format::Nuttcp => &["from", "to"],
        Format::Ping => &["interval", "round_trip", "from", "to"],
        Format::Lines => &[
            "column",
            "unit",
            "time",
            "time_unit",
            "time_format",
            "times",
            "interval",
            "round_trip",
            "counter",
            "from",
            "to",
        ],
        Format::Csv | Format::Json => &[
            "column",
            "unit",
            "time",
            "time_unit",
            "time_format",
            "times",
            "duration",
            "interval",
            "round_trip",
            "counter",
            "where",
            "from",
            "to",
        ],
    };
    for key in options.set() {
        let applies = match key {
            "list" => format == Format::Json,
            "skip" => format != Format::Mahimahi,
            "decimal" => matches!(format, Format::Csv | Format::Columns | Format::Lines),
            key => known.contains(&key),
        };
        if !applies {
            let message = format!("a trace of the format {} has no {key}", format.name());
            return Err(TraceError::of_file(&message));
        }
    }
    Ok(())
}
