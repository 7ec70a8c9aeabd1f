//! What is said of a call that nothing made worse, or of which too little is known; and how long
//! received video was good.

use weir_record::calls::stats::Kind;

use crate::judge::judgement::{self, Outcome};
use crate::read::dump::StreamDirection;
use crate::tell::says::percent;
use crate::tell::verdict::Reader;

/// A share of the time below this one is not said.
const WORTH_SAYING_PERCENT: f64 = 0.5;
/// A good time of less than this share of the call says of how much it is.
const ALMOST_ALL: f64 = 0.9;

impl Reader<'_> {
    /// What is said of a call that nothing made worse, or of which too little is known.
    pub(crate) fn nothing(&self) -> String {
        let length = self.network.duration_s;
        match self.judgement.outcome {
            Outcome::NoMedia => self.without_media(),
            Outcome::TooShort => format!(
                "The dump has {:.1} s of media: that is too short to say what limited the call{}.",
                self.call.media_s(),
                self.known()
            ),
            Outcome::MeansOnly => {
                format!("Means over the whole call of {length:.0} s show no limit{}.", self.known())
            }
            Outcome::NotGood => {
                format!("Received video was not good, and no rule says why{}.", self.known())
            }
            _ => format!("Nothing limited this call in {length:.0} s{}.", self.known()),
        }
    }

    /// What a dump without video and audio has.
    fn without_media(&self) -> String {
        let (mut sent, mut received, mut channels) = (0_u64, 0_u64, 0);
        for channel in &self.dump.data_channels {
            channels += 1;
            sent = sent.saturating_add(channel.messages_sent);
            received = received.saturating_add(channel.messages_received);
        }
        match channels {
            0 => "The dump has no video and no audio.".into(),
            1 => format!(
                "The call has no video and no audio: its one data channel sent {sent} messages and \
                 received {received}."
            ),
            _ => format!(
                "The call has no video and no audio: its {channels} data channels sent {sent} \
                 messages and received {received}."
            ),
        }
    }

    /// `: 0.0 % of the packets were lost, round trips took 40 ms at best`, as far as it is known.
    fn known(&self) -> String {
        let mut known = Vec::new();
        let [up, down] = [StreamDirection::Sent, StreamDirection::Received]
            .map(|direction| self.call.loss(direction).map(|loss| percent(Some(loss))));
        match (up, down) {
            (None, None) => {}
            (Some(up), Some(down)) if up != down => known.push(format!(
                "{up} of the sent packets and {down} of the received ones were lost"
            )),
            (Some(loss), _) | (_, Some(loss)) => {
                known.push(format!("{loss} of the packets were lost"));
            }
        }
        if let Some(base) = self.call.base_rtt_ms() {
            let is_noticed = judgement::noticed_rtt_ms(self.call).is_some();
            let noticed = if is_noticed { ", which people notice" } else { "" };
            known.push(format!("round trips took {base:.0} ms at best{noticed}"));
        }
        if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) }
    }

    /// What is left for those who watch. `None` if no received video can be judged.
    pub(crate) fn good_time(&self) -> Option<String> {
        let [good, no_picture, late] =
            self.judgement.good_time.ratios()?.map(|ratio| 100.0 * ratio);
        let mut lost = Vec::new();
        if no_picture >= WORTH_SAYING_PERCENT {
            lost.push(format!("no new picture {no_picture:.0} %"));
        }
        if late >= WORTH_SAYING_PERCENT {
            lost.push(format!("late {late:.0} %"));
        }
        let lost = if lost.is_empty() { String::new() } else { format!(" ({})", lost.join(", ")) };
        let mut videos = 0;
        for stream in self.call.streams() {
            if (stream.direction, stream.kind) == (StreamDirection::Received, Kind::Video) {
                videos += 1;
            }
        }
        let watched_s = self.judgement.good_time.watched_s();
        let of = match watched_s / self.network.duration_s.max(f64::MIN_POSITIVE) {
            share if videos == 1 && share < ALMOST_ALL => {
                format!("the {watched_s:.0} s in which it came")
            }
            _ => "the call".into(),
        };
        Some(format!("Received video was good for {good:.0} % of {of}{lost}, sharpness aside."))
    }
}
