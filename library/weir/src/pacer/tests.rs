use super::*;
use crate::controller::Window;
use alloc::vec::Vec;

const SIZE: DataSize = DataSize::from_bytes(1250);

fn target(pacing_kbps: u64, available: Option<u64>) -> Target {
    let rate = Bitrate::from_kbps(pacing_kbps);
    let window = available.map(|bytes| Window {
        congestion_window: DataSize::from_bytes(10_000),
        available: DataSize::from_bytes(bytes),
    });
    Target { window, ..Target::new(rate, rate) }
}

fn probe(id: u32, kbps: u64, bytes: u64, packets: u32) -> Option<Probe> {
    let (rate, size) = (Bitrate::from_kbps(kbps), DataSize::from_bytes(bytes));
    Some(Probe { id: ProbeId(id), rate, size, packets })
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// The packets that leave up to a time: their time in ms, the media (`None` for padding), the
/// probe.
fn sent_until(pacer: &mut Pacer<u32>, until_ms: i64) -> Vec<(i64, Option<u32>, Option<u32>)> {
    let mut sent = Vec::new();
    let mut now = Timestamp::ZERO;
    while let Some(next) = pacer.next_send_time().filter(|&next| next <= at(until_ms)) {
        now = now.max(next);
        let release = pacer.dequeue(now).expect("it said so");
        sent.push((now.as_millis(), release.media, release.probe.map(|id| id.0)));
    }
    sent
}

fn drain(pacer: &mut Pacer<u32>) -> Vec<(i64, u32)> {
    let sent = sent_until(pacer, 1_000_000);
    sent.into_iter().map(|(ms, media, _)| (ms, media.expect("no padding"))).collect()
}

#[test]
fn packets_leave_in_order_at_the_pacing_rate_after_a_burst_of_5_ms() {
    let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
    (0..4).for_each(|packet| pacer.enqueue(SIZE, packet));
    assert_eq!(drain(&mut pacer), [(0, 0), (5, 1), (15, 2), (25, 3)]);
    assert_eq!(pacer.queued(), DataSize::ZERO);
}

// [LIBWEBRTC §PacingController]
#[test]
fn whole_bursts_leave_in_turn_and_what_comes_later_joins_one_with_room() {
    let burst = Burst::Whole(TimeDelta::from_millis(25));
    let mut pacer = Pacer::new(&Target { burst, ..target(1000, None) }); // 1250 B take 10 ms
    (0..7).for_each(|packet| pacer.enqueue(SIZE, packet));
    let sent = drain(&mut pacer);
    assert_eq!(sent, [(0, 0), (0, 1), (0, 2), (30, 3), (30, 4), (30, 5), (60, 6)]);
    // Paid up to 70 ms: a packet at 61 ms is 9 ms ahead.
    pacer.enqueue(SIZE, 7);
    assert_eq!(pacer.next_send_time(), Some(at(45)));
}

#[test]
fn urgent_packets_overtake_those_that_wait_and_keep_their_own_order() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.enqueue(SIZE, 0);
    pacer.enqueue_urgent(SIZE, 7);
    pacer.enqueue_urgent(SIZE, 8);
    pacer.enqueue(SIZE, 1);
    assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(7));
    pacer.enqueue_urgent(SIZE, 9);
    let rest: Vec<u32> = drain(&mut pacer).into_iter().map(|(_, packet)| packet).collect();
    assert_eq!(rest, [8, 9, 0, 1]);
    assert_eq!(pacer.queued(), DataSize::ZERO);
}

#[test]
fn queued_packets_wait_for_one_that_left_past_the_queue() {
    let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
    pacer.enqueue(SIZE, 0);
    pacer.on_packet_sent(at(0), SIZE);
    assert_eq!(drain(&mut pacer), [(5, 0)], "5 ms is the burst that is allowed");
    pacer.enqueue(SIZE, 1);
    for _ in 0..1_000 {
        pacer.on_packet_sent(at(1_000), SIZE);
    }
    assert_eq!(pacer.next_send_time(), Some(at(1_195)), "and not 10 s");
}

