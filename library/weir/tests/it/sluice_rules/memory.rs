//! What `sluice` needs of the heap: nothing.

use weir::Controller;
use weir::controller::RateLimits;
use weir::controllers::sluice::Sluice;
use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
use weir::units::{DataSize, Timestamp};

use crate::heap;

use super::feed::{ONE_WAY, kbps, ms};

// All windows are rings of sums or of minima, so the state is all the memory.
#[test]
fn a_million_packets_need_no_memory_beyond_the_state() {
    let before = heap::allocations();
    let mut sluice = Sluice::new(RateLimits::new(kbps(150), kbps(300), kbps(20_000)).unwrap());
    let mut allocated = heap::allocations() - before;
    let now = Timestamp::from_secs(100);
    for report in 0..50_000 {
        let now = now + ms(50) * report;
        let numbers = report * 20..(report + 1) * 20;
        let packets = numbers.clone().map(|number| {
            let (sent, queue) = (now - ms(400) + ms(number % 20), ms(number / 400 % 300));
            let size = DataSize::from_bytes(1_000 + number as u64 % 7 * 30);
            let arrival = (number % 50 != 0).then_some(sent + ONE_WAY + queue);
            PacketReport::new(number, size, sent).with_arrival_time(arrival)
        });
        let feedback = FeedbackReport::new(packets.collect());
        let before = heap::allocations();
        for number in numbers {
            sluice.on_packet_sent(now, &SentPacket::new(number, DataSize::from_bytes(1_000)));
        }
        sluice.on_feedback(now, &feedback);
        if sluice.next_timeout().is_some_and(|due| due <= now) {
            sluice.on_timeout(now);
        }
        allocated += heap::allocations() - before;
    }
    assert_eq!(allocated, 0);
    assert!(size_of::<Sluice>() <= 2_912, "{} bytes of state", size_of::<Sluice>());
}
