//! The `[call]` table: how real browsers run the media flows of a scenario.
//!
//! A call is one connection between two browsers. It has a media flow up, a media flow down, or
//! both, and the audio flows that belong to them. The k-th media flow of a direction belongs to
//! call k, unless it names another call.

use std::ops::RangeInclusive;

use weir::units::{TimeDelta, Timestamp};
pub use weir_sim::{Codec, Content, Degradation};
use weir_sim::{EncoderDriver, EncoderVideo, Source};

use super::error::ScenarioError;
pub use super::opus::Opus;
use super::reader::{Item, Table};
use super::{Direction, Flow, Scenario, Traffic, opus};

type Result<T> = std::result::Result<T, ScenarioError>;

pub(super) const CALL: &[&str] = &[
    "topology",
    "relay",
    "servers",
    "ice_restart",
    "iterations",
    "browser",
    "video",
    "audio",
    "capture",
];
const BROWSER: &[&str] = &["a", "b"];
const VIDEO: &[&str] = &["width", "height", "fps", "codec", "content", "degradation", "simulcast"];

/// Maximum number of calls in one run, far above what a machine can handle.
const MAX_CALLS: f64 = 100.0;
const MAX_ITERATIONS: f64 = 1000.0;
/// Largest width of a 4K picture, in pixels.
const MAX_SIDE: f64 = 4096.0;
const MAX_FPS: f64 = 120.0;
const MAX_LAYERS: f64 = 3.0;

/// How the calls of a scenario are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPlan {
    /// Which hosts call each other.
    pub topology: Topology,
    /// Transport to the relay that carries all media; `None` for media from peer to peer.
    pub relay: Option<Relay>,
    /// Servers of ICE that the peers may use; empty for none.
    pub servers: Vec<IceServer>,
    /// When the peers restart ICE.
    pub ice_restart: IceRestart,
    /// How many times the calls are made.
    pub iterations: Iterations,
    /// The browsers on host A's side and on host B's side.
    pub browsers: [BrowserKind; 2],
    /// Resolution, frame rate and codec of the video.
    pub video: Picture,
    /// How the speech is encoded.
    pub audio: Opus,
    /// Whether packets are captured at both ends.
    pub capture: bool,
}

/// Number of times that a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iterations(pub u64);

impl Default for Iterations {
    fn default() -> Self {
        Self(1)
    }
}

/// Which hosts call each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// Each call has its own pair of hosts.
    #[default]
    Pairs,
    /// One host on A's side takes part in all calls. Each call has its own host on B's side.
    OneToMany,
    /// Every host calls every other host.
    Mesh,
    /// Each host on A's side calls a server on B's side, which forwards its media to the others.
    ForwardingServer,
    /// Each host on A's side calls a server on B's side. The server decodes all videos and sends
    /// each host one picture of the others.
    Mixer,
}

/// The transport between a peer and its relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// TURN over UDP.
    Udp,
    /// TURN over TCP.
    Tcp,
}

/// A server that a peer may use to find a path [RFC8445 §5.1.1].
///
/// [RFC8445 §5.1.1]: https://www.rfc-editor.org/rfc/rfc8445#section-5.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IceServer {
    /// STUN: tells a peer its outside endpoint.
    Stun,
    /// TURN over UDP, which is STUN too.
    TurnUdp,
    /// TURN over TCP.
    TurnTcp,
    /// TURN over TLS.
    TurnTls,
}

impl IceServer {
    /// All kinds with their names in scenarios.
    pub const NAMES: [(&str, Self); 4] = [
        ("stun", Self::Stun),
        ("turn-udp", Self::TurnUdp),
        ("turn-tcp", Self::TurnTcp),
        ("turn-tls", Self::TurnTls),
    ];
}

/// When the peer that offers restarts ICE [RFC8445 §9].
///
/// [RFC8445 §9]: https://www.rfc-editor.org/rfc/rfc8445#section-9
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IceRestart {
    /// Never: a call whose path is lost fails.
    #[default]
    Never,
    /// When the browser finds that the path is lost.
    WhenDisconnected,
    /// At these times, as an application does that the host tells about its network.
    At(Vec<Timestamp>),
}

