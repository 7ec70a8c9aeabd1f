//! What a forwarding server made of the way to a participant, from the reports of its page.

use weir_record::calls::file::Peer;

/// Above this share of lost packets, more was sent than the way carries.
const FLOODED: f64 = 0.1;

/// What arrived at a participant, all of its streams together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Arrived {
    /// Mean over its reports, in kbit/s.
    kbps: f64,
    /// Share of the packets that did not arrive.
    lost: f64,
    /// The last picture, in pixels.
    picture: Option<(u32, u32)>,
}

impl Arrived {
    /// `None` without reports. Streams of one participant are `p3`, `p3/2` and so on.
    fn at(peers: &[Peer], name: &str) -> Option<Self> {
        let (mut arrived, mut expected, mut reports, mut picture) = (0.0, 0.0, 0, None);
        for peer in peers.iter().filter(|peer| peer.participant.split('/').next() == Some(name)) {
            reports = reports.max(peer.intervals.len());
            for interval in &peer.intervals {
                let Some(received) = &interval.received else { continue };
                let bps = received.receive_bps.unwrap_or(0) as f64;
                let lost = received.loss_ratio.filter(|lost| *lost < 1.0).unwrap_or(0.0);
                arrived += bps;
                // Packets of one size.
                expected += bps / (1.0 - lost);
                picture = received.frame_size.or(picture);
            }
        }
        let kbps = arrived / reports as f64 / 1e3;
        let lost = if expected > 0.0 { 1.0 - arrived / expected } else { 0.0 };
        (reports > 0).then_some(Self { kbps, lost, picture })
    }
}

/// Why the participant sees too little, in words.
pub fn cause(peers: &[Peer], name: &str) -> String {
    let Some(Arrived { kbps, lost, picture }) = Arrived::at(peers, name) else {
        return format!("{name}: its page reported nothing");
    };
    let lost_percent = 100.0 * lost;
    if lost > FLOODED {
        return format!(
            "server: it sends {name} more than its way carries: {kbps:.0} kbit/s arrived, and \
             {lost_percent:.0} % of the packets were lost"
        );
    }
    let pictures = match picture {
        Some((width, height)) => format!(" in pictures of {width}x{height}"),
        None => String::new(),
    };
    format!(
        "server: {kbps:.0} kbit/s arrived at {name}{pictures}, and {lost_percent:.1} % of the \
         packets were lost"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn peers(streams: &[(&str, f64)]) -> Vec<Peer> {
        let mut peers = Vec::new();
        for &(participant, lost) in streams {
            let report = json!({
                "time_s": 0.5, "receive_bps": 200_000, "loss_ratio": lost, "frame_size": [640, 360]
            });
            let intervals = [report.clone(), report];
            let peer = json!({ "call": 1, "participant": participant, "intervals": intervals });
            peers.push(serde_json::from_value(peer).unwrap());
        }
        peers
    }

    #[test]
    fn losses_say_that_the_server_sends_too_much_and_else_what_arrived() {
        let streams = peers(&[("p3", 0.0), ("p3/2", 0.6), ("p33", 0.9)]);
        // 400 of 700 kbit/s.
        assert_eq!(
            cause(&streams, "p3"),
            "server: it sends p3 more than its way carries: 400 kbit/s arrived, and 43 % of the \
             packets were lost"
        );
        assert_eq!(
            cause(&peers(&[("p1", 0.01)]), "p1"),
            "server: 200 kbit/s arrived at p1 in pictures of 640x360, and 1.0 % of the packets \
             were lost"
        );
        assert_eq!(cause(&streams, "p2"), "p2: its page reported nothing");
    }
}
