use std::net::IpAddr;

use super::*;

const TERMINAL: Ipv4Addr = Ipv4Addr::new(10, 46, 1, 2);

fn pcrf() -> Pcrf {
    let policy = Policy::from_toml(
        "capacity_kbps = 4000\nterminals = ['10.46.']\n\
         [media.audio]\nqci = 1\narp = 2\nmost_kbps = 128\n\
         [media.video]\nqci = 2\narp = 3\nmost_kbps = 3000\nguaranteed_percent = 50\n\
         [media.application]\nqci = 9\narp = 9\nmost_kbps = 9000",
    );
    let identity = Identity {
        host: "pcrf.ims.test".into(),
        realm: "ims.test".into(),
        address: IpAddr::from([127, 0, 0, 1]),
        application: base::RX,
        peers: Vec::new(),
    };
    Pcrf::new(identity, policy.unwrap())
}

fn aar(session: &str) -> Message {
    Message::request(base::AA, base::RX)
        .with(avp::SESSION_ID.text(session))
        .with(avp::ORIGIN_HOST.text("pcscf.ims.test"))
        .with(avp::FRAMED_IP_ADDRESS.octets(&TERMINAL.octets()))
}

/// A medium of this type and this rate in both directions.
fn medium(number: u32, kind: u32, bps: u32) -> Avp {
    let rules = [
        "permit out 17 from 10.46.2.2 4000 to 10.46.1.2 5000",
        "permit in 17 from 10.46.1.2 5000 to 10.46.2.2 4000",
    ];
    let flow = rules.map(|rule| avp::FLOW_DESCRIPTION.text(rule));
    let flow = [vec![avp::FLOW_NUMBER.number(1)], flow.to_vec()].concat();
    avp::MEDIA_COMPONENT_DESCRIPTION.group([
        avp::MEDIA_COMPONENT_NUMBER.number(number),
        avp::MEDIA_SUB_COMPONENT.group(flow),
        avp::MEDIA_TYPE.number(kind),
        avp::MAX_REQUESTED_BANDWIDTH_UL.number(bps),
        avp::MAX_REQUESTED_BANDWIDTH_DL.number(bps),
    ])
}

fn call(session: &str) -> Message {
    aar(session).with(medium(1, 0, 64_000)).with(medium(2, 1, 2_000_000))
}

fn installed(decision: Option<Decision>) -> Vec<Bearer> {
    let Some(Decision::Install { bearers, terminal, .. }) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(terminal, TERMINAL);
    bearers
}

fn refused(pcrf: &mut Pcrf, request: &Message) -> u32 {
    let (answer, decision) = pcrf.on_request(request);
    let Some(Decision::Refuse { code, .. }) = decision else { panic!("{decision:?}") };
    assert_eq!(answer.result(), Some(code));
    code
}

// [TS 29.213 §6.3]
#[test]
fn a_call_gets_a_bearer_for_each_medium_and_loses_them_at_its_end() {
    let mut pcrf = pcrf();
    let (answer, decision) = pcrf.on_request(&call("s;1"));
    assert_eq!(answer.number(&avp::RESULT_CODE), Some(base::SUCCESS));
    let bearers = installed(decision);
    assert_eq!(bearers.len(), 2);
    let rates = |bearer: &Bearer| (bearer.qci, bearer.gbr_up_bps, bearer.mbr_down_bps);
    assert_eq!(rates(&bearers[0]), (1, 67_200, 67_200));
    assert_eq!(rates(&bearers[1]), (2, 1_050_000, 2_100_000));
    assert_eq!(bearers[0].filters.len(), 2);
    assert_eq!(
        bearers[0].filters[1].to_string(),
        "permit in 17 from 10.46.1.2 5000 to 10.46.2.2 4000"
    );

    let str =
        Message::request(base::SESSION_TERMINATION, base::RX).with(avp::SESSION_ID.text("s;1"));
    let (answer, decision) = pcrf.on_request(&str);
    assert_eq!(answer.result(), Some(base::SUCCESS));
    assert_eq!(decision, Some(Decision::Remove { session: "s;1".into() }));
    assert_eq!(refused(&mut pcrf, &str), base::UNKNOWN_SESSION_ID);
}

// [TS 29.214 §4.4.2]
#[test]
fn a_second_aar_changes_only_the_components_that_it_names() {
    let mut pcrf = pcrf();
    pcrf.on_request(&call("s;1"));
    let (_, decision) = pcrf.on_request(&aar("s;1").with(medium(2, 1, 400_000)));
    let rates: Vec<u32> = installed(decision).iter().map(|one| one.mbr_up_bps).collect();
    assert_eq!(rates, [67_200, 420_000]);
    let removed = avp::MEDIA_COMPONENT_DESCRIPTION
        .group([avp::MEDIA_COMPONENT_NUMBER.number(2), avp::FLOW_STATUS.number(REMOVED)]);
    let (_, decision) = pcrf.on_request(&aar("s;1").with(removed));
    assert_eq!(installed(decision).len(), 1);
}

