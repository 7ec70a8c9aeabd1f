//! Splits the rate of a flow into video, retransmissions and parity, as bari splits its channel
//! utilization: U = g + r_FEC / b + r_RTX / b.
//!
//! For a simulated flow these are IP packets; for a real one, payload as counted by the receiver's
//! getStats.

use super::call_format::SplitRow;
use super::{Column, Run, rounded};
use crate::calls::file::{CallFile, Interval, Peer};
use crate::metrics::{Metrics, VideoMetrics, mean};
use crate::run::Engine;
use crate::scenario::Scenario;

const DECIMALS: i32 = 6;
const BITS_PER_MEGABIT: f64 = 1e6;

/// One row for each column and flow whose receiver reported what it received.
pub(super) fn of(scenario: &Scenario, columns: &[Column<'_>]) -> Vec<SplitRow> {
    let rows = |column: &Column<'_>| match column.engine {
        Engine::Sim => simulated(scenario, column),
        Engine::Call => called(scenario, column),
        // The content of a command's packets is unknown.
        Engine::Link => Vec::new(),
    };
    columns.iter().flat_map(rows).collect()
}

fn simulated(scenario: &Scenario, column: &Column<'_>) -> Vec<SplitRow> {
    let row = |flow: &str| {
        let rate = |share: fn(&VideoMetrics) -> Option<f64>| {
            let of_run = |run: &Run| {
                let video = &run.flow(flow)?.metrics.video;
                Some(video.media_rate_mbps? / media_share(video)? * share(video)?)
            };
            column.mean(of_run).map(round)
        };
        Some(SplitRow {
            video_mbps: rate(media_share)?,
            retransmission_mbps: rate(|video| video.rtx_share),
            fec_mbps: rate(|video| video.fec_share),
            ..whole(column, flow)
        })
    };
    scenario.flows.iter().filter_map(|flow| row(&flow.name)).collect()
}

/// Share of the rate that is not repair; `None` if it is zero.
fn media_share(video: &VideoMetrics) -> Option<f64> {
    Some(1.0 - video.rtx_share? - video.fec_share?).filter(|share| *share > 0.0)
}

fn called(scenario: &Scenario, column: &Column<'_>) -> Vec<SplitRow> {
    let files: Vec<&CallFile> =
        column.runs.iter().filter_map(|run| run.record.call.as_ref()).collect();
    let Some(first) = files.first() else { return Vec::new() };
    let row = |(index, peer): (usize, &Peer)| {
        // Every run has its peers in the order of its calls, even if calls failed.
        let rate = |value: fn(&Interval) -> Option<u64>| {
            let of_peer = |file: &&CallFile| over_time(file.peers.get(index)?, value);
            mean(files.iter().filter_map(of_peer).collect()).map(round)
        };
        let video_mbps = rate(|it| it.of_received(|it| it.media_bps))?;
        let flow = received_flow(scenario, peer.call, index % 2 == 0);
        Some(SplitRow {
            video_mbps,
            retransmission_mbps: rate(|it| it.of_received(|it| it.again_bps)),
            fec_mbps: rate(|it| it.of_received(|it| it.fec_bps)),
            ..whole(column, flow.unwrap_or(&first.name(peer)))
        })
    };
    first.peers.iter().enumerate().filter_map(row).collect()
}

/// The flow that ends at this peer of a call. Peer a comes first and receives the downlink flow.
/// Media from a forwarding server is not a flow of the scenario.
fn received_flow(scenario: &Scenario, call: usize, is_a: bool) -> Option<&str> {
    let planned = scenario.calls().into_iter().find(|planned| planned.number == call)?;
    let flow = if is_a { planned.down } else { planned.up };
    Some(&scenario.flows[flow?].name)
}

/// A row with the rate and capacity of a flow, without its parts.
fn whole(column: &Column<'_>, flow: &str) -> SplitRow {
    let of_flow = |value: fn(&Metrics) -> Option<f64>| {
        column.mean(|run| value(&run.flow(flow)?.metrics)).map(round)
    };
    let rate_mbps = of_flow(|metrics| Some(metrics.rate_mbps?.mean));
    let utilization = of_flow(|metrics| metrics.utilization.filter(|share| *share > 0.0));
    SplitRow {
        controller: column.controller.into(),
        engine: column.engine,
        flow: flow.into(),
        capacity_mbps: rate_mbps.zip(utilization).map(|(rate, share)| round(rate / share)),
        rate_mbps,
        video_mbps: 0.0,
        retransmission_mbps: None,
        fec_mbps: None,
    }
}

fn over_time(peer: &Peer, bps: fn(&Interval) -> Option<u64>) -> Option<f64> {
    let rates = peer.intervals.iter().filter_map(bps).map(|bps| bps as f64).collect();
    mean(rates).map(|rate| rate / BITS_PER_MEGABIT)
}

fn round(value: f64) -> f64 {
    rounded(value, DECIMALS)
}
