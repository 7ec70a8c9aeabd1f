//! Flows of every kind.

use super::*;
use crate::{Quic, QuicAck, QuicCongestion, QuicDelivery, QuicSource, QuicStack};

#[test]
fn traffic_of_every_kind_is_read_and_counted_by_kind() {
    let text = small(
        "[[flow]]\nkind = \"tcp\"\ncongestion = \"reno\"\n\
         [[flow]]\nkind = \"tcp\"\ncount = 2\n\
         short = { size = [\"30KB\", \"50KB\"], idle = \"10s\", starts = \"idle\" }\n\
         [[flow]]\nkind = \"udp\"\nrate = [[\"0s\", \"3Mbps\"], [\"40s\", \"1500kbps\"]]\n\
         [[flow]]\nkind = \"audio\"\n",
    );
    let flows = parse("x", &text, None).unwrap().flows;
    let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["media-1", "tcp-1", "tcp-2", "tcp-3", "udp-1", "audio-1"]);
    assert_eq!(flows[1].traffic, Traffic::Tcp(Tcp::new(Congestion::Reno)));
    let kb = |kb: u64| DataSize::from_bytes(1_000 * kb);
    let short = ShortTransfers::new(kb(30), kb(50), TimeDelta::from_secs(10));
    let cubic = Congestion::Cubic(Cubic::Rfc9438);
    let tcp = Traffic::Tcp(Tcp::new(cubic).with_short(Some(short.with_starts_idle(true))));
    assert_eq!((&flows[2].traffic, &flows[3].traffic), (&tcp, &tcp));
    let rate = Schedule::new(kbps(&[(0, 3000), (40, 1500)])).unwrap();
    let udp = Udp::new(rate, DataSize::from_bytes(1500));
    assert_eq!(flows[4].traffic, Traffic::Udp(udp));
    assert_eq!(flows[5].traffic.kind(), "audio");
}

#[test]
fn a_media_flow_says_what_its_controller_and_its_receiver_are_told() {
    let text = small(
        "ecn = \"l4s\"\npriority = 2\nsender = \"studio\"\ntolerate_random_loss = true\n\
         feedback = [[\"0s\", \"twcc\"], [\"20s\", \"rr\"]]\ndelay = \"40ms\"\n\
         pauses = [[\"10s\", \"20s\"], [\"30s\", \"31s\"]]",
    );
    let flow = parse("x", &text, None).unwrap().flows.remove(0);
    let settings = media(&flow).settings;
    assert_eq!((settings.ecn, settings.priority), (EcnMode::L4s, 2.0));
    assert!(settings.tolerate_random_loss);
    assert_eq!(media(&flow).sender.as_deref(), Some("studio"));
    let at = Timestamp::from_secs;
    assert_eq!(
        media(&flow).feedback,
        [(at(0), Feedback::Twcc), (at(20), Feedback::ReceiverReports)]
    );
    assert_eq!(flow.access_delay, TimeDelta::from_millis(40));
    assert_eq!(flow.pauses, [at(10)..at(20), at(30)..at(31)]);
}

