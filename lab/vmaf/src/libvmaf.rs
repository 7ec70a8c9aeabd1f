//! The only code of the lab that calls libvmaf.

use std::ffi::CString;
use std::ptr;
use std::sync::Mutex;

use vmaf_head_sys as sys;

use crate::{Luma, MODEL, MODEL_NEG, ScoreError, Scores};

/// Index of the picture that is scored, between its neighbours.
const MIDDLE: u32 = 1;
/// The feature of libvmaf whose score is SSIM.
const SSIM: &str = "float_ssim";

/// Its filters leave the memory of pictures smaller than this, and the process crashes.
const LEAST_SIDE: usize = 64;

/// libvmaf chooses its code for this processor in variables of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Scores the middle one of three pictures.
pub(crate) fn score(
    references: [&Luma; 3],
    received: &Luma,
    psnr_db: f64,
) -> Result<Scores, ScoreError> {
    let (width, height) = received.size();
    if width.min(height) < LEAST_SIDE {
        return Ok(Scores { vmaf: None, vmaf_neg: None, ssim: None, psnr_db });
    }
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // The models are dropped after the context that uses them.
    let models = [Model::load(MODEL)?, Model::load(MODEL_NEG)?];
    let context = Context::new()?;
    for model in &models {
        // SAFETY: both pointers are valid until they are dropped below.
        let code = unsafe { sys::vmaf_use_features_from_model(context.raw, model.raw) };
        check("vmaf_use_features_from_model", code)?;
    }
    let ssim = name(SSIM);
    // SAFETY: the context is valid, the name ends with a zero byte, and no options are given.
    let code = unsafe { sys::vmaf_use_feature(context.raw, ssim.as_ptr(), ptr::null_mut()) };
    check("vmaf_use_feature", code)?;
    for (index, reference) in references.into_iter().enumerate() {
        context.read(reference, received, index as u32)?;
    }
    context.flush()?;
    let mut similarity = 0.0;
    // SAFETY: the pointers are valid for the call.
    let code = unsafe {
        sys::vmaf_feature_score_at_index(context.raw, ssim.as_ptr(), &mut similarity, MIDDLE)
    };
    check("vmaf_feature_score_at_index", code)?;
    Ok(Scores {
        vmaf: Some(context.score(&models[0])?),
        vmaf_neg: Some(context.score(&models[1])?),
        ssim: Some(similarity),
        psnr_db,
    })
}

fn name(text: &str) -> CString {
    CString::new(text).expect("names have no zero byte")
}

fn check(function: &'static str, code: i32) -> Result<(), ScoreError> {
    if code == 0 { Ok(()) } else { Err(ScoreError::Library { function, code }) }
}

struct Model {
    raw: *mut sys::VmafModel,
}

impl Model {
    fn load(version: &str) -> Result<Self, ScoreError> {
        let version = name(version);
        let flags = u64::from(sys::VmafModelFlags_VMAF_MODEL_FLAGS_DEFAULT);
        let mut config = sys::VmafModelConfig { name: version.as_ptr(), flags };
        let mut raw = ptr::null_mut();
        // SAFETY: libvmaf copies the names, and writes the pointer.
        let code = unsafe { sys::vmaf_model_load(&mut raw, &mut config, version.as_ptr()) };
        check("vmaf_model_load", code)?;
        Ok(Self { raw })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and is dropped once.
        unsafe { sys::vmaf_model_destroy(self.raw) };
    }
}

struct Context {
    raw: *mut sys::VmafContext,
}

impl Context {
    fn new() -> Result<Self, ScoreError> {
        let config = sys::VmafConfiguration {
            log_level: sys::VmafLogLevel_VMAF_LOG_LEVEL_NONE,
            n_threads: 0,
            n_subsample: 1,
            cpumask: 0,
            gpumask: 0,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: libvmaf writes the pointer.
        let code = unsafe { sys::vmaf_init(&mut raw, config) };
        check("vmaf_init", code)?;
        Ok(Self { raw })
    }

    fn read(&self, reference: &Luma, received: &Luma, index: u32) -> Result<(), ScoreError> {
        let mut reference = Picture::of(reference)?;
        let mut received = Picture::of(received)?;
        // SAFETY: both pictures were allocated by libvmaf, which takes them even if it fails.
        let code = unsafe {
            sys::vmaf_read_pictures(self.raw, &mut reference.raw, &mut received.raw, index)
        };
        reference.is_taken = true;
        received.is_taken = true;
        check("vmaf_read_pictures", code)
    }

    fn flush(&self) -> Result<(), ScoreError> {
        // SAFETY: no pictures mean the end of the film.
        let code =
            unsafe { sys::vmaf_read_pictures(self.raw, ptr::null_mut(), ptr::null_mut(), 0) };
        check("vmaf_read_pictures", code)
    }

    fn score(&self, model: &Model) -> Result<f64, ScoreError> {
        let mut score = 0.0;
        // SAFETY: the pointers are valid for the call.
        let code = unsafe { sys::vmaf_score_at_index(self.raw, model.raw, &mut score, MIDDLE) };
        check("vmaf_score_at_index", code)?;
        Ok(score)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is dropped once. An error leaves nothing to do.
        unsafe { sys::vmaf_close(self.raw) };
    }
}

/// A picture in memory of libvmaf.
struct Picture {
    raw: sys::VmafPicture,
    is_taken: bool,
}

impl Picture {
    fn of(luma: &Luma) -> Result<Self, ScoreError> {
        let (width, height) = luma.size();
        // SAFETY: the type is of integers and pointers, for which zero is a value.
        let mut raw: sys::VmafPicture = unsafe { std::mem::zeroed() };
        let format = sys::VmafPixelFormat_VMAF_PIX_FMT_YUV400P;
        // SAFETY: libvmaf fills the struct.
        let code =
            unsafe { sys::vmaf_picture_alloc(&mut raw, format, 8, width as u32, height as u32) };
        check("vmaf_picture_alloc", code)?;
        let start = raw.data[0].cast::<u8>();
        for (row, pixels) in luma.pixels().chunks_exact(width).enumerate() {
            // SAFETY: the plane has `height` rows of `stride` bytes, and `stride` is at least
            // `width`.
            unsafe {
                let to = start.offset(row as isize * raw.stride[0]);
                ptr::copy_nonoverlapping(pixels.as_ptr(), to, width);
            }
        }
        Ok(Self { raw, is_taken: false })
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        if !self.is_taken {
            // SAFETY: nobody else has it.
            unsafe { sys::vmaf_picture_unref(&mut self.raw) };
        }
    }
}
