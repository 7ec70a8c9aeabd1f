//! A line for each second, and the totals.

use weir::{TimeDelta, Timestamp};

use crate::camera::{Camera, Totals};

const SECOND: TimeDelta = TimeDelta::from_secs(1);

/// Prints what the camera does.
#[derive(Default)]
pub struct Progress {
    seconds: i64,
    last: Totals,
    heap_peak: u64,
}

impl Progress {
    /// When the next line is due.
    pub fn next_line(&self) -> Timestamp {
        Timestamp::ZERO + SECOND * (self.seconds + 1)
    }

    /// Prints a line if it is due.
    pub fn on_time(&mut self, now: Timestamp, camera: &Camera) {
        self.heap_peak = self.heap_peak.max(heap_in_use());
        if now < self.next_line() {
            return;
        }
        self.seconds += 1;
        let totals = camera.totals();
        let sent = (totals.sent.as_bytes() - self.last.sent.as_bytes()) * 8 / 1_000;
        println!(
            "time_s {} target_kbps {:.0} sent_kbps {sent} pictures {} queued_bytes {}",
            self.seconds,
            camera.target().as_kbps_f64(),
            totals.pictures - self.last.pictures,
            camera.queued().as_bytes(),
        );
        self.last = totals;
    }

    /// Prints the totals of a run that ended at `end`.
    pub fn finish(mut self, end: Timestamp, camera: &Camera) {
        self.on_time(end, camera);
        let Totals { pictures, left_out, late, packets, sent, feedback } = camera.totals();
        println!(
            "total seconds {} pictures {pictures} left_out {left_out} late {late} packets \
             {packets} sent_bytes {} feedback {feedback} heap_peak_bytes {}",
            self.seconds,
            sent.as_bytes(),
            self.heap_peak,
        );
    }
}

/// Bytes that the program and the encoder hold on the heap.
fn heap_in_use() -> u64 {
    // SAFETY: mallinfo2 only reads the state of the allocator.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}
