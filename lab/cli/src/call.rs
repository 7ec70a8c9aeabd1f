//! `weir call`: real browsers and pipelines through the emulator, one run at a time.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use weir_call::quality::{self, ReceivedFrames};
use weir_call::sound::{self, HeardSpeech};
use weir_call::stack::Stack;
use weir_call::{CallConfig, CallOutcome, ChromiumMode, Progress, SipMessage, run_call};
use weir_controllers::LabController;
use weir_record::Record;
use weir_record::calls::quality::{PictureQuality, Quality};
use weir_record::calls::sound::Speech;
use weir_record::run::{Engine, RunInfo};
use weir_record::shell::quoted;
use weir_record::subject::{BrowserControl, StackRole, Subject};
use weir_scenario::Scenario;

use crate::args::Call;
use crate::captures::Captures;
use crate::console::{Console, Wish};
use crate::ims::Wic;
use crate::interrupt::Interrupt;
use crate::run::Simulated;
use crate::select::CHROMIUM;
use crate::{ims, run, select};

/// An error if one of the calls cannot be made. Makes none.
pub fn refuse_unplayable(args: &Call) -> anyhow::Result<()> {
    let senders = senders(args)?;
    for scenario in &select::scenarios(&args.selection.scenarios)? {
        for sender in &senders {
            config(args, scenario, sender, 0)?;
        }
    }
    Ok(())
}

/// Makes the calls and writes records.
pub fn runs(args: &Call, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    let scenarios = select::scenarios(&args.selection.scenarios)?;
    select::note_participants(&scenarios);
    let senders = senders(args)?;
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        let seeds = seeds(args, scenario)?;
        select::refuse_too_many(scenarios.len() * senders.len(), &seeds)?;
        for sender in &senders {
            // Before anything starts: a scenario that cannot be called stops the whole command.
            config(args, scenario, sender, 0)?;
            for seed in seeds.clone() {
                let info = RunInfo {
                    scenario: scenario.id.clone(),
                    subject: subject(args, scenario, sender),
                    engine: Engine::Call,
                    seed,
                };
                jobs.push((scenario, sender, info));
            }
        }
    }
    if let Some(out) = &args.output.out {
        run::refuse_existing(out, jobs.iter().map(|(_, _, info)| info))?;
    }
    let wic = args.ims.as_deref().map(Wic::of_running).transpose()?;
    let console = Console::of(args.interactive, args.live.as_deref())?;
    let mut runner = CallRunner {
        args,
        interrupt,
        console,
        signalling: Vec::new(),
        frames: Vec::new(),
        speech: Vec::new(),
    };
    let mut runs = Vec::new();
    let mut count = Count::default();
    for (scenario, sender, info) in jobs {
        let begun = Instant::now();
        let captures = Captures::new(
            args.capture || scenario.call.capture,
            args.output.out.as_deref(),
            &info,
        )?;
        let config = config(args, scenario, sender, info.seed)?;
        let config = CallConfig { capture: captures.plan(), ..config };
        let config = match &wic {
            Some(wic) => config.through(ims::plan(wic)).map_err(anyhow::Error::msg)?,
            None => config,
        };
        let record = runner.make(scenario, info, &config, &mut count)?;
        if let Some(out) = &args.output.out {
            let place = record.write(out)?;
            if let Some(wic) = &wic {
                ims::write(wic, &place, &runner.signalling)?;
            }
            if args.quality {
                quality::write(&place, &runner.frames)
                    .and_then(|()| sound::write(&place, &runner.speech))
                    .with_context(|| place.display().to_string())?;
            }
            captures.move_to(&place)?;
        }
        runs.push(Simulated { summary: record.summary(), took: begun.elapsed() });
    }
    count.print();
    Ok(runs)
}

/// One seed for each iteration.
pub fn seeds(args: &Call, scenario: &Scenario) -> anyhow::Result<RangeInclusive<u64>> {
    let Call { selection, iterations, quick, .. } = args;
    anyhow::ensure!(*iterations != Some(0), "--iterations 0 makes no call: write 1 or more");
    let last = match (iterations, quick) {
        (Some(iterations), _) => *iterations,
        (None, true) => 1,
        (None, false) if selection.seeds.is_some() || selection.seed.is_some() => {
            return select::seeds(selection);
        }
        // People are asked to join only once.
        (None, false) if args.serve.is_some() => 1,
        (None, false) => scenario.call.iterations.0,
    };
    Ok(1..=last)
}

/// Chromium's own SCReAM v2 in the place of its GCC.
const CHROMIUM_SCREAM_V2: &str = "chromium-scream-v2";

/// Firefox as the sender, with its own congestion control.
const FIREFOX: &str = "firefox";

