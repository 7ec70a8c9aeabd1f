//! Checks that a controller satisfies the contract of [`Controller`](crate::Controller).
//!
//! [`check_controller`] generates random scripts of packets, feedback, silence and clock jumps, and
//! checks the controller after each step. A [`Driver`] applies one script; use it with a
//! property-testing library of your choice.
//!
//! ```
//! use weir::testing::check_controller;
//! use weir::{Algorithm, ControllerFactory};
//!
//! let nada = ControllerFactory::from(Algorithm::Nada);
//! check_controller(&nada, 4, 1).expect("it satisfies the contract");
//! ```

mod driver;
mod link;
mod script;
mod wrapper;

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

pub use driver::{Driver, Feedback, Format, Op, Violation};
pub use link::{Clock, Link, Usage, check_links, drawn_links};
pub use wrapper::{Counted, check_wrapper};

use crate::controller::{RateLimits, Settings};
use crate::factory::ControllerFactory;
use crate::units::{Bitrate, TimeDelta, Timestamp};
use driver::ensure;
use script::Rng;

/// Maximum script length for rules that are checked after each step.
const LONG: u64 = 300;
/// Maximum script length before a path heals. Most of the time goes into the clean run after it.
const SHORT: u64 = 120;
/// One in this many scripts is followed by a healed path.
const HEALED: u32 = 8;

/// A rule that a controller broke, and the shortest script found that shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// The violation of the rule.
    pub violation: Violation,
    /// The settings that it was built with.
    pub settings: Settings,
    /// The steps of a [`Driver`] that lead there; empty for a rule without a script.
    pub script: Vec<Op>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.violation)?;
        if self.script.is_empty() {
            return Ok(());
        }
        write!(f, "\nafter {} steps under {:?}:", self.script.len(), self.settings)?;
        self.script.iter().try_for_each(|op| write!(f, "\n  {op:?}"))
    }
}
impl core::error::Error for Failure {}

type Outcome = Result<(), Violation>;

/// A rule that needs no random script.
type Check = fn(&ControllerFactory, Settings) -> Outcome;

