//! How many dumps a second are read and analyzed, and how many reports a second a running call may
//! bring: `rates ROUNDS THREADS FILE...`, each file an rtcstats dump.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use weir_analyze::{LiveCall, fleet_call, read};

/// Reports between two analyses of a running call, as in `weir collect` at one report a second.
const REPORTS: usize = 5;
const WINDOW_S: f64 = 60.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "write: rates ROUNDS THREADS FILE...";
    let rounds: usize = args.next().ok_or(usage)?.parse()?;
    let threads: usize = args.next().ok_or(usage)?.parse()?;
    let files: Vec<String> = args.collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..rounds).for_each(|_| files.iter().for_each(|file| analyzed(file))));
        }
    });
    told("dumps", rounds * threads * files.len(), begun);
    let mut texts = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with(".gz")) {
        texts.push(fs::read(file)?);
    }
    let begun = Instant::now();
    let mut count = 0;
    for _ in 0..rounds {
        count += texts.iter().map(|text| reports(text)).sum::<usize>();
    }
    told("reports of running calls, on one thread", count, begun);
    Ok(())
}

fn analyzed(file: &str) {
    match read(Path::new(file)) {
        Ok(dump) => drop(fleet_call(dump)),
        Err(error) => eprintln!("{error}"),
    }
}

/// Plays a dump as a call that runs. Returns how many reports it had.
fn reports(text: &[u8]) -> usize {
    let mut call = LiveCall::new(WINDOW_S);
    let mut count = 0;
    for line in text.split(|byte| *byte == b'\n') {
        if call.take(line) == Ok(true) {
            count += 1;
            if count % REPORTS == 0 {
                call.findings();
            }
        }
    }
    count
}

fn told(what: &str, count: usize, begun: Instant) {
    let took = begun.elapsed().as_secs_f64();
    println!("{count} {what} in {took:.2} s: {:.0}/s", count as f64 / took);
}