#[test]
fn audio_waits_for_neither_pictures_nor_the_window() {
    let mut pacer = Pacer::new(&target(100, None)); // 1250 B take 100 ms
    (0..3).for_each(|packet| pacer.enqueue(SIZE, packet));
    pacer.enqueue_urgent(SIZE, 7);
    assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(7));
    pacer.set_target(at(1), &target(100, Some(0)));
    for packet in [8, 9] {
        pacer.enqueue_audio(DataSize::from_bytes(100), packet);
    }
    assert_eq!(pacer.next_send_time(), Some(at(1)));
    assert_eq!(pacer.dequeue(at(1)).unwrap().media, Some(8));
    assert_eq!(pacer.dequeue(at(1)).unwrap().media, Some(9));
    assert_eq!((pacer.dequeue(at(1)), pacer.next_send_time()), (None, None));
    pacer.set_target(at(2), &target(100, Some(99_000)));
    // The urgent packet takes 100 ms, audio 16, and the burst lets 5 of them pass.
    assert_eq!(drain(&mut pacer)[0], (111, 0));
}

#[test]
fn audio_during_a_probe_is_a_part_of_it() {
    let mut pacer = Pacer::new(&target(1000, None));
    for packet in 0..9 {
        pacer.enqueue(SIZE, packet);
    }
    pacer.set_target(at(0), &Target { probe: probe(7, 5_000, 9_000, 5), ..target(1000, None) });
    assert_eq!(pacer.dequeue(at(0)).unwrap().probe, Some(ProbeId(7)));
    pacer.enqueue_audio(SIZE, 99);
    assert_eq!(pacer.next_send_time(), Some(at(2)));
    let audio = pacer.dequeue(at(2)).unwrap();
    assert_eq!((audio.media, audio.probe), (Some(99), Some(ProbeId(7))));
}

#[test]
fn audio_stays_when_the_pictures_are_discarded() {
    let mut pacer = Pacer::new(&target(100, None));
    for packet in 0..3 {
        pacer.enqueue(SIZE, packet);
    }
    pacer.enqueue_urgent(SIZE, 7);
    pacer.enqueue_audio(DataSize::from_bytes(100), 8);
    pacer.clear_pictures();
    assert_eq!(pacer.queued(), DataSize::from_bytes(100));
    assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(8));
    pacer.enqueue(SIZE, 9);
    assert_eq!(pacer.dequeue(at(100)).unwrap().media, Some(9));
    assert_eq!((pacer.dequeue(at(500)), pacer.queued()), (None, DataSize::ZERO));
}

// Found in simulation: at 100 kbit/s a padding packet takes 25 ms, and audio waited so long.
#[test]
fn audio_hardly_waits_in_a_probe_of_any_rate_and_makes_it_no_faster() {
    for kbps in [50, 100, 300, 1_000, 5_000] {
        let mut pacer = Pacer::new(&target(300, None));
        pacer.enqueue(SIZE, 0);
        let bytes = 30 * kbps; // 240 ms
        let probe = probe(7, kbps, bytes, 6);
        pacer.set_target(at(0), &Target { probe, ..target(300, None) });
        let (mut sent, mut queued, mut last) = (DataSize::ZERO, None, 0);
        for ms in 0..2_000 {
            if ms % 20 == 3 && queued.is_none() {
                pacer.enqueue_audio(DataSize::from_bytes(100), 99);
                queued = Some(ms);
            }
            while let Some(release) = pacer.dequeue(at(ms)) {
                if release.media == Some(99) {
                    let wait = ms - queued.take().unwrap();
                    assert!(wait <= 6, "{kbps} kbit/s: {wait} ms");
                }
                if release.probe.is_some() {
                    sent += release.size;
                    last = ms;
                }
            }
        }
        assert!(sent >= DataSize::from_bytes(bytes));
        // What leaves after the first packet shows the rate.
        let rate = sent.as_bytes() as i64 * 8 / last.max(1);
        let most = kbps as i64 * 6 / 5 + 20_000 / last.max(1);
        assert!(rate <= most, "{kbps} kbit/s: {rate}");
    }
}

#[test]
fn an_idle_time_saves_up_no_credit() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.enqueue(SIZE, 0);
    assert!(pacer.dequeue(Timestamp::from_secs(9)).is_some());
    pacer.enqueue(SIZE, 1);
    assert_eq!(pacer.next_send_time(), Some(at(9_005)));
}

