//! The end that sends: the encoder's frames, as one stream for each group.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::Context;
use arena_driver::encoder::Encoder;
use arena_driver::protocol::{self, Message, Reporter, Settings};
use arena_driver::{Happening, Happenings, host_address};
use tokio::sync::{mpsc, oneshot};
use weir::{Bitrate, Timestamp};
use weir_quic::testing::EncoderRate;

use super::host::{self, Connection, SendStream, VarInt};
use crate::{description, groups};

/// A group is reset when this many newer ones have begun: it ended a second ago.
const GROUPS: usize = 2;

pub fn send(reporter: Reporter, settings: Settings, happenings: Happenings) -> anyhow::Result<()> {
    crate::runtime()?.block_on(serve(reporter, settings, happenings))
}

/// Serves the call until the lab ends it.
async fn serve(
    mut reporter: Reporter,
    settings: Settings,
    happenings: Happenings,
) -> anyhow::Result<()> {
    reporter.mark("joined");
    let mut encoder = Encoder::start(&settings, happenings.sender.clone())?;
    reporter.mark("camera");
    let mut happenings = crate::in_tasks(happenings);
    let mut publisher = None;
    while let Some(happening) = happenings.recv().await {
        match happening {
            Happening::Line(line) => match protocol::message(&line)? {
                Message::Config => reporter.ready(),
                Message::Start => {
                    reporter.mark("start");
                    reporter.offer("a subscriber, please");
                }
                Message::Answer { sdp } => {
                    reporter.mark("described");
                    let connection = connect(&sdp, &settings).await?;
                    reporter.mark("ice");
                    reporter.mark("connected");
                    reporter.connected();
                    publisher = Some(Publisher::new(connection, &settings));
                    encoder.say("start");
                }
                Message::Stop | Message::Refused => {
                    reporter.left();
                    return Ok(());
                }
                Message::Offer { .. } | Message::Candidate { .. } | Message::Other => {}
            },
            Happening::Frame(frame) => {
                if let Some(publisher) = &mut publisher {
                    publisher.send(&frame)?;
                    publisher.follow(&mut encoder, &reporter);
                }
            }
            Happening::Datagram(..) => {}
            Happening::End => return Ok(()),
        }
    }
    Ok(())
}

/// Connects to the subscriber that describes itself so.
async fn connect(answer: &str, settings: &Settings) -> anyhow::Result<Connection> {
    let (address, certificate) =
        description::read(answer).context("the answer is no address and certificate")?;
    let factory = super::factory(&crate::controller(), settings)?;
    let endpoint = host::client(certificate.into(), factory, (host_address()?, 0).into());
    Ok(endpoint.connect(address, description::NAME)?.await?)
}

/// A group's task.
struct Group {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    /// Dropped when the group is old.
    _is_young: oneshot::Sender<()>,
}

struct Publisher {
    connection: Connection,
    /// The newest groups, the oldest of them first.
    groups: VecDeque<Group>,
    begun: u64,
    /// Pictures of the camera since the last key frame.
    since_key: u64,
    frame_rate: u64,
    began: Instant,
    policy: EncoderRate,
    rate: Bitrate,
    target: Bitrate,
    limits: [Bitrate; 2],
}

impl Publisher {
    fn new(connection: Connection, settings: &Settings) -> Self {
        let [min, start, max] =
            [settings.min_bitrate, settings.start_bitrate, settings.max_bitrate]
                .map(Bitrate::from_bps);
        Self {
            connection,
            groups: VecDeque::new(),
            begun: 0,
            since_key: 0,
            frame_rate: settings.frame_rate,
            began: Instant::now(),
            policy: EncoderRate::new(start, max),
            rate: start,
            target: start,
            limits: [min, max],
        }
    }

    /// Passes a frame to its group's task. It is empty for a picture that was left out.
    fn send(&mut self, frame: &[u8]) -> anyhow::Result<()> {
        self.since_key += 1;
        if groups::is_key(frame) {
            self.begin_group();
            self.since_key = 0;
        }
        let newest = self.groups.back().context("the first frame is no key frame")?;
        if !frame.is_empty() {
            // The task of a connection that is lost has ended.
            let _ = newest.frames.send(groups::with_length(frame));
        }
        Ok(())
    }

    fn begin_group(&mut self) {
        let (frames, of_group) = mpsc::unbounded_channel();
        let (is_young, is_old) = oneshot::channel();
        let (connection, number) = (self.connection.clone(), self.begun);
        tokio::spawn(async move {
            // An error is that of a connection which is lost, and the other end says so.
            let _ = write_group(connection, number, of_group, is_old).await;
        });
        self.begun += 1;
        // The group before is complete.
        if let Some(before) = self.groups.back_mut() {
            before.frames = mpsc::unbounded_channel().0;
        }
        self.groups.push_back(Group { frames, _is_young: is_young });
        if self.groups.len() > GROUPS {
            self.groups.pop_front();
        }
    }

    /// Tells the encoder the rate that moq's policy makes of the stack's estimate, and asks for a
    /// key frame each second.
    fn follow(&mut self, encoder: &mut Encoder, reporter: &Reporter) {
        let [min, max] = self.limits;
        let estimate = host::estimate(&self.connection).clamp(min, max);
        if estimate != self.target {
            reporter.target(self.target.as_bps(), estimate.as_bps());
            self.target = estimate;
        }
        let now = Timestamp::from_instant(self.began, Instant::now());
        let rate = self.policy.follow(now, Some(estimate));
        if rate != self.rate {
            self.rate = rate;
            encoder.say(&format!("rate {}", rate.as_bps()));
        }
        if self.since_key == self.frame_rate - 1 {
            encoder.say("key");
        }
    }
}

/// Writes a group's frames. Newer groups go first. When the group is old, what is left of it is
/// given up.
async fn write_group(
    connection: Connection,
    number: u64,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    mut is_old: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut stream = connection.open_uni().await?;
    stream.set_priority(i32::try_from(number)?)?;
    tokio::select! {
        biased;
        _ = &mut is_old => {}
        written = write_frames(&mut stream, number, &mut frames) => {
            written?;
            stream.finish()?;
            let _ = is_old.await;
        }
    }
    // One that has arrived cannot be reset.
    let _ = stream.reset(VarInt::from_u32(0));
    Ok(())
}

async fn write_frames(
    stream: &mut SendStream,
    number: u64,
    frames: &mut mpsc::UnboundedReceiver<Vec<u8>>,
) -> anyhow::Result<()> {
    stream.write_all(&number.to_be_bytes()).await?;
    while let Some(frame) = frames.recv().await {
        stream.write_all(&frame).await?;
    }
    Ok(())
}
