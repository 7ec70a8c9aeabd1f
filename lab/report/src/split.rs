//! Splits the rate of a flow into video, retransmissions and parity, as bari splits its channel
//! utilization: U = g + r_FEC / b + r_RTX / b.
//!
//! For a simulated flow these are IP packets; for a real one, payload as counted by the receiver's
//! getStats.

use weir_metrics::{VideoMetrics, mean};
use weir_record::calls::file::{CallFile, Interval, Peer};
use weir_record::run::Engine;
use weir_scenario::Scenario;

use super::call_format::SplitRow;
use super::{Column, DECIMALS, rounded, values};

const BITS_PER_MEGABIT: f64 = 1e6;

/// One row for each column and flow whose receiver reported what it received.
pub(super) fn of(scenario: &Scenario, columns: &[Column<'_>]) -> Vec<SplitRow> {
    let mut rows = Vec::new();
    for column in columns {
        match column.engine {
            Engine::Sim => {
                let flows = scenario.flows.iter();
                rows.extend(flows.filter_map(|flow| simulated(column, &flow.name)));
            }
            Engine::Call => rows.extend(called(scenario, column)),
            // The content of a command's packets is unknown.
            Engine::Link => {}
        }
    }
    rows
}

fn simulated(column: &Column<'_>, flow: &str) -> Option<SplitRow> {
    Some(SplitRow {
        video_mbps: video_rate(column, flow, media_share)?,
        retransmission_mbps: video_rate(column, flow, |video| video.rtx_share),
        fec_mbps: video_rate(column, flow, |video| video.fec_share),
        ..whole(column, flow)
    })
}

/// Mean rate of the part of a flow that has this share.
fn video_rate(
    column: &Column<'_>,
    flow: &str,
    share: fn(&VideoMetrics) -> Option<f64>,
) -> Option<f64> {
    column.rounded_mean(|run| {
        let video = &run.flow(flow)?.metrics.video;
        Some(video.media_rate_mbps? / media_share(video)? * share(video)?)
    })
}

/// Share of the rate that is not repair; `None` if it is zero.
fn media_share(video: &VideoMetrics) -> Option<f64> {
    Some(1.0 - video.rtx_share? - video.fec_share?).filter(|share| *share > 0.0)
}

fn called(scenario: &Scenario, column: &Column<'_>) -> Vec<SplitRow> {
    let files: Vec<&CallFile> =
        column.runs.iter().filter_map(|run| run.record.call.as_ref()).collect();
    let Some(first) = files.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (index, peer) in first.peers.iter().enumerate() {
        // Every run has its peers in the order of its calls, even if calls failed.
        let peers: Vec<&Peer> = files.iter().filter_map(|file| file.peers.get(index)).collect();
        let Some(video_mbps) = received(&peers, Interval::media_bps) else { continue };
        let flow = received_flow(scenario, peer.call, index % 2 == 0);
        rows.push(SplitRow {
            video_mbps,
            retransmission_mbps: received(&peers, Interval::again_bps),
            fec_mbps: received(&peers, Interval::fec_bps),
            ..whole(column, flow.unwrap_or(&first.name(peer)))
        });
    }
    rows
}

/// Mean over the peers of a received rate in Mbit/s.
fn received(peers: &[&Peer], bps: fn(&Interval) -> Option<f64>) -> Option<f64> {
    let mut means = Vec::new();
    for peer in peers {
        means.extend(mean(peer.intervals.iter().filter_map(bps).collect()));
    }
    mean(means.into_iter().map(|bps| bps / BITS_PER_MEGABIT).collect()).map(round)
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
    let rate_mbps = column.of_flow(flow, values::rate_mbps);
    let utilization =
        column.of_flow(flow, |metrics| metrics.utilization.filter(|share| *share > 0.0));
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

fn round(value: f64) -> f64 {
    rounded(value, DECIMALS)
}
