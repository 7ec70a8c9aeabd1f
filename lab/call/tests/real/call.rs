//! Tests with real calls between browsers through the emulator. They need root and Chromium.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir::units::{TimeDelta, Timestamp};
use weir_call::capture::{CapturePlan, Reader};
use weir_call::quality::{Frame, ReceivedFrames, received_frames};
use weir_call::sound::heard_speech;
use weir_call::witness::{CallEnds, Compared, Counted, StreamDirection, StreamRole};
use weir_call::{CallConfig, CallError, CallOutcome, Peer, Progress, run_call};
use weir_net::LossModel;
use weir_scenario::{Scenario, parse};
use weir_sim::Content;

/// Serializes the tests: calls share the processors, and each test checks that it left nothing
/// behind.
static ALONE: Mutex<()> = Mutex::new(());

/// A failed test poisons the lock; the next test takes it anyway.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the error means that this machine cannot make calls.
fn is_missing_a_part(error: &CallError) -> bool {
    use CallError::{Emulator, NoBrowser, NoGstreamer, NoJanus, NoPlugin, NoRelay};
    use weir_emu::Error::{NoTun, NotRoot};
    matches!(
        error,
        NoBrowser(_) | NoGstreamer(_) | NoPlugin | NoJanus | NoRelay | Emulator(NotRoot | NoTun)
    )
}

/// 2 Mbit/s, 25 ms in each direction, 8 s, small pictures, and these flows.
fn scenario(call: &str, flows: &str) -> Scenario {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"8s\"\n\
         [network]\nup = {{ capacity = \"2Mbps\", delay = \"25ms\" }}\n\
         down = {{ capacity = \"2Mbps\", delay = \"25ms\" }}\n\
         [call]\nvideo = {{ width = 480, height = 270, fps = 15 }}\n{call}{flows}"
    );
    parse("test", &text, None).unwrap()
}

/// One video from A to B.
fn one_way() -> CallConfig {
    CallConfig::of(&scenario("", "[[flow]]\n"), 1).unwrap()
}

/// The outcome. `None` if this machine lacks something, which is printed.
fn run(config: &CallConfig) -> Option<CallOutcome> {
    match run_call(config, &AtomicBool::new(false), &mut |_| {}) {
        Err(error) if is_missing_a_part(&error) => {
            println!("skipped: {error}");
            None
        }
        result => Some(result.unwrap()),
    }
}

/// Leftover folders of this process's calls, and processes running in them.
fn leftovers() -> Vec<String> {
    let prefix = format!("weir-run-{}-", std::process::id());
    let is_ours = |text: &str| text.contains(&prefix);
    let folders = fs::read_dir(std::env::temp_dir()).unwrap();
    let folders = folders.flatten().map(|entry| entry.path().display().to_string());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let command_lines = processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    folders.chain(command_lines).filter(|text| is_ours(text)).collect()
}

/// Number of reports in which the second peer of a call receives video.
fn receiving(outcome: &CallOutcome, call: usize) -> usize {
    let intervals = outcome.calls[call].peers[1].intervals();
    let packets = |interval: &weir_record::calls::derive::Interval| {
        interval.received.as_ref().is_some_and(|received| received.packets > 0)
    };
    intervals.iter().filter(|interval| packets(interval)).count()
}

