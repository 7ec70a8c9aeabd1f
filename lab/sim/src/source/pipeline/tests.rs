//! The model beside libvpx: docs/results/pipeline-encoder.tsv.

use std::fs;
use std::path::Path;

use super::*;
use crate::config::Content;
use weir_net::Seed;

const FPS: f64 = 30.0;
const SECOND: usize = 30;
const HALF_SECOND: usize = 15;
/// The picture at which the rate changes.
const CHANGE: usize = 300;
const SEEDS: u64 = 10;
const VIDEO: EncoderVideo =
    EncoderVideo { width: 640, height: 360, content: Content::Film, ..EncoderVideo::DEFAULT };

/// Rates in kbit/s, the picture with a key frame (0: none), and the bytes of each picture.
struct Row {
    from: f64,
    to: f64,
    key_frame: usize,
    bytes: Vec<f64>,
}

fn rows() -> Vec<Row> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/pipeline-encoder.tsv");
    fs::read_to_string(path).unwrap().lines().skip(1).map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.split('\t').collect();
    let bytes = cells[3].split(' ').map(|cell| cell.parse().unwrap()).collect();
    let number = |index: usize| cells[index].parse::<f64>().unwrap();
    Row { from: number(0), to: number(1), key_frame: number(2) as usize, bytes }
}

impl Row {
    fn kbps(&self, picture: usize) -> f64 {
        if picture < CHANGE { self.from } else { self.to }
    }

    /// What the model makes of the same rates.
    fn modelled(&self, seed: u64) -> Vec<f64> {
        let mut encoder = PipelineEncoder::new(Seed::new(seed).stream("source"), VIDEO);
        let mut bytes = Vec::new();
        for picture in 0..self.bytes.len() {
            if self.key_frame > 0 && picture == self.key_frame {
                encoder.begin_key_frame();
            }
            let rate = Bitrate::from_bps_f64(1e3 * self.kbps(picture));
            bytes.push(encoder.encode(FPS, None, rate) / BITS_PER_BYTE);
        }
        bytes
    }

    fn measure(&self, bytes: &[f64]) -> [f64; 7] {
        let budget = |picture: usize| self.kbps(picture) * 1e3 / 8.0 / FPS;
        let made = bytes.iter().sum::<f64>() / (0..bytes.len()).map(budget).sum::<f64>();
        let (mut halves, mut waits, mut backlog) = (Vec::new(), Vec::new(), 0.0_f64);
        for at in (SECOND..bytes.len() - HALF_SECOND).step_by(HALF_SECOND) {
            let asked: f64 = (at..at + HALF_SECOND).map(budget).sum();
            halves.push(bytes[at..at + HALF_SECOND].iter().sum::<f64>() / asked);
        }
        for (picture, made) in bytes.iter().enumerate() {
            backlog = (backlog + made - budget(picture)).max(0.0);
            waits.push(backlog / budget(picture) * 1e3 / FPS);
        }
        let cuts = (120..bytes.len()).step_by(120).map(|at| bytes[at]).sum::<f64>() / 4.0;
        let after = bytes[CHANGE..CHANGE + HALF_SECOND].iter().sum::<f64>();
        let after = after / budget(CHANGE) / HALF_SECOND as f64;
        let [low, high] = [0.05, 0.95].map(|share| percentile(&mut halves, share));
        [made, low, high, percentile(&mut waits, 0.95), bytes[0] / 1e3, cuts / 1e3, after]
    }
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(share * (values.len() - 1) as f64) as usize]
}

/// For each row, what libvpx and what the model did, as the mean of ten seeds.
fn compared() -> Vec<(Row, [f64; 7], [f64; 7])> {
    let mut all = Vec::new();
    for row in rows() {
        let libvpx = row.measure(&row.bytes);
        let mut model = [0.0; 7];
        for seed in 1..=SEEDS {
            for (sum, value) in model.iter_mut().zip(row.measure(&row.modelled(seed))) {
                *sum += value / SEEDS as f64;
            }
        }
        all.push((row, libvpx, model));
    }
    all
}

// `cargo test -p weir-sim beside_libvpx -- --nocapture` prints it.
#[test]
fn beside_libvpx_the_model_makes_the_same_of_its_target() {
    println!(
        "| kbit/s | made / target | half seconds: 5 % | 95 % | wait, p95 (ms) | first (kB) \
         | cut (kB) | half a second from 10 s / target |\n|---|---|---|---|---|---|---|---|"
    );
    for (row, libvpx, model) in compared() {
        let rates = if row.from == row.to {
            row.to.to_string()
        } else {
            format!("{}, {}", row.from, row.to)
        };
        let key = if row.key_frame > 0 { ", key frame" } else { "" };
        print!("| {rates}{key} |");
        for (index, (libvpx, model)) in libvpx.iter().zip(model).enumerate() {
            let digits = [2, 2, 2, 0, 1, 1, 2][index];
            print!(" {libvpx:.digits$}; {model:.digits$} |");
        }
        println!();
        // Below, even the coarsest quality exceeds the target.
        if row.from.min(row.to) < 300.0 {
            continue;
        }
        // The model's cuts were fitted to libvpx at a speed that followed the load; at a fixed one
        // they are up to 8.1 kB too large.
        for (index, most) in [0.03, 0.06, 0.06, 100.0, 1.5, 8.1, 0.2].into_iter().enumerate() {
            let error = (model[index] - libvpx[index]).abs();
            assert!(error <= most, "{rates}, column {index}: {error}");
        }
    }
}

#[test]
fn a_picture_that_is_left_out_may_be_the_one_after_a_cut() {
    let mut encoder = PipelineEncoder::new(Seed::new(1).stream("source"), VIDEO);
    let rate = Bitrate::from_kbps(1_000);
    for _ in 0..FILM_LOOP {
        encoder.frame(FPS, None, rate);
    }
    encoder.skip();
    let bytes = encoder.frame(FPS, None, rate).as_bytes();
    assert!(bytes > 20_000, "{bytes}");
    assert!(encoder.frame(FPS, None, rate).as_bytes() < 1_000);
}

/// The rate of an encoder with a target of 1 Mbit/s while so many bytes wait.
fn beside(bytes: u64) -> Bitrate {
    let target = Target::new(Bitrate::from_kbps(1_000), Bitrate::from_kbps(1_000));
    rate_beside(&target, DataSize::from_bytes(bytes), target.source_bitrate)
}

#[test]
fn what_waits_beyond_the_usual_is_taken_off_the_rate_up_to_a_half() {
    let kbps = Bitrate::from_kbps;
    assert_eq!(beside(0), kbps(1_000));
    assert_eq!(beside(6_250), kbps(1_000), "50 ms are usual");
    assert_eq!(beside(12_500), kbps(900), "50 ms more in half a second");
    assert_eq!(beside(100_000), kbps(500));
}
