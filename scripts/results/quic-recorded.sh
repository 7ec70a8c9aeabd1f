#!/bin/sh
# quic-recorded.sh RECORDINGS: QUIC flows over the first minute of a recorded 4G uplink, as a Markdown table. RECORDINGS is a
# clone of https://github.com/ravinet/mahimahi, which has no licence for its recordings, so they are not in this tree. WEIR
# names the program; target/release/weir if it is not set.
set -eu
[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
recording=$(realpath "$1")/traces/ATT-LTE-driving.up
[ -f "$recording" ] || [ -f "$recording.gz" ] || {
    echo "quic-recorded: no $recording: git clone https://github.com/ravinet/mahimahi" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/../.." && pwd)
weir=${WEIR:-$root/target/release/weir}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$recording"* "$folder"
cd "$folder"

adaptive='kind = "adaptive", start = "500kbps", max = "10Mbps"'
# scenario NAME KEY [SOURCE]: the network, with a QUIC flow that has this key and source.
scenario() {
    cat > "$1.toml" << END
title = "A recorded 4G uplink"
source = "ATT-LTE-driving.up of mahimahi (Winstein and others, NSDI 2013)"
description = "The first minute, a queue of 500 ms of its mean rate, and 25 ms each way."
duration = "60s"
[network.up]
capacity = { trace = "ATT-LTE-driving.up", to = "60s" }
queue = "500ms"
delay = "25ms"
[network.down]
delay = "25ms"
[quic]
$2
min_bitrate = "100kbps"
start_bitrate = "500kbps"
max_bitrate = "10Mbps"
source = { ${3:-$adaptive} }
[[flow]]
kind = "quic"
[[section]]
name = "settled"
from = "10s"
to = "60s"
END
}

# rows HEADING NAME CONTROLLER: a row of the table.
rows() {
    "$weir" run "$2.toml" --controller "$3" --json |
        jq -r -f "$root/scripts/results/metrics.jq" --args "utilization @ settled" "queuing_delay_ms.p95 @ settled" \
            "frame_delay_ms.p95 @ settled" "frame_rate @ settled" "loss_ratio.mean @ settled" |
        sed -n "\$s#^|[^|]*|[^|]*|#| $1 |#p"
}

scenario noq ''
scenario times 'ack = { receive_times = true }'
scenario quinn 'stack = "quinn"'
scenario fixed '' 'kind = "fixed", rate = "10Mbps"'
scenario bold '' "$adaptive, headroom = 1.3"
for rival in cubic new-reno bbr3; do scenario $rival "congestion = \"$rival\""; done
echo '| controller | utilization | queue p95 ms | frame delay p95 ms | frames a second | lost % |'
echo '|---|---:|---:|---:|---:|---:|'
rows 'sluice as on noq' noq sluice
rows 'sluice with receive times' times sluice
rows 'sluice as on quinn' quinn sluice
rows 'scream-v2 as on noq' noq scream-v2
rows 'sluice, headroom of 1.3' bold sluice
rows 'sluice, a source of 10 Mbit/s' fixed sluice
rows CUBIC cubic sluice
rows NewReno new-reno sluice
rows BBRv3 bbr3 sluice
