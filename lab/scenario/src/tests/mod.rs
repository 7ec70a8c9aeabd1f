//! Tests the parser and the catalogue with the real files and with invalid ones.

use std::sync::LazyLock;

use proptest::prelude::*;
use weir::controller::{EcnMode, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{Capacity, Jitter, LinkConfig, LossModel, QueueLimit, Schedule};

use super::catalogue::{find, ids};
use super::{
    Condition, Congestion, Cubic, Direction, ExpectedFlow, Feedback, Flow, Media, ReceiverClock,
    Repair, Scenario, ShortTransfers, Source, Tcp, Traffic, Udp, parse, parse_variant,
};

mod calls;
mod cellular;
mod flows;
mod forms;
mod network;
mod outages;
mod recordings;
mod server;
mod traces;
mod variants;
mod wifi;

const SMALL: &str = r#"title = "t"
source = "s"
description = "d"
duration = "60s"
[network.up]
capacity = "2Mbps"
[[flow]]
"#;

fn small(extra: &str) -> String {
    format!("{SMALL}{extra}")
}

/// The small scenario with one text replaced by another.
fn with(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old}");
    SMALL.replacen(old, new, 1)
}

fn error(text: &str) -> String {
    parse("x.toml", text, None).expect_err(text).to_string()
}

