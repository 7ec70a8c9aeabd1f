#!/bin/sh
# Counts the ECN bits of the packets from host 10.45.0.1 in the captures of calls, and prints a Markdown table:
# `scripts/ecn-counts.sh calls/*/*/`. Host 1 is in front of the network, host 2 behind it. It needs tshark.
set -eu

case ${1:-} in
    '')
        echo 'ecn-counts: no folder of a record; see scripts/ecn-counts.sh --help' >&2
        exit 2
        ;;
    --help | -h)
        sed -n '2,/^set/s/^# //p' "$0"
        exit
        ;;
esac
if ! command -v tshark > /dev/null; then
    echo 'ecn-counts: no tshark: apt-get install tshark' >&2
    exit 2
fi
echo '| record | host | not ECT | ECT(1) | ECT(0) | CE |'
echo '|---|---|---:|---:|---:|---:|'
for folder in "$@"; do
    for host in 1 2; do
        file=$folder/host-$host.pcapng
        [ -f "$file" ] || continue
        tshark -r "$file" -Y 'ip.src == 10.45.0.1 && udp' -T fields -e ip.dsfield.ecn 2> /dev/null |
            awk -v record="$(basename "$(dirname "$folder")" | tr -s _ /), $(basename "$folder" | sed 's/-call-seed.*//')" -v host="$host" '
                { count[$1]++ }
                END { printf "| `%s` | %d | %d | %d | %d | %d |\n", record, host, count[0], count[1], count[2], count[3] }'
    done
done
