//! Passes on one request for a key frame at a time.
//!
//! A receiver that waits for a key frame asks again and again. While the key frame is still in the
//! pacer, each request would put another one behind it, and each is larger than a usual frame.

use weir::units::{TimeDelta, Timestamp};

/// The shortest time between two requests, as in libwebrtc's encoder.
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(300);

/// When the next request may pass.
#[derive(Debug, Default)]
pub(crate) struct KeyFrameRequests {
    answered_at: Option<Timestamp>,
}

impl KeyFrameRequests {
    /// Whether a request goes on to the encoder. `answer_time` is how long its key frame takes to
    /// reach the receiver, and the next request to come back.
    pub(crate) fn accept(&mut self, now: Timestamp, answer_time: TimeDelta) -> bool {
        let is_accepted = self.answered_at.is_none_or(|at| now >= at);
        if is_accepted {
            self.answered_at = Some(now + answer_time.max(MIN_INTERVAL));
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
        assert!(requests.accept(ms(0), second));
        assert!(!requests.accept(ms(999), TimeDelta::ZERO));
        assert!(requests.accept(ms(1_000), TimeDelta::ZERO));
        assert!(!requests.accept(ms(1_299), second));
        assert!(requests.accept(ms(1_300), second));
    }
}
