//! The RTP streams of a sender as negotiated: header extensions, retransmission streams, and the
//! stream that carries padding.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU8;

use weir::feedback::RtpNumber;
use weir::units::{DataSize, Timestamp};
use weir_rtcp::write_element;
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader, Rtx, View};

/// URI of the transport-wide sequence number in `a=extmap`.
const TWCC_URI: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// URI of the absolute send time in `a=extmap`.
const ABS_SEND_TIME_URI: &str = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
/// Bytes of padding in a padding packet: the maximum that its last byte can express
/// [RFC3550 §5.1].
const PADDING: NonZeroU8 = NonZeroU8::MAX;
/// Longer headers are not read. The fixed part, 15 CSRCs and a usual extension block are shorter.
const MAX_HEADER: usize = 256;

/// What is known of an RTP packet in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketKind {
    /// As the payloader numbered it.
    pub(crate) number: RtpNumber,
    /// The packet has the extension for the transport-wide sequence number.
    pub(crate) is_numbered: bool,
    /// Its caps say that it is sound.
    pub(crate) is_audio: bool,
}

/// The newest media packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Media {
    ssrc: u32,
    payload_type: PayloadType,
    timestamp: u32,
    pts: Option<gst::ClockTime>,
    /// It was the last packet of its frame.
    marker: bool,
}

impl Media {
    fn new(view: View<'_>, pts: Option<gst::ClockTime>) -> Self {
        Self {
            ssrc: view.ssrc(),
            payload_type: view.payload_type(),
            timestamp: view.timestamp(),
            pts,
            marker: view.marker(),
        }
    }
}

/// The sequence numbers of a stream that carries padding.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last: u16,
    /// Number of padding packets so far.
    raised_by: u16,
}

/// A retransmission stream.
#[derive(Clone, Copy, Debug)]
struct RtxStream {
    ssrc: u32,
    payload_type: PayloadType,
}

/// The streams of a sender.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    extensions: ExtensionIds,
    /// The newest caps.
    caps: Option<gst::Caps>,
    /// Payload types of sound.
    audio: HashSet<u8>,
    /// By the payload type of the media.
    rtx_payload_types: HashMap<u8, u8>,
    /// By the SSRC of the media.
    rtx: HashMap<u32, RtxStream>,
    /// Media packets, one for each SSRC, whose retransmission was requested in order to learn the
    /// SSRC of their retransmission stream.
    requested: Vec<RtpNumber>,
    /// By SSRC, of the streams that carry padding.
    numbers: HashMap<u32, Numbers>,
    last_media: Option<Media>,
    /// The number of the newest media packet that was queued, by SSRC.
    newest: HashMap<u32, u16>,
}

impl Streams {
    /// Reads the header extensions from the caps of the RTP stream. Ids that these caps do not
    /// mention stay: streams of one transport (BUNDLE) share one set of ids.
    pub(crate) fn set_caps(&mut self, caps: &gst::Caps) {
        let Some(structure) = caps.structure(0) else { return };
        add_extensions(structure, &mut self.extensions);
        self.set_rtx(structure);
        self.set_media(structure);
        self.caps = Some(caps.clone());
    }

    /// Reads the retransmission stream of the media, which `rtprtxsend` adds to the caps. The
    /// retransmissions' payload type is not there.
    fn set_rtx(&mut self, structure: &gst::StructureRef) {
        let media = structure.get::<u32>("ssrc").ok();
        let ssrc = structure.get::<u32>("rtx-ssrc").ok();
        let payload_type = structure.get::<i32>("payload").ok();
        let payload_type = payload_type
            .and_then(|number| u8::try_from(number).ok())
            .and_then(|number| self.rtx_payload_types.get(&number))
            .and_then(|&number| PayloadType::new(number));
        if let (Some(media), Some(ssrc), Some(payload_type)) = (media, ssrc, payload_type) {
            self.rtx.insert(media, RtxStream { ssrc, payload_type });
        }
    }

