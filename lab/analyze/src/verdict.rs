//! The verdict: what happened to the call, in a few sentences, causes before their effects.

use weir_lab::calls::file;

use crate::call::Call;
use crate::connectivity::{FAILED, INTERRUPTED, NEVER, PATH, RESTART};
use crate::dump::{Dump, StreamDirection};
use crate::finding::Finding;
use crate::good_time::GoodTime;
use crate::headroom::{UNDERESTIMATE, whose_estimate};
use crate::merge::overflows;
use crate::network::{NetworkEstimate, TestedCapacity, WayEstimate};
use crate::quality::{self, Heard, gaps, lasted, times};
use crate::rules::{self, FAR_LOSS};
use crate::samples::Sample;

/// A capacity below this share of what was seen otherwise fell.
const FELL: f64 = 0.75;
/// A finding that ends so shortly before the dump, in s, had no end.
const UNTIL_END_S: f64 = 2.5;
/// A share of the time below this one is not said.
const WORTH_SAYING_PERCENT: f64 = 0.5;
/// Concealment of this share is worth a sentence.
const AUDIBLE: f64 = 0.01;

/// The verdict on a call.
pub(crate) fn verdict(call: &Call<'_>, found: &[Finding], good: &GoodTime) -> String {
    let reader = Reader { call, dump: call.dump, network: call.network(), found };
    let mut sentences = Vec::new();
    reader.connections(&mut sentences);
    reader.causes(&mut sentences);
    reader.effects(&mut sentences);
    reader.controller(&mut sentences);
    if sentences.is_empty() {
        sentences.push(reader.nothing());
    }
    sentences.extend(good_time(good));
    reader.path(&mut sentences);
    sentences.join(" ")
}

/// What is left for those who watch. `None` if no received video can be judged.
fn good_time(good: &GoodTime) -> Option<String> {
    let [good, no_picture, late] = good.ratios()?.map(|ratio| 100.0 * ratio);
    let mut lost = Vec::new();
    if no_picture >= WORTH_SAYING_PERCENT {
        lost.push(format!("no new picture {no_picture:.0} %"));
    }
    if late >= WORTH_SAYING_PERCENT {
        lost.push(format!("late {late:.0} %"));
    }
    let lost = if lost.is_empty() { String::new() } else { format!(" ({})", lost.join(", ")) };
    Some(format!("Received video was good for {good:.0} % of the call{lost}, sharpness aside."))
}

struct Reader<'a> {
    call: &'a Call<'a>,
    dump: &'a Dump,
    network: &'a NetworkEstimate,
    found: &'a [Finding],
}

