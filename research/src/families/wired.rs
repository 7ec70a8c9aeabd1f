//! Scenarios with one wired bottleneck.

use super::{Draw, Family, feedback_interval, head, list, media, two_digits};

/// Length of a run, s.
const DURATION: u64 = 60;
/// Length of a run beside TCP, s: a loss-based flow needs time to settle.
const TCP_DURATION: u64 = 90;
/// Length of a run whose capacity changes every 20 to 100 ms, s.
const LTE_DURATION: u64 = 40;

/// What all wired scenarios have.
pub(super) struct Path {
    /// Mean capacity, kbit/s.
    pub(super) kbps: f64,
    pub(super) feedback_ms: u64,
    /// One way, ms.
    delay_ms: u64,
    /// Limit of the queue at the mean capacity, ms.
    queue_ms: u64,
    /// Value of the key `jitter`; empty for none.
    jitter: String,
}

impl Path {
    /// A path whose mean capacity is within these limits in kbit/s.
    pub(super) fn draw(draw: &mut Draw, low: f64, high: f64) -> Self {
        let kbps = draw.log_uniform(low, high);
        let feedback_ms = feedback_interval(draw);
        let delay_ms = draw.rounded(5.0, 150.0);
        let queue_ms = draw.rounded(50.0, 2_000.0);
        let jitter = if draw.chance(0.5) {
            let sd = draw.rounded(1.0, 10.0);
            format!("{{ kind = \"rfc8868\", sd = \"{sd}ms\", reorder = false }}")
        } else {
            String::new()
        };
        Self { kbps, feedback_ms, delay_ms, queue_ms, jitter }
    }

    /// The tables of the network, with a value of `capacity` and further keys.
    fn network(&self, capacity: &str, more: &str) -> String {
        self.network_with_queue(&format!("{}ms", self.queue_ms), capacity, more)
    }

    /// The same with a queue of as many bytes as the mean capacity carries in its time: an outage
    /// does not change the buffer of a base station.
    pub(super) fn network_with_buffer(&self, capacity: &str) -> String {
        let bytes = (self.kbps * self.queue_ms as f64 / 8.0).max(3_000.0);
        self.network_with_queue(&format!("{}B", two_digits(bytes)), capacity, "")
    }

    fn network_with_queue(&self, queue: &str, capacity: &str, more: &str) -> String {
        let Self { delay_ms, jitter, .. } = self;
        let jitter = match jitter.as_str() {
            "" => String::new(),
            jitter => format!("jitter = {jitter}\n"),
        };
        format!(
            "\n[network.up]\ncapacity = {capacity}\nqueue = \"{queue}\"\n\
             delay = \"{delay_ms}ms\"\n{jitter}{more}\n[network.down]\ndelay = \"{delay_ms}ms\"\n"
        )
    }

    /// The mean capacity as a value.
    fn constant(&self) -> String {
        format!("\"{}kbps\"", two_digits(self.kbps))
    }
}

pub(super) fn constant(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 200.0, 20_000.0);
    head(Family::Constant, seed, DURATION, path.feedback_ms)
        + &path.network(&path.constant(), "")
        + &media(draw, path.kbps)
        + "\n[[flow]]\n"
}

pub(super) fn steps(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 300.0, 10_000.0);
    let count = draw.whole(2, 6);
    // Steps are at least half of an equal part apart.
    let part = DURATION * 1_000 / count;
    let mut steps = Vec::new();
    for index in 0..count {
        let shift = if index == 0 { 0.0 } else { draw.uniform(-0.25, 0.25) };
        let at = ((index as f64 + shift) * part as f64) as u64;
        let level = draw.rounded(path.kbps / 2.5, path.kbps * 2.0).max(150);
        steps.push((at / 100 * 100, level));
    }
    let most = steps.iter().map(|step| step.1).max().expect("there is a first step");
    head(Family::Steps, seed, DURATION, path.feedback_ms)
        + &path.network(&list(&steps), "")
        + &media(draw, most as f64)
        + "\n[[flow]]\n"
}

