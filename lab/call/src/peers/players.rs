//! The programs of a run's participants: browsers, pipelines, a forwarding server and a
//! mixer.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use weir_emu::{Emulator, User};
use weir_scenario::call::IceRestart;

use crate::error::CallError;
use crate::message::{CallSettings, DrawnCamera, Peer, RelayAccess, STATS_INTERVAL};
use crate::peers::agent::Agent;
use crate::peers::bridge::Bridge;
use crate::peers::browser::{Browser, ChromiumOptions, Devices, Program};
use crate::peers::camera;
use crate::peers::ims::{self, Ims, PageIms};
use crate::peers::janus::Janus;
use crate::peers::pipeline::{self, Gstreamer, PipelineProcess};
use crate::peers::relay::RelayServer;
use crate::plan::{CallConfig, Participant, Player};
use crate::run::server::Session;

/// The running program of a participant. Dropping it kills the program.
#[derive(Debug)]
pub(crate) struct Playing {
    kind: Kind,
    /// Name and version, as the program reports them.
    pub(crate) version: String,
}

#[derive(Debug)]
enum Kind {
    Browser(Browser),
    Pipeline(PipelineProcess),
    Person,
    Server(Janus),
}

/// Everything that takes part in a run: programs, and addresses shown to people.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) playing: Vec<Playing>,
    /// The relay for all media.
    pub(crate) relay: Option<RelayServer>,
    /// One bridge per call if the peers are people.
    pub(crate) bridges: Vec<Bridge>,
    /// Name and address for each participant: the page that this person opens.
    pub(crate) urls: Vec<(String, String)>,
    /// Missing confinement of the browsers, one line each.
    pub(crate) warnings: Vec<String>,
}

impl Playing {
    /// Root process of the program; `None` for a person, whose browser is on another machine.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Browser(browser) => Some(browser.pid()),
            Kind::Pipeline(process) => Some(process.pid()),
            Kind::Person => None,
            Kind::Server(janus) => Some(janus.pid()),
        }
    }

    /// If the program has ended, the last line of its output.
    pub(crate) fn has_ended(&mut self) -> Option<String> {
        match &mut self.kind {
            Kind::Browser(browser) => browser.has_ended().then(|| browser.last_words()),
            Kind::Pipeline(process) => process.has_ended().then(|| process.last_words()),
            // The agents of the server notice when it ends.
            Kind::Person | Kind::Server(_) => None,
        }
    }
}

/// Starts the run's server and then the participants' programs, in order. They write their files to
/// `folder`.
pub(crate) fn open(
    config: &CallConfig,
    emulator: &Emulator,
    folder: &Path,
    devices: Devices<'_>,
) -> Result<Opened, CallError> {
    let addresses = served_addresses(config.serve)?;
    let programs = programs(config, emulator, folder)?;
    let host = |participant: &Participant| emulator.host(participant.host);
    let server = config.participants.iter().find(|one| one.player == Player::ForwardingServer);
    let mut janus =
        server.map(|server| Janus::start(host(server), &folder.join(&server.name))).transpose()?;
    let relay = match (&config.relay, &config.ice) {
        (Some(relay), _) => {
            let only = [relay.server()];
            Some(RelayServer::start(emulator.host(relay.host), &only, folder)?)
        }
        (None, Some(ice)) => {
            Some(RelayServer::start(emulator.host(ice.host), &ice.servers, folder)?)
        }
        (None, None) => None,
    };
    let bridges = bridges(config, emulator)?;
    let access = relay.as_ref().map(|relay| &relay.access);
    let mut agents = janus.as_ref().map_or(Vec::new(), |janus| janus_agents(config, janus));
    let gstreamer = gstreamer(config, emulator, folder)?;
    let (pipelines, pipeline_agents) =
        start_pipelines(config, emulator, folder, devices.camera, gstreamer.as_ref())?;
    agents.extend(pipeline_agents);
    let drawn = drawn(config, emulator, devices.camera)?;
    let session = session(config, emulator, agents, access, &bridges, drawn.as_ref())?;
    let mut opened = Opened {
        session,
        playing: Vec::new(),
        relay,
        bridges,
        urls: Vec::new(),
        warnings: warnings(&programs, gstreamer.as_ref()),
    };
    let mut listener = 0;
    let of_relay = opened.relay.as_ref().and_then(|relay| relay.key_hash.clone());
    let key_hash = config.ims.as_ref().map(|ims| ims.key_hash.clone()).or(of_relay);
    let mut pipelines = pipelines.into_iter();
    for (index, participant) in config.participants.iter().enumerate() {
        let seats = config.seats(index);
        let (kind, version) = match participant.player {
            Player::Browser(kind) => {
                let program = programs.iter().find(|program| program.kind() == kind);
                let program = program.expect("each browser was found above");
                let profile = folder.join(&participant.name);
                let url = opened.session.url(listener, &seats);
                listener += 1;
                let mode = config.chromium;
                let mode = ChromiumOptions { mode, key_hash: key_hash.as_deref(), extra: &[] };
                let browser = program.open(host(participant), &url, &profile, devices, mode)?;
                (Kind::Browser(browser), program.version.clone())
            }
            Player::Pipeline | Player::Mixer => {
                let process = pipelines.next().expect("each pipeline was started above");
                let version = gstreamer.as_ref().map(|found| found.version.clone());
                (Kind::Pipeline(process), version.unwrap_or_default())
            }
            Player::Stack => {
                let process = pipelines.next().expect("each stack was started above");
                let stack = config.stack.as_ref().expect("its player is there");
                (Kind::Pipeline(process), stack.version().map_err(CallError::Stack)?)
            }
            Player::ForwardingServer => {
                let janus = janus.take().expect("a run has one forwarding server");
                let version = janus.version.clone();
                (Kind::Server(janus), version)
            }
            Player::Person => {
                // All people use the single listener of this machine.
                for address in &addresses {
                    let url = opened.session.url_at((*address).into(), 0, &seats);
                    opened.urls.push((participant.name.clone(), url));
                }
                (Kind::Person, "a person's browser".into())
            }
        };
        opened.playing.push(Playing { kind, version });
    }
    Ok(opened)
}

