//! The matrix as a page that needs no network: a row for each stack, a column for each scenario.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_record::Record;
use weir_record::run::{Engine, RunInfo};
use weir_record::subject::Subject;
use weir_record::summary::Summary;
use weir_scenario::Scenario;
use weir_sim::trace::Row;

use super::verdict::{self, Verdict};
use super::{Cell, Competitor, sfu};

const STYLE: &str = include_str!("page.css");
const LEGEND: &str = "Bold: share of the link that was used, in %. Below it: 95th percentile of \
    the queuing delay, lost packets, pictures a second that the receiver decoded, and the \
    expectations of the scenario that hold. Red: one is missed; amber: the limit is within the \
    95 % confidence interval of the mean of several runs; green: all hold. All are means over the \
    runs that count. A radio cell has no capacity of its own. Of a forwarding server's \
    participants it says what each received. A stack's date is that of its first record's file. A \
    red cell leads to its curve, its cause and the command that repeats it.";
/// What the last rows of the table compare the stacks by.
const COMPARED: [Compared; 3] = [
    Compared { most: "most of the link", least: "least of the link", of: share_of_link, unit: "%" },
    Compared { most: "longest queue", least: "shortest queue", of: queue_ms, unit: "ms" },
    Compared { most: "most pictures", least: "fewest pictures", of: pictures, unit: "pictures/s" },
];
/// Of a curve, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;
/// Rows of a record that make one point of a curve.
const ROWS_PER_POINT: usize = 10;

/// A figure of a cell by which the stacks are compared.
struct Compared {
    most: &'static str,
    least: &'static str,
    of: fn(&[Summary]) -> Option<f64>,
    unit: &'static str,
}

/// The page. Simulated twins are shown if their records are below `out`.
pub fn page(cells: &[Cell<'_>], verdicts: &[Verdict], out: &Path) -> anyhow::Result<String> {
    let mut scenarios: Vec<&Scenario> = Vec::new();
    for cell in cells {
        if scenarios.iter().all(|one| one.id != cell.scenario.id) {
            scenarios.push(cell.scenario);
        }
    }
    let (mut rows, mut details) = (String::new(), String::new());
    for (stack, row) in cells.chunks(scenarios.len()).enumerate() {
        let judged = &verdicts[stack * scenarios.len()..][..scenarios.len()];
        write!(rows, "<tr><th scope=row>{}</th>", stack_head(row)?)?;
        for (cell, verdict) in row.iter().zip(judged) {
            rows.push_str(&cell_view(cell, verdict));
            if verdict.is_red() {
                details.push_str(&detail(cell, verdict)?);
            }
        }
        rows.push_str("</tr>\n");
        rows.push_str(&twin_row(row, out)?);
    }
    let mut head = String::from("<tr><th scope=col>stack</th>");
    for scenario in &scenarios {
        let (id, title) = (html(&scenario.id), html(&scenario.title));
        write!(head, "<th scope=col>{id}<small>{title}</small></th>")?;
    }
    let details = if details.is_empty() { "<p>No cell is red.</p>".into() } else { details };
    Ok(format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <title>Weir: the arena</title>\n<style>{STYLE}</style>\n<h1>The arena</h1>\n\
         <p>{LEGEND}</p>\n<div class=wide tabindex=0><table>\n<thead>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n<tfoot>{}</tfoot>\n</table></div>\n<h2>Red cells</h2>\n\
         {details}</html>\n",
        extremes(cells, &scenarios)
    ))
}

