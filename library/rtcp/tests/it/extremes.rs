//! Times of the whole range, as a host with a broken or a set clock passes them. The tests run with
//! overflow checks, so an overflow is a panic here.

use proptest::prelude::*;
use weir::feedback::Ecn;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Random, Receiver, ReceiverConfig, Sender, SenderConfig};
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};

const SSRC: u32 = 7;
const ID: ExtensionId = ExtensionId::new(1).unwrap();
const TIME_ID: ExtensionId = ExtensionId::new(2).unwrap();
const BOTH: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(Some(ID)).with_abs_send_time(Some(TIME_ID));
/// Most packets taken at one time.
const TAKEN: usize = 64;

fn middle() -> Random {
    Box::new(|| 0.5)
}

fn rtp(number: u16, timestamp: u32) -> Vec<u8> {
    let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), number, timestamp)
        .with_transport_sequence_number(Some((ID, number)))
        .with_abs_send_time(Some((TIME_ID, AbsSendTime::from_ticks(0))));
    let mut bytes = vec![0; header.size() + 1_000];
    header.emit(&mut bytes);
    bytes
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    let nanos = prop_oneof![
        4 => (0_i64..40_000).prop_map(|ms| ms * 1_000_000),
        2 => (0_i64..60_000_000_000).prop_map(|back| i64::MAX - back),
        1 => (0_i64..60_000_000_000).prop_map(|on| i64::MIN + on),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, i64::MAX / 2, -1, 0, 1]),
        1 => any::<i64>(),
    ];
    nanos.prop_map(Timestamp::from_nanos)
}

fn any_format() -> impl Strategy<Value = Feedback> {
    prop::sample::select(vec![Feedback::Twcc, Feedback::Ccfb, Feedback::ReceiverReports])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Both ends have a clock of their own. What the receiver writes at any time is read again.
    #[test]
    fn a_call_between_ends_with_any_clocks_breaks_neither(
        algorithm in prop::sample::select(Algorithm::all().collect::<Vec<_>>()),
        format in any_format(),
        interval in any_time(),
        steps in prop::collection::vec((any_time(), any_time(), any::<u16>(), any::<u32>()), 1..40),
    ) {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(150), kbps(500), Bitrate::MAX).unwrap();
        let (start, _, _, _) = steps[0];
        let config = SenderConfig::new(SSRC, BOTH).with_clock_rate(u32::MAX);
        let mut sender = Sender::new(start, algorithm.build(limits), config, middle());
        let interval = TimeDelta::from_nanos(interval.as_nanos());
        let config = ReceiverConfig::new(9, BOTH, format).with_interval(interval);
        let mut receiver = Receiver::new(start, config, middle());
        for (here, there, number, timestamp) in steps {
            sender.enqueue(here, [rtp(number, timestamp)]).unwrap();
            sender.on_timeout(here);
            for _ in 0..TAKEN {
                let Some(packet) = sender.next_packet(here) else { break };
                receiver.on_rtp(there, &packet.content, Ecn::Ce).unwrap();
            }
            while let Some(rtcp) = sender.next_rtcp() {
                receiver.on_rtcp(there, rtcp);
            }
            receiver.on_timeout(there);
            while let Some(rtcp) = receiver.next_rtcp() {
                prop_assert!(sender.on_rtcp(here, rtcp).is_empty());
            }
            let _ = (sender.next_timeout(), receiver.next_timeout());
            let bitrate = sender.target().bitrate;
            prop_assert_eq!(limits.clamp(bitrate), bitrate);
        }
    }
}
