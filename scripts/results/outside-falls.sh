#!/bin/bash
# A Markdown table of the queue in the network outside of the 2 s after each fall of the capacity, and within them, of the
# first flow of each scenario. All runs are simulated.
#
# usage: scripts/results/outside-falls.sh CONTROLLER SEEDS SCENARIO...
#
# A value is the 95th percentile over the rows of the records of all seeds, from 3 s on. A row is 50 ms.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
if [ $# -lt 3 ]; then
    echo "outside-falls: usage: scripts/results/outside-falls.sh CONTROLLER SEEDS SCENARIO..." >&2
    exit 2
fi
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${WEIR:-weir}" run "${@:3}" --controller "$1" --seeds "$2" --out "$folder" > "$folder/said"

# p95 PART: the 95th percentile of the delays of one part.
p95() {
    awk -v part="$1" '$1 == part { print $2 }' "$folder/delays" | sort -n |
        awk '{ all[NR] = $1 } END { printf "%.0f", all[int(NR * 0.95 + 0.5)] }'
}

echo "| scenario | queue p95 outside of falls, ms | within 2 s after one, ms |"
echo "|---|---:|---:|"
for scenario in "$folder"/*/; do
    awk -F, '
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; last = 0; fell = -1e9; next }
        $column["flow"] != "media-1" { next }
        {
            time = $column["time_ms"]
            if ($column["capacity_bps"] + 0 < last) fell = time
            last = $column["capacity_bps"] + 0
            if (time > 3000 && $column["queuing_delay_us"] != "")
                print (time - fell <= 2000 ? "within" : "outside"), $column["queuing_delay_us"] / 1000
        }' "$scenario"*/series.csv > "$folder/delays"
    echo "| \`$(basename "$scenario" | sed 's|__|/|g')\` | $(p95 outside) | $(p95 within) |"
done
