#!/bin/bash
# A Markdown table of what sluice reaches with senders that cannot do all that it asks for. All runs are simulated.
#
# usage: scripts/results/degraded-senders.sh [SEEDS]
#
# A sender that does not pace has a pacing rate of 100 times the target: each frame leaves at once, as from an
# encoder without a pacer or from a server that only forwards. A switch of layers waits for a key frame: there the
# source of RFC 8593 ignores its target for 1 s after a change.
set -euo pipefail
case ${1:-5} in
    --help | -h)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit
        ;;
    *[!0-9]* | 0)
        echo "degraded-senders: '$1' is no number of seeds; see scripts/results/degraded-senders.sh --help" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/../.."
seeds=${1:-5}
program=${WEIR:-weir}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scenarios=(goals/edge/steps goals/edge/codel rfc8867/5.1)

unpaced=(--set sluice.pacing=100 --set sluice.pacing_drain=100)

# row LABEL REACTION [OPTION...]: one line for each scenario.
row() {
    local label=$1 reaction=$2 scenario file
    shift 2
    for scenario in "${scenarios[@]}"; do
        file=$folder/${scenario##*/}.toml
        sed "s/reaction = \"100ms\"/reaction = \"$reaction\"/" "scenarios/$scenario.toml" > "$file"
        grep -q "reaction = \"$reaction\"" "$file"
        "$program" research score "$file" --controller sluice --seeds "$seeds" "$@" --json |
            jq -r --arg sender "$label" --arg scenario "$scenario" '
                def mean: add / length;
                def fixed($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
                .runs | "| \($sender) | `\($scenario)` | \((map(.rate_mbps) | mean) / (map(.available_mbps) | mean) | fixed(3)) | \(
                    map(.network_ms) | mean | fixed(0)) | \(map(.sender_ms) | mean | fixed(0)) | \(
                    map(.loss_ratio) | mean * 100 | fixed(2)) |"'
    done
}

echo "| sender | scenario | received / available | queue p95, ms | sender p95, ms | lost, % |"
echo "|---|---|---:|---:|---:|---:|"
row "does all" 100ms
row "does not pace" 100ms "${unpaced[@]}"
row "switches layers, paces" 1s
row "switches layers, does not pace" 1s "${unpaced[@]}"
