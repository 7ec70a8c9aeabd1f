//! The picture of the browsers' camera: static colour bars with noise that changes in each frame.
//!
//! This is the default; a scenario can ask for less or more noise, or for a page of fine detail.
//!
//! Noise lets an encoder follow its target over the lab's whole range of bitrates. Measured with
//! VP8 at 720p30: 0.1 Mbit/s with the coarsest quantizer, 13 Mbit/s with the median one. A detailed
//! moving pattern is worse: it needs 0.8 Mbit/s with the coarsest quantizer. Below that the encoder
//! drops most frames, and then the application limits the controller's recovery.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use weir::units::TimeDelta;
use weir_emu::Limits;
use weir_record::unfinished::{self, HIDDEN, UnfinishedFile};
use weir_scenario::call::{Content, Picture, content_name};

use crate::measure::quality::{camera_file, drawn};

/// Length of the file, which is played in a loop. It is not compressed, because decoding would take
/// processor time from the encoders. It is short, because 720p takes 41 MB per second.
const LOOP_SECONDS: u32 = 2;
/// The same with tags. It is longer, because a tag says only which frame of the loop it is.
const TAGGED_LOOP_SECONDS: u32 = 4;
/// Number of the stream in these tags.
const STREAM: u8 = 0;
/// Strength of the noise on ffmpeg's scale of 0 to 100. At the second, the coarsest quantizer needs
/// 0.2 Mbit/s for 30 frames a second of 720p, and at the third several Mbit/s.
const EASY_NOISE: u32 = 3;
const NOISE: u32 = 12;
const HARD_NOISE: u32 = 36;
/// Time in seconds from one jump of the screen's page to the next. It must divide its loop.
const PAGE_SECONDS: u32 = 2;
/// Side in pixels of the squares of which the page consists.
const CELL: u32 = 4;
const SCREEN_LOOP_SECONDS: u32 = 4;
/// 132 frames of Big Buck Bunny in 720p, (c) Blender Foundation, CC BY 3.0 (NOTICE.md).
const FILM: &[u8] = include_bytes!("../../content/big-buck-bunny.mp4");
const FILM_FPS: u32 = 30;
const FILM_LOOP_SECONDS: u32 = 4;
/// Time limit for ffmpeg, which makes a few seconds of video.
const FFMPEG_PATIENCE: Duration = Duration::from_secs(600);
/// Maximum size of all pictures of the loop as JPEG.
const JPEG_BYTES_MAX: usize = 1_000_000_000;
/// File mode: readable by all, because the browsers may run as another user.
const READ_BY_ALL: u32 = 0o644;

/// The video file for a camera of this size. It is created on first use and kept in the user's
/// cache. `ffmpeg` is the command without arguments. With `tagged`, each frame has its number.
///
/// # Errors
/// A one-line reason for the record. Without the file, the browser shows its own, simpler pattern.
pub(crate) fn file(video: &Picture, tagged: bool, ffmpeg: Command) -> Result<PathBuf, String> {
    let folder = cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
        .ok_or("no folder to keep the camera's video in: set XDG_CACHE_HOME or HOME")?;
    let Picture { width, height, fps, content, .. } = *video;
    let name = match content {
        Content::Noise => "bars",
        other => content_name(other),
    };
    let tags = if tagged { "-tagged" } else { "" };
    let path = folder.join(format!("{name}-{width}x{height}-{fps}{tags}.y4m"));
    unfinished::clean(&folder, HIDDEN);
    if path.is_file() {
        return Ok(path);
    }
    make(&folder, &path, video, tagged, ffmpeg).map_err(|cause| {
        format!("the camera shows the browser's own pattern, which may not fill a link: {cause}")
    })?;
    Ok(path)
}

/// The cache folder according to the XDG base directory specification, which ignores relative
/// paths.
fn cache_folder(
    xdg: Option<impl AsRef<OsStr>>,
    home: Option<impl AsRef<OsStr>>,
) -> Option<PathBuf> {
    let xdg = xdg.map(|folder| PathBuf::from(folder.as_ref())).filter(|path| path.is_absolute());
    let base = xdg.or_else(|| home.map(|folder| Path::new(folder.as_ref()).join(".cache")));
    base.map(|folder| folder.join("weir"))
}

/// Links the file into `folder`, for browsers that cannot enter the user's cache.
pub(crate) fn lend(file: &Path, folder: &Path) -> Result<PathBuf, String> {
    let name = folder.join("camera.y4m");
    let lent = fs::set_permissions(file, fs::Permissions::from_mode(READ_BY_ALL))
        .and_then(|()| fs::hard_link(file, &name))
        // Linking fails if the folder is on another disk.
        .or_else(|_| fs::copy(file, &name).map(drop));
    match lent {
        Ok(()) => Ok(name),
        Err(error) => Err(format!("cannot give {} to the browsers: {error}", file.display())),
    }
}

