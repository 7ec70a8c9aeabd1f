//! The hosts and participants of each topology.

use weir_emu::HostPlan;
use weir_net::Capacity;
use weir_scenario::Flow;
use weir_scenario::call::{BrowserKind, Codec, PlannedCall, Topology};

use super::{Builder, Call, Participant, PlanResult, Player};
use crate::peers::janus::ForwardingRole;

impl Builder<'_> {
    /// Simulcast goes from page to page in one media section, which the sender offers.
    pub(super) fn check_layers(&self, planned: &[PlannedCall]) -> PlanResult<()> {
        let call = &self.scenario.call;
        let is_plain = call.topology == Topology::Pairs
            && call.browsers == [BrowserKind::Chromium; 2]
            && planned.iter().all(|it| it.up.is_some() && it.flows().count() == 1);
        if call.video.layers > 1 && !is_plain {
            return Err("simulcast is for pairs of Chromium with one video up and nothing else: \
                        leave it out"
                .into());
        }
        Ok(())
    }

    pub(super) fn pairs(&mut self, calls: &[PlannedCall]) -> PlanResult<Vec<[usize; 2]>> {
        let mut ends = Vec::new();
        for call in calls {
            let [a, b] = self.places(call)?;
            let number = if calls.len() == 1 { String::new() } else { call.number.to_string() };
            let near = self.add_participant(format!("a{number}"), a, 0);
            ends.push([near, self.add_participant(format!("b{number}"), b, 1)]);
        }
        Ok(ends)
    }

    pub(super) fn one_to_many(&mut self, calls: &[PlannedCall]) -> PlanResult<Vec<[usize; 2]>> {
        let [a, _] = self.places(&calls[0])?;
        let one = self.add_participant("a".into(), a, 0);
        let mut ends = Vec::new();
        for call in calls {
            let [same, b] = self.places(call)?;
            if same != a {
                return Err(
                    "host A is in every call, so all flows need the same hops and delay".into()
                );
            }
            ends.push([one, self.add_participant(format!("b{}", call.number), b, 1)]);
        }
        Ok(ends)
    }

    /// Each participant sends to a server, which forwards what it receives to the others.
    pub(super) fn forwarding_server(
        &mut self,
        calls: &[PlannedCall],
    ) -> PlanResult<Vec<[usize; 2]>> {
        if calls
            .iter()
            .any(|call| call.up.is_none() || call.down.is_some() || call.audio_down.is_some())
        {
            return Err("with a forwarding server, each call has one media flow up and none \
                        down: the server's own flows are not part of the scenario"
                .into());
        }
        self.with_server(calls, Player::ForwardingServer)
    }

    /// Each participant sends to a server and receives one picture of the others.
    pub(super) fn mixer(&mut self, calls: &[PlannedCall]) -> PlanResult<Vec<[usize; 2]>> {
        if calls.len() < 2 {
            return Err("a mixer needs at least two participants".into());
        }
        for PlannedCall { up, down, audio_up, audio_down, .. } in calls {
            if up.is_none() || down.is_none() || audio_up.is_some() || audio_down.is_some() {
                return Err(
                    "with a mixer, each call has one media flow up, one down, and no audio".into(),
                );
            }
        }
        let codec = self.scenario.call.video.codec;
        if codec != Codec::Vp8 {
            return Err(format!("a mixer has no {}: write codec = \"vp8\"", codec.name()));
        }
        self.with_server(calls, Player::Mixer)
    }

    /// Each participant calls the server, which is at the end of their paths.
    fn with_server(
        &mut self,
        calls: &[PlannedCall],
        player: Player,
    ) -> PlanResult<Vec<[usize; 2]>> {
        let server = calls.len();
        let [_, place] = self.places(&calls[0])?;
        let mut ends = Vec::new();
        for call in calls {
            let [a, b] = self.places(call)?;
            if b != place {
                return Err("the server is in every call, so all flows end at the same hop".into());
            }
            ends.push([self.add_participant(format!("a{}", call.number), a, 0), server]);
        }
        self.network.hosts.push(place);
        let host = self.network.hosts.len() - 1;
        self.participants.push(Participant { name: "server".into(), host, player });
        Ok(ends)
    }

    /// All participants are at one node. The access link of each has half of the network's delay.
    pub(super) fn mesh(&mut self, calls: &[PlannedCall]) -> PlanResult<Vec<[usize; 2]>> {
        let participants = (2..=calls.len() + 1).find(|n| n * (n - 1) / 2 >= calls.len());
        let participants = participants.filter(|n| n * (n - 1) / 2 == calls.len());
        let Some(participants) = participants else {
            return Err(format!(
                "{} calls do not form a mesh: write one for each pair, that is 1, 3, 6, 10, ...",
                calls.len()
            ));
        };
        if let Some(access) = &self.network.access {
            return Err(format!("a mesh cannot have a {}", access.config.title()));
        }
        let [hop] = self.network.hops.as_slice() else {
            return Err("a mesh needs exactly one hop".into());
        };
        let delay = hop.up.delay.steps()[0].1;
        let plain = weir_net::LinkConfig::unlimited(delay);
        if hop.up.capacity != Capacity::Unlimited || hop.up != plain || hop.down != plain {
            return Err(
                "a mesh has no bottleneck: write only a delay, equal in both directions".into()
            );
        }
        self.network.hops.clear();
        self.network.local_traffic = true;
        for number in 1..=participants {
            let host = HostPlan { access_delay: delay / 2, ..HostPlan::at(0) };
            // Browsers alternate, so that both kinds call each other.
            self.add_participant(format!("p{number}"), host, (number + 1) % 2);
        }
        let pairs = (0..participants).flat_map(|a| (a + 1..participants).map(move |b| [a, b]));
        Ok(pairs.collect())
    }

    /// The hosts of the two ends of a call.
    fn places(&self, call: &PlannedCall) -> PlanResult<[HostPlan; 2]> {
        let flows: Vec<&Flow> = call.flows().map(|flow| &self.scenario.flows[flow]).collect();
        let first = flows[0];
        if flows.iter().any(|flow| flow.hops != first.hops) {
            return Err(format!("the flows of call {} cross different hops", call.number));
        }
        if flows.iter().any(|flow| flow.access_delay != first.access_delay) {
            return Err(format!("the flows of call {} have different delays", call.number));
        }
        if flows.iter().any(|flow| flow.attachment != first.attachment) {
            let access = self.scenario.access.as_ref();
            let terminal = access.map_or("terminal", |access| access.config.terminal_word());
            return Err(format!(
                "the flows of call {} are at different {terminal}s, or in different categories or \
                 bearers",
                call.number
            ));
        }
        let a = HostPlan {
            node: first.hops.start,
            access_delay: first.access_delay,
            attachment: first.attachment,
            own: None,
            ..HostPlan::default()
        };
        Ok([a, HostPlan::at(first.hops.end)])
    }
}

/// Adds a call for each pair of participants, in which one receives what the other sends to the
/// server.
pub(super) fn subscribe(calls: &mut Vec<Call>) {
    let publishers = calls.len();
    for call in &mut *calls {
        call.role = ForwardingRole::Publish;
    }
    for feed in 0..publishers {
        for receiver in (0..publishers).filter(|receiver| *receiver != feed) {
            let (from, to) = (&calls[feed], &calls[receiver]);
            let subscription = Call {
                number: calls.len() + 1,
                ends: [from.ends[1], to.ends[0]],
                role: ForwardingRole::Subscribe(feed),
                start: from.start.max(to.start),
                stop: from.stop.min(to.stop),
                ..from.clone()
            };
            calls.push(subscription);
        }
    }
}
