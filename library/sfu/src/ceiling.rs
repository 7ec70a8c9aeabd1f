//! How much has arrived since the path was last full.
//!
//! A controller whose source sends less than its target hears of no limit, so its target rises to
//! some multiple of what is sent, whatever the path carries. That is no room for one more layer. So
//! when the path was full, the rate that arrived then is remembered, and nothing above it counts as
//! room until something has arrived faster.

use alloc::collections::VecDeque;

use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Time over which arrivals are measured. A packet more or less changes little.
const WINDOW: TimeDelta = TimeDelta::from_millis(200);
/// A full path is noticed some time after it was full.
const MEMORY: TimeDelta = TimeDelta::from_secs(2);
/// What arrived before may be of a path that carried more. What a full path carries now arrives
/// within this time.
const SETTLES: TimeDelta = TimeDelta::from_secs(1);

/// From one packet to the next, a queue grows by less. A clock that steps moves all its times.
const STEP: TimeDelta = TimeDelta::from_secs(1);

/// Whether a one-way delay changed because a clock stepped.
fn is_step(change: TimeDelta) -> bool {
    change >= STEP || change <= -STEP
}

/// The rate that arrived when the path was last full, and the arrivals from which it follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceiling {
    rate: Option<Bitrate>,
    /// The first arrival of the open window, and the bytes after it.
    open: Option<(Timestamp, DataSize)>,
    /// Ends and rates of the windows of the last two seconds.
    windows: VecDeque<(Timestamp, Bitrate)>,
    /// End of the newest window when the path was last full, until it has settled.
    full_at: Option<Timestamp>,
    last_arrival: Option<Timestamp>,
    /// Arrival less departure of the last packet.
    delay: Option<TimeDelta>,
}

impl Ceiling {
    /// What may be relied on: nothing is known to be too much if it is `None`.
    pub fn rate(&self) -> Option<Bitrate> {
        self.rate
    }

    /// The rate of the newest arrivals, if they are of now.
    pub fn newest(&self) -> Option<Bitrate> {
        let &(end, rate) = self.windows.back()?;
        (self.last_arrival? - end <= WINDOW * 3).then_some(rate)
    }

    /// The most that arrived in a window of the last two seconds.
    pub fn recent(&self) -> Option<Bitrate> {
        let &(newest, _) = self.windows.back()?;
        Some(self.peak_since(newest - MEMORY - WINDOW))
    }

    /// Packets arrived. Returns the rate if it is lower than it was: what arrived before was of a
    /// path that carried more.
    pub fn on_feedback(&mut self, report: &FeedbackReport) -> Option<Bitrate> {
        let before = self.rate;
        for packet in &report.packets {
            if let Some(arrival) = packet.arrival_time {
                let delay = arrival - packet.send_time;
                if self.delay.replace(delay).is_some_and(|last| is_step(delay - last)) {
                    self.on_new_clock();
                }
                self.on_arrival(arrival, packet.size);
            }
        }
        self.rate.filter(|&rate| before.is_some_and(|before| rate < before))
    }

    fn on_arrival(&mut self, arrival: Timestamp, size: DataSize) {
        // A window with a pause in it would measure the pause.
        let last = self.last_arrival.replace(arrival).unwrap_or(arrival);
        if arrival - last > WINDOW * 3 {
            self.open = None;
        }
        let Some((start, bytes)) = &mut self.open else {
            self.open = Some((arrival, DataSize::ZERO));
            return;
        };
        *bytes += size;
        let length = arrival - *start;
        if length < WINDOW {
            return;
        }
        self.windows.push_back((arrival, *bytes / length));
        self.open = Some((arrival, DataSize::ZERO));
        while self.windows.front().is_some_and(|&(end, _)| arrival - end > MEMORY) {
            self.windows.pop_front();
        }
        if let Some(full_at) = self.full_at.filter(|&full_at| arrival - full_at >= SETTLES) {
            self.full_at = None;
            let now = self.peak_since(full_at);
            self.rate = self.rate.map(|rate| rate.min(now));
        }
    }

    /// The most that arrived in a window that ended after this.
    fn peak_since(&self, start: Timestamp) -> Bitrate {
        let mut peak = Bitrate::ZERO;
        for &(end, rate) in &self.windows {
            if end > start {
                peak = peak.max(rate);
            }
        }
        peak
    }

    /// The path is full. `rate` is at which a train arrived that showed it.
    pub fn on_full(&mut self, rate: Bitrate) {
        let (Some(&(newest, _)), Some(recent)) = (self.windows.back(), self.recent()) else {
            self.rate = (rate > Bitrate::ZERO).then_some(rate);
            return;
        };
        self.rate = Some(rate.max(recent));
        // No window is of both the time before and after. A path that stays full is measured.
        if self.full_at.replace(newest) != Some(newest) {
            self.open = None;
        }
    }