#[test]
fn a_call_of_two_browsers_takes_the_emulated_path_and_leaves_nothing() {
    let _alone = alone();
    let Some(outcome) = run(&one_way()) else { return };
    let [a, b] = &outcome.calls[0].peers;
    assert_eq!(outcome.calls[0].failure, None);
    for peer in [a, b] {
        let local = peer.pair.as_ref().unwrap().local.address.unwrap().to_string();
        assert!(local.starts_with("10.45.0."), "{local}");
    }
    assert!(receiving(&outcome, 0) >= 10);
    assert!(b.intervals().iter().all(|interval| interval.sent.is_none()));
    assert!(b.first_frame_ms.is_some());
    // The model can delay packets longer, but never less.
    let round_trips: Vec<_> =
        a.intervals().iter().filter_map(|interval| interval.sent.as_ref()?.rtt).collect();
    assert!(!round_trips.is_empty());
    assert!(round_trips.iter().all(|rtt| *rtt >= TimeDelta::from_millis(50)), "{round_trips:?}");
    let usage = outcome.participants[0].usage.unwrap();
    assert!(usage.cpu_cores > 0.0 && usage.memory_bytes > 10_000_000, "{usage:?}");
    // Everything that peer b's browser received between its first and last report was delivered by
    // the emulator. The emulator delivered more: before, after, and STUN checks. The next test
    // checks how well the two agree.
    let delivered = outcome.emulation.flow(0, 1).unwrap().total.delivered.as_bytes();
    let received: u64 = b.intervals().iter().map(|i| i.transport_received.as_bytes()).sum();
    assert!(received < delivered && received > delivered / 2, "{received} of {delivered}");
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn a_film_is_recognized_frame_by_frame_and_its_pictures_are_compared() {
    let _alone = alone();
    let mut config = one_way().with_quality().unwrap();
    config.picture.content = Content::Film;
    let Some(outcome) = run(&config) else { return };
    let received = received_frames(&config, &outcome);
    let [ReceivedFrames { timeline, pictures, quality, .. }] = &received[..] else {
        panic!("frames of one camera")
    };
    let [track, screen] = [quality.track, quality.screen];
    assert!(track.seen > 60 && track.read == track.seen, "{track:?}");
    assert!(screen.seen > 60 && screen.matched * 100 >= screen.seen * 95, "{screen:?}");
    // No frame is faster than the path.
    let delays = timeline.frames.iter().filter_map(Frame::received_delay);
    let least = delays.min().unwrap();
    assert!(least >= TimeDelta::from_millis(25), "{least:?}");
    assert!(pictures.scored.len() >= 8 && pictures.worst.is_some(), "{}", pictures.scored.len());
    // A picture beside another frame of the film than its own has about 15 dB.
    let psnr = quality.picture.as_ref().unwrap().psnr_db.unwrap();
    assert!(psnr.min > 20.0 && psnr.mean > 26.0, "{psnr:?}");
}

#[test]
fn speech_is_found_in_what_was_said_and_is_no_faster_than_the_path() {
    let _alone = alone();
    let both = scenario("", "[[flow]]\n[[flow]]\nkind = \"audio\"\n");
    let config = CallConfig::of(&both, 1).unwrap().with_quality().unwrap();
    let Some(outcome) = run(&config) else { return };
    let seen = received_frames(&config, &outcome);
    let [heard] = &heard_speech(&config, &outcome, &seen)[..] else { panic!("one speech") };
    let delays: Vec<TimeDelta> = heard.seconds.iter().filter_map(|it| it.delay).collect();
    // A second may be silent, and a busy machine may tear others.
    assert!(delays.len() >= 4, "{:?}", heard.seconds);
    // The path, and the packet's 20 ms of speech.
    let least = delays.iter().min().unwrap();
    assert!(*least >= TimeDelta::from_millis(45), "{least:?}");
    // The same camera is on the same screen.
    assert!(heard.speech.behind_picture_ms.is_some() && seen[0].quality.camera_late_ms.is_some());
    let audio = outcome.calls[0].peers[1].reports.last().unwrap().report.audio_inbound.as_ref();
    let audio = audio.unwrap();
    assert!(audio.jitter_buffer_target_delay > Some(0.0) && audio.total_samples_received.is_some());
}

/// Fields of the packets in a capture that match the filter, read by tshark. `None` if there is no
/// tshark, which is printed.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-o", "rtp.heuristic_rtp:TRUE", "-Y", filter]);
    command.args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        println!("skipped: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| line.split('\t').map(String::from).collect()).collect())
}

#[test]
fn getstats_captures_and_emulator_agree_and_tshark_reads_the_same() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = CapturePlan { folder: folder.path().into(), comment: "a test, seed 1".into() };
    let flows = "[[flow]]\n[[flow]]\ndirection = \"down\"\n\
                 [[flow]]\nkind = \"audio\"\n[[flow]]\nkind = \"audio\"\ndirection = \"down\"\n";
    let both = scenario("", flows);
    let mut config = CallConfig { capture: Some(plan), ..CallConfig::of(&both, 1).unwrap() };
    config.network.hops[0].up.loss = LossModel::Random(0.02);
    let Some(outcome) = run(&config) else { return };
    let ends = CallEnds::of(&config, &config.calls[0], &outcome.calls[0], &outcome).unwrap();
    let rows = ends.agreement();
    for row in &rows {
        println!("{row:?}");
    }
    // For both directions: packets and payload of two counts at the sender and three at the
    // receiver, sizes at two ends and losses of video and of audio, all packets at two ends, loss
    // and delay of the link.
    assert_eq!(rows.len(), 2 * (2 * 2 + 2 * 3 + 2 * 3 + 4 + 2));
    assert!(rows.iter().all(|row| row.agrees), "the witnesses contradict each other");
    streams_are_told_apart(&ends);
    let video = ends.streams(Peer::A).into_iter().find(|stream| stream.role == StreamRole::Video);
    let video = video.unwrap().stream;
    assert!(video.lost > 0 && video.delays[0] >= TimeDelta::from_millis(25));
    assert_eq!(outcome.missed_packets, 0);

    let file = folder.path().join("host-1.pcapng");
    let from_here = format!("ip.src == {}", outcome.captures[0].address);
    let filter = format!("rtp.ssrc == {} && {from_here}", video.ssrc);
    let fields = ["rtp.seq", "frame.len", "frame.interface_name", "frame.cap_len"];
    let Some(seen) = tshark(&file, &filter, &fields) else { return };
    let sent = &outcome.captures[0].sent.streams[&(outcome.captures[1].address, video.ssrc)];
    assert_eq!(seen.len(), sent.len());
    for (theirs, ours) in seen.iter().zip(sent) {
        let sequence = (ours.sequence & 0xFFFF).to_string();
        assert_eq!(theirs[..3], [sequence, ours.size.to_string(), "weir0".into()]);
        // Only headers: 20 bytes of IP, 8 of UDP, and those of RTP.
        assert!((40..120).contains(&theirs[3].parse::<usize>().unwrap()), "{theirs:?}");
    }
}

