//! Builds the GStreamer plugin and installs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Output of a command, which must succeed.
fn text(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_gstreamer_plugin_is_installed_found_and_removed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let missing = text(&mut Command::new(root.join("scripts/test/missing-for-gst.sh")));
    if !missing.is_empty() {
        println!("skipped: no GStreamer: apt-get install {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("lib/gstreamer-1.0");
    // Where its own tests and those of the examples build it, too.
    let target = Path::new(WEIR).ancestors().nth(2).unwrap().join("gst");
    let script = |action: &str| {
        let mut script = Command::new(root.join("scripts/build/install-gst.sh"));
        script.arg(action).env("PREFIX", folder.path()).env("PROFILE", "dev");
        script.env("CARGO_TARGET_DIR", &target).env_remove("DESTDIR");
        script
    };
    let inspect = |element: &str| {
        let mut inspect = Command::new("gst-inspect-1.0");
        inspect.arg(element).env("GST_PLUGIN_PATH", &plugins).env_remove("GST_PLUGIN_PATH_1_0");
        inspect.env("GST_REGISTRY", folder.path().join("registry"));
        inspect
    };
    let installed = text(&mut script("install"));
    assert_eq!(installed.trim(), plugins.join("libgstweir.so").to_str().unwrap());
    for element in ["weircc", "weirshaper", "weirtwccparse"] {
        let page = text(&mut inspect(element));
        assert!(page.contains(installed.trim()), "{page}");
    }
    text(&mut script("uninstall"));
    assert_eq!(fs::read_dir(&plugins).unwrap().count(), 0);
    let page = inspect("weircc").output().unwrap();
    assert!(!String::from_utf8_lossy(&page.stdout).contains(installed.trim()));
    let relative = script("install").env("PREFIX", "here").output().unwrap();
    assert_eq!(relative.status.code(), Some(2));
}
