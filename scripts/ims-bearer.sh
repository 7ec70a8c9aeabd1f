#!/bin/bash
# A Markdown table of a call beside TCP of its own terminal, with the default bearer and with bearers of its own:
# simulated, and as real calls of Chromium through the IMS (`weir ims`), whose PCRF decides about the bearers.
#
# usage: scripts/ims-bearer.sh FOLDER [CASE]...
#
# Makes the records of these cases (default: all) that are not in FOLDER yet, and prints the table of all that are there.
# WEIR is the program (default: `weir`). Real calls need root, 50 s each, and a machine that is otherwise quiet.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
shift
weir=${WEIR:-weir}
mkdir -p "$folder"
family=delft/4g-2

policy() { # the default policy with other lines
    sed "$1" testbeds/ims/policy.toml
}

simulated() { # NAME SCENARIO
    [ -e "$folder/$1" ] || "$weir" run "$family/$2" --controller gcc --out "$folder/$1" > /dev/null
}

real() { # NAME SCENARIO SED
    [ ! -e "$folder/$1" ] || return 0
    policy "$3" > "$folder/policy.toml"
    "$weir" ims up --policy "$folder/policy.toml" > /dev/null
    trap '"$weir" ims down > /dev/null' EXIT
    "$weir" call "$family/$2" --quick --attempts 1 --ims alice,bob --out "$folder/$1" > /dev/null
    "$weir" ims down > /dev/null
    trap - EXIT
}

make_case() {
    local none='s/^capacity_kbps.*/capacity_kbps = 1/'
    case $1 in
        1-near-simulated-default) simulated "$1" real ;;
        1-near-simulated-bearer) simulated "$1" real/bearer ;;
        1-near-simulated-small) simulated "$1" real/small ;;
        1-near-real-default) real "$1" real "$none" ;;
        1-near-real-bearer) real "$1" real '' ;;
        1-near-real-small) real "$1" real 's/^most_kbps.*/&\nguaranteed_percent = 20/' ;;
        1-near-simulated-audio) simulated "$1" real/audio-bearers ;;
        1-near-real-audio) real "$1" real/audio '' ;;
        2-far-simulated-default) simulated "$1" real/far ;;
        2-far-simulated-bearer) simulated "$1" real/far-bearer ;;
        2-far-real-default) real "$1" real/far "$none" ;;
        2-far-real-bearer) real "$1" real/far '' ;;
        3-edge-real-refused) real "$1" real/edge '' ;;
        4-four-simulated) simulated "$1" real/four ;;
        *)
            echo "no case $1" >&2
            exit 2
            ;;
    esac
}

cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
    mapfile -t cases < <(grep -oE '^ +[1-4]-[a-z-]+\)' "$0" | tr -d ' )')
fi
for case in "${cases[@]}"; do
    make_case "$case"
done

echo '| place | call | bearer | call up | delay up, mean | p95 | call down | delay down, mean | p95 | own TCP up, down | other TCP up, down |'
echo '|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|'
for record in "$folder"/[1-4]-*; do
    summary=$(find "$record" -name summary.json)
    IFS=- read -r _ place kind bearer <<< "$(basename "$record")"
    jq -r --arg head "| $place | $kind | ${bearer:-own} |" '
        def r: if . == null then "-" elif . >= 100 then round else . * 100 | round / 100 end | tostring;
        def of($flow; path): [.flows[] | select(.flow == $flow) | .sections[]
            | select(.name == "TCP of both terminals") | path][0] | r;
        [of("media-1-up"; .rate_mbps.mean), of("media-1-up"; .rtt_above_min_ms.mean), of("media-1-up"; .rtt_above_min_ms.p95),
         of("media-1-down"; .rate_mbps.mean), of("media-1-down"; .rtt_above_min_ms.mean), of("media-1-down"; .rtt_above_min_ms.p95),
         "\(of("tcp-1-up"; .rate_mbps.mean)), \(of("tcp-1-down"; .rate_mbps.mean))",
         "\(of("tcp-2-up"; .rate_mbps.mean)), \(of("tcp-2-down"; .rate_mbps.mean))"]
        | "\($head) \(join(" | ")) |"' "$summary"
done
