//! The PCRF's decisions as announcements for a cell: `weir call --ims` listens while it runs.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use weir_nodes::pcrf::{Bearer, Decision};

use crate::layout;

/// How long an AAA may wait for the cell.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum length of its answer.
const ANSWER_BYTES_MAX: u64 = 1_000_000;

/// The socket on which a cell listens.
pub(crate) fn socket() -> PathBuf {
    layout::folder().join("cell.socket")
}

/// Announces a decision, and returns when the cell has taken it. Returns what the cell says; `None`
/// without a cell, or if the decision changes no bearer.
pub(crate) fn announce(decision: &Decision) -> Option<String> {
    let line = line(decision)?;
    let stream = UnixStream::connect(socket()).ok()?;
    Some(tell(&stream, &line).unwrap_or_else(|error| error.to_string()))
}

fn tell(mut stream: &UnixStream, line: &Value) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

fn line(decision: &Decision) -> Option<Value> {
    match decision {
        Decision::Install { session, terminal, bearers } => Some(json!({
            "type": "install",
            "session": session,
            "terminal": terminal.to_string(),
            "bearers": bearers.iter().map(bearer).collect::<Vec<_>>(),
        })),
        Decision::Remove { session } => Some(json!({ "type": "remove", "session": session })),
        _ => None,
    }
}

fn bearer(bearer: &Bearer) -> Value {
    // The filters of both directions name the same ends. A cell filters both directions at once.
    let ends = bearer.filters.iter().filter_map(|one| {
        let (own, far) = if one.is_up { (one.from, one.to) } else { (one.to, one.from) };
        Some((own.1?, far.0, far.1))
    });
    let mut filters = Vec::new();
    for (port, remote, remote_port) in ends.collect::<BTreeSet<_>>() {
        let remote = remote.map(|address| address.to_string());
        filters.push(json!({ "port": port, "remote": remote, "remote_port": remote_port }));
    }
    json!({
        "name": bearer.media,
        "qci": bearer.qci,
        "arp": bearer.arp,
        "gbr_up_bps": bearer.gbr_up_bps,
        "gbr_down_bps": bearer.gbr_down_bps,
        "mbr_up_bps": bearer.mbr_up_bps,
        "mbr_down_bps": bearer.mbr_down_bps,
        "filters": filters,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weir_nodes::pcrf::Filter;

    use super::*;

    #[test]
    fn a_bearer_is_announced_with_both_ends_of_its_packets() {
        let filters = [
            "permit out 17 from 10.45.0.2 6000 to 10.45.0.1 5002",
            "permit in 17 from 10.45.0.1 5002 to 10.45.0.2 6000",
            "permit in 17 from 10.45.0.1 5003 to 10.45.0.2 6001",
        ];
        let bearer = Bearer {
            component: 1,
            media: "video",
            qci: 2,
            arp: 4,
            gbr_up_bps: 1,
            gbr_down_bps: 2,
            mbr_up_bps: 3,
            mbr_down_bps: 4,
            filters: filters.map(|text| Filter::parse(text).unwrap()).to_vec(),
        };
        let decision = Decision::Install {
            session: "s".into(),
            terminal: Ipv4Addr::new(10, 45, 0, 1),
            bearers: vec![bearer],
        };
        let line = line(&decision).unwrap();
        let filter = |own, far| json!({ "port": own, "remote": "10.45.0.2", "remote_port": far });
        assert_eq!(line["bearers"][0]["filters"], json!([filter(5002, 6000), filter(5003, 6001)]));
        assert_eq!((&line["type"], &line["terminal"]), (&json!("install"), &json!("10.45.0.1")));
        let refused = Decision::Refuse { session: "s".into(), code: 5063, why: String::new() };
        assert_eq!(super::line(&refused), None);
    }
}