// [TS 29.214 §5.5]
#[test]
fn what_the_policy_does_not_allow_is_refused_with_its_code() {
    let mut pcrf = pcrf();
    let text = aar("s;1").with(medium(1, 5, 1000));
    assert_eq!(refused(&mut pcrf, &text), REQUESTED_SERVICE_NOT_AUTHORIZED);
    let fast = aar("s;1").with(medium(1, 0, 128_001));
    assert_eq!(refused(&mut pcrf, &fast), REQUESTED_SERVICE_NOT_AUTHORIZED);
    let mut stranger = call("s;1");
    stranger.avps[2] = avp::FRAMED_IP_ADDRESS.octets(&[10, 47, 0, 1]);
    assert_eq!(refused(&mut pcrf, &stranger), IP_CAN_SESSION_NOT_AVAILABLE);
    let mut nowhere = call("s;1");
    nowhere.avps.remove(2);
    assert_eq!(refused(&mut pcrf, &nowhere), base::MISSING_AVP);
    let numberless = avp::MEDIA_COMPONENT_DESCRIPTION.group([avp::MEDIA_TYPE.number(0)]);
    assert_eq!(refused(&mut pcrf, &aar("s;1").with(numberless)), INVALID_SERVICE_INFORMATION);
    let flow =
        avp::MEDIA_SUB_COMPONENT.group([avp::FLOW_DESCRIPTION.text("deny out ip from any to any")]);
    let component = [avp::MEDIA_COMPONENT_NUMBER.number(1), avp::MEDIA_TYPE.number(0), flow];
    let component = avp::MEDIA_COMPONENT_DESCRIPTION.group(component);
    assert_eq!(refused(&mut pcrf, &aar("s;1").with(component)), FILTER_RESTRICTIONS);
    assert_eq!(pcrf.sessions().count(), 0);
}

#[test]
fn guaranteed_rates_above_the_capacity_are_refused_until_a_call_ends() {
    let mut pcrf = pcrf();
    for session in ["s;1", "s;2", "s;3"] {
        installed(pcrf.on_request(&call(session)).1);
    }
    assert_eq!(refused(&mut pcrf, &call("s;4")), REQUESTED_SERVICE_NOT_AUTHORIZED);
    // Without a guarantee there is nothing to admit.
    installed(pcrf.on_request(&aar("s;5").with(medium(1, 3, 9_000_000))).1);
    // A change of a session does not count its old bearers.
    installed(pcrf.on_request(&call("s;3")).1);
    let str =
        Message::request(base::SESSION_TERMINATION, base::RX).with(avp::SESSION_ID.text("s;1"));
    pcrf.on_request(&str);
    installed(pcrf.on_request(&call("s;4")).1);
}

// [TS 29.214 §4.4.5]
#[test]
fn a_call_for_which_the_network_has_no_room_is_refused_and_takes_nothing() {
    let mut pcrf = pcrf();
    let request = call("1");
    installed(pcrf.on_request(&request).1);
    let (answer, decision) = pcrf.withdraw(&request, "no room");
    assert_eq!(answer.result(), Some(REQUESTED_SERVICE_NOT_AUTHORIZED));
    assert!(matches!(decision, Decision::Refuse { session, .. } if session == "1"));
    // Nothing of it is left: the capacity is there for others, and nobody can end it.
    assert_eq!(pcrf.sessions().count(), 0);
    installed(pcrf.on_request(&call("2")).1);
}

#[test]
fn a_subscription_to_signalling_gets_no_bearer() {
    let mut pcrf = pcrf();
    let (answer, decision) = pcrf.on_request(&aar("s;1"));
    assert_eq!((answer.result(), decision), (Some(base::SUCCESS), None));
}

// [TS 29.214 §4.4.6]
#[test]
fn abort_and_report_go_to_the_function_that_opened_the_session() {
    let mut pcrf = pcrf();
    pcrf.on_request(&call("s;1"));
    let asr = pcrf.abort("s;1", BEARER_RELEASED).unwrap();
    assert_eq!(asr.name(), "ASR");
    assert_eq!(asr.text(&avp::DESTINATION_HOST), Some("pcscf.ims.test"));
    assert_eq!(asr.number(&avp::ABORT_CAUSE), Some(BEARER_RELEASED));
    let rar = pcrf.report("s;1", LOSS_OF_BEARER).unwrap();
    assert_eq!(rar.number(&avp::SPECIFIC_ACTION), Some(LOSS_OF_BEARER));
    assert_eq!(pcrf.abort("s;2", BEARER_RELEASED), None);
}

#[test]
fn filters_are_read_and_written() {
    for text in ["permit out 17 from any to 10.46.1.2 5000", "permit in 17 from 10.46.1.2 to any 9"]
    {
        assert_eq!(Filter::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "",
        "permit",
        "permit out 6 from any to any",
        "permit up 17 from any to any",
        "permit out 17 from any 70000 to any",
        "permit out 17 from any",
    ] {
        assert_eq!(Filter::parse(text), None, "{text}");
    }
}

#[test]
fn sessions_and_their_bearers_are_limited() {
    let mut pcrf = pcrf();
    for number in 0..MOST_SESSIONS {
        let answer = pcrf.on_request(&aar(&number.to_string())).0;
        assert_eq!(answer.result(), Some(base::SUCCESS), "{number}");
    }
    assert_eq!(refused(&mut pcrf, &aar("one more")), base::UNABLE_TO_COMPLY);
    // One of those that stand can change, up to its own limit.
    let most = u32::try_from(MOST_BEARERS).unwrap();
    let with = |count| (0..count).fold(aar("7"), |aar, number| aar.with(medium(number, 3, 1)));
    assert_eq!(installed(pcrf.on_request(&with(most)).1).len(), MOST_BEARERS);
    assert_eq!(refused(&mut pcrf, &with(most + 1)), INVALID_SERVICE_INFORMATION);
    let end = Message::request(base::SESSION_TERMINATION, base::RX).with(avp::SESSION_ID.text("8"));
    assert_eq!(pcrf.on_request(&end).0.result(), Some(base::SUCCESS));
    assert_eq!(pcrf.on_request(&aar("one more")).0.result(), Some(base::SUCCESS));
}
