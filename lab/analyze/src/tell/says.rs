//! The sentence of a finding, made of its evidence. Nothing reads it again.

use crate::found::played_audio::{lasted, times};
use crate::found::{
    Ended, Evidence, Found, FullPath, HeldDown, Logged, PathChange, Refusal, ServerError, Source,
    Times, TooLarge, Underestimate, UsedPath, Why,
};

/// What browsers report if nothing came back from a server.
const NO_ANSWER: u64 = 701;

impl Found {
    /// The sentence for people.
    pub fn says(&self) -> String {
        let mut says = self.evidence.says(self.seconds());
        match self.also {
            0 => {}
            1 => says += "; one more stream of this connection says the same",
            more => says += &format!("; {more} more streams of this connection say the same"),
        }
        says
    }
}

impl Found {
    /// `from 5 to 15 s`, or `from 5 to 14.5 s`: half seconds are the steps of captures, and a share
    /// of packets is that of the span that is printed.
    pub fn span(&self) -> String {
        format!("from {} to {} s", halves(self.from_s), halves(self.to_s))
    }
}

/// A time in s, with its half second if it has one.
fn halves(seconds: f64) -> String {
    let is_half = (seconds.fract() - 0.5).abs() < 1e-9;
    if is_half { format!("{seconds:.1}") } else { format!("{seconds:.0}") }
}

impl Evidence {
    fn says(&self, seconds: f64) -> String {
        match self {
            Self::ConnectionFailed(ended) | Self::NeverConnected(ended) => {
                format!("it {}", self.ended(ended))
            }
            Self::Interruption => format!("no media could pass for {seconds:.1} s"),
            Self::Restart => "the application restarted ICE".into(),
            Self::Refused(refusal) => refusal.words(),
            Self::ServerError(error) => error.words(),
            Self::NoTurnServer { servers } => no_turn_server(*servers).into(),
            Self::Path(path) => path.remark().unwrap_or_else(|| path.words()),
            Self::PathChange(change) => change.words(),
            Self::Stall { streams, came_late } => stall(seconds, *streams, *came_late),
            Self::StoodStill { what, at_s } => {
                format!(
                    "{what} stood still for {seconds:.1} s at {at_s:.1} s, and nothing of it \
                     was lost"
                )
            }
            Self::StreamEnds { what, at_s } => {
                format!("{what} ended at {at_s:.1} s, {seconds:.1} s before the call did")
            }
            Self::OneWay { nothing_sent, is_begin } => {
                let missing = if *nothing_sent { "sent" } else { "received" };
                let when = if *is_begin { "the first " } else { "" };
                format!("sound went one way only: nothing was {missing} in {when}{seconds:.0} s")
            }
            Self::Hole { was_asleep, .. } => hole(seconds, *was_asleep),
            Self::LateBegin { missing_s, is_bound } => late_begin(*missing_s, *is_bound),
            Self::Capacity(path) => path.words(),
            Self::Bandwidth { estimate_bps, rate_bps } => bandwidth(*estimate_bps, *rate_bps),
            Self::Pauses { count, longest_ms } => pauses(*count, *longest_ms),
            Self::Spikes { longest_ms, base_ms } => {
                format!("a radio cell without air: {}", spikes(*longest_ms, *base_ms))
            }
            Self::Loss { lost, rtt_ms } => loss(*lost, *rtt_ms),
            Self::RandomLoss { lost } => random_loss(*lost),
            Self::Delay { rtt_ms, base_ms } => delay(*rtt_ms, *base_ms),
            Self::LossRule { estimate_bps } => loss_rule(*estimate_bps),
            Self::Recovery(held) => held.words("recovery after the path was full"),
            Self::StartUp(held) => held.words("slow start-up"),
            Self::Underestimate(low) => low.words(),
            Self::PictureSize(large) => large.words(),
            Self::NotEncoded { source_rate } => not_encoded(source_rate.unwrap_or_default()),
            Self::Processor { encode_ms, frame_rate } => processor(*encode_ms, *frame_rate),
            Self::Decoder { received_rate, frame_rate, decode_ms } => {
                decoder(*received_rate, *frame_rate, *decode_ms)
            }
            Self::Source(source) => source.words(),
            Self::NotSent => NOT_SENT.into(),
            Self::SilentSource => SILENT_SOURCE.into(),
            Self::FarLoss { lost, behind } => far_loss(*lost, *behind),
            Self::SmallPicture { now, before } => small_picture(*now, *before),
            Self::FewFrames { now, before } => few_frames(*now, *before),
            Self::NothingReceived { is_to_end } => nothing_received(*is_to_end).into(),
            Self::SilentSound => SILENT_SOUND.into(),
            Self::NotDecoded { key_frame_requests, is_ever } => {
                not_decoded(*key_frame_requests, *is_ever)
            }
            Self::Late { delay_ms, buffer_ms, jitter_ms } => {
                late(*delay_ms, *buffer_ms, *jitter_ms)
            }
            Self::Freeze { worst, all } => froze(*worst, *all),
            Self::Concealment(heard) => format!("heard with gaps: {}", heard.words()),
        }
    }

