//! The verdict: what happened to the call, in a few sentences, causes before their effects.

use crate::found::played_audio::{PlayedAudio, gaps, lasted, times};
use crate::found::{Evidence, Found, Meaning, RuleName, Source};
use crate::judge::call::Call;
use crate::judge::headroom;
use crate::judge::judgement::{Judgement, Outcome};
use crate::judge::network::NetworkEstimate;
use crate::judge::quality;
use crate::judge::rules::LOSS;
use crate::measure::samples::{Sample, losses};
use crate::read::dump::{Dump, StreamDirection};
use crate::read::format::Format;
use crate::tell::bottleneck::{capacity, longest, of_several};
use crate::tell::says::{mbps, percent, spikes, whose_estimate};

/// A finding that ends so shortly before the dump, in s, had no end.
const UNTIL_END_S: f64 = 2.5;
/// Nearer shares of lost packets are one.
const NEAR: f64 = 0.003;
/// Concealment of this share is worth a sentence.
const AUDIBLE: f64 = 0.01;

/// The verdict on a call.
pub(crate) fn verdict(call: &Call<'_>, judgement: &Judgement) -> String {
    let reader = Reader { call, dump: call.dump, network: call.network(), judgement };
    let mut sentences = Vec::new();
    match judgement.outcome {
        Outcome::NoConnection | Outcome::Limited | Outcome::SwitchedOff => {
            reader.harm(&mut sentences);
        }
        _ => sentences.push(reader.nothing()),
    }
    sentences.extend(reader.good_time());
    reader.remarks(&mut sentences);
    sentences.join(" ")
}

/// Reads what was found.
pub(crate) struct Reader<'a> {
    pub call: &'a Call<'a>,
    pub dump: &'a Dump,
    pub network: &'a NetworkEstimate,
    pub judgement: &'a Judgement,
}