/// A kind of browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrowserKind {
    /// Chromium, or a browser based on it.
    #[default]
    Chromium,
    /// Firefox.
    Firefox,
}

impl BrowserKind {
    /// Name in scenarios and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
        }
    }
}

/// Resolution, frame rate and codec of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Frames per second.
    pub fps: u32,
    /// The preferred codec.
    pub codec: Codec,
    /// What the camera shows.
    pub content: Content,
    /// What a sender gives up first if its target does not suffice.
    pub degradation: Degradation,
    /// Number of layers that a sender makes: 1, or 3 for simulcast.
    pub layers: u32,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            width: 1280,
            height: 720,
            fps: 30,
            codec: Codec::Vp8,
            content: Content::default(),
            degradation: Degradation::default(),
            layers: 1,
        }
    }
}

/// What a scenario's `content` may say.
pub(super) const CONTENTS: [(&str, Content); 7] = [
    ("noise", Content::Noise),
    ("easy", Content::Easy),
    ("hard", Content::Hard),
    ("screen", Content::Screen),
    ("film", Content::Film),
    ("head", Content::Head),
    ("slides", Content::Slides),
];

/// What a scenario's `degradation` may say: the words of `RTCDegradationPreference`.
const DEGRADATIONS: [(&str, Degradation); 3] = [
    ("maintain-resolution", Degradation::MaintainResolution),
    ("maintain-framerate", Degradation::MaintainFramerate),
    ("balanced", Degradation::Balanced),
];

fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|entry| entry.1 == value).map_or("", |entry| entry.0)
}

/// Name of a content in scenarios and records.
pub fn content_name(content: Content) -> &'static str {
    name_of(&CONTENTS, content)
}

/// Name of a degradation preference in scenarios and records, and in `RTCRtpSendParameters`.
pub fn degradation_name(degradation: Degradation) -> &'static str {
    name_of(&DEGRADATIONS, degradation)
}

/// The flows of one call, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// Number of the call, from 1.
    pub number: usize,
    /// Video that A's side sends.
    pub up: Option<usize>,
    /// Video that B's side sends.
    pub down: Option<usize>,
    /// Audio that A's side sends.
    pub audio_up: Option<usize>,
    /// Audio that B's side sends.
    pub audio_down: Option<usize>,
}

impl PlannedCall {
    /// Indices of its flows.
    pub fn flows(&self) -> impl Iterator<Item = usize> {
        [self.up, self.down, self.audio_up, self.audio_down].into_iter().flatten()
    }

    fn place(&mut self, flow: &Flow) -> Option<&mut Option<usize>> {
        match (&flow.traffic, flow.direction) {
            (Traffic::Media(_), Direction::Up) => Some(&mut self.up),
            (Traffic::Media(_), Direction::Down) => Some(&mut self.down),
            (Traffic::Audio, Direction::Up) => Some(&mut self.audio_up),
            (Traffic::Audio, Direction::Down) => Some(&mut self.audio_down),
            _ => None,
        }
    }
}

impl Scenario {
    /// The browser calls that correspond to the media and audio flows, by number.
    pub fn calls(&self) -> Vec<PlannedCall> {
        let mut calls: Vec<PlannedCall> = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let Some(number) = flow.call else { continue };
            if calls.iter().all(|call| call.number != number) {
                let (up, down, audio_up, audio_down) = (None, None, None, None);
                calls.push(PlannedCall { number, up, down, audio_up, audio_down });
            }
            for call in &mut calls {
                if call.number == number
                    && let Some(place) = call.place(flow)
                {
                    *place = Some(index);
                }
            }
        }
        calls.sort_by_key(|call| call.number);
        calls
    }

    /// Start and end of a call's flows; `None` if they differ between the flows.
    pub fn call_times(&self, call: &PlannedCall) -> Option<(Timestamp, Timestamp)> {
        let mut times = call.flows().map(|flow| (self.flows[flow].start, self.flows[flow].stop));
        let first = times.next()?;
        times.all(|other| other == first).then_some(first)
    }
}