impl Reader<'_> {
    fn of_rule(&self, rule: &'static str) -> impl Iterator<Item = &file::Finding> {
        self.found.iter().map(|it| &it.0).filter(move |it| it.rule == rule)
    }

    /// The longest finding of a rule in a direction.
    fn longest(&self, rule: &'static str, way: StreamDirection) -> Option<&file::Finding> {
        longest(self.found, rule, way).map(|index| &self.found[index].0)
    }

    fn connections(&self, sentences: &mut Vec<String>) {
        let failed: Vec<&file::Finding> = self.of_rule(FAILED).collect();
        let never: Vec<&file::Finding> = self.of_rule(NEVER).collect();
        for (ended, others) in [(&failed, " failed"), (&never, " were never established")] {
            match &ended[..] {
                [] => {}
                [one] => {
                    let says = one.says.strip_prefix("it ").unwrap_or(&one.says);
                    sentences.push(format!("Connection {} {says}.", one.stream));
                }
                several => {
                    let names: Vec<&str> = several.iter().map(|it| it.stream.as_str()).collect();
                    let (named, more) = names.split_at(names.len().min(3));
                    let more = match more.len() {
                        0 => String::new(),
                        count => format!(" and {count} more"),
                    };
                    let at = several.iter().map(|it| it.to_s).fold(f64::MAX, f64::min);
                    sentences.push(format!(
                        "{} connections{others} ({}{more}), the first at {at:.1} s.",
                        names.len(),
                        named.join(", ")
                    ));
                }
            }
        }
        let interrupted: Vec<&file::Finding> = self.of_rule(INTERRUPTED).collect();
        if !interrupted.is_empty() {
            let all: f64 = interrupted.iter().map(|it| seconds(it)).sum();
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
        match self.of_rule(RESTART).count() {
            0 => {}
            count => sentences.push(format!("ICE was restarted {}.", times(count as u64))),
        }
    }

    fn causes(&self, sentences: &mut Vec<String>) {
        let mut said = Vec::new();
        for (way, link) in
            [(StreamDirection::Sent, "uplink"), (StreamDirection::Received, "downlink")]
        {
            if let Some(finding) = self.longest("capacity", way) {
                let of_way = if way == StreamDirection::Sent {
                    &self.network.up
                } else {
                    &self.network.down
                };
                said.push(format!("{link} {}", capacity(of_way, finding)));
            }
        }
        add_joined(sentences, &said);
        said.clear();
        for (way, link) in
            [(StreamDirection::Sent, "uplink"), (StreamDirection::Received, "downlink")]
        {
            if let Some(finding) = self.longest("loss", way) {
                let share = percent_of(&finding.says).unwrap_or_default();
                said.push(format!("{link} lost {share} of the packets {}", span(finding)));
            }
        }
        add_joined(sentences, &said);
        sentences.extend(self.air_time());
        if self.of_rule("delay").next().is_some() {
            let base = self.base_rtt_ms().unwrap_or_default();
            sentences.push(format!("The path is long: round trips take {base:.0} ms or more."));
        }
        if let Some(finding) = self.longest("processor", StreamDirection::Sent) {
            let rate = middle(finding, |it| it.frame_rate).unwrap_or_default();
            let when = span(finding);
            sentences.push(format!(
                "The sender's processor was too slow {when}: it encoded {rate:.0} frames a second."
            ));
        }
        if let Some(finding) = self.longest("picture size", StreamDirection::Sent) {
            let rate = middle(finding, |it| it.frame_rate).unwrap_or_default();
            let when = span(finding);
            sentences.push(format!(
                "The encoder kept a picture too large for its target {when}: {rate:.1} frames a \
                 second were left."
            ));
        }
        if let Some(finding) = self.longest("source", StreamDirection::Sent) {
            sentences.push(format!("The application gave little video to send {}.", span(finding)));
        }
        if let Some(finding) = self.longest(FAR_LOSS, StreamDirection::Received) {
            let share = percent_of(&finding.says).unwrap_or_default();
            let when = span(finding);
            sentences.push(format!(
                "Of what the far end sent, {share} was lost {when}, before the server that \
                 forwards it."
            ));
        }
        if let Some(finding) = self.longest("small picture", StreamDirection::Received) {
            let when = span(finding);
            sentences.push(format!(
                "The far end sent small pictures {when}, and not because of the path to here."
            ));
        }
    }

    fn air_time(&self) -> Option<String> {
        let finding = self.of_rule("air time").max_by(|a, b| longer(a, b))?;
        let (_, says) = finding.says.split_once(": ")?;
        let when = span(finding);
        let Some((count, _)) = says.split_once(" times ") else {
            return Some(format!("A radio cell lacked air {when}: {says}."));
        };
        Some(format!(
            "A radio cell paused {when}: {count} times packets waited and none came for 60 ms or \
             more."
        ))
    }

    fn effects(&self, sentences: &mut Vec<String>) {
        let freezes = quality::freezes(self.dump);
        if freezes.count > 0 {
            let long = lasted(freezes.count, freezes.seconds);
            let mut text = format!("Video froze {}{long}", times(freezes.count));
            if freezes.streams > 1 {
                text += &format!(", in {} streams", freezes.streams);
            }
            sentences.push(text + ".");
        }
        let mut all = Heard::default();
        for stream in self.dump.connections.iter().flat_map(|it| &it.streams) {
            if let Some(heard) = quality::heard(stream) {
                all.add(&heard);
            }
        }
        if let Some(ratio) = all.concealed_ratio().filter(|ratio| *ratio >= AUDIBLE) {
            sentences.push(format!(
                "Audio had {}: {:.1} % of it was concealed.",
                gaps(all.gaps),
                ratio * 100.0
            ));
        }
    }

    fn controller(&self, sentences: &mut Vec<String>) {
        let whose = whose_estimate(self.dump);
        let whose = uppercased(&whose);
        if let Some(finding) = self.longest(UNDERESTIMATE, StreamDirection::Sent) {
            let tail = finding.says.split_once(" stayed at ").map_or("", |(_, rest)| rest);
            let share = tail.split(':').next().unwrap_or_default();
            let when = span(finding);
            sentences.push(format!("{whose} stayed at {share} {when}."));
        }
        if let Some(finding) = self.longest("recovery", StreamDirection::Sent) {
            let length = seconds(finding);
            sentences.push(if self.lasts_to_the_end(finding) {
                format!(
                    "Bandwidth estimate had not recovered when the dump ended, {length:.0} s \
                     later; the path was free."
                )
            } else {
                format!("Bandwidth estimate recovered {length:.0} s later; the path was free.")
            });
        }
        if let Some(finding) = self.longest("start-up", StreamDirection::Sent) {
            let length = seconds(finding);
            sentences.push(format!(
                "{whose} was slow to rise, from {:.1} s on for {length:.0} s; the path was free.",
                finding.from_s
            ));
        }
        if let Some(finding) = self.longest("loss rule", StreamDirection::Sent) {
            let estimate = middle(finding, |it| it.estimate_kbps).unwrap_or_default();
            sentences.push(format!(
                "{whose} took the loss for congestion and stayed at {:.1} Mbit/s.",
                estimate / 1e3
            ));
        }
    }

    fn path(&self, sentences: &mut Vec<String>) {
        let Some(finding) = self.of_rule(PATH).max_by(|a, b| longer(a, b)) else {
            return;
        };
        let says = finding.says.split(" (").next().unwrap_or(&finding.says);
        sentences.push(format!("{}.", uppercased(says)));
    }

    fn nothing(&self) -> String {
        let mut known = Vec::new();
        let samples: Vec<Sample> =
            self.call.streams().flat_map(|it| it.samples.iter().cloned()).collect();
        if let Some(loss) = rules::loss(&samples) {
            known.push(format!("{:.1} % of the packets were lost", loss * 100.0));
        }
        if let Some(base) = self.base_rtt_ms() {
            known.push(format!("round trips took {base:.0} ms at best"));
        }
        let length = self.network.duration_s;
        let known = match known.len() {
            0 => String::new(),
            _ => format!(": {}", known.join(", ")),
        };
        format!("Nothing limited this call in {length:.0} s{known}.")
    }

    fn base_rtt_ms(&self) -> Option<f64> {
        self.call.streams().filter_map(|it| it.base_rtt_ms).max_by(f64::total_cmp)
    }

    fn lasts_to_the_end(&self, finding: &file::Finding) -> bool {
        self.network.duration_s - finding.to_s < UNTIL_END_S
    }
}

