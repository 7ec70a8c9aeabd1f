#!/bin/sh
# Measures what the C functions of libweir cost beside the same calls from Rust, in one run, and prints a
# Markdown table. The times are those of this machine. Nothing else should run on it; the ratio is less
# sensitive to that than the times.
#
# It needs jq.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
cargo bench --quiet --package weir-capi --bench border -- \
    --warm-up-time 1 --measurement-time 3 --noplot > /dev/null

# mean CONTROLLER SIDE: ns a packet. One iteration of the bench has 10,000 packets.
mean() {
    jq '.mean.point_estimate / 10000' "$target/criterion/packet, send and feedback/$1_$2/new/estimates.json"
}
echo '| controller | from Rust, ns a packet | through C, ns a packet | border, ns a packet | ratio |'
echo '|---|---:|---:|---:|---:|'
# The order of the catalogue.
for controller in gcc nada scream scream-v2 sluice; do
    echo "$(mean "$controller" Rust) $(mean "$controller" C)" | awk -v name="$controller" '
        { printf "| `%s` | %.1f | %.1f | %.1f | %.2f |\n", name, $1, $2, $2 - $1, $2 / $1 }'
done
