//! Converts a scenario to the plan of a run: the network with its hosts, the participants, their
//! calls, and the load traffic.

use std::net::Ipv4Addr;
use std::ops::Range;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_emu::{HostPlan, Plan};
use weir_net::Seed;
use weir_scenario::call::{
    BrowserKind, Degradation, IceRestart, Opus, Picture, PlannedCall, Topology,
};
use weir_scenario::{Direction, ReceiverClock, Scenario, Traffic};

use crate::measure::capture::CapturePlan;
use crate::message::Peer;
use crate::peers::ims::Ims;
use crate::peers::janus::ForwardingRole;
use crate::peers::stack::Stack;

mod firefox;
mod participant;
mod paths;
mod pipelines;
mod receivers;
mod topologies;
mod trials;

pub use participant::{Participant, Player};
pub use paths::{IceHost, PlannedHandover, RelayHost, nats, second_interfaces};
pub use pipelines::ControlledSender;
pub use trials::ChromiumMode;

/// Controller of a mixer, unless the scenario or the user names another.
const MIXER_CONTROLLER: LabAlgorithm = LabAlgorithm::Gcc;

/// Why a scenario cannot be run with browsers.
#[derive(Debug, thiserror::Error)]
#[error("{scenario} cannot be run as calls: {why}")]
pub struct Unplayable {
    scenario: String,
    why: String,
}

/// Configuration of a run of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct CallConfig {
    /// The network and its hosts.
    pub network: Plan,
    /// Duration from time zero, when all calls that begin then can send.
    pub duration: TimeDelta,
    /// The participants.
    pub participants: Vec<Participant>,
    /// The calls, by number.
    pub calls: Vec<Call>,
    /// Load traffic besides the calls.
    pub loads: Vec<PlannedLoad>,
    /// The relay for all media.
    pub relay: Option<RelayHost>,
    /// The servers with which the peers find a path.
    pub ice: Option<IceHost>,
    /// Changes of participants to a second interface.
    pub handovers: Vec<PlannedHandover>,
    /// When the peers restart ICE.
    pub ice_restart: IceRestart,
    /// The IMS through which the signalling goes; `None` for the lab's own.
    pub ims: Option<Ims>,
    /// The address at which people reach this machine, if the peers are people; 0.0.0.0 means all.
    pub serve: Option<Ipv4Addr>,
    /// The congestion control and the feedback of Chromium.
    pub chromium: ChromiumMode,
    /// The stack that sends or receives the videos; `None` if browsers or pipelines do.
    pub stack: Option<Stack>,
    /// The cameras' picture, and the codec.
    pub picture: Picture,
    /// How browsers encode speech.
    pub opus: Opus,
    /// Whether the cameras' frames have tags, which the pages read.
    pub quality: bool,
    /// Seconds of the scenario whose last received pictures are kept.
    pub pictures_at: Vec<u32>,
    /// Where to keep packet captures; `None` to delete them after they are read.
    pub capture: Option<CapturePlan>,
    /// Seed of the network's randomness.
    pub seed: Seed,
}

/// A connection between two participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number in the scenario.
    pub number: usize,
    /// Indices of the participants that offer and answer.
    pub ends: [usize; 2],
    /// Its role for the forwarding server.
    pub role: ForwardingRole,
    /// Maximum encoder bitrate of each end; `None` for an end that sends no video.
    pub video: [Option<Bitrate>; 2],
    /// Which ends send audio.
    pub audio: [bool; 2],
    /// The pipeline that sends the video; `None` if browsers do.
    pub pipeline: Option<ControlledSender>,
    /// When its set-up begins. For a call that starts at zero, when it can send.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
}

impl Call {
    /// When it can have media, in a run of this length.
    pub(crate) fn span(&self, length: TimeDelta) -> Range<Timestamp> {
        self.start.max(Timestamp::ZERO)..self.stop.min(Timestamp::ZERO + length)
    }
}

/// A TCP or UDP flow between two hosts of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLoad {
    /// Its index in the scenario.
    pub flow: usize,
    /// Its name in the scenario.
    pub name: String,
    /// Indices of the sending and the receiving host.
    pub hosts: [usize; 2],
    /// Kind of traffic.
    pub traffic: Traffic,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
}