fn one(id: &str) -> Scenario {
    let mut found = find(id).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn media(flow: &Flow) -> &Media {
    flow.traffic.media().expect("a media flow")
}

fn kbps(steps: &[(i64, u64)]) -> Vec<(Timestamp, Bitrate)> {
    steps.iter().map(|&(s, kbps)| (Timestamp::from_secs(s), Bitrate::from_kbps(kbps))).collect()
}

fn steps(link: &LinkConfig) -> &[(Timestamp, Bitrate)] {
    match &link.capacity {
        Capacity::Schedule(schedule) => schedule.steps(),
        other => panic!("{other:?} has no steps"),
    }
}

#[test]
fn what_a_file_leaves_out_has_the_documented_default() {
    let scenario = parse("x.toml", SMALL, None).unwrap();
    assert_eq!(scenario.feedback_interval, TimeDelta::from_millis(50));
    assert_eq!(scenario.hops[0].up.queue, QueueLimit::Time(TimeDelta::from_millis(300)));
    assert_eq!(scenario.hops[0].up.delay, TimeDelta::ZERO.into());
    assert_eq!(scenario.hops[0].up.jitter, Jitter::None);
    assert_eq!(scenario.hops[0].up.loss, LossModel::None);
    assert_eq!(scenario.hops[0].down, LinkConfig::unlimited(TimeDelta::ZERO));
    let flow = &scenario.flows[0];
    assert_eq!((flow.name.as_str(), flow.direction), ("media-1", Direction::Up));
    assert_eq!((flow.start, flow.stop), (Timestamp::ZERO, Timestamp::from_secs(60)));
    assert_eq!((flow.hops.clone(), flow.access_delay), (0..1, TimeDelta::ZERO));
    assert_eq!(flow.pauses, []);
    let media = media(flow);
    assert_eq!(media.controller, None);
    let limits = media.settings.limits;
    assert_eq!(limits.min(), Bitrate::from_kbps(150));
    assert_eq!(limits.start(), Bitrate::from_kbps(300));
    assert_eq!(limits.max(), Bitrate::from_kbps(2500));
    assert_eq!(media.settings, Settings::new(limits));
    assert_eq!(media.source, Source::Filler { fps: 30.0, cap: None });
    assert_eq!(media.feedback, [(Timestamp::ZERO, Feedback::Twcc)]);
    assert_eq!(media.sender, None);
    assert_eq!(media.repair, None);
}

#[test]
fn repair_is_read_with_what_it_leaves_out_switched_off() {
    let repair = |extra: &str| media(&parse("x", &small(extra), None).unwrap().flows[0]).repair;
    assert_eq!(repair("repair = {}"), Some(Repair::NONE));
    assert_eq!(repair("repair = { nack = true }"), Some(Repair::NONE.with_nack(true)));
    let interval = Some(TimeDelta::from_secs(2));
    assert_eq!(
        repair("repair = { nack = true, fec = true }\nkey_frame_interval = \"2s\""),
        Some(Repair::NONE.with_nack(true).with_fec(true).with_key_frame_interval(interval))
    );
    let refused = error(&small("key_frame_interval = \"2s\""));
    assert!(refused.contains("only a flow with repair shows frames"), "{refused}");
    let refused = error(&small("repair = {}\nkey_frame_interval = \"0s\""));
    assert!(refused.contains("must be above zero"), "{refused}");
}

#[test]
fn the_default_start_moves_into_the_limits() {
    let high = parse("x", &small("min_bitrate = \"500kbps\""), None).unwrap();
    assert_eq!(media(&high.flows[0]).settings.limits.start(), Bitrate::from_kbps(500));
    let low = parse("x", &small("max_bitrate = \"200kbps\""), None).unwrap();
    assert_eq!(media(&low.flows[0]).settings.limits.start(), Bitrate::from_kbps(200));
}

#[test]
fn flows_are_counted_and_say_their_direction_where_there_are_two() {
    let names = |extra: &str| -> Vec<String> {
        let scenario = parse("x.toml", &small(extra), None).unwrap();
        scenario.flows.into_iter().map(|flow| flow.name).collect()
    };
    assert_eq!(names("[[flow]]"), ["media-1", "media-2"]);
    assert_eq!(
        names("[[flow]]\ndirection = \"down\"\n[[flow]]"),
        ["media-1-up", "media-1-down", "media-2-up"]
    );
}

#[test]
fn an_expectation_without_text_says_its_condition() {
    let scenario =
        parse("x", &small("[[expect]]\nmetric = \"utilization\"\nabove = 0.5"), None).unwrap();
    assert_eq!(scenario.expectations[0].text, "utilization at least 0.5");
}

/// Text to replace in [`SMALL`] (empty: append), its replacement, and the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("title = \"t\"", "", "1: title is missing; write title = \"One line\""),
    ("title", "tilte", "1: unknown key 'tilte'; did you mean 'title'?"),
    ("capacity", "capcity", "6: network.up: unknown key 'capcity'; did you mean 'capacity'?"),
    (
        "",
        "colour = 1",
        "8: flow[1]: unknown key 'colour'; write one of kind, count, direction, station, \
         terminal, hops, delay, start, stop, pauses, controller, min_bitrate, start_bitrate, \
         max_bitrate, source, source_limit, receiver_clock, feedback, route_changes, ecn, \
         priority, sender, tolerate_random_loss, compete_with_tcp, probe_when_limited, burst, \
         watches, repair, key_frame_interval, quality, call, category, bearer, congestion, short, \
         small_queue, stack, delivery, ack, rate, packet",
    ),
    (
        "2Mbps",
        "2Mbs",
        "6: network.up.capacity: unknown unit in '2Mbs'; write one of bps, kbps, Mbps, Gbps, \
         bit/s, kbit/s, Mbit/s, Gbit/s, such as \"2Mbps\"",
    ),
    (
        "2Mbps",
        "0kbps",
        "6: network.up.capacity: a capacity of 0 for ever carries nothing; for an outage \
      write steps, such as [[\"0s\", \"2Mbps\"], [\"20s\", \"0bps\"], [\"24s\", \"2Mbps\"]]",
    ),
    ("2Mbps", "-1Mbps", "6: network.up.capacity: '-1Mbps' must not be negative"),
    (
        "\"2Mbps\"",
        "2",
        "6: network.up.capacity: expected a bitrate such as \"2Mbps\", found the number '2'",
    ),
    (
        "\"2Mbps\"",
        "[[\"5s\", \"2Mbps\"]]",
        "6: network.up.capacity: a capacity schedule must start at 0s",
    ),
    (
        "\"2Mbps\"",
        "[[\"0s\"]]",
        "6: network.up.capacity[1]: expected a step such as [\"20s\", \"1500kbps\"]",
    ),
    (
        "\"2Mbps\"",
        "[[\"0s\", \"1Mbps\"], [\"99s\", \"1Mbps\"]]",
        "6: network.up.capacity[2][1]: lies outside the run, which ends at 60 s",
    ),
    (
        "[network.up]",
        "[network]\nkind = \"satellite\"\n[network.up]",
        "6: network.kind: expected \"bottleneck\" or \"wifi\" or \"cellular\", found the \
         text 'satellite'",
    ),
    (
        "capacity = \"2Mbps\"",
        "queue = \"300ms\"",
        "6: network.up.queue: nothing waits without a capacity; write capacity = \"2Mbps\"",
    ),
    ("capacity", "delay = \"-5ms\"\ncapacity", "6: network.up.delay: '-5ms' must not be negative"),
    (
        "capacity",
        "loss = \"150%\"\ncapacity",
        "6: network.up.loss: '150%': a probability lies between 0 and 1; for per cent write \"1%\"",
    ),
    (
        "capacity",
        "loss = 1.5\ncapacity",
        "6: network.up.loss: a probability lies between 0 and 1; for per cent write \"1%\"",
    ),
    (
        "capacity",
        "duplicate = -0.1\ncapacity",
        "6: network.up.duplicate: a probability lies between 0 and 1; for per cent write \"1%\"",
    ),
    (
        "capacity",
        "jitter = { kind = \"netem\", sd = \"5ms\" }\ncapacity",
        "6: network.up.jitter.sd: netem's jitter has an amount instead",
    ),
    (
        "capacity",
        "loss = { to_bad = 0, to_good = 0, loss_good = 0, loss_bad = 1 }\ncapacity",
        "6: network.up.loss: to_bad and to_good must not both be 0",
    ),
    (
        "capacity",
        "loss = [[\"1s\", \"5%\"]]\ncapacity",
        "6: network.up.loss: the first step must be at 0s",
    ),
    (
        "capacity",
        "loss = [[\"0s\", 0], [\"9s\", \"5%\"], [\"9s\", 0]]\ncapacity",
        "6: network.up.loss: the step at 9 s must come later",
    ),
    (
        "capacity",
        "jitter = [[\"0s\"]]\ncapacity",
        "6: network.up.jitter[1]: expected a step such as [\"20s\", { kind = \"netem\", \
         amount = \"10ms\" }]",
    ),
    ("60s", "0s", "4: duration: must be above zero"),
    ("60s", "25h", "4: duration: '25h' is too much; write at most 24h"),
    (
        "duration",
        "feedback_interval = \"0ms\"\nduration",
        "4: feedback_interval: must be between 1ms and the duration",
    ),
    ("[[flow]]\n", "", "1: there is no traffic; write [[flow]]"),
    ("[[flow]]", "[flow]", "7: flow: expected tables; write [[flow]]"),
    (
        "",
        "kind = \"sctp\"",
        "8: flow[1].kind: expected \"media\" or \"audio\" or \"tcp\" or \"quic\" or \"udp\", found \
         the text 'sctp'",
    ),
    (
        "",
        "kind = \"tcp\"\nmax_bitrate = \"1Mbps\"",
        "9: flow[1].max_bitrate: this kind of flow has no such key",
    ),
    ("", "kind = \"udp\"", "7: flow[1].rate is missing; write rate = \"1Mbps\""),
    (
        "",
        "kind = \"udp\"\nrate = \"1Mbps\"\npacket = \"20B\"",
        "10: flow[1].packet: must be between 28B, its headers, and 65535B",
    ),
    ("", "count = 1.5", "8: flow[1].count: must be a whole number from 1 to 100"),
    ("", "hops = [2]", "8: flow[1].hops[1]: must be a whole number from 1 to 1"),
    (
        "",
        "pauses = [[\"20s\", \"10s\"]]",
        "8: flow[1].pauses: pauses must be in order and within the flow's time",
    ),
    ("", "priority = 0", "8: flow[1].priority: must be above zero, and at most 100"),
    (
        "",
        "feedback = [[\"5s\", \"ccfb\"]]",
        "8: flow[1].feedback: the first step must be at 0s, and each later than the one before",
    ),
    (
        "",
        "kind = \"tcp\"\nshort = { size = [\"50KB\", \"30KB\"], idle = \"10s\" }",
        "9: flow[1].short.size: the first size must not be above the second",
    ),
    (
        "[network.up]",
        "[[network.hop]]\n[network.up]",
        "6: network.up: each hop has its own; write [network.hop.up] below [[network.hop]]",
    ),
    (
        "",
        "[[expect]]\nmetric = \"utilization\"\nabove = 1\nsection = \"late\"",
        "11: expect[1].section: there is no section 'late'; write [[section]]",
    ),
    (
        "",
        "[[known_miss]]\nexpect = \"fast\"\ncontrollers = [\"nada\"]\nwhy = \"slow\"",
        "9: known_miss[1].expect: there is no expectation 'fast'; write its text",
    ),
    ("", "start = \"20s\"\nstop = \"10s\"", "7: flow[1]: stop must come after start"),
    (
        "",
        "min_bitrate = \"2Mbps\"\nmax_bitrate = \"1Mbps\"",
        "7: flow[1]: min_bitrate (2000.0 kbit/s) must not be above max_bitrate (1000.0 kbit/s)",
    ),
    (
        "",
        "start_bitrate = \"3Mbps\"",
        "7: flow[1]: start_bitrate (3000.0 kbit/s) must lie between min_bitrate (150.0 kbit/s) and \
         max_bitrate (2500.0 kbit/s)",
    ),
    (
        "",
        "source = { kind = \"filler\", fps = 0 }",
        "8: flow[1].source.fps: must be between 1 and 240 frames a second",
    ),
    (
        "",
        "source = { kind = \"rfc8593\", cap = \"1Mbps\" }",
        "8: flow[1].source.cap: this source has no cap; write max_bitrate in the flow instead",
    ),
    (
        "",
        "source = { kind = \"filler\", reaction = \"100ms\" }",
        "8: flow[1].source.reaction: this source follows its target at once; write \"0s\" \
         or rfc8593",
    ),
    (
        "",
        "[[section]]\nname = \"n\"\nfrom = \"50s\"\nto = \"70s\"",
        "11: section[1].to: lies outside the run, which ends at 60 s",
    ),
    (
        "",
        "[[section]]\nname = \"n\"\nfrom = \"50s\"\nto = \"50s\"",
        "8: section[1]: to must come after from",
    ),
    (
        "",
        "[[expect]]\nmetric = \"rtt_ms.max\"",
        "8: expect[1]: write exactly one condition, such as above = 0.5 or below = 0.5",
    ),
    (
        "",
        "[[expect]]\nmetric = \"rtt_ms\"\nabove = 1",
        "9: expect[1].metric: there is no metric 'rtt_ms'; write \"rtt_ms.mean\", or one of \
         mean, p25, p50, p90, p95, max",
    ),
    (
        "",
        "[[expect]]\nmetric = \"rtt_ms.max\"\nabove = inf",
        "10: expect[1].above: expected a number, found the number 'inf'",
    ),
    (
        "",
        "[[expect]]\nmetric = \"rtt_ms.max\"\nbelow = 1\nflow = \"media-9\"",
        "11: expect[1].flow: there is no flow 'media-9'; write one such as \"media-1\"",
    ),
    ("", "title = ", "8: not valid TOML: string values must be quoted, expected literal string"),
];

