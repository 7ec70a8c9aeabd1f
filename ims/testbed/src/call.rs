//! Registrations and calls of plain user agents through the running IMS.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use weir_nodes::agent::{Agent, Binding, Event, OnCall};

use crate::args::{self, Ending, SipAccess};
use crate::capture;
use crate::layout::{self, Files};
use crate::serve::send_abort;
use crate::trace::{self, Noted};
use crate::up;
use crate::user::User;

/// Seconds of a registration.
const EXPIRES: u32 = 600;
/// A step of a call that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the callee rings.
const RINGING: Duration = Duration::from_millis(200);
/// How long a call stands.
const STANDING: Duration = Duration::from_secs(1);
/// Time before a second attempt to register.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the last notification may take.
const NOTIFIED: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(1);

/// `weir ims register`.
pub(crate) fn register(args: &args::Register) -> anyhow::Result<ExitCode> {
    let files = Files::of_running()?;
    let started = Instant::now();
    let password = args.password.as_deref();
    let mut user = User::new(&files, &args.user, args.via, OnCall::Ring, password, started)?;
    let users = &mut [&mut user];
    let mut repeated = 0;
    for turn in 0..args.times {
        let took = match registered_for(users, args.expires) {
            // [TS 24.229 §5.1.1.2.1] A server that fails may be asked again.
            Err(_) if args.times > 1 && failed_at_server(users[0]) => {
                repeated += 1;
                users[0].events.clear();
                thread::sleep(AGAIN);
                registered_for(users, args.expires)?
            }
            took => took?,
        };
        if turn == 0 {
            println!("{} is registered after {:.1} ms", args.user, ms(took));
            println!("identities: {}", identities(users[0]));
        }
        match args.watch {
            Some(seconds) => watch(users[0], Duration::from_secs(seconds))?,
            None => deregister(users)?,
        }
        // The next turn looks for events of its own.
        users[0].events.clear();
    }
    if args.times > 1 {
        let seconds = started.elapsed().as_secs_f64();
        let rate = f64::from(args.times) * 60.0 / seconds;
        println!("{} registrations in {seconds:.1} s: {rate:.0} a minute", args.times);
        println!("{repeated} of them at the second attempt");
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a server of the network has failed (5xx).
fn failed_at_server(user: &User) -> bool {
    user.has(|event| matches!(event, Event::NotRegistered(why) if why.starts_with("status 5")))
}

/// The identities that the network says are registered.
fn identities(user: &User) -> String {
    let of = user.events.iter().find_map(|event| match event {
        Event::Registered(identities) => Some(identities.join(", ")),
        _ => None,
    });
    of.unwrap_or_default()
}

/// Prints what the registrar tells of the registration for some time, and of its end, which it asks
/// for if the registration has not expired by then.
fn watch(user: &mut User, time: Duration) -> anyhow::Result<()> {
    let (start, mut seen) = (Instant::now(), user.events.len());
    let mut is_ending = false;
    user.act(Agent::watch)?;
    loop {
        poll(&mut [user])?;
        while let Some(event) = user.events.get(seen) {
            seen += 1;
            match event {
                Event::Registrations(bindings) => {
                    let since = start.elapsed().as_secs_f64();
                    for Binding { identity, state, event } in bindings {
                        println!("after {since:.1} s: {identity} {state} {event}");
                    }
                    if bindings.first().is_some_and(|first| first.state == "terminated") {
                        return Ok(());
                    }
                }
                Event::NotWatched(code) => bail!("no notifications: status {code}"),
                Event::NotRegistered(why) => bail!("the registration cannot be ended: {why}"),
                _ => {}
            }
        }
        if start.elapsed() > time && !is_ending {
            is_ending = true;
            user.act(|agent, now| agent.register(now, 0))?;
        }
        let patience = time + NOTIFIED;
        ensure!(start.elapsed() < patience, "no notification of the end of the registration");
    }
}

/// `weir ims call`.
pub(crate) fn call(args: &args::Call) -> anyhow::Result<ExitCode> {
    ensure!(args.caller != args.callee, "a user cannot call itself");
    let files = Files::of_running()?;
    if let Some(out) = &args.out {
        ensure!(!out.exists(), "{} exists already", out.display());
    }
    let start_ns = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let started = Instant::now();
    let on_call = match args.end {
        Ending::Refused => OnCall::Refuse(BUSY),
        Ending::Cancelled => OnCall::Ring,
        _ => OnCall::Answer(RINGING),
    };
    let mut caller = User::new(&files, &args.caller, args.via, OnCall::Ring, None, started)?;
    let mut callee = User::new(&files, &args.callee, args.callee_via, on_call, None, started)?;
    registered(&mut [&mut caller, &mut callee])?;
    let first = &files.subscribers.subscriber[files.user(&args.callee)?].public[0];
    let target = args.to.as_ref().unwrap_or(first).clone();
    let mut outcome = conduct(&mut caller, &mut callee, &target, args);
    if args.restart.is_some() && outcome.is_ok() {
        // Kamailio's CSCFs keep registrations in memory: who wants to end one that is lost renews
        // it first.
        for user in [&mut caller, &mut callee] {
            user.events.clear();
        }
        outcome = registered(&mut [&mut caller, &mut callee]).map(|_| ());
    }
    let left = deregister(&mut [&mut caller, &mut callee]);
    let start_ns = u64::try_from(start_ns).unwrap_or(0);
    let own = [caller.messages.clone(), callee.messages.clone()].concat();
    let messages = with_network(own, start_ns);
    let phases = phases(&caller.messages);
    if let Some(out) = &args.out {
        write(out, [&args.caller, &args.callee], &messages, &phases)?;
        eprintln!("weir: recorded in {}", out.display());
    }
    outcome?;
    left?;
    for (name, value) in &phases {
        println!("{name}: {value:.1} ms");
    }
    Ok(ExitCode::SUCCESS)
}

/// Busy Here.
const BUSY: u16 = 486;
/// Request Terminated.
const TERMINATED: u16 = 487;

fn conduct(
    caller: &mut User,
    callee: &mut User,
    target: &str,
    args: &args::Call,
) -> anyhow::Result<()> {
    let end = args.end;
    caller.act(|agent, now| agent.call(now, target))?;
    match end {
        Ending::Refused => {
            until(&mut [caller, callee], "the refusal", |users| users[0].has(is_failed))?;
            return expect_failure(caller, BUSY);
        }
        Ending::Cancelled => {
            until(&mut [caller, callee], "ringing", |users| users[0].has(is_ringing))?;
            caller.act(Agent::hang_up)?;
            until(&mut [caller, callee], "the end", |users| users[0].has(is_failed))?;
            return expect_failure(caller, TERMINATED);
        }
        _ => {}
    }
    until(&mut [caller, callee], "an answer", |users| {
        users[0].events.last().is_some_and(is_failed) || all_have(users, is_established)
    })?;
    if let Some(Event::Failed(code)) = caller.events.last() {
        let code = *code;
        hear_of_the_end(caller, callee)?;
        bail!("the call failed with status {code}");
    }
    if let Some(part) = &args.restart {
        restart(part, [(&mut *caller, args.via), (&mut *callee, args.callee_via)])?;
    }
    if args.hold {
        caller.act(|agent, now| agent.hold(now, true))?;
        until_all(&mut [caller, callee], "hold on both sides", is_held)?;
    }
    let start = Instant::now();
    while start.elapsed() < STANDING {
        poll(&mut [caller, callee])?;
    }
    match end {
        Ending::Callee => callee.act(Agent::hang_up)?,
        Ending::Aborted => {
            let sessions = send_abort()?;
            ensure!(sessions > 0, "the PCRF knows no session of this call");
        }
        _ => caller.act(Agent::hang_up)?,
    }
    until_all(&mut [caller, callee], "the end of the call", is_ended)
}

fn is_held(event: &Event) -> bool {
    *event == Event::Held(true)
}

fn is_ended(event: &Event) -> bool {
    matches!(event, Event::Ended { .. })
}

fn is_registered(event: &Event) -> bool {
    matches!(event, Event::Registered(_))
}

fn is_answered(event: &Event) -> bool {
    matches!(event, Event::Registered(_) | Event::NotRegistered(_))
}

fn is_deregistered(event: &Event) -> bool {
    matches!(event, Event::Deregistered | Event::NotRegistered(_))
}

fn is_failed(event: &Event) -> bool {
    matches!(event, Event::Failed(_))
}

fn is_ringing(event: &Event) -> bool {
    *event == Event::Ringing
}

fn is_established(event: &Event) -> bool {
    matches!(event, Event::Established(..))
}

fn all_have(users: &[&mut User], is_it: fn(&Event) -> bool) -> bool {
    users.iter().all(|user| user.has(is_it))
}

/// Waits until the callee knows that the call is over. The caller knows it a little earlier.
fn hear_of_the_end(caller: &mut User, callee: &mut User) -> anyhow::Result<()> {
    let start = Instant::now();
    while callee.has(|event| matches!(event, Event::Incoming(_)))
        && !callee.has(|event| matches!(event, Event::Ended { .. } | Event::Failed(_)))
        && start.elapsed() < STANDING
    {
        poll(&mut [caller, callee])?;
    }
    Ok(())
}

/// Restarts a part. Terminals whose WebSocket it closes register again over a new one.
fn restart(part: &str, users: [(&mut User, SipAccess); 2]) -> anyhow::Result<()> {
    let mut closed: Vec<&mut User> =
        users.into_iter().filter(|(_, way)| *way == SipAccess::Ws).map(|(user, _)| user).collect();
    for user in &mut closed {
        user.forget_registration();
    }
    up::restart(&args::Restart { part: part.to_owned(), stop: false })?;
    if part != "epcscf" || closed.is_empty() {
        return Ok(());
    }
    until_all(&mut closed, "a registration after the restart", is_registered)
}

fn expect_failure(caller: &User, expected: u16) -> anyhow::Result<()> {
    let failed = caller.events.iter().find_map(|event| match event {
        Event::Failed(code) => Some(*code),
        _ => None,
    });
    ensure!(failed == Some(expected), "the call ended with {failed:?} and not with {expected}");
    Ok(())
}

/// Registers all users. Returns how long it took.
pub(crate) fn registered(users: &mut [&mut User]) -> anyhow::Result<Duration> {
    registered_for(users, EXPIRES)
}

fn registered_for(users: &mut [&mut User], expires: u32) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for user in &mut *users {
        user.act(|agent, now| agent.register(now, expires))?;
    }
    until_all(users, "a registration", is_answered)?;
    for user in users {
        if let Some(Event::NotRegistered(why)) = user.events.last() {
            bail!("{} is not registered: {why}", user.name);
        }
    }
    Ok(start.elapsed())
}

pub(crate) fn deregister(users: &mut [&mut User]) -> anyhow::Result<()> {
    for user in &mut *users {
        user.act(|agent, now| agent.register(now, 0))?;
    }
    until_all(users, "the end of a registration", is_deregistered)?;
    for user in users {
        if let Some(Event::NotRegistered(why)) = user.events.last() {
            bail!("{} cannot end its registration: {why}", user.name);
        }
    }
    Ok(())
}

fn poll(users: &mut [&mut User]) -> anyhow::Result<()> {
    for user in users {
        user.poll()?;
    }
    thread::sleep(TICK);
    Ok(())
}

/// Runs the agents until all of them have such an event.
fn until_all(users: &mut [&mut User], what: &str, is_it: fn(&Event) -> bool) -> anyhow::Result<()> {
    until(users, what, |users| all_have(users, is_it))
}

/// Runs the agents until something has happened.
pub(crate) fn until(
    users: &mut [&mut User],
    what: &str,
    has_happened: impl Fn(&[&mut User]) -> bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        poll(users)?;
        if has_happened(users) {
            return Ok(());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "no {} within {} s; see {}/*.log",
            what.trim_start_matches("the ").trim_start_matches("a "),
            PATIENCE.as_secs(),
            layout::folder().display()
        );
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Times of the caller's phases, in ms.
pub(crate) fn phases(caller: &[Noted]) -> Vec<(&'static str, f64)> {
    const PHASES: [(&str, &str, &str); 8] = [
        ("log-in to REGISTER", "POST /login", "REGISTER"),
        ("registration", "REGISTER", "200 REGISTER"),
        ("INVITE to 183", "INVITE", "183 INVITE"),
        ("183 to resources on both sides", "183 INVITE", "200 UPDATE"),
        ("INVITE to 180", "INVITE", "180 INVITE"),
        ("INVITE to 200", "INVITE", "200 INVITE"),
        ("INVITE to the first picture", "INVITE", "first picture"),
        ("REGISTER to the first picture", "REGISTER", "first picture"),
    ];
    let mut phases = Vec::new();
    for (phase, from, to) in PHASES {
        let [from, to] = [from, to].map(|name| caller.iter().find(|one| one.name == name));
        if let (Some(from), Some(to)) = (from, to) {
            phases.push((phase, to.time_ns.saturating_sub(from.time_ns) as f64 / 1e6));
        }
    }
    phases
}

/// The messages of the terminals, with those of the network since then, in the order of time.
pub(crate) fn with_network(mut all: Vec<Noted>, start_ns: u64) -> Vec<Noted> {
    if let Err(error) = capture::settled() {
        eprintln!("weir: the record may lack SIP between the parts: {error:#}");
    }
    for name in [
        capture::FILE,
        "hss.jsonl",
        "pcrf.jsonl",
        "bearers.jsonl",
        "as.jsonl",
        "facilitator.jsonl",
        "wwsf.jsonl",
        "waf.jsonl",
    ] {
        all.extend(trace::since(&layout::folder().join(name), start_ns));
    }
    all.sort_by_key(|message| message.time_ns);
    all
}

/// Writes `messages.jsonl`, `ladder.txt` and `phases.json`. A record of `weir call` has a
/// `call.json` of its own.
pub(crate) fn write(
    out: &Path,
    users: [&str; 2],
    messages: &[Noted],
    phases: &[(&str, f64)],
) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let lines: String = messages.iter().map(|one| format!("{}\n", one.to_json())).collect();
    layout::put(out, "messages.jsonl", &lines)?;
    layout::put(out, "ladder.txt", &trace::ladder(messages))?;
    let phases: serde_json::Map<String, Value> =
        phases.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let summary = json!({
        "caller": users[0],
        "callee": users[1],
        "phases_ms": phases,
        "messages": messages.len(),
    });
    layout::put(out, "phases.json", &format!("{summary:#}\n"))
}
