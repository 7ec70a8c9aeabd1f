//! How a received picture looks beside the one that was sent, and the [`tag`] that says which one
//! that is.
//!
//! A score is of one picture. VMAF also asks how much the *reference* moves, so it needs the
//! reference's neighbours in time. It does not look at the neighbours of the received picture.

#[cfg(feature = "libvmaf")]
mod libvmaf;
mod luma;
pub mod tag;

pub use luma::Luma;

/// Names of the models of VMAF, as Netflix publishes them.
pub const MODEL: &str = "vmaf_v0.6.1";
/// The same for the model that does not reward sharpening.
pub const MODEL_NEG: &str = "vmaf_v0.6.1neg";

/// Scores of a picture. Without the feature `libvmaf`, or with a side below 64 pixels, only PSNR is
/// there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// VMAF by [`MODEL`], 0 to 100.
    pub vmaf: Option<f64>,
    /// VMAF by [`MODEL_NEG`], 0 to 100.
    pub vmaf_neg: Option<f64>,
    /// Structural similarity, 0 to 1.
    pub ssim: Option<f64>,
    /// Peak signal to noise ratio in dB, at most 60: equal pictures have no noise.
    pub psnr_db: f64,
}

/// Why a picture has no scores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// The pictures differ in size.
    #[error("the received picture is {received:?} and the reference {reference:?} pixels")]
    Sizes {
        /// Width and height.
        received: (usize, usize),
        /// Width and height.
        reference: (usize, usize),
    },
    /// A function of libvmaf failed.
    #[error("libvmaf: {function} failed with {code}")]
    Library {
        /// Its name.
        function: &'static str,
        /// What it returned.
        code: i32,
    },
}

/// Whether VMAF and SSIM are there.
pub const fn has_libvmaf() -> bool {
    cfg!(feature = "libvmaf")
}

/// Scores a received picture. `references` are the sent picture, between the ones before and after
/// it in the film.
///
/// # Errors
/// If the sizes differ, or libvmaf fails.
pub fn score(references: [&Luma; 3], received: &Luma) -> Result<Scores, ScoreError> {
    for reference in references {
        if reference.size() != received.size() {
            let (received, reference) = (received.size(), reference.size());
            return Err(ScoreError::Sizes { received, reference });
        }
    }
    let psnr_db = references[1].psnr_db(received);
    #[cfg(feature = "libvmaf")]
    let scores = libvmaf::score(references, received, psnr_db)?;
    #[cfg(not(feature = "libvmaf"))]
    let scores = Scores { vmaf: None, vmaf_neg: None, ssim: None, psnr_db };
    Ok(scores)
}

#[cfg(test)]
mod tests;