/// Each stream of getStats is in the captures. Receivers that lost packets got retransmissions.
fn streams_are_told_apart(ends: &CallEnds<'_>) {
    let compared = ends.compared();
    let of = |peer, direction| -> Vec<&Compared> {
        compared.iter().filter(|it| (it.peer, it.direction) == (peer, direction)).collect()
    };
    for peer in Peer::ALL {
        let names = |direction| of(peer, direction).iter().map(|it| it.counted).collect::<Vec<_>>();
        use Counted::{Audio, Retransmissions, Video, VideoAndRetransmissions};
        assert_eq!(names(StreamDirection::Sent), [VideoAndRetransmissions, Audio]);
        assert_eq!(names(StreamDirection::Received), [Video, Retransmissions, Audio]);
        let [video, again, audio] = of(peer, StreamDirection::Received)[..] else {
            panic!("three counts")
        };
        let sent = of(peer.other(), StreamDirection::Sent);
        assert_eq!(sent[0].ssrcs, [video.ssrcs.as_slice(), &again.ssrcs].concat());
        assert_eq!(sent[1].ssrcs, audio.ssrcs);
        assert!(video.mid.is_some() && video.mid == again.mid && video.mid != audio.mid);
        for it in [video, audio] {
            assert!(it.captured.within.packets > 50 && it.intervals.len() > 5, "{it:?}");
        }
    }
    assert!(
        of(Peer::B, StreamDirection::Received)[1].reported.packets > 0,
        "nothing came again to b"
    );
}

