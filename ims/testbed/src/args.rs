use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// Arguments of `weir ims`.
#[derive(ClapArgs)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the IMS: HSS, PCRF, media gateway and CSCFs, in network namespaces.
    Up(Up),
    /// Stop the IMS and remove its namespaces.
    Down,
    /// Restart one part, or stop it, to see what becomes of calls.
    Restart(Restart),
    /// Register a user and end the registration.
    Register(Register),
    /// Make a call between two users, and leave a record of its messages.
    Call(Call),
    /// Wait for a call as a plain user agent, and send all media back to where they come from.
    Answer(Talk),
    /// Call an identity that somebody else answers, and send all media back to where they come
    /// from.
    Dial(Dial),
    /// Write what has passed since the IMS was started, with the messages of browsers and web
    /// servers, as a record.
    Record(Record),
    /// Hold a recorded call against the standards. Exit code: 0 all rules hold, 1 at least one is
    /// broken, 2 could not check.
    Check(Check),
    /// Take the bearers of all calls away, as a network does that loses them (ASR).
    Abort,
    /// Run one of our own parts, or the capture of SIP, in the foreground; `up` does this.
    #[command(hide = true)]
    Serve(Serve),
}

#[derive(ClapArgs)]
pub(crate) struct Up {
    /// File of subscribers (default: four users and a visitor of the domain ims.test).
    #[arg(long, value_name = "FILE")]
    pub(crate) subscribers: Option<PathBuf>,
    /// File of the operator's policy (default: audio with QCI 1, video with QCI 2).
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Folder with the web servers of web authentication, after `npm ci`: ims/configurations/web.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) web: Option<PathBuf>,
    /// How long a token of web authentication lives, in s.
    #[arg(long, value_name = "SECONDS", default_value = "3600", requires = "web")]
    pub(crate) token_seconds: u32,
    /// The video of the facilitator's calls asks for a bearer of its own over Rx.
    #[arg(long, requires = "web")]
    pub(crate) facilitator_bearer: bool,
    /// Media between browsers go through the gateway, as lawful interception needs it.
    #[arg(long)]
    pub(crate) intercept: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Talk {
    /// User, such as bob.
    pub(crate) user: String,
    /// Hang up after this time; without it the other side does. In s.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) hang_up_after: Option<u64>,
    /// End after this time without a call or its end. In s.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub(crate) patience: u64,
    /// Run this command in the user's terminal with each link that a message brings, and wait for
    /// its end.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) open_links_with: Option<String>,
}

#[derive(ClapArgs)]
pub(crate) struct Dial {
    #[command(flatten)]
    pub(crate) talk: Talk,
    /// User that is called, such as alice.
    pub(crate) callee: String,
}

#[derive(ClapArgs)]
pub(crate) struct Restart {
    /// Part: pcscf, epcscf, icscf, scscf, hss, pcrf, af, as, agw, eagw, waf, wwsf or facilitator.
    pub(crate) part: String,
    /// Do not start it again.
    #[arg(long)]
    pub(crate) stop: bool,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum SipAccess {
    /// Through the P-CSCF, by datagrams.
    Udp,
    /// Through the eP-CSCF, by a WebSocket.
    Ws,
}

#[derive(ClapArgs)]
pub(crate) struct Register {
    /// User, such as alice.
    pub(crate) user: String,
    /// Transport of SIP to the network.
    #[arg(long, value_enum, default_value = "udp")]
    pub(crate) via: SipAccess,
    /// Register and end the registration so many times, one after the other.
    #[arg(long, value_name = "NUMBER", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) times: u32,
    /// Seconds for which it registers.
    #[arg(long, value_name = "SECONDS", default_value = "600",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) expires: u32,
    /// Subscribe to the state of the registration, and print each change for so many seconds before
    /// it ends.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) watch: Option<u64>,
    /// Another password than that of the file of subscribers.
    #[arg(long, value_name = "TEXT")]
    pub(crate) password: Option<String>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The caller hangs up.
    Caller,
    /// The callee hangs up.
    Callee,
    /// The callee refuses the call.
    Refused,
    /// The caller gives up while it rings.
    Cancelled,
    /// The network takes the bearers away (ASR).
    Aborted,
}

#[derive(ClapArgs)]
pub(crate) struct Call {
    /// User that calls, such as alice.
    pub(crate) caller: String,
    /// User that is called, such as bob.
    pub(crate) callee: String,
    /// Transport of the caller's SIP.
    #[arg(long, value_enum, default_value = "udp")]
    pub(crate) via: SipAccess,
    /// Transport of the callee's SIP.
    #[arg(long, value_enum, default_value = "udp")]
    pub(crate) callee_via: SipAccess,
    /// Identity that is called: another one of the callee's registration set (default: its first
    /// one).
    #[arg(long, value_name = "URI")]
    pub(crate) to: Option<String>,
    /// How the call ends.
    #[arg(long, value_enum, default_value = "caller")]
    pub(crate) end: Ending,
    /// Restart this part while the call stands: hss, pcrf, icscf, scscf or pcscf.
    #[arg(long, value_name = "PART")]
    pub(crate) restart: Option<String>,
    /// Hold the callee by an UPDATE while the call stands, after the restart of a part.
    #[arg(long)]
    pub(crate) hold: bool,
    /// Folder for the record: messages and times. It must not exist.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Server {
    Hss,
    Pcrf,
    Af,
    As,
    Capture,
}

#[derive(ClapArgs)]
pub(crate) struct Serve {
    #[arg(value_enum)]
    pub(crate) server: Server,
}

#[derive(ClapArgs)]
pub(crate) struct Record {
    /// Folder for the record. It must not exist.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct Check {
    /// Folder that `weir ims call --out` or `weir ims record` has written.
    pub(crate) record: PathBuf,
    /// Write the results as a JUnit file too.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}