#[test]
fn every_mistake_has_its_line_its_key_and_what_to_write() {
    for (old, new, expected) in MISTAKES {
        let text = if old.is_empty() { small(new) } else { with(old, new) };
        assert_eq!(error(&text), format!("x.toml:{expected}"), "{text}");
    }
}

#[test]
fn an_unknown_controller_is_told_which_there_are() {
    let message = error(&small("controller = \"bbr\""));
    let first = LabAlgorithm::Gcc;
    let expected =
        format!("x.toml:8: flow[1].controller: expected \"$controller\" or \"{first}\" or ");
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.ends_with(", found the text 'bbr'"), "{message}");
}

#[test]
fn a_trace_is_read_from_the_scenario_s_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.mahi"), "1\n2\n").unwrap();
    std::fs::write(folder.path().join("bad.mahi"), "1\ntwo\n").unwrap();
    let read = |name: &str| {
        let text = with("\"2Mbps\"", &format!("{{ trace = \"{name}\" }}"));
        parse("x.toml", &text, Some(folder.path())).map_err(|error| error.to_string())
    };
    assert!(matches!(read("good.mahi").unwrap().hops[0].up.capacity, Capacity::Trace(_)));
    assert_eq!(
        read("bad.mahi").unwrap_err(),
        "x.toml:6: network.up.capacity.trace: 'bad.mahi': trace line 2: expected a time in whole \
         milliseconds, not 'two'; if the lines are values, write column = 1, unit and interval"
    );
    assert_eq!(
        read("none.mahi").unwrap_err(),
        "x.toml:6: network.up.capacity.trace: cannot read 'none.mahi': there is no such file \
         beside the scenario"
    );
}

