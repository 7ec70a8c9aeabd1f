//! Embeds the report viewer into the program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join("report.html"), viewer()?)
}

/// Folder of this crate, read at run time: a checkout may be moved after this script was compiled.
fn crate_folder() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR").into()
}

/// Page of the report viewer. Empty if it has not been built: the rest builds without it. In the
/// clone, `report.html` is a link to the page that `make web` builds; the published package
/// contains the page itself.
fn viewer() -> io::Result<String> {
    let page = crate_folder().join("report.html");
    let web = crate_folder().join("../web");
    // Cargo treats a missing path as changed in every build, so watch one that exists.
    let watched = [&page, &web.join("dist"), &web].into_iter().find(|path| path.exists()).cloned();
    if let Some(path) = watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if page.is_file() { fs::read_to_string(page) } else { Ok(String::new()) }
}
