//! C and C++ programs use the library: `c/border.c` plain, under sanitizers and under valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FLAGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
const LIBRARIES: [&str; 4] = ["-lgcc_s", "-lpthread", "-ldl", "-lm"];

fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The newest static library of this build.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libweir_capi") && name.ends_with(".a")
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let newest =
        files.filter(is_library).max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.expect("cargo built the library beside this test")
}

/// Whether a program is installed. If not, prints the line that marks the test as skipped.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Compiles `c/border.c` with these options, and returns the path of the program.
fn compile(folder: &Path, options: &[&str]) -> PathBuf {
    let program = folder.join("border");
    let mut cc = Command::new("cc");
    cc.arg("-std=c11").args(FLAGS).args(options).arg("-I").arg(source().join("include"));
    cc.arg(source().join("tests/c/border.c")).arg(library()).args(LIBRARIES);
    succeed(cc.arg("-o").arg(&program));
    program
}

#[test]
fn a_c_program_calls_under_each_controller_and_garbage_is_an_error_code() {
    if !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(&mut Command::new(compile(folder.path(), &["-O1"])));
    println!("{said}");
    assert_eq!(said.lines().count(), 2 * weir::Algorithm::all().len());
}

#[test]
fn the_sanitizers_of_addresses_and_undefined_behaviour_find_nothing() {
    if !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }").unwrap();
    let options = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = folder.path().join("probe");
    let mut cc = Command::new("cc");
    cc.args(options).arg(probe).arg("-o").arg(&program);
    let works = cc.output().is_ok_and(|output| output.status.success())
        && Command::new(program).output().is_ok_and(|output| output.status.success());
    if !works {
        println!("skipped: the C compiler has no sanitizers, or they do not run here");
        return;
    }
    succeed(&mut Command::new(compile(folder.path(), &options)));
}

#[test]
fn valgrind_finds_no_error_and_no_leak() {
    if !has("cc") || !has("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &["-g"]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    let suppressions = source().join("tests/c/valgrind.supp");
    valgrind.arg(format!("--suppressions={}", suppressions.display()));
    succeed(valgrind.arg("--errors-for-leak-kinds=definite,indirect,possible").arg(program));
}

#[test]
fn a_cpp_compiler_takes_the_header() {
    if !has("c++") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program.cpp");
    let text = "#include <weir.h>\n\
        int main() {\n\
        weir_settings settings;\n\
        weir_controller *controller = nullptr;\n\
        if (weir_settings_init(&settings, sizeof settings) != WEIR_STATUS_OK) return 1;\n\
        if (weir_controller_new(\"nada\", &settings, &controller) != WEIR_STATUS_OK) return 2;\n\
        weir_target target = {};\n\
        target.struct_size = sizeof target;\n\
        if (weir_controller_target(controller, &target) != WEIR_STATUS_OK) return 3;\n\
        weir_controller_free(controller);\n\
        return target.bitrate_bps == settings.start_bitrate_bps ? 0 : 4;\n\
        }\n";
    std::fs::write(&program, text).unwrap();
    let binary = folder.path().join("program");
    let mut cpp = Command::new("c++");
    cpp.arg("-std=c++17").args(FLAGS).arg("-I").arg(source().join("include"));
    cpp.arg(&program).arg(library()).args(LIBRARIES).arg("-o").arg(&binary);
    succeed(&mut cpp);
    succeed(&mut Command::new(binary));
}
