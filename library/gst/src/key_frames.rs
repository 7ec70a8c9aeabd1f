//! Passes on one request for a key frame at a time.
//!
//! A receiver that waits for a key frame asks again and again. While the key frame is still in the
//! pacer, each request would put another one behind it, and each is larger than a usual frame.

use std::collections::BTreeMap;

use weir::units::{TimeDelta, Timestamp};

/// The shortest time between two requests, as in libwebrtc's encoder.
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(300);

/// When the next request may pass, for each stream. `None` is a request that names no stream.
#[derive(Debug, Default)]
pub(crate) struct KeyFrameRequests {
    answered_at: BTreeMap<Option<u32>, Timestamp>,
}

impl KeyFrameRequests {
    /// Whether a request goes on to the encoder. `answer_time` is how long its key frame takes to
    /// reach the receiver, and the next request to come back.
    pub(crate) fn accept(
        &mut self,
        now: Timestamp,
        ssrc: Option<u32>,
        answer_time: TimeDelta,
    ) -> bool {
        let is_accepted = self.answered_at.get(&ssrc).is_none_or(|&at| now >= at);
        if is_accepted {
            self.answered_at.insert(ssrc, now + answer_time.max(MIN_INTERVAL));
        }
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: i64) -> Timestamp {
        Timestamp::ZERO + TimeDelta::from_millis(time)
    }

    #[test]
    fn a_request_passes_once_the_last_one_can_be_answered() {
        let mut requests = KeyFrameRequests::default();
        let second = TimeDelta::from_secs(1);
        assert!(requests.accept(ms(0), None, second));
        assert!(!requests.accept(ms(999), None, TimeDelta::ZERO));
        assert!(requests.accept(ms(1_000), None, TimeDelta::ZERO));
        assert!(!requests.accept(ms(1_299), None, second));
        assert!(requests.accept(ms(1_300), None, second));
    }

    #[test]
    fn a_request_for_one_stream_holds_back_none_for_another() {
        let mut requests = KeyFrameRequests::default();
        assert!(requests.accept(ms(0), Some(1), TimeDelta::ZERO));
        assert!(requests.accept(ms(1), Some(2), TimeDelta::ZERO));
        assert!(!requests.accept(ms(2), Some(1), TimeDelta::ZERO));
    }
}
