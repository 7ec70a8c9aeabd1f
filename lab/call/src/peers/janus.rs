//! A forwarding server: Debian's Janus with its video room, and the agents that represent it in
//! calls.
//!
//! Each participant sends to the server in one call, and receives the video of each other
//! participant in another. For the pages these are normal calls. In each call, an agent takes the
//! server's seat and translates between the lab's messages and those of Janus, one datagram per
//! message.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::UnixDatagram;
use tokio::sync::{mpsc, watch};
use weir_emu::{Child, Host, Limits, User};

use crate::error::CallError;
use crate::message::{Candidate, LabMessage, Peer, PeerMessage, SetupTimes, end_of, printable};
use crate::run::signalling::{Call, Violation};

/// The video room created by the configuration.
const ROOM: u64 = 1;
/// Maximum size of a Janus message. A session description has about 10 KiB.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;
const WRITTEN_BY_ALL: u32 = 0o666;
/// Time limit for an answer of Janus.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for its start. It creates keys and certificates, which is slow on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Number of attempts to start Janus. Janus 1.1 sometimes exits at its start with "no Janus API
/// transport is available": the thread of its socket may check for the transport before the
/// transport is ready.
const STARTS: u32 = 5;
/// Polling interval while Janus starts.
const RETRY: Duration = Duration::from_millis(50);

/// A running Janus. Dropping it kills Janus.
#[derive(Debug)]
pub(crate) struct Janus {
    pid: u32,
    _child: Child,
    folder: PathBuf,
    /// Version, as the program reports it.
    pub(crate) version: String,
}

impl Janus {
    /// Starts Janus on a host. `folder` is the name of a new folder.
    pub(crate) fn start(host: &Host, folder: &Path) -> Result<Self, CallError> {
        let version = version(host)?;
        let failed = CallError::system;
        let user = User::ordinary();
        user.make_folder(folder).map_err(failed("make the server's folder"))?;
        configure(folder).map_err(failed("write the server's configuration"))?;
        let mut starts = 1;
        let mut child = loop {
            let mut child = spawn(host, user, folder)?;
            match wait_for_socket(&mut child, folder).map_err(failed("start janus"))? {
                None => break child,
                Some(_) if starts < STARTS => starts += 1,
                Some(why) => return Err(failed("start janus")(io::Error::other(why))),
            }
        };
        Ok(Self { pid: child.inner().id(), _child: child, folder: folder.into(), version })
    }

    /// Root process of Janus.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The agents, by the index of their call.
    pub(crate) fn agents(&self, roles: Vec<ForwardingRole>) -> Vec<(usize, Agent)> {
        let (up, _) = watch::channel(Vec::new());
        let up = Arc::new(up);
        let mut agents = Vec::new();
        for (call, role) in roles.into_iter().enumerate() {
            if role != ForwardingRole::Direct {
                let (folder, up) = (self.folder.clone(), Arc::clone(&up));
                agents.push((call, Agent { call, role, folder, up }));
            }
        }
        agents
    }
}

fn spawn(host: &Host, user: User, folder: &Path) -> Result<Child, CallError> {
    let log = fs::File::create(folder.join("log"));
    let log = log.map_err(CallError::system("make the server's log"))?;
    let mut command = host.command_as(user, "janus");
    command.current_dir(folder).env("HOME", folder).arg("--configs-folder").arg(folder);
    // Janus logs to standard output or to standard error.
    let copy = log.try_clone().map_err(CallError::system("make the server's log"))?;
    command.stdin(Stdio::null()).stdout(copy).stderr(log);
    Ok(Child::spawn(&mut command)?)
}

/// Waits until Janus listens. Returns its output if it has ended instead.
fn wait_for_socket(child: &mut Child, folder: &Path) -> io::Result<Option<String>> {
    let give_up = Instant::now() + START_PATIENCE;
    while !socket(folder).exists() {
        if let Some(status) = child.inner().try_wait()? {
            let log = end_of(&folder.join("log"));
            let log = String::from_utf8_lossy(&log);
            let fatal = log.lines().rfind(|line| line.contains("FATAL")).unwrap_or_default();
            return Ok(Some(printable(&format!("it ended ({status}): {fatal}"))));
        }
        if Instant::now() > give_up {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not create its socket"));
        }
        std::thread::sleep(RETRY);
    }
    Ok(None)
}

/// Path of the socket on which Janus listens.
fn socket(folder: &Path) -> PathBuf {
    folder.join("janus.sock")
}

/// Version of Janus on this machine; an error if there is none.
fn version(host: &Host) -> Result<String, CallError> {
    let output = weir_emu::output(host.command("janus").arg("--help"), Limits::SHORT);
    let output = output.map_err(|_| CallError::NoJanus)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("Janus version:"));
    Ok(printable(&format!("Janus {}", version.unwrap_or_default().trim())))
}