/// Checks controllers of this kind against the contract with `scripts` random scripts. Equal seeds
/// give equal scripts.
///
/// The rules:
/// - The target starts at the start bitrate and stays within the limits.
/// - Pacing rate, padding, probes and windows are valid.
/// - Timeouts lie in the future; [`Timestamp::MAX`] means never.
/// - All of that holds for times, sizes and rates from the ends of their range, too.
/// - Loss ratio and signals are finite numbers.
/// - Equal calls give equal results.
/// - If minimum and maximum are equal, the target is constant.
/// - After a bad period, a clean path is used again.
/// - Without feedback, the target falls, but the sender still sends.
/// - The target obeys the receiver's limit.
/// - New limits hold at once, and what is known of the path stays known.
/// - A new route is used, whatever its base delay.
///
/// # Errors
///
/// The first broken rule, with a script that reproduces it.
pub fn check_controller(
    factory: &ControllerFactory,
    scripts: u32,
    seed: u64,
) -> Result<(), Failure> {
    let plain: [(&'static str, Check); 8] = [
        ("the target starts at the start bitrate", starts_at_start),
        ("a fresh controller waits for nothing or for the future", waits_for_the_future),
        ("silence lowers the target", silence_lowers),
        ("a sender without feedback still sends something", still_sends),
        ("the receiver's limit caps the target", limit_caps),
        ("new limits move the target no further than they demand", limits_keep_the_state),
        ("a raised maximum is used", raised_maximum),
        ("a new route with another base delay is used", new_route),
    ];
    for (rule, holds) in plain {
        let settings = Settings::new(usual_limits());
        let failure = |violation| Failure { rule, violation, settings, script: Vec::new() };
        holds(factory, settings).map_err(failure)?;
    }
    let mut rng = Rng::new(seed);
    for number in 0..scripts {
        let settings = rng.settings();
        let script = rng.script(LONG);
        hold(factory, "hostile feedback breaks no invariant", settings, &script, invariants)?;
        let far = rng.far_script(SHORT);
        hold(
            factory,
            "times and sizes of any range break no invariant",
            settings,
            &far,
            invariants,
        )?;
        let usual = Settings::new(usual_limits());
        hold(factory, "equal calls give equal results", usual, &script, equal_results)?;
        let kbps = 1 + rng.below(5_000);
        let only = Settings::new(limits(kbps, kbps, kbps));
        hold(factory, "min equal to max is a constant target", only, &script, constant_target)?;
        if number.is_multiple_of(HEALED) {
            let script = rng.script(SHORT);
            hold(factory, "a healed path is used again", usual, &script, healed_path)?;
        }
    }
    Ok(())
}

/// Checks one rule with one script. If the script breaks the rule, it is shortened as far as
/// possible.
fn hold(
    factory: &ControllerFactory,
    rule: &'static str,
    settings: Settings,
    script: &[Op],
    holds: fn(&ControllerFactory, Settings, &[Op]) -> Outcome,
) -> Result<(), Failure> {
    let Err(violation) = holds(factory, settings, script) else { return Ok(()) };
    let broken = |script: &[Op]| holds(factory, settings, script).err();
    let (script, violation) = script::shortened(script.to_vec(), violation, broken);
    Err(Failure { rule, violation, settings, script })
}

fn limits(min: u64, start: u64, max: u64) -> RateLimits {
    let kbps = Bitrate::from_kbps;
    RateLimits::new(kbps(min), kbps(start), kbps(max)).expect("the callers keep them in order")
}

fn usual_limits() -> RateLimits {
    limits(150, 300, 2_500)
}

fn starts_at_start(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let bitrate = factory.build(settings).target().bitrate;
    ensure!(bitrate == settings.limits.start(), "it starts at {bitrate}");
    Ok(())
}

fn waits_for_the_future(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let (mut controller, now) = (factory.build(settings), Timestamp::from_secs(1));
    controller.on_timeout(now);
    let next = controller.next_timeout();
    ensure!(next.is_none_or(|next| next > now), "a timeout at {next:?}, asked at {now}");
    Ok(())
}

/// Missing feedback must not freeze the estimate [RFC8836 §2, requirement 10].
fn silence_lowers(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    driver.try_run_clean_link(Bitrate::from_kbps(1_000), TimeDelta::from_secs(30), None)?;
    let before = driver.controller.target().bitrate;
    for _ in 0..100 {
        driver.try_apply(&Op::Send { packets: 4, bytes: 1_200 })?;
        driver.try_apply(&Op::Advance(TimeDelta::from_millis(50)))?;
    }
    let after = driver.controller.target().bitrate;
    ensure!(after < before * 0.8, "{before} before and {after} after 5 s of silence");
    Ok(())
}

/// A closed window must open again without feedback. Otherwise the loss of all packets in flight
/// would stop the flow for ever.
fn still_sends(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let (mut driver, mut sent) = (Driver::new(factory, settings), 0);
    for _ in 0..200 {
        let window = driver.controller.target().window;
        if window.is_none_or(|window| window.available.as_bytes() > 0) {
            driver.try_apply(&Op::Send { packets: 1, bytes: 1_200 })?;
            sent += 1;
        }
        driver.try_apply(&Op::Advance(TimeDelta::from_millis(50)))?;
    }
    ensure!(sent >= 5, "{sent} packets in 10 s");
    let silent = driver.now - driver.last_sent();
    ensure!(silent < TimeDelta::from_secs(5), "nothing in the last {silent}");
    Ok(())
}

fn limit_caps(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let (capacity, limit) = (Bitrate::from_kbps(1_000), Bitrate::from_kbps(400));
    let mut driver = Driver::new(factory, settings);
    driver.try_run_clean_link(capacity, TimeDelta::from_secs(60), None)?;
    driver.controller.on_receiver_limit(driver.now, Some(limit));
    for seconds in [0, 20] {
        driver.try_run_clean_link(capacity, TimeDelta::from_secs(seconds), None)?;
        let bitrate = driver.controller.target().bitrate;
        ensure!(bitrate <= limit, "{bitrate} under a limit of {limit} after {seconds} s");
    }
    Ok(())
}

fn limits_keep_the_state(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    driver.try_run_clean_link(Bitrate::from_kbps(1_000), TimeDelta::from_secs(60), None)?;
    let before = driver.controller.target().bitrate;
    driver.try_apply(&Op::Limits(limits(150, 150, 5_000)))?;
    let wider = driver.controller.target().bitrate;
    ensure!(wider >= before * 0.95, "{before}, and {wider} after the maximum was raised");
    driver.try_apply(&Op::Limits(limits(150, 150, 400)))?;
    let lowered = driver.controller.target().bitrate;
    ensure!(lowered >= before.min(Bitrate::from_kbps(380)), "{lowered} below 400 kbit/s");
    Ok(())
}

fn raised_maximum(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let mut driver = Driver::new(factory, settings.with_limits(limits(150, 300, 500)));
    let (capacity, minute) = (Bitrate::from_kbps(1_000), TimeDelta::from_secs(60));
    driver.try_run_clean_link(capacity, minute, None)?;
    driver.try_apply(&Op::Limits(usual_limits()))?;
    let late = driver.try_run_clean_link(capacity, minute, None)?;
    ensure!(late / capacity > 0.6, "{late} of {capacity}, a minute after 500 kbit/s were lifted");
    Ok(())
}

fn new_route(factory: &ControllerFactory, settings: Settings) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    let capacity = Bitrate::from_kbps(1_000);
    driver.try_run_clean_link(capacity, TimeDelta::from_secs(60), None)?;
    driver.try_apply(&Op::NewRoute)?;
    // The same clock shows packets that take 150 ms longer.
    driver.try_apply(&Op::ReceiverClock(TimeDelta::from_millis(150)))?;
    let late = driver.try_run_clean_link(capacity, TimeDelta::from_secs(40), None)?;
    ensure!(late / capacity > 0.5, "{late} of {capacity} in the last of 40 s on the new route");
    Ok(())
}