    /// How a connection ended, in a sentence without its subject.
    pub fn ended(&self, ended: &Ended) -> String {
        let Ended { at_s, seconds, before_s, why } = ended;
        match self {
            Self::NeverConnected(_) => {
                let before = match *before_s {
                    few if few < 0.05 => String::new(),
                    some => format!(", {some:.1} s of them before the first report"),
                };
                let why = why.words();
                format!("was never established: {seconds:.1} s of attempts{before} ({why})")
            }
            _ => format!(
                "failed at {at_s:.1} s, {seconds:.1} s after it was established ({})",
                why.words()
            ),
        }
    }
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Self::NoAnswers => "ICE got no answers any more",
            Self::NoPath => "ICE found no path",
            Self::Dtls => "the DTLS handshake failed",
            Self::NotFound => "no path was found",
            Self::GivenUp => "the browser gave it up",
        }
    }
}

impl Refusal {
    pub fn words(&self) -> String {
        let error = if self.error.is_empty() { "the browser refused" } else { &self.error };
        format!("{} failed: {error}", self.method)
    }
}

impl ServerError {
    /// Whether its name is unknown to the DNS, as Chromium says it.
    pub fn is_name_unknown(&self) -> bool {
        let text = self.text.to_ascii_lowercase();
        text.contains("host lookup") || text.contains("not resolve")
    }

    pub fn words(&self) -> String {
        let server = if self.url.is_empty() { "a STUN or TURN server" } else { &self.url };
        let text = self.text.trim_end_matches('.');
        let said = if text.is_empty() { String::new() } else { format!(" ({text})") };
        match self.code {
            _ if self.is_name_unknown() => format!("{server}: its name was not found{said}"),
            Some(NO_ANSWER) | None => format!("{server} did not answer{said}"),
            Some(code) => format!("{server} refused with {code}{said}"),
        }
    }
}

impl UsedPath {
    /// Such as `UDP, relay to host`.
    pub fn words(&self) -> String {
        let remote = if self.remote.is_empty() { "unknown" } else { &self.remote };
        format!("{}, {} to {remote}", self.protocol.to_uppercase(), self.local)
    }

    pub fn is_relayed(&self) -> bool {
        [&self.local, &self.remote].into_iter().any(|it| it.starts_with("relay"))
    }

    pub fn is_tcp(&self) -> bool {
        self.protocol.contains("tcp") || self.protocol.contains("tls")
    }

    /// What is unusual about it, without its ends.
    pub fn how(&self) -> Option<&'static str> {
        match (self.is_relayed(), self.is_tcp()) {
            (false, false) => None,
            (true, false) => Some("media went through a TURN relay"),
            (false, true) => Some("media went over TCP"),
            (true, true) => Some("media went through a TURN relay and over TCP"),
        }
    }

    /// The same with its ends.
    pub fn remark(&self) -> Option<String> {
        let relay = self.relay.as_ref().map(|url| format!(", {url}")).unwrap_or_default();
        Some(format!("{} ({}{relay})", self.how()?, self.words()))
    }
}

impl PathChange {
    pub fn words(&self) -> String {
        let ends = (self.from.words(), self.to.words());
        let networks = self.from.interface.zip(self.to.interface);
        let what = match networks.filter(|(from, to)| from != to) {
            Some((from, to)) => format!("from {} to {}", from.name(), to.name()),
            None if ends.0 != ends.1 => format!("from {} to {}", ends.0, ends.1),
            None => match self.places() {
                Some(places) => format!("{places}, {} as before", ends.0),
                None => format!("to other addresses, {} as before", ends.0),
            },
        };
        let rtt = self.rtt_ms.map(|(from, to)| {
            format!("; round trips took {from:.0} ms before and {to:.0} ms after")
        });
        format!("the path changed {what}{}", rtt.unwrap_or_default())
    }

