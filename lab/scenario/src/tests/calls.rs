//! The `[call]` table and the calls of flows.

use super::super::call::{
    BrowserKind, Codec, Content, Degradation, IceRestart, IceServer, Iterations, Picture, Relay,
    Topology,
};
use super::*;
use crate::CallPlan;

#[test]
fn a_scenario_without_the_table_is_called_once_by_two_chromium() {
    let scenario = parse("x", SMALL, None).unwrap();
    assert_eq!(scenario.call, CallPlan::default());
    assert_eq!(scenario.call.iterations, Iterations(1));
    assert_eq!(scenario.call.browsers, [BrowserKind::Chromium; 2]);
    let hd = Picture { width: 1280, height: 720, fps: 30, codec: Codec::Vp8, ..Picture::default() };
    assert_eq!((scenario.call.video, scenario.call.relay), (hd, None));
}

#[test]
fn the_table_says_who_calls_whom_how_and_how_often() {
    let text = small(
        "[call]\ntopology = \"mesh\"\nrelay = \"tcp\"\niterations = 10\ncapture = true\n\
         browser = { b = \"firefox\" }\nvideo = { width = 640, height = 480, codec = \"h264\" }\n",
    );
    let expected = CallPlan {
        topology: Topology::Mesh,
        relay: Some(Relay::Tcp),
        iterations: Iterations(10),
        browsers: [BrowserKind::Chromium, BrowserKind::Firefox],
        video: Picture { width: 640, height: 480, codec: Codec::H264, ..Picture::default() },
        capture: true,
        ..CallPlan::default()
    };
    assert_eq!(parse("x", &text, None).unwrap().call, expected);
}

#[test]
fn a_call_and_its_simulated_encoder_have_one_video() {
    let source = "source = { kind = \"encoder\", reaction = \"0s\" }\n";
    let asked =
        "[call]\nvideo = { content = \"hard\", degradation = \"balanced\", codec = \"av1\" }\n";
    let scenario = parse("x", &small(&format!("{source}{asked}")), None).unwrap();
    let Source::Encoder { video, .. } = scenario.flows[0].traffic.media().unwrap().source else {
        panic!("another source")
    };
    assert_eq!((video.content, video.codec), (Content::Hard, Codec::Av1));
    assert_eq!(video.degradation, Degradation::Balanced);
    let message = error(&small(&format!("{source}[call]\nvideo = {{ codec = \"h264\" }}\n")));
    assert!(message.contains("has VP8, VP9 and AV1, but no H.264"), "{message}");
    for drawn in ["content = \"head\", codec = \"vp9\"", "content = \"slides\""] {
        let asked = format!("[call]\nvideo = {{ {drawn} }}\n");
        let message = error(&small(&format!("{source}{asked}")));
        assert!(message.contains("knows what a head takes with VP8"), "{message}");
        assert!(parse("x", &small(&asked), None).is_ok(), "{drawn}");
    }
    let head = format!("{source}[call]\nvideo = {{ content = \"head\" }}\n");
    assert!(parse("x", &small(&head), None).is_ok());
    let layered =
        parse("x", &small(&format!("{source}[call]\nvideo = {{ simulcast = 3 }}\n")), None);
    let layered = layered.unwrap();
    let Source::Encoder { video, .. } = layered.flows[0].traffic.media().unwrap().source else {
        panic!("another source")
    };
    assert_eq!((video.layers, layered.call.video.layers), (3, 3));
}

