//! `weir serve`: a local page that simulates, calls, links and compares.
//!
//! ```text
//!   browser -- http, token, Host and Origin checked -- web -- lab -- simulation: a thread
//!                                                              \--- real: `weir call` or
//!                                                                    `weir link`, a process
//!                                                                    with a socket of JSON lines
//! ```
//!
//! Pages ask for news a few times a second, so a page that stops reading delays neither a run nor
//! another page.

mod bodies;
mod current;
mod job;
mod lab;
mod metrics;
mod real;
mod repeat;
mod scratch;
mod simulation;
mod web;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{fs, io};

use anyhow::Context;
use weir_call::random_token;

use crate::args::Serve;
use crate::interrupt::Interrupt;
use lab::Lab;

/// A shorter token could be guessed.
const TOKEN_MIN: usize = 16;

/// Serves the page until Ctrl-C.
pub fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let token = match &args.token_file {
        Some(file) => token_of(file)?,
        None => random_token().context("cannot make a token")?,
    };
    let listener = TcpListener::bind((args.listen, args.port))
        .with_context(|| format!("cannot listen at {} port {}", args.listen, args.port))?;
    let address = listener.local_addr()?;
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let out = args.out.canonicalize().with_context(|| args.out.display().to_string())?;
    let interrupt = Interrupt::listen()?;
    let lab = Arc::new(Lab::new(out, &args.commands)?);
    let server = web::Server::start(listener, &token, lab.clone())?;
    eprintln!("weir: open http://{}/{token}/", reached_at(address));
    eprintln!("weir: records are in {}; Ctrl-C ends", args.out.display());
    interrupt.wait();
    drop(server);
    lab.close();
    Ok(ExitCode::SUCCESS)
}

/// The address at which this machine reaches a listener, as a URL has it.
fn reached_at(mut listener: SocketAddr) -> SocketAddr {
    if listener.ip().is_unspecified() {
        listener.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    listener
}

/// The token in a file that only its owner may read. A missing file gets a new one.
fn token_of(file: &Path) -> anyhow::Result<String> {
    let place = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => {
            let token = text.trim();
            let is_plain = token.chars().all(|c| c.is_ascii_alphanumeric());
            anyhow::ensure!(
                is_plain && token.len() >= TOKEN_MIN,
                "{place}: a token has at least {TOKEN_MIN} letters and digits, and nothing else"
            );
            Ok(token.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = random_token().context("cannot make a token")?;
            let mut options = fs::OpenOptions::new();
            let created = options.write(true).create_new(true).mode(0o600).open(file);
            created.and_then(|mut file| writeln!(file, "{token}")).context(place)?;
            Ok(token)
        }
        Err(error) => Err(error).context(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_address_is_one_that_a_browser_opens() {
        for (listener, shown) in [
            ("127.0.0.2:8099", "127.0.0.2:8099"),
            ("0.0.0.0:8099", "127.0.0.1:8099"),
            ("[::]:8099", "127.0.0.1:8099"),
            ("[::1]:8099", "[::1]:8099"),
        ] {
            assert_eq!(reached_at(listener.parse().unwrap()).to_string(), shown);
        }
    }

    #[test]
    fn a_token_file_is_made_once_and_a_short_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token = token_of(&file).unwrap();
        assert_eq!((token.len(), token_of(&file).unwrap()), (32, token));
        for bad in ["short", "", "aaaaaaaaaaaaaaaa/aaaaaaaaaaaaaa"] {
            fs::write(&file, bad).unwrap();
            assert!(token_of(&file).unwrap_err().to_string().contains("16 letters"), "{bad}");
        }
    }
}