/// Configures only the video room, with a Unix socket for control and media on the emulated
/// interface.
fn configure(folder: &Path) -> io::Result<()> {
    let library = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path().join("janus"));
    let library = library.chain([PathBuf::from("/usr/lib/janus")]).find(|path| path.is_dir());
    let library = library
        .ok_or(io::Error::new(io::ErrorKind::NotFound, "the plugins of janus are not installed"))?;
    for (kind, name) in [("plugins", "libjanus_videoroom.so"), ("transports", "libjanus_pfunix.so")]
    {
        fs::create_dir(folder.join(kind))?;
        symlink(library.join(kind).join(name), folder.join(kind).join(name))?;
    }
    let place = folder.display();
    let general = format!(
        "general: {{ plugins_folder = \"{place}/plugins\" \
         transports_folder = \"{place}/transports\" session_timeout = 0 }}\n\
         nat: {{ ice_enforce_list = \"weir0\" ignore_mdns = true }}\nmedia: {{ ipv6 = false }}\n"
    );
    fs::write(folder.join("janus.jcfg"), general)?;
    let transport = format!(
        "general: {{ enabled = true json = \"compact\" path = \"{}\" type = \"SOCK_DGRAM\" }}\n",
        socket(folder).display()
    );
    fs::write(folder.join("janus.transport.pfunix.jcfg"), transport)?;
    let room = "videocodec = \"vp8,vp9,h264,av1\" publishers = 100 fir_freq = 0";
    fs::write(
        folder.join("janus.plugin.videoroom.jcfg"),
        format!("general: {{ }}\nroom-{ROOM}: {{ description = \"weir\" {room} }}\n"),
    )
}

/// The role of a call for a forwarding server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingRole {
    /// A call between two browsers, without the server.
    Direct,
    /// Peer a sends to the server.
    Publish,
    /// The server sends to peer b the media that it receives in the call with this index.
    Subscribe(usize),
}

/// Represents the server in one call.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    call: usize,
    role: ForwardingRole,
    folder: PathBuf,
    /// Indices of the calls in which the server receives media.
    up: Arc<watch::Sender<Vec<usize>>>,
}

impl Agent {
    /// The seat of the server in this call.
    fn peer(&self) -> Peer {
        if self.role == ForwardingRole::Publish { Peer::B } else { Peer::A }
    }

    /// Acts for the server until the call ends.
    pub(crate) async fn run(self, call: &Call) {
        let peer = self.peer();
        let messages = match call.join(peer, None) {
            Ok(messages) => messages,
            Err(cause) => return call.fail(peer, cause).await,
        };
        if let Err(cause) = self.play(call, messages).await {
            call.fail(peer, format!("the forwarding server: {}", printable(&cause))).await;
        }
        call.leave(peer).await;
    }

    async fn play(
        &self,
        call: &Call,
        mut messages: mpsc::Receiver<LabMessage>,
    ) -> Result<(), Violation> {
        let peer = self.peer();
        let joined = Instant::now();
        let ms = || joined.elapsed().as_secs_f64() * 1e3;
        let mut setup = SetupTimes::default();
        let mut line = Line::open(&self.folder, self.call).await?;
        match self.role {
            ForwardingRole::Subscribe(feed) => {
                let mut up = self.up.subscribe();
                let is_up = up.wait_for(|up| up.contains(&feed)).await.is_ok();
                if !is_up {
                    return Err("the publisher is gone".into());
                }
            }
            _ => {
                let id = self.call + 1;
                line.ask(
                    json!({"request": "join", "ptype": "publisher", "room": ROOM, "id": id}),
                    None,
                )
                .await?;
            }
        }
        call.on_message(peer, PeerMessage::Ready)?;
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    None | Some(LabMessage::Stop) => return Ok(()),
                    Some(LabMessage::Start) => setup.start = ms(),
                    Some(LabMessage::Candidate { candidate }) => line.trickle(&candidate).await?,
                    Some(LabMessage::Offer { sdp }) => {
                        let jsep = json!({"type": "offer", "sdp": sdp});
                        line.ask(json!({"request": "publish"}), Some(jsep)).await?;
                    }
                    Some(LabMessage::Answer { sdp }) => {
                        let jsep = json!({"type": "answer", "sdp": sdp});
                        line.ask(json!({"request": "start"}), Some(jsep)).await?;
                        setup.described = ms();
                    }
                    // Scenarios with a server restart nothing.
                    Some(LabMessage::Config(_) | LabMessage::Restart) => {}
                    Some(LabMessage::Refused { cause }) => return Err(cause),
                },
                event = line.receive() => match on_event(&event?)? {
                    JanusEvent::Nothing => {}
                    JanusEvent::Answer(sdp) => {
                        setup.described = ms();
                        call.on_message(peer, PeerMessage::Answer { sdp })?;
                    }
                    JanusEvent::Offer(sdp) => call.on_message(peer, PeerMessage::Offer { sdp })?,
                    JanusEvent::Up => {
                        setup.connected = ms();
                        self.up.send_modify(|up| up.push(self.call));
                        call.on_message(peer, PeerMessage::Connected { setup })?;
                    }
                }
            }
            if let ForwardingRole::Subscribe(feed) = self.role
                && setup.start > 0.0
                && !line.has_asked
            {
                let feed = feed + 1;
                let streams = json!([{ "feed": feed }]);
                let join = json!({
                    "request": "join", "ptype": "subscriber", "room": ROOM, "streams": streams,
                });
                line.ask(join, None).await?;
            }
        }
    }
}

