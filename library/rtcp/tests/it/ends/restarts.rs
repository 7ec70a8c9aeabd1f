//! Senders and receivers that begin anew, alone or with their clocks [RFC3550 §A.1].

use weir::controller::Settings;
use weir::{Algorithm, Bitrate, TimeDelta};
use weir_rtcp::Feedback;

use super::path::{Path, kbps, limits};

const FORMATS: [Feedback; 3] = [Feedback::Twcc, Feedback::Ccfb, Feedback::ReceiverReports];
/// Numbers with which an RTP stream goes on: behind, ahead, and at the wrap.
const NUMBERS: [u16; 6] = [0, 100, 1_500, 30_000, 40_000, 65_530];

/// The smallest target of some time.
fn least(path: &mut Path, time: TimeDelta) -> Bitrate {
    let (end, mut least) = (path.now + time, path.sender.target().bitrate);
    while path.now < end {
        path.run(TimeDelta::from_millis(10));
        least = least.min(path.sender.target().bitrate);
    }
    least
}

/// A path that carries more than the limits allow: its queue has no end.
fn wide(algorithm: Algorithm, format: Feedback) -> Path {
    let mut path = Path::new(algorithm, format);
    path.capacity = kbps(8_000);
    path
}

/// A call of 20 s.
fn settled(algorithm: Algorithm, format: Feedback) -> Path {
    let mut path = wide(algorithm, format);
    path.run(TimeDelta::from_secs(20));
    path
}

#[test]
fn an_rtp_stream_that_goes_on_elsewhere_costs_no_rate() {
    for format in FORMATS {
        for algorithm in Algorithm::all() {
            let mut through = settled(algorithm, format);
            let usual = least(&mut through, TimeDelta::from_secs(5));
            for number in NUMBERS {
                let mut path = settled(algorithm, format);
                path.go_on_with(number);
                let now = least(&mut path, TimeDelta::from_secs(5));
                let case = format!("{algorithm} {format:?} {number}");
                // What was on the way is not reported.
                assert!(now > usual * 0.7, "{case}: {now} in place of {usual}");
                assert!(path.loss_ratio() < 0.02, "{case}: {}", path.loss_ratio());
            }
        }
    }
}

#[test]
fn a_sender_that_begins_anew_is_as_one_that_begins() {
    for format in FORMATS {
        for algorithm in Algorithm::all() {
            let mut fresh = wide(algorithm, format);
            fresh.run(TimeDelta::from_secs(10));
            let usual = fresh.sender.target().bitrate;
            for number in NUMBERS {
                let mut path = settled(algorithm, format);
                path.begin_sender_anew(algorithm, Settings::new(limits()), number);
                path.run(TimeDelta::from_secs(10));
                let now = path.sender.target().bitrate;
                let case = format!("{algorithm} {format:?} {number}");
                assert!(now > usual * 0.8, "{case}: {now} in place of {usual}");
            }
        }
    }
}

/// The loss ratio that a sender knows of after losses of a fifth.
fn told(mut path: Path) -> f64 {
    path.run(TimeDelta::from_secs(3));
    path.lose_each = 5;
    path.run(TimeDelta::from_secs(5));
    path.loss_ratio()
}

#[test]
fn losses_after_a_sender_began_anew_are_told() {
    for format in FORMATS {
        let usual = told(wide(Algorithm::Nada, format));
        let mut path = settled(Algorithm::Nada, format);
        path.begin_sender_anew(Algorithm::Nada, Settings::new(limits()), 7);
        let anew = told(path);
        assert!(anew > usual * 0.8 && anew > 0.01, "{format:?}: {anew} in place of {usual}");
    }
}

#[test]
fn a_receiver_that_begins_anew_costs_no_rate() {
    for format in FORMATS {
        for algorithm in Algorithm::all() {
            for behind in [TimeDelta::ZERO, TimeDelta::from_secs(3), TimeDelta::from_secs(3_600)] {
                let mut path = wide(algorithm, format);
                path.receiver_ahead = behind;
                path.begin_receiver_anew(format);
                path.run(TimeDelta::from_secs(20));
                let before = path.sender.target().bitrate;
                path.receiver_ahead = TimeDelta::ZERO;
                path.begin_receiver_anew(format);
                let now = least(&mut path, TimeDelta::from_secs(5));
                let case = format!("{algorithm} {format:?} {behind}");
                assert!(now > before.min(kbps(3_000)) * 0.6, "{case}: {now} after {before}");
            }
        }
    }
}