impl Reader<'_> {
    /// What made the call worse, and what was off: causes before their effects.
    fn harm(&self, sentences: &mut Vec<String>) {
        self.refusals(sentences, false);
        self.connections(sentences);
        // No connection fails for lack of a camera.
        self.refusals(sentences, true);
        self.causes(sentences);
        self.own_end(sentences);
        self.far_end(sentences);
        self.sound(sentences);
        self.effects(sentences);
        self.controller(sentences);
    }

    fn of_rule(&self, rule: RuleName) -> impl Iterator<Item = &Found> {
        self.judgement.found.iter().filter(move |it| it.rule() == rule)
    }

    /// The findings of a rule that are more than a remark.
    fn told(&self, rule: RuleName) -> impl Iterator<Item = &Found> {
        self.of_rule(rule).filter(|it| it.meaning != Meaning::Remark)
    }

    /// The longest finding of a rule in a direction.
    fn longest_of(&self, rule: RuleName, direction: StreamDirection) -> Option<&Found> {
        let found = &self.judgement.found;
        longest(found, rule, direction).map(|index| &found[index])
    }

    /// The longest finding of a rule, if it is more than a remark.
    fn longest(&self, rule: RuleName) -> Option<&Found> {
        self.told(rule).max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    }

    /// What the browser refused.
    fn refusals(&self, sentences: &mut Vec<String>, of_devices: bool) {
        for found in self.told(RuleName::Refused) {
            let Evidence::Refused(refusal) = &found.evidence else { continue };
            if refusal.is_of_device() != of_devices {
                continue;
            }
            // It begins with the name of a method.
            let sentence = format!("{}.", refusal.words().trim_end_matches('.'));
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }

    fn connections(&self, sentences: &mut Vec<String>) {
        let kinds = [
            (RuleName::ConnectionFailed, " failed"),
            (RuleName::NeverConnected, " were never established"),
        ];
        for (rule, others) in kinds {
            let ended: Vec<&Found> = self.of_rule(rule).collect();
            match &ended[..] {
                [] => {}
                [one] => sentences.push(connection_ended(one)),
                several => sentences.push(connections_ended(several, others)),
            }
        }
        if let Some(found) = self.of_rule(RuleName::NoTurnServer).next() {
            sentences.push(format!("{}.", uppercased(&found.says())));
        }
        self.server_errors(sentences, self.told(RuleName::ServerError));
        let interrupted: Vec<&Found> = self.of_rule(RuleName::Interruption).collect();
        if !interrupted.is_empty() {
            let all: f64 = interrupted.iter().map(|it| it.seconds()).sum();
            let first = interrupted.iter().map(|it| it.from_s).fold(f64::MAX, f64::min);
            let count = times(interrupted.len() as u64);
            sentences.push(match interrupted.len() {
                1 => format!("The connection was interrupted at {first:.1} s, for {all:.1} s."),
                _ => format!(
                    "The connection was interrupted {count}, {all:.1} s in all, first at \
                     {first:.1} s."
                ),
            });
        }
        // A single stream of a capture is in a sentence of its own.
        let mut stalls: Vec<&Found> = self.of_rule(RuleName::Stall).collect();
        stalls.retain(|it| matches!(it.evidence, Evidence::Stall { .. }));
        let longest = stalls.iter().max_by(|a, b| a.seconds().total_cmp(&b.seconds()));
        if let Some(stall) = longest {
            let count = stalls.len();
            let more =
                if count > 1 { format!(", the longest of {count} times") } else { String::new() };
            sentences.push(format!(
                "Nothing arrived {}{more}, and nothing was lost: the path stood still.",
                stall.span()
            ));
        }
    }

    fn server_errors<'b>(
        &self,
        sentences: &mut Vec<String>,
        errors: impl Iterator<Item = &'b Found>,
    ) {
        const NAMED: usize = 3;
        for found in errors.take(NAMED) {
            // It begins with an address.
            sentences.push(format!("{}.", found.says()));
        }
    }

    fn causes(&self, sentences: &mut Vec<String>) {
        let links = [
            (StreamDirection::Sent, "uplink", &self.network.up),
            (StreamDirection::Received, "downlink", &self.network.down),
        ];
        let mut said = Vec::new();
        for (direction, link, estimate) in links {
            if let Some(found) = self.longest_of(RuleName::Capacity, direction) {
                said.push(format!("{link} {}", capacity(estimate, found)));
            }
        }
        add_joined(sentences, &said);
        said.clear();
        for (direction, link, _) in links {
            let Some(found) = self.longest_of(RuleName::Loss, direction) else { continue };
            let (share, alone) = self.lost_on_the_link(found);
            let of = self.whose(found).map(|name| format!(" of {name}")).unwrap_or_default();
            let (share, span) = (percent(share), found.span());
            let more = of_several(&self.judgement.found, found);
            said.push(format!("{link}{of} lost {share} of the packets {span}{alone}{more}"));
        }
        add_joined(sentences, &said);
        sentences.extend(self.air_time());
        if self.of_rule(RuleName::Delay).next().is_some() {
            let base = self.call.base_rtt_ms().unwrap_or_default();
            sentences.push(format!("The path is long: round trips take {base:.0} ms or more."));
        }
        if let Some(found) = self.longest(RuleName::Bandwidth) {
            sentences.push(self.bandwidth(found));
        }
    }

    /// What was lost, in the time of a finding, of all that went its way, or of what alone lost as
    /// much as matters; then, of what.
    fn lost_on_the_link(&self, found: &Found) -> (Option<f64>, &'static str) {
        const ALL: &str = "";
        let is_random = matches!(found.evidence, Evidence::RandomLoss { .. });
        let Some(own) = found.subject.stream().filter(|_| !is_random) else {
            return (lost(found), ALL);
        };
        let (mut lossy, mut link): (Vec<Sample>, Vec<Sample>) = (Vec::new(), Vec::new());
        let [mut losers, mut others] = [[0_usize; 2]; 2];
        for stream in self.call.streams() {
            if stream.direction != own.direction || stream.id.connection != own.connection {
                continue;
            }
            let mut within = stream.samples.clone();
            within.retain(|it| (found.from_s..found.to_s).contains(&it.middle_s()));
            let Some(loss) = losses::of(&within) else { continue };
            let count = if loss >= LOSS { &mut losers } else { &mut others };
            count[usize::from(stream.id.is_audio)] += 1;
            lossy.extend(within.iter().filter(|_| loss >= LOSS).cloned());
            link.extend(within);
        }
        let (share, of_link) = (losses::of(&lossy), losses::of(&link));
        match (losers, others) {
            _ if share.zip(of_link).is_some_and(|(a, b)| a - b < NEAR) => (share, ALL),
            ([0, _], [_, 0]) => (share, ", of audio alone"),
            ([_, 0], [0, _]) => (share, ", of video alone"),
            ([1, 0], _) => (share, ", of one video alone"),
            _ => (of_link, ALL),
        }
    }

    /// What this device and its application did to what it sends.
    fn own_end(&self, sentences: &mut Vec<String>) {
        if let Some(found) = self.longest(RuleName::Processor) {
            let rate = found.middle(|it| it.frame_rate).unwrap_or_default();
            let when = found.span();
            sentences.push(format!(
                "The sender's processor was too slow {when}: it encoded {rate:.0} frames a second."
            ));
        }
        if let Some(found) = self.longest(RuleName::PictureSize) {
            let rate = found.middle(|it| it.frame_rate).unwrap_or_default();
            let when = found.span();
            sentences.push(format!(
                "The encoder kept a picture too large for its target {when}: {rate:.1} frames a \
                 second were left."
            ));
        }
        if let Some(found) = self.longest(RuleName::NotEncoded) {
            sentences.push(format!(
                "The encoder made no frame {}, although the camera gave frames.",
                self.when(found)
            ));
        }
        if let Some(found) = self.longest(RuleName::Source) {
            let what = match found.evidence {
                Evidence::Source(Source::Deactivated) => "deactivated the video that it sends",
                _ => "gave little video to send",
            };
            sentences.push(format!("The application {what} {}.", found.span()));
        }
        if let Some(found) = self.longest(RuleName::Hole) {
            sentences.push(format!("{}, {}.", uppercased(&found.says()), found.span()));
        }
    }

    fn bandwidth(&self, found: &Found) -> String {
        let Evidence::Bandwidth { estimate_bps, rate_bps } = found.evidence else {
            return String::new();
        };
        let estimate = estimate_bps.map(|bps| format!(" of {}", mbps(bps))).unwrap_or_default();
        format!(
            "Sent video was limited by the bandwidth estimate{estimate} {}: it had {}. No queue \
             and no loss show whether the path or the estimate was the reason.",
            self.when(found),
            mbps(rate_bps.unwrap_or_default())
        )
    }

    fn air_time(&self) -> Option<String> {
        let found = self.longest(RuleName::AirTime)?;
        let when = found.span();
        match found.evidence {
            Evidence::Spikes { longest_ms, base_ms } => {
                let what = spikes(longest_ms, base_ms);
                Some(format!("A radio cell lacked air {when}: {what}."))
            }
            Evidence::Pauses { count, .. } => Some(format!(
                "A radio cell paused {when}: {count} times packets waited and none came for 60 ms \
                 or more."
            )),
            _ => None,
        }
    }

    /// What the far end, or a server between, did.
    fn far_end(&self, sentences: &mut Vec<String>) {
        if let Some(found) = self.longest(RuleName::FarLoss) {
            let Evidence::FarLoss { lost, .. } = found.evidence else { return };
            let (share, when) = (percent(lost), found.span());
            sentences.push(format!(
                "Of what the far end sent, {share} was lost {when}, before the server that \
                 forwards it."
            ));
        }
        if let Some(found) = self.longest(RuleName::SmallPicture) {
            let when = found.span();
            sentences.push(format!(
                "The far end sent small pictures {when}, and not because of the path to here."
            ));
        }
        if let Some(found) = self.longest(RuleName::FewFrames)
            && let Evidence::FewFrames { now, before } = found.evidence
        {
            sentences.push(format!(
                "The far end sent {now:.0} frames a second instead of {before:.0} {}, and not \
                 because of the path to here.",
                self.when(found)
            ));
        }
        self.nothing_received(sentences);
        self.silent_packets(sentences);
    }

    /// Times without packets of which no loss tells, the longest of each kind.
    fn silent_packets(&self, sentences: &mut Vec<String>) {
        for rule in [RuleName::Stall, RuleName::StreamEnds, RuleName::OneWay] {
            let mut own: Vec<&Found> = self.of_rule(rule).collect();
            own.retain(|it| !matches!(it.evidence, Evidence::Stall { .. }));
            let longest = own.iter().max_by(|a, b| a.seconds().total_cmp(&b.seconds()));
            let Some(found) = longest else { continue };
            let more = match own.len() {
                1 => String::new(),
                count => format!(" ({} more like this)", count - 1),
            };
            let of = self.whose(found).map(|name| format!("{name}: ")).unwrap_or_default();
            sentences.push(format!("{}{more}.", uppercased(&format!("{of}{}", found.says()))));
        }
    }

    /// The connection of a finding, where a capture has several calls.
    fn whose<'b>(&self, found: &'b Found) -> Option<&'b str> {
        let is_one_of_many = self.dump.format == Format::Capture && self.dump.connections.len() > 1;
        found.subject.connection().filter(|_| is_one_of_many)
    }

    fn nothing_received(&self, sentences: &mut Vec<String>) {
        for (is_audio, what) in [(false, "video"), (true, "audio")] {
            let own = self.told(RuleName::NothingReceived);
            let own =
                own.filter(|it| it.subject.stream().is_some_and(|it| it.is_audio == is_audio));
            let Some(found) = own.max_by(|a, b| a.seconds().total_cmp(&b.seconds())) else {
                continue;
            };
            let why = match found.evidence {
                Evidence::NothingReceived { is_to_end: true } => {
                    "the far end stopped sending it, or something on the way stops it"
                }
                _ => "the far end paused it",
            };
            sentences.push(format!(
                "No {what} was received {}, and none of it was lost: {why}.",
                self.when(found)
            ));
        }
    }

    /// What was not heard.
    fn sound(&self, sentences: &mut Vec<String>) {
        if let Some(found) = self.longest(RuleName::NotSent) {
            let when = self.when(found);
            sentences.push(format!("No sound was sent {when}: the application stopped it."));
        }
        if let Some(found) = self.longest(RuleName::SilentSource) {
            let when = self.when(found);
            sentences.push(format!("This end's microphone was silent {when}: it is muted."));
        }
        if let Some(found) = self.longest(RuleName::SilentSound) {
            sentences.push(format!(
                "The far end's sound was silent {}: it is muted, or its microphone gives nothing.",
                self.when(found)
            ));
        }
    }

    fn effects(&self, sentences: &mut Vec<String>) {
        if let Some(found) = self.longest(RuleName::NotDecoded)
            && let Evidence::NotDecoded { key_frame_requests, is_ever } = found.evidence
        {
            let when = if is_ever { String::new() } else { format!(" {}", found.span()) };
            let asked = match key_frame_requests {
                0 => String::new(),
                count => format!("; this end asked for a key frame {}", times(count)),
            };
            sentences.push(format!("Video arrived and none was decoded{when}{asked}."));
        }
        if let Some(found) = self.longest(RuleName::Decoder)
            && let Evidence::Decoder { received_rate, frame_rate, .. } = found.evidence
        {
            sentences.push(format!(
                "This device was too slow to decode {}: {:.0} of {:.0} frames a second.",
                self.when(found),
                frame_rate.unwrap_or_default(),
                received_rate.unwrap_or_default()
            ));
        }
        let freezes = quality::freezes(self.dump);
        if freezes.count > 0 {
            let long = lasted(freezes.count, freezes.seconds);
            let mut text = format!("Video froze {}{long}", times(freezes.count));
            if freezes.streams > 1 {
                text += &format!(", in {} streams", freezes.streams);
            }
            sentences.push(text + ".");
        }
        self.late(sentences);
        self.concealment(sentences);
    }

    /// Gaps of the sound: of all streams that have them, or, where these are few over the whole
    /// call, the worst time of one.
    fn concealment(&self, sentences: &mut Vec<String>) {
        let Some(worst) = self.longest(RuleName::Concealment) else { return };
        let mut all = PlayedAudio::default();
        for stream in self.dump.connections.iter().flat_map(|it| &it.streams) {
            if let Some(heard) = quality::heard(stream) {
                all.add(&heard);
            }
        }
        let is_worth_saying = all.concealed_ratio().is_some_and(|ratio| ratio >= AUDIBLE);
        let (heard, when) = match &worst.evidence {
            Evidence::Concealment(own) if !is_worth_saying => (own, format!(" {}", worst.span())),
            _ => (&all, String::new()),
        };
        sentences.push(format!(
            "Audio had {}{when}: {} of it was concealed.",
            gaps(heard.gaps),
            percent(heard.concealed_ratio())
        ));
    }

    fn late(&self, sentences: &mut Vec<String>) {
        for (is_audio, what) in [(false, "video"), (true, "audio")] {
            let own = self.of_rule(RuleName::Late);
            let own =
                own.filter(|it| it.subject.stream().is_some_and(|it| it.is_audio == is_audio));
            let Some(found) = own.max_by(|a, b| a.seconds().total_cmp(&b.seconds())) else {
                continue;
            };
            let Evidence::Late { delay_ms, buffer_ms, jitter_ms } = found.evidence else {
                continue;
            };
            let jitter = jitter_ms.map(|ms| format!(", at a jitter of {ms:.0} ms"));
            sentences.push(format!(
                "Received {what} was {:.0} ms late {}: {:.0} ms in the jitter buffer{}.",
                delay_ms.unwrap_or_default(),
                self.when(found),
                buffer_ms.unwrap_or_default(),
                jitter.unwrap_or_default()
            ));
        }
    }

    fn controller(&self, sentences: &mut Vec<String>) {
        let whose = whose_estimate(headroom::program(self.dump).as_deref());
        let whose = uppercased(&whose);
        if let Some(found) = self.longest(RuleName::Underestimate)
            && let Evidence::Underestimate(low) = &found.evidence
        {
            sentences.push(format!("{whose} stayed at {} {}.", low.share(), found.span()));
        }
        if let Some(found) = self.longest(RuleName::Recovery) {
            let length = found.seconds();
            sentences.push(if self.lasts_to_the_end(found) {
                format!(
                    "Bandwidth estimate had not recovered when the dump ended, {length:.0} s \
                     later; the path was free."
                )
            } else {
                format!("Bandwidth estimate recovered {length:.0} s later; the path was free.")
            });
        }
        if let Some(found) = self.longest(RuleName::StartUp) {
            let length = found.seconds();
            sentences.push(format!(
                "{whose} was slow to rise, from {:.1} s on for {length:.0} s; the path was free.",
                found.from_s
            ));
        }
        if let Some(found) = self.longest(RuleName::LossRule) {
            let estimate = found.middle(|it| it.estimate_kbps).unwrap_or_default();
            sentences.push(format!(
                "{whose} took the loss for congestion and stayed at {:.1} Mbit/s.",
                estimate / 1e3
            ));
        }
    }

    /// What is no limit, and yet worth a word.
    fn remarks(&self, sentences: &mut Vec<String>) {
        if self.dump.is_part {
            sentences.push("The file is cut, so streams of the call may be missing here.".into());
        }
        let paths = self.of_rule(RuleName::Path);
        if let Some(found) = paths.max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
            && let Evidence::Path(path) = &found.evidence
            && let Some(how) = path.how()
        {
            sentences.push(format!("{}.", uppercased(how)));
        }
        let mut changes = self.of_rule(RuleName::PathChange);
        if let Some(found) = changes.next() {
            let more = match changes.count() {
                0 => String::new(),
                count => format!("; the first of {} changes", count + 1),
            };
            let says = uppercased(&found.says());
            sentences.push(format!("{says}, at {:.0} s{more}.", found.from_s));
        }
        match self.of_rule(RuleName::Restart).count() {
            0 => {}
            count => sentences.push(format!("ICE was restarted {}.", times(count as u64))),
        }
        self.server_errors(
            sentences,
            self.remarks_of(RuleName::ServerError).filter(is_name_unknown),
        );
        if let Some(found) = self.remarks_of(RuleName::LateBegin).next() {
            sentences.push(format!("{}.", uppercased(&found.says())));
        }
        let holes = self.remarks_of(RuleName::Hole);
        if let Some(found) = holes.max_by(|a, b| a.seconds().total_cmp(&b.seconds())) {
            sentences.push(format!("{}, {}.", uppercased(&found.says()), found.span()));
        }
    }

    /// The findings of a rule that are no more than a remark.
    fn remarks_of(&self, rule: RuleName) -> impl Iterator<Item = &Found> {
        self.of_rule(rule).filter(|it| it.meaning == Meaning::Remark)
    }

    fn lasts_to_the_end(&self, found: &Found) -> bool {
        self.network.duration_s - found.to_s < UNTIL_END_S
    }

    /// `throughout`, `from 20 s on`, or `from 20 to 40 s`.
    fn when(&self, found: &Found) -> String {
        match (found.from_s < UNTIL_END_S, self.lasts_to_the_end(found)) {
            (true, true) => "throughout".into(),
            (false, true) => format!("from {:.0} s on", found.from_s),
            _ => found.span(),
        }
    }
}

