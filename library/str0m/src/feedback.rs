//! Feedback as bytes, made again from what str0m has parsed: the library reads bytes.

use std::time::Instant;

use str0m::rtp::rtcp::Twcc;
use weir::Timestamp;
use weir::media_sender::MediaSender;
use weir_rtcp::FeedbackInput;
use weir_wire::twcc::Builder;

use crate::numbers::Numbers;

/// Most bytes of a feedback packet.
const MAX_SIZE: usize = 1_200;

pub(crate) struct Feedback {
    input: FeedbackInput,
    builder: Builder,
    /// Any instant: arrival times are compared with each other only.
    origin: Instant,
}

impl Feedback {
    pub(crate) fn new(now: Instant) -> Self {
        // Nobody reads the SSRCs.
        Self { input: FeedbackInput::default(), builder: Builder::new(1, 2), origin: now }
    }

    /// Passes a report to the controller, by the library's numbers.
    pub(crate) fn on_report<M>(
        &mut self,
        now: Timestamp,
        report: &Twcc,
        numbers: &mut Numbers,
        media: &mut MediaSender<M>,
    ) {
        let mut arrivals = Vec::new();
        for (theirs, _, arrival) in report.clone().into_iter(self.origin, 0.into()) {
            let (Some(arrival), Some(ours)) = (arrival, numbers.get(*theirs as u16)) else {
                continue;
            };
            let arrival_us = arrival.saturating_duration_since(self.origin).as_micros() as i64;
            arrivals.push((ours, arrival_us));
        }
        // A repeat of str0m's can leave between two packets that were numbered before it.
        arrivals.sort_unstable();
        let (input, builder) = (&mut self.input, &mut self.builder);
        builder.build(&arrivals, MAX_SIZE, |bytes| {
            for message in weir_rtcp::messages(bytes).flatten() {
                input.on_message(now, &message, media, |_| None);
            }
        });
    }
}
