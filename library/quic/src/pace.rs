//! From the controller's target to a pacing rate and a window of the host.

use weir::controller::Target;
use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A source that always had data for this long does not follow the target.
const BULK: TimeDelta = TimeDelta::from_millis(200);
/// A window that only brakes holds what leaves in this time beyond a round trip: the interval of
/// reports, and the receiver's usual ACK delay [RFC9000 §18.2].
///
/// [RFC9000 §18.2]: https://www.rfc-editor.org/rfc/rfc9000#section-18.2
const BRAKE_TIME: TimeDelta = TimeDelta::from_millis(50);
/// And it is this much larger than what the pacing rate fills.
const BRAKE: f64 = 1.5;
/// The least window. One packet waits for its ACK, hosts keep room for one more, and the rest is
/// the short queue that a controller must see to know a slow link's capacity.
const MIN_WINDOW_PACKETS: f64 = 6.0;
/// The round-trip time before the first sample [RFC9002 §6.2.2].
///
/// [RFC9002 §6.2.2]: https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(333);

/// What the window of the host does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowRule {
    /// The host paces by a rate. The window is a brake for when feedback stays away.
    Brake,
    /// The host paces `gain` windows in a smoothed round-trip time, so its window is its pacing
    /// rate. quinn has 1.25 [RFC9002 §7.7].
    ///
    /// [RFC9002 §7.7]: https://www.rfc-editor.org/rfc/rfc9002#section-7.7
    Pacer {
        /// Windows sent in a round-trip time.
        gain: f64,
    },
}

/// Whether the source has data whenever the host may send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// Since when it has had data all the time.
    since: Option<Timestamp>,
    is_bulk: bool,
}

impl Source {
    pub(crate) fn on_flag(&mut self, now: Timestamp, app_limited: bool) {
        if app_limited {
            *self = Self::default();
            return;
        }
        let since = *self.since.get_or_insert(now);
        self.is_bulk = now - since >= BULK;
    }

    /// The rate at which packets leave. The target's pacing rate is above the bitrate, so that a
    /// frame leaves before the next one comes. A source that never pauses would fill a queue by
    /// that.
    pub(crate) fn pacing_rate(&self, target: &Target) -> Bitrate {
        match self.is_bulk {
            true => target.pacing_rate.min(target.bitrate),
            false => target.pacing_rate,
        }
    }
}

/// The window of the host, in bytes of QUIC packets.
pub(crate) fn window(
    rule: WindowRule,
    pacing_rate: Bitrate,
    srtt: Option<TimeDelta>,
    mtu: DataSize,
) -> DataSize {
    let srtt = srtt.unwrap_or(INITIAL_RTT).max(TimeDelta::from_millis(1));
    let least = mtu * MIN_WINDOW_PACKETS;
    match rule {
        WindowRule::Brake => pacing_rate * BRAKE * (srtt + BRAKE_TIME) + least,
        WindowRule::Pacer { gain } => (pacing_rate * (1.0 / gain) * srtt).max(least),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_source_that_never_pauses_is_paced_at_the_target() {
        let (bitrate, fast) = (Bitrate::from_kbps(1_000), Bitrate::from_kbps(1_400));
        let target = Target::new(bitrate, fast);
        let mut source = Source::default();
        source.on_flag(at(0), false);
        source.on_flag(at(199), false);
        assert_eq!(source.pacing_rate(&target), fast);
        source.on_flag(at(200), false);
        assert_eq!(source.pacing_rate(&target), bitrate);
        source.on_flag(at(201), true);
        assert_eq!(source.pacing_rate(&target), fast);
        // A controller that drains a queue paces below its bitrate.
        source.on_flag(at(300), false);
        source.on_flag(at(500), false);
        assert_eq!(source.pacing_rate(&Target::new(bitrate, bitrate * 0.5)), bitrate * 0.5);
    }

    // [RFC9002 §7.7]
    #[test]
    fn a_window_that_paces_gives_the_rate_at_any_round_trip_time() {
        let mtu = DataSize::from_bytes(1_200);
        for kbps in [1_000, 10_000, 1_000_000] {
            for rtt in [50, 200, 1_000].map(TimeDelta::from_millis) {
                let rate = Bitrate::from_kbps(kbps);
                let rule = WindowRule::Pacer { gain: 1.25 };
                let window = window(rule, rate, Some(rtt), mtu);
                let paced = window * 1.25 / rtt;
                let is_least = window == mtu * MIN_WINDOW_PACKETS;
                assert!(is_least || (paced / rate - 1.0).abs() < 0.01, "{paced} of {rate}");
            }
        }
    }
}