pub(super) fn walk(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 400.0, 8_000.0);
    let (low, high) = (path.kbps / 2.75, path.kbps * 2.75);
    let mut rate = path.kbps;
    let mut steps = Vec::new();
    for second in 0..DURATION {
        steps.push((second * 1_000, two_digits(rate).max(100)));
        rate = (rate * draw.uniform(0.8, 1.25)).clamp(low, high);
    }
    head(Family::Walk, seed, DURATION, path.feedback_ms)
        + &path.network(&list(&steps), "")
        + &media(draw, path.kbps * 2.0)
        + "\n[[flow]]\n"
}

/// A log-normal rate with a correlation time of 0.2 to 2 s, as the fading of one user gives.
pub(super) fn lte(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 500.0, 12_000.0);
    let step_ms = draw.one(&[20, 50, 100]);
    let sd = draw.uniform(0.15, 0.5);
    let correlation_ms = draw.log_uniform(200.0, 2_000.0);
    let kept = libm::exp(-(step_ms as f64) / correlation_ms);
    let fresh = sd * libm::sqrt(1.0 - kept * kept);
    let mut log = sd * draw.normal();
    let mut steps = Vec::new();
    for index in 0..LTE_DURATION * 1_000 / step_ms {
        steps.push((index * step_ms, two_digits(path.kbps * libm::exp(log)).max(100)));
        log = kept * log + fresh * draw.normal();
    }
    head(Family::Lte, seed, LTE_DURATION, path.feedback_ms)
        + &path.network(&list(&steps), "")
        + &media(draw, path.kbps * 1.5)
        + "\n[[flow]]\n"
}

pub(super) fn loss(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 300.0, 10_000.0);
    let loss = if draw.chance(0.5) {
        let tenths = (draw.log_uniform(0.5, 10.0) * 10.0).round();
        format!("{:.3}", tenths / 1_000.0)
    } else {
        // Bursts of 2 to 10 packets, 0.2 to 2 % of the time.
        let to_good = (1.0 / draw.uniform(2.0, 10.0) * 1_000.0).round() / 1_000.0;
        let bad = draw.log_uniform(0.002, 0.02);
        let to_bad = (to_good * bad * 100_000.0).round() / 100_000.0;
        format!("{{ to_bad = {to_bad:.5}, to_good = {to_good:.3}, loss_good = 0, loss_bad = 0.8 }}")
    };
    head(Family::Loss, seed, DURATION, path.feedback_ms)
        + &path.network(&path.constant(), &format!("loss = {loss}\n"))
        + &media(draw, path.kbps)
        + "\n[[flow]]\n"
}

pub(super) fn aqm(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 500.0, 20_000.0);
    let aqm = draw.one(&["codel", "fq-codel", "pie", "red", "dualpi2"]);
    let ecn = match aqm {
        "dualpi2" => draw.one(&["l4s", "l4s", "classic", "off"]),
        _ => draw.one(&["off", "classic"]),
    };
    let flows = draw.whole(1, 2);
    let steps = if draw.chance(0.5) {
        path.constant()
    } else {
        let fall = draw.uniform(0.4, 0.8);
        let (first, then) = (two_digits(path.kbps), two_digits(path.kbps * fall));
        list(&[(0, first), (20_000, then), (40_000, first)])
    };
    head(Family::Aqm, seed, DURATION, path.feedback_ms)
        + &path.network(&steps, &format!("aqm = \"{aqm}\"\n"))
        + &media(draw, path.kbps)
        + &format!("ecn = \"{ecn}\"\n")
        + &"\n[[flow]]\n".repeat(flows as usize)
}

