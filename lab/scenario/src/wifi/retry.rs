//! The `retry` key of a node: how many times it tries to send a packet.

use weir_net::wifi::{CongestionAware, RetryPolicy};

use crate::error::ScenarioError;
use crate::reader::Item;

type Result<T> = std::result::Result<T, ScenarioError>;

const RETRY: &[&str] = &["limit", "extension", "level", "queue", "reset_window"];
const MAX_ATTEMPTS: f64 = 100.0;

/// Reads a number of attempts, or `{ extension = 3 }` with keys that differ from the paper's
/// mechanism.
pub(super) fn retry(item: &Item) -> Result<RetryPolicy> {
    if !item.is_table() {
        return Ok(RetryPolicy::Limit(item.whole(MAX_ATTEMPTS)? as u32));
    }
    let table = item.table(RETRY)?;
    let extension = table.require("extension", "3")?;
    // An extension of zero switches the mechanism off but keeps its measurements.
    let extension = match extension.number()? {
        0.0 => 0,
        _ => extension.whole(MAX_ATTEMPTS)? as u32,
    };
    let default = CongestionAware::new(extension);
    let limit = table.whole("limit", default.limit as usize, MAX_ATTEMPTS)? as u32;
    let level_threshold = table.get("level").map_or(Ok(default.level_threshold), |item| {
        let level = item.number()?;
        if level > 0.0 { Ok(level) } else { Err(item.error("must be above zero")) }
    })?;
    let queue_threshold = table.or("queue", default.queue_threshold, Item::size)?;
    let reset_window = table.or("reset_window", default.reset_window, Item::boolean)?;
    let policy = default
        .with_limit(limit)
        .with_level_threshold(level_threshold)
        .with_queue_threshold(queue_threshold)
        .with_reset_window(reset_window);
    Ok(RetryPolicy::CongestionAware(policy))
}
