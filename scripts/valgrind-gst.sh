#!/bin/sh
# Runs the short tests of the GStreamer plugin under valgrind. It fails at an invalid access and at
# memory that is definitely lost by code of the plugin. GLib and GStreamer keep their types and
# registries until the end, and those blocks do not count.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}/gst
program=$(cargo test --quiet --no-run --message-format=json --manifest-path crates/gst/Cargo.toml \
    --target-dir "$target" --test weircc |
    sed -n 's/.*"executable":"\([^"]*weircc[^"]*\)".*/\1/p')
suppressions=/usr/share/gstreamer-1.0/gst.supp
[ -f "$suppressions" ] || suppressions=/dev/null
# Tests whose subject is the time of a release, or a probe that a slow sender does not make, are left
# out: under valgrind everything takes twenty times as long.
G_SLICE=always-malloc G_DEBUG=gc-friendly GST_REGISTRY_FORK=no valgrind --quiet --error-exitcode=1 \
    --leak-check=full --errors-for-leak-kinds=none --suppressions="$suppressions" \
    --suppressions=crates/gst/valgrind.supp "$program" --test-threads=1 \
    state_changes flush raw_feedback unknown_controller events_keep sessions_event
