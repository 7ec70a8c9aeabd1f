//! `weir collect`: what limits calls while they run, from the reports that their clients send.
//!
//! ```text
//! clients -- WebSocket or POST, a token for each room -- web -- calls: one `LiveCall` for each end
//!                                                                |-- dumps: appended every second
//!                                                                |-- metrics: asked for, or pushed
//!                                                                \-- webhook: begin and end
//! ```
//!
//! One thread does all but the disk's work.

mod access;
mod budget;
mod calls;
mod counters;
mod dumps;
mod forms;
mod metrics;
mod push;
mod web;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::mpsc;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use weir_analyze::Cause;
use weir_call::{Bounds, TokenListener, random_token};

use crate::args::Collect;
use crate::interrupt::Interrupt;
use access::{Participant, Secret};
use calls::{Batch, Calls, Change, Limits};
use dumps::{Abandoned, Dumps};
use push::{Receiver, message};
use web::Shared;

/// Time between two rounds of analyses, and between two of writing. A kill loses a round of these.
const ANALYZED: Duration = Duration::from_millis(250);
const WRITTEN: Duration = Duration::from_secs(1);
/// Longest time between two looks for dumps that nobody came back for.
const SWEPT: Duration = Duration::from_secs(60);
/// Time between two messages to an OTLP receiver.
const PUSHED: Duration = Duration::from_secs(15);
/// Changes that wait for the webhook. More are dropped, and counted.
const CHANGES_MAX: usize = 1000;
/// Connections beyond one for each call: requests, and clients that come back.
const MORE_CONNECTIONS: usize = 256;
/// Clients that the system keeps until this program accepts them. All come at once after a restart.
const BACKLOG: i32 = 4096;
/// A shorter secret could be guessed.
const SECRET_MIN: usize = 16;
const LOCK: &str = ".collect-lock";

/// Collects until Ctrl-C.
pub fn collect(args: &Collect) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let file = args.secret_file.clone().unwrap_or_else(|| args.out.join(".collect-secret"));
    let secret = Secret::new(&secret_of(&file)?);
    if let Some(room) = &args.token_for {
        anyhow::ensure!(
            Participant::new(room, "-", "-").is_some(),
            "{room}: the name of a room has at most 64 letters, digits, `-` and `_`"
        );
        println!("{}", secret.token(room));
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = lock(&args.out)?;
    let webhook = args.webhook.as_deref().map(Receiver::new).transpose()?;
    let otlp = args.otlp.as_deref().map(Receiver::new).transpose()?;
    let told = causes(&args.webhook_cause)?;
    let bounds = bounds(args.max_calls)?;
    let listener = TcpListener::bind((args.listen, args.port))
        .with_context(|| format!("cannot listen at {} port {}", args.listen, args.port))?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let interrupt = Interrupt::listen()?;
    let shared = Arc::new(Shared {
        secret,
        calls: Mutex::new(Calls::new(limits(args))),
        dumps: Dumps::new(&args.out),
        idle: Duration::from_secs_f64(args.idle),
        refused_tokens: AtomicU64::new(0),
        hand_over: Semaphore::new(1),
    });
    let (shutdown, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(2)
        .enable_all()
        .build()?;
    let serving = shared.clone();
    let thread = std::thread::Builder::new().name("weir-collect".into()).spawn(move || {
        runtime.block_on(run(serving, listener, bounds, (webhook, told), otlp, stopped))
    })?;
    eprintln!("weir: collects at http://{address}/c/ROOM/CALL/PEER?token=TOKEN");
    eprintln!("weir: dumps are in {}; Ctrl-C ends", args.out.join("dumps").display());
    interrupt.wait();
    drop(shutdown);
    // The thread has printed its panic.
    let ended = thread.join().map_err(|_| anyhow::anyhow!("the server ended early"))?;
    ended.map(|()| ExitCode::SUCCESS)
}

fn limits(args: &Collect) -> Limits {
    Limits {
        calls: args.max_calls,
        call_bytes: args.max_call_mb * 1_000_000,
        window_s: args.window,
        rejoin: Duration::from_secs_f64(args.rejoin),
        told_after_s: args.webhook_after,
    }
}

/// The causes with these names; all without a name.
fn causes(names: &[String]) -> anyhow::Result<Vec<Cause>> {
    let mut causes = Vec::new();
    for name in names {
        let known = Cause::ALL.into_iter().find(|cause| cause.name() == name);
        let all = Cause::ALL.map(Cause::name).join(", ");
        causes.push(known.with_context(|| format!("{name}: no cause; they are {all}"))?);
    }
    Ok(if causes.is_empty() { Cause::ALL.into() } else { causes })
}

/// The secret in a file that only its owner may read. A missing file gets a new one.
fn secret_of(file: &Path) -> anyhow::Result<String> {
    let place = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => {
            let secret = text.trim();
            let is_long = secret.len() >= SECRET_MIN;
            anyhow::ensure!(is_long, "{place}: a secret has at least {SECRET_MIN} characters");
            Ok(secret.into())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret = random_token().context("cannot make a secret")?;
            let mut options = fs::OpenOptions::new();
            let mut created = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file)
                .context(place.clone())?;
            if let Err(error) = writeln!(created, "{secret}") {
                // Half a secret would be none at the next start.
                let _ = fs::remove_file(file);
                return Err(error).context(place);
            }
            Ok(secret)
        }
        Err(error) => Err(error).context(place),
    }
}

