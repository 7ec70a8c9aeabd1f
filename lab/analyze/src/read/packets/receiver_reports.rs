//! What receiver reports say of a sent stream: losses, of the packets that they were lost of.
//!
//! A report names the highest number that had come, and all that were lost so far
//! [RFC3550 §6.4.1]. So its losses belong to the packets between the numbers of two reports, which
//! may be 5 s apart, and not to the moment at which it came.
//!
//! [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1

use weir_rtcp::{Message, messages};

use super::PacketLog;

/// The highest sequence number of a sent stream, and how many numbers it has used, by the ends of
/// intervals in ns.
pub(crate) struct Numbers(pub Vec<(i64, u16, u64)>);

impl Numbers {
    /// How many numbers the stream had used when this one was sent, seen from a time shortly after.
    fn used_at(&self, time: i64, number: u16) -> Option<u64> {
        let index = self.0.partition_point(|(end, _, _)| *end < time).min(self.0.len() - 1);
        let (_, highest, used) = self.0.get(index)?;
        let ahead = i64::from(number.wrapping_sub(*highest) as i16);
        used.checked_add_signed(ahead)
    }

    /// Losses by the ends of intervals, as far as they are reported.
    pub fn losses(&self, log: &PacketLog, ssrc: u32) -> Option<Losses> {
        let mut known: Vec<(u64, f64)> = Vec::new();
        let mut last: Option<(u64, i64)> = None;
        for (time, bytes) in &log.rtcp {
            for block in blocks(bytes) {
                if block.ssrc != ssrc {
                    continue;
                }
                let number = block.extended_highest_sequence_number as u16;
                let Some(used) = self.used_at(time.as_nanos(), number) else { continue };
                let total = i64::from(block.cumulative_lost.get());
                let (from, lost) = match last {
                    // The first report counts from a begin that may be older than the file.
                    None => (0, f64::from(block.fraction_lost) / 256.0 * used as f64),
                    Some((before, _)) if used <= before => continue,
                    Some((before, total_before)) => (before, (total - total_before) as f64),
                };
                if known.is_empty() {
                    known.push((from, 0.0));
                }
                let so_far = known.last().map_or(0.0, |it| it.1);
                // More cannot be lost than were sent.
                known.push((used, so_far + lost.min((used - from) as f64)));
                last = Some((used, total));
            }
        }
        (known.len() > 1).then_some(Losses { known })
    }

    /// How many numbers were used by a time in ns.
    pub fn used_by(&self, time: i64) -> Option<u64> {
        let index = self.0.partition_point(|(end, _, _)| *end < time);
        self.0.get(index).map(|(_, _, used)| *used)
    }
}

/// Lost packets of a stream by the numbers that it has used.
pub(crate) struct Losses {
    known: Vec<(u64, f64)>,
}

impl Losses {
    /// Of so many numbers, those of which the reports speak.
    pub fn told_of(&self, used: Option<u64>) -> Option<u64> {
        let (last, _) = self.known.last()?;
        Some(used?.min(*last))
    }

    /// Lost packets among the first ones; `None` beyond what was reported.
    pub fn among(&self, used: u64) -> Option<f64> {
        let index = self.known.partition_point(|(at, _)| *at < used);
        let (to, lost) = self.known.get(index)?;
        let Some((from, before)) = index.checked_sub(1).map(|before| self.known[before]) else {
            return Some(*lost);
        };
        Some(before + (lost - before) * (used - from) as f64 / (to - from).max(1) as f64)
    }
}

/// The report blocks of a datagram.
pub(crate) fn blocks(bytes: &[u8]) -> Vec<weir_wire::report::ReportBlock> {
    let mut found = Vec::new();
    for message in messages(bytes).flatten() {
        if let Message::Report(view) = message {
            found.extend(view.blocks());
        }
    }
    found
}

/// When a sender report was sent, by the middle of its NTP time.
pub(crate) fn sender_report(bytes: &[u8]) -> Option<u32> {
    messages(bytes).flatten().find_map(|message| match message {
        Message::Report(view) => {
            view.sender_info().map(|info| weir_wire::report::compact_ntp(info.ntp_time))
        }
        _ => None,
    })
}
