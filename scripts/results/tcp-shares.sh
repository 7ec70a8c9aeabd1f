#!/bin/bash
# A Markdown table of the shares of a flow and of one TCP flow, and of the lowest rate that the flow ever had, in each
# scenario of goals/tcp. All runs are simulated.
#
# usage: scripts/results/tcp-shares.sh [CONTROLLER [SEEDS]]
#
# Means are over the seeds, from 30 s to 120 s. "Lowest" is the lowest mean over 1 s and over 5 s that occurs with any seed.
set -euo pipefail
case ${2:-1}${1:-sluice} in
    *--help | *-h)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit
        ;;
    [1-9]*) ;;
    *)
        echo "tcp-shares: '$2' is no number of seeds; see scripts/results/tcp-shares.sh --help" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${WEIR:-weir}" run 'goals/tcp/*' --controller "${1:-sluice}" --seeds "${2:-1}" --out "$folder" > "$folder/said"

echo "| scenario | media, Mbit/s | TCP, Mbit/s | media / TCP | lowest of media over 1 s, 5 s |"
echo "|---|---:|---:|---:|---:|"
for scenario in "$folder"/*/; do
    name=$(basename "$scenario" | sed 's|__|/|g')
    awk -F, -v name="$name" '
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; seeds++; next }
        {
            second = int(($column["time_ms"] - 1) / 1e3)
            if (second < 30 || second >= 120) next
            bits = $column["received_bytes"] * 8
            if ($column["flow"] ~ /^media/) { media += bits; rate[seeds, second] += bits } else tcp += bits
        }
        END {
            if (media == 0 || tcp == 0) { print "tcp-shares: no rates in " name > "/dev/stderr"; exit 1 }
            one = five = 1e12
            for (seed = 1; seed <= seeds; seed++)
                for (second = 30; second < 120; second++) {
                    if (rate[seed, second] < one) one = rate[seed, second]
                    if (second > 115) continue
                    sum = 0
                    for (i = 0; i < 5; i++) sum += rate[seed, second + i]
                    if (sum / 5 < five) five = sum / 5
                }
            time = seeds * 90e6
            printf "| `%s` | %.3f | %.3f | %.2f | %.3f, %.3f |\n", name, media / time, tcp / time, media / tcp, one / 1e6, five / 1e6
        }' "$scenario"*/series.csv
done
