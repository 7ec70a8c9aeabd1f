//! What implementations of SCReAMv2 choose in other ways than the draft, in one place.

/// Which losses mean congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossRule {
    /// Every loss [SCREAMV2 §4.2.2.1].
    ///
    /// [SCREAMV2 §4.2.2.1]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.2.2.1
    Each,
    /// Losses at a loss rate above a threshold, or with a queue [SCREAMV2 §4.5.2].
    ///
    /// [SCREAMV2 §4.5.2]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.5.2
    Rate,
    /// Losses in several round trips one after another, or with a queue, as in libwebrtc.
    RoundTrips,
}

/// The values that implementations choose. They are for comparisons: no application needs others
/// than the draft's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// `MSS`: segment size, bytes.
    pub mss: f64,
    /// Whether segments, and the smallest window with them, are smaller on narrow links.
    pub follows_packet_size: bool,
    /// `MIN_REF_WND`: minimum reference window, bytes.
    pub min_ref_wnd: f64,
    /// `BYTES_IN_FLIGHT_HEAD_ROOM`: limit of the window's growth over the bytes in flight.
    pub head_room: f64,
    /// How fast changes get stronger with the distance from the inflection point.
    pub inflection_gain: f64,
    /// `PACKET_PACING_HEADROOM`: ratio of pacing rate to target bitrate.
    pub pacing_headroom: f64,
    /// Ratio of the window's bitrate to the target.
    pub media_head_room: f64,
    /// `PACKET_OVERHEAD`: packetization overhead, bytes.
    pub packet_overhead: f64,
    /// Whether waiting and large frames lower the target [SCREAMV2 §4.4].
    ///
    /// [SCREAMV2 §4.4]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.4
    pub adjusts_to_frames: bool,
    /// Whether the delay target rises against competing flows [SCREAMV2 §4.5.4].
    ///
    /// [SCREAMV2 §4.5.4]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.5.4
    pub adapts_delay_target: bool,
    /// Whether the time that a report covers counts as round-trip time.
    pub counts_hold_time: bool,
    /// Which losses mean congestion.
    pub losses: LossRule,
    /// Whether a rate policer limits the window [SCREAMV2 §4.5.2].
    ///
    /// [SCREAMV2 §4.5.2]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.5.2
    pub guards_against_policers: bool,
}

impl Parameters {
    /// The values of draft-ietf-ccwg-rfc8298bis-screamv2-01, without its optional functions except
    /// the adaptation of the delay target.
    pub const DRAFT: Self = Self {
        mss: 1000.0,
        follows_packet_size: true,
        min_ref_wnd: 3000.0,
        head_room: 1.5,
        inflection_gain: 8.0,
        pacing_headroom: 1.5,
        media_head_room: 1.2,
        packet_overhead: 20.0,
        adjusts_to_frames: true,
        adapts_delay_target: true,
        counts_hold_time: false,
        losses: LossRule::Each,
        guards_against_policers: false,
    };
}
