//! A libwebrtc RTC event log of the second version [RTCLOG2]: what Chromium writes with
//! `--webrtc-event-logging`, and what `chrome://webrtc-internals` records.
//!
//! The file is one protobuf message, whose members follow each other in batches. Each batch is read
//! on its own. Times have whole milliseconds, of a clock without known origin.
//!
//! [RTCLOG2]: https://webrtc.googlesource.com/src/+/main/logging/rtc_event_log/rtc_event_log2.proto

mod deltas;
mod messages;

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use prost::Message;
use weir::units::{Bitrate, Timestamp};

use self::messages::{
    ApplicationLimited, BeginLog, DelayBasedUpdates, LossBasedUpdates, Probe, ProbeFailure,
    RtcpPackets, RtpPackets, VideoReceiveStream, VideoSendStream, field,
};
use super::left_out::LeftOut;
use super::{Connection, Dump, StreamDirection, repair};
use crate::read::format::Format;
use crate::read::packets::PacketLog;
use crate::read::packets::control::{Control, Detector};
use crate::read::packets::recorder::Recorder;
use crate::read::packets::rtp::RtpPacket;

/// The only version that has this form.
const VERSION: u32 = 2;
/// Largest batch in bytes. Browsers write one every few seconds.
const BATCH_MAX: u64 = 4 << 20;
/// Most events of one batch, and of a log. One takes about 100 bytes.
const BATCH_EVENTS_MAX: usize = 50_000;
const EVENTS_MAX: usize = 500_000;
/// Most bytes of RTCP in a log.
const RTCP_BYTES_MAX: usize = 32 << 20;
/// Bytes that SRTP adds to a packet, which the log does not have: those of HMAC-SHA1, which
/// Chromium 156 chooses (`srtpCipher` in its dumps) [RFC3711 §5.2].
///
/// [RFC3711 §5.2]: https://www.rfc-editor.org/rfc/rfc3711#section-5.2
const SRTP_TAG: u32 = 10;
/// Kinds of protobuf members.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Reads the log batch by batch.
pub(crate) fn read(mut from: Box<dyn BufRead>) -> Result<Dump, String> {
    let mut log = Log::default();
    let mut left_out = LeftOut::default();
    let mut batches = 0_u64;
    loop {
        match next_batch(&mut from, &mut log) {
            Ok(true) => batches += 1,
            Ok(false) => break,
            // An odd batch in between would be one whose length is known.
            Err(what) if log.events.is_empty() => return Err(what),
            Err(what) => {
                left_out.stop(format!("after batch {batches}: {what}"));
                break;
            }
        }
    }
    let connection = log.finish();
    left_out.note(connection.packets.as_ref().and_then(PacketLog::cut_warning));
    Ok(Dump {
        format: Format::EventLog,
        program: None,
        connections: vec![connection],
        warnings: left_out.warnings("batches"),
        events: Vec::new(),
        zero_ms: None,
        end_s: 0.0,
        is_part: false,
        data_channels: Vec::new(),
    })
}

/// Takes one batch; false at the end of the file.
fn next_batch(mut from: &mut dyn BufRead, log: &mut Log) -> Result<bool, String> {
    let Some(key) = variable(from)? else { return Ok(false) };
    let length = match key & 7 {
        LENGTH_DELIMITED => number(from)?,
        EIGHT_BYTES => 8,
        FOUR_BYTES => 4,
        VARINT => {
            number(from)?;
            0
        }
        kind => return Err(format!("a member of the unknown kind {kind}")),
    };
    if length > BATCH_MAX {
        return Err(format!("a batch of {length} bytes"));
    }
    let mut batch = Vec::new();
    (&mut from).take(length).read_to_end(&mut batch).map_err(|error| error.to_string())?;
    if batch.len() as u64 != length {
        return Err("the event log ends within a batch".into());
    }
    log.add(key >> 3, &batch)?;
    Ok(true)
}

/// A variable-length number; `None` at the end of the file.
fn variable(from: &mut dyn BufRead) -> Result<Option<u64>, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        match from.read(&mut byte).map_err(|error| error.to_string())? {
            0 if shift == 0 => return Ok(None),
            0 => return Err("the event log ends within a number".into()),
            _ => value |= u64::from(byte[0] & 0x7F) << shift,
        }
        if byte[0] & 0x80 == 0 {
            return Ok(Some(value));
        }
    }
    Err("a number of more than 64 bits".into())
}

fn number(from: &mut dyn BufRead) -> Result<u64, String> {
    variable(from)?.ok_or_else(|| "the event log ends within a batch".into())
}

/// An event with its direction.
enum Event {
    Rtp(StreamDirection, RtpPacket),
    Rtcp(StreamDirection, Vec<u8>),
    Estimate(Bitrate),
    Control(Control),
}

/// The events so far. Batches overlap in time, so they are sorted at the end.
#[derive(Default)]
struct Log {
    events: Vec<(i64, Event)>,
    recorder: Recorder,
    rtcp_bytes: usize,
    /// SSRC of retransmissions of a video without one, and whether there are several.
    unnamed: Option<(u32, bool)>,
}

