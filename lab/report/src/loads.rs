//! Loads beside the media: TCP transfers and packets at a given rate.

use weir_scenario::{Flow, Scenario, Traffic};

use super::format::LoadRow;
use super::{Column, values};

/// One row for each load, column and part of the run, the whole time first. A part in which nothing
/// arrived has no row.
pub(super) fn of(scenario: &Scenario, columns: &[Column<'_>]) -> Vec<LoadRow> {
    let sections = (0..scenario.sections.len()).map(Some);
    let parts: Vec<Option<usize>> = std::iter::once(None).chain(sections).collect();
    let mut rows = Vec::new();
    for flow in scenario.flows.iter().filter(|flow| is_load(flow)) {
        for &part in &parts {
            for column in columns {
                rows.extend(row(scenario, column, &flow.name, part));
            }
        }
    }
    rows
}

/// Whether a flow has rows here. Short transfers have none: there are dozens, and none lasts long.
fn is_load(flow: &Flow) -> bool {
    match &flow.traffic {
        Traffic::Tcp(tcp) => tcp.short.is_none(),
        Traffic::Quic(_) => flow.traffic.media().is_none(),
        Traffic::Udp(_) => true,
        _ => false,
    }
}

fn row(
    scenario: &Scenario,
    column: &Column<'_>,
    flow: &str,
    part: Option<usize>,
) -> Option<LoadRow> {
    let rate_mbps = column.of_section(flow, part, values::rate_mbps);
    rate_mbps.filter(|&rate| rate > 0.0)?;
    Some(LoadRow {
        controller: column.controller.into(),
        engine: column.engine,
        flow: flow.into(),
        section: part.map(|section| scenario.sections[section].name.clone()),
        rate_mbps,
        goodput_mbps: column
            .of_section(flow, part, |metrics| Some(metrics.transfer.goodput_mbps?.mean)),
        retransmitted_packets: column
            .of_section(flow, part, |metrics| Some(metrics.transfer.retransmitted_packets? as f64)),
        p95_queuing_delay_ms: column.of_section(flow, part, values::p95_queuing_delay_ms),
        loss_percent: column.of_section(flow, part, values::loss_percent),
    })
}
