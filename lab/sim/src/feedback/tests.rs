use weir::feedback::{ArrivalTimes, Ecn, Outgoing, RtpNumber};
use weir::units::{DataSize, TimeDelta};
use weir::{FeedbackReport, SendHistory};
use weir_net::Seed;
use weir_rtcp::Message;
use weir_wire::header::Packet;
use weir_wire::rtp::{PayloadType, RtpHeader};
use weir_wire::{report, rtp};

use super::*;

const SSRC: u32 = 5;
const ONE_WAY: TimeDelta = TimeDelta::from_millis(30);
const SIZE: DataSize = DataSize::from_bytes(1_000);

/// A sender and a receiver with a one-way delay of 30 ms in each direction, and a packet every 10
/// ms.
struct Call {
    history: SendHistory,
    sender_reports: Option<SenderReports>,
    reporter: PlannedReporter,
    reports: Vec<FeedbackReport>,
}

impl Call {
    fn new(plan: &Plan) -> Self {
        let start = Timestamp::ZERO;
        let chance = |name| Seed::new(1).stream(name);
        let interval = TimeDelta::from_millis(50);
        Self {
            history: SendHistory::default(),
            sender_reports: sender_reports(start, plan, SSRC, chance("sender")),
            reporter: PlannedReporter::new(
                start,
                plan,
                interval,
                Ssrcs::of(SSRC),
                chance("receiver"),
            ),
            reports: Vec::new(),
        }
    }

    /// Sends one packet and handles due feedback. `lost` is true if the packet does not arrive.
    fn step(&mut self, now: Timestamp, ecn: Ecn, lost: bool) {
        let number = self.history.next_sequence_number() as u16;
        let number_in_stream = RtpNumber { ssrc: SSRC, sequence_number: number };
        self.history.on_packet_sent(now, Outgoing::media(SIZE).with_rtp(Some(number_in_stream)));
        let timestamp = (now.as_millis() * 90) as u32;
        let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), number, timestamp)
            .with_transport_sequence_number(Some((EXTENSION_ID, number)));
        let mut bytes = [0; RtpHeader::MAX_SIZE];
        let size = header.emit(&mut bytes);
        let arrival = now + ONE_WAY;
        if !lost {
            let view = rtp::View::parse(&bytes[..size]).unwrap();
            self.reporter.on_packet(arrival, &view, ecn);
        }
        if let Some(reports) = &mut self.sender_reports
            && let Some(bytes) = reports.on_timeout(now, header.timestamp)
        {
            let view = report::View::parse(&bytes).unwrap();
            self.reporter.on_sender_report(arrival, view.sender_info().unwrap());
        }
        if self.reporter.next_deadline() <= arrival {
            self.reporter.on_deadline(arrival);
        }
        while let Some(bytes) = self.reporter.next_rtcp() {
            let packet = Packet::parse(bytes).unwrap();
            let message = Message::read(packet).unwrap();
            let report = message.join(arrival + ONE_WAY, &mut self.history);
            self.reports.extend(report.cloned());
        }
    }

    /// A run of five seconds. Every tenth packet is lost, every seventh is marked.
    fn run(plan: &Plan) -> Self {
        let mut call = Self::new(plan);
        for index in 0..500_i64 {
            let ecn = if index % 7 == 0 { Ecn::Ce } else { Ecn::Ect1 };
            call.step(Timestamp::from_millis(10 * index), ecn, index % 10 == 4);
        }
        call
    }

    /// Number of reported packets, of lost packets, of marked packets, and of reports with a new
    /// clock.
    fn totals(&self) -> (usize, usize, usize, usize) {
        let packets = || self.reports.iter().flat_map(|report| &report.packets);
        (
            packets().count(),
            packets().filter(|packet| packet.arrival_time.is_none()).count(),
            packets().filter(|packet| packet.ecn == Ecn::Ce).count(),
            self.reports.iter().filter(|report| report.new_clock).count(),
        )
    }

    fn delays(&self) -> Vec<f64> {
        let received = self.reports.iter().flat_map(FeedbackReport::received);
        received.map(|packet| packet.one_way_delay().unwrap().as_secs_f64() * 1e3).collect()
    }
}

