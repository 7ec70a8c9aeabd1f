#!/bin/sh
# calls.sh SERVER FOLDER SCENARIO...: makes a call through mediasoup for each scenario of ./arena/sfu. SERVER is `own`
# (libwebrtc's controller decides, Weir's in shadow) or `weir` (Weir's in charge; WEIR_CONTROLLER names it). Records go
# below FOLDER, as do the logs of both targets. Needs root, the worker of get-worker.sh, and what a call needs.
set -eu
[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
server=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
case $server in
    own) charge=0 ;;
    weir) charge=1 ;;
    *) echo "calls.sh: no server '$server'" >&2 && exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
for scenario; do
    "${WEIR:-weir}" call "$here/../sfu/$scenario.toml" --app 'http://{server}:9000/' \
        --join "$here/join.mjs" --participants 2 --attempts 1 --out "$folder/$server-$scenario" \
        --serve-app "cd $here && WEIR_IN_CHARGE=$charge WEIR_CONTROLLER=${WEIR_CONTROLLER:-sluice} \
            WEIR_SHADOW=$folder/$server-$scenario.jsonl exec node server.mjs"
done
