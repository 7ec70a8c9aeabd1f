//! The tables of public data sets, by their headers.

use super::unit::Unit;
use super::{Result, TraceError, Want};

const KBPS: Unit = Unit::Rate(1e3);
const MBPS: Unit = Unit::Rate(1e6);

/// How a table tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownTime {
    /// A column of seconds or dates at which the rows begin.
    At(&'static str),
    /// A column of milliseconds that the rows last.
    LastsMs(&'static str),
}

/// A table of a data set.
#[derive(Debug)]
pub(super) struct Known {
    name: &'static str,
    /// The columns by which it is known.
    needs: &'static [&'static str],
    pub(super) time: KnownTime,
    up: Option<(&'static str, Unit)>,
    down: Option<(&'static str, Unit)>,
    decibels: Option<&'static str>,
}

/// The tables. Of a table that holds the columns of several, the first one counts.
const ALL: &[Known] = &[
    Known {
        name: "G-NetTrack Pro",
        needs: &["Timestamp", "DL_bitrate", "UL_bitrate"],
        time: KnownTime::At("Timestamp"),
        up: Some(("UL_bitrate", KBPS)),
        down: Some(("DL_bitrate", KBPS)),
        decibels: Some("SNR"),
    },
    Known {
        name: "Lumos5G",
        needs: &["seq_num", "Throughput", "nr_ssSinr"],
        time: KnownTime::At("seq_num"),
        up: None,
        down: Some(("Throughput", MBPS)),
        decibels: Some("nr_ssSinr"),
    },
    Known {
        name: "5Gophers",
        needs: &["seq_num", "throughput_mbps"],
        time: KnownTime::At("seq_num"),
        up: None,
        down: Some(("throughput_mbps", MBPS)),
        decibels: None,
    },
    Known {
        name: "5Gophers",
        needs: &["seq_num", "Verizon_throughput_mbps"],
        time: KnownTime::At("seq_num"),
        up: None,
        down: None,
        decibels: None,
    },
    // The direction is in the file's name.
    Known {
        name: "NUWiNS",
        needs: &["time", "throughput_mbps"],
        time: KnownTime::At("time"),
        up: Some(("throughput_mbps", MBPS)),
        down: Some(("throughput_mbps", MBPS)),
        decibels: None,
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "dl_tput_mbps", "ul_tput_mbps"],
        time: KnownTime::At("utc_ts"),
        up: Some(("ul_tput_mbps", MBPS)),
        down: Some(("dl_tput_mbps", MBPS)),
        decibels: None,
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "tput_dl", "tput_ul"],
        time: KnownTime::At("utc_ts"),
        up: Some(("tput_ul", MBPS)),
        down: Some(("tput_dl", MBPS)),
        decibels: None,
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "tput_dl_bps", "tput_ul_bps"],
        time: KnownTime::At("utc_ts"),
        up: Some(("tput_ul_bps", Unit::Rate(1.0))),
        down: Some(("tput_dl_bps", Unit::Rate(1.0))),
        decibels: None,
    },
    // 5G_TBS and 4G_TBS have no unit and no interval that the set states.
    Known {
        name: "the Korean uplink set",
        needs: &["td", "5G_TBS", "5G_RSRP"],
        time: KnownTime::At("td"),
        up: None,
        down: None,
        decibels: None,
    },
    Known {
        name: "Sabre",
        needs: &["duration_ms", "bandwidth_kbps"],
        time: KnownTime::LastsMs("duration_ms"),
        up: Some(("bandwidth_kbps", KBPS)),
        down: Some(("bandwidth_kbps", KBPS)),
        decibels: None,
    },
];

impl Known {
    /// The table with this header.
    pub(super) fn of(header: &[String]) -> Option<&'static Self> {
        ALL.iter()
            .find(|known| known.needs.iter().all(|column| header.iter().any(|name| name == column)))
    }

    /// The column that has what is wanted, and its unit.
    pub(super) fn value(&self, want: Want) -> Result<(&'static str, Unit)> {
        let (value, what) = match want {
            Want::Up => (self.up, "rate of the way up"),
            Want::Down => (self.down, "rate of the way down"),
            Want::Decibels => (self.decibels.map(|name| (name, Unit::Decibels)), "SINR"),
        };
        value.ok_or_else(|| {
            let message = format!("{} has no one {what}; name a column", self.name);
            TraceError::of_file(&message)
        })
    }

    /// The unit of a column that it has for any use.
    pub(super) fn unit(&self, column: &str) -> Option<Unit> {
        let rates = [self.up, self.down].into_iter().flatten();
        let mut all = rates.chain(self.decibels.map(|name| (name, Unit::Decibels)));
        all.find(|value| value.0 == column).map(|value| value.1)
    }
}