fn secs(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

#[test]
fn each_format_tells_the_same_losses() {
    let (packets, lost, marked, clocks) = Call::run(&[(secs(0), Feedback::Twcc)]).totals();
    // The last two packets are not reported yet.
    assert_eq!((packets, lost, marked, clocks), (498, 50, 0, 0));
    let (packets, lost, marked, clocks) = Call::run(&[(secs(0), Feedback::Ccfb)]).totals();
    assert_eq!((packets, lost, marked, clocks), (498, 50, 65, 0));
    let (packets, lost, marked, clocks) =
        Call::run(&[(secs(0), Feedback::ReceiverReports)]).totals();
    assert!((380..500).contains(&packets), "{packets}");
    assert_eq!((lost, marked, clocks), ((packets + 5) / 10, 0, 0));
}

#[test]
fn delays_are_exact_to_the_resolution_of_the_format() {
    let spread = |format| {
        let delays = Call::run(&[(secs(0), format)]).delays();
        let most = delays.iter().copied().fold(f64::MIN, f64::max);
        let least = delays.iter().copied().fold(f64::MAX, f64::min);
        (least, most)
    };
    assert_eq!(spread(Feedback::Twcc), (30.0, 30.0));
    let (least, most) = spread(Feedback::Ccfb);
    assert!(least >= 30.0 - 0.5 && most <= 30.0 + 0.5, "{least} {most}");
    // The round-trip time is computed from three times with a resolution of 1/65536 s each.
    let (least, most) = spread(Feedback::ReceiverReports);
    assert!(least >= 60.0 - 0.05 && most <= 60.0 + 0.05, "{least} {most}");
}

#[test]
fn a_switch_tells_every_packet_once_and_each_new_clock_once() {
    let formats = [Feedback::Twcc, Feedback::Ccfb, Feedback::ReceiverReports];
    for (a, b) in formats.into_iter().flat_map(|a| formats.map(|b| (a, b))) {
        if a == b {
            continue;
        }
        let call = Call::run(&[(secs(0), a), (secs(2), b), (secs(4), a)]);
        let mut told: Vec<i64> = Vec::new();
        for report in &call.reports {
            told.extend(report.packets.iter().map(|packet| packet.sequence_number));
        }
        assert!(told.len() > 350, "{a:?} to {b:?}: {} packets", told.len());
        told.sort_unstable();
        let all = told.len();
        told.dedup();
        assert_eq!(told.len(), all, "{a:?} to {b:?}");
        assert_eq!(call.totals().3, 2, "{a:?} to {b:?}");
    }
}

#[test]
fn what_arrived_before_a_switch_is_reported_in_the_old_format() {
    // The last report before the switch was at 2.05 s.
    let plan = [(secs(0), Feedback::Twcc), (Timestamp::from_millis(2_075), Feedback::Ccfb)];
    let call = Call::run(&plan);
    let mut told: Vec<i64> = call
        .reports
        .iter()
        .flat_map(|report| report.packets.iter().map(|packet| packet.sequence_number))
        .collect();
    told.sort_unstable();
    assert!(told.len() > 490 && told.iter().copied().eq(0..told.len() as i64), "{told:?}");
}

#[test]
fn a_flow_sends_sender_reports_only_if_receiver_reports_answer_them() {
    let chance = || Seed::new(1).stream("sender");
    let without = [(secs(0), Feedback::Twcc), (secs(1), Feedback::Ccfb)];
    assert!(sender_reports(secs(0), &without, 1, chance()).is_none());
    let with = [(secs(0), Feedback::Twcc), (secs(9), Feedback::ReceiverReports)];
    assert!(sender_reports(secs(0), &with, 1, chance()).is_some());
}

#[test]
fn all_receiver_reports_count_as_round_trips() {
    let call = Call::run(&[(secs(0), Feedback::ReceiverReports)]);
    assert!(call.reports.iter().all(|report| report.arrival_times == ArrivalTimes::RoundTrip));
}
