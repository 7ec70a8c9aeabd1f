//! Hostile feedback in all formats, joined with one send history.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::feedback::{
    CcfbPacket, CcfbReception, Ecn, Outgoing, ReceiverReport, RtpNumber, TwccHeader,
};
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir::{FeedbackReport, SendHistory};

/// One step of a script.
#[derive(Clone, Debug)]
enum Op {
    Advance(i64),
    Send {
        ssrc: u32,
        packets: u16,
    },
    /// A stream continues from another number.
    Jump {
        ssrc: u32,
        by: u16,
    },
    Twcc {
        reference_time: u32,
        feedback_count: u8,
        base: u16,
        arrivals: Vec<Option<i32>>,
    },
    Ccfb {
        timestamp: u32,
        ssrc: u32,
        begin: u16,
        offsets: Vec<Option<u16>>,
    },
    Report(ReceiverReport),
}

fn any_ssrc() -> impl Strategy<Value = u32> {
    0_u32..3
}

/// A number near those in use, or any number.
fn any_number() -> impl Strategy<Value = u16> {
    prop_oneof![4 => (0_u16..300).prop_map(|n| n.wrapping_sub(50)), 1 => any::<u16>()]
}

fn any_report() -> impl Strategy<Value = ReceiverReport> {
    let rtt = prop::option::weighted(0.9, 0_i64..10_000);
    (any_ssrc(), any_number(), any::<u16>(), any::<u8>(), -20_i32..400, rtt).prop_map(
        |(ssrc, number, cycles, fraction_lost, cumulative_lost, rtt_ms)| ReceiverReport {
            ssrc,
            extended_highest_sequence_number: u32::from(cycles) << 16 | u32::from(number),
            fraction_lost,
            cumulative_lost,
            rtt: rtt_ms.map(TimeDelta::from_millis),
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let ticks = prop::option::of(-40_000_i32..40_000);
    let offset = prop::option::of(0_u16..0x2000);
    prop_oneof![
        2 => (0_i64..4_000).prop_map(Op::Advance),
        6 => (any_ssrc(), 1_u16..60).prop_map(|(ssrc, packets)| Op::Send { ssrc, packets }),
        1 => (any_ssrc(), any::<u16>()).prop_map(|(ssrc, by)| Op::Jump { ssrc, by }),
        4 => (any::<u32>(), any::<u8>(), any_number(), prop::collection::vec(ticks, 0..80))
            .prop_map(|(reference_time, feedback_count, base, arrivals)| Op::Twcc {
                reference_time, feedback_count, base, arrivals
            }),
        4 => (any::<u32>(), any_ssrc(), any_number(), prop::collection::vec(offset, 0..80))
            .prop_map(|(timestamp, ssrc, begin, offsets)| Op::Ccfb {
                timestamp, ssrc, begin, offsets
            }),
        4 => any_report().prop_map(Op::Report),
    ]
}

/// The fates reported so far.
#[derive(Default)]
struct Told {
    /// By sequence number: true if the packet was reported as received.
    fates: BTreeMap<i64, bool>,
    next_number: i64,
}

impl Told {
    fn check(&mut self, report: &FeedbackReport) -> Result<(), TestCaseError> {
        prop_assert!(!report.packets.is_empty());
        prop_assert!(report.packets.is_sorted_by_key(|packet| packet.sequence_number));
        for packet in &report.packets {
            let number = packet.sequence_number;
            prop_assert!((0..self.next_number).contains(&number), "{} was not sent", number);
            let received = packet.arrival_time.is_some();
            let before = self.fates.insert(number, received);
            let expected = if packet.recovered { Some(false) } else { None };
            prop_assert_eq!(before, expected, "packet {}", number);
            prop_assert!(received || !packet.recovered);
        }
        Ok(())
    }
}

struct Sender {
    history: SendHistory,
    now: Timestamp,
    next_rtp: [u16; 3],
    told: Told,
}

impl Sender {
    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let report = match op {
            Op::Advance(ms) => {
                self.now += TimeDelta::from_millis(*ms);
                None
            }
            Op::Send { ssrc, packets } => {
                for _ in 0..*packets {
                    let next = &mut self.next_rtp[*ssrc as usize];
                    let rtp = Some(RtpNumber { ssrc: *ssrc, sequence_number: *next });
                    *next = next.wrapping_add(1);
                    let size = DataSize::from_bytes(1_200);
                    let outgoing = Outgoing::media(size).with_rtp(rtp);
                    self.history.on_packet_sent(self.now, outgoing);
                    self.told.next_number += 1;
                }
                None
            }
            Op::Jump { ssrc, by } => {
                let next = &mut self.next_rtp[*ssrc as usize];
                *next = next.wrapping_add(*by);
                None
            }
            Op::Twcc { reference_time, feedback_count, base, arrivals } => {
                let header = TwccHeader {
                    reference_time: reference_time & 0xff_ffff,
                    feedback_count: *feedback_count,
                };
                let numbers = (0..).map(|index: u16| base.wrapping_add(index));
                self.history.on_twcc(header, numbers.zip(arrivals.iter().copied()))
            }
            Op::Ccfb { timestamp, ssrc, begin, offsets } => {
                let numbers = (0..).map(|index: u16| begin.wrapping_add(index));
                let packets = numbers.zip(offsets).map(|(sequence_number, offset)| CcfbPacket {
                    rtp: RtpNumber { ssrc: *ssrc, sequence_number },
                    reception: offset.map(|offset| CcfbReception { ecn: Ecn::Ce, offset }),
                });
                self.history.on_ccfb(*timestamp, packets)
            }
            Op::Report(block) => {
                self.history.on_receiver_report(self.now, core::iter::once(*block))
            }
        };
        report.map_or(Ok(()), |report| self.told.check(report))
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever feedback arrives in whatever format, each packet's fate is reported once. It is
    /// reported again only if the packet was called lost and then arrived. Reports are in send
    /// order and contain only packets that were sent.
    #[test]
    fn a_fate_is_told_once_whatever_the_formats(ops in prop::collection::vec(any_op(), 0..120)) {
        let mut sender = Sender {
            history: SendHistory::default(),
            now: Timestamp::ZERO,
            next_rtp: [0, 65_500, 100],
            told: Told::default(),
        };
        for op in &ops {
            sender.apply(op)?;
        }
    }
}