#[test]
fn a_late_driver_makes_up_for_30_ms_and_no_more() {
    let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
    (0..20).for_each(|packet| pacer.enqueue(SIZE, packet));
    let mut sent_at = |ms| core::iter::from_fn(|| pacer.dequeue(at(ms))).count();
    assert_eq!(sent_at(0), 1, "the next one is due at 5 ms, the third at 15 ms");
    assert_eq!(sent_at(24), 2);
    assert_eq!(sent_at(26), 1, "the delay of 19 ms is made up for");
    assert_eq!(sent_at(1_000), 4, "30 ms, and one that leaves now");
    assert_eq!(sent_at(1_004), 0);
}

#[test]
fn what_the_window_held_back_is_not_made_up_for() {
    let mut pacer = Pacer::new(&target(1000, None));
    for packet in 0..9 {
        pacer.enqueue(SIZE, packet);
    }
    assert!(pacer.dequeue(at(0)).is_some());
    pacer.set_target(at(0), &target(1000, Some(0)));
    pacer.set_target(at(1_000), &target(1000, Some(99_000)));
    let sent = core::iter::from_fn(|| pacer.dequeue(at(1_000))).count();
    assert_eq!(sent, 1, "as a driver that is on time");
}

#[test]
fn a_late_driver_sends_a_probe_in_bursts_of_5_ms() {
    let mut pacer = Pacer::new(&target(1000, None));
    for packet in 0..40 {
        pacer.enqueue(SIZE, packet);
    }
    let probe = probe(1, 10_000, 50_000, 40); // 1250 B take 1 ms
    pacer.set_target(at(0), &Target { probe, ..target(1000, None) });
    let mut sent_at = |ms| core::iter::from_fn(|| pacer.dequeue(at(ms))).count();
    assert_eq!([sent_at(0), sent_at(5), sent_at(10), sent_at(30)], [1, 5, 5, 6]);
}

#[test]
fn a_new_rate_applies_to_what_is_not_paid_yet() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.enqueue(SIZE, 0);
    pacer.dequeue(Timestamp::ZERO);
    pacer.enqueue(SIZE, 1);
    pacer.set_target(Timestamp::ZERO, &target(500, None));
    assert_eq!(pacer.next_send_time(), Some(at(15)));
}

#[test]
fn a_closed_window_holds_the_queue_and_an_open_one_lets_it_go() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.enqueue(SIZE, 0);
    pacer.set_target(Timestamp::ZERO, &target(1000, Some(0)));
    assert_eq!(pacer.next_send_time(), None);
    assert_eq!(pacer.dequeue(Timestamp::from_secs(1)), None);
    pacer.set_target(Timestamp::ZERO, &target(1000, Some(1)));
    assert!(pacer.dequeue(Timestamp::from_secs(1)).is_some());
}

// At 5 Mbit/s, 1250 B take 2 ms, a padding packet of 313 B half a ms.
#[test]
fn a_probe_sends_media_first_and_then_padding_at_its_own_rate() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.enqueue(SIZE, 0);
    pacer.enqueue(SIZE, 1);
    pacer.set_target(at(0), &Target { probe: probe(7, 5_000, 3_000, 5), ..target(1000, None) });
    let sent = sent_until(&mut pacer, 1_000);
    let padding = (None, Some(7));
    assert_eq!(sent[..2], [(0, Some(0), Some(7)), (2, Some(1), Some(7))]);
    assert_eq!(sent[2..].iter().map(|s| (s.1, s.2)).collect::<Vec<_>>(), [padding; 3]);
    assert_eq!(sent[2..].iter().map(|s| s.0).collect::<Vec<_>>(), [4, 4, 5]);
}

// [LIBWEBRTC §PacingController]
#[test]
fn a_small_packet_leads_a_probe_if_the_driver_can_pad_else_it_waits() {
    let mut pacer = Pacer::new(&target(1000, None));
    pacer.set_leads_probes(true);
    pacer.set_target(at(0), &Target { probe: probe(7, 5_000, 3_000, 4), ..target(1000, None) });
    assert_eq!(pacer.next_send_time(), None);
    pacer.enqueue(SIZE, 0);
    pacer.enqueue(SIZE, 1);
    let sent = sent_until(&mut pacer, 1_000);
    let media: Vec<_> = sent.iter().map(|s| s.1).collect();
    assert_eq!(media, [None, Some(0), Some(1), None]);
    assert!(sent.iter().all(|s| s.2 == Some(7)));
}

