//! Real calls from a pipeline under a controller of ours to a browser. They need root, Chromium,
//! GStreamer and its plugin `weir`, in `GST_PLUGIN_PATH` or in the system's folder.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use weir::units::{Bitrate, Timestamp};
use weir_call::{CallConfig, CallError, CallOutcome, run_call};
use weir_controllers::LabAlgorithm;
use weir_record::calls::derive::{received_total, sent_total};
use weir_record::calls::stats::Kind;
use weir_scenario::{Scenario, parse};

/// Serializes the tests: calls share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// From here on a controller has found the link's capacity.
const SETTLED: Timestamp = Timestamp::from_secs(8);

/// 1 Mbit/s for 16 s, between a start at 300 kbit/s and a maximum of 2500 kbit/s.
fn scenario() -> Scenario {
    parse("test", &scenario_text(), None).unwrap()
}

fn scenario_text() -> String {
    "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"16s\"\n\
                [network]\nup = { capacity = \"1Mbps\", delay = \"20ms\", queue = \"300ms\" }\n\
                down = { delay = \"20ms\" }\n\
                [call]\nvideo = { width = 640, height = 360, fps = 30 }\n\
                [[flow]]\nmin_bitrate = \"150kbps\"\nstart_bitrate = \"300kbps\"\n\
                max_bitrate = \"2500kbps\"\n"
        .into()
}

/// The outcome. `None` if this machine lacks something, which is printed.
fn call(algorithm: LabAlgorithm) -> Option<CallOutcome> {
    play(&scenario(), algorithm)
}

fn play(scenario: &Scenario, algorithm: LabAlgorithm) -> Option<CallOutcome> {
    let config = CallConfig::of(scenario, 1).unwrap();
    run(&config.with_pipelines(scenario, &algorithm.into()).unwrap())
}

fn run(config: &CallConfig) -> Option<CallOutcome> {
    use weir_emu::Error::{NoTun, NotRoot};
    match run_call(config, &AtomicBool::new(false), &mut |_| {}) {
        Err(
            error @ (CallError::NoBrowser(_)
            | CallError::NoGstreamer(_)
            | CallError::NoPlugin
            | CallError::Emulator(NotRoot | NoTun)),
        ) => {
            println!("skipped: {error}");
            None
        }
        result => Some(result.unwrap()),
    }
}

