#!/bin/sh
# Runs the short tests of the GStreamer plugin under valgrind. It fails at an invalid access and at the
# use of memory without a value. It does not look for leaks, because GLib and GStreamer keep their types
# until the end. The test `soak` measures the growth of the memory instead.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}/gst
# program TEST: the executable of a test.
program() {
    cargo test --quiet --no-run --message-format=json --manifest-path library/gst/Cargo.toml \
        --target-dir "$target" --test "$1" |
        sed -n "s/.*\"executable\":\"\([^\"]*$1[^\"]*\)\".*/\1/p"
}
# Tests whose subject is the time of a release, or a probe that a slow sender does not make, are left
# out: under valgrind everything takes twenty times as long.
# The tests register the plugin themselves, so GStreamer must not find it on its path as well.
unset GST_PLUGIN_PATH
export GST_REGISTRY_FORK=no
run() {
    valgrind --quiet --error-exitcode=1 --leak-check=no "$@"
}
run "$(program weircc)" \
    --test-threads=1 state_changes raw_feedback unknown_controller events_keep sessions_event a_flush a_renegotiation
run "$(program udp)" --test-threads=1 an_end_of_the_media caps_without
