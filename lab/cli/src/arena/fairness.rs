//! What a call gets beside the flows that share its link.

use weir::units::DataSize;
use weir_sim::config::FlowConfig;
use weir_sim::trace::Row;

/// What the call received while others in its direction were active, as a multiple of an equal part
/// of what all of them received: 1 is fair, less is too little. `None` if it was alone, or if
/// nothing was received. The first flow is the call's; rows are those of a record, sorted by time.
pub fn part<T>(flows: &[FlowConfig<T>], rows: &[Row]) -> Option<f64> {
    let own_flow = flows.first()?;
    let (mut own, mut equal) = (0.0, 0.0);
    for together in rows.chunk_by(|one, next| one.time == next.time) {
        let mut all = DataSize::ZERO;
        let (mut call, mut active) = (None, 0);
        for row in together {
            let Some(flow) = flows.get(row.flow) else { continue };
            let is_of_the_call = own_flow.call.is_some() && flow.call == own_flow.call;
            if row.flow == 0 {
                call = Some(row.received);
            } else if flow.direction != own_flow.direction || is_of_the_call {
                continue;
            }
            all += row.received;
            active += 1;
        }
        if let (Some(call), 2..) = (call, active) {
            own += call.as_bytes() as f64;
            equal += all.as_bytes() as f64 / f64::from(active);
        }
    }
    if equal > 0.0 { Some(own / equal) } else { None }
}

#[cfg(test)]
mod tests {
    use weir::units::{TimeDelta, Timestamp};
    use weir_net::path::Direction;

    use super::*;

    fn flow(name: &str) -> FlowConfig<()> {
        FlowConfig::new(name, TimeDelta::from_secs(40), ())
    }

    /// Rows of 50 ms: time step, flow, kilobytes received.
    fn rows(received: &[(i64, usize, u64)]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (step, flow, kilobytes) in received {
            let mut row = Row::default();
            row.time = Timestamp::ZERO + TimeDelta::from_millis(50) * *step;
            row.flow = *flow;
            row.received = DataSize::from_bytes(kilobytes * 1_000);
            rows.push(row);
        }
        rows
    }

    #[test]
    fn the_part_counts_while_others_of_its_direction_are_active() {
        let flows = [flow("call"), flow("tcp-1"), flow("tcp-2")];
        // Alone at first: that does not count.
        let alone = [(1, 0, 90)];
        assert_eq!(part(&flows, &rows(&alone)), None);
        let beside = [(1, 0, 90), (2, 0, 10), (2, 1, 30), (3, 0, 0), (3, 1, 40)];
        assert_eq!(part(&flows, &rows(&beside)), Some(0.25));
        let three = [(2, 0, 30), (2, 1, 20), (2, 2, 10)];
        assert_eq!(part(&flows, &rows(&three)), Some(1.5));
        assert_eq!(part(&flows, &rows(&[(2, 0, 0), (2, 1, 0)])), None);
    }

    #[test]
    fn a_flow_of_the_other_direction_or_of_the_same_call_takes_nothing() {
        let flows = [flow("call"), flow("tcp").with_direction(Direction::Down)];
        assert_eq!(part(&flows, &rows(&[(2, 0, 10), (2, 1, 30)])), None);
        let flows = [flow("video").with_call(Some(1)), flow("sound").with_call(Some(1))];
        assert_eq!(part(&flows, &rows(&[(2, 0, 10), (2, 1, 30)])), None);
    }
}
