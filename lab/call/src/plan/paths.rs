//! What decides the path of a call besides its hosts: the relay, the servers of ICE, NATs and
//! second interfaces.

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{HostPlan, NatPlan, OwnNetwork, Plan};
use weir_scenario::Scenario;
use weir_scenario::call::{IceRestart, IceServer, Relay, Topology};

use super::{Builder, CallConfig, PlanResult};

/// A relay and the transport to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayHost {
    /// Its host, by index.
    pub host: usize,
    /// The transport to it.
    pub transport: Relay,
}

impl RelayHost {
    /// What a page is told of it.
    pub(crate) fn server(self) -> IceServer {
        match self.transport {
            Relay::Udp => IceServer::TurnUdp,
            Relay::Tcp => IceServer::TurnTcp,
        }
    }
}

/// Servers of ICE, all of them one program on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceHost {
    /// Its host, by index.
    pub host: usize,
    /// What the peers are told of; not empty.
    pub servers: Vec<IceServer>,
}

/// The NATs of a scenario, for a run with these participants and their hosts.
///
/// # Errors
/// One line, if a NAT has no participant in this run.
pub fn nats(scenario: &Scenario, hosts: &[(&str, usize)]) -> Result<Vec<NatPlan>, String> {
    let mut plans = Vec::new();
    for nat in &scenario.nats {
        let mut behind = Vec::new();
        for (name, host) in hosts {
            if nat.participants.iter().any(|one| one == name) {
                behind.push(*host);
            }
        }
        if behind.is_empty() {
            let names: Vec<&str> = hosts.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "nobody is behind nat.{}: its participants are {}, and those of this run {}",
                nat.name,
                nat.participants.join(", "),
                names.join(", ")
            ));
        }
        plans.push(NatPlan { config: nat.config, hosts: behind, rebinds: nat.rebinds.clone() });
    }
    Ok(plans)
}

/// A change of a host from its interface to a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedHandover {
    /// The host, by index.
    pub first: usize,
    /// The index of its second interface among the hosts.
    pub second: usize,
    /// When the first interface goes away.
    pub at: Timestamp,
    /// Time from then until the second one is there.
    pub gap: TimeDelta,
}

/// Adds the second interfaces of a scenario's participants behind all hosts of the plan. Each has
/// a network of its own to the far end.
///
/// # Errors
/// One line, if a participant is not in this run.
pub fn second_interfaces(
    scenario: &Scenario,
    hosts: &[(&str, usize)],
    plan: &mut Plan,
) -> Result<Vec<PlannedHandover>, String> {
    let mut planned = Vec::new();
    for one in &scenario.handovers {
        let Some((_, first)) = hosts.iter().find(|(name, _)| *name == one.participant) else {
            let names: Vec<&str> = hosts.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(format!("handover.{} is of nobody here: {names}", one.participant));
        };
        plan.own.push(OwnNetwork { access: None, hops: one.hops.clone() });
        let own = Some(plan.own.len() - 1);
        plan.hosts.push(HostPlan { own, second_of: Some(*first), ..HostPlan::at(plan.hops.len()) });
        plan.local_traffic = true;
        let second = plan.hosts.len() - 1;
        planned.push(PlannedHandover { first: *first, second, at: one.at, gap: one.gap });
    }
    Ok(planned)
}

impl CallConfig {
    /// Whether the peers have addresses besides those of their hosts.
    pub(super) fn has_moving_paths(&self) -> bool {
        self.ice.is_some() || !self.network.nats.is_empty() || !self.handovers.is_empty()
    }
}