/// Mean rate in Mbit/s that the browser received once the controller has settled.
fn received_mbps(outcome: &CallOutcome) -> f64 {
    let intervals = outcome.calls[0].peers[1].intervals();
    let settled = intervals.iter().filter(|interval| interval.start >= SETTLED);
    let rates = settled.filter_map(|interval| interval.received.as_ref());
    let rates: Vec<f64> = rates.map(|received| received.receive_rate.as_bps_f64() / 1e6).collect();
    assert!(rates.len() > 10, "{} intervals", rates.len());
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// A controller that stands still stays at 0.3 Mbit/s, and one that only climbs ends at 2.5 Mbit/s.
fn check(algorithm: LabAlgorithm) {
    // A failed test poisons the lock; the next test takes it anyway.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(outcome) = call(algorithm) else { return };
    assert_eq!(outcome.calls[0].failure, None);
    assert!(outcome.participants[0].version.starts_with("GStreamer"));
    let received = received_mbps(&outcome);
    assert!((0.6..1.05).contains(&received), "{received} Mbit/s received");
    let [sender, receiver] = &outcome.calls[0].peers;
    assert!(receiver.targets.is_empty());
    let settled = sender.targets.iter().filter(|(time, _)| *time >= SETTLED);
    let targets: Vec<Bitrate> =
        settled.map(|(_, change)| Bitrate::from_bps(change.target_bps)).collect();
    assert!(!targets.is_empty());
    let (least, most) = (targets.iter().min().unwrap(), targets.iter().max().unwrap());
    assert!(*least >= Bitrate::from_kbps(400), "a target of {least}");
    assert!(*most <= Bitrate::from_kbps(1600), "a target of {most}");
    assert!(sender.targets.iter().all(|(_, change)| !change.reason.is_empty()));
    let queued = sender
        .intervals()
        .iter()
        .any(|interval| interval.sent.as_ref().is_some_and(|sent| sent.pacer_queue.is_some()));
    assert!(queued, "no report tells what waits in the pacer");
}

#[test]
fn a_pipeline_under_nada_fills_the_link_to_a_browser() {
    check(LabAlgorithm::Nada);
}

#[test]
fn a_pipeline_under_gcc_fills_the_link_to_a_browser() {
    check(LabAlgorithm::Gcc);
}

#[test]
fn a_pipeline_under_scream_fills_the_link_to_a_browser() {
    check(LabAlgorithm::Scream);
}

#[test]
fn a_pipeline_under_sluice_fills_the_link_to_a_browser() {
    check(LabAlgorithm::Sluice);
}

// [RFC8888 §3.1]
#[test]
fn a_pipeline_under_scream_v2_answers_to_the_marks_of_dualpi2() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"16s\"\n\
                [network]\nup = { capacity = \"1Mbps\", delay = \"20ms\", queue = \"300ms\", \
                aqm = \"dualpi2\" }\n\
                down = { delay = \"20ms\" }\n\
                [call]\nvideo = { width = 640, height = 360, fps = 30 }\n\
                [[flow]]\necn = \"l4s\"\nfeedback = \"ccfb\"\nmin_bitrate = \"150kbps\"\n\
                start_bitrate = \"300kbps\"\nmax_bitrate = \"2500kbps\"\n";
    let Some(outcome) = play(&parse("test", text, None).unwrap(), LabAlgorithm::ScreamV2) else {
        return;
    };
    assert_eq!(outcome.calls[0].failure, None);
    let received = received_mbps(&outcome);
    assert!((0.5..1.05).contains(&received), "{received} Mbit/s received");
    // The socket's ECT(1), the emulator's marks and the browser's feedback are all needed for this
    // reason.
    let targets = &outcome.calls[0].peers[0].targets;
    let marked = targets.iter().filter(|(_, change)| change.reason == "ECN").count();
    assert!(marked > 10, "{marked} changes for marks");
}

#[test]
fn the_frames_of_a_pipeline_s_camera_are_seen_on_the_browser_s_screen() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scenario = scenario();
    let config = CallConfig::of(&scenario, 1).unwrap();
    let config = config.with_pipelines(&scenario, &LabAlgorithm::Sluice.into()).unwrap();
    let config = CallConfig { pictures_at: vec![10], ..config.with_quality().unwrap() };
    let Some(outcome) = run(&config) else { return };
    assert_eq!(outcome.calls[0].failure, None);
    let received = weir_call::quality::received_frames(&config, &outcome);
    let [seen] = &received[..] else { panic!("{} cameras", received.len()) };
    // 30 frames a second go in, and all tags are read.
    assert!(seen.quality.camera.seen > 400, "{:?}", seen.quality.camera);
    let screen = seen.quality.screen;
    assert!(screen.seen > 100 && 100 * screen.matched >= 97 * screen.seen, "{screen:?}");
    // The path alone has 20 ms.
    let delay = seen.quality.shown_delay_ms.unwrap();
    assert!(delay.min > 20.0 && delay.p50 < 2_000.0, "{delay:?}");
    assert!(seen.pictures.scored.len() > 10, "{} pictures", seen.pictures.scored.len());
    assert_eq!(seen.pictures.at.len(), 1);
}

#[test]
fn a_pipeline_sends_audio_beside_its_controlled_video() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scenario =
        parse("test", &(scenario_text() + "[[flow]]\nkind = \"audio\"\n"), None).unwrap();
    let Some(outcome) = play(&scenario, LabAlgorithm::Nada) else { return };
    assert_eq!(outcome.calls[0].failure, None);
    let [sender, receiver] = &outcome.calls[0].peers;
    let sent = sent_total(&sender.reports, Kind::Audio).unwrap();
    let received = received_total(&receiver.reports, Kind::Audio).unwrap();
    // Opus makes a packet every 20 ms.
    for audio in [&sent, &received] {
        assert!((600..1000).contains(&audio.count.packets), "{audio:?}");
    }
    let video = received_mbps(&outcome);
    assert!((0.55..1.05).contains(&video), "{video} Mbit/s of video received");
}
