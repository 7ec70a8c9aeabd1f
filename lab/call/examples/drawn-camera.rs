//! Writes a drawn content of the camera as YUV4MPEG2, for measurements of encoders:
//! `cargo run -p weir-call --release --example drawn-camera -- head 640 360 30 head.y4m`.

use std::fs::File;
use std::io::BufWriter;

use weir_call::quality::drawn;
use weir_scenario::call::{Content, Picture};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [content, width, height, fps, path] = &arguments[..] else {
        eprintln!("drawn-camera: CONTENT WIDTH HEIGHT FPS FILE");
        std::process::exit(2);
    };
    let content = if content == "slides" { Content::Slides } else { Content::Head };
    let [width, height, fps] = [width, height, fps].map(|it| it.parse().expect("a number"));
    let video = Picture { width, height, fps, content, ..Picture::default() };
    let painter = drawn::painter(content).expect("it is drawn");
    let mut out = BufWriter::new(File::create(path).expect("a new file"));
    drawn::write(&mut out, &video, 4, painter).expect("the disk has room");
}