impl CallConfig {
    /// Plans the calls of a scenario over its network.
    ///
    /// # Errors
    /// One line, if the scenario uses something that browsers or the emulator do not support.
    pub fn of(scenario: &Scenario, seed: u64) -> Result<Self, Unplayable> {
        let config = Builder::new(scenario).build(seed);
        config.map_err(|why| Unplayable { scenario: scenario.id.clone(), why })
    }

    /// Changes the plan to calls between people, who open their pages themselves.
    ///
    /// # Errors
    /// One line, if people cannot replace the lab's own peers.
    pub fn served(mut self, address: Ipv4Addr) -> Result<Self, &'static str> {
        if self.relay.is_some() {
            return Err("--serve does not work with a relay: choose a scenario without one");
        }
        if self.has_moving_paths() {
            return Err(
                "--serve does not work with NATs or hand-overs: choose a scenario without them",
            );
        }
        if self.participants.iter().any(|participant| participant.player.is_server()) {
            return Err("--serve does not work with a server: choose a scenario without one");
        }
        for participant in &mut self.participants {
            participant.player = Player::Person;
        }
        self.serve = Some(address);
        Ok(self)
    }

    /// Changes the plan: the signalling of its calls goes through an IMS.
    ///
    /// # Errors
    /// One line, if there are not two users for each call, or a call is not of two browsers.
    pub fn through(mut self, ims: Ims) -> Result<Self, &'static str> {
        if self.participants.len() != 2 * self.calls.len() || self.relay.is_some() {
            return Err("--ims needs calls between two browsers each, without a relay");
        }
        if self.has_moving_paths() {
            return Err(
                "--ims does not work with NATs or hand-overs: choose a scenario without them",
            );
        }
        if self.calls.len() != ims.users.len() {
            return Err("--ims needs two users for each call of the scenario");
        }
        if !self.is_all_chromium() {
            return Err("--ims needs Chromium at both ends");
        }
        self.ims = Some(ims);
        Ok(self)
    }

    /// The calls of a participant by index, and its role (peer a or b) in each.
    pub(crate) fn seats(&self, participant: usize) -> Vec<(usize, Peer)> {
        let mut seats = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            for peer in Peer::ALL {
                if call.ends[peer.index()] == participant {
                    seats.push((index, peer));
                }
            }
        }
        seats
    }
}

/// The network of a scenario, without hosts.
pub fn network(scenario: &Scenario) -> Plan {
    Plan {
        access: scenario.access_plan(),
        hops: scenario.hops.clone(),
        own: Vec::new(),
        hosts: Vec::new(),
        local_traffic: false,
        nats: Vec::new(),
    }
}

/// The hosts and participants so far.
struct Builder<'a> {
    scenario: &'a Scenario,
    network: Plan,
    participants: Vec<Participant>,
}

/// The error is the reason why a scenario cannot be run, in one line.
type PlanResult<T> = std::result::Result<T, String>;

