//! The tables of public data sets and of measuring programs, by their headers.

use weir::units::TimeDelta;

use super::unit::Unit;
use super::{Result, TraceError, Want};

const BPS: Unit = Unit::Rate(1.0);
const KBPS: Unit = Unit::Rate(1e3);
const MBPS: Unit = Unit::Rate(1e6);
/// Half of a round trip in milliseconds is the delay of one direction.
const RTT_MS: Unit = Unit::Time(0.5e-3);
const RTT_NS: Unit = Unit::Time(0.5e-9);

/// How a table tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownTime {
    /// A column of times at which the rows begin, in a unit in nanoseconds: seconds or dates.
    At(&'static str, i64),
    /// A column of milliseconds that the rows last.
    LastsMs(&'static str),
    /// Two columns of seconds: the rows last from one to the other.
    Between(&'static str, &'static str),
}

const SECONDS: i64 = 1_000_000_000;

/// A column and its unit.
type Value = Option<(&'static str, Unit)>;

/// A table of a data set.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// The columns by which it is known.
    needs: &'static [&'static str],
    pub(super) time: KnownTime,
    /// How long a row lasts, where the times are those at which a buffer was emptied.
    pub(super) usual: Option<TimeDelta>,
    /// Rows with this text in this column do not count.
    pub(super) without: Option<(&'static str, &'static str)>,
    /// Only rows with this text in this column count.
    pub(super) only: Option<(&'static str, &'static str)>,
    up: Value,
    down: Value,
    decibels: Value,
    delay: Value,
    loss: Value,
    jitter: Value,
}

const NOTHING: Known = Known {
    name: "",
    needs: &[],
    time: KnownTime::LastsMs(""),
    usual: None,
    without: None,
    only: None,
    up: None,
    down: None,
    decibels: None,
    delay: None,
    loss: None,
    jitter: None,
};