    /// The addresses of the end that changed.
    fn places(&self) -> Option<String> {
        let pairs = self.from.places.into_iter().zip(self.to.places);
        for (from, to) in pairs {
            let ((from, from_port), (to, to_port)) = from.zip(to)?;
            if from != to {
                return Some(format!("from {from} to {to}"));
            }
            if from_port != to_port {
                return Some(format!("from port {from_port} to {to_port} of {to}"));
            }
        }
        None
    }
}

impl FullPath {
    fn words(&self) -> String {
        // What the path carried, since the stream's own rate is what one sender gave.
        let capacity = match self.carried {
            Some((own, Some(rivals))) => {
                format!("the path's capacity, of which {}", taken(rivals, own))
            }
            Some((bps, None)) => format!("the path's capacity of {:.0} kbit/s", bps / 1e3),
            None => "the path's capacity".into(),
        };
        let what = if self.is_sent { "left the sender" } else { "arrived" };
        format!("{capacity}: {} {what} {}", kbps(self.rate_bps), self.shown())
    }

    /// How a full path shows: the queue's delay, the loss, or both.
    fn shown(&self) -> String {
        let lost = self.lost.map(|lost| format!("{} were lost", percent(Some(lost))));
        match (self.queue_ms, lost) {
            (Some((now, base)), lost) => {
                let lost = lost.map(|it| format!(", and {it}")).unwrap_or_default();
                format!(
                    "while packets waited in a queue (round trips of up to {now:.0} ms instead of \
                     {base:.0} ms{lost})"
                )
            }
            // It sends far more than its estimate.
            (None, Some(lost)) => {
                let estimate = of("an estimate", self.estimate_bps);
                format!("{}, and {lost}", estimate.trim_start())
            }
            (None, None) => "and the path was full".into(),
        }
    }
}

impl HeldDown {
    fn words(&self, why: &str) -> String {
        format!(
            "the congestion controller's {why}: its target was {}{}{}{}",
            from_to(self.target_bps),
            at_round_trips(self.rtt_ms),
            self.lost
                .map(|lost| format!(", with {} lost", percent(Some(lost))))
                .unwrap_or_default(),
            self.logged.map(Logged::words).unwrap_or_default()
        )
    }
}

impl Logged {
    fn words(self) -> String {
        let overuse =
            self.overuse_s.map(|at| format!("its delay detector said overuse last at {at:.1} s"));
        let probed =
            self.probed_bps.map(|bps| format!("its best probe reached {:.0} kbit/s", bps / 1e3));
        format!(
            "; {}, {}",
            overuse.unwrap_or_else(|| "its delay detector never said overuse".into()),
            probed.unwrap_or_else(|| "and no probe succeeded in this time".into())
        )
    }
}

impl Underestimate {
    /// `Chrome 117's estimate`, or `the sender's estimate` if the dump does not name the program.
    pub fn whose(&self) -> String {
        whose_estimate(self.program.as_deref())
    }

    /// `0.40 of what the path carried`
    pub fn share(&self) -> String {
        format!("{:.2} of what the path carried", self.estimate_bps / self.carried_bps)
    }

    fn words(&self) -> String {
        let [estimate_mbps, carried_mbps] =
            [self.estimate_bps, self.carried_bps].map(|bps| bps / 1e6);
        format!(
            "{} stayed at {}: {estimate_mbps:.2} of {carried_mbps:.2} Mbit/s for {:.0} s, with \
             neither queue nor loss",
            self.whose(),
            self.share(),
            self.seconds
        )
    }
}

impl TooLarge {
    fn words(&self) -> String {
        format!(
            "the encoder's picture of {}x{}: at a target of {} it made {} and {:.1} of {:.0} \
             frames a second",
            self.size.0,
            self.size.1,
            kbps(self.target_bps),
            kbps(self.media_bps),
            self.frame_rate,
            self.source_rate
        )
    }
}