/// Says in the findings of capacity that the verdict speaks of what the path carried, since their
/// own rates are what a sender gave or what one stream received.
pub(crate) fn name_capacity(network: &NetworkEstimate, found: &mut [Finding]) {
    for (way, of_way) in
        [(StreamDirection::Sent, &network.up), (StreamDirection::Received, &network.down)]
    {
        let Some(index) = longest(found, "capacity", way) else { continue };
        let finding = &mut found[index].0;
        let Some(bottleneck) = bottleneck(of_way, finding).filter(|_| !overflows(finding)) else {
            continue;
        };
        let carried = match bottleneck.rivals_bps {
            Some(bps) => format!("the path's capacity, of which {}:", taken(bps, bottleneck.bps)),
            None => format!("the path's capacity of {:.0} kbit/s:", bottleneck.bps / 1e3),
        };
        finding.says = finding.says.replacen("the path's capacity:", &carried, 1);
    }
}

/// The finding of a rule that lasted longest in a direction.
fn longest(found: &[Finding], rule: &str, way: StreamDirection) -> Option<usize> {
    let wanted = if way == StreamDirection::Sent { " sent " } else { " received " };
    let mut longest: Option<usize> = None;
    for (index, Finding(it)) in found.iter().enumerate() {
        let of_way = it.rule == rule && it.stream.contains(wanted);
        if of_way && longest.is_none_or(|other| seconds(it) >= seconds(&found[other].0)) {
            longest = Some(index);
        }
    }
    longest
}

