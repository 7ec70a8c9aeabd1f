//! Whether a dump has all of its call.

use crate::found::{Evidence, Found, Subject};
use crate::read::dump::{ConnectionChange, ConnectionState, Dump};
use crate::read::format::Format;

/// A dump that begins so long after the call, in s, lacks its begin: reports may be ten seconds
/// apart.
const LATE_S: f64 = 15.0;
/// Values that `chrome://webrtc-internals` keeps of each statistic.
const PAGE_KEEPS: usize = 1_000;

/// What a dump lacks of its call.
pub(crate) fn findings(dump: &Dump) -> Vec<Found> {
    let Some(missing_s) = missing_s(dump) else { return Vec::new() };
    let mut streams = dump.connections.iter().flat_map(|it| &it.streams);
    let is_bound = dump.format == Format::Internals
        && streams.any(|stream| stream.reports.len() + 1 >= PAGE_KEEPS);
    let evidence = Evidence::LateBegin { missing_s, is_bound };
    vec![Found::new(Subject::Page, (0.0, 0.0), evidence)]
}

/// Seconds of the call before the first report, as far as its events tell.
fn missing_s(dump: &Dump) -> Option<f64> {
    if dump.connections.is_empty() {
        return None;
    }
    let mut connected = dump.events.iter().filter(|event| {
        let name = &event.connection;
        dump.connections.iter().any(|it| it.name == *name)
            && matches!(
                event.change,
                ConnectionChange::Ice(ConnectionState::Connected)
                    | ConnectionChange::Whole(ConnectionState::Connected)
            )
    });
    let missing_s = -connected.next()?.time_s;
    (missing_s >= LATE_S).then_some(missing_s)
}
