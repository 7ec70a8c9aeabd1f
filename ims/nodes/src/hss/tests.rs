use std::net::IpAddr;

use super::*;

const SERVER: &str = "sip:scscf.ims.test:6060";

fn hss() -> Hss {
    let subscribers = Subscribers::from_toml(
        "realm = 'ims.test'\nscscf = 'sip:scscf.ims.test:6060'\n\
         [[subscriber]]\nprivate = 'alice@ims.test'\npublic = ['sip:alice@ims.test']\n\
         password = 'Circle of Life'\n\
         [[subscriber]]\nprivate = 'bob@ims.test'\n\
         public = ['sip:bob@ims.test', 'sip:office!.*!@ims.test', 'tel:+1']\nbarred = ['tel:+1']\n\
         aka = { k = '465b5ce8b199b49faa5f0a2ee238a6bc', \
         opc = 'cd63cb71954a9f4e48a5994e37a02baf' }",
    );
    let identity = Identity {
        host: "hss.ims.test".into(),
        realm: "ims.test".into(),
        address: IpAddr::from([127, 0, 0, 1]),
        application: base::CX,
        peers: Vec::new(),
    };
    Hss::new(identity, subscribers.unwrap())
}

fn request(command: u32, private: &str, public: &str) -> Message {
    Message::request(command, base::CX)
        .with(avp::SESSION_ID.text("s;1"))
        .with(avp::USER_NAME.text(private))
        .with(avp::PUBLIC_IDENTITY.text(public))
}

fn alice(command: u32) -> Message {
    request(command, "alice@ims.test", "sip:alice@ims.test")
}

fn assignment(kind: u32) -> Message {
    alice(base::SERVER_ASSIGNMENT)
        .with(avp::SERVER_NAME.text(SERVER))
        .with(avp::SERVER_ASSIGNMENT_TYPE.number(kind))
}

fn with_scheme(request: Message, scheme: &str) -> Message {
    let scheme = avp::SIP_AUTHENTICATION_SCHEME.text(scheme);
    request.with(avp::SERVER_NAME.text(SERVER)).with(avp::SIP_AUTH_DATA_ITEM.group([scheme]))
}

fn result(hss: &mut Hss, request: &Message) -> u32 {
    hss.on_request(request, [0; 16]).result().unwrap()
}

// [TS 29.228 §6.1.1.1]
#[test]
fn a_registration_goes_from_first_to_subsequent_to_none() {
    let mut hss = hss();
    let uar = alice(base::USER_AUTHORIZATION);
    let first = hss.on_request(&uar, [0; 16]);
    // The 2001 of Cx stands in an Experimental-Result and not in a Result-Code.
    assert_eq!(first.find(&avp::RESULT_CODE), None);
    assert_eq!(first.result(), Some(FIRST_REGISTRATION));
    let capabilities = first.find(&avp::SERVER_CAPABILITIES).unwrap();
    assert_eq!(capabilities.find(&avp::SERVER_NAME).unwrap().text(), Some(SERVER));

    let saa = hss.on_request(&assignment(1), [0; 16]);
    assert_eq!(saa.number(&avp::RESULT_CODE), Some(base::SUCCESS));
    assert!(saa.text(&avp::USER_DATA).unwrap().contains("<Identity>sip:alice@ims.test</Identity>"));

    let again = hss.on_request(&uar, [0; 16]);
    assert_eq!(again.result(), Some(SUBSEQUENT_REGISTRATION));
    assert_eq!(again.text(&avp::SERVER_NAME), Some(SERVER));

    let saa = hss.on_request(&assignment(5), [0; 16]);
    assert_eq!((saa.result(), saa.find(&avp::USER_DATA)), (Some(base::SUCCESS), None));
    assert_eq!(result(&mut hss, &uar), FIRST_REGISTRATION);
    let leave = uar.with(avp::USER_AUTHORIZATION_TYPE.number(DE_REGISTRATION));
    assert_eq!(result(&mut hss, &leave), IDENTITY_NOT_REGISTERED);
}

// [TS 29.228 §6.1.1.1]
#[test]
fn identities_must_exist_and_belong_together() {
    let mut hss = hss();
    let uar = |private, public| request(base::USER_AUTHORIZATION, private, public);
    assert_eq!(result(&mut hss, &uar("eve@ims.test", "sip:alice@ims.test")), USER_UNKNOWN);
    assert_eq!(result(&mut hss, &uar("alice@ims.test", "sip:eve@ims.test")), USER_UNKNOWN);
    assert_eq!(result(&mut hss, &uar("alice@ims.test", "sip:bob@ims.test")), IDENTITIES_DONT_MATCH);
    assert_eq!(result(&mut hss, &uar("bob@ims.test", "tel:+1")), ROAMING_NOT_ALLOWED);
    // A wildcarded identity covers what its pattern covers.
    assert_eq!(result(&mut hss, &uar("bob@ims.test", "sip:office7@ims.test")), FIRST_REGISTRATION);
    let nameless = Message::request(base::USER_AUTHORIZATION, base::CX);
    assert_eq!(result(&mut hss, &nameless), base::MISSING_AVP);
}