impl Source {
    fn words(self) -> String {
        match self {
            Self::Deactivated => "the application: it deactivated the stream".into(),
            Self::Little { rate_bps, estimate_bps } => format!(
                "the application: it gave {} to send{}",
                kbps(rate_bps),
                of("an estimate", estimate_bps)
            ),
            Self::Easy { source_rate, rate_bps, target_bps } => format!(
                "the application's source: its {source_rate:.1} frames a second needed {}{}",
                kbps(rate_bps),
                of("a target", target_bps)
            ),
            Self::Few { source_rate, usual_rate } => format!(
                "the application's source: it gave {source_rate:.1} frames a second instead of \
                 {usual_rate:.1}"
            ),
        }
    }
}

/// `Chrome 117's estimate`, or `the sender's estimate`.
pub(crate) fn whose_estimate(program: Option<&str>) -> String {
    program.map_or("the sender's estimate".into(), |name| format!("{name}'s estimate"))
}

/// `others took 1.5 of 2.0 Mbit/s`
pub(crate) fn taken(rivals_bps: f64, own_bps: f64) -> String {
    format!("others took {:.1} of {}", rivals_bps / 1e6, mbps(rivals_bps + own_bps))
}

pub(crate) fn mbps(bps: f64) -> String {
    let digits = if bps < 0.95e5 { 2 } else { 1 };
    format!("{:.digits$} Mbit/s", bps / 1e6)
}

/// Round trips of a radio cell, where only reports are known.
pub(crate) fn spikes(longest_ms: Option<f64>, base_ms: Option<f64>) -> String {
    format!(
        "round trips sprang up to {} instead of {}, and were short again with the next report",
        ms(longest_ms),
        ms(base_ms)
    )
}

/// What the dump does not have of the call's begin.
pub(crate) fn late_begin(missing_s: f64, is_bound: bool) -> String {
    if is_bound {
        format!(
            "the first {missing_s:.0} s of the call are not in the dump: the page keeps the last \
             1,000 reports"
        )
    } else {
        format!(
            "the first {missing_s:.0} s of the call are not in the dump: its reports begin later, \
             as when the page that writes it is opened during the call"
        )
    }
}

fn no_turn_server(servers: usize) -> &'static str {
    match servers {
        0 => "no STUN or TURN server is configured: only a direct path was possible",
        _ => "no TURN server is configured: behind a strict NAT or firewall nothing is left",
    }
}

fn stall(seconds: f64, streams: usize, came_late: bool) -> String {
    let what = if came_late {
        ", and then what had been sent meanwhile came at once: the path stood still".into()
    } else {
        format!(" in all {streams} streams at once: the path stood still, or the far end did")
    };
    format!("nothing arrived for {seconds:.1} s{what}")
}

fn hole(seconds: f64, was_asleep: bool) -> String {
    let what = if was_asleep {
        "and next to nothing was received or sent meanwhile: the device was asleep, or the page \
         was stopped"
    } else {
        "while media went on: what happened in them is not known"
    };
    format!("no reports for {seconds:.1} s, {what}")
}

fn bandwidth(estimate_bps: Option<f64>, rate_bps: Option<f64>) -> String {
    let estimate = of("an estimate", estimate_bps);
    let rate = kbps(rate_bps);
    format!("the browser says that bandwidth limits the video: {rate} was sent{estimate}")
}

fn pauses(count: u32, longest_ms: f64) -> String {
    format!(
        "pauses of a radio cell: {count} times packets waited and none arrived, for up to \
         {longest_ms:.0} ms, and then they came fast"
    )
}

fn loss(lost: Option<f64>, rtt_ms: Option<f64>) -> String {
    let (share, at) = (percent(lost), at_round_trips(rtt_ms));
    format!("packet loss without a queue: {share} of the packets were lost{at}")
}

fn random_loss(lost: f64) -> String {
    let share = percent(Some(lost));
    format!("random packet loss: {share} of the packets that met no queue were lost")
}

fn delay(rtt_ms: Option<f64>, base_ms: Option<f64>) -> String {
    format!("a long path: round trips took {}, and {} at best", ms(rtt_ms), ms(base_ms))
}

fn loss_rule(estimate_bps: Option<f64>) -> String {
    let estimate = kbps(estimate_bps);
    format!(
        "the congestion controller's answer to loss: it held its estimate at {estimate} although \
         no queue says that the path was full"
    )
}

fn not_encoded(source_rate: f64) -> String {
    format!("the encoder made no frame, although its source gave {source_rate:.0} a second")
}

fn processor(encode_ms: Option<f64>, frame_rate: Option<f64>) -> String {
    let rate = frame_rate.unwrap_or_default();
    format!(
        "the sender's processor: encoding a frame took {}, and {rate:.1} frames a second were \
         encoded",
        ms(encode_ms)
    )
}

