#!/bin/sh
# Formats Rust, TypeScript, JavaScript, CSS, shell and Python. With --check it changes nothing, and
# fails if a file is not formatted. A formatter that is not installed is skipped, with a line that
# says so.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --check "$@"
cd "$(dirname "$0")/../.."

# either WRITE CHECK: prints CHECK with --check, else WRITE.
case ${1:-} in
    --check) either() { echo "$2"; } ;;
    *) either() { echo "$1"; } ;;
esac
failed=
# run COMMAND...: runs a command without its empty words, and notes a failure, so that the next tool
# still runs.
run() {
    for word in "$@"; do
        shift
        [ -z "$word" ] || set -- "$@" "$word"
    done
    "$@" || failed="$failed ${1##*/}"
}
left_out() {
    echo "format: skipped: $1: scripts/build/deps.sh --test installs it" >&2
}

check=$(either '' --check)
run cargo fmt --all "$check"
for apart in bench/peers library/gst library/noq library/quinn library/str0m library/webrtc-rs fuzz examples/bare-metal examples/camera examples/gstreamer \
    examples/own-controller examples/udp examples/webrtc-rs ./arena/*/Cargo.toml; do
    run cargo fmt --manifest-path "${apart%/Cargo.toml}/Cargo.toml" "$check"
done

biome=lab/web/node_modules/.bin/biome
if [ -x "$biome" ]; then
    run "$biome" format "$(either --write '')"
else
    left_out 'TypeScript: no Biome'
fi

if command -v shfmt > /dev/null; then
    run shfmt "$(either --write --diff)" scripts/*.sh scripts/*/*.sh examples/*/*.sh .ci/run
else
    left_out 'shell: no shfmt'
fi

ruff=${CARGO_TARGET_DIR:-target}/python/bin/ruff
[ -x "$ruff" ] || ruff=ruff
if command -v "$ruff" > /dev/null; then
    run "$ruff" format --quiet "$(either '' --diff)"
else
    left_out 'Python: no ruff'
fi

if [ -n "$failed" ]; then
    echo "format: FAILED:$failed${check:+; scripts/build/format.sh writes what they ask for}" >&2
    exit 1
fi