fn invariants(factory: &ControllerFactory, settings: Settings, script: &[Op]) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    script.iter().try_for_each(|op| driver.try_apply(op))
}

fn equal_results(factory: &ControllerFactory, settings: Settings, script: &[Op]) -> Outcome {
    let mut one = Driver::new(factory, settings);
    let mut other = Driver::new(factory, settings);
    let seen = |driver: &Driver| {
        let controller = &driver.controller;
        (controller.target(), controller.metrics(), controller.next_timeout())
    };
    for op in script {
        one.try_apply(op)?;
        other.try_apply(op)?;
        let (one, other) = (seen(&one), seen(&other));
        ensure!(one == other, "{one:?} and then {other:?}");
    }
    Ok(())
}

fn constant_target(factory: &ControllerFactory, settings: Settings, script: &[Op]) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    for op in script {
        // The driver checks after each step that the target is within the limits.
        if !matches!(op, Op::Limits(_)) {
            driver.try_apply(op)?;
        }
    }
    Ok(())
}

/// After any script, two minutes on a clean link of 1 Mbit/s bring the rate back to at least half
/// the capacity. The bound is lower for feedback without arrival times: the round-trip time
/// includes the wait for feedback, which a delay-based controller takes for a queue.
fn healed_path(factory: &ControllerFactory, settings: Settings, script: &[Op]) -> Outcome {
    let mut driver = Driver::new(factory, settings);
    script.iter().try_for_each(|op| driver.try_apply(op))?;
    driver.try_apply(&Op::Limits(settings.limits))?;
    let capacity = Bitrate::from_kbps(1_000);
    let late = driver.try_run_clean_link(capacity, TimeDelta::from_secs(120), None)?;
    let least = if driver.format() == Format::RoundTrip { 0.35 } else { 0.5 };
    ensure!(late / capacity > least, "{late} after two minutes on a clean link of {capacity}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Controller, Metrics, Reason, Target};
    use crate::feedback::{FeedbackReport, SentPacket};
    use alloc::boxed::Box;
    use alloc::string::ToString as _;

    /// Adds 100 kbit/s at each report, whatever its limits are.
    struct Climber(Bitrate);

    impl Controller for Climber {
        fn on_packet_sent(&mut self, _now: Timestamp, _packet: &SentPacket) {}
        fn on_feedback(&mut self, _now: Timestamp, _report: &FeedbackReport) {
            self.0 = self.0 + Bitrate::from_kbps(100);
        }
        fn on_receiver_limit(&mut self, _now: Timestamp, _limit: Option<Bitrate>) {}
        fn set_limits(&mut self, _now: Timestamp, _limits: RateLimits) {}
        fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate) {}
        fn on_timeout(&mut self, _now: Timestamp) {}
        fn next_timeout(&self) -> Option<Timestamp> {
            None
        }
        fn target(&self) -> Target {
            Target::new(self.0, self.0)
        }
        fn metrics(&self) -> Metrics {
            Metrics::new(Reason::Increase, "climbing")
        }
    }

    fn climber() -> ControllerFactory {
        ControllerFactory::new("climber", |settings| Box::new(Climber(settings.limits.start())))
    }

    #[test]
    fn a_controller_that_leaves_its_limits_fails() {
        let failure = check_controller(&climber(), 1, 1).unwrap_err();
        let words = failure.to_string();
        assert!(words.contains("out of the limits"), "{words}");
    }

    #[test]
    fn a_failing_script_is_shortened_to_the_steps_that_matter() {
        let mut rng = Rng::new(1);
        let script = rng.script(LONG);
        let only = Settings::new(limits(300, 300, 350));
        let failure = hold(&climber(), "rule", only, &script, invariants).unwrap_err();
        let left = failure.script.as_slice();
        assert!(matches!(left, [Op::Feedback(_) | Op::Limits(_)]), "{failure}");
    }

    #[test]
    fn equal_seeds_draw_equal_scripts() {
        let script = |seed| format!("{:?}", Rng::new(seed).script(LONG));
        assert_eq!(script(1), script(1));
        assert_ne!(script(1), script(2));
    }
}
