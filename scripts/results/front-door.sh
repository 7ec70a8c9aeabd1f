#!/bin/sh
# front-door.sh simulated|calls RECORDINGS: makes the runs of the README's plot and draws it into
# docs/images/front-door.svg. RECORDINGS is a clone of https://github.com/ravinet/mahimahi. `calls` makes four
# real calls of about a minute each. It needs what `weir call` needs and the plugin of `make install-gst`, and a machine
# that does nothing else.
set -eu
. "$(dirname "$0")/../usage.sh"
accept 'simulated calls' "${1:-}"
[ $# -eq 2 ] || {
    echo 'front-door: write front-door.sh simulated|calls RECORDINGS' >&2
    exit 2
}
recording=$(realpath "$2")/traces/ATT-LTE-driving.up
[ -f "$recording" ] || {
    echo "front-door: no $recording: git clone https://github.com/ravinet/mahimahi" >&2
    exit 2
}
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/mahimahi/traces"
cp "$recording" "$folder/mahimahi/traces/"
cp examples/uplink/uplink-4g.toml "$folder/"
case $1 in
    simulated) weir run demo/first-call/one-way "$folder/uplink-4g.toml" --controller gcc,sluice --out "$folder/runs" ;;
    calls)
        weir call demo/first-call/one-way --controller chromium,sluice --out "$folder/runs"
        weir call "$folder/uplink-4g.toml" --controller chromium,sluice --out "$folder/runs"
        ;;
esac
node scripts/results/readme-plot.mjs "$folder/runs" > docs/images/front-door.svg
