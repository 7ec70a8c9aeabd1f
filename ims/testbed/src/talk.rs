//! Calls of a plain user agent with anybody. It sends all media back to where they come from.

use std::net::UdpSocket;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use weir_nodes::agent::{Agent, Event, OnCall};

use crate::args;
use crate::args::SipAccess;
use crate::call::{deregister, registered};
use crate::layout::{Files, terminal_addresses, terminal_namespace};
use crate::user::{MEDIA, User, enter};

/// How long the callee rings.
const RINGING: Duration = Duration::from_millis(200);
/// A sender of video must not wait long for its packets to be read.
const TICK: Duration = Duration::from_millis(1);

/// `weir ims answer`.
pub(crate) fn answer(args: &args::Talk) -> anyhow::Result<ExitCode> {
    talk(args, OnCall::Answer(RINGING), None)
}

/// `weir ims dial`.
pub(crate) fn dial(args: &args::Dial) -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    ensure!(args.talk.user != args.callee, "a user cannot call itself");
    let callee = &files.subscribers.subscriber[files.user(&args.callee)?];
    talk(&args.talk, OnCall::Refuse(486), Some(&callee.public[0]))
}

fn talk(args: &args::Talk, on_call: OnCall, target: Option<&str>) -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    let started = Instant::now();
    let mut user = User::new(&files, &args.user, SipAccess::Udp, on_call, None, started)?;
    let mut echoes = Echoes::open(&files, &args.user)?;
    registered(&mut [&mut user])?;
    println!("{} is registered", args.user);
    if let Some(target) = target {
        user.act(|agent, now| agent.call(now, target))?;
    }
    let mut pages = Vec::new();
    let outcome = conduct(args, &mut user, &mut echoes, &mut pages);
    let left = deregister(&mut [&mut user]);
    for mut page in pages {
        page.wait().context("the command of a link is lost")?;
    }
    outcome?;
    left?;
    for (socket, medium) in echoes.0.iter().zip(MEDIA) {
        println!("{}: {} packets sent back", medium.0, socket.packets);
    }
    Ok(ExitCode::SUCCESS)
}

/// Carries a call to its end. `pages` gets the commands that were started for links.
fn conduct(
    args: &args::Talk,
    user: &mut User,
    echoes: &mut Echoes,
    pages: &mut Vec<Child>,
) -> anyhow::Result<()> {
    let patience = Duration::from_secs(args.patience);
    let (start, mut hang_up_at) = (Instant::now(), None);
    let mut seen = 0;
    loop {
        user.poll()?;
        echoes.pass();
        while let Some(event) = user.events.get(seen) {
            seen += 1;
            match event {
                Event::Established(..) => {
                    let after = args.hang_up_after.map(Duration::from_secs);
                    hang_up_at = after.map(|after| Instant::now() + after);
                    println!("the call stands");
                }
                Event::Message(text) => {
                    println!("message: {text}");
                    pages.extend(opened(args, text)?);
                }
                Event::Ended { by_other_side } => {
                    let who = if *by_other_side { "the other side" } else { &args.user };
                    println!("{who} ended it");
                    return Ok(());
                }
                Event::Failed(code) => bail!("the call failed with status {code}"),
                _ => {}
            }
        }
        if hang_up_at.is_some_and(|at| at <= Instant::now()) {
            user.act(Agent::hang_up)?;
            // The answer to BYE ends the loop.
            hang_up_at = None;
        }
        ensure!(start.elapsed() < patience, "no call has ended within {} s", args.patience);
        std::thread::sleep(TICK);
    }
}

/// Starts the user's command with the link of a message, in the user's terminal.
fn opened(args: &args::Talk, text: &str) -> anyhow::Result<Option<Child>> {
    let Some(command) = &args.open_links_with else { return Ok(None) };
    let Some(link) = text.split_whitespace().find(|word| word.starts_with("https://")) else {
        return Ok(None);
    };
    let mut started = Command::new("ip");
    started.args(["netns", "exec", &terminal_namespace(&args.user)]);
    started.args(command.split_whitespace()).arg(link);
    let child = started.spawn().with_context(|| format!("cannot run {command}"))?;
    Ok(Some(child))
}

/// A socket for each medium of the terminal.
struct Echoes(Vec<Echo>);

struct Echo {
    socket: UdpSocket,
    packets: u64,
}

impl Echoes {
    fn open(files: &Files, user: &str) -> anyhow::Result<Self> {
        let own = terminal_addresses(files.user(user)?).0;
        let all = enter(&terminal_namespace(user), || {
            let mut echoes = Vec::new();
            for (_, port, ..) in MEDIA {
                let socket = UdpSocket::bind((own, port))?;
                socket.set_nonblocking(true)?;
                echoes.push(Echo { socket, packets: 0 });
            }
            std::io::Result::Ok(echoes)
        })?;
        Ok(Self(all.context("cannot open the ports of the media")?))
    }

    /// Sends back what has come.
    fn pass(&mut self) {
        let mut bytes = [0; 2048];
        for echo in &mut self.0 {
            // A full buffer, or a port that is closed by now, loses the packet, as a network may.
            while let Ok((count, from)) = echo.socket.recv_from(&mut bytes) {
                let _ = echo.socket.send_to(&bytes[..count], from);
                echo.packets += 1;
            }
        }
    }
}
