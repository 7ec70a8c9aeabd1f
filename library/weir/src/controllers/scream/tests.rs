//! Tests the whole controller with single reports. Closed-loop tests are in tests/it/closed_loop.

use super::*;
use crate::controllers::scream_common::testing::{SIZE, round, round_with_ecn};
use crate::feedback::Ecn;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn controller() -> Scream {
    let [min, start, max] = [50, 300, 2_500].map(Bitrate::from_kbps);
    Scream::new(RateLimits::new(min, start, max).unwrap())
}

// [SCREAM §4.1.2.3]: a varying queue changes the delay target only if there are losses, too.
#[test]
fn a_queue_with_losses_raises_the_delay_target_and_one_without_does_not() {
    let target = |loses: bool| {
        let mut scream = controller();
        (0..5).for_each(|number| round(&mut scream, number, false, |_| Some(30)));
        for number in 5..35 {
            let lost = |index| loses && index == 5;
            round(&mut scream, number, false, |index| (!lost(index)).then_some(230));
        }
        scream.delay_target.value()
    };
    assert_eq!(target(false), QDELAY_TARGET_LO);
    assert!(target(true) > QDELAY_TARGET_LO * 1.5, "{}", target(true));
}

// SCREAM-D13: the new clock is 30 ms behind, and the queuing delay is 40 ms.
#[test]
fn a_new_clock_keeps_the_queue() {
    let mut scream = controller();
    round(&mut scream, 0, false, |_| Some(30));
    round(&mut scream, 1, false, |_| Some(70));
    let queue = Some(TimeDelta::from_millis(40));
    assert_eq!(scream.metrics().queuing_delay, queue);
    round(&mut scream, 2, true, |_| Some(40));
    assert_eq!(scream.metrics().queuing_delay, queue);
}

// [SCREAM §4.1.2.1], [SCREAM §4.1.3]: a loss reduces the window by a fifth and the target by a
// tenth.
#[test]
fn a_loss_lowers_window_and_target_at_the_report_that_shows_it() {
    let mut scream = controller();
    (0..3).for_each(|number| round(&mut scream, number, false, |_| Some(30)));
    let (window, bitrate) = (scream.window.size(), scream.target().bitrate);
    round(&mut scream, 3, false, |index| (index != 2).then_some(30));
    let (after, lower) = (scream.window.size(), scream.target().bitrate);
    assert!(after <= window * 0.8 + SIZE * 0.1, "{after} after {window}");
    assert_eq!(lower, bitrate * 0.9);
    assert_eq!(scream.metrics().reason, Reason::Loss);
}

// [SCREAM §4.1.2.1], [SCREAM §4.1.3]: a mark reduces both by a tenth.
#[test]
fn a_mark_lowers_window_and_target_with_ecn_and_means_nothing_without() {
    let after_mark = |ecn| {
        let mut scream =
            Scream::new(Settings { ecn, ..Settings::new(controller().settings.limits) });
        let capable = |_| (Some(30), Ecn::Ect0);
        (0..3).for_each(|number| round_with_ecn(&mut scream, number, false, capable));
        let (window, bitrate) = (scream.window.size(), scream.target().bitrate);
        let mark = |index| (Some(30), if index == 2 { Ecn::Ce } else { Ecn::Ect0 });
        round_with_ecn(&mut scream, 3, false, mark);
        let (after, lower) = (scream.window.size(), scream.target().bitrate);
        (after < window * 0.95, lower == bitrate * 0.9, scream.metrics().reason == Reason::Ecn)
    };
    assert_eq!(after_mark(EcnMode::Classic), (true, true, true));
    assert_eq!(after_mark(EcnMode::Off), (false, false, false));
}

#[test]
fn a_receivers_limit_below_the_target_is_the_reason_for_it() {
    let mut scream = controller();
    scream.on_receiver_limit(at(0), Some(Bitrate::from_kbps(200)));
    assert_eq!(scream.target().bitrate, Bitrate::from_kbps(200));
    assert_eq!(scream.metrics().reason, Reason::ReceiverLimit);
    scream.on_receiver_limit(at(1), Some(Bitrate::from_kbps(400)));
    assert_eq!(scream.target().bitrate, Bitrate::from_kbps(300));
    assert_eq!(scream.metrics().reason, Reason::Start);
}

// [RFC8699 §5.3.1]
#[test]
fn a_share_moves_target_and_window_alike() {
    let mut scream = controller();
    round(&mut scream, 0, false, |_| Some(30));
    let (bitrate, window) = (scream.target().bitrate, scream.window.size());
    scream.on_shared_rate(at(500), bitrate * 2.0);
    assert_eq!(scream.target().bitrate, bitrate * 2.0);
    assert_eq!(scream.window.size(), window * 2.0);
    assert_eq!(scream.metrics().reason, Reason::Coupled);
}

// [SCREAM §4.1.3]: every 200 ms, starting with the first frame.
#[test]
fn the_target_is_adjusted_on_a_grid_of_200_ms() {
    let mut scream = controller();
    assert_eq!(scream.next_timeout(), None);
    scream.on_media_queued(at(70), SIZE, SIZE);
    assert_eq!(scream.next_timeout(), Some(at(270)));
    scream.on_media_queued(at(100), SIZE, SIZE);
    scream.on_timeout(at(280));
    assert_eq!(scream.next_timeout(), Some(at(470)), "the grid is kept");
    scream.on_timeout(at(1_000));
    assert_eq!(scream.next_timeout(), Some(at(1_200)), "unless an interval was missed");
}
