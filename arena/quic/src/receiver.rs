//! The end that receives: a viewer that is always at the newest group.

use anyhow::Context;
use arena_driver::protocol::{self, Message, ReceiverSettings, Reporter};
use arena_driver::{Happening, Happenings, host_address};
use rcgen::{CertificateParams, KeyPair};
use tokio::sync::mpsc::{self, UnboundedSender};

use super::host::{self, Connection, Endpoint, RecvStream};
use crate::description;
use crate::groups::{GROUP_BYTES, LENGTH_BYTES};
use crate::viewer::{Counted, Viewer};

/// What the tasks of a connection tell.
enum News {
    Connected(Connection),
    Frame { group: u64, frame: Vec<u8> },
}

pub fn receive(
    reporter: Reporter,
    settings: ReceiverSettings,
    happenings: Happenings,
) -> anyhow::Result<()> {
    crate::runtime()?.block_on(serve(reporter, settings, happenings))
}

/// Serves the call until the lab ends it.
async fn serve(
    mut reporter: Reporter,
    settings: ReceiverSettings,
    happenings: Happenings,
) -> anyhow::Result<()> {
    reporter.mark("joined");
    let mut happenings = crate::in_tasks(happenings);
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut viewer = Viewer::new(&settings)?;
    let mut connected = None;
    loop {
        let next_stats = viewer.next_stats().into();
        tokio::select! {
            happening = happenings.recv() => {
                let Some(Happening::Line(line)) = happening else { return Ok(()) };
                match protocol::message(&line)? {
                    Message::Config => reporter.ready(),
                    Message::Start => reporter.mark("start"),
                    Message::Offer { .. } => {
                        let (endpoint, description) = open()?;
                        tokio::spawn(subscribe(endpoint, tell.clone()));
                        reporter.answer(&description);
                        reporter.mark("described");
                    }
                    Message::Stop | Message::Refused => {
                        viewer.tell(&reporter, counted(connected.as_ref()));
                        reporter.left();
                        return Ok(());
                    }
                    Message::Answer { .. } | Message::Candidate { .. } | Message::Other => {}
                }
            }
            Some(news) = told.recv() => match news {
                News::Connected(connection) => {
                    reporter.mark("ice");
                    reporter.mark("connected");
                    reporter.connected();
                    connected = Some(connection);
                }
                News::Frame { group, frame } => viewer.on_frame(&reporter, group, &frame),
            },
            () = tokio::time::sleep_until(next_stats) => {
                viewer.tell(&reporter, counted(connected.as_ref()));
            }
        }
    }
}

/// An end that can be connected to, and the text by which the sender finds it.
fn open() -> anyhow::Result<(Endpoint, String)> {
    let key = KeyPair::generate()?;
    let params = CertificateParams::new([description::NAME.to_owned()])?;
    let certificate = params.self_signed(&key)?.der().clone();
    let endpoint =
        host::server(certificate.clone(), key.serialize_der(), (host_address()?, 0).into());
    let text = description::written(endpoint.local_addr()?, &certificate);
    Ok((endpoint, text))
}

fn counted(connection: Option<&Connection>) -> Counted {
    let Some(connection) = connection else { return Counted::default() };
    let (datagrams, bytes) = host::received(connection);
    Counted { datagrams, bytes }
}

/// Accepts the sender's connection and its streams.
async fn subscribe(endpoint: Endpoint, tell: UnboundedSender<News>) -> anyhow::Result<()> {
    let connection = endpoint.accept().await.context("the end is closed")?.await?;
    tell.send(News::Connected(connection.clone()))?;
    loop {
        let stream = connection.accept_uni().await?;
        let tell = tell.clone();
        // An error is that of a group that was given up.
        tokio::spawn(async move { read_group(stream, tell).await });
    }
}

async fn read_group(mut stream: RecvStream, tell: UnboundedSender<News>) -> anyhow::Result<()> {
    let mut number = [0; GROUP_BYTES];
    stream.read_exact(&mut number).await?;
    let group = u64::from_be_bytes(number);
    loop {
        let mut length = [0; LENGTH_BYTES];
        stream.read_exact(&mut length).await?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut frame).await?;
        tell.send(News::Frame { group, frame })?;
    }
}
