#!/bin/bash
# Prints how fast the simulator is in WebAssembly beside this machine's own code, as a Markdown table: the twenty runs of
# scripts/test/test-wasm.sh, three rounds in turn, the shortest time of each. The last line is the time from a change in the
# playground to its curves. It needs a machine without other work, `make playground` and Chromium.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wasm=$target/wasm32-unknown-unknown/wasm/weir_wasm.wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -f "$wasm" ] || [ ! -f lab/web/dist/playground.html ]; then
    echo 'wasm-speed: no playground: make playground' >&2
    exit 2
fi
cargo build --quiet --profile wasm --package weir-wasm --example fingerprints
native=$target/wasm/examples/fingerprints
"$native" --ask > "$work/asked"

# timed NAME COMMAND...: adds the seconds that the command says last to the times of NAME.
timed() {
    local name=$1
    shift
    "$@" < "$work/asked" 2> "$work/time" > /dev/null || { cat "$work/time" >&2 && exit 1; }
    tail -n 1 "$work/time" | cut -d ' ' -f 1 >> "$work/$name"
}
for _ in 1 2 3; do
    timed native "$native"
    timed node node lab/web/fingerprints.mjs "$wasm"
    timed chromium node lab/web/fingerprints.mjs lab/web/dist/playground.html
done

least() { sort -n "$work/$1" | head -n 1; }
row() { # TEXT NAME
    awk -v text="$1" -v own="$(least "$2")" -v native="$(least native)" \
        'BEGIN { printf "| %s | %.2f | %.2f |\n", text, own, own / native }'
}
echo '| where | twenty runs, s | times as long |'
echo '|---|---|---|'
row "this machine's own code" native
row "WebAssembly in Node $(node --version | sed 's/^v//;s/\..*//')" node
row "WebAssembly in Chromium, in the page's worker" chromium
echo
node lab/web/fingerprints.mjs --page lab/web/dist/playground.html
