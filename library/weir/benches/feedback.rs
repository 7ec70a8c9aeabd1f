//! Cost of feedback per packet, without a controller: recording the arrival at the receiver,
//! writing and reading the feedback, and joining it with the send history.
//!
//! The packets are those of a 2 Mbit/s flow with feedback every 50 ms and 1 % loss.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::SendHistory;
use weir::feedback::{
    ArrivalRecorder, CcfbPacket, CcfbReception, Ecn, Outgoing, RtpArrivalRecorder, RtpNumber,
    TwccHeader,
};
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_wire::{ccfb, twcc};

const PACKETS: i64 = 10_000;
const BATCH: i64 = 10;
const SIZE: DataSize = DataSize::from_bytes(1_250);
/// 1250 B at 2 Mbit/s.
const SPACING: TimeDelta = TimeDelta::from_millis(5);
const MAX_SIZE: usize = 1_200;
const SSRC: u32 = 7;

/// Packets in send order: send time, number, and arrival time unless the packet is lost.
fn packets() -> impl Iterator<Item = (Timestamp, RtpNumber, Option<Timestamp>)> {
    (0..PACKETS).map(|number| {
        let send_time = Timestamp::ZERO + SPACING * number;
        let wobble = TimeDelta::from_micros((number * 7_919) % 900);
        let arrival = send_time + TimeDelta::from_millis(25) + wobble;
        let rtp = RtpNumber { ssrc: SSRC, sequence_number: number as u16 };
        (send_time, rtp, (number % 100 != 37).then_some(arrival))
    })
}

/// Sender and receiver of one feedback format.
trait Ends {
    fn on_arrival(&mut self, now: Timestamp, rtp: RtpNumber);
    fn feed_back(&mut self, now: Timestamp, history: &mut SendHistory);
}

struct Twcc {
    recorder: ArrivalRecorder,
    builder: twcc::Builder,
}

impl Ends for Twcc {
    fn on_arrival(&mut self, now: Timestamp, rtp: RtpNumber) {
        // There is only one stream, so its numbers are also those of the transport.
        self.recorder.on_packet(now, rtp.sequence_number);
    }

    fn feed_back(&mut self, now: Timestamp, history: &mut SendHistory) {
        self.builder.build(self.recorder.take_batch(now), MAX_SIZE, |bytes| {
            let view = twcc::View::parse(bytes).expect("just built");
            let header = TwccHeader {
                reference_time: view.reference_time().units(),
                feedback_count: view.feedback_packet_count(),
            };
            black_box(history.on_twcc(header, view.arrivals()));
        });
    }
}

struct Ccfb {
    recorder: RtpArrivalRecorder,
    builder: ccfb::Builder,
}

impl Ends for Ccfb {
    fn on_arrival(&mut self, now: Timestamp, rtp: RtpNumber) {
        self.recorder.on_packet(now, rtp, Ecn::Ect1);
    }

    fn feed_back(&mut self, now: Timestamp, history: &mut SendHistory) {
        let streams = self.recorder.take_batches(now).map(|batch| ccfb::Stream {
            ssrc: batch.ssrc,
            begin_sequence_number: batch.begin as u16,
            packets: batch.packets.iter().map(|packet| packet.map(|(us, _)| (us, ccfb::Ecn::Ect1))),
        });
        self.builder.build(now.as_micros(), streams, MAX_SIZE, |bytes| {
            let view = ccfb::View::parse(bytes).expect("just built");
            let packets = view.blocks().flat_map(|block| {
                let ssrc = block.ssrc();
                block.reports().map(move |(sequence_number, reception)| CcfbPacket {
                    rtp: RtpNumber { ssrc, sequence_number },
                    reception: reception
                        .map(|r| CcfbReception { ecn: Ecn::Ect1, offset: r.offset.bits() }),
                })
            });
            black_box(history.on_ccfb(view.timestamp(), packets));
        });
    }
}

fn run(ends: &mut impl Ends) {
    let mut history = SendHistory::default();
    for (index, (send_time, rtp, arrival)) in packets().enumerate() {
        history.on_packet_sent(send_time, Outgoing::media(SIZE).with_rtp(Some(rtp)));
        if let Some(arrival) = arrival {
            ends.on_arrival(arrival, rtp);
        }
        if (index as i64 + 1) % BATCH == 0 {
            ends.feed_back(send_time + TimeDelta::from_millis(30), &mut history);
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("packet, feedback as bytes");
    group.throughput(Throughput::Elements(PACKETS as u64));
    group.bench_function("TWCC", |bencher| {
        let ends =
            || Twcc { recorder: ArrivalRecorder::default(), builder: twcc::Builder::new(1, SSRC) };
        bencher.iter_batched_ref(ends, run, BatchSize::SmallInput);
    });
    group.bench_function("CCFB", |bencher| {
        let ends =
            || Ccfb { recorder: RtpArrivalRecorder::default(), builder: ccfb::Builder::new(1) };
        bencher.iter_batched_ref(ends, run, BatchSize::SmallInput);
    });
    group.finish();
    criterion.final_summary();
}