/// What controls the senders of a run.
#[derive(Clone, Debug)]
enum Sender {
    /// The browsers that the scenario names.
    Browsers,
    /// Chromium with its default congestion control.
    Chromium,
    /// Chromium with its own SCReAM v2.
    ChromiumScreamV2,
    /// Firefox.
    Firefox,
    /// Pipelines under a controller.
    Pipelines(LabController),
    /// A stack of the arena, which sends or receives.
    Stack(Box<Stack>, StackRole),
}

/// What controls the senders, one for each run of a scenario.
fn senders(args: &Call) -> anyhow::Result<Vec<Sender>> {
    let is_default = args.selection.constants.is_empty();
    anyhow::ensure!(is_default, "--set is for simulations: leave it out");
    if let Some(list) = &args.stack {
        anyhow::ensure!(
            args.driver.is_none() || !list.contains(','),
            "--driver is the command of one stack: name it with --stack NAME"
        );
        let mut stacks = Vec::new();
        for name in list.split(',').map(str::trim) {
            let stack = match &args.driver {
                Some(command) => Stack::of_command(name, command)?,
                None => Stack::with_role(&args.arena, name, args.role.into())?,
            };
            // Before anything starts: one that is not installed stops the whole command.
            stack.version()?;
            stacks.push(Sender::Stack(Box::new(stack), args.role.into()));
        }
        return Ok(stacks);
    }
    let Some(list) = args.selection.controller.as_deref() else {
        return Ok(vec![Sender::Browsers]);
    };
    let mut senders = Vec::new();
    for name in list.split(',') {
        match name.trim() {
            CHROMIUM => senders.push(Sender::Chromium),
            CHROMIUM_SCREAM_V2 => senders.push(Sender::ChromiumScreamV2),
            FIREFOX => senders.push(Sender::Firefox),
            name => {
                let mut found = select::named(name, &[])?;
                // `all` is what the GStreamer plugin has.
                found.retain(|controller| name != "all" || !controller.is_lab_only());
                senders.extend(found.into_iter().map(Sender::Pipelines));
            }
        }
    }
    Ok(senders)
}

fn config(
    args: &Call,
    scenario: &Scenario,
    sender: &Sender,
    seed: u64,
) -> anyhow::Result<CallConfig> {
    let config = CallConfig::of(scenario, seed)?;
    let refused = anyhow::Error::msg::<&'static str>;
    let config = match (args.serve, sender) {
        (None, Sender::Browsers) => config,
        (None, Sender::Chromium) => config.with_chromium(ChromiumMode::Default).map_err(refused)?,
        (None, Sender::ChromiumScreamV2) => {
            config.with_chromium(ChromiumMode::ScreamV2).map_err(refused)?
        }
        (None, Sender::Firefox) => config.with_firefox().map_err(refused)?,
        (None, Sender::Pipelines(controller)) => config.with_pipelines(scenario, controller)?,
        (None, Sender::Stack(stack, StackRole::Sender)) => {
            config.with_stack(scenario, Stack::clone(stack))?
        }
        (None, Sender::Stack(stack, StackRole::Receiver)) => {
            config.with_receiver(scenario, Stack::clone(stack))?
        }
        (Some(address), Sender::Browsers) => config.served(address).map_err(refused)?,
        (Some(_), _) => anyhow::bail!(
            "--serve is for people at both ends, and --controller for a pipeline: leave out one"
        ),
    };
    if args.quality {
        let pictures_at = args.picture_at.clone();
        return Ok(CallConfig { pictures_at, ..config.with_quality().map_err(refused)? });
    }
    Ok(config)
}

/// What controls the rate: a controller of ours, or that of the browsers.
fn subject(args: &Call, scenario: &Scenario, sender: &Sender) -> Subject {
    match (sender, scenario.call.browsers) {
        (Sender::Chromium, _) => Subject::browser(CHROMIUM),
        (Sender::ChromiumScreamV2, _) => {
            Subject::Browser { name: CHROMIUM_SCREAM_V2.into(), control: BrowserControl::ScreamV2 }
        }
        (Sender::Firefox, _) => Subject::browser(FIREFOX),
        (Sender::Pipelines(controller), _) => Subject::controller(controller.name()),
        (Sender::Stack(stack, role), _) => {
            let driver = stack.named_command().map(quoted);
            Subject::Stack { name: stack.name.clone(), driver, role: *role }
        }
        (Sender::Browsers, _) if args.serve.is_some() => Subject::browser("people"),
        (Sender::Browsers, [a, b]) if a == b => Subject::browser(a.name()),
        (Sender::Browsers, [a, b]) => Subject::browser(&format!("{}-{}", a.name(), b.name())),
    }
}

/// Counts of the calls and runs so far.
#[derive(Default)]
struct Count {
    calls: usize,
    failed: usize,
    runs: usize,
    disturbed: usize,
}

