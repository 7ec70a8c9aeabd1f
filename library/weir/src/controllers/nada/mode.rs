//! The rate adaptation mode `rmode` [NADA §4.2].

use super::log_window::LogWindow;

/// Selects between the two update rules of the reference rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// `rmode` 0: the path shows no sign of congestion.
    RampUp,
    /// `rmode` 1: the path shows a sign of congestion.
    Gradual,
}

impl Mode {
    /// Chooses ramp-up if, within `LOGWIN`, no packet was lost, the filtered delay showed no queue
    /// [NADA §4.2], and no packet was marked (NADA-D11). Losses are counted directly because the
    /// smoothed ratio `p_loss` decays but never reaches zero.
    pub(super) fn of(window: &LogWindow) -> Self {
        if window.has_loss() || window.has_delay() || window.has_mark() {
            Self::Gradual
        } else {
            Self::RampUp
        }
    }

    /// Name of the mode in the standard.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::RampUp => "accelerated ramp-up",
            Self::Gradual => "gradual update",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_window::Reported;
    use super::*;
    use crate::units::{TimeDelta, Timestamp};

    // [NADA §4.2], NADA-D11
    #[test]
    fn ramp_up_needs_500_ms_without_loss_queue_and_mark() {
        for bits in 0..8_u8 {
            let reported =
                Reported { lost: bits & 1 > 0, delayed: bits & 2 > 0, marked: bits & 4 > 0 };
            let mut window = LogWindow::default();
            let mut feed = |number: i64, reported| {
                let sent = Timestamp::from_millis(number * 100);
                window.on_packet(number, sent, reported, TimeDelta::from_millis(500));
                Mode::of(&window)
            };
            let expected = if bits == 0 { Mode::RampUp } else { Mode::Gradual };
            assert_eq!(feed(0, reported), expected, "{reported:?}");
            assert_eq!(feed(4, Reported::default()), expected, "{reported:?}");
            assert_eq!(feed(5, Reported::default()), Mode::RampUp, "{reported:?}");
        }
    }
}