#[test]
fn every_scenario_of_the_catalogue_is_sound() {
    assert!(ids().is_sorted());
    for id in ids() {
        let scenario = one(id);
        assert_eq!(scenario.id, id);
        for finding in &scenario.findings {
            assert!(finding.text.ends_with('.'), "{id}: {}", finding.text);
        }
    }
}

#[test]
fn the_lund_scenarios_have_the_capacities_of_the_thesis() {
    let rmcat = one("lund/rmcat-ns3");
    assert_eq!(rmcat.duration, TimeDelta::from_secs(200));
    let stairs = [2000, 1500, 1000, 500, 1000, 1500, 2000, 1500, 1000, 500];
    let expected: Vec<(i64, u64)> = (0..10).map(|step| 20 * step).zip(stairs).collect();
    assert_eq!(steps(&rmcat.hops[0].up), kbps(&expected));
    let drops =
        kbps(&[(0, 2000), (20, 500), (23, 2000), (50, 500), (55, 2000), (90, 500), (92, 2000)]);
    for id in ["sudden-reduction", "sweden-china", "no-jitter", "sweden-china/in-order"] {
        assert_eq!(steps(&one(&format!("lund/{id}")).hops[0].up), drops, "{id}");
    }
}

#[test]
fn the_rfc8867_scenario_has_the_ratios_of_its_table() {
    let scenario = one("rfc8867/5.1");
    assert_eq!(steps(&scenario.hops[0].up), kbps(&[(0, 1000), (40, 2500), (60, 600), (80, 1000)]));
    assert_eq!(scenario.flows[0].stop, Timestamp::from_secs(99));
    assert_eq!(one("rfc8867/5.1/owd100").hops[0].up.delay, TimeDelta::from_millis(100).into());
}