fn decoder(received: Option<f64>, decoded: Option<f64>, decode_ms: Option<f64>) -> String {
    let [received, decoded] = [received, decoded].map(Option::unwrap_or_default);
    let took = decode_ms.map(|ms| format!(", and one took {ms:.0} ms")).unwrap_or_default();
    format!(
        "this device's decoder: {decoded:.1} of {received:.0} frames a second were decoded{took}"
    )
}

const NOT_SENT: &str =
    "no packet was sent: the application stopped this stream, or took its track away";
const SILENT_SOURCE: &str = "the microphone gave digital silence: it is muted, in the application, \
    the system or by a switch";
const SILENT_SOUND: &str = "the sound that arrived was digital silence: the far end is muted, or \
    its microphone gives nothing";

fn far_loss(lost: Option<f64>, behind: Option<f64>) -> String {
    let (lost, behind) = (percent(lost), percent(behind));
    format!(
        "the far end: {lost} of the packets were lost before the server that forwards them, and \
         {behind} behind it"
    )
}

fn small_picture((width, height): (u32, u32), before: (u32, u32)) -> String {
    let (wide, high) = before;
    format!(
        "the far end sent pictures of {width}x{height} instead of {wide}x{high}: its sender, or a \
         server between, chose so, and nothing on the way here made it"
    )
}

fn few_frames(now: f64, before: f64) -> String {
    format!(
        "the far end sent {now:.1} frames a second instead of {before:.0}, and nothing on the way \
         here made it"
    )
}

fn nothing_received(is_to_end: bool) -> &'static str {
    if is_to_end {
        "nothing was received any more, and nothing was lost: the far end stopped sending it, or \
         something on the way stops it"
    } else {
        "nothing was received, and nothing was lost: the far end paused it, as when a camera or \
         microphone is off"
    }
}

fn late(delay_ms: Option<f64>, buffer_ms: Option<f64>, jitter_ms: Option<f64>) -> String {
    let jitter = jitter_ms.map(|ms| format!(" at a jitter of {ms:.0} ms")).unwrap_or_default();
    format!("it was {} late: {} in the jitter buffer{jitter}", ms(delay_ms), ms(buffer_ms))
}

fn froze(worst: Times, all: Option<Times>) -> String {
    let long = lasted(worst.count, worst.seconds);
    let mut says = format!("the picture froze {}{long}", times(worst.count));
    if let Some(all) = all {
        let long = lasted(all.count, all.seconds);
        says += &format!("; {}{long} over the whole call", times(all.count));
    }
    says
}

fn not_decoded(key_frame_requests: u64, is_ever: bool) -> String {
    let ever = if is_ever {
        "video arrived and none was decoded"
    } else {
        "no frame was decoded, although packets came"
    };
    match key_frame_requests {
        0 => format!("{ever}, and this end asked for no key frame"),
        1 => format!("{ever}; this end asked for a key frame once"),
        count => format!("{ever}; this end asked for a key frame {} (PLI)", times(count)),
    }
}

/// ` of an estimate of 700 kbit/s`, or nothing where it is unknown.
fn of(what: &str, bps: Option<f64>) -> String {
    bps.map(|bps| format!(" of {what} of {}", kbps(Some(bps)))).unwrap_or_default()
}

/// ` at round trips of 40 ms`, or nothing where they are unknown.
fn at_round_trips(rtt_ms: Option<f64>) -> String {
    rtt_ms.map(|ms| format!(" at round trips of {ms:.0} ms")).unwrap_or_default()
}

/// `203 kbit/s`, or `203 to 300 kbit/s` if it changed.
fn from_to((first, last): (Option<f64>, Option<f64>)) -> String {
    match (kbps(first), kbps(last)) {
        (first, last) if first == last => first,
        (first, last) => format!("{} to {last}", first.trim_end_matches(" kbit/s")),
    }
}

fn kbps(bps: Option<f64>) -> String {
    bps.map_or("an unknown rate".into(), |bps| format!("{:.0} kbit/s", bps / 1e3))
}

fn ms(ms: Option<f64>) -> String {
    ms.map_or("an unknown time".into(), |ms| format!("{ms:.0} ms"))
}

pub(crate) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("an unknown share".into(), |ratio| format!("{:.1} %", ratio * 100.0))
}