impl Log {
    fn add(&mut self, kind: u64, batch: &[u8]) -> Result<(), String> {
        match kind {
            field::BEGIN_LOG => {
                let BeginLog { version } = message(batch)?;
                if version != VERSION {
                    return Err(format!(
                        "event log of version {version}, and only 2 is known here"
                    ));
                }
            }
            field::INCOMING_RTP => self.add_rtp(StreamDirection::Received, &message(batch)?)?,
            field::OUTGOING_RTP => self.add_rtp(StreamDirection::Sent, &message(batch)?)?,
            field::INCOMING_RTCP => self.add_rtcp(StreamDirection::Received, &message(batch)?)?,
            field::OUTGOING_RTCP => self.add_rtcp(StreamDirection::Sent, &message(batch)?)?,
            field::LOSS_BASED => self.add_estimates(&message(batch)?)?,
            field::DELAY_BASED => self.add_states(&message(batch)?)?,
            field::PROBE => {
                let Probe { timestamp_ms, bitrate_bps } = message(batch)?;
                self.add_control(timestamp_ms, Control::Probe(rate(bitrate_bps)));
            }
            field::PROBE_SUCCESS => {
                let Probe { timestamp_ms, bitrate_bps } = message(batch)?;
                self.add_control(timestamp_ms, Control::Probed(rate(bitrate_bps)));
            }
            field::PROBE_FAILURE => {
                let ProbeFailure { timestamp_ms } = message(batch)?;
                self.add_control(timestamp_ms, Control::ProbeFailed);
            }
            field::APPLICATION_LIMITED => {
                let ApplicationLimited { timestamp_ms, is_limited } = message(batch)?;
                self.add_control(timestamp_ms, Control::ApplicationLimited(is_limited));
            }
            field::VIDEO_SEND => {
                let VideoSendStream { ssrc, rtx_ssrc } = message(batch)?;
                self.add_repair(rtx_ssrc, ssrc);
            }
            field::VIDEO_RECEIVE => {
                let VideoReceiveStream { remote_ssrc, rtx_ssrc } = message(batch)?;
                self.add_repair(rtx_ssrc, remote_ssrc);
            }
            _ => {}
        }
        if self.events.len() > EVENTS_MAX {
            return Err(format!("it has more than {EVENTS_MAX} events"));
        }
        if self.rtcp_bytes > RTCP_BYTES_MAX {
            return Err(format!("it has more than {RTCP_BYTES_MAX} bytes of RTCP"));
        }
        Ok(())
    }

    fn add_repair(&mut self, repair: Option<u32>, media: u32) {
        // Zero stands for none.
        match repair.filter(|it| ![0, media].contains(it)) {
            Some(repair) if media != 0 => self.recorder.repair(repair, media),
            Some(repair) => self.unnamed = Some((repair, self.unnamed.is_some())),
            None => {}
        }
    }