/// Meaning of a Janus event for a call.
#[derive(Debug, PartialEq, Eq)]
enum JanusEvent {
    Nothing,
    Offer(String),
    Answer(String),
    /// Media can flow.
    Up,
}

fn on_event(event: &Value) -> Result<JanusEvent, Violation> {
    let data = &event["plugindata"]["data"];
    if let Some(cause) = data["error"].as_str().or(event["error"]["reason"].as_str()) {
        return Err(cause.to_owned());
    }
    if event["janus"] == "webrtcup" {
        return Ok(JanusEvent::Up);
    }
    let sdp = event["jsep"]["sdp"].as_str().unwrap_or_default().to_owned();
    Ok(match event["jsep"]["type"].as_str() {
        Some("offer") => JanusEvent::Offer(sdp),
        Some("answer") => JanusEvent::Answer(sdp),
        _ => JanusEvent::Nothing,
    })
}

/// A Janus session with one handle of the video room.
struct Line {
    socket: UnixDatagram,
    session: u64,
    handle: u64,
    /// Whether a request was sent to the video room.
    has_asked: bool,
}

impl Line {
    async fn open(folder: &Path, call: usize) -> Result<Self, Violation> {
        let failed = |error: io::Error| error.to_string();
        let path = folder.join(format!("agent-{call}.sock"));
        let bound = UnixDatagram::bind(&path).map_err(failed)?;
        // Janus may run as another user. Only that user and the lab can enter the folder.
        let writable = fs::Permissions::from_mode(WRITTEN_BY_ALL);
        fs::set_permissions(&path, writable).map_err(failed)?;
        bound.connect(socket(folder)).map_err(failed)?;
        let mut line = Self { socket: bound, session: 0, handle: 0, has_asked: false };
        line.session = line.create(json!({"janus": "create"})).await?;
        let attach = json!({"janus": "attach", "plugin": "janus.plugin.videoroom"});
        line.handle = line.create(attach).await?;
        Ok(line)
    }

    /// Requests a new object and waits for its id.
    async fn create(&mut self, request: Value) -> Result<u64, Violation> {
        self.send(request).await?;
        let answer = tokio::time::timeout(PATIENCE, self.receive()).await;
        let answer = answer.map_err(|_| "it does not answer".to_owned())??;
        answer["data"]["id"].as_u64().ok_or_else(|| format!("it answers {answer}"))
    }

    async fn ask(&mut self, body: Value, jsep: Option<Value>) -> Result<(), Violation> {
        self.has_asked = true;
        let mut message = json!({"janus": "message", "body": body});
        if let Some(jsep) = jsep {
            message["jsep"] = jsep;
        }
        self.send(message).await
    }

    async fn trickle(&mut self, candidate: &Candidate) -> Result<(), Violation> {
        self.send(json!({"janus": "trickle", "candidate": candidate})).await
    }

    async fn send(&mut self, mut message: Value) -> Result<(), Violation> {
        message["transaction"] = json!("weir");
        if self.session > 0 {
            message["session_id"] = json!(self.session);
        }
        if self.handle > 0 {
            message["handle_id"] = json!(self.handle);
        }
        let sent = self.socket.send(message.to_string().as_bytes()).await;
        sent.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn receive(&self) -> Result<Value, Violation> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let length = self.socket.recv(&mut buffer).await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&buffer[..length]).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_janus_are_offers_answers_and_media_that_flows() {
        let offer = json!({"janus": "event", "jsep": {"type": "offer", "sdp": "v=0"}});
        assert_eq!(on_event(&offer), Ok(JanusEvent::Offer("v=0".into())));
        let answer = json!({"janus": "event", "jsep": {"type": "answer", "sdp": "v=0"}});
        assert_eq!(on_event(&answer), Ok(JanusEvent::Answer("v=0".into())));
        assert_eq!(on_event(&json!({"janus": "webrtcup"})), Ok(JanusEvent::Up));
        assert_eq!(on_event(&json!({"janus": "ack"})), Ok(JanusEvent::Nothing));
    }

    #[test]
    fn an_error_of_janus_is_the_cause() {
        let plugin =
            json!({"plugindata": {"data": {"videoroom": "event", "error": "No such room"}}});
        assert_eq!(on_event(&plugin), Err("No such room".into()));
        let core = json!({"janus": "error", "error": {"code": 458, "reason": "No such session"}});
        assert_eq!(on_event(&core), Err("No such session".into()));
    }
}