/// The name of a stack, what it is, and the date of its first record's file: a record has none.
fn stack_head(row: &[Cell<'_>]) -> anyhow::Result<String> {
    let mut head = html(row[0].competitor.name());
    let first = row.iter().find_map(|cell| Some((cell.runs.first()?, cell.programs.as_ref()?)));
    if let Some((run, programs)) = first {
        let made = std::fs::metadata(run.folder.join("run.json")).and_then(|it| it.modified());
        let date = made.map(date_of).unwrap_or_default();
        write!(head, "<small>{}<br>{date}</small>", html(programs))?;
    }
    Ok(head)
}

fn cell_view(cell: &Cell<'_>, verdict: &Verdict) -> String {
    let held = verdict.in_words();
    let runs = sound(&cell.summaries());
    let lines = match cell.competitor {
        Competitor::Server(..) => sfu::received(&runs).iter().map(|line| html(line)).collect(),
        _ => numbers(&runs),
    };
    let text = written(lines, &held);
    let (colour, _) = held.split_once(',').unwrap_or(("none", ""));
    let colour = if matches!(colour, "green" | "amber" | "red") { colour } else { "none" };
    if verdict.is_red() {
        format!("<td class={colour}><a href=\"#{}\">{text}</a></td>", anchor(cell))
    } else {
        format!("<td class={colour}>{text}</td>")
    }
}

/// What the runs of a cell measured.
fn numbers(runs: &[Summary]) -> Vec<String> {
    let mut lines = Vec::new();
    match mean(runs, "utilization") {
        Some(share) => lines.push(format!("<b>{:.0} %</b>", 100.0 * share)),
        None => lines.push("<b>-</b>".into()),
    }
    if let Some(queue) = mean(runs, "queuing_delay_ms.p95") {
        lines.push(format!("{queue:.0} ms"));
    }
    if let Some(loss) = mean(runs, "loss_ratio.mean") {
        lines.push(format!("{:.1} % lost", 100.0 * loss));
    }
    if let Some(pictures) = pictures(runs) {
        lines.push(format!("{pictures:.0} pictures/s"));
    }
    lines
}

fn written(mut lines: Vec<String>, held: &str) -> String {
    lines.push(format!("<small>{}</small>", html(held)));
    lines.join("<br>")
}

/// The row of a stack's simulated twin; empty if there are no records of it.
fn twin_row(row: &[Cell<'_>], out: &Path) -> anyhow::Result<String> {
    let Some(twin) = row[0].competitor.twin() else { return Ok(String::new()) };
    let (mut cells, mut found) = (String::new(), false);
    for cell in row {
        let mut runs = Vec::new();
        for seed in 1.. {
            let (scenario, subject) = (cell.scenario.id.clone(), Subject::controller(twin));
            let folder =
                out.join(RunInfo { scenario, subject, engine: Engine::Sim, seed }.folder());
            if !folder.exists() {
                break;
            }
            runs.push(Record::read(&folder)?.summary());
        }
        found |= !runs.is_empty();
        let held = verdict::of_simulated(&runs);
        write!(cells, "<td class=none>{}</td>", written(numbers(&runs), &held))?;
    }
    let name = format!("{}<small>its twin, simulated</small>", html(twin));
    let row = format!("<tr class=twin><th scope=row>{name}</th>{cells}</tr>\n");
    Ok(if found { row } else { String::new() })
}

/// In each scenario, which stack has the most and which the least of each figure. A figure that no
/// two stacks have is left out.
fn extremes(cells: &[Cell<'_>], scenarios: &[&Scenario]) -> String {
    let mut rows = String::new();
    for Compared { most, least, of, unit } in COMPARED {
        let (mut firsts, mut lasts, mut compared) = (String::new(), String::new(), 0);
        for scenario in scenarios {
            let mut found: Vec<(f64, &str)> = Vec::new();
            for cell in cells.iter().filter(|cell| cell.scenario.id == scenario.id) {
                if let Some(value) = of(&sound(&cell.summaries())) {
                    found.push((value, cell.competitor.name()));
                }
            }
            found.sort_by(|one, other| other.0.total_cmp(&one.0));
            compared = compared.max(found.len());
            for (row, value) in [(&mut firsts, found.first()), (&mut lasts, found.last())] {
                let named =
                    value.map(|(value, name)| format!("{} ({value:.0} {unit})", html(name)));
                row.push_str(&format!("<td>{}</td>", named.unwrap_or_else(|| "-".into())));
            }
        }
        if compared > 1 {
            rows.push_str(&format!("<tr><th scope=row>{most}</th>{firsts}</tr>\n"));
            rows.push_str(&format!("<tr><th scope=row>{least}</th>{lasts}</tr>\n"));
        }
    }
    rows
}

/// What is red, why, and the command and the curve of the run that decides.
fn detail(cell: &Cell<'_>, verdict: &Verdict) -> anyhow::Result<String> {
    let title = html(&format!("{} in {}", cell.competitor.name(), cell.scenario.id));
    let words = html(&verdict.lines(cell).join("\n"));
    let curve = match cell.runs.get(verdict.run()) {
        Some(run) => curve(&Record::read(&run.folder)?.trace.rows),
        None => String::new(),
    };
    let id = anchor(cell);
    Ok(format!("<section id=\"{id}\"><h3>{title}</h3>\n<pre>{words}</pre>\n{curve}</section>\n"))
}

/// Capacity, target and rate of the call's flow over time.
fn curve(rows: &[Row]) -> String {
    let own: Vec<&Row> = rows.iter().filter(|row| row.flow == 0).collect();
    let (mut times, mut lines) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    let mut begun = 0.0;
    for point in own.chunks(ROWS_PER_POINT) {
        let Some(last) = point.last() else { continue };
        let time = last.time.as_nanos() as f64 / 1e9;
        let bits: f64 = point.iter().map(|row| row.sent.as_bits() as f64).sum();
        let rates = [last.capacity, last.target].map(|rate| rate.map(|it| it.as_kbps_f64() / 1e3));
        for (line, rate) in
            lines.iter_mut().zip([rates[0], rates[1], Some(bits / (time - begun) / 1e6)])
        {
            line.push(rate);
        }
        times.push(time);
        begun = time;
    }
    let end = times.last().copied().unwrap_or(1.0);
    let most = lines.iter().flatten().flatten().fold(0.1_f64, |most, &rate| most.max(rate));
    let mut svg = format!(
        "<p class=key><span class=capacity>capacity</span> <span class=target>target</span> \
         <span class=sent>sent</span>, up to {most:.1} Mbit/s, over {end:.0} s</p>\n\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Capacity, target, rate over \
         time\">"
    );
    for (line, class) in lines.iter().zip(["capacity", "target", "sent"]) {
        let mut points = String::new();
        for (time, rate) in times.iter().zip(line) {
            let Some(rate) = rate else { continue };
            let (x, y) = (time / end * WIDTH, HEIGHT - rate / most * (HEIGHT - 4.0));
            points.push_str(&format!("{x:.1},{y:.1} "));
        }
        svg.push_str(&format!("<polyline class={class} points=\"{}\"/>", points.trim_end()));
    }
    svg + "</svg>\n"
}

/// The runs that count.
fn sound(runs: &[Summary]) -> Vec<Summary> {
    runs.iter().filter(|run| run.exclusion().is_none()).cloned().collect()
}

fn mean(runs: &[Summary], path: &str) -> Option<f64> {
    mean_of(runs.iter().filter_map(|run| run.metric(None, path)).collect())
}

fn share_of_link(runs: &[Summary]) -> Option<f64> {
    Some(100.0 * mean(runs, "utilization")?)
}

fn queue_ms(runs: &[Summary]) -> Option<f64> {
    mean(runs, "queuing_delay_ms.p95")
}

/// What the receiver decoded, in pictures a second.
fn pictures(runs: &[Summary]) -> Option<f64> {
    let calls = runs.iter().filter_map(|run| run.calls.as_ref()?.at("calls.b.frame_rate"));
    mean_of(calls.collect())
}

fn mean_of(values: Vec<f64>) -> Option<f64> {
    if !values.is_empty() { Some(values.iter().sum::<f64>() / values.len() as f64) } else { None }
}

fn anchor(cell: &Cell<'_>) -> String {
    let name = format!("{}-{}", cell.competitor.name(), cell.scenario.id);
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

/// The day in UTC, as 2026-11-28.
fn date_of(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut day, mut year) = (seconds / 86_400, 1970);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir::units::{Bitrate, DataSize, Timestamp};

    use super::*;

    #[test]
    fn a_day_is_written_as_a_date() {
        for (day, date) in
            [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_785, "2026-11-28")]
        {
            assert_eq!(date_of(UNIX_EPOCH + Duration::from_secs(day * 86_400)), date);
        }
    }

    #[test]
    fn a_curve_has_a_line_for_each_rate_inside_of_its_frame() {
        let mut rows = Vec::new();
        for index in 1..=40 {
            let row = Row::new(Timestamp::from_millis(50 * index), 0);
            let sent = DataSize::from_bytes(6_250 * index as u64 / 20);
            rows.push(row.with_capacity(Some(Bitrate::from_kbps(1_000))).with_sent(sent));
        }
        let svg = curve(&rows);
        assert_eq!(svg.matches("<polyline").count(), 3);
        // Nothing tells a target.
        assert!(svg.contains("<polyline class=target points=\"\"/>"), "{svg}");
        assert!(svg.contains("up to 1.8 Mbit/s, over 2 s"), "{svg}");
        assert!(svg.contains("160.0,") && svg.contains("640.0,4.0"), "{svg}");
    }

    #[test]
    fn text_of_others_is_no_markup() {
        assert_eq!(html("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