/// The pictures of the camera's file for pages that draw their camera; `None` if no page does.
fn drawn(
    config: &CallConfig,
    emulator: &Emulator,
    camera: Option<&Path>,
) -> Result<Option<Arc<[u8]>>, CallError> {
    let draws = config.calls.iter().any(|call| config.draws(call).contains(&true));
    let Some(camera) = camera.filter(|_| draws) else { return Ok(None) };
    let ffmpeg = emulator.host(0).command_as(User::ordinary(), "ffmpeg");
    let jpegs = camera::jpegs(camera, ffmpeg);
    Ok(Some(jpegs.map_err(CallError::system("make the pictures of a drawn camera"))?.into()))
}

/// Addresses at which people reach this machine.
fn served_addresses(serve: Option<Ipv4Addr>) -> Result<Vec<Ipv4Addr>, CallError> {
    let Some(address) = serve else { return Ok(Vec::new()) };
    let own = weir_emu::own_addresses()
        .map_err(CallError::system("list the addresses of this machine"))?;
    if own.iter().any(|own| own.broadcast == Some(address) && own.address != address) {
        return Err(CallError::Broadcast(address));
    }
    Ok(match address.is_unspecified() {
        true => own.iter().map(|own| own.address).collect(),
        false => vec![address],
    })
}

/// One program for each kind of browser in the run.
fn programs(
    config: &CallConfig,
    emulator: &Emulator,
    folder: &Path,
) -> Result<Vec<Program>, CallError> {
    let mut programs: Vec<Program> = Vec::new();
    for participant in &config.participants {
        if let Player::Browser(kind) = participant.player
            && programs.iter().all(|program| program.kind() != kind)
        {
            programs.push(Program::find(kind, emulator.host(participant.host), folder)?);
        }
    }
    Ok(programs)
}

/// What the record must say about the confinement of the programs.
fn warnings(programs: &[Program], gstreamer: Option<&Gstreamer>) -> Vec<String> {
    let of_browsers = programs.iter().filter_map(Program::warning);
    let of_pipelines = gstreamer.and_then(|found| found.warning.as_ref());
    of_browsers.chain(of_pipelines).cloned().collect()
}

/// GStreamer, if the run has a pipeline.
fn gstreamer(
    config: &CallConfig,
    emulator: &Emulator,
    folder: &Path,
) -> Result<Option<Gstreamer>, CallError> {
    let pipeline = config.participants.iter().find(|one| one.player.is_pipeline());
    let found =
        pipeline.map(|one| Gstreamer::find(emulator.host(one.host), folder, &pipeline::ELEMENTS));
    found.transpose()
}