#[test]
fn a_variant_differs_from_its_scenario_in_one_thing() {
    let base = one("lund/sweden-china");
    let in_order = one("lund/sweden-china/in-order");
    let jitter = Jitter::Uniform { amount: TimeDelta::from_millis(80), reorder: false };
    assert_eq!(in_order.hops[0].up, base.hops[0].up.clone().with_jitter(jitter));
    assert_eq!((&in_order.hops[0].down, &in_order.flows), (&base.hops[0].down, &base.flows));
    let split = one("lund/sweden-china/split");
    let total = |scenario: &Scenario| {
        scenario.hops[0].up.delay.at(Timestamp::ZERO)
            + scenario.hops[0].down.delay.at(Timestamp::ZERO)
    };
    assert_eq!(total(&split), total(&base));
    let no_jitter = one("lund/no-jitter");
    assert_eq!(no_jitter.hops[0].up, base.hops[0].up.clone().with_jitter(Jitter::None));
    let late = one("lund/no-jitter/late-delay");
    let (early, added) = (Timestamp::ZERO, Timestamp::from_secs(10));
    assert_eq!(late.hops[0].up.delay.at(early), TimeDelta::from_millis(1));
    assert_eq!(late.hops[0].up.delay.at(added), no_jitter.hops[0].up.delay.at(added));
    assert_eq!(
        late.hops[0].up.clone().with_delay(no_jitter.hops[0].up.delay.clone()),
        no_jitter.hops[0].up
    );
}

#[test]
fn a_pattern_finds_what_lies_below_too() {
    let found: Vec<String> =
        find("lund/no-jitter*").unwrap().into_iter().map(|scenario| scenario.id).collect();
    assert_eq!(
        found,
        ["lund/no-jitter", "lund/no-jitter/late-delay", "lund/no-jitter/late-delay-30s"]
    );
}

#[test]
fn an_unknown_scenario_is_answered_with_the_nearest() {
    let message = |name: &str| find(name).unwrap_err().to_string();
    assert_eq!(
        message("lund/rmcat-ns"),
        "there is no scenario 'lund/rmcat-ns'; did you mean lund/rmcat-ns3 or \
         lund/rmcat-ns3/browser?"
    );
    assert_eq!(message("xyzzy"), "there is no scenario 'xyzzy'; `weir list --all` shows all");
    assert!(message("lund").ends_with("'lund'; write 'lund/*' for all of this source"));
    assert!(message("nothing/*").starts_with("there is no scenario 'nothing/*'"));
    assert!(message("a[").starts_with("'a[' is not a pattern: "));
    for file in ["none/such.toml", "none/*.toml"] {
        assert!(message(file).starts_with(&format!("cannot read the scenario file '{file}'")));
    }
}

#[test]
fn files_outside_the_catalogue_are_named_by_their_paths_or_a_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["mine.toml", "other.toml"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::write(path, SMALL).unwrap();
    }
    let paths = paths.map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(one(&paths[0]).id, paths[0]);
    let all = find(folder.path().join("*.toml").to_str().unwrap()).unwrap();
    assert_eq!(all.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), paths);
}