impl Count {
    fn add(&mut self, config: &CallConfig, outcome: &CallOutcome) {
        self.calls += outcome.calls.len();
        self.failed += outcome.calls.iter().filter(|call| call.failure.is_some()).count();
        self.runs += 1;
        self.disturbed += usize::from(!weir_call::disturbances_of(config, outcome).is_empty());
    }

    fn print(&self) {
        if self.failed > 0 {
            let succeeded = self.calls - self.failed;
            eprintln!("weir: {succeeded} of {} calls succeeded", self.calls);
        }
        if self.disturbed > 0 {
            eprintln!(
                "weir: this machine disturbed {} of {} runs; their records say so",
                self.disturbed, self.runs
            );
        }
    }
}

/// Makes runs with the options of the command.
struct CallRunner<'a> {
    args: &'a Call,
    interrupt: &'a Interrupt,
    console: Option<Console>,
    /// Messages of SIP at both ends of each call of the last run, if they went through an IMS.
    signalling: Vec<[Vec<SipMessage>; 2]>,
    /// Frames that each peer of the last run received, with --quality.
    frames: Vec<ReceivedFrames>,
    /// What was said and heard in the last run, with --quality.
    speech: Vec<HeardSpeech>,
}

impl CallRunner<'_> {
    /// Runs a scenario. Repeats the run if this machine disturbed it, up to `--attempts` times.
    fn make(
        &mut self,
        scenario: &Scenario,
        info: RunInfo,
        config: &CallConfig,
        count: &mut Count,
    ) -> anyhow::Result<Record> {
        let mut attempt = 1;
        let outcome = loop {
            let outcome = self.play(scenario, config)?;
            let causes = weir_call::disturbances_of(config, &outcome);
            // People are not asked again because this machine disturbed the run, and a run that was
            // ended by hand stays so.
            let last = attempt == self.args.attempts.get()
                || self.args.serve.is_some()
                || outcome.ended.is_some();
            if causes.is_empty() || last {
                break outcome;
            }
            eprintln!(
                "weir: {}: this machine disturbed the run ({}); repeating it",
                scenario.id, causes[0]
            );
            attempt += 1;
        };
        count.add(config, &outcome);
        self.signalling.clear();
        for call in &outcome.calls {
            self.signalling.push(call.peers.each_ref().map(|peer| peer.signalling.clone()));
        }
        self.frames = quality::received_frames(config, &outcome);
        self.speech = sound::heard_speech(config, &outcome, &self.frames);
        print_quality(&scenario.id, &self.frames);
        print_speech(&scenario.id, &self.speech);
        let record = match outcome.ended {
            None => weir_call::record(scenario, info, config, &outcome, &self.frames, attempt),
            Some(ended) => {
                let shorter = scenario.clone().ended_at(ended);
                weir_call::record(&shorter, info, config, &outcome, &self.frames, attempt)
            }
        };
        for warning in weir_call::warnings(&record) {
            eprintln!("weir: {warning}");
        }
        Ok(record)
    }

    fn play(&mut self, scenario: &Scenario, config: &CallConfig) -> anyhow::Result<CallOutcome> {
        let length = scenario.duration.as_secs_f64();
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} s")
            .expect("the template is valid");
        let bar = ProgressBar::new(length as u64).with_style(style);
        let console = &mut self.console;
        let outcome = run_call(config, &self.interrupt.flag(), &mut |progress| match progress {
            Progress::SettingUp([]) => {
                bar.set_message(format!("{}: programs start", scenario.id));
            }
            Progress::SettingUp(urls) => bar.suspend(|| invite(urls)),
            Progress::Running { time, network, stats, end } => match console {
                None => {
                    bar.set_message(format!("{}: call runs", scenario.id));
                    bar.set_position(time.as_secs_f64() as u64);
                }
                Some(console) => match console.tick(network, stats) {
                    Wish::Continue => {}
                    Wish::End => end.set(true),
                    Wish::Quit => self.interrupt.flag().store(true, Ordering::Relaxed),
                },
            },
            Progress::Ending => bar.set_message(format!("{}: call ends", scenario.id)),
        });
        bar.finish_and_clear();
        self.interrupt.check()?;
        Ok(outcome?)
    }
}

