//! The answer: a verdict, the findings with the largest effect on the call first, and details.

use weir_record::calls::stats::Kind;

use crate::found::StreamId;
use crate::judge::call::Call;
use crate::judge::cause::{Cause, Causes};
use crate::judge::finding::{self, Finding};
use crate::judge::headroom;
use crate::judge::judgement::{Judgement, Outcome};
use crate::judge::late_begin;
use crate::judge::merge;
use crate::judge::network::NetworkEstimate;
use crate::judge::quality;
use crate::judge::stalls;
use crate::measure::connectivity;
use crate::measure::good_time::{self, GoodTime};
use crate::read::dump::Dump;
use crate::read::format::Format;
use crate::read::packets::quiet;
use crate::tell::bottleneck;
use crate::tell::table::{self, ConnectionRow, StreamRow};
use crate::tell::{ticket, verdict};

/// What `weir analyze` says about a dump.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The sentences that a reader needs first.
    pub verdict: String,
    /// The same for a customer: what was noticed, where it comes from, what to try.
    pub ticket: String,
    /// What became of the call. The verdict and the ticket say it in words.
    pub outcome: Outcome,
    /// The cause with the largest effect; `None` if nothing made the call worse.
    pub main_cause: Option<Cause>,
    /// What was found, the largest effect on the call first.
    pub findings: Vec<Finding>,
    /// What is known besides: paths and audio, a line each.
    pub details: Vec<String>,
    /// Good time of the received videos.
    pub good_time: GoodTime,
    /// Every stream, whatever was found.
    pub streams: Vec<StreamRow>,
    /// How every connection began.
    pub connections: Vec<ConnectionRow>,
    /// The network that the call met.
    pub network: NetworkEstimate,
}

/// Answers what happened to the call.
pub fn answer(dump: &Dump) -> Answer {
    let call = Call::of(dump);
    let judgement = judge(&call);
    let network = call.network();
    Answer {
        verdict: verdict::verdict(&call, &judgement),
        ticket: ticket::ticket(&call, &judgement),
        outcome: judgement.outcome,
        main_cause: Causes::of(&judgement, network.duration_s).main,
        details: details(dump),
        streams: table::streams(&call),
        connections: table::connections(dump),
        findings: judgement.found.into_iter().map(Finding::from).collect(),
        good_time: judgement.good_time,
        network: network.clone(),
    }
}

/// Finds what is to be found in a call, and judges it.
pub(crate) fn judge(call: &Call<'_>) -> Judgement {
    let dump = call.dump;
    let mut found = connectivity::findings(dump);
    found.extend(late_begin::findings(dump));
    found.extend(quality::findings(dump));
    found.extend(call.streams().flat_map(finding::of_stream));
    // Packets tell more of silence than reports do.
    if dump.format != Format::Capture {
        found.extend(call.connections.iter().flat_map(|streams| stalls::findings(streams)));
    }
    found.extend(headroom::findings(call));
    found.extend(quiet::findings(dump));
    let mut found = merge::merged(&call.connections, merge::random_loss(call), found);
    bottleneck::name_capacity(call.network(), &mut found);
    Judgement::of(call, found, good_time::of_streams(call.streams()))
}

/// All findings, those with the largest effect on the call first.
pub fn findings(dump: &Dump) -> Vec<Finding> {
    judge(&Call::of(dump)).found.into_iter().map(Finding::from).collect()
}

fn details(dump: &Dump) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(table::connections(dump).iter().filter_map(ConnectionRow::words));
    for connection in &dump.connections {
        lines.extend(connection.packets.iter().flat_map(|log| log.lines()));
        for stream in connection.streams.iter().filter(|it| it.kind == Kind::Audio) {
            let Some(heard) = quality::heard(stream) else { continue };
            lines.push(format!("{}: {}", StreamId::of(connection, stream), heard.words()));
        }
    }
    lines
}