#[test]
fn a_media_flow_has_a_limit_of_its_source_and_a_clock_of_its_receiver() {
    let text = small(
        "source_limit = [[\"0s\", \"2Mbps\"], [\"20s\", \"500kbps\"]]\n\
         receiver_clock = { skew_ppm = -200, jumps = [[\"30s\", \"1s\"]] }",
    );
    let flow = parse("x", &text, None).unwrap().flows.remove(0);
    let limit = Schedule::new(kbps(&[(0, 2000), (20, 500)])).unwrap();
    assert_eq!(media(&flow).source_limit, Some(limit));
    let jump = (Timestamp::from_secs(30), TimeDelta::from_secs(1));
    assert_eq!(media(&flow).receiver_clock, ReceiverClock::new(-200.0, vec![jump]));
    let text = small(
        "receiver_clock = { ahead = \"1h\", jumps = [[\"20s\", \"-3s\"]], restarts = [\"30s\"] }",
    );
    let flow = parse("x", &text, None).unwrap().flows.remove(0);
    let back = (Timestamp::from_secs(20), -TimeDelta::from_secs(3));
    let clock = ReceiverClock::new(0.0, vec![back]).ahead_by(TimeDelta::from_secs(3_600));
    let clock = clock.with_restarts(&[Timestamp::from_secs(30)]);
    assert_eq!(media(&flow).receiver_clock, clock);
    for (keys, wanted) in [
        ("source_limit = [[\"5s\", \"2Mbps\"]]", "source_limit"),
        ("receiver_clock = { skew_ppm = 2000 }", "must be between -1000 and 1000 ppm"),
        ("receiver_clock = { jumps = [[\"30s\", \"1s\"], [\"20s\", \"1s\"]] }", "must be later"),
        ("receiver_clock = { jumps = \"30s\" }", "expected jumps"),
        ("receiver_clock = { jumps = [[\"5s\", \"-6s\"]] }", "write ahead"),
        ("receiver_clock = { restarts = [\"30s\", \"20s\"] }", "later than the one before"),
        ("kind = \"tcp\"\nsource_limit = \"1Mbps\"", "has no such key"),
    ] {
        let error = error(&small(keys));
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_flow_crosses_the_hops_that_it_names_or_all() {
    let hops = "[[network.hop]]\nup = { capacity = \"2Mbps\" }\n[[network.hop]]\n[[flow]]\n";
    let text = with("[network.up]\ncapacity = \"2Mbps\"\n[[flow]]\n", hops);
    let scenario = parse("x", &format!("{text}[[flow]]\nhops = [2]"), None).unwrap();
    assert_eq!(scenario.hops.len(), 2);
    assert_eq!(scenario.hops[1].up, LinkConfig::unlimited(TimeDelta::ZERO));
    assert_eq!((scenario.flows[0].hops.clone(), scenario.flows[1].hops.clone()), (0..2, 1..2));
    assert_eq!(scenario.only_hop(), None);
    assert_eq!(
        error(&format!("{text}hops = [2, 1]")),
        "x.toml:9: flow[1].hops: hops must follow each other, as in [1, 2]"
    );
}

#[test]
fn what_flows_have_in_common_stands_once_and_a_variant_changes_all() {
    let text = with(
        "[[flow]]\n",
        "[media]\necn = \"classic\"\npriority = 2\n[tcp]\ncongestion = \"reno\"\n\
         [[flow]]\n[[flow]]\npriority = 3\n[[flow]]\nkind = \"tcp\"\n\
         [variant.plain]\nmedia.ecn = \"off\"\ntcp.congestion = \"bbr\"\n",
    );
    let seen = |scenario: Scenario| -> Vec<String> {
        let one = |flow: &Flow| match &flow.traffic {
            Traffic::Media(media) => {
                format!("{:?} {}", media.settings.ecn, media.settings.priority)
            }
            Traffic::Tcp(tcp) => format!("{:?}", tcp.congestion),
            other => panic!("{other:?} is of another kind"),
        };
        scenario.flows.iter().map(one).collect()
    };
    let base = seen(parse("x", &text, None).unwrap());
    assert_eq!(base, ["Classic 2", "Classic 3", "Reno"]);
    let plain = seen(parse_variant("x", &text, "plain", None).unwrap());
    assert_eq!(plain, ["Off 2", "Off 3", "Bbr"]);
    let wrong = text.replace("priority = 2", "rate = \"1Mbps\"");
    assert!(
        error(&wrong).starts_with("x.toml:9: media: unknown key 'rate'; "),
        "{}",
        error(&wrong)
    );
}

#[test]
fn flows_that_would_fill_the_memory_with_rows_are_refused() {
    let day = |count: usize| {
        let text = small(&format!("count = {count}")).replace("\"60s\"", "\"24h\"");
        parse("x", &text, None)
    };
    assert_eq!(day(4).unwrap().flows.len(), 4);
    let error = day(5).unwrap_err().to_string();
    assert_eq!(
        error,
        "x:1: the flows last 120.0 h in total; write fewer or shorter ones, of at most 100 h"
    );
}

/// What the packets of a TCP flow with these keys carry; `None` if the keys are refused.
fn ecn_of_tcp(keys: &str) -> Option<EcnMode> {
    let text = with("[[flow]]\n", &format!("[[flow]]\nkind = \"tcp\"\n{keys}\n"));
    let scenario = parse("x", &text, None).ok()?;
    match &scenario.flows[0].traffic {
        Traffic::Tcp(tcp) => Some(tcp.ecn),
        other => panic!("{other:?} is of another kind"),
    }
}

// [RFC9331 §4.3]
#[test]
fn prague_is_l4s_and_no_other_tcp_is() {
    let prague = "congestion = \"prague\"";
    assert_eq!(ecn_of_tcp(prague), Some(EcnMode::L4s));
    assert_eq!(ecn_of_tcp(&format!("{prague}\necn = \"classic\"")), None);
    assert_eq!(ecn_of_tcp("ecn = \"classic\""), Some(EcnMode::Classic));
    assert_eq!(ecn_of_tcp("ecn = \"l4s\""), None);
}

/// The QUIC flow of a scenario with these keys.
fn quic(keys: &str) -> Quic {
    let text = small(&format!("[[flow]]\nkind = \"quic\"\n{keys}"));
    let flow = parse("x", &text, None).unwrap().flows.remove(1);
    assert_eq!(flow.name, "quic-1");
    match flow.traffic {
        Traffic::Quic(quic) => quic,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quic_flow_has_a_controller_a_stack_a_source_and_acks() {
    let usual = quic("start_bitrate = \"1Mbps\"\nmax_bitrate = \"8Mbps\"");
    let [start, max] = [1_000, 8_000].map(Bitrate::from_kbps);
    assert_eq!(usual.source, QuicSource::Adaptive { start, max, headroom: 0.9 });
    assert_eq!((usual.congestion, usual.ack), (QuicCongestion::Media, QuicAck::new()));
    assert_eq!(usual.media.settings.limits.max(), max);
    let other = quic(
        "congestion = \"new-reno\"\nstack = \"quinn\"\nsource = { kind = \"bulk\" }\n\
         ack = { packets = 10, delay = \"100ms\", receive_times = true }",
    );
    assert_eq!((other.congestion, other.stack), (QuicCongestion::NewReno, QuicStack::Quinn));
    assert_eq!(other.source, QuicSource::Bulk);
    let rare = QuicAck::new().with_packets(10).with_delay(TimeDelta::from_millis(100));
    assert_eq!(other.ack, rare.with_receive_times(true));
    let fixed = quic(
        "source = { kind = \"fixed\", rate = \"10Mbps\" }\necn = \"l4s\"\n\
         delivery = \"datagrams\"",
    );
    assert_eq!((usual.delivery, fixed.delivery), (QuicDelivery::Streams, QuicDelivery::Datagrams));
    assert_eq!(fixed.source, QuicSource::Fixed(Bitrate::from_kbps(10_000)));
    assert_eq!(fixed.media.settings.ecn, EcnMode::L4s);
}

#[test]
fn only_a_quic_flow_under_a_controller_for_media_is_media() {
    let of = |keys: &str| parse("x", &small(&format!("kind = \"quic\"\n{keys}")), None).unwrap();
    assert!(of("").is_controlled());
    assert!(!of("controller = \"gcc\"").is_controlled());
    let rival = of("congestion = \"cubic\"");
    assert!(!rival.is_controlled() && rival.flows[0].traffic.media().is_none());
    assert_eq!(of("").flows[0].traffic.media().map(|media| media.controller), Some(None));
}

#[test]
fn what_a_quic_flow_cannot_have_is_refused() {
    for (keys, words) in [
        ("source = { kind = \"bulk\", rate = \"1Mbps\" }", "this kind of source has no such key"),
        ("source = { kind = \"fixed\" }", "rate"),
        ("source = { kind = \"adaptive\", start = \"9Mbps\", max = \"1Mbps\" }", "not be above"),
        ("source = { kind = \"bulk\" }\npauses = [[\"1s\", \"2s\"]]", "cannot pause"),
        ("source = { kind = \"bulk\" }\ndelivery = \"datagrams\"", "without frames"),
        ("congestion = \"cubic\"\necn = \"l4s\"", "off"),
        ("repair = { nack = true }", "this kind of flow has no such key"),
        ("source = { kind = \"adaptive\", headroom = 0 }", "above zero"),
    ] {
        let text = small(&format!("[[flow]]\nkind = \"quic\"\n{keys}"));
        let message = error(&text);
        assert!(message.contains(words), "{keys}: {message}");
    }
}
