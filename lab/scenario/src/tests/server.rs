//! A simulated forwarding server.

use weir_sim::{Core, TrackKind};

use super::*;

const HEAD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n";
const NETWORK: &str = "[network.down]\ncapacity = \"2Mbps\"\n";
const DOWN: &str = "[[flow]]\ndirection = \"down\"\n";

fn text(top: &str, flows: &str) -> String {
    format!("{HEAD}{top}\n{NETWORK}{flows}")
}

fn sfu(publishers: &str, flows: &str) -> String {
    text(&format!("topology = \"sfu\"\n{publishers}"), flows)
}

#[test]
fn a_server_has_publishers_and_its_media_flows_watch_them() {
    let publishers = "[[publisher]]\ncount = 2\nshown = [[\"0s\", [1280, 720]], [\"9s\", [0, 0]]]\n\
        [[publisher]]\nkind = \"audio\"\nrate = \"30kbps\"\n";
    let flows = format!("{DOWN}{DOWN}watches = [1, 3]\n");
    let scenario = parse("x.toml", &sfu(publishers, &flows), None).unwrap();
    let server = scenario.server.as_ref().unwrap();
    assert_eq!(server.core, Core::Weir);
    let kinds: Vec<TrackKind> = server.publishers.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [TrackKind::Camera, TrackKind::Camera, TrackKind::Audio]);
    assert_eq!(server.publishers[0].layers.len(), 3);
    assert_eq!(server.publishers[1].shown[1], (Timestamp::from_secs(9), (0, 0)));
    assert_eq!(media(&scenario.flows[0]).watches, [0, 1, 2]);
    assert_eq!(media(&scenario.flows[1]).watches, [0, 2]);
    assert_eq!(media(&scenario.flows[0]).repair, Some(Repair::NONE.with_nack(true)));
    let config = scenario.sim_config(LabAlgorithm::Gcc);
    assert_eq!(config.publishers.len(), 3);
}

#[test]
fn what_a_server_cannot_do_is_refused_in_one_line() {
    let one = "[[publisher]]\n";
    let cases = [
        (text("[[publisher]]", DOWN), "only a forwarding server has it; write topology = \"sfu\""),
        (text("topology = \"star\"", DOWN), "expected \"sfu\""),
        (sfu("", DOWN), "nobody sends to the server; write [[publisher]]"),
        (sfu(one, "[[flow]]\n"), "media-1 comes from the server; write direction = \"down\""),
        (sfu(one, "[[flow]]\nkind = \"tcp\"\n"), "nobody watches"),
        (sfu(one, &format!("{DOWN}watches = [2]\n")), "must be a whole number from 1 to 1"),
        (sfu("[[publisher]]\ncount = 3\n", &format!("{DOWN}watches = [2, 1]\n")), "must rise"),
        (sfu(one, &format!("{DOWN}feedback = \"rr\"\n")), "needs feedback \"twcc\" or \"ccfb\""),
        (sfu(one, &format!("{DOWN}repair = {{ fec = true }}\n")), "leave out fec"),
        (
            sfu(one, &format!("{DOWN}sender = \"a\"\n")),
            "a subscriber gets what [[publisher]] sends",
        ),
        (sfu("[[publisher]]\nkind = \"audio\"\nfps = 30\n", DOWN), "audio has none of it"),
        (sfu("[[publisher]]\nrate = \"1Mbps\"\n", DOWN), "the bitrates of pictures are in layers"),
        (sfu("[[publisher]]\nshown = [1280]\n", DOWN), "expected width and height"),
        (sfu("[[publisher]]\nshown = [[\"5s\", [1, 1]]]\n", DOWN), "the first step must be at 0s"),
        (sfu("[[publisher]]\nstart = \"9s\"\nstop = \"8s\"\n", DOWN), "stop must come after start"),
        (sfu("[[publisher]]\nlayers = []\n", DOWN), "expected a list such as"),
        (sfu("[[publisher]]\npriority = 0\n", DOWN), "must be above zero"),
        (
            sfu(
                "[[publisher]]\nstructure = \"svc\"\nlayers = [{ size = [640, 360], \
                 rate = [[\"0s\", \"1Mbps\"], [\"5s\", \"0bps\"]] }]\n",
                DOWN,
            ),
            "a layer of SVC cannot stop",
        ),
        (
            sfu(
                "[[publisher]]\nlayers = [{ size = [640, 360], rate = \"1Mbps\" }, \
                 { size = [320, 180], rate = \"1Mbps\" }]\n",
                DOWN,
            ),
            "each picture must be larger than the one before",
        ),
    ];
    for (text, words) in cases {
        let error = error(&text);
        assert!(error.contains(words), "{error}\nand not: {words}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn only_a_subscriber_watches() {
    let text = text("", "[[flow]]\nwatches = [1]\n");
    assert!(error(&text).contains("only a subscriber watches; write topology = \"sfu\""));
}