#[test]
fn the_network_reads_as_words() {
    assert_eq!(
        one("lund/sweden-china/in-order").network_in_words(),
        [
            "up: 2 Mbit/s, then 500 kbit/s from 20 s, then 2 Mbit/s from 23 s, then 500 kbit/s \
             from 50 s, then 2 Mbit/s from 55 s, then 500 kbit/s from 90 s, then 2 Mbit/s from \
             92 s; queue 75,000 B; delay 321 ms; jitter ±80 ms as netem (in order)",
            "down: unlimited; delay 1 ms",
        ]
    );
}

/// The last TOML example in the reference page, which is a whole scenario.
fn documented_example() -> &'static str {
    let page = include_str!("../../../../docs/reference/scenario-format.md");
    let start = page.rfind("```toml\n").expect("the page has an example") + "```toml\n".len();
    let length = page[start..].find("```").expect("the example ends");
    &page[start..start + length]
}

#[test]
fn the_documented_example_is_a_scenario() {
    let scenario = parse("example.toml", documented_example(), None).unwrap();
    assert_eq!(scenario.flows.len(), 2);
    assert_eq!(media(&scenario.flows[1]).controller, Some(LabAlgorithm::Nada));
    assert!(matches!(scenario.hops[0].down.loss, LossModel::GilbertElliott(_)));
    assert_eq!(scenario.findings[0].condition, Condition::Highest);
    assert_eq!(scenario.expectations[0].controllers, [LabAlgorithm::Nada, LabAlgorithm::Scream]);
}

/// The files of the catalogue and the documented example.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let files = find("*").unwrap().into_iter().map(|found| found.text);
    files.chain([documented_example().into()]).collect()
});

/// Asserts that parsing yields a scenario or an error of one printable line.
fn survives(text: &str) {
    if let Err(error) = parse("x.toml", text, None) {
        let message = error.to_string();
        assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
        assert!(error.line() >= 1 && error.line() <= 1 + text.matches('\n').count(), "{message}");
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_scenario_or_one_line(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn a_damaged_file_gives_a_scenario_or_one_line(
        file in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, DAMAGE), 1..4),
    ) {
        let mut chars: Vec<char> = file.get(&TEXTS).chars().collect();
        for (place, length, replacement) in cuts {
            let start = place.index(chars.len() + 1);
            let end = (start + length).min(chars.len());
            chars.splice(start..end, replacement.chars());
        }
        survives(&chars.into_iter().collect::<String>());
    }
}

/// Text inserted to damage a file: units, brackets, numbers at their limits, unusual characters.
const DAMAGE: &str = "(\"|\\[|\\]|\\{|\\}|=|-|\\.|\n|\r|\u{2028}|\u{0}|inf|nan|-1|0|0s|1e999|\
                      99999999999999999999|ms|kbps|%|true|\"\"\"|title|\\[\\[flow\\]\\]|\\PC{0,3})";

#[test]
fn a_published_list_has_a_value_of_each_section() {
    let sections = "[[section]]\nname = \"a\"\nfrom = \"0s\"\nto = \"10s\"\n\
                    [[section]]\nname = \"b\"\nfrom = \"10s\"\nto = \"20s\"\n";
    let text = |paper: &str| {
        small(&format!(
            "{sections}[[paper]]\nlocation = \"Table 1\"\nmetric = \"utilization\"\n{paper}"
        ))
    };
    let paper = |end: &str| parse("x", &text(end), None).unwrap().paper;
    let values = paper("published = [\"0.5\", \"0.6\"]");
    let shown: Vec<_> =
        values.iter().map(|value| (value.section.as_deref(), value.published.as_str())).collect();
    assert_eq!(shown, [(Some("a"), "0.5"), (Some("b"), "0.6")]);
    let one = paper("section = \"b\"\npublished = \"0.6\"");
    assert_eq!(one, values[1..]);
    assert_eq!(
        error(&text("published = [\"0.5\"]")),
        "x.toml:19: paper[1].published: 1 values for 2 sections"
    );
    assert_eq!(
        error(&text("published = [\"0.5\", \"0.6\"]\nsection = \"a\"")),
        "x.toml:20: paper[1].section: a list has a value of each section; leave it out"
    );
}