/// Keeps other collectors away from a folder. The lock ends with the process.
fn lock(out: &Path) -> anyhow::Result<fs::File> {
    let path: PathBuf = out.join(LOCK);
    let file = fs::File::create(&path).with_context(|| path.display().to_string())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| anyhow::anyhow!("another `weir collect` writes into {}", out.display()))?;
    Ok(file)
}

/// How many connections there may be, for which this process gets descriptors. As many strangers
/// as clients may wait, since all clients are strangers until their request is here; fewer if the
/// system does not allow it.
fn bounds(calls: usize) -> anyhow::Result<Bounds> {
    let known = calls + MORE_CONNECTIONS;
    let (needed, wanted) = (known + MORE_CONNECTIONS, 2 * known + MORE_CONNECTIONS);
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted as u64) {
        let wanted = wanted as u64;
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        setrlimit(Resource::Nofile, limit).context("cannot raise the number of open files")?;
    }
    let got = limit.current.and_then(|got| usize::try_from(got).ok()).unwrap_or(wanted);
    anyhow::ensure!(
        got >= needed,
        "{calls} calls need {needed} open files, and this system allows {got}: raise `ulimit \
         -Hn`, or lower --max-calls"
    );
    // The rest of what is needed is for public requests and files.
    let unknown = (got.min(wanted) - known - MORE_CONNECTIONS / 2).min(known);
    Ok(Bounds { known, unknown })
}

type Webhook = (Option<Receiver>, Vec<Cause>);

async fn run(
    shared: Arc<Shared>,
    listener: TcpListener,
    bounds: Bounds,
    webhook: Webhook,
    otlp: Option<Receiver>,
    stopped: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let gate = shared.clone();
    let gate = Arc::new(move |target: &str| gate.admits(target));
    let listener = TokenListener::with_gate(listener, gate, bounds);
    let router = web::router(shared.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let (changes, waiting) = mpsc::channel(CHANGES_MAX);
    // Without a webhook, the changes' receiver is dropped, and they are too.
    if let (Some(receiver), causes) = webhook {
        tokio::spawn(tell(shared.clone(), receiver, causes, waiting));
    } else {
        drop(waiting);
    }
    if let Some(receiver) = otlp {
        tokio::spawn(push(shared.clone(), receiver.below("/v1/metrics")));
    }
    tokio::spawn(analyze(shared.clone(), changes.clone()));
    tokio::spawn(sweep(shared.clone()));
    write(&shared, changes, stopped).await;
    // Calls that run may go on after a restart: their dumps stay as they are.
    written(&shared).await;
    let left = shared.calls().waiting();
    anyhow::ensure!(left == 0, "{left} bytes of events could not be written");
    Ok(())
}

/// Looks at the calls whose turn it is, again and again.
async fn analyze(shared: Arc<Shared>, changes: mpsc::Sender<Change>) {
    let mut round = interval(ANALYZED);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        let found = shared.calls().analyze(Instant::now());
        note(&shared, &changes, found);
    }
}