/// Reads the whole table. Every key has a default.
pub(super) fn plan(top: &Table, duration: TimeDelta) -> Result<CallPlan> {
    let Some(item) = top.get("call") else { return Ok(CallPlan::default()) };
    let table = item.table(CALL)?;
    let relay = table.optional_choice("relay", &[("udp", Relay::Udp), ("tcp", Relay::Tcp)])?;
    let servers = table.or("servers", Vec::new(), servers)?;
    if let (Some(_), Some(item)) = (relay, table.get("servers")) {
        return Err(item.error("relay sends all media through a relay: leave out one of the two"));
    }
    let iterations = whole_or(&table, "iterations", 1, 1.0..=MAX_ITERATIONS)?;
    Ok(CallPlan {
        topology: table.or("topology", Topology::default(), topology)?,
        relay,
        servers,
        ice_restart: table
            .or("ice_restart", IceRestart::Never, |item| ice_restart(item, duration))?,
        iterations: Iterations(iterations.into()),
        browsers: table.or("browser", Default::default(), browsers)?,
        video: table.or("video", Picture::default(), picture)?,
        audio: table.or("audio", Opus::default(), opus::opus)?,
        capture: table.or("capture", false, Item::boolean)?,
    })
}

/// Gives the sources that model a browser's encoder the video of the calls, so that a call and its
/// simulation have one description. Refuses a codec and contents that have no model.
pub(super) fn film(flows: &mut [Flow], plan: &CallPlan, top: &Table) -> Result<()> {
    for flow in flows {
        if let Traffic::Media(media) = &mut flow.traffic
            && let Source::Encoder { video, .. } = &mut media.source
        {
            *video = encoder(&plan.video, video.driver).map_err(|why| top.error(why))?;
        }
    }
    Ok(())
}

/// The encoder of this picture under this driver. Refuses a codec and contents that have no model.
pub(super) fn encoder(
    picture: &Picture,
    driver: EncoderDriver,
) -> std::result::Result<EncoderVideo, &'static str> {
    let Picture { width, height, codec, content, degradation, layers, .. } = *picture;
    if codec == Codec::H264 {
        return Err("the encoder source has VP8, VP9 and AV1, but no H.264");
    }
    let is_head = content == Content::Head && codec != Codec::Vp8;
    if content == Content::Slides || is_head {
        return Err("the encoder source knows what a head takes with VP8, and nothing of slides: \
                    use the content film, or leave out the source");
    }
    let is_measured = codec == Codec::Vp8 && content == Content::Film && layers == 1;
    if driver == EncoderDriver::Pipeline && !is_measured {
        return Err(
            "the encoder of a pipeline was measured with VP8, in one layer, and the content \
                    film",
        );
    }
    Ok(EncoderVideo { width, height, codec, content, degradation, layers, driver })
}

/// Reads the call number that a media or audio flow names.
pub(super) fn number(table: &Table) -> Result<Option<usize>> {
    match table.get("call") {
        Some(item) => Ok(Some(item.whole(MAX_CALLS)?)),
        None => Ok(None),
    }
}

/// Numbers the calls of flows that name none. Refuses two flows of one kind and direction in one
/// call.
pub(super) fn assign(flows: &mut [Flow], top: &Table) -> Result<()> {
    for index in 0..flows.len() {
        let before = flows[..index].iter().filter(|flow| is_alike(flow, &flows[index]));
        let number = 1 + before.count();
        if matches!(flows[index].traffic, Traffic::Media(_) | Traffic::Audio) {
            flows[index].call.get_or_insert(number);
        }
    }
    for (index, flow) in flows.iter().enumerate() {
        let mut alike = flows[..index].iter().filter(|other| is_alike(other, flow));
        if flow.call.is_some()
            && let Some(other) = alike.find(|other| other.call == flow.call)
        {
            let message = format!(
                "{} and {} are in one direction of call {}; give one of them another call",
                other.name,
                flow.name,
                flow.call.unwrap_or_default()
            );
            return Err(top.error(&message));
        }
    }
    Ok(())
}

