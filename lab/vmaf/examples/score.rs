//! Scores each picture of a film on its own:
//! `score WIDTH HEIGHT SENT.gray RECEIVED.gray` prints VMAF, SSIM and PSNR, one line a picture.
//!
//! The files have the luma of each pixel, one picture after the other
//! (`ffmpeg -i FILM -vf extractplanes=y -f rawvideo FILE`). `scripts/results/vmaf-beside-ffmpeg.sh`
//! uses it.

use std::env;
use std::error::Error;
use std::fs;

use weir_vmaf::{Luma, score};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [width, height, sent, received] = &words[..] else {
        return Err("usage: score WIDTH HEIGHT SENT.gray RECEIVED.gray".into());
    };
    let size = (width.parse()?, height.parse()?);
    let (sent, received) = (film(sent, size)?, film(received, size)?);
    println!("vmaf,vmaf_neg,ssim,psnr_db");
    for (index, picture) in received.iter().enumerate().take(sent.len()) {
        let before = &sent[index.saturating_sub(1)];
        let after = &sent[(index + 1).min(sent.len() - 1)];
        let scores = score([before, &sent[index], after], picture)?;
        let [vmaf, neg, ssim] =
            [scores.vmaf, scores.vmaf_neg, scores.ssim].map(|score| score.unwrap_or(f64::NAN));
        println!("{vmaf:.4},{neg:.4},{ssim:.5},{:.4}", scores.psnr_db);
    }
    Ok(())
}

fn film(path: &str, (width, height): (usize, usize)) -> Result<Vec<Luma>, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    let mut pictures = Vec::new();
    for pixels in bytes.chunks_exact(width * height) {
        pictures.extend(Luma::new(width, height, pixels.to_vec()));
    }
    Ok(pictures)
}