/// Prints what each peer saw, one line each.
pub fn print_quality(scenario: &str, received: &[ReceivedFrames]) {
    for ReceivedFrames { quality, .. } in received {
        let Quality { from, to, screen, stalls, stalled_s, .. } = quality;
        let Some(delay) = quality.shown_delay_ms else {
            eprintln!("weir: {scenario}: {to} saw no frame of {from}'s camera");
            continue;
        };
        eprintln!(
            "weir: {scenario}: from {from}'s camera to {to}'s screen: delay p50 {:.0} ms, \
             p95 {:.0} ms, p99 {:.0} ms; {:.1} pictures/s; {stalls} stalls, {stalled_s:.1} s \
             ({:.1} %); {} repeats, {} skips; tags read {} of {}",
            delay.p50,
            delay.p95,
            delay.p99,
            quality.frame_rate.unwrap_or(0.0),
            100.0 * quality.stalled_ratio.unwrap_or(0.0),
            quality.repeats,
            quality.skips,
            screen.read,
            screen.seen,
        );
        if let Some(picture) = &quality.picture {
            print_picture(scenario, to, picture);
        }
        if let Some(time) = quality.good_time() {
            eprintln!(
                "weir: {scenario}: good for {:.0} % of the time on {to}'s screen; stalled {:.0} %, \
                 late {:.0} %, bad picture {:.0} %",
                100.0 * time.good,
                100.0 * time.stalled,
                100.0 * time.late,
                100.0 * time.bad_picture,
            );
        }
    }
}

/// Prints what each peer heard, one line each.
fn print_speech(scenario: &str, heard: &[HeardSpeech]) {
    for HeardSpeech { spoken, speech, seconds, .. } in heard {
        if spoken.samples.is_empty() {
            continue;
        }
        let Speech { from, to, jumps, largest_jump_ms, .. } = speech;
        let Some(delay) = speech.mouth_to_ear_ms else {
            eprintln!("weir: {scenario}: {to} heard nothing of what {from} said");
            continue;
        };
        let known = seconds.iter().filter(|second| second.delay.is_some()).count();
        eprintln!(
            "weir: {scenario}: from {from}'s mouth to {to}'s ear: delay p50 {:.1} ms, p95 {:.1} \
             ms, in {known} of {} s; {jumps} jumps, the largest {largest_jump_ms:.1} ms",
            delay.p50,
            delay.p95,
            seconds.len(),
        );
        if let Some(behind) = speech.behind_picture_ms {
            eprintln!(
                "weir: {scenario}: {from}'s sound is {:.0} ms behind the picture at {to} (median; \
                 {:.0} to {:.0} ms)",
                behind.p50, behind.min, behind.max
            );
        }
    }
}

/// Prints how the pictures look beside those that were sent.
fn print_picture(scenario: &str, to: &str, picture: &PictureQuality) {
    let [psnr, vmaf] = [picture.psnr_db, picture.vmaf].map(Option::unwrap_or_default);
    let scores = match picture.vmaf {
        Some(_) => format!("VMAF {:.1} (5 %: {:.1}), ", vmaf.mean, vmaf.p5),
        None => String::new(),
    };
    eprintln!(
        "weir: {scenario}: {} pictures on {to}'s screen: {scores}PSNR {:.1} dB (5 %: {:.1})",
        picture.pictures, psnr.mean, psnr.p5
    );
}

/// Prints the addresses that people must open.
fn invite(urls: &[(String, String)]) {
    for (name, url) in urls {
        eprintln!("weir: {name} opens {url}");
    }
    let mut origins: Vec<&str> = urls.iter().filter_map(|(_, url)| origin(url)).collect();
    origins.retain(|origin| !origin.starts_with("http://127."));
    origins.sort_unstable();
    origins.dedup();
    if !origins.is_empty() {
        eprintln!(
            "weir: to let this page use the camera, start Chromium with \
             --unsafely-treat-insecure-origin-as-secure={}",
            origins.join(",")
        );
    }
}

/// The origin of a page, such as `http://192.168.1.5:4000`.
fn origin(url: &str) -> Option<&str> {
    let path = url.strip_prefix("http://")?.find('/')?;
    Some(&url[.."http://".len() + path])
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weir_scenario::catalogue;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn a_scenario_is_played_as_often_as_it_says_but_by_people_once() {
        let scenario = &catalogue::find("delft/wired-3").unwrap()[0];
        let times = |options: &[&str]| {
            let words = [&["weir", "call", "delft/wired-3"], options].concat();
            let Command::Call(args) = Args::parse_from(words).command else { panic!("a call") };
            seeds(&args, scenario).unwrap().count() as u64
        };
        assert!(scenario.call.iterations.0 > 1);
        assert_eq!(times(&[]), scenario.call.iterations.0);
        assert_eq!((times(&["--quick"]), times(&["--serve"])), (1, 1));
        assert_eq!((times(&["--serve", "--iterations", "3"]), times(&["--seeds", "2"])), (3, 2));
    }

    #[test]
    fn an_origin_is_a_page_without_its_path() {
        let url = "http://192.168.1.5:4000/0123/call/0/a";
        assert_eq!(origin(url), Some("http://192.168.1.5:4000"));
        assert_eq!(origin("192.168.1.5"), None);
    }
}