fn topology(item: &Item) -> Result<Topology> {
    item.choice(&[
        ("pairs", Topology::Pairs),
        ("one-to-many", Topology::OneToMany),
        ("mesh", Topology::Mesh),
        ("forwarding-server", Topology::ForwardingServer),
        ("mixer", Topology::Mixer),
    ])
}

fn servers(list: &Item) -> Result<Vec<IceServer>> {
    let elements = list.elements().unwrap_or_default();
    if elements.is_empty() {
        return Err(list.error("expected a list such as [\"stun\", \"turn-udp\"]"));
    }
    let mut servers = Vec::new();
    for item in elements {
        servers.push(item.choice(&IceServer::NAMES)?);
    }
    Ok(servers)
}

fn ice_restart(item: &Item, duration: TimeDelta) -> Result<IceRestart> {
    let Some(elements) = item.elements() else {
        return item.choice(&[("disconnected", ())]).map(|()| IceRestart::WhenDisconnected);
    };
    let mut times = Vec::new();
    for item in elements {
        let time = item.moment(duration)?;
        if times.last().is_some_and(|last| time <= *last) {
            return Err(item.error("must come after the time before it"));
        }
        times.push(time);
    }
    Ok(IceRestart::At(times))
}

fn browsers(item: &Item) -> Result<[BrowserKind; 2]> {
    let table = item.table(BROWSER)?;
    let kinds = [BrowserKind::Chromium, BrowserKind::Firefox].map(|kind| (kind.name(), kind));
    let [a, b] = ["a", "b"].map(|key| table.choice(key, BrowserKind::Chromium, &kinds));
    Ok([a?, b?])
}

fn is_alike(a: &Flow, b: &Flow) -> bool {
    (a.traffic.kind(), a.direction) == (b.traffic.kind(), b.direction)
}

fn picture(item: &Item) -> Result<Picture> {
    let table = item.table(VIDEO)?;
    let default = Picture::default();
    let codecs =
        [("vp8", Codec::Vp8), ("vp9", Codec::Vp9), ("h264", Codec::H264), ("av1", Codec::Av1)];
    let picture = Picture {
        width: whole_or(&table, "width", default.width, 16.0..=MAX_SIDE)?,
        height: whole_or(&table, "height", default.height, 16.0..=MAX_SIDE)?,
        fps: whole_or(&table, "fps", default.fps, 1.0..=MAX_FPS)?,
        codec: table.choice("codec", default.codec, &codecs)?,
        content: table.choice("content", default.content, &CONTENTS)?,
        degradation: table.choice("degradation", default.degradation, &DEGRADATIONS)?,
        layers: table.or("simulcast", default.layers, layers)?,
    };
    let is_plain = picture.codec == Codec::Vp8 && picture.degradation == Degradation::default();
    if picture.layers > 1 && !is_plain {
        return Err(item.error("simulcast is with VP8, and its layers keep their size"));
    }
    Ok(picture)
}

fn layers(item: &Item) -> Result<u32> {
    match item.whole(MAX_LAYERS)? as u32 {
        2 => Err(item.error("must be 1 or 3")),
        layers => Ok(layers),
    }
}

fn whole_or(
    table: &Table,
    key: &'static str,
    default: u32,
    range: RangeInclusive<f64>,
) -> Result<u32> {
    let Some(item) = table.get(key) else { return Ok(default) };
    let number = item.number()?;
    if number.fract() == 0.0 && range.contains(&number) {
        return Ok(number as u32);
    }
    let (min, max) = (range.start(), range.end());
    Err(item.error(&format!("must be a whole number from {min} to {max}")))
}