/// Starts the pipelines and stacks in the order of their participants, and their agents.
fn start_pipelines(
    config: &CallConfig,
    emulator: &Emulator,
    folder: &Path,
    camera: Option<&Path>,
    gstreamer: Option<&Gstreamer>,
) -> Result<(Vec<PipelineProcess>, Vec<Agent>), CallError> {
    let (mut processes, mut agents) = (Vec::new(), Vec::new());
    for (index, participant) in config.participants.iter().enumerate() {
        let (seats, host) = (config.seats(index), emulator.host(participant.host));
        let own = folder.join(&participant.name);
        let (process, pipes) = match (participant.player, &config.stack, gstreamer) {
            (Player::Stack, Some(stack), _) => {
                pipeline::start_stack(stack, host, own, config, index, camera)?
            }
            (Player::Pipeline | Player::Mixer, _, Some(gstreamer)) => {
                pipeline::start(gstreamer, host, &own, config, index, camera)?
            }
            _ => continue,
        };
        processes.push(process);
        agents.push(Agent::Pipeline(pipeline::Agent::new(seats, pipes)));
    }
    Ok((processes, agents))
}

/// The agents of the forwarding server.
fn janus_agents(config: &CallConfig, janus: &Janus) -> Vec<Agent> {
    let roles = config.calls.iter().map(|call| call.role).collect();
    let agents = janus.agents(roles).into_iter();
    agents.map(|(call, agent)| Agent::ForwardingServer(call, agent)).collect()
}

fn bridges(config: &CallConfig, emulator: &Emulator) -> Result<Vec<Bridge>, CallError> {
    let Some(address) = config.serve else { return Ok(Vec::new()) };
    let mut bridges = Vec::new();
    for call in &config.calls {
        let hosts = call.ends.map(|end| emulator.host(config.participants[end].host));
        bridges.push(Bridge::open(address, hosts)?);
    }
    Ok(bridges)
}

/// The server. It listens on the loopback device of each browser's host, in order, or for people at
/// the address given to them.
fn session(
    config: &CallConfig,
    emulator: &Emulator,
    agents: Vec<Agent>,
    relay: Option<&RelayAccess>,
    bridges: &[Bridge],
    drawn: Option<&Arc<[u8]>>,
) -> Result<Session, CallError> {
    let mut listeners = Vec::new();
    if let Some(address) = config.serve {
        let listener = TcpListener::bind((address, 0));
        listeners.push(listener.map_err(CallError::system("listen on that address"))?);
    } else {
        for participant in &config.participants {
            if matches!(participant.player, Player::Browser(_)) {
                let host = emulator.host(participant.host);
                listeners.push(host.bind_tcp((Ipv4Addr::LOCALHOST, 0))?);
            }
        }
    }
    let mut pages = Vec::new();
    if let Some(ims) = &config.ims {
        for call in 0..config.calls.len() {
            pages.push(forward(ims, call, config, emulator)?);
        }
    }
    let mut settings = Vec::new();
    for (index, call) in config.calls.iter().enumerate() {
        settings.push(CallSettings {
            picture: config.picture,
            video: call.video,
            audio: call.audio,
            opus: config.opus,
            offerer: call.pipeline.as_ref().map_or(Peer::A, |sender| sender.peer),
            relay: relay.cloned(),
            relay_only: config.relay.is_some(),
            restarts: config.ice_restart != IceRestart::Never,
            restarts_itself: config.ice_restart == IceRestart::WhenDisconnected,
            bridge: bridges.get(index).map(|bridge| bridge.addresses),
            ims: pages.get(index).cloned(),
            quality: config.quality,
            drawn: drawn.cloned().map(|jpegs| DrawnCamera { by: config.draws(call), jpegs }),
            stats_interval: STATS_INTERVAL,
        });
    }
    let session = Session::with_agents(listeners, settings, agents);
    session.map_err(CallError::system("start the server"))
}

/// The ways of both browsers of a call to the IMS, and what their pages are told.
fn forward(
    ims: &Ims,
    call: usize,
    config: &CallConfig,
    emulator: &Emulator,
) -> Result<Box<[PageIms; 2]>, CallError> {
    let mut addresses = Vec::new();
    for (end, user) in config.calls[call].ends.into_iter().zip(&ims.users[call]) {
        let host = emulator.host(config.participants[end].host);
        let listener = host.bind_tcp((Ipv4Addr::LOCALHOST, 0))?;
        addresses.push(listener.local_addr().map_err(CallError::system("listen for SIP"))?);
        ims::forward(listener, &user.namespace, ims.proxy)
            .map_err(CallError::system("open the way to the IMS"))?;
    }
    Ok(ims.pages(call, [addresses[0], addresses[1]]))
}
