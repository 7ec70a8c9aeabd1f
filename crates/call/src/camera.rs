//! The picture that the browsers' camera shows: still colour bars under noise that changes with each
//! frame.
//!
//! Noise lets an encoder follow its target over the whole range of the lab. Measured with VP8 at
//! 720p30: 0.1 Mbit/s at the coarsest quantizer, 13 Mbit/s at the middle one. A detailed moving
//! pattern does not: it needs 0.8 Mbit/s at the coarsest, and below that the encoder drops most
//! frames, so that the controller's recovery is limited by the application.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_lab::scenario::call::Picture;
use weir_lab::unfinished::{self, HIDDEN, UnfinishedFile};

/// The file is played in a loop. Uncompressed, since decoding would take processor time from the
/// encoders, and short, since 720p takes 41 MB for each second.
const LOOP_SECONDS: &str = "2";
/// Of the noise, on ffmpeg's scale of 0 to 100. Twice as much leaves 0.5 Mbit/s at the coarsest.
const NOISE_STRENGTH: u32 = 12;
/// It is no secret, and the browsers may be another user's.
const READ_BY_ALL: u32 = 0o644;

/// The video file for a camera of this size, made on first use and kept in the user's cache. `ffmpeg`
/// is the bare command.
///
/// # Errors
/// One line for the record: without the file the browser shows its own, simpler pattern.
pub(crate) fn file(video: &Picture, ffmpeg: Command) -> Result<PathBuf, String> {
    let folder = cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
        .ok_or("no folder to keep the camera's video in: set XDG_CACHE_HOME or HOME")?;
    let Picture { width, height, fps, .. } = *video;
    let path = folder.join(format!("bars-{width}x{height}-{fps}.y4m"));
    unfinished::clean(&folder, HIDDEN);
    if path.is_file() {
        return Ok(path);
    }
    make(&folder, &path, video, ffmpeg).map_err(|cause| {
        format!("the camera shows the browser's own pattern, which may not fill a link: {cause}")
    })?;
    Ok(path)
}

/// As the XDG base directory specification says: a relative path does not count.
fn cache_folder(
    xdg: Option<impl AsRef<OsStr>>,
    home: Option<impl AsRef<OsStr>>,
) -> Option<PathBuf> {
    let xdg = xdg.map(|folder| PathBuf::from(folder.as_ref())).filter(|path| path.is_absolute());
    let base = xdg.or_else(|| home.map(|folder| Path::new(folder.as_ref()).join(".cache")));
    base.map(|folder| folder.join("weir"))
}

/// A name in `folder` for the file, so that a browser can read it that cannot enter the user's cache.
pub(crate) fn lend(file: &Path, folder: &Path) -> Result<PathBuf, String> {
    let name = folder.join("camera.y4m");
    let lent = fs::set_permissions(file, fs::Permissions::from_mode(READ_BY_ALL))
        .and_then(|()| fs::hard_link(file, &name))
        // The folder is on another disk.
        .or_else(|_| fs::copy(file, &name).map(drop));
    match lent {
        Ok(()) => Ok(name),
        Err(error) => Err(format!("cannot give {} to the browsers: {error}", file.display())),
    }
}

fn make(folder: &Path, path: &Path, video: &Picture, mut ffmpeg: Command) -> Result<(), String> {
    let unwritable = |error| format!("cannot write in {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(unwritable)?;
    // Under its own name only when it is whole: another lab may look for it at the same time.
    let mut unfinished = UnfinishedFile::new(folder).map_err(unwritable)?;
    // ffmpeg holds the lock, too.
    let output = unfinished.file().try_clone().map_err(unwritable)?;
    let Picture { width, height, fps, .. } = *video;
    let source =
        format!("smptehdbars=s={width}x{height}:r={fps},noise=alls={NOISE_STRENGTH}:allf=t");
    let status = ffmpeg
        .args(["-v", "error", "-f", "lavfi", "-i", &source, "-t", LOOP_SECONDS])
        .args(["-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "pipe:1"])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run ffmpeg ({error}): apt-get install ffmpeg"))?;
    if !status.success() {
        return Err(format!("ffmpeg failed with {status}"));
    }
    let readable = fs::Permissions::from_mode(READ_BY_ALL);
    unfinished.file().set_permissions(readable).map_err(unwritable)?;
    unfinished.rename_to(path).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_wants_it() {
        let none = None::<&str>;
        assert_eq!(cache_folder(Some("/c"), Some("/h")), Some(PathBuf::from("/c/weir")));
        assert_eq!(cache_folder(Some("c"), Some("/h")), Some(PathBuf::from("/h/.cache/weir")));
        assert_eq!(cache_folder(none, Some("/h")), Some(PathBuf::from("/h/.cache/weir")));
        assert_eq!(cache_folder(none, none), None);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let cause = make(
            Path::new("/proc/weir"),
            Path::new("/proc/weir/f"),
            &Picture::default(),
            Command::new("true"),
        );
        assert!(cause.unwrap_err().contains("/proc/weir"));
    }
}