    /// Reads whether the packets of a payload type are sound. Streams of one transport have payload
    /// types of their own.
    fn set_media(&mut self, structure: &gst::StructureRef) {
        let Ok(number) = structure.get::<i32>("payload") else { return };
        let Ok(number) = u8::try_from(number) else { return };
        if matches!(structure.get::<&str>("media"), Ok("audio")) {
            self.audio.insert(number);
        } else {
            self.audio.remove(&number);
        }
    }

    /// The payload types of retransmissions, by that of the media.
    pub(crate) fn set_rtx_payload_types(&mut self, types: impl IntoIterator<Item = (u8, u8)>) {
        self.rtx_payload_types.extend(types);
        if let Some(caps) = self.caps.take() {
            self.set_caps(&caps);
        }
    }

    fn is_rtx(&self, view: View<'_>) -> bool {
        let payload_type = view.payload_type().get();
        self.rtx_payload_types.values().any(|number| *number == payload_type)
            || self.rtx.values().any(|rtx| rtx.ssrc == view.ssrc())
    }

    fn has_rtx(&self, media: &Media) -> bool {
        self.rtx.contains_key(&media.ssrc)
            || self.rtx_payload_types.contains_key(&media.payload_type.get())
    }

    /// The SSRC of a retransmission stream, and the number of the packet that this one repeats
    /// [RFC4588 §4]; `None` if it is no retransmission.
    pub(crate) fn retransmitted(&self, buffer: &gst::BufferRef) -> Option<RtpNumber> {
        with_header(buffer, |view| {
            let rtx = self.is_rtx(view).then(|| Rtx::parse(view.payload()).ok())??;
            Some(RtpNumber { ssrc: view.ssrc(), sequence_number: rtx.sequence_number })
        })?
    }

    /// Looks whether a retransmission stream exists whose SSRC is unknown. If so, this returns the
    /// packet's number, once: the retransmission of this packet will tell the SSRC. The caps do not
    /// name it when several streams share a transport.
    pub(crate) fn wants_retransmission(&mut self, buffer: &gst::BufferRef) -> Option<RtpNumber> {
        let (media, sequence_number) =
            with_header(buffer, |view| (Media::new(view, None), view.sequence_number()))?;
        let ssrc = media.ssrc;
        let is_known = self.rtx.contains_key(&ssrc) || !self.has_rtx(&media);
        if is_known || self.requested.iter().any(|request| request.ssrc == ssrc) {
            return None;
        }
        let request = RtpNumber { ssrc, sequence_number };
        self.requested.push(request);
        Some(request)
    }

    /// Whether a retransmission is the requested one. It then tells the SSRC of its stream.
    pub(crate) fn learn_rtx(&mut self, buffer: &gst::BufferRef, repeated: RtpNumber) -> bool {
        let Some(media) = self.requested_by(repeated.sequence_number) else { return false };
        let payload_type = with_header(buffer, |view| view.payload_type());
        let stream = payload_type.map(|kind| RtxStream { ssrc: repeated.ssrc, payload_type: kind });
        stream.is_some_and(|stream| self.rtx.insert(media, stream).is_none())
    }

    /// The SSRC of the media whose packet of this number was requested. `None` if there is none
    /// whose retransmission stream is still unknown.
    fn requested_by(&self, sequence_number: u16) -> Option<u32> {
        for request in &self.requested {
            let is_unknown = !self.rtx.contains_key(&request.ssrc);
            if is_unknown && request.sequence_number == sequence_number {
                return Some(request.ssrc);
            }
        }
        None
    }

    /// The newest media packets that were queued, by the SSRC of their retransmissions.
    pub(crate) fn last_repairable(&self) -> impl Iterator<Item = (u32, u16)> {
        self.rtx.iter().filter_map(|(ssrc, rtx)| Some((rtx.ssrc, *self.newest.get(ssrc)?)))
    }