#[test]
fn an_interrupted_call_leaves_a_capture_that_can_be_read_and_nothing_else() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = CapturePlan { folder: folder.path().into(), comment: String::new() };
    let config = CallConfig { capture: Some(plan), ..one_way() };
    let cancel = AtomicBool::new(false);
    let mut interrupt = |progress: Progress<'_>| {
        if matches!(progress, Progress::Running { time, .. } if time > Timestamp::from_secs(1)) {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let error = run_call(&config, &cancel, &mut interrupt).unwrap_err();
    if is_missing_a_part(&error) {
        return println!("skipped: {error}");
    }
    assert!(matches!(error, CallError::Cancelled), "{error}");
    for name in ["host-1.pcapng", "host-2.pcapng"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut packets = 0;
        while reader.packet().unwrap().is_some() {
            packets += 1;
        }
        assert!(packets > 50, "{name}: {packets}");
    }
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn a_second_call_comes_and_goes_while_the_first_one_runs() {
    let _alone = alone();
    let flows = "[[flow]]\n[[flow]]\nstart = \"2s\"\nstop = \"6s\"\n\
                 [[flow]]\nkind = \"audio\"\n[[flow]]\nkind = \"audio\"\ndirection = \"down\"\n";
    let config = CallConfig::of(&scenario("", flows), 1).unwrap();
    let Some(outcome) = run(&config) else { return };
    let failures: Vec<_> = outcome.calls.iter().map(|call| &call.failure).collect();
    assert_eq!(failures, [&None, &None]);
    assert!(receiving(&outcome, 0) >= 10 && receiving(&outcome, 1) >= 2);
    let second = outcome.calls[1].peers[0].intervals();
    let within = |interval: &weir_record::calls::derive::Interval| {
        interval.start > Timestamp::from_secs(2) && interval.end < Timestamp::from_secs(7)
    };
    assert!(second.iter().all(within));
    // Audio uses both directions of the first call, so the return direction carries more than
    // reports.
    let back = outcome.emulation.flow(1, 0).unwrap().total.delivered.as_bytes();
    assert!(back > 15_000, "{back} B");
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn one_browser_has_a_call_with_each_of_two() {
    let _alone = alone();
    let many = scenario("topology = \"one-to-many\"\n", "[[flow]]\ncount = 2\n");
    let Some(outcome) = run(&CallConfig::of(&many, 1).unwrap()) else { return };
    let failures: Vec<_> = outcome.calls.iter().map(|call| &call.failure).collect();
    assert_eq!(failures, [&None, &None]);
    assert!(receiving(&outcome, 0) >= 5 && receiving(&outcome, 1) >= 5);
    assert_eq!(outcome.participants.len(), 3);
}

#[test]
fn the_codec_that_is_asked_for_is_the_one_in_use() {
    let _alone = alone();
    for codec in ["vp9", "h264", "av1"] {
        let text = scenario("", "[[flow]]\n").text;
        let text = text.replace("fps = 15", &format!("fps = 15, codec = \"{codec}\""));
        let short = parse("test", &text.replace("\"8s\"", "\"3s\""), None).unwrap();
        let Some(outcome) = run(&CallConfig::of(&short, 1).unwrap()) else { return };
        assert_eq!(outcome.calls[0].failure, None, "{codec}");
        let last = outcome.calls[0].peers[0].reports.last().unwrap();
        let used = last.report.outbound.as_ref().unwrap().mime_type.as_deref().unwrap();
        assert_eq!(used.to_lowercase(), format!("video/{codec}"));
    }
}

#[test]
fn simulcast_sends_several_sizes_and_the_receiver_gets_all() {
    let _alone = alone();
    let text = scenario("", "[[flow]]\n").text;
    let text = text.replace("fps = 15", "fps = 15, simulcast = 3").replace("\"8s\"", "\"4s\"");
    let short = parse("test", &text, None).unwrap();
    let Some(outcome) = run(&CallConfig::of(&short, 1).unwrap()) else { return };
    assert_eq!(outcome.calls[0].failure, None);
    let [a, b] = &outcome.calls[0].peers;
    let intervals = a.intervals();
    let layers = &intervals.last().unwrap().sent.as_ref().unwrap().layers;
    assert_eq!(layers.len(), 3);
    // The largest one begins when the estimate has grown, which these seconds may not be enough
    // for.
    let runs = layers.iter().filter(|layer| layer.frame_rate > Some(5.0));
    let widths: Vec<_> = runs.map(|layer| layer.frame_size.unwrap().0).collect();
    assert!(widths == [120, 240] || widths == [120, 240, 480], "{layers:?}");
    let sent: u64 = a.reports.last().unwrap().report.layers.iter().map(|it| it.bytes_sent).sum();
    let received = b.reports.last().unwrap().report.inbound.as_ref().unwrap().bytes_received;
    assert!(received <= sent && received > sent / 2, "{received} of {sent}");
}

#[test]
fn all_media_takes_the_relay_over_both_legs() {
    let _alone = alone();
    for transport in ["udp", "tcp"] {
        let config = CallConfig::of(&relayed(transport), 1).unwrap();
        let Some(outcome) = run(&config) else { return };
        assert_eq!(outcome.calls[0].failure, None, "{transport}");
        let pair = outcome.calls[0].peers[0].pair.as_ref().unwrap();
        assert_eq!(pair.local.candidate_type, "relay");
        assert!(receiving(&outcome, 0) >= 5, "{transport}");
        // Packets go from host A to the relay and from the relay to host B, and none between the
        // two.
        let bytes = |from, to| outcome.emulation.flow(from, to).map(|flow| flow.total.delivered);
        assert!(bytes(0, 2).is_some() && bytes(2, 1).is_some(), "{transport}");
        assert_eq!(bytes(0, 1), None, "{transport}");
    }
}

/// One video over a relay between two legs.
fn relayed(transport: &str) -> Scenario {
    let text = scenario(&format!("relay = \"{transport}\"\n"), "[[flow]]\n").text;
    let network = text.find("[network]").unwrap()..text.find("[call]").unwrap();
    let hop = "[[network.hop]]\nup = { delay = \"5ms\" }\ndown = { delay = \"5ms\" }\n";
    parse("test", &text.replace(&text[network], &hop.repeat(2)), None).unwrap()
}

#[test]
fn a_forwarding_server_sends_each_video_to_the_others() {
    let _alone = alone();
    let text = scenario("topology = \"forwarding-server\"\n", "[[flow]]\ncount = 2\n");
    let config = CallConfig::of(&text, 1).unwrap();
    let Some(outcome) = run(&config) else { return };
    let failures: Vec<_> = outcome.calls.iter().map(|call| &call.failure).collect();
    assert_eq!(failures, [&None; 4]);
    // In calls 3 and 4, participants 2 and 1 receive each other's video.
    assert!(receiving(&outcome, 2) >= 5 && receiving(&outcome, 3) >= 5);
    assert!(outcome.participants[2].version.starts_with("Janus"));
    // Both towards the server and from it, although the server does not report.
    for (call, from) in [(0, Peer::A), (2, Peer::A)] {
        let (planned, result) = (&config.calls[call], &outcome.calls[call]);
        let ends = CallEnds::of(&config, planned, result, &outcome).unwrap();
        let streams = ends.streams(from);
        let video = streams.iter().find(|stream| stream.role == StreamRole::Video).unwrap();
        assert!(video.stream.delays.len() > 50, "call {call}: {video:?}");
        assert!(video.stream.delays[0] >= TimeDelta::from_millis(25));
        assert!(ends.streams(from.other()).is_empty());
    }
}

#[test]
fn a_mixer_sends_each_participant_a_picture_of_the_others() {
    let _alone = alone();
    let flows = "[[flow]]\ncount = 2\n[[flow]]\ncount = 2\ndirection = \"down\"\n";
    let config = CallConfig::of(&scenario("topology = \"mixer\"\n", flows), 1).unwrap();
    let Some(outcome) = run(&config) else { return };
    let failures: Vec<_> = outcome.calls.iter().map(|call| &call.failure).collect();
    assert_eq!(failures, [&None; 2]);
    assert!(outcome.participants[2].version.starts_with("GStreamer"));
    for (index, call) in outcome.calls.iter().enumerate() {
        let [participant, mixer] = &call.peers;
        let rates: Vec<_> = participant
            .intervals()
            .iter()
            .map(|interval| interval.received.as_ref().and_then(|received| received.frame_rate))
            .collect();
        assert!(receiving(&outcome, index) >= 5, "{rates:?}");
        let decoded = rates.iter().flatten().filter(|rate| **rate > 5.0).count();
        assert!(decoded > rates.len() / 2, "{rates:?}");
        let last = participant.intervals().last().and_then(|last| last.received.clone()).unwrap();
        assert_eq!(last.frame_size, Some((480, 270)));
        let intervals = mixer.intervals();
        let sent: Vec<_> = intervals
            .iter()
            .flat_map(|interval| &interval.sent)
            .map(|sent| sent.frame_size)
            .collect();
        assert_eq!(sent.last(), Some(&Some((480, 270))), "{sent:?}");
        let decoded = intervals.iter().flat_map(|interval| &interval.received);
        let rates: Vec<_> = decoded.flat_map(|received| received.frame_rate).collect();
        assert!(rates.iter().any(|rate| *rate > 10.0), "{rates:?}");
        assert!(mixer.pair.is_some());
        // What waits for longer than 2 s is discarded, and the picture stands until the next key
        // frame.
        let queues = intervals.iter().filter_map(|interval| interval.sent.as_ref()?.pacer_queue);
        let longest = queues.max().unwrap();
        assert!(longest < TimeDelta::from_secs(2), "{longest} in the pacer");
    }
}

#[test]
fn chromium_and_firefox_understand_each_other_both_ways() {
    let _alone = alone();
    let flows = "[[flow]]\n[[flow]]\ndirection = \"down\"\n";
    for browser in ["{ b = \"firefox\" }", "{ a = \"firefox\" }"] {
        let scenario = scenario(&format!("browser = {browser}\n"), flows);
        let Some(outcome) = run(&CallConfig::of(&scenario, 1).unwrap()) else { return };
        assert_eq!(outcome.calls[0].failure, None, "{browser}");
        assert!(receiving(&outcome, 0) >= 5, "{browser}");
        assert!(outcome.calls[0].peers[0].first_frame_ms.is_some(), "{browser}");
    }
}

/// Status files of the processes below this one whose command line contains a text.
fn statuses_below(text: &str) -> Vec<String> {
    let status = |pid: u32, name: &str| {
        fs::read(format!("/proc/{pid}/{name}"))
            .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
            .unwrap_or_default()
    };
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        line.unwrap_or_default().to_owned()
    };
    let parent = |pid: u32| field(&status(pid, "status"), "PPid").parse().unwrap_or(0);
    let is_below = |pid: u32| {
        let above = std::iter::successors(Some(pid), |pid| Some(parent(*pid)));
        above.take_while(|pid| *pid > 1).any(|pid| pid == std::process::id())
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| status(*pid, "cmdline").contains(text) && is_below(*pid))
        .map(|pid| status(pid, "status"))
        .collect()
}

#[test]
fn browsers_run_as_an_ordinary_user_and_chromium_in_its_sandbox() {
    let _alone = alone();
    let (mut renderers, mut firefoxes, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let mut look = |progress: Progress<'_>| {
        if matches!(progress, Progress::Running { time, .. } if time > Timestamp::from_secs(1)) {
            renderers = statuses_below("--type=renderer");
            firefoxes = statuses_below("firefox");
            open = statuses_below("--no-sandbox");
        }
    };
    let scenario = scenario("browser = { b = \"firefox\" }\n", "[[flow]]\n");
    let config = CallConfig::of(&scenario, 1).unwrap();
    let outcome = match run_call(&config, &AtomicBool::new(false), &mut look) {
        Err(error) if is_missing_a_part(&error) => return println!("skipped: {error}"),
        outcome => outcome.unwrap(),
    };
    assert_eq!(outcome.calls[0].failure, None);
    if let Some(warning) = outcome.notes.iter().find(|note| note.contains(" runs ")) {
        return println!("skipped: {warning}");
    }
    assert!(!renderers.is_empty() && !firefoxes.is_empty());
    for status in renderers.iter().chain(&firefoxes) {
        assert!(!status.contains("\nUid:\t0\t"), "{status}");
    }
    // System call filters (seccomp) are the second layer of the sandbox.
    assert!(renderers.iter().all(|status| status.contains("\nSeccomp:\t2\n")), "{renderers:?}");
    assert_eq!(open, [""; 0]);
}

#[test]
fn an_interrupted_call_leaves_nothing() {
    let _alone = alone();
    let error = run_call(&one_way(), &AtomicBool::new(true), &mut |_| {}).unwrap_err();
    if is_missing_a_part(&error) {
        return println!("skipped: {error}");
    }
    assert!(matches!(error, CallError::Cancelled), "{error}");
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn peers_that_cannot_reach_each_other_are_a_result_with_its_cause() {
    let _alone = alone();
    let mut config = one_way();
    config.network.hops[0].up.loss = weir_net::LossModel::Random(1.0);
    // The machine may have namespaces of its own.
    let before = named_namespaces();
    let Some(outcome) = run(&config) else { return };
    let cause = outcome.calls[0].failure.as_deref().unwrap_or_default();
    assert!(cause.contains("No connection to the other peer"), "{cause}");
    assert!(outcome.emulation.hops.is_empty());
    assert_eq!(named_namespaces(), before);
    assert_eq!(leftovers(), [""; 0]);
}

/// Names of the network namespaces of this machine, in order.
fn named_namespaces() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/netns") else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.unwrap().file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names
}
