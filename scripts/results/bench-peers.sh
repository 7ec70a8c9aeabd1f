#!/bin/sh
# Compares GCC of webrtc-rs, str0m and pion with ours on one feedback trace: ns per packet, and the
# ratio to ours. A stack whose toolchain or source is missing is left out, with a line that says so.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

# The estimator of str0m is private. Our program links its published source, in which two modules
# are made public and nothing else is changed.
made=target/peers
manifest=bench/peers/Cargo.toml
if ! cargo fetch --quiet --manifest-path "$manifest"; then
    echo 'bench-peers: skipped: the sources of the peers cannot be fetched' >&2
    exit 0
fi
source=$(cargo metadata --format-version 1 --offline --manifest-path "$manifest" |
    grep -o '"[^"]*/str0m-[0-9.]*/Cargo.toml"' | head -n 1 | tr -d '"')
rm -rf "$made/str0m"
mkdir -p "$made"
cp -R "$(dirname "$source")" "$made/str0m"
sed -i.as-published 's/^mod rtp_;/pub mod rtp_;/; s/^pub(crate) mod bwe_;/pub mod bwe_;/' \
    "$made/str0m/src/lib.rs"

trace=$PWD/$made/trace.txt
results=$made/results.tsv
export RUSTFLAGS='--cap-lints=allow'
cargo build --quiet --release --config "patch.crates-io.str0m.path='$PWD/$made/str0m'" \
    --manifest-path "$manifest" --target-dir "$made/build"
"$made/build/release/peers" trace "$trace"
"$made/build/release/peers" time "$trace" > "$results"
if command -v go > /dev/null; then
    # Go shows the output of a passing test only with -v.
    (cd bench/peers/pion && TRACE=$trace GOMAXPROCS=1 go test -count=1 -v -run TestTime .) |
        grep "^pion" >> "$results"
else
    echo 'bench-peers: pion left out: no Go (https://go.dev, 1.25 or later)' >&2
fi

sent=$(grep -c '^sent' "$trace")
heard=$(grep -c '^feedback' "$trace")
echo "$sent packets, $heard feedback packets; from a packet's sending to the target that its feedback leads to"
awk -F '\t' '
    BEGIN { printf "%-12s %12s %12s %18s\n", "stack", "ns a packet", "times ours", "last target kbit/s" }
    NR == 1 { ours = $2 }
    { printf "%-12s %12d %12.2f %18.0f\n", $1, $2, $2 / ours, $3 / 1000 }' "$results"