    /// A packet of the media is queued.
    pub(crate) fn on_media_queued(&mut self, media: RtpNumber) {
        self.newest.insert(media.ssrc, media.sequence_number);
    }

    /// Whether transport-wide sequence numbers were negotiated.
    pub(crate) fn has_transport_numbers(&self) -> bool {
        self.extensions.transport_sequence_number.is_some()
    }

    /// Reads an RTP packet's header; `None` if it is not RTP.
    pub(crate) fn kind(&self, buffer: &gst::BufferRef) -> Option<PacketKind> {
        with_header(buffer, |view| PacketKind {
            number: RtpNumber { ssrc: view.ssrc(), sequence_number: view.sequence_number() },
            is_numbered: (self.extensions.transport_sequence_number)
                .is_some_and(|id| view.transport_sequence_number(id).is_some()),
            is_audio: self.audio.contains(&view.payload_type().get()),
        })
    }

    /// Whether a padding packet may be sent now. A retransmission stream can always carry padding.
    /// In a media stream, padding in the middle of a frame would break the frame at the receiver.
    pub(crate) fn can_pad(&self) -> bool {
        let Some(media) = &self.last_media else { return false };
        self.rtx.contains_key(&media.ssrc) || media.marker && !self.has_rtx(media)
    }

    /// Size of a padding packet, without the layers below RTP.
    pub(crate) fn padding_size(&self) -> DataSize {
        let header = self.padding_header(0, PayloadType::new(0).expect("below 128"), 0, 0);
        DataSize::from_bytes((header.size() + usize::from(PADDING.get())) as u64)
    }

    /// A padding packet, if [`can_pad`](Self::can_pad).
    pub(crate) fn padding(&mut self) -> Option<(gst::Buffer, RtpNumber)> {
        let media = self.last_media?;
        let (ssrc, payload_type) = match self.rtx.get(&media.ssrc) {
            Some(rtx) => (rtx.ssrc, rtx.payload_type),
            None => (media.ssrc, media.payload_type),
        };
        let sequence_number = self.padding_number(ssrc);
        let header = self.padding_header(ssrc, payload_type, sequence_number, media.timestamp);
        let mut bytes = vec![0; header.size() + usize::from(PADDING.get())];
        header.emit_padding(PADDING, &mut bytes);
        let mut buffer = gst::Buffer::from_mut_slice(bytes);
        buffer.get_mut().expect("a new buffer has one owner").set_pts(media.pts);
        Some((buffer, RtpNumber { ssrc, sequence_number }))
    }

    fn padding_header(&self, ssrc: u32, kind: PayloadType, number: u16, time: u32) -> RtpHeader {
        let ExtensionIds { transport_sequence_number, abs_send_time, .. } = self.extensions;
        RtpHeader::new(ssrc, kind, number, time)
            .with_transport_sequence_number(transport_sequence_number.map(|id| (id, 0)))
            .with_abs_send_time(abs_send_time.map(|id| (id, AbsSendTime::from_ticks(0))))
    }

    /// The number of a padding packet. The packets after it are raised by one more.
    fn padding_number(&mut self, ssrc: u32) -> u16 {
        let numbers = self.numbers.entry(ssrc).or_default();
        numbers.raised_by = numbers.raised_by.wrapping_add(1);
        numbers.last = numbers.last.wrapping_add(1);
        numbers.last
    }

    /// The payloader's number, raised by the padding before it. Gaps stay, because they tell the
    /// receiver that packets were discarded.
    fn raised_number(&mut self, ssrc: u32, own: u16) -> u16 {
        let numbers = self.numbers.entry(ssrc).or_default();
        numbers.last = own.wrapping_add(numbers.raised_by);
        numbers.last
    }

    /// The next number of a retransmission stream. Retransmissions that were discarded leave no
    /// gap, which receiver reports would count as a loss.
    fn counted_number(&mut self, ssrc: u32, own: u16) -> u16 {
        let first = Numbers { last: own.wrapping_sub(1), raised_by: 0 };
        let numbers = self.numbers.entry(ssrc).or_insert(first);
        numbers.last = numbers.last.wrapping_add(1);
        numbers.last
    }