impl Builder<'_> {
    /// A server has no page that could restart ICE.
    pub(super) fn check_restarts(&self) -> PlanResult<()> {
        let call = &self.scenario.call;
        let has_server = matches!(call.topology, Topology::ForwardingServer | Topology::Mixer);
        if has_server && call.ice_restart != IceRestart::Never {
            return Err("its server does not restart ICE: leave out ice_restart".into());
        }
        Ok(())
    }

    pub(super) fn relay(&mut self) -> PlanResult<Option<RelayHost>> {
        let Some(transport) = self.scenario.call.relay else { return Ok(None) };
        if self.network.hops.len() != 2 {
            return Err("a relay is between two hops: write [[network.hop]] twice".into());
        }
        self.network.hosts.push(HostPlan::at(1));
        Ok(Some(RelayHost { host: self.network.hosts.len() - 1, transport }))
    }

    /// The second interfaces. They come behind all other hosts.
    pub(super) fn handovers(&mut self) -> PlanResult<Vec<PlannedHandover>> {
        let hosts = self.participants.iter().map(|one| (one.name.as_str(), one.host));
        let hosts: Vec<(&str, usize)> = hosts.collect();
        second_interfaces(self.scenario, &hosts, &mut self.network)
    }

    pub(super) fn nats(&mut self) -> PlanResult<()> {
        let hosts = self.participants.iter().map(|one| (one.name.as_str(), one.host));
        let hosts: Vec<(&str, usize)> = hosts.collect();
        self.network.nats = nats(self.scenario, &hosts)?;
        Ok(())
    }

    /// Adds the host of the servers: between two hops, or else where host B is, behind no NAT.
    pub(super) fn ice_servers(&mut self) -> Option<IceHost> {
        let servers = self.scenario.call.servers.clone();
        if servers.is_empty() {
            return None;
        }
        let node = if self.network.hops.len() == 2 { 1 } else { self.network.hops.len() };
        self.network.hosts.push(HostPlan::at(node));
        // Those beside it reach it, too.
        self.network.local_traffic = true;
        Some(IceHost { host: self.network.hosts.len() - 1, servers })
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::parse;

    use super::*;
    use crate::peers::app::app_network;

    const TABLES: &str = "[nat.a]\n[nat.far]\nparticipants = [\"b\", \"p2\"]\nudp = \"blocked\"\n\
        [handover.a]\nat = \"2s\"\nup = { delay = \"40ms\" }\n";

    fn scenario(rest: &str) -> Scenario {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
             [network.up]\ndelay = \"5ms\"\n[[flow]]\n{rest}"
        );
        parse("x", &text, None).unwrap()
    }

    #[test]
    fn participants_are_behind_their_nats_and_the_servers_behind_none() {
        let text = format!("{TABLES}[call]\nservers = [\"stun\", \"turn-tcp\"]\n");
        let config = CallConfig::of(&scenario(&text), 1).unwrap();
        let behind: Vec<_> = config.network.nats.iter().map(|nat| nat.hosts.clone()).collect();
        assert_eq!(behind, [vec![0], vec![1]]);
        let ice = config.ice.unwrap();
        assert_eq!(ice.servers, [IceServer::Stun, IceServer::TurnTcp]);
        assert_eq!((ice.host, config.network.hosts[ice.host].node), (2, 1));
        // The second interface comes last, with a network of its own to the far end.
        let [handover] = config.handovers[..] else { panic!("{:?}", config.handovers) };
        assert_eq!((handover.first, handover.second), (0, 3));
        let second = config.network.hosts[3];
        assert_eq!((second.second_of, second.node), (Some(0), 1));
        assert_eq!(config.network.own[second.own.unwrap()].hops.len(), 1);
        assert!(config.network.local_traffic);
    }

    fn refusal(text: &str) -> String {
        CallConfig::of(&scenario(text), 1).unwrap_err().to_string()
    }

    #[test]
    fn a_table_that_is_of_nobody_in_the_run_is_refused() {
        let nobody = refusal("[nat.x]\nparticipants = [\"a2\", \"p1\"]\n");
        assert!(nobody.contains("nobody is behind nat.x: its participants are a2, p1"), "{nobody}");
        assert!(refusal("[handover.p1]\nat = \"1s\"\n").contains("handover.p1 is of nobody here"));
    }

    #[test]
    fn an_application_has_the_same_tables_by_the_names_of_its_participants() {
        let text = TABLES.replace("[nat.a]", "[nat.p1]").replace("handover.a", "handover.p1");
        let (plan, handovers) = app_network(&scenario(&text), 2, false).unwrap();
        let behind: Vec<_> = plan.nats.iter().map(|nat| nat.hosts.clone()).collect();
        assert_eq!(behind, [vec![0], vec![1]]);
        assert!(plan.nats[1].config.blocks_udp);
        assert_eq!((handovers[0].first, handovers[0].second), (0, 3));
        assert!(app_network(&scenario(TABLES), 2, false).unwrap_err().contains("nat.a"));
    }
}
