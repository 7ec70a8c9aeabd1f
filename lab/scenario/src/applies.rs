//! Whether a metric can have a value in a scenario. If not, the error says what the metric needs
//! and what to write.

use weir_metrics::{Declared, Need};
use weir_net::{Capacity, LinkConfig};

use super::{Direction, Flow, Hop, QuicSource, Traffic};

/// Suggestion in every message: a metric that every flow has.
const ANOTHER: &str = "another metric, such as \"rate_mbps.mean\"";

/// The flows and bottlenecks of a scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetricScope<'a> {
    pub(super) flows: &'a [Flow],
    pub(super) hops: &'a [Hop],
}

impl MetricScope<'_> {
    /// Why a flow cannot have a metric, and what to write instead; `None` if it can.
    pub(super) fn unmet_need(&self, metric: &str, flow: &Flow) -> Option<String> {
        let mut needs = Declared::of(metric)?.needs.iter();
        let need = needs.find(|need| !self.meets(**need, flow))?;
        let name = &flow.name;
        let of_repair = if flow.traffic.media().is_some() {
            format!(
                "{name} has no {metric} without repair; write repair = {{ nack = true }} in its \
                 [[flow]], or {ANOTHER}"
            )
        } else {
            format!(
                "{name} has no {metric}, because it is not a media flow with repair; name such a \
                 flow, or write {ANOTHER}"
            )
        };
        Some(match need {
            Need::Repair => of_repair,
            Need::Quality => format!(
                "{name} has no {metric} without quality; write quality = true and repair = \
                 {{ nack = true }} in its [[flow]], or {ANOTHER}"
            ),
            Need::Watched => format!(
                "{name} has no {metric} without quality; write quality = true and repair = \
                 {{ nack = true }} in its [[flow]], name a subscriber of a forwarding server, or \
                 {ANOTHER}"
            ),
            Need::Speech => format!(
                "{name} has no {metric}, because it is not an audio flow with quality; write \
                 quality = true in one, and name it, or {ANOTHER}"
            ),
            Need::Media => format!(
                "{name} has no {metric}, because it is not a media flow; name such a flow, or \
                 write {ANOTHER}"
            ),
            Need::Tcp => format!(
                "{name} has no {metric}, because it is not a TCP flow; write flow = \"{}\", or \
                 {ANOTHER}",
                self.tcp_flow()
            ),
            Need::Capacity => format!(
                "{name} has no {metric}, because the capacity of its path is unlimited; write \
                 capacity = \"2Mbps\" in [network.{}], or {ANOTHER}",
                direction(flow)
            ),
            Need::Change => format!(
                "{name} has no {metric}, because the capacity of its path never changes; write \
                 capacity = [[\"0s\", \"2Mbps\"], [\"10s\", \"1Mbps\"]] in [network.{}], or \
                 {ANOTHER}",
                direction(flow)
            ),
            Need::Server => format!(
                "{name} has no {metric}, because it is no subscriber of a forwarding server; name \
                 one, write topology = \"sfu\", or {ANOTHER}"
            ),
            Need::Rivals => format!(
                "{metric} needs two media flows in the direction {}; write another [[flow]], or \
                 {ANOTHER}",
                direction(flow)
            ),
        })
    }

    fn meets(&self, need: Need, flow: &Flow) -> bool {
        let quic = match &flow.traffic {
            Traffic::Quic(quic) => Some(quic),
            _ => None,
        };
        match need {
            Need::Media => flow.traffic.media().is_some() || quic.is_some(),
            Need::Repair => match quic {
                Some(quic) => quic.source != QuicSource::Bulk,
                None => flow.traffic.media().is_some_and(|media| media.repair.is_some()),
            },
            Need::Quality => flow.quality && flow.traffic.media().is_some(),
            Need::Watched => self.meets(Need::Quality, flow) || self.meets(Need::Server, flow),
            Need::Speech => flow.quality && matches!(flow.traffic, Traffic::Audio),
            Need::Tcp => quic.is_some() || matches!(flow.traffic, Traffic::Tcp(_)),
            Need::Capacity => self.links(flow).any(|link| {
                !matches!(link.capacity, Capacity::Unlimited) || link.policer.is_some()
            }),
            // The rate of a UDP flow is subtracted from the capacity against which a flow is
            // measured.
            Need::Change => {
                self.flows.iter().any(|other| matches!(other.traffic, Traffic::Udp(_)))
                    || self.links(flow).any(|link| changes(&link.capacity))
            }
            Need::Server => flow.traffic.media().is_some_and(|media| !media.watches.is_empty()),
            Need::Rivals => {
                let mut media = 0;
                for other in self.flows {
                    let is_media = other.traffic.media().is_some();
                    media += usize::from(is_media && other.direction == flow.direction);
                }
                media > 1
            }
        }
    }

    /// The links that a flow's data crosses.
    fn links(&self, flow: &Flow) -> impl Iterator<Item = &LinkConfig> {
        let hops = self.hops.get(flow.hops.clone()).unwrap_or_default();
        let direction = flow.direction;
        hops.iter().map(move |hop| hop.link(direction))
    }

    fn tcp_flow(&self) -> &str {
        let tcp = self.flows.iter().find(|flow| matches!(flow.traffic, Traffic::Tcp(_)));
        tcp.map_or("tcp-1", |flow| &flow.name)
    }
}

