#!/bin/bash
# Simulates twenty scenarios on this machine, in WebAssembly under Node and in Chromium, and as aarch64 in qemu, and
# compares the hashes of their records: they must be equal. Prints how long each took. What this machine lacks is
# skipped, and said.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wasm=$target/wasm32-unknown-unknown/wasm/weir_wasm.wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -f "$wasm" ] || [ ! -f web/dist/playground.html ]; then
    echo 'test-wasm: no playground: make playground' >&2
    exit 2
fi
cargo build --quiet --profile wasm --package weir-wasm --example fingerprints
native=$target/wasm/examples/fingerprints
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
compare Node node web/fingerprints.mjs "$wasm"
if [ -x "${CHROMIUM:-/usr/bin/chromium}" ]; then
    compare Chromium node web/fingerprints.mjs web/dist/playground.html
else
    echo 'test-wasm: skipped Chromium: apt-get install chromium'
fi
reason=$(scripts/missing-for-arm.sh)
if [ -z "$reason" ]; then
    compare 'aarch64 in qemu' cargo run --quiet --package weir-wasm --example fingerprints \
        --target aarch64-unknown-linux-gnu
else
    echo "test-wasm: skipped aarch64: $reason"
fi