/// What the path carried while a finding of capacity held.
struct Bottleneck {
    /// Whether the capacity had been larger.
    fell: bool,
    bps: f64,
    /// What others took beside it; `None` if nothing shows others for most of the time.
    rivals_bps: Option<f64>,
    from_s: f64,
    to_s: f64,
}

/// `None` if the path's capacity was not tested in the time of the finding.
fn bottleneck(way: &WayEstimate, finding: &file::Finding) -> Option<Bottleneck> {
    let mut within: Vec<&TestedCapacity> = way.tested.iter().collect();
    within.retain(|it| it.from_s < finding.to_s && finding.from_s < it.to_s);
    let largest = way.tested.iter().map(|it| it.bps).fold(way.largest_bps.unwrap_or(0.0), f64::max);
    let mut low = within.clone();
    low.retain(|it| it.bps < FELL * largest);
    let fell = low.first().is_some_and(|it| it.from_s > 1.0);
    let spans = if fell { low } else { within };
    let (first, last) = spans.first().zip(spans.last())?;
    let (mut length_s, mut bits) = (0.0, 0.0);
    let (mut shared_s, mut taken) = (0.0, 0.0);
    for tested in &spans {
        let length = tested.to_s.min(finding.to_s) - tested.from_s.max(finding.from_s);
        (length_s, bits) = (length_s + length, bits + tested.bps * length);
        if let Some(bps) = tested.rivals_bps {
            (shared_s, taken) = (shared_s + length, taken + bps * length);
        }
    }
    Some(Bottleneck {
        fell,
        bps: bits / length_s.max(f64::MIN_POSITIVE),
        rivals_bps: (2.0 * shared_s > length_s).then(|| taken / shared_s),
        from_s: first.from_s.max(finding.from_s),
        to_s: last.to_s.min(finding.to_s),
    })
}

/// `fell to 0.4 Mbit/s from 5 to 15 s`, that others shared it, or that it was full.
fn capacity(way: &WayEstimate, finding: &file::Finding) -> String {
    // Far more was sent than the path can carry, so what left says nothing about its capacity.
    if overflows(finding) {
        let lost = percent_of(&finding.says).map(|it| format!(" and lost {it} of the packets"));
        return format!("was full {}{}", span(finding), lost.unwrap_or_default());
    }
    let Some(Bottleneck { fell, bps, rivals_bps, from_s, to_s }) = bottleneck(way, finding) else {
        let kbps = middle(finding, |it| Some(it.rate_kbps)).unwrap_or_default();
        return format!("was full at {} {}", mbps(kbps * 1e3), span(finding));
    };
    if let Some(rivals) = rivals_bps {
        return format!("was shared from {from_s:.0} to {to_s:.0} s: {}", taken(rivals, bps));
    }
    let verb = if fell { "fell to" } else { "was full at" };
    format!("{verb} {} from {from_s:.0} to {to_s:.0} s", mbps(bps))
}

/// `others took 1.5 of 2.0 Mbit/s`
fn taken(rivals_bps: f64, own_bps: f64) -> String {
    format!("others took {:.1} of {}", rivals_bps / 1e6, mbps(rivals_bps + own_bps))
}

fn mbps(bps: f64) -> String {
    let digits = if bps < 0.95e5 { 2 } else { 1 };
    format!("{:.digits$} Mbit/s", bps / 1e6)
}

fn seconds(finding: &file::Finding) -> f64 {
    finding.to_s - finding.from_s
}

fn longer(a: &file::Finding, b: &file::Finding) -> std::cmp::Ordering {
    seconds(a).total_cmp(&seconds(b))
}

fn span(finding: &file::Finding) -> String {
    format!("from {:.0} to {:.0} s", finding.from_s, finding.to_s)
}

fn middle(finding: &file::Finding, value: fn(&file::FindingSample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = finding.samples.iter().filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The first share in a sentence, such as `9.8 %`.
fn percent_of(says: &str) -> Option<String> {
    let (before, _) = says.split_once(" %")?;
    let number = before.rsplit(' ').next()?;
    Some(format!("{number} %"))
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