/// Passes changes on to the webhook, if there is one.
fn note(shared: &Shared, changes: &mpsc::Sender<Change>, found: Vec<Change>) {
    for change in found {
        if let Err(mpsc::error::TrySendError::Full(_)) = changes.try_send(change) {
            shared.calls().counters.untold += 1;
        }
    }
}

/// Writes what came, and gives the dumps of ended calls their names, again and again.
async fn write(
    shared: &Arc<Shared>,
    changes: mpsc::Sender<Change>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut round = interval(WRITTEN);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        // A round is never cut: what became of its writes must be known.
        tokio::select! {
            _ = round.tick() => {}
            // An error means that the program ends, too.
            _ = &mut stopped => return,
        }
        let mut ended = Vec::new();
        let now = Instant::now();
        let gone = shared.calls().ended(now);
        shared.calls().budgets.forget(now);
        for (participant, last) in gone {
            note(shared, &changes, last);
            ended.push(participant);
        }
        finish(shared, ended).await;
        match written(shared).await {
            Some(error) if !is_failing => {
                eprintln!("weir: cannot write dumps, and tries again: {error}");
                is_failing = true;
            }
            Some(_) => {}
            None => is_failing = false,
        }
    }
}

/// Writes what waits. Returns the last error.
async fn written(shared: &Arc<Shared>) -> Option<std::io::Error> {
    let batches = shared.calls().unwritten();
    let dumps = shared.dumps.clone();
    let job = spawn_blocking(move || {
        let mut results = Vec::new();
        for batch in batches {
            let result = dumps.append(&batch.participant, &batch.lines);
            results.push((batch, result));
        }
        results
    });
    let mut failed = None;
    let results: Vec<(Batch, std::io::Result<()>)> = job.await.unwrap_or_default();
    let mut calls = shared.calls();
    for (batch, result) in results {
        calls.wrote(batch, result.is_ok());
        if let Err(error) = result {
            calls.counters.lost_writes += 1;
            failed = Some(error);
        }
    }
    failed
}

/// Gives the dumps of calls that have ended their names. The call of a client that came back
/// meanwhile goes on in its dump.
async fn finish(shared: &Arc<Shared>, mut ended: Vec<Participant>) {
    if ended.is_empty() {
        return;
    }
    let _one = shared.hand_over.acquire().await;
    ended.retain(|participant| !shared.calls().is_known(participant));
    let dumps = shared.dumps.clone();
    let job = spawn_blocking(move || {
        for participant in ended {
            // A call that sent nothing has no dump. What fails is tried again by `sweep`.
            let _ = dumps.finish(&participant);
        }
    });
    let _ = job.await;
}

/// Finishes the dumps of calls that ended while this program did not run.
async fn sweep(shared: Arc<Shared>) {
    let age = shared.calls().limits().rejoin + 2 * WRITTEN;
    let mut round = interval(age.min(SWEPT));
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut abandoned = Abandoned::default();
    loop {
        round.tick().await;
        let dumps = shared.dumps.clone();
        let found = spawn_blocking(move || dumps.running_participants()).await;
        let Ok(Ok(mut participants)) = found else { continue };
        participants.retain(|participant| !shared.calls().is_known(participant));
        let old = abandoned.see(Instant::now(), participants, age);
        finish(&shared, old).await;
    }
}

/// Tells the webhook what changes, one message after the other.
async fn tell(
    shared: Arc<Shared>,
    receiver: Receiver,
    causes: Vec<Cause>,
    mut waiting: mpsc::Receiver<Change>,
) {
    while let Some(change) = waiting.recv().await {
        if causes.contains(&change.cause) && !receiver.post(&message(&change)).await {
            shared.calls().counters.untold += 1;
        }
    }
}

/// Sends the metrics, again and again.
async fn push(shared: Arc<Shared>, receiver: Receiver) {
    let (started, mut started_ns) = (Instant::now(), now_ns());
    let mut round = interval(PUSHED);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        let now_ns = now_ns();
        started_ns = push::start_before(started_ns, now_ns, started.elapsed());
        let body = metrics::otlp(&shared.metrics(), started_ns, now_ns);
        if !receiver.post(&body).await {
            shared.calls().counters.untold += 1;
        }
    }
}

fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
