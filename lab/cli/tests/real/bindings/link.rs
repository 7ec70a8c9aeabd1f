//! A sender under a controller of ours on host A of `weir link`, and a receiver on host B. Both are
//! drivers of the arena. The test passes their messages on, through pipes in the file system, since
//! the hosts can reach each other only over the emulated link.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_call::stack::{Origin, Stack};

use super::{STACKS, WEIR, root};

const LINK_BPS: f64 = 1e6;
const NETWORK: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
    [network]\nup = { capacity = \"1Mbps\", delay = \"25ms\", queue = \"300ms\" }\n\
    down = { delay = \"25ms\" }\n[[flow]]\n";
const START_BPS: u64 = 300_000;
/// Wider than the link.
const MAX_BPS: u64 = 1_500_000;
/// Who receives: it tells transport-wide feedback, and counts what arrives.
const RECEIVER: &str = "str0m";
/// From the first media on, until the controller has found the link.
const SETTLING: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(8);
/// Without a line for so long, one of the drivers does not work.
const PATIENCE: Duration = Duration::from_secs(20);
const WIDTH: usize = 320;
const HEIGHT: usize = 180;
/// Frames of the camera's file, and per second.
const FRAMES: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Host {
    A,
    B,
}

/// The way to the driver on a host.
struct Driver {
    /// None once the driver has been told to stop.
    input: Option<File>,
}

impl Driver {
    /// Makes the two pipes and the script `HOST.sh`, which starts the stack's driver between them.
    /// Passes its lines on.
    fn new(folder: &Path, stack: &Stack, host: Host, lines: Sender<(Host, Value)>) -> Self {
        let [input, output, script] =
            ["in", "out", "sh"].map(|end| folder.join(format!("{host:?}.{end}")));
        assert!(Command::new("mkfifo").args([&input, &output]).status().unwrap().success());
        let Origin::Folder(manifest) = &stack.origin else { panic!("it has a folder") };
        let words: Vec<_> = manifest.driver.iter().map(|word| format!("'{word}'")).collect();
        let words = words.join(" ");
        let [from, to, home] = [&input, &output, stack.folder()].map(Path::display);
        fs::write(script, format!("cd '{home}' && exec {words} < '{from}' > '{to}'\n")).unwrap();
        // For both ways, so that it does not wait for the driver.
        let input = OpenOptions::new().read(true).write(true).open(input).unwrap();
        thread::spawn(move || {
            for line in BufReader::new(File::open(output).unwrap()).lines() {
                let line = serde_json::from_str(&line.unwrap()).expect("a line of JSON");
                if lines.send((host, line)).is_err() {
                    break;
                }
            }
        });
        Self { input: Some(input) }
    }

    fn write(&mut self, content: &Value) {
        writeln!(self.input.as_ref().expect("it runs"), "{content}").unwrap();
    }

    fn tell(&mut self, message: &Value) {
        self.write(&json!({ "call": 0, "message": message }));
    }

    /// Tells it to leave. Some wait for the end of their input, too.
    fn stop(&mut self) {
        self.tell(&json!({ "type": "stop" }));
        self.input = None;
    }
}

/// What the receiver has counted since it began.
#[derive(Clone, Copy, Default)]
struct Counted {
    ms: f64,
    bytes: f64,
    packets: f64,
    lost: f64,
    pictures: f64,
}

impl Counted {
    fn of(report: &Value) -> Self {
        let [ms, payload, headers, packets, lost, pictures] = [
            "timestamp",
            "bytesReceived",
            "headerBytesReceived",
            "packetsReceived",
            "packetsLost",
            "framesReceived",
        ]
        .map(|name| report["inbound"][name].as_f64().unwrap());
        Self { ms, bytes: payload + headers, packets, lost, pictures }
    }
}

/// A call over the link. Ending it ends `weir link`, and with it both drivers.
struct Call {
    link: Child,
    a: Driver,
    b: Driver,
    lines: Receiver<(Host, Value)>,
    /// What `weir link` and the drivers write to standard error.
    said: PathBuf,
}

impl Call {
    fn start(folder: &Path, sender: &Stack, receiver: &Stack) -> Self {
        let (to, lines) = mpsc::channel();
        let mut a = Driver::new(folder, sender, Host::A, to.clone());
        let mut b = Driver::new(folder, receiver, Host::B, to);
        fs::write(folder.join("network.toml"), NETWORK).unwrap();
        draw(&folder.join("camera.y4m"));
        let picture = json!({ "width": WIDTH, "height": HEIGHT, "frameRate": FRAMES });
        a.write(&first_line(
            &picture,
            &json!({
                "minBitrate": 30_000, "startBitrate": START_BPS, "maxBitrate": MAX_BPS,
                "camera": folder.join("camera.y4m"),
            }),
        ));
        b.write(&first_line(&picture, &json!({ "role": "receiver", "statsInterval": 100 })));
        for driver in [&mut a, &mut b] {
            driver.tell(&json!({ "type": "config" }));
        }
        let said = folder.join("stderr");
        let link = Command::new(WEIR)
            .args(["link", "network.toml", "--peer", "sh B.sh", "--", "sh", "A.sh"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        Self { link, a, b, lines, said }
    }

    /// Passes messages on for some time after the first picture. Returns what the receiver had
    /// counted at `from` and in the end.
    fn run(&mut self, from: Duration, until: Duration) -> (Counted, Counted) {
        let mut ready = 0;
        let mut playing: Option<Instant> = None;
        let began = Instant::now();
        let (mut first, mut last) = (None, Counted::default());
        while playing.is_none_or(|since| since.elapsed() < until) {
            let line = self.lines.recv_timeout(PATIENCE).ok();
            let Some((host, line)) = line.filter(|_| began.elapsed() < PATIENCE + until) else {
                panic!("nothing plays: {}", fs::read_to_string(&self.said).unwrap());
            };
            let message = &line["message"];
            match (host, message["type"].as_str()) {
                (_, Some("ready")) => {
                    ready += 1;
                    if ready == 2 {
                        let start = json!({ "type": "start" });
                        self.b.tell(&start);
                        self.a.tell(&start);
                    }
                }
                (Host::A, Some("offer" | "candidate")) => self.b.tell(message),
                (Host::B, Some("answer" | "candidate")) => self.a.tell(message),
                (Host::B, Some("playing")) => playing = Some(Instant::now()),
                (Host::B, Some("stats")) => {
                    last = Counted::of(&message["report"]);
                    if playing.is_some_and(|since| since.elapsed() >= from) {
                        first.get_or_insert(last);
                    }
                }
                (_, Some("failed")) => panic!("{host:?}: {message}"),
                _ => {}
            }
        }
        (first.expect("statistics"), last)
    }

    /// Asks both drivers to leave, and waits for the end of `weir link`.
    fn stop(mut self) {
        for driver in [&mut self.b, &mut self.a] {
            driver.stop();
        }
        let began = Instant::now();
        while self.link.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "a driver does not leave");
            thread::sleep(Duration::from_millis(50));
        }
        assert!(self.link.wait().unwrap().success());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Ok(None) = self.link.try_wait() {
            // SAFETY: a signal to a child that was not waited for, so the number is still its own.
            unsafe { libc::kill(self.link.id().cast_signed(), libc::SIGTERM) };
            let _ = self.link.wait();
        }
    }
}

fn first_line(picture: &Value, more: &Value) -> Value {
    let mut settings = picture.as_object().unwrap().clone();
    settings.extend(more.as_object().unwrap().clone());
    json!({ "calls": [{ "call": 0, "settings": settings }] })
}

/// Writes a camera's file: a slope of grey with noise, so that a picture has enough bits.
fn draw(path: &Path) {
    let mut film = format!("YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FRAMES}:1 Ip C420jpeg\n").into_bytes();
    let mut noise = 1_u32;
    for _ in 0..FRAMES {
        film.extend(b"FRAME\n");
        for pixel in 0..WIDTH * HEIGHT {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            film.push(u8::try_from(64 + (pixel % WIDTH) / 4).unwrap() + (noise >> 28) as u8);
        }
        film.extend(std::iter::repeat_n(128, WIDTH * HEIGHT / 2));
    }
    fs::write(path, film).unwrap();
}

#[test]
fn over_weir_link_each_binding_uses_most_of_the_link_and_loses_little() {
    let arena = root().join("arena");
    let receiver = Stack::read(&arena, RECEIVER).unwrap();
    let linked = Command::new(WEIR).args(["link", "demo/first-call", "--", "true"]).output();
    let linked = linked.unwrap();
    if super::needs_root(&linked) {
        return;
    }
    assert!(linked.status.success(), "{}", super::told(&linked));
    for name in STACKS {
        let sender = Stack::read(&arena, name).unwrap();
        if sender.version().is_err() || receiver.version().is_err() {
            println!("skipped: {name} or {RECEIVER} is not installed: make arena-deps");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut call = Call::start(folder.path(), &sender, &receiver);
        let (first, last) = call.run(SETTLING, SETTLING + MEASURED);
        call.stop();
        let seconds = (last.ms - first.ms) / 1000.0;
        let bps = (last.bytes - first.bytes) * 8.0 / seconds;
        let packets = last.packets - first.packets;
        let loss = (last.lost - first.lost) / packets;
        let pictures = (last.pictures - first.pictures) / seconds;
        println!("{name}: {bps:.0} bit/s, {loss:.3} lost, {pictures:.1} pictures/s");
        // The start bitrate alone would be 0.3 of the link.
        assert!((0.6..1.0).contains(&(bps / LINK_BPS)), "{name}: {bps}");
        assert!(loss < 0.05, "{name}: {loss}");
        assert!(pictures > 20.0, "{name}: {pictures}");
    }
}