/// The pictures of a camera's file as JPEG of the best quality, one behind the other, for a page
/// that draws them. `ffmpeg` is the command without arguments.
///
/// # Errors
/// If ffmpeg does not run, or refuses the file.
pub(crate) fn jpegs(file: &Path, mut ffmpeg: Command) -> io::Result<Vec<u8>> {
    ffmpeg.args(["-v", "error", "-i"]).arg(file).args(["-q:v", "2", "-f", "mjpeg", "pipe:1"]);
    let limits = Limits { time: FFMPEG_PATIENCE, bytes: JPEG_BYTES_MAX };
    let output = weir_emu::output(&mut ffmpeg, limits)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let cause = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(cause.lines().next().unwrap_or("ffmpeg failed").to_owned()))
}

/// Length of the loop with tags.
pub(crate) fn tagged_loop() -> TimeDelta {
    TimeDelta::from_secs(TAGGED_LOOP_SECONDS.into())
}

fn make(
    folder: &Path,
    path: &Path,
    video: &Picture,
    tagged: bool,
    mut ffmpeg: Command,
) -> Result<(), String> {
    let unwritable = |error| format!("cannot write in {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(unwritable)?;
    if let Some(painter) = drawn::painter(video.content) {
        return draw(folder, path, video, tagged, painter).map_err(unwritable);
    }
    // The file gets its final name only when it is complete: another lab may look for it at the
    // same time.
    let film = film(video.content).map_err(unwritable)?;
    let mut unfinished = UnfinishedFile::new(folder).map_err(unwritable)?;
    // ffmpeg keeps the file lock, too.
    let output = unfinished.file().try_clone().map_err(unwritable)?;
    let (source, seconds) = pattern(video);
    let seconds = if tagged { TAGGED_LOOP_SECONDS } else { seconds };
    ffmpeg.args(["-v", "error"]);
    match &film {
        Some(film) => {
            let film = film.try_clone().map_err(unwritable)?;
            ffmpeg.args(["-i", "pipe:0", "-vf", &source]).stdin(film)
        }
        None => ffmpeg.args(["-f", "lavfi", "-i", &source]).stdin(Stdio::null()),
    };
    ffmpeg.args(["-t", &seconds.to_string()]);
    ffmpeg.args(["-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "pipe:1"]);
    ffmpeg.stdout(output).stderr(Stdio::null());
    let status =
        weir_emu::status(&mut ffmpeg, FFMPEG_PATIENCE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "ffmpeg is missing: apt-get install ffmpeg".to_owned(),
            _ => format!("cannot run ffmpeg ({error})"),
        })?;
    if !status.success() {
        return Err(format!("ffmpeg failed with {status}"));
    }
    if tagged {
        camera_file::draw(unfinished.file(), STREAM).map_err(|error| error.to_string())?;
    }
    let readable = fs::Permissions::from_mode(READ_BY_ALL);
    unfinished.file().set_permissions(readable).map_err(unwritable)?;
    unfinished.rename_to(path).map_err(unwritable)
}

/// Makes the file of a content that is drawn.
fn draw(
    folder: &Path,
    path: &Path,
    video: &Picture,
    tagged: bool,
    painter: drawn::Painter,
) -> std::io::Result<()> {
    let mut unfinished = UnfinishedFile::new(folder)?;
    drawn::write(&mut BufWriter::new(unfinished.file()), video, TAGGED_LOOP_SECONDS, painter)?;
    if tagged {
        camera_file::draw(unfinished.file(), STREAM)?;
    }
    unfinished.file().set_permissions(fs::Permissions::from_mode(READ_BY_ALL))?;
    unfinished.rename_to(path)
}

/// The clip as an open file without a name, if the content is the film. ffmpeg may run as a user
/// who cannot enter the folder of a named one.
fn film(content: Content) -> std::io::Result<Option<File>> {
    if content != Content::Film {
        return Ok(None);
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(FILM)?;
    file.rewind()?;
    Ok(Some(file))
}

/// The picture in the words of ffmpeg's filters, and the seconds after which it repeats.
fn pattern(video: &Picture) -> (String, u32) {
    let Picture { width, height, fps, .. } = *video;
    let noise = match video.content {
        Content::Easy => EASY_NOISE,
        Content::Noise => NOISE,
        Content::Hard => HARD_NOISE,
        // The clip has 25 frames a second. Each is shown once, so that every camera's frame differs
        // from the one before.
        Content::Film => {
            let frames = format!("setpts=N/{FILM_FPS}/TB,fps={fps},scale={width}:{height}");
            return (frames, FILM_LOOP_SECONDS);
        }
        // A page that scrolls by a line a frame, of which one frame in many is shown.
        // Drawn without ffmpeg.
        Content::Head | Content::Slides => return (String::new(), TAGGED_LOOP_SECONDS),
        Content::Screen => {
            let held = PAGE_SECONDS * fps;
            let (columns, rows) = (width.div_ceil(CELL), height.div_ceil(CELL));
            let page = format!(
                "cellauto=s={columns}x{rows}:r={fps}:rule=110:seed=1:full=1,\
                 scale={width}:{height}:flags=neighbor"
            );
            return (format!("{page},framestep={held},fps={fps}"), SCREEN_LOOP_SECONDS);
        }
    };
    let bars = format!("smptehdbars=s={width}x{height}:r={fps},noise=alls={noise}:allf=t");
    (bars, LOOP_SECONDS)
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
            false,
            Command::new("true"),
        );
        assert!(cause.unwrap_err().contains("/proc/weir"));
    }
}