fn changes(capacity: &Capacity) -> bool {
    match capacity {
        Capacity::Unlimited => false,
        Capacity::Schedule(schedule) => schedule.steps().len() > 1,
        Capacity::Trace(_) => true,
    }
}

fn direction(flow: &Flow) -> &'static str {
    match flow.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

#[cfg(test)]
mod tests {
    use crate::{catalogue, parse, parse_recorded};
    use std::collections::BTreeMap;

    const HEAD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"20s\"\n";

    /// A scenario with this network, these flows and this expectation.
    fn text(network: &str, flows: &str, expect: &str) -> String {
        format!("{HEAD}{network}\n{flows}\n[[expect]]\n{expect}\nabove = 0\n")
    }

    fn refused(network: &str, flows: &str, expect: &str) -> String {
        parse("x", &text(network, flows, expect), None).unwrap_err().to_string()
    }

    fn is_read(network: &str, flows: &str, expect: &str) {
        parse("x", &text(network, flows, expect), None).unwrap();
    }

    const UP: &str = "[network.up]\ncapacity = \"2Mbps\"";

    #[test]
    fn a_metric_that_the_flow_cannot_have_is_refused_with_its_key_and_a_cure() {
        let error = refused(UP, "[[flow]]", "metric = \"freeze_duration_s\"");
        assert_eq!(
            error,
            "x:9: expect[1].metric: media-1 has no freeze_duration_s without repair; write \
             repair = { nack = true } in its [[flow]], or another metric, such as \
             \"rate_mbps.mean\""
        );
        is_read(UP, "[[flow]]\nrepair = { nack = true }", "metric = \"freeze_duration_s\"");
        let cases = [
            (UP, "[[flow]]", "metric = \"goodput_mbps.mean\"", "not a TCP flow"),
            (UP, "[[flow]]", "metric = \"responsiveness_s\"", "path never changes"),
            (UP, "[[flow]]", "metric = \"fairness.jain\"", "two media flows in the direction up"),
            (
                "[network]",
                "[[flow]]",
                "metric = \"utilization\"",
                "capacity of its path is unlimited",
            ),
            (
                "[network]",
                "[[flow]]",
                "metric = \"link.utilization\"",
                "capacity of its path is unlimited",
            ),
            (
                UP,
                "[[flow]]\n[[flow]]\nkind = \"tcp\"",
                "flow = \"tcp-1\"\nmetric = \"rtt_ms.mean\"",
                "tcp-1 has no rtt_ms.mean, because it is not a media flow",
            ),
            (
                UP,
                "[[flow]]\nrepair = {}\n[[flow]]",
                "flow = \"every\"\nmetric = \"freeze_count\"",
                "media-2 has no freeze_count without repair",
            ),
            (
                UP,
                "[[flow]]\nkind = \"udp\"\nrate = \"1Mbps\"",
                "metric = \"rate_mbps.mean\"",
                "there is no media flow",
            ),
        ];
        for (network, flows, expect, words) in cases {
            let error = refused(network, flows, expect);
            assert!(error.contains(words), "{error}");
        }
        let tcp = "[[flow]]\n[[flow]]\nkind = \"tcp\"";
        is_read(UP, tcp, "flow = \"tcp-1\"\nmetric = \"retransmitted_packets\"");
        let steps = "[network.up]\ncapacity = [[\"0s\", \"2Mbps\"], [\"9s\", \"1Mbps\"]]";
        is_read(steps, "[[flow]]", "metric = \"responsiveness_s\"");
    }

    #[test]
    fn what_is_seen_and_heard_needs_quality_and_that_needs_frames() {
        let seen = "metric = \"good_ratio\"";
        let error = refused(UP, "[[flow]]\nrepair = { nack = true }", seen);
        assert!(error.contains("media-1 has no good_ratio without quality"), "{error}");
        let error = refused(UP, "[[flow]]\nquality = true", seen);
        assert!(error.contains("only a flow with repair shows frames"), "{error}");
        is_read(UP, "[[flow]]\nrepair = { nack = true }\nquality = true", seen);
        let heard = "flow = \"audio-1\"\nmetric = \"speech_rating\"";
        let error = refused(UP, "[[flow]]\n[[flow]]\nkind = \"audio\"", heard);
        assert!(error.contains("not an audio flow with quality"), "{error}");
        is_read(UP, "[[flow]]\n[[flow]]\nkind = \"audio\"\nquality = true", heard);
    }

    #[test]
    fn a_record_of_before_is_read_all_the_same() {
        let text = text(UP, "[[flow]]", "metric = \"freeze_duration_s\"");
        assert!(parse_recorded("x", &text, None, BTreeMap::new()).is_ok());
    }

    #[test]
    fn every_expectation_of_the_catalogue_can_have_a_value() {
        assert!(catalogue::find("*").unwrap().len() > 100);
    }
}