    /// Packets arrived at this rate without queuing.
    pub fn on_carried(&mut self, rate: Bitrate) {
        self.rate = self.rate.map(|ceiling| ceiling.max(rate));
    }

    /// The clock of the arrivals changed.
    pub fn on_new_clock(&mut self) {
        (self.open, self.full_at, self.delay) = (None, None, None);
        self.windows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    /// Packets of 1000 bytes from a time on, for a second.
    fn arrive(ceiling: &mut Ceiling, start_ms: i64, rate: Bitrate) {
        let size = DataSize::from_bytes(1_000);
        let mut packets = alloc::vec::Vec::new();
        for number in 0..(rate.as_bps() / 8_000) as i64 {
            let at = Timestamp::from_millis(start_ms) + (size / rate) * number;
            packets.push(PacketReport::new(number, size, at).with_arrival_time(Some(at)));
        }
        ceiling.on_feedback(&FeedbackReport::new(packets));
    }

    #[test]
    fn nothing_is_known_before_the_path_was_full() {
        let mut ceiling = Ceiling::default();
        arrive(&mut ceiling, 0, kbps(800));
        ceiling.on_carried(kbps(900));
        assert_eq!(ceiling.rate(), None);
    }

    #[test]
    fn a_full_path_carries_the_most_that_arrived_in_the_last_two_seconds() {
        let mut ceiling = Ceiling::default();
        arrive(&mut ceiling, 0, kbps(2_000));
        arrive(&mut ceiling, 5_000, kbps(1_000));
        arrive(&mut ceiling, 6_000, kbps(800));
        ceiling.on_full(Bitrate::ZERO);
        let rate = ceiling.rate().expect("it was full");
        assert!(rate > kbps(950) && rate < kbps(1_050), "{rate}");
        ceiling.on_full(kbps(1_500));
        assert_eq!(ceiling.rate(), Some(kbps(1_500)));
    }

    // Found in simulation: the link fell from 800 to 250 kbit/s, and 340 seemed to fit.
    #[test]
    fn a_second_later_only_what_arrived_since_counts() {
        let mut ceiling = Ceiling::default();
        arrive(&mut ceiling, 0, kbps(800));
        ceiling.on_full(Bitrate::ZERO);
        arrive(&mut ceiling, 1_000, kbps(250));
        arrive(&mut ceiling, 2_000, kbps(200));
        let rate = ceiling.rate().expect("it was full");
        assert!(rate > kbps(230) && rate < kbps(300), "{rate}");
    }

    // Found in simulation: pictures were shown again, and their key frames counted for the pause.
    #[test]
    fn what_arrives_after_a_pause_is_measured_without_it() {
        for pause_ms in [1_000, 8_000, 3_600_000] {
            let mut ceiling = Ceiling::default();
            arrive(&mut ceiling, 0, kbps(2_000));
            arrive(&mut ceiling, 1_000 + pause_ms, kbps(2_000));
            let newest = ceiling.newest().expect("it arrived now");
            assert!(newest > kbps(1_900) && newest < kbps(2_100), "{newest}");
            for &(_, rate) in &ceiling.windows {
                assert!(rate > kbps(1_900), "{rate}");
            }
        }
    }

    #[test]
    fn a_receiver_whose_clock_steps_is_measured_as_before() {
        for step_s in [-3_600, -120, -2, 2, 3_600] {
            let mut ceiling = Ceiling::default();
            arrive(&mut ceiling, 0, kbps(1_000));
            let step = TimeDelta::from_secs(step_s);
            let size = DataSize::from_bytes(1_000);
            for number in 0..200 {
                let sent = Timestamp::from_secs(1) + TimeDelta::from_millis(8) * number;
                let packet = PacketReport::new(number, size, sent);
                let packet = packet.with_arrival_time(Some(sent + step));
                ceiling.on_feedback(&FeedbackReport::new(alloc::vec![packet]));
                if number == 100 {
                    ceiling.on_full(Bitrate::ZERO);
                }
            }
            let rate = ceiling.rate().expect("it was full");
            assert!(rate > kbps(900) && rate < kbps(1_100), "{step_s} s: {rate}");
        }
    }

    #[test]
    fn what_arrives_faster_lifts_it_and_what_arrives_slower_does_not() {
        let mut ceiling = Ceiling::default();
        ceiling.on_full(kbps(1_000));
        ceiling.on_carried(kbps(900));
        assert_eq!(ceiling.rate(), Some(kbps(1_000)));
        ceiling.on_carried(kbps(1_200));
        assert_eq!(ceiling.rate(), Some(kbps(1_200)));
    }
}