// [TS 29.229 §6.3.36]
#[test]
fn digest_gives_h_of_a1() {
    let mut hss = hss();
    for scheme in ["SIP Digest", "Digest-MD5", "Unknown"] {
        let maa = hss.on_request(&with_scheme(alice(base::MULTIMEDIA_AUTH), scheme), [0; 16]);
        assert_eq!(maa.result(), Some(base::SUCCESS), "{scheme}");
        let item = maa.find(&avp::SIP_AUTH_DATA_ITEM).unwrap();
        let digest = item.find(&avp::SIP_DIGEST_AUTHENTICATE).unwrap();
        let expected = hex(&md5(b"alice@ims.test:ims.test:Circle of Life"));
        assert_eq!(digest.find(&avp::DIGEST_HA1).unwrap().text(), Some(expected.as_str()));
    }
    let maa = with_scheme(alice(base::MULTIMEDIA_AUTH), "NASS-Bundled");
    assert_eq!(result(&mut hss, &maa), AUTH_SCHEME_NOT_SUPPORTED);
    let maa = with_scheme(alice(base::MULTIMEDIA_AUTH), "Digest-AKAv1-MD5");
    assert_eq!(result(&mut hss, &maa), AUTH_SCHEME_NOT_SUPPORTED);
}

// [TS 33.203 §6.1.1, 6.1.3]
#[test]
fn aka_counts_sqn_and_follows_a_resynchronisation() {
    let mut hss = hss();
    let bob = || request(base::MULTIMEDIA_AUTH, "bob@ims.test", "sip:bob@ims.test");
    let (secrets, amf) = hss.subscribers.subscriber[1].aka.as_ref().unwrap().secrets().unwrap();
    let challenge = |maa: &Message| {
        let item = maa.find(&avp::SIP_AUTH_DATA_ITEM).unwrap();
        let octets = |of| item.find(of).unwrap().octets().unwrap().to_vec();
        (octets(&avp::SIP_AUTHENTICATE), octets(&avp::SIP_AUTHORIZATION))
    };
    for (round, sqn) in [32_u8, 64].into_iter().enumerate() {
        let random = [u8::try_from(round).unwrap(); 16];
        let maa = hss.on_request(&with_scheme(bob(), "Digest-AKAv1-MD5"), random);
        let sqn = [0, 0, 0, 0, 0, sqn];
        let vector = secrets.vector(random, sqn, amf);
        let expected = [random, vector.autn(sqn, amf)].concat();
        assert_eq!(challenge(&maa), (expected, vector.res.to_vec()));
    }
    // The terminal has seen SQN 0x0102e0.
    let seen = [0, 0, 0, 1, 2, 0xe0];
    let vector = secrets.vector([9; 16], seen, [0; 2]);
    let hidden: Vec<u8> = seen.iter().zip(vector.ak_star).map(|(a, b)| a ^ b).collect();
    let sent = [&[9; 16][..], &hidden, &vector.mac_s].concat();
    let resync = |sent: &[u8]| {
        let scheme = avp::SIP_AUTHENTICATION_SCHEME.text("Digest-AKAv1-MD5");
        let item = [scheme, avp::SIP_AUTHORIZATION.octets(sent)];
        bob().with(avp::SIP_AUTH_DATA_ITEM.group(item))
    };
    let maa = hss.on_request(&resync(&sent), [7; 16]);
    let sqn = [0, 0, 0, 1, 3, 0];
    let autn = secrets.vector([7; 16], sqn, amf).autn(sqn, amf);
    assert_eq!(challenge(&maa).0, [[7; 16], autn].concat());
    assert_eq!(result(&mut hss, &resync(&sent[..20])), base::INVALID_AVP_VALUE);
}

// [TS 29.228 §6.1.4.1]
#[test]
fn a_called_user_is_found_where_it_is_registered() {
    let mut hss = hss();
    let lir = Message::request(base::LOCATION_INFO, base::CX)
        .with(avp::PUBLIC_IDENTITY.text("sip:alice@ims.test"));
    assert_eq!(result(&mut hss, &lir), IDENTITY_NOT_REGISTERED);
    hss.on_request(&assignment(1), [0; 16]);
    let lia = hss.on_request(&lir, [0; 16]);
    assert_eq!(lia.result(), Some(base::SUCCESS));
    assert_eq!(lia.text(&avp::SERVER_NAME), Some(SERVER));
    // An S-CSCF that keeps an unregistered user.
    hss.on_request(&assignment(3), [0; 16]);
    assert_eq!(result(&mut hss, &lir), UNREGISTERED_SERVICE);
}

#[test]
fn registrations_survive_a_restart() {
    let mut before = hss();
    before.on_request(&assignment(1), [0; 16]);
    let mut after = hss();
    after.restore(&(before.state() + "eve@ims.test sip:x 1 0\nnonsense\n"));
    assert_eq!(after.state(), before.state());
    assert_eq!(result(&mut after, &alice(base::USER_AUTHORIZATION)), SUBSEQUENT_REGISTRATION);
}

#[test]
fn other_commands_are_refused_as_protocol_errors() {
    let answer = hss().on_request(&alice(base::AA), [0; 16]);
    assert_eq!(answer.result(), Some(base::COMMAND_UNSUPPORTED));
    assert!(answer.is_error);
}
