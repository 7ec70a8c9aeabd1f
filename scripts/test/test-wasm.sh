#!/bin/bash
# Simulates twenty scenarios on this machine, in WebAssembly under Node and in Chromium, and as aarch64 in qemu, and
# compares the hashes of their records: they must be equal. Prints how long each took. What this machine lacks is
# skipped, and said. It takes what `make playground` built; with --quick it builds the simulator without optimisations,
# which gives the same records, leaves out aarch64 (scripts/test/test-arm.sh has it), and tests the playground's page, too. With
# --missing it only prints why it cannot build; nothing if it can.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept '--quick --missing' "$@"
cd "$(dirname "$0")/../.."

triple=wasm32-unknown-unknown
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wasm=$target/$triple/wasm/weir_wasm.wasm
page=$PWD/lab/web/dist/playground.html
native=$target/wasm/examples/fingerprints
profile=(--profile wasm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${1:-}" = --missing ]; then
    rustup target list --installed 2> /dev/null | grep -qx "$triple" || echo "no $triple: rustup target add $triple"
    exit
elif [ "${1:-}" = --quick ]; then
    wasm=$target/$triple/debug/weir_wasm.wasm
    page=$target/playground.html
    native=$target/debug/examples/fingerprints
    profile=()
    cargo build --quiet --package weir-wasm --target "$triple"
    (cd lab/web && node playground.mjs "$wasm" "$page")
elif [ ! -f "$wasm" ] || [ ! -f "$page" ]; then
    echo 'test-wasm: no playground: make playground' >&2
    exit 2
fi
cargo build --quiet "${profile[@]}" --package weir-wasm --example fingerprints
"$native" --ask > "$work/asked"
"$native" > "$work/native" 2> "$work/time"
echo "test-wasm: native, $(cat "$work/time")"

# compare NAME COMMAND...: the command's answers must be those of this machine.
compare() {
    local name=$1
    shift
    "$@" < "$work/asked" > "$work/answers" 2> "$work/time" || { cat "$work/time" >&2 && exit 1; }
    diff "$work/native" "$work/answers" > "$work/difference" || {
        echo "test-wasm: $name gives other records:" >&2
        cat "$work/difference" >&2
        exit 1
    }
    echo "test-wasm: $name gives the same $(wc -l < "$work/asked") records, $(tail -n 1 "$work/time")"
}
compare Node node lab/web/fingerprints.mjs "$wasm"
if [ -x "${CHROMIUM:-/usr/bin/chromium}" ]; then
    compare Chromium node lab/web/fingerprints.mjs "$page"
else
    echo 'test-wasm: skipped Chromium: apt-get install chromium'
fi
if [ "${1:-}" = --quick ]; then
    (cd lab/web && PLAYGROUND=$page npx vitest run --retry 1 test/playground.test.ts)
    exit
fi
reason=$(scripts/test/missing-for-arm.sh)
if [ -z "$reason" ]; then
    compare 'aarch64 in qemu' cargo run --quiet --package weir-wasm --example fingerprints \
        --target aarch64-unknown-linux-gnu
else
    echo "test-wasm: skipped aarch64: $reason"
fi