#[test]
fn a_probe_ends_only_with_its_bytes_and_its_packets() {
    for (bytes, packets, expect) in [(1, 4, 4), (1_000, 1, 4), (1_253, 5, 5)] {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(PADDING_PACKET, 0);
        let probe = probe(1, 5_000, bytes, packets);
        pacer.set_target(at(0), &Target { probe, ..target(1000, None) });
        assert_eq!(sent_until(&mut pacer, 1_000).len(), expect, "{bytes} B, {packets} packets");
    }
}

#[test]
fn a_probe_waits_for_a_media_packet_and_is_sent_once() {
    let mut pacer = Pacer::new(&target(1000, None));
    let wanted = Target { probe: probe(1, 5_000, 2_000, 1), ..target(1000, None) };
    pacer.set_target(at(0), &wanted);
    assert_eq!(pacer.next_send_time(), None);
    pacer.enqueue(SIZE, 0);
    assert_eq!(sent_until(&mut pacer, 1_000).len(), 4, "one packet and three of padding");
    pacer.set_target(at(100), &wanted);
    pacer.enqueue(SIZE, 1);
    assert_eq!(sent_until(&mut pacer, 1_000).len(), 1);
}

#[test]
fn a_new_probe_takes_the_place_of_an_old_one_and_none_ends_it() {
    let mut pacer = Pacer::new(&target(1000, None));
    let wanted = |probe| Target { probe, ..target(1000, None) };
    for packet in 0..3 {
        pacer.enqueue(SIZE, packet);
    }
    pacer.set_target(at(0), &wanted(probe(1, 5_000, 9_000, 9)));
    assert_eq!(pacer.dequeue(at(0)).unwrap().probe, Some(ProbeId(1)));
    pacer.set_target(at(0), &wanted(probe(2, 5_000, 9_000, 9)));
    assert_eq!(pacer.dequeue(at(0)).unwrap().probe, Some(ProbeId(2)));
    pacer.set_target(at(0), &wanted(None));
    // Two packets of 10 ms have been sent. The burst lets the third one leave 5 ms earlier.
    assert_eq!(sent_until(&mut pacer, 1_000), [(15, Some(2), None)]);
}

#[test]
fn a_cleared_queue_is_empty_and_what_left_before_still_counts() {
    let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
    (0..3).for_each(|packet| pacer.enqueue(SIZE, packet));
    pacer.enqueue_urgent(SIZE, 9);
    assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(9));
    pacer.clear();
    assert_eq!((pacer.queued(), pacer.next_send_time()), (DataSize::ZERO, None));
    pacer.enqueue(SIZE, 7);
    assert_eq!(drain(&mut pacer), [(5, 7)]);
}

#[test]
fn padding_packets_have_the_size_that_the_driver_makes() {
    let padding_rate = Bitrate::from_kbps(800);
    let mut pacer: Pacer<u32> = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
    pacer.set_padding_size(DataSize::from_bytes(100)); // 1 ms
    let release = pacer.dequeue(at(0)).unwrap();
    assert_eq!((release.size.as_bytes(), release.media), (100, None));
    assert_eq!(pacer.next_send_time(), Some(at(1)));
}

// At 626 kbit/s, 313 B take 4 ms. Media counts too.
#[test]
fn padding_fills_up_to_the_padding_rate() {
    let padding_rate = Bitrate::from_kbps(626);
    let mut pacer = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
    let times = |sent: Vec<(i64, Option<u32>, Option<u32>)>| -> Vec<i64> {
        sent.iter().map(|s| s.0).collect()
    };
    assert_eq!(times(sent_until(&mut pacer, 10)), [0, 4, 8]);
    pacer.enqueue(PADDING_PACKET, 0);
    assert_eq!(pacer.dequeue(at(11)).unwrap().media, Some(0));
    assert_eq!(pacer.next_send_time(), Some(at(16)), "12 ms were paid, and the media packet");
}

#[test]
fn media_above_the_padding_rate_delays_padding_half_a_second_at_most() {
    let padding_rate = Bitrate::from_kbps(10);
    let mut pacer = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
    for packet in 0..10 {
        pacer.enqueue(SIZE, packet);
    }
    while pacer.queued() > DataSize::ZERO {
        pacer.dequeue(at(20)).unwrap();
        if pacer.queued() > DataSize::ZERO {
            pacer.set_target(at(20), &Target { padding_rate, ..target(1_000_000, None) });
        }
    }
    assert_eq!(pacer.next_send_time(), Some(at(520)));
}