/// Whether an error says that a server's name is unknown: then no call can use it.
fn is_name_unknown(found: &&Found) -> bool {
    matches!(&found.evidence, Evidence::ServerError(error) if error.is_name_unknown())
}

fn lost(found: &Found) -> Option<f64> {
    match found.evidence {
        Evidence::Loss { lost, .. } => lost,
        Evidence::RandomLoss { lost } => Some(lost),
        _ => None,
    }
}

fn connection_ended(found: &Found) -> String {
    match &found.evidence {
        Evidence::ConnectionFailed(ended) | Evidence::NeverConnected(ended) => {
            format!("Connection {} {}.", found.subject, found.evidence.ended(ended))
        }
        _ => String::new(),
    }
}

fn connections_ended(several: &[&Found], others: &str) -> String {
    const NAMED: usize = 3;
    let names: Vec<String> = several.iter().map(|it| it.subject.to_string()).collect();
    let (named, more) = names.split_at(names.len().min(NAMED));
    let more = match more.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let at = several.iter().map(|it| it.to_s).fold(f64::MAX, f64::min);
    format!(
        "{} connections{others} ({}{more}), the first at {at:.1} s.",
        names.len(),
        named.join(", ")
    )
}

fn add_joined(sentences: &mut Vec<String>, said: &[String]) {
    if !said.is_empty() {
        sentences.push(format!("{}.", uppercased(&said.join("; "))));
    }
}

fn uppercased(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