pub(super) fn tcp(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 700.0, 10_000.0);
    let count = draw.whole(1, 3);
    let congestion = draw.one(&["cubic", "cubic-linux", "reno", "bbr"]);
    let aqm = draw.one(&["drop-tail", "drop-tail", "drop-tail", "codel", "pie"]);
    let tcp_first = draw.chance(0.5);
    let (media_start, tcp_start) = if tcp_first { (5, 0) } else { (0, 5) };
    head(Family::Tcp, seed, TCP_DURATION, path.feedback_ms)
        + &path.network(&path.constant(), &format!("aqm = \"{aqm}\"\n"))
        + &media(draw, path.kbps)
        + &format!("\n[tcp]\ncongestion = \"{congestion}\"\n")
        + &format!("\n[[flow]]\nstart = \"{media_start}s\"\n")
        + &format!("\n[[flow]]\nkind = \"tcp\"\ncount = {count}\nstart = \"{tcp_start}s\"\n")
}

pub(super) fn equals(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 1_000.0, 12_000.0);
    let count = draw.whole(2, 5);
    let same_rtt = draw.chance(0.5);
    let mut flows = String::new();
    for index in 0..count {
        let start = if index == 0 { 0 } else { draw.whole(0, 20) };
        let more = if same_rtt { 0 } else { draw.whole(0, 60) };
        flows += &format!("\n[[flow]]\nstart = \"{start}s\"\ndelay = \"{more}ms\"\n");
    }
    head(Family::Equals, seed, DURATION, path.feedback_ms)
        + &path.network(&path.constant(), "")
        + &media(draw, path.kbps)
        + &flows
}

pub(super) fn rivals(seed: u64, draw: &mut Draw) -> String {
    const RIVALS: [&str; 6] = ["gcc", "gcc-draft", "gcc-2013", "nada", "scream", "scream-v2"];
    let path = Path::draw(draw, 600.0, 8_000.0);
    let rival = draw.one(&RIVALS);
    let (own, other) = if draw.chance(0.5) { (0, 5) } else { (5, 0) };
    head(Family::Rivals, seed, TCP_DURATION, path.feedback_ms)
        + &path.network(&path.constant(), "")
        + &media(draw, path.kbps)
        + &format!("\n[[flow]]\nstart = \"{own}s\"\n")
        + &format!("\n[[flow]]\nstart = \"{other}s\"\ncontroller = \"{rival}\"\n")
}

pub(super) fn sources(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 400.0, 10_000.0);
    let (mut flow, mut other) = (String::new(), String::new());
    let mut table = media(draw, path.kbps);
    match draw.whole(0, 3) {
        // The source is silent twice.
        0 => {
            let (first, second) = (draw.whole(10, 20), draw.whole(35, 45));
            let ends = [first + draw.whole(2, 8), second + draw.whole(2, 8)];
            flow = format!(
                "pauses = [[\"{first}s\", \"{}s\"], [\"{second}s\", \"{}s\"]]\n",
                ends[0], ends[1]
            );
        }
        // The encoder limits the rate.
        1 => {
            let cap = two_digits(path.kbps * draw.uniform(0.2, 0.7)).max(100);
            // The key `reaction` takes the place of that of `[media]`.
            flow = format!(
                "source = {{ kind = \"filler\", fps = 30, reaction = \"0s\", \
                 cap = \"{cap}kbps\" }}\n"
            );
        }
        // Other traffic, which does not respond, comes and goes.
        2 => {
            let load = two_digits(path.kbps * draw.uniform(0.2, 0.6)).max(20);
            let (from, to) = (draw.whole(10, 25), draw.whole(30, 50));
            other = format!(
                "\n[[flow]]\nkind = \"udp\"\nrate = \"{load}kbps\"\n\
                 start = \"{from}s\"\nstop = \"{to}s\"\n"
            );
        }
        // Minimum and maximum are equal.
        _ => {
            let rate = two_digits(path.kbps * draw.uniform(0.3, 0.8)).max(60);
            table = format!(
                "\n[media]\nmin_bitrate = \"{rate}kbps\"\n\
                 start_bitrate = \"{rate}kbps\"\nmax_bitrate = \"{rate}kbps\"\n"
            );
        }
    }
    head(Family::Sources, seed, DURATION, path.feedback_ms)
        + &path.network(&path.constant(), "")
        + &table
        + "\n[[flow]]\n"
        + &flow
        + &other
}
