//! What was heard of received audio, in numbers and in words.

/// What happened to received audio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PlayedAudio {
    /// Samples that were played.
    pub samples: u64,
    /// Of these, samples that were made up, without the silence of a paused sender.
    pub concealed: u64,
    /// Gaps that were filled so.
    pub gaps: u64,
    pub received: u64,
    /// Packets that are missing. Late ones come after all, so a part of the time may have fewer
    /// than none.
    pub missing: i64,
    /// Seconds that all samples together spent in the jitter buffer, and how many left it.
    pub buffer_s: f64,
    pub emitted: u64,
}

/// From this share of lost packets on, gaps are heard that concealment does not hide.
const LOST_HEARD: f64 = 0.01;

impl PlayedAudio {
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.concealed += other.concealed;
        self.gaps += other.gaps;
        self.received += other.received;
        self.missing = self.missing.saturating_add(other.missing);
        self.buffer_s += other.buffer_s;
        self.emitted += other.emitted;
    }

    /// Share of the samples that were made up.
    pub fn concealed_ratio(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.concealed as f64 / self.samples as f64)
    }

    /// Share of the packets that are missing; `None` where none is expected.
    pub fn lost(&self) -> Option<f64> {
        let lost = u64::try_from(self.missing).unwrap_or(0);
        let packets = self.received.saturating_add(lost);
        if packets == 0 { None } else { Some(lost as f64 / packets as f64) }
    }

    /// Whether gaps are those of packets that did not come. A playout that hides as much with none
    /// lost has another cause.
    pub fn lacks_packets(&self) -> bool {
        self.lost() >= Some(LOST_HEARD)
    }

    /// Its values in words, as far as they are known.
    pub fn words(&self) -> String {
        let mut known = Vec::new();
        if let Some(ratio) = self.concealed_ratio() {
            known.push(format!("{:.1} % concealed in {}", ratio * 100.0, gaps(self.gaps)));
        }
        if self.emitted > 0 {
            let ms = self.buffer_s / self.emitted as f64 * 1e3;
            known.push(format!("jitter buffer {ms:.0} ms"));
        }
        if let Some(ratio) = self.lost() {
            known.push(format!("{:.1} % of the packets lost", ratio * 100.0));
        }
        known.join(", ")
    }
}

/// `, 0.2 s`, or `, 5.1 s in all` of several; nothing where it is unknown.
pub(crate) fn lasted(count: u64, seconds: f64) -> String {
    match count {
        _ if seconds <= 0.0 => String::new(),
        1 => format!(", {seconds:.1} s"),
        _ => format!(", {seconds:.1} s in all"),
    }
}

/// `1 gap`, `2 gaps`.
pub(crate) fn gaps(count: u64) -> String {
    let word = if count == 1 { "gap" } else { "gaps" };
    format!("{count} {word}")
}

/// `once`, `twice`, `3 times`.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}