    /// Chromium leaves out the SSRC of a sent video. If there is one video, it is the largest
    /// stream.
    fn name_repaired(&mut self) {
        let Some((repair, false)) = self.unnamed else { return };
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, event) in &self.events {
            if let Event::Rtp(StreamDirection::Sent, packet) = event {
                *sizes.entry(packet.ssrc).or_default() += u64::from(packet.payload_size);
            }
        }
        sizes.remove(&repair);
        if let Some((media, _)) = sizes.iter().max_by_key(|(_, size)| **size) {
            self.recorder.repair(repair, *media);
        }
    }

    fn add_rtp(&mut self, direction: StreamDirection, batch: &RtpPackets) -> Result<(), String> {
        let count = count(batch.number_of_deltas)?;
        let times = column(&batch.timestamp_ms_deltas, Some(batch.timestamp_ms as u64), count)?;
        let [sequence_numbers, rtp_timestamps, ssrcs, payloads, headers, paddings] = [
            whole(&batch.sequence_number_deltas, batch.sequence_number, count)?,
            whole(&batch.rtp_timestamp_deltas, batch.rtp_timestamp, count)?,
            whole(&batch.ssrc_deltas, batch.ssrc, count)?,
            whole(&batch.payload_size_deltas, batch.payload_size, count)?,
            whole(&batch.header_size_deltas, batch.header_size, count)?,
            whole(&batch.padding_size_deltas, batch.padding_size, count)?,
        ];
        let number = batch.transport_sequence_number.map(u64::from);
        let numbers = column(&batch.transport_sequence_number_deltas, number, count)?;
        let send_time = batch.absolute_send_time.map(u64::from);
        let send_times = column(&batch.absolute_send_time_deltas, send_time, count)?;
        for at in 0..=count {
            let packet = RtpPacket {
                ssrc: ssrcs[at],
                sequence_number: sequence_numbers[at] as u16,
                rtp_timestamp: rtp_timestamps[at],
                payload_type: 0,
                header_size: headers[at].saturating_add(SRTP_TAG),
                payload_size: payloads[at],
                padding_size: paddings[at],
                is_padding: payloads[at] == 0,
                is_marked: false,
                ip_id: 0,
                number: numbers[at].map(|number| number as u16),
                send_time: send_times[at].map(|ticks| ticks as u32 & ((1 << 24) - 1)),
            };
            self.events.push((times[at].unwrap_or_default() as i64, Event::Rtp(direction, packet)));
        }
        Ok(())
    }

    fn add_rtcp(&mut self, direction: StreamDirection, batch: &RtcpPackets) -> Result<(), String> {
        let count = count(batch.number_of_deltas)?;
        let times = column(&batch.timestamp_ms_deltas, Some(batch.timestamp_ms as u64), count)?;
        let rest = deltas::blobs(&batch.raw_packet_blobs, count).ok_or(DAMAGED)?;
        let packets = std::iter::once(&batch.raw_packet[..]).chain(rest);
        for (time, packet) in times.iter().zip(packets) {
            self.rtcp_bytes += packet.len();
            let event = Event::Rtcp(direction, packet.to_vec());
            self.events.push((time.unwrap_or_default() as i64, event));
        }
        Ok(())
    }

    fn add_estimates(&mut self, batch: &LossBasedUpdates) -> Result<(), String> {
        let count = count(batch.number_of_deltas)?;
        let times = column(&batch.timestamp_ms_deltas, Some(batch.timestamp_ms as u64), count)?;
        let rates = column(&batch.bitrate_bps_deltas, Some(batch.bitrate_bps.into()), count)?;
        for (time, rate) in times.iter().zip(&rates) {
            let event = Event::Estimate(Bitrate::from_bps(rate.unwrap_or_default()));
            self.events.push((time.unwrap_or_default() as i64, event));
        }
        Ok(())
    }

    fn add_states(&mut self, batch: &DelayBasedUpdates) -> Result<(), String> {
        let count = count(batch.number_of_deltas)?;
        let times = column(&batch.timestamp_ms_deltas, Some(batch.timestamp_ms as u64), count)?;
        let states =
            column(&batch.detector_state_deltas, Some(batch.detector_state.into()), count)?;
        for (time, state) in times.iter().zip(&states) {
            if let Some(detector) = state.and_then(Detector::numbered) {
                self.add_control(time.unwrap_or_default() as i64, Control::Detector(detector));
            }
        }
        Ok(())
    }

    fn add_control(&mut self, time: i64, control: Control) {
        self.events.push((time, Event::Control(control)));
    }

    /// Retransmissions that no configuration names, by their RTP timestamps.
    fn find_repairs(&mut self) {
        for direction in [StreamDirection::Sent, StreamDirection::Received] {
            let mut frames = repair::Frames::default();
            for (_, event) in &self.events {
                if let Event::Rtp(of, packet) = event
                    && *of == direction
                    && !packet.is_padding
                {
                    frames.add(packet.ssrc, packet.rtp_timestamp, packet.payload_size);
                }
            }
            for (repair, media) in frames.repairs() {
                self.recorder.repair(repair, media);
            }
        }
    }

    fn finish(mut self) -> Connection {
        self.find_repairs();
        self.name_repaired();
        self.events.sort_by_key(|(time, _)| *time);
        let first_rtp = self.events.iter().find(|event| matches!(event.1, Event::Rtp(..)));
        let zero = first_rtp.map_or(0, |(time, _)| *time);
        for (time, event) in self.events {
            let time = Timestamp::from_nanos(time.saturating_sub(zero).saturating_mul(1_000_000));
            match event {
                Event::Rtp(direction, packet) => self.recorder.rtp(time, direction, &packet),
                Event::Rtcp(direction, bytes) => self.recorder.rtcp(time, direction, &bytes),
                Event::Estimate(rate) => self.recorder.estimate(time, rate),
                Event::Control(control) => self.recorder.control(time, control),
            }
        }
        self.recorder.finish("event log")
    }
}

const DAMAGED: &str = "a batch of the event log is damaged";

/// A column of which each packet has a value.
fn whole(bytes: &[u8], base: u32, count: usize) -> Result<Vec<u32>, String> {
    let values = column(bytes, Some(base.into()), count)?;
    Ok(values.into_iter().map(|value| value.unwrap_or_default() as u32).collect())
}

fn rate(bps: u32) -> Bitrate {
    Bitrate::from_bps(bps.into())
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    M::decode(bytes).map_err(|_| DAMAGED.into())
}

fn count(number_of_deltas: u32) -> Result<usize, String> {
    let count = number_of_deltas as usize;
    if count < BATCH_EVENTS_MAX { Ok(count) } else { Err(format!("a batch of {count} events")) }
}

/// The values of all events of a batch.
fn column(bytes: &[u8], base: Option<u64>, count: usize) -> Result<Vec<Option<u64>>, String> {
    let mut all = vec![base];
    all.extend(deltas::values(bytes, base, count).ok_or(DAMAGED)?);
    Ok(all)
}
