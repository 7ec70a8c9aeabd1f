#!/bin/bash
# A Markdown table of the regret of sluice on scenarios, as documented and without one box of it each: what a loss comes
# from. All runs are simulated.
#
# usage: scripts/without-a-box.sh SEEDS SCENARIO...
#
# A value is the mean over the seeds; a box whose lack makes the regret smaller by more than a tenth is bold.
set -euo pipefail
if [ $# -lt 2 ]; then
    echo "without-a-box: usage: scripts/without-a-box.sh SEEDS SCENARIO..." >&2
    exit 2
fi
cd "$(dirname "$0")/.."

names=(drain doubling "packet time" noise competition losses "own part")
boxes=(cut_max=0 t_double=1000000000 k_packet=0 k_noise=0 t_rival=1000000000 "loss_excess=1 loss_max=1" share_fair=2)

# regret SCENARIO SETTING...: its regret with these constants.
regret() {
    "${WEIR:-weir}" research score "$1" --controller sluice --seeds "$seeds" --json "${@:2}" | jq '.controllers[0].regret'
}

seeds=$1
printf '| scenario | as documented |'
printf ' without %s |' "${names[@]}"
printf '\n|---|---:|'
printf -- '---:|%.0s' "${names[@]}"
echo
for scenario in "${@:2}"; do
    all=$(regret "$scenario")
    printf "| \`%s\` | %.3f |" "${scenario#target/}" "$all"
    for box in "${boxes[@]}"; do
        read -ra constants <<< "$box" # a box may have two
        value=$(regret "$scenario" "${constants[@]/#/--set=sluice.}")
        jq -nr --argjson value "$value" --argjson all "$all" \
            '($value * 1000 | round / 1000) as $shown | if $value < $all - 0.1 then " **\($shown)** |" else " \($shown) |" end' |
            tr -d '\n'
    done
    echo
done
