#!/bin/bash
# Measures what builds cost: processor time and wall time of each program that people build, from nothing,
# and the crates that take most of it. The table is the one of CONTRIBUTING.md. It takes some 15 minutes
# on two cores, in folders of its own that it removes. Sources must have been fetched before
# (`cargo fetch`), and the report viewer built (`make web`).
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept '--quick' "$@"
cd "$(dirname "$0")/../.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export CARGO_TARGET_DIR=$place/target

# measure WHAT CARGO-ARGUMENT...: one row.
measure() {
    local what=$1 begun ended user sys
    shift
    begun=$(date +%s%N)
    TIMEFORMAT='%U %S'
    { time cargo build --quiet --locked --package weir-cli --timings "$@" > "$place/log" 2>&1; } 2> "$place/time" || {
        cat "$place/log" >&2
        exit 1
    }
    ended=$(date +%s%N)
    read -r user sys < "$place/time"
    printf '| %s | %.0f | %.0f |\n' "$what" "$(jq -n "$user + $sys")" "$(((ended - begun) / 1000000000))"
}

# The five units of the last build that took longest.
heaviest() {
    local page
    page=$(find "$CARGO_TARGET_DIR/cargo-timings" -name 'cargo-timing-2*.html' | sort | tail -n 1)
    # shellcheck disable=SC2016 # the dollars are JavaScript's
    node -e '
        const page = require("fs").readFileSync(process.argv[1], "utf8");
        const units = JSON.parse(/UNIT_DATA = (\[.*?\]);/s.exec(page)[1]);
        units.sort((a, b) => b.duration - a.duration);
        const named = units.slice(0, 5).map((unit) => `${unit.name} ${unit.duration.toFixed(0)} s`);
        console.log(`  longest: ${named.join(", ")}`);
    ' "$page" >&2
}

echo "| build, on $(nproc) cores | processor time, s | wall time, s |"
echo '|---|---:|---:|'
measure 'the demo: simulator and report' --profile demo --no-default-features
heaviest
measure 'the demo, then: real calls' --profile demo --no-default-features --features calls
heaviest
if [ "${1:-}" != --quick ]; then
    rm -rf "$CARGO_TARGET_DIR"
    measure 'the whole program (make build)' --release
    heaviest
    rm -rf "$CARGO_TARGET_DIR"
    measure 'what is published (make dist)' --profile dist
    heaviest
fi
