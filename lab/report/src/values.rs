//! The values of a flow that several tables show.

use weir_metrics::Metrics;

pub(super) fn rate_mbps(metrics: &Metrics) -> Option<f64> {
    Some(metrics.rate_mbps?.mean)
}

pub(super) fn utilization(metrics: &Metrics) -> Option<f64> {
    metrics.utilization
}

pub(super) fn utilization_percent(metrics: &Metrics) -> Option<f64> {
    Some(metrics.utilization? * 100.0)
}

pub(super) fn p95_queuing_delay_ms(metrics: &Metrics) -> Option<f64> {
    Some(metrics.queuing_delay_ms?.p95)
}

pub(super) fn rtt_ms(metrics: &Metrics) -> Option<f64> {
    Some(metrics.rtt_ms?.mean)
}

pub(super) fn loss_percent(metrics: &Metrics) -> Option<f64> {
    Some(metrics.loss_ratio?.mean * 100.0)
}