#[test]
fn the_encoder_of_a_pipeline_is_refused_with_what_was_not_measured() {
    let source = "source = { kind = \"encoder\", driver = \"pipeline\" }\n";
    let film = "width = 640, height = 360, content = \"film\"";
    let read =
        |video: &str| parse("x", &small(&format!("{source}[call]\nvideo = {{ {video} }}\n")), None);
    assert!(read(film).is_ok());
    for other in ["", "content = \"hard\"", "content = \"film\", codec = \"vp9\""] {
        let message = read(other).unwrap_err().to_string();
        assert!(message.contains("was measured with VP8, in one layer"), "{other}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_driver_of_an_encoder_is_one_of_two_and_no_other_source_has_one() {
    for (source, wanted) in [
        ("kind = \"filler\", driver = \"pipeline\"", "only the source encoder has a driver"),
        ("kind = \"encoder\", driver = \"phone\"", "expected \"browser\" or \"pipeline\""),
        ("kind = \"encoder\", driver = 1", "expected \"browser\" or \"pipeline\""),
    ] {
        let message = error(&small(&format!("source = {{ {source} }}\n")));
        assert!(message.contains(".source.driver: ") && message.contains(wanted), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn mistakes_in_the_table_have_their_line_and_what_to_write() {
    let call = |text: &str| error(&small(&format!("[call]\n{text}\n")));
    for (text, wanted) in [
        ("topology = \"ring\"", "expected \"pairs\" or \"one-to-many\""),
        ("relay = true", "expected \"udp\" or \"tcp\", found true"),
        ("iterations = 0", "must be a whole number from 1 to 1000"),
        ("browser = { a = \"lynx\" }", "expected \"chromium\" or \"firefox\""),
        ("video = { width = 1.5 }", "must be a whole number from 16 to 4096"),
        ("video = { content = \"cinema\" }", "expected \"noise\" or \"easy\""),
        ("video = { degradation = \"none\" }", "expected \"maintain-resolution\""),
        ("video = { simulcast = 2 }", "must be 1 or 3"),
        ("video = { simulcast = 4 }", "must be a whole number from 1 to 3"),
        ("video = { simulcast = 3, codec = \"av1\" }", "simulcast is with VP8"),
        ("participants = 3", "unknown key 'participants'"),
    ] {
        let message = call(text);
        assert!(message.starts_with("x.toml:9: call") && message.contains(wanted), "{message}");
    }
}

#[test]
fn the_flows_of_each_direction_are_calls_by_order_or_by_their_own_word() {
    let text = small(
        "[[flow]]\nstart = \"5s\"\n[[flow]]\ndirection = \"down\"\ncall = 2\nstart = \"5s\"\n\
         [[flow]]\nkind = \"audio\"\n[[flow]]\nkind = \"tcp\"\n",
    );
    let scenario = parse("x", &text, None).unwrap();
    let calls = scenario.calls();
    let flows: Vec<(usize, Vec<usize>)> =
        calls.iter().map(|call| (call.number, call.flows().collect())).collect();
    assert_eq!(flows, [(1, vec![0, 3]), (2, vec![1, 2])]);
    assert_eq!((calls[0].audio_up, calls[0].down), (Some(3), None));
    let at = Timestamp::from_secs;
    assert_eq!(scenario.call_times(&calls[0]), Some((at(0), at(60))));
    assert_eq!(scenario.call_times(&calls[1]), Some((at(5), at(60))));
    let apart = parse("x", &text.replacen("start = \"5s\"\n", "", 1), None).unwrap();
    assert_eq!(apart.call_times(&apart.calls()[1]), None);
}

#[test]
fn two_flows_cannot_have_one_place_in_a_call_and_tcp_has_none() {
    let message = error(&small("call = 2\n[[flow]]\n"));
    assert!(message.contains("media-1 and media-2 are in one direction of call 2"), "{message}");
    let message = error(&small("[[flow]]\nkind = \"tcp\"\ncall = 1\n"));
    assert!(message.contains("this kind of flow has no such key"), "{message}");
}

#[test]
fn a_published_value_of_one_call_has_neither_flow_nor_section() {
    let paper = |rest: &str| {
        small(&format!(
            "[[section]]\nname = \"s\"\nfrom = \"0s\"\nto = \"1s\"\n[[paper]]\n\
             location = \"Table 1\"\nmetric = \"calls.b.setup_ms\"\n{rest}\n"
        ))
    };
    let scenario = parse("x", &paper("published = \"1442\""), None).unwrap();
    assert_eq!(scenario.paper[0].metric, "calls.b.setup_ms");
    let since = parse("x", &paper("published = \"1\"\nsince = \"Faster now.\""), None).unwrap();
    assert_eq!(since.paper[0].since, "Faster now.");
    for (rest, wanted) in [
        ("published = \"1\"\nsection = \"s\"", "calls.b.setup_ms is a metric of all calls"),
        ("published = \"1\"\nflow = \"media-1\"", "calls.b.setup_ms is a metric of all calls"),
        ("published = [\"1\"]", "calls.b.setup_ms is not measured by section"),
    ] {
        let message = error(&paper(rest));
        assert!(message.contains(wanted), "{message}");
    }
    let expect = small("[[expect]]\nmetric = \"calls.setup_ms\"\nbelow = 2\n");
    let scenario = parse("x", &expect, None).unwrap();
    assert_eq!(scenario.expectations[0].metric, "calls.setup_ms");
    let expect = small("[[expect]]\nmetric = \"calls.none_ms\"\nbelow = 2\n");
    assert!(error(&expect).contains("there is no metric 'calls.none_ms'"));
}

#[test]
fn a_participant_of_an_application_has_a_network_of_its_own_of_any_kind() {
    let text = small(
        "[participant.p3]\nup = { capacity = \"500kbps\" }\n\
         [participant.p2]\nkind = \"wifi\"\nstation.phone = { rate = 7 }\n[participant.p4]\n",
    );
    let participants = parse("x", &text, None).unwrap().participants;
    let names: Vec<&str> = participants.keys().map(String::as_str).collect();
    assert_eq!(names, ["p2", "p3", "p4"]);
    let rate = weir_net::Schedule::constant(weir::units::Bitrate::from_kbps(500)).unwrap();
    assert_eq!(participants["p3"].hops[0].up.capacity, weir_net::Capacity::Schedule(rate));
    assert!(participants["p2"].access.as_ref().is_some_and(|access| access.is_wifi()));
    assert_eq!(participants["p4"].hops[0].up.capacity, weir_net::Capacity::Unlimited);
    for (name, wanted) in [
        ("p1", "p1 is behind [network]"),
        ("p0", "p2, p3 and so on"),
        ("p02", "p2, p3 and so on"),
        ("bob", "p2, p3 and so on"),
    ] {
        let table = format!("[participant.{name}]\ndown = {{ delay = \"5ms\" }}\n");
        let message = error(&small(&table));
        assert!(message.starts_with("x.toml:8: ") && message.contains(wanted), "{message}");
    }
    let message = error(&small("[participant.p2]\nspeed = \"5Mbps\"\n"));
    assert!(message.contains("unknown key 'speed'"), "{message}");
}

#[test]
fn nats_servers_restarts_and_handovers_are_read() {
    use weir_net::nat::{Behaviour, NatConfig};
    let text = small(
        "[nat.a]\n[nat.home]\nparticipants = [\"b\", \"p2\"]\n\
         mapping = \"address-and-port-dependent\"\nfiltering = \"address-dependent\"\n\
         hairpin = false\nmapping_timeout = \"30s\"\nudp = \"blocked\"\nrebind = [\"1s\", \"2s\"]\n\
         [handover.a]\nat = \"3s\"\ngap = \"200ms\"\nup = { delay = \"40ms\" }\n\
         [call]\nservers = [\"stun\", \"turn-tls\"]\nice_restart = [\"3s\"]\n",
    );
    let scenario = parse("x", &text, None).unwrap();
    let [a, home] = &scenario.nats[..] else { panic!("{:?}", scenario.nats) };
    assert_eq!((&a.participants[..], a.config), (&["a".to_owned()][..], NatConfig::default()));
    assert_eq!(home.participants, ["b", "p2"]);
    let config = NatConfig {
        mapping: Behaviour::AddressAndPortDependent,
        filtering: Behaviour::AddressDependent,
        hairpin: false,
        mapping_timeout: TimeDelta::from_secs(30),
        blocks_udp: true,
    };
    assert_eq!(home.config, config);
    assert_eq!(home.rebinds, [1, 2].map(TimeDelta::from_secs));
    assert_eq!(scenario.call.servers, [IceServer::Stun, IceServer::TurnTls]);
    assert_eq!(scenario.call.ice_restart, IceRestart::At(vec![Timestamp::from_secs(3)]));
    let [handover] = &scenario.handovers[..] else { panic!("{:?}", scenario.handovers) };
    assert_eq!(handover.participant, "a");
    assert_eq!((handover.at, handover.gap), (Timestamp::from_secs(3), TimeDelta::from_millis(200)));
    assert_eq!(handover.hops.len(), 1);
}

#[test]
fn mistakes_in_nats_and_handovers_say_what_to_write() {
    for (text, wanted) in [
        ("[nat.home]", "no participant's name; write participants"),
        ("[nat.a]\nmapping = \"cone\"", "expected \"endpoint-independent\" or"),
        ("[nat.a]\n[nat.x]\nparticipants = [\"a\"]", "a is behind nat.a already"),
        ("[nat.x]\nparticipants = [\"a\", \"a\"]", "expected different names"),
        ("[nat.x]\nparticipants = [\"server\"]", "expected different names"),
        ("[nat.a]\nmapping_timeout = \"10ms\"", "must be 1s or more"),
        ("[nat.a]\nrebind = [\"2s\", \"1s\"]", "must come after the time before it"),
        ("[nat.a]\nudp = \"closed\"", "expected \"open\" or \"blocked\""),
        ("[handover.b]\nat = \"1s\"", "a participant on A's side"),
        ("[handover.a]\ngap = \"1s\"", "at"),
        ("[call]\nservers = []", "expected a list such as"),
        ("[call]\nservers = [\"turn\"]", "expected \"stun\" or \"turn-udp\""),
        ("[call]\nrelay = \"udp\"\nservers = [\"stun\"]", "leave out one of the two"),
        ("[call]\nice_restart = \"always\"", "expected \"disconnected\""),
    ] {
        let message = error(&small(&format!("{text}\n")));
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn an_expectation_may_be_of_the_calls() {
    let expect = small("[[expect]]\nmetric = \"calls.setup_ms\"\nbelow = 5000\n");
    let scenario = parse("x", &expect, None).unwrap();
    assert_eq!(scenario.expectations[0].flow, ExpectedFlow::Calls);
    assert!(error(&format!("{expect}flow = \"media-1\"\n")).contains("a metric of all calls"));
}
