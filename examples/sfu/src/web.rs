//! The page and its requests, over plain HTTP.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use crate::Happening;

const PAGE: &str = include_str!("page.html");
/// Longer bodies and lines are refused.
const MAX_BYTES: u64 = 100_000;
const MAX_LINES: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a page asks for.
pub struct Request {
    pub path: String,
    pub body: String,
    /// The answer: `Err` is what is wrong with the request.
    pub reply: SyncSender<Result<String, String>>,
}

/// Answers each connection in a thread of its own.
pub fn serve(listener: &TcpListener, happenings: &Sender<Happening>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let happenings = happenings.clone();
        // Who hangs up in the middle gets no answer.
        thread::spawn(move || drop(answer(stream, &happenings)));
    }
}

fn answer(stream: TcpStream, happenings: &Sender<Happening>) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream.try_clone()?.take(MAX_BYTES));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let mut length = 0;
    for _ in 0..MAX_LINES {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(u64::MAX);
        }
    }
    if path == "/" || path.starts_with("/?") {
        return respond(stream, "200 OK", "text/html; charset=utf-8", PAGE);
    }
    if length > MAX_BYTES {
        return respond(stream, "413 Content Too Large", "text/plain", "too long");
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    let (reply, replies) = mpsc::sync_channel(1);
    let _ = happenings.send(Happening::Request(Request { path, body, reply }));
    match replies.recv() {
        Ok(Ok(text)) => respond(stream, "200 OK", "application/json", &text),
        Ok(Err(cause)) => respond(stream, "400 Bad Request", "text/plain", &cause),
        Err(_) => respond(stream, "500 Internal Server Error", "text/plain", "no answer"),
    }
}

fn respond(mut stream: TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
