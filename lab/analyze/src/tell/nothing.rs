//! What is said of a call in which no rule holds: that nothing limited it, if what people saw and
//! heard was good for long enough.

use weir_record::calls::stats::Kind;

use crate::judge::rules::LOSS;
use crate::measure::samples::Sample;
use crate::measure::samples::losses;
use crate::read::dump::StreamDirection;
use crate::tell::says::percent;
use crate::tell::verdict::Reader;

/// A share of the time below this one is not said.
const WORTH_SAYING_PERCENT: f64 = 0.5;
/// A call of which less is known, in s, cannot be judged.
const LEAST_S: f64 = 5.0;
/// Received video that was good for less of its time was not good.
const GOOD: f64 = 0.9;
/// A good time of less than this share of the call says of how much it is.
const ALMOST_ALL: f64 = 0.9;
/// Round trips in ms that people who talk notice.
const NOTICED_RTT_MS: f64 = 200.0;

impl Reader<'_> {
    /// What is said of a call without any finding that is worth a sentence.
    pub(crate) fn nothing(&self) -> String {
        let length = self.network.duration_s;
        if self.dump.connections.is_empty() {
            return self.without_media();
        }
        let media_s = self.media_s();
        if media_s < LEAST_S {
            return format!(
                "The dump has {media_s:.1} s of media: that is too short to say what limited the \
                 call{}.",
                self.known()
            );
        }
        if self.call.streams().all(|stream| stream.samples.len() <= 1) {
            return format!(
                "Means over the whole call of {length:.0} s show no limit{}.",
                self.known()
            );
        }
        let lossy = self.losses().into_iter().find(|(_, loss)| *loss >= LOSS);
        if let Some((what, loss)) = lossy {
            return format!(
                "{what} lost {} of the packets, spread over {length:.0} s.",
                percent(Some(loss))
            );
        }
        if self.good.ratios().is_some_and(|[good, ..]| good < GOOD) {
            return format!("Received video was not good, and no rule says why{}.", self.known());
        }
        format!("Nothing limited this call in {length:.0} s{}.", self.known())
    }

    /// How much is known of the stream of which most is known, in s.
    fn media_s(&self) -> f64 {
        let spans = self.call.streams().filter_map(|stream| {
            let (first, last) = (stream.samples.first()?, stream.samples.last()?);
            Some(last.end_s - first.start_s)
        });
        spans.fold(0.0, f64::max)
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
        match self.losses()[..] {
            [] => {}
            [(_, loss)] => known.push(format!("{} of the packets were lost", percent(Some(loss)))),
            [(_, up), (_, down), ..] if percent(Some(up)) == percent(Some(down)) => {
                known.push(format!("{} of the packets were lost", percent(Some(up))));
            }
            [(_, up), (_, down), ..] => known.push(format!(
                "{} of the sent packets and {} of the received ones were lost",
                percent(Some(up)),
                percent(Some(down))
            )),
        }
        if let Some(base) = self.base_rtt_ms() {
            let noticed = if base >= NOTICED_RTT_MS { ", which people notice" } else { "" };
            known.push(format!("round trips took {base:.0} ms at best{noticed}"));
        }
        if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) }
    }

    /// The loss of each direction in which it is known: of what is sent, then of what is received.
    fn losses(&self) -> Vec<(&'static str, f64)> {
        let mut known = Vec::new();
        let links = [(StreamDirection::Sent, "Uplink"), (StreamDirection::Received, "Downlink")];
        for (direction, link) in links {
            let streams = self.call.streams().filter(|it| it.direction == direction);
            let samples: Vec<Sample> = streams.flat_map(|it| it.samples.iter().cloned()).collect();
            known.extend(losses::of(&samples).map(|loss| (link, loss)));
        }
        known
    }

    /// What is left for those who watch. `None` if no received video can be judged.
    pub(crate) fn good_time(&self) -> Option<String> {
        let [good, no_picture, late] = self.good.ratios()?.map(|ratio| 100.0 * ratio);
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
        let watched_s = self.good.watched_s();
        let of = match watched_s / self.network.duration_s.max(f64::MIN_POSITIVE) {
            share if videos == 1 && share < ALMOST_ALL => {
                format!("the {watched_s:.0} s in which it came")
            }
            _ => "the call".into(),
        };
        Some(format!("Received video was good for {good:.0} % of {of}{lost}, sharpness aside."))
    }
}