    /// Prepares a media packet that leaves now, and returns its RTP number. Padding in its stream
    /// takes numbers, so the packets after it are renumbered.
    pub(crate) fn on_media_sent(&mut self, buffer: &mut gst::Buffer) -> Option<RtpNumber> {
        let pts = buffer.pts();
        let (media, own, is_rtx) = with_header(buffer, |view| {
            (Media::new(view, pts), view.sequence_number(), self.is_rtx(view))
        })?;
        let ssrc = media.ssrc;
        let sequence_number = if is_rtx {
            self.counted_number(ssrc, own)
        } else {
            // Audio without retransmissions must not hide the video whose retransmissions carry
            // padding.
            let carries = self.last_media.is_some_and(|last| self.rtx.contains_key(&last.ssrc));
            if !carries || self.rtx.contains_key(&ssrc) {
                self.last_media = Some(media);
            }
            // If retransmissions exist, the receiver requests packets by the payloader's numbers.
            if self.has_rtx(&media) { own } else { self.raised_number(ssrc, own) }
        };
        if sequence_number != own {
            let _ = buffer.make_mut().copy_from_slice(2, &sequence_number.to_be_bytes());
        }
        Some(RtpNumber { ssrc, sequence_number })
    }

    /// Fills in the header extensions of a packet that leaves now.
    pub(crate) fn fill_extensions(&self, now: Timestamp, number: u16, buffer: &mut gst::Buffer) {
        let ExtensionIds { transport_sequence_number, abs_send_time, .. } = self.extensions;
        let mut header = [0; MAX_HEADER];
        let length = read(buffer, &mut header);
        let header = &mut header[..length];
        let mut is_changed = false;
        if let Some(id) = transport_sequence_number {
            is_changed |= write_element(header, id, &number.to_be_bytes());
        }
        if let Some(id) = abs_send_time {
            let time = AbsSendTime::from_nanos(now.as_nanos());
            is_changed |= write_element(header, id, &time.to_bytes());
        }
        if is_changed {
            let _ = buffer.make_mut().copy_from_slice(0, header);
        }
    }
}

/// Reads the ids of the header extensions from a structure of caps. Ids that it does not mention
/// stay.
pub(crate) fn add_extensions(structure: &gst::StructureRef, extensions: &mut ExtensionIds) {
    for (name, value) in structure.iter() {
        let id = name.strip_prefix("extmap-").and_then(|id| id.parse().ok());
        let Some(id) = id.and_then(ExtensionId::new) else { continue };
        match extension_uri(value).as_deref() {
            Some(TWCC_URI) => extensions.transport_sequence_number = Some(id),
            Some(ABS_SEND_TIME_URI) => extensions.abs_send_time = Some(id),
            _ => {}
        }
    }
}

/// The URI of a header extension in caps: a string, or an array of direction, URI and attributes.
fn extension_uri(value: &gst::glib::SendValue) -> Option<String> {
    if let Ok(uri) = value.get::<String>() {
        return Some(uri);
    }
    let array = value.get::<gst::Array>().ok()?;
    array.as_slice().get(1)?.get::<String>().ok()
}

/// Copies the front of a packet, which may be spread over several memories.
fn read(buffer: &gst::BufferRef, bytes: &mut [u8; MAX_HEADER]) -> usize {
    let length = buffer.size().min(MAX_HEADER);
    match buffer.copy_to_slice(0, &mut bytes[..length]) {
        Ok(()) => length,
        Err(copied) => copied,
    }
}

fn with_header<T>(buffer: &gst::BufferRef, take: impl FnOnce(View<'_>) -> T) -> Option<T> {
    let mut header = [0; MAX_HEADER];
    let length = read(buffer, &mut header);
    View::parse_header(&header[..length]).ok().map(take)
}
