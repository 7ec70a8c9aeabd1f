#!/bin/sh
# calls.sh SERVER FOLDER SCENARIO...: makes a call through LiveKit for each scenario of ./arena/sfu, or of the simulated
# server such as sfu/steps, whose subscriber is the first participant. SERVER is `remote` (LiveKit with the receivers'
# estimates, its default), `send-side` (its own estimates, Weir's controller in shadow), `weir` (Weir's in charge),
# `allocator-shadow` (LiveKit's decisions, Weir's allocator in shadow) or `allocator` (Weir's controller, prober and
# allocator in charge). A scenario of ./arena/sfu/small, such as small/steps, also measures what is seen, with libvmaf
# if `weir` was built with it. Records go below FOLDER, as do the logs of the estimates. Needs root and what a call
# needs.
set -eu
[ $# -ge 3 ] || { sed -n '2,8s/^# //p' "$0" >&2 && exit 2; }
server=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
allocator=off
case $server in
    remote) side=0 bwe=off ;;
    send-side) side=1 bwe=shadow ;;
    weir) side=1 bwe=charge ;;
    allocator-shadow) side=1 bwe=off allocator=shadow ;;
    allocator) side=1 bwe=off allocator=charge ;;
    *) echo "calls.sh: no server '$server'" >&2 && exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
application=$here/../../examples/apps/livekit
for scenario; do
    participants=2 join=join
    name=$server-$(echo "$scenario" | tr / -) quality='' file=$here/../sfu/$scenario.toml
    case $scenario in
        small/*) quality=--quality ;;
        # The participants do more than send: the join is the example's, beside the scenario.
        meeting) participants=4 join=meeting file=$application/meeting.toml ;;
        sfu/*) file=$here/../../scenarios/$scenario.toml ;;
    esac
    "${WEIR:-weir}" call "$file" --app 'http://{server}:9000/' \
        --join "$application/$join.mjs" --participants "$participants" --attempts 1 --out "$folder/$name" $quality \
        --serve-app "cd $application && LIVEKIT_SERVER=${LIVEKIT_SERVER:-$here/livekit-server} LIVEKIT_SEND_SIDE=$side \
            WEIR_BWE=$bwe WEIR_BWE_LOG=$folder/$name.jsonl WEIR_ALLOCATOR=$allocator \
            WEIR_ALLOCATOR_LOG=$folder/$name.jsonl exec node server.mjs"
done
