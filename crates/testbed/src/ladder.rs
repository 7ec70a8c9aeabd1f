//! The ladder diagram as a page that opens offline: a column for each part, an arrow for each message,
//! and the text of a message under its arrow.

use std::fmt::Write as _;

use crate::trace::Noted;

/// Width of a column, and left edge of the first line, in pixels.
const COLUMN: usize = 120;
const HEIGHT: usize = 22;
const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:1rem;color-scheme:light dark}\
    table{border-collapse:collapse}td,th{padding:.1rem .7rem;text-align:left}\
    td+td{text-align:right}.row{display:flex;align-items:center;gap:.6rem;cursor:pointer}\
    .row:hover,details[open]>summary{background:#8882}summary{list-style:none}\
    .time{width:5rem;text-align:right;font-variant-numeric:tabular-nums}\
    pre{margin:.3rem 0 .8rem 6rem;padding:.6rem;background:#8882;white-space:pre-wrap;\
    overflow-wrap:anywhere}.heads{position:sticky;top:0;background:Canvas}\
    .SIP{stroke:#1f77b4}.Diameter{stroke:#d62728}.bearer{stroke:#2ca02c}.HTTP{stroke:#9467bd}\
    .life{stroke:#8886}text{fill:CanvasText;font-size:12px;text-anchor:middle}";

/// The page. `phases` are in ms.
pub(crate) fn page(title: &str, messages: &[Noted], phases: &[(&str, f64)]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in messages.iter().flat_map(|one| [one.from.as_str(), one.to.as_str()]) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let start = messages.first().map_or(0, |first| first.time_ns);
    let width = COLUMN * parts.len();
    let title = escaped(title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    for (name, value) in phases {
        let _ = writeln!(page, "<tr><td>{}</td><td>{value:.1} ms</td></tr>", escaped(name));
    }
    let _ = write!(
        page,
        "</table>\n<p>{} messages of SIP (blue), Diameter (red) and HTTP (violet), and the decisions \
         about bearers (green). A click opens a message.</p>\n<div class=\"row heads\"><span class=\"time\">ms\
         </span><svg width=\"{width}\" height=\"{HEIGHT}\">",
        messages.len()
    );
    for (place, part) in parts.iter().enumerate() {
        let x = place * COLUMN + COLUMN / 2;
        let _ = write!(page, "<text x=\"{x}\" y=\"15\">{}</text>", escaped(part));
    }
    page += "</svg></div>\n";
    for message in messages {
        let ms = (message.time_ns - start) as f64 / 1e6;
        let _ = writeln!(
            page,
            "<details><summary class=\"row\"><span class=\"time\">{ms:.1}</span>{}</summary>\
             <pre>{}</pre></details>",
            arrow(message, &parts),
            escaped(&message.text)
        );
    }
    page + "</html>\n"
}

fn arrow(message: &Noted, parts: &[&str]) -> String {
    let x = |name: &str| {
        let place = parts.iter().position(|part| *part == name).unwrap_or(0);
        place * COLUMN + COLUMN / 2
    };
    let (from, to) = (x(&message.from), x(&message.to));
    let width = COLUMN * parts.len();
    let mut svg = format!("<svg width=\"{width}\" height=\"{HEIGHT}\">");
    for place in 0..parts.len() {
        let x = place * COLUMN + COLUMN / 2;
        let _ = write!(svg, "<path class=\"life\" d=\"M{x} 0V{HEIGHT}\"/>");
    }
    let back = if to >= from { to.saturating_sub(6) } else { to + 6 };
    let kind = match message.protocol.as_str() {
        known @ ("SIP" | "Diameter" | "HTTP" | "bearer") => known,
        _ => "other",
    };
    let _ = write!(
        svg,
        "<path class=\"{kind}\" fill=\"none\" d=\"M{from} 18H{to}M{back} 15L{to} 18L{back} 21\"/>\
         <text x=\"{}\" y=\"13\">{}</text></svg>",
        usize::midpoint(from, to),
        escaped(&message.name)
    );
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of alice and bob through Kamailio, as `weir ims call alice bob --out` left it.
    #[test]
    fn each_message_of_a_call_is_an_arrow_with_its_text() {
        let text = include_str!("../tests/data/call.jsonl");
        let messages: Vec<Noted> =
            text.lines().map(|line| Noted::from_json(line).unwrap()).collect();
        let page = page("alice calls <bob>", &messages, &[("registration", 12.94)]);
        assert_eq!(page.matches("<details>").count(), messages.len());
        let of_sip = messages.iter().filter(|one| one.protocol == "SIP").count();
        assert_eq!(page.matches("<path class=\"SIP\"").count(), of_sip);
        assert!(page.contains("<td>registration</td><td>12.9 ms</td>"));
        assert!(page.contains("<h1>alice calls &lt;bob&gt;</h1>"));
        // What a message says is no markup.
        assert!(page.contains("From: &lt;sip:alice@ims.test&gt;") && !page.contains("<sip:"));
    }
}