impl<'a> Builder<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, network: network(scenario), participants: Vec::new() }
    }

    fn build(mut self, seed: u64) -> PlanResult<CallConfig> {
        if self.scenario.server.is_some() {
            return Err("its forwarding server exists in `weir run` only".into());
        }
        let planned = self.scenario.calls();
        let asks = self.scenario.call.video.degradation != Degradation::default();
        let [a, b] = self.scenario.call.browsers;
        let sends = planned.iter().any(|call| {
            (a == BrowserKind::Firefox && call.up.is_some())
                || (b == BrowserKind::Firefox && call.down.is_some())
        });
        if asks && sends {
            return Err("Firefox chooses itself what to give up: leave out degradation".into());
        }
        if planned.is_empty() {
            return Err("it has no media flow".into());
        }
        self.check_layers(&planned)?;
        self.check_restarts()?;
        let ends = match self.scenario.call.topology {
            Topology::Pairs => self.pairs(&planned)?,
            Topology::OneToMany => self.one_to_many(&planned)?,
            Topology::Mesh => self.mesh(&planned)?,
            Topology::ForwardingServer => self.forwarding_server(&planned)?,
            Topology::Mixer => self.mixer(&planned)?,
        };
        let calls = planned.iter().zip(ends).map(|(call, ends)| self.call(call, ends));
        let mut calls = calls.collect::<PlanResult<Vec<Call>>>()?;
        if self.scenario.call.topology == Topology::ForwardingServer {
            topologies::subscribe(&mut calls);
        }
        if self.scenario.call.topology == Topology::Mixer {
            pipelines::mix(&mut calls, self.scenario, &MIXER_CONTROLLER.into());
        }
        let relay = self.relay()?;
        let ice = self.ice_servers();
        self.nats()?;
        let loads = self.loads()?;
        let handovers = self.handovers()?;
        Ok(CallConfig {
            network: self.network,
            duration: self.scenario.duration,
            participants: self.participants,
            calls,
            loads,
            relay,
            ice,
            handovers,
            ice_restart: self.scenario.call.ice_restart.clone(),
            ims: None,
            serve: None,
            chromium: ChromiumMode::Default,
            stack: None,
            picture: self.scenario.call.video,
            opus: self.scenario.call.audio,
            quality: false,
            pictures_at: Vec::new(),
            capture: None,
            seed: Seed::new(seed),
        })
    }

    /// Adds a host and its participant. Returns the index of the participant.
    fn add_participant(&mut self, name: String, host: HostPlan, side: usize) -> usize {
        self.network.hosts.push(host);
        let host = self.network.hosts.len() - 1;
        let player = Player::Browser(self.scenario.call.browsers[side]);
        self.participants.push(Participant { name, host, player });
        self.participants.len() - 1
    }

    fn call(&self, planned: &PlannedCall, ends: [usize; 2]) -> PlanResult<Call> {
        let number = planned.number;
        let Some((start, stop)) = self.scenario.call_times(planned) else {
            return Err(format!("the flows of call {number} do not start and stop together"));
        };
        if planned.up.is_none() && planned.down.is_none() {
            return Err(format!(
                "call {number} has only audio: it needs video, which shows that the call works"
            ));
        }
        if planned.flows().any(|flow| !self.scenario.flows[flow].pauses.is_empty()) {
            return Err(format!(
                "a flow of call {number} pauses, which the call page does not support"
            ));
        }
        let media = planned.flows().filter_map(|flow| self.scenario.flows[flow].traffic.media());
        for media in media {
            if media.source_limit.is_some()
                || media.receiver_clock != ReceiverClock::default()
                || !media.route_changes.is_empty()
            {
                return Err(format!(
                    "a flow of call {number} has source_limit, receiver_clock or route_changes, \
                     which only the simulator supports"
                ));
            }
        }
        Ok(Call {
            number,
            ends,
            role: ForwardingRole::Direct,
            video: [planned.up, planned.down]
                .map(|flow| pipelines::limit(&self.scenario.flows[flow?])),
            audio: [planned.audio_up.is_some(), planned.audio_down.is_some()],
            pipeline: None,
            start,
            stop,
        })
    }

    fn loads(&mut self) -> PlanResult<Vec<PlannedLoad>> {
        let mut loads = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if matches!(flow.traffic, Traffic::Media(_) | Traffic::Audio | Traffic::Link) {
                continue;
            }
            match &flow.traffic {
                Traffic::Tcp(tcp) if tcp.short.is_some() => {
                    return Err(format!(
                        "{} has short transfers, which iperf3 does not support",
                        flow.name
                    ));
                }
                Traffic::Udp(udp) if udp.rate.steps().len() > 1 => {
                    return Err(format!(
                        "{} changes its rate, which iperf3 does not support",
                        flow.name
                    ));
                }
                Traffic::Tcp(_) | Traffic::Udp(_) => {}
                _ => {
                    return Err(format!(
                        "{} is neither TCP nor UDP, so iperf3 cannot send it",
                        flow.name
                    ));
                }
            }
            if !flow.pauses.is_empty() {
                return Err(format!("{} pauses, which iperf3 does not support", flow.name));
            }
            let first = self.network.hosts.len();
            let access_delay = flow.access_delay;
            let (node, attachment) = (flow.hops.start, flow.attachment);
            self.network.hosts.push(HostPlan {
                node,
                access_delay,
                attachment,
                ..HostPlan::default()
            });
            self.network.hosts.push(HostPlan::at(flow.hops.end));
            loads.push(PlannedLoad {
                flow: index,
                name: flow.name.clone(),
                hosts: match flow.direction {
                    Direction::Up => [first, first + 1],
                    Direction::Down => [first + 1, first],
                },
                traffic: flow.traffic.clone(),
                start: flow.start,
                stop: flow.stop,
            });
        }
        Ok(loads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::call::Relay;
    use weir_scenario::parse;

    fn scenario(network: &str, flows: &str) -> Scenario {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n";
        parse("x", &format!("{head}{network}{flows}"), None).unwrap()
    }

    const LINK: &str = "[network.up]\ncapacity = \"2Mbps\"\n";
    const TWO_WAY: &str = "[[flow]]\n[[flow]]\ndirection = \"down\"\n";

    fn config(network: &str, flows: &str) -> CallConfig {
        CallConfig::of(&scenario(network, flows), 1).unwrap()
    }

    fn refusal(network: &str, flows: &str) -> String {
        CallConfig::of(&scenario(network, flows), 1).unwrap_err().to_string()
    }

    fn names(config: &CallConfig) -> Vec<&str> {
        config.participants.iter().map(|participant| participant.name.as_str()).collect()
    }

    #[test]
    fn one_call_has_host_a_and_host_b() {
        let config = config(LINK, "[[flow]]\nmax_bitrate = \"2Mbps\"\n");
        assert_eq!(names(&config), ["a", "b"]);
        assert_eq!(config.network.hosts, [HostPlan::at(0), HostPlan::at(1)]);
        assert_eq!(config.calls[0].video, [Some(Bitrate::from_kbps(2000)), None]);
        assert_eq!((config.calls[0].ends, config.calls[0].audio), ([0, 1], [false, false]));
    }

    #[test]
    fn simulcast_is_for_one_video_up_between_two_chromium() {
        let asked = "[call]\nvideo = { simulcast = 3 }\n";
        assert_eq!(config(LINK, &format!("[[flow]]\n{asked}")).picture.layers, 3);
        for other in [
            format!("{TWO_WAY}{asked}"),
            format!("[[flow]]\n[[flow]]\nkind = \"audio\"\n{asked}"),
            format!("[[flow]]\n{asked}browser = {{ b = \"firefox\" }}\n"),
        ] {
            assert!(refusal(LINK, &other).contains("simulcast is for pairs of Chromium"));
        }
    }

    #[test]
    fn every_call_has_two_hosts_and_every_load_two_of_its_own() {
        let flows = "[[flow]]\n[[flow]]\nstart = \"20s\"\ndelay = \"40ms\"\n\
                     [[flow]]\nkind = \"tcp\"\nstart = \"10s\"\n[[flow]]\nkind = \"audio\"\n";
        let config = config(LINK, flows);
        assert_eq!(names(&config), ["a1", "b1", "a2", "b2"]);
        assert_eq!(config.network.hosts.len(), 6);
        assert_eq!(config.network.hosts[2].access_delay, TimeDelta::from_millis(40));
        assert_eq!(config.calls[1].start, Timestamp::from_secs(20));
        assert_eq!((config.calls[0].audio, config.calls[1].audio), ([true, false], [false; 2]));
        assert_eq!((config.loads[0].hosts, config.loads[0].flow), ([4, 5], 2));
    }

    #[test]
    fn a_call_between_some_hops_has_its_hosts_there() {
        let hops = "[[network.hop]]\nup = { capacity = \"2Mbps\" }\n[[network.hop]]\n";
        let config = config(hops, "[[flow]]\nhops = [2]\n[[flow]]\n");
        let nodes: Vec<usize> = config.network.hosts.iter().map(|host| host.node).collect();
        assert_eq!(nodes, [1, 2, 0, 2]);
    }

    #[test]
    fn a_relay_stands_between_two_hops_after_the_participants() {
        let relay = "[call]\nrelay = \"udp\"\n";
        let hops = "[[network.hop]]\n[[network.hop]]\n";
        let config = config(&format!("{relay}{hops}"), TWO_WAY);
        assert_eq!(config.relay, Some(RelayHost { host: 2, transport: Relay::Udp }));
        assert_eq!(config.network.hosts[2], HostPlan::at(1));
        assert!(refusal(&format!("{relay}{LINK}"), TWO_WAY).contains("between two hops"));
    }

    #[test]
    fn one_calls_many_from_one_host() {
        let call = "[call]\ntopology = \"one-to-many\"\n";
        let config = config(&format!("{call}{LINK}"), "[[flow]]\ncount = 3\n");
        assert_eq!(names(&config), ["a", "b1", "b2", "b3"]);
        let ends: Vec<[usize; 2]> = config.calls.iter().map(|call| call.ends).collect();
        assert_eq!(ends, [[0, 1], [0, 2], [0, 3]]);
    }

    #[test]
    fn in_a_mesh_every_pair_has_a_call_and_the_whole_delay() {
        let call = "[call]\ntopology = \"mesh\"\nbrowser = { b = \"firefox\" }\n\
                    [network]\nup = { delay = \"2ms\" }\ndown = { delay = \"2ms\" }\n";
        let flows = "[[flow]]\ncount = 3\n[[flow]]\ncount = 3\ndirection = \"down\"\n";
        let config = config(call, flows);
        assert_eq!(names(&config), ["p1", "p2", "p3"]);
        let ends: Vec<[usize; 2]> = config.calls.iter().map(|call| call.ends).collect();
        assert_eq!(ends, [[0, 1], [0, 2], [1, 2]]);
        assert!(config.network.hops.is_empty() && config.network.local_traffic);
        assert_eq!(config.network.hosts[2].access_delay, TimeDelta::from_millis(1));
        assert_eq!(config.participants[1].player, Player::Browser(BrowserKind::Firefox));
        assert!(refusal(call, "[[flow]]\ncount = 2\n").contains("2 calls do not form a mesh"));
        let narrow = call.replace("2ms\" }\ndown", "2ms\", capacity = \"1Mbps\" }\ndown");
        assert!(refusal(&narrow, flows).contains("no bottleneck"));
    }

    #[test]
    fn a_forwarding_server_gets_every_video_once_and_sends_it_to_all_others() {
        let call = "[call]\ntopology = \"forwarding-server\"\n";
        let config = config(&format!("{call}{LINK}"), "[[flow]]\ncount = 3\n");
        assert_eq!(names(&config), ["a1", "a2", "a3", "server"]);
        assert_eq!(config.participants[3].player, Player::ForwardingServer);
        assert_eq!(config.network.hosts[3], HostPlan::at(1));
        let roles: Vec<([usize; 2], ForwardingRole)> =
            config.calls.iter().map(|call| (call.ends, call.role)).collect();
        assert_eq!(roles[..3], [0, 1, 2].map(|a| ([a, 3], ForwardingRole::Publish)));
        let sent = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
        assert_eq!(roles[3..], sent.map(|(feed, to)| ([3, to], ForwardingRole::Subscribe(feed))));
        assert!(refusal(&format!("{call}{LINK}"), TWO_WAY).contains("one media flow up"));
    }

    #[test]
    fn a_mixer_has_one_call_both_ways_with_each_participant() {
        let call = "[call]\ntopology = \"mixer\"\n";
        let flows = "[[flow]]\ncount = 3\n[[flow]]\ncount = 3\ndirection = \"down\"\n\
                     max_bitrate = \"1Mbps\"\n";
        let config = config(&format!("{call}{LINK}"), flows);
        assert_eq!(names(&config), ["a1", "a2", "a3", "server"]);
        assert_eq!(config.participants[3].player, Player::Mixer);
        assert_eq!(config.network.hosts[3], HostPlan::at(1));
        let ends: Vec<[usize; 2]> = config.calls.iter().map(|call| call.ends).collect();
        assert_eq!(ends, [[0, 3], [1, 3], [2, 3]]);
        assert!(config.calls.iter().all(|call| call.role == ForwardingRole::Direct));
        assert_eq!(config.calls[0].video[1], Some(Bitrate::from_kbps(1000)));
    }

    #[test]
    fn a_scenario_that_a_mixer_cannot_play_is_refused() {
        let refused = |call: &str, flows: &str| {
            refusal(&format!("[call]\ntopology = \"mixer\"\n{call}{LINK}"), flows)
        };
        assert!(refused("", TWO_WAY).contains("at least two participants"));
        assert!(refused("", "[[flow]]\ncount = 2\n").contains("one media flow up, one down"));
        let two = "[[flow]]\ncount = 2\n[[flow]]\ncount = 2\ndirection = \"down\"\n";
        let audio = format!("{two}[[flow]]\nkind = \"audio\"\n");
        assert!(refused("", &audio).contains("no audio"));
        let h264 = refused("video = { codec = \"h264\" }\n", two);
        assert!(h264.contains("a mixer has no H264: write codec = \"vp8\""), "{h264}");
    }

    #[test]
    fn the_testbeds_of_browsers_can_be_called() {
        for pattern in ["aalto/*", "bari/*", "delft/wired*", "demo/*"] {
            let found = weir_scenario::catalogue::find(pattern).unwrap();
            assert!(!found.is_empty());
            for scenario in found {
                assert_eq!(CallConfig::of(&scenario, 1).err().map(|error| error.to_string()), None);
            }
        }
    }

    #[test]
    fn calls_and_loads_of_a_cell_have_their_hosts_at_its_stations() {
        let cell = "[network]\nkind = \"wifi\"\n[network.station.near]\nrate = 7\n\
                    [network.station.far]\nrate = 0\n[network.up]\ndelay = \"1ms\"\n";
        let flows = "[[flow]]\nstation = \"near\"\n[[flow]]\nkind = \"tcp\"\nstation = \"far\"\n";
        let config = config(cell, flows);
        let stations: Vec<Option<usize>> =
            config.network.hosts.iter().map(|host| Some(host.attachment?.terminal)).collect();
        assert_eq!(stations, [Some(1), None, Some(2), None]);
        assert_eq!(config.network.access.unwrap().config.terminals().len(), 2);
        let apart = "[[flow]]\nstation = \"near\"\n\
                     [[flow]]\nstation = \"far\"\ndirection = \"down\"\n";
        assert!(refusal(cell, apart).contains("are at different stations"));
        let mesh = format!("[call]\ntopology = \"mesh\"\n{cell}");
        assert!(
            refusal(&mesh, "[[flow]]\nstation = \"near\"\n").contains("cannot have a Wi-Fi cell")
        );
    }

    #[test]
    fn a_scenario_that_browsers_or_iperf3_cannot_play_is_refused() {
        for (flows, wanted) in [
            ("[[flow]]\nkind = \"tcp\"\n", "no media flow"),
            (
                "[[flow]]\n[[flow]]\ndirection = \"down\"\nstart = \"1s\"\n",
                "start and stop together",
            ),
            ("[[flow]]\npauses = [[\"1s\", \"2s\"]]\n", "pauses"),
            ("[[flow]]\nsource_limit = \"1Mbps\"\n", "only the simulator"),
            ("[[flow]]\nroute_changes = [\"1s\"]\n", "only the simulator"),
            ("[[flow]]\nreceiver_clock = { skew_ppm = 200 }\n", "only the simulator"),
            ("[[flow]]\nkind = \"audio\"\n", "only audio"),
            (
                "[[flow]]\n[[flow]]\nkind = \"tcp\"\nshort = { size = [\"1KB\", \"2KB\"], \
                 idle = \"1s\" }\n",
                "tcp-1 has short transfers",
            ),
        ] {
            assert!(refusal(LINK, flows).contains(wanted), "{}", refusal(LINK, flows));
        }
    }
}