/// The tables. Of a table that holds the columns of several, the first one counts.
const ALL: &[Known] = &[
    Known {
        name: "G-NetTrack Pro",
        needs: &["Timestamp", "DL_bitrate", "UL_bitrate"],
        time: KnownTime::At("Timestamp", SECONDS),
        up: Some(("UL_bitrate", KBPS)),
        down: Some(("DL_bitrate", KBPS)),
        decibels: Some(("SNR", Unit::Decibels)),
        ..NOTHING
    },
    Known {
        name: "Lumos5G",
        needs: &["seq_num", "Throughput", "nr_ssSinr"],
        time: KnownTime::At("seq_num", SECONDS),
        down: Some(("Throughput", MBPS)),
        decibels: Some(("nr_ssSinr", Unit::Decibels)),
        ..NOTHING
    },
    Known {
        name: "5Gophers",
        needs: &["seq_num", "throughput_mbps"],
        time: KnownTime::At("seq_num", SECONDS),
        down: Some(("throughput_mbps", MBPS)),
        ..NOTHING
    },
    Known {
        name: "5Gophers",
        needs: &["seq_num", "Verizon_throughput_mbps"],
        time: KnownTime::At("seq_num", SECONDS),
        ..NOTHING
    },
    // The direction is in the file's name. iperf3 and nuttcp wrote a row every half second into a
    // pipe.
    Known {
        name: "NUWiNS",
        needs: &["time", "throughput_mbps"],
        time: KnownTime::At("time", SECONDS),
        usual: Some(TimeDelta::from_millis(500)),
        up: Some(("throughput_mbps", MBPS)),
        down: Some(("throughput_mbps", MBPS)),
        ..NOTHING
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "dl_tput_mbps", "ul_tput_mbps"],
        time: KnownTime::At("utc_ts", SECONDS),
        up: Some(("ul_tput_mbps", MBPS)),
        down: Some(("dl_tput_mbps", MBPS)),
        ..NOTHING
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "tput_dl", "tput_ul"],
        time: KnownTime::At("utc_ts", SECONDS),
        up: Some(("tput_ul", MBPS)),
        down: Some(("tput_dl", MBPS)),
        ..NOTHING
    },
    Known {
        name: "NUWiNS",
        needs: &["utc_ts", "tput_dl_bps", "tput_ul_bps"],
        time: KnownTime::At("utc_ts", SECONDS),
        up: Some(("tput_ul_bps", BPS)),
        down: Some(("tput_dl_bps", BPS)),
        ..NOTHING
    },
    // 5G_TBS and 4G_TBS have no unit and no interval that the set states.
    Known {
        name: "the Korean uplink set",
        needs: &["td", "5G_TBS", "5G_RSRP"],
        time: KnownTime::At("td", SECONDS),
        ..NOTHING
    },
    Known {
        name: "Sabre",
        needs: &["duration_ms", "bandwidth_kbps"],
        time: KnownTime::LastsMs("duration_ms"),
        up: Some(("bandwidth_kbps", KBPS)),
        down: Some(("bandwidth_kbps", KBPS)),
        ..NOTHING
    },
    // A test of iperf3 --bidir at its client: what it sends, and what comes back.
    Known {
        name: "iperf3",
        needs: &[
            "sum.start",
            "sum.end",
            "sum.bits_per_second",
            "sum_bidir_reverse.bits_per_second",
        ],
        time: KnownTime::Between("sum.start", "sum.end"),
        without: Some(("sum.omitted", "true")),
        up: Some(("sum.bits_per_second", BPS)),
        down: Some(("sum_bidir_reverse.bits_per_second", BPS)),
        ..NOTHING
    },
    // One test of iperf3 --json: the sums over its streams. Its direction is that of the test.
    Known {
        name: "iperf3",
        needs: &["sum.start", "sum.end", "sum.bits_per_second"],
        time: KnownTime::Between("sum.start", "sum.end"),
        without: Some(("sum.omitted", "true")),
        up: Some(("sum.bits_per_second", BPS)),
        down: Some(("sum.bits_per_second", BPS)),
        loss: Some(("sum.lost_percent", Unit::Share(0.01))),
        jitter: Some(("sum.jitter_ms", Unit::Time(1e-3))),
        ..NOTHING
    },
    // The lines of iperf3 --json-stream.
    Known {
        name: "iperf3",
        needs: &["event", "data.sum.start", "data.sum.end", "data.sum.bits_per_second"],
        time: KnownTime::Between("data.sum.start", "data.sum.end"),
        without: Some(("data.sum.omitted", "true")),
        only: Some(("event", "interval")),
        up: Some(("data.sum.bits_per_second", BPS)),
        down: Some(("data.sum.bits_per_second", BPS)),
        ..NOTHING
    },
    Known {
        name: "AlphaRTC",
        needs: &["duration", "capacity"],
        time: KnownTime::LastsMs("duration"),
        up: Some(("capacity", KBPS)),
        down: Some(("capacity", KBPS)),
        delay: Some(("rtt", RTT_MS)),
        loss: Some(("loss", Unit::Share(1.0))),
        jitter: Some(("jitter", Unit::Time(1e-3))),
        ..NOTHING
    },
    Known {
        name: "Intel's LPP",
        needs: &["dateTime", "dlBw"],
        time: KnownTime::At("dateTime", SECONDS),
        up: Some(("ulBw", KBPS)),
        down: Some(("dlBw", KBPS)),
        ..NOTHING
    },
    Known {
        name: "Intel's LPP",
        needs: &["dateTime", "ulBw"],
        time: KnownTime::At("dateTime", SECONDS),
        up: Some(("ulBw", KBPS)),
        ..NOTHING
    },
    Known {
        name: "irtt",
        needs: &["seqno", "timestamps.client.send.monotonic", "delay.rtt"],
        time: KnownTime::At("timestamps.client.send.monotonic", 1),
        delay: Some(("delay.rtt", RTT_NS)),
        ..NOTHING
    },
];

impl Known {
    /// The table with this header.
    pub(super) fn of(header: &[String]) -> Option<&'static Self> {
        ALL.iter().find(|known| known.is_of(header))
    }

    fn is_of(&self, header: &[String]) -> bool {
        for column in self.needs {
            if !header.iter().any(|name| name == column) {
                return false;
            }
        }
        true
    }

    /// The column that has what is wanted, and its unit.
    pub(super) fn value(&self, want: Want) -> Result<(&'static str, Unit)> {
        let (value, what) = match want {
            Want::Up => (self.up, "rate of the way up"),
            Want::Down => (self.down, "rate of the way down"),
            Want::Decibels => (self.decibels, "SINR"),
            Want::Delay => (self.delay, "delay"),
            Want::Loss => (self.loss, "loss"),
            Want::Jitter => (self.jitter, "jitter"),
        };
        value.ok_or_else(|| {
            let message = format!("{} has no one {what}; name a column", self.name);
            TraceError::of_file(&message)
        })
    }

    /// The unit of a column that it has for any use.
    pub(super) fn unit(&self, column: &str) -> Option<Unit> {
        let all = [self.up, self.down, self.decibels, self.delay, self.loss, self.jitter];
        all.into_iter().flatten().find(|value| value.0 == column).map(|value| value.1)
    }
}
